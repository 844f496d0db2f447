"""Executes motions: a task, such as a goal of ~/move, plans one, a controller executes it, and the scene is watched.

Everything here runs on the executor's thread and waits for nothing: planning and checks are jobs of the worker, whose
results come back through an inbox, and the controller answers by futures. While the robot moves, every change of the
scene has the rest of the motion checked as planners check motions. Where it is no longer free the robot brakes along
the motion, and another one is planned from where it stands.
"""

import time
from collections.abc import Callable

from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from gpu_planners_msgs.action import Move
from gpu_planners_msgs.srv import PlanMotion

from ..common.actions import Inbox, LongAction
from ..common.request_error import error_text
from ..common.ros import LATCHED, optional_module, seconds, steady_clock
from ..common.worker import ENDING
from . import codes
from .arm_services import ArmServices
from .move_run import Run, Task, TaskPlan

ENDINGS = {
    GoalStatus.STATUS_SUCCEEDED: "succeeded",
    GoalStatus.STATUS_CANCELED: "was cancelled",
    GoalStatus.STATUS_ABORTED: "was aborted",
}


class Controller:
    """A client of the action follow_joint_trajectory of control_msgs. All is done on the executor's thread.

    name: of the action; missing: why motions cannot be executed at all; "" when they can
    """

    def __init__(self, node: Node, name: str) -> None:
        self.name = name
        actions, self.missing = optional_module("control_msgs.action", "execution of motions")
        self._kind = None if self.missing else actions.FollowJointTrajectory
        self._client = None if self.missing else ActionClient(node, self._kind, name)

    @property
    def problem(self) -> str:
        """Why no motion can be sent now; "" when one can."""
        if self._client is not None and not self._client.server_is_ready():
            return f"no controller serves the action '{self.name}' (parameter controller_action)"
        return self.missing

    def send(
        self,
        trajectory: JointTrajectory,
        answered: Callable[[bool], None],
        ended: Callable[[str], None],
        heard: Callable[[], None] = lambda: None,
    ) -> Callable[[], None]:
        """Send a trajectory, which takes the place of the one before -> what has the controller end it, as soon as it
        has taken it. There must be no `problem`.

        answered: called with whether the controller takes it; ended: with what went wrong, "" when nothing did
        heard: called when the controller says that it still executes it
        """
        assert self._client is not None and self._kind is not None
        sent = self._client.send_goal_async(self._kind.Goal(trajectory=trajectory), lambda _: heard())

        def taken():
            return sent.exception() is None and sent.result().accepted

        def take_answer(_):
            if taken():
                sent.result().get_result_async().add_done_callback(lambda result: ended(_what_went_wrong(result)))
            answered(taken())

        sent.add_done_callback(take_answer)
        return lambda: sent.add_done_callback(lambda _: taken() and sent.result().cancel_goal_async())


def _what_went_wrong(future):
    if future.exception() is not None:
        return str(future.exception())
    answer, result = future.result(), future.result().result
    if answer.status == GoalStatus.STATUS_SUCCEEDED and result.error_code == 0:
        return ""
    why = f": {result.error_string}" if result.error_string else ""
    ending = ENDINGS.get(answer.status, "ended")
    return f"the motion {ending} by the controller, error code {result.error_code}{why}"


TICK_S = 0.02
FEEDBACK_TICKS = 5
SILENCE_S = 5.0  # on the node's clock: longer than that no controller takes to answer
FAILED = codes.CONTROL_FAILED
PLAN_FIELDS = Move.Goal.get_fields_and_field_types().keys() - {"replans"}  # of a PlanMotion request


