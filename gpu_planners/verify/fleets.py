"""Checks of fleets' motions by plain array operations on positions."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import Booleans, checked, integers
from ..errors import GridMapError, SettingsError, shown

VERTEX, SWAP, FOLLOWING, BLOCKED, JUMP, HURRY = "vertex", "swap", "following", "blocked", "jump", "hurry"
FARTHEST = 2**31 - 1  # of rows and columns
LARGEST = 2**15  # of offsets


class Conflict(NamedTuple):
    """What is wrong in one step.

    kind: "vertex" (two agents are too near at `step`), "swap" (they change places in the step that ends then),
        "following" (one enters what the other leaves in that step), "blocked" (an agent is on a tile that is blocked or
        outside), "jump" (an agent moves farther than to a neighbour), "hurry" (it moves before its last move is over)
    step: 0 is the start; agent, other: other is -1 where there is none
    """

    kind: str
    step: int
    agent: int
    other: int


@checked(GridMapError, SettingsError)
def conflicts(
    positions: ArrayLike,
    blocked: Booleans | None = None,
    near: ArrayLike = ((0, 0),),
    following: bool = True,
    most: int = 1000,
    ticks: ArrayLike = 1,
) -> list[Conflict]:
    """Conflicts of agents, the first `most` of them; an empty list where there are none.

    positions: (steps + 1, N, 2) int [row, col] where agents are, or what they move to; negative rows: the agent is not
        there
    blocked: (rows, cols) bool; None: any tile is allowed
    near: (K, 2) int, offsets of tiles where no other agent may be; (0, 0) is one of them
    following: may an agent enter a tile that another one leaves in the same step?
    ticks: (N,) int steps that a move of each agent takes, or one number for all: until they are over it is on both
        tiles of the move, and begins no other one

    Raises GridMapError for arrays of another shape, SettingsError for a `following` that is none.
    """
    place = integers("positions", positions, (None, None, 2), "(steps + 1, N, 2)", GridMapError)
    offsets, lasts = np.asarray(near), np.asarray(ticks)
    if place.size and not (-FARTHEST <= place.min() and place.max() <= FARTHEST):
        raise GridMapError(f"positions has {place.min()} .. {place.max()}; allowed: -{FARTHEST} .. {FARTHEST}")
    if offsets.ndim != 2 or offsets.shape[1] != 2 or offsets.dtype.kind not in "iu" or not len(offsets):
        raise GridMapError(f"near is {shown(offsets.tolist())}; allowed: integers (K, 2), at least one")
    if not (-LARGEST <= offsets.min() and offsets.max() <= LARGEST):
        raise GridMapError(f"near is {shown(offsets.tolist())}; allowed: offsets -{LARGEST} .. {LARGEST}")
    taken = np.zeros((1, 1), bool) if blocked is None else np.asarray(blocked)
    if taken.ndim != 2 or not taken.size or taken.dtype.kind not in "biu":
        raise GridMapError(f"blocked is {taken.dtype} {taken.shape}; allowed: bool (rows, cols)")
    if lasts.shape not in ((), (place.shape[1],)) or lasts.dtype.kind not in "iu" or (lasts < 1).any():
        raise GridMapError(f"ticks is {shown(lasts.tolist())}; allowed: integers from 1, one or ({place.shape[1]},)")
    if most < 1:
        raise GridMapError(f"most is {most}; allowed: whole numbers from 1")
    found: list[Conflict] = []
    place, lasts = place.astype(np.int64), np.broadcast_to(lasts, place.shape[1])
    for step, wrong in enumerate(_wrong(place, offsets.astype(np.int64), lasts, following)):
        if blocked is not None:
            found += [Conflict(BLOCKED, step, int(a), -1) for a in _off(place[step], taken > 0)]
        found += wrong
        if len(found) >= most:
            break
    return found[:most]


def _off(now, blocked):
    """Agents on tiles that are blocked or outside. now: (N, 2) where all are"""
    rows, cols = blocked.shape
    inside = (now >= 0).all(axis=1) & (now[:, 0] < rows) & (now[:, 1] < cols)
    row, col = np.where(inside[:, None], now, 0).T
    return np.flatnonzero((now[:, 0] >= 0) & (~inside | blocked[row, col]))


def _wrong(place, offsets, lasts, following):
    """Conflicts of agents, step after step, by the tiles that they are on and those that they still leave.

    place: (steps + 1, N, 2) int64; offsets: (K, 2) int64; lasts: (N,) steps of a move
    """
    number, reach = np.arange(place.shape[1]), int(np.abs(offsets).max()) + 1
    low = min(0, int(place[..., 1].min(initial=0))) - reach
    width = int(place[..., 1].max(initial=0)) - low + reach + 1
    near = offsets @ (width, 1)
    left, until = np.zeros(len(number), np.int64), np.full(len(number), -1)  # tile of the last move, its last step
    on: tuple[np.ndarray, ...] = ()  # tiles, who is on them, who counts
    for step, now in enumerate(place):
        there, found, before = now[:, 0] >= 0, [], on
        tile = (now[:, 0] + reach) * width + now[:, 1] - low
        if step:
            old = place[step - 1]
            both, far = there & (old[:, 0] >= 0), np.abs(now - old).sum(axis=1)
            begins = both & (far > 0)
            found += [Conflict(JUMP, step, int(a), -1) for a in np.flatnonzero(both & (far > 1))]
            found += [Conflict(HURRY, step, int(a), -1) for a in np.flatnonzero(begins & (step <= until))]
            left[begins], until[begins] = before[0][: len(now)][begins], (step + lasts - 1)[begins]
        leaves = there & (step < until)
        on = np.r_[tile, left[leaves]], np.r_[number, number[leaves]], np.r_[there, leaves[leaves]]
        found += _pairs(VERTEX, step, near, *on, *on)
        if step:
            entered = _pairs(FOLLOWING, step, near, tile, number, begins, *before)
            if following:
                pairs = {(c.agent, c.other) for c in entered}
                entered = [c._replace(kind=SWAP) for c in entered if (c.other, c.agent) in pairs and c.agent < c.other]
            found += entered
        yield found


def _pairs(kind, step, near, tile, agent, some, other_tile, other_agent, others):
    """Pairs of different agents of which the second one's tile is near the first one's, each pair once.

    near: (K,) differences of tiles; tile, agent: (M,) tiles and who is on them; some: (M,) bool, those that count;
        likewise the others
    """
    order = np.flatnonzero(others)
    order = order[np.argsort(other_tile[order], kind="stable")]
    ordered, first, found = other_tile[order], np.flatnonzero(some), []
    for offset in near:
        wanted = tile[first] + offset
        low, high = np.searchsorted(ordered, wanted, "left"), np.searchsorted(ordered, wanted, "right")
        alone = 1 if kind == VERTEX and offset == 0 else 0  # it meets itself there
        for k in np.flatnonzero(high - low > alone):
            a = int(agent[first[k]])
            for b in other_agent[order[low[k] : high[k]]].tolist():
                if a != b and (kind != VERTEX or a < b):
                    found.append(Conflict(kind, step, a, b))
    return list(dict.fromkeys(found))
