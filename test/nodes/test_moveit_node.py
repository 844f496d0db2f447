"""MoveIt's action, services and topics of the arm_planner node over real DDS, judged by pinocchio and coal."""

import pytest

pytest.importorskip("moveit_msgs.msg", reason="the ROS package moveit_msgs is not installed")

import time

import moveit_messages as messages
import numpy as np
from action_msgs.msg import GoalStatus
from moveit_msgs.action import MoveGroup
from moveit_msgs.msg import (
    AllowedCollisionEntry,
    AllowedCollisionMatrix,
    AttachedCollisionObject,
    CollisionObject,
    Constraints,
    ContactInformation,
    DisplayTrajectory,
    LinkPadding,
    LinkScale,
    MotionPlanRequest,
    MoveItErrorCodes,
    OrientationConstraint,
    PlanningScene,
    PlanningSceneComponents,
    RobotState,
    VisibilityConstraint,
)
from moveit_msgs.srv import (
    ApplyPlanningScene,
    GetMotionPlan,
    GetPlanningScene,
    GetPositionFK,
    GetPositionIK,
    GetStateValidity,
    QueryPlannerInterfaces,
)
from node_harness import GROUP, LATCHED, ROBOT, RunningNode, joints
from node_harness import request as plan_request
from octomap_msgs.msg import Octomap, OctomapWithPose
from pinocchio_poses import pinocchio_poses
from rclpy.action import ActionClient
from running_node import shared, starter
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from shape_msgs.msg import SolidPrimitive
from test_scene_node import octree_of

from gpu_planners.nodes.common.ros import DEEP, seconds
from gpu_planners.verify import CoalScene

CODES = MoveItErrorCodes
BAR = dict(size=(0.1, 0.1, 0.6), position=(-0.62, 0.62, 0.1))  # in the way of a turn to shoulder = 1
GOAL = (1.0, 0.5, 0.0)
TOOL = (0.02, 0.02, 0.3)  # metres, across the hand, 0.1 m before its frame
SERVICES = {
    "plan_kinematic_path": GetMotionPlan,
    "get_planning_scene": GetPlanningScene,
    "apply_planning_scene": ApplyPlanningScene,
    "compute_ik": GetPositionIK,
    "compute_fk": GetPositionFK,
    "check_state_validity": GetStateValidity,
    "query_planner_interface": QueryPlannerInterfaces,
}


class MoveItNode(RunningNode):
    """The node with clients of its MoveIt interfaces."""

    def __init__(self, robot=ROBOT, **parameters):
        super().__init__(robot, **({"world_frame": "world", "tip_link": "hand", "group": ""} | parameters))
        name = parameters.get("move_group_action", "move_action")
        self.action = ActionClient(self.client_node, MoveGroup, name, goal_service_qos_profile=DEEP)
        assert self.action.wait_for_server(10)
        self.clients = {}

    def publish_robot(self, text):
        """Publish a robot, and return when the node answers requests for it."""
        super().publish_robot(text)
        self.wait_until(lambda: self.status.message.startswith("ready"))

    def send(self, request, diff=None, plan_only=True):
        goal = MoveGroup.Goal(request=request)
        goal.planning_options.plan_only = plan_only
        if diff is not None:
            goal.planning_options.planning_scene_diff = diff
        future = self.action.send_goal_async(goal)
        self.wait_until(future.done)
        return future.result()

    def move(self, request, diff=None, plan_only=True):
        """(status, result) of the action."""
        handle = self.send(request, diff, plan_only)
        assert handle.accepted
        future = handle.get_result_async()
        self.wait_until(future.done)
        return future.result().status, future.result().result

    def ask(self, name, **fields):
        if name not in self.clients:
            self.clients[name] = self.client_node.create_client(SERVICES[name], name)
            assert self.clients[name].wait_for_service(10)
        return self.call(self.clients[name], SERVICES[name].Request(**fields))

    def apply(self, scene):
        assert self.ask("apply_planning_scene", scene=scene).success

    def objects(self, components=PlanningSceneComponents.WORLD_OBJECT_NAMES):
        scene = self.ask("get_planning_scene", components=PlanningSceneComponents(components=components)).scene
        return {one.id: one for one in scene.world.collision_objects}

    def restore(self):
        self.apply(PlanningScene(name="empty", is_diff=False))
        assert not self.objects()
        super().restore()


node_of_module, node = shared(MoveItNode)
start_node = starter(MoveItNode)


@pytest.fixture(scope="module")
def coal_scene(tmp_path_factory):
    """Makes a CoalScene of the robot, with the tool on its hand or without, among obstacles."""

    def make(*obstacles, tool=False):
        urdf = tmp_path_factory.mktemp("robot") / "small.urdf"
        more = """<link name="tool"><collision><geometry><box size="0.02 0.02 0.3"/></geometry></collision></link>
          <joint name="holds" type="fixed"><parent link="hand"/><child link="tool"/><origin xyz="0.1 0 0"/></joint>"""
        urdf.write_text(ROBOT.replace("</robot>", more * tool + "</robot>"))
        boxes = [{"type": "box", "name": "one", "quat_xyzw": (0, 0, 0, 1), **one} for one in obstacles]
        return CoalScene(urdf, None, boxes, joints=GROUP, self_pairs=[])

    return make


def check_motion(result, start, scene=None):
    """The trajectory is one that a controller takes, from the start and free in a CoalScene -> path (K, dof)."""
    assert result.error_code.val == CODES.SUCCESS, result.error_code.message
    trajectory = result.planned_trajectory.joint_trajectory
    assert trajectory.joint_names == GROUP and trajectory.header.stamp.sec == 0
    times = [seconds(point.time_from_start) for point in trajectory.points]
    assert times[0] == 0 and (np.diff(times) > 0).all() and not np.any(trajectory.points[-1].velocities)
    path = messages.path_of(result.planned_trajectory)
    assert np.allclose(path[0], start, atol=1e-6)
    assert list(result.trajectory_start.joint_state.name) == GROUP
    assert np.allclose(result.trajectory_start.joint_state.position, start)
    if scene is not None:
        assert scene.first_collision(path) is None
    return path


