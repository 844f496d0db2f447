"""Jacobian and inverse kinematics of a RobotModel, batched, float64, on the host.

Inverse kinematics: Levenberg-Marquardt from many starts at once, damped by the residual itself (Sugihara,
"Solvability-Unconcerned Inverse Kinematics by the Levenberg-Marquardt Method", IEEE T-RO 2011, eq. 22), which
needs no tuning near singular configurations; a joint at a limit is held where a step would push it beyond.
"""

import time

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from ...errors import ConfigurationError, GpuPlannersError
from ...ranges import GREATEST_LENGTH
from .model import RobotModel, attached

POSITION_TOLERANCE = 1e-4  # m
ROTATION_TOLERANCE = 1e-3  # rad
CONVERGED = 1e-7  # residual (m and rad together) at which a start stops being improved
LEAST_DAMPING = 1e-6
ROWS = 1024  # configurations that are improved at once; an iteration of them takes about 10 ms


def jacobian(robot: RobotModel, link: str, q: ArrayLike) -> np.ndarray:
    """(N, 6, dof) geometric Jacobian of a link's origin in the root frame: linear rows (m/s), then angular (rad/s).

    q: (N, dof) or (dof,), rad or m
    """
    return _link_jacobian(robot, robot.link_index(link), robot.frame_poses(q))[1]


def _link_jacobian(robot, link, poses):
    """(N, 4, 4) pose of a link and its (N, 6, dof) Jacobian, from the frames' poses (N, F, 4, 4)."""
    f = robot.link_frame[link]
    T_root_link = attached(poses, f, robot.T_frame_link[link])
    columns = np.zeros((len(poses), 6, robot.dof))
    while f >= 0:
        frame = robot.frames[f]
        axis, column = poses[:, f, :3, 2], columns[:, :, frame["joint"]]  # a view: followers add to their leader
        if frame["prismatic"]:
            column[:, :3] += frame["multiplier"] * axis
        else:
            column[:, :3] += frame["multiplier"] * np.cross(axis, T_root_link[:, :3, 3] - poses[:, f, :3, 3])
            column[:, 3:] += frame["multiplier"] * axis
        f = frame["parent"]
    return T_root_link, columns


