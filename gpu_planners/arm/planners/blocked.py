"""Why a search found no path: the bodies that stopped most extensions of its trees.

A search keeps a uniform sample of its blocked extensions: each of KEPT cells is a reservoir of one (Vitter, "Random
Sampling with a Reservoir", ACM TOMS 1985), whose random numbers are those of the search's seed. After a search without
a path the host looks where each of these motions meets something first, and counts the pairs.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from ...device import lean_njit
from ...parallel.sampling import uniform01
from ...parallel.team import lane_count, sync_lanes
from .result import PlanningResult, Status

KEPT = 64  # blocked extensions; of the first so many samples of a round
POINTS = 16  # of a motion that are checked
HALVINGS = 4  # of the part before the first one in collision
PAIRS_SEEN = 100_000  # that are looked at to name those that meet, however large the world is: some 0.1 s
NAMED = 3  # pairs in the text of a tree
TREES = "the start", "the goals"


@lean_njit
def clear_log(log, lane):
    """Nothing is blocked yet. log: any record with the fields log_ends (2 * KEPT * dof,) float32, the motions' ends;
    log_seen and log_tree (KEPT,) int32, how many extensions a cell has seen, and which tree its motion is of"""
    for k in range(lane, KEPT, lane_count()):
        log.log_seen[k] = 0


@lean_njit
def log_blocked(log, seed, number, slot, tree, a, b, lane):
    """The extension a -> b of tree 0 or 1 towards sample `number`, `slot` of its round, is blocked."""
    if slot >= KEPT:
        return
    cell, dof = number % KEPT, len(a)
    seen = log.log_seen[cell] + 1
    sync_lanes()
    if lane == 0:
        log.log_seen[cell] = seen
    if uniform01(seed, number, dof + 1) * np.float32(seen) < np.float32(1):
        for k in range(lane, dof, lane_count()):
            log.log_ends[2 * cell * dof + k] = a[k]
            log.log_ends[(2 * cell + 1) * dof + k] = b[k]
        if lane == 0:
            log.log_tree[cell] = tree


def read_log(log: Any) -> dict[str, Any]:
    """-> PlanningResult.blocked_motions and blocked_trees. log: as in `clear_log`, of the host or a device"""
    seen, tree, ends = (
        part.copy_to_host() if hasattr(part, "copy_to_host") else part
        for part in (log.log_seen, log.log_tree, log.log_ends)
    )
    used = seen > 0
    motions = ends.reshape(KEPT, 2, -1)[used].astype(np.float64)
    return {"blocked_motions": motions, "blocked_trees": tree[used].astype(np.int32)}


def explained(result: PlanningResult, checker: Any) -> PlanningResult:
    """The result of a search in the checker's present world; one without a path gets `blocked` and a message that names
    the bodies."""
    if result.status not in (Status.TIMED_OUT, Status.SAMPLES_EXHAUSTED) or not len(result.blocked_motions):
        return result
    found = list(zip(result.blocked_trees.tolist(), _first_contacts(result.blocked_motions, checker)))
    pairs = Counter(pair for _, contacts in found for pair in contacts)
    blocked = tuple((*pair, count / len(found)) for pair, count in pairs.most_common())
    if not blocked:
        return result
    texts = [_text(name, [contacts for of, contacts in found if of == tree]) for tree, name in enumerate(TREES)]
    message = f"{result.message}; extensions were blocked {' and '.join(filter(None, texts))}"
    return replace(result, blocked=blocked, message=message)


def _text(name, contacts):
    pairs = Counter(pair for each in contacts for pair in each)
    if not pairs:
        return ""
    most = (f"'{a}' with '{b}' ({count / len(contacts):.0%})" for (a, b), count in pairs.most_common(NAMED))
    return f"from {name} by {', '.join(most)}"


def _first_contacts(motions, checker):
    """(B, 2, dof) -> for each motion, or the first of them where that takes PAIRS_SEEN, the pairs of bodies that meet
    where it first meets any; none where it was refused for being too near to be proven free."""
    shares, most = np.arange(POINTS + 1) / POINTS, max(1, PAIRS_SEEN // getattr(checker, "pair_count", 1))
    begin, way = motions[:, 0], motions[:, 1] - motions[:, 0]
    points = begin[:, None] + shares[:, None] * way[:, None]
    free = checker.configurations_valid(points.reshape(-1, points.shape[2])).reshape(len(motions), -1)
    met, first = ~free.all(axis=1), free.argmin(axis=1)
    low, high = shares[np.maximum(first - 1, 0)], shares[first]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        blocked = ~checker.configurations_valid(begin + middle[:, None] * way)
        low, high = np.where(blocked, low, middle), np.where(blocked, middle, high)
    robot, links = checker.robot, {}
    if hasattr(robot, "shape_link"):  # other spaces have no links
        links = {shape.name: robot.link_names[i] for shape, i in zip(robot.shapes, robot.shape_link)}
    named: list[set] = []
    for q, meets in zip((begin + high[:, None] * way)[:most], met):
        pairs = checker.colliding_pairs(q) if meets else ()
        named.append({tuple(links.get(name, name.rsplit("#", 1)[0]) for name in pair) for pair in pairs})
    return named
