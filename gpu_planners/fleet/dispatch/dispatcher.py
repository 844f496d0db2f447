"""Dispatcher: gives the tasks of a pool to the robots of a fleet.

A task waits until it is released and a robot gets it. While that is under way to the first errand, another one may
get it; from there on it stays, errand after errand, until all are reached. What a robot costs is what the fleet's own
fields say, with headings and lanes, from where it is to the first errand.
"""

import math
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import Booleans, checked, instance, integers, number, whole
from ...errors import GridMapError, SettingsError, shown
from ..arguments import checked_sizes, checked_tiles
from ..fields.lanes import footprint_free
from ..planner import FleetPlanner
from .choice import Choice
from .journal import Journal
from .pool import SUBMITTED, Pool
from .robots import Robots, rows_of
from .settings import DispatchSettings
from .stays import CHARGE, PARK, Stays
from .task import MOST_PRIORITY, Name, RobotState, Task, TaskState, TaskStatus, checked_name, content_of, fit_for_json

NOWHERE = -1


@checked()
class Dispatcher:
    """Gives tasks to robots.

    fleet: FleetPlanner whose map and fields count; its agents need not be the robots
    settings: DispatchSettings; None: its defaults
    chargers, parking: (K, 2) int [row, col] of tiles where robots charge, or stand while they have nothing to do
    journal: path of the file that keeps all tasks, and is taken up again; None: nothing is kept
    frame: what tiles are of (a map's name, size, origin), fit for JSON; a journal of another one is refused
    step: how long a step takes, in the unit of all times

    Raises GridMapError, SettingsError. Not for several threads at once.
    """

    def __init__(
        self,
        fleet: FleetPlanner,
        settings: DispatchSettings | None = None,
        chargers: ArrayLike = (),
        parking: ArrayLike = (),
        journal: str | os.PathLike | None = None,
        frame: object = None,
        step: float = 1.0,
    ):
        self.fleet = instance("fleet", fleet, FleetPlanner, "a FleetPlanner", SettingsError)
        settings = DispatchSettings() if settings is None else settings
        self._settings = instance("settings", settings, DispatchSettings, "a DispatchSettings", SettingsError)
        self._step = number("step", step, 1e-9, 1e9)
        self.now = 0.0
        self._pool = Pool(settings.keep_ended)
        tiles = self._places("chargers", chargers), self._places("parking", parking)
        self._stays = Stays(settings, *tiles, self._pool)
        self._choice = Choice(settings)
        self._pending: list[list] = []  # events that have happened, and are not on the disk
        self._goals: dict[Name, tuple[int, int]] = {}  # of robots, as told by the last `assign`
        self._free: tuple | None = None  # a grid, and where robots can be on it
        self._journal: Journal | None = None
        frame = fit_for_json("frame", list(fleet.grid.shape) if frame is None else frame)
        if journal is not None:
            self._journal = Journal(journal, self._pool, frame)
            times = [event.time for record in self._pool.open.values() for event in record.history]
            self.now = max(times, default=0.0)

    @property
    def settings(self) -> DispatchSettings:
        """May be set between calls."""
        return self._settings

    @settings.setter
    def settings(self, settings: DispatchSettings) -> None:
        self._settings = instance("settings", settings, DispatchSettings, "a DispatchSettings", SettingsError)
        self._choice.settings = self._stays.settings = settings
        self._pool.keep_ended = settings.keep_ended

    def close(self) -> None:
        """Let another process have the journal. What would have to be kept is refused from then on."""
        if self._journal is not None:
            self._journal.close()

    # ---- tasks ----

    def submit(self, task: Task, id: Name | None = None, now: float | None = None, even_blocked: bool = False) -> Name:
        """Take a task; it is on the disk when this returns.

        id: a name that no other task has, and that does not begin with "charge:" or "park:"; None: a number. A task
            that comes again with its id counts once
        now: the time; None: that of the last call
        even_blocked: take errands on tiles that are blocked now; the task waits until they are free

        -> its id. Raises GridMapError where an errand lies outside the map or is blocked, TaskError where another task
        has that id, SettingsError; nothing has changed then.
        """
        instance("task", task, Task, "a Task", SettingsError)
        if id is None:
            id = self._pool.submitted + 1
            while id in self._pool.open or id in self._pool.ended:
                id += 1
        id = checked_name("id", id)
        if str(id).startswith((f"{CHARGE}:", f"{PARK}:")):
            raise SettingsError(f"id is {shown(id)}; allowed: names that begin otherwise, since these are of stays")
        self._take_time(now)
        known = self._pool.open.get(id) or self._pool.ended.get(id)
        if known is not None and _same(known.task, task):
            return id
        self._refuse_bad(task, even_blocked)
        self._do([[self.now, SUBMITTED, id, None, content_of(task)]])
        return id

    def cancel(self, id: Name, now: float | None = None, why: str = "") -> None:
        """End a task, whoever has it. Raises TaskError where it is not there, or has ended."""
        self._take_time(now)
        self._do([[self.now, "cancelled", checked_name("id", id), None, why or None]])

    def reprioritise(self, id: Name, priority: int, now: float | None = None) -> None:
        """Give a task another priority. Raises TaskError where it is not there, or has ended."""
        priority = whole("priority", priority, -MOST_PRIORITY, MOST_PRIORITY)
        self._take_time(now)
        self._do([[self.now, "priority", checked_name("id", id), None, priority]])

    def state(self, id: Name) -> TaskState:
        """A task's state and history. Raises TaskError where it is not known, or ended long ago."""
        id = checked_name("id", id)
        stay = self._stays.states().get(id) if id not in self._pool.open else None
        return stay or self._pool[id].state()

    def states(self) -> dict[Name, TaskState]:
        """Of all tasks that are open, the last ones that ended, and those that the dispatcher makes itself."""
        records = [*self._pool.ended.values(), *self._pool.open.values()]
        return {record.id: record.state() for record in records} | self._stays.states()

    def changed(self, since: int = 0) -> tuple[int, list[TaskState]]:
        """-> the number of the last change, the states of tasks that have changed after change number `since`"""
        since = whole("since", since, 0, 2**63)
        records = [*self._pool.ended.values(), *self._pool.open.values()]
        found = [record for record in records if record.changed > since]
        stays = [state for number, state in self._stays.told if number > since]
        return self._pool.changes, [record.state() for record in sorted(found, key=lambda each: each.changed)] + stays

    @property
    def open_tasks(self) -> int:
        """How many tasks wait, are assigned or begun."""
        return len(self._pool.open)

    # ---- robots ----

    def remove(self, robot: Name, now: float | None = None, why: str = "") -> None:
        """A robot is gone, or has died: its task goes back into the pool, and begins anew with its first errand. A
        robot that `assign` names again is a new one."""
        robot = checked_name("robot", robot)
        self._take_time(now)
        self._stays.remove(robot, self.now)
        self._goals.pop(robot, None)
        record = self._pool.of_robot.get(robot)
        if record is not None:
            self._do([[self.now, "returned", record.id, robot, why or None]])

    def holders(self) -> dict[Name, Name]:
        """{robot: task} of all that are under way or busy, also of those that `assign` was not told of."""
        return {robot: record.id for robot, record in self._pool.of_robot.items()}

    def robots(self) -> dict[Name, RobotState]:
        """Of the robots that the last `assign` was told of, and those that have a task."""
        found = {robot: RobotState("free") for robot in self._goals} | self._stays.robots()
        for robot, record in self._pool.of_robot.items():
            status = "under way" if record.status == TaskStatus.ASSIGNED else "busy"
            found[robot] = RobotState(status, record.id)
        return found

    # ---- the choice ----

    def assign(
        self,
        robots: Sequence[Any],
        positions: ArrayLike,
        headings: ArrayLike | None = None,
        now: float | None = None,
        arrived: Booleans | None = None,
        batteries: Mapping[Any, float] | None = None,
        budget_s: float = math.inf,
        keeping: Collection[Any] = (),
        able: Callable[[Task], Collection[Any] | None] | None = None,
        sizes: ArrayLike | None = None,
    ) -> np.ndarray:
        """Note which errands have been reached, choose who gets which task, and say where each robot goes.

        robots: names of those that can take tasks now. One that is not named keeps a task that it has begun; others may
            get one that it was only under way to
        positions: (N, 2) int [row, col]; headings: (N,) int as of FleetPlanner.start, None: any
        now: the time; None: a step after the last call
        arrived: (N,) has the robot reached where the last call sent it? None: whoever is there now
        batteries: {robot: charge from 0 to 1} of those that need chargers; of one that is not told the last one counts,
            and one that was never told is full
        budget_s: seconds for exact distances, and for better choices than the first; the counts in the settings bound
            them too. A call considers as many robots as it has time for, 64 at least; without a bound the same calls
            give the same choices
        keeping: names of robots that keep what they have, and get nothing else: those that are about to begin it, or
            cannot drive just now
        able: tells of a task which robots could do it now, names or None: all that it names
        sizes: (N,) int sides of the robots, as of FleetPlanner.start; one gets no task where it does not fit

        -> (N, 2) int32 tiles, -1 for who has nothing to do. All events are on the disk when this returns. Raises
        GridMapError, SettingsError.
        """
        began = time.monotonic()
        number("budget_s", budget_s, 0.0, math.inf, " seconds")
        names = [checked_name("robots", name) for name in robots]
        if len(set(names)) < len(names):
            twice = next(name for k, name in enumerate(names) if name in names[:k])
            raise SettingsError(f"robots names {shown(twice)} twice; allowed: once")
        tiles = self._places("positions", positions, stops=False)
        if len(tiles) != len(names):
            raise GridMapError(f"positions has {len(tiles)} rows; allowed: {len(names)}, one for each robot")
        faces = np.full(len(names), -1) if headings is None else headings
        faces = integers("headings", faces, (len(names),), f"({len(names)},)", GridMapError).astype(np.int64)
        charges = {robot: number(f"battery of {shown(robot)}", x, 0.0, 1.0) for robot, x in (batteries or {}).items()}
        staying = {checked_name("keeping", name) for name in keeping}
        self._take_time(self.now + self._step if now is None else now)

        self._arrive(names, tiles, arrived)
        crew = Robots(names, tiles, faces, checked_sizes(sizes, len(names), self.fleet.sizes))
        self._charge(crew, charges)
        self._choose(crew, began + budget_s, staying, able)
        busy = self._pool.of_robot.keys() | staying
        idle = [k for k, name in enumerate(names) if name not in busy and name not in self._stays.low]
        self._stays.park(crew, idle, self.fleet, self.now)
        self._commit()
        told = dict.fromkeys([*names, *self._goals])
        self._goals = {name: goal for name in told if (goal := self._goal_of(name)) is not None}
        return self._goals_of(names)

    def _goals_of(self, names):
        """(N, 2) where robots were told to go"""
        none = (NOWHERE, NOWHERE)
        return rows_of([none, *(self._goals.get(name, none) for name in names)], np.int32)[1:]

    def _arrive(self, names, tiles, arrived):
        goals = self._goals_of(names)
        there = (tiles == goals).all(axis=1)
        if arrived is not None:
            if np.shape(arrived) != there.shape:
                raise SettingsError(f"arrived has the shape {np.shape(arrived)}; allowed: {there.shape}")
            there = np.asarray(arrived, bool)
        for k in np.flatnonzero(there & (goals[:, 0] != NOWHERE)).tolist():
            record, goal = self._pool.of_robot.get(names[k]), tuple(goals[k].tolist())
            if record is not None and goal == record.places[record.errand]:
                self._note("errand", record, names[k], record.errand + 1)

    def _charge(self, crew, charges):
        """Send those to chargers whose batteries are low, unless they are busy."""
        for name in self._stays.recharge(crew, charges, self._pool.of_robot, self.fleet, self.now):
            record = self._pool.of_robot.get(name)
            if record is not None:
                self._note("withdrawn", record, name, "charge")

    def _choose(self, crew, until, keeping, able):
        """Choose tasks for robots that have not begun one."""
        held = self._pool.of_robot.items()
        absent = [record for robot, record in held if robot not in crew.number and record.status == TaskStatus.ASSIGNED]
        for record in absent:
            self._note("withdrawn", record, record.robot, "not told of")
        given = crew, self._pool, self._stays, self.fleet, self.now, self._step
        chosen = self._choice.choose(*given, until, keeping, able)
        changed = {name: record for name, record in chosen.items() if self._pool.of_robot.get(name) is not record}
        for name in changed:
            before = self._pool.of_robot.get(name)
            if before is not None:
                self._note("withdrawn", before, name, "another choice")
        for name, record in changed.items():
            if record is not None:
                self._note("assigned", record, name)
                self._stays.leave(name, self.now)

    def _goal_of(self, robot):
        record = self._pool.of_robot.get(robot)
        if record is not None:
            return record.places[record.errand]
        return self._stays.goal_of(robot)

    # ---- events ----

    def _note(self, what, record, robot, detail=None):
        event = [self.now, what, record.id, robot, detail]
        self._pool.apply(event)
        if self._journal is not None:
            self._pending.append(event)

    def _commit(self):
        if self._pending:
            self._journal.append(self._pending)
            self._pending = []
            self._journal.shorten(self._pool)

    def _do(self, events):
        """Let events happen that somebody asked for: first on the disk, then here."""
        self._commit()
        for event in events:
            self._pool.check(event)
        if self._journal is not None:
            self._journal.append(events)
        for event in events:
            self._pool.apply(event)

    def _take_time(self, now):
        if now is not None:
            self.now = number("now", now, -1e18, 1e18)

    def _places(self, name, places, stops=True):
        """-> (K, 2) tiles of the map. stops: may robots have to stop there? Then none is in a no-stopping zone."""
        tiles = checked_tiles(name, places)
        shape = self.fleet.grid.shape
        inside = ((tiles >= 0) & (tiles < shape)).all(axis=1)
        if not inside.all():
            k = int(np.argmin(inside))
            raise GridMapError(f"{name}[{k}] is {tiles[k].tolist()}, outside the {shape[0]} x {shape[1]} map")
        refused = self.fleet.zones.stops_refused(min(self.fleet.sizes)) if stops else None
        if refused is not None and refused[tuple(tiles.T)].any():
            k = int(np.argmax(refused[tuple(tiles.T)]))
            raise GridMapError(f"{name}[{k}] is {tiles[k].tolist()}, in a no-stopping zone; allowed: tiles outside")
        return tiles

    def _refuse_bad(self, task, even_blocked):
        tiles = self._places("errands", task.errands)
        grid = self.fleet.grid
        if self._free is None or self._free[0] is not grid:
            self._free = grid, footprint_free(grid.costs > 0, min(self.fleet.sizes))
        blocked = ~self._free[1][tuple(tiles.T)]
        if blocked.any() and not even_blocked:
            raise GridMapError(
                f"errands[{np.argmax(blocked)}] is {tiles[np.argmax(blocked)].tolist()}, which is blocked"
            )


def _same(one, other):
    return content_of(one) | {"priority": 0} == content_of(other) | {"priority": 0}
