"""MoveIt's Panda at first contact: groups, the virtual joint, states and scenes as a move_group and RViz send them."""

import pytest

pytest.importorskip("moveit_msgs.msg", reason="the ROS package moveit_msgs is not installed")

import moveit_messages as messages
import numpy as np
from geometry_msgs.msg import PoseStamped, Transform, TransformStamped, Vector3
from moveit_msgs.msg import (
    AllowedCollisionEntry,
    AllowedCollisionMatrix,
    LinkPadding,
    LinkScale,
    MotionSequenceItem,
    MotionSequenceRequest,
    MoveItErrorCodes,
    PlanningScene,
    PlanningSceneComponents,
    PositionIKRequest,
)
from moveit_msgs.srv import GetMotionSequence
from panda_files import ARM, FINGER, LINKS, READY, SRDF, URDF
from pinocchio_poses import pinocchio_poses
from sensor_msgs.msg import MultiDOFJointState
from test_moveit_node import SERVICES, MoveItNode

from gpu_planners.arm import load_urdf
from gpu_planners.nodes.arm.conversions import Outside, RobotFrames
from gpu_planners.nodes.arm.scene_objects import SceneObjects
from gpu_planners.nodes.common.request_error import RequestError
from gpu_planners.nodes.moveit.reference import Reference
from gpu_planners.nodes.moveit.standing import check_standing, standing
from gpu_planners.verify import CoalScene

CODES = MoveItErrorCodes
GOAL = (0.6, -0.5, 0.3, -2.0, 0.1, 1.7, 0.5)
ALL = [*ARM, FINGER, "panda_finger_joint2"]


class PandaNode(MoveItNode):
    """The node as it is launched with MoveIt's own files, but for its group."""

    def __init__(self, folder, **parameters):
        (folder / "panda.srdf").write_text(SRDF)
        given = {"joints": [""], "tip_link": "", "world_frame": "", "srdf_file": str(folder / "panda.srdf")}
        super().__init__(URDF, **given | parameters)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Starts nodes, which end with the module."""
    nodes = {}

    def get(group):
        if group not in nodes:
            nodes[group] = PandaNode(tmp_path_factory.mktemp("panda"), group=group)
        return nodes[group]

    yield get
    for node in nodes.values():
        node.close()


@pytest.fixture
def node(start):
    node = start("panda_arm")
    yield node
    node.restore()


def standing_at(position=(0.0, 0.0, 0.0), quaternion=(0.0, 0.0, 0.0, 1.0), name="virtual_joint", frame="world"):
    message = MultiDOFJointState(joint_names=[name])
    transform = Transform(translation=Vector3(**dict(zip("xyz", map(float, position)))))
    for axis, value in zip("xyzw", quaternion):
        setattr(transform.rotation, axis, float(value))
    message.transforms, message.header.frame_id = [transform], frame
    return message


def state(q=READY, fingers=0.03, diff=False, **where):
    """A RobotState of all joints, as MoveIt's current state is."""
    message = messages.state([*q, fingers, fingers], ALL, diff)
    message.joint_state.header.frame_id = "world"
    message.multi_dof_joint_state = standing_at(**where)
    return message


def whole_scene(*boxes, **where):
    """A scene of a move_group: everything is said."""
    identity = TransformStamped(child_frame_id="world")
    identity.header.frame_id, identity.transform.rotation.w = "world", 1.0
    return PlanningScene(
        name="(noname)+",
        robot_model_name="panda",
        robot_state=state(**where),
        fixed_frame_transforms=[identity],
        allowed_collision_matrix=AllowedCollisionMatrix(
            entry_names=LINKS,
            entry_values=[AllowedCollisionEntry(enabled=[abs(i - j) == 1 for j in range(11)]) for i in range(11)],
        ),
        link_padding=[LinkPadding(link_name=link, padding=0.0) for link in LINKS],
        link_scale=[LinkScale(link_name=link, scale=1.0) for link in LINKS],
        world=messages.scene(*boxes).world,
    )


def motion(*goals, begin=None, **fields):
    message = messages.motion_request(*goals, start=None, **{"group_name": "panda_arm"} | fields)
    message.start_state = begin or state()
    return message


def joint_goal(q=GOAL):
    return messages.joint_goal(q, names=ARM)


def test_a_state_with_the_virtual_joint_is_a_start(node):
    _, result = node.move(motion(joint_goal()))
    assert result.error_code.val == CODES.SUCCESS, result.error_code.message
    path = messages.path_of(result.planned_trajectory)
    assert np.allclose(path[0], READY) and np.allclose(path[-1], GOAL, atol=2e-4)
    begun = result.trajectory_start.multi_dof_joint_state
    assert begun.joint_names == ["virtual_joint"] and begun.transforms[0].rotation.w == 1.0
    assert begun.header.frame_id == "world"


