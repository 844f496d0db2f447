"""Tasks, and what becomes of them."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import number, whole
from ...errors import SettingsError, shown
from ..arguments import checked_tiles

Name = int | str  # of a task or a robot

MOST_PRIORITY = 1_000_000
MOST_ERRANDS = 10_000


class TaskStatus(IntEnum):
    """What a task is doing."""

    WAITING = 0  # for its release, or for a robot
    ASSIGNED = 1  # a robot is under way to its first errand; another one may still get it
    BEGUN = 2  # its robot has reached the first errand
    DONE = 3
    CANCELLED = 4


ENDED = TaskStatus.DONE, TaskStatus.CANCELLED


@dataclass(frozen=True, eq=False)
class Task:
    """What one robot shall do.

    errands: (K, 2) int [row, col] of the tiles that it has to reach, in this order
    priority: higher ones go first, whatever the distances
    release: not before this time; due: to be done by this time if that can be (in the unit of the dispatcher's `now`)
    robots: names of those that may take it; None: all
    details: what else belongs to it, fit for JSON; the dispatcher keeps it, and does not look at it

    Raises GridMapError, SettingsError.
    """

    errands: ArrayLike
    priority: int = 0
    release: float = 0.0
    due: float = math.inf
    robots: Sequence[Name] | None = None
    details: Any = None

    def __post_init__(self) -> None:
        errands = checked_tiles("errands", self.errands)
        if not 1 <= len(errands) <= MOST_ERRANDS:
            raise SettingsError(f"errands has {len(errands)} rows; allowed: 1 .. {MOST_ERRANDS}")
        errands.setflags(write=False)
        put = object.__setattr__
        put(self, "errands", errands)
        put(self, "priority", whole("priority", self.priority, -MOST_PRIORITY, MOST_PRIORITY))
        put(self, "release", number("release", self.release, -math.inf, math.inf))
        put(self, "due", number("due", self.due, -math.inf, math.inf))
        if self.robots is not None:
            if isinstance(self.robots, str) or not isinstance(self.robots, (list, tuple, set, frozenset)):
                raise SettingsError(f"robots is {shown(self.robots)}; allowed: None, or a list of names of robots")
            robots = tuple(dict.fromkeys(checked_name("robots", name) for name in self.robots))
            if not robots:
                raise SettingsError("robots is empty; allowed: None for all, or one name at least")
            put(self, "robots", robots)
        put(self, "details", fit_for_json("details", self.details))

    @property
    def tiles(self) -> np.ndarray:
        """(K, 2) int64"""
        return self.errands  # type: ignore[return-value]


def content_of(task: Task) -> dict:
    """A task for JSON, which has no infinity."""
    limits = {name: value for name in ("release", "due") if math.isfinite(value := getattr(task, name))}
    robots = {} if task.robots is None else {"robots": list(task.robots)}
    details = {} if task.details is None else {"details": task.details}
    return {"errands": task.tiles.tolist(), "priority": task.priority, **limits, **robots, **details}


def task_of(content: dict) -> Task:
    """The contrary of content_of."""
    release, due = content.get("release", -math.inf), content.get("due", math.inf)
    return Task(content["errands"], content["priority"], release, due, content.get("robots"), content.get("details"))


def fit_for_json(what: str, value: object) -> Any:
    """A value as JSON gives it back; otherwise SettingsError."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise SettingsError(f"{what}: {error}; allowed: what JSON has, which has no infinity and no NaN") from None


def checked_name(what: str, name: object) -> Name:
    """A name of a task or robot, as Python's own type; otherwise SettingsError."""
    if isinstance(name, str) and name:
        return str(name)
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool) and abs(name) < 1 << 63:
        return int(name)
    raise SettingsError(
        f"{what}: a name is {shown(name)}; allowed: a whole number of 64 bits, or a text that is not empty"
    )


class TaskEvent(NamedTuple):
    """One line of a task's history. robot: whom it concerns, or None; detail: an errand's number, a priority, why"""

    time: float
    what: str
    robot: Name | None = None
    detail: int | str | None = None


@dataclass(frozen=True)
class TaskState:
    """A task as it is now.

    kind: "task", or "charge" and "park" of those that the dispatcher makes itself
    robot: who has it, or None; errand: how many of its errands have been reached
    history: what happened to it, the oldest first
    """

    id: Name
    task: Task
    status: TaskStatus
    robot: Name | None = None
    errand: int = 0
    history: tuple[TaskEvent, ...] = ()
    kind: str = "task"


@dataclass(frozen=True)
class RobotState:
    """What a robot does. status: "free", "under way" to a first errand, "busy", "charge" or "park"; task: of that"""

    status: str
    task: Name | None = None


@dataclass
class Record:
    """A task in the pool. changed: the number of its last change"""

    id: Name
    task: Task
    status: TaskStatus = TaskStatus.WAITING
    robot: Name | None = None
    errand: int = 0
    history: list[TaskEvent] = field(default_factory=list)
    changed: int = 0

    def __post_init__(self) -> None:
        self._about: tuple[float, ...] | None = None
        self.length: float = float(np.abs(np.diff(self.task.tiles, axis=0)).sum())  # moves after the first errand
        self.places: list[tuple[int, int]] = list(map(tuple, self.task.tiles.tolist()))  # its errands
        self.last: int = len(self.places) - 1  # errand

    @property
    def about(self) -> tuple[float, ...]:
        """Row and column of its first errand, its length, since when it waits, when it is due, its priority"""
        if self._about is None:
            task, (row, col) = self.task, self.places[0]
            since = max(self.history[0].time, task.release)
            self._about = row, col, self.length, since, task.due, task.priority
        return self._about

    def prefer(self, priority: int) -> None:
        self.task, self._about = replace(self.task, priority=priority), None

    def state(self) -> TaskState:
        return TaskState(self.id, self.task, self.status, self.robot, self.errand, tuple(self.history))
