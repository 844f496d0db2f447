"""Which goals have cost-to-go fields, and of which map these are.

Maps change often, by a robot that stands or a door that closes, and most fields are not read for a while. So a change
costs nothing until a field is asked for; then all of its changes are made good at once. What was blocked and freed
again meanwhile has not changed.
"""

from collections import OrderedDict

import numpy as np

from ...errors import SettingsError
from ...parallel.team import NEVER, clock_ns
from ..clock import fits
from .lanes import Lanes
from .repair import Change

FIELD_NS = 60  # to plan a state of a field
MOST_MAPS = 16  # that fields are of; those of an older map are dropped
LOST = -1  # in place of such a map: the field was not finished
BLOCKED, FREED = 8, 2  # how far a changed tile reaches: beyond the root of the map's tiles, a field is planned anew


class FieldStore:
    """Which goals have fields: those in use, and as many of those used last as the memory holds.

    engine: a `CpuFleet` or `CudaFleet` of these lanes, which holds the fields; parts: (tiles,) of `parts_of`
    limit: bytes of all fields
    most: fields that the memory holds
    """

    def __init__(self, engine, lanes: Lanes, parts: np.ndarray, limit: int):
        field_bytes = lanes.free.size * lanes.headings
        self._engine, self._field_bytes, self._limit = engine, field_bytes, limit
        self.most, self._rows = limit // field_bytes, 0
        self._now, self._maps = 0, {0: (lanes.free, parts)}  # number of the current map; those that fields are of
        self._map_of = np.zeros(0, np.int64)  # by slot
        self._batch_ns = float(FIELD_NS * field_bytes)  # to plan as many fields as the engine plans at once; a guess
        self._free: list[int] = []
        self._slot_of: OrderedDict[int, int] = OrderedDict()  # goal tile -> slot; the one used last comes last

    @property
    def memory_bytes(self) -> int:
        """Memory of the fields that there is room for."""
        return self._rows * self._field_bytes

    def known(self, goals: np.ndarray) -> np.ndarray:
        """(K,) tiles -> (K,) bool, are their fields planned?"""
        return np.fromiter((goal in self._slot_of for goal in goals.tolist()), bool, len(goals))

    def slots(
        self, goals: np.ndarray, deadline: int = NEVER, least: int = 0, urgency: np.ndarray | None = None
    ) -> np.ndarray:
        """Plan the fields that are missing, as many as the time allows, but at least so many.

        goals: (N,) tiles, -1 none; urgency: (N,) of agents, those of the highest come first
        -> (N,) int32 slots of their fields, -1 where there is none

        Raises SettingsError where they do not fit into the memory; nothing has changed then.
        """
        wanted, slot = np.unique(goals[goals >= 0]), np.full(len(goals), -1, np.int32)
        if len(wanted) > self.most:
            raise SettingsError(
                f"the fields of {len(wanted)} goals take {len(wanted) * self._field_bytes} bytes; memory_limit_bytes "
                f"allows {self._limit}, which is {self.most} goals"
            )
        known = self._slot_of
        for goal in wanted.tolist():
            if goal in known:
                known.move_to_end(goal)
        self._follow([goal for goal in wanted.tolist() if goal in known])
        new = np.array([goal for goal in wanted.tolist() if goal not in known], np.int64)
        if len(new):
            if urgency is not None:
                highest = np.full(len(wanted), urgency.min())
                np.maximum.at(highest, np.searchsorted(wanted, goals[goals >= 0]), urgency[goals >= 0])
                new = new[np.argsort(-highest[np.searchsorted(wanted, new)], kind="stable")]
            self._plan(new, deadline, least)
        if len(wanted):
            table = np.array([known.get(goal, -1) for goal in wanted.tolist()], np.int32)
            slot[goals >= 0] = table[np.searchsorted(wanted, goals[goals >= 0])]
        return slot

    def _plan(self, new, deadline, least):
        """Plan fields of goals (K,), in this order, as many as the time allows, but at least so many."""
        self._make_rows(len(new))
        together = len(new) if deadline == NEVER else self._engine.at_once
        done = 0
        while done < len(new) and (done < least or fits(deadline, self._batch_ns)):
            some, began = new[done : done + together], clock_ns()
            places = self._places(len(some))
            self._engine.plan(some, places)
            self._slot_of.update(zip(some.tolist(), places.tolist()))
            self._map_of[places] = self._now
            done += len(some)
            if deadline != NEVER:
                self._batch_ns = clock_ns() - began

    def _make_rows(self, count):
        """Make room for so many fields more, at once: room that grows is copied."""
        used = len(self._slot_of)
        if used + count > self._rows and self._rows < self.most:
            rows = min(max(used + count, 2 * self._rows), self.most)
            self._engine.grow(self._rows, rows)
            self._free += range(self._rows, rows)
            self._map_of = np.concatenate([self._map_of, np.zeros(rows - self._rows, np.int64)])
            self._rows = rows

    def _places(self, count):
        """Slots for new fields: free ones, then those whose goals were used longest ago."""
        places, self._free = self._free[:count], self._free[count:]
        return np.array(places + [self._slot_of.popitem(last=False)[1] for _ in range(count - len(places))])

    def take_map(self, lanes: Lanes, parts: np.ndarray):
        """Take the map after a change; forward, turn and unit of the lanes are as before. parts: as above"""
        goals, slots = (np.array([*numbers], np.int64) for numbers in (self._slot_of, self._slot_of.values()))
        blocked = (self._maps[self._now][0][goals] & lanes.free[goals]) == 0  # such a field is planned anew each time
        self._drop(goals[blocked])
        kept = set(self._map_of[slots[~blocked]].tolist())
        self._maps = {number: known for number, known in self._maps.items() if number in kept}
        self._now += 1
        self._maps[self._now] = lanes.free, parts
        if len(self._maps) > MOST_MAPS:
            oldest = min(self._maps)
            del self._maps[oldest]
            self._drop(goals[~blocked & (self._map_of[slots] == oldest)])
        self._engine.take_map(lanes)

    def _drop(self, goals):
        self._free += [self._slot_of.pop(goal) for goal in goals.tolist()]

    def _follow(self, goals):
        """Let the fields of goals, a list of tiles, be those of the current map."""
        slots = np.array([self._slot_of[goal] for goal in goals], np.int64)
        old = self._map_of[slots] != self._now
        if not old.any():
            return
        goals, slots = np.array(goals, np.int64)[old], slots[old]
        of, free = self._map_of[slots], self._maps[self._now][0]
        anew = of == LOST
        self._map_of[slots] = LOST
        for number in np.unique(of[~anew]).tolist():
            before, part = self._maps[number]
            blocked, freed = (np.flatnonzero(more).astype(np.int32) for more in (before > free, free > before))
            some, reach = of == number, BLOCKED * len(blocked) + FREED * len(freed)
            if reach**2 > len(free):
                anew |= some
            elif reach:
                self._engine.repair(goals[some], slots[some], Change(blocked, freed, before, free, part))
        if anew.any():
            self._engine.plan(goals[anew], slots[anew])
        self._map_of[slots] = self._now
