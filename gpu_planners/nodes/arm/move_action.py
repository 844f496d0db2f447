"""The action ~/move: plans a motion, has a controller execute it, and watches the scene until it has ended.

Everything here runs on the executor's thread and waits for nothing: planning and checks are jobs of the worker, whose
results come back through an inbox, and the controller answers by futures. While the robot moves, every change of the
scene has the rest of the motion checked as planners check motions. Where it is no longer free the robot brakes along
the motion, and another one is planned from where it stands.
"""

import time
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from gpu_planners_msgs.action import Move
from gpu_planners_msgs.srv import PlanMotion

from ..common.diagnostics import steady_clock
from ..common.inbox import Inbox
from ..common.long_action import Ending, LongAction
from ..common.qos import LATCHED
from ..common.request_error import error_text
from ..common.worker import Worker
from . import codes as error_codes
from .codes import code_of
from .controller import Controller
from .move_run import Motion, Run, Seen

TICK_S = 0.02
FEEDBACK_TICKS = 5
PLAN_FIELDS = (
    "planner",
    "joint_goals",
    "pose_goals",
    "margin",
    "time_limit_s",
    "seed",
    "velocity_scaling",
    "acceleration_scaling",
)


class MoveAction:
    """The action of a node.

    values: called for the ArmParameters
    plan: called on the worker with a PlanMotion.Request for (response, the Motion or None); may raise
    check: called on the worker with a Motion and the seconds on it from which the rest is checked, for what the rest
        would meet, "" when it is free; may raise
    seen: called for where joint_states had the robot, None without a recent message; on the executor's thread
    """

    def __init__(
        self,
        node: Node,
        worker: Worker,
        values: Callable[[], Any],
        plan: Callable[[PlanMotion.Request], tuple[PlanMotion.Response, Motion | None]],
        check: Callable[[Motion, float], str],
        seen: Callable[[], Seen | None],
    ) -> None:
        self._node, self._worker, self._values = node, worker, values
        self._plan_motion, self._check_motion, self._seen = plan, check, seen
        self._run: Run | None = None
        self._ticks = 0
        self._inbox = Inbox(node)
        self._controller = Controller(node, values().controller_action)
        self._action = LongAction(node, Move, "~/move", self._accept, self._cancel)
        self._executing = node.create_publisher(JointTrajectory, "~/executing", LATCHED)
        self._timer = node.create_timer(TICK_S, self._tick, clock=steady_clock())
        self._timer.cancel()

    @property
    def state(self) -> str:
        """For diagnostics."""
        return self._run.state if self._run else "idle"

    def _accept(self, goal):
        run = Run(goal, int(goal.request.replans))
        problem = self._controller.problem
        if problem or self._run is not None:
            self._finish(
                run, error_codes.CONTROL_FAILED, problem or "another motion is being executed; cancel it first"
            )
            return
        self._run = run
        self._timer.reset()
        self._plan(run)

    def _cancel(self, goal):
        run = self._run
        if run is None or goal is not run.goal:
            return
        run.cancelled = True
        if run.state == "planning":
            self._worker.cancel(run.request)
            self._finish(run, error_codes.PREEMPTED, "cancelled before the robot moved")
        elif run.state == "moving":
            self._stop(run, "cancelled")

    # planning

    def _plan(self, run):
        run.state, run.motion, run.execution, run.held, run.over = "planning", None, None, False, False
        self._feed_back(run)
        request = PlanMotion.Request(**{name: getattr(run.goal.request, name) for name in PLAN_FIELDS})

        def job():
            try:
                response, motion = self._plan_motion(request)
            except Exception as error:  # a client must get an answer whatever goes wrong
                refuse(error)
            else:
                self._inbox.put(self._take_plan, run, response, motion)

        def refuse(error):
            response = PlanMotion.Response(code=code_of(error), message=error_text(error))
            self._inbox.put(self._take_plan, run, response, None)

        run.request = self._worker.ask("~/move", job, refuse)

    def _take_plan(self, run, response, motion):
        if run is not self._run or run.state != "planning":
            return
        if motion is None:
            before = f"{run.why}, the robot was stopped, and then: " if run.why else ""
            self._finish(run, response.code, before + response.message)
            return
        if problem := self._controller.problem:
            self._finish(run, error_codes.CONTROL_FAILED, problem)
            return
        self._executing.publish(response.trajectory)  # before it begins: other arms should know
        run.state, run.plans, run.goal_index, run.motion = "sending", run.plans + 1, response.goal_index, motion
        run.checking, run.checked = False, time.monotonic()
        run.execution = self._controller.send(
            response.trajectory,
            lambda accepted: self._take_answer(run, motion, accepted),
            lambda problem: self._take_end(run, motion, problem),
        )

    # moving

    def _take_answer(self, run, motion, accepted):
        if run is not self._run or motion is not run.motion:
            return
        if not accepted:
            self._finish(
                run, error_codes.CONTROL_FAILED, f"the controller '{self._controller.name}' refused the motion"
            )
            return
        motion.began, run.state = self._now(), "moving"
        run.checked = time.monotonic()
        self._feed_back(run)
        if run.cancelled:
            self._stop(run, "cancelled")

    def _take_end(self, run, motion, problem):
        """The motion itself has ended; a stop may have taken its place."""
        if run is not self._run or motion is not run.motion:
            return
        run.over = True
        if run.state == "stopping":
            if run.held:
                self._take_stop(run, motion, "")
        elif problem:
            self._finish(run, error_codes.CONTROL_FAILED, problem)
        else:
            self._finish(run, error_codes.SUCCESS, f"goal {run.goal_index} reached, motions planned: {run.plans}")

    def _tick(self):
        run = self._run
        if run is None:
            self._timer.cancel()
            return
        self._ticks += 1
        if self._ticks % FEEDBACK_TICKS == 0:
            self._feed_back(run)
            problem = self._controller.problem
            if problem and run.state != "planning":
                self._finish(run, error_codes.CONTROL_FAILED, f"while the robot moved: {problem}")
                return
        if run.state != "moving":
            return
        phase = run.motion.advance(self._seen(), self._now())
        patience = self._values().monitor_patience_s
        if not run.checking:
            self._check(run, run.motion, phase)
        elif time.monotonic() - run.checked > patience:
            self._stop(run, f"the scene could not be looked at for {patience:g} s, parameter monitor_patience_s")

    def _check(self, run, motion, phase):
        run.checking = True

        def job():
            try:
                met = self._check_motion(motion, phase)
            except Exception as error:  # not to know is not to be free
                met = f"the rest of the motion cannot be checked: {error_text(error)}"
            self._inbox.put(self._take_check, run, motion, met)

        self._worker.do(job)

    def _take_check(self, run, motion, met):
        if run is not self._run or motion is not run.motion:
            return
        run.checking, run.checked = False, time.monotonic()
        if met and run.state == "moving":
            self._stop(run, met)

    # stopping

    def _stop(self, run, why):
        run.state, run.why, motion = "stopping", why, run.motion
        stop = motion.stop(self._seen(), self._now())
        self._node.get_logger().warning(f"move: stopping: {why}")
        moving = run.execution

        def answered(accepted):
            if accepted or run is not self._run or motion is not run.motion:
                return
            run.held = True  # by a controller that takes no second trajectory: its own way of stopping has to do
            if run.over:
                self._take_stop(run, motion, "")
            else:
                moving.cancel()

        if self._controller.problem:
            return  # the next tick says so
        self._controller.send(stop, answered, lambda problem: self._take_stop(run, motion, problem))
        self._feed_back(run)

    def _take_stop(self, run, motion, problem):
        if run is not self._run or motion is not run.motion:
            return
        if run.cancelled:
            self._finish(run, error_codes.PREEMPTED, "cancelled; the robot has stopped")
        elif problem:
            self._finish(run, error_codes.CONTROL_FAILED, f"{run.why}; while the robot was stopped: {problem}")
        elif run.replans > 0:
            run.replans -= 1
            self._plan(run)
        else:
            self._finish(
                run,
                error_codes.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE,
                f"{run.why}; the robot was stopped, and {run.plans} motions were planned",
            )

    # telling

    def _feed_back(self, run):
        feedback = Move.Feedback(state="moving" if run.state == "sending" else run.state, plans=run.plans)
        if run.motion is not None:
            phase = run.motion.advance(self._seen(), self._now())
            feedback.remaining_s = run.motion.duration - phase
            feedback.progress = phase / run.motion.duration if run.motion.duration > 0 else 1.0
        run.goal.publish_feedback(feedback)

    def _finish(self, run, code, message):
        if run is self._run:
            self._run = None
            if run.plans:
                self._executing.publish(JointTrajectory())
        logger = self._node.get_logger()
        if code == error_codes.SUCCESS:  # rclpy wants a call of its own for each severity
            logger.info(f"move: {message}")
        else:
            logger.warning(f"move: {message}")
        result = Move.Result(code=code, message=message, goal_index=run.goal_index, plans=run.plans)
        self._action.end(run.goal, result, Ending.SUCCEEDED if code == error_codes.SUCCESS else Ending.ABORTED)

    def _now(self):
        return self._node.get_clock().now().nanoseconds * 1e-9
