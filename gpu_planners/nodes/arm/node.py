"""The node arm_planner: parameters, topics and the service ~/plan_motion around the library of gpu_planners.arm.

Callbacks only store or hand on what arrives. One worker thread owns the planning scene and does all planning (CUDA
contexts belong to one thread): obstacles published before a request are in the scene when it is planned.
"""

import sys
import time
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import MarkerArray

from gpu_planners_msgs.srv import AttachObjects, PlanMotion

from ...arm import PLANNERS
from ...device import resolve_device
from ...errors import GpuPlannersError, RobotDescriptionError, SettingsError, shown
from ..common.diagnostics import WARN, steady_clock
from ..common.planner_node import PlannerNode
from ..common.process import run
from ..common.qos import BEST_EFFORT, LATCHED, of_durability
from ..common.request_error import RequestError, error_text
from . import codes as error_codes
from .attaching import attach_objects
from .cloud_topics import CloudTopics
from .codes import code_of
from .conversions import joint_positions
from .frames import Transforms
from .markers import scene_markers
from .monitoring import contact_ahead, motion_of
from .move_action import MoveAction
from .move_run import stamped_state
from .parameters import ArmParameters
from .plan_service import Planned, answer, compile_planner, kind_of, margin_of, warm_up
from .planning_scene import PlanningScene


