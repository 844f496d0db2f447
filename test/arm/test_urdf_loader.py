"""What load_urdf reads and refuses: joints, groups, meshes, primitives, and every bad input by its name."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import trimesh

from gpu_planners.arm.geometry.shapes import ConvexShape, ShapeKind
from gpu_planners.arm.robot.model import VirtualJoint
from gpu_planners.arm.urdf.loader import load_urdf
from gpu_planners.errors import RobotDescriptionError, SettingsError

LIMIT = '<limit lower="-1" upper="2" velocity="1.5" effort="1"/>'


def joint(name, parent, child, kind="revolute", inside=LIMIT, axis="0 0 1", xyz="0 0 1"):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}"/><axis xyz="{axis}"/>{inside}</joint>'
    )


def links(*names):
    return "".join(f'<link name="{name}"/>' for name in names)


def robot(*parts):
    return '<?xml version="1.0" encoding="utf-8"?><robot name="arm">' + "".join(parts) + "</robot>"


def with_shape(geometry, extra=""):
    """A two-link arm whose moving link has one collision element."""
    return robot(
        '<link name="base"/><link name="tip"><collision>',
        f"{extra}<geometry>{geometry}</geometry>",
        "</collision></link>",
        joint("j1", "base", "tip"),
    )


GRIPPER = robot(
    links("base", "arm", "hand", "left", "right", "pad"),
    joint("shoulder", "base", "arm"),
    joint("lift", "arm", "hand", "prismatic", '<limit lower="0.1" upper="0.5" velocity="1" effort="1"/>'),
    joint("grip", "hand", "left", "prismatic", '<limit lower="0" upper="0.04" velocity="1" effort="1"/>', "0 1 0"),
    joint(
        "follow", "hand", "right", "prismatic", LIMIT + '<mimic joint="grip" multiplier="-1" offset="0.01"/>', "0 1 0"
    ),
    joint("twist", "right", "pad", "revolute", LIMIT + '<mimic joint="follow" multiplier="10"/>'),
)


def test_followers_of_a_planned_joint_are_frames():
    arm = load_urdf(GRIPPER)
    assert arm.joint_names == ("shoulder", "lift", "grip")
    assert arm.frame_names == ("shoulder", "lift", "grip", "follow", "twist")
    twist = arm.frames[4]
    assert twist["joint"] == 2 and twist["multiplier"] == -10 and twist["offset"] == pytest.approx(0.1)
    right = arm.link_poses([0, 0.2, 0.03])["right"][0]
    np.testing.assert_allclose(right[:3, 3], [0, -0.02, 3 + 0.2], atol=1e-12)


def test_followers_of_a_frozen_joint_are_constants():
    arm = load_urdf(GRIPPER, joints=["shoulder"], fixed={"grip": 0.03})
    assert arm.frame_names == ("shoulder",)
    poses = arm.link_poses([0.0])
    # lift stands at its lower limit, the value nearest to 0
    np.testing.assert_allclose(poses["right"][0, :3, 3], [0, -0.02, 3 + 0.1], atol=1e-12)
    np.testing.assert_allclose(poses["pad"][0, :2, 0], [np.cos(-0.2), np.sin(-0.2)], atol=1e-12)


@pytest.mark.parametrize("joints", [["shoulder"], ["shoulder", "grip"], ["grip"]])
def test_other_joints_are_moved_without_the_description(joints, monkeypatch):
    """As load_urdf(fixed=...) has it, also below and above planning joints, with what links carry; nothing is read."""
    box = "<collision><geometry><box size='0.1 0.2 0.3'/></geometry></collision>"
    text = GRIPPER.replace('<link name="hand"/>', f'<link name="hand">{box}</link>')
    text = text.replace('<link name="pad"/>', f'<link name="pad">{box}</link>')
    text = text.replace('<link name="arm"/>', f'<link name="arm">{box}</link>')
    fixed = {name: value for name, value in (("lift", 0.4), ("grip", 0.03), ("shoulder", 0.5)) if name not in joints}
    stick = ConvexShape.sphere("stick", 0.1, np.eye(4))
    expected = load_urdf(text, joints=joints, fixed=fixed).attach("stick", stick, "pad", np.eye(4))
    arm = load_urdf(text, joints=joints).attach("stick", stick, "pad", np.eye(4))
    monkeypatch.setattr("gpu_planners.arm.urdf.loader.read_urdf", None)
    monkeypatch.setattr("gpu_planners.arm.urdf.loader.convex_pieces", None)
    moved = arm.with_other_joints(fixed)
    q = np.linspace(0.1, 0.2, len(joints))
    for link, pose in expected.link_poses(q).items():
        np.testing.assert_allclose(moved.link_poses(q)[link], pose, atol=1e-12)
    assert [shape.name for shape in moved.shapes] == [shape.name for shape in expected.shapes]
    for one, other in zip(moved.shapes, expected.shapes, strict=True):
        np.testing.assert_allclose(one.pose, other.pose, atol=1e-12)
    np.testing.assert_array_equal(moved.self_collision_pairs, expected.self_collision_pairs)
    back = moved.with_other_joints({})
    np.testing.assert_array_equal(back.frames, arm.frames)
    np.testing.assert_array_equal([s.pose for s in back.shapes], [s.pose for s in arm.shapes])
    with pytest.raises(RobotDescriptionError, match=f"'{joints[0]}'.*planning"):
        arm.with_other_joints({joints[0]: 0.1})
    with pytest.raises(RobotDescriptionError, match="load_urdf"):
        replace(arm, tree=None).with_other_joints(fixed)


def test_limits_velocity_and_acceleration():
    text = robot(
        links("a", "b", "c"),
        joint("turn", "a", "b", "continuous", '<limit velocity="2" effort="1"/>'),
        joint("bend", "b", "c"),
    )
    arm = load_urdf(text)
    np.testing.assert_array_equal(arm.continuous, [True, False])
    np.testing.assert_allclose(arm.lower, [-np.pi, -1])
    np.testing.assert_allclose(arm.upper, [np.pi, 2])
    np.testing.assert_allclose(arm.velocity, [2, 1.5])
    np.testing.assert_allclose(arm.acceleration, [4, 3])
    arm = load_urdf(text, velocity={"bend": 0.5}, acceleration=7)
    np.testing.assert_allclose(arm.velocity, [2, 0.5])
    np.testing.assert_allclose(arm.acceleration, [7, 7])


def test_a_joint_without_a_velocity_is_planned_and_told(caplog):
    zero, negative = '<limit velocity="0" upper="1"/>', '<limit velocity="-3" upper="1"/>'
    text = robot(
        links("a", "b", "c", "d", "e"),
        joint("zero", "a", "b", inside=zero),
        joint("none", "b", "c", inside='<limit upper="1"/>'),
        joint("turn", "c", "d", "continuous", ""),
        joint("negative", "d", "e", inside=negative),
    )
    arm = load_urdf(text)
    np.testing.assert_allclose(arm.velocity, [1, 1, 1, 3])
    np.testing.assert_allclose(arm.acceleration, [2, 2, 2, 6])
    assert "no velocity limit, or 0, for zero, none, turn: 1 rad/s" in caplog.text
    caplog.clear()
    load_urdf(text)  # is told once
    np.testing.assert_allclose(load_urdf(text, velocity={"zero": 2, "none": 2, "turn": 2}).velocity, [2, 2, 2, 3])
    load_urdf(text, velocity=2)
    load_urdf(text, joints=["negative"])
    assert not caplog.text


SRDF = """<robot name="arm">
  <group name="arm"><chain base_link="base" tip_link="hand"/></group>
  <group name="fingers"><link name="left"/><joint name="follow"/></group>
  <group name="all"><group name="arm"/><group name="fingers"/></group>
  <group_state name="up" group="arm"><joint name="shoulder" value="0.5"/><joint name="lift" value="0.2"/></group_state>
  <group_state name="half" group="arm"><joint name="shoulder" value="0.5"/></group_state>
  <disable_collisions link1="hand" link2="base" reason="Never"/>
