"""The fleet that runs: who is where, who goes where, and the next step. It belongs to the worker thread.

Nothing here knows of messages. Agents have ids; the planner knows them by numbers, which are never given again.
Times are seconds of the node's clock.
"""

import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpu_planners_msgs.msg import AgentActions

from ...errors import GridMapError
from ...fleet.motion import MOTIONS
from ...grid import FleetPlanner, GridMap
from ..common.request_error import one_line
from .parameters import FleetParameters
from .places import Places
from .step import AGENT, Step

MINUTE_S = 60.0
FIELDS_SHARE = 0.5  # of the time of a step, for the fields of new goals
KEPT = 0.1  # a step that begins late by less of its time does not delay those that follow
TOO_MANY = ""  # in place of an id: no agent is called so
LEAST_DEAD = 256  # numbers of agents that have left, from which on the planner may be made anew


class RunningFleet:
    """The agents of a fleet, their goals and its planner.

    faults: {id: what is wrong with its report}; clashes: {id: what is wrong with its place, as of the last step}
    goal_faults: {id: what is wrong with its goal}
    began: when the last step began; steps: how many have begun
    """

    def __init__(self, values: FleetParameters) -> None:
        self._values = values
        self.planner: Any = None  # a FleetPlanner, once there is a map
        self.places: Any = None  # Places on it
        self._grid: GridMap | None = None
        self.faults: dict[str, str] = {}
        self.clashes: dict[str, str] = {}
        self.goal_faults: dict[str, str] = {}
        self._goals: dict[str, tuple[float, float]] = {}  # by id, metres
        self._waiting: dict[str, np.ndarray] = {}  # by id, those that have no number yet: an AGENT each
        self.steps, self.began = 0, -np.inf
        self._closed: set[tuple[int, int]] = set()
        self._told_grid: GridMap | None = None  # the map that the planner knows, but for the tiles that are closed
        self.reached, self._recent = 0, deque[int]()
        self.step_times: deque[float] = deque(maxlen=100)
        self._forget_numbers()

    def _forget_numbers(self):
        self._number: dict[str, int] = {}
        self._ids: list[str] = []
        self._agents = np.zeros(0, AGENT)
        self._silent_then = np.zeros(0, bool)  # in the last step

    def __len__(self):
        """How many agents are known, those that wait for a place among them."""
        return len(self._number) + len(self._waiting)

    @property
    def on_map(self) -> int:
        """How many agents are on the map."""
        return len(self._number)

    # ------------------------------------------------------------------------------------------------ map, parameters

    def configure(self, values: FleetParameters) -> None:
        """Take other parameters."""
        before, self._values = self._values, values
        if self._grid is None or (before.fleet, before.devices[0]) == (values.fleet, values.devices[0]):
            return
        try:
            self._open()
        except Exception:
            self._values = before
            raise

    def take_map(self, grid: GridMap) -> None:
        """Run on a map from now on; on one that lies where the last one lay, its tiles change under the agents."""
        before, self._grid = self._grid, grid
        if before is None or _place(before) != _place(grid):
            self._open()
            return
        self.places = Places(grid, self._values.fleet.size)
        self._find_goals(np.arange(len(self._agents)))

    def _open(self):
        """A planner for the map as it is; all agents look for a place anew."""
        values = self._values
        self.planner = FleetPlanner(self._grid, values.motion, values.devices[0], values.fleet)
        self.places = Places(self._grid, values.fleet.size)
        self._told_grid = self._grid
        self._waiting |= {id: self._agents[number].copy() for id, number in self._number.items()}
        for agent in self._waiting.values():
            agent["busy"], agent["reached"] = 0, False
        self._closed = set()
        self._forget_numbers()

    # ------------------------------------------------------------------------------------------------ what is told

    def take_states(
        self, ids: Sequence[str], points: np.ndarray, yaws: np.ndarray, heard: np.ndarray, faults: dict[str, str]
    ) -> None:
        """What agents say of themselves.

        points: (K, 2) metres in the map's frame; yaws: (K,) rad, NaN: none; heard: (K,) when
        faults: {id: what is wrong with its state}, whose point and yaw do not count then
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
                self.faults[id] = f"agent '{one_line(id)}': {what}"

    def _take_new(self, id, point, yaw, heard):
        """An agent that has no number yet."""
        if id not in self._waiting and len(self) >= self._values.max_agents:
            self.faults[TOO_MANY] = (
                f"agent '{one_line(id)}': there are {len(self)} agents; allowed: {self._values.max_agents}, "
                "the parameter max_agents"
            )
            return
        agent = self._waiting.setdefault(id, np.zeros((), AGENT))
        agent["point"], agent["yaw"], agent["heard"], agent["heard_step"] = point, yaw, heard, self.steps
        agent["goal"] = -1

    def remove(self, ids: Iterable[str]) -> None:
        """Agents leave the fleet."""
        gone = []
        for id in ids:
            for known in (self._waiting, self._goals, self.faults, self.clashes, self.goal_faults):
                known.pop(id, None)
            number = self._number.pop(id, None)
            if number is not None:
                gone.append(number)
        if gone:
            self._agents["there"][gone] = False
            self._agents["goal"][gone] = -1
            self.planner.remove(np.array(gone))
        if len(self._agents) > LEAST_DEAD + 2 * len(self._number):
            self._open()

    def take_goals(self, ids: Sequence[str], points: np.ndarray, faults: dict[str, str]) -> None:
        """Where agents shall go; who has a goal at fault has none. points: (K, 2) metres in the map's frame"""
        numbers = []
        self.goal_faults.pop(TOO_MANY, None)
        for id, point in zip(ids, points.tolist()):
            self.goal_faults.pop(id, None)
            if id in faults:
                self._goals.pop(id, None)
                self.goal_faults[id] = f"agent '{one_line(id)}': {faults[id]}"
            elif id not in self._goals and len(self._goals) >= self._values.max_agents:
                self.goal_faults[TOO_MANY] = (
                    f"agent '{one_line(id)}': there are {len(self._goals)} goals; allowed: {self._values.max_agents}, "
                    "the parameter max_agents"
                )
            else:
                self._goals[id] = tuple(point)
            if id in self._number:
                numbers.append(self._number[id])
        self._find_goals(np.array(numbers, int))

    def clear_goals(self, ids: Iterable[str]) -> None:
        """Agents have no goal from now on."""
        for id in ids:
            self._goals.pop(id, None)
            self.goal_faults.pop(id, None)
            if id in self._number:
                self._agents["goal"][self._number[id]] = -1

    def _find_goals(self, numbers):
        """Look for the tiles of the goals of some agents."""
        if self.planner is None or not len(numbers):
            return
        numbers = numbers[self._agents["there"][numbers]]
        ids = [self._ids[number] for number in numbers]
        has = np.array([id in self._goals for id in ids], bool)
        points = np.array([self._goals.get(id, (0.0, 0.0)) for id in ids]).reshape(-1, 2)
        tiles = np.where(has[:, None], self.places.tiles(points), -1)
        parts, here = self.places.part(tiles), self.places.part(self._positions[numbers])
        for k in np.flatnonzero(has & ((parts == 0) | ((parts != here) & (here > 0)))):
            x, y = points[k]
            why = (
                "is not finite"
                if not np.isfinite(points[k]).all()
                else "is outside the map"
                if tiles[k, 0] < 0
                else "is blocked"
                if parts[k] == 0
                else "cannot be reached: there is no way to it on the map"
            )
            self.goal_faults[ids[k]] = f"agent '{one_line(ids[k])}': its goal ({x:.2f}, {y:.2f}) {why}"
            tiles[k] = -1
        for k in np.flatnonzero(has & (tiles[:, 0] >= 0)):
            self.goal_faults.pop(ids[k], None)
        before = self._agents["goal"][numbers]
        self._agents["reached"][numbers] &= (before == tiles).all(axis=1)
        self._agents["goal"][numbers] = tiles

    # ------------------------------------------------------------------------------------------------ steps

    @property
    def _positions(self):
        """(numbers, 2) tiles; the planner has as many numbers as this class."""
        return self.planner.positions.astype(np.int64)

    def due(self, now: float) -> bool:
        """Is it time for the next step?"""
        values = self._values
        self.began = min(self.began, now)  # a simulated time may begin anew
        np.minimum(self._agents["heard"], now, out=self._agents["heard"])
        if self.planner is None or not len(self) or now < self.due_from:
            return False
        if not self._number or now >= self.due_from + values.silent_after_s:
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

    def _seen(self):
        """(numbers, 2) tiles and (numbers,) headings of the latest reports"""
        return self.places.tiles(self._agents["point"]), self._faces()

    def _faces(self):
        if MOTIONS[self._values.motion].headings == 1:
            return np.zeros(len(self._agents), np.int64)
        return self.places.headings(self._agents["yaw"], self.planner.headings)

    def _agrees(self):
        """(numbers,) bool: is the agent where the planner has it?"""
        tiles, faces = self._seen()
        near = self.places.off_centre(self._agents["point"], self._positions) <= self._values.arrival_tolerance
        return near & (tiles == self._positions).all(axis=1) & (faces == self.planner.headings)

    def step(self, now: float) -> Step | None:
        """Begin a step; None where no agent is on the map."""
        self.clashes, self._silent_then = {}, self._silent(now)
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
        goals[~self.planner.prepare(goals, FIELDS_SHARE * self._values.step_s)] = -1  # who waits for its field stands
        actions = self.planner.step(goals, self._values.budget_s)[numbers]
        took = time.perf_counter() - began
        self.steps += 1
        self.step_times.append(took)
        ticks = self._ticks(actions)
        self._agents["busy"][numbers[ticks > 0]] = self.steps - 1 + ticks[ticks > 0]
        tiles, headings = self._positions[numbers], self.planner.headings[numbers]
        ids, goals = [self._ids[number] for number in numbers], self._agents["goal"][numbers]
        states = self._states(numbers, before)
        return Step(self.steps, ids, actions, states, before, faced, tiles, headings, ticks, goals, took)

    def give_out(self, now: float) -> None:
        """The actions of the step are given out only now: while it was planned for longer than a step lasts, nobody
        could do it, nor is anybody to blame for its silence."""
        took = now - self.began
        if self._values.lockstep or took > self._values.step_s:
            self.began = now
            self._agents["heard"][~self._silent_then] += max(took, 0.0)

    def _ticks(self, actions):
        fleet, motion = self._values.fleet, MOTIONS[self._values.motion]
        turns = (actions > 0) & (motion.headings > 1)
        return np.where(actions == motion.wait, 0, np.where(turns, fleet.ticks_per_turn, fleet.ticks_per_move))

    def _observe(self):
        """Tell the planner where agents are. One whose report cannot be, or that is silent, stands where it was."""
        agents, planned = self._agents, self._positions
        tiles, faces = self._seen()
        there, busy, faulty = agents["there"], agents["busy"] > self.steps, self._faulty()
        outside = there & (tiles[:, 0] < 0) & ~faulty
        for number in np.flatnonzero(outside):
            self._blame(number, "is outside the map, or not finite")
        unknown = faulty | outside | self._silent_then
        wanted = np.where((unknown | busy)[:, None], planned, tiles)
        # of two on one tile, one at most is where the planner has it; the others are taken to be where it has them
        while len(pairs := self._shared(wanted, there)):
            moved = (wanted[pairs[:, 0]] != planned[pairs[:, 0]]).any(axis=1)
            for number, other in pairs[moved]:
                self._blame(number, f"is on tile {wanted[number].tolist()}, where agent '{self._name(other)}' is")
            if not moved.any():
                break
            numbers = pairs[moved, 0]
            wanted[numbers], unknown[numbers] = planned[numbers], True
        seen = there & (tiles[:, 0] >= 0) & ~busy
        self._close({int(number): tiles[number] for number in np.flatnonzero(seen & ~self._agrees())}, wanted, planned)
        known = there & ~unknown & ~busy
        faces = np.where(known, faces, self.planner.headings)
        self.planner.observe(np.where(known[:, None], wanted, -1), faces, np.flatnonzero(there & unknown))

    def _shared(self, tiles, there):
        """(P, 2) numbers of agents that are on one tile, each of them with another one of it"""
        numbers = np.flatnonzero(there)
        place = tiles[numbers, 0] * self._grid.cols + tiles[numbers, 1]
        order = np.argsort(place, kind="stable")
        same = np.flatnonzero(np.diff(place[order]) == 0)
        pairs = numbers[np.stack([order[same], order[same + 1]], axis=1)]
        return np.concatenate([pairs, pairs[:, ::-1]])

    def _name(self, number):
        return one_line(self._ids[number])

    def _blame(self, number, what):
        x, y = self._agents["point"][number]
        self.clashes[self._ids[number]] = f"agent '{self._name(number)}': its position ({x:.2f}, {y:.2f}) {what}"

    def _close(self, late, wanted, planned):
        """Close tiles that agents may cover beside the one they are taken to be on: nobody enters them.

        An agent that did not arrive, or fell silent on its way, may be on the tile that it came from or went to.
        late: {number: tile of its report} of such agents; wanted: (numbers, 2) where they are taken to be; planned:
        (numbers, 2) where the planner has them
        """
        taken = set(map(tuple, wanted[self._agents["there"]].tolist()))
        closed = set()
        for number, tile in late.items():
            if np.abs(planned[number] - tile).sum() == 1:
                closed |= {tuple(tile.tolist()), tuple(planned[number].tolist())} - taken
        before, known = self._closed, self._told_grid
        self._closed, self._told_grid = closed, None  # not known until the planner has taken it
        tiles = sorted(before ^ closed)
        if known is not self._grid:
            tiles = np.argwhere(self.planner.grid.costs != self._grid.costs).tolist() + sorted(closed)
        if tiles:
            rows, cols = np.array(tiles).T
            costs = [0 if tuple(tile) in closed else self._grid.costs[tuple(tile)] for tile in tiles]
            self.planner.update(rows, cols, costs)
        self._told_grid = self._grid

    def _join(self):
        """Put agents that wait on the map where they fit; the others wait on, and it is said why."""
        if not self._waiting:
            return
        ids = list(self._waiting)
        agents = np.stack([self._waiting[id] for id in ids])
        tiles = self.places.tiles(agents["point"])
        faces = self.places.headings(agents["yaw"], np.zeros(len(ids), np.int64))
        positions = self._positions
        at = {tuple(positions[number].tolist()): id for id, number in self._number.items()}
        fitting = []
        for k, (id, tile, part) in enumerate(zip(ids, map(tuple, tiles.tolist()), self.places.part(tiles))):
            x, y = agents["point"][k]
            what = f"agent '{one_line(id)}': its position ({x:.2f}, {y:.2f})"
            if tile[0] < 0:
                self.clashes[id] = f"{what} is outside the map, or not finite"
            elif tile in at:
                self.clashes[id] = f"{what} is on tile {list(tile)}, where agent '{one_line(at[tile])}' is"
            elif not part:
                self.clashes[id] = f"{what} is blocked: tile {list(tile)}"
            else:
                at[tile] = id
                fitting.append(k)
        refused: dict[int, str] = {}
        before, joining = len(self._agents), self._add(fitting, tiles, faces, refused)
        if joining:
            self._agents = np.concatenate([self._agents, agents[[k for k, _ in joining]]])
            self._agents["there"][before:] = True
        for k, number in joining:
            if number != len(self._ids):
                raise GridMapError(f"the planner gave agent '{one_line(ids[k])}' the number {number}")
            self._number[ids[k]] = number
            self._ids.append(ids[k])
            del self._waiting[ids[k]]
        for k, why in refused.items():
            self.clashes[ids[k]] = f"agent '{one_line(ids[k])}' cannot start on tile {tiles[k].tolist()}: {why}"
        self._silent_then = np.append(self._silent_then, np.zeros(len(joining), bool))
        self._find_goals(np.arange(before, len(self._agents)))

    def _add(self, chosen, tiles, faces, refused):
        """Add those that the planner takes -> (index, number) of each; refused: filled with {index: why}"""
        if not chosen:
            return []
        try:
            return list(zip(chosen, self.planner.add(tiles[chosen], faces[chosen]).tolist()))
        except GridMapError as error:
            if len(chosen) == 1:
                refused[chosen[0]] = str(error)
                return []
        half = len(chosen) // 2
        return self._add(chosen[:half], tiles, faces, refused) + self._add(chosen[half:], tiles, faces, refused)

    def _count_goals(self):
        """Count agents that are at a goal at which they have not been."""
        agents = self._agents
        agents_at = agents["there"] & (self._positions == agents["goal"]).all(axis=1) & (agents["busy"] <= self.steps)
        new = agents_at & ~agents["reached"]
        agents["reached"] |= new
        self.reached += int(new.sum())
        self._recent.append(int(new.sum()))
        while len(self._recent) > max(1, MINUTE_S / self._values.step_s):
            self._recent.popleft()

    def _states(self, numbers, tiles):
        agents = self._agents[numbers]
        states = np.full(len(numbers), AgentActions.MOVING, np.uint8)
        stuck = np.zeros(len(self._agents), bool)
        stuck[self.planner.stuck] = True
        bad_goal = np.array([self._ids[number] in self.goal_faults for number in numbers], bool)
        states[stuck[numbers]] = AgentActions.STUCK
        states[(tiles == agents["goal"]).all(axis=1)] = AgentActions.AT_GOAL
        states[agents["goal"][:, 0] < 0] = AgentActions.NO_GOAL
        states[bad_goal] = AgentActions.BAD_GOAL
        states[self._faulty()[numbers]] = AgentActions.BAD_STATE
        states[[self._ids[number] in self.clashes for number in numbers]] = AgentActions.BAD_STATE
        states[self._silent_then[numbers]] = AgentActions.SILENT
        return states

    # ------------------------------------------------------------------------------------------------ what is said

    @property
    def goals_per_minute(self) -> float:
        """Goals reached per minute of steps, over the last minute."""
        return sum(self._recent) * MINUTE_S / (self._values.step_s * max(len(self._recent), 1))

    def silent_ids(self) -> list[str]:
        """Agents that were silent when the last step began."""
        return [self._ids[number] for number in np.flatnonzero(self._silent_then & self._agents["there"])]

    def stuck_ids(self) -> list[str]:
        """Agents that are on the way for too long."""
        numbers = () if self.planner is None else self.planner.stuck
        return [self._ids[number] for number in numbers if self._agents["there"][number]]


def _place(grid):
    return grid.shape, grid.resolution, grid.origin
