"""Motions of several parts: the tip by pinocchio, collisions by coal, limits, and what a failure names."""

import numpy as np
import pytest
from robots_at_hand import READY, TABLE, maker_of

from benchmarks.problems import add_obstacles
from gpu_planners.arm import CollisionChecker, CollisionWorld, cartesian, rrt_connect, sequence, upright
from gpu_planners.arm.cartesian import End
from gpu_planners.arm.control.spline import Spline
from gpu_planners.arm.control.stopping import stop_along
from gpu_planners.arm.planners.result import Status
from gpu_planners.arm.sequence import Circular, Direct, Free, Later, Straight
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.errors import ConfigurationError, GpuPlannersError, SettingsError

pinocchio_poses = pytest.importorskip("pinocchio_poses").pinocchio_poses

TCP = "panda_hand_tcp"
DOWN = np.diag([1.0, -1.0, -1.0, 1.0])


def above(x, y, z=0.25):
    T = DOWN.copy()
    T[:3, 3] = x, y, z
    return T


def panda_at_a_table():
    """robots.Rig and a checker."""
    rig = maker_of("panda").rig
    return rig, CollisionChecker(rig.model, add_obstacles(CollisionWorld(), [TABLE]), "cpu")


def plan(checker, segments, **more):
    settings = sequence.Settings(**{"time_limit_s": 3600.0} | more)
    return sequence.solve(READY, segments, checker, rrt_connect, settings, link=TCP)


def pick_and_place(radius):
    return [
        Free(poses=above(0.5, 0.2), blend_radius=radius),
        Straight(translation=[0, 0, 0.15], along_tool=True),
        Straight(translation=[0, 0, -0.15], along_tool=True, blend_radius=radius),
        Free(poses=above(0.5, -0.2), blend_radius=radius),
        Straight(pose=above(0.5, -0.2, 0.1), velocity_scaling=0.2),
    ]


@pytest.mark.parametrize("radius", [0.0, 0.05])
def test_pick_and_place(radius):
    rig, checker = panda_at_a_table()
    robot = rig.model
    result = plan(checker, pick_and_place(radius))
    assert result.solved and result.failed == -1 and not result.text and result.fraction == 1
    trajectory, ends = result.trajectory, result.ends_s
    assert len(ends) == 5 and (np.diff(ends) > 0).all() and np.isclose(ends[-1], trajectory.duration)
    assert (trajectory.positions[0] == READY).all() and (np.diff(trajectory.times) > 0).all()
    times = np.linspace(0, trajectory.duration, 4000)
    q, v, a = trajectory.at(times)
    assert (np.abs(v) <= robot.velocity * 1.001).all() and (np.abs(a) <= robot.acceleration * 1.001).all()
    assert (np.abs(np.diff(a, axis=0)) <= robot.acceleration / 0.1 * 1.05 * times[1]).all()
    slow = times > ends[3] + 0.3
    assert (np.abs(v[slow]) <= 0.2 * robot.velocity * 1.001).all()
    scene = rig.coal_scene([TABLE])
    assert not any(scene.in_collision(each) for each in q[::2])
    tips = pinocchio_poses(rig.urdf, robot.joint_names, q, rig.fixed)[TCP]
    down = (times > ends[0]) & (times < ends[1])
    straight = down & (tips[:, 2, 3] < 0.25 - (0.05 if radius else 0))
    assert straight.sum() > 100 and np.abs(tips[straight, :2, 3] - [0.5, 0.2]).max() < 1e-3
    assert np.abs(tips[straight, :3, :3] - DOWN[:3, :3]).max() < 2e-3
    assert np.abs(tips[-1] - above(0.5, -0.2, 0.1)).max() < 1e-5
    speeds = [np.linalg.norm(trajectory.at([end])[1]) for end in ends]
    assert speeds[1] < 1e-9 and [speed > 0.05 for speed in speeds] == [radius > 0, False, radius > 0, radius > 0, False]
    corners = np.array([above(0.5, 0.2), above(0.5, -0.2)])[:, :3, 3]
    for corner in corners:
        assert np.linalg.norm(tips[:, :3, 3] - corner, axis=1).min() <= radius + 1e-3


def test_rounding_saves_time():
    _, checker = panda_at_a_table()
    durations = [plan(checker, pick_and_place(radius)).trajectory.duration for radius in (0.0, 0.05)]
    assert durations[1] < durations[0]


