"""Shorten a path by replacing stretches of it with straight motions: see `shorten`."""

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...device import lean_njit
from ...parallel.layout import Float32, Int32, floats, ints, layout, on_host
from ...parallel.sampling import folded_seed, halves, joined_halves
from ...parallel.team import NEVER, clock_ns, deadline_in, lane_count, left_ms, meet
from .host import host_for
from .message import BARRIER, head_of
from .query import warm_once
from .shorten import POINTS, Task, cuts_sizes, open_cuts, shorten

SPLIT = 8  # warps that share a motion on CUDA: a round lasts as long as its longest check


class PathRequest(NamedTuple):
    """A path to shorten, which its successor replaces."""

    dof: int = ints()
    mode: Int32 = ints()
    length: int = ints()  # its corners
    room: int = ints()
    passes: int = ints()
    split: int = ints()
    seed_low: int = ints()
    seed_high: int = ints()
    left_ms: int = ints()
    corners: np.ndarray = ints("1")  # of its successor
    step: Float32 = floats()
    weights: np.ndarray = floats("dof")
    path: np.ndarray = floats("room * dof")


request_sizes, open_request, write_request = layout(PathRequest, "dof room")
_sizes_of_cuts = on_host(cuts_sizes)


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
    room, host = 2 * (length + POINTS), host_for(checker, shorten_path, blocks=1)
    with host.held():
        message = host.message(*request_sizes.py_func(dof, room))
        low, high = halves(folded_seed(seed))
        write_request(
            *message,
            *(dof, room),
            **head_of(checker),
            length=length,
            room=room,
            passes=passes,
            split=1 if checker.device == "cpu" else SPLIT,
            seed_low=low,
            seed_high=high,
            left_ms=left_ms(deadline),
            weights=1.0 if weights is None else weights,
        )
        answer = open_request.py_func(*message)
        answer.path[: path.size] = path.ravel()
        n_floats, n_ints = _sizes_of_cuts(dof, room, host.workers)
        host.memory(n_floats, BARRIER + n_ints)
        host.run(checker)
        shorter = answer.path[: int(answer.corners[0]) * dof].reshape(-1, dof).astype(np.float64)
    shorter[0], shorter[-1] = path[0], path[-1]
    return shorter


def warm_up_shortcut(checker) -> None:
    """Compile `shortcut` for a kind of checker, or load it from the cache, before the clock of a query starts."""
    warm_once("shortcut", checker, functools.partial(shortcut, np.zeros((3, checker.robot.dof)), checker, 1, 0))


@lean_njit
def shorten_path(floats, ints, own_floats, desk, worker):
    """Answer a PathRequest: see `host`."""
    ask = open_request(floats, ints)
    for k in range(worker.number * lane_count() + worker.lane, ask.length * ask.dof, worker.count * lane_count()):
        own_floats[k] = ask.path[k]
    meet(worker)
    seed, deadline = joined_halves(ask.seed_low, ask.seed_high), deadline_in(ask.left_ms)
    task = Task(ask.length, ask.room, ask.passes, ask.split, deadline, seed, ask.weights)
    cuts = open_cuts(own_floats, worker.memory[BARRIER:], ask.dof, ask.room, worker)
    at, length = shorten(task, cuts, desk, worker)
    if worker.number == 0:
        for k in range(worker.lane, length * ask.dof, lane_count()):
            ask.path[k] = own_floats[at + k]
        if worker.lane == 0:
            ask.corners[0] = length
