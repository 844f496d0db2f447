"""What differs between the versions of VDA 5050 that are spoken, 2.1 and 3.0: the words of their messages."""

from dataclasses import dataclass

WORDS = {  # what is meant: its name in 2.1, in 3.0
    "position": ("agvPosition", "mobileRobotPosition"),
    "localised": ("positionInitialized", "localized"),
    "power": ("batteryState", "powerSupply"),
    "charge": ("batteryCharge", "stateOfCharge"),
    "stop": ("eStop", "activeEmergencyStop"),
    "broken": ("CONNECTIONBROKEN", "CONNECTION_BROKEN"),
    "edge speed": ("maxSpeed", "maximumSpeed"),
    "speed": ("speedMax", "maximumSpeed"),
    "acceleration": ("accelerationMax", "maximumAcceleration"),
    "deceleration": ("decelerationMax", "maximumDeceleration"),
    "arrays": ("maxArrayLens", "maximumArrayLengths"),
    "actions": ("agvActions", "mobileRobotActions"),
    "noOrderToCancel": ("noOrderToCancel", "NO_ORDER_TO_CANCEL"),
    "validationError": ("validationError", "VALIDATION_FAILURE"),
    "orderUpdateError": ("orderUpdateError", "OUTDATED_ORDER_UPDATE"),
    "orderError": ("orderError", "OTHER_ORDER_ACTIVE"),
    "noRouteError": ("noRouteError", "START_NODE_OUT_OF_RANGE"),
}
BLOCKING = {2: ("NONE", "SOFT", "HARD"), 3: ("NONE", "SOFT", "SINGLE", "HARD")}
MODES = {
    2: ("AUTOMATIC", "SEMIAUTOMATIC", "MANUAL", "SERVICE", "TEACHIN"),
    3: ("STARTUP", "AUTOMATIC", "SEMIAUTOMATIC", "INTERVENED", "MANUAL", "SERVICE", "TEACH_IN"),
}
LEVELS = {2: ("WARNING", "FATAL"), 3: ("WARNING", "URGENT", "CRITICAL", "FATAL")}
CONNECTIONS = {
    2: ("ONLINE", "OFFLINE", "CONNECTIONBROKEN"),
    3: ("ONLINE", "OFFLINE", "HIBERNATING", "CONNECTION_BROKEN"),
}
STOPS = {2: ("AUTOACK", "MANUAL", "REMOTE", "NONE"), 3: ("MANUAL", "REMOTE", "NONE")}


@dataclass(frozen=True)
class Version:
    """major: 2 or 3; number: what messages carry; interface: the first level of topics, where nothing else is agreed"""

    major: int
    number: str
    interface: str

    def word(self, meant: str) -> str:
        return WORDS[meant][self.major - 2]


VERSIONS = {"2.1": Version(2, "2.1.0", "uagv"), "3.0": Version(3, "3.0.0", "vda5050")}
