"""The node trajectory_player: what it takes, plays and refuses; over DDS, and its feedback if there is control_msgs."""

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from node_harness import GROUP, ROBOT
from rcl_interfaces.srv import GetParameters
from rclpy.action import ActionClient
from running_node import LATCHED, RunningNode, starter
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from gpu_planners.arm.control.joints import read_joints
from gpu_planners.arm.control.spline import Spline, State
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.errors import ConfigurationError, SettingsError
from gpu_planners.nodes.player.node import TrajectoryPlayer
from gpu_planners.nodes.player.player import Exact, Player
from gpu_planners.nodes.player.trajectories import check_trajectory, curve_of, point_at

pytestmark = pytest.mark.timeout(120)
JOINTS = read_joints(ROBOT, GROUP)
REST = State(*np.zeros((3, 3)))


def trajectory(positions, times, velocities=None, names=GROUP):
    points = [
        JointTrajectoryPoint(positions=list(q), time_from_start=Duration(sec=int(t), nanosec=round(t % 1 * 1e9)))
        for q, t in zip(positions, times, strict=True)
    ]
    for point, v in zip(points, velocities or [], strict=False):
        point.velocities = list(v)
    return JointTrajectory(joint_names=list(names), points=points)


def test_what_a_controller_refuses_is_refused():
    there, back = [0.1, 0.2, 0.3], [0.0, 0.0, 0.0]
    check_trajectory(trajectory([there, back], [1.0, 2.0]), JOINTS.names, 0.0)
    for wrong, text in (
        (trajectory([there], [1.0], names=GROUP[:2]), "elbow"),
        (trajectory([], []), "no points"),
        (trajectory([there, back], [1.0, 1.0]), "time of point 1"),
        (trajectory([there[:2]], [1.0]), "2 positions"),
        (trajectory([there], [1.0], [[0.0, 0.5, 0.0]]), "last velocity of joint 'elbow'"),
        (trajectory([[np.nan, 0.0, 0.0]], [1.0]), "finite"),
    ):
        with pytest.raises(ConfigurationError, match=text):
            check_trajectory(wrong, JOINTS.names, 0.0)
    late = trajectory([there], [1.0])
    late.header.stamp.sec = 5
    check_trajectory(late, JOINTS.names, 5.5)
    with pytest.raises(ConfigurationError, match=r"ended 1 s ago"):
        check_trajectory(late, JOINTS.names, 7.0)


def test_joints_are_matched_by_name():
    names = [GROUP[2], GROUP[0], GROUP[1]]
    curve = curve_of(trajectory([[3.0, 1.0, 2.0]], [1.0], names=names), JOINTS.names, REST, 10.0, 0.01)
    assert curve.at(11.0).positions.tolist() == [1.0, 2.0, 3.0]
    assert np.allclose(curve.at(10.5).positions, [0.5, 1.0, 1.5])  # a line from where the joints are


def test_a_jump_is_refused():
    with pytest.raises(ConfigurationError, match="'wrist'"):
        curve_of(trajectory([[0.0, 0.0, 0.5], [0.0, 0.0, 1.0]], [0.0, 1.0]), JOINTS.names, REST, 0.0, 0.05)


def test_a_stop_brakes_within_limits():
    motion = time_parameterize([[0.0, 0.0, 0.0], [3.0, 1.0, 0.0]], JOINTS.velocity, JOINTS.acceleration)
    points = [motion.positions, motion.velocities, motion.accelerations]
    player = Player(JOINTS, Exact(np.zeros(3)))
    player.curve = Spline(motion.times + 5.0, *points)
    player.stop(5.8)
    times = np.arange(5.8, player.curve.end + 0.02, 0.002)
    states = []
    for now in times:
        player.tick(now)
        states.append(player.body.state.positions)
    speeds = np.diff(states, axis=0) / 0.002
    assert np.abs(speeds[-3:]).max() < 1e-6 and times[-1] >= player.curve.end and np.abs(speeds[0]).max() > 0.5
    assert (np.abs(np.diff(speeds, axis=0) / 0.002) < 1.1 * JOINTS.acceleration + 1e-3).all()


class Running(RunningNode):
    def __init__(self, robot=ROBOT, **parameters):
        service = GetParameters, "get_parameters"
        super().__init__(TrajectoryPlayer, "trajectory_player", service, {"joints": GROUP} | parameters)
        self.states = self.received(JointState, "/joint_states", 100)
        if "robot_description_file" not in parameters:
            self.publisher(String, "/robot_description", LATCHED).publish(String(data=robot))
        self.wait_until(lambda: self.states)

    def place(self):
        return np.array(self.states[-1].position[:3])


