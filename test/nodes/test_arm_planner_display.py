"""What the real node shows RViz over DDS: a ghost, trails, no old motion after a refusal, a goal that is dragged."""

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

from node_harness import GROUP, ROBOT, RunningNode, marker, pose_goal, request
from pinocchio_poses import pinocchio_poses
from rclpy.serialization import deserialize_message
from running_node import LATCHED, shared, starter
from scipy.spatial.transform import Rotation
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import InteractiveMarkerFeedback, InteractiveMarkerUpdate, Marker, MarkerArray
from visualization_msgs.srv import GetInteractiveMarkers

from gpu_planners.errors import GpuPlannersError
from gpu_planners.nodes.arm.view_client import ViewClient
from gpu_planners.nodes.common.pictures import PosedMarkers

node_of_module, running = shared(RunningNode)
start_node = starter(RunningNode)
IMPOSSIBLE = {"obstacles": MarkerArray(markers=[marker(position=(0, 0.5, 0.1), scale=(1, 1, 1))])}  # all around the arm


def namespaces(message):
    return Counter(each.ns for each in message.markers)


def test_after_a_refusal_the_last_motion_is_gone(running):
    shown = running.received(MarkerArray, "/arm_planner/markers", LATCHED)
    ghost = running.received(MarkerArray, "/arm_planner/ghost", 1)
    assert running.plan(request()).code == 1
    running.wait_until(lambda: shown and namespaces(shown[-1])["tip_path"] == 1)
    assert namespaces(shown[-1])["trails"] >= 1
    running.wait_until(lambda: ghost and len(ghost[-1].markers) == 4)
    assert running.plan(request(**IMPOSSIBLE)).code != 1
    running.wait_until(lambda: not namespaces(shown[-1]).keys() & {"start", "goal", "tip_path", "trails"})
    running.wait_until(lambda: [each.action for each in ghost[-1].markers] == [Marker.DELETEALL])


def test_the_ghost_goes_along_the_motion(running):
    """Its ball, the hand's, is where pinocchio puts the hand on the path."""
    ghost = running.received(MarkerArray, "/arm_planner/ghost", 1)
    response = running.plan(request(goals=((1.0, 0.5, 0.0),)))
    ways = np.array([point.positions for point in response.path.points])
    dense = np.concatenate([np.linspace(a, b, 300) for a, b in zip(ways, ways[1:])])
    hand = pinocchio_poses(ROBOT, GROUP, dense)["hand"]
    allowed = hand[:, :3, 3] + 0.05 * hand[:, :3, 0]
    running.wait_until(lambda: len({place_of_ball(message) for message in ghost if message.markers[0].ns}) > 5)
    for message in ghost:
        if message.markers[0].ns == "ghost":
            assert np.linalg.norm(allowed - place_of_ball(message), axis=1).min() < 0.01


def place_of_ball(message):
    (ball,) = [each for each in message.markers if each.type == Marker.SPHERE]
    return ball.pose.position.x, ball.pose.position.y, ball.pose.position.z


def test_poses_are_written_into_the_right_bytes():
    rng = np.random.default_rng(0)
    message = MarkerArray(markers=[marker(number=i, namespace="x" * i) for i in range(9)])
    positions, quaternions = rng.normal(size=(9, 3)), rng.normal(size=(9, 4))
    read = deserialize_message(PosedMarkers(message).at(positions, quaternions), MarkerArray)
    for each, position, quaternion in zip(read.markers, positions, quaternions, strict=True):
        p, o = each.pose.position, each.pose.orientation
        assert (p.x, p.y, p.z) == tuple(position) and (o.x, o.y, o.z, o.w) == tuple(quaternion)
        assert each.ns == "x" * each.id and each.scale.x == 0.1


def markers_in(running):
    """(sequence number, [InteractiveMarker]) as RViz asks for them when its display is switched on."""
    client = running.client_node.create_client(GetInteractiveMarkers, "/arm_planner/goal/get_interactive_markers")
    assert client.wait_for_service(10)
    answer = running.call(client, GetInteractiveMarkers.Request())
    return answer.sequence_number, answer.markers


