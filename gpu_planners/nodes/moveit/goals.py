"""Collision-free configurations of a goal region, those first that a request asks for most of all.

Joints are drawn from their bands, at first the goal's own values and then what is near them. One link is placed by
inverse kinematics at poses drawn from the region, the centre first; so are several that no joint moves together. What
that cannot do, other links or tolerances that differ much, is left to `project`.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...arm import CollisionChecker, RobotModel
from ...arm.robot.inverse_kinematics import nearest_turn
from ...arm.robot.tip import Tip
from ...errors import RobotDescriptionError
from ..arm import codes
from ..arm.plan_service import TRIED
from ..common.request_error import RequestError, answered_with
from .constraints import PositionRegion, Region, link_poses
from .shapes import LEAST

ROUNDS = 1, 16  # poses drawn from a region, each round: the first one is its centre
AT_ONCE = 16  # solutions for each of several links
DRAWN = 256  # configurations drawn: from bands of joints, and as starts of projections
CLOSER = np.linspace(0.05, 0.95, 19)  # parts of the ways from free configurations to values that are not
CLOSEST = 8  # configurations whose ways are looked at
DISTINCT = 0.05  # rad or m by which two goals of a region differ in some joint
EXACT = 1e-6  # m and rad: of a pose of a link that is asked for itself
FINE = 1e-3  # m and rad: a region within these about its centre is given up when the centre is


@dataclass
class Judge:
    """Tells inverse kinematics whether a configuration is a solution: in the region, and free of collision.

    checker: None: collisions do not count
    colliding: (dof,) the last configuration that was in the region and collided, None before there is one
    outside: names of the parts of the region that some configuration did not satisfy
    """

    robot: RobotModel
    region: Region
    checker: CollisionChecker | None
    colliding: np.ndarray | None = None
    outside: set[str] = field(default_factory=set)

    def configurations_valid(self, q: np.ndarray) -> np.ndarray:
        """(N, dof) -> (N,) bool."""
        beyond = self.region.excesses(self.robot, q) > LEAST
        valid = np.asarray(~beyond.any(axis=1))
        self.outside |= {self.region.parts[k].name for k in np.flatnonzero(beyond.any(axis=0))}
        if self.checker is not None and valid.any():
            free = np.asarray(self.checker.configurations_valid(q))
            if (valid & ~free).any():
                self.colliding = np.array(q[np.argmax(valid & ~free)])
            valid &= free
        return valid

    def none_found(self, timed_out: bool, *links: str) -> RequestError:
        named = ", ".join(f"'{link}'" for link in links)
        code, why = codes.NO_IK_SOLUTION, f"no joint configuration inside the limits places link {named} there"
        if self.colliding is not None and self.checker is not None:
            first, second = self.checker.colliding_pairs(self.colliding)[0]
            met = f"in one of them '{first}' meets '{second}'"
            code, why = codes.GOAL_IN_COLLISION, f"all joint configurations found collide; {met}"
        elif self.outside and len(self.region.parts) > 1:
            code, why = codes.GOAL_CONSTRAINTS_VIOLATED, "no configuration found satisfies all constraints at once"
            why += f"; violated: {', '.join(sorted(self.outside))}"
        elif timed_out:
            code, why = codes.TIMED_OUT, "no configuration was found in the time that goals may take"
        return RequestError(code, f"{self.region.what}: {why}")


def placed_at(T: np.ndarray, link: str, judge: Judge, seed: np.ndarray, count: int, limit: float) -> np.ndarray:
    """(K, dof) configurations, nearest to the seed (dof,) first, that have a link at T (4, 4), root frame: one or more.

    count: most of them; limit: seconds. RequestError as of Judge.none_found; RobotDescriptionError for a wrong link
    """
    found: Any = judge.robot.inverse_kinematics(
        T,
        judge,
        link=link,
        seed_q=seed,
        solutions=count,
        position_tolerance=EXACT,
        orientation_tolerance=EXACT,
        time_limit_s=limit,
    )
    if not len(found):
        raise judge.none_found(found.timed_out, link)
    return found.q


def goals_in(
    region: Region, checker: CollisionChecker, start: np.ndarray, count: int, until: float, seed: int
) -> tuple[np.ndarray, int]:
    """(K, dof) distinct free configurations of a region, at least one, at most `count`, and how many of them, the first
    ones, a motion should end in rather than in the others.

    Of joints these are the goal's own values, or else what is found nearest to them; of a link's pose what has the link
    at the region's centre, nearest to the start first.

    until: time.monotonic() when the search ends
    RequestError with GOAL_IN_COLLISION, NO_IK_SOLUTION, GOAL_CONSTRAINTS_VIOLATED, TIMED_OUT, INVALID_LINK_NAME.
    """
    for link in region.links:
        if _out_of_reach(region, link, checker.robot, start, until):
            raise Judge(checker.robot, region, None).none_found(False, link)
    judge, rng = Judge(checker.robot, region, checker), np.random.default_rng(seed % 2**63)
    if not region.links:
        found, first = _from_bands(region, judge, start, rng)
    else:
        found = _placed_apart(region, judge, start, count, until, rng)
        first = len(found)
        for poses in ROUNDS if _is_one_pose(region) else ():
            found = np.concatenate([found, _nearest(_placed(region, judge, start, count, poses, until, rng), start)])
            first = len(found) if poses == 1 else first
            if len(found) >= count or (poses == 1 and _is_fine(region)):
                break
        if not len(found) and not (_is_one_pose(region) and _is_fine(region)):
            starts = rng.uniform(judge.robot.lower, judge.robot.upper, (DRAWN, len(start)))
            starts[0] = start
            found = project(region, judge.robot, starts, rng, until)
            found = _nearest(found[judge.configurations_valid(found)], start)
    if not len(found):
        raise judge.none_found(time.monotonic() > until, *region.links)
    return _distinct(found, first or len(found), count)


def _from_bands(region, judge, start, rng):
    """((K, dof), how many of them come first): nearest to the positions of the bands first, then to the start."""
    robot = judge.robot
    lower, upper, middle = robot.lower.copy(), robot.upper.copy(), np.clip(start, robot.lower, robot.upper)
    for band in region.joints:
        j = band.joint
        if robot.continuous[j]:
            lower[j], upper[j], middle[j] = band.lower, band.upper, band.position
        else:
            lower[j] = max(lower[j], band.lower)
            upper[j] = max(min(upper[j], band.upper), lower[j])
            middle[j] = np.clip(band.position, lower[j], upper[j])
    banded = np.isin(np.arange(robot.dof), [band.joint for band in region.joints])
    off = rng.uniform(lower, upper, (DRAWN, robot.dof)) - middle
    off[:, banded] *= rng.random((DRAWN, 1))  # more of them near the middle
    off[: DRAWN // 4, banded] = 0.0
    off[DRAWN // 8 : DRAWN // 2, ~banded] = 0.0  # joints that nothing is asked of stay
    off[0] = 0.0
    off = off[np.argsort(np.linalg.norm(off[:, banded], axis=1), kind="stable")]
    q, off = _free(middle, off, judge)
    if len(q) and off[0, banded].any():  # the goal's own values are not free: on the ways to them
        nearer = CLOSER[:, None, None] * off[:CLOSEST]
        q, off = _free(middle, np.concatenate([*nearer, off]), judge)
    aside, moved = np.linalg.norm(off[:, banded], axis=1), np.linalg.norm(off[:, ~banded], axis=1)
    order = np.lexsort((moved, aside))
    return q[order], int(np.count_nonzero(aside == aside.min(initial=np.inf)))


def _free(middle, off, judge):
    """(configurations that are valid, their rows of `off`) of those that are `off` (N, dof) from the middle (dof,)"""
    q = middle + off
    q = np.where(judge.robot.continuous, nearest_turn(q), q)
    valid = judge.configurations_valid(q)
    return q[valid], off[valid]


def _placed(region, judge, start, count, poses, until, rng):
    """(K, dof) by inverse kinematics of the region's one link."""
    left = until - time.monotonic()
    if left <= 0:
        return np.zeros((0, len(start)))
    targets, options = _targets(region, judge.robot, start, poses, rng)
    with answered_with(codes.INVALID_LINK_NAME, RobotDescriptionError, f"{region.what}: "):
        found = judge.robot.inverse_kinematics(
            targets, judge, link=region.links[0], seed_q=start, solutions=TRIED * count, time_limit_s=left, **options
        )
    return np.concatenate([solutions.q for solutions in found])


