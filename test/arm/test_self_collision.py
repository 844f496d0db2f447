"""Self-collision pairs: from an SRDF, or all that are not proven apart; the four-axis arm of [DL14] has the paper's
pairs."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.problems import data_dir, missing_data, robot_files
from gpu_planners.arm import CollisionChecker, CollisionWorld
from gpu_planners.arm.urdf.loader import load_urdf
from gpu_planners.arm.urdf.self_collision import ALWAYS, NEVER, RIGID

needs_data = pytest.mark.skipif(missing_data() is not None, reason=str(missing_data()))


def link_pairs(robot):
    return {frozenset(robot.link_names[robot.shape_link[s]] for s in pair) for pair in robot.self_collision_pairs}


def fold(reach):
    """Three links in a plane; the third can fold back onto the first, or reaches it never, or always touches it."""
    link = (
        '<link name="{}"><collision><origin xyz="0.25 0 0"/><geometry><box size="{} 0.05 0.05"/></geometry>'
        "</collision></link>"
    )
    joint = (
        '<joint name="j{0}" type="revolute"><parent link="l{0}"/><child link="l{1}"/><origin xyz="0.5 0 0"/>'
        '<axis xyz="0 0 1"/><limit lower="{2}" upper="{3}" velocity="1" effort="1"/></joint>'
    )
    limits = {"some": (-3.1, 3.1), "never": (-0.5, 0.5), "always": (-0.01, 0.01)}[reach]
    size = 1.8 if reach == "always" else 0.4
    return "".join(
        [
            '<robot name="fold">',
            link.format("l0", 0.4),
            link.format("l1", 0.4),
            link.format("l2", size),
            joint.format(0, 1, *limits),
            joint.format(1, 2, *limits),
            "</robot>",
        ]
    )


@pytest.mark.parametrize("reach, reason", [("never", NEVER), ("always", ALWAYS), ("some", None)])
def test_never_and_always_colliding_pairs_are_left_out_and_listed(reach, reason):
    robot = load_urdf(fold(reach))
    listed = {frozenset((a, b)): why for a, b, why in robot.disabled_pairs}
    assert listed[frozenset(("l0", "l1"))] == "adjacent"
    outer = frozenset(("l0", "l2"))
    if reason is None:
        assert link_pairs(robot) == {outer} and outer not in listed
    else:
        assert link_pairs(robot) == set() and listed[outer] == reason


def test_a_pair_that_meets_only_where_another_joint_stands_elsewhere_is_kept():
    """Without an SRDF the proof lets joints that are not planned move, too."""
    robot = load_urdf(fold("some"), joints=["j0"])  # the third link is stretched out: it meets the first only if folded
    assert link_pairs(robot) == {frozenset(("l0", "l2"))}
    assert not CollisionChecker(robot.with_other_joints({"j1": 2.6}), CollisionWorld(), "cpu").configurations_valid(
        [[2.6]]
    )
    assert not len(load_urdf(fold("some"), self_collisions=False).self_collision_pairs)


def test_an_srdf_decides_instead():
    srdf = '<robot name="fold"><disable_collisions link1="l2" link2="l0" reason="User"/></robot>'
    robot = load_urdf(fold("some"), srdf)
    assert link_pairs(robot) == set() and ("l0", "l2", "SRDF: User") in robot.disabled_pairs
    other = '<robot name="fold"><disable_collisions link1="l0" link2="l1" reason="Adjacent"/></robot>'
    assert link_pairs(load_urdf(fold("never"), other)) == {frozenset(("l0", "l2"))}
    default = (
        '<robot name="fold"><disable_default_collisions link="l2"/><enable_collisions link1="l0" link2="l2"/></robot>'
    )
    assert link_pairs(load_urdf(fold("never"), default)) == {frozenset(("l0", "l2"))}


@needs_data
def test_the_pandas_pairs_without_an_srdf_hold_those_with_it():
    """MoveIt's assistant disables 21 pairs that its samples never saw meet; 12 of them are proven never to."""
    by_srdf, proven = (load_urdf(robot_files("panda")[0], srdf) for srdf in (robot_files("panda")[1], None))
    assert link_pairs(by_srdf) <= link_pairs(proven)
    assert len(link_pairs(proven)) <= len(link_pairs(by_srdf)) + 8 and not proven.touching_pairs
    far = {("panda_link0", "panda_link2"), ("panda_link1", "panda_link3"), ("panda_link2", "panda_link4")}
    assert far <= {(a, b) for a, b, why in proven.disabled_pairs if why == NEVER}


URDF = Path(__file__).resolve().parents[2] / "urdf"


@pytest.fixture(scope="module")
def paper():
    if missing_data():
        pytest.skip(missing_data())
    return json.loads((data_dir() / "gpuprm" / "config1.json").read_text())


@pytest.fixture(scope="module")
def dl14_arm():
    return load_urdf(URDF / "dl14_arm.urdf", URDF / "dl14_arm.srdf")


