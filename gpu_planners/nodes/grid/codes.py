"""Codes of the grid planner's answers: those of every node that plans on maps, and some of its own."""

from ...grid import AgentStatus
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

INVALID_PLANNER = 201
LOOP = 284
STEP_LIMIT = 285

CODE_OF_STATUS = {
    AgentStatus.SOLVED: NONE,
    AgentStatus.NO_PATH: NO_VALID_PATH,
    AgentStatus.START_OUTSIDE: START_OUTSIDE_MAP,
    AgentStatus.GOAL_OUTSIDE: GOAL_OUTSIDE_MAP,
    AgentStatus.START_BLOCKED: START_OCCUPIED,
    AgentStatus.GOAL_BLOCKED: GOAL_OCCUPIED,
    AgentStatus.START_NOT_FINITE: START_NOT_FINITE,
    AgentStatus.GOAL_NOT_FINITE: GOAL_NOT_FINITE,
    AgentStatus.OUT_OF_MEMORY: OUT_OF_MEMORY,
    AgentStatus.LOOP: LOOP,
    AgentStatus.STEP_LIMIT: STEP_LIMIT,
    AgentStatus.TIMED_OUT: TIMEOUT,
}

__all__ = [
    "CODE_OF_STATUS",
    "GOAL_NOT_FINITE",
    "GOAL_OCCUPIED",
    "GOAL_OUTSIDE_MAP",
    "INVALID_PLANNER",
    "INVALID_REQUEST",
    "LOOP",
    "NONE",
    "NO_DEVICE",
    "NO_MAP",
    "NO_VALID_PATH",
    "OUT_OF_MEMORY",
    "START_NOT_FINITE",
    "START_OCCUPIED",
    "START_OUTSIDE_MAP",
    "STEP_LIMIT",
    "TF_ERROR",
    "TIMEOUT",
    "UNKNOWN",
    "code_of",
]
