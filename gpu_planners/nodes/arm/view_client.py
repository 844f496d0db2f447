"""What the browser page needs from a running arm_planner: its robot, its obstacles, joint_states, and its motions."""

import contextlib
import queue
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from rcl_interfaces.srv import GetParameters
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String
from visualization_msgs.msg import Marker, MarkerArray

from gpu_planners_msgs.srv import PlanMotion

from ...arm import CollisionWorld
from ...arm.geometry.bricks import Bricks
from ...arm.trajectory import Trajectory
from ...errors import GpuPlannersError
from ..common.parameters import as_tuple
from ..common.ros import BEST_EFFORT, LATCHED
from .conversions import joint_state, path_of, points_of, pose_message, pose_of, trajectory_of
from .marker_objects import marker_shapes
from .planning_scene import read_robot
from .semantics import TOPIC as SEMANTICS

PATIENCE_S = 10.0  # for the node to be found, and for its robot
SLACK_S = 30.0  # more than a request's own time: the node may have others to answer, or to compile
FIRST_WORLD_S = 2.0  # for its obstacles, which it publishes when it sees that someone looks
GRAIN = 1e-6  # metres to which the corners of voxels are rounded
PARAMETERS = (
    *("robot_description", "robot_description_file", "srdf_file", "robot_description_semantic", "package_dirs"),
    *("group", "joints", "tip_link"),
)


class ViewClient:
    """A client of the node `name`, in a ROS context and a thread of its own.

    robot: as the node plans it; tip: its tool; world: its obstacles, as its markers show them
    on_world: called on the client's thread when they have changed
    """

    def __init__(self, name: str) -> None:
        self.name = "/" + name.strip("/")
        self.world, self.on_world = CollisionWorld(), lambda: None
        self._shown = b""
        self._joints: dict[str, float] = {}
        self._context = rclpy.Context()
        rclpy.init(context=self._context)
        self._node = Node("gpu_planners_view", context=self._context, use_global_arguments=False)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._thread = threading.Thread(target=self._spin, name="view_client", daemon=True)
        self._thread.start()
        try:
            values = self._ask_parameters()
            urdf = values.robot_description or values.robot_description_file or self._text_of("robot_description")
            known = values.srdf_file or values.robot_description_semantic or not self._publishes(SEMANTICS)
            srdf = "" if known else self._text_of(SEMANTICS)
            self.robot = read_robot(urdf, values, srdf)
        except BaseException:
            self.close()
            raise
        self.tip = self.robot.tip_link
        namespace = self.name.rpartition("/")[0]
        self._plans = self._node.create_client(PlanMotion, f"{self.name}/plan_motion")
        self._first_world = threading.Event()
        self._node.create_subscription(MarkerArray, f"{self.name}/markers", self._take_markers, LATCHED)
        self._node.create_subscription(JointState, f"{namespace}/joint_states", self._take_joints, BEST_EFFORT)
        self._first_world.wait(FIRST_WORLD_S)

    def close(self) -> None:
        rclpy.try_shutdown(context=self._context)
        self._thread.join(timeout=5.0)

    def measured(self) -> np.ndarray | None:
        """(dof,) of the latest joint_states; None where it has not brought every joint."""
        if not all(name in self._joints for name in self.robot.joint_names):
            return None
        return np.array([self._joints[name] for name in self.robot.joint_names])

    def plan(
        self, start: np.ndarray, goal: np.ndarray, planner: str, time_s: float, margin: float, seed: int
    ) -> tuple[str, np.ndarray, Trajectory | None]:
        """(text of the node, (K, dof) path, its timing, None without a path). GpuPlannersError where no answer comes.

        start: (dof,); goal: (dof,), or (4, 4) of the tool in the root frame
        """
        request = PlanMotion.Request(planner=planner, time_limit_s=time_s, margin=margin, seed=seed)
        request.start = joint_state(self.robot.joint_names, start)
        if goal.shape == (4, 4):
            request.pose_goals = [PoseStamped(header=Header(frame_id=self.robot.root_link), pose=pose_message(goal))]
        else:
            request.joint_goals = [joint_state(self.robot.joint_names, goal)]
        response = self._call(self._plans, request, time_s + SLACK_S)
        if response.code != PlanMotion.Response.SUCCESS:
            return response.message, np.zeros((0, self.robot.dof)), None
        return response.message, path_of(response.path), trajectory_of(response.trajectory)

    def _ask_parameters(self):
        client = self._node.create_client(GetParameters, f"{self.name}/get_parameters")
        answer = self._call(client, GetParameters.Request(names=list(PARAMETERS)), PATIENCE_S)
        if len(answer.values) != len(PARAMETERS):
            raise GpuPlannersError(f"the node '{self.name}' has no parameter robot_description_file: no arm_planner")
        values = zip(PARAMETERS, map(parameter_value_to_python, answer.values), strict=True)
        return SimpleNamespace(**{name: as_tuple(value) for name, value in values})

    def _publishes(self, topic):
        """Does somebody publish this topic of the node's namespace?"""
        return bool(self._node.count_publishers(f"{self.name.rpartition('/')[0]}/{topic}"))

    def _text_of(self, topic):
        topic, came = f"{self.name.rpartition('/')[0]}/{topic}", queue.SimpleQueue[String]()
        self._node.create_subscription(String, topic, came.put, LATCHED)
        try:
            return came.get(timeout=PATIENCE_S).data
        except queue.Empty:
            raise GpuPlannersError(f"nobody publishes a robot on {topic}") from None

    def _take_joints(self, message):
        self._joints = self._joints | dict(zip(message.name, message.position, strict=False))

    def _take_markers(self, message):
        obstacles = [each for each in message.markers if each.ns == "obstacles" and each.action == Marker.ADD]
        shown = serialize_message(MarkerArray(markers=obstacles))
        if shown == self._shown:
            return
        world = CollisionWorld()
        for marker in obstacles:
            world.add_shapes(f"obstacle {marker.id}", _pieces(marker, f"obstacle {marker.id}"))
        self._shown, self.world = shown, world
        self._first_world.set()
        self.on_world()

    def _call(self, client: Any, request: Any, patience_s: float) -> Any:
        if not client.wait_for_service(PATIENCE_S):
            raise GpuPlannersError(f"no node '{self.name}' is running (ROS_DOMAIN_ID and namespace as here?)")
        future, done = client.call_async(request), threading.Event()
        future.add_done_callback(lambda _: done.set())
        if not done.wait(patience_s):
            raise GpuPlannersError(f"the node '{self.name}' has not answered for {patience_s:.0f} s")
        return future.result()

    def _spin(self):
        with contextlib.suppress(ExternalShutdownException):
            self._executor.spin()


def _pieces(marker, name):
    """The shapes of a marker of `~/markers`, in the root frame."""
    T_root_marker = pose_of(marker.pose, name)
    if marker.type != Marker.CUBE_LIST:
        return marker_shapes(marker, name, T_root_marker)
    centres = points_of(marker.points)
    half = np.array([marker.scale.x, marker.scale.y, marker.scale.z]) / 2
    low, high = (np.round((centres + side * half) / GRAIN).astype(np.int64) for side in (-1, 1))
    return (Bricks(name, T_root_marker, np.full(3, GRAIN), low, high),)
