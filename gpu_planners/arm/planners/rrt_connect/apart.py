"""Robots with parts that do not carry each other, such as two arms: one part moves, then the next.

A part is searched in its own joints while the rest stands still, in 7 joints in place of 14; shortening then lets the
parts move together. What is not found so is searched in all joints, so the whole is as complete as that search.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...spaces.interface import Checker
from ..query import Query, in_pieces
from ..result import PlanningResult, Status
from ..shortcut import shortcut

TOGETHER = 64  # samples of the search in all joints that comes first
APART = 4096  # samples for each part
ARM = 4  # joints of a part that moves by itself; the other joints move with the first part


def solve_apart(search: Callable[..., PlanningResult], query: Query, settings, seed: int) -> PlanningResult:
    """The result of a query whose robot has `parts_of`. search: (query, settings, seed) -> result of a search in all
    joints"""
    parts = parts_of(query.checker)
    few = replace(settings, max_samples=min(settings.max_samples, TOGETHER))
    alone = replace(settings, max_samples=min(settings.max_samples, APART), shortcut_rounds=0)
    found = search(query, few, seed)
    if found.status is not Status.SAMPLES_EXHAUSTED:
        return found
    samples, numbers = found.samples, _free_goals(query)
    for order in (parts, parts[::-1]):
        found = _one_after_another(search, query, numbers, alone, seed, order)
        samples += found.samples
        if found.solved:
            path = at_once(found.path, order, query)
            path = shortcut(path, query.checker, settings.shortcut_rounds, seed, query.weights, query.deadline)
            return query.solved(path, found.goal_index, samples)
        if found.status in (Status.TIMED_OUT, Status.WORLD_CHANGED):
            return _counted(found, samples)
    found = search(query, settings, seed)
    return _counted(found, samples + found.samples)


def parts_of(checker: Checker) -> np.ndarray:
    """(P, dof) bool: the joints that move together, where there are two arms or more; else (0,)."""
    branches = getattr(checker.robot, "branches", ())
    arms = [part for part in branches if part.sum() >= ARM] if len(branches) > 1 else []
    if len(arms) < 2:
        return np.zeros(0)
    arms[0] = ~np.any(arms[1:], axis=0)
    return np.array(arms)


def _counted(found, samples):
    """The result with the samples of all searches, of which its text may tell too."""
    message = found.message.replace(f"{found.samples} samples", f"{samples} samples")
    return replace(found, samples=samples, message=message)


def _free_goals(query):
    """(G,) numbers of the goals that are free; of a goal that is not, a part may be, and lead astray."""
    if len(query.goals) == 1:
        return np.zeros(1, dtype=int)
    checker = query.checker
    return np.flatnonzero(in_pieces(checker.configurations_valid, query.deadline, query.goals, device=checker.device))


def _one_after_another(search, query, numbers, settings, seed, order):
    """Each part in turn to where a goal has it -> result, whose goal_index is a number of query.goals; the failure of
    the part that found no way. numbers: of the goals"""
    q, paths, samples = query.start, [query.start[None]], 0
    if not len(numbers):
        return query.timed_out()
    for part in order:
        goals = np.where(part, query.goals[numbers], q)
        low, high = (np.where(part, limit, q).astype(np.float32) for limit in (query.lower, query.upper))
        asked = {"asked_start": q, "asked_goals": goals, "goal_numbers": np.arange(len(goals))}
        found = search(replace(query, start=q, goals=goals, lower=low, upper=high, **asked), settings, seed)
        samples += found.samples
        if not found.solved:
            return _counted(found, samples)
        paths.append(np.where(part, found.path[1:], q))  # float32 has rounded the rest
        numbers, q = numbers[[found.goal_index]], goals[found.goal_index]
    return replace(found, path=np.concatenate(paths), goal_index=int(numbers[0]), samples=samples)


def at_once(path: np.ndarray, order: np.ndarray, query: Query) -> np.ndarray:
    """The path along which all parts move from beginning to end, each on its own way; the path as it is where that is
    not free. path: (K, dof), on which one part after the other moves"""
    shares = []
    for part in order:
        along = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(path[:, part], axis=0), axis=1))]
        shares.append(along / max(along[-1], 1e-300))
    places = np.unique(np.concatenate(shares))
    merged = np.empty((len(places), path.shape[1]))
    for part, share in zip(order, shares, strict=True):
        rows = np.r_[0, np.flatnonzero(np.diff(share)) + 1]
        for joint in np.flatnonzero(part):
            merged[:, joint] = np.interp(places, share[rows], path[rows, joint])
    checker, ends = query.checker, (merged[:-1], merged[1:])
    free = in_pieces(checker.motions_valid, query.deadline, *ends, device=checker.device)
    return merged if len(free) == len(merged) - 1 and free.all() else path