def test_a_joint_goal_is_planned_and_shown(node):
    shown = node.received(DisplayTrajectory, "/display_planned_path")
    status, result = node.move(messages.motion_request(messages.joint_goal(GOAL)))
    assert status == GoalStatus.STATUS_SUCCEEDED and result.planning_time > 0
    path = check_motion(result, (0, 0, 0))
    assert np.allclose(path[-1], GOAL, atol=1e-4 + 1e-6)
    assert result.error_code.source == "gpu_planners" and "solved" in result.error_code.message
    node.wait_until(lambda: shown)
    assert shown[0].model_id == "small" and shown[0].trajectory == [result.planned_trajectory]


@pytest.mark.parametrize("tolerance", [1e-4, 0.05, 0.1, 0.5])
def test_a_joint_goal_with_a_tolerance_ends_at_its_own_values(node, tolerance):
    """Not at the edge of the tolerance that is nearest to the start."""
    rng = np.random.default_rng(7)
    for start, goal in (((0, 0, 0), GOAL), *rng.uniform(-1.9, 1.9, (4, 2, 3))):
        _, result = node.move(messages.motion_request(messages.joint_goal(goal, tolerance), start=start))
        assert np.allclose(check_motion(result, start)[-1], goal, atol=1e-9)


def test_a_joint_goal_whose_own_values_collide_ends_elsewhere_in_its_tolerance(node, coal_scene):
    block = {"size": (0.06, 0.06, 0.06), "position": tuple(pinocchio_poses(ROBOT, GROUP, [GOAL])["hand"][0, :3, 3])}
    _, result = node.move(
        messages.motion_request(messages.joint_goal(GOAL, 0.4)), messages.scene(messages.box("block", **block))
    )
    end = check_motion(result, (0, 0, 0), coal_scene(block))[-1]
    assert 0.01 < np.abs(end - GOAL).max() <= 0.4 + 1e-6


def test_the_service_plans_the_same(node):
    answer = node.ask(
        "plan_kinematic_path", motion_plan_request=messages.motion_request(messages.joint_goal(GOAL))
    ).motion_plan_response
    assert answer.error_code.val == CODES.SUCCESS and answer.planning_time > 0
    assert np.allclose(messages.path_of(answer.trajectory)[-1], GOAL, atol=1e-3)


def test_without_a_start_the_motion_begins_where_joint_states_says(node):
    states = node.publisher(JointState, "/joint_states")
    states.publish(joints((0.3, 0.2, 0.1)))
    request = messages.motion_request(messages.joint_goal(GOAL), start=None)
    node.wait_until(lambda: node.move(request)[1].error_code.val == CODES.SUCCESS, 20)
    states.publish(joints((0.3, 0.2, 0.1)))
    check_motion(node.move(request)[1], (0.3, 0.2, 0.1))
    request.start_state = messages.state((0.5,), ["elbow"])  # the others stay as measured
    check_motion(node.move(request)[1], (0.3, 0.5, 0.1))


@pytest.mark.parametrize("frame", ["plate", "base", "world", "", "cube", "cube/handle", "fore", "tool/tip"])
def test_pose_goals_in_every_kind_of_frame(node, frame):
    start = (0.0, 0.3, -0.2)
    cube = messages.box("cube", position=(0.7, 0.7, 0.7))
    cube.subframe_names, cube.subframe_poses = ["handle"], [messages.pose((0.1, 0, 0), Rotation.from_euler("x", 1.0))]
    tool = messages.attached("tool")
    tool.object.subframe_names, tool.object.subframe_poses = ["tip"], [messages.pose((0, 0, 0.1))]
    at_start = pinocchio_poses(ROBOT, GROUP, [start])
    T_root_frame = {"": np.eye(4), "world": np.eye(4), "cube": np.eye(4), "cube/handle": np.eye(4)}.get(frame)
    if "cube" in frame:
        T_root_frame[:3, 3] = (0.7, 0.7, 0.7)
    if frame == "cube/handle":
        T_root_frame[:3, 3] += (0.1, 0, 0)
        T_root_frame[:3, :3] = Rotation.from_euler("x", 1.0).as_matrix()
    if frame == "tool/tip":
        T_root_frame = at_start["hand"][0] @ [[1, 0, 0, 0.1], [0, 1, 0, 0], [0, 0, 1, 0.1], [0, 0, 0, 1]]
    T_root_frame = at_start[frame][0] if T_root_frame is None else T_root_frame
    T_root_goal = pinocchio_poses(ROBOT, GROUP, [(0.8, 0.6, -0.4)])["hand"][0]
    goal = messages.pose_goal("hand", np.linalg.inv(T_root_frame) @ T_root_goal, frame)
    _, result = node.move(messages.motion_request(goal, start=start), messages.scene(cube, attach=[tool]))
    end = check_motion(result, start)[-1]
    T = pinocchio_poses(ROBOT, GROUP, [end])["hand"][0]
    assert np.linalg.norm(T[:3, 3] - T_root_goal[:3, 3]) <= 1e-3 + 1e-6
    error = Rotation.from_matrix(T_root_goal[:3, :3].T @ T[:3, :3]).as_euler("XYZ")
    assert np.abs(error).max() <= 1e-2 + 1e-6


