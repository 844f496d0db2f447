"""Collision-free configurations of a goal region: joints drawn from their bands, links placed by inverse kinematics."""

import math
import time
from dataclasses import dataclass, field

import numpy as np

from ...arm import CollisionChecker, RobotModel
from ...errors import RobotDescriptionError
from ..arm import codes
from ..common.request_error import RequestError
from .constraints import Region
from .regions import LEAST

ROUNDS = 1, 8, 32, 64  # poses drawn from a region, each round: the first one is its centre
DRAWN = 256  # configurations drawn from bands of joints
DISTINCT = 0.05  # rad or m by which two goals of a region differ in some joint
FINE = 1e-3  # m and rad: a region within these about its centre is given up when the centre is
TRIED = 4  # times as many solutions are looked for as are used: the nearest of them lead to shorter motions


@dataclass
class Judge:
    """What inverse kinematics asks whether a configuration is a solution: in the region, and free of collision.

    checker: None: collisions do not count; colliding: (dof,) one that is in the region, but collides
    outside: parts of the region, in words, that some configuration did not satisfy
    """

    robot: RobotModel
    region: Region
    checker: CollisionChecker | None
    colliding: np.ndarray | None = None
    outside: set[str] = field(default_factory=set)

    def configurations_valid(self, q: np.ndarray) -> np.ndarray:
        """(N, dof) -> (N,) bool."""
        within = self.region.excesses(self.robot, q) <= LEAST
        valid = np.array(np.all(within, axis=1))
        if not valid.all() and self.region.names:
            self.outside |= {name for name, bad in zip(self.region.names, ~np.all(within, axis=0), strict=True) if bad}
        if self.checker is not None and valid.any():
            free = np.asarray(self.checker.configurations_valid(q))
            if (valid & ~free).any():
                self.colliding = np.array(q[np.argmax(valid & ~free)])
            valid &= free
        return valid


def goals_in(
    region: Region, checker: CollisionChecker, start: np.ndarray, count: int, until: float, seed: int
) -> np.ndarray:
    """(K, dof) distinct free configurations of a region, nearest to the start first: at least one, at most `count`.

    until: time.monotonic() when the search ends
    RequestError with GOAL_IN_COLLISION, NO_IK_SOLUTION, GOAL_CONSTRAINTS_VIOLATED, TIMED_OUT, INVALID_LINK_NAME.
    """
    judge, rng = Judge(checker.robot, region, checker), np.random.default_rng(seed % 2**63)
    if not region.links:
        found = _from_bands(region, judge, start, rng)
    else:
        found = np.zeros((0, checker.robot.dof))
        for poses in ROUNDS:
            found = np.concatenate([found, _placed(region, judge, start, count, poses, until, rng)])
            if len(found) >= count or time.monotonic() > until or (poses == 1 and _is_fine(region)):
                break
    if not len(found):
        raise _none(region, judge, until)
    return _distinct(found, start, count)


