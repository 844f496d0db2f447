"""What the demo's parts share: a planner node, a client that asks it over DDS, tables, names of files."""

import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rclpy
from builtin_interfaces.msg import Time
from nav_msgs.msg import OccupancyGrid
from rcl_interfaces.srv import SetParameters
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.parameter import Parameter
from rich.table import Table
from std_msgs.msg import Header

from gpu_planners_msgs.srv import PlanAgents, PlanMotion

from ..ctrl_c import ctrl_c_later
from ..errors import GpuPlannersError
from ..grid import GridMap
from ..nodes.common.map_messages import map_message
from ..nodes.common.ros import LATCHED

NOT_BEGUN = PlanMotion.Response.ABORT, PlanAgents.Response.NOT_BEGUN
PATIENCE_S = 300.0  # the first start on a machine compiles
AGAIN_S = 0.5  # until a request is sent again: a node that compiles refuses at once
LOADING = "loading and compiling; the first time on a machine this takes a minute or two"


class NodeClient:
    """The node <part>_planner, while a `with` lasts as a process of its own, and a client of its service.

    kind, service: type of the service ~/<service>; parameters: {name: value} of the node
    options: of the demo; with no_node a node that runs already is asked
    """

    def __init__(self, part: str, kind: Any, service: str, parameters: dict[str, Any], options: Namespace) -> None:
        parameters = {**parameters, "device": options.device}
        words = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
        command = [sys.executable, "-m", f"gpu_planners.nodes.{part}.node", "--ros-args", *words]
        self._command = [] if options.no_node else command
        self._process: subprocess.Popen | None = None
        self._service = f"{part}_planner/{service}"
        self.node = Node(f"{part}_planner_demo")
        self._client = self.node.create_client(kind, self._service)
        self._parameters = self.node.create_client(SetParameters, f"{part}_planner/set_parameters")

    def __enter__(self):
        self._log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        if self._command:
            self._process = subprocess.Popen(self._command, stdout=self._log, stderr=subprocess.STDOUT)
        return self

    def __exit__(self, *_):
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._log.close()

    def wait_for_service(self) -> None:
        there = self._client.service_is_ready
        self.wait_for(there, f"no node offers {self._service}; start one, or leave out --no-node")

    def ask(self, message: Any) -> tuple[Any, float]:
        """(response, round trip in seconds). One that is not begun, since something is compiled, is sent again."""
        answers: list[tuple[Any, float]] = []

        def is_begun():
            if answers:
                self.pause(AGAIN_S)
            started = time.monotonic()
            answers.append((self._result(self._client.call_async(message)), time.monotonic() - started))
            return answers[-1][0].code not in NOT_BEGUN

        self.wait_for(is_begun, f"{self._service} begins no request")
        return answers[-1]

    def set_parameter(self, name: str, value: Any) -> None:
        parameters = [Parameter(name, value=value).to_parameter_msg()]
        self._result(self._parameters.call_async(SetParameters.Request(parameters=parameters)))

    def _result(self, future):
        self.wait_for(future.done, "the node has not answered")
        return future.result()

    def pause(self, duration_s: float) -> None:
        """Take messages for so long."""
        end = time.monotonic() + duration_s
        self.wait_for(lambda: time.monotonic() > end, "the pause lasts")

    def wait_for(self, condition: Callable[[], Any], otherwise: str) -> None:
        """Take messages until the condition holds. otherwise: text of the error when that takes too long

        Raises ExternalShutdownException once a signal has shut ROS down, KeyboardInterrupt at Ctrl-C.
        """
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if not rclpy.ok():
                raise ExternalShutdownException()
            if self._process is not None and self._process.poll() is not None:
                log = Path(self._log.name).read_text()
                raise GpuPlannersError(f"the node ended with code {self._process.returncode}:\n{log}")
            if time.monotonic() > end:
                raise GpuPlannersError(f"{otherwise} for {PATIENCE_S:.0f} s")
            try:
                with ctrl_c_later():  # it would be lost, or told as an error, in what rclpy destroys
                    rclpy.spin_once(self.node, timeout_sec=0.1)
            except Exception:  # of any kind, where a signal has shut ROS down meanwhile
                if rclpy.ok():
                    raise


class MapClient(NodeClient):
    """A client that publishes maps too."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._maps, self._published = self.node.create_publisher(OccupancyGrid, "map", LATCHED), 0

    def publish_map(self, grid: GridMap, arrived: Callable[[Time], Any]) -> float:
        """Publish a map and wait until the node has it -> seconds that this took.

        arrived: called with the map's time until it returns True
        """
        self._published += 1
        stamp = Time(sec=self._published)
        message, published = map_message(grid, Header(frame_id="map", stamp=stamp)), time.monotonic()
        self._maps.publish(message)
        self.wait_for(lambda: arrived(stamp), "the node has not taken the map")
        return time.monotonic() - published


def table_of(title: str, columns: str) -> Table:
    """An empty table. columns: names with ", " between; one that begins with ">" stands at the right"""
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in columns.split(", "):
        table.add_column(name.removeprefix(">"), justify="right" if name.startswith(">") else "left")
    return table


def facts_of(**facts: str) -> Table:
    table = Table(show_header=False, box=None)
    for name, text in facts.items():
        table.add_row(name.replace("_", " "), text)
    return table


def verdict(wrong: str, right: str) -> str:
    """What is wrong, or, where nothing is, what is right."""
    return f"[red]{wrong}[/]" if wrong else f"[green]{right}[/]"


def ms(seconds: float, digits: int = 0) -> str:
    return f"{1e3 * seconds:.{digits}f} ms"
