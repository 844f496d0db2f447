"""Errands: where vehicles shall go, one stop after the other, and what they shall do there.

They are tasks of the fleet's dispatcher, whose journal keeps them, so that none is lost.
"""

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..errors import GpuPlannersError, SettingsError, shown
from ..files import read_json
from ..fleet.dispatch import Task, TaskState, TaskStatus
from ..fleet.execution.tasks import FleetTasks
from .layout import Layout, Tile
from .messages import MessageError, action_rule, checked, stamp_of
from .versions import VERSIONS

MOST_BYTES = 1 << 28
WAITING, UNDERWAY, ACTING, DONE, FAILED, CANCELLED = "WAITING", "UNDERWAY", "ACTING", "DONE", "FAILED", "CANCELLED"
OVER = (DONE, FAILED, CANCELLED)
_STATE = {
    TaskStatus.WAITING: WAITING,
    TaskStatus.ASSIGNED: UNDERWAY,
    TaskStatus.BEGUN: UNDERWAY,
    TaskStatus.DONE: DONE,
    TaskStatus.CANCELLED: CANCELLED,
}
_STOP = {"node?": str, "x?": float, "y?": float, "theta?": float, "actions?": [action_rule(VERSIONS["3.0"])]}
_RULE = {
    "errandId": str,
    **_STOP,
    "stops?": [_STOP],
    "vehicle?": str,
    "vehicles?": [str],
    "priority?": float,
    "release?": str,
    "due?": str,
}


class ErrandError(GpuPlannersError):
    """An errand cannot be taken; the text names it, and what is allowed."""


@dataclass
class Stop:
    """goal: tile; theta: rad of the map, None: any; actions: of VDA 5050, with their ids, which are done there"""

    goal: Tile
    theta: float | None = None
    actions: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Errand:
    """id: its name; stops: where its vehicle goes, in this order; vehicles: those that may do it, none: any
    priority: higher ones go first; release: not before, due: best by, seconds since 1970

    at: how many stops are done; tries: how often it was taken back from a vehicle, and begun anew
    vehicle: who does it, "": nobody yet; state: of STATES; text: why
    """

    id: str
    stops: list[Stop]
    vehicles: tuple[str, ...] = ()
    priority: int = 0
    release: float = -math.inf
    due: float = math.inf
    at: int = 0
    tries: int = 0
    vehicle: str = ""
    state: str = WAITING
    text: str = ""

    @property
    def over(self) -> bool:
        return self.state in OVER

    @property
    def stop(self) -> Stop:
        """Where it goes now, or has ended."""
        return self.stops[min(self.at, len(self.stops) - 1)]

    @property
    def goal(self) -> Tile:
        return self.stop.goal

    @property
    def theta(self) -> float | None:
        return self.stop.theta

    @property
    def actions(self) -> list[dict[str, Any]]:
        """Those of this stop. A vehicle that begins an errand anew may still tell of what it did the first time. No
        other errand has such ids, whatever it is called."""
        again = f"+{self.tries}" if self.tries else ""
        return [{**one, "actionId": one["actionId"] + again} for one in self.stop.actions]

    def task(self) -> Task:
        """What the dispatcher knows of it."""
        details = [{"theta": stop.theta, "actions": stop.actions} for stop in self.stops]
        goals = [stop.goal for stop in self.stops]
        return Task(goals, self.priority, self.release, self.due, self.vehicles or None, details)

    def told(self, layout: Layout) -> dict[str, Any]:
        """What the fleet's status says of it."""
        node, done = layout.name(self.goal), self.at
        return {"state": self.state, "vehicle": self.vehicle, "node": node, "stopsDone": done, "text": self.text}


def needs_of(task: Task) -> tuple[tuple[tuple[str, str], ...], ...]:
    """(actionType, blockingType) of each action at each stop of an errand."""
    return tuple(
        tuple((one["actionType"], one["blockingType"]) for one in stop["actions"]) for stop in task.details or ()
    )


def errand_of(content: Any, layout: Layout) -> Errand:
    """An errand {errandId, stops, vehicles, priority, release, due}, or with the one stop's node or x and y, theta and
    actions, and one vehicle. Raises ErrandError."""
    name = content.get("errandId") if isinstance(content, dict) else None
    try:
        checked(content, _RULE)
        if not name:
            raise MessageError("errandId is empty; allowed: any other text")
        found = content.get("stops")
        if found is not None and any(content.get(word) is not None for word in ("node", "x", "y", "theta", "actions")):
            raise MessageError("it has stops and a goal of its own; allowed: one of them")
        if found is not None and not found:
            raise MessageError("stops is empty; allowed: one stop at least")
        stops: list[Stop] = []
        for each in [content] if found is None else found:
            stops.append(_stop_of(each, name, sum(len(stop.actions) for stop in stops), layout))
        priority = whole_priority(content.get("priority") or 0)
        release, due = (stamp_of(content[word]) if content.get(word) else None for word in ("release", "due"))
    except MessageError as error:
        raise ErrandError(f"errand {shown(name)}: {error}") from error
    vehicles = (content["vehicle"],) if content.get("vehicle") else tuple(content.get("vehicles") or ())
    times = -math.inf if release is None else release, math.inf if due is None else due
    return Errand(name, stops, vehicles, priority, *times)


