"""MotionConstraints of ~/plan_motion: the motion keeps them, and what cannot be kept is refused by name."""

from math import inf, nan

import numpy as np
import pytest
from geometry_msgs.msg import Point, Vector3
from node_harness import GROUP, ROBOT, RunningNode, joints, pose_goal, request
from running_node import shared, starter
from scipy.spatial.transform import Rotation

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.nodes.arm.conversions import path_of
from gpu_planners.share import share_folder
from gpu_planners_msgs import msg
from gpu_planners_msgs.action import Move
from gpu_planners_msgs.srv import PlanMotion

if not hasattr(msg, "MotionConstraint"):
    pytest.skip("gpu_planners_msgs was built before it had MotionConstraint", allow_module_level=True)
from gpu_planners_msgs.msg import MotionConstraint

R = PlanMotion.Response
DESK_ARM = share_folder() / "urdf" / "desk_arm.urdf"
GOALS = (1.0, 0.5, 0.0), (0.8, -0.8, 0.0)  # only in the second one the hand is turned as at the start
TURNED = (0.0, 0.0, np.sin(np.pi / 4), np.cos(np.pi / 4))  # the hand at the start, in the plate's frame
node_of_module, running = shared(lambda: RunningNode(tip_link="hand"))
start_node = starter(RunningNode)


def constraint(tolerances=(0.2, 0.2, 0.2), lower=(0, 0, 0), upper=(0, 0, 0), frame="plate", **fields):
    x, y, z = map(float, tolerances)
    ends = {
        name: Point(x=float(p[0]), y=float(p[1]), z=float(p[2])) for name, p in (("lower", lower), ("upper", upper))
    }
    pose = pose_goal((0, 0, 0), frame, TURNED)
    return MotionConstraint(pose=pose, tolerances=Vector3(x=x, y=y, z=z), **ends, **fields)


def test_a_motion_keeps_its_constraints(running):
    """The hand is turned by little and stays beyond a plane, and the elbow stays in a range."""
    robot = load_urdf(ROBOT, joints=GROUP)
    asked = [
        constraint(lower=(0.6, -inf, -inf), upper=(inf, inf, inf)),
        constraint((0, 0, 0), joint_names=["elbow"], joint_lower=[-0.9], joint_upper=[0.1]),
    ]
    response = running.plan(request(goals=GOALS, constraints=asked))
    assert response.code == R.SUCCESS and response.goal_index == 1, response.message
    path = path_of(response.path)
    way = np.concatenate([np.linspace(a, b, 50) for a, b in zip(path, path[1:])])
    T = robot.link_poses(way)["hand"]
    turned = np.arctan2(T[:, 1, 0], T[:, 0, 0]) - np.pi / 2
    assert np.abs(turned).max() <= 0.2 and T[:, 1, 3].min() >= 0.6 and way[:, 1].min() >= -0.9
    free = running.plan(request(goals=GOALS))
    assert free.code == R.SUCCESS


@pytest.mark.parametrize(
    "fields, code, words",
    [
        ({"planner": "prm"}, R.FAILURE, "'prm' keeps no constraints"),
        ({"constraints": [constraint((0, 0, 0))]}, R.FAILURE, "constraint 0 constrains nothing"),
        ({"constraints": [constraint(), constraint(link="nose")]}, R.FAILURE, "constraint 1: "),
        ({"constraints": [constraint((nan, 0.1, 0.1))]}, R.FAILURE, "tolerances"),
        ({"constraints": [constraint((0.1, 0.1, 1e-5))]}, R.FAILURE, "tolerances"),
        ({"constraints": [constraint(lower=(1, 0, 0))]}, R.FAILURE, "lower"),
        ({"constraints": [constraint(joint_names=["elbow"])]}, R.FAILURE, "1 joint_names, 0 joint_lower"),
        (
            {"constraints": [constraint(joint_names=["knee"], joint_lower=[0.0], joint_upper=[1.0])]},
            R.FAILURE,
            "'knee' is no planning joint",
        ),
        ({"constraints": [constraint(frame="moon")]}, R.FRAME_TRANSFORM_FAILURE, "moon"),
        ({"start": joints((0.5, 0.0, 0.0))}, R.START_STATE_INVALID, "the start does not keep the constraints"),
        ({"goals": GOALS[:1]}, R.GOAL_STATE_INVALID, "goal 0 does not keep the constraints"),
    ],
)
def test_what_cannot_be_kept_is_refused(running, fields, code, words):
    others = {name: value for name, value in fields.items() if name != "start"}
    asked = request(**({"goals": GOALS[1:], "constraints": [constraint()]} | others))
    asked.start = fields.get("start", asked.start)
    response = running.plan(asked)
    assert response.code == code and words in response.message, response.message


def test_a_moving_robot_may_be_asked_to_keep_them_too():
    assert "constraints" in Move.Goal.get_fields_and_field_types()


def test_a_pose_goal_is_reached_in_a_posture_that_keeps_the_constraints(start_node):
    """The posture nearest to the start does not; one is looked for, whatever number of goals is asked for."""
    robot, rng = load_urdf(DESK_ARM, DESK_ARM.with_suffix(".srdf")), np.random.default_rng(0)
    start, elbow, checker = np.zeros(robot.dof), 2, CollisionChecker(robot, CollisionWorld(), "cpu")
    while True:
        q = rng.uniform(-1.0, 1.0, robot.dof)
        found = robot.inverse_kinematics(robot.link_poses(q)[robot.tip_link], checker, seed_q=start, solutions=8)[0].q
        keeps = np.sign(found[:, elbow]) != np.sign(found[0, elbow]) if len(found) else np.zeros(1, bool)
        if keeps.any():
            break
    low, high = (-3.0, 0.01) if found[0, elbow] > 0 else (-0.01, 3.0)
    node = start_node(DESK_ARM.read_text(), joints=list(robot.joint_names), ik_solutions=1)
    T = robot.link_poses(q)[robot.tip_link][0]
    goal = pose_goal(T[:3, 3], robot.root_link, Rotation.from_matrix(T[:3, :3]).as_quat())
    kept = MotionConstraint(joint_names=[robot.joint_names[elbow]], joint_lower=[low], joint_upper=[high])
    asked = PlanMotion.Request(pose_goals=[goal], constraints=[kept], start=joints(start, robot.joint_names))
    response = node.plan(asked)
    assert response.code == R.SUCCESS, response.message
    path = path_of(response.path)
    assert path[:, elbow].min() >= low - 1e-9 and path[:, elbow].max() <= high + 1e-9
