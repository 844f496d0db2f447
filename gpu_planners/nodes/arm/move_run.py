"""A motion under way (where the robot is on it, how it stops), the task that asks for it, and the run of a task."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from ...arm import RobotModel
from ...arm.control.spline import Spline
from ...arm.control.stopping import stop_along
from ...arm.motion.played import room
from ...arm.trajectory import Trajectory
from ..common.ros import time_message
from .conversions import trajectory_message, trajectory_of
from .scene_objects import SceneObjects

AHEAD_S = 0.1  # the controller may have begun so much before its answer came, or more where that took longer
LEAD_S = 0.03  # between sending a stop and its begin
JOIN_S = 0.1  # within which the controller joins a motion whose time it cannot know
EARLY_S = 0.005  # by which a time stamp of joint_states may be early


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
    first: seconds on the curve when the motion begins; before, it is the one whose place it took
    ahead: seconds before `began` when the controller may have begun: its answer may have taken so long
    seen_at: seconds on the node's clock when the robot was seen at `phase`
    judged: seconds on the node's clock when the curve's was at 0, as of which it was found free of what moves; None: it
        was not
    """

    curve: Spline
    robot: RobotModel
    scene: Any
    margin: float
    began: float | None = None
    phase: float = 0.0
    first: float = 0.0
    ahead: float = AHEAD_S
    seen_at: float | None = None
    judged: float | None = None

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
        if seen.at != self.seen_at:
            most = seen.at - self.began + self.ahead
            if self.seen_at is not None:  # a motion that turns back is twice in each place, and no controller hurries
                most = min(most, self.phase + max(seen.at - self.seen_at, 0.0) + EARLY_S)
            high = float(np.clip(most, self.phase, max(self.duration, self.phase)))
            self.phase, self.seen_at = self.curve.nearest_time(seen.q, self.phase, high), seen.at
        return float(np.clip(self.phase + max(now - seen.at, 0.0), 0.0, self.duration))

    def zero(self, now: float) -> float:
        """Seconds on the node's clock when the curve's was at 0; `now` for a motion that has not begun."""
        if self.seen_at is not None:
            return self.seen_at - self.phase
        return now if self.began is None else self.began

    def progress(self, phase: float) -> tuple[float, float]:
        """(share from 0 to 1, seconds that remain) of the motion at a phase."""
        left, length = self.duration - phase, self.duration - self.first
        return (max(phase - self.first, 0.0) / length if length > 0 else 1.0), left

    def braking(self, time: float) -> "MotionUnderWay":
        """The same motion until a time on the curve, when it brakes; it ends where it then comes to rest."""
        time = min(time, self.duration)
        return replace(self, curve=self.curve.then(time, self._stop(time), self.phase), judged=None)

    def stop(self, seen: Seen | None, now: float, lead: float = LEAD_S) -> JointTrajectory:
        """The message that has the controller brake along the motion, from `lead` seconds on."""
        return self._message(seen, now, self._stop, lead)

    def rest(self, seen: Seen | None, now: float) -> JointTrajectory:
        """The message that has the controller execute the motion from where the robot is on it."""
        return self._message(seen, now, lambda time: self.curve.rest(time, JOIN_S))

    def _stop(self, time):
        return stop_along(self.curve, time, self.robot.acceleration, *room(self.robot))

    def _message(self, seen, now, rest_from, lead=LEAD_S):
        """rest_from: seconds on the curve -> Trajectory from there"""
        phase = self.advance(seen, now)
        if seen is not None and seen.stamped:
            message = trajectory_message(self.robot, rest_from(phase + lead))
            message.header.stamp = time_message(now + lead)
            return message
        rest = rest_from(phase)
        keep = rest.times >= min(JOIN_S, rest.times[-1])  # the controller joins it meanwhile
        times = np.maximum(rest.times[keep], JOIN_S) if np.count_nonzero(keep) == 1 else rest.times[keep]
        rest = Trajectory(times, rest.positions[keep], rest.velocities[keep], rest.accelerations[keep])
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
    plan_from: plans from where the message has the planning joints, at rest, as `plan` does; None: it cannot
    replaces: may it take the place of a task that is under way?
    """

    line: str
    replans: int
    plan: Callable[[], TaskPlan]
    feed_back: Callable[[str, int, float, float], None]
    end: Callable[[int, str, int, int], None]
    goes_on: bool = False
    group: str = ""
    plan_from: Callable[[JointState], TaskPlan] | None = None
    replaces: bool = False


@dataclass(eq=False)
class Coming:
    """A motion that is being planned. at: seconds on the curve of the motion under way when that begins to brake, until
    when this one is wanted; None: the robot stands
    request: in the worker's queue; plan: what came out
    """

    at: float | None = None
    request: Any = None
    plan: TaskPlan | None = None


@dataclass
class Run:
    """A task under way. Another task may take its place.

    replans: how many are left; state: "planning", "sending", "moving" or "stopping"
    plans: motions planned for the task, 0 while the motion is one of the task before
    goal_index: of the goal that the present motion leads to
    why: it is being stopped; code: with which it ends when the robot has stopped, None: another motion may be planned
    deadline: seconds on the node's clock when the controller must have answered or ended a stop, or while the robot
        moves must have been heard of again
    coming: the motion that is planned next, also while the robot moves; else None
    motion: that the robot executes; while another one is coming it brakes in the end
    groups: names of the group whose motion was sent last
    sent: the motion that the controller was sent last, the same until it brakes; sent_at: seconds on the node's clock
    told: do other arms know of a motion?
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
    coming: Coming | None = None
    motion: MotionUnderWay | None = None
    groups: Collection[str] = ()
    sent: MotionUnderWay | None = None
    sent_at: float = 0.0
    told: bool = False
    end_motion: Any = None
    over: bool = False
    held: bool = False
    checking: bool = False
    checked: float = 0.0
    deadline: float = np.inf