def whole_priority(value: float) -> int:
    """A priority of a message, which may be 2.0. Raises MessageError."""
    if value != int(value):
        raise MessageError(f"priority is {value:g}; allowed: whole numbers")
    return int(value)


def _stop_of(content, name, before, layout):
    """before: how many actions the stops before this one have"""
    goal = _goal(content, layout)
    if not layout.grid.costs[goal]:
        raise MessageError(f"its goal {layout.name(goal)!r} is blocked; allowed: a free tile")
    if goal in layout.no_stopping:
        raise MessageError(f"its goal {layout.name(goal)!r} is in a no-stopping zone; allowed: another node")
    actions = [
        {"blockingType": "HARD", "actionParameters": [], **one, "actionId": f"{name}.{before + k}"}
        for k, one in enumerate(content.get("actions") or ())
    ]
    return Stop(goal, content.get("theta"), actions)


def _goal(content, layout):
    if content.get("node") is not None:
        tile = layout.tile(content["node"])
        if tile is None:
            raise MessageError(f"node is {content['node']!r}; allowed: a node or station of the layout")
        return tile
    if content.get("x") is None or content.get("y") is None:
        raise MessageError("it has no goal; allowed: node, or x and y")
    row, col = layout.grid.tiles_of([[content["x"], content["y"]]])[0].tolist()
    if not (0 <= row < layout.grid.rows and 0 <= col < layout.grid.cols):
        raise MessageError(f"its goal ({content['x']:g}, {content['y']:g}) is outside the map")
    return int(row), int(col)


class Errands:
    """All errands that the dispatcher has, by id, in the order in which they came."""

    def __init__(self, tasks: FleetTasks) -> None:
        self._tasks = tasks
        self.by_id: dict[str, Errand] = {}
        self._busy: dict[str, Errand] = {}
        self._told = 0  # number of the last change that was taken

    def load(self) -> None:
        """Take up what the journal has kept. Raises GpuPlannersError."""
        for state in self._tasks.known(())[0]:
            self._take_state(state)

    def take(self, errand: Errand, clock: float) -> None:
        """Have an errand done; it is on the disk then. Who sends it again, since nobody answered, gets it once."""
        if errand.id not in self.by_id:
            self._tasks.submit(errand.task(), errand.id, clock)
            self.by_id[errand.id] = errand
            self.follow()

    def end(self, errand: Errand, clock: float, why: str = "") -> None:
        """End an errand that is not over: it is cancelled, or has failed. It is on the disk then."""
        self._tasks.dispatcher().cancel(errand.id, clock, why)
        self.follow()

    def follow(self) -> None:
        """Take what the dispatcher has done."""
        self._told, states = self._tasks.changed(self._told)
        for state in states:
            self._take_state(state)
        kept = self._tasks.kept_ended
        ended = [one.id for one in self.by_id.values() if one.over] if len(self.by_id) > kept else []
        for id in ended[: max(0, len(ended) - kept)]:
            del self.by_id[id]

    def _take_state(self, state: TaskState) -> None:
        if state.kind != "task":
            return
        id, last = str(state.id), state.history[-1]
        errand: Errand = self.by_id.get(id) or _kept(id, state.task)
        self.by_id[id] = errand
        before, errand.vehicle = errand.vehicle, str(state.robot or (errand.vehicle if errand.over else ""))
        if self._busy.get(before) is errand:
            del self._busy[before]
        if _STATE[state.status] == UNDERWAY:
            self._busy[errand.vehicle] = errand
        errand.priority, errand.tries = state.task.priority, sum(event.what == "returned" for event in state.history)
        told, goes_on = _STATE[state.status], (errand.at, before) == (state.errand, errand.vehicle)
        if not (errand.state == ACTING and told == UNDERWAY and goes_on):
            errand.state, errand.text = told, ""
        errand.at = state.errand
        if last.what == "returned":
            errand.text = f"{last.robot} is gone: {last.detail}"
        elif last.what == "cancelled" and last.detail:
            errand.state, errand.text = FAILED, str(last.detail)

    def of(self, vehicle: str) -> Errand | None:
        """What a vehicle is doing"""
        return self._busy.get(vehicle)


def _kept(id, task):
    details = task.details or [{"theta": None, "actions": []}] * len(task.tiles)
    stops = [Stop(tuple(tile), one["theta"], one["actions"]) for tile, one in zip(task.tiles.tolist(), details)]
    vehicles = tuple(map(str, task.robots or ()))
    return Errand(id, stops, vehicles, task.priority, task.release, task.due)


def read_errands(path: str | os.PathLike, layout: Layout) -> Iterable[Errand]:
    """Errands of a JSON file: an array, or an object with `errands`. Raises ErrandError or SettingsError."""
    content = read_json(path, "errands", SettingsError, MOST_BYTES)
    every = content.get("errands") if isinstance(content, dict) else content
    if not isinstance(every, list):
        raise SettingsError(f"errands {shown(str(path))} hold {shown(content)}; allowed: an array of errands")
    return [errand_of(one, layout) for one in every]
