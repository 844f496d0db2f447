"""Messages of VDA 5050 that vehicles send, checked by the standard's tables; and the header of those that they get.

A message that breaks a rule raises MessageError, which names the field, its value and what is allowed. Fields that are
not used here may be anything.
"""

import functools
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ..errors import GpuPlannersError, shown
from ..files import json_value
from .versions import BLOCKING, CONNECTIONS, LEVELS, MODES, STOPS, Version

MOST_BYTES = 4 << 20  # of a message
MOST_WHOLE = 2**32 - 1
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:?\d\d)?")
STATUSES = ("WAITING", "INITIALIZING", "RUNNING", "PAUSED", "RETRIABLE", "FINISHED", "FAILED")
ENDED = ("FINISHED", "FAILED")


class MessageError(GpuPlannersError):
    """A message breaks a rule of VDA 5050; the text names the field, its value and what is allowed."""


def checked(value: Any, rule: Any, where: str = "") -> Any:
    """The value, which a rule allows: str, float, int (0 .. 2^32 - 1), bool, a tuple of texts, [rule of each item], or
    {field: rule}, where "field?" may be absent. Raises MessageError. where: what the value is called"""
    wrong = _wrong(value, rule)
    if wrong:
        path, text = wrong
        name = f"{where}{path}" if where else path.lstrip(".")
        raise MessageError(f"{name or 'it'} {text}" if name or text.startswith("is ") else text)
    return value


def _wrong(value, rule):
    """(where below a value, what is wrong), or None. States come by the thousand: nothing is built that is not told."""
    if isinstance(rule, dict):
        if not isinstance(value, dict):
            return "", f"is {shown(value)}; allowed: an object"
        for name, inner in rule.items():
            key = name.rstrip("?")
            found = value.get(key)
            if found is None:
                if key == name:
                    return "", f"has no '{key}'"
            elif wrong := _wrong(found, inner):
                return f".{key}{wrong[0]}", wrong[1]
    elif isinstance(rule, list):
        if not isinstance(value, list):
            return "", f"is {shown(value)}; allowed: an array"
        for k, item in enumerate(value):
            if wrong := _wrong(item, rule[0]):
                return f"[{k}]{wrong[0]}", wrong[1]
    elif isinstance(rule, tuple):
        if not isinstance(value, str) or value not in rule:
            return "", f"is {shown(value)}; allowed: {', '.join(rule)}"
    elif not _is(value, rule):
        return "", f"is {shown(value)}; allowed: {ALLOWED[rule]}"
    return None


def _is(value, kind):
    if kind is str or kind is bool:
        return isinstance(value, kind)
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= sys.float_info.max:
        return False
    return kind is float or (0 <= value <= MOST_WHOLE and value == int(value))


ALLOWED = {str: "a text", bool: "true or false", float: "a finite number", int: f"0 .. {MOST_WHOLE}"}
HEADER = {"headerId": int, "timestamp": str, "version": str, "manufacturer": str, "serialNumber": str}
_NODE = {"nodeId": str, "sequenceId": int, "released": bool}
_EDGE = {"edgeId": str, "sequenceId": int, "released": bool}
_ACTION_STATE = {"actionId": str, "actionStatus": STATUSES, "resultDescription?": str, "actionResult?": str}
_REFERENCES = [{"referenceKey": str, "referenceValue": str}]
_REQUEST = {
    "requestId": str,
    "requestType": ("ACCESS", "REPLANNING"),
    "zoneId": str,
    "zoneSetId": str,
    "requestStatus": ("REQUESTED", "GRANTED", "REVOKED", "EXPIRED", "QUEUED"),
}


