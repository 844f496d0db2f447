"""What the parts of the arm node (MoveIt's interfaces, `~/move`, clouds, dragged goals, other arms) ask of it."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpu_planners_msgs.srv import PlanMotion

from ...arm import RobotModel
from ..common.planner_node import PlannerNode
from ..common.worker import Worker
from .move_run import MotionUnderWay, Seen, TaskPlan
from .parameters import ArmParameters
from .planning_scene import PlanningScene
from .scene_objects import ALWAYS, SceneObject, SceneObjects


class Planned(NamedTuple):
    """A path (K, dof) of a robot, and the objects that it was planned among."""

    path: np.ndarray
    robot: RobotModel
    objects: SceneObjects


class ArmServices(Protocol):
    """The node. Unless a docstring says otherwise, methods are called on the worker's threads.

    values: the parameters as they are now
    executing, display, trajectories: Executing, MotionDisplay and PublishedMotions, which are such parts themselves
    """

    scene: PlanningScene
    values: ArmParameters
    worker: Worker
    trajectories: Any
    executing: Any
    display: Any

    @property
    def node(self) -> PlannerNode:
        """Makes publishers, subscriptions, services."""

    def measured(self) -> dict[str, float] | None:
        """{joint: rad or m} of joint_states, None without a recent message. From any thread."""

    def now(self) -> float:
        """Seconds on the node's clock. From any thread."""

    def place(self, robot: RobotModel | None = None) -> np.ndarray | None:
        """(dof,) where joint_states has a robot, by default the scene's, or None. From any thread."""

    def seen(self, robot: RobotModel) -> Seen | None:
        """Where and when joint_states had a robot, None without a recent message. From any thread."""

    def prepare_planner(self, name: str, group: str = "") -> None:
        """Load or compile a planner before it is asked; NotBegunError while another process compiles it."""

    def plan(self, request: PlanMotion.Request, response: PlanMotion.Response) -> Planned | None:
        """Fill the response as ~/plan_motion does, and show the motion; None where there is none. May raise."""

    def plan_to_move(self, request: PlanMotion.Request) -> TaskPlan:
        """A TaskPlan for `executing`. May raise."""

    def contact_ahead(self, motion: MotionUnderWay, phase: float, zero: float | None = None) -> str:
        """What a motion meets after `phase` seconds, "" where the rest is proven free. May raise.

        zero: seconds on the node's clock when the motion's own is at 0, by default as the motion has it
        """

    def require_known_scene(self) -> None:
        """RequestError while obstacles that were refused, or another arm, may be anywhere."""

    def with_robot(self, job: Callable[..., Any], *arguments: Any) -> None:
        """Do a job, at once or when there is a robot."""

    def take_object(self, seen: SceneObject) -> None:
        """Take an object in place of the one of the same name."""

    def refuse(self, source: str, text: str, expires: float = ALWAYS) -> None:
        """Refuse plans, since a message of a source of obstacles was refused, until `expires`, seconds on the node's
        clock, when its obstacles would have been gone. From any thread."""

    def scene_changed(self, whole: bool) -> None:
        """Take note that a message of MoveIt changed the scene. whole: the message lists everything in the scene"""