def _placed_apart(region, judge, start, count, until, rng):
    """(K, dof) of a region of several links that no joint moves together, such as the tools of two arms: each link by
    inverse kinematics at the centre of its part, and what goes together; nearest to the start first."""
    robot = judge.robot
    parts = [
        Region(region.what, (), _of_link(region.positions, link), _of_link(region.orientations, link))
        for link in region.links
    ]
    moving = [robot.link_frame[robot.link_index(link)] >= 0 for link in region.links]
    if len(parts) < 2 or not all(moving) or not all(map(_is_one_pose, parts)):
        return np.zeros((0, robot.dof))
    moves = [Tip(robot, link).moves for link in region.links]
    if np.sum(moves, axis=0).max() > 1:
        return np.zeros((0, robot.dof))
    alone = [_placed(part, Judge(robot, part, None), start, count, 1, until, rng) for part in parts]
    q = _together(alone, moves, start)
    return q[judge.configurations_valid(q)]


def _together(alone, moves, start):
    """(K, dof), nearest to the start (dof,) first: joints of each of `alone` (N, dof), as its `moves` (dof,) says."""
    q = start[None]
    for one, moved in zip(alone, moves, strict=True):
        pairs = np.repeat(q, len(one), axis=0)
        pairs[:, moved] = np.tile(one, (len(q), 1))[:, moved]
        q = _nearest(pairs, start)[:DRAWN]
    return q


