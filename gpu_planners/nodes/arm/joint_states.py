"""What joint_states say. It may come in parts: a gripper's driver often publishes apart from the arm's."""

from sensor_msgs.msg import JointState

from ...arm import RobotModel
from ..common.request_error import RequestError
from . import codes as error_codes
from .conversions import joint_positions

MOST_PARTS = 50


class JointStates:
    """The latest message of each part, which is told by the joints that it names, and when it came (seconds)."""

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
                positions |= joint_positions(message, "joint_states", error_codes.START_STATE_INVALID, known)
            except RequestError as error:
                wrong = error
        if wrong and not positions.keys() >= set(robot.joint_names):
            raise wrong
        return positions if recent else None

    def of(self, joint: str) -> tuple[JointState, float]:
        """The latest message that names a joint, and when it came."""
        return next(told for names, told in reversed(self._latest.items()) if joint in names)
