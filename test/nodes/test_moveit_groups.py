"""Every group of an SRDF in one node: arm, hand, both arms, by MoveIt's interfaces; judged by pinocchio and coal."""

import pytest

pytest.importorskip("moveit_msgs.msg", reason="the ROS package moveit_msgs is not installed")

import moveit_messages as messages
import numpy as np
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import Constraints, MoveItErrorCodes, PlanningScene, PositionIKRequest
from moveit_msgs.srv import GetCartesianPath
from node_harness import LATCHED, joints
from panda_files import ARM, FINGER, FINGERS, READY, SIDES, SRDF, TWO_ARMS, TWO_SRDF, TWO_URDF, URDF
from pinocchio_poses import pinocchio_poses
from robots_at_hand import groups_of, maker_of
from running_node import starter
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from test_moveit_node import SERVICES, MoveItNode

from gpu_planners.arm import load_urdf
from gpu_planners.nodes.arm.semantics import TOPIC
from gpu_planners.verify import CoalScene

CODES = MoveItErrorCodes
SERVICES["compute_cartesian_path"] = GetCartesianPath
LOW = (0.3, 0.9, 0.2, -1.6, 0.4, 2.4, 0.1)  # far from READY
BESIDE = 0.12  # metres from the hand's middle to that of a box beside a finger


class GroupsNode(MoveItNode):
    """The node with robot and groups as texts, as a launch file of MoveIt's gives them to a move_group."""

    def __init__(self, urdf=URDF, srdf=SRDF, **parameters):
        given = {"joints": [""], "tip_link": "", "world_frame": "", "robot_description_semantic": srdf}
        super().__init__(urdf, **given | parameters)


@pytest.fixture(scope="module")
def start():
    """Starts nodes, which end with the module."""
    nodes = {}

    def get(**parameters):
        key = str(sorted(parameters.items()))
        if key not in nodes:
            nodes[key] = GroupsNode(**parameters)
        return nodes[key]

    yield get
    for node in nodes.values():
        node.close()


start_node = starter(GroupsNode)


@pytest.fixture
def panda(start):
    node = start(group="panda_arm")
    yield node
    node.restore()


@pytest.fixture
def pandas(start):
    node = start(urdf=TWO_URDF, srdf=TWO_SRDF, group="right_arm")
    yield node
    node.restore()


def at(arm=READY, finger=0.01):
    return messages.state([*arm, finger], [*ARM, FINGER])


def motion(group, *goals, begin, **fields):
    message = messages.motion_request(*goals, start=None, group_name=group, **fields)
    message.start_state = begin
    return message


def planned(node, *arguments, **fields):
    """(joint names, path (K, dof), RobotState of its start) of a request that is answered by a motion."""
    _, result = node.move(motion(*arguments, **fields))
    assert result.error_code.val == CODES.SUCCESS, result.error_code.message
    trajectory = result.planned_trajectory.joint_trajectory
    return list(trajectory.joint_names), messages.path_of(result.planned_trajectory), result.trajectory_start


def rotation_of(T):
    return Rotation.from_matrix(T[:3, :3])


def beside_the_finger(arm):
    """A box beside the left finger of a Panda whose arm stands there, which an open finger would meet."""
    T = pinocchio_poses(URDF, ARM, [arm])["panda_hand"][0]
    box = messages.box("box", (0.02, 0.16, 0.02), frame="panda_link0")
    box.pose = messages.pose((T @ [0, BESIDE, 0.0834, 1])[:3], rotation_of(T))
    return box


def test_a_hand_is_planned_alone_and_where_the_arm_stands(panda):
    names, path, begun = planned(panda, "hand", messages.joint_goal([0.03], names=[FINGER]), begin=at())
    assert names == [FINGER] and path[0] == 0.01 and abs(path[-1] - 0.03) < 2e-4
    assert dict(zip(begun.joint_state.name, begun.joint_state.position))[ARM[3]] == READY[3]
    panda.apply(messages.scene(beside_the_finger(LOW)))
    opened = messages.joint_goal([0.04], names=[FINGER])
    for arm, expected in ((READY, CODES.SUCCESS), (LOW, CODES.GOAL_IN_COLLISION), (READY, CODES.SUCCESS)):
        _, result = panda.move(motion("hand", opened, begin=at(arm)))
        assert result.error_code.val == expected, result.error_code.message
    answers = [
        panda.ask("check_state_validity", group_name=group, robot_state=at(LOW, 0.04))
        for group in ("hand", "", "panda_arm_hand")
    ]
    assert not any(answer.valid for answer in answers)
    bodies = {answers[0].contacts[0].contact_body_1, answers[0].contacts[0].contact_body_2}
    assert bodies == {"panda_leftfinger", "box"}
    assert panda.ask("check_state_validity", group_name="hand", robot_state=at(READY, 0.04)).valid


