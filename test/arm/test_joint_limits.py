"""Soft limits and MoveIt's joint_limits.yaml: the stricter counts, mistakes are named, and a robot that stands outside
of them finds its way back."""

import numpy as np
import pytest
import yaml
from curve_oracle import beyond_limits
from panda_files import ARM, LIMITS, READY, SRDF, URDF

from gpu_planners.arm import PLANNERS, CollisionChecker, CollisionWorld, Status, load_urdf, rrt_connect, sequence
from gpu_planners.arm.control.joints import read_joints
from gpu_planners.arm.sequence import Free, Straight
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.arm.urdf.joint_limits import planning_limits
from gpu_planners.arm.urdf.limits import told_limits
from gpu_planners.errors import RobotDescriptionError

# what moveit_resources' Panda has, but for the positions and the jerk
PANDA = """
default_velocity_scaling_factor: 0.1
default_acceleration_scaling_factor: 0.2
joint_limits:
  panda_joint1:
    has_velocity_limits: true
    max_velocity: 1.875
    has_acceleration_limits: true
    max_acceleration: 3.75
    has_jerk_limits: true
    max_jerk: 7500
  panda_joint2:
    has_velocity_limits: true
    max_velocity: 5.0
    has_acceleration_limits: false
    max_acceleration: 0.0
    has_position_limits: true
    min_position: -1
    max_position: 3.0
  panda_finger_joint1:
    has_velocity_limits: true
    max_velocity: 0.1
"""


def panda(limits=None, urdf=URDF):
    return load_urdf(urdf, SRDF, group="panda_arm", limits=limits)


def one_joint(inside, kind="revolute", limit='lower="-1" upper="2" velocity="1"'):
    return load_urdf(
        f'<robot name="one"><link name="a"/><link name="b"><collision><geometry><sphere radius="0.1"/></geometry>'
        f'</collision></link><joint name="j" type="{kind}"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>'
        f'<limit {limit} effort="1"/>{inside}</joint></robot>'
    )


def soft(lower, upper):
    return f'<safety_controller k_velocity="1" soft_lower_limit="{lower}" soft_upper_limit="{upper}"/>'


def test_soft_limits_count_within_the_limits():
    robot = panda()
    lower, upper = np.array(LIMITS)[:, :2].T
    np.testing.assert_allclose([robot.lower, robot.upper], [lower + 0.07, upper - 0.07])
    np.testing.assert_allclose(robot.hard_limits, [lower, upper])
    assert set(robot.limit_sources["lower"] + robot.limit_sources["upper"]) == {"soft limit"}
    plain = panda(urdf=URDF.replace("soft_", "hard_"))
    assert plain.hard_limits is None and plain.lower[0] == LIMITS[0][0]


@pytest.mark.parametrize(
    ("given", "limits", "told"),
    [
        (soft(-0.5, 1), (-0.5, 1), ""),
        (soft(-1, 2), (-1, 2), ""),
        (soft(-3, 1), (-1, 1), "beyond the <limit>, which counts there: joint 'j' (-3 to 1, the <limit> is -1 to 2)"),
        (soft(0, 0), (-1, 2), "missing, or both 0, do not count: joint 'j'"),
        ('<safety_controller k_velocity="1"/>', (-1, 2), "missing, or both 0, do not count: joint 'j'"),
        ('<safety_controller k_velocity="1" soft_lower_limit="-0.5"/>', (-0.5, 0), ""),
        (soft(1, -0.5), (-1, 2), "lower one is above the upper one do not count: joint 'j' (1 to -0.5"),
        (soft(3, 4), (-1, 2), "leave the joint no room do not count: joint 'j' (3 to 4"),
        (soft(1, 1), (-1, 2), "leave the joint no room"),
    ],
)
def test_soft_limits_that_do_not_count_are_named(given, limits, told, caplog):
    robot = one_joint(given)
    assert (robot.lower[0], robot.upper[0]) == limits
    assert told in caplog.text if told else not caplog.text