@functools.cache
def state_rule(version: Version) -> dict[str, Any]:
    """What the table of the topic state asks for."""
    rule: dict[str, Any] = {
        **HEADER,
        "orderId": str,
        "orderUpdateId": int,
        "lastNodeId": str,
        "lastNodeSequenceId": int,
        "driving": bool,
        "paused?": bool,
        "newBaseRequest?": bool,
        "operatingMode": MODES[version.major],
        "nodeStates": [_NODE],
        "edgeStates": [_EDGE],
        "actionStates": [_ACTION_STATE],
        version.word("position") + "?": {
            "x": float,
            "y": float,
            "theta": float,
            "mapId": str,
            version.word("localised"): bool,
        },
        version.word("power"): {version.word("charge"): float, "charging": bool},
        "errors": [
            {
                "errorType": str,
                "errorLevel": LEVELS[version.major],
                "errorDescription?": str,
                "errorReferences?": _REFERENCES,
            }
        ],
        "safetyState": {version.word("stop"): STOPS[version.major], "fieldViolation": bool},
    }
    if version.major == 3:
        rule |= {"instantActionStates": [_ACTION_STATE], "zoneRequests?": [_REQUEST]}
    return rule


@functools.cache
def factsheet_rule(version: Version) -> dict[str, Any]:
    """What is read of the factsheet."""
    return {
        "typeSpecification": {"supportedZones?": [str]},
        "physicalParameters": {
            version.word("speed"): float,
            version.word("acceleration") + "?": float,
            version.word("deceleration") + "?": float,
            "width": float,
            "length": float,
        },
        "protocolLimits": {version.word("arrays"): {"order.nodes?": int, "node.actions?": int}},
        "protocolFeatures": {
            version.word("actions"): [
                {
                    "actionType": str,
                    "actionScopes": [("INSTANT", "NODE", "EDGE", "ZONE")],
                    "blockingTypes?": [BLOCKING[version.major]],
                }
            ]
        },
    }


def action_rule(version: Version) -> dict[str, Any]:
    """An action of an order; its id is given by whoever sends it."""
    return {"actionType": str, "blockingType?": BLOCKING[version.major], "actionParameters?": [{"key": str}]}


@dataclass
class VehicleError:
    kind: str
    level: str
    text: str
    references: dict[str, str]

    def __str__(self) -> str:
        return f"{self.level} {self.kind}{': ' + self.text if self.text else ''}"


@dataclass
class VehicleState:
    """What a vehicle says of itself.

    base, horizon: [(nodeId, sequenceId)] that it still has to traverse, released or not
    pose: (x, y, theta) metres and rad of the map; None: it does not tell
    actions: {actionId: (actionStatus, result)}; stamp: seconds since 1970 by its clock; stopped: why it cannot drive
    """

    stamp: float
    order: str
    update: int
    last: tuple[str, int]
    base: list[tuple[str, int]]
    horizon: list[tuple[str, int]]
    driving: bool
    paused: bool
    mode: str
    pose: tuple[float, float, float] | None
    map_id: str
    localised: bool
    actions: dict[str, tuple[str, str]]
    charge: float
    charging: bool = False
    errors: list[VehicleError] = field(default_factory=list)
    requests: list[dict[str, str]] = field(default_factory=list)
    stopped: str = ""

    @property
    def idle(self) -> bool:
        """Has it done all of its order?"""
        return not self.base and not self.horizon and all(status in ENDED for status, _ in self.actions.values())


@dataclass
class Factsheet:
    """Zero or None: the vehicle sets no limit. actions: {(actionType, scope): its blocking types}"""

    speed: float
    width: float
    length: float
    most_nodes: int
    most_actions: int
    actions: dict[tuple[str, str], tuple[str, ...]]
    zones: tuple[str, ...]
    acceleration: float = 0.0
    deceleration: float = 0.0


def opened(payload: bytes) -> dict[str, Any]:
    """The object that a message holds. Raises MessageError."""
    if len(payload) > MOST_BYTES:
        raise MessageError(f"it has more than {MOST_BYTES} bytes; allowed: as many")
    return checked(json_value(payload, "it", MessageError), {})


def stamp_of(text: str) -> float:
    """Seconds since 1970 of a timestamp. Raises MessageError."""
    found = _STAMP.fullmatch(text)
    try:
        if not found:
            raise ValueError
        zone = (found[3] or "Z").replace("Z", "+00:00")
        whole = datetime.fromisoformat(found[1] + (zone if ":" in zone else f"{zone[:3]}:{zone[3:]}"))
    except ValueError:
        raise MessageError(f"timestamp is {shown(text)}; allowed: as 2026-04-15T11:40:03.12Z") from None
    return whole.timestamp() + float(found[2] or 0)