</robot>"""


@pytest.mark.parametrize(
    "group, joints", [("arm", ("shoulder", "lift")), ("fingers", ("grip",)), ("all", ("shoulder", "lift", "grip"))]
)
def test_groups(group, joints):
    arm = load_urdf(GRIPPER, SRDF, group=group)
    assert arm.joint_names == joints
    if group == "arm":
        assert arm.tip_link == "hand" and arm.named_states.keys() == {"up"}
        np.testing.assert_allclose(arm.named_states["up"], [0.5, 0.2])


def test_the_tip_is_no_finger():
    more = links("flange", "tool") + joint("f", "hand", "flange", "fixed") + joint("t", "flange", "tool", "fixed")
    text = GRIPPER.replace("</robot>", f"{more}</robot>")
    assert load_urdf(text, joints=["shoulder", "lift"]).tip_link == "tool"
    assert load_urdf(GRIPPER, joints=["shoulder", "lift"]).tip_link == "hand"
    assert load_urdf(GRIPPER).tip_link == "hand"
    assert load_urdf(GRIPPER, joints=["grip"]).tip_link == "left"


def test_the_only_group_is_the_default():
    srdf = '<robot name="arm"><group name="g"><joint name="lift"/></group></robot>'
    assert load_urdf(GRIPPER, srdf).joint_names == ("lift",)


def test_links_that_are_only_seen_are_told(caplog):
    seen = '<link name="{}"><visual><geometry><box size="1 1 1"/></geometry></visual></link>'
    text = robot(
        seen.format("floor"),
        seen.format("ghost"),
        links("end"),
        joint("j", "floor", "ghost"),
        joint("k", "ghost", "end"),
    )
    load_urdf(text)
    assert "no collision geometry" in caplog.text and caplog.text.rstrip().endswith("nothing: ghost")


def test_what_urdf_1_1_and_1_2_add():
    """Quaternions, capsules, accelerations: pinocchio with urdfdom 6 reads the first two so."""
    limit = '<limit lower="-1" upper="2" velocity="1" effort="1" acceleration="5" deceleration="4"/>'
    capsule = '<collision><geometry><capsule radius="0.1" length="0.4"/></geometry></collision>'
    text = robot(
        links("base", "end"),
        f'<link name="tip">{capsule}</link>',
        joint("j", "base", "tip", inside=limit, xyz='0 0 1" quat_xyzw="0 0 -1.2 1.6'),
        joint("k", "tip", "end"),
    )
    with pytest.raises(RobotDescriptionError, match="'j', <origin quat_xyzw> needs"):
        load_urdf(text)
    text = text.replace('name="arm"', 'name="arm" version="1.2"', 1)
    arm = load_urdf(text)
    np.testing.assert_allclose(arm.acceleration, [4, 3])
    np.testing.assert_allclose(arm.link_poses([0, 0])["tip"][0, :2, 0], [0.28, -0.96], atol=1e-12)
    assert [shape.kind for shape in arm.shapes] == [ShapeKind.CYLINDER, ShapeKind.SPHERE, ShapeKind.SPHERE]
    np.testing.assert_allclose([shape.pose[2, 3] - arm.shapes[0].pose[2, 3] for shape in arm.shapes], [0, -0.2, 0.2])
    np.testing.assert_allclose([shape.half_extents[0] for shape in arm.shapes], 0.1)


VARIANTS = """<robot name="arm">
  <virtual_joint name="world_joint" type="planar" parent_frame="odom" child_link="base"/>
  <virtual_joint name="anchor" type="fixed" parent_frame="world" child_link="base"/>
  <group name="arm"><joint name="anchor"/><chain base_link="base" tip_link="hand"/></group>
  <group name="base"><joint name="world_joint"/></group>
  <group name="body"><group name="base"/><group name="arm"/></group>
  <group name="wheel"><joint name="spin"/></group>
  <group name="foot"><link name="sole"/></group>
  <group name="lost"><group name="legs"/></group>
  <group name="fingers"><chain base_link="left" tip_link="right"/></group>
  <disable_collisions link1="sole" link2="base"/>
