"""Straight lines of the tool: the tip by pinocchio, limits, and collisions by coal between the steps."""

import numpy as np
import pytest
from line_oracle import off_the_circle, off_the_line
from robots_at_hand import READY, TABLE, maker_of
from scipy.spatial.transform import Rotation

from benchmarks.problems import add_obstacles
from gpu_planners.arm import CollisionChecker, CollisionWorld, cartesian
from gpu_planners.arm.cartesian import End
from gpu_planners.errors import ConfigurationError, GpuPlannersError, RobotDescriptionError, SettingsError

pinocchio_poses = pytest.importorskip("pinocchio_poses").pinocchio_poses


def case(robot):
    """robots.Rig and a checker in an empty world."""
    rig = maker_of(robot).rig
    return rig, CollisionChecker(rig.model, CollisionWorld(), "cpu")


def tip_by_pinocchio(rig, link, q):
    return pinocchio_poses(rig.urdf, rig.model.joint_names, q, rig.fixed)[link]


def between(path, count=9):
    """(N, dof) places on the straight joint motions of a path."""
    shares = np.linspace(0, 1, count)[:, None]
    return np.concatenate([a + shares * (b - a) for a, b in zip(path, path[1:])])


@pytest.mark.parametrize("robot", ["panda", "ur5", "xarm7", "kinova", "tiago", "gantry"])
def test_the_tip_stays_on_the_line_by_pinocchio(robot):
    rig, checker = case(robot)
    model, rng, reached = rig.model, np.random.default_rng(3), 0
    low, high = (
        np.where(model.continuous, sign * np.pi, limit) for sign, limit in ((-1, model.lower), (1, model.upper))
    )
    q = rng.uniform(low, high, (400, model.dof))
    q = q[checker.thickened(0.002).configurations_valid(q)][:12]
    for start in q:
        first = tip_by_pinocchio(rig, rig.tips[0], start[None])[0]
        last = first.copy()
        last[:3, 3] += (vector := rng.normal(size=3)) * 0.15 / np.linalg.norm(vector)
        last[:3, :3] = Rotation.from_rotvec(rng.normal(size=3) * 0.2).as_matrix() @ first[:3, :3]
        line = cartesian.solve(start, last, checker, link=rig.tips[0])
        assert 0 <= line.fraction <= 1 and line.solved == (line.fraction == 1) and line.solved != bool(line.text)
        assert (line.path[0] == start).all() and (np.diff(line.fractions) > 0).all()
        if len(line.path) < 2:
            continue
        poses = tip_by_pinocchio(rig, rig.tips[0], between(line.path))
        off, angle = off_the_line(poses, first, last)
        assert off.max() < 1e-3 and angle.max() < 1e-3
        end = first[:3, 3] + line.fraction * (last[:3, 3] - first[:3, 3])
        assert np.linalg.norm(poses[-1, :3, 3] - end) < 1e-6
        inside = (line.path >= model.lower - 1e-9) & (line.path <= model.upper + 1e-9) | model.continuous
        assert inside.all() and np.abs(np.diff(line.path, axis=0)).max() <= 0.3
        reached += line.solved
    assert reached >= 4


def test_a_line_ends_before_an_obstacle_that_is_named():
    rig, checker = case("panda")
    add_obstacles(checker.world, [TABLE])
    goal = cartesian.shifted(rig.model, READY, [0, 0, -0.7])
    line = cartesian.solve(READY, goal, checker)
    assert line.end is End.COLLISION and 0.3 < line.fraction < 1 and "'table'" in line.text
    scene = rig.coal_scene([TABLE])
    assert not any(scene.in_collision(q) for q in between(line.path, 20))
    assert 0 < scene.distance(line.path[-1]) < 0.01


def test_a_start_in_collision_has_no_line():
    rig, checker = case("panda")
    checker.world.add_sphere("ball", 0.2, rig.model.link_poses(READY)["panda_hand"][0])
    line = cartesian.solve(READY, cartesian.shifted(rig.model, READY, [0, 0, 0.1]), checker)
    assert line.end is End.COLLISION and line.fraction == 0 and "start" in line.text and "ball" in line.text


def test_what_is_out_of_reach_says_so():
    rig, checker = case("ur5")
    q = np.array([0.3, -1.2, 1.2, -1.4, -1.5, 0.2])
    line = cartesian.solve(q, cartesian.shifted(rig.model, q, [2.0, 0, 0]), checker)
    assert line.end in (End.UNREACHABLE, End.LIMITS, End.SINGULAR) and 0 < line.fraction < 1 and line.text
    # as far as inverse kinematics finds anything, a place further on the line is out of reach
    beyond = cartesian.shifted(rig.model, q, np.array([2.0, 0, 0]) * min(line.fraction + 0.05, 1))
    assert line.end is not End.UNREACHABLE or not len(rig.model.inverse_kinematics(beyond))


def test_a_free_joint_moves_away_from_its_limit():
    """The Panda's elbow can turn about the line from shoulder to wrist: a start near a limit goes on all the same."""
    rig, checker = case("panda")
    q = READY.copy()
    q[2], q[0] = rig.model.upper[2] - 0.02, -1.0
    line = cartesian.solve(q, cartesian.shifted(rig.model, q, [0.0, 0.12, 0.0]), checker)
    assert line.fraction > 0.5
    assert (line.path[:, 2] <= rig.model.upper[2]).all() and line.path[-1, 2] < q[2]


