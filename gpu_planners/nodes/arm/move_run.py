"""A motion under way (where the robot is on it, how it stops), the task that asks for it, and the run of a task."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from ...arm import RobotModel
from ...arm.control.spline import Spline
from ...arm.control.stopping import stop_along
from ...arm.motion.played import room
from ...arm.trajectory import Trajectory
from ..common.ros import time_message
from .conversions import trajectory_message, trajectory_of
from .scene_objects import SceneObjects

AHEAD_S = 0.1  # the controller may have begun so much before its answer came
LEAD_S = 0.03  # between sending a stop and its begin
JOIN_S = 0.1  # within which the controller joins a stop whose time it cannot know


class Seen(NamedTuple):
    """Where joint_states had the robot. q: (dof,); at: seconds on the node's clock; stamped: is `at` the message's?"""

    q: np.ndarray
    at: float
    stamped: bool


@dataclass
class MotionUnderWay:
    """A motion under way.

    curve: over the seconds since it began; robot: that executes it; margin: metres that it keeps from obstacles
    scene: (SceneObjects, RobotModel) of the scene in which it was last found free
    began: seconds on the node's clock when the controller took it, None before
    phase: seconds on the curve that the robot has passed
    """

    curve: Spline
    robot: RobotModel
    scene: Any
    margin: float
    began: float | None = None
    phase: float = 0.0

    @classmethod
    def planned(
        cls, message: JointTrajectory, robot: RobotModel, objects: SceneObjects, margin: float
    ) -> "MotionUnderWay":
        return cls(Spline.of(trajectory_of(message)), robot, (objects, robot), margin)

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.curve.end

    def advance(self, seen: Seen | None, now: float) -> float:
        """Seconds on the curve that the robot is at now, by where it was seen, else by the clock."""
        if self.began is None:
            return 0.0
        if seen is None:
            return min(now - self.began, self.duration)
        high = float(np.clip(seen.at - self.began + AHEAD_S, self.phase, max(self.duration, self.phase)))
        self.phase = self.curve.nearest_time(seen.q, self.phase, high)
        return float(np.clip(self.phase + max(now - seen.at, 0.0), 0.0, self.duration))

    def stop(self, seen: Seen | None, now: float) -> JointTrajectory:
        """The message that has the controller brake along the motion."""
        phase = self.advance(seen, now)
        limits = self.robot.acceleration, *room(self.robot)
        if seen is not None and seen.stamped:
            message = trajectory_message(self.robot, stop_along(self.curve, phase + LEAD_S, *limits))
            message.header.stamp = time_message(now + LEAD_S)
            return message
        stop = stop_along(self.curve, phase, *limits)
        keep = stop.times >= min(JOIN_S, stop.times[-1])  # the controller joins it meanwhile
        times = np.maximum(stop.times[keep], JOIN_S) if np.count_nonzero(keep) == 1 else stop.times[keep]
        rest = Trajectory(times, stop.positions[keep], stop.velocities[keep], stop.accelerations[keep])
        return trajectory_message(self.robot, rest)


class TaskPlan(NamedTuple):
    """What a task plans. code, message: the outcome, with which a task without a motion ends

    trajectory: the motion as the controller gets it; goal_index: of the goal that it leads to
    group: whose motion it is, as of PlanningScene.group_named: it says which controller executes it
    """

    code: int
    message: str
    motion: MotionUnderWay | None = None
    trajectory: JointTrajectory | None = None
    goal_index: int = 0
    group: str = ""


@dataclass(frozen=True, eq=False)
class Task:
    """Who wants a motion to be executed.

    line: of the worker's queue, in which its plans wait
    replans: how often another motion may be planned after a stop
    plan: plans from where the robot is; called on the worker, may raise
    feed_back: called now and then with the state ("planning", "moving" or "stopping"), how many motions were planned,
        the progress (0 to 1) and the seconds that remain
    end: called once, on the executor's thread, with code, message, goal_index and how many motions were planned
    goes_on: is another motion planned when one has ended where it should? A plan without one then ends the task
    group: whose motion the first one is
    """

    line: str
    replans: int
    plan: Callable[[], TaskPlan]
    feed_back: Callable[[str, int, float, float], None]
    end: Callable[[int, str, int, int], None]
    goes_on: bool = False
    group: str = ""


@dataclass
class Run:
    """A task under way.

    replans: how many are left; state: "planning", "sending", "moving" or "stopping"
    plans: motions planned; goal_index: of the goal that the present motion leads to
    why: it is being stopped; code: with which it ends when the robot has stopped, None: another motion may be planned
    deadline: seconds on the node's clock when the controller must have answered or ended a stop, or while the robot
        moves must have been heard of again
    end_motion: has the controller end the motion, and the stop if there is one; None before it was sent
    over: the controller has ended the motion; held: the controller was asked to, for it took no stop
    """

    task: Task
    replans: int
    state: str = "planning"
    plans: int = 0
    goal_index: int = 0
    why: str = ""
    code: int | None = None
    request: Any = None
    motion: MotionUnderWay | None = None
    end_motion: Any = None
    over: bool = False
    held: bool = False
    checking: bool = False
    checked: float = 0.0
    deadline: float = np.inf