def test_a_goal_may_name_a_joint_that_mimics_one_of_the_group(panda):
    """As clients of grippers do, who list all joints that move."""
    names, path, _ = planned(panda, "hand", messages.joint_goal([0.02, 0.02], names=FINGERS), begin=at())
    assert names == [FINGER] and abs(path[-1] - 0.02) < 2e-4
    only = messages.joint_goal([0.02], names=FINGERS[1:])
    assert abs(planned(panda, "hand", only, begin=at())[1][-1] - 0.02) < 2e-4
    _, result = panda.move(motion("hand", messages.joint_goal([0.01, 0.03], names=FINGERS), begin=at()))
    assert result.error_code.val != CODES.SUCCESS  # they cannot differ


def test_subgroups_are_planned_together(panda):
    goal = messages.joint_goal([*LOW, 0.035], names=[*ARM, FINGER])
    names, path, _ = planned(panda, "panda_arm_hand", goal, begin=at())
    assert names == [*ARM, FINGER] and np.allclose(path[-1], [*LOW, 0.035], atol=2e-4)


def test_services_take_the_group(start):
    """A node whose own group is the hand places the arm, and moves it along a line."""
    node, T = start(group="hand"), pinocchio_poses(URDF, ARM, [LOW])["panda_link8"][0]
    pose = PoseStamped(pose=messages.pose(T[:3, 3], rotation_of(T)))
    asked = PositionIKRequest(group_name="panda_arm", robot_state=at(), pose_stamped=pose, avoid_collisions=True)
    placed = node.ask("compute_ik", ik_request=asked)
    assert placed.error_code.val == CODES.SUCCESS, placed.error_code.message
    found = dict(zip(placed.solution.joint_state.name, placed.solution.joint_state.position))
    again = pinocchio_poses(URDF, ARM, [[found[name] for name in ARM]])["panda_link8"][0]
    assert np.allclose(again, T, atol=1e-5) and found[FINGER] == 0.01
    told = node.ask("compute_fk", fk_link_names=["panda_link8"], robot_state=at(LOW)).pose_stamped[0].pose.position
    assert np.allclose([told.x, told.y, told.z], T[:3, 3], atol=1e-6)
    higher = T.copy()
    higher[2, 3] += 0.1
    line = node.ask(
        "compute_cartesian_path",
        group_name="panda_arm",
        start_state=at(LOW),
        waypoints=[messages.pose(higher[:3, 3], rotation_of(T))],
        max_step=0.01,
        avoid_collisions=True,
    )
    assert line.error_code.val == CODES.SUCCESS and line.fraction == 1.0, line.error_code.message
    assert list(line.solution.joint_trajectory.joint_names) == ARM
    end = pinocchio_poses(URDF, ARM, messages.path_of(line.solution)[-1:])["panda_link8"][0]
    assert np.allclose(end, higher, atol=1e-4)


def test_a_group_is_refused_where_nobody_knows_where_the_others_stand(panda):
    goal = messages.joint_goal([0.03], names=[FINGER])
    _, result = panda.move(motion("hand", goal, begin=messages.state([0.0], [FINGER])))
    assert result.error_code.val == CODES.ROBOT_STATE_STALE and f"'{ARM[0]}'" in result.error_code.message
    states = panda.publisher(JointState, "/joint_states")
    panda.wait_until(lambda: states.publish(joints([*READY, 0.01], [*ARM, FINGER])) or panda.node.place() is not None)
    names, path, _ = planned(panda, "hand", goal, begin=messages.state([], []))
    assert names == [FINGER] and path[0] == 0.01


def test_what_is_carried_counts_for_all_groups(panda):
    """A rod in the hand, across the fingers: closing them is free, and so is the arm; opening them is not."""
    rod = messages.attached("rod", "panda_hand", (0.3, 0.02, 0.02), ["panda_link7"])
    rod.object.pose = messages.pose((0.0, 0.05, 0.09))
    panda.apply(messages.scene(attach=[rod]))
    for finger, valid in ((0.01, True), (0.04, False)):
        for group in ("hand", "panda_arm_hand"):
            answer = panda.ask("check_state_validity", group_name=group, robot_state=at(finger=finger))
            assert answer.valid == valid, (group, finger, answer.contacts)
    _, result = panda.move(motion("hand", messages.joint_goal([0.04], names=[FINGER]), begin=at()))
    assert result.error_code.val == CODES.GOAL_IN_COLLISION and "'rod'" in result.error_code.message
    planned(panda, "panda_arm", messages.joint_goal(LOW, names=ARM), begin=at())
    panda.apply(PlanningScene(name="empty", is_diff=False))
    planned(panda, "hand", messages.joint_goal([0.04], names=[FINGER]), begin=at())


