"""Runs the real arm_planner node with a small robot, for tests."""

import running_node
from geometry_msgs.msg import PoseStamped
from running_node import LATCHED
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import Marker, MarkerArray

from gpu_planners.nodes.arm.node import ArmPlannerNode
from gpu_planners_msgs.srv import PlanMotion

# Three revolute joints and a gripper finger that is not planned; the base stands on a plate turned by 90 degrees.
ROBOT = """<robot name="small">
  <link name="plate"/>
  <link name="base"/>
  <link name="upper"><collision><origin xyz="0.25 0 0"/>
    <geometry><box size="0.5 0.06 0.06"/></geometry></collision></link>
  <link name="fore"><collision><origin xyz="0.2 0 0"/>
    <geometry><cylinder radius="0.03" length="0.3"/></geometry></collision></link>
  <link name="hand"><collision><origin xyz="0.05 0 0"/>
    <geometry><sphere radius="0.04"/></geometry></collision></link>
  <link name="finger"><collision><origin xyz="0.1 0 0"/>
    <geometry><box size="0.1 0.02 0.02"/></geometry></collision></link>
  <joint name="mount" type="fixed"><parent link="plate"/><child link="base"/>
    <origin xyz="0 0 0.1" rpy="0 0 1.57079632679"/></joint>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
    <limit velocity="2" effort="1"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/>
    <origin xyz="0.5 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-2.5" upper="2.5" velocity="2" effort="1"/></joint>
  <joint name="wrist" type="revolute"><parent link="fore"/><child link="hand"/>
    <origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="3" effort="1"/></joint>
  <joint name="slide" type="prismatic"><parent link="hand"/><child link="finger"/><axis xyz="0 0 1"/>
    <limit lower="0" upper="0.3" velocity="0.1" effort="1"/></joint>
</robot>"""
GROUP = ["shoulder", "elbow", "wrist"]


class RunningNode(running_node.RunningNode):
    def __init__(self, robot=ROBOT, **parameters):
        parameters = {"joints": GROUP, "device": running_node.DEVICE} | parameters
        super().__init__(ArmPlannerNode, "arm_planner", (PlanMotion, "plan_motion"), parameters)
        if robot:
            self.publish_robot(robot)
        assert self.client.wait_for_service(10)

    def publish_robot(self, text):
        """Publish a robot, and return when the node has it."""
        self.publisher(String, "/robot_description", LATCHED).publish(String(data=text))
        self.wait_until(lambda: "no robot" not in self.plan(PlanMotion.Request()).message)

    def publish_obstacles(self, *markers):
        publisher = self.publisher(MarkerArray, "/arm_planner/obstacles")
        publisher.publish(MarkerArray(markers=list(markers)))

    def restore(self):
        """Forget the obstacles of the topic, too."""
        super().restore()
        if ("obstacles", "0") not in self.facts.items() or self.problem:
            self.publish_obstacles(marker(namespace="", action=Marker.DELETEALL))
            self.wait_until(lambda: self.facts["obstacles"] == "0")


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
