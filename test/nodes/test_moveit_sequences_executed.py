"""sequence_move_group and execute_task_solution, executed by the player over real DDS, watched and stopped."""

import pytest

pytest.importorskip("moveit_msgs.action", reason="the ROS package moveit_msgs is not installed")

import moveit_messages as messages
import numpy as np
from action_msgs.msg import GoalStatus
from moveit_msgs.action import MoveGroupSequence
from moveit_msgs.msg import CollisionObject, MotionSequenceItem, MotionSequenceRequest, PlanningScene, RobotTrajectory
from moveit_msgs.srv import ApplyPlanningScene
from node_harness import GROUP
from running_node import LATCHED, shared
from test_move_node import HOME, block_at
from test_moveit_execution import CODES, Goal, MoveItDesk

pytestmark = pytest.mark.timeout(600)
node_of_module, desk = shared(MoveItDesk)
FIRST, SECOND = (0.6, 0.3, 0.1), (1.2, 0.0, 0.0)


def through(desk, *goals, plan_only=False, radius=0.0, **fields):
    items = []
    for number, q in enumerate(goals):
        request = messages.motion_request(messages.joint_goal(q), start=None, planner_id="PTP", **fields)
        last = number == len(goals) - 1
        items.append(MotionSequenceItem(req=request, blend_radius=0.0 if last else radius))
    goal = MoveGroupSequence.Goal(request=MotionSequenceRequest(items=items))
    goal.planning_options.plan_only = plan_only
    return Goal(desk, MoveGroupSequence, "sequence_move_group", goal)


def passed(desk, q):
    """Has the robot been near a configuration?"""
    return min(np.abs(place - q).max() for _, place in desk.seen) < 0.02


def test_a_sequence_moves_the_robot(desk):
    goal = through(desk, FIRST, SECOND)
    status, result = goal.wait()
    assert status == GoalStatus.STATUS_SUCCEEDED and result.response.error_code.val == CODES.SUCCESS
    assert len(result.response.planned_trajectories) == 1 and {"PLANNING", "MONITOR"} <= set(goal.states)
    desk.wait_until(lambda: np.allclose(desk.place(), SECOND, atol=1e-3), timeout=5)
    assert passed(desk, FIRST)


def test_a_sequence_that_is_only_planned_moves_nothing(desk):
    status, result = through(desk, FIRST, SECOND, plan_only=True).wait()
    assert status == GoalStatus.STATUS_SUCCEEDED and result.response.planned_trajectories
    assert np.abs(desk.rest() - HOME).max() < 1e-3
    status, result = through(desk).wait()
    assert status == GoalStatus.STATUS_SUCCEEDED and "no items" in result.response.error_code.message


def test_a_sequence_is_stopped_by_an_obstacle_and_by_a_cancel(desk):
    goal = through(desk, FIRST, (2.5, 0.0, 0.0), max_velocity_scaling_factor=0.3)
    desk.moved(0.3)
    desk.publish_obstacles(block_at(2.0))
    status, result = goal.wait()
    assert status == GoalStatus.STATUS_ABORTED
    assert result.response.error_code.val == CODES.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE
    desk.rest()
    goal = through(desk, HOME, max_velocity_scaling_factor=0.3)
    desk.wait_until(lambda: "MONITOR" in goal.states)
    goal.handle.cancel_goal_async()
    status, result = goal.wait()
    assert status == GoalStatus.STATUS_CANCELED and result.response.error_code.val == CODES.PREEMPTED


# ---- MoveIt Task Constructor ----


@pytest.fixture
def constructor():
    name = "moveit_task_constructor_msgs"
    pytest.importorskip(f"{name}.action", reason=f"the ROS package {name} is not installed")
    from moveit_task_constructor_msgs import action, msg

    return action, msg


def solve(desk, constructor, *parts):
    action, msg = constructor
    message = msg.Solution(task_id="test")
    for trajectory, diff, controllers in parts:
        part = msg.SubTrajectory(scene_diff=diff or PlanningScene(is_diff=True))
        if trajectory is not None:
            part.trajectory = RobotTrajectory(joint_trajectory=trajectory)
        part.execution_info.controller_names = controllers
        message.sub_trajectory.append(part)
    goal = action.ExecuteTaskSolution.Goal(solution=message)
    return Goal(desk, action.ExecuteTaskSolution, "execute_task_solution", goal)


@pytest.fixture
def cleared(desk):
    yield
    client = desk.client_node.create_client(ApplyPlanningScene, "apply_planning_scene")
    assert desk.call(client, ApplyPlanningScene.Request(scene=PlanningScene(name="empty", is_diff=False))).success