def check_header(message: Mapping[str, Any], version: Version, manufacturer: str, serial: str) -> None:
    """Raises MessageError where the header does not fit the topic."""
    checked(message, HEADER)
    if message["version"].split(".")[0] != str(version.major):
        raise MessageError(f"version is {shown(message['version'])}; allowed on this topic: {version.major}.x")
    for name, wanted in (("manufacturer", manufacturer), ("serialNumber", serial)):
        if message[name] != wanted:
            raise MessageError(f"{name} is {shown(message[name])}; allowed on this topic: {wanted!r}")


def read_connection(message: dict[str, Any], version: Version) -> str:
    """Its connectionState, as 2.1 writes it. Raises MessageError."""
    checked(message, {"connectionState": CONNECTIONS[version.major]})
    return message["connectionState"].replace("_", "")


def read_state(message: dict[str, Any], version: Version) -> VehicleState:
    """Raises MessageError."""
    checked(message, state_rule(version))
    nodes = [(node["nodeId"], int(node["sequenceId"]), node["released"]) for node in message["nodeStates"]]
    pose = message.get(version.word("position")) or {}
    safety = message["safetyState"]
    errors = [
        VehicleError(
            one["errorType"],
            one["errorLevel"],
            one.get("errorDescription") or "",
            {each["referenceKey"]: each["referenceValue"] for each in one.get("errorReferences") or ()},
        )
        for one in message["errors"]
    ]
    serious = [str(error) for error in errors if error.level in ("FATAL", "CRITICAL")]
    if safety[version.word("stop")] != "NONE":
        serious.append(f"emergency stop {safety[version.word('stop')]}")
    if safety["fieldViolation"]:
        serious.append("something is in its protective field")
    every = [*message["actionStates"], *message.get("instantActionStates", ())]
    return VehicleState(
        stamp=stamp_of(message["timestamp"]),
        order=message["orderId"],
        update=int(message["orderUpdateId"]),
        last=(message["lastNodeId"], int(message["lastNodeSequenceId"])),
        base=[(name, number) for name, number, released in nodes if released],
        horizon=[(name, number) for name, number, released in nodes if not released],
        driving=message["driving"],
        paused=bool(message.get("paused")),
        mode=message["operatingMode"],
        pose=(pose["x"], pose["y"], pose["theta"]) if pose else None,
        map_id=pose.get("mapId", ""),
        localised=bool(pose.get(version.word("localised"))),
        actions={
            one["actionId"]: (one["actionStatus"], one.get("resultDescription") or one.get("actionResult") or "")
            for one in every
        },
        charge=float(message[version.word("power")][version.word("charge")]),
        charging=message[version.word("power")]["charging"],
        errors=errors,
        requests=list(message.get("zoneRequests") or ()),
        stopped="; ".join(serious),
    )


def read_factsheet(message: dict[str, Any], version: Version) -> Factsheet:
    """Raises MessageError."""
    checked(message, factsheet_rule(version))
    kind, body = message["typeSpecification"], message["physicalParameters"]
    limits = message["protocolLimits"][version.word("arrays")]
    actions = message["protocolFeatures"][version.word("actions")]
    return Factsheet(
        float(body[version.word("speed")]),
        float(body["width"]),
        float(body["length"]),
        int(limits.get("order.nodes") or 0),
        int(limits.get("node.actions") or 0),
        {
            (one["actionType"], scope): tuple(one.get("blockingTypes") or BLOCKING[version.major])
            for one in actions
            for scope in one["actionScopes"]
        },
        tuple(kind.get("supportedZones") or ()),
        *(float(body.get(version.word(name)) or 0.0) for name in ("acceleration", "deceleration")),
    )


def with_header(topic: str, body: dict[str, Any], version: Version, id: str, headers: dict[str, int]) -> bytes:
    """The message of a topic, of or for the vehicle `id`, manufacturer/serialNumber. headers: {topic: next headerId},
    counted on here"""
    number, (manufacturer, serial) = headers.get(topic, 0), id.split("/")
    headers[topic] = (number + 1) % (MOST_WHOLE + 1)
    values = number, timestamp(), version.number, manufacturer, serial
    return json.dumps(dict(zip(HEADER, values, strict=True)) | body).encode()


def timestamp() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
