"""Mesh files: every triangle of a file is read, or the file is refused; most cases are what trimesh would drop."""

import json
import struct

import numpy as np
import pytest
import trimesh

from gpu_planners.arm import CollisionWorld
from gpu_planners.arm.geometry import meshes as mesh_files
from gpu_planners.arm.geometry.meshes import FORMATS, MOST_TRIANGLES, load_mesh
from gpu_planners.errors import ObstacleError

BOX = trimesh.creation.box([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def exported(kind, mesh=BOX, **options):
    content = mesh.export(file_type=kind, **options)
    return content if isinstance(content, bytes) else content.encode()


def load(tmp_path, kind, content):
    file = tmp_path / f"part.{kind}"
    file.write_bytes(content)
    return load_mesh("part", file)


def with_corner(corner):
    vertices = BOX.vertices.copy()
    vertices[7] = corner
    return trimesh.Trimesh(vertices, BOX.faces, process=False)


ASCII_STL = exported("stl_ascii")
ASCII_PLY = exported("ply", encoding="ascii")
CORNER = f"{BOX.vertices[7, 0]:.8f}"


@pytest.mark.parametrize(
    "kind, content", [*((kind, exported(kind)) for kind in FORMATS), ("stl", ASCII_STL), ("ply", ASCII_PLY)]
)
def test_every_format_is_read(tmp_path, kind, content):
    mesh = load(tmp_path, kind, content)
    assert len(mesh.faces) == 12 and len(mesh.vertices) == 8 and mesh.volume == pytest.approx(6)
    assert len(load_mesh("part", str(tmp_path / f"part.{kind}"), 2.0).faces) == 12


@pytest.mark.parametrize("corner", [np.nan, np.inf, 2e5])
@pytest.mark.parametrize("kind", ["stl", "ply", "off", "glb", "obj", "stl_ascii"])
def test_a_corner_that_is_nowhere_is_refused(tmp_path, kind, corner):
    """trimesh reads these, drops the corner and every triangle at it."""
    with pytest.raises(ObstacleError, match="'part'.*finite"):
        load(tmp_path, kind.removesuffix("_ascii"), exported(kind, with_corner([0.5, corner, 0.5])))


def dae(old, new, after="<float_array"):
    text = exported("dae").decode()
    start = text.index(old, text.index(after))
    return "dae", (text[:start] + new + text[start + len(old) :]).encode()


def test_comments_in_collada_are_skipped(tmp_path):
    plain = exported("dae")
    assert len(load(tmp_path, "dae", plain.replace(b"<color", b"<!-- grey --><color")).faces) == 12


DAMAGED = {
    "dae nan": dae("0.5", "nan"),
    "dae inf": dae("0.5", "inf"),
    "dae word": dae("0.5", "abc"),
    "dae vertex 99": dae("<p>1", "<p>99"),
    "stl word": ("stl", ASCII_STL.replace(b"0.5", b"abc", 1)),
    "stl cut": ("stl", ASCII_STL + ASCII_STL[: len(ASCII_STL) // 2]),
    "stl count": ("stl", bytes(80) + struct.pack("<I", 2**32 - 1) + bytes(500)),
    "stl binary cut": ("stl", exported("stl")[:-10]),
    "stl second solid": ("stl", ASCII_STL + ASCII_STL.replace(b" 0.5", b" nan", 1)),
    "ply word": ("ply", ASCII_PLY.replace(b"0.5", b"abc", 1)),
    "ply cut": ("ply", b"\n".join(ASCII_PLY.split(b"\n")[:-4])),
    "ply vertex 99": ("ply", ASCII_PLY.replace(b"3 1 3", b"3 99 3", 1)),
    "ply vertex -1": ("ply", ASCII_PLY.replace(b"3 1 3", b"3 -1 3", 1)),
    "ply count": ("ply", exported("ply").replace(b"face 12", b"face 4000000000")),
    "off vertex 99": ("off", exported("off").replace(b"\n3 1", b"\n3 99", 1)),
    "off cut": ("off", b"\n".join(exported("off").split(b"\n")[:-4])),
    "off count": ("off", b"OFF\n1000000000 1000000000 0\n0 0 0\n"),
    "obj word": ("obj", exported("obj").replace(b"v 0.5", b"v abc", 1)),
    "obj vertex 99": ("obj", exported("obj").replace(b"f 1", b"f 99", 1)),
    "obj vertex 0": ("obj", exported("obj").replace(b"f 1", b"f 0", 1)),
    "obj vertex -1": ("obj", exported("obj").replace(b"f 1", b"f -1", 1)),
    "obj indented": ("obj", exported("obj").replace(b"f 1", b"  f 1", 1)),
    "empty": ("stl", b""),
    "points": ("obj", b"v 0 0 0\nv 1 0 0\n"),
    "dae deep": ("dae", b"<a>" * 100_000),
    "glb deep": ("glb", b"glTF" + struct.pack("<IIII", 2, 200_020, 200_000, 0x4E4F534A) + b"[" * 200_000),
    "dae bomb": (
        "dae",
        b'<!DOCTYPE r [<!ENTITY a "'
        + b"1 " * 1000
        + b'">'
        + b"".join(b'<!ENTITY a%d "%s">' % (i, (b"&a%d;" % (i - 1) if i else b"&a;") * 10) for i in range(8))
        + b"]><r>&a7;</r>",
    ),
}


@pytest.mark.parametrize("kind, content", DAMAGED.values(), ids=DAMAGED)
def test_damaged_files_are_refused(tmp_path, kind, content):
    with pytest.raises(ObstacleError, match="'part'"):
        load(tmp_path, kind, content)


@pytest.mark.parametrize(
    "ways",
    [("%d/1/1", "%d/1/1", "%d//1"), ("%d", "%d/1", "%d//1"), ("%d//1", "%d", "%d")],
    ids=["the last without a texture", "three ways", "the first with a normal"],
)
def test_a_face_may_name_its_vertices_in_several_ways(tmp_path, ways):
    """trimesh takes other vertices for such faces: a box became one of no volume."""
    box = trimesh.creation.box((0.4, 0.6, 0.8))
    lines = ["v {} {} {}".format(*vertex) for vertex in box.vertices] + ["vt 0 0", "vn 0 0 1"]
    lines += ["f " + " ".join(way % number for way, number in zip(ways, face)) for face in (box.faces + 1).tolist()]
    (tmp_path / "box.obj").write_text("\n".join(lines))
    mesh = load_mesh("box", tmp_path / "box.obj")
    assert len(mesh.faces) == 12 and mesh.volume == pytest.approx(box.volume)
    assert sorted(mesh.vertices.tolist()) == sorted(box.vertices.tolist())


def test_a_nan_among_normals_does_no_harm(tmp_path):
    assert len(load(tmp_path, *dae("1", "nan", after='id="normals-array-array"')).faces) == 12


def glb(change):
    content = exported("glb")
    (length,) = struct.unpack("<I", content[12:16])
    head = json.loads(content[20 : 20 + length])
    change(head)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 4)
    rest = content[20 + length :]
    return b"glTF" + struct.pack("<IIII", 2, 20 + len(text) + len(rest), len(text), 0x4E4F534A) + text + rest


def test_instances_count(tmp_path, monkeypatch):
    def copies(head, count, **pose):
        mesh = next(node["mesh"] for node in head["nodes"] if "mesh" in node)
        head["nodes"] = [{"name": f"n{i}", "mesh": mesh, **pose} for i in range(count)]
        head["scenes"][0]["nodes"] = list(range(count))

    monkeypatch.setattr(mesh_files, "MOST_TRIANGLES", 120)
    assert len(load(tmp_path, "glb", glb(lambda head: copies(head, 10))).faces) == 120
    with pytest.raises(ObstacleError, match="more than 120 triangles"):
        load(tmp_path, "glb", glb(lambda head: copies(head, 11)))
    for scale in ([1e30] * 3, [float("nan")] * 3):
        with pytest.raises(ObstacleError, match="finite"):
            load(tmp_path, "glb", glb(lambda head, scale=scale: copies(head, 1, scale=scale)))


def test_unknown_formats_are_named(tmp_path):
    for name in ("part.zip", "part.gltf", "part", "part.stl.bz2"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(ObstacleError, match="unknown format; known: .stl, .obj"):
            load_mesh("part", tmp_path / name)


def raw(vertices=BOX.vertices, faces=BOX.faces):
    return trimesh.Trimesh(vertices, faces, process=False)


BAD = {
    "vertex 99": (raw(faces=[[0, 1, 99]]), "vertex 99; allowed: 0 to 7"),
    "vertex -1": (raw(faces=[[0, 1, -1]]), "vertex -1"),
    "no faces": (raw(faces=np.zeros((0, 3), int)), "no triangles"),
    "empty": (trimesh.Trimesh(), "no triangles"),
    "two dimensions": (raw(BOX.vertices[:, :2]), r"\(V, 3\)"),
    "flat list": (raw(faces=np.arange(3)), r"\(F, 3\)"),
    "nan": (with_corner(np.nan), "finite"),
    "far": (raw(BOX.vertices * 1e6), r"within \+-100000 m"),
    "large": (raw(faces=np.zeros((MOST_TRIANGLES + 1, 3), int)), f"{MOST_TRIANGLES + 1} triangles.*allowed"),
    "many vertices": (raw(np.zeros((3 * MOST_TRIANGLES + 1, 3))), "600001 vertices"),
    "None": (None, "must be a path"),
    "number": (5, "must be a path"),
    "bytes": (b"part.stl", "must be a path"),
    "scene": (trimesh.Scene(BOX), "must be a path"),
    "missing": ("gone.stl", "cannot be read"),
    "folder": ("folder.stl/", "cannot be read"),
}


@pytest.mark.parametrize("mesh, words", BAD.values(), ids=BAD)
def test_add_mesh_refuses(mesh, words):
    world = CollisionWorld()
    version = world.version
    with pytest.raises(ObstacleError, match=f"'part'.*{words}"):
        world.add_mesh("part", mesh, np.eye(4))
    assert world.version == version and not world.names
