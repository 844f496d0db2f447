"""Codes of answers of the nodes that plan on maps: those of Nav2 where it has one, this package's own from 280 on.

NONE to NO_VALID_PATH are the numbers of nav2_msgs/action/ComputePathToPose, written out here because nav2_msgs need not
be installed.
"""

from ...errors import DeviceError, GridMapError, SettingsError, TaskError, is_device_lost, is_out_of_memory
from . import request_error

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
START_TAKEN = 288
GOAL_TAKEN = 289
NOT_BEGUN = 290
NO_TASK = 291

CODE_OF_ERROR: dict[type[Exception], int] = {
    request_error.NotBegunError: NOT_BEGUN,
    DeviceError: NO_DEVICE,
    GridMapError: NO_MAP,
    SettingsError: INVALID_REQUEST,
    TaskError: NO_TASK,
}


def code_of(error: Exception) -> int:
    if is_out_of_memory(error):
        return OUT_OF_MEMORY
    if is_device_lost(error):
        return NO_DEVICE
    return request_error.code_of(error, CODE_OF_ERROR, UNKNOWN)
