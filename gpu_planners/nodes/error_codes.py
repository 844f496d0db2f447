"""Codes of answers: the numbers of moveit_msgs/MoveItErrorCodes, and which one each failure has.

The numbers are written out here because moveit_msgs need not be installed.
"""

from ..arm.path import Status
from ..errors import DeviceError, GpuPlannersError, ObstacleError, RobotDescriptionError

SUCCESS = 1
FAILURE = 99999
PLANNING_FAILED = -1
MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE = -3
TIMED_OUT = -6
START_STATE_IN_COLLISION = -10
GOAL_IN_COLLISION = -12
INVALID_LINK_NAME = -18
INVALID_OBJECT_NAME = -19
FRAME_TRANSFORM_FAILURE = -21
COLLISION_CHECKING_UNAVAILABLE = -22
ROBOT_STATE_STALE = -23
START_STATE_INVALID = -26
GOAL_STATE_INVALID = -27
UNRECOGNIZED_GOAL_TYPE = -28
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

CODE_OF_ERROR = {
    ObstacleError: INVALID_OBJECT_NAME,
    DeviceError: COLLISION_CHECKING_UNAVAILABLE,
    RobotDescriptionError: COLLISION_CHECKING_UNAVAILABLE,
}


class RequestError(GpuPlannersError):
    """A request that cannot be answered.

    code: the value of MoveItErrorCodes that the answer carries
    """

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def code_of(error):
    """The code that answers an exception."""
    if isinstance(error, RequestError):
        return error.code
    return next((code for kind, code in CODE_OF_ERROR.items() if isinstance(error, kind)), FAILURE)
