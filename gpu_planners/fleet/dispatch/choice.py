"""Which robot gets which task: candidates, what each costs, and the choice among them.

All costs are steps. A robot's candidates are the tasks that are cheapest by the straight distance; what these cost is
then found by the fleet's fields.
"""

import contextlib
import math
import time
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ...errors import SettingsError, shown
from .matching import NONE, match
from .nearest import cheapest
from .pool import Pool
from .robots import Robots, rows_of, straight
from .settings import DispatchSettings
from .stays import Stays
from .task import Name, Record, Task, TaskStatus

ROUNDS = 8  # of candidates for robots whose candidates all went to others
FAR = 1e9  # more than any way
NEVER = 1e12  # when tasks without a due time are due
LATE = 10.0  # what a step of a task's delay costs
FULL = 0.7  # robots of free tiles, from which on not all get tasks
PART = 1 << 22  # pairs of robots and tasks that are looked at together, where not all robots may do all tasks
LEAST = 64  # robots that are considered in a call, however little time there is
PACE_S = 5e-5  # seconds that a robot takes, before that has been measured
PACES = 4  # calls over which it is averaged
WAITING, ASSIGNED, BEGUN = TaskStatus.WAITING, TaskStatus.ASSIGNED, TaskStatus.BEGUN


class Choice:
    """Chooses tasks for robots that have not begun one."""

    def __init__(self, settings: DispatchSettings):
        self.settings = settings
        self._turn = 0  # of the robots that are considered, where these are not all
        self._pace_s = PACE_S  # seconds that a robot takes, on average

    def choose(
        self,
        crew: Robots,
        pool: Pool,
        stays: Stays,
        fleet,
        now: float,
        step: float,
        until: float,
        keeping: set[Any],
        able: Callable[[Task], Collection[Any] | None] | None = None,
    ) -> dict[Name, Record | None]:
        """-> {robot: its task, None: none} of those that were considered

        now: in the unit in which a step takes `step`; until: of time.monotonic(), when the choice should have ended
        keeping, able: as in Dispatcher.assign
        """
        began = time.monotonic()
        most = math.inf if until == math.inf else max(LEAST, (until - began) / self._pace_s)
        free, under_way, soon = self._who(crew, pool, stays, keeping, most)
        again = {crew.names[k] for k in under_way}
        tasks = [
            record
            for record in pool.open.values()
            if (record.status is WAITING and record.task.release <= now)
            or (record.status is ASSIGNED and record.robot in again)
        ]
        chosen: dict[Name, Record | None] = dict.fromkeys(again)
        if not tasks:
            return chosen
        work = Work(tasks, self.settings, now, step, able)
        free = self._not_too_many(free, crew, pool, fleet, work)
        ahead = self._ahead(crew, pool, fleet, soon)
        places = [*((k, crew.tiles[k], crew.headings[k], 0.0) for k in [*free, *under_way]), *ahead]
        left, open_tasks = np.arange(len(places)), np.arange(len(tasks))
        for _ in range(ROUNDS):
            if not len(left) or not len(open_tasks):
                break
            robots = [places[k] for k in left]
            found = self._match(robots, work.some(open_tasks), crew, fleet, lambda: time.monotonic() < until)
            got = found != NONE
            for place, task in zip(left[got].tolist(), open_tasks[found[got]].tolist()):
                if place < len(free) + len(under_way):
                    chosen[crew.names[places[place][0]]] = tasks[task]
            whole = len(open_tasks) <= self.settings.candidates
            left, open_tasks = left[~got], np.delete(open_tasks, found[got])
            if whole or not got.any() or time.monotonic() >= until:
                break
        took = (time.monotonic() - began) / max(LEAST, len(places))
        self._pace_s += (took - self._pace_s) / PACES
        return chosen

    def _who(self, crew, pool, stays, keeping, most):
        """Numbers of the robots that are free, that are under way and reconsidered now, and that end a task soon; of
        the first two at most so many, in turns."""
        out = stays.low.keys() | keeping
        held = [pool.of_robot.get(name) for name in crew.names]
        considered = [(k, r) for k, r in enumerate(held) if not out or crew.names[k] not in out]
        free = [k for k, record in considered if record is None]
        under_way = [k for k, record in considered if record is not None and record.status is ASSIGNED]
        ending = [
            (k, *record.places[-1])
            for k, record in considered
            if record is not None and record.status is BEGUN and record.errand == record.last
        ]
        if len(free) > most:
            free = self._in_turns(free, int(most))
        most = int(min(self.settings.at_once, most - len(free)))
        if len(under_way) > most:
            under_way = self._in_turns(under_way, most)
        if ending:
            number, *ends = rows_of(ending, np.int64).T
            near = straight(crew.tiles[number], np.stack(ends, axis=1)) <= self.settings.look_ahead
            ending = number[near].tolist()
        return free, under_way, ending

    def _in_turns(self, robots, most):
        """So many of some robots, others each time."""
        first = self._turn % len(robots)
        self._turn = first + most
        return sorted((robots + robots)[first : first + most])

    def _not_too_many(self, free, crew, pool, fleet, work):
        """Those of the robots (K,) without a task that may get one now: in a full room the nearest to tasks, so that
        others are left to make way."""
        tiles = np.count_nonzero(fleet.grid.costs)
        if len(crew.names) <= FULL * tiles or not free:
            return free
        room = max(0, int(self.settings.busy_share * tiles) - len(pool.of_robot))
        if room >= len(free):
            return free
        away = self._candidates([crew.names[k] for k in free], crew.tiles[free], crew.sizes[free], work, fleet, 1)[1]
        return [free[k] for k in np.sort(np.argsort(away[:, 0], kind="stable")[:room])]

    def _ahead(self, crew, pool, fleet, soon):
        """[(number, tile, heading, steps until then)] where robots end their tasks, if that is soon"""
        if not soon or self.settings.look_ahead == 0:
            return []
        ends = np.array([pool.of_robot[crew.names[k]].places[-1] for k in soon])
        far, _ = fleet.distances(crew.tiles[soon], crew.headings[soon], ends, sizes=crew.sizes[soon])
        near = np.flatnonzero(far <= self.settings.look_ahead)
        return [(soon[k], ends[k], -1, float(far[k])) for k in near]

    def _match(self, robots, work, crew, fleet, goes_on):
        """-> (R,) number of each robot's task, or NONE"""
        numbers = np.array([k for k, *_ in robots])
        tiles, headings = np.array([tile for _, tile, *_ in robots]), np.array([h for *_, h, _ in robots])
        offset = np.array([then for *_, then in robots])
        names, sizes = [crew.names[k] for k in numbers], crew.sizes[numbers]
        candidates = np.sort(self._candidates(names, tiles, sizes, work, fleet, self.settings.candidates)[0], axis=1)
        row, place = np.nonzero(candidates != NONE)
        task = candidates[row, place]
        way, met = self._ways(row, task, tiles, headings, sizes, work, crew, fleet, goes_on)
        mine = np.array([record.robot for record in work.tasks], object)[task] == np.array(names, object)[row]
        cost = offset[row] + way + self.settings.traffic * met + work.value[task]
        slack = work.left[task] - work.length[task]  # what a task is late anyway is no robot's doing
        cost = cost + LATE * (np.maximum(0.0, offset[row] + way - slack) - np.maximum(0.0, -slack))
        cost = cost - np.where(mine, self.settings.keep, 0.0)
        right = np.isfinite(cost)
        if right.any():  # a higher priority outweighs whatever the others cost together
            span = np.ptp(cost[right]) + 1.0
            cost[right] -= work.level[task[right]] * span * (len(robots) + 1)
        costs = np.full(candidates.shape, np.inf)
        costs[row, place] = cost
        settings = self.settings
        return match(candidates, costs, settings.window, settings.improvements, goes_on)

    def _candidates(self, names, tiles, sizes, work, fleet, most):
        """(R, C) tasks that are cheapest for each robot by the straight distance, its own among them, and what they
        cost; NONE and inf where there are fewer"""
        most = min(most, len(work.tasks))
        found, cost = np.full((len(names), most), NONE), np.full((len(names), most), np.inf)
        owners = {record.robot: k for k, record in enumerate(work.tasks) if record.robot is not None}
        own = np.array([owners.get(name, NONE) for name in names], np.int64)
        several, zoned = len(fleet.sizes) > 1, fleet.zones.no_stopping is not None
        picky = bool(several or zoned or work.only)  # are there robots that may not do all tasks?
        part = max(1, PART // len(work.tasks) if picky else len(names))
        for first in range(0, len(names), part):
            some = slice(first, first + part)
            refused = np.zeros((len(names[some]), len(work.tasks)), bool) if picky else None
            if several:
                refused |= _too_large(tiles[some], sizes[some], work.tasks, fleet)
            if zoned:
                refused |= _no_stops(sizes[some], work.tasks, fleet.zones)
            for k, robots in work.only:
                refused[[name not in robots for name in names[some]], k] = True
            found[some], cost[some] = cheapest(tiles[some], work.first, work.rank, own[some], most, refused)
        return found, cost

    def _ways(self, row, task, tiles, headings, sizes, work, crew, fleet, goes_on):
        """-> (K,) steps of pairs of robots and tasks, inf where no path leads there; (K,) robots on the way"""
        way = straight(tiles[row], work.first[task]).astype(float)
        ends = np.column_stack([work.first[task], sizes[row]])
        goals, number = np.unique(ends, axis=0, return_inverse=True)
        number = number.reshape(-1)
        known = fleet.has_fields(goals[:, :2], goals[:, 2])
        nearest = np.full(len(goals), np.inf)
        np.minimum.at(nearest, number, way + work.value[task])
        new = np.flatnonzero(~known)
        new = new[np.argsort(nearest[new], kind="stable")][: self.settings.new_fields]
        known[new] = fleet.plan_fields(goals[new, :2], goes_on, goals[new, 2])
        exact, met = known[number], np.zeros(len(row))
        if exact.any():
            at, to = row[exact], goals[number[exact]]
            way[exact], met[exact] = fleet.distances(tiles[at], headings[at], to[:, :2], crew.tiles, to[:, 2])
        return way, met


def _too_large(tiles, sizes, tasks, fleet):
    """(R, T) bool, which robots on tiles (R, 2) are cut off from an errand of a task by their size alone?"""
    errands, first = _errands(tasks)
    least = min(fleet.sizes)
    found = np.zeros((len(tiles), len(tasks)), bool)
    for size in np.unique(sizes[sizes > least]).tolist():
        some = np.flatnonzero(sizes == size)
        parts = [[fleet.parts(at, np.full(len(at), side)) for side in (size, least)] for at in (tiles[some], errands)]
        (own, small), (there, small_there) = parts
        cut_off = (own[:, None] > 0) & (own[:, None] != there) & (small[:, None] == small_there)
        found[some] = np.logical_or.reduceat(cut_off, first, axis=1)
    return found


def _no_stops(sizes, tasks, zones):
    """(R, T) bool, which robots of sizes (R,) may not stop where an errand of a task is?"""
    errands, first = _errands(tasks)
    found = np.zeros((len(sizes), len(tasks)), bool)
    for size in np.unique(sizes).tolist():
        refused = zones.stops_refused(size)[tuple(errands.T)]
        found[sizes == size] = np.logical_or.reduceat(refused, first)
    return found


def _names(robots):
    """What `able` has answered, checked."""
    if robots is None or (isinstance(robots, Collection) and not isinstance(robots, (str, bytes))):
        with contextlib.suppress(TypeError):  # what has no hash is no name
            return None if robots is None else set(robots)
    raise SettingsError(f"able gives {shown(robots)}; allowed: a list of names of robots, or None")


def _errands(tasks):
    """-> (E, 2) tiles of the errands of tasks, one task after the other; (T,) number of each task's first one"""
    first = np.cumsum([0, *(len(record.task.tiles) for record in tasks[:-1])])
    return np.concatenate([record.task.tiles for record in tasks]), first


class Work:
    """Tasks that may be given now, as arrays.

    first: (T, 2) their first errands; length: (T,) steps from there to the end, straight on; left: steps until they are
    due; value: what they cost beside the way to them; level: of their priorities, from 0; rank: both together
    only: [(number, robots)] of those that not all may take
    """

    def __init__(self, tasks: list[Record], settings: DispatchSettings, now: float, step: float, able: Any = None):
        self.tasks = tasks
        about = rows_of([record.about for record in tasks], np.float64)
        self.first, (self.length, since, due, priority) = about[:, :2].astype(np.int64), about[:, 2:].T
        self.left = np.minimum(due - now, NEVER) / step
        slack = self.left - self.length
        urgent = np.clip(1.0 - slack / settings.due_horizon, 0.0, 1.0)
        self.value = settings.prefer_short * self.length - settings.ageing * np.maximum(0.0, now - since) / step
        self.value = self.value - LATE * settings.due_horizon * urgent
        _, self.level = np.unique(priority, return_inverse=True)
        self.rank = self.value - self.level * (np.ptp(self.value) + FAR)
        self.only = []
        for k, task in enumerate([record.task for record in tasks]):
            if able is None and task.robots is None:
                continue
            robots = None if able is None else _names(able(task))
            several = [set(names) for names in (robots, task.robots) if names is not None]
            if several:
                self.only.append((k, set.intersection(*several)))

    def some(self, numbers: np.ndarray) -> "Work":
        if len(numbers) == len(self.tasks):
            return self
        work = object.__new__(Work)
        work.tasks = [self.tasks[k] for k in numbers]
        for name in ("first", "length", "left", "value", "level", "rank"):
            setattr(work, name, getattr(self, name)[numbers])
        place = {k: new for new, k in enumerate(numbers.tolist())}
        work.only = [(place[k], robots) for k, robots in self.only if k in place]
        return work
