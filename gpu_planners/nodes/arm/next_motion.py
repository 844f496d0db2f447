"""The next motion: planned while the robot stands, or while it moves, and then joined to the motion under way.

A robot that moves is given a lead: its motion goes on for so long, and would then brake. The next motion is planned
from where the robot would come to rest. In time, it is joined to the motion under way at the end of the lead, without a
stop where that is proven (`arm.control.switching`). Planning and joining are jobs of the worker; what comes of them is
told on the executor's thread.
"""

import time
from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
from rclpy.publisher import Publisher

from ...arm.control.switching import switch
from ...arm.trajectory import Trajectory
from ...errors import error_text
from ..common.actions import Inbox
from ..common.ros import time_message
from . import codes
from .arm_services import ArmServices
from .conversions import joint_state
from .move_run import LEAD_S, Coming, MotionUnderWay, Run, TaskPlan

KEPT = 100  # plans, and motions joined, whose times count
PERCENTILE = 95.0  # of them, which the lead has room for
PLAN_S, JOIN_S = 0.5, 0.2  # that they take, before there was one
LEAST_S, MOST_S = 0.1, 5.0  # of what they took
LATE_S = 0.05  # by which a controller may have a motion after it was sent, before there was one
MISSED = 0.01  # rad or m from where a motion begins, within which a robot at rest may begin it


class Took:
    """How long jobs of the worker took, seconds, with what they waited for. first: before there was one"""

    def __init__(self, first: float) -> None:
        self._first, self._seconds = first, deque[float](maxlen=KEPT)

    def add(self, seconds: float) -> None:
        self._seconds.append(seconds)

    def mostly(self) -> float:
        """Seconds in which nearly all are done."""
        seconds = list(self._seconds)
        return float(np.clip(np.percentile(seconds, PERCENTILE) if seconds else self._first, LEAST_S, MOST_S))


