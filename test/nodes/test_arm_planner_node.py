"""The arm_planner node over real DDS: what a user asks of it, in the small robot's world."""

import time
from collections import Counter
from dataclasses import fields

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from node_harness import GROUP, LATCHED, ROBOT, RunningNode, joints, marker, pose_goal, request
from rcl_interfaces.msg import ParameterType
from running_node import shared, starter
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import Marker, MarkerArray

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.nodes.common import planner_node
from gpu_planners.nodes.common.planner_node import Diagnostics
from gpu_planners.nodes.common.ros import seconds
from gpu_planners_msgs.srv import PlanMotion

SUCCESS = PlanMotion.Response.SUCCESS
# the arm lies along y of the plate at q = 0; this bar stands in the way of a turn to shoulder = 1
BAR = dict(position=(-0.62, 0.62, 0.1), scale=(0.1, 0.1, 0.6))


node_of_module, running = shared(lambda: RunningNode(world_frame="world", tip_link="hand"))
start_node = starter(RunningNode)


def plan_until(running, condition, **fields):
    """The first answer of which the condition holds: what was published just now takes a moment to arrive."""
    answers = []
    running.wait_until(lambda: answers.append(running.plan(request(**fields))) or condition(answers[-1]))
    return answers[-1]


def end_of(response):
    return np.array(response.path.points[-1].positions)


