"""The node arm_planner: parameters, topics and services around the library of gpu_planners.arm.

Callbacks only store or hand on what arrives. A worker owns the planning scene and does all planning, on a thread for
each device: obstacles published before a request are in the scene when it is planned.
"""

import sys
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rclpy.clock import JumpThreshold
from rclpy.duration import Duration
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from gpu_planners_msgs.srv import AttachObjects, ForgetSources, PlanMotion, PlanSequence

from ...arm import PLANNERS, RobotModel
from ...compiling import KEEPING, arm_parts, planner_part
from ...errors import GpuPlannersError, RobotDescriptionError, SettingsError, error_text, shown
from .. import moveit
from ..common.planner_node import COMPILING, WARN, PlannerNode
from ..common.process import run
from ..common.request_error import RequestError
from ..common.ros import BEST_EFFORT, LATCHED, Transforms, of_durability, seconds, steady_clock
from . import codes, plan_service, sequence_service
from .arm_services import Planned
from .attaching import attach_objects
from .cloud_topics import CloudTopics
from .described_files import refuse_other_files
from .dragged_goals import DraggedGoals
from .executing import Executing
from .given_controllers import take_execution
from .given_limits import given_limits, limit_facts
from .joint_states import JointStates
from .kept import search_for
from .marker_objects import check_markers
from .motion_display import MotionDisplay
from .move_action import offer_move
from .move_run import MotionUnderWay, Seen, TaskPlan
from .moving_obstacles import MovingObstacles
from .other_arms import OtherArms
from .parameters import ArmParameters
from .planning_scene import PlanningScene
from .published_motions import PublishedMotions
from .scene_objects import ALWAYS, SceneObject
from .semantics import TOPIC as SEMANTICS
from .semantics import SemanticsTopic
from .unknown_sources import UnknownSources

DESCRIPTION = "robot_description"
KINDS = {DESCRIPTION: "a URDF", SEMANTICS: "an SRDF"}  # what topics hold
MOST_WAITING = 1000  # messages kept for a robot that has not come yet
LOOK_S = 0.5  # between two looks at whether what was refused would be gone
BACKWARD = JumpThreshold(min_forward=None, min_backward=Duration(seconds=-1), on_clock_change=False)