class Executing:
    """Executes one task at a time."""

    def __init__(self, arm: ArmServices) -> None:
        self._arm, self._worker = arm, arm.worker
        self._run: Run | None = None
        self._ticks = 0
        self._inbox = Inbox(arm.node)
        self._controller = Controller(arm.node, arm.values.controller_action)
        self._executing = arm.node.create_publisher(JointTrajectory, "~/executing", LATCHED)
        self._timer = arm.node.create_timer(TICK_S, self._tick, clock=steady_clock())
        self._timer.cancel()

    @property
    def state(self) -> str:
        run = self._run  # read once: any thread may ask
        return run.state if run else "idle"

    def start(self, task: Task) -> None:
        """Begin a task; it ends at once where another is under way, or there is no controller. From any thread."""
        self._inbox.put(self._begin, task)

    def cancel(self, task: Task) -> None:
        """End a task: at once while it plans, else when the robot has stopped. From any thread."""
        self._inbox.put(self._cancel, task)

    def close(self) -> None:
        """End the task under way; what the controller has, it goes on with. From any thread."""
        self._inbox.put(self._close)

    def clock_jumped_back(self, by: float) -> None:
        """End the task under way when the node's clock has gone back by some seconds: where on its motion the robot is
        is not known then. On the executor's thread."""
        run = self._run
        if run is not None and run.end_motion is not None:
            run.end_motion()
            self._finish(run, FAILED, f"the clock jumped back by {by:.3g} s while the robot moved")

    def _close(self):
        run = self._run
        if run is not None:
            goes_on = "" if run.state == "planning" else "; the controller goes on with what it has"
            self._finish(run, codes.ABORT, ENDING + goes_on)

    def _begin(self, task):
        run = Run(task, task.replans)
        problem = self._controller.problem
        if problem or self._run is not None:
            self._finish(run, FAILED, problem or "another motion is being executed; cancel it first")
            return
        self._run = run
        self._timer.reset()
        self._plan(run)

    def _cancel(self, task):
        run = self._run
        if run is None or task is not run.task:
            return
        run.cancelled = True
        if run.state == "planning":
            self._worker.cancel(run.request)
            when = "while the robot stood" if run.plans else "before the robot moved"
            self._finish(run, codes.PREEMPTED, f"cancelled {when}")
        elif run.state == "moving":
            self._stop(run, "cancelled")

    def _is_current(self, run, motion):
        """Does an answer about a motion of a run still count?"""
        return run is self._run and motion is run.motion

    # planning

    def _plan(self, run):
        run.state, run.motion, run.end_motion, run.held, run.over = "planning", None, None, False, False
        self._feed_back(run)

        def job():
            try:
                plan = run.task.plan()
            except Exception as error:  # a client must get an answer whatever goes wrong
                refuse(error)
            else:
                self._inbox.put(self._take_plan, run, plan)

        def refuse(error):
            self._inbox.put(self._take_plan, run, TaskPlan(codes.code_of(error), error_text(error)))

        run.request = self._worker.ask(run.task.line, job, refuse)

    def _take_plan(self, run, plan):
        if run is not self._run or run.state != "planning":
            return
        motion = plan.motion
        if motion is None:
            before = f"{run.why}, the robot was stopped, and then: " if run.why else ""
            self._finish(run, plan.code, before + plan.message)
            return
        if problem := self._controller.problem:
            self._finish(run, FAILED, problem)
            return
        self._executing.publish(plan.trajectory)  # before it begins: other arms should know
        run.state, run.plans, run.goal_index, run.motion = "sending", run.plans + 1, plan.goal_index, motion
        run.checking, run.checked = False, time.monotonic()
        run.deadline = self._arm.now() + SILENCE_S
        run.end_motion = self._controller.send(
            plan.trajectory,
            lambda accepted: self._take_answer(run, motion, accepted),
            lambda problem: self._take_end(run, motion, problem),
            lambda: self._hear(run),
        )

    # moving

    def _take_answer(self, run, motion, accepted):
        if not self._is_current(run, motion):
            return
        if not accepted:
            self._finish(run, FAILED, f"the controller '{self._controller.name}' refused the motion")
            return
        motion.began, run.state = self._arm.now(), "moving"
        self._hear(run)
        run.checked = time.monotonic()
        self._feed_back(run)
        if run.cancelled:
            self._stop(run, "cancelled")

    def _hear(self, run):
        """The controller says that it executes the motion, or the robot is seen to move."""
        if run.state == "moving":
            run.deadline = self._arm.now() + SILENCE_S

    def _take_end(self, run, motion, problem):
        """The motion itself has ended; a stop may have taken its place."""
        if not self._is_current(run, motion):
            return
        run.over = True
        if run.state == "stopping":
            if run.held:
                self._take_stop(run, motion, "")
        elif problem:
            self._finish(run, FAILED, problem)
        else:
            self._finish(run, codes.SUCCESS, f"goal {run.goal_index} reached, motions planned: {run.plans}")

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
                self._finish(run, FAILED, f"while the robot moved: {problem}")
                return
        moving = run.state == "moving"
        if moving:
            passed = run.motion.phase
            phase = self._advance(run.motion)
            if run.motion.phase > passed:
                self._hear(run)
        if run.state != "planning" and self._arm.now() > run.deadline:
            run.end_motion()
            more = ", and the robot was not seen to move" if moving else " more than it may take"
            text = f"the controller '{self._controller.name}' has said nothing for {SILENCE_S:g} s{more}"
            self._finish(run, FAILED, f"{run.why}; {text}" if run.why else text)
        elif moving:
            self._watch(run, phase)

    def _advance(self, motion):
        return motion.advance(self._arm.seen(motion.robot), self._arm.now())

    def _watch(self, run, phase):
        """Have the rest of the motion checked, unless that is under way; it must not take too long."""
        motion, patience = run.motion, self._arm.values.monitor_patience_s
        if run.checking:
            if time.monotonic() - run.checked > patience:
                self._stop(run, f"the scene could not be looked at for {patience:g} s, parameter monitor_patience_s")
            return
        run.checking = True

        def job():
            try:
                met = self._arm.contact_ahead(motion, phase)
            except Exception as error:  # not to know is not to be free
                met = f"the rest of the motion cannot be checked: {error_text(error)}"
            self._inbox.put(self._take_check, run, motion, met)

        self._worker.do(job)

    def _take_check(self, run, motion, met):
        if not self._is_current(run, motion):
            return
        run.checking, run.checked = False, time.monotonic()
        if met and run.state == "moving":
            self._stop(run, met)

    # stopping

    def _stop(self, run, why):
        run.state, run.why, motion, now = "stopping", why, run.motion, self._arm.now()
        stop = motion.stop(self._arm.seen(motion.robot), now)
        run.deadline = now + seconds(stop.points[-1].time_from_start) + SILENCE_S
        self._arm.node.get_logger().warning(f"move: stopping: {why}")
        end_motion = run.end_motion

        def answered(accepted):
            if accepted or not self._is_current(run, motion):
                return
            run.held = True  # by a controller that takes no second trajectory: its own way of stopping has to do
            if run.over:
                self._take_stop(run, motion, "")
            else:
                end_motion()

        self._controller.send(stop, answered, lambda problem: self._take_stop(run, motion, problem))
        self._feed_back(run)

    def _take_stop(self, run, motion, problem):
        if not self._is_current(run, motion):
            return
        if run.cancelled:
            self._finish(run, codes.PREEMPTED, "cancelled; the robot has stopped")
        elif problem:
            self._finish(run, FAILED, f"{run.why}; while the robot was stopped: {problem}")
        elif run.replans > 0:
            run.replans -= 1
            self._plan(run)
        else:
            code = codes.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE
            self._finish(run, code, f"{run.why}; the robot was stopped, and {run.plans} motions were planned")

    # telling

    def _feed_back(self, run):
        state, progress, left, motion = "moving" if run.state == "sending" else run.state, 0.0, 0.0, run.motion
        if motion is not None:
            phase = self._advance(motion)
            left, progress = motion.duration - phase, phase / motion.duration if motion.duration > 0 else 1.0
        run.task.feed_back(state, run.plans, progress, left)

    def _finish(self, run, code, message):
        if run is self._run:
            self._run = None
            if run.plans:
                self._executing.publish(JointTrajectory())
        self._arm.node.log(f"move: {message}", code == codes.SUCCESS)
        run.task.end(code, message, run.goal_index, run.plans)


def offer_move(arm: ArmServices) -> None:
    """Offer the action ~/move, which plans as ~/plan_motion does, and has the motion executed."""

    def accept(goal):
        request = PlanMotion.Request(**{name: getattr(goal.request, name) for name in PLAN_FIELDS})

        def feed_back(state, plans, progress, remaining_s):
            goal.publish_feedback(Move.Feedback(state=state, plans=plans, progress=progress, remaining_s=remaining_s))

        def end(code, message, goal_index, plans):
            result = Move.Result(code=code, message=message, goal_index=goal_index, plans=plans)
            action.end(goal, result, code == codes.SUCCESS)

        task = Task("~/move", int(goal.request.replans), lambda: arm.plan_to_move(request), feed_back, end)
        arm.executing.start(task)
        return lambda: arm.executing.cancel(task)

    action = LongAction(arm.node, Move, "~/move", accept)
