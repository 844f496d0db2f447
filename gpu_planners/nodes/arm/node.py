"""The node arm_planner: parameters, topics and the service ~/plan_motion around the library of gpu_planners.arm.

Callbacks only store or hand on what arrives. One worker thread owns the planning scene and does all planning
(CUDA contexts belong to one thread), in the order in which things arrive: obstacles published before a request
are in the scene when it is planned. The service callback waits for that thread, never for the executor.
"""

import sys
import time
from typing import Any

import numpy as np
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import MarkerArray

from gpu_planners_msgs.srv import AttachObjects, PlanMotion

from ..common.diagnostics import OK, WARN, Diagnostics, steady_clock
from ..common.parameters import check_changes, declare
from ..common.process import run
from ..common.qos import BEST_EFFORT, LATCHED, of_durability
from ..common.request_error import error_text
from ..common.worker import Worker
from . import codes as error_codes
from .attaching import attach_objects
from .cloud_topics import CloudTopics
from .conversions import joint_positions
from .frames import Transforms
from .markers import scene_markers
from .parameters import ArmParameters
from .plan_service import Planned, answer, warm_up
from .planning_scene import PlanningScene


class ArmPlannerNode(Node):
    """The node; options: as rclpy.node.Node takes them."""

    def __init__(self, **options: Any) -> None:
        super().__init__("arm_planner", **options)
        self._values = declare(self, ArmParameters)
        check_changes(self, ArmParameters, self._change_parameters)
        self._scene = PlanningScene(self._values, Transforms(self))
        self._state = Diagnostics(self, "waiting for robot_description", self._facts)
        self._joint_state = None, 0.0  # latest message, monotonic time of its arrival
        self._shown = None  # what the next ~/markers will show: (robot, Planned)
        self._requests, self._last_answer = 0, ""
        self._worker = Worker(self._state.fail)
        self._trajectories = self.create_publisher(JointTrajectory, "~/joint_trajectory", 10)
        self._markers = self.create_publisher(MarkerArray, "~/markers", LATCHED)
        self.create_subscription(JointState, "joint_states", self._take_joint_state, BEST_EFFORT)
        self.create_subscription(
            MarkerArray,
            "~/obstacles",
            lambda message: self._worker.do(self._change_obstacles, message),
            of_durability(self._values.obstacles_durability, depth=100),
        )
        if self._values.robot_description_file:
            self._worker.do(self._load_robot, self._values.robot_description_file)
        else:
            self.create_subscription(
                String,
                "robot_description",
                lambda message: self._worker.do(self._load_robot, message.data),  # type: ignore[attr-defined]
                LATCHED,
            )
        self.create_service(
            PlanMotion, "~/plan_motion", self._plan_motion, callback_group=MutuallyExclusiveCallbackGroup()
        )
        self.create_service(
            AttachObjects, "~/attach_objects", self._attach_objects, callback_group=MutuallyExclusiveCallbackGroup()
        )
        self._clouds = CloudTopics(
            self,
            lambda: self._values,
            self._scene,
            self._measured,
            lambda seen: self._worker.do(self._take_cloud, seen),
            self._state.set_problem,
        )
        self.create_timer(0.2, self._publish_markers, clock=steady_clock())

    def close(self, patience_s: float = -1.0) -> bool:
        """Stop; False when the job under way has not ended within patience_s seconds (negative: wait for it)."""
        self._clouds.close()
        stopped = self._worker.stop(patience_s)
        if stopped:
            self.destroy_node()
        return stopped

    def _load_robot(self, urdf):
        self._state.say(WARN, "loading the robot")
        for message, received in self._scene.load_robot(urdf, self._now()):
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
        self._state.say(WARN, "compiling; a request waits for it")
        self.get_logger().info("compiling (once on a machine, then from the cache)")
        started = time.monotonic()
        device = warm_up(self._scene, self._values, self._values.planner)
        self._show_obstacles()
        self._state.say(OK, "ready")
        self.get_logger().info(f"ready on {device} after {time.monotonic() - started:.1f} s")

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
        """received: seconds on the node's clock; None: now"""
        try:
            self._scene.change_obstacles(message, self._now() if received is None else received)
            self._state.set_problem("obstacles", "")
        except Exception as error:  # whatever it is, the next message may be right
            self._state.set_problem(
                "obstacles", f"a message on ~/obstacles was refused as a whole: {error_text(error)}"
            )
        self._show_obstacles()

    def _take_cloud(self, seen):
        try:
            self._scene.see(seen)
        except Exception as error:  # whatever it is, the next message may be right
            self._state.set_problem(seen.name, f"'{seen.name}' was refused: {error_text(error)}")
        self._show_obstacles()

    def _plan_motion(self, request, response):
        try:
            return self._worker.call(self._answer, request, response)
        except Exception as error:  # a callback that raises would end spin() and leave the client waiting
            response.code, response.message = error_codes.FAILURE, error_text(error)
            return response

    def _answer(self, request, response):
        self._scene.forget_expired(self._now())
        planned = answer(self._scene, self._values, request, self._measured, response)
        response.message += f" (warning: {self._state.problem})" if self._state.problem else ""
        self._requests, self._last_answer = self._requests + 1, response.message
        if planned is None:
            self.get_logger().warning(f"plan_motion: {response.message}")
            return response
        self._trajectories.publish(response.trajectory)
        self._shown = self._scene.robot, planned
        self.get_logger().info(f"plan_motion: {response.message}")
        return response

    def _attach_objects(self, request, response):
        try:
            response = self._worker.call(attach_objects, self._scene, request, self._measured, response)
        except Exception as error:  # a callback that raises would end spin() and leave the client waiting
            response = AttachObjects.Response(code=error_codes.code_of(error), message=error_text(error))
            response.attached = list(self._scene.objects.carried)
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
        }

    def _now(self):
        return self.get_clock().now().nanoseconds * 1e-9


def main(arguments: list[str] | None = None) -> int:
    """Run the node until it is told to stop -> the exit code."""
    return run(ArmPlannerNode, "arm_planner", arguments)


if __name__ == "__main__":
    sys.exit(main())