def scene_diff(*objects, attach=()):
    """As Task Constructor sends it: with joints, which do not count."""
    message = messages.scene(*objects, attach=attach)
    message.robot_state.joint_state = messages.state((9.0, 9.0, 9.0)).joint_state
    return message


def test_a_solution_is_executed_with_its_scenes(desk, constructor, cleared):
    cup = messages.box("cup", (0.05, 0.05, 0.05), (0.0, 2.0, 0.3))
    grasped = messages.attached("tool", size=(0.02, 0.02, 0.1))
    shown = desk.received(PlanningScene, "/monitored_planning_scene", LATCHED)
    goal = solve(
        desk,
        constructor,
        (None, scene_diff(cup), []),
        (desk.planned(FIRST), scene_diff(attach=[grasped]), ["joint_trajectory_controller"]),
        (desk.planned(SECOND, start=FIRST), None, []),
        (None, scene_diff(attach=[messages.attached("tool", operation=CollisionObject.REMOVE)]), []),
    )
    status, result = goal.wait()
    assert status == GoalStatus.STATUS_SUCCEEDED, result.error_code.message
    assert result.error_code.val == CODES.SUCCESS and "4 sub trajectories" in result.error_code.message
    assert [(one.sub_id, one.sub_no) for one in goal.states] == [(i, 4) for i in range(4)]
    desk.wait_until(lambda: np.allclose(desk.place(), SECOND, atol=1e-3), timeout=5)
    assert passed(desk, FIRST)
    assert any(one.robot_state.attached_collision_objects for one in shown)  # while the second motion went on
    desk.wait_until(lambda: {one.id for one in shown[-1].world.collision_objects} == {"cup", "tool"}, timeout=5)


def test_what_no_controller_can_do_is_refused_before_anything_moves(desk, constructor):
    gripper = desk.planned(FIRST)
    gripper.joint_names = ["slide", *GROUP[1:]]
    for part, code, words in (
        ((gripper, None, []), CODES.INVALID_MOTION_PLAN, "slide"),
        ((desk.planned(FIRST), None, ["gripper_controller"]), CODES.CONTROL_FAILED, "gripper_controller"),
    ):
        status, result = solve(desk, constructor, (desk.planned(FIRST), None, []), part).wait()
        assert status == GoalStatus.STATUS_ABORTED and result.error_code.val == code
        assert "sub_trajectory 1 of 2" in result.error_code.message and words in result.error_code.message
    assert np.abs(desk.rest() - HOME).max() < 1e-3


def test_a_solution_ends_where_a_part_is_refused(desk, constructor, cleared):
    unknown = scene_diff(messages.box("ghost", operation=CollisionObject.REMOVE))
    goal = solve(desk, constructor, (desk.planned(FIRST), unknown, []), (desk.planned(SECOND, start=FIRST), None, []))
    status, result = goal.wait()
    assert status == GoalStatus.STATUS_ABORTED and result.error_code.val == CODES.INVALID_OBJECT_NAME
    assert "sub_trajectory 0 of 2, which was executed" in result.error_code.message
    desk.wait_until(lambda: np.allclose(desk.place(), FIRST, atol=1e-3), timeout=5)
    goal = solve(desk, constructor, (desk.planned(SECOND), None, []))  # it begins elsewhere
    status, result = goal.wait()
    assert result.error_code.val == CODES.INVALID_MOTION_PLAN and "sub_trajectory 0 of 1" in result.error_code.message


def test_what_a_scene_puts_in_the_way_stops_the_next_part(desk, constructor, cleared):
    wall = messages.box("wall", (0.1, 0.1, 0.6), (-0.9 * np.sin(0.9), 0.9 * np.cos(0.9), 0.1))
    second = desk.planned((2.5, 0.0, 0.0), start=(0.0, 0.1, 0.0))
    goal = solve(desk, constructor, (desk.planned((0.0, 0.1, 0.0)), scene_diff(wall), []), (second, None, []))
    status, result = goal.wait()
    assert status == GoalStatus.STATUS_ABORTED and result.error_code.val == CODES.INVALID_MOTION_PLAN
    assert "sub_trajectory 1 of 2" in result.error_code.message and "'wall'" in result.error_code.message


def test_a_cancel_stops_a_solution(desk, constructor):
    goal = solve(
        desk, constructor, (desk.planned((2.5, 0.0, 0.0)), None, []), (desk.planned(HOME, (2.5, 0, 0)), None, [])
    )
    desk.moved(0.3)
    goal.handle.cancel_goal_async()
    status, result = goal.wait()
    assert status == GoalStatus.STATUS_CANCELED and result.error_code.val == CODES.PREEMPTED
    assert 0.3 < desk.rest()[0] < 2.4