def test_the_point_of_an_attached_object_is_placed(node):
    """A position constraint on what the hand carries, anywhere in a box."""
    size, centre = (0.2, 0.2, 0.2), (-0.5, 0.5, 0.2)
    goal = Constraints(
        position_constraints=[
            messages.position_constraint("tool", centre, size, SolidPrimitive.BOX, offset=(0.0, 0.0, 0.15))
        ]
    )
    _, result = node.move(messages.motion_request(goal), messages.scene(attach=[messages.attached("tool")]))
    end = check_motion(result, (0, 0, 0))[-1]
    point = pinocchio_poses(ROBOT, GROUP, [end])["hand"][0] @ (0.1, 0, 0.15, 1)
    assert (np.abs(point[:3] - centre) <= 0.1 + 1e-5).all()


def test_of_several_goals_one_that_can_be_reached_is(node):
    far = messages.pose_goal("hand", np.array([[1, 0, 0, 5], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]))
    _, result = node.move(messages.motion_request(far, messages.joint_goal(GOAL)))
    assert np.allclose(check_motion(result, (0, 0, 0))[-1], GOAL, atol=1e-3)
    assert "goal 1" in result.error_code.message


def test_a_diff_counts_for_its_request_only(node, coal_scene):
    bar = {"size": BAR["size"], "position": BAR["position"]}
    request = messages.motion_request(messages.joint_goal(GOAL))
    _, around = node.move(request, messages.scene(messages.box("bar", **BAR)))
    path = check_motion(around, (0, 0, 0), coal_scene(bar))
    straight = np.linspace((0, 0, 0), GOAL, 2)
    assert coal_scene(bar).first_collision(straight) is not None  # the bar is in the way
    assert np.linalg.norm(np.diff(path, axis=0), axis=1).sum() > np.linalg.norm(GOAL) + 0.1
    assert not node.objects()
    _, free = node.move(request)
    assert len(messages.path_of(free.planned_trajectory)) and free.error_code.val == CODES.SUCCESS


def test_what_the_start_carries_is_checked(node, coal_scene):
    above = pinocchio_poses(ROBOT, GROUP, [np.array(GOAL) / 2])["hand"][0] @ (0.1, 0, 0.13, 1)
    bar = {"size": (0.1, 0.1, 0.04), "position": tuple(above[:3])}  # above the arm, where the tool comes by
    start = messages.state((0, 0, 0))
    start.attached_collision_objects = [messages.attached("tool", size=TOOL)]
    request = messages.motion_request(messages.joint_goal(GOAL), start=None)
    request.start_state = start
    _, result = node.move(request, messages.scene(messages.box("bar", bar["size"], bar["position"])))
    path = check_motion(result, (0, 0, 0), coal_scene(bar, tool=True))
    (carried,) = result.trajectory_start.attached_collision_objects
    assert carried.link_name == "hand" and carried.object.id == "tool"
    assert coal_scene(bar).first_collision(np.array([(0, 0, 0), GOAL])) is None  # without the tool it is free
    assert coal_scene(bar, tool=True).first_collision(np.array([(0, 0, 0), GOAL])) is not None
    assert len(path) > 2
    assert not node.ask("get_planning_scene").scene.robot_state.attached_collision_objects


def test_a_whole_scene_replaces_the_objects_for_a_request(node):
    """NVIDIA's plugin sends MoveIt's whole scene with every request, and does not set plan_only."""
    node.apply(messages.scene(messages.box("wall", (2.0, 0.05, 2.0), (0.0, 0.3, 0.0))))
    request = messages.motion_request(messages.joint_goal(GOAL))
    assert node.move(request)[1].error_code.val == CODES.START_STATE_IN_COLLISION
    whole = PlanningScene(name="(noname)", robot_model_name="small", is_diff=False)
    whole.robot_state = messages.state((0.0, 0.2, 0.0), diff=False)
    whole.world.collision_objects = [messages.box("bar", **BAR)]
    request.start_state = RobotState()
    check_motion(node.move(request, whole)[1], (0.0, 0.2, 0.0))
    assert list(node.objects()) == ["wall"]


def test_the_octomap_of_a_scene_is_an_obstacle(node):
    scene, octomap = messages.scene(), OctomapWithPose()
    octomap.header.frame_id, octomap.origin = "plate", messages.pose((0.1, 0.0, 0.0))
    octomap.octomap = Octomap(binary=True, id="OcTree", resolution=0.1)
    octomap.octomap.data = np.frombuffer(octree_of((-8, 6, 1)), np.int8).tolist()  # x from -0.8, moved by 0.1
    scene.world.octomap = octomap
    request = messages.motion_request(messages.joint_goal((0.82, 0.0, 0.0)))
    _, result = node.move(request, scene)
    assert result.error_code.val == CODES.GOAL_IN_COLLISION and "<octomap>" in result.error_code.message
    assert node.move(messages.motion_request(messages.joint_goal((0.4, 0.0, 0.0))), scene)[1].error_code.val == 1
    assert node.move(request)[1].error_code.val == CODES.SUCCESS


def test_planner_id_scaling_and_attempts(node):
    request = messages.motion_request(messages.joint_goal(GOAL))
    _, fast = node.move(request)
    request.max_velocity_scaling_factor, request.max_acceleration_scaling_factor = 0.1, 0.1
    request.planner_id, request.num_planning_attempts = "cuMotion", 3
    _, slow = node.move(request)
    check_motion(slow, (0, 0, 0))
    last = [seconds(r.planned_trajectory.joint_trajectory.points[-1].time_from_start) for r in (fast, slow)]
    assert last[1] > 3 * last[0]
    assert "by rrt_connect" in slow.error_code.message
    (listed,) = node.ask("query_planner_interface").planner_interfaces
    assert "rrt_connect" in listed.planner_ids


def wrong(change, **fields):
    """A request that is right but for one change."""
    request = messages.motion_request(messages.joint_goal(GOAL), **fields)
    change(request)
    return request


def with_start(**fields):
    return wrong(lambda request: [setattr(request.start_state, name, value) for name, value in fields.items()])