def test_world_is_a_frame_of_goals_and_links(node):
    T = pinocchio_poses(URDF, ARM, [GOAL])["panda_link8"][0]
    _, result = node.move(motion(messages.pose_goal("panda_link8", T, frame="world")))
    assert result.error_code.val == CODES.SUCCESS, result.error_code.message
    end = pinocchio_poses(URDF, ARM, messages.path_of(result.planned_trajectory)[-1:])["panda_link8"][0]
    assert np.linalg.norm(end[:3, 3] - T[:3, 3]) < 1e-3
    header = PoseStamped().header
    header.frame_id = "world"
    found = node.ask("compute_fk", header=header, fk_link_names=["panda_link8", "panda_hand"], robot_state=state(GOAL))
    assert found.error_code.val == CODES.SUCCESS, found.error_code.message
    told = found.pose_stamped[0].pose.position
    assert np.allclose([told.x, told.y, told.z], T[:3, 3], atol=1e-6)
    pose = PoseStamped(pose=found.pose_stamped[0].pose)
    pose.header.frame_id = "/world"
    asked = PositionIKRequest(group_name="panda_arm", robot_state=state(), pose_stamped=pose, avoid_collisions=True)
    placed = node.ask("compute_ik", ik_request=asked)
    assert placed.error_code.val == CODES.SUCCESS, placed.error_code.message
    q = dict(zip(placed.solution.joint_state.name, placed.solution.joint_state.position))
    again = pinocchio_poses(URDF, ARM, [[q[name] for name in ARM]])["panda_link8"][0]
    assert np.allclose(again, T, atol=1e-5) and placed.solution.multi_dof_joint_state.joint_names == ["virtual_joint"]


def test_a_whole_scene_of_a_move_group_is_taken(node, tmp_path):
    goal = (1.4, *GOAL[1:])
    middle = pinocchio_poses(URDF, ARM, [(np.array(READY) + goal) / 2])["panda_hand"][0, :3, 3].tolist()
    box = messages.box("box", (0.08, 0.08, 0.08), middle, "world")
    assert node.ask("apply_planning_scene", scene=whole_scene(box)).success
    assert list(node.objects()) == ["box"] and not node.problem
    scene = node.ask("get_planning_scene", components=PlanningSceneComponents(components=2)).scene
    assert scene.robot_state.multi_dof_joint_state.joint_names == ["virtual_joint"]
    urdf = tmp_path / "panda.urdf"
    urdf.write_text(URDF)
    place = {"type": "box", "name": "box", "size": (0.08, 0.08, 0.08), "position": middle}
    coal = CoalScene(urdf, None, [place | {"quat_xyzw": (0, 0, 0, 1)}], joints=ARM, fixed={FINGER: 0.03}, self_pairs=[])
    assert coal.first_collision(np.array([READY, goal])) is not None  # it is in the way
    _, result = node.move(motion(joint_goal(goal)))
    assert result.error_code.val == CODES.SUCCESS, result.error_code.message
    assert coal.first_collision(messages.path_of(result.planned_trajectory)) is None
    asked = motion(joint_goal(goal))
    _, behind = node.move(asked, whole_scene(box))  # as NVIDIA's plugin sends it with each request
    assert coal.first_collision(messages.path_of(behind.planned_trajectory)) is None


@pytest.mark.parametrize(
    ("where", "texts"),
    [
        (standing_at((0.0, 0.0, 0.8)), ("'virtual_joint'", "'panda_link0'", "0.8 m", "'world'")),
        (standing_at(quaternion=(0.0, 0.0, 1.0, 0.0)), ("'virtual_joint'", "3.142 rad")),
        (standing_at(name="wheels"), ("'wheels'", "only the virtual joint 'virtual_joint'")),
        (standing_at((np.nan, 0.0, 0.0)), ("'virtual_joint'", "finite")),
        (standing_at(frame="moon"), ("'moon'",)),
        (MultiDOFJointState(joint_names=["virtual_joint"]), ("1 joints", "0 poses")),
    ],
)
def test_a_root_elsewhere_is_refused_by_name(node, where, texts):
    begin, scene = state(), whole_scene()
    begin.multi_dof_joint_state = scene.robot_state.multi_dof_joint_state = where
    _, result = node.move(motion(joint_goal(), begin=begin))
    expected = CODES.FRAME_TRANSFORM_FAILURE if where.header.frame_id == "moon" else CODES.INVALID_ROBOT_STATE
    assert result.error_code.val == expected and all(text in result.error_code.message for text in texts)
    assert not node.ask("apply_planning_scene", scene=scene).success
    found = node.ask("compute_fk", fk_link_names=["panda_hand"], robot_state=begin)
    assert found.error_code.val == expected and not found.pose_stamped