def placed_at_once(T: np.ndarray, links: Sequence[str], judge: Judge, seed: np.ndarray, limit: float) -> np.ndarray:
    """(dof,) near the seed (dof,) that has links at T (L, 4, 4), root frame, which no joint moves together, as the
    tools of two arms.

    limit: seconds
    RequestError as of Judge.none_found, or where a joint moves several; RobotDescriptionError for a wrong link
    """
    robot = judge.robot
    if len(links) == 1:
        return np.asarray(placed_at(T[0], links[0], judge, seed, 1, limit)[0])
    moves = [Tip(robot, link).moves for link in links]
    if np.sum(moves, axis=0).max() > 1:
        joint = robot.joint_names[int(np.sum(moves, axis=0).argmax())]
        text = f"joint '{joint}' moves several of the links {', '.join(links)}; allowed: links of arms of their own"
        raise RequestError(codes.INVALID_LINK_NAME, text)
    until, of_one = time.monotonic() + limit, Judge(robot, Region(judge.region.what), None)
    alone = [
        placed_at(pose, link, of_one, seed, AT_ONCE, max(until - time.monotonic(), 0.0))
        for pose, link in zip(T, links, strict=True)
    ]
    q = _together(alone, moves, seed)
    if not (valid := judge.configurations_valid(q)).any():
        raise judge.none_found(time.monotonic() > until, *links)
    return np.asarray(q[np.argmax(valid)])


def _of_link(parts, link):
    return tuple(part for part in parts if part.link == link)


def _out_of_reach(region, link, robot, start, until):
    """Does inverse kinematics find no place of a link near its part of the region, collisions aside?

    Near means within a ball about the region and the largest turn that it allows: all of the region is near.
    """
    placed = next((part for part in region.positions if part.link == link), None)
    turned = next((part for part in region.orientations if part.link == link), None)
    left = until - time.monotonic()
    if left <= 0 or robot.link_frame[robot.link_index(link)] < 0:
        return False  # the search that follows says what is wrong
    T, turn = np.eye(4), math.inf
    if turned is not None:
        T[:3, :3] = turned.wanted @ turned.R_link_frame.T
        turn = float(turned.tolerance.sum())
    distance = math.inf
    if placed is not None:
        centres = np.array([volume.centre for volume in placed.volumes])
        middle = centres.mean(axis=0)
        T[:3, 3] = middle - T[:3, :3] @ placed.offset
        reaches = [np.linalg.norm(volume.centre - middle) + np.linalg.norm(volume.half) for volume in placed.volumes]
        # turning a link moves its origin
        distance = float(max(reaches)) + min(2.0, turn) * float(np.linalg.norm(placed.offset))
    (found,) = robot.inverse_kinematics(
        T[None],
        link=link,
        seed_q=start,
        solutions=1,
        position_tolerance=max(distance, LEAST),
        orientation_tolerance=max(turn, LEAST),
        time_limit_s=left,
    )
    return not len(found) and not found.timed_out


