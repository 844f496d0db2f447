"""Which pairs of shapes of a robot can collide with each other.

Adjacent links, and links that do not move against each other, are never checked. With an SRDF that disables pairs, all
others but those are. Without one, pairs that collide in nearly all random configurations (they are made to touch) or in
none are left out as well, as MoveIt's setup assistant does, but decided on the exact shapes.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..collision.checker import CollisionChecker
from ..collision.world import CollisionWorld
from ..robot.model import RobotModel

SAMPLES = 10_000
ALWAYS = 0.95  # a pair that collides in this fraction of the samples is taken as touching by design
CHUNK = 1000  # samples checked at a time: a few hundred MB for robots with thousands of pairs


def candidate_pairs(
    link_names: Sequence[str],
    link_frame: np.ndarray,
    shape_link: np.ndarray,
    adjacent: set[frozenset[str]],
    disabled: dict[frozenset[str], str],
) -> tuple[np.ndarray, tuple[tuple[str, str, str], ...]]:
    """Pairs of shapes to check, (P, 2) int32, and pairs of links that are not checked: (link, link, reason) each.

    link_names: (L,); link_frame: (L,) frame of each link, -1 fixed to the root; shape_link: (S,) link of each shape
    adjacent: set of frozenset({link, link}) joined by a joint; disabled: {frozenset({link, link}): reason}
    """
    pairs: list[tuple] = []
    left_out: list[tuple[str, str, str]] = []
    shapes_of = {i: np.flatnonzero(shape_link == i) for i in sorted(set(shape_link.tolist()))}
    for i, j in itertools.combinations(shapes_of, 2):
        key = frozenset((link_names[i], link_names[j]))
        if link_frame[i] == link_frame[j]:
            reason: str | None = "never moves against each other"
        else:
            reason = "adjacent" if key in adjacent else disabled.get(key)
        if reason is None:
            pairs += itertools.product(shapes_of[i], shapes_of[j])
        else:
            left_out.append((link_names[i], link_names[j], reason))
    return np.array(pairs, dtype=np.int32).reshape(-1, 2), tuple(left_out)


def with_sampled_pairs(robot: RobotModel) -> RobotModel:
    """The robot with those pairs of links that collide in some, but not nearly all sampled configurations.

    disabled_pairs lists the others with the reason.
    """
    if not len(robot.self_collision_pairs):
        return robot
    q = _sampled_configurations(robot)
    links = np.sort(robot.shape_link[robot.self_collision_pairs], axis=1)
    link_pairs, group = np.unique(links, axis=0, return_inverse=True)
    group = group.reshape(-1)
    by_group = np.argsort(group, kind="stable")
    hits = np.zeros(len(link_pairs), dtype=np.int64)
    left = np.arange(len(link_pairs))
    for start in range(0, SAMPLES, CHUNK):
        if start == CHUNK:  # pairs that are sure to be kept, mostly the near ones, need no more samples
            left = np.flatnonzero((hits == 0) | (CHUNK - hits <= (1 - ALWAYS) * SAMPLES))
        if start <= CHUNK:
            if not len(left):
                break
            columns = by_group[np.isin(group[by_group], left)]
            starts = np.searchsorted(group[columns], left)
            part = replace(robot, self_collision_pairs=robot.self_collision_pairs[columns])
            checker = CollisionChecker(part, CollisionWorld(), device="cpu")
        collide = checker.shape_pair_collisions(q[start : start + CHUNK])
        hits[left] += np.logical_or.reduceat(collide, starts, axis=1).sum(axis=0)
    reasons = [_reason(count) for count in hits]
    keep = np.array([reason is None for reason in reasons])
    left_out = tuple(
        (robot.link_names[i], robot.link_names[j], reason) for (i, j), reason in zip(link_pairs, reasons) if reason
    )
    return replace(
        robot,
        self_collision_pairs=robot.self_collision_pairs[keep[group]],
        disabled_pairs=robot.disabled_pairs + left_out,
    )


def _sampled_configurations(robot):
    """(SAMPLES, dof) float64 within the limits: half uniform, half with each joint uniform or at a limit.

    Links fold onto each other mostly where joints are at their limits, which uniform samples hardly reach.
    """
    rng = np.random.default_rng(0)
    q = rng.uniform(robot.lower, robot.upper, (SAMPLES, robot.dof))
    choice = rng.integers(0, 4, (SAMPLES - SAMPLES // 2, robot.dof))
    q[SAMPLES // 2 :] = np.select([choice == 0, choice == 1], [robot.lower, robot.upper], q[SAMPLES // 2 :])
    return q


def _reason(hits):
    if hits == 0:
        return f"never collides in {SAMPLES} samples"
    return f"collides in {hits} of {SAMPLES} samples" if hits >= ALWAYS * SAMPLES else None