class NextMotion:
    """Plans motions of a run and has the controller execute them. Methods but `braking` are called on the executor's
    thread.

    execution: Executing, which decides what becomes of the run; published: of motions, for other arms
    """

    def __init__(self, execution: Any, arm: ArmServices, inbox: Inbox, published: Publisher) -> None:
        self._execution, self._arm, self._inbox, self._published = execution, arm, inbox, published
        self._planned, self._joins, self._answers = Took(PLAN_S), Took(JOIN_S), Took(LATE_S)

    @property
    def lead_s(self) -> float:
        """Seconds that a motion goes on while another one is planned."""
        if self._arm.values.switch_lead_s:
            return self._arm.values.switch_lead_s
        return self._planned.mostly() + self._joins.mostly() + self._send_s

    @property
    def _send_s(self):
        """Before a motion leaves the one under way, when it must be sent: the controller must have it by then."""
        return LEAD_S + self._answers.mostly()

    def taken(self, seconds: float) -> None:
        """A controller took a motion so long after it was sent."""
        self._answers.add(seconds)

    def plan(self, run: Run) -> None:
        """Have a motion planned for a robot that stands."""
        self.drop(run)
        _stands(run)
        run.coming = Coming()
        self._execution.feed_back(run)
        self._ask(run, run.coming)

    def go_over(self, run: Run, braking: tuple[MotionUnderWay, float] | None = None) -> None:
        """Have a motion planned that takes the place of the one under way.

        braking: as of the method, if it was made before
        """
        assert run.motion is not None
        if braking is None and run.task.plan_from and run.task.group in run.groups:
            try:
                braking = self.braking(run.motion, self._execution.advance(run.motion))
            except Exception as error:  # whatever it is, the robot must stop
                self._arm.node.get_logger().error(f"move: another motion only after a stop: {error_text(error)}")
        if braking is None:
            run.replans, run.why = run.replans + 1, run.why or "another goal came"
            self._execution.stop(run)
            return
        run.motion, at = braking
        run.checking, run.coming = False, Coming(at)
        self._execution.feed_back(run)
        self._ask(run, run.coming)

    def rest(self, run: Run) -> None:
        """The robot rests where the motion that is coming begins."""
        assert run.coming is not None
        _stands(run)
        if run.coming.plan is not None:
            self._send(run, run.coming.plan)

    def drop(self, run: Run) -> None:
        """Forget the motion that is planned next."""
        if run.coming is not None:
            self._arm.worker.cancel(run.coming.request)
            run.coming = None

    def braking(self, motion: MotionUnderWay, phase: float) -> tuple[MotionUnderWay, float] | None:
        """A motion under way that goes on for the lead and then brakes, and when it does on its curve; None where its
        points give no accelerations."""
        if not np.isfinite(motion.curve.accelerations).all():
            return None
        at = min(phase + self.lead_s, motion.duration)
        return motion.braking(at), at

    def _ask(self, run, coming):
        """Have the motion of a task planned; coming.at None: from where the robot is, else from the motion's end."""
        task, began, start = run.task, time.monotonic(), None
        if coming.at is not None:
            assert run.motion is not None
            start = joint_state(run.motion.robot.joint_names, run.motion.curve.positions[-1])
            start.header.stamp = time_message(run.motion.zero(self._arm.now()) + run.motion.duration)

        def job():
            try:
                plan = task.plan() if start is None else task.plan_from(start)
            except Exception as error:  # a client must get an answer whatever goes wrong
                refuse(error)
                return
            if plan.motion is not None:
                self._planned.add(time.monotonic() - began)
            self._inbox.put(self._take_plan, run, coming, plan)

        def refuse(error):
            self._inbox.put(self._take_plan, run, coming, TaskPlan(codes.code_of(error), error_text(error)))

        coming.request = self._arm.worker.ask(task.line, job, refuse)

    def _join(self, run, coming):
        """Have the motion that was planned joined to the one under way, in the scene as it is then."""
        under_way, began = run.motion, time.monotonic()

        def job():
            motion = None
            try:
                motion, problem = self._joined(under_way, coming)
            except Exception as error:  # not to know is not to be free
                problem = f"the next motion cannot be joined to the one under way: {error_text(error)}"
            self._joins.add(time.monotonic() - began)
            self._inbox.put(self._take_joined, run, coming, motion, problem)

        self._arm.worker.do(job)

    def _joined(self, under_way, coming):
        following, phase = coming.plan.motion, under_way.phase
        if following.robot.joint_names != under_way.robot.joint_names:
            return None, "the next motion is one of other joints"
        now, length = self._arm.now(), under_way.duration
        zero = under_way.zero(now)
        met = self._arm.contact_ahead(under_way, phase) or self._arm.contact_ahead(following, 0.0, zero + length)
        at = max(coming.at, max(phase, now - zero) + self._joins.mostly() + self._send_s)
        if met or at >= under_way.duration:
            return None, met
        scene, after = self._arm.scene, following.curve
        others = (self._arm.measured() or {}) if coming.plan.group else {}  # joints of other groups
        checker = scene.checker_for(scene.objects, following.margin, others, coming.plan.group)
        motion = Trajectory(after.times, after.positions, after.velocities, after.accelerations)
        velocity, acceleration, jerk = _limits(following.robot, under_way.curve, after)
        switched = switch(under_way.curve, at, motion, velocity, acceleration, checker, jerk)
        curve = under_way.curve.then(at, switched.trajectory, phase)
        joined = replace(
            following,
            curve=curve,
            began=under_way.began,
            ahead=under_way.ahead,
            phase=phase,
            seen_at=None,
            first=at,
            judged=None,  # it is sooner at its places than it would be after the stop
        )
        return joined, self._arm.contact_ahead(joined, phase, zero)

    def _take_plan(self, run, coming, plan):
        if not self._execution.is_under_way(run) or coming is not run.coming or run.code is not None:
            return
        coming.plan = plan
        if plan.motion is not None and run.state != "planning":
            self._join(run, coming)
        elif plan.motion is not None:
            self._send(run, plan)
        elif run.state == "planning":
            before = f"{run.why}, the robot was stopped, and then: " if run.why else ""
            self._execution.finish(run, plan.code, before + plan.message)
        else:
            run.code, run.why = plan.code, f"{run.why}, and then: {plan.message}" if run.why else plan.message
            if run.state == "moving":
                self._execution.stop(run)

    def _send(self, run, plan):
        """Send a motion to a robot that stands."""
        motion, seen = plan.motion, self._arm.seen(plan.motion.robot)
        controller = self._execution.controller_of(plan.group)
        self._execution.use(controller)
        if problem := controller.problem:
            self._execution.finish(run, codes.CONTROL_FAILED, problem)
            return
        if run.coming.at is not None and seen and abs(seen.q - motion.curve.positions[0]).max() > MISSED:
            self.plan(run)  # it was planned for another place to stop
            return
        run.state = "sending"
        self._hand_over(
            run, motion, plan, plan.trajectory, lambda accepted: self._execution.take_answer(run, motion, accepted)
        )

    def _hand_over(self, run, motion, plan, trajectory, answered):
        """Have the controller execute a motion in place of what it has."""
        self._published.publish(trajectory)  # before it begins: other arms should know
        run.told, run.coming, run.groups = True, None, {run.task.group, plan.group}
        run.plans, run.goal_index = run.plans + 1, plan.goal_index
        run.motion, run.sent, run.checking, run.checked, run.over = motion, motion, False, time.monotonic(), False
        run.sent_at = self._arm.now()
        self._execution.expect(run)
        run.end_motion = self._execution.controller_of(plan.group).send(
            trajectory,
            answered,
            lambda problem: self._execution.take_end(run, motion, problem),
            lambda: self._execution.hear(run),
        )

    def _take_joined(self, run, coming, motion, problem):
        """motion: the one under way and the next as one; None where the next begins when the robot rests"""
        if (
            not self._execution.is_under_way(run)
            or coming is not run.coming
            or run.code is not None
            or run.state == "planning"
        ):
            return
        if problem:
            self.drop(run)
            run.replans, run.why = run.replans + 1, problem
            if run.state == "moving":
                self._execution.stop(run)
        elif motion is not None and self._execution.advance(run.motion) + self._send_s >= motion.first:
            self._join(run, coming)  # too late for that place, not for a later one
        elif motion is not None:
            self._switch(run, motion)

    def _switch(self, run, motion):
        now, before, end_before = self._arm.now(), (run.motion, run.sent), run.end_motion
        motion.phase, motion.seen_at = run.motion.phase, run.motion.seen_at
        plan = run.coming.plan
        try:
            trajectory = motion.rest(self._arm.seen(motion.robot), now)
        except Exception as error:  # whatever it is, the robot must not go on
            self._take_joined(run, run.coming, None, f"the next motion cannot be sent: {error_text(error)}")
            return

        def answered(accepted):
            if not self._execution.is_under_way(run) or motion is not run.sent:
                return
            if accepted:
                self.taken(self._arm.now() - run.sent_at)
                run.end_motion = end_motion
            elif run.state == "moving":
                (run.motion, run.sent), run.end_motion = before, end_before
                run.code, run.why = (
                    codes.CONTROL_FAILED,
                    f"the controller '{self._execution.controller_of(plan.group).name}' refused the motion",
                )
                self._execution.stop(run)

        run.state, run.why = "moving", ""
        self._hand_over(run, motion, plan, trajectory, answered)
        end_motion = run.end_motion
        run.end_motion = lambda: (end_before(), end_motion())
        self._execution.feed_back(run)


def _stands(run):
    """Nothing is under way any more."""
    run.state, run.motion, run.sent, run.end_motion, run.held, run.over = "planning", None, None, None, False, False


def _limits(robot, *curves):
    """(dof,) velocity, acceleration and jerk for the way from one curve to another: of the first two the greatest share
    of the robot's limits that a joint takes on one of them, of jerk the robot's limits, None where it has none."""
    limits, rates = (robot.velocity, robot.acceleration), [curve.rates() for curve in curves]
    shares = (max(float((each[k] / limits[k]).max()) for each in rates) for k in range(2))
    return *(min(share, 1.0) * most for share, most in zip(shares, limits, strict=True)), robot.jerk