start_player = starter(Running)


def test_it_plays_what_comes_on_the_topic(start_player):
    player = start_player(initial_positions=[0.1, 0.0, 0.0])
    assert player.states[-1].name == [*GROUP, "slide"] and player.place()[0] == 0.1
    topic = player.publisher(JointTrajectory, "/joint_trajectory_controller/joint_trajectory")
    topic.publish(trajectory([[0.1, 0.4, 0.0], [0.5, 0.5, 0.5]], [0.3, 0.6]))
    player.wait_until(lambda: np.allclose(player.place(), 0.5, atol=1e-9))
    past = np.array([state.position[:3] for state in player.states])
    assert np.abs(np.diff(past, axis=0)).max() < 0.2  # no jump
    topic.publish(trajectory([[9.0, 0.4]], [0.3], names=GROUP[:2]))
    topic.publish(trajectory([[0.0, 0.0, 0.0]], [0.3]))
    player.wait_until(lambda: np.allclose(player.place(), 0.0, atol=1e-9))


def test_the_point_whose_time_has_come():
    message = trajectory([[0.0] * 3] * 3, [0.1, 0.5, 0.5])
    assert [point_at(message, at) for at in (-1.0, 0.0, 0.1, 0.4, 0.5, 9.0)] == [0, 0, 0, 0, 2, 2]


def test_feedback_tells_the_point_where_it_has_a_field_for_it(start_player):
    actions = pytest.importorskip("control_msgs.action", reason="control_msgs is not among the ROS wheels")
    kind, told = actions.FollowJointTrajectory, []
    if not hasattr(kind.Feedback(), "index"):
        pytest.skip("FollowJointTrajectory of this release of control_msgs has no index")
    player = start_player()
    client = ActionClient(player.client_node, kind, "/joint_trajectory_controller/follow_joint_trajectory")
    assert client.wait_for_server(10)
    path = trajectory([[0.1 * k] * 3 for k in range(5)], [0.0, 0.3, 0.6, 0.9, 1.2])
    sent = client.send_goal_async(kind.Goal(trajectory=path), lambda message: told.append(message.feedback))
    player.wait_until(sent.done)
    done = sent.result().get_result_async()
    player.wait_until(done.done)
    assert done.result().result.error_code == 0
    for one in told:  # the joints are between the point that is told and the next
        low, high = 0.1 * one.index, 0.1 * min(one.index + 1, 4)
        assert low - 0.02 <= one.desired.positions[0] <= high + 0.02
    assert {0, 1, 2, 3} <= {one.index for one in told}
    client.destroy()


def test_the_controller_has_the_name_of_the_parameter(start_player):
    player = start_player(controller="arm_controller")
    topic = player.publisher(JointTrajectory, "/arm_controller/joint_trajectory")
    topic.publish(trajectory([[0.2, 0.2, 0.2]], [0.2]))
    player.wait_until(lambda: np.allclose(player.place(), 0.2, atol=1e-9))


def test_parameters_that_cannot_be_are_named(tmp_path, start_player):
    (tmp_path / "robot.urdf").write_text(ROBOT)
    file = str(tmp_path / "robot.urdf")
    for wrong, text in (
        ({"initial_positions": [1.0]}, "1 numbers"),
        ({"initial_positions": [0.0, 0.0, 5.0]}, "'wrist' would begin beyond"),
        ({"initial_state": "ready"}, "no state 'ready'"),
        ({"joints": ["tail"]}, "tail"),
    ):
        with pytest.raises(SettingsError, match=text):
            start_player(robot_description_file=file, **wrong)
    with pytest.raises(SettingsError, match="robot_description_file"):
        start_player(physics=True)


def test_physics_moves_the_joints(tmp_path, start_player):
    pytest.importorskip("mujoco", reason="mujoco is not installed: pip install 'gpu_planners[sim]'")
    (tmp_path / "robot.urdf").write_text(ROBOT)
    player = start_player(robot_description_file=str(tmp_path / "robot.urdf"), physics=True)
    topic = player.publisher(JointTrajectory, "/joint_trajectory_controller/joint_trajectory")
    topic.publish(trajectory([[0.2, 0.1, 0.3]], [0.5]))
    player.wait_until(lambda: np.allclose(player.place(), [0.2, 0.1, 0.3], atol=1e-3))
