"""Runs the real arm_planner node over real DDS for tests, each on a domain of its own, with a small robot."""

import itertools
import os
import threading
import time

os.environ.setdefault("ROS_PYTHON_CHECK_FIELDS", "1")  # Jazzy otherwise accepts wrong field types

import pytest

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

from geometry_msgs.msg import PoseStamped
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker

from gpu_planners.nodes.arm_planner_node import ArmPlannerNode
from gpu_planners_msgs.srv import PlanMotion

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
_domains = itertools.count(os.getpid() % 80)

# Three revolute joints and a gripper finger that is not planned; the base stands on a plate turned by 90 degrees.
ROBOT = """<robot name="small">
  <link name="plate"/>
  <link name="base"/>
  <link name="upper"><collision><origin xyz="0.25 0 0"/><geometry><box size="0.5 0.06 0.06"/></geometry></collision></link>
  <link name="fore"><collision><origin xyz="0.2 0 0"/><geometry><cylinder radius="0.03" length="0.3"/></geometry></collision></link>
  <link name="hand"><collision><origin xyz="0.05 0 0"/><geometry><sphere radius="0.04"/></geometry></collision></link>
  <link name="finger"><collision><origin xyz="0.1 0 0"/><geometry><box size="0.1 0.02 0.02"/></geometry></collision></link>
  <joint name="mount" type="fixed"><parent link="plate"/><child link="base"/>
    <origin xyz="0 0 0.1" rpy="0 0 1.57079632679"/></joint>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
    <limit velocity="2" effort="1"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0.5 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-2.5" upper="2.5" velocity="2" effort="1"/></joint>
  <joint name="wrist" type="revolute"><parent link="fore"/><child link="hand"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="3" effort="1"/></joint>
  <joint name="slide" type="prismatic"><parent link="hand"/><child link="finger"/><axis xyz="0 0 1"/>
    <limit lower="0" upper="0.3" velocity="0.1" effort="1"/></joint>
</robot>"""
GROUP = ["shoulder", "elbow", "wrist"]


class RunningNode:
    """The node under test and a client node, each with its own executor thread, as in two processes."""

    def __init__(self, robot=ROBOT, **parameters):
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=next(_domains) % 100 + 1)
        parameters = {"joints": GROUP, "device": "cpu"} | parameters
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.node = ArmPlannerNode(context=self.context, parameter_overrides=overrides)
        self.client_node = Node("client", context=self.context)
        self.client = self.client_node.create_client(PlanMotion, "/arm_planner/plan_motion")
        self._executors = [MultiThreadedExecutor(3, context=self.context), SingleThreadedExecutor(context=self.context)]
        for executor, node in zip(self._executors, (self.node, self.client_node)):
            executor.add_node(node)
            threading.Thread(target=executor.spin, daemon=True).start()
        if robot:
            self.publish_robot(robot)
        assert self.client.wait_for_service(10)

    def publish_robot(self, text):
        from std_msgs.msg import String

        self._robot_publisher = self.client_node.create_publisher(String, "/robot_description", LATCHED)
        self._robot_publisher.publish(String(data=text))
        self.wait_until(lambda: self.node._scene.robot is not None)

    def plan(self, request, timeout=60):
        future = self.client.call_async(request)
        self.wait_until(future.done, timeout)
        return future.result()

    def wait_until(self, condition, timeout=60):
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, "timed out"
            time.sleep(0.005)

    def received(self, kind, topic, qos=10):
        """List that grows with every message of a topic."""
        messages = []
        self.client_node.create_subscription(kind, topic, messages.append, qos)
        return messages

    def publisher(self, kind, topic, qos=10):
        """Publisher that the node is already connected to."""
        publisher = self.client_node.create_publisher(kind, topic, qos)
        self.wait_until(lambda: publisher.get_subscription_count() > 0)
        return publisher

    def close(self):
        for executor in self._executors:
            executor.shutdown(timeout_sec=5)
        self.node.close()
        self.client_node.destroy_node()
        rclpy.shutdown(context=self.context)


def joints(positions, names=GROUP):
    return JointState(name=list(names), position=[float(value) for value in positions])


def request(start=(0.0, 0.0, 0.0), goals=((1.0, 0.5, 0.0),), **fields):
    """A request that the small robot can answer when nothing is in its way."""
    message = PlanMotion.Request(joint_goals=[joints(goal) for goal in goals], **fields)
    if start is not None:
        message.start = joints(start)
    return message


def pose_goal(position, frame="plate", orientation=(0.0, 0.0, 0.0, 1.0)):
    message = PoseStamped()
    message.header.frame_id = frame
    message.pose.position.x, message.pose.position.y, message.pose.position.z = map(float, position)
    o = message.pose.orientation
    o.x, o.y, o.z, o.w = map(float, orientation)
    return message


def marker(
    kind=Marker.CUBE,
    position=(0.0, 2.0, 0.1),
    scale=(0.1, 0.1, 0.1),
    frame="plate",
    number=0,
    namespace="test",
    action=Marker.ADD,
):
    message = Marker(type=kind, ns=namespace, id=number, action=action)
    message.header.frame_id = frame
    message.pose.position.x, message.pose.position.y, message.pose.position.z = map(float, position)
    message.scale.x, message.scale.y, message.scale.z = map(float, scale)
    message.pose.orientation.w = 1.0
    return message
