"""A validator of fleets' motions that shares nothing with the planner: plain array operations on positions."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import GridMapError, shown
from ..checks import array_of, whole

VERTEX, SWAP, FOLLOWING, BLOCKED, JUMP = "vertex", "swap", "following", "blocked", "jump"


class Conflict(NamedTuple):
    """What is wrong in one step.

    kind: "vertex" (two agents are too near at `step`), "swap" (they change places in the step that ends then),
        "following" (one enters what the other leaves in that step), "blocked" (an agent is on a tile that is blocked or
        outside), "jump" (an agent moves farther than to a neighbour)
    step: 0 is the start; agent, other: other is -1 where there is none
    """

    kind: str
    step: int
    agent: int
    other: int


def conflicts(
    positions: ArrayLike,
    blocked: ArrayLike | None = None,
    near: ArrayLike = ((0, 0),),
    following: bool = True,
    most: int = 1000,
) -> list[Conflict]:
    """Conflicts of agents, the first `most` of them; an empty list where there are none.

    positions: (steps + 1, N, 2) int [row, col]; negative rows: the agent is not there
    blocked: (rows, cols) bool; None: any tile is allowed
    near: (K, 2) int, offsets of tiles where no other agent may be; (0, 0) is one of them
    following: may an agent enter a tile that another one leaves in the same step?

    Raises GridMapError for arrays of another shape.
    """
    place, offsets = array_of(positions, "positions"), array_of(near, "near")
    if place.ndim != 3 or place.shape[2] != 2 or place.dtype.kind not in "iu":
        raise GridMapError(f"positions is {place.dtype} {place.shape}; allowed: integers (steps + 1, N, 2)")
    if offsets.ndim != 2 or offsets.shape[1] != 2 or offsets.dtype.kind not in "iu" or not len(offsets):
        raise GridMapError(f"near is {shown(near)}; allowed: integers (K, 2), at least one")
    taken = np.zeros((1, 1)) if blocked is None else array_of(blocked, "blocked")
    if taken.ndim != 2 or not taken.size:
        raise GridMapError(f"blocked has the shape {taken.shape}; allowed: (rows, cols)")
    whole("most", most, 1, 2**31 - 1, error=GridMapError)
    found: list[Conflict] = []
    reach = int(np.abs(offsets).max()) + 1
    width = int(place[..., 1].max(initial=0)) + 2 * reach + 1
    before, old = place[0].astype(np.int64) if len(place) else place, place[:0]
    for step, now in enumerate(place.astype(np.int64)):
        there = now[:, 0] >= 0
        if blocked is not None:
            found += [Conflict(BLOCKED, step, int(a), -1) for a in _off(now, there, taken > 0)]
        tile = (now[:, 0] + reach) * width + now[:, 1] + reach
        found += _pairs(VERTEX, step, tile, there, tile, there, offsets, width)
        if step:
            both = there & (place[step - 1, :, 0] >= 0)
            far = np.abs(now - before).sum(axis=1)
            found += [Conflict(JUMP, step, int(a), -1) for a in np.flatnonzero(both & (far > 1))]
            entered = _pairs(FOLLOWING, step, tile, both & (far > 0), old, both, offsets, width)
            if following:
                pairs = {(c.agent, c.other) for c in entered}
                entered = [c._replace(kind=SWAP) for c in entered if (c.other, c.agent) in pairs and c.agent < c.other]
            found += entered
        before, old = now, tile
        if len(found) >= most:
            break
    return found[:most]


def _off(now, there, blocked):
    """Agents on tiles that are blocked or outside."""
    rows, cols = blocked.shape
    inside = (now >= 0).all(axis=1) & (now[:, 0] < rows) & (now[:, 1] < cols)
    row, col = np.where(inside[:, None], now, 0).T
    return np.flatnonzero(there & (~inside | blocked[row, col]))


def _pairs(kind, step, tile, some, other_tile, others, offsets, width):
    """Pairs of different agents of which the second one's tile is near the first one's."""
    number = np.flatnonzero(others)
    order = number[np.argsort(other_tile[number], kind="stable")]
    ordered, first, found = other_tile[order], np.flatnonzero(some), []
    for row, col in offsets:
        wanted = tile[first] + row * width + col
        low, high = np.searchsorted(ordered, wanted, "left"), np.searchsorted(ordered, wanted, "right")
        for a, begin, end in zip(first, low, high):
            for b in order[begin:end] if end > begin + (kind == VERTEX and row == col == 0) else ():
                if a != b and (kind != VERTEX or a < b):
                    found.append(Conflict(kind, step, int(a), int(b)))
    return found
