"""The fleet that runs: who is where, who goes where, and the next step. It belongs to the worker thread.

The planner moves agents on paper, step by step, at an even pace; what they really do follows. An ActionGraph keeps what
is planned and not done, and says what each agent may do without waiting for others; so one that is late stops only
those that come after it on its tiles. Where an agent falls silent, is found elsewhere, or the map changes, what nobody
was told yet is forgotten and planned anew.

Agents have ids; the planner knows them by numbers, which are never given again. Times are seconds of the node's clock.
"""

import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpu_planners_msgs.msg import AgentActions

from ...errors import GridMapError
from ...fleet.action_graph import ActionGraph
from ...fleet.guidance import Guidance
from ...fleet.motion import MOTIONS
from ...grid import FleetPlanner, GridMap
from ..common.request_error import one_line
from .parameters import FleetParameters
from .places import AGENT, ClosedTiles, FleetStep, Places

MINUTE_S = 60.0
FIELDS_SHARE = 0.5  # of the time of a step, for the fields of new goals
KEPT = 0.1  # of the time of a step: one that begins later than that delays those that follow
TOO_MANY = ""  # key of the fault that concerns agents beyond the limit: no id is empty
LEAST_DEAD = 256  # that many agents must have left before the planner is made anew
STILL = 0.05  # tiles that an agent may be off without having moved
TOLD_AGAIN = 2.0  # times that an action takes: one whose agent has not moved by then is told again


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
        self._graph: Any = None
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
        self._first_heard = -np.inf
        self._ticks = 0  # of the planner
        self._moved = False  # has an agent arrived since actions were allowed last?
        self._off = self._begins = np.zeros(0, bool)
        self.reached, self._counted, self._recent = 0, 0, deque[int]()
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
            self._open(values, goes_on=_rules(before) == _rules(values))
        if self._grid is not None:
            self._graph.widen(values.steps_ahead + 1)
        self._values = values

    def take_map(self, grid: GridMap) -> None:
        """Run on this map from now on. Agents keep their places where it covers the same tiles as the one before."""
        before, self._grid = self._grid, grid
        if before is None or _frame(before) != _frame(grid):
            self._open(self._values)
            return
        self.places = Places(grid, self._values.fleet.size)
        self._plan_anew()  # else agents are allowed what was planned before the map changed
        self._find_goals(np.arange(len(self._agents)))

    def _open(self, values, goes_on=False):
        """Make a planner for the present map. Where that raises, nothing changes.

        goes_on: agents go on with what they were told, and have new numbers; else all wait for a place again
        """
        fleet = values.fleet
        stay = np.flatnonzero(self._agents["there"]) if goes_on else np.zeros(0, np.int64)
        grid = self._grid
        if len(stay):
            tiles, headings = (ends[stay] for ends in self._graph.forget())
            self._agents["busy"] = 0
            square = np.argwhere(np.ones((fleet.size, fleet.size), bool))
            under = (tiles[:, None] + square).reshape(-1, 2)
            under = under[grid.blocked[tuple(under.T)]]  # by now; ClosedTiles tells the planner
            grid = grid.changed(*under.T, 1) if len(under) else grid
        planner = FleetPlanner(grid, values.motion, values.devices[0], fleet)
        if len(stay):
            planner.start(tiles, headings)
        self.planner, self.guidance_fault = planner, ""
        if values.guidance_file:
            try:
                self.planner.guidance = Guidance.load(values.guidance_file)
            except GridMapError as error:
                self.guidance_fault = f"guidance_file is not used: {one_line(str(error))}"
        self.places = Places(self._grid, values.fleet.size)
        self._closed = ClosedTiles(self.planner, grid)
        if goes_on:
            self._graph.keep(stay)
        else:
            if self._graph is not None:
                self._agents["number"] += self._graph.allowed + 1  # what they were told does not count any more
            near = fleet.size - 1 + fleet.safety_distance
            self._graph = ActionGraph(grid.shape, near, fleet.following, values.steps_ahead + 1)
            self._waiting |= {id: self._agents[number].copy() for id, number in self._number.items()}
            for agent in self._waiting.values():
                agent["busy"], agent["reached"], agent["stands"] = 0, False, False
        self._agents, self._off, self._begins = self._agents[stay], self._off[stay], self._begins[stay]
        self._ids = [self._ids[number] for number in stay]
        self._number = {id: number for number, id in enumerate(self._ids)}

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
        if not len(self):
            self._first_heard = heard
        if id not in self._waiting:
            self._waiting[id] = np.zeros((), AGENT)
            self._waiting[id]["still_since"] = -np.inf  # as far as is known
        agent = self._waiting[id]
        if self.places is not None and np.linalg.norm(agent["point"] - point) > STILL * self._grid.resolution:
            agent["still_since"] = heard if agent["heard"] else -np.inf
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
            self._agents["there"][gone] = self._agents["stands"][gone] = False
            self._agents["goal"][gone] = -1
            self._plan_anew()
            self._graph.remove(np.array(gone))
            self.planner.remove(np.array(gone))
        if len(self._agents) > LEAST_DEAD + 2 * len(self._number):
            self._open(self._values, goes_on=True)

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
        parts, here = self.places.part(tiles), self.places.part(self._graph.tiles[numbers, 0])
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
        for times in ("heard", "told", "since"):
            np.minimum(self._agents[times], now, out=self._agents[times])
        if self.planner is None or not len(self) or now < self.due_from:
            return False
        if not self._number:  # others may tell too where they are, before anybody moves
            return self._values.lockstep or not 0 <= now - self._first_heard < self._values.step_s
        if not self._values.lockstep or now >= self.due_from + self._values.silent_after_s:
            return True
        self._follow(now)
        agents = self._agents
        done = (self._graph.planned == 0) | (agents["busy"] > self._ticks) | self._off
        done &= agents["heard_step"] >= self.steps
        return not (agents["there"] & ~self._silent(now) & ~self._faulty() & ~done).any()

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

    def _late(self, now):
        """(numbers,) bool, who does not do what it was told?"""
        late = now - self._agents["since"] - self._values.step_s * self._lasts() > self._values.silent_after_s
        return self._agents["there"] & (self._graph.allowed > 0) & late

    def _faulty(self):
        faulty = np.zeros(len(self._agents), bool)
        faulty[[self._number[id] for id in self.faults if id in self._number]] = True
        return faulty

    # ---- what agents have done ----

    def _follow(self, now):
        """Find out which of their actions agents have done, by what they reported last.

        _off: (numbers,) bool, who is neither where it was told to be nor on the way there; _begins: who has not moved
        """
        graph, agents = self._graph, self._agents
        tiles, faces = self.places.tiles(agents["point"]), self._faces(agents["yaw"], -1)
        blind = faces < 0
        allowed = np.arange(graph.most + 1) <= graph.allowed[:, None]
        here = (graph.tiles == tiles[:, None]).all(axis=2)
        faced = (graph.headings == faces[:, None]) | blind[:, None]
        near = self.places.off_centre(agents["point"], tiles) <= self._values.arrival_tolerance
        at = here & faced & allowed & near[:, None]
        on_way = (here[:, :-1] | here[:, 1:]) & (faced[:, :-1] | faced[:, 1:]) & allowed[:, 1:]
        self._begins = at[:, 0].copy()
        done = np.where(at.any(axis=1), at.argmax(axis=1), on_way.argmax(axis=1))
        # one that does not say how it is turned has turned when the time for it is over: one turn, for the next one it
        # is told of anew
        turns = blind & self._begins & (graph.allowed > 0) & (graph.tiles[:, 0] == graph.tiles[:, 1]).all(axis=1)
        done[turns & (now - agents["told"] >= self._values.step_s * self._values.fleet.ticks_per_turn)] = 1
        rests = here[:, 0] & faced[:, 0]
        heard = agents["there"] & ~self._faulty() & (tiles[:, 0] >= 0)
        on_plan = at.any(axis=1) | on_way.any(axis=1) | rests
        self._off = heard & ~on_plan
        done[~heard | ~on_plan] = 0
        later = np.arange(graph.most + 1)
        passed = (graph.tiles == agents["goal"][:, None]).all(axis=2) & (later <= done[:, None])
        self._count(passed[:, 1:].any(axis=1))
        numbers = np.flatnonzero(done)
        graph.arrive(numbers, done[numbers])
        agents["number"][numbers] += done[numbers]
        agents["told"][numbers], agents["since"][numbers] = np.nan, now
        self._moved |= len(numbers) > 0
        self._count(agents["there"] & (graph.tiles[:, 0] == agents["goal"]).all(axis=1))

    def _faces(self, yaws, otherwise):
        """(K,) rad -> (K,) headings; those of `otherwise` where an agent tells none, or all face one way"""
        if MOTIONS[self._values.motion].headings == 1:
            yaws = np.full(len(yaws), np.nan)
        return self.places.headings(yaws, otherwise)

    def _count(self, at_goal):
        """Count those of the agents (numbers,) bool that are at their goals for the first time."""
        self.reached += int((at_goal & ~self._agents["reached"]).sum())
        self._agents["reached"] |= at_goal

    def news(self, now: float) -> FleetStep | None:
        """What agents may do since others have gone on, between two steps; None where there is nothing to be said."""
        if self._values.lockstep or not self._number:
            return None
        self._follow(now)
        if not self._moved:
            return None
        self._moved = False
        self._graph.allow()
        numbers = np.flatnonzero(self._agents["there"] & (self._graph.allowed > 0) & np.isnan(self._agents["told"]))
        return self._told(numbers, now, 0.0) if len(numbers) else None

    # ---- the step ----

    def step(self, now: float) -> FleetStep | None:
        """Begin a step; None where no agent is on the map."""
        self.clashes = {}
        if self._number:
            self._follow(now)
        self._observe(now)
        self._join()
        late = now - self.due_from
        on_time = not self._values.lockstep and 0 <= late < KEPT * self._values.step_s
        self.began = self.due_from if on_time else now
        if not self._number:
            return None
        self._recent.append(self.reached - self._counted)
        self._counted = self.reached
        while len(self._recent) > max(1, MINUTE_S / self._values.step_s):
            self._recent.popleft()
        began = time.perf_counter()
        self._plan()
        self._graph.allow()
        took = time.perf_counter() - began
        self._moved = False
        self.steps += 1
        self.step_times.append(took)
        return self._told(np.flatnonzero(self._agents["there"]), now, took)

    def give_out(self, now: float) -> None:
        """Let the step begin now, when its actions are given out, if planning took longer than a step: meanwhile no
        agent could act, and none counts as silent for it."""
        took = now - self.began
        if self._values.lockstep or took > self._values.step_s:
            self.began = now
            for times in ("heard", "told", "since"):
                self._agents[times][~self._agents["stands"]] += max(took, 0.0)

    def _plan_anew(self):
        """Forget what agents were not told yet."""
        tiles, headings = self._graph.forget()
        moved = (tiles != self.planner.positions).any(axis=1) | (headings != self.planner.headings)
        self._agents["busy"][moved] = 0

    def _observe(self, now):
        """Take agents for what they report to be. One that is silent, late or at fault stands; others go around it."""
        agents, graph = self._agents, self._graph
        there, faulty = agents["there"], self._faulty()
        tiles, faces = self.places.tiles(agents["point"]), self._faces(agents["yaw"], graph.headings[:, 0])
        outside = there & (tiles[:, 0] < 0) & ~faulty
        for number in np.flatnonzero(outside):
            self._misplaced(self._ids[number], agents["point"][number], "is outside the map, or not finite")
        off = np.flatnonzero(self._off) if len(there) else np.zeros(0, int)
        agents["silent"], agents["late"] = self._silent(now), self._late(now)
        stands = agents["silent"] | agents["late"] | faulty | outside
        if len(off) or (stands & ~agents["stands"]).any() or self._someone_fits():
            self._plan_anew()
        moves = graph.movable(off, tiles[off])
        for number in off[~moves]:
            other = _agent(self._ids[graph.holder(tiles[number], number)])
            where = f"is on tile {tiles[number].tolist()}, where {other} is"
            self._misplaced(self._ids[number], agents["point"][number], where)
        stands[off[~moves]] = True
        off = off[moves]
        agents["number"][off] += graph.allowed[off] + 1  # whatever it was told does not count any more
        graph.remove(off)
        graph.place(off, tiles[off], faces[off])
        agents["told"][off], agents["busy"][off] = np.nan, 0
        agents["stands"] = stands
        if self._close(stands, outside | faulty):
            self._plan_anew()
        self._show_planner()

    def _show_planner(self, busy=()):
        """Tell the planner where agents are on paper. busy: numbers of those that get nothing more to do now"""
        tiles, headings = self._graph.ends()
        there = self._agents["there"]
        stands = np.flatnonzero(there & self._agents["stands"])
        self.planner.observe(np.where(there[:, None], tiles, -1), headings, stands, busy)

    def _close(self, stands, unknown):
        """Close tiles that nobody holds but somebody may cover: those that agents which stand were to enter, and those
        beside one that is off its tile's centre, or is to join. -> has anything changed?

        (numbers,) bool: who stands, of whom it is not known where it is
        """
        agents, graph = self._agents, self._graph
        rests = agents["there"] & ~unknown & (graph.allowed == 0)
        points = [agents["point"][rests], *(agent["point"][None] for agent in self._waiting.values())]
        beside = self.places.beside(np.concatenate(points), self._values.arrival_tolerance)
        tiles = set(map(tuple, np.concatenate([beside, graph.held(np.flatnonzero(stands))]).tolist()))
        if tiles:
            tiles -= set(map(tuple, graph.ends()[0][agents["there"]].tolist()))
        return self._closed.close(tiles, self._grid)

    def _plan(self):
        """Plan the next action of every agent that has not too much to do yet."""
        agents, graph, values = self._agents, self._graph, self._values
        goals = agents["goal"].copy()
        ready = self.planner.prepare(goals, FIELDS_SHARE * values.step_s, budget_s=values.budget_s)
        goals[~ready] = -1  # an agent whose field is not ready stands
        full = (
            agents["there"] & ~agents["stands"] & (graph.planned > values.steps_ahead) & (agents["busy"] <= self._ticks)
        )
        self._show_planner(np.flatnonzero(full))
        actions = self.planner.step(goals, values.budget_s)
        self._ticks += 1
        begun = np.flatnonzero(agents["there"] & (actions != MOTIONS[values.motion].wait))
        graph.plan(begun, self.planner.positions[begun], self.planner.headings[begun])
        agents["busy"][begun] = self._ticks - 1 + self._ticks_of(actions[begun])

    def _someone_fits(self):
        """Does an agent wait for a tile that somebody is to enter, but was not told to?"""
        tiles = self.places.tiles(np.array([agent["point"] for agent in self._waiting.values()]).reshape(-1, 2))
        tiles = tiles[tiles[:, 0] >= 0]
        return any(self._graph.holder(tile) < 0 for tile in tiles[~self._graph.is_free(tiles)])

    def _join(self):
        """Put agents that wait on the map where they fit; the others wait on, and it is said why."""
        if not self._waiting:
            return
        ids = list(self._waiting)
        agents = np.stack([self._waiting[id] for id in ids])
        tiles = self.places.tiles(agents["point"])
        off_centre = self.places.off_centre(agents["point"], tiles) > self._values.arrival_tolerance
        moving = off_centre & (agents["heard"] - agents["still_since"] < self._values.step_s)
        at: dict[tuple, str] = {}
        fitting = []
        for k, (id, tile, part) in enumerate(zip(ids, map(tuple, tiles.tolist()), self.places.part(tiles))):
            holder = self._graph.holder(tiles[k]) if tile[0] >= 0 else -1
            other = at.get(tile, self._ids[holder] if holder >= 0 else None)
            if tile[0] < 0:
                self._misplaced(id, agents["point"][k], "is outside the map, or not finite")
            elif other is not None:
                self._misplaced(id, agents["point"][k], f"is on tile {list(tile)}, where {_agent(other)} is")
            elif not part:
                self._misplaced(id, agents["point"][k], f"is blocked: tile {list(tile)}")
            elif not moving[k]:  # else the next report tells where it stops
                at[tile] = id
                fitting.append(k)
        before, faces = len(self._ids), self._faces(agents["yaw"], np.zeros(len(ids), np.int64))
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
        self._graph.add(tiles, faces)
        self._off, self._begins = (np.append(old, np.zeros(len(ids), bool)) for old in (self._off, self._begins))
        agents = np.stack([self._waiting.pop(id) for id in ids])
        agents["there"], agents["told"] = True, np.nan
        self._agents = np.concatenate([self._agents, agents])
        self._number |= zip(ids, numbers)
        self._ids += ids

    def _misplaced(self, id, point, what):
        self.clashes[id] = f"{_agent(id)}: its position ({point[0]:.2f}, {point[1]:.2f}) {what}"

    # ---- what agents are told ----

    def _ticks_of(self, actions):
        """(K,) steps that actions of the planner take"""
        fleet, motion = self._values.fleet, MOTIONS[self._values.motion]
        turns = (actions > 0) & (motion.headings > 1)
        return np.where(actions == motion.wait, 0, np.where(turns, fleet.ticks_per_turn, fleet.ticks_per_move))

    def _lasts(self):
        """(numbers,) steps that the action which each agent may do takes"""
        fleet = self._values.fleet
        turns = (self._graph.tiles[:, 0] == self._graph.tiles[:, 1]).all(axis=1)
        return np.where(turns, fleet.ticks_per_turn, fleet.ticks_per_move)

    def _actions(self, agents, states):
        """The planner's actions (A,) by which agents (A,) come to their states (A,), counted from 1."""
        graph, motion = self._graph, MOTIONS[self._values.motion]
        rows, cols = (graph.tiles[agents, states] - graph.tiles[agents, states - 1]).T
        if motion.headings == 1:
            return np.where(cols != 0, 1 - cols, 2 - rows)
        turn = (graph.headings[agents, states] - graph.headings[agents, states - 1]) % 4
        return np.where((rows != 0) | (cols != 0), 0, np.where(turn == 1, 1, 2))

    def _told(self, numbers, now, took):
        """What some agents (K,) are told now. took: seconds of planning -> FleetStep"""
        agents, graph, wait = self._agents, self._graph, MOTIONS[self._values.motion].wait
        told, has = agents["told"][numbers], graph.allowed[numbers] > 0
        new = has & np.isnan(told)
        again = has & (now - told >= TOLD_AGAIN * self._values.step_s * self._lasts()[numbers])
        again &= self._begins[numbers] & (agents["heard"][numbers] > told)
        begins = (new | again | (has & self._values.lockstep)) & ~agents["silent"][numbers]
        agents["told"][numbers[begins]] = now
        agents["since"][numbers[new]] = now
        actions = np.where(begins, self._actions(numbers, np.ones(len(numbers), int)), wait)
        k, more = np.nonzero(np.arange(graph.most - 1) < graph.allowed[numbers, None] - 1)
        later = numbers[k], more + 2
        return FleetStep(
            self.steps,
            [self._ids[number] for number in numbers],
            actions,
            self._states(numbers),
            graph.tiles[numbers, 0],
            graph.headings[numbers, 0],
            graph.tiles[numbers, has.astype(int)],
            graph.headings[numbers, has.astype(int)],
            self._ticks_of(actions),
            agents["number"][numbers] + has,
            np.bincount(k, minlength=len(numbers)),
            self._actions(*later),
            graph.tiles[later],
            graph.headings[later],
            agents["goal"][numbers],
            took,
        )

    def _states(self, numbers):
        """(K,) states of AgentActions; of several that hold, the one that is assigned last counts."""
        agents, ids = self._agents[numbers], [self._ids[number] for number in numbers]
        states = np.full(len(numbers), AgentActions.MOVING, np.uint8)
        states[np.isin(numbers, self.planner.stuck)] = AgentActions.STUCK
        states[(self._graph.tiles[numbers, 0] == agents["goal"]).all(axis=1)] = AgentActions.AT_GOAL
        states[agents["goal"][:, 0] < 0] = AgentActions.NO_GOAL
        states[[id in self.goal_faults for id in ids]] = AgentActions.BAD_GOAL
        states[agents["late"]] = AgentActions.LATE
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

    def late_ids(self) -> list[str]:
        """Agents that had not done what they were told when the last step began."""
        return [self._ids[number] for number in np.flatnonzero(self._agents["late"] & self._agents["there"])]

    def stuck_ids(self) -> list[str]:
        """Agents that are on the way for too long."""
        numbers = () if self.planner is None else self.planner.stuck
        return [self._ids[number] for number in numbers if self._agents["there"][number]]


def _frame(grid):
    return grid.shape, grid.resolution, grid.origin


def _rules(values):
    """What an agent's action may touch by."""
    return values.fleet.size, values.fleet.safety_distance, values.fleet.following


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
