"""Dead ends of a map, where agents go in and out by one tile.

In a full room whoever wants into a dead end soon waits before it, nearest to its goal and so ahead of others. Then who
is inside cannot leave, and all of them stand for good. So, where someone else wants in, who has nothing to do inside
goes out first.
"""

from typing import NamedTuple

import numpy as np

from ..fields.lanes import Lanes
from .priorities import WISH
from .state import Agents

DEEPEST = 8  # tiles of a dead end; longer ones are lanes
IDLE = 0.2  # agents that have nothing to do, of all: where all have work, leaving costs more errands than it gains


class Pockets(NamedTuple):
    """The dead ends of a map; arrays (tiles,) int32."""

    number: np.ndarray  # of the dead end that a tile belongs to, 0: of none
    out: np.ndarray  # offset of the next tile on the way out

    def leaving(self, agents: Agents, nothing_to_do: np.ndarray, hindered: np.ndarray) -> np.ndarray:
        """(N,) bool, who is to leave a dead end since others want in that are `hindered` (N,) bool; nothing_to_do: (N,)
        bool. Nobody, unless so many have nothing to do (IDLE) that there is somewhere to go"""
        here = np.where(agents.there > 0, self.number[agents.tile], 0)
        wanted = np.where(nothing_to_do, 0, self.number[agents.goal])
        idle = np.count_nonzero(nothing_to_do & (agents.there > 0)) > IDLE * np.count_nonzero(agents.there)
        return idle & (here > 0) & (wanted != here) & np.isin(here, wanted[hindered])

    def way_out(self, tiles: np.ndarray, lanes: Lanes) -> np.ndarray:
        """(K,) tiles in dead ends -> (K, 2) int32 wishes, as of `priorities.wishes`, to leave"""
        out, wish = self.out[tiles], WISH * lanes.unit
        across = np.abs(out) == 1
        return np.stack([np.where(across, 0, -np.sign(out)), np.where(across, -out, 0)], axis=1) * wish


def pockets_of(free: np.ndarray, width: int) -> Pockets:
    """free: (tiles,) of a map with a border of blocked ones; width: of its rows"""
    steps = np.array([1, width, -1, -width])
    left, out, number = free > 0, np.zeros(len(free), np.int32), np.zeros(len(free), np.int32)
    at, stripped = np.flatnonzero(left), []
    for _ in range(DEEPEST):
        ways = left[at[:, None] + steps]
        ends = ways.sum(axis=1) == 1
        at, ways = at[ends], ways[ends]
        if not len(at):
            break
        out[at], left[at] = steps[ways.argmax(axis=1)], False
        stripped.append(at)
        at = np.unique(at + out[at])
        at = at[left[at]]
    for tiles in reversed(stripped):  # the outer ones first
        beyond = number[tiles + out[tiles]]
        number[tiles] = np.where(beyond > 0, beyond, tiles)
    return Pockets(number, out)
