"""PosePlanner: paths of robots with a shape, exact over place and heading."""

import math
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import array_of, instance
from ...device import refuse_forked, resolve_device
from ...errors import GridMapError, SettingsError, shown
from ...settings import Described, setting, time_limit
from ..maps.grid_map import HIGHEST_COST, WorkingMap
from ..paths import NO_PATH, SOLVED, START_BLOCKED, START_NOT_FINITE, START_OUTSIDE, TIMED_OUT, AgentStatus
from .astar import Search
from .cpu import CpuField, CpuMap, box_about, box_of_both, new_box
from .masks import along_free, convex_pieces
from .moves import UNITS, wrapped
from .paths import PosePathSet
from .pose_grid import INFINITE, PoseGrid
from .shape import layout_of, runs_table

ALGORITHMS = "auto", "exact", "astar"
FEW = 4  # agents to one goal: on a CPU, A* finds so few sooner than a field is made
MOST_REPAIRED = 1 / 4  # of a map: a field of which more has changed is made anew
BEYOND = 2**31  # tiles: no map is so large, no footprint reaches so far
CLUSTER = 128  # tiles a side: changes in different ones are checked apart, where less is checked so


@dataclass(frozen=True)
class PoseSettings(Described):
    """Settings of a PosePlanner."""

    goal_tolerance: float = setting(0.0, "Paths may end so far from the goal", 0, 100, unit="m")
    heading_tolerance: float = setting(
        0.0, "Paths may end with a heading so far from the goal's", 0, math.pi, unit="rad"
    )
    memory_limit_bytes: int = setting(
        2 << 30,
        "Bound on the memory of all fields that are kept for goals that come again; one is always kept",
        1,
        2**62,
    )
    time_limit_s: float = time_limit("Longest plan for several goals: agents to goals not begun by then are timed out")


@dataclass
class Kept:
    """A goal's field. box: rows and words that have changed since it was made, None: nothing"""

    field: Any
    box: np.ndarray | None = None


