"""From one motion to another while the robot moves: what is played is checked by coal, numpy and roots, not by us."""

import numpy as np
import pytest
from curve_oracle import coefficients, values
from hypothesis import given, settings
from hypothesis import strategies as st
from robots_at_hand import READY, checker_among, maker_of, problem_of

from gpu_planners.arm import CollisionChecker, CollisionWorld, rrt_connect
from gpu_planners.arm.control.spline import Spline
from gpu_planners.arm.control.stopping import stop_along
from gpu_planners.arm.control.switching import switch
from gpu_planners.arm.motion.played import room
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.errors import SettingsError
from gpu_planners.verify import CoalScene

STEPS = np.linspace(0.0, 1.0, 9)


def timed(path, checker, deviation=0.1):
    robot = checker.robot
    return time_parameterize(path, robot.velocity, robot.acceleration, deviation=deviation, checker=checker)


def braking(motion, time, robot):
    """(Spline of a motion that brakes at a time, seconds when)"""
    curve = Spline.of(motion)
    return curve.then(time, stop_along(curve, time, robot.acceleration, *room(robot)))


def played(trajectory):
    """(6, intervals, dof) coefficients of quintics, (intervals, dof) their lengths; by the controller's formulas."""
    q, v, a = trajectory.positions, trajectory.velocities, trajectory.accelerations
    T = np.repeat(np.diff(trajectory.times)[:, None], q.shape[1], axis=1)
    return coefficients(T, *(np.array([each[:-1], each[1:]]) for each in (q, v, a))), T


def extremes(c, T, order):
    """(dof,) greatest absolute value of a derivative of quintics, at their ends and at the roots of the next one."""
    for _ in range(order):
        c = c[1:] * np.arange(1, len(c))[:, None, None]
    found = np.maximum(np.abs(values(c, 0 * T)), np.abs(values(c, T)))
    slope = c[1:] * np.arange(1, len(c))[:, None, None]
    for i, k in np.ndindex(T.shape):
        roots = np.roots(slope[::-1, i, k]) if slope[:, i, k].any() else np.zeros(0)
        times = roots.real[(np.abs(roots.imag) < 1e-9) & (roots.real > 0) & (roots.real < T[i, k])]
        found[i, k] = max([found[i, k], *np.abs(values(c[:, i, k], times))])
    return found.max(axis=0)


def assert_joined(trajectory, state, end, robot):
    """It begins in a state, ends at rest in a configuration, and keeps the limits of the joints at every extremum."""
    for ours, theirs in zip((trajectory.positions, trajectory.velocities, trajectory.accelerations), state):
        assert np.allclose(ours[0], theirs, atol=1e-9)
    assert np.allclose(trajectory.positions[-1], end, atol=1e-9)
    assert not trajectory.velocities[-1].any() and not trajectory.accelerations[-1].any()
    assert (np.diff(trajectory.times) > 0).all()
    c, T = played(trajectory)
    assert (extremes(c, T, 1) <= robot.velocity * (1 + 3e-3)).all()
    assert (extremes(c, T, 2) <= robot.acceleration * 1.03).all()  # a stop takes 1.02 of it
    dense = values(c, STEPS[:, None, None] * T)
    fixed = ~np.asarray(robot.continuous, bool)
    assert (dense >= robot.lower)[..., fixed].all() and (dense <= robot.upper)[..., fixed].all()


def free_by_coal(trajectory, scene):
    """Of what controllers play: quintics, cubics and straight lines."""
    c, T = played(trajectory)
    q, v = trajectory.positions, trajectory.velocities
    cubic = coefficients(T, *(np.array([each[:-1], each[1:]]) for each in (q, v)))
    count = max(2, int(np.ceil(1200 / len(T))))
    shares = np.linspace(0.0, 1.0, count)[:, None, None]
    places = [values(c, shares * T), values(cubic, shares * T), q[:-1] + shares * np.diff(q, axis=0)]
    return not any(scene.in_collision(one) for each in places for one in each.reshape(-1, q.shape[1]))


@pytest.mark.parametrize(
    ("robot", "family"), [("panda", "shelf"), ("ur5", "table"), ("kinova", "table"), ("gantry", "shelf")]
)
def test_a_robot_that_moves_goes_over_to_another_motion(robot, family):
    rig, problem = problem_of(robot, family)
    model, checker = rig.model, checker_among(rig.model, problem)
    settings, goal = rrt_connect.Settings(time_limit_s=3600.0), np.atleast_2d(problem.goals)[0]
    first = timed(rrt_connect.solve(problem.start, goal, checker, settings, seed=0).path, checker)
    scene, blended = rig.coal_scene(problem.obstacles), 0
    for seed, share in enumerate((0.2, 0.45, 0.7)):
        time = share * first.duration
        curve = braking(first, time, model)
        state = Spline.of(first).at(time)
        rng = np.random.default_rng(seed)
        goals = rng.uniform(np.maximum(model.lower, -3), np.minimum(model.upper, 3), (200, model.dof))
        goals = goals[np.asarray(checker.configurations_valid(goals))][:3]
        goals = np.concatenate([goals, [problem.start]])  # also back to where it came from
        result = rrt_connect.solve(curve.positions[-1], goals, checker, settings, seed=seed)
        assert result.solved
        motion = timed(result.path, checker)
        switched = switch(curve, time, motion, model.velocity, model.acceleration, checker)
        assert_joined(switched.trajectory, state, result.path[-1], model)
        with_stop = curve.end - time + motion.duration
        assert switched.trajectory.duration <= with_stop + 1e-6
        if switched.blended:
            assert switched.trajectory.duration < with_stop
        assert free_by_coal(switched.trajectory, scene)
        blended += switched.blended
    assert blended


