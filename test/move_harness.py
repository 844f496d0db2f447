"""Runs arm_planner and trajectory_player side by side, as on a desk, for tests."""

import threading

import node_harness
import numpy as np
import pytest
from node_harness import GROUP, ROBOT
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState

from gpu_planners.nodes.player.node import TrajectoryPlayer
from gpu_planners_msgs.action import Move

control_msgs = pytest.importorskip(
    "control_msgs.action", reason="control_msgs is not installed: nothing executes motions"
)


RESTING = 30  # messages of joint_states, of which 100 come in a second


class Desk(node_harness.RunningNode):
    """arm_planner, trajectory_player and a client.

    seen: [(time by the stamp, (dof,) positions)] of joint_states
    """

    def __init__(self, **parameters):
        super().__init__(**parameters)
        overrides = [Parameter("joints", value=GROUP)]
        if "use_sim_time" in parameters:
            overrides.append(Parameter("use_sim_time", value=parameters["use_sim_time"]))
        self.player = TrajectoryPlayer(context=self.context, parameter_overrides=overrides)
        self._player_executor = SingleThreadedExecutor(context=self.context)
        self._player_executor.add_node(self.player)
        threading.Thread(target=self._player_executor.spin, daemon=True).start()
        self.publish_robot(ROBOT)
        assert self.plan(node_harness.request()).code == 1  # when all is compiled
        self.move_client = ActionClient(self.client_node, Move, "/arm_planner/move")
        assert self.move_client.wait_for_server(10)
        self.seen = []
        self.client_node.create_subscription(JointState, "/joint_states", self._see, 100)
        self.wait_until(lambda: self.seen)

    @property
    def status(self):
        """Of arm_planner; both nodes tell theirs."""
        ours = []
        self.wait_until(lambda: ours.extend(s for m in self._statuses for s in m.status if "arm" in s.name) or ours)
        return ours[-1]

    def send(self, positions, **fields):
        """A Moving to a goal."""
        goal = Move.Goal(joint_goals=[node_harness.joints(positions)], **fields)
        return Moving(self, goal)

    def place(self):
        """(dof,)"""
        return self.seen[-1][1]

    def rest(self, timeout=20):
        """Wait until the robot has not moved for a while -> (dof,) where it rests."""
        count = len(self.seen)
        self.wait_until(lambda: len(self.seen) > count + RESTING and not np.ptp(self._late(), axis=0).any(), timeout)
        return self.place()

    def _late(self):
        return np.array([q for _, q in self.seen[-RESTING:]])

    def close(self):
        self._player_executor.shutdown(timeout_sec=5)
        self.player.close()
        super().close()

    def _see(self, message):
        if len(message.position) < len(GROUP) or not np.isfinite(message.position).all():
            return  # of a test, to break what listens
        positions = dict(zip(message.name, message.position, strict=True))
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        self.seen.append((stamp, np.array([positions[name] for name in GROUP])))


class Moving:
    """A goal of ~/move that was accepted. feedback: all that came"""

    def __init__(self, desk, goal):
        self.desk, self.feedback, self._answers = desk, [], []
        future = desk.move_client.send_goal_async(goal, lambda message: self.feedback.append(message.feedback))
        desk.wait_until(future.done, 20)
        self.handle = future.result()
        self.future = self.handle.get_result_async()

    def wait(self, timeout=600):
        """The answer (status and result) when it has come."""
        self.desk.wait_until(self.future.done, timeout)
        return self.future.result()

    def wait_for(self, state, progress=0.0):
        """Wait until the feedback says so."""
        self.desk.wait_until(lambda: any(one.state == state and one.progress >= progress for one in self.feedback))