def _from_bands(region, judge, start, rng):
    robot = judge.robot
    lower, upper, middle = robot.lower.copy(), robot.upper.copy(), np.clip(start, robot.lower, robot.upper)
    for band in region.joints:
        j = band.joint
        if robot.continuous[j]:
            lower[j], upper[j], middle[j] = band.lower, band.upper, band.position
        else:
            lower[j], upper[j] = max(lower[j], band.lower), max(min(upper[j], band.upper), max(lower[j], band.lower))
            middle[j] = min(max(band.position, lower[j]), upper[j])
    free = np.setdiff1d(np.arange(robot.dof), [band.joint for band in region.joints])
    q = rng.uniform(lower, upper, (DRAWN, robot.dof))
    q[: DRAWN // 2, free] = middle[free]  # half of them: joints that nothing is asked of stay
    q[0] = middle
    q = np.where(robot.continuous, (q + np.pi) % (2 * np.pi) - np.pi, q)
    return q[judge.configurations_valid(q)]


def _placed(region, judge, start, count, poses, until, rng):
    """(K, dof), link after link: the search for a later one starts where the earlier ones are placed."""
    robot, seeds = judge.robot, start[None]
    for number, link in enumerate(region.links):
        last = number == len(region.links) - 1
        one = region.of_link(link)
        here = judge if last else Judge(robot, one, None)
        target, options = _targets(one, robot, link, seeds[0], poses, rng)
        left = until - time.monotonic()
        if left <= 0:
            return np.zeros((0, robot.dof))
        targets, firsts = np.repeat(target, len(seeds), axis=0), np.tile(seeds, (len(target), 1))
        try:
            found = robot.inverse_kinematics(
                targets, here, link=link, seed_q=firsts, solutions=TRIED * count, time_limit_s=left, **options
            )
        except RobotDescriptionError as error:
            raise RequestError(codes.INVALID_LINK_NAME, f"{region.what}: {error}") from error
        seeds = np.concatenate([solutions.q for solutions in found])
        if not last:
            seeds = _distinct(seeds, start, count)
        if not len(seeds):
            break
    return seeds


def _targets(region, robot, link, seed_q, poses, rng):
    """(poses, 4, 4) wanted poses of a link, and what inverse kinematics takes beside them."""
    T = np.broadcast_to(np.eye(4), (poses, 4, 4)).copy()
    options = {"position_tolerance": 1e-6, "orientation_tolerance": 1e-6}
    if region.orientations:
        turned = region.orientations[0]
        T[:, :3, :3] = turned.sample(rng, poses)
        options["orientation_tolerance"] = _within(turned.tolerance.min(), 1e-2)
    if not region.positions:
        T[:, :3, 3] = robot.link_poses(np.clip(seed_q, robot.lower, robot.upper))[link][0, :3, 3]
        return T, options | {"position_tolerance": math.inf}
    placed = region.positions[0]
    body = placed.bodies[0]
    points = body.sample(rng, poses)
    points[0] = body.centre
    for i in range(1, poses):
        other = placed.bodies[i % len(placed.bodies)]
        points[i] = other.sample(rng, 1)[0] if len(placed.bodies) > 1 else points[i]
    options["position_tolerance"] = _within(body.thinness, 1e-3)
    if not region.orientations:
        if not placed.offset.any():
            T[:, :3, 3] = points
            return T, options | {"position_only": True}
        T[:, :3, :3] = np.linalg.qr(rng.normal(size=(poses, 3, 3)))[0]
        T[:, :3, 0] *= np.linalg.det(T[:, :3, :3])[:, None]
        T[0, :3, :3] = robot.link_poses(np.clip(seed_q, robot.lower, robot.upper))[link][0, :3, :3]
    T[:, :3, 3] = points - T[:, :3, :3] @ placed.offset
    return T, options


def _within(tolerance, most):
    """A tolerance of inverse kinematics that stays well inside that of the region."""
    return min(max(float(tolerance) / 4, 1e-7), most)


def _is_fine(region):
    """Is every link's place all but a point? Then other points of the region do no better than its centre."""
    return (
        all(len(part.bodies) == 1 and part.bodies[0].half.max() <= FINE for part in region.positions)
        and all(part.tolerance.max() <= FINE for part in region.orientations)
        and all(len(of.positions) and len(of.orientations) for of in map(region.of_link, region.links))
    )


def _distinct(q, start, count):
    kept: list[np.ndarray] = []
    for row in q[np.argsort(np.linalg.norm(q - start, axis=1), kind="stable")]:
        if all(np.abs(row - other).max() > DISTINCT for other in kept):
            kept.append(row)
        if len(kept) == count:
            break
    return np.array(kept).reshape(-1, q.shape[1])


def _none(region, judge, until):
    """RequestError that says why a region has no goal."""
    if judge.colliding is not None:
        first, second = judge.checker.colliding_pairs(judge.colliding)[0]
        return RequestError(
            codes.GOAL_IN_COLLISION,
            f"{region.what}: all configurations found collide; in one of them '{first}' meets '{second}'",
        )
    if judge.outside and (len(region.parts) > 1):
        return RequestError(
            codes.GOAL_CONSTRAINTS_VIOLATED,
            f"{region.what}: no configuration found satisfies all constraints at once; violated: "
            + ", ".join(sorted(judge.outside)),
        )
    if time.monotonic() > until:
        return RequestError(
            codes.TIMED_OUT, f"{region.what}: no configuration was found in half of the time, which goals may take"
        )
    links = ", ".join(f"'{link}'" for link in region.links)
    return RequestError(
        codes.NO_IK_SOLUTION, f"{region.what}: no joint configuration inside the limits places link {links} there"
    )