def test_what_stands_on_the_way_across_leaves_the_stop(tmp_path):
    """The Panda turns its first joint, and is to stretch its arm from where it stops. The quickest connection cuts the
    corner; with a sphere in the corner it stops there or passes it on another connection, and touches nothing."""
    rig = maker_of("panda").rig
    model = rig.model
    middle, end = READY.copy(), READY.copy()
    middle[0] += 1.5
    end[[0, 3]] = middle[0], middle[3] + 0.9
    bare = CollisionChecker(model, CollisionWorld(), "cpu")
    first = timed(np.array([READY, middle]), bare)
    time = 0.4 * first.duration
    curve = braking(first, time, model)
    q = curve.positions[-1].copy()
    motion = timed(np.array([q, np.r_[q[:3], end[3], q[4:]]]), bare)
    free = switch(curve, time, motion, model.velocity, model.acceleration, bare)
    assert free.blended
    stopping = curve.then(curve.end, motion, time).rest(time)
    places = [
        model.link_poses(each.at(np.linspace(0, each.duration, 800))[0])["panda_hand_tcp"]
        for each in (free.trajectory, stopping)
    ]
    across, along = (each[:, :3, 3] for each in places)
    apart = np.linalg.norm(across[:, None] - along[None], axis=2).min(axis=1)
    k, radius = int(apart.argmax()), 0.5 * float(apart.max())
    assert radius > 1e-3
    pose = np.eye(4)
    pose[:3, 3] = across[k] + 0.0
    world = CollisionWorld()
    world.add_sphere("ball", radius, pose)
    checker = CollisionChecker(model, world, "cpu")
    switched = switch(curve, time, motion, model.velocity, model.acceleration, checker)
    state = Spline.of(first).at(time)
    assert_joined(switched.trajectory, state, motion.positions[-1], model)
    meets = [
        not np.asarray(
            checker.motions_valid(
                *(each.at(np.linspace(0, each.duration, 800))[0][s] for s in (slice(None, -1), slice(1, None)))
            )
        ).all()
        for each in (free.trajectory, switched.trajectory)
    ]
    assert meets[0] and (not meets[1] or not switched.blended)
    scene = rig.coal_scene([{"name": "ball", "type": "sphere", "radius": radius, "pose": pose}])
    if switched.blended:
        assert free_by_coal(switched.trajectory, scene)


URDF = """<robot name="slides"><link name="root"/>{}</robot>"""
JOINT = """<link name="l{0}"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
  <joint name="j{0}" type="prismatic"><parent link="{1}"/><child link="l{0}"/><axis xyz="{2}"/>
  <limit lower="-2" upper="2" velocity="{3}" effort="1"/></joint>"""


def slides():
    """A box of 0.1 m that moves in a plane, by 2 and 1 m/s."""
    from gpu_planners.arm import load_urdf

    text = URDF.format(JOINT.format(0, "root", "1 0 0", 2.0) + JOINT.format(1, "l0", "0 1 0", 1.0))
    return load_urdf(text), text


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.02, 0.98), st.sampled_from([0.0, 0.1]))
def test_any_two_motions_are_joined_within_the_limits(seed, share, deviation):
    robot, text = slides()
    rng = np.random.default_rng(seed)
    blocks = [
        {"name": f"b{k}", "type": "box", "size": (0.1, 0.1, 0.4), "pose": _at(*rng.uniform(-1.5, 1.5, 2))}
        for k in range(5)
    ]
    world = CollisionWorld()
    for block in blocks:
        world.add_box(block["name"], block["size"], block["pose"])
    checker = CollisionChecker(robot, world, "cpu")
    q = rng.uniform(-1.9, 1.9, (60, 2))
    q = q[np.asarray(checker.configurations_valid(q))]
    first = rrt_connect.solve(q[0], q[1], checker, seed=seed)
    if not first.solved or len(first.path) < 2:
        return
    first = timed(first.path, checker, deviation)
    time = share * first.duration
    curve = braking(first, time, robot)
    second = rrt_connect.solve(curve.positions[-1], q[2], checker, seed=seed)
    if not second.solved:
        return
    second = timed(second.path, checker, deviation)
    switched = switch(curve, time, second, robot.velocity, robot.acceleration, checker)
    assert_joined(switched.trajectory, Spline.of(first).at(time), second.positions[-1], robot)
    assert switched.trajectory.duration <= curve.end - time + second.duration + 1e-6
    assert free_by_coal(switched.trajectory, CoalScene(text, None, blocks))


