"""PoseGrid: a map, a robot's footprint, headings, and the moves that the robot can make."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import instance, number, numbers, whole
from ...errors import GridMapError, shown
from ..maps.grid_map import FARTHEST, HIGHEST_COST, GridMap
from .lattice_file import read_lattice
from .masks import LARGEST, Mask, convex_pieces, move_mask, runs_of, state_masks
from .moves import MODELS, NAV2_NAMES, REVERSE, UNITS, Move, MoveCosts, angles_of, heading_vectors, moves_of

INFINITE = 1 << 30  # units of cost: paths that cost as much or more are not found
MOST_VERTICES = 64
LARGEST_RADIUS = 200  # cells: of turning
MOST_MOVES = 200  # from a heading, and to one


class Table(NamedTuple):
    """Moves as compiled code reads them, all int32. A layer is a heading, or a heading and a gear; a move leads from a
    layer, so many rows down and columns right, to a layer.

    source, to, down, right, price, plane: (T,) of each move; plane: where its mask is among all masks
    first: (L + 1,) where the moves from a layer begin
    into, into_first: the moves that lead to a layer, (T,), and where they begin, (L + 1,)
    """

    source: np.ndarray
    to: np.ndarray
    down: np.ndarray
    right: np.ndarray
    price: np.ndarray
    plane: np.ndarray
    first: np.ndarray
    into: np.ndarray
    into_first: np.ndarray


@dataclass(frozen=True, eq=False)
class PoseGrid:
    """A map for a robot with a shape. It does not change; `PosePlanner.update` changes the planner's own.

    costs: (rows, cols) uint8: 0 blocked, 1..255 cost of the tile, per length; beyond the map all is blocked
    footprint: (V, 2) metres, x ahead, y to the left where the map's y is to the left of its x: a simple polygon, whose
        origin is the robot's place
    headings: 8, 16, 24 .. 72; a lattice file has its own
    model: "dubins" (forwards in curves), "reeds_shepp" (also backwards), "differential" (also turning on the spot),
        "omni" (turning on the spot, to all sides), Nav2's names of these (DUBIN, REEDS_SHEPP, DIFF, OMNI), or the path
        of a lattice file of Nav2's
    turning_radius: the least one in metres. 0: no curves; above 0 for "dubins" and "reeds_shepp"
    resolution: metres a tile;  origin: (x, y, yaw) of the map, as of `GridMap`
    move_costs: MoveCosts;  map: the GridMap that all this makes

    What a free state and a free move are, and why that holds, is in `masks`. Raises GridMapError, SettingsError.
    """

    costs: np.ndarray
    footprint: np.ndarray
    headings: int = 16
    model: str = "differential"
    turning_radius: float = 0.0
    resolution: float = 0.05
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    move_costs: MoveCosts = MoveCosts()
    map: GridMap = field(init=False, repr=False)

    def __post_init__(self):
        grid = GridMap(self.costs, 8, self.resolution, self.origin)
        footprint = numbers("footprint", self.footprint, (None, 2), GridMapError).astype(float)
        if len(footprint) > MOST_VERTICES:
            raise GridMapError(f"footprint has {len(footprint)} points; allowed: 3 to {MOST_VERTICES}")
        instance("move_costs", self.move_costs, MoveCosts, "MoveCosts", GridMapError)
        if np.abs(footprint).max(initial=0.0) > LARGEST * grid.resolution:
            raise GridMapError(f"footprint reaches {np.abs(footprint).max()} m; allowed: up to {LARGEST} tiles")
        convex_pieces(footprint)
        headings = whole("headings", self.headings, 8, 72, error=GridMapError)
        heading_vectors(headings)
        radius = number("turning_radius", self.turning_radius, 0.0, FARTHEST, " metres", GridMapError)
        if radius / grid.resolution > LARGEST_RADIUS:
            raise GridMapError(f"turning_radius is {radius} m; allowed: up to {LARGEST_RADIUS} tiles: a coarser map")
        model = str(self.model) if isinstance(self.model, (str, Path)) else ""
        model = NAV2_NAMES.get(model, model)
        if model not in MODELS and not model.endswith(".json"):
            raise GridMapError(
                f"model is {shown(self.model)}; allowed: {', '.join(MODELS)}, or a lattice file's path (.json)"
            )
        if model in ("dubins", "reeds_shepp") and radius == 0:
            raise GridMapError(f"turning_radius is 0; allowed: more than 0 metres for the model {model!r}")
        made = {"costs": grid.costs, "footprint": footprint, "headings": headings, "model": model}
        made |= {"turning_radius": radius, "resolution": grid.resolution, "origin": grid.origin, "map": grid}
        for name, value in made.items():
            object.__setattr__(self, name, value)
        if model.endswith(".json"):
            object.__setattr__(self, "headings", len(self.angles))
        self.table  # noqa: B018  moves that are too many or too dear are refused here

    def with_footprint(self, footprint: ArrayLike) -> "PoseGrid":
        """The same for another footprint, as with another load."""
        return replace(self, footprint=numbers("footprint", footprint, (None, 2), GridMapError))

    def with_costs(self, grid: GridMap) -> "PoseGrid":
        """The same robot on another map of the same shape, which is not copied."""
        other = object.__new__(PoseGrid)
        other.__dict__.update(vars(self), map=grid, costs=grid.costs)
        return other

    @cached_property
    def _angles_and_moves(self):
        if self.model.endswith(".json"):
            angles, moves = read_lattice(self.model, self.resolution)
            if self.move_costs.reverse:
                there = {(m.start, m.end, m.down, m.right) for m in moves if m.kind == REVERSE}
                back = [move.backwards() for move in moves if move.kind == "forward"]
                moves += tuple(m for m in back if (m.start, m.end, m.down, m.right) not in there)
        else:
            angles = angles_of(heading_vectors(self.headings))
            moves = moves_of(self.model, self.headings, self.turning_radius / self.resolution)
        return angles, tuple(m for m in moves if m.kind != REVERSE or self.move_costs.reverse)

    @property
    def angles(self) -> np.ndarray:
        """(H,) rad of the headings in the map's frame, rising from 0."""
        return self._angles_and_moves[0]

    @property
    def moves(self) -> tuple[Move, ...]:
        """All moves, whatever the gear."""
        return self._angles_and_moves[1]

    @cached_property
    def sectors(self) -> np.ndarray:
        """(H, 2) rad: the least and the greatest angle of each heading's sector."""
        after = np.append(self.angles[1:], self.angles[0] + 2 * math.pi)
        bounds = (self.angles + after) / 2
        return np.column_stack([np.append(bounds[-1] - 2 * math.pi, bounds[:-1]), bounds])

    def headings_of(self, angles: ArrayLike) -> np.ndarray:
        """The headings in whose sectors angles (N,) rad of the map's frame lie -> (N,)"""
        given = numbers("angles", angles, (None,), GridMapError).astype(float)
        turned = np.mod(given - self.sectors[0, 0], 2 * math.pi)
        return np.minimum(np.searchsorted(self.sectors[:, 1] - self.sectors[0, 0], turned, "left"), self.headings - 1)

    @property
    def gears(self) -> int:
        """2 where changing between forwards and backwards costs something: each heading is two layers then."""
        return 2 if self.move_costs.change > 0 and any(move.kind == REVERSE for move in self.moves) else 1

    @cached_property
    def masks(self) -> tuple[Mask, ...]:
        """Of each of `moves`, and of each heading's states."""
        pieces = [piece / self.resolution for piece in convex_pieces(self.footprint)]
        states = state_masks(pieces, self.sectors)
        return tuple(runs_of(mask) for mask in [*(move_mask(pieces, m, states) for m in self.moves), *states])

    @cached_property
    def table_moves(self) -> tuple[tuple[int, int, int], ...]:
        """(layer, layer that it leads to, number among `moves`, or -1 for another gear) of each move of `table`"""
        headings, found = self.headings, []
        for k, move in enumerate(self.moves):
            for gear in range(self.gears):
                fitting = {REVERSE: 1, "forward": 0}.get(move.kind, gear)
                if self.gears == 1 or fitting == gear:
                    found.append((move.start + gear * headings, move.end + gear * headings, k))
        if self.gears == 2:
            found += [(h + g * headings, h + (1 - g) * headings, -1) for h in range(headings) for g in range(2)]
        return tuple(sorted(found, key=lambda each: each[0]))

    @cached_property
    def move_poses(self) -> tuple[np.ndarray, np.ndarray]:
        """Poses of all `moves` after each one's first (P, 3), and where those of each begin (M + 1,)."""
        poses = [move.poses[1:] for move in self.moves]
        return np.concatenate(poses), np.cumsum([0, *map(len, poses)])

    @cached_property
    def table(self) -> Table:
        """The moves as compiled code reads them."""
        rows = []
        for source, to, k in self.table_moves:
            if k < 0:
                price = max(1, round(UNITS * self.move_costs.change / self.resolution))
                rows.append((source, to, 0, 0, price, len(self.moves) + source % self.headings))
            else:
                move = self.moves[k]
                rows.append((source, to, move.down, move.right, move.price(self.move_costs, self.resolution), k))
        layers = self.headings * self.gears
        source, to, down, right, price, plane = np.array(rows, np.int32).T.copy()
        if int(price.max()) * HIGHEST_COST >= INFINITE:
            raise GridMapError(f"a move costs {price.max()} units; allowed: fewer than {INFINITE // HIGHEST_COST}")
        first = np.searchsorted(source, np.arange(layers + 1)).astype(np.int32)
        into = np.argsort(to, kind="stable").astype(np.int32)
        into_first = np.searchsorted(to[into], np.arange(layers + 1)).astype(np.int32)
        most = max(np.diff(first).max(), np.diff(into_first).max())
        if most > MOST_MOVES:
            raise GridMapError(f"a heading has {most} moves; allowed: up to {MOST_MOVES}")
        return Table(source, to, down, right, price, plane, first, into, into_first)

    @property
    def reach(self) -> int:
        """Cells that a move leads, or a mask looks, at most."""
        table = self.table
        return max(
            max(mask.reach for mask in self.masks), int(np.abs(table.down).max()), int(np.abs(table.right).max())
        )
