"""Two arms as one robot: one request plans both, past each other."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from node_harness import RunningNode, joints, marker
from running_node import shared

from gpu_planners_msgs.srv import PlanMotion

ARM = """
  <link name="{name}_upper">
    <collision><origin xyz="0.25 0 0"/><geometry><box size="0.5 0.06 0.06"/></geometry></collision></link>
  <link name="{name}_fore">
    <collision><origin xyz="0.2 0 0"/><geometry><box size="0.4 0.06 0.06"/></geometry></collision></link>
  <joint name="{name}_shoulder" type="revolute"><parent link="table"/><child link="{name}_upper"/>
    <origin xyz="{x} 0 0.5" rpy="0 0 {turn}"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" velocity="2" effort="1"/></joint>
  <joint name="{name}_elbow" type="revolute"><parent link="{name}_upper"/><child link="{name}_fore"/>
    <origin xyz="0.5 0 0"/><axis xyz="0 0 1"/><limit lower="-2.5" upper="2.5" velocity="2" effort="1"/></joint>"""
ARMS = ARM.format(name="left", x=0.0, turn=0.0) + ARM.format(name="right", x=1.3, turn=np.pi)
ROBOT = f'<robot name="pair"><link name="table"/>{ARMS}</robot>'
NAMES = ["left_shoulder", "left_elbow", "right_shoulder", "right_elbow"]
START = (1.2, 0.0, -1.2, 0.0)
GOAL = (-1.2, 0.0, 1.2, 0.0)  # both arms change sides through the middle

node_of_module, running = shared(lambda: RunningNode(ROBOT, joints=NAMES))


def ask(running, **fields):
    return running.plan(
        PlanMotion.Request(start=joints(START, NAMES), joint_goals=[joints(GOAL, NAMES)], **fields), timeout=300
    )


def test_both_arms_move_and_keep_clear_of_each_other(running):
    pytest.importorskip("coal", reason="coal is not installed")
    from gpu_planners.verify import CoalScene

    scene = CoalScene(ROBOT, joints=NAMES)
    assert scene.first_collision([START, GOAL])  # straight they would meet
    response = ask(running)
    assert response.code == PlanMotion.Response.SUCCESS, response.message
    assert list(response.trajectory.joint_names) == NAMES
    path = np.array([point.positions for point in response.path.points])
    assert np.allclose(path[0], START) and np.allclose(path[-1], GOAL, atol=1e-6)
    assert scene.first_collision(path) is None
    moved = np.array([point.positions for point in response.trajectory.points])
    assert scene.first_collision(moved) is None and np.ptp(moved, axis=0)[[0, 2]].min() > 2.3


def test_a_goal_for_one_arm_alone_names_the_joints_that_it_lacks(running):
    response = running.plan(PlanMotion.Request(start=joints(START, NAMES), joint_goals=[joints(GOAL[:2], NAMES[:2])]))
    assert response.code != PlanMotion.Response.SUCCESS and "right_shoulder" in response.message


def test_a_goal_that_tears_what_both_hands_hold_is_refused_by_name_until_one_lets_it_go(running):
    from gpu_planners_msgs.msg import AttachedObject
    from gpu_planners_msgs.srv import AttachObjects

    if not hasattr(AttachedObject(), "held_by"):
        pytest.skip("gpu_planners_msgs is older: run make setup")
    client = running.client_node.create_client(AttachObjects, "/arm_planner/attach_objects")
    assert client.wait_for_service(10)

    def attach(**fields):
        bar = AttachedObject(
            name="bar", link="left_fore", shapes=[marker(frame="", scale=(0.05, 0.05, 0.05))], **fields
        )
        bar.shapes[0].pose.position.y = 0.0
        sent = client.call_async(AttachObjects.Request(attach=[bar]))
        running.wait_until(sent.done, 20)
        return sent.result()

    assert attach(held_by=["right_fore"]).code == 1
    response = ask(running)
    assert response.code == PlanMotion.Response.GOAL_STATE_INVALID, response.message
    for part in ("goal 0 does not keep the constraints", "'right_fore' is", "'left_fore' should have it", "0.002"):
        assert part in response.message
    response = ask(running, planner="prm")
    assert response.code == -19 and response.status == "refused", response.message
    for part in ("'bar' is held by 'left_fore' and 'right_fore'", "planner 'prm' keeps no object in two hands"):
        assert part in response.message
    assert attach(held_by=["nobody"]).code == -18
    assert attach(touch_links=["right_fore"]).code == 1
    assert ask(running).code == 1