def whole(moved, path, standing):
    """(K, 14) of both arms: one moves, the other stands."""
    rows = {side: path if side == moved else np.repeat([standing], len(path), axis=0) for side in SIDES}
    return np.concatenate([rows[side] for side in SIDES], axis=1)


@pytest.fixture(scope="module")
def coal(tmp_path_factory):
    """CoalScene of two Pandas, by the URDF and the SRDF's pairs."""
    folder = tmp_path_factory.mktemp("pandas")
    (folder / "two.urdf").write_text(TWO_URDF)
    (folder / "two.srdf").write_text(TWO_SRDF)
    return CoalScene(folder / "two.urdf", folder / "two.srdf", joints=[*TWO_ARMS["left"], *TWO_ARMS["right"]])


ACROSS = (0.6, 0.7, 0.0, -1.6, 0.0, 2.2, 0.8)  # of the right arm: reaches over to the left one's side
BEGIN, END = (-0.9, 0.3, 0.0, -2.0, 0.0, 2.2, 0.8), (0.9, 0.6, 0.0, -1.8, 0.0, 2.2, 0.8)


def of_both(left, right):
    return messages.state([*left, *right], [*TWO_ARMS["left"], *TWO_ARMS["right"]])


def test_an_arm_moves_around_the_other_one_wherever_that_stands(pandas, coal):
    """The left arm, while requests that name no group move the right one."""
    straight = np.array([BEGIN, END])
    assert coal.first_collision(whole("left", straight, ACROSS)) is not None
    for standing in (READY, ACROSS):
        goal = messages.joint_goal(END, names=TWO_ARMS["left"])
        names, path, _ = planned(pandas, "left_arm", goal, begin=of_both(BEGIN, standing))
        assert names == TWO_ARMS["left"]
        assert coal.first_collision(whole("left", path, standing)) is None
    names, path, _ = planned(
        pandas, "", messages.joint_goal(ACROSS, names=TWO_ARMS["right"]), begin=of_both(READY, READY)
    )
    assert names == TWO_ARMS["right"]


def test_two_arms_go_to_two_poses_at_once(pandas, coal):
    goals, both = (
        {"left": (0.4, 0.5, 0.2, -1.9, 0.1, 2.2, 0.6), "right": (-0.3, 0.4, 0.1, -2.1, 0.0, 2.3, 0.9)},
        Constraints(),
    )
    names = [*TWO_ARMS["left"], *TWO_ARMS["right"]]
    poses = pinocchio_poses(TWO_URDF, names, [[*goals["left"], *goals["right"]]])
    for side in SIDES:
        one = messages.pose_goal(f"{side}_panda_link8", poses[f"{side}_panda_link8"][0], "table")
        both.position_constraints += one.position_constraints
        both.orientation_constraints += one.orientation_constraints
    asked, path, _ = planned(pandas, "both_arms", both, begin=of_both(READY, READY), allowed_planning_time=20.0)
    assert asked == names and coal.first_collision(path) is None
    ends = pinocchio_poses(TWO_URDF, names, path[-1:])
    for side in SIDES:
        link = f"{side}_panda_link8"
        assert np.linalg.norm(ends[link][0, :3, 3] - poses[link][0, :3, 3]) < 1.1e-3
        assert (rotation_of(poses[link][0]).inv() * rotation_of(ends[link][0])).magnitude() < 2e-2