def test_soft_limits_of_other_joints(caplog):
    assert one_joint(soft(-1, 1), "continuous").continuous[0]
    far = one_joint(soft(-1, 1), limit='lower="-1e9" upper="1e9" velocity="1"')
    assert not far.continuous[0] and (far.lower[0], far.upper[0]) == (-1, 1)
    with pytest.raises(RobotDescriptionError, match="'j'.*'high' are no numbers"):
        one_joint(soft(-1, "high"))


def test_a_controller_may_use_the_limits_and_begins_within_the_soft_ones():
    joints = read_joints(URDF, ["panda_joint4", "panda_joint6"])
    assert joints.upper[0] == LIMITS[3][1] and joints.lower[1] == LIMITS[5][0]
    raised = read_joints(URDF.replace(f'soft_upper_limit="{LIMITS[3][1] - 0.07}"', 'soft_upper_limit="-0.1"'), ARM)
    assert raised.nearest_to_zero()[3] == -0.1


def test_joint_limits_yaml(tmp_path):
    (tmp_path / "joint_limits.yaml").write_text(PANDA)
    robot, plain = panda(tmp_path / "joint_limits.yaml"), panda()
    told = told_limits(robot)
    assert told["panda_joint1"] == {
        "position": "-2.897 to 2.897 rad (soft limit)",
        "velocity": "1.875 rad/s (joint_limits.yaml)",
        "acceleration": "3.75 rad/s^2 (joint_limits.yaml)",
        "jerk": "7500 rad/s^3 (joint_limits.yaml)",
    }
    assert told["panda_joint2"] == {
        "position": "-1 (joint_limits.yaml) to 1.763 rad (soft limit)",
        "velocity": "2.393 rad/s (URDF)",
        "acceleration": "4.785 rad/s^2 (assumed)",
        "jerk": "none",
    }
    np.testing.assert_array_equal(robot.velocity[1:], plain.velocity[1:])
    assert plain.jerk is None
    jerk = robot.jerk_limits(robot.acceleration / 2, 0.1)
    assert jerk[0] == 3750 and jerk[1] == robot.acceleration[1] / 0.2
    assert planning_limits(tmp_path / "joint_limits.yaml").scaling == {"velocity": 0.1, "acceleration": 0.2}


def test_where_a_file_may_have_its_limits():
    document = yaml.safe_load(PANDA)
    for wrapped in (
        {"robot_description_planning": document},
        {"/**": {"ros__parameters": {"robot_description_planning": document, "other": 1}}},
        {"move_group": {"ros__parameters": {"robot_description_planning": document}}},
    ):
        assert panda(wrapped).velocity[0] == 1.875
    assert panda({"joint_limits": None}).velocity[0] == LIMITS[0][2] == panda({}).velocity[0]


def test_several_sources():
    """Of velocities the stricter counts, of accelerations the last; what nobody gave is derived from what counts."""
    first = planning_limits(
        {"joint_limits": {"panda_joint1": {"max_velocity": 1.0, "max_acceleration": 9.0}}}, "a.yaml"
    )
    given = {"panda_joint1": {"max_velocity": 2.0, "max_acceleration": 8, "max_deceleration": -3.0}}
    given |= {"panda_joint2": {"max_velocity": 0.5}}
    robot = panda(first | planning_limits({"joint_limits": given}, "parameters"))
    assert robot.velocity[:2].tolist() == [1.0, 0.5] and robot.acceleration[:2].tolist() == [3.0, 1.0]
    assert robot.limit_sources["velocity"][:3] == ("a.yaml", "parameters", "URDF")
    assert robot.limit_sources["acceleration"][:3] == ("parameters", "assumed", "assumed")