def test_a_goal_dragged_in_rviz_is_planned_to_and_published_when_asked(start_node):
    running = start_node(tip_link="hand")
    published = running.received(JointTrajectory, "/arm_planner/joint_trajectory")
    shown = running.received(MarkerArray, "/arm_planner/markers", LATCHED)
    running.wait_until(lambda: running.status is not None and running.status.message == "ready")
    updates = running.received(InteractiveMarkerUpdate, "/arm_planner/goal/update", 100)
    sequence, (seen,) = markers_in(running)
    assert seen.header.frame_id == "plate" and len(seen.controls) == 7
    T = pinocchio_poses(ROBOT, GROUP, np.array([[0.4, 0.6, 0.0]]))["hand"][0]
    pose = pose_goal(T[:3, 3], orientation=Rotation.from_matrix(T[:3, :3]).as_quat()).pose
    feedback = running.publisher(InteractiveMarkerFeedback, "/arm_planner/goal/feedback", 100)
    assert running.set_parameter("velocity_scaling", 0.1).successful

    def send(kind, **more):
        message = InteractiveMarkerFeedback(event_type=kind, marker_name="goal", pose=pose, **more)
        message.header.frame_id = "plate"
        feedback.publish(message)

    for kind in (InteractiveMarkerFeedback.POSE_UPDATE,) * 5 + (InteractiveMarkerFeedback.MOUSE_UP,):
        send(kind)
    running.wait_until(lambda: any("goal" in namespaces(message) for message in shown))
    running.wait_until(lambda: updates)
    numbers = [update.seq_num for update in updates]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) and numbers[0] > sequence
    assert not published
    send(InteractiveMarkerFeedback.MENU_SELECT, menu_entry_id=2)
    running.wait_until(lambda: published)
    speeds = np.abs([point.velocities for point in published[0].points]).max(axis=0)
    assert (speeds <= 0.1 * np.array([2.0, 2.0, 3.0]) + 1e-6).all()  # the parameter as it is now
    end = np.array([published[0].points[-1].positions])
    assert np.allclose(pinocchio_poses(ROBOT, GROUP, end)["hand"][0], T, atol=1e-5)


def test_the_browsers_client_sees_and_asks_the_node(running, monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", str(running.context.get_domain_id()))
    running.publish_obstacles(marker(position=(0.0, 2.0, 0.1)), marker(Marker.SPHERE, (0, -2, 0.1), number=1))
    running.wait_until(lambda: running.facts["obstacles"] == "2")
    client = ViewClient("arm_planner")
    try:
        assert client.robot.joint_names == tuple(GROUP) and len(client.world.shapes) == 2
        assert np.allclose(client.world.shapes[0].pose[:3, 3], [0, 2, 0.1]) and client.measured() is None
        start, goal = np.zeros(3), np.array([1.0, 0.5, 0.0])
        text, path, timed = client.plan(start, goal, "rrt_connect", 1.0, 0.0, 0)
        assert text.startswith("solved") and np.allclose(path[[0, -1]], [start, goal]) and timed.duration > 0.5
        T = pinocchio_poses(ROBOT, GROUP, goal[None])[client.tip][0]
        _, path, _ = client.plan(start, T, "rrt_connect", 1.0, 0.0, 0)
        assert np.allclose(pinocchio_poses(ROBOT, GROUP, path[-1:])[client.tip][0], T, atol=1e-5)
        text, path, timed = client.plan(start, np.array([0.0, 9.0, 0.0]), "rrt_connect", 1.0, 0.0, 0)
        assert "elbow" in text and not len(path) and timed is None
    finally:
        client.close()


def test_the_browsers_client_says_that_there_is_no_node(monkeypatch):
    monkeypatch.setattr("gpu_planners.nodes.arm.view_client.PATIENCE_S", 0.5)
    with pytest.raises(GpuPlannersError, match="no node '/nobody/here'"):
        ViewClient("nobody/here")