def _at(x, y):
    pose = np.eye(4)
    pose[:2, 3] = x, y
    return pose


def test_a_robot_that_rests_begins_the_next_motion():
    robot, _ = slides()
    checker = CollisionChecker(robot, CollisionWorld(), "cpu")
    first, second = (timed(np.array(path), checker) for path in ([[0, 0], [1, 1]], [[1, 1], [0, 1]]))
    switched = switch(Spline.of(first), first.duration + 3.0, second, robot.velocity, robot.acceleration, checker)
    assert not switched.blended and np.isclose(switched.trajectory.duration, second.duration)
    still = timed(np.array([[1.0, 1.0]]), checker)
    ended = switch(Spline.of(first), 0.5 * first.duration, still, robot.velocity, robot.acceleration, checker)
    assert not ended.blended and np.isclose(ended.trajectory.duration, 0.5 * first.duration)


def test_the_limits_that_are_given_are_kept_where_the_robot_is_no_faster():
    robot, _ = slides()
    checker = CollisionChecker(robot, CollisionWorld(), "cpu")
    slow = time_parameterize([[-1.5, 0], [1.5, 0]], 0.2 * robot.velocity, robot.acceleration)
    curve = braking(slow, 1.0, robot)
    q = curve.positions[-1]
    motion = time_parameterize([q, q + [0.3, 1.5]], 0.2 * robot.velocity, robot.acceleration)
    switched = switch(curve, 1.0, motion, 0.2 * robot.velocity, robot.acceleration, checker)
    assert switched.blended
    assert (extremes(*played(switched.trajectory), 1) <= 0.2 * robot.velocity * (1 + 3e-3)).all()


def test_bad_arguments_are_named():
    robot, _ = slides()
    checker = CollisionChecker(robot, CollisionWorld(), "cpu")
    first, second = (timed(np.array(path), checker) for path in ([[0, 0], [1, 1]], [[0.5, 1], [0, 1]]))
    limits = robot.velocity, robot.acceleration
    with pytest.raises(SettingsError, match="begins 0.5 from the end"):
        switch(Spline.of(first), 0.5, second, *limits, checker)
    with pytest.raises(SettingsError, match="time is nan"):
        switch(Spline.of(first), np.nan, timed(np.array([[1.0, 1.0], [0, 0]]), checker), *limits, checker)
    with pytest.raises(SettingsError, match="CollisionChecker"):
        switch(Spline.of(first), 0.5, second, *limits, None)
    with pytest.raises(SettingsError, match="velocity"):
        switch(Spline.of(first), 0.5, second, [1.0], limits[1], checker)


def test_jerk_is_bounded_where_the_robot_has_limits_of_it():
    """A tight limit leaves slower connections, or the stop; what is played keeps it, by the roots, where it blends."""
    model = maker_of("panda").model
    checker = CollisionChecker(model, CollisionWorld(), "cpu")
    middle, end = READY.copy(), READY.copy()
    middle[0] += 1.5
    first = timed(np.array([READY, middle]), checker)
    time = 0.4 * first.duration
    curve = braking(first, time, model)
    q = curve.positions[-1]
    end[[0, 3]] = q[0], q[3] + 0.9
    motion = timed(np.array([q, np.r_[q[:3], end[3], q[4:]]]), checker)
    asked = curve, time, motion, model.velocity, model.acceleration, checker
    free = switch(*asked)
    assert free.blended

    def jerks(trajectory):
        """(dof,) greatest jerk before it is on the next motion."""
        later = trajectory.duration - motion.duration
        off = np.abs(trajectory.positions - motion.at(trajectory.times - later)[0]).max(axis=1)
        on = int(np.argmax((off < 1e-9) & (trajectory.times > max(later, 0.0))))
        c, T = played(trajectory)
        return extremes(c[:, :on], T[:on], 3)

    taken, durations = jerks(free.trajectory).max(), [free.trajectory.duration]
    for share in (0.7, 0.4, 0.2, 1e-3):
        switched = switch(*asked, jerk=np.full(model.dof, share * taken))
        assert_joined(switched.trajectory, Spline.of(first).at(time), motion.positions[-1], model)
        durations.append(switched.trajectory.duration)
        if switched.blended:
            assert (jerks(switched.trajectory) <= share * taken * (1 + 1e-5)).all()
    assert (np.diff(durations) >= -1e-6).all()
    assert not switched.blended  # a thousandth
    infinite = switch(*asked, jerk=np.full(model.dof, np.inf))
    assert np.allclose(infinite.trajectory.positions, free.trajectory.positions)
