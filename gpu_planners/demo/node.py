"""What the demos share: a planner node as a process of its own, and a client that asks it over DDS."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rclpy
from rcl_interfaces.srv import SetParameters
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.parameter import Parameter

from gpu_planners_msgs.srv import PlanAgents, PlanMotion

from ..errors import GpuPlannersError

NOT_BEGUN = PlanMotion.Response.ABORT, PlanAgents.Response.NOT_BEGUN
PATIENCE_S = 300.0  # the first start on a machine compiles


class NodeProcess:
    """A planner node as a child process; nothing when another one is to be used.

    module: of gpu_planners.nodes; parameters: {name: text}
    """

    def __init__(self, module: str, parameters: dict[str, Any], start: bool = True) -> None:
        self._log = tempfile.NamedTemporaryFile(
            "w+", prefix=f"{module.replace('.', '_')}_", suffix=".log", delete=False
        )
        self.log_file, self._process = Path(self._log.name), None
        if not start:
            return
        assignments = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"gpu_planners.nodes.{module}", "--ros-args", *assignments],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._log.close()
        self.log_file.unlink(missing_ok=True)

    def require_alive(self) -> None:
        """GpuPlannersError with the node's log when it has ended."""
        if self._process is not None and self._process.poll() is not None:
            raise GpuPlannersError(f"the node ended with code {self._process.returncode}:\n{self.log_file.read_text()}")


class NodeClient:
    """Asks a node's service. planner: name of the node; kind, service: type and name of its service"""

    def __init__(self, process: NodeProcess, planner: str, kind: Any, service: str) -> None:
        self._process = process
        self.node = Node(f"{planner}_demo")
        self.service = f"{planner}/{service}"
        self._client = self.node.create_client(kind, self.service)
        self._parameters = self.node.create_client(SetParameters, f"{planner}/set_parameters")

    def wait_for_service(self) -> None:
        """Return when the node offers its service."""
        self.wait_until(
            lambda: self._client.wait_for_service(0.2),
            f"no node offers {self.service}; start one, or leave out --no-node",
        )

    def ask(self, message: Any) -> tuple[Any, float]:
        """(response, round trip in seconds). One that is not begun, since something is compiled, is sent again."""
        answers = []

        def is_begun():
            started = time.monotonic()
            answers.append((self._result(self._client.call_async(message)), time.monotonic() - started))
            begun = answers[-1][0].code not in NOT_BEGUN
            time.sleep(0 if begun else 0.2)
            return begun

        self.wait_until(is_begun, f"{self.service} begins no request for {PATIENCE_S:.0f} s")
        return answers[-1]

    def set_parameter(self, name: str, value: Any) -> None:
        """Set a parameter of the node."""
        parameters = [Parameter(name, value=value).to_parameter_msg()]
        self._result(self._parameters.call_async(SetParameters.Request(parameters=parameters)))

    def wait_until(self, condition: Callable[[], bool], otherwise: str) -> None:
        """Return when the condition holds. otherwise: text of the error when that takes too long

        Raises ExternalShutdownException once Ctrl-C or a signal has shut ROS down.
        """
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if not rclpy.ok():
                raise ExternalShutdownException()
            self._process.require_alive()
            if time.monotonic() > end:
                raise GpuPlannersError(otherwise)

    def wait_for(self, condition: Callable[[], Any], otherwise: str) -> None:
        """Take messages until the condition holds; arguments as in wait_until."""

        def holds():
            if not condition():
                rclpy.spin_once(self.node, timeout_sec=0.1)
            return condition()

        self.wait_until(holds, f"{otherwise} for {PATIENCE_S:.0f} s")

    def pause(self, seconds: float) -> None:
        """Take messages for some seconds. Raises ExternalShutdownException as wait_until does."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not rclpy.ok():
                raise ExternalShutdownException()
            rclpy.spin_once(self.node, timeout_sec=min(left, 0.1))

    def _result(self, future):
        self.wait_for(future.done, "the node has not answered")
        return future.result()
