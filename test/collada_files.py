"""Small Collada files: a tetrahedron, in any unit, or nothing."""

DAE = """<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset>{unit}<up_axis>Y_UP</up_axis></asset>{geometry}
<library_visual_scenes><visual_scene id="s"><node id="n">{inside}</node></visual_scene></library_visual_scenes>
{scene}</COLLADA>"""
SCENE = '<scene><instance_visual_scene url="#s"/></scene>'
GEOMETRY = """<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="pa" count="12">0 0 0 1 0 0 0 2 0 0 0 3</float_array><technique_common>
<accessor source="#pa" count="4" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="4"><input semantic="VERTEX" source="#v" offset="0"/><p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles>
</mesh></geometry></library_geometries>"""
USED = '<instance_geometry url="#g"/>'


def write_dae(path, unit="", geometry=GEOMETRY, inside=USED, scene=SCENE):
    path.write_text(DAE.format(unit=unit, geometry=geometry, inside=inside, scene=scene))
    return path
