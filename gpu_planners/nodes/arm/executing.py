"""Executes motions: a task, such as a goal of ~/move, plans one, a controller executes it, and the scene is watched.

Everything here runs on the executor's thread and waits for nothing: planning and checks are jobs of the worker, whose
results come back through an inbox, and the controller answers by futures. While the robot moves, every change of the
scene has the rest of the motion checked as planners check motions. Where it is no longer free the robot brakes along
the motion, and another one is planned from where it stands. Where that is not near, and where another task takes the
place of the one under way, the next motion is planned while the robot moves, and joined to the motion under way.
Whoever says stop (a client that cancels, `trajectory_execution_event`, the end of the node) has it brake in the same
way.
"""

import threading
import time
from collections.abc import Callable

from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from ...errors import error_text, one_line
from ..common.actions import Inbox
from ..common.ros import LATCHED, seconds, steady_clock
from ..common.worker import ENDING
from . import codes
from .arm_services import ArmServices
from .controller import Controller
from .given_controllers import Controllers
from .move_run import LEAD_S, MotionUnderWay, Run, Task
from .next_motion import NextMotion

TICK_S = 0.02
FEEDBACK_TICKS = 5
LAST_S = 2 * TICK_S + LEAD_S  # before a motion would have to brake, when it is sent word that it does
SILENCE_S = 5.0  # on the node's clock: longer than that no controller takes to answer
CLOSE_S = 5.0  # for the robot to stop, where `close` may wait for it
STOP = "stop"  # what trajectory_execution_event says
FAILED = codes.CONTROL_FAILED


