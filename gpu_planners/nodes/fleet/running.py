"""The fleet that runs: who is where, who goes where, and the next step. It belongs to the worker thread.

Agents have ids; the planner knows them by numbers, which are never given again. Times are seconds of the node's clock.
"""

import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpu_planners_msgs.msg import AgentActions

from ...errors import GridMapError
from ...fleet.guidance import Guidance
from ...fleet.motion import MOTIONS
from ...grid import FleetPlanner, GridMap
from ..common.request_error import one_line
from .parameters import FleetParameters
from .places import AGENT, ClosedTiles, FleetStep, Places, sharing

MINUTE_S = 60.0
FIELDS_SHARE = 0.5  # of the time of a step, for the fields of new goals
KEPT = 0.1  # of the time of a step: one that begins later than that delays those that follow
TOO_MANY = ""  # key of the fault that concerns agents beyond the limit: no id is empty
LEAST_DEAD = 256  # that many agents must have left before the planner is made anew


class RunningFleet:
    """The agents of a fleet, their goals and its planner.

    planner, places: FleetPlanner and Places, None before the first map
    faults: {id: what is wrong with its report}; clashes: {id: what is wrong with its place, as of the last step}
    goal_faults: {id: what is wrong with its goal}; guidance_fault: why guidance_file is not used
    began: when the last step began; steps: how many have begun; reached: goals reached so far
    """

    def __init__(self, values: FleetParameters) -> None:
        self._values = values
        self.planner: Any = None
        self.guidance_fault = ""
        self.places: Any = None
        self._closed: Any = None
        self._grid: GridMap | None = None
        self.faults: dict[str, str] = {}
        self.clashes: dict[str, str] = {}
        self.goal_faults: dict[str, str] = {}
        self._goals: dict[str, tuple[float, float]] = {}  # by id, metres
        self._waiting: dict[str, np.ndarray] = {}  # an AGENT for each id that has no number yet
        self._number: dict[str, int] = {}
        self._ids: list[str] = []  # by number
        self._agents = np.zeros(0, AGENT)  # by number
        self.steps, self.began = 0, -np.inf
        self.reached, self._recent = 0, deque[int]()
        self.step_times: deque[float] = deque(maxlen=100)

    def __len__(self):
        """How many agents are known, those that wait for a place among them."""
        return len(self._number) + len(self._waiting)

    @property
    def on_map(self) -> int:
        return len(self._number)

    # ---- map and parameters ----

    def configure(self, values: FleetParameters) -> None:
        before = self._values
        was, now = ((each.fleet, each.devices[0], each.guidance_file) for each in (before, values))
        if self._grid is not None and was != now:
            self._open(values)
        self._values = values

    def take_map(self, grid: GridMap) -> None:
        """Run on this map from now on. Agents keep their places where it covers the same tiles as the one before."""
        before, self._grid = self._grid, grid
        if before is None or _frame(before) != _frame(grid):
            self._open(self._values)
            return
        self.places = Places(grid, self._values.fleet.size)
        self._find_goals(np.arange(len(self._agents)))

    def _open(self, values):
        """Make a planner for the present map; all agents wait for a place again. Where that raises, nothing changes."""
        given = self._grid, values.motion, values.devices[0], values.fleet
        self.planner, self.guidance_fault = FleetPlanner(*given), ""
        if values.guidance_file:
            try:
                self.planner.guidance = Guidance.load(values.guidance_file)
            except GridMapError as error:
                self.guidance_fault = f"guidance_file is not used: {one_line(str(error))}"
        self.places = Places(self._grid, values.fleet.size)
        self._closed = ClosedTiles(self.planner, self._grid)
        self._waiting |= {id: self._agents[number].copy() for id, number in self._number.items()}
        for agent in self._waiting.values():
            agent["busy"], agent["reached"], agent["silent"] = 0, False, False
        self._number, self._ids, self._agents = {}, [], np.zeros(0, AGENT)

    # ---- what agents tell ----

    def take_states(
        self, ids: Sequence[str], points: np.ndarray, yaws: np.ndarray, heard: np.ndarray, faults: dict[str, str]
    ) -> None:
        """Take the reports of K agents.

        points: (K, 2) metres in the map's frame; yaws: (K,) rad, NaN: none; heard: (K,) when
        faults: {id: what is wrong with its report}, whose point and yaw do not count then
        """
        for id in [*ids, TOO_MANY]:
            self.faults.pop(id, None)
        known = np.array([k for k, id in enumerate(ids) if id in self._number], int)
        numbers = np.array([self._number[ids[k]] for k in known], int)
        self._agents["heard"][numbers], self._agents["heard_step"][numbers] = heard[known], self.steps
        good = np.array([ids[k] not in faults for k in known], bool)
        self._agents["point"][numbers[good]] = points[known[good]]
        self._agents["yaw"][numbers[good]] = yaws[known[good]]
        for k, id in enumerate(ids):
            if id not in self._number and id not in faults:
                self._take_new(id, points[k], yaws[k], heard[k])
        for id, what in faults.items():
            if id in self._number or len(self.faults) < self._values.max_agents:
                self.faults[id] = f"{_agent(id)}: {what}"

    def _take_new(self, id, point, yaw, heard):
        if id not in self._waiting and len(self) >= self._values.max_agents:
            self.faults[TOO_MANY] = self._too_many(id, f"{len(self)} agents")
            return
        agent = self._waiting.setdefault(id, np.zeros((), AGENT))
        agent["point"], agent["yaw"], agent["heard"], agent["heard_step"] = point, yaw, heard, self.steps
        agent["goal"] = -1

    def remove(self, ids: Iterable[str]) -> None:
        gone = []
        for id in ids:
            for known in (self._waiting, self._goals, self.faults, self.clashes, self.goal_faults):
                known.pop(id, None)
            if id in self._number:
                gone.append(self._number.pop(id))
        if gone:
            self._agents["there"][gone] = False
            self._agents["goal"][gone] = -1
            self.planner.remove(np.array(gone))
        if len(self._agents) > LEAST_DEAD + 2 * len(self._number):
            self._open(self._values)

    def take_goals(self, ids: Sequence[str], points: np.ndarray, faults: dict[str, str]) -> None:
        """Take the goals of K agents; one whose goal is at fault has none. points: (K, 2) metres in the map's frame"""
        self.goal_faults.pop(TOO_MANY, None)
        for id, point in zip(ids, points.tolist()):
            self.goal_faults.pop(id, None)
            if id in faults:
                self._goals.pop(id, None)
                self.goal_faults[id] = f"{_agent(id)}: {faults[id]}"
            elif id not in self._goals and len(self._goals) >= self._values.max_agents:
                self.goal_faults[TOO_MANY] = self._too_many(id, f"{len(self._goals)} goals")
            else:
                self._goals[id] = tuple(point)
        self._find_goals(np.array([self._number[id] for id in ids if id in self._number], int))

    def clear_goals(self, ids: Iterable[str]) -> None:
        for id in ids:
            self._goals.pop(id, None)
            self.goal_faults.pop(id, None)
            if id in self._number:
                self._agents["goal"][self._number[id]] = -1

    def _find_goals(self, numbers):
        if self.planner is None or not len(numbers):
            return
        numbers = numbers[self._agents["there"][numbers]]
        ids = [self._ids[number] for number in numbers]
        has = np.array([id in self._goals for id in ids], bool)
        points = np.array([self._goals.get(id, (0.0, 0.0)) for id in ids]).reshape(-1, 2)
        tiles = np.where(has[:, None], self.places.tiles(points), -1)
        parts, here = self.places.part(tiles), self.places.part(self._positions[numbers])
        for k in np.flatnonzero(has):
            self.goal_faults.pop(ids[k], None)
        for k in np.flatnonzero(has & ((parts == 0) | ((parts != here) & (here > 0)))):
            self.goal_faults[ids[k]] = _unreachable(ids[k], points[k], tiles[k], parts[k])
            tiles[k] = -1
        before = self._agents["goal"][numbers]
        self._agents["reached"][numbers] &= (before == tiles).all(axis=1)
        self._agents["goal"][numbers] = tiles

    def _too_many(self, id, there_are):
        return f"{_agent(id)}: there are {there_are}; allowed: {self._values.max_agents}, the parameter max_agents"

    # ---- when a step is due ----

    def due(self, now: float) -> bool:
        self.began = min(self.began, now)  # a simulated time may begin anew
        np.minimum(self._agents["heard"], now, out=self._agents["heard"])
        if self.planner is None or not len(self) or now < self.due_from:
            return False
        if not self._number or now >= self.due_from + self._values.silent_after_s:
            return True
        return not (self._agents["there"] & ~self._silent(now) & ~self._faulty() & ~self._done()).any()

    @property
    def due_from(self) -> float:
        """Before this time no step is due."""
        return self.began + (0.0 if self._values.lockstep else self._values.step_s)

    def _silent(self, now):
        agents, after = self._agents, self._values.silent_after_s
        if self._values.lockstep:
            owes = agents["heard_step"] < self.steps
            return agents["there"] & owes & (now - np.maximum(agents["heard"], self.began) > after)
        return agents["there"] & (now - agents["heard"] > after)

    def _faulty(self):
        faulty = np.zeros(len(self._agents), bool)
        faulty[[self._number[id] for id in self.faults if id in self._number]] = True
        return faulty

    def _done(self):
        """(numbers,) bool: has the agent done what it was told, as far as is known?"""
        told = self._agents["heard_step"] >= self.steps if self._values.lockstep else True
        return (self._agrees() | (self._agents["busy"] > self.steps)) & told

    @property
    def _positions(self):
        """(numbers, 2) tiles where the planner has agents."""
        return self.planner.positions.astype(np.int64)

    def _reported(self):
        """(numbers, 2) tiles and (numbers,) headings of the latest reports"""
        tiles = self.places.tiles(self._agents["point"])
        if MOTIONS[self._values.motion].headings == 1:
            return tiles, np.zeros(len(tiles), np.int64)
        return tiles, self.places.headings(self._agents["yaw"], self.planner.headings)

    def _agrees(self):
        """(numbers,) bool: is the agent where the planner has it?"""
        tiles, faces = self._reported()
        near = self.places.off_centre(self._agents["point"], self._positions) <= self._values.arrival_tolerance
        return near & (tiles == self._positions).all(axis=1) & (faces == self.planner.headings)

    # ---- the step ----

    def step(self, now: float) -> FleetStep | None:
        """Begin a step; None where no agent is on the map."""
        self.clashes, self._agents["silent"] = {}, self._silent(now)
        self._observe()
        self._join()
        late = now - self.due_from
        on_time = not self._values.lockstep and 0 <= late < KEPT * self._values.step_s
        self.began = self.due_from if on_time else now
        if not self._number:
            return None
        self._count_goals()
        numbers = np.flatnonzero(self._agents["there"])
        before, faced = self._positions[numbers], self.planner.headings[numbers]
        began = time.perf_counter()
        goals = self._agents["goal"].copy()
        ready = self.planner.prepare(goals, FIELDS_SHARE * self._values.step_s)
        goals[~ready] = -1  # an agent whose field is not ready stands
        actions = self.planner.step(goals, self._values.budget_s)[numbers]
        took = time.perf_counter() - began
        self.steps += 1
        self.step_times.append(took)
        ticks = self._ticks(actions)
        self._agents["busy"][numbers[ticks > 0]] = self.steps - 1 + ticks[ticks > 0]
        tiles, headings = self._positions[numbers], self.planner.headings[numbers]
        ids, goals = [self._ids[number] for number in numbers], self._agents["goal"][numbers]
        states = self._states(numbers, before)
        return FleetStep(self.steps, ids, actions, states, before, faced, tiles, headings, ticks, goals, took)

    def give_out(self, now: float) -> None:
        """Let the step begin now, when its actions are given out, if planning took longer than a step: meanwhile no
        agent could act, and none counts as silent for it."""
        took = now - self.began
        if self._values.lockstep or took > self._values.step_s:
            self.began = now
            self._agents["heard"][~self._agents["silent"]] += max(took, 0.0)

    def _observe(self):
        """Tell the planner where agents are. One that is silent, or whose report is wrong, stands where it was."""
        agents, planned = self._agents, self._positions
        tiles, faces = self._reported()
        there, busy, faulty = agents["there"], agents["busy"] > self.steps, self._faulty()
        outside = there & (tiles[:, 0] < 0) & ~faulty
        for number in np.flatnonzero(outside):
            self._misplaced(self._ids[number], agents["point"][number], "is outside the map, or not finite")
        unknown = faulty | outside | agents["silent"]
        wanted = np.where((unknown | busy)[:, None], planned, tiles)
        self._keep_apart(wanted, planned, unknown)
        late = there & (tiles[:, 0] >= 0) & ~busy & ~self._agrees()
        self._close(np.flatnonzero(late), tiles, planned, wanted)
        known = there & ~unknown & ~busy
        faces = np.where(known, faces, self.planner.headings)
        self.planner.observe(np.where(known[:, None], wanted, -1), faces, np.flatnonzero(there & unknown))

    def _keep_apart(self, wanted, planned, unknown):
        """Where reports put two agents on one tile, move back those that the planner has elsewhere.

        wanted: (numbers, 2) tiles, changed in place; unknown: (numbers,) bool, set for those that were moved
        """
        numbers = np.flatnonzero(self._agents["there"])
        while len(pairs := numbers[sharing(wanted[numbers])]):
            moved = (wanted[pairs[:, 0]] != planned[pairs[:, 0]]).any(axis=1)
            for number, other in pairs[moved]:
                where = f"is on tile {wanted[number].tolist()}, where {_agent(self._ids[other])} is"
                self._misplaced(self._ids[number], self._agents["point"][number], where)
            if not moved.any():
                return
            back = pairs[moved, 0]
            wanted[back], unknown[back] = planned[back], True

    def _close(self, late, reported, planned, wanted):
        """Close the free tiles that late agents, and those that join, may cover: each is between two tiles, or was when
        it fell silent.

        late: (L,) numbers; (numbers, 2) tiles where agents report to be, the planner has them, they are taken to be
        """
        moving = late[np.abs(planned[late] - reported[late]).sum(axis=1) == 1]
        points = [self._agents["point"][late], *(agent["point"][None] for agent in self._waiting.values())]
        beside = self.places.beside(np.concatenate(points), self._values.arrival_tolerance)
        tiles = set(map(tuple, np.concatenate([reported[moving], planned[moving], beside]).tolist()))
        if tiles:
            tiles -= set(map(tuple, wanted[self._agents["there"]].tolist()))
        self._closed.close(tiles, self._grid)

    def _join(self):
        """Put agents that wait on the map where they fit; the others wait on, and it is said why."""
        if not self._waiting:
            return
        ids = list(self._waiting)
        agents = np.stack([self._waiting[id] for id in ids])
        tiles = self.places.tiles(agents["point"])
        positions = self._positions
        at = {tuple(positions[number].tolist()): id for id, number in self._number.items()}
        fitting = []
        for k, (id, tile, part) in enumerate(zip(ids, map(tuple, tiles.tolist()), self.places.part(tiles))):
            if tile[0] < 0:
                self._misplaced(id, agents["point"][k], "is outside the map, or not finite")
            elif tile in at:
                self._misplaced(id, agents["point"][k], f"is on tile {list(tile)}, where {_agent(at[tile])} is")
            elif not part:
                self._misplaced(id, agents["point"][k], f"is blocked: tile {list(tile)}")
            else:
                at[tile] = id
                fitting.append(k)
        before, faces = len(self._ids), self.places.headings(agents["yaw"], np.zeros(len(ids), np.int64))
        self._add([ids[k] for k in fitting], tiles[fitting], faces[fitting])
        self._find_goals(np.arange(before, len(self._ids)))

    def _add(self, ids, tiles, faces):
        if not ids:
            return
        try:
            numbers = self.planner.add(tiles, faces).tolist()
        except GridMapError as error:
            half = len(ids) // 2
            if half:
                self._add(ids[:half], tiles[:half], faces[:half])
                self._add(ids[half:], tiles[half:], faces[half:])
            else:
                self.clashes[ids[0]] = f"{_agent(ids[0])} cannot start on tile {tiles[0].tolist()}: {error}"
            return
        agents = np.stack([self._waiting.pop(id) for id in ids])
        agents["there"] = True
        self._agents = np.concatenate([self._agents, agents])
        self._number |= zip(ids, numbers)
        self._ids += ids

    def _misplaced(self, id, point, what):
        self.clashes[id] = f"{_agent(id)}: its position ({point[0]:.2f}, {point[1]:.2f}) {what}"

    def _ticks(self, actions):
        fleet, motion = self._values.fleet, MOTIONS[self._values.motion]
        turns = (actions > 0) & (motion.headings > 1)
        return np.where(actions == motion.wait, 0, np.where(turns, fleet.ticks_per_turn, fleet.ticks_per_move))

    def _count_goals(self):
        agents = self._agents
        at_goal = agents["there"] & (self._positions == agents["goal"]).all(axis=1) & (agents["busy"] <= self.steps)
        new = int((at_goal & ~agents["reached"]).sum())
        agents["reached"] |= at_goal
        self.reached += new
        self._recent.append(new)
        while len(self._recent) > max(1, MINUTE_S / self._values.step_s):
            self._recent.popleft()

    def _states(self, numbers, tiles):
        """(K,) states of AgentActions; of several that hold, the one that is assigned last counts."""
        agents, ids = self._agents[numbers], [self._ids[number] for number in numbers]
        states = np.full(len(numbers), AgentActions.MOVING, np.uint8)
        states[np.isin(numbers, self.planner.stuck)] = AgentActions.STUCK
        states[(tiles == agents["goal"]).all(axis=1)] = AgentActions.AT_GOAL
        states[agents["goal"][:, 0] < 0] = AgentActions.NO_GOAL
        states[[id in self.goal_faults for id in ids]] = AgentActions.BAD_GOAL
        states[self._faulty()[numbers]] = AgentActions.BAD_STATE
        states[[id in self.clashes for id in ids]] = AgentActions.BAD_STATE
        states[agents["silent"]] = AgentActions.SILENT
        return states

    # ---- what is said ----

    @property
    def goals_per_minute(self) -> float:
        """Goals reached per minute of steps, over the last minute."""
        return sum(self._recent) * MINUTE_S / (self._values.step_s * max(len(self._recent), 1))

    def silent_ids(self) -> list[str]:
        """Agents that were silent when the last step began."""
        return [self._ids[number] for number in np.flatnonzero(self._agents["silent"] & self._agents["there"])]

    def stuck_ids(self) -> list[str]:
        """Agents that are on the way for too long."""
        numbers = () if self.planner is None else self.planner.stuck
        return [self._ids[number] for number in numbers if self._agents["there"][number]]


def _frame(grid):
    return grid.shape, grid.resolution, grid.origin


def _agent(id):
    return f"agent '{one_line(id)}'"


def _unreachable(id, point, tile, part):
    """What is wrong with a goal. part: of the map that the tile belongs to"""
    if not np.isfinite(point).all():
        why = "is not finite"
    elif tile[0] < 0:
        why = "is outside the map"
    else:
        why = "cannot be reached: there is no way to it on the map" if part else "is blocked"
    return f"{_agent(id)}: its goal ({point[0]:.2f}, {point[1]:.2f}) {why}"
