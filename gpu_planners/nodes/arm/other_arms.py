"""Arms of other nodes as obstacles that move: each where its joint_states has it, or all along the motion it executes.

Another arm_planner says by `~/executing` what it does: the whole motion when it begins, an empty one when it has ended.
"""

import time
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from ...arm import RobotModel, load_urdf
from ...arm.geometry.shapes import ConvexShape
from ...arm.swept import swept_boxes
from ...errors import GpuPlannersError, error_text
from ..common.ros import BEST_EFFORT, LATCHED, seconds, steady_clock
from .arm_services import ArmServices
from .described_files import refuse_other_files
from .scene_objects import SceneObject, Source

LOOK_S = 0.1  # between two looks at where the others are
LATE_S = 5.0  # later than planned a motion may end
EXECUTING = "arm_planner/executing"
STILL = 1e-3  # rad or m that joints move by before an arm is placed anew


@dataclass(eq=False)
class OtherArm:
    """What is known of another arm.

    name: of its namespace; robot: with every joint that moves, None until its description has come
    place: {joint: position}, as last measured
    executing: the motion that it executes, or None; path: (K, dof) of it, once it is looked at
    ends: when the motion is over at the latest if its node has ended, by time.monotonic()
    shown: (K, dof) that the scene holds boxes for
    """

    name: str
    problem: str
    robot: RobotModel | None = None
    place: dict[str, float] = field(default_factory=dict)
    executing: JointTrajectory | None = None
    path: np.ndarray | None = None
    ends: float = 0.0
    shown: np.ndarray | None = None

    def wanted(self) -> np.ndarray | None:
        """(K, dof) that the scene should hold boxes for; None where it has them, or nobody knows, as `problem` says."""
        robot = self.robot
        if robot is None:
            return None
        missing = [name for name in robot.joint_names if name not in self.place]
        if missing:
            self.problem = f"nobody knows where the other arm '{self.name}' is: its joint_states lack {missing[0]}"
            return None
        q = np.array([[self.place[name] for name in robot.joint_names]])
        if self.path is None and self.executing is not None:
            try:
                self.path = _path_of(self.executing, robot, q)
            except ValueError as error:
                self.problem = f"the motion that the other arm '{self.name}' executes is malformed: {error}"
                return None
        self.problem = ""
        path = q if self.path is None else np.concatenate([q, self.path])
        if self.shown is None or len(self.shown) != len(path):
            return path
        return None if np.abs(self.shown - path).max() <= STILL else path


class OtherArms:
    """The arms that parameter `other_arms` names. What is wrong with one is a problem in the diagnostics."""

    def __init__(self, arm: ArmServices) -> None:
        self._own = arm
        unknown = "nothing is known of the other arm '{}': its robot_description has not come"
        self.arms = [OtherArm(name, unknown.format(name)) for name in arm.values.other_arms]
        for other in self.arms:
            for kind, topic, take_it, qos in (
                (String, "robot_description", partial(arm.worker.do, self._load), LATCHED),
                (JointState, "joint_states", self._place, BEST_EFFORT),
                (JointTrajectory, EXECUTING, self._execute, LATCHED),
            ):
                arm.node.create_subscription(kind, _topic(other, topic), partial(take_it, other), qos)
        if self.arms:
            arm.node.create_timer(LOOK_S, self._look, clock=steady_clock())

    @property
    def problem(self) -> str:
        """Why nobody knows where one of the arms is; empty when all are known."""
        return next((arm.problem for arm in self.arms if arm.problem), "")

    def _load(self, arm, message):
        try:
            refuse_other_files(message.data, self._own.values.package_dirs)
            # which links of the other arm may touch each other does not matter here
            robot = load_urdf(message.data, package_dirs=self._own.values.package_dirs, self_collisions=False)
        except GpuPlannersError as error:
            arm.problem = f"the description of the other arm '{arm.name}' was refused: {error_text(error)}"
            self._tell(arm)
            return
        arm.robot, arm.path, arm.shown = robot, None, None

    def _place(self, arm, message):
        if len(message.name) == len(message.position) and np.isfinite(message.position).all():
            arm.place = arm.place | dict(zip(message.name, message.position, strict=True))  # a gripper may come apart

    def _execute(self, arm, message):
        arm.executing, arm.path = message if message.points else None, None
        if message.points:
            arm.ends = time.monotonic() + seconds(message.points[-1].time_from_start) + LATE_S

    def _look(self):
        for arm in self.arms:
            gone = arm.executing is not None and time.monotonic() > arm.ends
            if gone and not self._own.node.count_publishers(_topic(arm, EXECUTING)):
                arm.executing, arm.path = None, None  # its node has ended, and cannot say that the motion has
            path = arm.wanted()
            self._tell(arm)
            if path is not None:
                arm.shown = path
                self._own.worker.do(self._show, arm, arm.robot, path)

    def _tell(self, arm):
        self._own.node.state.set_problem(f"other arm {arm.name}", arm.problem)

    def _show(self, arm, robot, path):
        values = self._own.values
        number, padding = values.other_arms.index(arm.name), values.other_arm_padding
        x, y, z, yaw = values.other_arm_poses[4 * number : 4 * number + 4]
        c, s = np.cos(yaw), np.sin(yaw)
        T = np.array([[c, -s, 0.0, x], [s, c, 0.0, y], [0.0, 0.0, 1.0, z], [0.0, 0.0, 0.0, 1.0]])
        name, (sizes, poses) = f"other_arm/{arm.name}", swept_boxes(robot, path)
        boxes = tuple(
            ConvexShape.box(f"{name}/{k}", size + 2 * padding, pose)
            for k, (size, pose) in enumerate(zip(sizes, poses, strict=True))
        )
        self._own.take_object(SceneObject(name, boxes, T, Source.OTHER_ARM))


def _topic(arm, name):
    return f"/{arm.name.strip('/')}/{name}"


def _path_of(message, robot, q):
    """(K, dof) of a trajectory of some of the robot's joints; the others stay as in q (1, dof). ValueError"""
    names = list(message.joint_names)
    rows = [point.positions for point in message.points]
    if any(len(row) != len(names) for row in rows):
        raise ValueError(f"it has {len(names)} joint names; each of its points needs as many positions")
    path = np.repeat(q, len(rows), axis=0)
    for k, name in enumerate(robot.joint_names):
        if name in names:
            path[:, k] = [row[names.index(name)] for row in rows]
    if not np.isfinite(path).all():
        raise ValueError("its positions must be finite")
    return path
