"""Codes of answers: the numbers of moveit_msgs/MoveItErrorCodes, and which one each failure has.

The numbers are written out here because moveit_msgs need not be installed.
"""

from ...arm.planners.result import Status
from ...errors import DeviceError, ObstacleError, RobotDescriptionError
from ..common import request_error

SUCCESS = 1
FAILURE = 99999
PLANNING_FAILED = -1
MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE = -3
CONTROL_FAILED = -4
TIMED_OUT = -6
PREEMPTED = -7
START_STATE_IN_COLLISION = -10
GOAL_IN_COLLISION = -12
GOAL_CONSTRAINTS_VIOLATED = -14
INVALID_GROUP_NAME = -15
INVALID_GOAL_CONSTRAINTS = -16
INVALID_ROBOT_STATE = -17
INVALID_LINK_NAME = -18
INVALID_OBJECT_NAME = -19
FRAME_TRANSFORM_FAILURE = -21
COLLISION_CHECKING_UNAVAILABLE = -22
ROBOT_STATE_STALE = -23
START_STATE_INVALID = -26
GOAL_STATE_INVALID = -27
UNRECOGNIZED_GOAL_TYPE = -28
ABORT = -30
NO_IK_SOLUTION = -31

CODE_OF_STATUS = {
    Status.SOLVED: SUCCESS,
    Status.INVALID_START: START_STATE_INVALID,
    Status.INVALID_GOAL: GOAL_STATE_INVALID,
    Status.START_OUT_OF_LIMITS: START_STATE_INVALID,
    Status.GOAL_OUT_OF_LIMITS: GOAL_STATE_INVALID,
    Status.START_IN_COLLISION: START_STATE_IN_COLLISION,
    Status.GOAL_IN_COLLISION: GOAL_IN_COLLISION,
    Status.TIMED_OUT: TIMED_OUT,
    Status.SAMPLES_EXHAUSTED: PLANNING_FAILED,
    Status.WORLD_CHANGED: MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE,
}

CODE_OF_ERROR: dict[type[Exception], int] = {
    request_error.NotBegunError: ABORT,
    ObstacleError: INVALID_OBJECT_NAME,
    DeviceError: COLLISION_CHECKING_UNAVAILABLE,
    RobotDescriptionError: COLLISION_CHECKING_UNAVAILABLE,
}


def code_of(error: Exception) -> int:
    """The code that answers an exception."""
    return request_error.code_of(error, CODE_OF_ERROR, FAILURE)