def test_a_line_into_the_table_fails_by_its_number_or_ends_early():
    rig, checker = panda_at_a_table()
    segments = [Free(poses=above(0.5, 0.2)), Straight(translation=[0, 0, 0.4], along_tool=True)]
    failed = plan(checker, segments)
    assert not failed.solved and failed.failed == 1 and failed.end is End.COLLISION
    assert "segment 1" in failed.text and "'table'" in failed.text and 0 < failed.fraction < 1
    partial = plan(checker, segments, allow_partial=True)
    assert partial.solved and partial.failed == 1 and 0.5 < partial.fraction < 1
    tip = pinocchio_poses(rig.urdf, rig.model.joint_names, partial.trajectory.positions[-1:], rig.fixed)[TCP][0]
    assert np.isclose(tip[2, 3], 0.25 - 0.4 * partial.fraction, atol=1e-5) and 0 < tip[2, 3] < 0.05


def test_a_free_motion_goes_where_the_line_after_it_can_be_done():
    """Of two goals, the nearer one is a posture whose line ends at a joint's limit."""
    rig, checker = panda_at_a_table()
    robot = rig.model
    goals = robot.inverse_kinematics(above(0.5, 0.3), checker, link=TCP, solutions=32, seeds=512, seed_q=READY).q
    line = Straight(translation=[0, -0.8, 0])
    able = [cartesian.solve(q, cartesian.shifted(robot, q, [0, -0.8, 0], TCP), checker, link=TCP).solved for q in goals]
    assert any(able) and not all(able)
    chosen = np.array([goals[able.index(False)], goals[able.index(True)]])
    assert plan(checker, [Free(goals=chosen), line]).solved
    assert not plan(checker, [Free(goals=chosen[:1]), line]).solved


def test_standing_still_is_a_motion():
    _, checker = panda_at_a_table()
    result = plan(checker, [Straight(translation=[0, 0, 0])])
    assert result.solved and result.trajectory.duration == 0 and result.ends_s.tolist() == [0.0]


@pytest.mark.parametrize(
    ("segment", "status", "end", "word"),
    [
        (Free(poses=above(0.5, 0.0, -0.03)), Status.GOAL_IN_COLLISION, None, "table"),
        (Free(poses=above(3.0, 0.0)), None, End.UNREACHABLE, TCP),
        (Free(goals=READY * np.nan), Status.INVALID_GOAL, None, "not finite"),
        (Straight(translation=[0, 0, 3.0]), None, None, "segment 1"),
    ],
)
def test_failures_name_the_segment(segment, status, end, word):
    _, checker = panda_at_a_table()
    result = plan(checker, [Free(goals=READY), segment])
    assert not result.solved and result.failed == 1 and result.text.startswith("segment 1: ") and word in result.text
    assert status is None or result.status is status
    assert end is None or result.end is end


@pytest.mark.parametrize(
    ("segments", "word"),
    [
        ([], "segments is empty"),
        ([3], "segment 0"),
        ([Free()], "segment 0 has no goal"),
        ([Straight()], "segment 0"),
        ([Straight(pose=np.eye(4), translation=[0, 0, 1])], "segment 0"),
    ],
)
def test_bad_segments_are_named(segments, word):
    _, checker = panda_at_a_table()
    with pytest.raises(SettingsError, match=word):
        plan(checker, segments)


def test_bad_fields_are_named():
    with pytest.raises(SettingsError, match="blend_radius"):
        Free(goals=READY, blend_radius=-1.0)
    with pytest.raises(SettingsError, match="velocity_scaling"):
        Straight(translation=[0, 0, 1], velocity_scaling=0.0)