def test_a_node_with_a_file_waits_for_no_topic(start_node, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(
        planner_node, "Diagnostics", lambda node, text, facts: told.append(text) or Diagnostics(node, text, facts)
    )
    urdf = tmp_path / "small.urdf"
    urdf.write_text(ROBOT)
    start_node(robot=None, robot_description_file=str(urdf))
    assert told == [f"loading {urdf}"]
    start_node(robot=None)
    assert told[1:] == ["waiting for robot_description"]
    node = start_node(robot=None, robot_description=ROBOT)
    assert told[2:] == ["loading parameter robot_description"]
    assert node.plan(request()).code == SUCCESS


def test_a_joint_goal(running):
    assert running.set_parameter("publish_trajectories", True).successful
    sent = running.received(JointTrajectory, "/arm_planner/joint_trajectory")
    response = running.plan(request())
    assert response.code == SUCCESS and response.status == "solved" and response.message
    assert response.trajectory.joint_names == GROUP and response.trajectory.header.frame_id == "plate"
    assert np.allclose(response.path.points[0].positions, 0) and np.allclose(
        end_of(response), [1.0, 0.5, 0.0], atol=1e-6
    )
    assert np.allclose(response.trajectory.points[-1].positions, [1.0, 0.5, 0.0], atol=1e-6)
    assert response.path_length >= np.hypot(1.0, 0.5) - 1e-5 and response.planning_time_s > 0
    times = [seconds(point.time_from_start) for point in response.trajectory.points]
    assert times[0] == 0 and np.all(np.diff(times) > 0)
    velocities = np.array([point.velocities for point in response.trajectory.points])
    assert (
        not velocities[0].any()
        and not velocities[-1].any()
        and np.all(np.abs(velocities) <= np.array([2, 2, 3]) + 1e-6)
    )
    running.wait_until(lambda: sent)
    assert sent[0] == response.trajectory


def test_several_goals_name_the_one_reached(running):
    response = running.plan(request(goals=[(1.0, 0.5, 0.0), (-0.1, 0.0, 0.0)]))
    assert response.code == SUCCESS
    assert np.allclose(end_of(response), [(1.0, 0.5, 0.0), (-0.1, 0.0, 0.0)][response.goal_index], atol=1e-6)


@pytest.mark.parametrize("frame", ["plate", "", "base", "world"])
def test_a_pose_goal_in_a_fixed_frame(running, frame):
    robot = load_urdf(ROBOT, joints=GROUP)
    T_root_goal = robot.link_poses(np.array([0.8, 0.6, -0.4]))["hand"][0]
    T_root_frame = robot.link_poses(np.zeros(3))["base"][0] if frame == "base" else np.eye(4)
    T_frame_goal = np.linalg.inv(T_root_frame) @ T_root_goal
    goal = pose_goal(T_frame_goal[:3, 3], frame, Rotation.from_matrix(T_frame_goal[:3, :3]).as_quat())
    response = running.plan(request(goals=(), pose_goals=[goal]))
    assert response.code == SUCCESS, response.message
    assert np.allclose(robot.link_poses(end_of(response))["hand"][0], T_root_goal, atol=1e-3)


def test_the_start_comes_from_joint_states(running):
    publisher = running.publisher(JointState, "/joint_states")
    publisher.publish(joints([9.0, 0.2, 0.1, 0.3], ["unheard_of", "elbow", "wrist", "shoulder"]))
    response = plan_until(running, lambda r: r.code == SUCCESS, start=None)
    assert np.allclose(response.path.points[0].positions, [0.3, 0.2, 0.1])


def test_a_continuous_joint_goes_on_from_where_it_stands(running):
    response = running.plan(request(start=(4 * np.pi + 0.2, 0.0, 0.0), goals=[(1.0, 0.5, 0.0)]))
    assert response.code == SUCCESS and np.isclose(response.path.points[0].positions[0], 4 * np.pi + 0.2)
    assert np.isclose(end_of(response)[0] % (2 * np.pi), 1.0, atol=1e-5)


def test_a_gripper_in_joint_states_moves_its_geometry(running):
    """With the finger pushed out by 0.3 m it meets a ceiling that it does not reach when drawn in."""
    ceiling = MarkerArray(markers=[marker(position=(0, 0.99, 0.4), scale=(0.4, 0.1, 0.1))])
    publisher = running.publisher(JointState, "/joint_states")

    def plan_with(slide, code):
        def answered(response):
            publisher.publish(joints([0, 0, 0, slide], [*GROUP, "slide"]))
            return response.code == code

        return plan_until(running, answered, start=None, goals=[(0.1, 0.0, 0.0)], obstacles=ceiling)

    plan_with(0.0, SUCCESS)
    blocked = plan_with(0.3, PlanMotion.Response.START_STATE_IN_COLLISION)
    assert "finger" in blocked.message
    plan_with(-1e-5, SUCCESS)  # a measured value may lie just outside the limits


def test_joint_states_may_come_in_parts(running):
    """A gripper's driver publishes apart from the arm's, and more often; another one publishes nonsense."""
    ceiling = MarkerArray(markers=[marker(position=(0, 0.99, 0.4), scale=(0.4, 0.1, 0.1))])
    publisher = running.publisher(JointState, "/joint_states")

    def plan_with(slide, code):
        for _ in range(20):
            publisher.publish(joints([0, 0, 0]))
            publisher.publish(JointState(name=["camera_tilt"], position=[0.0, 1.0]))
            publisher.publish(joints([slide], ["slide"]))
            time.sleep(0.1)  # the node has heard them all, in all likelihood
            response = running.plan(request(start=None, goals=[(0.1, 0.0, 0.0)], obstacles=ceiling))
            if response.code == code:
                return response
        raise AssertionError(response.message)

    plan_with(0.0, SUCCESS)
    assert "finger" in plan_with(0.3, PlanMotion.Response.START_STATE_IN_COLLISION).message
    plan_with(0.0, SUCCESS)


def test_obstacles_of_the_request_are_forgotten_afterwards(running):
    straight = running.plan(request())
    around = running.plan(request(obstacles=MarkerArray(markers=[marker(**BAR)])))
    again = running.plan(request())
    assert straight.code == around.code == again.code == SUCCESS
    assert around.path_length > straight.path_length + 0.1 and np.isclose(again.path_length, straight.path_length)


def checked_free(response, obstacle):
    """The path keeps clear of a box obstacle, by dense sampling of a world made anew."""
    world = CollisionWorld()
    pose = np.eye(4)
    pose[:3, 3] = obstacle["position"]
    world.add_box("bar", obstacle["scale"], pose)
    path = np.array([point.positions for point in response.path.points])
    q = np.concatenate([np.linspace(a, b, 200) for a, b in zip(path, path[1:])])
    return CollisionChecker(load_urdf(ROBOT, joints=GROUP), world, device="cpu").configurations_valid(q).all()


def collision_by_coal(response, obstacle):
    """Where the path first meets a box obstacle or the robot itself, by coal; None where it does not."""
    from gpu_planners.verify import CoalScene

    box = {"name": "bar", "type": "box", "size": obstacle["scale"], "position": obstacle["position"]}
    return CoalScene(ROBOT, None, [box], joints=GROUP).first_collision([p.positions for p in response.path.points])


def test_obstacles_of_the_topic_are_added_moved_deleted_and_expire(running):
    straight = running.plan(request()).path_length

    def is_straight(response):
        return response.code == SUCCESS and np.isclose(response.path_length, straight)

    def is_longer(response):
        return response.code == SUCCESS and response.path_length > straight + 0.1

    def change(condition, *markers):
        running.publish_obstacles(*markers)
        return plan_until(running, condition)

    assert checked_free(change(is_longer, marker(**BAR)), BAR)
    change(is_straight, marker(position=(0, 3, 0)))  # moved away: same name, new pose
    change(is_longer, marker(**BAR, number=7))
    change(is_straight, marker(number=7, action=Marker.DELETE))
    running.publish_obstacles(marker(**BAR, number=7))
    running.publish_obstacles(marker(namespace="other", action=Marker.DELETEALL))  # leaves those of "test"
    running.publish_obstacles(marker(position=(0, 4, 0), number=8))
    running.wait_until(lambda: running.facts["obstacles"] == "3")
    assert is_longer(running.plan(request()))
    change(is_straight, marker(namespace="", action=Marker.DELETEALL))
    short = marker(**BAR)
    short.lifetime.nanosec = 500_000_000
    change(is_longer, short)
    plan_until(running, is_straight)


def test_the_scene_file_and_ignore_scene(start_node, tmp_path):
    scene = tmp_path / "scene.yaml"
    scene.write_text(
        f"obstacles: [{{name: bar, type: box, size: {list(BAR['scale'])}, position: {list(BAR['position'])}}}]"
    )
    running = start_node(scene_file=str(scene))
    around, straight = running.plan(request()), running.plan(request(ignore_scene=True))
    assert around.code == straight.code == SUCCESS
    assert checked_free(around, BAR) and around.path_length > straight.path_length + 0.1


def test_obstacles_may_come_before_the_robot(start_node):
    running = start_node(robot=None, max_obstacles=1)
    running.publish_obstacles(marker(**BAR))
    running.publish_obstacles(marker(number=1), marker(number=2))  # too many: once this is said, the first has arrived
    running.wait_until(lambda: "2 obstacles" in running.problem)
    running.publish_robot(ROBOT)
    running.wait_until(
        lambda: running.plan(request()).code == PlanMotion.Response.INVALID_OBJECT_NAME
    )  # some are not known
    running.publish_obstacles(marker(number=1, action=Marker.DELETE))
    running.wait_until(lambda: not running.problem)
    assert checked_free(running.plan(request()), BAR)


def test_the_same_seed_gives_the_same_path(running):
    """Where no time ends the search. With time for further ones, paths are no longer."""
    fields = dict(obstacles=MarkerArray(markers=[marker(**BAR)]), seed=5)
    longer_searched = running.plan(request(**fields))
    assert running.set_parameter("rrt_connect.optimise_s", 0.0).successful
    first, again = (running.plan(request(**fields)) for _ in range(2))
    assert first.path == again.path and longer_searched.path_length <= first.path_length + 1e-6
    assert longer_searched.samples > first.samples


def test_scaling_slows_the_motion(running):
    fast, slow = running.plan(request()), running.plan(request(velocity_scaling=0.1))
    assert seconds(slow.trajectory.points[-1].time_from_start) > 2 * seconds(fast.trajectory.points[-1].time_from_start)


# a request that has no answer: posts all about the upper arm
WALLED_IN = dict(
    goals=[(1.6, 0.0, 0.0)],
    obstacles=MarkerArray(
        markers=[
            marker(position=(-0.3 * np.cos(a), 0.3 * np.sin(a), 0.1), scale=(0.03, 0.03, 0.5), number=i)
            for i, a in enumerate((np.pi / 4, 3 * np.pi / 4 + 0.2, 5 * np.pi / 4, 7 * np.pi / 4))
        ]
    ),
)
PLANNER_NAMES = ["rrt_connect", "prm", "rrt", "rrt_star"]


@pytest.mark.parametrize("planner", PLANNER_NAMES)
def test_every_planner_answers_by_its_name(running, planner):
    pytest.importorskip("coal")
    assert running.set_parameter("planner", "prm").successful
    assert running.set_parameter(f"{planner}.max_samples", 3000).successful
    response = running.plan(request(planner=planner, obstacles=MarkerArray(markers=[marker(**BAR)])))
    assert response.code == SUCCESS, response.message
    assert np.allclose(end_of(response), [1.0, 0.5, 0.0], atol=1e-6) and collision_by_coal(response, BAR) is None
    assert collision_by_coal(running.plan(request(planner=planner)), BAR)  # without the bar it is in the way


@pytest.mark.parametrize("planner", PLANNER_NAMES)
def test_a_planner_that_finds_nothing_says_so_in_time(running, planner):
    assert running.set_parameter(f"{planner}.max_samples", 100_000_000).successful
    walled_in = dict(WALLED_IN, planner=planner)
    late = running.plan(request(time_limit_s=0.1, **walled_in))
    assert late.code == PlanMotion.Response.TIMED_OUT and "0.1 s" in late.message
    assert running.set_parameter(f"{planner}.max_samples", 5).successful
    short = running.plan(request(**walled_in))
    assert short.code == PlanMotion.Response.PLANNING_FAILED and "sample" in short.message


@pytest.mark.parametrize("planner", PLANNER_NAMES)
def test_weights_of_the_wrong_number_are_answered(running, planner):
    assert running.set_parameter(f"{planner}.weights", [1.0, 2.0]).successful
    response = running.plan(request(planner=planner))
    assert response.code == PlanMotion.Response.FAILURE and all(
        word in response.message for word in ("weights", "2", "3")
    )
    for wrong in ([1.0, -1.0, 1.0], [0.0, 1.0, 1.0], [float("nan"), 1.0, 1.0]):
        refused = running.set_parameter(f"{planner}.weights", wrong)
        assert not refused.successful and "weights" in refused.reason
    assert running.set_parameter(f"{planner}.weights", [4.0, 1.0, 1.0]).successful
    weighted = running.plan(request(planner=planner))
    assert weighted.code == SUCCESS and np.isclose(weighted.path_length, np.hypot(2 * 1.0, 0.5), rtol=1e-3)


def test_every_setting_is_a_described_parameter(running):
    """Each field of each planner's Settings; the ends of its range are values that the Settings take."""
    from gpu_planners.arm import PLANNERS
    from gpu_planners.nodes.arm.parameters import ArmParameters
    from gpu_planners.nodes.common.parameters import settings_in

    for name in PLANNER_NAMES:
        kind = settings_in(ArmParameters)[name]
        assert issubclass(kind, PLANNERS[name].Settings)
        for field in fields(kind):
            descriptor = running.node.describe_parameter(f"{name}.{field.name}")
            value = running.node.get_parameter(f"{name}.{field.name}").value
            assert len(descriptor.description) > 10
            assert tuple(value) == field.default if field.name == "weights" else value == field.default
            ranges = [*descriptor.integer_range, *descriptor.floating_point_range]
            number = type(field.default) in (int, float)
            assert len(ranges) == number and (
                field.name != "weights" or descriptor.type == ParameterType.PARAMETER_DOUBLE_ARRAY
            )
            for end in (r for interval in ranges for r in (interval.from_value, interval.to_value)):
                assert getattr(kind(**{field.name: end}), field.name) == end


def test_markers_show_robot_obstacles_and_tip(running):
    shown = running.received(MarkerArray, "/arm_planner/markers", LATCHED)
    running.plan(request(obstacles=MarkerArray(markers=[marker(**BAR)])))
    expected = {"": 1, "start": 4, "goal": 4, "obstacles": 1, "tip_path": 1, "trails": 2}
    running.wait_until(lambda: shown and Counter(m.ns for m in shown[-1].markers) == expected)
    markers = shown[-1].markers
    assert markers[0].action == Marker.DELETEALL and {m.header.frame_id for m in markers} == {"plate"}
    assert all(
        m.scale.x > 0
        and np.isclose(
            np.linalg.norm([m.pose.orientation.x, m.pose.orientation.y, m.pose.orientation.z, m.pose.orientation.w]), 1
        )
        for m in markers[1:]
    )


def test_diagnostics_say_when_the_node_is_ready(running):
    running.wait_until(lambda: running.status.level == DiagnosticStatus.OK)
    assert running.status.name == "/arm_planner" and running.status.message == "ready"
    assert running.facts["robot"] == "small"


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("planner", "astar", ["astar", "rrt_connect"]),
        ("rrt_connect.time_limit_s", -1.0, ["rrt_connect.time_limit_s"]),
        ("motion_check.mode", "guess", ["guess", "workspace"]),
        ("motion_check.step", 0.0, ["motion_check.step"]),
        ("rrt.range", 1e-6, ["rrt", "range"]),
        ("rrt_star.weights", [1.0, -2.0, 1.0], ["weights", "-2"]),
        ("velocity_scaling", 1.5, ["velocity_scaling"]),
        ("joints", ["elbow"], ["joints"]),
        ("points_box", [0.0] * 5, ["points_box", "six numbers"]),
        ("points_box", [0.0, 0.0, 1.0, 1.0, 1.0, 0.5], ["points_box", "below"]),
    ],
)
def test_a_wrong_parameter_is_refused_while_running(running, name, value, words):
    result = running.set_parameter(name, value)
    assert not result.successful and all(word in result.reason for word in words), result.reason
    assert running.plan(request()).code == SUCCESS


def test_a_parameter_takes_effect(running):
    assert running.set_parameter("velocity_scaling", 0.1).successful
    assert running.set_parameter("rrt_connect.shortcut_rounds", 3).successful
    slow = running.plan(request())
    assert max(abs(v) for point in slow.trajectory.points for v in point.velocities) <= 0.3 + 1e-6


def test_stopping_does_not_wait_for_a_long_job(start_node):
    running = start_node(**{"rrt_connect.max_samples": 100_000_000})
    running.plan(request())  # compiled
    running.client.call_async(request(time_limit_s=6.0, **WALLED_IN))
    time.sleep(0.5)  # until the node is at it
    began = time.monotonic()
    assert not running.node.close(patience_s=0.05) and time.monotonic() - began < 4
    assert running.node.close()