</robot>"""


def test_a_group_is_judged_only_where_it_is_planned():
    assert load_urdf(GRIPPER, VARIANTS, group="arm").joint_names == ("shoulder", "lift")
    assert load_urdf(GRIPPER, VARIANTS, group="fingers").joint_names == ("grip",)  # from one branch to another
    for group, words in {
        "base": "'world_joint', which is virtual and planar",
        "body": "'body' holds 'base'.*'world_joint'",
        "wheel": "'spin', which the URDF does not have",
        "foot": "'sole', which the URDF does not have",
        "lost": "no group 'legs'",
        "head": "no group 'head'.*arm, fingers, base",
    }.items():
        with pytest.raises(RobotDescriptionError, match=words):
            load_urdf(GRIPPER, VARIANTS, group=group)


def test_virtual_joints_of_the_srdf_are_kept():
    srdf = """<robot name="arm"><group name="all"><joint name="j1"/><joint name="anchor"/></group>
      <virtual_joint child_link="base" name="virtual_joint" parent_frame="world" type="floating"/>
      <virtual_joint child_link="base" name="anchor" parent_frame="map" type="bolted"/></robot>"""
    urdf = robot(links("base", "tip"), joint("j1", "base", "tip"))
    kept = (VirtualJoint("virtual_joint", "floating", "world", "base"), VirtualJoint("anchor", "fixed", "map", "base"))
    assert load_urdf(urdf, srdf).virtual_joints == kept
    assert load_urdf(urdf, srdf).attach("box", ConvexShape.sphere("box", 0.1, np.eye(4)), "tip").virtual_joints == kept
    assert load_urdf(urdf).virtual_joints == ()


@pytest.mark.parametrize(
    "old, new",
    [
        ('version="1.0"', 'version="0.0"'),
        ("<robot ", '<robot xmlns="http://drake.mit.edu" '),
        ("</robot>", "<sensor:camera sensor:rate='1'><interface:x/></sensor:camera></robot>"),
        ("</robot>", '<xacro:property name="w" value="1"/></robot>'),
        ("</robot>", '<x:arg xmlns:x="http://www.ros.org/wiki/xacro" name="w" default="1"/></robot>'),
        ("<robot", "<!DOCTYPE robot>\r\n<?pi?><robot"),
    ],
)
def test_what_else_ros_reads_is_read(old, new):
    assert load_urdf(PLAIN.replace(old, new, 1)).joint_names == ("j1",)


def test_latin_1_is_read(tmp_path):
    (tmp_path / "arm.urdf").write_bytes(PLAIN.replace("<link", "<!-- größer --><link", 1).encode("latin-1"))
    assert load_urdf(tmp_path / "arm.urdf").joint_names == ("j1",)


def test_far_limits_of_a_joint_that_is_not_planned():
    base = joint("rail", "world", "base", "prismatic", '<limit lower="-999999" upper="999999" velocity="1"/>')
    text = robot(links("world", "base", "tip"), base, joint("j1", "base", "tip"))
    assert load_urdf(text, joints=["j1"]).other_joints == {"rail": (-999999, 999999)}


def test_sizes_of_0_are_thin():
    for geometry, extents in {
        '<box size="0.2 0 0.6"/>': [0.1, 5e-7, 0.3],
        '<sphere radius="0"/>': [1e-6] * 3,
        '<cylinder radius="0.1" length="0"/>': [0.1, 0.1, 5e-7],
    }.items():
        np.testing.assert_allclose(load_urdf(with_shape(geometry)).shapes[0].half_extents, extents)


def test_primitives_keep_their_kind_and_place():
    box = load_urdf(with_shape('<box size="0.2 0.4 0.6"/>', '<origin xyz="0.1 0 0" rpy="0 0 1"/>')).shapes[0]
    assert box.kind == ShapeKind.BOX
    np.testing.assert_allclose(box.half_extents, [0.1, 0.2, 0.3])
    np.testing.assert_allclose(box.pose[:3, 3], [0.1, 0, 0], atol=1e-12)
    cylinder = load_urdf(with_shape('<cylinder radius="0.1" length="1"/>')).shapes[0]
    assert cylinder.kind == ShapeKind.CYLINDER
    np.testing.assert_allclose(cylinder.half_extents, [0.1, 0.1, 0.5])
    assert load_urdf(with_shape('<sphere radius="0.1"/>')).shapes[0].kind == ShapeKind.SPHERE


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package folder "my_arm" with a 1 x 2 x 3 box as a mesh in millimetres."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "my_arm" / "meshes"
    folder.mkdir(parents=True)
    trimesh.creation.box((1000, 2000, 3000)).export(folder / "box.stl")
    return tmp_path / "my_arm"


@pytest.mark.parametrize(
    "name",
    [
        "package://my_arm/meshes/box.stl",
        "package://my_arm//meshes/box.stl",
        "meshes/box.stl",
        "file://{folder}/meshes/box.stl",
    ],
)
def test_meshes_are_found_from_a_file_and_from_text(package, name):
    text = with_shape(f'<mesh filename="{name.format(folder=package)}" scale="0.001 0.001 -0.001"/>')
    (package / "arm.urdf").write_text(text)
    for arm in (load_urdf(package / "arm.urdf"), load_urdf(text, package_dirs=[package.parent, package])):
        assert len(arm.shapes[0].vertices) == 8
        np.testing.assert_allclose(arm.shapes[0].half_extents, [0.5, 1, 1.5])


def test_meshes_are_found_in_ros_prefixes_and_checkouts(package, tmp_path, monkeypatch):
    text = with_shape('<mesh filename="package://my_arm/meshes/box.stl" scale="0.001 0.001 0.001"/>')
    prefix = tmp_path / "install"
    shutil.copytree(package, prefix / "share" / "my_arm")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(prefix))
    assert len(load_urdf(text).shapes) == 1
    monkeypatch.delenv("AMENT_PREFIX_PATH")
    checkout = package.rename(tmp_path / "some_branch")
    (checkout / "package.xml").write_text("<package><name>my_arm</name></package>")
    (checkout / "arm.urdf").write_text(text)
    assert len(load_urdf(checkout / "arm.urdf").shapes) == 1
    for folder in (tmp_path, checkout):  # a checkout among others, and itself
        assert len(load_urdf(text, package_dirs=[folder]).shapes) == 1
    (checkout / "package.xml").unlink()
    many = [tmp_path / f"folder_{i}" for i in range(9)]
    with pytest.raises(RobotDescriptionError, match="looked for .*folder_4/my_arm/meshes/box.stl and 4 more$"):
        load_urdf(text, package_dirs=many)
    (many[8] / "my_arm").mkdir(parents=True)
    with pytest.raises(RobotDescriptionError, match="looked for [^,]*folder_8/my_arm/meshes/box.stl$"):
        load_urdf(text, package_dirs=many)


def test_meshes_of_a_package_under_another_name_are_those_beside_the_urdf(package, tmp_path, caplog):
    """Many copy a package's folder, as my_robot_description of my_robot_support."""
    text = with_shape('<mesh filename="package://my_arm/meshes/box.stl" scale="0.001 0.001 0.001"/>')
    folder = package.rename(tmp_path / "copied")
    (folder / "urdf").mkdir()
    (folder / "urdf/arm.urdf").write_text(text)
    assert len(load_urdf(folder / "urdf/arm.urdf").shapes) == 1
    assert "packages are not there; their meshes are those beside the URDF: 'my_arm'" in caplog.text
    with pytest.raises(RobotDescriptionError, match="is missing"):
        load_urdf(text)  # a text has no folder


