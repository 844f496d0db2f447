"""Robots with parts that do not carry each other, such as two arms: one part moves, then the next.

A part is searched in its own joints while the rest stands still, in 7 joints in place of 14; shortening then lets the
parts move together. What is not found so is searched in all joints, so the whole is as complete as that search.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...spaces.interface import Checker
from ..query import Query
from ..result import PlanningResult, Status
from ..shortcut import shortcut

TOGETHER, APART = 64, 4096  # samples of the search in all joints that comes first, and for each part


def solve_apart(search: Callable[..., PlanningResult], query: Query, settings, seed: int) -> PlanningResult:
    """The result of a query. search: (query, settings, seed) -> result of a search in all joints"""
    branches = branches_of(query.checker)
    if not len(branches):
        return search(query, settings, seed)
    few, raw = (min(settings.max_samples, most) for most in (TOGETHER, APART))
    found = search(query, replace(settings, max_samples=few), seed)
    samples = found.samples
    if found.status is not Status.SAMPLES_EXHAUSTED:
        return found
    alone = replace(settings, max_samples=raw, shortcut_rounds=0)
    for order in (branches, branches[::-1]):
        found = _one_after_another(search, query, alone, seed, order)
        samples += found.samples
        if found.solved:
            path = at_once(found.path, order, query.checker)
            path = shortcut(path, query.checker, settings.shortcut_rounds, seed, query.weights, query.deadline)
            return query.solved(path, found.goal_index, samples)
        if found.status in (Status.TIMED_OUT, Status.WORLD_CHANGED):
            return replace(found, samples=samples)
    found = search(query, settings, seed)
    return replace(found, samples=samples + found.samples)


def at_once(path, order, checker):
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
    return merged if checker.motions_valid(merged[:-1], merged[1:]).all() else path


def branches_of(checker: Checker) -> np.ndarray:
    """RobotModel.branches; those of robots that do not tell have none."""
    return getattr(checker.robot, "branches", np.zeros(0))


def _one_after_another(search, query, settings, seed, order):
    """Each part in turn to where a goal has it -> result, whose goal_index is a number of query.goals; the failure of
    the part that found no way."""
    q, numbers, paths, samples = query.start, np.arange(len(query.goals)), [query.start[None]], 0
    for part in order:
        goals = np.where(part, query.goals[numbers], q)
        low, high = (np.where(part, limit, q).astype(np.float32) for limit in (query.lower, query.upper))
        asked = {"asked_start": q, "asked_goals": goals, "goal_numbers": np.arange(len(goals))}
        found = search(replace(query, start=q, goals=goals, lower=low, upper=high, **asked), settings, seed)
        samples += found.samples
        if not found.solved:
            return replace(found, samples=samples)
        numbers, q = numbers[[found.goal_index]], found.path[-1]
        paths.append(found.path[1:])
    return replace(found, path=np.concatenate(paths), goal_index=int(numbers[0]), samples=samples)
