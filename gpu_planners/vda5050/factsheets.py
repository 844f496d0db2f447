"""The factsheets of simulated vehicles, of 2.1 and 3.0."""

from collections.abc import Sequence
from typing import Any


def factsheet(major: int, side: float, speed: float, kinds: Sequence[str]) -> dict[str, Any]:
    """What a simulated vehicle says of itself. major: of the version; side: metres; speed: m/s; kinds: of actions"""
    three = major == 3
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
    if three:
        return {
            "typeSpecification": {
                "seriesName": "simulated",
                "mobileRobotKinematics": "DIFFERENTIAL",
                "mobileRobotKinematic": "DIFFERENTIAL",  # the schema of 3.0.0 asks for this name
                "mobileRobotClass": "CARRIER",
                "maximumLoadMass": 100.0,
                "localizationTypes": ["NATURAL"],
                "navigationTypes": ["VIRTUAL_LINE_GUIDED"],
                "supportedZones": ["BLOCKED", "RELEASE", "SPEED_LIMIT", "DIRECTED", "BIDIRECTED", "PENALTY"],
            },
            "physicalParameters": {
                "minimumSpeed": 0.05,
                "maximumSpeed": speed,
                "maximumAcceleration": 1.0,
                "maximumDeceleration": 1.0,
                "minimumHeight": 0.3,
                "maximumHeight": 0.3,
                "width": side,
                "length": side,
            },
            "protocolLimits": {
                "maximumStringLengths": {},
                "maximumArrayLengths": {"order.nodes": 30},
                "timing": {"minimumOrderInterval": 0.05, "minimumStateInterval": 0.05},
            },
            "protocolFeatures": {"optionalParameters": [], "mobileRobotActions": actions},
            "mobileRobotGeometry": {},
            "loadSpecification": {},
        }
    return {
        "typeSpecification": {
            "seriesName": "simulated",
            "agvKinematic": "DIFF",
            "agvClass": "CARRIER",
            "maxLoadMass": 100.0,
            "localizationTypes": ["NATURAL"],
            "navigationTypes": ["VIRTUAL_LINE_GUIDED"],
        },
        "physicalParameters": {
            "speedMin": 0.05,
            "speedMax": speed,
            "accelerationMax": 1.0,
            "decelerationMax": 1.0,
            "heightMax": 0.3,
            "width": side,
            "length": side,
        },
        "protocolLimits": {
            "maxStringLens": {},
            "maxArrayLens": {"order.nodes": 30},
            "timing": {"minOrderInterval": 0.05, "minStateInterval": 0.05},
        },
        "protocolFeatures": {"optionalParameters": [], "agvActions": actions},
        "agvGeometry": {},
        "loadSpecification": {},
    }