def test_dl14_arm_has_the_papers_kinematics(paper, dl14_arm):
    for column in ("a", "alpha", "d", "theta"):
        np.testing.assert_allclose(dl14_arm.dh[column], paper["dh"][column], atol=1e-7)  # the paper's are float32
    np.testing.assert_allclose(dl14_arm.lower, paper["joint_limits"]["lower"])
    np.testing.assert_allclose(dl14_arm.upper, paper["joint_limits"]["upper"])
    q = np.random.default_rng(0).uniform(dl14_arm.lower, dl14_arm.upper, (20, 4))
    poses, expected = dl14_arm.link_poses(q), np.broadcast_to(np.eye(4), (20, 4, 4))
    for i in range(4):
        row = [np.array(paper["dh"][column][i]) for column in ("a", "alpha", "d", "theta")]
        expected = expected @ np.array([modified_dh(row[0], row[1], row[2], row[3] + angle) for angle in q[:, i]])
        np.testing.assert_allclose(poses[f"link{i + 1}"], expected, atol=1e-6)


def modified_dh(a, alpha, d, theta):
    """Rx(alpha) Tx(a) Rz(theta) Tz(d), multiplied out here from its four factors."""

    def turn(i, j, angle):
        T = np.eye(4)
        T[i, i] = T[j, j] = np.cos(angle)
        T[j, i], T[i, j] = np.sin(angle), -np.sin(angle)
        return T

    def shift(i, length):
        T = np.eye(4)
        T[i, 3] = length
        return T

    return turn(1, 2, alpha) @ shift(0, a) @ turn(0, 1, theta) @ shift(2, d)


def corners(shape):
    """Set of the shape's vertices in its frame, rounded to micrometres."""
    points = shape.vertices
    if not len(points):
        points = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T * shape.half_extents
    points = points @ shape.pose[:3, :3].T + shape.pose[:3, 3]
    return {tuple(point) for point in (np.round(points, 6) + 0.0).tolist()}


def test_dl14_arm_and_scene_have_the_papers_polytopes_and_pairs(paper, dl14_arm):
    scene_file = pytest.importorskip("gpu_planners.arm.collision.scene_file")
    world = scene_file.load_scene(URDF.parent / "config" / "scenes" / "dl14.yaml", scene_file.fixed_frames(dl14_arm))
    number = {}
    for shape, frame in [
        *((shape, 0) for shape in world.shapes),
        *((shape, frame + 1) for shape, frame in zip(dl14_arm.shapes, dl14_arm.shape_frame)),
    ]:
        matches = [
            i
            for i, polytope in enumerate(paper["polytopes"])
            if polytope["frame"] == frame
            and {tuple(p) for p in (np.round(polytope["vertices"], 6) + 0.0).tolist()} == corners(shape)
        ]
        number[shape.name] = matches[0]
    assert sorted(number.values()) == list(range(13))
    moving = [shape.name for shape, frame in zip(dl14_arm.shapes, dl14_arm.shape_frame) if frame >= 0]
    pairs = {frozenset((number[obstacle.name], number[name])) for obstacle in world.shapes for name in moving}
    pairs |= {frozenset(number[dl14_arm.shapes[s].name] for s in pair) for pair in dl14_arm.self_collision_pairs}
    assert pairs == {frozenset(pair) for pair in paper["collision_pairs"]} and len(pairs) == 44


def test_planar_arms_of_any_length(monkeypatch):
    monkeypatch.syspath_prepend(str(URDF))
    import make_planar_arm

    assert (URDF / "planar_arm.urdf").read_text() == make_planar_arm.planar_arm_urdf(9)
    assert (URDF / "planar_arm.srdf").read_text() == make_planar_arm.planar_arm_srdf(9)
    for count in (1, 4):
        arm = load_urdf(make_planar_arm.planar_arm_urdf(count, 0.2), make_planar_arm.planar_arm_srdf(count))
        assert arm.dof == count and len(arm.self_collision_pairs) == 0
        tip = arm.link_poses(np.full(count, 0.1))[f"link{count}"][0] @ [0.2, 0, 0, 1]
        angles = 0.1 * np.arange(1, count + 1)
        np.testing.assert_allclose(tip[:2], 0.2 * np.array([np.cos(angles).sum(), np.sin(angles).sum()]), atol=1e-12)
    with pytest.raises(ValueError, match="links"):
        make_planar_arm.planar_arm_urdf(0)


def test_the_proof_is_kept_for_the_next_load_of_the_same_robot(monkeypatch):
    text = fold("some").replace('"fold"', '"kept"')
    expected = load_urdf(text).disabled_pairs, load_urdf(fold("never").replace('"fold"', '"kept"')).disabled_pairs
    monkeypatch.setattr("gpu_planners.arm.urdf.never_meet.LinkPairs.never", None)
    assert load_urdf(text, joints=["j1"], velocity=2.0).disabled_pairs == (("l0", "l1", RIGID), *expected[0][1:])
    assert load_urdf(fold("never").replace('"fold"', '"kept"')).disabled_pairs == expected[1] != expected[0]
