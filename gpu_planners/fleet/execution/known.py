"""What is known of the agents of a fleet by what comes in: their reports, their goals, and what stands on tiles."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import one_line
from ...grid.maps.grid_map import GridMap
from ..motion import MOTIONS
from . import reports
from .places import AGENT, new_agent
from .progress import across
from .rules import Rules

TOO_MANY = ""  # key of the fault that concerns agents beyond the limit: no id is empty
STILL = 0.05  # tiles that an agent may be off without having moved


class KnownAgents:
    """Agents, the latest that counts of what they told, their goals. Agents have ids; the planner knows them by
    numbers, which are never given again.

    planner, places: FleetPlanner and Places, None before the first map
    faults: {id: what is wrong with its report}; goal_faults: {id: what is wrong with its goal}
    steps: how many have begun; reached: goals reached so far
    """

    def __init__(self, values: Rules) -> None:
        self._values = values
        self.planner: Any = None
        self.places: Any = None
        self._graph: Any = None
        self._grid: GridMap | None = None
        self.faults: dict[str, str] = {}
        self.goal_faults: dict[str, str] = {}
        self._goals: dict[str, tuple[float, float]] = {}  # by id, metres
        self._sent: dict[str, tuple[float, float]] = {}  # where tasks send those that have no goals of their own
        self._occupied: dict[str, np.ndarray] = {}  # by id, (K, 2) metres
        self._occupied_sizes: dict[str, int] = {}  # of these that are not as large as fleet.size
        self._left_behind: set[str] = set()  # of these, agents of another map: until they tell where they are
        self._gone: dict[str, float] = {}  # by id of agents that have left, the stamp of the latest report on each
        self._waiting: dict[str, np.ndarray] = {}  # an AGENT for each id that has no number yet
        self._number: dict[str, int] = {}
        self._ids: list[str] = []  # by number
        self._agents = np.zeros(0, AGENT)  # by number
        self.steps = self.reached = 0
        self._fresh = False  # has anything been reported since it was found out what agents have done?
        self._first_heard = -np.inf

    def __len__(self) -> int:
        """How many agents are known, those that wait for a place among them."""
        return len(self._number) + len(self._waiting)

    @property
    def on_map(self) -> int:
        return len(self._number)

    # ---- sizes ----

    def size_of(self, id: str) -> int:
        """Side of the square of tiles that an agent covers; of one that is not known, as fleet.size says."""
        agent = self._agents[self._number[id]] if id in self._number else self._waiting.get(id)
        return self._values.fleet.size if agent is None else int(self._sizes_of(agent))

    def _sizes_of(self, agents):
        """(N,) sides of agents (N,) AGENT"""
        return np.where(agents["size"] > 0, agents["size"], self._values.fleet.size)

    def _waiting_agents(self):
        """(N,) AGENT of those that wait for a place"""
        return np.array([*self._waiting.values()], AGENT)

    def _size_faults(self, ids, sizes):
        """{id: what is wrong} of those of some agents that are on the map with another size than they tell"""
        faults = {}
        for id, size in zip(ids, (np.where(sizes == 0, self._values.fleet.size, sizes)).tolist()):
            if size >= 0 and id in self._number and size != (was := self.size_of(id)):
                faults[id] = f"its size is {size}; allowed: {was}, with which it joined, until it is removed"
        return faults

    # ---- reports ----

    def take_states(
        self,
        ids: Sequence[str],
        points: np.ndarray,
        yaws: np.ndarray,
        heard: np.ndarray,
        faults: dict[str, str],
        stamps: np.ndarray | None = None,
        sizes: np.ndarray | None = None,
    ) -> None:
        """Take the reports of K agents. One that is not newer than the latest one on its agent is passed over.

        points: (K, 2) metres in the map's frame; yaws: (K,) rad, NaN: none; heard: (K,) when they came
        faults: {id: what is wrong with its report}, whose point and yaw do not count then
        stamps: (K,) when they were measured, seconds of a clock that all reports on an agent share; 0: not known
        sizes: (K,) sides of the squares of tiles that they cover, up to 15; 0: as fleet.size says; -1, None: as before.
            One that is on the map with another size stands, until it is removed and comes again
        """
        self._fresh = True
        self.faults.pop(TOO_MANY, None)
        stamps = np.zeros(len(ids)) if stamps is None else stamps
        sizes = np.full(len(ids), -1) if sizes is None else sizes
        faults = self._size_faults(ids, sizes) | faults
        known = np.array([k for k, id in enumerate(ids) if id in self._number], int)
        newer = np.ones(len(ids), bool)
        if len(known):
            newer[known] = self._take_known(ids, points, yaws, heard, faults, stamps, known)
        for k, id in enumerate(ids):
            if id not in self._number and id not in faults:
                newer[k] = self._take_new(id, points[k], yaws[k], heard[k], stamps[k], sizes[k])
        for id, counts in zip(ids, newer.tolist()):
            if not counts:
                continue
            if id not in faults:
                self.faults.pop(id, None)
            elif id in self._number or len(self.faults) < self._values.max_agents:
                self.faults[id] = f"{agent_text(id)}: {faults[id]}"
            if id in self._left_behind and id not in faults:
                self.free([id])

    def _take_known(self, ids, points, yaws, heard, faults, stamps, known):
        numbers = np.array([self._number[ids[k]] for k in known], int)
        agents, values = self._agents[numbers], self._values
        newer = reports.in_order(agents, stamps[known], heard[known], values.silent_after_s)
        agents["heard_step"][newer] = self.steps
        good = newer & np.array([ids[k] not in faults for k in known], bool)
        bad = newer & ~good
        agents["heard"][bad] = heard[known[bad]]
        agents["stamp"][bad] = np.where(stamps[known[bad]] > 0, stamps[known[bad]], agents["stamp"][bad])
        if good.any():
            some, at = agents if good.all() else agents[good], known[good]
            aside = across(self._graph, self._agents["axis"])[numbers[good]]
            speed = reports.FASTEST / (values.step_s * values.fleet.ticks_per_move)
            pace = reports.Pace(speed, values.silent_after_s, values.lockstep)
            where = points[at], self.places.at(points[at], self._sizes_of(some)), yaws[at]
            reports.take(some, *where, stamps[at], heard[at], aside, self._grid.resolution, pace)
            if not good.all():
                agents[good] = some
        self._agents[numbers] = agents
        return newer

    def _take_new(self, id, point, yaw, heard, stamp, size):
        """-> does the report of an agent without a number count?"""
        if 0 < stamp <= self._gone.get(id, 0.0):
            return False
        if id not in self._waiting and len(self) >= self._values.max_agents:
            self.faults[TOO_MANY] = self._too_many(id, f"{len(self)} agents")
            return True
        self._gone.pop(id, None)
        if not len(self):
            self._first_heard = heard
        if id not in self._waiting:
            self._waiting[id] = new_agent()
        agent = self._waiting[id].reshape(1)
        if not reports.in_order(agent, np.array([stamp]), np.array([heard]), self._values.silent_after_s)[0]:
            return False
        agent = self._waiting[id]
        if self.places is not None and np.linalg.norm(agent["point"] - point) > STILL * self._grid.resolution:
            agent["still_since"] = heard if agent["heard"] > -np.inf else -np.inf
        agent["point"], agent["yaw"], agent["heard"], agent["heard_step"] = point, yaw, heard, self.steps
        agent["stamp"] = max(stamp, 0.0)
        agent["goal"] = -1
        agent["size"] = size if size >= 0 else agent["size"]
        return True

    def _note_gone(self, id):
        """An agent leaves: what was measured before, and comes late, does not bring it back."""
        agent = self._waiting.get(id)
        if agent is None and id in self._number:
            agent = self._agents[self._number[id]]
        if agent is not None and agent["stamp"] > 0 and len(self._gone) < self._values.max_agents:
            self._gone[id] = float(agent["stamp"])

    def forget_stamps(self) -> None:
        """The clock began anew, and so may those that reports are stamped by."""
        self._gone.clear()
        for agents in (self._agents, *self._waiting.values()):
            agents["stamp"] = agents["older"] = agents["doubts"] = 0.0
            agents["doubted_at"] = np.nan

    def _faces(self, yaws, otherwise):
        """(K,) rad -> (K,) headings; those of `otherwise` where an agent tells none, or all face one way"""
        if MOTIONS[self._values.motion].headings == 1:
            yaws = np.full(len(yaws), np.nan)
        return self.places.headings(yaws, otherwise)

    def _faulty(self):
        faulty = np.zeros(len(self._agents), bool)
        faulty[[self._number[id] for id in self.faults if id in self._number]] = True
        return faulty

    # ---- what stands on tiles ----

    def take_occupied(
        self, ids: Sequence[str], points: np.ndarray, faults: dict[str, str], sizes: np.ndarray | None = None
    ) -> None:
        """Something as large as an agent stands at each of (K, 2) points, metres, until `free` says otherwise. What is
        at fault has no place; `faults` says so as long as it is not told anew. sizes: (K,) as of `take_states`"""
        self._fresh = True
        for k, (id, point) in enumerate(zip(ids, points)):
            key = occupied_key(id)
            self.faults.pop(key, None)
            fault = ""
            if id in faults:
                fault = f"what occupies tiles as '{one_line(id)}': {faults[id]}"
            elif id not in self._occupied and len(self._occupied) >= self._values.max_agents:
                fault = self._too_many(id, f"{len(self._occupied)} things that occupy tiles")
            if fault and len(self.faults) < self._values.max_agents:
                self.faults[key] = fault
            if not fault:
                self._occupied[id] = np.array(point, float).reshape(1, 2)
                if sizes is not None and sizes[k] >= 0:
                    self._occupied_sizes[id] = int(sizes[k])
                self._left_behind.discard(id)

    def free(self, ids: Iterable[str]) -> None:
        for id in ids:
            self._occupied.pop(id, None)
            self._occupied_sizes.pop(id, None)
            self._left_behind.discard(id)
            self.faults.pop(occupied_key(id), None)

    def occupied_ids(self) -> list[str]:
        return sorted(self._occupied)

    # ---- goals ----

    def take_goals(self, ids: Sequence[str], points: np.ndarray, faults: dict[str, str]) -> None:
        """Take the goals of K agents; one whose goal is at fault has none. points: (K, 2) metres in the map's frame"""
        self.goal_faults.pop(TOO_MANY, None)
        for id, point in zip(ids, points.tolist()):
            self.goal_faults.pop(id, None)
            if id in faults:
                self._goals.pop(id, None)
                if len(self.goal_faults) < self._values.max_agents:
                    self.goal_faults[id] = f"{agent_text(id)}: {faults[id]}"
            elif id not in self._goals and len(self._goals) >= self._values.max_agents:
                self.goal_faults[TOO_MANY] = self._too_many(id, f"{len(self._goals)} goals")
            else:
                self._goals[id] = tuple(point)
        self._find_goals(np.array([self._number[id] for id in ids if id in self._number], int))

    def clear_goals(self, ids: Iterable[str]) -> None:
        for id in ids:
            self._goals.pop(id, None)
            self.goal_faults.pop(id, None)
        self._find_goals(np.array([self._number[id] for id in ids if id in self._number], int))

    # ---- tasks ----

    def _of(self, ids):
        """(K,) numbers of those of some agents that are on the map"""
        return np.array(sorted(self._number[id] for id in ids if id in self._number), np.int64)

    def knows(self, id: str) -> bool:
        return id in self._number or id in self._waiting

    def silent_for(self, id: str, now: float) -> float:
        """Seconds since an agent that is known was heard of."""
        agent = self._agents[self._number[id]] if id in self._number else self._waiting[id]
        return now - float(agent["heard"])

    def workers(self, some: Sequence[str] | None = None) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray, Any]:
        """Agents that can do tasks: on the map, without a goal of their own, and in order or among `some` -> ids, tiles
        (K, 2), headings (K,), (K,) bool: have they been where they were sent? sizes (K,)"""
        numbers = np.flatnonzero(self._agents["there"] & ~self._agents["stands"])
        if some is not None:
            numbers = self._of(some)
        numbers = np.array([k for k in numbers.tolist() if self._ids[k] not in self._goals], int)
        ids, agents = [self._ids[k] for k in numbers], self._agents[numbers]
        states = self._graph.tiles[numbers, 0], self._graph.headings[numbers, 0]
        return ids, *states, agents["reached"], self._sizes_of(agents)

    def send(self, ids: Sequence[str], tiles: np.ndarray) -> None:
        """Send agents to tiles (K, 2), -1: nowhere; goals of their own go before."""
        points, changed = self.places.points(tiles, np.array([self.size_of(id) for id in ids], np.int64)), []
        for id, tile, point in zip(ids, tiles.tolist(), map(tuple, points.tolist())):
            before = self._sent.pop(id, None)
            if tile[0] >= 0:
                self._sent[id] = point
            if self._sent.get(id) != before:
                changed.append(id)
                if id not in self._goals:
                    self.goal_faults.pop(id, None)
        self._find_goals(np.array([self._number[id] for id in changed if id in self._number], int))

    def _find_goals(self, numbers):
        if self.planner is None or not len(numbers):
            return
        numbers = numbers[self._agents["there"][numbers]]
        ids = [self._ids[number] for number in numbers]
        goals = [self._goals.get(id) or self._sent.get(id) for id in ids]
        has = np.array([goal is not None for goal in goals], bool)
        points = np.array([goal or (0.0, 0.0) for goal in goals]).reshape(-1, 2)
        sizes = self._sizes_of(self._agents[numbers])
        tiles = np.where(has[:, None], self.places.tiles(points, sizes), -1)
        parts, here = self.places.part(tiles, sizes), self.places.part(self._graph.tiles[numbers, 0], sizes)
        for k in np.flatnonzero(has):
            self.goal_faults.pop(ids[k], None)
        for k in np.flatnonzero(has & ((parts == 0) | ((parts != here) & (here > 0)))):
            self.goal_faults[ids[k]] = _unreachable(ids[k], points[k], tiles[k], parts[k])
            tiles[k] = -1
        for k in np.flatnonzero(tiles[:, 0] >= 0) if self._graph.no_stopping is not None else ():
            if self._graph.no_stop(numbers[[k]], tiles[[k]])[0]:
                self.goal_faults[ids[k]] = f"{_goal_text(ids[k], points[k])} is in a no-stopping zone"
                tiles[k] = -1
        before = self._agents["goal"][numbers]
        self._agents["reached"][numbers] &= (before == tiles).all(axis=1)
        self._agents["goal"][numbers] = tiles

    def _too_many(self, id, there_are):
        return f"{agent_text(id)}: there are {there_are}; allowed: {self._values.max_agents}, the parameter max_agents"


def agent_text(id: str) -> str:
    return f"agent '{one_line(id)}'"


def occupied_key(id: str) -> str:
    """Key of the fault of what occupies tiles: none that an agent has."""
    return f"\0{id}"


def _unreachable(id, point, tile, part):
    """What is wrong with a goal. part: of the map that the tile belongs to"""
    if not np.isfinite(point).all():
        why = "is not finite"
    elif tile[0] < 0:
        why = "is outside the map"
    else:
        why = "cannot be reached: there is no way to it on the map" if part else "is blocked"
    return f"{_goal_text(id, point)} {why}"


def _goal_text(id, point):
    return f"{agent_text(id)}: its goal ({point[0]:.2f}, {point[1]:.2f})"