def _targets(region, robot, start, poses, rng):
    """(poses, 4, 4) wanted poses of the link, and what inverse kinematics takes beside them."""
    T = np.broadcast_to(np.eye(4), (poses, 4, 4)).copy()
    options = {"position_tolerance": math.inf, "orientation_tolerance": math.inf}
    if region.orientations:
        turned = region.orientations[0]
        T[:, :3, :3] = turned.sample(rng, poses)
        options["orientation_tolerance"] = _within(turned.tolerance.min(), 1e-2)
    if region.positions:
        placed = region.positions[0]
        points = np.concatenate([volume.sample(rng, poses) for volume in placed.volumes])
        points = rng.permutation(points)[:poses]
        points[0] = placed.volumes[0].centre
        T[:, :3, 3] = points - T[:, :3, :3] @ placed.offset
        options["position_tolerance"] = _within(min(volume.thinness for volume in placed.volumes), 1e-3)
    else:
        T[:, :3, 3] = link_poses(robot, region.links[0], start[None])[0, :3, 3]
    return T, options


def _is_one_pose(region):
    """Can inverse kinematics ask for it: the pose of one link's frame, its position or its orientation?"""
    return len(region.links) == 1 and (bool(region.orientations) or not region.positions[0].offset.any())


def _within(tolerance, most):
    """A tolerance of inverse kinematics that stays well inside that of the region."""
    return min(max(float(tolerance) / 4, 1e-7), most)


def _is_fine(region):
    """Is the region so small that its other points do no better than its centre?"""
    return (
        all(len(part.volumes) == 1 and part.volumes[0].half.max() <= FINE for part in region.positions)
        and all(part.tolerance.max() <= FINE for part in region.orientations)
        and bool(region.positions and region.orientations)
    )


def _nearest(q, start):
    return q[np.argsort(np.linalg.norm(q - start, axis=1), kind="stable")]


def _distinct(q, first, count):
    """(at most `count` rows of q (K, dof) that differ from those before, how many of them are of the `first` ones)"""
    kept: list[int] = []
    for i, row in enumerate(q):
        if all(np.abs(row - q[other]).max() > DISTINCT for other in kept):
            kept.append(i)
        if len(kept) == count:
            break
    return q[kept], sum(i < first for i in kept)


INSIDE = 0.9  # part of a tolerance that is aimed at, so that rounding does not matter
STEP = 1e-6  # rad or m, of differences
ITERATIONS = 60
DAMPING = 1e-3, 1e-8, 1e3  # at first, least, most
ROUNDING = 1e-12  # least damping by the system's size, which is huge where a difference straddles a flip of angles


def project(region: Region, robot: RobotModel, q: np.ndarray, rng: np.random.Generator, until: float) -> np.ndarray:
    """(K, dof) of the configurations q (N, dof) that could be moved into the region, inside the limits.

    This serves where inverse kinematics of one link cannot: a tool that may turn about one axis, few joints, several
    links. Levenberg-Marquardt minimises by how much each constraint is broken, with derivatives by differences (Nocedal
    and Wright, Numerical Optimization, section 10.3).

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
        system = J.transpose(0, 2, 1) @ J
        least = ROUNDING * np.trace(system, axis1=1, axis2=2)
        system += np.maximum(damping[going], least)[:, None, None] * np.eye(robot.dof)
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
    """(N, R) what _residuals gives, but 0 for points that are in their volumes."""
    residuals, first = _residuals(region, robot, q, targets), len(region.joints)
    for number, part in enumerate(region.positions):
        residuals[part.contains(part.points(robot, q)), first + 3 * number : first + 3 * number + 3] = 0.0
    return residuals


def _derivatives(region, robot, q, targets):
    here = _residuals(region, robot, q, targets)
    steps = STEP * np.eye(robot.dof)
    return np.stack([_residuals(region, robot, q + step, targets) - here for step in steps], axis=2) / STEP


def _residuals(region, robot, q, targets):
    """(N, R) m and rad by which joints are off their bands, points off `targets`, and links beyond their tolerances."""
    columns = [band.error(robot, q) for band in region.joints]
    columns += [part.points(robot, q) - points for part, points in zip(region.positions, targets, strict=True)]
    columns += [part.error(robot, q, INSIDE) for part in region.orientations]
    return np.concatenate(columns, axis=1)
