"""Configurations brought into a region of constraints, from many starts at once.

For what inverse kinematics of one link cannot ask: a tool that may turn about one axis, few joints, several links.
Levenberg-Marquardt over what each constraint lacks, with derivatives by differences (Nocedal and Wright, Numerical
Optimization, section 10.3). A part of the region that is satisfied asks for nothing.
"""

import time

import numpy as np

from ...arm import RobotModel
from .constraints import PositionRegion, Region, nearest_turn

INSIDE = 0.9  # part of a tolerance that is aimed at, so that rounding does not matter
STEP = 1e-6  # rad or m, of differences
ITERATIONS = 60
DAMPING = 1e-3, 1e-8, 1e3  # at first, least, most


def project(region: Region, robot: RobotModel, q: np.ndarray, rng: np.random.Generator, until: float) -> np.ndarray:
    """(K, dof) of the configurations q (N, dof) that could be moved into the region, inside the limits.

    until: time.monotonic() when the search ends
    """
    q = np.array(q)
    targets = [_drawn(part, len(q), rng) for part in region.positions]
    damping = np.full(len(q), DAMPING[0])
    residuals = _lacking(region, robot, q, targets)
    for _ in range(ITERATIONS):
        going = np.flatnonzero(np.abs(residuals).max(axis=1) > 0)
        if not len(going) or time.monotonic() > until:
            break
        here, left, some = q[going], residuals[going], [points[going] for points in targets]
        J = _derivatives(region, robot, here, some) * (left != 0)[:, :, None]
        system = J.transpose(0, 2, 1) @ J + damping[going, None, None] * np.eye(robot.dof)
        move = -np.linalg.solve(system, J.transpose(0, 2, 1) @ left[:, :, None])[:, :, 0]
        moved = here + move
        moved = np.where(robot.continuous, moved, np.clip(moved, robot.lower, robot.upper))
        after = _lacking(region, robot, moved, some)
        better = (after**2).sum(axis=1) < (left**2).sum(axis=1)
        q[going[better]], residuals[going[better]] = moved[better], after[better]
        damping[going] = np.clip(damping[going] * np.where(better, 0.3, 4.0), DAMPING[1], DAMPING[2])
    q = np.where(robot.continuous, nearest_turn(q), q)
    return q[region.satisfied(robot, q)]


def _drawn(part: PositionRegion, count, rng):
    """(count, 3) points of a position region, spread over its volumes."""
    chosen = rng.integers(len(part.volumes), size=count)
    return np.stack([part.volumes[i].sample(rng, 1)[0] for i in chosen]).reshape(count, 3)


def _lacking(region, robot, q, targets):
    """(N, R) _residuals, 0 for points that are in their volumes."""
    residuals, first = _residuals(region, robot, q, targets), len(region.joints)
    for number, part in enumerate(region.positions):
        residuals[part.contains(part.points(robot, q)), first + 3 * number : first + 3 * number + 3] = 0.0
    return residuals


def _derivatives(region, robot, q, targets):
    """(N, R, dof) of _residuals."""
    here = _residuals(region, robot, q, targets)
    steps = STEP * np.eye(robot.dof)
    return np.stack([_residuals(region, robot, q + step, targets) - here for step in steps], axis=2) / STEP


def _residuals(region, robot, q, targets):
    """(N, R) what joints and links lack of their bands and tolerances, and points of `targets`; m and rad."""
    columns = [band.error(robot, q) for band in region.joints]
    columns += [part.points(robot, q) - points for part, points in zip(region.positions, targets, strict=True)]
    columns += [part.error(robot, q, INSIDE) for part in region.orientations]
    return np.concatenate(columns, axis=1)
