"""Bases of the nodes. BaseNode: checked parameters, diagnostics, an end that leaves nothing behind. PlannerNode: one
worker that plans, services and actions that it answers, compiling."""

import contextlib
import gc
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.action import ActionClient, ActionServer
from rclpy.node import Node

from ...compiling import Progress
from ...errors import error_text, is_device_lost
from ...parts import Part, is_compiled
from ...settings import Described
from .actions import QueuedAction
from .compiling import Background
from .parameters import check_changes, declare
from .request_error import NotBegunError
from .ros import DEEP, steady_clock
from .worker import Worker

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
COMPILING = "compiling"
NO_CLOCK = "no /clock: use_sim_time is true, but nobody has published the time yet"
CLOCK_PATIENCE_S = 3
LOG_S = 10.0  # between two lines about what is being compiled
PATIENCE_S = 5.0  # of requests with what is compiled or loaded; loading takes less


class Diagnostics:
    """One status of a node on /diagnostics, told once a second and at once when it changes.

    It is WARN with the problem's text while the node is ready but has a problem.

    facts: called for {key: printable}; told: level and text; compiling: how far that is, "" when it is not under way
    """

    compiling = ""

    def __init__(self, node: Node, text: str, facts: Callable[[], dict[str, Any]]) -> None:
        self._node, self._facts = node, facts
        self.told = WARN, text
        self._problems: dict[str, str] = {}
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._timeless_s = 0
        node.create_timer(1.0, self._tick, clock=steady_clock())

    def _tick(self):
        """Once a second. With use_sim_time and nobody on /clock, time stands at 0: what waits for it never comes."""
        timeless = self._node.get_parameter("use_sim_time").value and not self._node.get_clock().now().nanoseconds
        self._timeless_s = self._timeless_s + 1 if timeless else 0
        self.set_problem("clock", NO_CLOCK if self._timeless_s >= CLOCK_PATIENCE_S else "")
        self.publish()

    def say(self, level: bytes, text: str) -> None:
        self.told = level, text
        self.publish()

    @property
    def problem(self) -> str:
        return "; ".join(text for text in list(self._problems.values()) if text)

    def set_problem(self, what: str, text: str) -> None:
        """Report and log a problem with something until it is set to ""."""
        if text == self._problems.get(what, ""):
            return
        self._problems[what] = text
        if text:
            self._node.get_logger().error(text)
        self.publish()

    @contextlib.contextmanager
    def watched(self, what: str, text: str) -> Iterator[None]:
        """Report what is raised as a problem with something, the text before it; what comes next may be right."""
        try:
            yield
        except Exception as error:
            self.set_problem(what, f"{text}: {error_text(error)}")
        else:
            self.set_problem(what, "")

    def fail(self, text: str) -> None:
        self._node.get_logger().error(text)
        self.say(ERROR, text)

    def publish(self) -> None:
        """Publish what is known now, unless ROS has been shut down."""
        if not self._node.context.ok():
            return
        (level, text), problem = self.told, self.problem
        if level == OK and problem:
            level, text = WARN, problem
        if text == COMPILING and self.compiling:
            text = f"{text}: {self.compiling}"
        facts = self._facts() | {"problem": problem, "compiling": self.compiling}
        status = DiagnosticStatus(level=level, name=self._node.get_fully_qualified_name(), message=text)
        status.hardware_id = str(facts.get("device", ""))
        status.values = [KeyValue(key=key, value=str(value)) for key, value in facts.items()]
        message = DiagnosticArray(status=[status])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)


