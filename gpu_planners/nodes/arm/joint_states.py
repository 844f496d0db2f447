"""The latest joint_states, which may come in parts: a gripper's driver often publishes apart from the arm's."""

import numpy as np
from sensor_msgs.msg import JointState

from ...arm import RobotModel
from ..common.request_error import RequestError
from ..common.ros import seconds
from . import codes
from .conversions import joint_positions
from .move_run import Seen

MOST_PARTS = 50
SAME_CLOCK_S = 0.5  # stamps of joint_states that far from now are of another clock


class JointStates:
    """For each set of joint names the latest message, and when it came (seconds)."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str, ...], tuple[JointState, float]] = {}  # never changed in place; the latest is last

    def take(self, message: JointState, now: float) -> None:
        names = tuple(message.name)
        others = [item for item in self._latest.items() if item[0] != names]
        self._latest = dict(others[1 - MOST_PARTS :]) | {names: (message, now)}

    def positions(self, robot: RobotModel, now: float, oldest_s: float) -> dict[str, float] | None:
        """{joint: position} of the robot's joints, None where no message is recent.

        RequestError where a message is malformed and the others do not bring every planning joint.
        """
        # a clock may jump back
        recent = [message for message, came in self._latest.values() if abs(now - came) <= oldest_s]
        known, positions, wrong = (*robot.joint_names, *robot.other_joints), dict[str, float](), None
        for message in recent:
            try:
                positions |= joint_positions(message, "joint_states", codes.START_STATE_INVALID, known)
            except RequestError as error:
                wrong = error
        if wrong and not positions.keys() >= set(robot.joint_names):
            raise wrong
        return positions if recent else None

    def seen(self, joint: str, q: np.ndarray, now: float) -> Seen:
        """Seen of the latest message that names a joint, by which the planning joints are at q (dof,)."""
        message, came = next(told for names, told in reversed(self._latest.items()) if joint in names)
        stamp = seconds(message.header.stamp)
        stamped = abs(now - stamp) < SAME_CLOCK_S
        return Seen(q, stamp if stamped else came, stamped)
