"""Which robot gets which task: candidates, what each costs, and the choice among them.

All costs are steps. A robot's candidates are the tasks that are cheapest by the straight distance; what these cost is
then found by the fleet's fields.
"""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from .matching import NONE, match
from .pool import Pool
from .robots import Robots, straight
from .settings import DispatchSettings
from .stays import Stays
from .task import Name, Record, Task, TaskStatus

ROUNDS = 8  # of candidates for robots whose candidates all went to others
NEVER = 1e12  # when tasks without a due time are due
LATE = 10.0  # what a step of a task's delay costs
FULL = 0.7  # robots of free tiles, from which on not all get tasks
PART = 1 << 22  # pairs whose straight distances are found together
WAITING, ASSIGNED, BEGUN = TaskStatus.WAITING, TaskStatus.ASSIGNED, TaskStatus.BEGUN


class Choice:
    """Chooses tasks for robots that have not begun one."""

    def __init__(self, settings: DispatchSettings):
        self.settings = settings
        self._turn = 0  # of the robots under way that are reconsidered

    def choose(
        self,
        crew: Robots,
        pool: Pool,
        stays: Stays,
        fleet,
        now: float,
        step: float,
        goes_on: Callable[[], bool],
        keeping: set[Any],
        able: Callable[[Task], Collection[Any] | None] | None = None,
    ) -> dict[Name, Record | None]:
        """-> {robot: its task, None: none} of those that were considered

        now: in the unit in which a step takes `step`; goes_on: is there time for a better choice?
        keeping, able: as in Dispatcher.assign
        """
        free, under_way, soon = self._who(crew, pool, stays, keeping)
        again = {crew.names[k] for k in under_way}
        tasks = [
            record
            for record in pool.open.values()
            if (record.status == WAITING and record.task.release <= now)
            or (record.status == ASSIGNED and record.robot in again)
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
            found = self._match(robots, work.some(open_tasks), crew, fleet, goes_on)
            got = found != NONE
            for place, task in zip(left[got].tolist(), open_tasks[found[got]].tolist()):
                if place < len(free) + len(under_way):
                    chosen[crew.names[places[place][0]]] = tasks[task]
            whole = len(open_tasks) <= self.settings.candidates
            left, open_tasks = left[~got], np.delete(open_tasks, found[got])
            if whole or not got.any():
                break
        return chosen

    def _who(self, crew, pool, stays, keeping):
        """Numbers of the robots that are free, that are under way and reconsidered now, and that end a task soon."""
        free, under_way, soon = [], [], []
        for k, name in enumerate(crew.names):
            record = pool.of_robot.get(name)
            if stays.charges(name) or name in keeping:
                continue
            if record is None:
                free.append(k)
            elif record.status == ASSIGNED:
                under_way.append(k)
            elif record.errand == len(record.task.tiles) - 1:
                if straight(crew.tiles[k], record.task.tiles[-1]) <= self.settings.look_ahead:
                    soon.append(k)
        most = self.settings.at_once
        if len(under_way) > most:
            first = self._turn % len(under_way)
            self._turn = first + most
            under_way = sorted((under_way + under_way)[first : first + most])
        return free, under_way, soon

    def _not_too_many(self, free, crew, pool, fleet, work):
        """Those of the robots (K,) without a task that may get one now: in a full room the nearest to tasks, so that
        others are left to make way."""
        tiles = np.count_nonzero(fleet.grid.costs)
        if len(crew.names) <= FULL * tiles or not free:
            return free
        room = max(0, int(self.settings.busy_share * tiles) - len(pool.of_robot))
        if room >= len(free):
            return free
        lots = _guesses([crew.names[k] for k in free], crew.tiles[free], work)
        away = np.concatenate([guess.min(axis=1) for _, guess in lots])
        return [free[k] for k in np.sort(np.argsort(away, kind="stable")[:room])]

    def _ahead(self, crew, pool, fleet, soon):
        """[(number, tile, heading, steps until then)] where robots end their tasks, if that is soon"""
        if not soon or self.settings.look_ahead == 0:
            return []
        ends = np.array([pool.of_robot[crew.names[k]].task.tiles[-1] for k in soon])
        far, _ = fleet.distances(crew.tiles[soon], crew.headings[soon], ends, sizes=crew.sizes[soon])
        near = np.flatnonzero(far <= self.settings.look_ahead)
        return [(soon[k], ends[k], -1, float(far[k])) for k in near]

    def _match(self, robots, work, crew, fleet, goes_on):
        """-> (R,) number of each robot's task, or NONE"""
        numbers = np.array([k for k, *_ in robots])
        tiles, headings = np.array([tile for _, tile, *_ in robots]), np.array([h for *_, h, _ in robots])
        offset = np.array([then for *_, then in robots])
        names, sizes = [crew.names[k] for k in numbers], crew.sizes[numbers]
        candidates = self._candidates(names, tiles, sizes, work, fleet)
        row, place = np.nonzero(candidates != NONE)
        task = candidates[row, place]
        way, met = self._ways(row, task, tiles, headings, sizes, work, crew, fleet, goes_on)
        mine = np.array([record.robot for record in work.tasks], object)[task] == np.array(names, object)[row]
        cost = offset[row] + way + self.settings.traffic * met + work.value[task]
        cost = cost + LATE * np.maximum(0.0, offset[row] + way + work.length[task] - work.left[task])
        cost = cost - np.where(mine, self.settings.keep, 0.0)
        right = np.isfinite(cost)
        if right.any():  # a higher priority outweighs whatever the others cost together
            span = np.ptp(cost[right]) + 1.0
            cost[right] -= work.level[task[right]] * span * (len(robots) + 1)
        costs = np.full(candidates.shape, np.inf)
        costs[row, place] = cost
        settings = self.settings
        return match(candidates, costs, settings.window, settings.improvements, goes_on)

    def _candidates(self, names, tiles, sizes, work, fleet):
        """(R, C) tasks that are cheapest for each robot by the straight distance, NONE where there are fewer; its own
        among them"""
        most = min(self.settings.candidates, len(work.tasks))
        found = np.full((len(names), most), NONE)
        own = {record.robot: k for k, record in enumerate(work.tasks) if record.robot is not None}
        for some, guess in _guesses(names, tiles, work):
            if len(fleet.sizes) > 1:
                guess[_too_large(tiles[some], sizes[some], work.tasks, fleet)] = np.inf
            if fleet.zones.no_stopping is not None:
                guess[_no_stops(sizes[some], work.tasks, fleet.zones)] = np.inf
            for r, name in enumerate(names[some]):
                if name in own and np.isfinite(guess[r, own[name]]):
                    guess[r, own[name]] = -np.inf
            best = np.argpartition(guess, most - 1, axis=1)[:, :most]
            best.sort(axis=1)
            found[some] = np.where(np.take_along_axis(guess, best, 1) < np.inf, best, NONE)
        return found

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


def _guesses(names, tiles, work):
    """Yields some of the robots (R,), as a slice, and (some, T) what tasks cost them by the straight distance"""
    rank, part = -work.level * 1e9 + work.value, max(1, PART // len(work.tasks))
    for first in range(0, len(names), part):
        some = slice(first, first + part)
        guess = straight(tiles[some, None], work.first[None]) + rank
        for k, robots in work.only:
            guess[[name not in robots for name in names[some]], k] = np.inf
        yield some, guess


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


def _errands(tasks):
    """-> (E, 2) tiles of the errands of tasks, one task after the other; (T,) number of each task's first one"""
    first = np.cumsum([0, *(len(record.task.tiles) for record in tasks[:-1])])
    return np.concatenate([record.task.tiles for record in tasks]), first


class Work:
    """Tasks that may be given now, as arrays.

    first: (T, 2) their first errands; length: (T,) steps from there to the end, straight on; left: steps until they are
    due; value: what they cost beside the way to them; level: of their priorities, from 0
    only: [(number, robots)] of those that not all may take
    """

    def __init__(self, tasks: list[Record], settings: DispatchSettings, now: float, step: float, able: Any = None):
        self.tasks = tasks
        self.first = np.array([record.task.tiles[0] for record in tasks])
        self.length = np.array([record.length for record in tasks])
        since = np.array([max(record.history[0].time, record.task.release) for record in tasks])
        self.left = np.minimum([record.task.due - now for record in tasks], NEVER) / step
        slack = self.left - self.length
        urgent = np.clip(1.0 - slack / settings.due_horizon, 0.0, 1.0)
        self.value = settings.prefer_short * self.length - settings.ageing * np.maximum(0.0, now - since) / step
        self.value = self.value - LATE * settings.due_horizon * urgent
        _, self.level = np.unique([record.task.priority for record in tasks], return_inverse=True)
        self.only = []
        for k, task in enumerate(record.task for record in tasks):
            robots = None if able is None else able(task)
            several = [set(names) for names in (robots, task.robots) if names is not None]
            if several:
                self.only.append((k, set.intersection(*several)))

    def some(self, numbers: np.ndarray) -> "Work":
        if len(numbers) == len(self.tasks):
            return self
        work = object.__new__(Work)
        work.tasks = [self.tasks[k] for k in numbers]
        for name in ("first", "length", "left", "value", "level"):
            setattr(work, name, getattr(self, name)[numbers])
        place = {k: new for new, k in enumerate(numbers.tolist())}
        work.only = [(place[k], robots) for k, robots in self.only if k in place]
        return work