class PosePlanner:
    """Plans robots with a shape; keeps what does not change between plans.

    poses: PoseGrid
    algorithm: "exact" (a field for each goal: all starts at once, repaired when the map changes), "astar" (one start
        after the other, on the CPU), or "auto": on a CPU `astar` where a goal has few starts and no field that is as
        the map is, else `exact`. Costs are the same
    device: "auto", "cpu", "cuda" or "cuda:N"
    settings: PoseSettings; None: its defaults

    Raises GridMapError, SettingsError, DeviceError. Not for several threads at once, nor in a child forked after
    planning.
    """

    def __init__(
        self, poses: PoseGrid, algorithm: str = "auto", device: str = "auto", settings: PoseSettings | None = None
    ):
        instance("poses", poses, PoseGrid, "a PoseGrid", GridMapError)
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise SettingsError(f"algorithm is {shown(algorithm)}: use one of {', '.join(ALGORITHMS)}")
        settings = PoseSettings() if settings is None else settings
        self.settings = instance("settings", settings, PoseSettings, "a PoseSettings")
        device = resolve_device(device)
        self.device: str = "cpu" if algorithm == "astar" else device
        self.algorithm: str = algorithm
        self._robot, self._map = poses, WorkingMap(poses.map)  # the robot's map may be an older one
        self._poses: PoseGrid | None = poses  # None where there is none with the map as it is
        runs = runs_table(poses.masks)
        self._layout = layout_of(poses, runs)
        if self._layout.states >= 2**31:
            raise GridMapError(f"the map has {self._layout.states} states with its border; allowed: fewer than 2^31")
        if self.device == "cpu":
            self._on: Any = CpuMap(self._layout, runs, poses.map.costs)
        else:
            from .cuda import CudaMap

            self._on = CudaMap(self._layout, runs, poses.map.costs, self.device)
        self._kept: OrderedDict[bytes, Kept] = OrderedDict()
        self._search: Search | None = None

    @property
    def poses(self) -> PoseGrid:
        """What is planned on, with the map as it is now; after an update the map is copied, once."""
        if self._poses is None:
            self._poses = self._robot.with_costs(self._map.snapshot())
        return self._poses

    def plan(self, starts: ArrayLike, goals: ArrayLike) -> PosePathSet:
        """Paths from starts to goals.

        starts: (N, 3) or (3,) x, y metres in the map frame, heading rad; goals: (3,) for all, or (N, 3)
        -> PosePathSet of N agents; one that cannot be answered has a status that says why

        Raises GridMapError for starts or goals of another shape or type, and where paths may cost more than can be
        counted.
        """
        refuse_forked()
        began = time.perf_counter()
        given, wanted = _as_poses("starts", starts), _as_poses("goals", goals)
        n = len(given)
        if len(wanted) not in (1, n):
            raise GridMapError(f"goals has {len(wanted)} rows; allowed: one goal (3,), or {n}, one for each start")
        states, status = self._states_of(given)
        goals_of = np.broadcast_to(wanted, (n, 3))
        cost, moves = np.full(n, np.inf), [np.zeros(0, np.int32)] * n
        distinct, which = np.unique(wanted, axis=0, return_inverse=True)
        which = np.broadcast_to(which.reshape(-1), (n,)) if n else np.zeros(0, int)
        for g, goal in enumerate(distinct):
            agents = np.flatnonzero((which == g) & (status == SOLVED))
            if not len(agents):
                continue
            if g and time.perf_counter() - began > self.settings.time_limit_s:
                status[agents] = TIMED_OUT
                continue
            fault, seeds = self._seeds(goal)
            if fault != SOLVED:
                status[agents] = fault
            elif self._wants_field(len(agents), seeds):
                self._by_field(agents, seeds, states, status, cost, moves)
            else:
                self._by_search(agents, seeds, states, status, cost, moves)
        first = np.zeros(n + 1, np.int64)
        np.cumsum([len(each) for each in moves], out=first[1:])
        numbers = np.concatenate([np.zeros(0, np.int32), *moves])
        border = np.array([0, self._layout.border, self._layout.border], np.int32)
        taken = time.perf_counter() - began
        return PosePathSet(self.poses, goals_of, status, cost, states - border, first, numbers, taken)

    def update(self, rows: ArrayLike, cols: ArrayLike, costs: ArrayLike):
        """Change tiles. `plan` then equals planning from scratch; a field is repaired when it is needed again.

        rows, cols: (M,) int; costs: (M,) or one, 0 blocked; the last one of a tile counts. Raises GridMapError.
        """
        refuse_forked()
        row, col, _ = self._map.change(rows, cols, costs)
        if not len(row):
            return
        box = box_about(self._layout, row, col, self._robot.reach)
        for some in self._clusters(row, col, box):
            around = box_about(self._layout, row[some], col[some], self._robot.reach)
            self._on.change(row[some], col[some], self._map.costs[row[some], col[some]], around)
        for kept in self._kept.values():
            kept.box = box if kept.box is None else box_of_both(kept.box, box)
        self._poses = None
        if self._search is not None:
            self._search.change(box)

    def _clusters(self, rows, cols, box):
        """Numbers of changed tiles that are checked together: those of a cluster, or all, whose box is `box`"""
        key = rows // CLUSTER * (self._layout.cols // CLUSTER + 1) + cols // CLUSTER
        order = np.argsort(key, kind="stable")
        found = np.split(order, np.flatnonzero(np.diff(key[order])) + 1)
        wide = CLUSTER + 2 * self._robot.reach
        return found if len(found) * wide * -(-wide // 32) < _area(box) else [slice(None)]

    def prepare(self, goal: ArrayLike):
        """Make the field of a goal (3,) now, so that `plan` by `exact` has only to follow it."""
        fault, seeds = self._seeds(_as_pose("goal", goal))
        if fault == SOLVED:
            self._field(seeds)

    def field(self, goal: ArrayLike) -> np.ndarray:
        """Costs-to-go to a goal (3,): (headings, rows, cols) float64 metres as of `PosePathSet.cost`, inf: no path.

        Raises GridMapError for a goal that is not free.
        """
        fault, seeds = self._seeds(_as_pose("goal", goal))
        if fault != SOLVED:
            raise GridMapError(f"goal {shown(goal)}: {AgentStatus(fault).name.lower().replace('_', ' ')}")
        values = self._field(seeds).values()
        values = values.reshape(self._robot.gears, self._robot.headings, *values.shape[1:]).min(axis=0)
        return np.where(values < INFINITE, values * self._metres, np.inf)

    def states_free(self, poses: ArrayLike) -> np.ndarray:
        """(N,) bool: are the states of poses (N, 3) free? Then so is every pose of the same tile and sector."""
        return self._states_of(_as_poses("poses", poses))[1] == SOLVED

    def path_free(self, path: ArrayLike) -> bool:
        """Does the footprint meet no blocked tile along poses (K, 3)? Between two of them it turns about one point or
        moves straight."""
        poses = _as_poses("path", path)
        if not len(poses):
            raise GridMapError("path has no poses; allowed: one or more")
        if not np.isfinite(poses).all():
            return False
        places = self._map.places_of(poses[:, :2])
        if np.abs(places).max() > BEYOND:
            return False
        pieces = [piece / self._robot.resolution for piece in convex_pieces(self._robot.footprint)]
        turns = np.cumsum([poses[0, 2], *(wrapped(turn) for turn in np.diff(poses[:, 2]))]) - self._map.origin[2]
        return along_free(pieces, np.column_stack([places[:, ::-1], turns]), self._map.costs, 0.0)

    @property
    def _metres(self):
        return self._robot.resolution / UNITS

    def _states_of(self, poses):
        """-> (N, 3) int32 layer, row, column with the border; (N,) uint8 SOLVED or what is wrong, as of a start"""
        finite = np.isfinite(poses).all(axis=1)
        places = np.zeros((len(poses), 2))
        places[finite] = self._map.places_of(poses[finite, :2])
        inside = finite & (places >= 0).all(axis=1) & (places < self._map.shape).all(axis=1)
        states = np.zeros((len(poses), 3), np.int32)
        states[:, 1:] = self._layout.border + np.where(inside[:, None], np.floor(places), 0)
        angles = np.where(inside, poses[:, 2], 0.0) - self._map.origin[2]
        states[:, 0] = self._robot.headings_of(angles)
        free = self._free(states)
        status = np.where(
            inside, np.where(free, SOLVED, START_BLOCKED), np.where(finite, START_OUTSIDE, START_NOT_FINITE)
        )
        return states, status.astype(np.uint8)

    def _free(self, states):
        """(N,) bool of states (N, 3)."""
        headings = self._robot.headings
        planes = len(self._robot.moves) + states[:, 0] % headings
        return self._on.words_at(planes.astype(np.int64), states[:, 1].astype(np.int64), states[:, 2].astype(np.int64))

    def _seeds(self, goal):
        """-> SOLVED or what is wrong with a goal, as its status; its free states as numbers (n,) int64"""
        states, status = self._states_of(goal[None])
        if status[0] not in (SOLVED, START_BLOCKED):
            return status[0] + 1, None  # a goal's status follows a start's
        settings = self.settings
        far = settings.goal_tolerance / self._robot.resolution
        around = []  # rows and columns of the map that are near the goal's tile, counted from that
        for at, count in zip(states[0, 1:].tolist(), self._map.shape):
            first = self._layout.border - at
            around.append(np.arange(max(-math.floor(far), first), min(math.floor(far), first + count - 1) + 1))
        down, right = np.meshgrid(*around, indexing="ij")
        near = np.hypot(down, right) <= far
        off = np.abs(wrapped(self._robot.angles - (goal[2] - self._map.origin[2])))
        layers = np.flatnonzero((off <= settings.heading_tolerance) | (np.arange(len(off)) == states[0, 0]))
        layers = np.concatenate([layers + g * self._robot.headings for g in range(self._robot.gears)])
        rows, cols = states[0, 1] + down[near], states[0, 2] + right[near]
        each = np.column_stack([np.repeat(layers, len(rows)), np.tile(rows, len(layers)), np.tile(cols, len(layers))])
        each = each[self._free(each)]
        numbers = (each[:, 0].astype(np.int64) * self._layout.rows + each[:, 1]) * self._layout.cols + each[:, 2]
        return (SOLVED, numbers) if len(numbers) else (START_BLOCKED + 1, None)

    def _wants_field(self, agents, seeds):
        if self.algorithm == "auto" and self.device == "cpu" and agents <= FEW:
            kept = self._kept.get(seeds.tobytes())
            return kept is not None and kept.box is None
        return self.algorithm != "astar"

    def _starts(self, state):
        """Numbers of a state in all gears."""
        layers = state[0] + self._robot.headings * np.arange(self._robot.gears)
        return (layers.astype(np.int64) * self._layout.rows + state[1]) * self._layout.cols + state[2]

    def _by_field(self, agents, seeds, states, status, cost, moves):
        """Answer agents to one goal by its field."""
        made = self._field(seeds)
        numbers = np.array([self._starts(states[i]) for i in agents])
        values = made.values_at(numbers.reshape(-1)).reshape(numbers.shape)
        gear = values.argmin(axis=1)
        states[agents, 0] += self._robot.headings * gear
        value = values[np.arange(len(agents)), gear]
        found = value < INFINITE
        if not found.all() and made.highest() + int(self._robot.table.price.max()) * HIGHEST_COST >= INFINITE:
            raise GridMapError(
                f"paths to this goal may cost {INFINITE * self._metres:g} m or more, which is not counted"
            )
        cost[agents[found]] = value[found] * self._metres
        status[agents[~found]] = NO_PATH
        first, numbers = made.follow(states[agents[found]])
        for k, agent in enumerate(agents[found]):
            moves[agent] = numbers[first[k] : first[k + 1]]

    def _field(self, seeds):
        """The field of a goal's states, made, repaired, or as it is."""
        key = seeds.tobytes()
        kept = self._kept.pop(key, None)  # an error, Ctrl-C for one, loses it: nobody knows what it is then
        if kept is None or self._is_large(kept.box):
            kept = kept or Kept(self._new_field())
            kept.field.make(seeds)
        elif kept.box is not None:
            kept.field.repair(kept.box)
        kept.box = None
        self._kept[key] = kept
        return kept.field

    def _is_large(self, box):
        whole = new_box(self._layout)
        return box is not None and _area(box) > MOST_REPAIRED * _area(whole)

    def _new_field(self):
        """A field's memory: of a goal that was not asked for lately, where no more are allowed."""
        most = max(1, self.settings.memory_limit_bytes // self._layout.field_bytes())
        if len(self._kept) >= most:
            return self._kept.popitem(last=False)[1].field
        if self.device == "cpu":
            return CpuField(self._on, self._robot.table)
        from .cuda import CudaField

        return CudaField(self._on, self._robot.table)

    def _by_search(self, agents, seeds, states, status, cost, moves):
        """Answer agents to one goal by A*, one after the other."""
        self._search = self._search or Search(self._robot, self._on)
        for agent in agents:
            starts = self._starts(states[agent])
            units, found, start = self._search.find(starts, seeds, max(1, self._map.least_cost))
            status[agent] = SOLVED if units < INFINITE else NO_PATH
            if units < INFINITE:
                cost[agent], moves[agent] = units * self._metres, found
                states[agent, 0] = start // (self._layout.rows * self._layout.cols)


def _as_poses(name, values):
    """Poses x, y, heading, or one of them, as (N, 3) float64."""
    array = array_of(name, values, GridMapError)
    if array.shape == (0,):
        array = array.reshape(0, 3)
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind == "b":
        raise GridMapError(f"{name} has shape {array.shape}, type {array.dtype}; allowed: (N, 3) numbers x, y, heading")
    return array.astype(np.float64)


def _as_pose(name, value):
    """One pose (3,)."""
    poses = _as_poses(name, value)
    if len(poses) != 1:
        raise GridMapError(f"{name} has {len(poses)} poses; allowed: one, x, y, heading")
    return poses[0]


def _area(box):
    return int(box[1] - box[0]) * int(box[3] - box[2])
