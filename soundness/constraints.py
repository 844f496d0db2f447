"""Constraints: what is proven to be kept is kept at all places looked at, by pinocchio's poses, and so is what is
planned, which coal finds free."""

import numpy as np
from scipy.spatial.transform import Rotation

from gpu_planners.arm.constraints import JointRange, Orientation, Position, RelativePose, Tilt, Volume, Within, all_of
from gpu_planners.arm.planners import rrt_connect
from gpu_planners.errors import RobotDescriptionError

from .harness import Attack, Skipped, numbers
from .obstacles import random_obstacle
from .paths import check as check_path

MOTIONS = 40
PLACES = np.linspace(0, 1, 33)
SPACING = 0.01  # rad or m between places of a planned path
HALVINGS = 14  # of a way, to where it exceeds a rule
ROUNDING = 1e-7  # m or rad: more is wrong; paths are float32
TIME_LIMIT = 2.0  # seconds
CLEAR = 1e-6  # m or rad: what exceeds a constraint by more, or keeps it by more, must be told so
KINDS = ("turn", "euler", "tilt", "box", "ball", "cylinder", "cone", "two", "joint", "pair")


def case(run, rng, number, tally):
    rig = run.rig(number)
    robot = rig.robot
    rig.world.clear()
    q = rig.configurations(rng, 16)
    if not len(q):
        raise Skipped(f"{rig.name}: no configuration without self-collision was drawn")
    q = q[0]
    other = robot.link_poses(q + 0.1)
    moved = [name for name, T in robot.link_poses(q).items() if np.abs(T - other[name]).max() > 1e-3]
    link = str(rng.choice(moved))
    kinds = rng.choice(KINDS, 2 if rng.random() < 0.3 else 1, replace=False)
    parts = [_rule(rig, rng, kind, link, q, moved) for kind in kinds]
    rule = parts[0][0] if len(parts) == 1 else all_of([part[0] for part in parts])

    def exceeds(rows):
        T = rig.oracle.link_poses(rows, link)
        return np.max([part[1](T, rows) for part in parts], axis=0)

    told = f"{rig.name}, {link}, {' and '.join(part[2] for part in parts)}"
    spread = np.minimum(10 ** rng.uniform(-2.0, 0.0), 0.2 * rig.spread)
    a, b = q + rng.normal(size=(2, MOTIONS, robot.dof)) * spread
    for ends in (a, b):
        ends[::2] = _to_edge(q, q + 3 * (ends[::2] - q), exceeds)
    places = (a[:, None] + PLACES[:, None] * (b - a)[:, None]).reshape(-1, robot.dof)
    every = exceeds(places)
    worst = every.reshape(MOTIONS, -1).max(axis=1)
    wrong = np.flatnonzero((rule.satisfied(places) != (every < 0)) & (np.abs(every) > CLEAR))
    told_so = [
        f"satisfied is {every[i] > 0} where it is exceeded by {every[i]:.3g}: {numbers(places[i])}" for i in wrong
    ]
    tally.check(not told_so, f"{told_so[:1]}: {told}")
    proven = rule.kept(a, b)
    tally.refused += int((~proven & (worst < 0)).sum())
    for i in np.flatnonzero(proven):
        text = f"a motion proven to keep it exceeds it by {worst[i]:.3g}: {told}"
        tally.check(worst[i] <= ROUNDING, f"{text}, {numbers(a[i])} -> {numbers(b[i])}")
    _plan(rig, rng, tally, q, rule, exceeds, told)


def _to_edge(q, ends, exceeds):
    """(N, dof) places on the ways from q, which keeps a rule, to its ends, just before it is exceeded: motions between
    them are hard to judge"""
    low, high = np.zeros((len(ends), 1)), np.ones((len(ends), 1))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        good = (exceeds(q + middle * (ends - q)) < 0)[:, None]
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return q + low * (ends - q)


