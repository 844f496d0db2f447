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
SAME_CLOCK_S = 0.5  # messages whose stamps are all that far from when they come have stamps of another clock
MOST_TIMES = 50  # of the latest messages: a busy machine may bring some of them late


class JointStates:
    """For each set of joint names the latest message, when it came (seconds), and how far the stamps of the latest ones
    were from when they came."""

    def __init__(self) -> None:
        # never changed in place; the latest is last
        self._latest: dict[tuple[str, ...], tuple[JointState, float, tuple[float, ...]]] = {}

    def take(self, message: JointState, now: float) -> None:
        names = tuple(message.name)
        others = [item for item in self._latest.items() if item[0] != names]
        before = self._latest[names][2] if names in self._latest else ()
        late = (*before[1 - MOST_TIMES :], abs(now - seconds(message.header.stamp)))
        self._latest = dict(others[1 - MOST_PARTS :]) | {names: (message, now, late)}

    def positions(self, robot: RobotModel, now: float, oldest_s: float) -> dict[str, float] | None:
        """{joint: position} of the robot's joints, None where no message is recent.

        RequestError where a message is malformed and the others do not bring every planning joint.
        """
        # a clock may jump back
        recent = [message for message, came, _ in self._latest.values() if abs(now - came) <= oldest_s]
        known, positions, wrong = (*robot.joint_names, *robot.other_joints), dict[str, float](), None
        for message in recent:
            try:
                positions |= joint_positions(message, "joint_states", codes.START_STATE_INVALID, known)
            except RequestError as error:
                wrong = error
        if wrong and not positions.keys() >= set(robot.joint_names):
            raise wrong
        return positions if recent else None

    def seen(self, joint: str, q: np.ndarray) -> Seen:
        """Seen of the latest message that names a joint, by which the planning joints are at q (dof,)."""
        message, came, late = next(told for names, told in reversed(self._latest.items()) if joint in names)
        stamped = min(late) < SAME_CLOCK_S
        return Seen(q, seconds(message.header.stamp) if stamped else came, stamped)
