"""Motions whose torques keep the motors' limits, by pinocchio at dense samples of what a controller plays."""

from dataclasses import replace

import numpy as np
import pytest
from pinocchio_poses import example_robot, pinocchio_torques
from robots_at_hand import READY, checker_among, maker_of, problem_of

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf, rrt_connect, sequence
from gpu_planners.arm.dynamics import Payload, TorqueLimits
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.errors import SettingsError

CENTRE, INERTIA = (0.0, 0.02, 0.06), np.diag([0.01, 0.012, 0.008])
ARMS = {  # joints; kg that they carry
    "panda": ([f"panda_joint{k}" for k in range(1, 8)], 3.0),
    "ur5": (None, 5.0),
    "xarm7": ([f"joint{k}" for k in range(1, 8)], 3.0),
    "baxter": ([f"left_{k}" for k in ("s0", "s1", "e0", "e1", "w0", "w1", "w2")], 0.0),
    "tiago": (["torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8))], 0.3),
}
DENSE = 2000


def arm(name, mass=None, **options):
    """-> (RobotModel, TorqueLimits, a function: q, v, a -> pinocchio's torques)."""
    urdf, share = example_robot(name)
    joints, most = ARMS[name]
    robot = load_urdf(urdf, package_dirs=[share], joints=joints, self_collisions=False)
    mass = most if mass is None else mass
    load = (robot.tip_link, mass, CENTRE, INERTIA * (mass > 0))
    payload = Payload(mass, CENTRE, load[3])
    return (
        robot,
        TorqueLimits(robot, payloads=[payload], **options),
        lambda q, v, a: pinocchio_torques(urdf, robot.joint_names, q, v, a, loads=[load]),
    )


def worst(motion, torques, by_pinocchio, count=DENSE):
    """The greatest torque along a motion, as a share of its limit."""
    return (np.abs(by_pinocchio(*motion.at(np.linspace(0, motion.duration, count)))) / torques.limits).max()


def random_path(seed, robot):
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(2, 6)), robot.dof
    return rng.uniform(np.maximum(robot.lower, -2.5), np.minimum(robot.upper, 2.5), shape)


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("deviation", [0.0, 0.2])
def test_random_motions_keep_the_limits_and_are_slower_only_where_they_must(name, deviation):
    robot, torques, by_pinocchio = arm(name)
    limits = robot.velocity, 2 * robot.acceleration
    seen = {"refused": 0, "same": 0, "slower": 0}
    for seed in range(8):
        path = random_path(seed, robot)
        free = time_parameterize(path, *limits, deviation=deviation)
        try:
            held = time_parameterize(path, *limits, deviation=deviation, torques=torques)
        except SettingsError as error:
            assert "only to hold still" in str(error)
            seen["refused"] += 1
            continue
        assert worst(held, torques, by_pinocchio) <= 1 + 1e-9
        assert np.array_equal(held.positions[[0, -1]], free.positions[[0, -1]])
        _, v, a = held.at(np.linspace(0, held.duration, DENSE))
        assert (np.abs(v) <= limits[0] * (1 + 1e-3)).all() and (np.abs(a) <= limits[1] * (1 + 1e-3)).all()
        if worst(free, torques, by_pinocchio) < 0.98:
            assert np.array_equal(held.times, free.times) and np.array_equal(held.positions, free.positions)
            seen["same"] += 1
        else:
            assert held.duration < 3 * free.duration
            seen["slower"] += held.duration > free.duration
    assert seen["same"] + seen["slower"] > 2, seen


def test_three_kilograms_in_the_hand_make_a_fast_motion_slower():
    robot, torques, by_pinocchio = arm("panda")
    path = np.array([READY, READY + [0.8, 1.5, 0, 1.2, 0, 0.4, 0]])
    fast = robot.velocity, 3 * robot.acceleration
    free = time_parameterize(path, *fast)
    held, empty = (time_parameterize(path, *fast, torques=each) for each in (torques, arm("panda", 0.0)[1]))
    assert worst(free, torques, by_pinocchio) > 1.1
    assert 0.9 < worst(held, torques, by_pinocchio) <= 1 + 1e-9
    assert free.duration <= empty.duration < held.duration < 2 * free.duration


def test_a_smooth_curve_through_many_points_keeps_the_limits():
    robot, torques, by_pinocchio = arm("panda")
    s = np.linspace(0, 2 * np.pi, 80)[:, None]
    path = READY + [0, 1.1, 0, 1.4, 0, 0, 0] + 0.9 * np.sin(s * np.array([1, 2, 1, 2, 1, 3, 2]) / 2)
    fast = robot.velocity, 6 * robot.acceleration
    free, held = (time_parameterize(path, *fast, deviation=0.05, torques=each) for each in (None, torques))
    stopping = time_parameterize(path, *fast, torques=torques)
    assert worst(free, torques, by_pinocchio) > 1.0 >= worst(held, torques, by_pinocchio) - 1e-9
    assert free.duration < held.duration < 0.5 * stopping.duration
    strong = time_parameterize(path, *fast, deviation=0.05, torques=TorqueLimits(robot, np.full(7, 1e4)))
    assert np.array_equal(strong.times, free.times) and np.array_equal(strong.positions, free.positions)


def test_a_planned_motion_with_rounded_corners_keeps_the_limits_and_is_free():
    rig, problem = problem_of("panda", "table")
    checker = checker_among(rig.model, problem)
    torques = TorqueLimits(rig.model, payloads=[Payload(3.0, CENTRE, INERTIA)])
    path = rrt_connect.solve(problem.start, problem.goals, checker, seed=0).path
    fast = rig.model.velocity, 4 * rig.model.acceleration
    free, held = (
        time_parameterize(path, *fast, deviation=0.1, checker=checker, torques=each) for each in (None, torques)
    )
    q, v, a = held.at(np.linspace(0, held.duration, DENSE))
    assert (np.abs(torques.dynamics.torques(q, v, a)) <= torques.limits * (1 + 1e-9)).all()
    scene = rig.coal_scene(problem.obstacles)
    assert not any(scene.in_collision(each) for each in q[::5])
    assert held.duration >= free.duration


def test_a_pose_that_a_motor_cannot_hold_is_refused_by_name():
    robot, torques, by_pinocchio = arm("panda", 8.0)
    out = np.array([0.0, np.pi / 2, 0, -0.1, 0, np.pi / 2, 0])  # stretched out
    needed = by_pinocchio(out[None], np.zeros((1, 7)), np.zeros((1, 7)))[0, 1]
    words = rf"joint 'panda_joint2' needs {needed:.4g} N m .* hold still; allowed: up to 86.13, 0.99 of its limit 87"
    for path in ([READY, out], [out], [out, READY]):
        with pytest.raises(SettingsError, match="joint 'panda_joint2' needs"):
            time_parameterize(path, robot.velocity, robot.acceleration, torques=torques)
    with pytest.raises(SettingsError, match=words):
        time_parameterize([out], robot.velocity, robot.acceleration, torques=torques)
    assert time_parameterize([READY], robot.velocity, robot.acceleration, torques=torques).duration == 0


def test_weaker_motors_and_no_gravity():
    robot, _, _ = arm("panda")
    path, limits = np.array([READY, READY + 0.3]), (robot.velocity, robot.acceleration)
    weak = TorqueLimits(robot, {"panda_joint1": 2.0})
    assert np.array_equal(weak.limits, [2, *robot.effort[1:]])
    motion = time_parameterize(path, *limits, torques=weak)
    tau = weak.dynamics.torques(*motion.at(np.linspace(0, motion.duration, DENSE)))
    assert 1.8 < np.abs(tau[:, 0]).max() <= 2.0
    floating = TorqueLimits(robot, np.full(7, 1.0), gravity=(0, 0, 0))
    motion = time_parameterize(path, *limits, torques=floating)
    tau = floating.dynamics.torques(*motion.at(np.linspace(0, motion.duration, DENSE)))
    assert 0.8 < np.abs(tau).max() <= 1.0


def test_torques_of_another_robot_are_refused():
    robot, torques, _ = arm("panda")
    with pytest.raises(SettingsError, match="path has 2 joints; allowed: the 7 of the robot of torques"):
        time_parameterize([[0.0, 0.0], [1.0, 1.0]], [1, 1], [1, 1], torques=torques)
    with pytest.raises(SettingsError, match="torques is"):
        time_parameterize([[0.0] * 7], robot.velocity, robot.acceleration, torques=robot.effort)
    other = maker_of("xarm7").rig
    checker = checker_among(other.model, problem_of("xarm7", "table")[1])
    with pytest.raises(SettingsError, match="torques is of a robot with the joints panda_joint1, "):
        time_parameterize([np.zeros(7)], robot.velocity, robot.acceleration, checker=checker, torques=torques)


def test_a_sequence_with_a_line_of_the_tool_keeps_the_limits():
    robot, torques, by_pinocchio = arm("panda")
    checker = CollisionChecker(robot, CollisionWorld(), "cpu")
    out = READY + [0.8, 1.5, 0, 1.2, 0, 0.4, 0]
    parts = [
        sequence.Free(goals=out, blend_radius=0.05),
        sequence.Straight(translation=[-0.15, 0, 0.05], blend_radius=0.05),
        sequence.Free(goals=READY),
    ]
    fast = sequence.Settings(acceleration=4 * robot.acceleration)
    held = replace(fast, torques=torques)
    free, kept = (sequence.solve(READY, parts, checker, rrt_connect, each) for each in (fast, held))
    assert free.solved and kept.solved and np.array_equal(free.path, kept.path)
    assert worst(free.trajectory, torques, by_pinocchio) > 1.1
    assert worst(kept.trajectory, torques, by_pinocchio) <= 1 + 1e-9
    assert free.trajectory.duration < kept.trajectory.duration < 2 * free.trajectory.duration
    assert len(kept.ends_s) == 3 and np.isclose(kept.ends_s[-1], kept.trajectory.duration, atol=1e-8)
    with pytest.raises(SettingsError, match="only to hold still"):
        sequence.solve(READY, parts, checker, rrt_connect, replace(fast, torques=arm("panda", 8.0)[1]))