class ArmPlannerNode(PlannerNode):
    """The node; options: as rclpy.node.Node takes them. SettingsError for wrong parameters or a wrong URDF file."""

    def __init__(self, **options: Any) -> None:
        super().__init__("arm_planner", ArmParameters, "robot_description", **options)
        self._scene = PlanningScene(self._values, Transforms(self))
        self._joint_state = None, 0.0  # latest message, monotonic time of its arrival
        self._shown = None  # what the next ~/markers will show: (robot, Planned)
        self._refused = ""  # why the latest message on ~/obstacles was refused
        self._trajectories = self.create_publisher(JointTrajectory, "~/joint_trajectory", 10)
        self._markers = self.create_publisher(MarkerArray, "~/markers", LATCHED)
        self.create_subscription(JointState, "joint_states", self._take_joint_state, BEST_EFFORT)
        self.create_subscription(
            MarkerArray,
            "~/obstacles",
            lambda message: self._worker.do(self._change_obstacles, message),
            of_durability(self._values.obstacles_durability, depth=100),
        )
        self._clouds = CloudTopics(
            self,
            lambda: self._values,
            self._scene,
            self._measured,
            lambda seen: self._worker.do(self._take_cloud, seen),
            self._state.set_problem,
        )
        if self._values.robot_description_file:
            self._load_file(self._values.robot_description_file)
        else:
            self.create_subscription(
                String,
                "robot_description",
                lambda message: self._worker.do(self._load_text, message.data),  # type: ignore[attr-defined]
                LATCHED,
            )
        self.serve(PlanMotion, "~/plan_motion", self._answer, self._refusal)
        self.serve(AttachObjects, "~/attach_objects", self._attach_objects, self._attach_refusal)
        self._move = MoveAction(
            self, self._worker, lambda: self._values, self._plan_to_move, self._contact_ahead, self._seen
        )
        self.create_timer(0.2, self._publish_markers, clock=steady_clock())
        self._worker.start()

    def _load_file(self, path):
        try:
            self._scene.load_robot(path, self._now())
        except GpuPlannersError as error:
            self.close()
            raise SettingsError(f"robot_description_file or what it needs: {error}") from error
        self._worker.do(self._take_robot, [])

    def close(self, patience_s: float = -1.0) -> bool:
        """Stop; False when the job under way has not ended within patience_s seconds (negative: wait for it)."""
        self._clouds.close()
        return super().close(patience_s)

    def _load_text(self, urdf):
        self._state.say(WARN, "loading the robot")
        if not urdf.lstrip().startswith("<"):
            raise RobotDescriptionError(f"robot_description holds {shown(urdf)}; allowed: the text of a URDF, XML")
        self._take_robot(self._scene.load_robot(urdf, self._now()))

    def _take_robot(self, waiting):
        """waiting: [(message, its time)] of obstacles that came before the robot"""
        for message, received in waiting:
            self._change_obstacles(message, received)
        robot = self._scene.robot
        self.get_logger().info(
            f"robot '{robot.name}': {robot.dof} planning joints, {len(robot.shapes)} convex shapes, "
            f"{len(robot.self_collision_pairs)} self-collision pairs, root link '{robot.root_link}'"
        )
        self._clouds.robot_is_there()
        self._warm_up()

    def _warm_up(self):
        """Compile before the first request, which would have to wait for it."""
        if self._scene.robot is None:
            return
        self.get_logger().info("compiling (once on a machine, then from the cache)")
        device, took = self._get_ready(lambda: warm_up(self._scene, self._values, self._values.planner))
        self._show_obstacles()
        self.get_logger().info(f"ready on {device} after {took:.1f} s")

    def _change_parameters(self, values):
        device_changed = values.device != self._values.device
        self._values = self._scene.values = values
        if device_changed:
            self._worker.do(self._warm_up)

    def _take_joint_state(self, message):
        self._joint_state = message, time.monotonic()

    def _measured(self):
        """{joint: position} of joint_states, or None when there was no message lately."""
        message, arrival = self._joint_state
        if message is None or time.monotonic() - arrival > self._values.joint_state_timeout_s:
            return None
        known = (*self._scene.robot.joint_names, *self._scene.robot.other_joints)
        return joint_positions(message, "joint_states", error_codes.START_STATE_INVALID, known)

    def _change_obstacles(self, message, received=None):
        """received: seconds on the node's clock, of a message that waited for the robot; None: now"""
        try:
            self._scene.change_obstacles(message, self._now() if received is None else received)
            self._refused = "" if received is None else self._refused
        except Exception as error:  # whatever it is, the next message may be right
            self._refused = f"a message on ~/obstacles was refused as a whole: {error_text(error)}"
        self._state.set_problem("obstacles", self._refused)
        self._show_obstacles()

    def _take_cloud(self, seen):
        try:
            self._scene.take(self._scene.objects.add(seen))
            self._scene.pack()
        except Exception as error:  # whatever it is, the next message may be right
            self._state.set_problem(seen.name, f"'{seen.name}' was refused: {error_text(error)}")
        self._show_obstacles()

    def _answer(self, request, response):
        if self._plan(request, response) and self._values.publish_trajectories:
            self._trajectories.publish(response.trajectory)
        return self._told(response)

    def _plan(self, request, response):
        """Fill the response -> is there a motion?"""
        self._scene.forget_expired(self._now())
        self._refuse_unknown_scene(request)
        self._prepare_planner(request.planner or self._values.planner)
        planned = answer(self._scene, self._values, request, self._measured, response)
        if planned is not None:
            self._shown = self._scene.robot, planned
        return planned is not None

    def _plan_to_move(self, request):
        """(response, Motion or None)"""
        response = PlanMotion.Response()
        planned = self._plan(request, response)
        self._requests, self._last_answer = self._requests + 1, response.message
        motion = motion_of(self._scene, response, margin_of(request, self._values)) if planned else None
        return response, motion

    def _contact_ahead(self, motion, phase):
        self._scene.forget_expired(self._now())
        self._refuse_unknown_scene(PlanMotion.Request())
        return contact_ahead(self._scene, self._values, motion, phase)

    def _seen(self):
        """Where joint_states had the robot (Seen), None without a recent message."""
        message, arrival = self._joint_state
        q = self._place() if self._scene.robot is not None else None
        return None if q is None else stamped_state(message, q, time.monotonic() - arrival, self._now())

    def _refusal(self, error):
        """The response to a request that was not begun, or that failed."""
        return self._told(PlanMotion.Response(code=code_of(error), message=error_text(error), status="refused"))

    def _told(self, response):
        response.message += f" (warning: {self._state.problem})" if self._state.problem else ""
        self._requests, self._last_answer = self._requests + 1, response.message
        if response.code == error_codes.SUCCESS:  # rclpy wants a call of its own for each severity
            self.get_logger().info(f"plan_motion: {response.message}")
        else:
            self.get_logger().warning(f"plan_motion: {response.message}")
        return response

    def _refuse_unknown_scene(self, request):
        """Obstacles that were refused are there all the same, and nobody knows where."""
        if self._refused and not request.ignore_scene:
            raise RequestError(
                error_codes.INVALID_OBJECT_NAME,
                f"the scene is not known: {self._refused}; publish obstacles that are right, or ask with ignore_scene",
            )

    def _prepare_planner(self, name):
        """Load a planner; one that was never used on this machine is compiled, while other requests go on."""
        robot, values = self._scene.robot, self._values
        if name not in PLANNERS or robot is None:
            return
        device = resolve_device(values.device)
        if (name, device) not in self._scene.warm_planners:
            self._unless_compiled(kind_of(name, device), compile_planner, robot, name, device, values.motion_check)
            self._get_ready(lambda: warm_up(self._scene, values, name))

    def _attach_objects(self, request, response):
        response = attach_objects(self._scene, request, self._measured, response)
        return self._attach_told(response)

    def _attach_refusal(self, error):
        response = AttachObjects.Response(code=code_of(error), message=error_text(error))
        response.attached = list(self._scene.objects.carried)
        return self._attach_told(response)

    def _attach_told(self, response):
        self.get_logger().info(f"attach_objects: {response.message}")
        self._worker.do(self._show_obstacles)
        return response

    def _show_obstacles(self):
        if (robot := self._scene.robot) is not None:
            self._shown = robot, Planned(np.zeros((0, robot.dof)), self._scene.objects, robot.tip_link)

    def _publish_markers(self):
        """Markers cost more than planning, so they are made when someone looks."""
        if self._shown is not None and self._markers.get_subscription_count():
            (robot, planned), self._shown = self._shown, None
            self._markers.publish(scene_markers(robot, planned.objects, planned.path, planned.tip_link, self._place()))

    def _place(self):
        """(dof,) where joint_states has the robot, or None."""
        positions, names = self._measured() or {}, self._scene.robot.joint_names
        return np.array([positions[name] for name in names]) if all(name in positions for name in names) else None

    def _facts(self):
        robot = self._scene.robot
        return {
            "robot": robot.name if robot else "none",
            "device": self._values.device,
            "planner": self._values.planner,
            "obstacles": len(self._scene.objects.standing),
            "attached": ", ".join(self._scene.objects.carried) or "none",
            "requests": self._requests,
            "last answer": self._last_answer,
            "move": self._move.state,
        }

    def _now(self):
        return self.get_clock().now().nanoseconds * 1e-9


def main(arguments: list[str] | None = None) -> int:
    """Run the node until it is told to stop -> the exit code."""
    return run(ArmPlannerNode, "arm_planner", arguments)


if __name__ == "__main__":
    sys.exit(main())
