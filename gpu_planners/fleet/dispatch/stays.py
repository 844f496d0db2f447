"""Charging and parking: the tasks that the dispatcher makes itself."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from ..fields.lanes import too_near
from .pool import Pool
from .robots import Robots
from .settings import DispatchSettings
from .task import Name, RobotState, Task, TaskEvent, TaskState, TaskStatus

CHARGE, PARK = "charge", "park"


TOLD = 10_000  # states


@dataclass
class Stay:
    """A robot's stay on a tile, or its way there."""

    kind: str
    tile: tuple[int, int]
    size: int  # of the robot
    there: bool = False
    history: list[TaskEvent] = field(default_factory=list)


class Stays:
    """Who charges and who parks where. A tile is one robot's until that leaves it, or is removed.

    chargers, parking: (K, 2) tiles; told: the latest states, each with the number of its change, which the pool counts
    """

    def __init__(self, settings: DispatchSettings, chargers: np.ndarray, parking: np.ndarray, pool: Pool):
        self.settings, self._pool = settings, pool
        self.told: deque[tuple[int, TaskState]] = deque(maxlen=TOLD)
        self._tiles = {CHARGE: np.unique(chargers, axis=0), PARK: np.unique(parking, axis=0)}
        self._stays: dict[Name, Stay] = {}
        self.low: dict[Name, float] = {}  # charges of robots whose batteries are low, charger or not

    def goal_of(self, robot: Name) -> tuple[int, int] | None:
        stay = self._stays.get(robot)
        return stay.tile if stay else None

    def leave(self, robot: Name, now: float) -> None:
        stay = self._stays.pop(robot, None)
        if stay is not None:
            stay.history.append(TaskEvent(now, "left" if stay.there else "cancelled", robot))
            self._tell(robot, stay, TaskStatus.DONE if stay.there else TaskStatus.CANCELLED)

    def remove(self, robot: Name, now: float) -> None:
        self.leave(robot, now)
        self.low.pop(robot, None)

    def _tell(self, robot, stay, status):
        self._pool.changes += 1
        self.told.append((self._pool.changes, _state(robot, stay, status)))

    def recharge(self, crew: Robots, charges: dict, of_robot: dict, fleet, now: float) -> list[Name]:
        """Let those leave chargers that are charged, and give chargers to others, the lowest battery first -> names
        that have to charge. Who has begun a task ends it first."""
        if not len(self._tiles[CHARGE]):
            return []
        low = []
        for name in crew.names:
            charge = charges.get(name, self.low.get(name, 1.0))
            record = of_robot.get(name)
            if name in self.low and charge >= self.settings.charged_at:
                self.remove(name, now)
            busy = record is not None and record.status == TaskStatus.BEGUN
            if charge < self.settings.charge_below and not busy and name not in self.low:
                self.leave(name, now)
                self.low[name] = charge
            if name in self.low:
                self.low[name] = charge
                if name not in self._stays:
                    low.append((charge, crew.number[name]))
        self._settle(CHARGE, crew, [number for _, number in sorted(low)], fleet, now)
        return [name for name in crew.names if name in self.low]

    def park(self, crew: Robots, idle: list[int], fleet, now: float) -> None:
        """Send robots (numbers in the crew) that have nothing to do to parking tiles."""
        self._settle(PARK, crew, [k for k in idle if crew.names[k] not in self._stays], fleet, now)
        for robot, stay in self._stays.items():
            number = crew.number.get(robot)
            there = stay.there if number is None else tuple(crew.tiles[number].tolist()) == stay.tile
            arrives, stay.there = there and not stay.there, there
            if arrives:
                stay.history.append(TaskEvent(now, "errand", robot, 1))
                self._tell(robot, stay, TaskStatus.BEGUN)

    def _settle(self, kind, crew, numbers, fleet, now):
        """Give each of some robots the nearest tile that nobody has, in this order."""
        taken = {stay.tile for stay in self._stays.values()}
        every = [tile for tile in map(tuple, self._tiles[kind].tolist()) if tile not in taken]
        for number in numbers:
            if not every:
                return
            size = int(crew.sizes[number])
            refused = fleet.zones.stops_refused(size)
            free = [tile for tile in every if refused is None or not refused[tile]]
            free = [tile for tile in free if len(fleet.sizes) == 1 or self._has_room(tile, size, fleet)]
            if not free:
                continue
            goals = np.array(free)
            place, headings = (
                np.broadcast_to(crew.tiles[number], goals.shape),
                np.full(len(goals), crew.headings[number]),
            )
            far, _ = fleet.distances(place, headings, goals, sizes=np.full(len(goals), size))
            nearest = int(np.argmin(far))
            if np.isfinite(far[nearest]):
                name = crew.names[number]
                history = [TaskEvent(now, "submitted"), TaskEvent(now, "assigned", name)]
                every.remove(free[nearest])
                stay = self._stays[name] = Stay(kind, free[nearest], size, False, history)
                self._tell(name, stay, TaskStatus.ASSIGNED)

    def _has_room(self, tile, size, fleet):
        """Is there room on a tile for a robot of a size, beside all that stay?"""
        apart = fleet.settings.safety_distance
        for stay in self._stays.values():
            off = np.subtract(tile, stay.tile)
            if ((off >= -too_near(size, stay.size, apart)) & (off <= too_near(stay.size, size, apart))).all():
                return False
        return True

    def states(self) -> dict[Name, TaskState]:
        each = self._stays.items()
        found = [_state(name, s, TaskStatus.BEGUN if s.there else TaskStatus.ASSIGNED) for name, s in each]
        return {state.id: state for state in found}

    def robots(self) -> dict[Name, RobotState]:
        return {robot: RobotState(stay.kind, f"{stay.kind}:{robot}") for robot, stay in self._stays.items()}


def _state(robot, stay, status):
    task = Task([stay.tile], robots=[robot])
    history, errand = tuple(stay.history), int(stay.there)
    return TaskState(f"{stay.kind}:{robot}", task, status, robot, errand, history, stay.kind)
