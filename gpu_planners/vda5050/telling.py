"""What fleet control tells vehicles: orders, instant actions, zone sets, answers; again, until a state shows them."""

import math
import time
from dataclasses import replace
from typing import Any

from ..fleet.execution.running import RunningFleet
from .broker import Broker
from .errands import Errands
from .messages import with_header
from .orders import MISMATCH, TOO_LONG, Order, way_of
from .settings import Speaking
from .vehicle import KEEPS_ORDER, Asked, Vehicle
from .zones import ZoneSet


class Telling:
    """zones: those that vehicles of 3.0 get; orders: how many were sent"""

    def __init__(
        self, broker: Broker, fleet: RunningFleet, errands: Errands, speaking: Speaking, silent_after_s: float
    ) -> None:
        self._broker, self._fleet, self._errands, self._speaking = broker, fleet, errands, speaking
        self._silent_after_s = silent_after_s
        self.zones: ZoneSet | None = None
        self._run, self._made = format(time.time_ns() // 1_000_000, "x"), 0  # ids are not given again
        self.orders = 0

    def tell(self, vehicle: Vehicle, now: float, is_silent: bool) -> None:
        """Send a vehicle what it needs to know. is_silent: does the fleet take it for silent?"""
        state = vehicle.state
        if not vehicle.reachable:
            return
        silent = now - vehicle.heard > 0.5 * self._silent_after_s
        if silent and not any(asked.body["actionType"] == "stateRequest" for asked in vehicle.asked.values()):
            self.ask(vehicle, "stateRequest", now)
        for asked in list(vehicle.asked.values()):
            self._send_asked(vehicle, asked, now)
        if state is None:
            return
        self._send_zones(vehicle)
        self._answer(vehicle)
        told = self._fleet.told(vehicle.id)
        if vehicle.cancelling:
            if not any(asked.body["actionType"] == "cancelOrder" for asked in vehicle.asked.values()):
                self.ask(vehicle, "cancelOrder", now)
            return
        if told is None or state.mode not in KEEPS_ORDER or not vehicle.due(now, self._speaking.answer_s):
            return
        if is_silent or "size" in vehicle.faults or vehicle.id in self._fleet.withdrawn:
            return
        last = vehicle.sent[1] if vehicle.sent[0] == state.order else -1
        errand = self._errands.of(vehicle.id)
        fresh = f"{self._run}-{self._made}"
        order = vehicle.composer.next(state, way_of(told.tiles, told.planned), errand, fresh, last)
        if order == MISMATCH:
            vehicle.faults["order"] = f"has order {state.order!r}, which leads where it may not go; it is cancelled"
            vehicle.cancelling = True
        elif order == TOO_LONG:
            vehicle.faults["order"] = (
                f"takes {vehicle.composer.most} nodes in an order; allowed: enough for the no-stopping zone "
                "ahead; it stands before that"
            )
        elif isinstance(order, Order) and self._send(vehicle, "order", order.body):
            vehicle.pending, vehicle.sent = replace(order, at=now), (order.order, order.update)
            acts = [one["actionId"] for node in order.body["nodes"] for one in node["actions"]]
            vehicle.bound = acts[0] if acts else vehicle.bound
            self._made += 1
            self.orders += 1

    def ask(self, vehicle: Vehicle, action: str, now: float, **parameters: Any) -> None:
        """Have it done, and asked for again until it shows in a state."""
        self._made += 1
        id = f"{action}-{self._run}-{self._made}"
        body: dict[str, Any] = {"actionType": action, "actionId": id, "blockingType": "NONE"}
        if parameters:
            body["actionParameters"] = [{"key": key, "value": value} for key, value in parameters.items()]
        vehicle.asked[id] = Asked(body, -math.inf)
        if self._broker.up:
            self._send_asked(vehicle, vehicle.asked[id], now)

    def _send_asked(self, vehicle, asked, now):
        kind = asked.body["actionType"]
        answered = (
            (kind == "stateRequest" and vehicle.heard > asked.at > -math.inf)
            or (kind == "factsheetRequest" and vehicle.factsheet is not None)
            or (kind == "cancelOrder" and not vehicle.cancelling)
        )
        if answered:
            vehicle.asked.pop(asked.body["actionId"], None)
        elif now - asked.at > self._speaking.answer_s and self._send(
            vehicle, "instantActions", {"actions": [asked.body]}
        ):
            asked.at = now

    def _send_zones(self, vehicle):
        zones, sheet = self.zones, vehicle.factsheet
        if zones is None or sheet is None or vehicle.version.major < 3:
            return
        if vehicle.zones_sent == zones.id or not set(zones.kinds.values()) <= set(sheet.zones):
            return
        if self._send(vehicle, "zoneSet", {"zoneSet": zones.content}):
            vehicle.zones_sent = zones.id
            self.ask(vehicle, "enableZoneSet", time.monotonic(), zoneSetId=zones.id)

    def _answer(self, vehicle):
        """Answer what a vehicle of 3.0 asks for: it may enter a zone when its order leads there."""
        answers = []
        for request in vehicle.state.requests:
            granted = self._grant(vehicle, request)
            if vehicle.answered.get(request["requestId"]) != granted:
                answers.append({"requestId": request["requestId"], "grantType": granted})
        if answers and self._send(vehicle, "responses", {"responses": answers}):
            vehicle.answered |= {one["requestId"]: one["grantType"] for one in answers}
        there = {request["requestId"] for request in vehicle.state.requests}
        vehicle.answered = {id: answer for id, answer in vehicle.answered.items() if id in there}

    def _grant(self, vehicle, request):
        zones, told = self.zones, self._fleet.told(vehicle.id)
        known = zones is not None and request["zoneSetId"] == zones.id and request["zoneId"] in zones.tiles
        if not known or request["requestType"] != "ACCESS":
            return "REJECTED"  # paths are planned here
        tiles = zones.tiles[request["zoneId"]]
        leads = told is not None and any(tuple(tile) in tiles for tile in told.tiles.tolist())
        return "GRANTED" if leads or vehicle.answered.get(request["requestId"]) == "GRANTED" else "QUEUED"

    def _send(self, vehicle, topic, body):
        payload = with_header(topic, body, vehicle.version, vehicle.id, vehicle.headers)
        return self._broker.send(f"{vehicle.level}/{topic}", payload)