def test_an_arc_is_timed_like_a_line():
    """A half circle forth and a line back: the timed motion on the arc stays on the circle, free of the table."""
    rig, checker = panda_at_a_table()
    segments = [
        Free(poses=above(0.5, -0.15)),
        Circular(above(0.5, 0.15), cartesian.Arc(through=[0.5, 0.0, 0.40])),
        Straight(pose=above(0.5, -0.15)),
    ]
    result = plan(checker, segments)
    assert result.solved and not result.text
    times = np.linspace(result.ends_s[0], result.ends_s[1], 1000)
    q, v, _ = result.trajectory.at(times)
    assert (np.abs(v) <= rig.model.velocity * 1.001).all()
    tips = pinocchio_poses(rig.urdf, rig.model.joint_names, q, rig.fixed)[TCP]
    off = np.hypot(tips[:, 0, 3] - 0.5, np.hypot(tips[:, 1, 3], tips[:, 2, 3] - 0.25) - 0.15)
    assert off.max() < 1e-3 and tips[:, 2, 3].max() > 0.399 and tips[:, 2, 3].min() > 0.249
    assert np.abs(tips[:, :3, :3] - DOWN[:3, :3]).max() < 1e-3
    scene = rig.coal_scene([TABLE])
    assert not any(scene.in_collision(each) for each in q[::10])


def test_a_line_that_cannot_begin_ends_a_partial_motion_before_it():
    rig, checker = panda_at_a_table()
    down = cartesian.solve(READY, cartesian.shifted(rig.model, READY, [0, 0, -0.7], TCP), checker, link=TCP)
    near = rig.model.link_poses(down.path[-1])[TCP][0]
    segments = [Straight(pose=near), Straight(translation=[0, 0, -0.02])]
    assert down.end is End.COLLISION and not plan(checker, segments).solved
    result = plan(checker, segments, allow_partial=True)
    assert result.solved and result.failed == 1 and result.fraction == 0 and "segment 1" in result.text
    assert np.abs(rig.model.link_poses(result.trajectory.positions[-1])[TCP][0] - near).max() < 1e-5


def test_arrays_of_another_shape_are_refused_not_reshaped():
    _, checker = panda_at_a_table()
    goals = np.array([READY, READY + 0.1])
    for wrong in (goals.T, goals[None], goals[:, :6], goals.ravel()):
        with pytest.raises(SettingsError, match="goals"):
            plan(checker, [Free(goals=wrong)])
    for wrong in (above(0.5, 0.0).ravel(), above(0.5, 0.0)[:, :3], np.zeros((2, 2, 4, 4))):
        with pytest.raises(SettingsError, match="pose"):
            Free(poses=wrong)
        with pytest.raises(SettingsError, match="pose"):
            Straight(pose=wrong)
    with pytest.raises(SettingsError, match="goal"):  # the first of several was taken
        cartesian.solve(READY, np.array([above(0.5, 0), above(0.5, 0.2)]), checker, link=TCP)
    with pytest.raises(ConfigurationError, match="q is"):
        cartesian.shifted(checker.robot, goals, [0, 0, 0.1], TCP)
    assert plan(checker, [Free(goals=goals[:1])]).solved and plan(checker, [Free(goals=READY)]).solved


NO_NUMBERS = [np.nan, "0.1", True, None, 1j, [0.1], np.array([0.1, 0.2]), b"1", object()]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("name", ["deviation", "time_limit_s"])
def test_what_is_no_number_is_named(name, value):
    _, checker = panda_at_a_table()
    with pytest.raises(SettingsError, match=name):
        plan(checker, [Free(goals=READY)], **{name: value})
    if name == "deviation":
        with pytest.raises(SettingsError, match=name):
            time_parameterize([READY], READY, READY, deviation=value)


@pytest.mark.parametrize("value", [*NO_NUMBERS, np.full(7, np.nan), np.full(7, "1"), np.ones(7, bool), np.ones((7, 1))])
def test_what_is_no_array_of_joints_is_named(value):
    _, checker = panda_at_a_table()
    robot, limits = checker.robot, {"velocity": np.ones(7), "acceleration": np.ones(7)}
    curve, up = Spline([0.0, 1.0], [READY, READY]), [0, 0, 1]

    def refused(name, call, *args, **options):
        with pytest.raises((SettingsError, ConfigurationError), match=name):
            call(*args, **options)

    refused("start", sequence.solve, value, [Free(goals=READY)], checker, rrt_connect)
    refused("start", cartesian.solve, value, above(0.5, 0.0), checker, link=TCP)
    refused("path|velocity", time_parameterize, [value], **limits)
    for name in ("velocity", "acceleration", "jerk") if value is not None else ():
        refused(name, plan, checker, [Free(goals=READY)], **{name: value})
        refused(name, time_parameterize, [READY], **limits | {name: value})
    refused("acceleration", stop_along, curve, 0.5, value)
    refused("time", stop_along, curve, value, robot.acceleration)
    refused("q is", curve.nearest_time, value, 0.0, 1.0)
    refused("axis", upright.Upright, robot, TCP, value, up, 0.1)
    refused("tolerance", upright.Upright, robot, TCP, up, up, value)