class BaseNode(Node):
    """Base of the nodes.

    name: of the node; parameters: its settings class; waiting_for: what it needs first; a
        parameter of this name may give it
    file: the parameter that may name a file with it
    options: as rclpy.node.Node takes them

    values: the parameters as they are; state: told on /diagnostics
    """

    _closed = False

    def __init__(self, name: str, parameters: type[Described], waiting_for: str, file: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.values: Any = declare(self, parameters)
        check_changes(self, parameters, self._change_parameters)
        given = f"parameter {waiting_for}" if getattr(self.values, waiting_for, "") else getattr(self.values, file)
        text = f"loading {given}" if given else f"waiting for {waiting_for}"
        self.state = Diagnostics(self, text, self._facts)
        self.get_logger().info(text)

    def destroy_node(self) -> None:
        """End the node and its actions: the garbage collector, to which rclpy leaves those, may free the clock before
        a server that uses it: a crash."""
        for one in list(self.waitables):
            if isinstance(one, ActionClient | ActionServer):
                one.destroy()
        super().destroy_node()

    def finish(self, patience_s: float = -1.0) -> bool:
        """End what is under way, and answer who waits for it, while the executor still spins -> has all ended within
        patience_s seconds (negative: wait for it)?"""
        return True

    def close(self, patience_s: float = -1.0) -> bool:
        """Finish as `finish` does, and leave ROS if all has ended."""
        if not self._closed and self.finish(patience_s):
            self.destroy_node()
            self._closed = True
        return self._closed

    def _change_parameters(self, values: Any) -> None:
        """Take new values of the parameters, which are right."""
        self.values = values

    def _facts(self) -> dict[str, Any]:
        raise NotImplementedError

    def now(self) -> float:
        """Seconds on the node's clock. From any thread."""
        return self.get_clock().now().nanoseconds * 1e-9


class PlannerNode(BaseNode):
    """Base of the planning nodes. Callbacks only hand on what arrives; the worker's threads own what is planned on, and
    start when the node is complete. parameters: NodeParameters; first_apart: as Worker takes it,
    which then has two threads at least

    worker: makes changes of what is planned on, and answers requests
    """

    first_apart: ClassVar[bool] = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._requests, self._last_answer = 0, ""
        self.worker = Worker(
            self.state.fail,
            lambda: self.values.max_waiting,
            lambda: max(len(self.values.devices), 1 + self.first_apart),
            self.first_apart,
        )
        self._lock = threading.RLock()  # of what requests that are answered beside each other share; not for refusals
        self._counting = threading.Lock()
        self._background = Background(self._take_progress, self._take_compiled)
        self._logged = 0.0  # when progress was, by time.monotonic()
        self._settled: set[str] = set()  # what was compiled in the background, or could not be

    def finish(self, patience_s: float = -1.0) -> bool:
        self._background.stop()
        return self.worker.stop(patience_s)

    def serve(
        self,
        kind: Any,
        name: str,
        answer: Callable[[Any, Any], Any],
        refused: Callable[[Exception], Any],
        beside: bool = False,
    ) -> None:
        """Offer a service whose requests wait in the worker's queue. The executor takes a request, and the worker sends
        the response: any executor does, also one of a single thread, which costs a third of what several threads do.

        answer: called on the worker with request and response for the response; may raise
        refused: called with what was raised for the response
        beside: may requests be answered beside each other, on several threads of the worker?
        """
        service = self.create_service(kind, name, lambda request, _: request, qos_profile=DEEP)
        send = service.send_response

        def response_to(request):
            try:
                return answer(request, kind.Response())
            except Exception as error:  # a client must get an answer whatever goes wrong
                self.notice(error)
                return refused(error)

        def queue(request, header):
            unanswered = threading.Lock()

            def respond(response):
                if not unanswered.acquire(blocking=False):
                    return
                try:
                    send(response, header)
                except Exception as error:  # the client is gone, or ROS is shut down
                    self.get_logger().warning(f"{name}: the response could not be sent: {error}")

            self.worker.ask(name, lambda: respond(response_to(request)), lambda error: respond(refused(error)), beside)

        # the executor calls it with what the callback returned
        service.send_response = queue  # type: ignore[method-assign]

    def notice(self, error: Exception) -> None:
        """Tell of what concerns all requests to come: a CUDA device that is lost. From any thread."""
        if is_device_lost(error):
            self.state.set_problem("device", error_text(error))

    def act(self, kind: Any, name: str, answer: Callable[..., Any], *more: Any, **options: Any) -> QueuedAction:
        """Offer an action; arguments as of QueuedAction."""
        return QueuedAction(self, kind, name, answer, *more, **options)

    def _count(self) -> None:
        """Count a request. From any thread."""
        with self._counting:
            self._requests += 1

    def log(self, text: str, succeeded: bool) -> None:
        if succeeded:  # rclpy wants a call of its own for each severity
            self.get_logger().info(text)
        else:
            self.get_logger().warning(text)

    def _answered(self, name: str, response: Any, succeeded: bool) -> Any:
        """Count, warn of what is wrong, and tell what a request was answered -> the response"""
        self._count()
        response.message += f" (warning: {self.state.problem})" if self.state.problem else ""
        self._tell(name, response.message, succeeded)
        return response

    def _tell(self, what: str, answer: str, succeeded: bool) -> None:
        """Log what a request was answered, and keep it for diagnostics; from any thread."""
        self._last_answer = answer
        self.log(f"{what}: {answer}", succeeded)

    def _get_ready(self, parts: Sequence[Part], then: Sequence[Part] = (), load: Callable[[], object] | None = None):
        """Compile what requests need, in other processes, and load it, while requests are answered that it is under way
        -> seconds taken.

        then: parts that are compiled meanwhile, and loaded if they are done, too: requests that need them ask again
        load: loads the parts by what the node has; None: their own small requests do
        """
        text = "compiling, once on this machine; ask again when /diagnostics says that the node is ready"
        started, before = time.monotonic(), self.state.told
        self.state.say(WARN, COMPILING)
        try:
            with self.worker.refusing(text, PATIENCE_S):
                self._background.start(self._due([*parts, *then]))
                self._background.wait(parts)
                for part in [] if load else parts:
                    part.run()
                if load:
                    load()
                left = self._due(then)
                for part in then:
                    if part not in left:
                        part.run()
                gc.collect()
                gc.freeze()  # the compiler's objects stay: to look through them again takes a fifth of a second
        except Exception:
            self.state.say(*before)
            raise
        if not left:
            self.state.say(OK, "ready")
        return time.monotonic() - started

    def _due(self, parts):
        """Those that no process has compiled on this machine, or tried to."""
        return [part for part in parts if part.what not in self._settled and not is_compiled(part.what)]

    def _unless_compiled(self, parts: Sequence[Part]) -> None:
        """Have parts compiled in the background that no process has used on this machine; NotBegunError meanwhile.

        What could not be compiled there, or not be kept, is compiled by the request that comes next.
        """
        if due := self._due(parts):
            self._background.start(due)
            raise NotBegunError(f"{due[0].what}: it is being compiled, once on this machine; ask again in a minute")

    def _take_progress(self, progress: Progress) -> None:
        """From any thread."""
        self.state.compiling = str(progress)
        if time.monotonic() - self._logged > LOG_S:
            self._logged = time.monotonic()
            self.get_logger().info(f"compiling, once on this machine: {progress}")

    def _take_compiled(self, answers: dict[str, str]) -> None:
        """Called on a thread of its own with what was compiled in the background: {what: why not, or ""}."""
        self.state.compiling = ""
        self._settled |= answers.keys()
        for what, why in answers.items():
            self.log(f"{what}: {f'compiling it failed in a process of its own: {why}' if why else 'compiled'}", not why)