class ArmPlannerNode(PlannerNode):
    """The node, which is the ArmServices of its parts; options: as rclpy.node.Node takes them.

    SettingsError for wrong parameters or a wrong URDF file.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("arm_planner", ArmParameters, "robot_description", "robot_description_file", **options)
        self.scene = PlanningScene(self.values, Transforms(self))
        self.scene.limits = given_limits(self, self.values)
        take_execution(self)
        self._waiting: deque[tuple[Callable, tuple]] = deque(maxlen=MOST_WAITING)  # what came before the robot
        self._joint_states = JointStates()
        self._texts: dict[str, str] = {}  # of topics that describe the robot, by topic
        self._coming: dict[str, str] = {}  # newer ones, that are not loaded yet
        self._loaded: set[str] = set()  # what was compiled, by Part.what: robots of one size share it
        self._following = False  # does a change of joints that are not planned wait for the worker?
        self._unknown = UnknownSources(self.state.set_problem)
        self.create_timer(LOOK_S, self._look, clock=steady_clock())
        self.trajectories = PublishedMotions(self)
        self.display = MotionDisplay(self)
        self._dragged_goals = DraggedGoals(self)
        self._subscribe()
        for kind, name, answer in (
            (PlanMotion, "plan_motion", plan_service.answer),
            (PlanSequence, "plan_sequence", sequence_service.answer),
        ):
            self._serve(kind, name, partial(self._answer, answer), plans=True)
        self._serve(AttachObjects, "attach_objects", partial(attach_objects, self))
        self._serve(ForgetSources, "forget_sources", self._forget_sources)
        self.executing = Executing(self)
        self.executing.on_stop(self.trajectories.stop)
        moveit.serve(self)
        self._clouds = CloudTopics(self)
        self._other_arms = OtherArms(self)
        offer_move(self)
        self._jumps = self.get_clock().create_jump_callback(BACKWARD, post_callback=self._clock_jumped)
        self.worker.start()

    @property
    def node(self) -> PlannerNode:
        return self

    def finish(self, patience_s: float = -1.0) -> bool:
        self._jumps.unregister()
        self._clouds.close()
        began = time.monotonic()
        self.trajectories.close(patience_s)
        self.executing.close(patience_s)
        return super().finish(patience_s if patience_s < 0 else max(0.0, patience_s - (time.monotonic() - began)))

    def _subscribe(self):
        values, do = self.values, self.worker.do
        self._semantics = SemanticsTopic(self, values, lambda text: self._take_text(SEMANTICS, text.data))
        self.create_subscription(JointState, "joint_states", self._take_joint_state, BEST_EFFORT)
        durability = of_durability(values.obstacles_durability, depth=100)
        for kind, topic in ((MarkerArray, "obstacles"), (MovingObstacles, "moving_obstacles")):
            if kind is not None:
                change = partial(do, self._change_obstacles, topic)
                self.create_subscription(kind, f"~/{topic}", change, durability)
        if not values.urdf:
            self.create_subscription(
                String, DESCRIPTION, lambda message: self._take_text(DESCRIPTION, message.data), LATCHED
            )
            return
        try:
            self.scene.load_robot(values.urdf, self.now())
        except GpuPlannersError as error:
            self.destroy_node()
            of = "robot_description" if values.robot_description else "robot_description_file"
            raise SettingsError(f"{of} or what it needs: {error}") from error
        do(self._take_robot)

    # ---- the robot ----

    def _take_text(self, what, text):
        """Take a text of the topic robot_description or robot_description_semantic. Of several that come while one is
        loaded, the newest is loaded next."""
        self._coming[what] = text
        self.worker.do(self._load_text, what)

    def _load_text(self, what):
        text = self._coming.pop(what, None)
        if text is None:
            return
        try:
            if what == DESCRIPTION:
                refuse_other_files(text, self.values.package_dirs)
            elif not text.lstrip().startswith("<"):
                raise RobotDescriptionError(f"{what} holds {shown(text)}; allowed: the text of {KINDS[what]}, XML")
            self._texts[what] = text  # what was refused is not loaded with the next one either
            urdf = self.values.urdf or self._texts.get(DESCRIPTION)
            if urdf is None:
                return
            self.state.say(WARN, "loading the robot")
            self.scene.load_robot(urdf, self.now(), self._texts.get(SEMANTICS, ""))
        except Exception as error:
            self.scene.refused = error
            if self.scene.robot is not None:
                text = f"a {what} was refused, the one before it is planned with: {error_text(error)}"
                self.state.set_problem("robot", text)
            raise
        self.scene.refused = None
        self.state.set_problem("robot", "")
        self._take_robot()

    def with_robot(self, job: Callable[..., Any], *arguments: Any) -> None:
        if self.scene.robot is None:
            self._waiting.append((job, arguments))
        else:
            job(*arguments)

    def _take_robot(self):
        robot = self.scene.robot
        while self._waiting:
            job, arguments = self._waiting.popleft()
            job(*arguments)
        self.get_logger().info(
            f"robot '{robot.name}': {robot.dof} planning joints, {len(robot.shapes)} convex shapes, "
            f"{len(robot.self_collision_pairs)} self-collision pairs, root link '{robot.root_link}'"
        )
        self._clouds.robot_is_there()
        self._follow()
        self._warm_up()

    def _warm_up(self):
        """Compile before the first request, which would have to wait for it."""
        if self.scene.robot is None:
            return
        values, devices = self.values, self.values.devices
        self.get_logger().info("compiling (once on a machine, then from the cache)")
        given = self.scene.robot, values.motion_check
        parts = [part for device in dict.fromkeys(devices) for part in arm_parts(device, *given)]
        took = self._get_ready(parts, self._planner_parts(values.planner))
        self._loaded |= {part.what for part in parts}
        self._show_obstacles()
        self._dragged_goals.begin()
        ready = "ready" if self._note_planner(values.planner) else f"ready but for planner {values.planner}"
        self.get_logger().info(f"{ready} on {', '.join(devices)} after {took:.1f} s")
        self._background.start(self._planner_parts(KEEPING))

    def _planner_parts(self, name, group=""):
        given = self.scene.described(group) if group else self.scene.robot, self.values.motion_check
        parts = [planner_part(name, device, *given) for device in dict.fromkeys(self.values.devices)]
        if group:  # on CUDA it may take kernels of another size
            parts += [part for device in dict.fromkeys(self.values.devices) for part in arm_parts(device, *given)]
        return parts

    def _note_planner(self, name, group=""):
        """Is it loaded on all devices?"""
        if self._due(parts := self._planner_parts(name, group)):
            return False
        self._loaded |= {part.what for part in parts}
        self.scene.warm_planners |= {(name, device, group) for device in self.values.devices}
        return True

    def _take_compiled(self, answers):
        super()._take_compiled(answers)
        for part in self._planner_parts(KEEPING):
            if answers.get(part.what) == "":
                part.run()  # loads it beside what the worker does
                self.worker.do(self._note_planner, KEEPING)
        if self.state.told[1] == COMPILING:
            self.worker.do(self._warm_up)

    def prepare_planner(self, name: str, group: str = "") -> None:
        if name not in (*PLANNERS, KEEPING) or self.scene.robot is None:
            return
        if any((name, device, group) not in self.scene.warm_planners for device in self.values.devices):
            parts = [part for part in self._planner_parts(name, group) if not group or part.what not in self._loaded]
            if parts:
                self._unless_compiled(parts)
                self._get_ready(parts)
            self._note_planner(name, group)

    def _change_parameters(self, values):
        device_changed = values.device != self.values.device
        self.values = self.scene.values = values
        if device_changed:
            self.worker.do(self._warm_up)

    def _clock_jumped(self, jump):
        back = -jump.delta.nanoseconds * 1e-9
        self.worker.do(self.scene.clock_jumped_back, back)
        self._unknown.clock_jumped_back(back)
        self.executing.clock_jumped_back(back)

    # ---- joint_states ----

    def _take_joint_state(self, message):
        self._joint_states.take(message, self.now())
        if not self._following and not self.scene.stands(self._others()):
            self._following = True
            self.worker.do(self._follow)

    def _follow(self):
        """Have joints that are not planned where they are measured: nothing else writes them into the scene."""
        self._following = False
        before = self.scene.robot
        self.scene.follow(self._others())
        if self.scene.robot is not before:
            self._show_obstacles()

    def _others(self):
        """{joint: position} of joint_states as far as they are right."""
        try:
            return self.measured() or {} if self.scene.robot else {}
        except RequestError:  # requests are told why
            return {}

    def measured(self) -> dict[str, float] | None:
        return self._joint_states.positions(self.scene.require_robot(), self.now(), self.values.joint_state_timeout_s)

    def place(self, robot: RobotModel | None = None) -> np.ndarray | None:
        positions, names = self._others(), (robot or self.scene.require_robot()).joint_names
        return np.array([positions[name] for name in names]) if all(name in positions for name in names) else None

    def seen(self, robot: RobotModel) -> Seen | None:
        q = self.place(robot)
        return None if q is None else self._joint_states.seen(robot.joint_names[0], q)

    # ---- obstacles ----

    def _change_obstacles(self, topic, message, received=None):
        """received: seconds on the node's clock, of a message that waited for the robot; None: now"""
        now, markers = self.now() if received is None else received, getattr(message, "markers", ())
        try:
            check_markers(markers, self.values)
            if self.scene.robot is None:
                self.with_robot(self._change_obstacles, topic, message, now)
            elif topic == "obstacles":
                self.scene.change_obstacles(message, now)
            else:
                self.scene.move_obstacles(message, now)
            if received is None:
                self._unknown.take(topic, now)
        except Exception as error:  # whatever it is, the next message may be right
            text = f"a message on ~/{topic} was refused as a whole: {error_text(error)}"
            lives = [seconds(marker.lifetime) for marker in markers]
            self._unknown.refuse(topic, text, now, now + max(lives) if lives and min(lives) > 0 else ALWAYS)
        self._show_obstacles()

    def take_object(self, seen: SceneObject) -> None:
        try:
            self.scene.see(seen)
            self._unknown.take(seen.name, self.now())
        except Exception as error:  # whatever it is, the next message may be right
            self.refuse(seen.name, f"'{seen.name}' was refused: {error_text(error)}", seen.expires)
        self._show_obstacles()

    def refuse(self, source: str, text: str, expires: float = ALWAYS) -> None:
        self._unknown.refuse(source, text, self.now(), expires)

    def scene_changed(self, whole: bool) -> None:
        if whole:
            self._unknown.forget()
            self._clouds.forget()
        else:
            self._unknown.take("moveit", self.now())
        self._show_obstacles()

    def require_known_scene(self, what_to_do: str = "") -> None:
        self._unknown.forget_expired(self.now())
        unknown = self._unknown.problem or self._other_arms.problem
        if unknown:
            raise RequestError(codes.INVALID_OBJECT_NAME, f"the scene is not known: {unknown}{what_to_do}")

    def _look(self):
        self._unknown.forget_expired(self.now())
        if text := self.scene.frames.contradiction():
            self.refuse("virtual_joint", text)

    def _forget_sources(self, request, response):
        response.forgotten = self._unknown.forget(*request.sources)
        if response.forgotten:
            self._clouds.forget(*response.forgotten)
        response.code = codes.SUCCESS
        response.message = f"forgotten: {', '.join(response.forgotten) or 'nothing'}"
        return response

    # ---- answers ----

    def _serve(self, kind, name, answer, plans=False):
        """Serve ~/name. answer: (request, response) -> response, may raise; plans: does it only plan?"""

        def told(response):
            succeeded = response.code == codes.SUCCESS
            if plans:
                return self._answered(name, response, succeeded)
            self.log(f"{name}: {response.message}", succeeded)
            return response

        def refused(error):
            response = kind.Response(code=codes.code_of(error), message=error_text(error))
            if kind is PlanMotion:
                response.status = "refused"
            elif kind is AttachObjects:
                response.attached = list(self.scene.objects.carried)
            return told(response)

        self.serve(kind, f"~/{name}", lambda *asked: told(answer(*asked)), refused, beside=plans)

    # ---- plans ----

    def _answer(self, answer, request, response):
        planned = self.plan(request, response, answer)
        if planned and self.values.publish_trajectories:
            self.trajectories.publish(response.trajectory, planned.robot)
        return response

    def plan(self, request: Any, response: Any, answer: Any = plan_service.answer) -> Planned | None:
        with self.scene.lock:
            self.scene.forget_expired(self.now())
            if not request.ignore_scene:
                self.require_known_scene("; publish what is right, call ~/forget_sources, or ask with ignore_scene")
            group = self.scene.group_named(plan_service.group_of(request)) if self.scene.robot else ""
            held = self.scene.in_several_hands(group)
            self.prepare_planner(search_for(request, self.values.planner, held), group)
        planned = None
        try:
            planned = answer(self, request, response)
        finally:
            with self.scene.lock:
                if planned is None:
                    self._show_obstacles()  # not the motion before
                else:
                    self.display.show_motion(planned, response.trajectory)
        return planned

    # ---- motions that are executed ----

    def plan_to_move(self, request: PlanMotion.Request) -> TaskPlan:
        response = PlanMotion.Response()
        self._count()
        try:
            planned = self.plan(request, response)
        except Exception as error:
            self._last_answer = error_text(error)
            raise
        self._last_answer = response.message
        if planned is None:
            return TaskPlan(response.code, response.message)
        margin = plan_service.requested(request, self.values, "margin")
        motion = MotionUnderWay.planned(response.trajectory, planned.robot, self.scene.objects, margin)
        group = self.scene.group_named(plan_service.group_of(request))
        return TaskPlan(response.code, response.message, motion, response.trajectory, response.goal_index, group)

    def contact_ahead(self, motion: MotionUnderWay, phase: float, zero: float | None = None) -> str:
        now = self.now()
        self.scene.forget_expired(now)
        self.require_known_scene()
        return self.scene.contact_ahead(motion, phase, self._others(), motion.zero(now) if zero is None else zero)

    # ---- what is shown ----

    def _show_obstacles(self):
        if (robot := self.scene.robot) is not None:
            self.display.show_scene(robot, self.scene.objects)

    def _facts(self):
        robot = self.scene.robot
        return {
            "robot": robot.name if robot else "none",
            "device": self.values.device,
            "planner": self.values.planner,
            "obstacles": len(self.scene.objects.standing),
            "attached": ", ".join(self.scene.objects.carried) or "none",
            "requests": self._requests,
            "last answer": self._last_answer,
            "move": self.executing.state,
        } | limit_facts(robot)


main = partial(run, ArmPlannerNode, "arm_planner")  # until it is told to stop -> the exit code

if __name__ == "__main__":
    sys.exit(main())