def test_two_tools_are_placed_at_once(pandas, coal):
    """compute_ik with a pose for each; poses at which the arms would meet have no solution."""
    names = [*TWO_ARMS["left"], *TWO_ARMS["right"]]
    links = [f"{side}_panda_link8" for side in SIDES]

    def ask(q, **fields):
        poses = pinocchio_poses(TWO_URDF, names, [q])
        asked = PositionIKRequest(group_name="both_arms", robot_state=of_both(READY, READY), ik_link_names=links)
        for link in links:
            T = poses[link][0]
            stamped = PoseStamped(pose=messages.pose(T[:3, 3], rotation_of(T)))
            stamped.header.frame_id = "table"
            asked.pose_stamped_vector.append(stamped)
        for name, value in fields.items():
            setattr(asked, name, value)
        answer = pandas.ask("compute_ik", ik_request=asked)
        return poses, answer, dict(zip(answer.solution.joint_state.name, answer.solution.joint_state.position))

    poses, answer, found = ask([0.4, 0.5, 0.2, -1.9, 0.1, 2.2, 0.6, *LOW], avoid_collisions=True)
    assert answer.error_code.val == CODES.SUCCESS, answer.error_code.message
    q = [found[name] for name in names]
    again = pinocchio_poses(TWO_URDF, names, [q])
    assert all(np.allclose(again[link][0], poses[link][0], atol=1e-5) for link in links)
    assert not coal.in_collision(q)
    wrist_in_wrist = [-0.6, 0.7, 0.0, -1.6, 0.0, 2.2, 0.8, *ACROSS]
    assert coal.in_collision(wrist_in_wrist)
    assert ask(wrist_in_wrist, avoid_collisions=True)[1].error_code.val == CODES.NO_IK_SOLUTION
    assert ask(wrist_in_wrist)[1].error_code.val == CODES.SUCCESS
    for wrong in (links[:1], [links[0]] * 2, [links[0], "left_panda_link5"]):
        answer = ask(READY + READY, ik_link_names=wrong)[1]
        assert answer.error_code.val == CODES.INVALID_LINK_NAME


def test_the_arms_of_a_real_robot(start_node):
    """Baxter: the left arm wherever the right one stands, and both to two poses; judged by coal."""
    files, rig = groups_of("baxter"), maker_of("baxter").rig
    folder, urdf = [str(files["package_dirs"][0])], rig.urdf.read_text()
    node = start_node(urdf=urdf, srdf=files["srdf"], group="right_arm", package_dirs=folder)
    robot = load_urdf(group="both_arms", **files)
    names, left = list(robot.joint_names), load_urdf(group="left_arm", **files).joint_names
    coal, rng = rig.coal_scene([]), np.random.default_rng(4)
    order, moves = [names.index(joint) for joint in rig.model.joint_names], np.isin(names, left)

    def drawn(like=None):
        while True:
            q = rng.uniform(robot.lower, robot.upper)
            q = q if like is None else np.where(moves, q, like)
            if coal.distance(q[order]) > 0.02:
                return q

    for _ in range(4):
        begin = drawn()
        end = drawn(begin)
        goal = messages.joint_goal(end[moves], names=left)
        planned_joints, path, _ = planned(node, "left_arm", goal, begin=messages.state(begin, names))
        assert planned_joints == list(left)
        whole = np.repeat([begin], len(path), axis=0)
        whole[:, moves] = path
        assert coal.first_collision(whole[:, order]) is None
        both, tips = Constraints(), [f"{side}_gripper" for side in SIDES]
        poses = pinocchio_poses(urdf, names, [end])
        for tip in tips:
            one = messages.pose_goal(tip, poses[tip][0], robot.root_link)
            both.position_constraints += one.position_constraints
            both.orientation_constraints += one.orientation_constraints
        _, path, _ = planned(node, "both_arms", both, begin=messages.state(begin, names), allowed_planning_time=10.0)
        assert coal.first_collision(path[:, order]) is None
        again = pinocchio_poses(urdf, names, path[-1:])
        assert all(np.linalg.norm((again[tip] - poses[tip])[0, :3, 3]) < 1.1e-3 for tip in tips)


def test_groups_come_by_topic_and_are_published_where_nobody_does(start):
    node = start(srdf="")
    assert (
        node.move(motion("nonsense", messages.joint_goal([*LOW, 0.01], names=[*ARM, FINGER]), begin=at()))[
            1
        ].error_code.val
        == CODES.SUCCESS
    )
    node.publisher(String, f"/{TOPIC}", LATCHED).publish(String(data=SRDF))
    node.wait_until(lambda: node.node.scene.robot.groups)
    assert planned(node, "hand", messages.joint_goal([0.03], names=[FINGER]), begin=at())[0] == [FINGER]
    node.publisher(String, f"/{TOPIC}", LATCHED).publish(String(data="nonsense"))
    node.wait_until(lambda: "robot_description_semantic was refused" in node.problem)
    assert "nonsense" not in node.node._texts.values()  # it is not loaded with the next description either
    assert planned(node, "hand", messages.joint_goal([0.03], names=[FINGER]), begin=at())[0] == [FINGER]
    other = start(group="panda_arm")
    texts = other.received(String, f"/{TOPIC}", LATCHED)
    other.wait_until(lambda: texts, timeout=20)
    assert texts[0].data == SRDF