def test_limits_of_a_joint_for_which_the_urdf_has_none(caplog):
    urdf = URDF.replace('velocity="2.3925"', 'velocity="0"')
    limits = {"joint_limits": {name: {"max_velocity": 1.5} for name in ARM}}
    robot = panda(limits, urdf)
    assert robot.velocity[0] == 1.5 and "no velocity limit" not in caplog.text  # not the stricter one that is assumed
    turning = URDF.replace('name="panda_joint1" type="revolute"', 'name="panda_joint1" type="continuous"')
    given = {"has_position_limits": True, "min_position": -2.0, "max_position": 3.5}
    robot = panda({"joint_limits": {"panda_joint1": given}}, turning)
    assert not robot.continuous[0] and (robot.lower[0], robot.upper[0]) == (-2.0, 3.5)
    assert panda(None, turning).continuous[0]
    with pytest.raises(RobotDescriptionError, match="'panda_joint1' is continuous .* allowed: both or neither"):
        panda({"joint_limits": {"panda_joint1": {"max_position": 3.5}}}, turning)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"joint_limits": {"panda_jont1": {}}}, "'panda_jont1' .nearest: 'panda_joint1'.*its joints: panda_joint1, "),
        ({"joint_limits": {"panda_joint1": {"max_velocity": "fast"}}}, "max_velocity is 'fast'; allowed: a finite num"),
        ({"joint_limits": {"panda_joint1": {"max_velocity": True}}}, "max_velocity is True; allowed: a finite number"),
        ({"joint_limits": {"panda_joint1": {"max_jerk": float("inf")}}}, "max_jerk is inf; allowed: a finite number"),
        ({"joint_limits": {"panda_joint1": {"max_acceleration": -2}}}, "max_acceleration is -2.*; allowed: a number a"),
        (
            {"joint_limits": {"panda_joint1": {"min_position": 1, "max_position": -1}}},
            "min_position is 1.0; allowed: less than max_position, which is -1",
        ),
        ({"joint_limits": {"panda_joint1": {"max_position": -4}}}, "no position is within.*-2.8971 .soft limit. to -4"),
        ({"joint_limits": {"panda_joint1": {"max_velosity": 1}}}, "'max_velosity' is unknown .nearest: max_velocity.;"),
        ({"joint_limits": {"panda_joint1": {"has_jerk_limits": 1}}}, "has_jerk_limits is 1; allowed: true or false"),
        ({"joint_limits": {"panda_joint1": 3}}, "joint 'panda_joint1' is 3; allowed: a mapping of has_position_limits"),
        ({"joint_limits": [1]}, "joint_limits is .1.; allowed: a mapping of joints"),
        ({"joint_limits": {1: {}}}, "a key is 1"),
        ({"joint_limit": {}}, "'joint_limit' is unknown .nearest: joint_limits.; allowed: joint_limits, cartesian_"),
        ({"default_velocity_scaling_factor": 1.5}, "scaling_factor is 1.5; allowed: a number above 0, up to 1"),
        ({"cartesian_limits": {"max_trans_vel": 0}}, "cartesian_limits, max_trans_vel is 0; allowed: a number above 0"),
        ([1, 2], "limits must be a path"),
        ("nowhere/joint_limits.yaml", "'nowhere/joint_limits.yaml' cannot be read"),
    ],
)
def test_mistakes_are_named(given, told):
    with pytest.raises(RobotDescriptionError, match=told):
        panda(given)


def test_what_is_not_read_or_missing_is_told(caplog):
    given = {"has_jerk_limits": True, "has_effort_limits": True, "max_effort": 3.0}
    robot = panda({"joint_limits": {"panda_joint3": given}})
    assert robot.jerk is None
    assert panda({"default_robot_padding": 0.01, "joint_limits": {}}).jerk is None
    assert "default_robot_padding are no limits and are not read" in caplog.text
    assert "has_effort_limits, max_effort are not read" in caplog.text
    assert "has_jerk_limits is true, but there is no max_jerk" in caplog.text


# ---- beyond limits ----


@pytest.fixture(scope="module")
def arm():
    """A checker of the Panda with a file's limits, and a start beyond these and beyond a soft limit."""
    robot = panda(yaml.safe_load(PANDA))
    start = np.array(READY)
    start[[1, 3]] = -1.3, LIMITS[3][1] - 0.005
    return CollisionChecker(robot, CollisionWorld(), "cpu"), start


@pytest.mark.parametrize("planner", PLANNERS)
def test_the_way_back_from_beyond_limits(planner, arm):
    checker, start = arm
    robot, goal = checker.robot, np.array(READY)
    solved = PLANNERS[planner].solve(start, goal, checker, PLANNERS[planner].Settings(max_samples=20_000), seed=2)
    assert solved.solved and solved.moved_to_limits == () and solved.message.startswith("from beyond limits: panda_joi")
    np.testing.assert_array_equal(solved.path[0], start)
    low, high = np.minimum(robot.lower, start), np.maximum(robot.upper, start)
    assert (solved.path >= low).all() and (solved.path <= high).all()
    motion = time_parameterize(solved.path, robot.velocity, robot.acceleration, deviation=0.1, checker=checker)
    assert not beyond_limits(motion, low, high)


