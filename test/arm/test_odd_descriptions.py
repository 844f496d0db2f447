"""Descriptions as real robots have them: what harms nothing is held, left out or passed over, and told once."""

import logging
import re

import numpy as np
import pytest
import trimesh
from collada_files import write_dae

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.arm.control.joints import read_joints
from gpu_planners.arm.geometry.decomposition import convex_pieces, uncovered
from gpu_planners.arm.geometry.meshes import LEAST_SIZE, EmptyMeshError, load_mesh, thickened
from gpu_planners.arm.urdf.notes import nearest
from gpu_planners.errors import ObstacleError, RobotDescriptionError

LIMIT = '<limit lower="-1" upper="1" velocity="1" effort="1"/>'
BOX = '<collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>'


def link(name, inside=BOX):
    return f'<link name="{name}">{inside}</link>'


def joint(name, parent, child, kind="revolute", inside=LIMIT, axis="0 1 0"):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0 0 0.3"/><axis xyz="{axis}"/>{inside}</joint>'
    )


ARM = link("base") + link("a") + link("b") + joint("j1", "base", "a") + joint("j2", "a", "b")


def robot(*parts):
    return '<robot name="arm">' + "".join(parts) + "</robot>"


def limits(lower, upper):
    return f'<limit lower="{lower}" upper="{upper}" velocity="1" effort="1"/>'


def load(caplog, text, srdf=None, **arguments):
    """(robot, texts of the warnings)"""
    caplog.clear()
    arm = load_urdf(text, srdf, self_collisions=False, **arguments)
    return arm, [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def the_one(told, *words):
    """There is one warning, and it has these words."""
    assert len(told) == 1 and all(word in told[0] for word in words), told


# meshes ---------------------------------------------------------------------------------------------------------------

SQUARE = np.array([[0, 0, 0], [0.2, 0, 0], [0.2, 0.1, 0], [0, 0.1, 0]]), [[0, 1, 2], [0, 2, 3]]
SHAPED = (
    np.array([[0, 0, 0], [1, 0, 0], [1, 0.1, 0], [0.1, 0.1, 0], [0.1, 1, 0], [0, 1, 0]]),
    [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]],
)
FLAT = {  # vertices, triangles, and how many hulls cover them to 2 cm
    "plate": (*SQUARE, 1),
    "angle": (*SHAPED, 2),
    "line": (np.array([[0, 0, 0], [0.5, 0, 0], [1, 0, 0]]), [[0, 1, 2]], 1),
    "point": (np.zeros((3, 3)), [[0, 1, 2]], 1),
}


@pytest.mark.parametrize("vertices, faces, least", FLAT.values(), ids=FLAT)
@pytest.mark.parametrize("turned", [False, True])
def test_a_flat_mesh_is_covered_by_thin_bodies(vertices, faces, least, turned):
    pose = np.eye(4)
    if turned:
        pose = trimesh.transformations.euler_matrix(0.3, 0.7, -1.1)
    mesh = trimesh.Trimesh(vertices @ pose[:3, :3].T + [1, 2, 3], faces, process=False)
    pieces = convex_pieces("sheet", thickened(mesh), np.eye(4))
    assert len(pieces) >= least
    hulls = [piece.vertices + piece.pose[:3, 3] for piece in pieces]
    assert not len(uncovered(mesh, hulls, 1e-12))
    thickness = min(np.linalg.svd(hull - hull.mean(axis=0))[1][-1] for hull in hulls)
    assert 0.3 * LEAST_SIZE < thickness < 9 * LEAST_SIZE  # of N points, each half of it from the middle


def test_a_flat_collision_mesh_is_loaded_and_told(tmp_path, caplog):
    trimesh.Trimesh(*SQUARE).export(tmp_path / "marker.stl")
    plate = '<collision><geometry><mesh filename="marker.stl" scale="2 2 2"/></geometry></collision>'
    text = robot(ARM, link("plate", plate), joint("f", "b", "plate", "fixed"))
    arm, told = load(caplog, text, package_dirs=[tmp_path])
    the_one(told, "flat", "1e-06 m", "'plate'", "marker.stl")
    shape = arm.shapes[-1]
    assert shape.name == "plate_0"
    np.testing.assert_allclose(np.sort(shape.half_extents), [LEAST_SIZE / 2, 0.1, 0.2], atol=1e-9)
    with pytest.raises(ObstacleError, match="'wall'.*flat"):  # somebody's mistake, where nothing else is at stake
        CollisionWorld().add_mesh("wall", tmp_path / "marker.stl", np.eye(4))


