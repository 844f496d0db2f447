"""Shorten a path by replacing stretches of it with straight motions: see `shorten`."""

import functools

import numpy as np
from numpy.typing import ArrayLike

from ...device import njit
from ...parallel.sampling import folded_seed
from ...parallel.team import NEVER, borrowed, clock_ns, lone_worker
from ..spaces.interface import space_of
from .node_store import new_desk
from .query import warm_once
from .shorten import POINTS, Task, cuts_sizes, open_cuts, shorten


def shortcut(
    path: ArrayLike, checker, passes: int, seed: int, weights: ArrayLike | None = None, deadline: int = NEVER
) -> np.ndarray:
    """path: (K, dof) -> a path with the same ends, no longer and free by the checker's MotionCheck.

    weights: (dof,) of the cost; none: 1 each
    deadline: of clock_ns(); a pass that would take longer is left out
    """
    path = np.asarray(path, dtype=np.float64)
    if passes == 0 or len(path) < 3 or clock_ns() > deadline:
        return path
    length, dof = path.shape
    weights = np.ones(dof, dtype=np.float32) if weights is None else np.asarray(weights, dtype=np.float32)
    task = Task(length, 2 * (length + POINTS), passes, 1, deadline, np.uint64(folded_seed(seed)), weights)
    if checker.device == "cpu":
        floats, ints = (np.empty(n, t) for n, t in zip(cuts_sizes(dof, task.room, 1), (np.float32, np.int32)))
        floats[: path.size] = path.ravel()
        at, length = _shorten_on_cpu(task, floats, ints, new_desk(space_of(checker), dof))
        shorter = floats[at : at + length * dof].reshape(length, dof).astype(np.float64)
    else:
        from .shorten_cuda import shortener

        shorter = shortener(checker.device, checker.scratch_sizes).shorten(path, checker, task).astype(np.float64)
    shorter[0], shorter[-1] = path[0], path[-1]
    return shorter


def warm_up_shortcut(checker) -> None:
    """Compile `shortcut` for a kind of checker, or load it from the cache, before the clock of a query starts."""
    warm_once("shortcut", checker, functools.partial(shortcut, np.zeros((3, checker.robot.dof)), checker, 1, 0))


@njit
def _shorten_on_cpu(task, floats, ints, desk):
    worker = lone_worker()
    cuts = open_cuts(borrowed(floats), borrowed(ints), len(task.weights), task.room, worker)
    return shorten(borrowed(task), cuts, borrowed(desk), worker)
