"""Another node's arm as an obstacle that moves: two of the small robot stand opposite each other."""

import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from node_harness import GROUP, LATCHED, ROBOT, RunningNode, joints, request
from running_node import starter
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from gpu_planners.arm import load_urdf
from gpu_planners.errors import SettingsError
from gpu_planners_msgs.srv import PlanMotion

start_node = starter(RunningNode)
T_OURS_OTHER = np.array([[-1.0, 0, 0, 0.0], [0, -1, 0, 1.3], [0, 0, 1, 0], [0, 0, 0, 1]])  # it looks at ours
PARAMETERS = {"other_arms": ["left"], "other_arm_poses": [0.0, 1.3, 0.0, float(np.pi)]}
AWAY = (2.0, 0.5, 0.0)  # where the other arm is out of our way
ACROSS = (0.97, -0.06, 0.0)  # where it lies across our way
START, GOAL = (-1.2, 0.5, 0.0), (1.2, -0.5, 0.0)
UNKNOWN = PlanMotion.Response.INVALID_OBJECT_NAME


def among_other(q):
    """Our robot, with the other one at q (3,) as obstacles."""
    pytest.importorskip("coal", reason="coal is not installed")
    from gpu_planners.verify import CoalScene

    robot, boxes = load_urdf(ROBOT, joints=GROUP), []
    frames = robot.frame_poses(np.array(q))[0]
    for k, (shape, frame) in enumerate(zip(robot.shapes, robot.shape_frame, strict=True)):
        pose = T_OURS_OTHER @ (frames[frame] if frame >= 0 else np.eye(4)) @ shape.pose
        boxes.append({"name": f"other {k}", "type": "box", "size": 2 * shape.half_extents, "pose": pose})  # holds it
    return CoalScene(ROBOT, None, boxes, joints=GROUP)


def path_of(response):
    return np.array([point.positions for point in response.path.points])


@pytest.fixture
def pair(start_node):
    running = start_node(**PARAMETERS)

    class Other:
        states = running.publisher(JointState, "/left/joint_states")
        executing = running.publisher(JointTrajectory, "/left/arm_planner/executing", LATCHED)
        description = running.publisher(String, "/left/robot_description", LATCHED)

        def stand(self, q):
            self.states.publish(joints([*q, 0.0], [*GROUP, "slide"]))

        def execute(self, *waypoints):
            points = [JointTrajectoryPoint(positions=list(map(float, q))) for q in waypoints]
            self.executing.publish(JointTrajectory(joint_names=GROUP, points=points))

    return running, Other()


def ask(running):
    return running.plan(request(start=START, goals=(GOAL,)))


def test_motions_keep_clear_of_where_the_other_arm_is_and_goes(pair):
    running, other = pair
    response = ask(running)
    assert response.code == UNKNOWN and "nothing is known of the other arm 'left'" in response.message
    other.description.publish(String(data=ROBOT))
    running.wait_until(lambda: "nobody knows where the other arm 'left' is" in ask(running).message)

    other.stand(AWAY)
    running.wait_until(lambda: ask(running).code == PlanMotion.Response.SUCCESS)
    straight = path_of(ask(running))
    assert among_other(AWAY).first_collision(straight) is None
    assert among_other(ACROSS).first_collision(straight)  # else this test would not see anything

    other.execute(AWAY, ACROSS)
    running.wait_until(lambda: len(ask(running).path.points) > len(straight))
    around = path_of(ask(running))
    assert all(among_other(q).first_collision(around) is None for q in np.linspace(AWAY, ACROSS, 12))
    other.execute()  # it has ended, and stands where it began
    running.wait_until(lambda: len(ask(running).path.points) == len(straight))
    running.wait_until(lambda: running.facts["obstacles"] == "1")


def test_a_motion_that_is_told_before_the_robot_counts(pair):
    """All topics of the other arm are latched: which one a node that begins later hears of first is by chance."""
    running, other = pair
    other.execute(AWAY, ACROSS)
    time.sleep(0.3)  # nothing tells that it has arrived
    other.description.publish(String(data=ROBOT))
    running.wait_until(lambda: (other.stand(AWAY), ask(running).code == PlanMotion.Response.SUCCESS)[1])
    around = path_of(ask(running))
    assert all(among_other(q).first_collision(around) is None for q in np.linspace(AWAY, ACROSS, 12))


@pytest.mark.parametrize(("goal", "words"), [((0.1, 0.2), "as many positions"), ((0.1, np.nan, 0.2), "finite")])
def test_a_motion_that_is_none_is_told(pair, goal, words):
    running, other = pair
    other.description.publish(String(data=ROBOT))
    running.wait_until(lambda: (other.stand(AWAY), ask(running).code == PlanMotion.Response.SUCCESS)[1])
    other.execute(AWAY, goal)
    running.wait_until(lambda: ask(running).code == UNKNOWN)
    assert words in ask(running).message and "'left'" in ask(running).message
    other.execute()
    running.wait_until(lambda: ask(running).code == PlanMotion.Response.SUCCESS)


def test_a_motion_whose_node_has_ended_does_not_stay(pair, monkeypatch):
    """Nobody can say any more that it is over: after its time the arm counts where joint_states have it."""
    monkeypatch.setattr("gpu_planners.nodes.arm.other_arms.LATE_S", 1.0)
    running, other = pair
    other.description.publish(String(data=ROBOT))
    other.stand(AWAY)
    running.wait_until(lambda: (other.stand(AWAY), ask(running).code == PlanMotion.Response.SUCCESS)[1], 60)
    other.executing.publish(
        JointTrajectory(joint_names=[*GROUP, "foot"], points=[JointTrajectoryPoint(positions=[0.0])])
    )
    running.wait_until(lambda: "malformed" in running.problem, 20)
    time.sleep(1.5)
    assert "malformed" in running.problem  # its node lives, and has not said that it is over
    running.client_node.destroy_publisher(other.executing)
    running.wait_until(lambda: ask(running).code == PlanMotion.Response.SUCCESS, 20)


def test_nothing_is_proven_of_the_other_arms_links(pair, monkeypatch):
    """Which of its links may touch each other does not matter here."""
    running, other = pair

    def never(*_):
        raise AssertionError("proven")

    monkeypatch.setattr("gpu_planners.arm.urdf.never_meet.LinkPairs.never", never)
    other.description.publish(String(data=ROBOT))
    running.wait_until(lambda: "joint_states lack" in running.problem, 20)


def test_a_description_that_is_no_robot_is_told(pair):
    running, other = pair
    other.description.publish(String(data="<robot name='x'>"))
    running.wait_until(lambda: "other arm 'left' was refused" in running.problem)
    assert ask(running).code == UNKNOWN
    other.description.publish(String(data=ROBOT))
    other.stand(AWAY)
    running.wait_until(lambda: (other.stand(AWAY), ask(running).code == PlanMotion.Response.SUCCESS)[1])


def test_a_pose_is_wanted_for_each_other_arm(start_node):
    with pytest.raises(SettingsError, match="other_arm_poses' has 3 numbers; allowed: 4"):
        start_node(other_arms=["left"], other_arm_poses=[0.0, 1.0, 2.0])


@pytest.mark.parametrize("name", ["controller_action", "move_group_action", "other_arms"])
def test_a_name_that_is_none_is_refused(start_node, name):
    value = ["two words"] if name == "other_arms" else "two words"
    with pytest.raises(SettingsError, match=f"{name}.* is 'two words'; allowed: "):
        start_node(**{name: value})