def test_several_collision_elements_get_names_of_their_own():
    text = robot(
        '<link name="base"/><link name="tip">',
        *['<collision><geometry><sphere radius="0.1"/></geometry></collision>'] * 2,
        "</link>",
        joint("j1", "base", "tip"),
    )
    assert [shape.name for shape in load_urdf(text).shapes] == ["tip_0", "tip_1"]


PLAIN = robot(links("base", "tip"), joint("j1", "base", "tip"))
NAN = '<limit lower="nan" upper="1" velocity="1" effort="1"/>'
NEWER = PLAIN.replace('name="arm"', 'name="arm" version="1.1"')

BAD = {
    "malformed": ("<robot name='x'><link", "well-formed"),
    "not a robot": ("<sdf/>", "<sdf>"),
    "no link": (robot(), "no link"),
    "xacro": ('<robot name="x" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arm/></robot>', "xacro:arm"),
    "link twice": (robot(links("a", "a")), "'a' is defined twice"),
    "joint twice": (robot(links("a", "b", "c"), joint("j", "a", "b"), joint("j", "b", "c")), "'j' is defined"),
    "unknown type": (robot(links("a", "b"), joint("j", "a", "b", "hinge")), "'j'.*'hinge'"),
    "no parent": (robot(links("a", "b"), '<joint name="j" type="fixed"><child link="b"/></joint>'), "'j' has no"),
    "unknown link": (robot(links("a"), joint("j", "a", "b")), "'j'.*'b'"),
    "two roots": (robot(links("a", "b", "c"), joint("j", "a", "b")), "several root.*a, c"),
    "two parents": (robot(links("a", "b", "c"), joint("j", "a", "c"), joint("k", "b", "c")), "'c'.*'j'.*'k'"),
    "cycle": (robot(links("a", "b"), joint("j", "a", "b"), joint("k", "b", "a")), "cycle.*j, k"),
    "cycle aside": (robot(links("r", "a", "b"), joint("j", "a", "b"), joint("k", "b", "a")), "cycle.*j, k"),
    "nan limit": (robot(links("a", "b"), joint("j", "a", "b", inside=NAN)), "'j'.*lower='nan'"),
    "word limit": (robot(links("a", "b"), joint("j", "a", "b", inside=NAN.replace("nan", "low"))), "'j'.*lower='low'"),
    "infinite limit": (robot(links("a", "b"), joint("j", "a", "b", inside=NAN.replace("nan", "-inf"))), "'j'.*finite"),
    "inverted limits": (robot(links("a", "b"), joint("j", "a", "b", inside=NAN.replace("nan", "3"))), "'j'.*3.*above"),
    "empty limits": (robot(links("a", "b"), joint("j", "a", "b", inside=NAN.replace("nan", "1"))), "1 and 1"),
    "no limit": (robot(links("a", "b"), joint("j", "a", "b", inside="")), "'j'.*no <limit>"),
    "infinite velocity": (
        robot(links("a", "b"), joint("j", "a", "b", inside='<limit upper="1" velocity="inf"/>')),
        "'j'.*velocity",
    ),
    "undeclared xacro": ('<robot name="x"><xacro:arm/></robot>', "xacro:arm"),
    "zero axis": (robot(links("a", "b"), joint("j", "a", "b", axis="0 0 0")), "'j'.*axis"),
    "nan axis": (robot(links("a", "b"), joint("j", "a", "b", axis="0 nan 1")), "'j'.*axis"),
    "zero quaternion": (NEWER.replace('xyz="0 0 1"', 'quat_xyzw="0 0 0 0"', 1), "'j1'.*quaternion is zero"),
    "two rotations": (NEWER.replace('xyz="0 0 1"', 'rpy="0 0 0" quat_xyzw="0 0 0 1"', 1), "'j1'.*either rpy"),
    "bad origin": (robot(links("a", "b"), joint("j", "a", "b", xyz="0 0")), "'j'.*origin xyz"),
    "mimics unknown": (robot(links("a", "b"), joint("j", "a", "b", inside=LIMIT + '<mimic joint="k"/>')), "'k'"),
    "mimics itself": (robot(links("a", "b"), joint("j", "a", "b", inside=LIMIT + '<mimic joint="j"/>')), "'j'.*itself"),
    "floating": (robot(links("a", "b", "c"), joint("f", "a", "b", "floating"), joint("j", "b", "c")), "'f' is"),
    "hanging": (robot(links("a", "b", "c"), joint("j", "a", "b"), joint("f", "b", "c", "floating")), "'f' is floating"),
    "planar": (robot(links("a", "b", "c"), joint("p", "a", "b", "planar"), joint("j", "b", "c")), "'p' is planar"),
    "missing mesh": (with_shape('<mesh filename="nowhere.stl"/>'), "'tip'.*'nowhere.stl' is missing"),
    "missing package": (with_shape('<mesh filename="package://nobody/x.stl"/>'), "'tip'.*package://nobody/x.stl"),
    "mesh scheme": (with_shape('<mesh filename="http://x/y.stl"/>'), "'tip'.*http"),
    "zero scale": (with_shape('<mesh filename="x.stl" scale="0 1 1"/>'), "'tip'.*scales not 0"),
    "no filename": (with_shape("<mesh/>"), "'tip'.*'filename'"),
    "negative box": (with_shape('<box size="1 -1 1"/>'), "'tip'.*box"),
    "negative radius": (with_shape('<sphere radius="-1"/>'), "'tip'.*sphere"),
    "unknown geometry": (with_shape("<torus/>"), "'tip'.*<torus>"),
    "no geometry": (with_shape(""), "'tip'.*nothing"),
    "far origin": (robot(links("a", "b"), joint("j", "a", "b", xyz="0 0 1e6")), r"'j'.*origin xyz.*within \+-100000"),
    "far chain": (
        robot(links("a", "b", "c"), joint("j", "a", "b", xyz="6e4 0 0"), joint("k", "b", "c", xyz="6e4 0 0")),
        "'k' puts link 'c' at .*within",
    ),
    "far slide": (
        robot(links("a", "b"), joint("j", "a", "b", "prismatic", NAN.replace("nan", "-1e6"))),
        "'j' reaches 1e.06 m.*allowed: 100000 m.*other joints",
    ),
    "far follower": (
        robot(
            links("a", "b", "c"),
            joint("j", "a", "b"),
            joint("k", "b", "c", "prismatic", LIMIT + '<mimic joint="j" multiplier="1e6"/>'),
        ),
        "'k' reaches 2e.06 m.*allowed: 100000 m",
    ),
    "large box": (with_shape('<box size="1 1e39 1"/>'), "'tip'.*box.*within"),
    "large sphere": (with_shape('<sphere radius="1e20"/>'), "'tip'.*sphere.*within"),
    "large cylinder": (with_shape('<cylinder radius="1" length="2e5"/>'), "'tip'.*cylinder.*within"),
    "large scale": (with_shape('<mesh filename="x.stl" scale="1e6 1 1"/>'), "'tip'.*scale.*within"),
    "long mesh name": (with_shape(f'<mesh filename="{"x" * 900}"/>'), "'tip'.*is missing"),
    "odd mesh address": (with_shape('<mesh filename="file://[x"/>'), "'tip'.*is missing"),
    "nothing to plan": (robot(links("a", "b"), joint("j", "a", "b", "fixed")), "no joint to plan"),
}


