"""The factsheets of simulated vehicles, of 2.1 and 3.0."""

from collections.abc import Sequence
from typing import Any

from .versions import Version


def factsheet(version: Version, side: float, speed: float, kinds: Sequence[str]) -> dict[str, Any]:
    """What a simulated vehicle says of itself. side: metres; speed: m/s; kinds: actionTypes that it does on nodes"""
    three, word = version.major == 3, version.word
    actions: list[dict[str, Any]] = [
        {"actionType": kind, "actionScopes": ["NODE"]}
        | ({"blockingTypes": ["SOFT", "HARD"], "pauseAllowed": "true", "cancelAllowed": "true"} if three else {})
        for kind in kinds
    ]
    actions += [
        {"actionType": kind, "actionScopes": ["INSTANT"]}
        | ({"blockingTypes": ["NONE"], "pauseAllowed": "false", "cancelAllowed": "false"} if three else {})
        for kind in ("startCharging", "stopCharging")
    ]
    kind = {
        "mobileRobotKinematics": "DIFFERENTIAL",
        "mobileRobotKinematic": "DIFFERENTIAL",  # the schema of 3.0.0 asks for this name
        "mobileRobotClass": "CARRIER",
        "maximumLoadMass": 100.0,
        "supportedZones": ["BLOCKED", "RELEASE", "SPEED_LIMIT", "DIRECTED", "BIDIRECTED", "PENALTY"],
    }
    if not three:
        kind = {"agvKinematic": "DIFF", "agvClass": "CARRIER", "maxLoadMass": 100.0}
    least = "minimum" if three else "min"
    return {
        "typeSpecification": {
            "seriesName": "simulated",
            "localizationTypes": ["NATURAL"],
            "navigationTypes": ["VIRTUAL_LINE_GUIDED"],
            **kind,
        },
        "physicalParameters": {
            "minimumSpeed" if three else "speedMin": 0.05,
            word("speed"): speed,
            word("acceleration"): 1.0,
            word("deceleration"): 1.0,
            **({"minimumHeight": 0.3, "maximumHeight": 0.3} if three else {"heightMax": 0.3}),
            "width": side,
            "length": side,
        },
        "protocolLimits": {
            "maximumStringLengths" if three else "maxStringLens": {},
            word("arrays"): {"order.nodes": 30},
            "timing": {f"{least}OrderInterval": 0.05, f"{least}StateInterval": 0.05},
        },
        "protocolFeatures": {"optionalParameters": [], word("actions"): actions},
        "mobileRobotGeometry" if three else "agvGeometry": {},
        "loadSpecification": {},
    }