BLOCK = messages.box("block", (0.3, 0.3, 0.3), tuple(pinocchio_poses(ROBOT, GROUP, [GOAL])["hand"][0, :3, 3]))
T_FAR = np.array([[1, 0, 0, 5.0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
T_GOAL = pinocchio_poses(ROBOT, GROUP, [GOAL])["hand"][0]


def contradictory():
    goal = messages.pose_goal("hand", T_GOAL, radius=0.01)
    goal.joint_constraints = messages.joint_goal((-2.0,), 0.01, ["elbow"]).joint_constraints
    return goal


@pytest.mark.parametrize(
    ("code", "text", "request_", "diff"),
    [
        (CODES.INVALID_GOAL_CONSTRAINTS, "goal_constraints is empty", messages.motion_request(), None),
        (CODES.INVALID_GOAL_CONSTRAINTS, "constrains nothing", messages.motion_request(Constraints()), None),
        (
            CODES.INVALID_GOAL_CONSTRAINTS,
            "'knee'",
            messages.motion_request(messages.joint_goal((1,), names=["knee"])),
            None,
        ),
        (CODES.INVALID_LINK_NAME, "'foot'", messages.motion_request(messages.pose_goal("foot", T_GOAL)), None),
        (
            CODES.INVALID_LINK_NAME,
            "no planning joint",
            messages.motion_request(messages.pose_goal("base", T_GOAL)),
            None,
        ),
        (
            CODES.FRAME_TRANSFORM_FAILURE,
            "'moon'",
            messages.motion_request(messages.pose_goal("hand", T_GOAL, "moon")),
            None,
        ),
        (CODES.GOAL_STATE_INVALID, "limits", messages.motion_request(messages.joint_goal((0, 9, 0))), None),
        (CODES.NO_IK_SOLUTION, "goal 0", messages.motion_request(messages.pose_goal("hand", T_FAR)), None),
        (
            CODES.NO_IK_SOLUTION,
            "places link 'hand'",
            messages.motion_request(messages.pose_goal("hand", T_FAR, radius=0.05, tolerance=0.2)),
            None,
        ),
        (
            CODES.NO_IK_SOLUTION,
            "places link 'hand'",
            messages.motion_request(
                Constraints(position_constraints=[messages.position_constraint("hand", (0, 3, 0.1), (0.1,))])
            ),
            None,
        ),
        (CODES.GOAL_CONSTRAINTS_VIOLATED, "all constraints at once", messages.motion_request(contradictory()), None),
        (
            CODES.GOAL_IN_COLLISION,
            "meets 'block'",
            messages.motion_request(messages.joint_goal(GOAL)),
            messages.scene(BLOCK),
        ),
        (
            CODES.GOAL_IN_COLLISION,
            "meets 'block'",
            messages.motion_request(messages.pose_goal("hand", T_GOAL)),
            messages.scene(BLOCK),
        ),
        (
            CODES.START_STATE_IN_COLLISION,
            "block",
            messages.motion_request(messages.joint_goal((0, 0, 0)), start=GOAL),
            messages.scene(BLOCK),
        ),
        (CODES.START_STATE_INVALID, "elbow", messages.motion_request(messages.joint_goal(GOAL), start=(0, 3, 0)), None),
        (CODES.INVALID_ROBOT_STATE, "'knee'", with_start(joint_state=joints((1.0,), ["knee"])), None),
        (
            CODES.INVALID_ROBOT_STATE,
            "2 joint names but 1 positions",
            with_start(joint_state=JointState(name=["elbow", "wrist"], position=[0.0])),
            None,
        ),
        (
            CODES.PLANNING_FAILED,
            "visibility constraints",
            wrong(lambda r: r.path_constraints.visibility_constraints.append(VisibilityConstraint())),
            None,
        ),
        (
            CODES.PLANNING_FAILED,
            "cannot be kept, joint 'shoulder'",  # not by a tolerance of 0
            wrong(lambda r: setattr(r, "path_constraints", messages.joint_goal(GOAL, tolerance=0.0))),
            None,
        ),
        (
            -11,  # START_STATE_VIOLATES_PATH_CONSTRAINTS
            "the start does not keep the path_constraints: joint 'shoulder' is at",
            wrong(lambda r: setattr(r, "path_constraints", messages.joint_goal(GOAL, tolerance=1e-2))),
            None,
        ),
        (
            CODES.PLANNING_FAILED,
            "trajectory_constraints",
            wrong(lambda r: r.trajectory_constraints.constraints.append(messages.joint_goal(GOAL))),
            None,
        ),
        (CODES.PLANNING_FAILED, "max_cartesian_speed", wrong(lambda r: None, max_cartesian_speed=0.1), None),
        (CODES.TIMED_OUT, "time", wrong(lambda r: None, allowed_planning_time=1e-9), None),
        (
            CODES.INVALID_OBJECT_NAME,
            "'ghost'",
            messages.motion_request(messages.joint_goal(GOAL)),
            messages.scene(CollisionObject(id="ghost", operation=CollisionObject.REMOVE)),
        ),
        (
            CODES.INVALID_OBJECT_NAME,
            "radius",
            messages.motion_request(messages.joint_goal(GOAL)),
            messages.scene(
                CollisionObject(id="ball", primitives=[SolidPrimitive(type=SolidPrimitive.SPHERE, dimensions=[-1.0])])
            ),
        ),
        (
            CODES.INVALID_LINK_NAME,
            "'foot'",
            messages.motion_request(messages.joint_goal(GOAL)),
            messages.scene(attach=[messages.attached("tool", "foot")]),
        ),
        (
            CODES.FAILURE,
            "link_scale",
            messages.motion_request(messages.joint_goal(GOAL)),
            messages.scene(link_scale=[LinkScale(link_name="hand", scale=2.0)]),
        ),
        (
            CODES.INVALID_ROBOT_STATE,
            "'other'",
            messages.motion_request(messages.joint_goal(GOAL)),
            messages.scene(name="it", robot_model_name="other"),
        ),
    ],
)
def test_what_is_refused_and_why(node, code, text, request_, diff):
    status, result = node.move(request_, diff)
    assert result.error_code.val == code, result.error_code.message
    assert text in result.error_code.message and status == GoalStatus.STATUS_ABORTED
    assert not result.planned_trajectory.joint_trajectory.points
    answer = node.move(messages.motion_request(messages.joint_goal(GOAL)))[1]  # it goes on serving
    assert answer.error_code.val == CODES.SUCCESS


def test_a_stale_state_an_unknown_group_and_execution_are_refused(start_node, tmp_path):
    srdf = tmp_path / "small.srdf"
    srdf.write_text("<robot name='small'><group name='arm'><chain base_link='base' tip_link='hand'/></group></robot>")
    node = start_node(joints=[""], srdf_file=str(srdf), group="arm")
    _, result = node.move(messages.motion_request(messages.joint_goal(GOAL), start=None))
    assert result.error_code.val == CODES.ROBOT_STATE_STALE and "joint_states" in result.error_code.message
    request = messages.motion_request(messages.joint_goal(GOAL), group_name="leg")
    assert node.move(request)[1].error_code.val == CODES.INVALID_GROUP_NAME
    assert node.ask("compute_ik", ik_request=ik_request(T_GOAL, group_name="leg")).error_code.val == -15
    request.group_name = "arm"
    assert node.move(request)[1].error_code.val == CODES.SUCCESS
    status, result = node.move(request, plan_only=False)
    assert result.error_code.val == CODES.CONTROL_FAILED and "plan_only" in result.error_code.message
    assert status == GoalStatus.STATUS_ABORTED


def test_beside_a_move_group_only_the_action_is_there_and_plans(start_node):
    node = start_node(moveit_interface="action", move_group_action="cumotion/move_group")
    services = {name.split("/")[-1] for name, _ in node.client_node.get_service_names_and_types()}
    assert not services & SERVICES.keys()
    status, result = node.move(messages.motion_request(messages.joint_goal(GOAL)), plan_only=False)
    assert status == GoalStatus.STATUS_SUCCEEDED
    check_motion(result, (0, 0, 0))


ARM_IN_SPACE = """<robot name="spatial"><link name="root"/>{}</robot>"""
AXES = ("0 0 1", "0 1 0", "0 1 0", "1 0 0", "0 1 0", "1 0 0")


def spatial_arm():
    """Six joints, enough to keep a hand upright."""
    links = "".join(
        f"""<link name="l{i}"><collision><origin xyz="0.1 0 0"/><geometry><box size="0.16 0.04 0.04"/></geometry>
        </collision></link><joint name="j{i}" type="revolute"><parent link="{f"l{i - 1}" if i else "root"}"/>
        <child link="l{i}"/><origin xyz="{0.2 if i else 0} 0 0"/><axis xyz="{axis}"/>
        <limit lower="-3" upper="3" velocity="2" effort="1"/></joint>"""
        for i, axis in enumerate(AXES)
    )
    return ARM_IN_SPACE.format(links)


def test_a_link_is_kept_upright(start_node):
    urdf, names = spatial_arm(), [f"j{i}" for i in range(6)]
    node = start_node(robot=urdf, joints=names, tip_link="l5")
    start, goal, tolerance = (0.0, -0.5, 1.0, 0.0, -0.5, 0.0), (1.5, -0.9, 1.3, 0.0, -0.4, 0.0), 0.15
    kept = Constraints(
        orientation_constraints=[
            messages.orientation_constraint("l5", Rotation.identity(), (tolerance, tolerance, 3.2), "")
        ]
    )
    wall = messages.box("wall", (0.1, 0.1, 1.0), (0.5, 0.5, 0.0), "root")

    def plan(goal, start=start):
        request = messages.motion_request(goal, start=None, path_constraints=kept, allowed_planning_time=60.0)
        request.start_state = messages.state(start, names)
        return node.move(request, messages.scene(wall))[1]

    def tilts(q):  # as MoveIt has it: Euler angles about x and y in turn
        turned = Rotation.from_matrix(pinocchio_poses(urdf, names, q)["l5"][:, :3, :3])
        return np.abs(turned.as_euler("XYZ")[:, :2])

    result = plan(messages.joint_goal(goal, names=names))
    assert result.error_code.val == CODES.SUCCESS, result.error_code.message
    path = messages.path_of(result.planned_trajectory)
    dense = np.concatenate([np.linspace(a, b, 20) for a, b in zip(path, path[1:])])
    assert tilts(dense).max() <= tolerance + 1e-6 and np.allclose(path[-1], goal, atol=1e-3)
    where = pinocchio_poses(urdf, names, [goal])["l5"][0, :3, 3]
    to_a_place = Constraints(position_constraints=[messages.position_constraint("l5", where, (0.01,), frame="")])
    result = plan(to_a_place)  # any goal there will do that is upright
    assert result.error_code.val == CODES.SUCCESS, result.error_code.message
    end = messages.path_of(result.planned_trajectory)[-1:]
    assert tilts(end).max() <= tolerance + 1e-6
    assert np.linalg.norm(pinocchio_poses(urdf, names, end)["l5"][0, :3, 3] - where) <= 0.01 + 1e-6
    tilted = (0.0, -0.5, 1.0, 0.0, 0.2, 0.0)
    assert plan(messages.joint_goal(goal, names=names), tilted).error_code.val == -11
    assert plan(messages.joint_goal(tilted, names=names)).error_code.val == CODES.GOAL_VIOLATES_PATH_CONSTRAINTS
    kept.orientation_constraints[0].absolute_z_axis_tolerance = 0.1
    refused = plan(messages.joint_goal(goal, names=names)).error_code
    assert refused.val == CODES.GOAL_VIOLATES_PATH_CONSTRAINTS and "is turned by" in refused.message


def test_path_constraints_hold_together(start_node):
    """A box for a point of the hand, its orientation by a rotation vector, a range of a joint: all along the motion."""
    urdf, names = spatial_arm(), [f"j{i}" for i in range(6)]
    node = start_node(robot=urdf, joints=names, tip_link="l5")
    start, goal = (0.0, -0.5, 1.0, 0.0, -0.5, 0.0), (1.5, -0.9, 1.3, 0.0, -0.4, 0.0)
    point = (0.1, 0.0, 0.02)

    def points(q):
        return pinocchio_poses(urdf, names, q)["l5"] @ (*point, 1.0)

    ends = points([start, goal])[:, 2]
    size = (4.0, 4.0, float(np.ptp(ends)) + 0.1)
    kept = messages.joint_goal(start[1:2], 0.6, names[1:2])
    kept.position_constraints = [
        messages.position_constraint("l5", (0, 0, ends.mean()), size, SolidPrimitive.BOX, "root", point)
    ]
    turned = messages.orientation_constraint("l5", Rotation.identity(), (0.4, 0.4, 2.5), "")
    turned.parameterization = OrientationConstraint.ROTATION_VECTOR
    kept.orientation_constraints = [turned]
    request = messages.motion_request(
        messages.joint_goal(goal, names=names), start=None, path_constraints=kept, allowed_planning_time=60.0
    )
    request.start_state = messages.state(start, names)
    post = messages.box("post", (0.05, 0.05, 1.0), (0.75, 0.55, 0.0), "root")
    result = node.move(request, messages.scene(post))[1]
    assert result.error_code.val == CODES.SUCCESS, result.error_code.message
    path = messages.path_of(result.planned_trajectory)
    dense = np.concatenate([np.linspace(a, b, 20) for a, b in zip(path, path[1:])])
    assert np.abs(points(dense)[:, 2] - ends.mean()).max() <= size[2] / 2 + 1e-6
    vectors = Rotation.from_matrix(pinocchio_poses(urdf, names, dense)["l5"][:, :3, :3]).as_rotvec()
    assert (np.abs(vectors) <= np.array([0.4, 0.4, 2.5]) + 1e-6).all()
    assert np.abs(dense[:, 1] - start[1]).max() <= 0.6 + 1e-6
    outside = (0.0, 0.3, 1.0, 0.0, -0.5, 0.0)
    request.start_state = messages.state(outside, names)
    refused = node.move(request, messages.scene(post))[1].error_code
    assert refused.val == -11 and "joint 'j1' is at 0.3" in refused.message


def test_topics_change_the_scene_of_all_requests(node, coal_scene):
    watched = node.received(PlanningScene, "/monitored_planning_scene", LATCHED)
    scenes = node.publisher(PlanningScene, "/planning_scene")
    scenes.publish(messages.scene(messages.box("bar", **BAR)))
    node.wait_until(lambda: "bar" in node.objects(), 20)
    node.wait_until(lambda: watched and [o.id for o in watched[-1].world.collision_objects] == ["bar"], 20)
    bar = {"size": BAR["size"], "position": BAR["position"]}
    path = np.array([point.positions for point in node.plan(plan_request()).path.points])  # our own service
    assert coal_scene(bar).first_collision(path) is None
    scenes.publish(
        messages.scene(CollisionObject(id="bar", operation=CollisionObject.MOVE, pose=messages.pose((2, 2, 2))))
    )
    node.wait_until(lambda: np.allclose(position(node.objects()["bar"]), (2, 2, 2)), 20)
    objects = node.publisher(CollisionObject, "/collision_object")
    objects.publish(messages.box("bar", position=(2.5, 2, 2), operation=CollisionObject.APPEND))
    geometry = PlanningSceneComponents.WORLD_OBJECT_GEOMETRY
    node.wait_until(lambda: len(node.objects(geometry)["bar"].primitives) == 2, 20)
    objects.publish(CollisionObject(id="bar", operation=CollisionObject.REMOVE))
    node.wait_until(lambda: not node.objects(), 20)


def position(message):
    p = message.pose.position
    return p.x, p.y, p.z


def test_a_refused_message_changes_nothing_and_is_told(node):
    scenes = node.publisher(PlanningScene, "/planning_scene")
    scenes.publish(messages.scene(messages.box("good"), messages.box("bad", size=(0.1, -1.0, 0.1))))
    node.wait_until(lambda: "'bad'" in node.problem, 20)
    assert not node.objects()
    assert not node.ask("apply_planning_scene", scene=messages.scene(messages.box("bad", size=(0, 1, 1)))).success
    scenes.publish(messages.scene(messages.box("good")))
    node.wait_until(lambda: "good" in node.objects(), 20)
    node.wait_until(lambda: not node.problem, 20)


def test_a_scene_is_taken_though_joint_states_are_malformed(node):
    states = node.publisher(JointState, "/joint_states")
    states.publish(joints((0.0, 0.0, np.nan)))
    request_ = messages.motion_request(messages.joint_goal(GOAL), start=None)
    node.wait_until(lambda: "joint 'wrist' is nan" in node.move(request_)[1].error_code.message, 20)
    node.publisher(PlanningScene, "/planning_scene").publish(messages.scene(messages.box("good")))
    node.wait_until(lambda: "good" in node.objects(), 20)
    assert not node.problem
    states.publish(joints((0.0, 0.0, 0.0)))
    node.wait_until(lambda: node.move(request_)[1].error_code.val == CODES.SUCCESS, 20)


def test_attached_objects_are_put_down_where_the_link_is(node):
    states = node.publisher(JointState, "/joint_states")
    q = (0.4, -0.3, 0.2)
    node.apply(messages.scene(messages.box("cup", position=(0.3, 0.9, 0.3))))
    take = AttachedCollisionObject(link_name="hand", object=CollisionObject(id="cup"))
    states.publish(joints((0.0, 0.0, 0.0)))
    node.wait_until(lambda: node.ask("get_planning_scene").scene.robot_state.joint_state.name, 20)
    node.apply(messages.scene(attach=[take]))
    assert not node.objects()
    states.publish(joints(q))
    node.wait_until(lambda: np.allclose(node.ask("get_planning_scene").scene.robot_state.joint_state.position, q), 20)
    topic = node.publisher(AttachedCollisionObject, "/attached_collision_object")
    take.object.operation = CollisionObject.REMOVE
    topic.publish(take)
    node.wait_until(lambda: "cup" in node.objects(), 20)
    before, after = pinocchio_poses(ROBOT, GROUP, [(0, 0, 0), q])["hand"]
    expected = after @ np.linalg.inv(before) @ (0.3, 0.9, 0.3, 1)
    assert np.allclose(position(node.objects()["cup"]), expected[:3], atol=1e-6)


def matrix(*pairs, defaults=()):
    names = sorted({name for pair in pairs for name in pair})
    return AllowedCollisionMatrix(
        entry_names=names,
        entry_values=[
            AllowedCollisionEntry(enabled=[(a, b) in pairs or (b, a) in pairs for b in names]) for a in names
        ],
        default_entry_names=list(defaults),
        default_entry_values=[True] * len(defaults),
    )


@pytest.mark.parametrize("matrix_", [matrix(defaults=["block"]), matrix(("block", "hand"), ("block", "finger"))])
def test_the_allowed_collision_matrix_lets_things_touch(node, matrix_):
    q = messages.state(GOAL)
    node.apply(messages.scene(BLOCK))
    met = node.ask("check_state_validity", robot_state=q)
    met_by = {(contact.contact_body_1, contact.contact_body_2) for contact in met.contacts}
    assert not met.valid and met_by == {("hand", "block"), ("finger", "block")}
    assert {c.body_type_2 for c in met.contacts} == {ContactInformation.WORLD_OBJECT}
    node.apply(messages.scene(allowed_collision_matrix=matrix_))
    assert node.ask("check_state_validity", robot_state=q).valid
    told = node.ask("get_planning_scene").scene.allowed_collision_matrix
    assert "block" in [*told.entry_names, *told.default_entry_names]


def test_padding_keeps_the_robot_away(node):
    hand = pinocchio_poses(ROBOT, GROUP, [GOAL])["hand"][0, :3, 3]
    near = messages.box("near", (0.1, 0.1, 0.1), tuple(hand + (0.0, 0.0, -0.12)))
    node.apply(messages.scene(near))
    assert node.ask("check_state_validity", robot_state=messages.state(GOAL)).valid
    node.apply(messages.scene(link_padding=[LinkPadding(link_name="hand", padding=0.05)]))
    assert not node.ask("check_state_validity", robot_state=messages.state(GOAL)).valid
    (told,) = node.ask("get_planning_scene").scene.link_padding
    assert told.link_name == "hand" and told.padding == 0.05


def test_validity_agrees_with_coal_and_tells_limits_and_constraints(node, coal_scene):
    node.apply(messages.scene(messages.box("bar", **BAR)))
    scene = coal_scene({"size": BAR["size"], "position": BAR["position"]})
    rng = np.random.default_rng(3)
    answers = []
    for q in rng.uniform((-3, -2.5, -2), (3, 2.5, 2), (60, 3)):
        if abs(scene.distance(q)) > 1e-4:
            answers.append(node.ask("check_state_validity", robot_state=messages.state(q)).valid)
            assert answers[-1] != scene.in_collision(q)
    assert 3 < sum(answers) < len(answers)
    assert not node.ask("check_state_validity", robot_state=messages.state((0, 2.6, 0))).valid
    asked = messages.joint_goal((0.0, 1.0, 0.0), 0.25)
    answer = node.ask("check_state_validity", robot_state=messages.state((0.1, 0.5, 0.0)), constraints=asked)
    assert [one.result for one in answer.constraint_result] == [True, False, True] and not answer.valid
    assert answer.constraint_result[1].distance == pytest.approx(0.25)


def test_forward_kinematics_is_pinocchios(node):
    q = (0.7, -0.4, 1.1)
    links = ["hand", "finger", "plate", "upper"]
    expected = pinocchio_poses(ROBOT, GROUP, [q])
    for frame in ("", "base", "fore"):
        request = {"fk_link_names": links, "robot_state": messages.state(q)}
        header = GetPositionFK.Request().header
        header.frame_id = frame
        answer = node.ask("compute_fk", header=header, **request)
        assert answer.error_code.val == CODES.SUCCESS and answer.fk_link_names == links
        T_frame_root = np.linalg.inv(expected[frame or "plate"][0])
        for link, stamped in zip(links, answer.pose_stamped):
            T, o = T_frame_root @ expected[link][0], stamped.pose.orientation
            assert np.allclose(position(stamped), T[:3, 3], atol=1e-9)
            assert np.allclose(Rotation.from_quat([o.x, o.y, o.z, o.w]).as_matrix(), T[:3, :3], atol=1e-9)
    answer = node.ask("compute_fk", fk_link_names=["foot"], robot_state=messages.state(q))
    assert answer.error_code.val == CODES.INVALID_LINK_NAME and "'foot'" in answer.error_code.message


def ik_request(T, frame="plate", link="", q=(0.0, 0.0, 0.0), **fields):
    request = GetPositionIK.Request().ik_request
    request.robot_state, request.ik_link_name = messages.state(q), link
    request.pose_stamped.header.frame_id = frame
    request.pose_stamped.pose = messages.pose(T[:3, 3], Rotation.from_matrix(T[:3, :3]))
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def test_inverse_kinematics_is_undone_by_pinocchio(node):
    rng = np.random.default_rng(0)
    for q in rng.uniform((-3, -2.4, -1.9), (3, 2.4, 1.9), (10, 3)):
        for link in ("", "fore"):
            T = pinocchio_poses(ROBOT, GROUP, [q])[link or "hand"][0]
            answer = node.ask("compute_ik", ik_request=ik_request(T, link=link))
            assert answer.error_code.val == CODES.SUCCESS, answer.error_code.message
            solution = dict(zip(answer.solution.joint_state.name, answer.solution.joint_state.position))
            found = pinocchio_poses(ROBOT, GROUP, [[solution[name] for name in GROUP]])[link or "hand"][0]
            assert np.allclose(found, T, atol=1e-5)


def test_inverse_kinematics_that_must_avoid_collisions(node):
    node.apply(messages.scene(BLOCK))
    free = node.ask("compute_ik", ik_request=ik_request(T_GOAL))
    assert free.error_code.val == CODES.SUCCESS
    answer = node.ask("compute_ik", ik_request=ik_request(T_GOAL, avoid_collisions=True))
    assert answer.error_code.val == CODES.NO_IK_SOLUTION and "'block'" in answer.error_code.message
    answer = node.ask("compute_ik", ik_request=ik_request(T_FAR))
    assert answer.error_code.val == CODES.NO_IK_SOLUTION and "limits" in answer.error_code.message
    answer = node.ask("compute_ik", ik_request=ik_request(T_GOAL, "moon"))
    assert answer.error_code.val == CODES.FRAME_TRANSFORM_FAILURE


def test_a_pose_out_of_reach_is_told_at_once_and_one_that_collides_by_its_own_code(node):
    far = messages.motion_request(messages.pose_goal("hand", T_FAR, radius=0.05, tolerance=0.2))
    began = time.monotonic()
    code = node.move(far)[1].error_code
    assert code.val == CODES.NO_IK_SOLUTION and time.monotonic() - began < 1.5, code.message  # of 2.5 s for goals
    node.apply(messages.scene(BLOCK))
    blocked = messages.motion_request(messages.pose_goal("hand", T_GOAL))
    assert node.move(blocked)[1].error_code.val == CODES.GOAL_IN_COLLISION


def test_no_question_changes_the_scene(node):
    """Each is asked with a finger of its own; the scene's robot, objects and frames stay the same values."""
    scene, names = node.node.scene, [*GROUP, "slide"]
    before = scene.robot, scene.objects, scene.frames
    elsewhere = messages.state([0.0, 0.0, 0.0, 0.3], names)
    motion = messages.motion_request(messages.joint_goal(GOAL))
    motion.start_state = elsewhere
    diff = messages.scene(messages.box("bar", **BAR), attach=[messages.attached("tool")])
    assert node.move(motion, diff)[1].error_code.val == CODES.SUCCESS
    answer = node.ask("plan_kinematic_path", motion_plan_request=motion).motion_plan_response
    assert answer.error_code.val == CODES.SUCCESS
    asked = ik_request(T_GOAL, avoid_collisions=True)
    asked.robot_state = elsewhere
    assert node.ask("compute_ik", ik_request=asked).error_code.val == CODES.SUCCESS
    found = node.ask("compute_fk", fk_link_names=["finger"], robot_state=elsewhere)
    assert np.isclose(found.pose_stamped[0].pose.position.z, 0.4)
    assert node.ask("check_state_validity", robot_state=elsewhere).valid
    assert not node.objects() and node.ask("query_planner_interface").planner_interfaces
    assert all(now is then for now, then in zip((scene.robot, scene.objects, scene.frames), before, strict=True))


def test_a_scene_that_comes_before_the_robot_counts(start_node):
    node = start_node(robot=None)
    request = messages.motion_request(messages.joint_goal(GOAL))
    assert node.move(request)[1].error_code.val == CODES.COLLISION_CHECKING_UNAVAILABLE
    node.publisher(PlanningScene, "/planning_scene").publish(messages.scene(messages.box("bar", **BAR)))
    time.sleep(0.3)
    node.publish_robot(ROBOT)
    node.wait_until(lambda: list(node.objects()) == ["bar"], 20)


def test_a_cancel_ends_the_search(node):
    """The arm stands between two posts and cannot get to the other side: the search would last a minute."""
    posts = {"size": (0.1, 0.1, 0.1)}
    node.apply(messages.scene(*(messages.box(f"post{x}", position=(x, 0.0, 0.1), **posts) for x in (0.3, -0.3))))
    handle = node.send(messages.motion_request(messages.joint_goal((3.1, 0.0, 0.0)), allowed_planning_time=60.0))
    time.sleep(1.0)  # the worker has begun
    began = time.monotonic()
    handle.cancel_goal_async()
    answer = handle.get_result_async()
    node.wait_until(answer.done)
    assert answer.result().result.error_code.val == CODES.PREEMPTED
    status, result = node.move(messages.motion_request(messages.joint_goal((0.2, 0.0, 0.0))))
    assert result.error_code.val == CODES.SUCCESS
    assert time.monotonic() - began < 10.0


def test_a_goal_that_is_cancelled_ends_as_preempted(node):
    """Of many goals at once, the last is cancelled while it waits."""
    request = messages.motion_request(messages.joint_goal(GOAL))
    goals = [MoveGroup.Goal(request=one) for one in 3 * [MotionPlanRequest()] + 20 * [request]]
    for goal in goals:
        goal.planning_options.plan_only = True
    futures = [node.action.send_goal_async(goal) for goal in goals]
    node.wait_until(lambda: all(future.done() for future in futures))
    last = futures[-1].result()
    cancelling = last.cancel_goal_async()
    node.wait_until(cancelling.done)
    result = last.get_result_async()
    node.wait_until(result.done)
    assert cancelling.result().goals_canceling
    assert result.result().status == GoalStatus.STATUS_CANCELED
    assert result.result().result.error_code.val == CODES.PREEMPTED
    for future in futures[:-1]:
        answer = future.result().get_result_async()
        node.wait_until(answer.done)
        assert answer.result().result.error_code.val