@pytest.mark.parametrize("text, words", BAD.values(), ids=BAD.keys())
def test_bad_urdf_is_named(text, words):
    with pytest.raises(RobotDescriptionError, match=f"(?s){words}"):
        load_urdf(text)


BAD_ARGUMENTS = {
    "unknown joint": (dict(joints=["elbow"]), "'elbow'.*shoulder"),
    "joint twice": (dict(joints=["lift", "lift"]), "'lift'.*twice"),
    "follower planned": (dict(joints=["follow"]), "'follow' mimics 'grip'"),
    "no joints": (dict(joints=[]), "no joint to plan"),
    "unknown fixed": (dict(fixed={"elbow": 0}), "'elbow'"),
    "fixed follower": (dict(fixed={"follow": 0}), "'follow'.*mimics"),
    "fixed and planned": (dict(fixed={"lift": 0.2}), "'lift'.*planning"),
    "fixed outside": (dict(joints=["lift"], fixed={"grip": 1}), "'grip'.*0 to 0.04"),
    "fixed nan": (dict(joints=["lift"], fixed={"grip": np.nan}), "fixed is .*'grip'"),
    "group without srdf": (dict(group="arm"), "'arm'.*no SRDF"),
    "unknown group": (dict(srdf=SRDF, group="leg"), "'leg'.*arm, fingers, all"),
    "joints and group": (dict(srdf=SRDF, group="arm", joints=["lift"]), "not both"),
    "velocity": (dict(velocity={"elbow": 1}), "'elbow'"),
    "zero acceleration": (dict(acceleration=0), "'shoulder'.*acceleration"),
    "accelerations": (dict(acceleration=[1, 2]), "3 joints"),
    "joints as a text": (dict(joints="lift"), "joints is 'lift'; allowed: several"),
    "joints as a number": (dict(joints=5), "joints is 5; allowed: several"),
    "number as a joint": (dict(joints=[5]), r"joints is \[5\]; allowed.* a text"),
    "list as a joint": (dict(joints=[[]]), r"joints is \[\[\]\]; allowed.* a text"),
    "number as a group": (dict(srdf=SRDF, group=5), "group is .*allowed: a text"),
    "list as a group": (dict(srdf=SRDF, group=[]), "group is .*allowed: a text"),
    "folder for folders": (dict(package_dirs="meshes"), "package_dirs is 'meshes'; allowed: several"),
    "number for fixed": (dict(fixed=5), "fixed is 5; allowed: a mapping"),
    "text fixed": (dict(joints=["lift"], fixed={"grip": "0"}), "fixed is .*'grip'.*each is a number"),
    "long number fixed": (dict(joints=["lift"], fixed={"grip": 10**5000}), "fixed is .*each is a number"),
    "text velocity": (dict(velocity="abc"), "velocity is .*allowed"),
    "number in a text": (dict(velocity={"lift": "5"}), "velocity is .*allowed"),
    "complex velocity": (dict(velocity=1j), "velocity is .*allowed"),
    "ragged velocity": (dict(velocity=[[1], 2, 3]), "velocity is .*allowed"),
    "long acceleration": (dict(acceleration=10**5000), "acceleration is .*allowed"),
    "bytes as srdf": (dict(srdf=b"<robot/>"), "SRDF.*path"),
    "bad srdf": (dict(srdf="<robot"), "SRDF"),
    "srdf link": (dict(srdf=SRDF.replace('tip_link="hand"', 'tip_link="foot"'), group="all"), "'arm'.*'foot'"),
    "srdf joint": (dict(srdf=SRDF.replace('name="follow"', 'name="lead"'), group="fingers"), "'fingers'.*'lead'"),
    "srdf group": (dict(srdf=SRDF.replace('group name="arm"/', 'group name="leg"/'), group="all"), "'leg'"),
    "srdf recursion": (dict(srdf=SRDF.replace('group name="arm"/', 'group name="all"/')), "'all' contains itself"),
    "srdf value": (dict(srdf=SRDF.replace('"0.2"', '"x"')), "'up'.*'lift'"),
}