def test_a_pose_as_start_tries_several_postures():
    rig, checker = case("panda")
    T = np.diag([1.0, -1.0, -1.0, 1.0])
    T[:3, 3] = [0.5, 0.2, 0.3]
    goal = T.copy()
    goal[:3, 3] += [0.0, -0.4, 0.1]
    line = cartesian.solve(T, goal, checker, seed=1)
    assert line.solved and np.allclose(rig.model.link_poses(line.path[0])["panda_hand_tcp"][0], T, atol=1e-5)


def test_the_same_question_has_the_same_answer():
    rig, checker = case("panda")
    goal = cartesian.shifted(rig.model, READY, [0.1, 0.1, -0.1], along_tool=True)
    first, second = (cartesian.solve(READY, goal, checker) for _ in range(2))
    assert first.solved and (first.path == second.path).all()


@pytest.mark.parametrize(
    ("start", "goal", "more", "error", "word"),
    [
        (READY[:3], np.eye(4), {}, ConfigurationError, "7 finite numbers"),
        (READY * np.nan, np.eye(4), {}, ConfigurationError, "start .* finite numbers"),
        (READY, np.zeros((4, 4)), {}, GpuPlannersError, "last row"),
        (READY, np.eye(4), {"link": "nose"}, RobotDescriptionError, "nose"),
        (READY, np.eye(4), {"settings": 3}, SettingsError, "settings"),
    ],
)
def test_bad_input_is_named(start, goal, more, error, word):
    _, checker = case("panda")
    with pytest.raises(error, match=word):
        cartesian.solve(start, goal, checker, **more)


@pytest.mark.parametrize("robot", ["panda", "ur5", "tiago"])
@pytest.mark.parametrize("half_turn", [0.4, 1.2, 2.4])
def test_the_tip_stays_on_the_arc_by_pinocchio(robot, half_turn):
    """Arcs of 0.8 to 4.8 rad in random planes, through their middle, and the shorter ones about their centre."""
    rig, checker = case(robot)
    model, rng, reached = rig.model, np.random.default_rng(5), 0
    low, high = (
        np.where(model.continuous, sign * np.pi, limit) for sign, limit in ((-1, model.lower), (1, model.upper))
    )
    q = rng.uniform(low, high, (200, model.dof))
    for start in q[checker.thickened(0.002).configurations_valid(q)][:8]:
        first = tip_by_pinocchio(rig, rig.tips[0], start[None])[0]
        plane, radius = Rotation.random(random_state=rng).as_matrix(), rng.uniform(0.03, 0.1)
        center = first[:3, 3] - radius * plane[:, 0]
        via, end = (
            center + radius * (np.cos(a) * plane[:, 0] + np.sin(a) * plane[:, 1]) for a in (half_turn, 2 * half_turn)
        )
        last = first.copy()
        last[:3, 3] = end
        last[:3, :3] = Rotation.from_rotvec(rng.normal(size=3) * 0.2).as_matrix() @ first[:3, :3]
        turn = Rotation.from_matrix(last[:3, :3] @ first[:3, :3].T).as_rotvec()
        arcs = [cartesian.Arc(through=via)] + [cartesian.Arc(center=center)] * (2 * half_turn < np.pi)
        for arc in arcs:
            line = cartesian.solve(start, last, checker, link=rig.tips[0], arc=arc)
            assert line.solved == (line.fraction == 1) and line.solved != bool(line.text)
            if len(line.path) < 2:
                continue
            poses = tip_by_pinocchio(rig, rig.tips[0], between(line.path))
            off, share = off_the_circle(poses[:, :3, 3], first[:3, 3], via, end)
            assert off.max() < 1e-3
            share = np.where(share > 1 + 0.02 / half_turn, 0, np.minimum(share, 1))  # beyond an end: that end
            wanted = Rotation.from_rotvec(share[:, None] * turn) * Rotation.from_matrix(first[:3, :3])
            assert (Rotation.from_matrix(poses[:, :3, :3]) * wanted.inv()).magnitude().max() < 1e-3
            assert np.diff(share).min() > -1e-3 and abs(share[-1] - line.fraction) < 1e-6
            reached += line.solved
    assert reached >= 4


@pytest.mark.parametrize(
    ("arc", "word"),
    [
        (cartesian.Arc(), "either"),
        (cartesian.Arc(through=[0.4, 0, 0.6], center=[0.4, 0, 0.6]), "either"),
        (cartesian.Arc(through=[np.nan, 0, 0]), "through"),
        (cartesian.Arc(through=3), "through"),
        (cartesian.Arc(center=[0, 0, 0.5]), "as far from both"),
        (cartesian.Arc(through="middle of the way"), "arc"),
        ("arc", "arc"),
    ],
)
def test_what_is_no_arc_is_named(arc, word):
    rig, checker = case("panda")
    goal = cartesian.shifted(rig.model, READY, [0.1, 0.1, 0])
    with pytest.raises(SettingsError, match=word):
        cartesian.solve(READY, goal, checker, arc=arc)


@pytest.mark.parametrize("way", ["through", "center"])
def test_points_on_one_line_make_no_arc(way):
    rig, checker = case("panda")
    goal, middle = (cartesian.shifted(rig.model, READY, [x, 0, 0]) for x in (0.2, 0.1))
    with pytest.raises(SettingsError, match="on one line"):
        cartesian.solve(READY, goal, checker, arc=cartesian.Arc(**{way: middle[:3, 3]}))
