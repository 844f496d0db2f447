"""MoveIt's interfaces of the arm node: actions that plan and execute, services, topics of the scene.

All of them read and change the node's one scene, on the worker, in the order in which they arrive.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from moveit_msgs import srv
from moveit_msgs.action import ExecuteTrajectory, MoveGroup, MoveGroupSequence
from moveit_msgs.msg import (
    Constraints,
    DisplayTrajectory,
    MotionSequenceResponse,
    PlannerInterfaceDescription,
    PlanningScene,
    RobotState,
)

from ...arm import CollisionChecker
from ...compiling import KEEPING
from ...errors import error_text
from ..arm import codes, in_hands
from ..arm.arm_services import ArmServices, Planned
from ..arm.move_run import MotionUnderWay, Task, TaskPlan
from ..arm.parameters import PLANNERS
from ..common.actions import Longer
from ..common.request_error import RequestError
from ..common.ros import optional_module
from . import answers, cartesian_path, planner_params, planning, sequences
from . import scene_messages as scenes
from .answers import code_message
from .constraints import is_empty
from .given_motion import given_motion
from .reference import Reference
from .requests import INDUSTRIAL, SOURCE, MotionQuery, kind_of
from .scene_server import SceneServer
from .solutions import SolutionRun
from .standing import check_standing

START_TOLERANCE = 0.01  # rad or m, MoveIt's allowed_start_tolerance
STATES = {"planning": "PLANNING", "moving": "MONITOR", "stopping": "MONITOR"}  # as MoveIt's feedback names them


class MoveItServer:
    """Actions, services and topics of MoveIt on the arm node."""

    def __init__(self, arm: ArmServices) -> None:
        self._arm, self._scene, node = arm, arm.scene, arm.node
        self._logger = node.get_logger()
        self._changes = SceneServer(arm)
        self._whole = arm.values.moveit_interface == "all"
        self._paths = node.create_publisher(DisplayTrajectory, "display_planned_path", 10)
        self._group = self._act(MoveGroup, arm.values.move_group_action, "move_group", self._move)
        if not self._whole:
            return
        self._trajectories = self._act(ExecuteTrajectory, "execute_trajectory", "execute_trajectory", self._execute)
        self._sequences = self._act(MoveGroupSequence, "sequence_move_group", "sequence_move_group", self._move_through)
        for action in (self._group, self._sequences):
            arm.executing.on_stop(partial(action.cancel_all, lambda goal: not goal.request.planning_options.plan_only))
        arm.executing.on_stop(self._trajectories.cancel_all)
        name = "execute_task_solution"
        task_constructor, missing = optional_module("moveit_task_constructor_msgs.action", name)
        if task_constructor:
            self._solution_type = task_constructor.ExecuteTaskSolution
            self._solutions = self._act(self._solution_type, name, name, self._execute_solution)
            arm.executing.on_stop(self._solutions.cancel_all)
        else:
            self._logger.info(missing)
        services: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
            (srv.GetMotionPlan, "plan_kinematic_path", self._plan_path),
            (srv.GetMotionSequence, "plan_sequence_path", self._plan_sequence),
            (srv.GetCartesianPath, "compute_cartesian_path", self._follow),
            (srv.GetPositionIK, "compute_ik", self._place),
            (srv.GetPositionFK, "compute_fk", self._find_links),
            (srv.GetStateValidity, "check_state_validity", self._judge),
            (srv.QueryPlannerInterfaces, "query_planner_interface", self._list),
            *self._changes.offer(),
        )
        for kind, name, answer in services:
            node.serve(kind, name, answer, partial(self._refused, kind, name))
        # at once, as parameters are told and changed
        for kind, name, answer in (
            (srv.GetPlannerParams, "get_planner_params", self._tell_params),
            (srv.SetPlannerParams, "set_planner_params", self._set_params),
        ):
            node.create_service(kind, name, planner_params.answered(name, node, answer))

    def _act(self, kind, topic, name, answer):
        """Offer an action. name: what the log calls it"""
        return self._arm.node.act(
            kind,
            topic,
            answer,
            lambda error: _with_code(kind.Result(), self._code_of(error, name)),
            lambda: _with_code(kind.Result(), code_message(codes.PREEMPTED, "cancelled")),
        )

    def _refused(self, kind, name, error):
        """The response of a service to a request that failed; some have no error_code."""
        return _with_code(kind.Response(), self._code_of(error, name))

    def _code_of(self, error, what):
        text = error_text(error)
        self._logger.warning(f"{what}: {text}")
        return code_message(codes.code_of(error), text)

    # ---- plans ----

    def _move(self, goal):
        request, diff = goal.request.request, goal.request.planning_options.planning_scene_diff

        def planned():
            motion, start, robot = self._planned(request, diff)
            result = MoveGroup.Result(
                trajectory_start=start,
                planned_trajectory=motion.trajectory,
                planning_time=motion.planning_time_s,
                error_code=self._succeeded("move_group", motion),
            )
            return result, motion, robot

        return self._plan_or_move(goal, MoveGroup, self._group, request, request.group_name, planned)

    def _move_through(self, goal):
        items, diff = goal.request.request.items, goal.request.planning_options.planning_scene_diff
        if not items:
            return MoveGroupSequence.Result(response=self._nothing_asked()), True

        def planned():
            motion, start, robot = self._planned_through(items, diff)
            response = self._sequence_response("sequence_move_group", motion, start)
            return MoveGroupSequence.Result(response=response), motion, robot

        group = sequences.group_of(items)
        return self._plan_or_move(goal, MoveGroupSequence, self._sequences, items[0].req, group, planned)

    def _plan_sequence(self, request, response):
        response.response = self._nothing_asked()
        if items := request.request.items:
            motion, start, _ = self._planned_through(items, PlanningScene())
            response.response = self._sequence_response("plan_sequence_path", motion, start)
        return response

    def _nothing_asked(self):
        """As in MoveIt a sequence of no items succeeds."""
        return MotionSequenceResponse(error_code=code_message(codes.SUCCESS, "the sequence has no items"))

    def _sequence_response(self, what, motion, start):
        return MotionSequenceResponse(
            sequence_start=start,
            planned_trajectories=[motion.trajectory],
            planning_time=motion.planning_time_s,
            error_code=self._succeeded(what, motion),
        )

    def _planned_through(self, items, diff):
        """As `_planned`, of the items of a MotionSequenceRequest."""
        values, group = self._arm.values, self._scene.group_named(sequences.group_of(items))
        sequences.check_items(items, values)
        request, planner = sequences.first_request(items, values)
        query = self._query(request, group, planner, scenes.is_empty(diff) or diff.is_diff, diff)
        in_hands.refuse(query.reference.objects, query.checker.robot, "a sequence")
        motion = sequences.plan(query, items)
        return motion, self._shown(motion, query), query.checker.robot

    def _plan_path(self, request, response):
        motion, start, _ = self._planned(request.motion_plan_request, PlanningScene())
        answer = response.motion_plan_response
        answer.trajectory_start, answer.trajectory = start, motion.trajectory
        answer.group_name, answer.planning_time = request.motion_plan_request.group_name, motion.planning_time_s
        answer.error_code = self._succeeded("plan_kinematic_path", motion)
        return response

    def _planned(self, request, diff):
        """(PlannedMotion, RobotState of its start, RobotModel) of a MotionPlanRequest in the scene with a diff."""
        group = self._scene.group_named(request.group_name)
        planning.check_request(request, self._arm.values)
        scene_counts = scenes.is_empty(diff) or diff.is_diff
        keeps = not is_empty(request.path_constraints) or self._scene.in_several_hands(group)
        query = self._query(request, group, kind_of(request, self._arm.values), scene_counts, diff, keeps)
        motion = planning.plan(query)
        return motion, self._shown(motion, query), query.checker.robot

    def _follow(self, request, response):
        group = self._scene.group_named(request.group_name)
        cartesian_path.check_request(request, self._arm.values)
        query = self._query(request, group, "", request.avoid_collisions)
        motion, response.fraction = cartesian_path.plan(query)
        response.start_state = self._shown(motion, query)
        response.solution, response.error_code = motion.trajectory, self._succeeded("compute_cartesian_path", motion)
        return response

    def _query(self, request, group, planner, scene_counts, diff=None, keeps=False):
        """MotionQuery of a request to plan. group: as of PlanningScene.group_named; planner: if any of PLANNERS
        keeps: does a free motion keep something all along?
        scene_counts: does the node's scene count? Then it must be known"""
        values = self._arm.values
        if scene_counts:
            self._arm.require_known_scene()
        search = values.planner if planner not in PLANNERS else KEEPING if keeps else planner
        self._arm.prepare_planner(search, group)
        reference = self._state_of(request.start_state, "the start state", group, diff)
        if getattr(request, "avoid_collisions", True):
            checker = self._checker(reference, group)
        else:
            checker = cartesian_path.blind_checker(reference.robot, values.device)
        if planner not in PLANNERS:
            in_hands.refuse(reference.objects, checker.robot, planner or "a Cartesian path")
        start = scenes.complete(checker.robot, reference.positions, "the start state")
        return MotionQuery(request, values, checker, reference, start, self._scene.limits)

    def _shown(self, motion, query):
        """Show a motion -> the RobotState of its start."""
        robot, objects = query.checker.robot, query.reference.objects
        start = scenes.state_message(query.reference, query.reference.positions, objects)
        if self._paths.get_subscription_count():
            trajectory = [motion.trajectory]
            self._paths.publish(DisplayTrajectory(model_id=robot.name, trajectory=trajectory, trajectory_start=start))
        self._arm.display.show_motion(Planned(motion.path, robot, objects), motion.trajectory.joint_trajectory)
        return start

    def _succeeded(self, what, motion):
        self._logger.info(f"{what}: {motion.text}")
        return code_message(codes.SUCCESS, motion.text)

    # ---- motions that are executed, as those of ~/move ----

    def _plan_or_move(self, goal, kind, action, first, named, planned):
        """Plan a goal of MoveGroup or MoveGroupSequence, or execute it too.

        first: the request that says where the motion starts: as in MoveIt, where the robot is if it is executed
        named: its group
        planned: called for (result, PlannedMotion, RobotModel)
        """
        options, result = goal.request.planning_options, kind.Result()
        if options.plan_only or not self._whole:
            goal.publish_feedback(kind.Feedback(state="PLANNING"))
            return planned()[0], True
        group = self._scene.group_named(named)

        def plan(start=None):
            nonlocal result
            first.start_state = RobotState(is_diff=True)
            if start is not None:
                first.start_state.joint_state = start
            result, motion, robot = planned()
            trajectory = motion.trajectory.joint_trajectory
            under_way = MotionUnderWay.planned(
                trajectory, robot, self._scene.objects, self._margin(self._changes.beside)
            )
            return TaskPlan(codes.SUCCESS, motion.text, under_way, trajectory, group=group)

        def end(code, message, _, plans):
            if code == codes.CONTROL_FAILED and not plans:
                message += "; a goal with plan_only is planned all the same"
            if code == codes.SUCCESS and kind is MoveGroup:
                result.executed_trajectory = result.planned_trajectory
            action.end(goal, _with_code(result, code_message(code, message)), code == codes.SUCCESS)

        replans = max(options.replan_attempts, 0) * bool(options.replan)
        replaces = self._arm.values.goals_while_moving == "all"
        # the way from a motion under way keeps to no line, and to no constraint
        bound = kind is not MoveGroup or first.planner_id in INDUSTRIAL or first.path_constraints != Constraints()
        bound = bound or self._scene.in_several_hands(group)
        told, plan_from = _feedback(goal, kind), None if bound else plan
        task = Task("move_group", replans, plan, told, end, group=group, plan_from=plan_from, replaces=replaces)
        return self._longer(task)

    def _execute(self, goal):
        """Execute a motion that was planned before, by whomever."""
        group = self._scene.group_of_joints(goal.request.trajectory.joint_trajectory.joint_names)
        self._check_controllers(getattr(goal.request, "controller_names", ()), group)

        def end(code, message, *_):
            result = ExecuteTrajectory.Result(error_code=code_message(code, message))
            self._trajectories.end(goal, result, code == codes.SUCCESS)

        plan = partial(given_motion, self._arm, goal.request.trajectory, self._margin(self._changes.beside))
        return self._longer(Task("execute_trajectory", 0, plan, _feedback(goal, ExecuteTrajectory), end, group=group))

    def _execute_solution(self, goal):
        """Execute a solution of MoveIt Task Constructor."""

        def feed_back(number, count):
            goal.publish_feedback(self._solution_type.Feedback(sub_id=number, sub_no=count))

        def end(code, message, *_):
            result = self._solution_type.Result(error_code=code_message(code, message))
            self._solutions.end(goal, result, code == codes.SUCCESS)

        parts, margin = goal.request.solution.sub_trajectory, lambda: self._margin(self._changes.beside)
        run = SolutionRun(self._arm, parts, margin, self._changes.apply, feed_back)
        group = run.check(self._check_controllers)
        return self._longer(Task("execute_task_solution", 0, run.plan, lambda *_: None, end, goes_on=True, group=group))

    def _check_controllers(self, names, group):
        """RequestError where names are given, and none of them is the group's controller."""
        own, asked = self._arm.executing.controller_of(group), list(names)
        if asked and not any(f"/{name.strip('/')}/" in f"/{own.name.strip('/')}/" for name in asked):
            text = own.missing or f"the joints have one controller: '{own.name}', {own.source}"
            raise RequestError(codes.CONTROL_FAILED, f"controller_names are {asked}; {text}")

    def _longer(self, task):
        return Longer(partial(self._arm.executing.start, task), partial(self._arm.executing.cancel, task))

    # ---- queries ----

    def _place(self, request, response):
        ik = request.ik_request
        group = self._scene.group_named(ik.group_name)
        reference = self._state_of(ik.robot_state, "the robot_state", group)
        checker = self._checker(reference, group) if ik.avoid_collisions else None
        return answers.inverse_kinematics(ik, checker, reference, reference.robot.tip_link)

    def _find_links(self, request, response):
        return answers.forward_kinematics(request, self._state_of(request.robot_state, "the robot_state"))

    def _judge(self, request, response):
        group = self._scene.group_named(request.group_name)
        reference = self._state_of(request.robot_state, "the robot_state", group)
        return answers.validity(request, self._checker(reference, group), reference)

    def _list(self, request, response):
        response.planner_interfaces = [
            PlannerInterfaceDescription(name=SOURCE, pipeline_id=SOURCE, planner_ids=[*PLANNERS, *INDUSTRIAL])
        ]
        return response

    def _tell_params(self, request, response):
        response.params = planner_params.params_message(request, self._arm.values, self._groups())

    def _set_params(self, request, response):
        planner_params.change(request, self._arm.values, self._groups(), self._arm.node)

    def _groups(self):
        robot = self._scene.robot
        return () if robot is None else robot.groups

    # ---- what requests see ----

    def _state_of(self, message, what, group="", diff=None):
        """Reference of a RobotState over what is measured, in the scene with a diff; its robot is that of a group."""
        scene, robot = self._scene, self._scene.require_robot()
        state = Reference(robot, scene.frames, scene.objects, self._arm.measured() or {}, self._changes.beside)
        if diff is not None:
            state = scenes.apply(diff, state)
        check_standing(message.multi_dof_joint_state, state, what)
        positions = scenes.read_positions(message, robot, state.positions, what)
        robot = scene.robot_among(scene.objects, positions, group)  # of this query alone
        reference = Reference(robot, scene.frames_of(robot), state.objects, positions, state.beside)
        return reference.with_objects(scenes.read_carried(message, reference))

    def _margin(self, beside):
        """Metres kept from obstacles: the larger of the node's margin and the scene's padding."""
        return max(beside.margin, self._arm.values.margin)

    def _checker(self, reference, group) -> CollisionChecker:
        return self._scene.checker_for(reference.objects, self._margin(reference.beside), reference.positions, group)


def _feedback(goal, kind):
    return lambda state, *_: goal.publish_feedback(kind.Feedback(state=STATES[state]))


def _with_code(message, code):
    """A result or response with an error code, where it has one."""
    answer = getattr(message, "motion_plan_response", getattr(message, "response", message))
    if hasattr(answer, "error_code"):
        answer.error_code = code
    return message
