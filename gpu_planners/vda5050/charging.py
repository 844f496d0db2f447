"""Vehicles at chargers: the dispatcher sends them there and away, here they are told to begin and to end charging."""

from collections.abc import Mapping

from ..fleet.execution.running import RunningFleet
from ..fleet.execution.tasks import FleetTasks
from .telling import Telling
from .vehicle import Vehicle

BEGIN, END = "startCharging", "stopCharging"


class Charging:
    """stays: {vehicle: the task that the dispatcher has made for it, to charge or to park}"""

    def __init__(self, tasks: FleetTasks, fleet: RunningFleet, telling: Telling, answer_s: float) -> None:
        self._tasks, self._fleet, self._telling, self._answer_s = tasks, fleet, telling, answer_s
        self.stays: dict[str, str] = {}

    def is_plugged(self, vehicle: Vehicle) -> bool:
        """Does it have to end charging before it drives?"""
        state = vehicle.state
        return state is not None and state.charging and not state.driving and _has(vehicle, END)

    def follow(self, vehicles: Mapping[str, Vehicle], now: float) -> None:
        robots = self._tasks.dispatcher().robots()
        self.stays = {str(id): str(robot.task) for id, robot in robots.items() if robot.status in ("charge", "park")}
        at_chargers = {str(id) for id, robot in robots.items() if robot.status == "charge"}
        for vehicle in vehicles.values():
            state, told = vehicle.state, self._fleet.told(vehicle.id)
            if state is None or told is None or now - vehicle.plug_asked < self._answer_s:
                continue
            if vehicle.id not in at_chargers:
                wanted = END if self.is_plugged(vehicle) else ""
            else:
                there = len(told.tiles) == 1 and tuple(told.tiles[0]) == tuple(told.goal) and state.idle
                wanted = BEGIN if there and not state.driving and not state.charging and _has(vehicle, BEGIN) else ""
            if wanted and not any(asked.body["actionType"] == wanted for asked in vehicle.asked.values()):
                vehicle.plug_asked = now
                self._telling.ask(vehicle, wanted, now)


def _has(vehicle, action):
    return vehicle.factsheet is not None and (action, "INSTANT") in vehicle.factsheet.actions