def test_among_obstacles_the_way_back_stays_between_the_start_and_the_limits(arm):
    checker, start = arm
    robot, world = checker.robot, CollisionWorld()
    for k, (x, y) in enumerate([(0.5, 0.0), (0.3, 0.4), (0.3, -0.4)]):
        T = np.eye(4)
        T[:3, 3] = x, y, 0.5
        world.add_box(f"post {k}", (0.05, 0.05, 1.0), T)
    checker = CollisionChecker(robot, world, "cpu")
    low, high = np.minimum(robot.lower, start), np.maximum(robot.upper, start)
    rng, goals, found = np.random.default_rng(4), [], 0
    while len(goals) < 6:
        goals += [q for q in rng.uniform(robot.lower, robot.upper, (16, 7)) if checker.configurations_valid(q[None])[0]]
    settings = rrt_connect.Settings(optimise_s=0.2, objective="time")
    for seed, goal in enumerate(goals[:6]):
        solved = rrt_connect.solve(start, goal, checker, settings, seed)
        if not solved.solved:
            continue
        found += 1
        assert (solved.path >= low).all() and (solved.path <= high).all()
        assert checker.motions_valid(solved.path[:-1], solved.path[1:]).all()
        motion = time_parameterize(solved.path, robot.velocity, robot.acceleration, deviation=0.1, checker=checker)
        assert not beyond_limits(motion, low, high)
    assert found >= 4


def test_no_goal_beyond_limits_and_no_start_beyond_the_urdf(arm):
    checker, start = arm
    refused = rrt_connect.solve(READY, start, checker)
    assert refused.status is Status.GOAL_OUT_OF_LIMITS and "panda_joint2 = -1.3 (allowed -1 to" in refused.message
    start = start.copy()
    start[3] += 0.1
    refused = rrt_connect.solve(start, READY, checker)
    assert refused.status is Status.START_OUT_OF_LIMITS and "(allowed -3.1416 to 0.0873, " in refused.message
    both = rrt_connect.solve_batch([start, arm[1]], [READY, READY], [checker, checker])
    assert [one.status for one in both] == [Status.START_OUT_OF_LIMITS, Status.SOLVED]


def test_a_sequence_leads_back_first(arm):
    checker, start = arm
    robot = checker.robot
    segments = [Free(np.array(READY)), Straight(translation=(0, 0, 0.05))]
    answer = sequence.solve(start, segments, checker, rrt_connect)
    assert answer.solved
    assert not beyond_limits(answer.trajectory, np.minimum(robot.lower, start), np.maximum(robot.upper, start))
    refused = sequence.solve(start, segments[1:], checker, rrt_connect)
    assert not refused.solved and "joint limits: at the start 'panda_joint2' is at -1.3" in refused.text


def test_jerk_of_the_file_is_kept():
    """Beside the default, full acceleration in 0.1 s: shorter with a greater jerk, longer with a smaller one."""
    took = {}
    for jerk in (None, 7500.0, 10.0):
        limits = {
            "joint_limits": {name: {"max_acceleration": 4.0} | ({"max_jerk": jerk} if jerk else {}) for name in ARM}
        }
        robot = panda(limits)
        checker = CollisionChecker(robot, CollisionWorld(), "cpu")
        goal = np.array(READY)
        goal[0] = 1.0
        motion = time_parameterize([READY, goal], robot.velocity, robot.acceleration, checker=checker)
        took[jerk] = motion.duration
        times = np.linspace(0, motion.duration, 4001)
        accelerations = motion.at(times)[2]
        rate = np.abs(np.diff(accelerations, axis=0)).max() / (times[1] - times[0])
        assert rate <= (jerk or 40.0) * 1.02 and rate >= 0.5 * min(jerk or 40.0, 1000)
    assert took[7500.0] < took[None] < took[10.0]
