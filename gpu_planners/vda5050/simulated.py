"""Vehicles without hardware, which follow the text of VDA 5050 by themselves, over a network that may be bad.

They share nothing with fleet control but the connection to the broker and the words of the two versions: what they
accept, refuse and report is written from the standard (order: 6.6 of 2.1, 6.1 of 3.0; actions: 6.8, 6.2; state: 6.10,
6.6), so that both sides test each other.
"""

import json
import math
import random
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .broker import Address, Broker
from .factsheets import factsheet
from .messages import with_header
from .versions import BLOCKING, Version

ARRIVED = 0.02  # metres from a node, at which it is traversed in any case
STATE_S = 1.0  # between two states where nothing happens; the standard asks for 30 at most
ENDED = ("FINISHED", "FAILED")


@dataclass
class Network:
    """How bad the radio is: shares of messages that are lost, come twice, or come again late; seconds of delay"""

    loss: float = 0.0
    double: float = 0.0
    stale: float = 0.0
    delay_s: float = 0.0


class SimulatedVehicle:
    """One vehicle.

    pose: x, y, theta; speed: m/s; turn: rad/s; side: of its square body; map_id: of its map
    on_nodes: can it only stop on nodes? action_s: how long an action on a node takes; failing: actionTypes that fail
    positions: does it tell where it is? charge: of its battery, per cent; drain: per cent that a metre takes; fill: per
        cent in a second at a charger
    """

    def __init__(
        self,
        address: Address,
        version: Version,
        serial: str,
        pose: tuple[float, float, float],
        map_id: str = "map",
        speed: float = 1.0,
        turn: float = 3.0,
        side: float = 0.7,
        network: Network | None = None,
        seed: int = 0,
        interface: str = "",
        manufacturer: str = "simulated",
        on_nodes: bool = False,
        action_s: float = 0.5,
        failing: Sequence[str] = (),
        positions: bool = True,
        charge: float = 80.0,
        drain: float = 0.0,
        fill: float = 20.0,
    ) -> None:
        self.version, self.manufacturer, self.serial, self.map_id = version, manufacturer, serial, map_id
        self.id = f"{manufacturer}/{serial}"
        self.pose, self.speed, self.turn, self.side = list(pose), speed, turn, side
        self.network, self._random = network or Network(), random.Random(seed)
        self.on_nodes, self.action_s, self.failing, self.positions = on_nodes, action_s, failing, positions
        self.charge, self.drain, self.fill, self.charging = charge, drain, fill, False
        self.mode, self.paused, self.driving, self.stop = "AUTOMATIC", False, False, "NONE"
        self.order, self.update, self.last = "", 0, ("", 0)
        self.nodes: list[tuple[dict[str, Any], dict[str, Any]]] = []  # (edge, node at its end) still to be traversed
        self.decision: tuple[str, int] = ("", 0)  # the last released node
        self.actions: dict[str, list[Any]] = {}  # {id: [status, type, blocking, seconds left]} of the order
        self.instant: dict[str, list[Any]] = {}
        self.queue: deque[str] = deque()  # actions that were triggered and are not over
        self.errors: list[dict[str, Any]] = []
        self.requests: dict[str, dict[str, Any]] = {}  # by zone
        self.zone_sets: dict[str, tuple[dict[str, Any], str]] = {}
        self.refused = 0
        self.headers: dict[str, int] = {}
        self._accepted: dict[str, Any] = {}
        self._cancelling, self._cancelled = "", False
        self._changed, self._published = True, -math.inf
        self._in: list[tuple[float, str, bytes]] = []
        self._out: list[tuple[float, str, bytes]] = []
        interface = interface or version.interface
        self.level = f"{interface}/v{version.major}/{manufacturer}/{serial}"
        topics = [(f"{self.level}/{topic}", 0) for topic in ("order", "instantActions", "zoneSet", "responses")]
        will = f"{self.level}/connection", self._message("connection", connectionState=version.word("broken"))
        self.broker = Broker(address, f"{manufacturer}-{serial}-{version.major}", topics, will, self._greet)
        self.broker.start()

    # ---- the network ----

    def _message(self, topic, **body):
        return with_header(topic, body, self.version, self.id, self.headers)

    def _greet(self):
        self.broker.send(f"{self.level}/connection", self._message("connection", connectionState="ONLINE"), 1, True)
        self._changed = True

    def sign_off(self) -> None:
        """Go offline in an orderly way."""
        self.broker.send(f"{self.level}/connection", self._message("connection", connectionState="OFFLINE"), 1, True)
        self.broker.close()

    def _publish(self, topic, payload, now):
        net, roll = self.network, self._random.random
        if roll() >= net.loss:
            self._out.append((now + net.delay_s * roll(), topic, payload))
        if roll() < net.stale:
            self._out.append((now + 1.0 + roll(), topic, payload))

    def _exchange(self, now):
        """Send and take what is due, by the network's delays."""
        net, roll = self.network, self._random.random
        while not self.broker.arrived.empty():
            message = self.broker.arrived.get()
            topic = message.topic.rpartition("/")[2]
            if roll() >= net.loss:
                self._in.append((now + net.delay_s * roll(), topic, message.payload))
            if roll() < net.double:
                self._in.append((now + 0.5 * roll(), topic, message.payload))
        for at, topic, payload in [one for one in self._out if one[0] <= now]:
            self._out.remove((at, topic, payload))
            self.broker.send(f"{self.level}/{topic}", payload)
        for one in [one for one in self._in if one[0] <= now]:
            self._in.remove(one)
            take = {"order": self._take_order, "instantActions": self._take_instant, "zoneSet": self._take_zones}
            take.get(one[1], self._take_responses)(json.loads(one[2]), now)

    # ---- orders ----

    @property
    def idle(self) -> bool:
        return not self.nodes and all(action[0] in ENDED for action in self.actions.values())

    def _take_order(self, order, now):
        self._changed = True
        nodes, edges = order["nodes"], order["edges"]
        fault = self._malformed(nodes, edges)
        if fault:
            return self._refuse("validationError", order, fault)
        name, update = order["orderId"], order["orderUpdateId"]
        first = nodes[0]["nodeId"], nodes[0]["sequenceId"]
        if name != self.order:
            if not self.idle or self._cancelling:
                return self._refuse("orderError", order, f"order {self.order} is not done")
            if self.version.major == 3 and update != 0:
                return self._refuse("validationError", order, "the first update of an order is 0")
            if not self._near(nodes[0]):
                return self._refuse("noRouteError", order, f"it is not on node {first[0]}")
            self.actions, self._cancelled = {}, False
        elif update < self.update:
            return self._refuse("orderUpdateError", order, f"update {self.update} is here already")
        elif update == self.update:
            if self.version.major == 3 and order != self._accepted | {k: order[k] for k in ("headerId", "timestamp")}:
                self._refuse("orderUpdateError", order, "the same update has other contents")
            return None
        elif self._cancelled:
            return self._refuse("orderUpdateError", order, "the order is cancelled")
        elif first != (self.decision if self.nodes else self.last):
            return self._refuse("orderUpdateError", order, f"it does not go on from {self.decision}")
        new = name != self.order
        self.order, self.update, self.errors, self._accepted = name, update, [], order
        dropped = [one for one in self.nodes if not one[1]["released"]]
        for edge, node in dropped:
            for action in [*edge["actions"], *node["actions"]]:
                self.actions.pop(action["actionId"], None)
        self.nodes = [one for one in self.nodes if one[1]["released"]] + list(zip(edges, nodes[1:]))
        for node in nodes if new else nodes[1:]:
            for action in node["actions"]:
                self.actions[action["actionId"]] = ["WAITING", action["actionType"], action["blockingType"], None]
        released = [node for node in nodes if node["released"]]
        self.decision = released[-1]["nodeId"], released[-1]["sequenceId"]
        if new:
            self.last = first
            self.queue.extend(action["actionId"] for action in nodes[0]["actions"])
        return None

    def _malformed(self, nodes, edges):
        if not nodes or len(edges) != len(nodes) - 1:
            return f"{len(nodes)} nodes and {len(edges)} edges"
        numbers = [one["sequenceId"] for pair in zip(nodes, [*edges, None]) for one in pair if one]
        if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            return f"sequence {numbers}"
        flags = [one["released"] for pair in zip(nodes, [*edges, None]) for one in pair if one]
        if not flags[0] or flags != sorted(flags, reverse=True) or (len(flags) - flags.count(True)) % 2:
            return "base and horizon are mixed"
        if any(node["nodePosition"]["mapId"] != self.map_id for node in nodes):
            return "another map"
        for node in nodes:
            for action in node["actions"]:
                if action["blockingType"] not in BLOCKING[self.version.major]:
                    return f"blockingType {action['blockingType']}"
        return ""

    def _near(self, node):
        at = node["nodePosition"]
        allowed = at.get("allowedDeviationXY", 0.0)
        allowed = max(ARRIVED, allowed if self.version.major == 2 else min(allowed["a"], allowed["b"]))
        return math.hypot(at["x"] - self.pose[0], at["y"] - self.pose[1]) <= allowed + 1e-6

    def _refuse(self, kind, order, text):
        self.refused += 1
        references = {"orderId": order["orderId"], "orderUpdateId": str(order["orderUpdateId"])}
        self._complain(self.version.word(kind), "WARNING", text, references)

    def _complain(self, kind, level, text, references):
        self.errors = [error for error in self.errors if error["errorType"] != kind]
        listed = [{"referenceKey": key, "referenceValue": value} for key, value in references.items()]
        self.errors.append(
            {"errorType": kind, "errorLevel": level, "errorDescription": text, "errorReferences": listed}
        )

    # ---- instant actions, zones ----

    def _take_instant(self, message, now):
        self._changed = True
        for action in message["actions"]:
            id, kind = action["actionId"], action["actionType"]
            if id in self.instant:
                continue
            state = self.instant[id] = ["FINISHED", kind, "NONE", None]
            parameters = {one["key"]: one["value"] for one in action.get("actionParameters", ())}
            if kind in ("startPause", "stopPause"):
                self.paused = kind == "startPause"
            elif kind in ("startCharging", "stopCharging"):
                self.charging = kind == "startCharging"
            elif kind == "factsheetRequest":
                self._publish("factsheet", self._message("factsheet", **self.factsheet()), now)
            elif kind == "cancelOrder":
                self._cancel(id, state)
            elif kind == "enableZoneSet" and parameters.get("zoneSetId") in self.zone_sets:
                wanted = parameters["zoneSetId"]
                self.zone_sets = {
                    name: (zones, "ENABLED" if name == wanted else "DISABLED")
                    for name, (zones, _) in self.zone_sets.items()
                }
            elif kind != "stateRequest":
                state[0] = "FAILED"
                self._complain("INVALID_INSTANT_ACTION", "WARNING", f"no action {kind}", {"actionId": id})

    def _cancel(self, id, state):
        if self.idle or self._cancelling:
            state[0] = "FAILED"
            self._complain(self.version.word("noOrderToCancel"), "WARNING", "no order", {"actionId": id})
            return
        state[0], self._cancelling = "RUNNING", id
        on_edge = self.nodes and self.nodes[0][1]["released"] and self.driving
        self.nodes = self.nodes[:1] if self.on_nodes and on_edge else []

    def _take_zones(self, message, now):
        zones = message["zoneSet"]
        if zones["zoneSetId"] in self.zone_sets:
            self._complain("DUPLICATE_ZONE_SET", "WARNING", "", {"zoneSetId": zones["zoneSetId"]})
        else:
            self.zone_sets[zones["zoneSetId"]] = zones, "DISABLED"
        self._changed = True

    def _take_responses(self, message, now):
        for one in message["responses"]:
            for request in self.requests.values():
                if request["requestId"] == one["requestId"] and one["grantType"] == "GRANTED":
                    request["requestStatus"], self._changed = "GRANTED", True

    def _may_enter(self, node):
        """Ask for the release zones that a node lies in, and leave those that lie behind."""
        inside = {}
        for zones, status in self.zone_sets.values():
            for zone in zones["zones"] if status == "ENABLED" else ():
                if zone["zoneType"] == "RELEASE":
                    at = node["nodePosition"]
                    inside[zone["zoneId"]] = zones["zoneSetId"], _in_polygon((at["x"], at["y"]), zone["vertices"]), zone
        for zone, (zone_set, there, content) in inside.items():
            if there and zone not in self.requests:
                self.requests[zone] = {
                    "requestId": f"{zone}-{self._random.getrandbits(32)}",
                    "requestType": "ACCESS",
                    "zoneId": zone,
                    "zoneSetId": zone_set,
                    "requestStatus": "REQUESTED",
                }
                self._changed = True
            elif not there and zone in self.requests and not _in_polygon(self.pose[:2], content["vertices"]):
                del self.requests[zone]
                self._changed = True
        return all(self.requests[zone]["requestStatus"] == "GRANTED" for zone, at in inside.items() if at[1])

    # ---- time ----

    def tick(self, now: float, passed: float) -> None:
        """Seconds pass."""
        self._exchange(now)
        self._act(passed)
        if self.charging:
            self.charge, before = min(100.0, self.charge + self.fill * passed), self.charge
            self._changed |= int(self.charge) != int(before)
        drives = self._drive(passed)
        if drives != self.driving:
            self.driving, self._changed = drives, True
        if self._cancelling and not self.nodes:
            for action in self.actions.values():
                action[0] = action[0] if action[0] in ENDED else "FAILED"
            self.queue.clear()
            self.instant[self._cancelling][0], self._cancelling, self._cancelled = "FINISHED", "", True
            self._changed = True
        if self._changed or now - self._published > STATE_S:
            self._changed, self._published = False, now
            self._publish("state", self.state(), now)

    def _act(self, passed):
        """Actions in their sequence: those that may not run beside others wait for those before them."""
        if self.paused:
            return
        running = 0
        for id in list(self.queue):
            action = self.actions.get(id)
            if action is None:
                self.queue.remove(id)
                continue
            alone = action[2] in ("HARD", "SINGLE")
            if action[0] == "WAITING":
                if alone and running:
                    break
                action[0], action[3], self._changed = "RUNNING", self.action_s, True
            running += 1
            action[3] -= passed
            if action[3] <= 0:
                action[0], self._changed = "FAILED" if action[1] in self.failing else "FINISHED", True
                self.queue.remove(id)
            if alone:
                break

    def _drive(self, passed):
        """Go on along the base -> is it moving?"""
        still = self.paused or self.mode != "AUTOMATIC" or self.stop != "NONE" or self.charging or self.charge <= 0
        moved = False
        while passed > 1e-9 and self.nodes and not still:
            edge, node = self.nodes[0]
            if not node["released"] or any(self.actions[id][2] in ("SOFT", "HARD") for id in self.queue):
                break
            if not self._may_enter(node):
                break
            at = node["nodePosition"]
            dx, dy = at["x"] - self.pose[0], at["y"] - self.pose[1]
            far = math.hypot(dx, dy)
            if far > ARRIVED:
                passed, moved = self._move(math.atan2(dy, dx), far, edge, passed), True
            elif "theta" in at and abs(_turned(at["theta"] - self.pose[2])) > 1e-3:
                passed, moved = self._rotate(at["theta"], passed), True
            else:
                self.nodes.pop(0)
                self.last, self._changed = (node["nodeId"], node["sequenceId"]), True
                self.queue.extend(action["actionId"] for action in node["actions"])
        return moved

    def _move(self, heading, far, edge, passed):
        if abs(_turned(heading - self.pose[2])) > 1e-3:
            return self._rotate(heading, passed)
        speed = min(self.speed, edge.get(self.version.word("edge speed"), math.inf))
        way = min(far, speed * passed)
        self.pose[0] += way * math.cos(heading)
        self.pose[1] += way * math.sin(heading)
        self.charge = max(0.0, self.charge - self.drain * way)
        return passed - way / speed

    def _rotate(self, heading, passed):
        off = _turned(heading - self.pose[2])
        by = min(abs(off), self.turn * passed)
        self.pose[2] = heading if by == abs(off) else _turned(self.pose[2] + math.copysign(by, off))
        return passed - by / self.turn

    # ---- what it says ----

    def factsheet(self) -> dict[str, Any]:
        return factsheet(self.version, self.side, self.speed, ["pick", "drop", *self.failing])

    def state(self) -> bytes:
        three, word = self.version.major == 3, self.version.word
        listed = {
            name: [{"actionId": id, "actionType": one[1], "actionStatus": one[0]} for id, one in actions.items()]
            for name, actions in (("order", self.actions), ("instant", self.instant))
        }
        body: dict[str, Any] = {
            "orderId": self.order,
            "orderUpdateId": self.update,
            "lastNodeId": self.last[0],
            "lastNodeSequenceId": self.last[1],
            "driving": self.driving,
            "paused": self.paused,
            "operatingMode": self.mode,
            "nodeStates": [
                {"nodeId": node["nodeId"], "sequenceId": node["sequenceId"], "released": node["released"]}
                for _, node in self.nodes
            ],
            "edgeStates": [
                {"edgeId": edge["edgeId"], "sequenceId": edge["sequenceId"], "released": edge["released"]}
                for edge, _ in self.nodes
            ],
            "actionStates": listed["order"] if three else listed["order"] + listed["instant"],
            word("power"): {word("charge"): round(self.charge, 3), "charging": self.charging},
            "errors": self.errors,
            "safetyState": {word("stop"): self.stop, "fieldViolation": False},
        }
        if self.positions:
            x, y, theta = self.pose
            body[word("position")] = {"x": x, "y": y, "theta": theta, "mapId": self.map_id, word("localised"): True}
        if three:
            body["instantActionStates"] = listed["instant"]
            body["zoneRequests"] = [*self.requests.values()]
            body["zoneSets"] = [
                {"zoneSetId": id, "mapId": zones["mapId"], "zoneSetStatus": status}
                for id, (zones, status) in self.zone_sets.items()
            ]
        return self._message("state", **body)


def simulate(
    vehicles: Sequence[SimulatedVehicle], stop: threading.Event, each: Any = None, tick_s: float = 0.02
) -> None:
    """Have vehicles drive in real time until told to stop. each: called after every tick"""
    before = time.monotonic()
    while not stop.wait(tick_s):
        now = time.monotonic()
        for vehicle in vehicles:
            vehicle.tick(now, min(now - before, 0.2))
        before = now
        if each:
            each()


def _turned(angle):
    return (angle + math.pi) % (2 * math.pi) - math.pi


def _in_polygon(point, vertices):
    inside, before = False, vertices[-1]
    for now in vertices:
        if (now["y"] > point[1]) != (before["y"] > point[1]):
            share = (point[1] - now["y"]) / (before["y"] - now["y"])
            inside ^= point[0] < now["x"] + share * (before["x"] - now["x"])
        before = now
    return inside
