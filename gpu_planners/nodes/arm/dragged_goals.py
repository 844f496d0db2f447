"""Plans to the goal that is dragged in RViz and shows the motion; nothing is published that a controller would follow
until the menu says so."""

from collections.abc import Callable

import numpy as np
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from rclpy.node import Node
from rclpy.publisher import Publisher
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState

from gpu_planners_msgs.srv import PlanMotion

from ...errors import GpuPlannersError
from ..common.request_error import error_text
from ..common.worker import Worker
from .goal_marker import GoalMarker
from .parameters import ArmParameters
from .planning_scene import PlanningScene

HELD_S = 0.4  # longest search while the marker is held
SIZE = 0.12  # of the marker, as a share of the robot's height and width


class DraggedGoals:
    """The marker of a node, and the motions to it.

    worker: plans; values: called for the node's parameters; plan: as ~/plan_motion does, called on the worker with
        request and response for whether there is a motion, which it shows; may raise
    scene: of the node; measured: called for {joint: position} of joint_states, None without a recent message
    trajectories: where a motion goes that is published
    """

    def __init__(
        self,
        node: Node,
        worker: Worker,
        values: Callable[[], ArmParameters],
        scene: PlanningScene,
        measured: Callable[[], dict[str, float] | None],
        plan: Callable[[PlanMotion.Request, PlanMotion.Response], bool],
        trajectories: Publisher,
    ) -> None:
        self._log, self._worker, self._values, self._scene = node.get_logger(), worker, values, scene
        self._measured, self._plan_motion, self._trajectories = measured, plan, trajectories
        self._wanted: tuple[PoseStamped, bool] | None = None  # the newest goal that is not planned to yet
        self._last: PlanMotion.Response | None = None
        self._marker = GoalMarker(node, self._take, lambda: worker.do(self._publish))

    def begin(self) -> None:
        """Put the marker at the tool of the robot, where it is measured or rests. On the worker's thread."""
        robot = self._scene.require_robot()
        poses = robot.link_poses(self._start())
        T = poses[self._values().tip_link or robot.tip_link][0]
        places = np.array([pose[0, :3, 3] for pose in poses.values()])
        x, y, z, w = Rotation.from_matrix(T[:3, :3]).as_quat().tolist()
        px, py, pz = T[:3, 3].tolist()
        pose = Pose(position=Point(x=px, y=py, z=pz), orientation=Quaternion(x=x, y=y, z=z, w=w))
        self._marker.place(self._scene.frames.root, pose, float(max(SIZE * np.ptp(places, axis=0).max(), 0.05)))

    def _start(self):
        """(dof,) where a motion begins: as measured, else where the last one began, else a state of the SRDF or the
        middle of the limits."""
        robot = self._scene.require_robot()
        measured = self._measured()
        if measured is not None and all(name in measured for name in robot.joint_names):
            return np.array([measured[name] for name in robot.joint_names])
        if robot.named_states:
            return next(iter(robot.named_states.values()))
        return (robot.lower + robot.upper) / 2

    def _take(self, pose, held):
        waiting, self._wanted = self._wanted is not None, (pose, held)
        if not waiting:  # what waits will find the newest goal
            self._worker.do(self._plan)

    def _plan(self):
        wanted, self._wanted = self._wanted, None
        if wanted is None or self._scene.robot is None:
            return
        pose, held = wanted
        robot = self._scene.robot
        start = JointState(name=list(robot.joint_names), position=self._start().tolist())
        request = PlanMotion.Request(start=start, pose_goals=[pose], time_limit_s=HELD_S if held else 0.0)
        response = PlanMotion.Response()
        self._last = None
        try:
            if self._plan_motion(request, response):
                self._last = response
        except GpuPlannersError as error:
            response.message = error_text(error)
        if self._last is None and not held:
            self._log.warning(f"dragged goal: {response.message}")

    def _publish(self):
        if self._last is not None:
            self._trajectories.publish(self._last.trajectory)
            self._log.info(f"dragged goal: published, {self._last.message}")