class Executing:
    """Executes one task at a time; another one may take its place."""

    def __init__(self, arm: ArmServices) -> None:
        self._arm, self._worker = arm, arm.worker
        self._run: Run | None = None
        self._idle, self._closing = threading.Event(), False
        self._idle.set()
        self._ticks = 0
        self._cancels: list[Callable[[], None]] = []  # of goals that move the robot, also those that wait
        self._inbox = Inbox(arm.node)
        self._controllers = Controllers(arm.node, arm.values)
        self._controller = self.controller_of("")  # of the motion under way
        self._executing = arm.node.create_publisher(JointTrajectory, "~/executing", LATCHED)
        self._next = NextMotion(self, arm, self._inbox, self._executing)
        self._timer = arm.node.create_timer(TICK_S, self._tick, clock=steady_clock())
        self._timer.cancel()
        arm.node.create_subscription(String, "trajectory_execution_event", self._take_event, 10)

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

    def on_stop(self, cancel: Callable[[], None]) -> None:
        """Have a stop also end what else moves the robot, or waits for its turn to. cancel: called on the executor's
        thread"""
        self._cancels.append(cancel)

    def close(self, patience_s: float = -1.0) -> None:
        """Begin nothing more, stop the robot, and end the task when it rests, or after patience_s seconds (negative:
        CLOSE_S). From any thread but the executor's, which must spin."""
        self._closing = True
        self._inbox.put(lambda: self._run and self._halt(self._run, codes.ABORT, ENDING))
        if not self._idle.wait(CLOSE_S if patience_s < 0 else patience_s):
            self._inbox.put(self._give_up)

    def clock_jumped_back(self, by: float) -> None:
        """End the task under way when the node's clock has gone back by some seconds: where on its motion the robot is
        is not known then. On the executor's thread."""
        run = self._run
        if run is not None and run.end_motion is not None:
            run.end_motion()
            self.finish(run, FAILED, f"the clock jumped back by {by:.3g} s while the robot moved")

    def _take_event(self, message):
        """MoveIt's clients say stop on this topic, whoever's motion it is."""
        if message.data.strip().lower() != STOP:
            text = f"trajectory_execution_event says '{one_line(message.data)}', which is not known; allowed: '{STOP}'"
            self._arm.node.get_logger().warning(text)
        else:
            self._inbox.put(self._stop_all)  # behind the tasks that wait to begin

    def _stop_all(self):
        if self._run is not None:
            self._halt(self._run, codes.PREEMPTED, "stopped by trajectory_execution_event")
        for cancel in self._cancels:
            try:
                cancel()
            except Exception as error:  # the others must be cancelled, too
                self._arm.node.get_logger().error(f"move: a stop could not be passed on: {error_text(error)}")

    def _give_up(self):
        if self._run is not None:
            told = f"{ENDING}; the controller was told to stop, and has not said that the robot has stopped"
            self.finish(self._run, codes.ABORT, told)

    def _begin(self, task):
        run, before = Run(task, task.replans), self._run
        controller = self.controller_of(task.group)
        problem = controller.problem
        if self._closing:
            self.finish(run, codes.ABORT, ENDING)
            return
        if before is not None and task.replaces and not problem:
            self._take_over(before, task)
            return
        if problem or before is not None:
            self.finish(run, FAILED, problem or "another motion is being executed; cancel it first")
            return
        self._run, self._controller = run, controller
        self._idle.clear()
        self._timer.reset()
        self._next.plan(run)

    def _take_over(self, run, task):
        """Have a task take the place of the one under way."""
        before, told = run.task, (run.goal_index, run.plans)
        why = f"{run.why}; another goal took its place" if run.why else "another goal took its place"
        self._end(before, codes.PREEMPTED if run.code is None else run.code, why, *told)
        self._next.drop(run)
        run.task, run.replans, run.plans, run.goal_index, run.code, run.why = task, task.replans, 0, 0, None, ""
        if run.state == "planning":
            self._next.plan(run)
        elif run.state == "moving":
            self._next.go_over(run)
        else:
            run.replans += 1  # when the controller has taken what is being sent, or the robot has stopped

    def _cancel(self, task):
        if self._run is not None and task is self._run.task:
            self._halt(self._run, codes.PREEMPTED, "cancelled")

    def _halt(self, run, code, why):
        """End a run: at once while it plans, else when the robot has stopped. Who says so first gives the reason."""
        if run.code is not None:
            return
        run.code, run.why = code, why
        if run.state == "planning":
            self.finish(run, code, f"{why} {'while the robot stood' if run.plans else 'before the robot moved'}")
        elif run.state == "moving":
            self.stop(run)
        # when the controller has taken the motion that is being sent, or when the stop under way has ended

    def controller_of(self, group: str) -> Controller:
        """group: as of PlanningScene.group_named"""
        robot = self._arm.scene.robot
        joints = () if robot is None else robot.groups.get(group, ()) if group else robot.joint_names
        return self._controllers.of(group, joints)

    def use(self, controller: Controller) -> None:
        """Have a controller execute the motions that follow."""
        self._controller = controller

    def is_under_way(self, run: Run) -> bool:
        return run is self._run

    def _is_current(self, run, motion):
        """Does a check of a motion of a run, or the answer to its stop, still count?"""
        return run is self._run and motion is run.motion

    # moving

    def take_answer(self, run: Run, motion: MotionUnderWay, accepted: bool) -> None:
        if run is not self._run or motion is not run.sent:
            return
        if not accepted:
            self.finish(run, FAILED, f"the controller '{self._controller.name}' refused the motion")
            return
        motion.began, run.state = self._arm.now(), "moving"
        motion.ahead = max(motion.ahead, motion.began - run.sent_at)
        self._next.taken(motion.began - run.sent_at)
        self.hear(run)
        run.checked = time.monotonic()
        self.feed_back(run)
        if run.code is not None:
            self.stop(run)
        elif not run.plans:  # another task has taken over meanwhile
            run.replans -= 1
            self._next.go_over(run)

    def hear(self, run: Run) -> None:
        """The controller says that it executes the motion, or the robot is seen to move."""
        if run.state == "moving":
            self.expect(run)

    def expect(self, run: Run) -> None:
        """The controller must say something soon."""
        run.deadline = self._arm.now() + SILENCE_S

    def take_end(self, run: Run, motion: MotionUnderWay, problem: str) -> None:
        """The motion itself has ended; a stop may have taken its place."""
        if run is not self._run or motion is not run.sent:
            return
        run.over = True
        if run.state == "stopping":
            if run.held:
                self._take_stop(run, run.motion, "")
        elif problem:
            self.finish(run, FAILED, problem)
        elif run.coming is not None:
            self._next.rest(run)
        elif run.task.goes_on:
            self._next.plan(run)
        else:
            self.finish(run, codes.SUCCESS, f"goal {run.goal_index} reached, motions planned: {run.plans}")

    def _tick(self):
        run = self._run
        if run is None:
            self._timer.cancel()
            return
        self._ticks += 1
        if self._ticks % FEEDBACK_TICKS == 0:
            self.feed_back(run)
            problem = self._controller.problem
            if problem and run.state != "planning":
                self.finish(run, FAILED, f"while the robot moved: {problem}")
                return
        moving = run.state == "moving"
        if moving:
            passed = run.motion.phase
            phase = self.advance(run.motion)
            if run.motion.phase > passed:
                self.hear(run)
        if run.state != "planning" and self._arm.now() > run.deadline:
            run.end_motion()
            more = ", and the robot was not seen to move" if moving else " more than it may take"
            text = f"the controller '{self._controller.name}' has said nothing for {SILENCE_S:g} s{more}"
            self.finish(run, FAILED, f"{run.why}; {text}" if run.why else text)
        elif moving and (late := self._lateness(run)):
            self._halt(run, FAILED, late)
        elif moving and run.coming is not None and phase + LAST_S >= run.coming.at < run.motion.duration:
            late = "the next motion was not planned in time"
            run.why = f"{run.why}, and {late}" if run.why else late
            self._brake(run, run.motion.rest)
        elif moving:
            self._watch(run, phase)

    def _lateness(self, run):
        """Why a motion should have ended by now; "" where it need not have."""
        values, duration = self._arm.values, run.motion.duration
        scaling, margin = values.allowed_execution_duration_scaling, values.allowed_goal_duration_margin
        took = self._arm.now() - run.motion.began
        if not scaling or took <= scaling * duration + margin:
            return ""
        return (
            f"the controller '{self._controller.name}' has not ended a motion of {duration:.3g} s after {took:.3g} s; "
            f"allowed: {scaling:g} times as long and {margin:g} s, parameters allowed_execution_duration_scaling and "
            "allowed_goal_duration_margin"
        )

    def advance(self, motion: MotionUnderWay) -> float:
        return motion.advance(self._arm.seen(motion.robot), self._arm.now())

    def _watch(self, run, phase):
        """Have the rest of the motion checked, unless that is under way; it must not take too long."""
        motion, patience = run.motion, self._arm.values.monitor_patience_s
        if run.checking:
            if time.monotonic() - run.checked > patience:
                run.why = f"the scene could not be looked at for {patience:g} s, parameter monitor_patience_s"
                self.stop(run)
            return
        run.checking, around = True, run.coming is None and run.replans > 0 and run.task.plan_from

        def job():
            braking = None
            try:
                met = self._arm.contact_ahead(motion, phase)
                if met and around:
                    braking = self._next.braking(motion, phase)
                    if braking and self._arm.contact_ahead(braking[0], phase):
                        braking = None  # too near
            except Exception as error:  # not to know is not to be free
                met = f"the rest of the motion cannot be checked: {error_text(error)}"
            self._inbox.put(self._take_check, run, motion, met, braking)

        self._worker.do(job)

    def _take_check(self, run, motion, met, braking):
        if not self._is_current(run, motion):
            return
        run.checking, run.checked = False, time.monotonic()
        if met and run.state == "moving":
            run.why = met
            if braking and run.coming is None and run.replans > 0:
                run.replans -= 1
                self._next.go_over(run, braking)
            else:
                self.stop(run)

    # stopping

    def stop(self, run: Run) -> None:
        """Have the robot brake, and forget what was planned for it."""
        if run.coming is not None:
            self._next.drop(run)
            run.replans += 1
        assert run.motion is not None
        self._brake(run, run.motion.stop)

    def _brake(self, run, message):
        """message: of the stop, as MotionUnderWay.stop and .rest make it"""
        run.state, motion, now, end_motion = "stopping", run.motion, self._arm.now(), run.end_motion
        self._arm.node.get_logger().warning(f"move: stopping: {run.why}")
        self.feed_back(run)

        def hold():
            """Have the controller end the motion, as it ends one that is cancelled."""
            run.held = True
            if run.coming is not None:  # who knows where the robot will come to rest
                self._next.drop(run)
                run.replans += 1
            if run.over:
                self._take_stop(run, motion, "")
            else:
                end_motion()

        def answered(accepted):
            if not accepted and self._is_current(run, motion):  # it takes no second trajectory
                hold()

        try:
            stop = message(self._arm.seen(motion.robot), now)
        except Exception as error:  # whatever it is, the robot must stop
            self._arm.node.get_logger().error(
                f"move: no stop along the motion, the controller ends it: {error_text(error)}"
            )
            run.deadline = now + SILENCE_S
            hold()
            return
        run.deadline = now + seconds(stop.points[-1].time_from_start) + SILENCE_S
        end_stop = self._controller.send(stop, answered, lambda problem: self._take_stop(run, motion, problem))
        run.end_motion = lambda: (end_motion(), end_stop())

    def _take_stop(self, run, motion, problem):
        if not self._is_current(run, motion):
            return
        if problem:
            self.finish(run, FAILED, f"{run.why}; while the robot was stopped: {problem}")
        elif run.code is not None:
            self.finish(run, run.code, f"{run.why}; the robot has stopped")
        elif run.coming is not None:
            self._next.rest(run)
        elif run.replans > 0:
            run.replans -= 1
            self._next.plan(run)
        else:
            code = codes.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE
            self.finish(run, code, f"{run.why}; the robot was stopped, and {run.plans} motions were planned")

    # telling

    def feed_back(self, run: Run) -> None:
        state, progress, left, motion = "moving" if run.state == "sending" else run.state, 0.0, 0.0, run.motion
        if motion is not None:
            progress, left = motion.progress(self.advance(motion))
        state = "planning" if run.coming is not None and state == "moving" else state
        run.task.feed_back(state, run.plans, progress, left)

    def finish(self, run: Run, code: int, message: str) -> None:
        if run is self._run:
            self._run = None
            self._idle.set()
            self._next.drop(run)
            if run.told:
                self._executing.publish(JointTrajectory())
        self._end(run.task, code, message, run.goal_index, run.plans)

    def _end(self, task, code, message, goal_index, plans):
        self._arm.node.log(f"move: {message}", code == codes.SUCCESS)
        task.end(code, message, goal_index, plans)