def inverse_kinematics(
    robot: RobotModel,
    link: str,
    T_root_link: ArrayLike,
    seed_q: ArrayLike | None = None,
    count: int = 8,
    rng_seed: int = 0,
    starts: int = 256,
    iterations: int = 100,
    distinct: float = 0.05,
    time_limit_s: float = np.inf,
) -> np.ndarray | list[np.ndarray]:
    """Configurations that put a link at a pose, inside the limits: (K, dof), K <= count; (0, dof) when none was found.

    T_root_link: (4, 4) wanted pose in the root frame, metres; or (G, 4, 4) for a list of G answers
    seed_q: (dof,) configuration to start from and to sort the solutions by (nearest first); default: mid-range
    starts: how many starting configurations are tried, seed_q and random ones; repeatable for an rng_seed
    distinct: rad or m by which two solutions must differ in some joint
    time_limit_s: seconds, checked between iterations; the answer is what was found by then. The poses share the time:
        each is tried from as many starts as the others
    Each solution is within 1e-4 m and 1e-3 rad of the pose. Collisions are not checked.
    Raises GpuPlannersError for a pose that is not rigid or a seed that is not a configuration.
    """
    until = time.monotonic() + time_limit_s
    goals = _goal_poses(link, T_root_link)
    index = robot.link_index(link)
    rng = np.random.default_rng(rng_seed)
    first = (robot.lower + robot.upper) / 2 if seed_q is None else robot.as_configurations(seed_q)[0]
    if not np.isfinite(first).all():
        raise ConfigurationError(f"seed_q must be finite, got {first.tolist()}")
    q = np.concatenate([first[None], rng.uniform(robot.lower, robot.upper, (starts - 1, robot.dof))])
    q = np.clip(q, *_bounds(robot))
    found: list[list[np.ndarray]] = [[] for _ in goals]
    some = max(1, ROWS // len(goals))
    for k in range(0, starts, some):
        part = q[k : k + some]
        good, of_goal = _improved(
            robot, index, np.repeat(goals, len(part), axis=0), np.tile(part, (len(goals), 1)), iterations, until
        )
        for g in range(len(goals)):
            found[g].append(good[of_goal // len(part) == g])
        if time.monotonic() > until:
            break
    answers = [_nearest(robot, np.concatenate(rows), first, count, distinct) for rows in found]
    return answers[0] if np.ndim(T_root_link) == 2 else answers


def _goal_poses(link, T_root_link):
    """(G, 4, 4) float64 of one or several poses; GpuPlannersError where one is not rigid, or far away."""
    T = np.array(T_root_link, dtype=np.float64)
    T = T[None] if T.ndim == 2 else T
    if (
        T.ndim != 3
        or T.shape[1:] != (4, 4)
        or not len(T)
        or not np.isfinite(T).all()
        or np.abs(T[:, :3, :3] @ T[:, :3, :3].transpose(0, 2, 1) - np.eye(3)).max() > 1e-4
        or (np.linalg.det(T[:, :3, :3]) < 0).any()
        or np.abs(T[:, :3, 3]).max() > GREATEST_LENGTH
    ):
        raise GpuPlannersError(
            f"the goal pose of link '{link}' must be a finite rigid transform of shape (4, 4) at most "
            f"{GREATEST_LENGTH:g} m away"
        )
    return T


def _improved(robot, link, T_root_goals, q, iterations, until):
    """Lead configurations q (N, dof) to their goals (N, 4, 4); -> (K, dof) that reach them, and their rows (K,)."""
    unfinished = np.arange(len(q))
    for _ in range(iterations):
        residual, J = _residual(robot, link, T_root_goals[unfinished], q[unfinished])
        improve = np.linalg.norm(residual, axis=1) > CONVERGED
        if not improve.any():
            break
        unfinished, residual, J = unfinished[improve], residual[improve], J[improve]
        q[unfinished] = _step(robot, q[unfinished], residual, J)
        if time.monotonic() > until:
            break
    turns = robot.continuous[None] & (np.abs(q) > np.pi)
    q = np.where(turns, (q + np.pi) % (2 * np.pi) - np.pi, q)
    residual, _ = _residual(robot, link, T_root_goals, q)
    good = (np.linalg.norm(residual[:, :3], axis=1) < POSITION_TOLERANCE) & (
        np.linalg.norm(residual[:, 3:], axis=1) < ROTATION_TOLERANCE
    )
    return q[good], np.flatnonzero(good)


def _residual(robot, link, T_root_goals, q):
    """-> (N, 6) steps to the goals (N, 4, 4), metres and rotation vector in the root frame; (N, 6, dof) Jacobian."""
    T_root_link, J = _link_jacobian(robot, link, robot.frame_poses(q))
    turn = T_root_goals[:, :3, :3] @ T_root_link[:, :3, :3].transpose(0, 2, 1)
    shift = T_root_goals[:, :3, 3] - T_root_link[:, :3, 3]
    return np.concatenate([shift, Rotation.from_matrix(turn).as_rotvec()], axis=1), J


def _step(robot, q, residual, J):
    """(N, dof) each start after one damped step, kept inside the limits."""
    lower, upper = _bounds(robot)
    damping = (0.5 * (residual**2).sum(axis=1) + LEAST_DAMPING)[:, None, None] * np.eye(robot.dof)
    for _ in range(2):  # the second time without the joints that the first step pushes out of their limits
        gradient = np.einsum("nij,ni->nj", J, residual)
        step = np.linalg.solve(J.transpose(0, 2, 1) @ J + damping, gradient[:, :, None])[:, :, 0]
        held = ((q <= lower) & (step < 0)) | ((q >= upper) & (step > 0))
        if not held.any():
            break
        J = np.where(held[:, None, :], 0.0, J)
    return np.clip(q + step, lower, upper)


def _bounds(robot):
    """Lower and upper limits (dof,) while iterating: continuous joints have none."""
    return np.where(robot.continuous, -np.inf, robot.lower), np.where(robot.continuous, np.inf, robot.upper)


def _difference(robot, q, other):
    """q - other (N, dof), continuous joints the short way round."""
    difference = q - other
    return np.where(robot.continuous, (difference + np.pi) % (2 * np.pi) - np.pi, difference)


def _nearest(robot, q, seed, count, distance):
    """At most `count` of q (N, dof), nearest to the seed first, each over `distance` from the others in some joint."""
    chosen = []
    for row in q[np.argsort(np.linalg.norm(_difference(robot, q, seed), axis=1), kind="stable")]:
        if len(chosen) == count:
            break
        if not chosen or np.abs(_difference(robot, np.array(chosen), row)).max(axis=1).min() > distance:
            chosen.append(row)
    return np.array(chosen).reshape(-1, robot.dof)
