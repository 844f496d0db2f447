"""The node trajectory_player: a joint trajectory controller without hardware, which plays trajectories on joint_states.

It takes what a controller of ros2_control takes, by the same rules and names, so that planning, executing and looking
on work on a desk; with the parameter `physics` MuJoCo moves the robot.
"""

import sys
import time
from functools import partial
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from ...arm.control.joints import Joints, read_joints
from ...errors import ConfigurationError, GpuPlannersError, SettingsError
from ...files import read_text_file
from ..common.actions import Inbox, LongAction
from ..common.planner_node import OK, BaseNode
from ..common.process import run
from ..common.ros import LATCHED, optional_module, seconds
from ..common.worker import ENDING
from .parameters import PlayerParameters
from .player import Exact, Physical, Player
from .trajectories import check_trajectory, curve_of, point_at

MOST_BYTES = 50_000_000
FEEDBACK_HZ = 20.0  # as the real controller
GOAL_TOLERANCE = 0.01  # rad or m, where a goal gives none
STOP_S = 2.0  # that the end of the node waits for the joints to rest
LOOK_S = 0.01  # between two polls of the joints meanwhile
SETTLE_S = 1.0  # how long the joints may take to get there, where a goal gives no time


class TrajectoryPlayer(BaseNode):
    """The node; options: as rclpy.node.Node takes them. SettingsError for wrong parameters or a wrong URDF file."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            "trajectory_player", PlayerParameters, "robot_description", "robot_description_file", **options
        )
        self.player: Any = None  # a Player, once there is a robot
        self._others: dict[str, float] = {}  # positions of joints that are not moved
        self._told: set[tuple[str, str]] = set()  # pairs of shapes that have touched
        self._ticks = 0
        self._states = self.create_publisher(JointState, "joint_states", 10)
        values, topic = self.values, f"{self.values.controller}/joint_trajectory"
        self.create_subscription(JointTrajectory, topic, self._take_trajectory, 10)
        if values.robot_description_file:
            try:
                self._load(read_text_file(values.robot_description_file, "the URDF", SettingsError, MOST_BYTES))
            except GpuPlannersError as error:
                self.destroy_node()
                raise SettingsError(f"robot_description_file or what goes with it: {error}") from error
        elif values.physics:
            raise SettingsError("parameter 'physics' needs parameter 'robot_description_file'")
        else:
            self.create_subscription(String, "robot_description", self._take_robot, LATCHED)
        self._inbox = Inbox(self)
        actions, missing = optional_module("control_msgs.action", "action follow_joint_trajectory")
        self._action = None if missing else FollowAction(self, actions.FollowJointTrajectory)
        if missing:
            self.get_logger().warning(f"{missing}; {topic} is played")
        self.create_timer(1.0 / values.rate, self._tick)

    def why_not(self, trajectory: JointTrajectory) -> str:
        """Why a trajectory cannot be played; empty when it can."""
        if self.player is None:
            return "there is no robot yet: publish its URDF on robot_description"
        try:
            check_trajectory(trajectory, self.player.joints.names, self.now())
        except ConfigurationError as error:
            return str(error)
        return ""

    def begin(self, trajectory: JointTrajectory) -> str:
        """Play a trajectory that was checked -> why it cannot be; empty when it is."""
        now, names, tolerance = self.now(), self.player.joints.names, self.values.start_tolerance
        try:
            self.player.curve = curve_of(trajectory, names, self.player.curve.at(now), now, tolerance)
        except ConfigurationError as error:
            self.get_logger().error(f"rejected: {error}")
            return str(error)
        return ""

    def finish(self, patience_s: float = -1.0) -> bool:
        """Brake, and abort the goal that is played, when the joints rest or patience_s seconds (negative: STOP_S) have
        passed. The executor must spin."""
        self._inbox.put(self._brake)
        end = time.monotonic() + (STOP_S if patience_s < 0 else patience_s)
        while self.player is not None and self.now() <= self.player.curve.end and time.monotonic() < end:
            time.sleep(LOOK_S)
        if self._action is not None:
            self._inbox.put(self._action.end, ENDING)
        return True

    def _brake(self):
        if self.player is not None:
            self.player.stop(self.now())
        if self._action is not None:
            self._action.ending = ENDING

    def _take_robot(self, message):
        if self.player is not None:
            return
        try:
            self._load(message.data)
        except GpuPlannersError as error:
            self.state.fail(f"robot_description: {error}")

    def _load(self, urdf):
        values, every = self.values, read_joints(urdf)
        srdf = read_text_file(values.srdf_file, "an SRDF", SettingsError, MOST_BYTES) if values.srdf_file else ""
        joints = read_joints(urdf, values.joints, values.group, srdf)
        start = initial_positions(joints, values)
        body = Physical(values, joints, start, self.now()) if values.physics else Exact(start)
        self.player = Player(joints, body)
        resting = zip(every.names, every.nearest_to_zero().tolist(), strict=True)
        self._others = {name: position for name, position in resting if name not in joints.names}
        self.state.say(OK, "ready")
        moved = ", moved by MuJoCo" if values.physics else ""
        self.get_logger().info(f"{values.controller}: {len(joints.names)} joints, {values.rate:g} Hz{moved}")

    def _take_trajectory(self, message):
        text = self.why_not(message)
        if text:
            self.get_logger().error(f"rejected: {text}")
        elif not self.begin(message) and self._action:
            self._action.end("a trajectory came on the topic")

    def _tick(self):
        if self.player is None:
            return
        clock = self.get_clock().now()  # read once: whoever looks on knows when exactly the joints were there
        now, stamp = clock.nanoseconds * 1e-9, clock.to_msg()
        self.player.tick(now)
        wanted, actual = self.player.curve.at(now), self.player.body.state
        message = JointState(
            name=[*self.player.joints.names, *self._others],
            position=[*actual.positions.tolist(), *self._others.values()],
            velocity=[*actual.velocities.tolist(), *[0.0] * len(self._others)],
        )
        message.header.stamp = stamp
        self._states.publish(message)
        if self._action is not None:
            error = float(np.abs(wanted.positions - actual.positions).max())
            self._action.tick(now, self.player.curve.end, error)
            self._ticks += 1
            if self._ticks % max(round(self.values.rate / FEEDBACK_HZ), 1) == 0:
                self._action.feed_back(message.header, wanted, actual)
        for contact in self.player.body.contacts:
            if contact[1:3] not in self._told:
                self._told.add(contact[1:3])
                text = f"'{contact.first}' met '{contact.second}', {1e3 * contact.depth:.2f} mm deep"
                self.state.set_problem(" ".join(contact[1:3]), text)

    def _facts(self):
        return {
            "controller": self.values.controller,
            "joints": ", ".join(self.player.joints.names) if self.player else "none",
            "physics": self.values.physics,
        }


class FollowAction:
    """The action follow_joint_trajectory, as a joint trajectory controller serves it: one goal at a time; another takes
    its place, and the first one is aborted.

    kind: control_msgs' FollowJointTrajectory
    ending: why its goals are aborted when the joints rest, "" while they are not
    """

    ending = ""

    def __init__(self, node: "TrajectoryPlayer", kind: Any) -> None:
        self._kind, self._node = kind, node
        self._goal: Any = None
        self._stopping, self._begun = False, 0.0  # seconds on the node's clock, of the trajectory's begin
        name = f"{node.values.controller}/follow_joint_trajectory"
        self._action = LongAction(node, kind, name, self._accept, lambda goal: node.why_not(goal.trajectory))

    def end(self, text: str) -> None:
        """Abort the goal that is played, if there is one."""
        if self._goal is not None:
            self._end(self._kind.Result.INVALID_GOAL, text)

    def tick(self, now: float, ends: float, error: float) -> None:
        """End the goal when its motion has. now, ends: seconds on one clock, of the motion's end
        error: greatest distance of a joint from where it should be, rad or m"""
        if self._goal is None or now < ends:
            return
        goal = self._goal.request
        if self.ending:
            self.end(self.ending)
        elif self._stopping:
            self._end(self._kind.Result.SUCCESSFUL, "cancelled")
        elif error <= max((one.position for one in goal.goal_tolerance if one.position > 0), default=GOAL_TOLERANCE):
            self._end(self._kind.Result.SUCCESSFUL, "", succeeded=True)
        elif now > ends + (max(seconds(goal.goal_time_tolerance), 0.0) or SETTLE_S):
            text = f"a joint is {error:.3g} rad or m from its goal"
            self._end(self._kind.Result.GOAL_TOLERANCE_VIOLATED, text)

    def feed_back(self, header: Any, wanted: Any, actual: Any) -> None:
        """Publish feedback. header: of now; wanted, actual: States"""
        if self._goal is None:
            return
        feedback = self._kind.Feedback(header=header, joint_names=list(self._node.player.joints.names))
        for point, state in ((feedback.desired, wanted), (feedback.actual, actual)):
            point.positions, point.velocities = state.positions.tolist(), state.velocities.tolist()
        feedback.error.positions = (wanted.positions - actual.positions).tolist()
        if hasattr(feedback, "index"):  # not in every release of control_msgs
            feedback.index = point_at(self._goal.request.trajectory, seconds(header.stamp) - self._begun)
        self._goal.publish_feedback(feedback)

    def _accept(self, goal):
        self.end("another trajectory came")
        self._goal, self._stopping = goal, False
        self._begun = seconds(goal.request.trajectory.header.stamp) or self._node.now()
        text = self._node.begin(goal.request.trajectory)
        if text:
            self.end(text)
        return lambda: self._cancel(goal)

    def _cancel(self, goal):
        if goal is self._goal and not self._stopping:
            self._stopping = True
            self._node.player.stop(self._node.now())

    def _end(self, code, text, succeeded=False):
        goal, self._goal = self._goal, None
        self._action.end(goal, self._kind.Result(error_code=code, error_string=text), succeeded)


def initial_positions(joints: Joints, values: PlayerParameters) -> np.ndarray:
    """(n,) where the joints are at first; SettingsError for what they cannot be."""
    given, state = values.initial_positions, joints.states.get(values.initial_state)
    if given and len(given) != len(joints.names):
        text = f"parameter 'initial_positions' has {len(given)} numbers; there are {len(joints.names)} joints"
        raise SettingsError(text)
    if values.initial_state and state is None:
        known = ", ".join(joints.states) or "none"
        raise SettingsError(f"parameter 'initial_state': the SRDF has no state '{values.initial_state}', only: {known}")
    start = np.array(given) if given else joints.nearest_to_zero()
    if state and not given:
        start = np.array([state.get(name, value) for name, value in zip(joints.names, start, strict=True)])
    outside = (start < joints.lower - 1e-9) | (start > joints.upper + 1e-9)
    if outside.any():
        raise SettingsError(f"joint '{joints.names[int(np.argmax(outside))]}' would begin beyond its limits")
    return start


main = partial(run, TrajectoryPlayer, "trajectory_player")  # until it is told to stop -> the exit code

if __name__ == "__main__":
    sys.exit(main())
