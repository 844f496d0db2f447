"""Codes of the fleet planner's answers: those of every node that plans on maps, and some of its own."""

from ..common.map_codes import (
    GOAL_NOT_FINITE,
    GOAL_OCCUPIED,
    GOAL_OUTSIDE_MAP,
    INVALID_REQUEST,
    NO_DEVICE,
    NO_MAP,
    NO_VALID_PATH,
    NONE,
    OUT_OF_MEMORY,
    START_NOT_FINITE,
    START_OCCUPIED,
    START_OUTSIDE_MAP,
    TF_ERROR,
    TIMEOUT,
    UNKNOWN,
    code_of,
)

START_TAKEN = 288
GOAL_TAKEN = 289

OF_STATUS = {  # of a FleetPlan's agents: code, text
    0: (NONE, ""),
    1: (TIMEOUT, "it is not at its goal when the plan ends"),
    2: (NO_VALID_PATH, "no path leads from its start to its goal"),
    3: (START_OUTSIDE_MAP, "its start is outside the map"),
    4: (START_OCCUPIED, "its start is blocked"),
    5: (START_NOT_FINITE, "its start is not finite"),
    6: (START_TAKEN, "another agent starts there, or too near"),
    7: (GOAL_OUTSIDE_MAP, "its goal is outside the map"),
    8: (GOAL_OCCUPIED, "its goal is blocked"),
    9: (GOAL_NOT_FINITE, "its goal is not finite"),
    10: (GOAL_TAKEN, "another agent has that goal, or one too near"),
}

__all__ = [
    "GOAL_NOT_FINITE",
    "GOAL_OCCUPIED",
    "GOAL_OUTSIDE_MAP",
    "GOAL_TAKEN",
    "INVALID_REQUEST",
    "NONE",
    "NO_DEVICE",
    "NO_MAP",
    "NO_VALID_PATH",
    "OF_STATUS",
    "OUT_OF_MEMORY",
    "START_NOT_FINITE",
    "START_OCCUPIED",
    "START_OUTSIDE_MAP",
    "START_TAKEN",
    "TF_ERROR",
    "TIMEOUT",
    "UNKNOWN",
    "code_of",
]
