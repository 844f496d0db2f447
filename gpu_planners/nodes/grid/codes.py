"""Codes of the grid planner's answers: those of Nav2 where it has one, this package's own from 280 on.

NONE to NO_VALID_PATH are the numbers of nav2_msgs/action/ComputePathToPose, written out here because nav2_msgs need not
be installed.
"""

from ...errors import DeviceError, GridMapError, SettingsError
from ...grid import AgentStatus
from ..common import request_error

NONE = 0
UNKNOWN = 200
INVALID_PLANNER = 201
TF_ERROR = 202
START_OUTSIDE_MAP = 203
GOAL_OUTSIDE_MAP = 204
START_OCCUPIED = 205
GOAL_OCCUPIED = 206
TIMEOUT = 207
NO_VALID_PATH = 208
NO_MAP = 280
START_NOT_FINITE = 281
GOAL_NOT_FINITE = 282
OUT_OF_MEMORY = 283
LOOP = 284
STEP_LIMIT = 285
NO_DEVICE = 286
INVALID_REQUEST = 287

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
CODE_OF_ERROR: dict[type[Exception], int] = {
    DeviceError: NO_DEVICE,
    GridMapError: NO_MAP,
    SettingsError: INVALID_REQUEST,
}


def code_of(error: Exception) -> int:
    """The code that answers an exception."""
    if request_error.is_out_of_memory(error):
        return OUT_OF_MEMORY
    return request_error.code_of(error, CODE_OF_ERROR, UNKNOWN)
