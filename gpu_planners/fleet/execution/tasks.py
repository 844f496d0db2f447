"""Agents of a running fleet that do the tasks of a dispatcher."""

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import GpuPlannersError, SettingsError, TaskError
from ...settings import Described, setting
from ..dispatch import Dispatcher, DispatchSettings, Task, TaskState
from .running import RunningFleet


@dataclass(frozen=True)
class TaskRules(Described):
    """What tasks go by."""

    task_file: str = setting(
        "",
        "Where the node keeps all tasks, before it answers that they were taken: one that starts again takes them up; "
        "empty: nothing is kept",
        read_only=True,
    )
    dead_after_s: float = setting(
        60.0,
        "An agent that is not heard of for so long is taken to be dead: its task goes to another one, and begins anew",
        0.01,
        1e6,
        unit="seconds",
    )
    chargers: tuple[float, ...] = setting(
        (), "Places where agents charge, in the map's frame: x, y, x, y, ...", unit="metres", read_only=True
    )
    parking: tuple[float, ...] = setting(
        (), "Places where agents stand that have no task, likewise: x, y, x, y, ...", unit="metres", read_only=True
    )
    dispatch: DispatchSettings = DispatchSettings()

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("chargers", "parking"):
            points_of(name, getattr(self, name))


def points_of(name: str, numbers: Sequence[float]) -> np.ndarray:
    """x, y, x, y, ... -> (K, 2)"""
    if len(numbers) % 2:
        raise SettingsError(f"{name} has {len(numbers)} numbers; allowed: x and y of each place")
    return np.array(numbers, float).reshape(-1, 2)


class FleetTasks:
    """The tasks of a fleet. They belong to the first map, and are given on maps that cover the same tiles.

    values: Rules and TaskRules; batteries: {id: charge from 0 to 1}
    """

    def __init__(self, fleet: RunningFleet, values: Any) -> None:
        self._fleet, self._values = fleet, values
        self._dispatcher: Dispatcher | None = None
        self._frame: list[float] = []
        self._since: float | None = None
        self._seen: set[str] = set()  # agents that could do tasks, in this life of the node
        self.batteries: dict[str, float] = {}

    def configure(self, values: Any) -> None:
        self._values = values
        if self._dispatcher is not None:
            self._dispatcher.settings = values.dispatch

    def dispatcher(self) -> Dispatcher:
        """The dispatcher, on the present map. Raises GpuPlannersError while there is none, or it has other tiles."""
        fleet, values = self._fleet, self._values
        if fleet.planner is None:
            raise GpuPlannersError("there is no map yet")
        grid = fleet.places.grid
        frame = [float(x) for x in (*grid.shape, grid.resolution, *grid.origin)]
        if self._dispatcher is None:
            chargers, parking = (self._tiles(name, getattr(values, name)) for name in ("chargers", "parking"))
            given = fleet.planner, values.dispatch, chargers, parking
            self._dispatcher = Dispatcher(*given, values.task_file or None, frame, values.step_s)
            self._frame = frame
        if frame != self._frame:
            text = "the map covers other tiles than the one that the tasks were submitted on"
            raise GpuPlannersError(f"{text}: {frame} in place of {self._frame} (rows, columns, resolution, x, y, yaw)")
        self._dispatcher.fleet = fleet.planner
        return self._dispatcher

    @property
    def kept_ended(self) -> int:
        """How many tasks that have ended are still known."""
        return self._values.dispatch.keep_ended

    @property
    def places(self) -> Any:
        """Places of the present map."""
        return self._fleet.places

    def _tiles(self, name, numbers):
        points = points_of(name, numbers)
        tiles = self._fleet.places.tiles(points)
        bad = np.flatnonzero(self._fleet.places.part(tiles) == 0)
        if len(bad):
            x, y = points[bad[0]]
            raise GpuPlannersError(f"{name}: no agent can be at ({x:.2f}, {y:.2f}): it is blocked, or outside the map")
        return tiles

    def submit(self, task: Task, id: str, now: float) -> str:
        """Take a task; id: "" for any -> its id. Raises what `Dispatcher.submit` does."""
        dispatcher = self.dispatcher()
        if not id:
            known = dispatcher.states()
            id = next(text for k in itertools.count(len(known) + 1) if (text := str(k)) not in known)
        dispatcher.submit(task, id, now, even_blocked=True)
        return id

    def give(
        self,
        now: float,
        clock: float | None = None,
        crew: Sequence[str] | None = None,
        keeping: Collection[str] = (),
        done: Collection[str] | None = None,
        able: Callable[[Task], Collection[str] | None] | None = None,
    ) -> None:
        """Take tasks back from agents that are gone, and send all that can work where their tasks are.

        now: of the fleet; clock: of the tasks, None: the same
        crew: ids of agents on the map that can work, None: all that do not stand; keeping, able: as in
            `Dispatcher.assign`; done: who has done what there is to do at its errand, None: whoever has been there
        """
        dispatcher, fleet = self.dispatcher(), self._fleet
        clock = now if clock is None else clock
        self._since = now if self._since is None else min(self._since, now)
        for robot in dispatcher.robots():
            if why := self._gone(str(robot), now):
                self.take_back(str(robot), why, clock)
        ids, tiles, headings, reached, sizes = fleet.workers(crew)
        reached = reached if done is None else np.array([id in done for id in ids], bool)
        self._seen.update(ids)
        charges = {id: charge for id in ids if (charge := self.batteries.get(id)) is not None}
        told = ids, tiles, headings, clock, reached, charges
        fleet.send(ids, dispatcher.assign(*told, keeping=keeping, able=able, sizes=sizes))

    def take_back(self, robot: str, why: str, clock: float | None = None) -> None:
        """An agent is gone: its task goes to others."""
        self.dispatcher().remove(robot, clock, why)
        self.batteries.pop(robot, None)

    def _gone(self, robot, now):
        """-> why a robot is gone, or "" """
        after = self._values.dead_after_s
        if self._fleet.knows(robot):
            return "silent" if min(self._fleet.silent_for(robot, now), now - self._since) > after else ""
        if robot in self._seen:
            return "removed"
        return "never heard of" if now - self._since > after else ""

    def known(self, ids: Sequence[str]) -> tuple[list[TaskState], list[str]]:
        """The states of some tasks, of all if none is named, and those of `ids` that are not known."""
        dispatcher, found, missing = self.dispatcher(), [], []
        if not ids:
            return list(dispatcher.states().values()), []
        for id in ids:
            try:
                found.append(dispatcher.state(id))
            except TaskError:
                missing.append(id)
        return found, missing

    def changed(self, since: int) -> tuple[int, list[TaskState]]:
        """As `Dispatcher.changed`; nothing while there is none."""
        return (since, []) if self._dispatcher is None else self._dispatcher.changed(since)

    def close(self) -> None:
        if self._dispatcher is not None:
            self._dispatcher.close()
