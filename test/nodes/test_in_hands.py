"""An object in both hands of two Pandas: plans of both arms keep it there, by MoveIt's messages and ours; the poses are
pinocchio's."""

import time

import pytest

pytest.importorskip("moveit_msgs.msg", reason="the ROS package moveit_msgs is not installed")
pytest.importorskip("pinocchio", reason="pinocchio (pip install pin) is the kinematics oracle")

import moveit_messages as messages
import numpy as np
from moveit_msgs.msg import MoveItErrorCodes
from node_harness import joints, marker
from panda_files import READY, SIDES, TWO_ARMS, TWO_SRDF, TWO_URDF
from pinocchio_poses import pinocchio_poses
from running_node import shared
from scipy.spatial.transform import Rotation
from test_moveit_groups import GroupsNode, motion, of_both, planned

from gpu_planners_msgs.msg import AttachedObject
from gpu_planners_msgs.srv import AttachObjects, PlanMotion

CODES = MoveItErrorCodes
NAMES = [*TWO_ARMS["left"], *TWO_ARMS["right"]]
LINKS = [f"{side}_panda_link8" for side in SIDES]
HANDS = [f"{side}_panda_hand" for side in SIDES]
FINGERS = [f"{side}_panda_{finger}finger" for side in SIDES for finger in ("left", "right")]
START = [*READY, *READY]
ALLOWED = 0.002, 0.02  # m, rad: the parameters' defaults
TRAY = 0.1, 0.5, 0.02  # m

node_of_module, running = shared(lambda: GroupsNode(urdf=TWO_URDF, srdf=TWO_SRDF, group="right_arm"))


@pytest.fixture
def node(running):
    yield running
    running.restore()


def places(q):
    """{link: (N, 4, 4)}"""
    return pinocchio_poses(TWO_URDF, NAMES, np.atleast_2d(q))


def between(q):
    found = places(q)
    return np.linalg.inv(found[LINKS[0]]) @ found[LINKS[1]]


def assert_kept(path):
    """At the points of a motion, and on the straight lines between them, which are as good as the motion there."""
    q = np.concatenate([np.linspace(a, b, 10) for a, b in zip(path, path[1:])])
    W, T = between(START)[0], between(q)
    turned = W[:3, :3].T @ T[:, :3, :3]
    assert np.linalg.norm(T[:, :3, 3] - W[:3, 3], axis=1).max() < ALLOWED[0] + 1e-4
    assert np.arccos(np.clip((np.trace(turned, axis1=1, axis2=2) - 1) / 2, -1, 1)).max() < ALLOWED[1] + 1e-3


def tray():
    """An AttachedCollisionObject between both hands, which both may touch."""
    hands, T = places(START), np.eye(4)
    T[:3, 3] = (hands[HANDS[0]][0, :3, 3] + hands[HANDS[1]][0, :3, 3]) / 2 - [0, 0, 0.12]
    message = messages.attached("tray", LINKS[0], TRAY, [*HANDS, *FINGERS, *LINKS])
    T_link_tray = np.linalg.inv(hands[LINKS[0]][0]) @ T
    message.object.pose = messages.pose(T_link_tray[:3, 3], rotation(T_link_tray))
    message.object.primitive_poses = [messages.pose()]
    return message, T


def wait_until_compiled(node, request):
    """The search that keeps something, which the node compiles beside itself."""
    end = time.monotonic() + 600
    while "compil" in node.move(request)[1].error_code.message:
        assert time.monotonic() < end, "timed out"
        time.sleep(0.2)


def moved(T, x, z):
    T = T.copy()
    T[:3, 3] += x, 0.0, z
    return T