EMPTY = {
    "scene.dae": lambda path: write_dae(path, "<unit/>", "", ""),
    "no_scene.dae": lambda path: write_dae(path, "", "", "", ""),
    "text.stl": lambda path: path.write_text("solid nothing\nendsolid nothing\n"),
    "binary.stl": lambda path: path.write_bytes(bytes(84)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_a_mesh_file_that_holds_nothing_is_left_out_and_told(name, tmp_path, caplog):
    EMPTY[name](tmp_path / name)
    body = f'<collision><geometry><mesh filename="{name}"/></geometry></collision>'
    text = robot(ARM, link("tool", BOX + body), joint("f", "b", "tool", "fixed"))
    arm, told = load(caplog, text, package_dirs=[tmp_path])
    the_one(told, "left out", "'tool'", name)
    assert [shape.name for shape in arm.shapes] == ["base_0", "a_0", "b_0", "tool_0"]
    with pytest.raises(EmptyMeshError, match=f"'part'.*{name}' holds nothing"):
        load_mesh("part", tmp_path / name)


FAULTY = {
    "points.obj": (lambda path: path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\n"), "triangles"),
    "unused.dae": (lambda path: write_dae(path, inside=""), "no triangles in its scene"),
    "sceneless.dae": (lambda path: write_dae(path, scene=""), "no scene"),
    "unit.dae": (lambda path: write_dae(path, '<unit meter="inch"/>'), "'inch'.*above 0"),
    "negative.dae": (lambda path: write_dae(path, '<unit meter="-1"/>'), "'-1'"),
    "cut.stl": (lambda path: path.write_bytes(bytes(80) + b"\5\0\0\0"), "read"),
    "far.obj": (lambda path: path.write_text("v 0 0 0\nv 1e9 0 0\nv 0 1 0\nf 1 2 3\n"), "100000 m"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_what_may_collide_is_never_left_out_and_its_file_is_named(name, tmp_path):
    make, words = FAULTY[name]
    make(tmp_path / name)
    body = f'<collision><geometry><mesh filename="{name}"/></geometry></collision>'
    text = robot(ARM, link("tool", body), joint("f", "b", "tool", "fixed"))
    with pytest.raises(RobotDescriptionError, match=f"(?s)link 'tool'.*{name}.*{words}"):
        load_urdf(text, package_dirs=[tmp_path])
    with pytest.raises(ObstacleError, match=f"(?s)'part'.*{name}.*{words}"):
        CollisionWorld().add_mesh("part", tmp_path / name, np.eye(4))


@pytest.mark.parametrize(
    "unit, metres",
    [("", 1), ("<unit/>", 1), ('<unit name="meter" meter="1"/>', 1), ('<unit name="inch" meter="0.0254"/>', 0.0254)],
)
def test_the_unit_of_a_collada_file_counts(unit, metres, tmp_path, caplog):
    write_dae(tmp_path / "part.dae", unit)
    body = '<collision><geometry><mesh filename="part.dae" scale="2 1 1"/></geometry></collision>'
    arm, told = load(caplog, robot(ARM, link("c", body), joint("f", "b", "c", "fixed")), package_dirs=[tmp_path])
    np.testing.assert_allclose(2 * arm.shapes[-1].half_extents, [2 * metres, 2 * metres, 3 * metres])  # z stays up
    if metres == 1:
        assert not told
    else:
        the_one(told, "0.0254 m", "'c'", "part.dae")


def test_a_size_of_0_is_told(caplog):
    flat = '<collision><geometry><box size="1 1 0"/></geometry></collision>'
    _, told = load(caplog, robot(ARM, link("plate", flat), joint("f", "b", "plate", "fixed")))
    the_one(told, "size of 0", "'plate'", "<box>")


def test_what_lies_beside_a_geometry_is_passed_over(caplog):
    """As urdfdom does."""
    text = robot(ARM, link("c"), joint("f", "b", "c", "fixed"))
    arm, told = load(caplog, text.replace("</geometry>", '<origin xyz="9 9 9"/></geometry>'))
    the_one(told, "<origin>", "'base'", "'c'")
    np.testing.assert_allclose(arm.shapes[-1].pose, load_urdf(text, self_collisions=False).shapes[-1].pose)


# joints ---------------------------------------------------------------------------------------------------------------


def test_a_locked_joint_is_held_and_told(caplog):
    more = link("finger") + joint("lock", "b", "finger", inside=limits(0.2, 0.2))
    arm, told = load(caplog, robot(ARM, more))
    the_one(told, "held", "'lock'", "0.2 and 0.2")
    assert arm.joint_names == ("j1", "j2") and arm.other_joints == {"lock": (0.2, 0.2)}
    turned = arm.link_poses([0, 0])["finger"][0, :3, :3]
    np.testing.assert_allclose(turned[0, 0], np.cos(0.2))
    assert read_joints(robot(ARM, more)).names == ("j1", "j2")
    srdf = '<robot name="arm"><group name="all"><joint name="j2"/><joint name="lock"/></group></robot>'
    arm, told = load(caplog, robot(ARM, more), srdf, group="all")
    assert arm.joint_names == ("j2",) and len(told) == 1
    with pytest.raises(RobotDescriptionError, match="'lock' cannot be planned.*0.2 and 0.2"):
        load_urdf(robot(ARM, more), joints=["j1", "lock"])
    alone = robot(link("base"), link("a"), joint("lock", "base", "a", inside=limits(0, 0)))
    with pytest.raises(RobotDescriptionError, match="no joint to plan; joint 'lock' is held.*0 and 0"):
        load_urdf(alone)


@pytest.mark.parametrize("lower, upper", [(-1e16, 1e16), ("-inf", "inf"), (-1.7e308, 1.7e308), (-1e5, 2e6)])
def test_far_limits_turn_without_end(lower, upper, caplog):
    arm, told = load(caplog, robot(ARM, link("c"), joint("j3", "b", "c", inside=limits(lower, upper))))
    the_one(told, "'j3'", "without end")
    assert arm.continuous.tolist() == [False, False, True]
    np.testing.assert_allclose([arm.lower[2], arm.upper[2]], [-np.pi, np.pi])


def test_one_far_limit_names_the_joint():
    for kind, low, up in (
        ("revolute", -1e16, 2),
        ("revolute", 0, "inf"),
        ("prismatic", "-inf", 0),
        ("prismatic", 0, 1e9),
    ):
        with pytest.raises(RobotDescriptionError, match="'far'"):
            load_urdf(robot(ARM, link("c"), joint("far", "b", "c", kind, limits(low, up))))
    rail = robot(ARM, link("c"), joint("rail", "b", "c", "prismatic", limits(0, 9e4)))
    with pytest.raises(RobotDescriptionError, match="'c_0' comes up to .*'rail'.* mm; allowed: 0.1 mm"):
        CollisionChecker(load_urdf(rail, self_collisions=False), CollisionWorld(), device="cpu")


def test_a_joint_that_slides_without_end_is_held(caplog):
    rail = robot(ARM, link("c"), joint("rail", "b", "c", "prismatic", limits(-1e16, 1e16)))
    arm, told = load(caplog, rail)
    the_one(told, "'rail'", "held", "without end")
    assert arm.joint_names == ("j1", "j2")
    with pytest.raises(RobotDescriptionError, match="'rail' cannot be planned: it slides without end"):
        load_urdf(rail, joints=["rail"])


FAULTS = {
    "inverted": (joint("wheel", "base", "w", inside=limits(1, -1)), "the lower limit 1 is above the upper limit -1"),
    "nan": (joint("wheel", "base", "w", inside=limits("nan", 1)), "lower='nan' is not a number"),
    "word": (joint("wheel", "base", "w", inside=limits("${low}", 1)), "is not a number"),
    "axis": (joint("wheel", "base", "w", axis="0 0 0"), "the <axis> is zero"),
}


@pytest.mark.parametrize("wheel, words", FAULTS.values(), ids=FAULTS)
def test_faults_count_only_where_the_joint_is_planned(wheel, words, caplog):
    text = robot(ARM, link("w"), wheel)
    arm, told = load(caplog, text, joints=["j1", "j2"])
    the_one(told, "'wheel'", words)
    np.testing.assert_allclose(
        arm.link_poses([0, 0])["w"][0], [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0.3], [0, 0, 0, 1]]
    )
    for arguments in ({}, {"joints": ["wheel"]}):
        with pytest.raises(RobotDescriptionError, match=f"'wheel'.*{re.escape(words)}"):
            load_urdf(text, **arguments)
    with pytest.raises(RobotDescriptionError, match=f"'wheel'.*{re.escape(words)}"):
        read_joints(text)


def test_a_follower_without_an_axis_is_an_error_where_its_leader_is_planned(caplog):
    follow = joint("follow", "b", "c", inside='<mimic joint="j1"/>', axis="0 0 0")
    with pytest.raises(RobotDescriptionError, match="'follow'.*<axis> is zero"):
        load_urdf(robot(ARM, link("c"), follow))
    the_one(load(caplog, robot(ARM, link("c"), follow), joints=["j2"])[1], "'follow'")


MIMICS = {
    "unknown": ('<mimic joint="ghost"/>', '<mimic joint="f1"/>', "'f1' (it mimics 'ghost', which is not defined)"),
    "circle": ('<mimic joint="f2"/>', '<mimic joint="f1"/>', "it mimics itself"),
}


@pytest.mark.parametrize("one, two, words", MIMICS.values(), ids=MIMICS)
def test_a_joint_that_mimics_nothing_is_held(one, two, words, caplog):
    fingers = joint("f1", "b", "c", inside=LIMIT + one) + joint("f2", "b", "d", inside=LIMIT + two)
    arm, told = load(caplog, robot(ARM, link("c"), link("d"), fingers))
    the_one(told, "held", words)
    assert arm.joint_names == ("j1", "j2") and "f1" in arm.other_joints


# elements -------------------------------------------------------------------------------------------------------------

XACRO = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
UNREAD = {
    "in a visual": ('<visual><geometry><box size="1 1 1"/></geometry><xacro:grey/></visual>', "", "<xacro:grey>"),
    "deep in a visual": ('<visual><material name="m"><xacro:grey/></material></visual>', "", "<xacro:grey>"),
    "in gazebo": ("", '<gazebo reference="base"><xacro:plugin/></gazebo>', "<xacro:plugin> in the root"),
    "misspelt collision": ('<colision><geometry><box size="1 1 1"/></geometry></colision>', "", "<collision>"),
    "misspelt link": ("", '<Link name="x"/>', "<Link> in the root (nearest: <link>)"),
}


@pytest.mark.parametrize("in_link, in_robot, words", UNREAD.values(), ids=UNREAD)
def test_elements_that_nothing_reads_are_told(in_link, in_robot, words, caplog):
    text = robot(ARM.replace(BOX, BOX + in_link, 1), in_robot).replace("<robot", f"<robot {XACRO}")
    arm, told = load(caplog, text)
    the_one(told, words)
    assert len(arm.shapes) == 3


@pytest.mark.parametrize("where", ["robot", "link", "collision", "geometry", "joint"])
def test_a_macro_that_may_stand_for_something_is_an_error(where):
    text = robot(ARM).replace("<robot", f"<robot {XACRO}")
    with pytest.raises(RobotDescriptionError, match="<xacro:part> in line 1: expand it"):
        load_urdf(re.sub(f"(<{where}\\b[^>]*>)", "\\1<xacro:part/>", text, count=1))


def test_what_other_tools_say_is_no_matter(caplog):
    others = """<material name="red"/><material name="red"/><gazebo><plugin/></gazebo><transmission name="t"/>
        <sensor name="s"/><loop_joint name="l"/><ros2_control/>"""
    seen = (
        '<visual><geometry><mesh filename="nowhere.dae"/></geometry></visual><inertial><mass value="nan"/></inertial>'
    )
    arm, told = load(caplog, robot(ARM.replace(BOX, BOX + seen, 1), others))
    assert not told and arm.joint_names == ("j1", "j2")


# SRDF -----------------------------------------------------------------------------------------------------------------

GROUP = '<group name="arm"><chain base_link="base" tip_link="b"/></group>'
STATE = '<group_state name="s" group="{}">{}</group_state>'
J1, J2 = '<joint name="j1" value="0.1"/>', '<joint name="j2" value="0.2"/>'
NOTHING = {
    "tag": ('<disable_collision link1="base" link2="b"/>', ["<disable_collision> (nearest: <disable_collisions>)"]),
    "tag in a group": (
        '<group name="g"><joint name="j1"/><joints name="j2"/></group>',
        ["<joints> (nearest: <joint>)"],
    ),
    "half a pair": ('<disable_collisions link1="base" link2="a"/><disable_collisions link1="b"/>', ["one link only"]),
    "enabled": ('<enable_collisions link1="base" link2="bb"/>', ["<enable_collisions>", "'bb' (nearest: 'b')"]),
    "default": ('<disable_default_collisions link="bas"/>', ["'bas' (nearest: 'base')"]),
    "passive": ('<passive_joint name="j11"/>', ["<passive_joint>", "'j11' (nearest: 'j1')"]),
    "virtual": ('<virtual_joint name="v" type="fixed" parent_frame="world" child_link="bse"/>', ["'bse'", "'base'"]),
    "effector": ('<end_effector name="e" group="arm" parent_link="tool_b"/>', ["'tool_b' (nearest: 'b')"]),
    "effector's group": ('<end_effector name="e" group="army" parent_link="b"/>', ["'army' (nearest: 'arm')"]),
    "group's link": ('<group name="g"><link name="a"/><link name="aa"/></group>', ["<group>", "'aa' (nearest: 'a')"]),
    "group's joint": ('<group name="g"><joint name="J2"/></group>', ["<group>", "'J2' (nearest: 'j2')"]),
    "chain": ('<group name="g"><chain base_link="base" tip_link="arm_b"/></group>', ["'arm_b' (nearest: 'b')"]),
    "state's group": (STATE.format("armm", J1 + J2), ["<group_state>", "'armm' (nearest: 'arm')"]),
    "half a state": (STATE.format("arm", J1), ["state 's' of 'arm' lacks 'j2'"]),
    "unknown joint": (STATE.format("arm", J1 + J2 + '<joint name="j22" value="1"/>'), ["'s': 'j22' (nearest: 'j2')"]),
    "nameless": (STATE.format("arm", J1 + J2).replace('name="s"', ""), ["without a name", "line 1"]),
    "beyond": (STATE.format("arm", J1 + '<joint name="j2" value="1.5"/>'), ["state 's': 'j2' = 1.5", "limits"]),
}


@pytest.mark.parametrize("statement, words", NOTHING.values(), ids=NOTHING)
def test_a_statement_about_nothing_is_told(statement, words, caplog):
    arm, told = load(caplog, robot(ARM), f'<robot name="arm">{GROUP}{statement}</robot>', group="arm")
    the_one(told, "SRDF of 'arm'", *words)
    assert arm.joint_names == ("j1", "j2")


def test_pairs_of_another_robot_leave_out_nothing(caplog):
    """They are told, and the pairs are found as without an SRDF."""
    pairs = "".join(f'<disable_collisions link1="left_{a}" link2="left_{b}"/>' for a, b in ("ab", "ba"))
    _, told = load(caplog, robot(ARM), f'<robot name="arm">{GROUP}{pairs}</robot>', group="arm")
    the_one(told, "2 of 2 <disable_collisions>", "leaves out no pair", "'left_a' (nearest: 'a'), 'left_b'")
    mixed = f'{pairs}<disable_collisions link1="base" link2="b"/>'
    arm, told = load(caplog, robot(ARM), f'<robot name="arm">{GROUP}{mixed}</robot>', group="arm")
    the_one(told, "2 of 3 <disable_collisions>")
    assert ("base", "b", "SRDF: no reason given") in arm.disabled_pairs and not len(arm.self_collision_pairs)


def test_a_sound_srdf_is_not_told_of(caplog):
    """Followers and joints with several values in states, links without bodies, other tools' elements."""
    follow = joint("f", "b", "c", inside=LIMIT + '<mimic joint="j2"/>')
    srdf = f"""<robot name="arm">{GROUP}<virtual_joint name="v" type="floating" parent_frame="world" child_link="base"/>
      <group name="all"><group name="arm"/></group><passive_joint name="f"/><end_effector name="e" group="arm"
      parent_link="b" parent_group="all"/><disable_collisions link1="a" link2="c" reason="Never"/>
      <rotor_params/><gripper name="g"/><link_sphere_approximation link="a"/>
      <group_state name="s" group="arm">{J1}{J2}<joint name="f" value="5"/>
      <joint name="v" value="0 0 0 0 0 0 1"/><joint name="root_joint" value="0 0 0 0 0 0 1"/></group_state></robot>"""
    arm, told = load(caplog, robot(ARM, link("c", ""), follow), srdf, group="arm")
    assert not told and arm.named_states.keys() == {"s"}


def test_nearest():
    known = ["panda_link0", "panda_link1", "panda_hand"]
    assert nearest("left_panda_link1", known) == "panda_link1"
    assert nearest("link0", known) == "panda_link0"
    assert nearest("panda_hamd", known) == "panda_hand"
    assert nearest("xyz", known) == nearest("", known) == ""
