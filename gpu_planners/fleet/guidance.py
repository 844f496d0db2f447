"""Guidance: what moves cost in the fields that agents follow, so that traffic does not meet head on.

Costs are not ticks: a move against a lane takes no longer, but agents avoid it.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import array_of, checked, integers, whole
from ..device import njit
from ..errors import GridMapError, shown
from ..files import file_path, read_arrays
from ..grid.maps.grid_map import GridMap
from .motion import EAST, NORTH, SOUTH, WEST

UNIT = 4  # cost of a move along a lane
AGAINST = 10  # cost of a move against one
TURN = 1  # cost of a quarter turn
SHARES = (0.005, 0.05, 0.1, 0.3)  # agents of free tiles
STRICT = (5, 10, 10, 20)  # what AGAINST is then
PATH_SHARES = (0.02, 0.08, 0.2, 0.35)  # the same where agents plan whole paths: a turn takes time
PATH_STRICT = (5, 6, 8, 12)  # what AGAINST is then
NEARLY = 1.3  # times as strict
MOST_DIFFERENCE = 127  # of states that an action joins (fields.py)
MOST_COST = MOST_DIFFERENCE - 4 * TURN  # four quarter turns and a move undo a move
SHORTEST_LANE = 4  # tiles
MOST_BYTES = 1 << 32  # of a file


@dataclass(frozen=True, eq=False)
@checked(GridMapError)
class Guidance:
    """Costs of moves.

    moves: (rows, cols, 4) uint8 of moving out of a tile to the east, south, west, north: 1 .. 123
    unit: what an ordinary move costs; turn: a quarter turn
    barred: (rows, cols, 4) bool, moves that nobody may make, whatever they cost; None: all may be made

    Raises GridMapError.
    """

    moves: np.ndarray
    unit: int = 1
    turn: int = 1
    barred: np.ndarray | None = None

    def __post_init__(self):
        moves = integers("moves", self.moves, (None, None, 4), "(rows, cols, 4)", GridMapError)
        if not moves.size:
            raise GridMapError(f"moves has the shape {moves.shape}; allowed: one row and one column at least")
        for name, value in (("unit", self.unit), ("turn", self.turn)):
            whole(name, value, 1, 25, error=GridMapError)
        most = MOST_DIFFERENCE - 4 * self.turn
        if moves.min() < 1 or moves.max() > most:
            raise GridMapError(f"moves costs {moves.min()} .. {moves.max()}; allowed: 1 .. {most}")
        moves = np.ascontiguousarray(moves, np.uint8)
        if self.barred is not None:
            barred = array_of("barred", self.barred, GridMapError)
            if barred.shape != moves.shape or barred.dtype.kind != "b":
                raise GridMapError(f"barred is {barred.dtype} {barred.shape}; allowed: bool {moves.shape}, as moves")
            moves = np.where(barred, np.uint8(most), moves)
            object.__setattr__(self, "barred", barred.copy() if barred.any() else None)
        object.__setattr__(self, "moves", moves)

    @classmethod
    def plain(cls, grid: GridMap) -> "Guidance":
        """Shortest paths: moves cost what the tile that is entered does, or 1 where all tiles cost the same.

        Raises GridMapError for costs that are too high.
        """
        moves = np.ones((*grid.shape, 4), np.uint8)
        if not grid.uniform_cost and grid.least_cost:
            highest = int(grid.costs.max())
            if highest > MOST_COST:
                raise GridMapError(f"the map has the cost {highest}; allowed for fleets: at most {MOST_COST}")
            costs = np.maximum(np.pad(grid.costs, 1), 1)
            moves[..., EAST], moves[..., WEST] = costs[1:-1, 2:], costs[1:-1, :-2]
            moves[..., SOUTH], moves[..., NORTH] = costs[2:, 1:-1], costs[:-2, 1:-1]
        return cls(moves)

    @classmethod
    def lanes(cls, grid: GridMap) -> "Guidance":
        """One-way lanes: neighbouring straight runs of free tiles lead in opposite directions; a move against one
        costs 2.5 times as much. Runs of fewer than four tiles, as across a street, have no direction."""
        return one_way(grid, AGAINST)

    def save(self, path: str | os.PathLike):
        """Write a file for `load` (NumPy's .npz). Raises GridMapError for what is no path, and OSError."""
        file = file_path(path, "guidance", GridMapError)
        if file.is_dir():
            raise GridMapError(f"guidance {shown(str(path))} cannot be written: it is a folder")
        with open(file, "wb") as file:
            more: dict[str, Any] = {} if self.barred is None else {"barred": self.barred}
            np.savez_compressed(file, moves=self.moves, unit=self.unit, turn=self.turn, **more)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Guidance":
        """Read what `save` wrote. Raises GridMapError, which names the file."""
        found, where = read_arrays(path, "guidance", GridMapError, MOST_BYTES), f"guidance {shown(str(path))}"
        for name in ("moves", "unit", "turn"):
            if name not in found:
                raise GridMapError(f"{where} has no array '{name}'; it has {shown([*found])}")
        for name in ("unit", "turn"):
            if found[name].shape or found[name].dtype.kind not in "iu":
                what = f"{found[name].dtype} {found[name].shape}"
                raise GridMapError(f"{where}: '{name}' is {what}; allowed: a whole number")
        try:
            return cls(found["moves"], int(found["unit"]), int(found["turn"]), found.get("barred"))
        except GridMapError as error:
            raise GridMapError(f"{where}: {error}") from None


def one_way(grid: GridMap, against: int, turn: int = TURN) -> Guidance:
    """Lanes; a move against one costs `against`, another one UNIT, a quarter turn `turn`."""
    free = grid.costs > 0
    moves = np.full((*grid.shape, 4), UNIT, np.uint8)
    along = _directions(np.ascontiguousarray(free))
    moves[..., WEST][along > 0] = moves[..., EAST][along < 0] = against
    along = _directions(np.ascontiguousarray(free.T)).T
    moves[..., NORTH][along > 0] = moves[..., SOUTH][along < 0] = against
    return Guidance(moves, UNIT, turn)


def suited(grid: GridMap, agents: int, now: Guidance | None = None, by_paths: bool = False) -> Guidance:
    """What suits so many agents on a map: lanes, the stricter the more agents there are for the free tiles.

    now: what they have, which stays where it is nearly as strict, or where tiles have costs of their own
    by_paths: do they plan whole paths (window.py), by which few meet head on anyhow?
    """
    if not grid.uniform_cost:
        return now or Guidance.plain(grid)
    share, turn = agents / max(1, int(np.count_nonzero(grid.costs))), UNIT if by_paths else TURN
    against = round(float(np.interp(share, *((PATH_SHARES, PATH_STRICT) if by_paths else (SHARES, STRICT)))))
    if now is not None and now.turn * UNIT == turn * now.unit:
        before = now.moves.max() * UNIT / now.unit
        if max(before, against) < NEARLY * min(before, against):
            return now
    return one_way(grid, against, turn)


GUIDANCE = {"plain": Guidance.plain, "lanes": Guidance.lanes}


@njit
def _directions(free):
    """Directions of runs of free tiles in rows -> (rows, cols) int8: 1 onward, -1 back, 0 none"""
    rows, cols = free.shape
    leads = np.zeros((rows, cols), np.int8)
    beside = np.zeros(cols, np.int64)  # where the last run above each tile leads
    for row in range(rows):
        col = 0
        while col < cols:
            begin = col
            while col < cols and free[row, col]:
                col += 1
            if col - begin >= SHORTEST_LANE:
                vote = beside[begin:col].sum()
                lead = -1 if vote > 0 or (vote == 0 and row % 2) else 1
                leads[row, begin:col], beside[begin:col] = lead, lead
            col += 1
    return leads