def _plan(rig, rng, tally, q, rule, exceeds, told):
    robot, obstacles = rig.robot, []
    for i in range(rng.integers(0, 4)):
        away = rng.normal(size=3) * [0.5, 0.5, 0.4] + [0, 0, 0.3]
        obstacles.append(random_obstacle(rng, 0.03, 0.3, kinds=("box", "sphere", "cylinder")).at(away))
        obstacles[-1].add_to(rig.world, str(i))
    near = q + rng.normal(size=(64, robot.dof)) * np.minimum(1.0, 0.3 * rig.spread)
    goals, found = rule.project(np.clip(near, robot.lower, robot.upper))
    tally.check((exceeds(goals[found]) <= ROUNDING).all(), f"a projection exceeds it: {told}")
    ends = np.concatenate([q[None], goals[found]])
    ends = ends[rule.satisfied(ends) & rig.checkers[rig.devices[0]].configurations_valid(ends)]
    if len(ends) < 2 or (ends[0] != q).any():
        rig.world.clear()
        return
    settings, seed = rrt_connect.Settings(time_limit_s=TIME_LIMIT), int(rng.integers(1 << 31))
    for device, checker in rig.checkers.items():
        result = rrt_connect.solve(q, ends[1:3], checker, settings, seed=seed, constraints=rule)
        tally.checks += 1
        if not result.solved:
            continue
        check_path(rig, tally, f"rrt_connect on {device}, {told}", result, q, ends[1:3], obstacles)
        for before, after in zip(result.path[:-1], result.path[1:]):
            share = np.linspace(0, 1, int(np.clip(np.abs(after - before).max() / SPACING, 9, 200)))[:, None]
            worst = exceeds(before + share * (after - before)).max()
            text = f"a path on {device} exceeds its constraint by {worst:.3g}: {told}"
            tally.check(worst <= ROUNDING, f"{text}, {numbers(before)} -> {numbers(after)}")
    rig.world.clear()