@pytest.mark.parametrize("arguments, words", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS.keys())
def test_bad_arguments_are_named(arguments, words):
    with pytest.raises(RobotDescriptionError, match=f"(?s){words}"):
        load_urdf(GRIPPER, **arguments)


def test_bad_files_are_named(package):
    with pytest.raises(RobotDescriptionError, match="absent.urdf"):
        load_urdf(package / "absent.urdf")
    (package / "meshes" / "broken.stl").write_text("solid nothing\nfacet\nouter loop\nendsolid")
    with pytest.raises(RobotDescriptionError, match="'tip'.*meshes/broken.stl"):
        load_urdf(with_shape('<mesh filename="meshes/broken.stl"/>'), package_dirs=[package])
    with pytest.raises(SettingsError, match="hull_tolerance"):
        load_urdf(PLAIN, hull_tolerance=0)


def test_cheap_mistakes_are_found_before_meshes_are_read(package, monkeypatch):
    from gpu_planners.arm.urdf import loader as urdf_loader

    monkeypatch.setattr(urdf_loader, "load_mesh", lambda *_: pytest.fail("a mesh was read"))
    mesh = '<link name="{}"><collision><geometry><mesh filename="meshes/{}.stl"/></geometry></collision></link>'
    base = mesh.format("base", "box")
    for text, words in (
        (robot(base, links("tip"), joint("j", "base", "tip", inside=NAN.replace("nan", "3"))), "lower limit"),
        (robot(base, links("tip"), joint("j", "base", "tip", inside="")), "no <limit>"),
        (robot(base, links("tip"), joint("j", "base", "tip", inside='<limit upper="1" velocity="inf"/>')), "velocity"),
        (robot(base, mesh.format("tip", "gone"), joint("j", "base", "tip")), "gone.stl' is missing"),
    ):
        with pytest.raises(RobotDescriptionError, match=words):
            load_urdf(text, package_dirs=[package])


