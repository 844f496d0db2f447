"""check_path and broken_rules: what is on the way, around, too near or beyond a limit is found, whatever its kind."""

import numpy as np
import pytest
import trimesh
import yaml
from checkout import ROOT

pytest.importorskip("coal", reason="needs pinocchio and coal (extra `test`)")
pytest.importorskip("pinocchio", reason="needs pinocchio and coal (extra `test`)")

from gpu_planners.errors import ConfigurationError, ObstacleError, RobotDescriptionError, SettingsError
from gpu_planners.verify import CoalScene, broken_rules, check_path

ARM = """<robot name="arm"><link name="base"/>
<link name="upper">
<collision><origin xyz="0.25 0 0"/><geometry><box size="0.5 0.06 0.06"/></geometry></collision></link>
<link name="hand"><collision><origin xyz="0.05 0 0"/><geometry><sphere radius="0.04"/></geometry></collision></link>
<link name="thumb"><collision><geometry><sphere radius="0.01"/></geometry></collision></link>
<joint name="turn" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
<limit velocity="2" effort="1"/></joint>
<joint name="bend" type="revolute"><parent link="upper"/><child link="hand"/><origin xyz="0.5 0 0"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
<joint name="grip" type="prismatic"><parent link="hand"/><child link="thumb"/><axis xyz="0 0 1"/>
<limit lower="0" upper="0.2" velocity="1" effort="1"/></joint></robot>"""
JOINTS = ["turn", "bend"]
PATH = np.array([[0.0, 0.0], [np.pi / 2, 0.0]])  # a quarter turn; the hand ends at (0, 0.55)
CORNERS = 0.05 * np.array([[1, 0, 0], [-1, 1, 0], [-1, -1, 0], [0, 0, 1], [0, 0, -1]])
KINDS = {
    "box": {"size": [0.05, 0.05, 0.05]},
    "cylinder": {"radius": 0.03, "height": 0.05},
    "sphere": {"radius": 0.03},
    "convex": {"vertices": CORNERS.tolist()},
    "mesh": {"mesh": trimesh.creation.box([0.05, 0.05, 0.05])},
}
AT = [0.45, 0.45, 0.0]  # 0.64 m away: the hand, which reaches 0.59 m, passes it with some of its size


def scene(*obstacles, **options):
    return CoalScene(ARM, None, obstacles, joints=JOINTS, **options)


def test_where_and_which_bodies_meet_first_and_how_near_they_come():
    ball = {"name": "ball", "type": "sphere", "radius": 0.1, "position": [0.0, 0.8, 0.0]}
    report = check_path(PATH, scene(ball), spacing=1e-4)
    assert report.free and report.within_limits and report.configurations > 10
    assert report.nearest.bodies == ("hand_0", "ball") and report.nearest.segment == 0
    assert abs(report.nearest.distance - (0.8 - 0.1 - 0.59)) < 1e-3 and report.nearest.fraction > 0.99
    near = {**ball, "position": [0.0, 0.65, 0.0]}
    report = check_path(PATH, scene(near), spacing=1e-4)
    met = report.contact
    assert not report.free and met.bodies == ("hand_0", "ball") and -1e-3 < met.distance <= 0
    angle = np.arccos((0.55**2 + 0.65**2 - 0.14**2) / (2 * 0.55 * 0.65))  # from the ball, where the two touch
    assert abs(PATH[1, 0] * met.fraction - (np.pi / 2 - angle)) < 1e-3
    assert abs(report.nearest.distance - (0.65 - 0.55 - 0.14)) < 1e-3
    assert check_path(PATH, scene(near), tolerance=0.05).free


@pytest.mark.parametrize("kind", KINDS)
def test_an_obstacle_of_any_kind_is_found_on_the_way(kind):
    for scale, free in ((0.9, False), (1.3, True)):
        obstacle = {"name": "x", "type": kind, "position": [scale * each for each in AT], **KINDS[kind]}
        assert check_path(PATH, scene(obstacle)).free is free, scale


def test_who_is_wholly_inside_a_mesh_is_found():
    hollow = {"name": "hall", "type": "mesh", "mesh": trimesh.creation.box([3.0, 3.0, 3.0])}
    report = check_path(PATH, scene(hollow))
    assert not report.free and report.contact[:2] == (0, 0.0) and "hall" in report.contact.bodies
    assert check_path(PATH, scene({**hollow, "position": [5.0, 0.0, 0.0]})).free