def _rule(rig, rng, kind, link, q, links):
    """-> (Constraint that q keeps, what exceeds it by poses of the link (N, 4, 4) and configurations (N, dof), text)"""
    if kind == "pair":
        found = _pair(rig, rng, link, q, links)
        if found is not None:
            return found
        kind = "turn"
    robot, T = rig.robot, rig.oracle.link_poses(q[None], link)[0]
    turned = T[:3, :3] @ Rotation.from_rotvec(rng.normal(size=3) * 0.02).as_matrix()
    point, pose = rng.normal(size=3) * 0.1, T.copy()
    pose[:3, :3] = Rotation.random(random_state=int(rng.integers(1 << 31))).as_matrix()
    pose[:3, 3] += T[:3, :3] @ point

    def at(T):
        return (T[:, :3, :3] @ point + T[:, :3, 3] - pose[:3, 3]) @ pose[:3, :3]

    if kind in ("turn", "euler"):
        allowed = np.where(rng.random(3) < 0.3, 4.0, 10 ** rng.uniform(-1.0, 0.3, 3))
        allowed[rng.integers(3)] = 10 ** rng.uniform(-1.0, 0.3)
        angles = "vector" if kind == "turn" else "euler"

        def turn(T, rows):
            R = Rotation.from_matrix(turned.T @ T[:, :3, :3])
            error = R.as_rotvec() if kind == "turn" else R.as_euler("XYZ")
            return (np.abs(error) - allowed)[:, allowed < np.pi].max(axis=1)

        rule = Orientation(robot, link, turned, allowed, angles)
        return rule, turn, f"{angles} of {numbers(turned)} within {numbers(allowed)}"
    if kind == "tilt":
        most, axis = rng.uniform(0.1, 3.0), np.eye(3)[rng.integers(3)]
        wanted = turned @ axis
        error = lambda T, rows: np.arccos(np.clip(T[:, :3, :3] @ axis @ wanted, -1, 1)) - most  # noqa: E731
        return Tilt(robot, link, axis, wanted, most), error, f"tilt of {numbers(axis)} to {numbers(wanted)} by {most}"
    if kind == "joint":
        k, less, more = int(rng.integers(robot.dof)), *rng.uniform(0.02, 0.5, 2)
        rule = JointRange(robot, {robot.joint_names[k]: (q[k] - less, q[k] + more)})
        return rule, lambda T, rows: np.maximum(q[k] - less - rows[:, k], rows[:, k] - q[k] - more), f"joint {k}"
    text = f"point {numbers(point)} in a {kind} at {numbers(pose)}"
    if kind == "box":
        low, high = -(10 ** rng.uniform(-2.0, 0.0, 3)), 10 ** rng.uniform(-2.0, 0.0, 3)
        low, high = np.where(rng.random(3) < 0.2, -np.inf, low), np.where(rng.random(3) < 0.2, np.inf, high)
        high[0] = min(high[0], 0.5)
        rule = Position(robot, link, point, low, high, pose)
        return rule, lambda T, rows: np.maximum(low - at(T), at(T) - high).max(axis=1), f"{text}: {low}, {high}"
    radius, height = 10 ** rng.uniform(-1.5, 0.0, 2)
    if kind == "ball":
        rule = Within(robot, link, point, [Volume.sphere(radius, pose)])
        return rule, lambda T, rows: np.linalg.norm(at(T), axis=1) - radius, f"{text}, {radius}"

    def cylinder(T, rows):
        return np.maximum(np.hypot(at(T)[:, 0], at(T)[:, 1]) - radius, np.abs(at(T)[:, 2]) - height / 2)

    def cone(T, rows):
        across, up = np.hypot(at(T)[:, 0], at(T)[:, 1]), at(T)[:, 2]
        side = (height * across + radius * (up - height / 2)) / np.hypot(radius, height)
        return np.maximum(side, -height / 2 - up)

    text = f"{text}, {radius}, {height}"
    if kind == "cylinder":
        return Within(robot, link, point, [Volume.cylinder(radius, height, pose)]), cylinder, text
    if kind == "cone":
        return Within(robot, link, point, [Volume.cone(radius, height, pose)]), cone, text
    volumes = [Volume.cone(radius, height, pose), Volume.cylinder(radius / 2, 2 * height, pose)]

    def either(T, rows):
        both = np.hypot(at(T)[:, 0], at(T)[:, 1]) - radius / 2, np.abs(at(T)[:, 2]) - height
        return np.minimum(cone(T, rows), np.maximum(*both))

    return Within(robot, link, point, volumes), either, text


def _pair(rig, rng, link, q, links):
    """As _rule, of another link in the frame of this one; None where no joint moves them apart."""
    other = str(rng.choice(links))
    T, there = (rig.oracle.link_poses(q[None], each)[0] for each in (link, other))
    position, rotation = 10 ** rng.uniform(-3.0, -0.5), 10 ** rng.uniform(-2.0, 0.3)
    W = np.linalg.inv(T) @ there
    W[:3, 3] += rng.uniform(-0.5, 0.5, 3) * position
    W[:3, :3] = W[:3, :3] @ Rotation.from_rotvec(rng.uniform(-0.5, 0.5, 3) * rotation).as_matrix()

    def apart(T, rows):
        seen = np.linalg.inv(T) @ rig.oracle.link_poses(rows, other)
        turned = Rotation.from_matrix(W[:3, :3].T @ seen[:, :3, :3]).magnitude() - rotation
        return np.maximum(np.linalg.norm(seen[:, :3, 3] - W[:3, 3], axis=1) - position, turned)

    try:
        rule = RelativePose(rig.robot, link, other, W, position, rotation)
    except RobotDescriptionError:
        return None
    return rule, apart, f"{other} at {numbers(W)} within {position} m, {rotation} rad"


ATTACK = Attack("constraints", "constraints: proofs, and plans that keep them", case)