def test_moveit_plans_a_tray_in_both_hands(node):
    """The goal is a pose of the tray; lines and sequences of both arms are refused by name; one arm may leave what it
    touches."""
    message, T = tray()
    node.apply(messages.scene(attach=[message]))
    goal = messages.pose_goal("tray", moved(T, 0.15, 0.1), "table")
    wait_until_compiled(node, motion("both_arms", goal, begin=of_both(READY, READY)))
    asked, path, _ = planned(node, "both_arms", goal, begin=of_both(READY, READY), allowed_planning_time=20.0)
    assert asked == NAMES
    assert_kept(path)
    hands = places(path[-1])
    middle = (hands[HANDS[0]][0, :3, 3] + hands[HANDS[1]][0, :3, 3]) / 2 - [0, 0, 0.12]
    assert np.linalg.norm(middle - moved(T, 0.15, 0.1)[:3, 3]) < 5e-3
    line = motion("both_arms", goal, begin=of_both(READY, READY), planner_id="LIN")
    _, result = node.move(line)
    assert result.error_code.val != CODES.SUCCESS
    assert "'tray' is held by" in result.error_code.message and "LIN keeps no object" in result.error_code.message
    arm = [0.1 + READY[0], *READY[1:]]
    alone = messages.joint_goal(arm, names=TWO_ARMS["right"])
    names, _, _ = planned(node, "right_arm", alone, begin=of_both(READY, READY))
    assert names == TWO_ARMS["right"]
    torn = messages.joint_goal([*READY, *arm], names=NAMES)
    _, result = node.move(motion("both_arms", torn, begin=of_both(READY, READY)))
    assert result.error_code.val == CODES.GOAL_VIOLATES_PATH_CONSTRAINTS, result.error_code.message


def test_our_requests_plan_what_held_by_says(node):
    """By joints and by a pose of the tip; a request for one arm is refused by name; an execution would be stopped."""
    if not hasattr(AttachedObject(), "held_by"):
        pytest.skip("gpu_planners_msgs is older: run make setup")
    client = node.client_node.create_client(AttachObjects, "/arm_planner/attach_objects")
    assert client.wait_for_service(10)
    _, T = tray()
    T_link_tray = np.linalg.inv(places(START)[LINKS[0]][0]) @ T
    shape = marker(frame="", scale=TRAY)
    shape.pose = messages.pose(T_link_tray[:3, 3], rotation(T_link_tray))
    one = AttachedObject(name="tray", link=LINKS[0], touch_links=[*HANDS, *FINGERS], held_by=[LINKS[1]], shapes=[shape])
    sent = client.call_async(AttachObjects.Request(attach=[one]))
    node.wait_until(sent.done, 20)
    assert sent.result().code == 1, sent.result().message
    begin = joints(START, NAMES)
    arm = [0.1 + READY[0], *READY[1:]]
    response = node.plan(
        PlanMotion.Request(group="right_arm", start=begin, joint_goals=[joints(arm, TWO_ARMS["right"])]), timeout=300
    )
    assert response.code == -19, response.message
    for part in (f"'tray' is held by '{LINKS[0]}' and '{LINKS[1]}'", "right_panda_joint1", "plan a group of both arms"):
        assert part in response.message
    goal = goal_in_both_hands()
    response = node.plan(
        PlanMotion.Request(group="both_arms", start=begin, joint_goals=[joints(goal, NAMES)], time_limit_s=20.0),
        timeout=300,
    )
    assert response.code == 1, response.message
    assert_kept(np.array([point.positions for point in response.path.points]))
    assert_kept(np.array([point.positions for point in response.trajectory.points]))


def rotation(T):
    return Rotation.from_matrix(T[:3, :3])


def goal_in_both_hands():
    from gpu_planners.arm import load_urdf
    from gpu_planners.arm.constraints import RelativePose

    robot = load_urdf(TWO_URDF, srdf=TWO_SRDF, group="both_arms")
    rule, T = RelativePose(robot, *LINKS, between(START)[0]), places(START)[LINKS[0]][0].copy()
    T[:3, 3] += 0.15, 0.0, 0.1
    return rule.carrying(T, seed_q=np.array(START))[0]