def test_a_scene_file_is_read_from_its_frame(tmp_path):
    trimesh.creation.box([0.05, 0.05, 0.05]).export(tmp_path / "part.stl")
    file = tmp_path / "scene.yaml"
    part = {"name": "part", "type": "mesh", "file": "part.stl", "scale": 2.0, "position": [0.4, 0.4, 0.0]}
    file.write_text(yaml.safe_dump({"frame": "base", "obstacles": [part]}))
    assert check_path(PATH, ARM, None, file, joints=JOINTS).contact.bodies == ("hand_0", "part")
    for obstacle, word in (
        ({**part, "file": "no.stl"}, "no.stl"),
        ({**part, "type": "cone"}, "its type is 'cone'"),
        ({"type": "box", "name": "b"}, "it lacks 'size'"),
        ({**part, "quat_xyzw": [0, 0, 0, 2]}, "of length 1"),
        ("box", "obstacle 0, 'box'"),
    ):
        file.write_text(yaml.safe_dump({"obstacles": [obstacle]}))
        with pytest.raises(ObstacleError, match=word):
            check_path(PATH, ARM, None, file, joints=JOINTS)
    file.write_text("frame: hand\nobstacles: []")
    with pytest.raises(ObstacleError, match="'hand' is not fixed"):
        check_path(PATH, ARM, None, file, joints=JOINTS)


def test_links_that_always_overlap_are_let_pass_without_an_srdf():
    """The thumb begins inside the hand, its neighbour; moved out by `grip` it may meet the upper arm, too."""
    three = CoalScene(ARM)
    assert three.joint_names == ("turn", "bend", "grip") and three.pair_names == [("upper_0", "thumb_0")]
    assert CoalScene(ARM, self_pairs=[("hand", "thumb")]).in_collision([0, 0, 0])
    srdf = '<robot><disable_collisions link1="upper" link2="thumb" reason=""/></robot>'
    assert CoalScene(ARM, srdf).pair_names == [("upper_0", "hand_0"), ("hand_0", "thumb_0")]


def test_what_follows_another_joint_follows_it():
    mimic = ARM.replace(
        '<limit lower="0" upper="0.2"',
        '<mimic joint="bend" multiplier="0.1" offset="0.05"/><limit lower="0" upper="0.2"',
    )
    placed = CoalScene(mimic)
    assert placed.joint_names == ("turn", "bend")
    assert abs(placed.placed([0.0, 0.5])[2].translation[2] - 0.1) < 1e-12


def test_limits_are_the_urdfs():
    report = check_path([[0.0, 0.0], [9.0, 1.2]], scene())
    assert report.free and not report.within_limits
    assert report.broken == ("a joint limit is exceeded: bend is 1.2 in row 1; allowed: -1 to 1",)


@pytest.mark.parametrize(
    "changed, word",
    [
        ({"times": [0.0, 1.0, 1.0]}, "times do not increase after row 1"),
        ({"velocities": [[0, 0], [1, 0], [0.1, 0]]}, "rest"),
        ({"positions": [[0, 0], [0.5, 1.1], [1, 0]]}, "joint limit"),
        ({"velocities": [[0, 0], [0, -1.1], [0, 0]]}, "velocity limit is exceeded: bend is -1.1 in row 1"),
        ({"velocities": None, "times": [0.0, 0.1, 1.0]}, "velocity limit is exceeded: turn is 5"),
    ],
)
def test_broken_rules_are_found(changed, word):
    motion = {"positions": [[0, 0], [0.5, 0], [1, 0]], "times": [0.0, 0.5, 1.0], "velocities": [[0, 0], [1, 0], [0, 0]]}
    assert broken_rules(scene(), **motion) == ()
    broken = broken_rules(scene(), **motion | changed)
    assert len(broken) == 1 and word in broken[0]


@pytest.mark.parametrize(
    "asked, error, word",
    [
        ({"urdf": "<robot"}, RobotDescriptionError, "is no XML"),
        ({"urdf": "no.urdf"}, RobotDescriptionError, "no.urdf"),
        ({"urdf": ARM.replace('child link="hand"', 'child link="foot"')}, RobotDescriptionError, "URDF"),
        (
            {"urdf": ARM.replace('<sphere radius="0.04"/>', '<mesh filename="package://a/b.stl"/>')},
            RobotDescriptionError,
            "no mesh 'package://a/b.stl'",
        ),
        ({"joints": ["turn", "lift"]}, RobotDescriptionError, "no joint 'lift'"),
        ({"joints": ["turn", "turn"]}, RobotDescriptionError, "twice"),
        ({"path": [[0.0, 0.0, 0.0]]}, ConfigurationError, "rows of 2 joint values"),
        ({"path": [[0.0, np.nan]]}, ConfigurationError, "finite rows"),
        ({"spacing": 0.0}, SettingsError, "spacing is 0.0"),
        ({"meshes": "boxes"}, RobotDescriptionError, "meshes is 'boxes'"),
    ],
)
def test_mistakes_are_named(asked, error, word):
    with pytest.raises(error, match=word):
        check_path(**{"path": PATH, "urdf": ARM, "joints": JOINTS} | asked)


def test_nothing_of_it_comes_from_the_planners():
    for file in (ROOT / "gpu_planners" / "verify").glob("*.py"):
        for word in ("..arm", "..grid", "..fleet", "..papers", "..parallel"):
            assert f"from {word}" not in file.read_text()