def test_the_root_may_be_told_in_its_own_frame_and_without_one(node):
    for where in (standing_at(frame=""), standing_at(frame="panda_link0"), standing_at(quaternion=(0, 0, 0, 0))):
        begin = state()
        begin.multi_dof_joint_state = where
        assert node.move(motion(joint_goal(), begin=begin))[1].error_code.val == CODES.SUCCESS


def test_a_name_that_is_no_group_is_refused(start):
    """With `group` it is the one of requests that name none; without it, all joints that move are."""
    arm, all_joints = start("panda_arm"), start("")
    everything = motion(messages.joint_goal((*GOAL, 0.02), names=[*ARM, FINGER]), group_name="panda_arm_hand")
    for node, known, request in (
        (arm, ("panda_arm", ""), motion(joint_goal())),
        (all_joints, ("panda_arm_hand", ""), everything),
    ):
        for name in known:
            request.group_name = name
            answer = node.move(request)[1].error_code
            assert answer.val == CODES.SUCCESS, answer.message
        for name in ("nonsense", "Panda_arm_hand"):
            request.group_name = name
            refused = [
                node.move(request)[1].error_code,
                node.ask("plan_kinematic_path", motion_plan_request=request).motion_plan_response.error_code,
                node.ask("compute_ik", ik_request=PositionIKRequest(group_name=name, robot_state=state())).error_code,
            ]
            for code in refused:
                assert code.val == CODES.INVALID_GROUP_NAME and f"'{name}'" in code.message
                assert all(group in code.message for group in ("panda_arm", "hand", "panda_arm_hand"))
            assert not node.ask("check_state_validity", group_name=name, robot_state=state()).valid


class Told:
    """Transforms of a tf2 that has heard of the world. T_root_world: (4, 4), None before"""

    missing = ""

    def __init__(self):
        self.T_root_world = None

    def look_up(self, target, source, stamp=None):
        if self.T_root_world is None or source != "world":
            raise KeyError(f"tf2 has no transform from it to '{target}'")
        return self.T_root_world


def test_tf2_says_where_the_root_stands_if_it_knows(tmp_path):
    (tmp_path / "panda.srdf").write_text(SRDF)
    robot = load_urdf(URDF, srdf=tmp_path / "panda.srdf", group="panda_arm")
    transforms = Told()
    frames = RobotFrames({"": np.eye(4)}, "panda_link0", transforms, outside=Outside("world"))
    reference = Reference(robot, frames, SceneObjects(), dict(zip(ARM, READY)))
    assert np.array_equal(reference.frame("world", "it"), np.eye(4)) and not frames.contradiction()
    transforms.T_root_world = np.eye(4)
    transforms.T_root_world[2, 3] = -0.8  # the root stands 0.8 m above the world's origin
    assert "x y z [0.0, 0.0, 0.8]" in frames.contradiction()  # what was read before lies elsewhere
    assert not frames.contradiction()  # it is told once
    assert reference.frame("world", "it")[2, 3] == -0.8
    check_standing(standing_at((0.0, 0.0, 0.8)), reference, "it")
    for wrong in (standing_at(), standing_at((0.0, 0.0, 0.802)), standing_at((0.0, 0.0, -0.8))):
        with pytest.raises(RequestError, match="stands still"):
            check_standing(wrong, reference, "it")
    assert standing(reference).transforms[0].translation.z == pytest.approx(0.8)


def test_a_sequence_of_another_group_than_the_nodes(node):
    SERVICES["plan_sequence_path"] = GetMotionSequence

    def plan(*items):
        requests = [messages.motion_request(goal, start=None, planner_id="PTP", group_name=of) for of, goal in items]
        requests[0].start_state = state()
        items = [MotionSequenceItem(req=one) for one in requests]
        return node.ask("plan_sequence_path", request=MotionSequenceRequest(items=items)).response

    close, open_hand = (messages.joint_goal((value,), names=[FINGER]) for value in (0.0, 0.035))
    answer = plan(("hand", close), ("hand", open_hand))
    assert answer.error_code.val == CODES.SUCCESS, answer.error_code.message
    trajectory = answer.planned_trajectories[0].joint_trajectory
    assert trajectory.joint_names == [FINGER] and np.isclose(trajectory.points[-1].positions[0], 0.035)
    assert min(point.positions[0] for point in trajectory.points) < 1e-6
    mixed = plan(("panda_arm", messages.joint_goal(GOAL, names=ARM)), ("hand", close))
    assert mixed.error_code.val == CODES.INVALID_GROUP_NAME and "'panda_arm', 'hand'" in mixed.error_code.message
