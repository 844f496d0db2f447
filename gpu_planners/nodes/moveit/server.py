"""MoveIt's interfaces of the arm node: the actions MoveGroup and ExecuteTrajectory, services, topics of the scene.

All of them read and change the node's one scene, on the worker, in the order in which they arrive.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from moveit_msgs.action import ExecuteTrajectory, MoveGroup
from moveit_msgs.msg import (
    AttachedCollisionObject,
    CollisionObject,
    DisplayTrajectory,
    PlannerInterfaceDescription,
    PlanningScene,
    PlanningSceneWorld,
    RobotState,
)
from moveit_msgs.srv import (
    ApplyPlanningScene,
    GetCartesianPath,
    GetMotionPlan,
    GetPlanningScene,
    GetPositionFK,
    GetPositionIK,
    GetStateValidity,
    QueryPlannerInterfaces,
)
from rclpy.qos import QoSProfile

from ...arm import CollisionChecker
from ..arm import codes
from ..arm.arm_services import ArmServices, Planned
from ..arm.move_run import MotionUnderWay, TaskPlan
from ..arm.parameters import PLANNERS
from ..common.diagnostics import steady_clock
from ..common.qos import LATCHED
from ..common.request_error import RequestError, error_text
from ..common.services import Longer
from . import answers, cartesian_path, planning
from . import objects as object_messages
from .answers import SOURCE, code_message
from .execution import ExecuteTask, MoveGroupTask
from .planner_names import INDUSTRIAL, kind_of
from .reference import Reference
from .scene_messages import EVERYTHING, Beside, KnownFrames, apply, is_empty, scene_message
from .states import State, complete, read_carried, read_positions, state_message

CHANGES = QoSProfile(depth=100)  # of topics that change the scene
MOST_WAITING = 1000  # messages kept for a robot that has not come yet
SHOW_EVERY_S = 0.1  # monitored_planning_scene, while the scene changes


class MoveItServer:
    """Action, services and topics of MoveIt on the arm node."""

    def __init__(self, arm: ArmServices) -> None:
        self._arm, self._scene, node = arm, arm.scene, arm.node
        self._logger = node.get_logger()
        self._beside, self._published = Beside(), (None, None)
        self._waiting: list[tuple[str, Callable[[Any], None], Any]] = []
        self._whole = arm.values.moveit_interface == "all"
        self._paths = node.create_publisher(DisplayTrajectory, "display_planned_path", 10)
        self._group = node.act(
            MoveGroup, arm.values.move_group_action, self._move, self._move_refused, self._move_cancelled
        )
        if not self._whole:
            return
        self._trajectories = node.act(
            ExecuteTrajectory, "execute_trajectory", self._execute, self._execute_refused, self._execute_cancelled
        )
        self._scenes = node.create_publisher(PlanningScene, "monitored_planning_scene", LATCHED)
        services: tuple[tuple[Any, str, Callable[..., Any], Callable[[Exception], Any]], ...] = (
            (GetMotionPlan, "plan_kinematic_path", self._plan_path, self._plan_path_refused),
            (GetCartesianPath, "compute_cartesian_path", self._follow, self._refused_with_code(GetCartesianPath)),
            (GetPlanningScene, "get_planning_scene", self._tell_scene, self._refused_without_code(GetPlanningScene)),
            (ApplyPlanningScene, "apply_planning_scene", self._apply, self._refused_without_code(ApplyPlanningScene)),
            (GetPositionIK, "compute_ik", self._place, self._refused_with_code(GetPositionIK)),
            (GetPositionFK, "compute_fk", self._find_links, self._refused_with_code(GetPositionFK)),
            (GetStateValidity, "check_state_validity", self._judge, self._refused_without_code(GetStateValidity)),
            (
                QueryPlannerInterfaces,
                "query_planner_interface",
                self._list,
                self._refused_without_code(QueryPlannerInterfaces),
            ),
        )
        for kind, name, answer, refused in services:
            node.serve(kind, name, answer, refused)
        topics: tuple[tuple[Any, str, Callable[[Any], None]], ...] = (
            (PlanningScene, "planning_scene", self._take_scene),
            (PlanningSceneWorld, "planning_scene_world", self._take_world),
            (CollisionObject, "collision_object", self._take_object),
            (AttachedCollisionObject, "attached_collision_object", self._take_attached),
        )
        for kind, name, take in topics:
            node.create_subscription(kind, name, partial(arm.worker.do, self._take, name, take), CHANGES)
        node.create_timer(SHOW_EVERY_S, self._publish_scene, clock=steady_clock())

    def robot_loaded(self) -> None:
        """Apply what came before the robot. To be called on the worker when it has come."""
        waiting, self._waiting = self._waiting, []
        for name, take, message in waiting:
            self._take(name, take, message)

    # ---- plans ----

    def _move(self, goal):
        request, options = goal.request.request, goal.request.planning_options
        if self._whole and not options.plan_only:
            task = MoveGroupTask(goal, lambda: self._planned_to_move(goal.request), self._group.end)
            return Longer(lambda: self._arm.execute(task), lambda: self._arm.cancel_execution(task))
        goal.publish_feedback(MoveGroup.Feedback(state="PLANNING"))
        motion, start, _ = self._planned(request, options.planning_scene_diff)
        return self._result(motion, start), True

    def _result(self, motion, start):
        self._tell("move_group", motion.text)
        return MoveGroup.Result(
            trajectory_start=start,
            planned_trajectory=motion.trajectory,
            planning_time=motion.planning_time_s,
            error_code=code_message(codes.SUCCESS, motion.text),
        )

    def _planned_to_move(self, goal):
        """(TaskPlan, MoveGroup.Result) from where the robot is."""
        goal.request.start_state = RobotState(is_diff=True)
        motion, start, robot = self._planned(goal.request, goal.planning_options.planning_scene_diff)
        trajectory = motion.trajectory.joint_trajectory
        under_way = MotionUnderWay.planned(trajectory, robot, self._scene.objects, self._margin())
        return TaskPlan(codes.SUCCESS, motion.text, under_way, trajectory), self._result(motion, start)

    def _execute(self, goal):
        own, asked = self._arm.values.controller_action, list(getattr(goal.request, "controller_names", ()))
        if asked and not any(f"/{name.strip('/')}/" in f"/{own.strip('/')}/" for name in asked):
            text = f"controller_names are {asked}; the node has one controller: '{own}', parameter controller_action"
            raise RequestError(codes.CONTROL_FAILED, text)
        task = ExecuteTask(goal, self._arm, self._margin(), self._trajectories.end)
        return Longer(lambda: self._arm.execute(task), lambda: self._arm.cancel_execution(task))

    def _execute_refused(self, error):
        return ExecuteTrajectory.Result(error_code=self._code_of(error, "execute_trajectory"))

    def _execute_cancelled(self):
        return ExecuteTrajectory.Result(error_code=code_message(codes.PREEMPTED, "cancelled"))

    def _move_refused(self, error):
        return MoveGroup.Result(error_code=self._code_of(error, "move_group"))

    def _move_cancelled(self):
        return MoveGroup.Result(error_code=code_message(codes.PREEMPTED, "cancelled"))

    def _plan_path(self, request, response):
        motion, start, _ = self._planned(request.motion_plan_request, PlanningScene())
        answer = response.motion_plan_response
        answer.trajectory_start, answer.trajectory = start, motion.trajectory
        answer.group_name = request.motion_plan_request.group_name
        answer.planning_time, answer.error_code = motion.planning_time_s, code_message(codes.SUCCESS, motion.text)
        self._tell("plan_kinematic_path", motion.text)
        return response

    def _plan_path_refused(self, error):
        response = GetMotionPlan.Response()
        response.motion_plan_response.error_code = self._code_of(error, "plan_kinematic_path")
        return response

    def _planned(self, request, diff):
        """(Motion, RobotState of its start, RobotModel) of a MotionPlanRequest in the scene with a diff."""
        values = self._arm.values
        self._scene.require_robot()
        planning.check_request(request, values)
        if is_empty(diff) or diff.is_diff:
            self._arm.require_known_scene()
        kind = kind_of(request, values)
        self._arm.prepare_planner(kind if kind in PLANNERS else values.planner)
        reference, positions, beside = self._state_of(request.start_state, "the start state", diff)
        checker = self._checker(reference, beside)
        start = complete(checker.robot, positions, "the start state")
        motion = planning.plan(request, values, checker, reference, start)
        return motion, self._shown(motion, checker.robot, positions, reference), checker.robot

    def _shown(self, motion, robot, positions, reference):
        """RobotState where a motion starts, which is shown."""
        message = state_message(robot, positions, reference.objects)
        if self._paths.get_subscription_count():
            self._paths.publish(
                DisplayTrajectory(model_id=robot.name, trajectory=[motion.trajectory], trajectory_start=message)
            )
        self._arm.show_motion(Planned(motion.path, robot, reference.objects), motion.trajectory.joint_trajectory)
        return message

    def _follow(self, request, response):
        values = self._arm.values
        self._scene.require_robot()
        cartesian_path.check_request(request, values)
        if request.avoid_collisions:
            self._arm.require_known_scene()
        self._arm.prepare_planner(values.planner)
        reference, positions, beside = self._state_of(request.start_state, "the start state")
        if request.avoid_collisions:
            checker = self._checker(reference, beside)
        else:
            checker = cartesian_path.blind_checker(reference.robot, values.device)
        start = complete(checker.robot, positions, "the start state")
        motion, response.fraction = cartesian_path.plan(request, values, checker, reference, start)
        response.start_state = self._shown(motion, checker.robot, positions, reference)
        response.solution, response.error_code = motion.trajectory, code_message(codes.SUCCESS, motion.text)
        self._tell("compute_cartesian_path", motion.text)
        return response

    # ---- queries ----

    def _place(self, request, response):
        asked, values = request.ik_request, self._arm.values
        planning.check_group(asked.group_name, values)
        reference, positions, beside = self._state_of(asked.robot_state, "the robot_state")
        checker = self._checker(reference, beside) if asked.avoid_collisions else None
        robot = reference.robot
        tip = values.tip_link or robot.tip_link
        return answers.inverse_kinematics(asked, robot, checker, reference, positions, tip)

    def _find_links(self, request, response):
        reference, _, _ = self._state_of(request.robot_state, "the robot_state")
        return answers.forward_kinematics(request, reference)

    def _judge(self, request, response):
        planning.check_group(request.group_name, self._arm.values)
        reference, positions, beside = self._state_of(request.robot_state, "the robot_state")
        return answers.validity(request, self._checker(reference, beside), reference, positions)

    def _list(self, request, response):
        response.planner_interfaces = [
            PlannerInterfaceDescription(name=SOURCE, pipeline_id=SOURCE, planner_ids=[*PLANNERS, *INDUSTRIAL])
        ]
        return response

    # ---- the scene ----

    def _tell_scene(self, request, response):
        robot = self._scene.require_robot()
        response.scene = scene_message(
            robot, self._current(), self._beside, request.components.components or EVERYTHING
        )
        return response

    def _apply(self, request, response):
        self._take_scene(request.scene)
        self._arm.scene_changed(_is_whole(request.scene))
        response.success = True
        return response

    def _take(self, name, take, message):
        """Apply a message of a topic; a refused one changes nothing, and is told."""
        if self._scene.robot is None:
            self._waiting = [*self._waiting, (name, take, message)][-MOST_WAITING:]
            return
        try:
            take(message)
        except Exception as error:  # whatever it is, the next message may be right
            self._arm.refuse("moveit", f"a message on {name} was refused as a whole: {error_text(error)}")
            return
        self._arm.scene_changed(isinstance(message, PlanningScene) and _is_whole(message))

    def _take_scene(self, message):
        robot = self._scene.require_robot()
        state, beside = apply(message, robot, self._scene.frames, self._current(), self._beside)
        self._scene.take(state.objects)
        self._beside = beside

    def _take_world(self, message):
        self._take_scene(PlanningScene(world=message, is_diff=True, robot_state=RobotState(is_diff=True)))

    def _take_object(self, message):
        self._scene.take(object_messages.change(message, self._reference()))

    def _take_attached(self, message):
        self._scene.take(object_messages.change_attached(message, self._reference()))

    def _publish_scene(self):
        now = self._scene.objects, self._beside
        robot = self._scene.robot
        changed = any(a is not b for a, b in zip(now, self._published, strict=True))
        if robot is not None and changed and self._scenes.get_subscription_count():
            self._published = now
            self._scenes.publish(scene_message(robot, self._current(), now[1]))

    def _current(self):
        """State as it is measured now, without joints where joint_states are none."""
        try:
            positions = self._arm.measured() or {}
        except RequestError:  # requests that need them are told why
            positions = {}
        return State(positions, self._scene.objects)

    def _reference(self):
        robot, state = self._scene.require_robot(), self._current()
        return Reference(robot, KnownFrames(self._scene.frames, self._beside.frames), state.objects, state.positions)

    def _state_of(self, message, what, diff=None):
        """(Reference, {joint: position}, Beside) of a RobotState over what is measured, in the scene with a diff."""
        robot, beside = self._scene.require_robot(), self._beside
        state = State(self._arm.measured() or {}, self._scene.objects)
        if diff is not None:
            state, beside = apply(diff, robot, self._scene.frames, state, beside)
        positions = read_positions(message, robot, state.positions, what)
        robot = self._scene.robot_among(self._scene.objects, positions)  # of this query alone
        frames = KnownFrames(self._scene.frames_of(robot), beside.frames)
        reference = Reference(robot, frames, state.objects, positions)
        return reference.with_objects(read_carried(message, reference)), positions, beside

    def _margin(self):
        return answers.margin_of(self._beside, self._arm.values.margin)

    def _checker(self, reference, beside) -> CollisionChecker:
        values = self._arm.values
        margin = answers.margin_of(beside, values.margin)
        return self._scene.checker_for(
            reference.objects, values.device, values.motion_check, margin, reference.positions
        )

    # ---- what is refused ----

    def _refused_with_code(self, kind):
        return lambda error: kind.Response(error_code=self._code_of(error, kind.__name__))

    def _refused_without_code(self, kind):
        def refused(error):
            self._code_of(error, kind.__name__)
            return kind.Response()

        return refused

    def _code_of(self, error, what):
        text = error_text(error)
        self._logger.warning(f"{what}: {text}")
        return code_message(codes.code_of(error), text)

    def _tell(self, what, text):
        self._logger.info(f"{what}: {text}")


def _is_whole(scene):
    """Does a PlanningScene say all that there is?"""
    return not scene.is_diff and not is_empty(scene)