def test_what_is_none_of_its_kind_is_named():
    _, checker = panda_at_a_table()
    for name, arguments in (
        ("checker", {"checker": CollisionChecker}),
        ("checker", {"checker": None}),
        ("planner", {"planner": None}),
        ("settings", {"settings": rrt_connect.Settings()}),
        ("link", {"link": 3}),
        ("seed", {"seed": 0.5}),
        ("segments", {"segments": 3}),
    ):
        given = {"start": READY, "segments": [Free(goals=READY)], "checker": checker, "planner": rrt_connect}
        with pytest.raises(GpuPlannersError, match=name):
            sequence.solve(**given | arguments)
    for name, make in (
        ("along_tool", lambda: Straight(translation=[0, 0, 1], along_tool="no")),
        ("arc", lambda: Circular(pose=np.eye(4), arc=None)),
        ("line", lambda: sequence.Settings(line=rrt_connect.Settings())),
        ("allow_partial", lambda: sequence.Settings(allow_partial="yes")),
    ):
        with pytest.raises(SettingsError, match=name):
            make()


def corner_of_the_table(radius=0.05):
    """Two lines of the tip that meet at a right angle, the second one made where the first one ends."""
    made = []

    def across(q):
        made.append(q)
        return Straight(pose=above(0.5, -0.2))

    corner = above(0.5, 0.1)
    return [Free(poses=above(0.4, 0.1)), Straight(pose=corner, blend_radius=radius), Later(Straight, across)], made


def test_a_blend_inside_leaves_the_lines_only_within_its_radius():
    rig, checker = panda_at_a_table()
    segments, made = corner_of_the_table()
    result = plan(checker, segments, blend_inside=True)
    assert result.solved, result.text
    assert np.allclose(made[-1], result.ends[1]) and result.ends.shape == (3, 7)
    speeds = np.abs(result.trajectory.at(result.ends_s)[1]).max(axis=1)
    assert speeds[1] > 0.05 and speeds[0] < 1e-9
    times = np.linspace(result.ends_s[0], result.trajectory.duration, 4000)
    tips = pinocchio_poses(rig.urdf, rig.model.joint_names, result.trajectory.at(times)[0], rig.fixed)[TCP][:, :3, 3]
    off = np.minimum(np.abs(tips[:, 1] - 0.1), np.abs(tips[:, 0] - 0.5))
    near = np.linalg.norm(tips - [0.5, 0.1, 0.25], axis=1) <= 0.05
    assert off[~near].max() < 1e-3 < off[near].max()


def test_direct_motions_are_straight_in_joint_space_or_refused():
    rig, checker = panda_at_a_table()
    goals = rig.model.inverse_kinematics(above(0.5, 0.2), checker, link=TCP, seed_q=READY).q
    result = plan(checker, [Direct(goals[0]), Straight(translation=[0, 0, 0.1], along_tool=True)])
    assert result.solved and np.allclose(result.ends[0], goals[0])
    times = np.linspace(0, result.ends_s[0], 500)
    q = result.trajectory.at(times)[0]
    share = (q - READY) @ (goals[0] - READY) / ((goals[0] - READY) @ (goals[0] - READY))
    assert np.abs(q - READY - share[:, None] * (goals[0] - READY)).max() < 1e-9
    below = rig.model.inverse_kinematics(above(0.5, 0.2, -0.05), link=TCP, seed_q=READY).q[0]
    inside = plan(checker, [Direct(below)])
    assert inside.status is Status.GOAL_IN_COLLISION and "'table'" in inside.text and not inside.solved
    beyond = plan(checker, [Direct(rig.model.upper + 0.1)])
    assert beyond.status is Status.GOAL_OUT_OF_LIMITS and rig.model.joint_names[0] in beyond.text
    with pytest.raises(SettingsError, match="segment 0"):
        plan(checker, [Direct(READY[:3])])
    with pytest.raises(SettingsError, match="Straight"):
        plan(checker, [Later(Straight, lambda q: Free(goals=READY))])
    with pytest.raises(SettingsError, match="kind"):
        plan(checker, [Later(int, lambda q: 1)])