@pytest.mark.parametrize(
    "kind, multiplier, periodic",
    [
        ("revolute", 2, True),
        ("revolute", -1, True),
        ("revolute", 0, True),
        ("revolute", 0.5, False),
        ("prismatic", 0.1, False),
    ],
)
def test_a_joint_that_followers_keep_from_turning_without_end(kind, multiplier, periodic, caplog):
    mimic = f'<limit velocity="2" effort="1"/><mimic joint="turn" multiplier="{multiplier}"/>'
    arm = load_urdf(
        robot(
            links("a", "b", "c", "d"),
            joint("turn", "a", "b", "continuous", '<limit velocity="2" effort="1"/>'),
            joint("bend", "b", "c"),
            joint("gear", "c", "d", kind, mimic),
        )
    )
    assert arm.periodic.tolist() == [periodic, True] and arm.continuous.tolist() == [periodic, False]
    np.testing.assert_allclose([arm.lower[0], arm.upper[0]], [-np.pi, np.pi])
    assert ("'turn' is continuous, but" in caplog.text) != periodic


def test_a_loose_joint_beside_the_arm_is_left_at_zero():
    text = robot(links("base", "tip", "cup"), joint("j1", "base", "tip"), joint("f", "base", "cup", "floating"))
    arm = load_urdf(text)
    assert arm.joint_names == ("j1",) and arm.link_frame.tolist() == [-1, 0, -1]
