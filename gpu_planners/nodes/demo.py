"""The demo: starts the node arm_planner as a process of its own, asks it over DDS, checks and draws the answers.

make demo                 or     python -m gpu_planners.nodes.demo --help
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import rclpy
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from rich.console import Console
from rich.table import Table

from gpu_planners_msgs.srv import PlanMotion

from ..arm import load_urdf
from ..arm.drawing import draw_path
from ..arm.scene_file import fixed_frames, load_scene
from ..errors import GpuPlannersError
from . import demo_scene
from .conversions import seconds
from .demo_checks import CoalCheck, broken_rules
from .demo_planners import ask_planners
from .demo_planners import table as table_of_planners

PATIENCE_S = 300.0  # the first start on a machine compiles


def main(arguments=None):
    options = _options(arguments)
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    try:
        if not options.no_node:
            _isolate()
        files = demo_scene.demo_robot()
        scene = demo_scene.scene_file()
        rclpy.init(args=options.ros_arguments)
        with NodeProcess(files, scene, options) as process:
            client = DemoClient(process)
            with console.status("loading and compiling; the first time on a machine this takes a minute or two"):
                client.wait_until_ready()
            while options.repeat:
                client.ask_all(options.seed)
                options.seed += 1
            answers = client.ask_all(options.seed)
            with console.status("asking every planner; the first time on a machine each is compiled"):
                compared, start = demo_scene.COMPARED, answers[0][1].path.points
                start = start[-1].positions if start else demo_scene.READY
                planners = ask_planners(client, compared, start, options.seed, may_set=not options.no_node)
        return _report(console, files, scene, answers, planners, options)
    except GpuPlannersError as error:
        console.print(f"[bold red]demo: {error}[/]")
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        rclpy.try_shutdown()


class NodeProcess:
    """The planner node as a child process; nothing when another one is to be used."""

    def __init__(self, files, scene, options):
        self._log = tempfile.NamedTemporaryFile("w+", prefix="arm_planner_", suffix=".log", delete=False)
        self.log_file, self._process = Path(self._log.name), None
        if options.no_node:
            return
        parameters = {
            "robot_description_file": files.urdf,
            "srdf_file": files.srdf,
            "package_dirs": f"['{files.package_dir}']",
            "group": files.group,
            "tip_link": files.tip_link,
            "scene_file": scene,
            "device": options.device,
        }
        assignments = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gpu_planners.nodes.arm_planner_node", "--ros-args", *assignments],
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

    def require_alive(self):
        if self._process is not None and self._process.poll() is not None:
            raise GpuPlannersError(f"the node ended with code {self._process.returncode}:\n{self.log_file.read_text()}")


class DemoClient:
    def __init__(self, process):
        self._process = process
        self._node = Node("arm_planner_demo")
        self._client = self._node.create_client(PlanMotion, "arm_planner/plan_motion")
        self._parameters = self._node.create_client(SetParameters, "arm_planner/set_parameters")

    def wait_until_ready(self):
        """Return when the node has answered a first request, which it does once it has loaded and compiled."""
        end = time.monotonic() + PATIENCE_S
        while not self._client.wait_for_service(0.2):
            self._process.require_alive()
            if time.monotonic() > end:
                raise GpuPlannersError("no node offers arm_planner/plan_motion; start one, or leave out --no-node")
        answer, _ = self.ask(demo_scene.message_of(demo_scene.REQUESTS[0], demo_scene.READY, 0))
        if answer.code == PlanMotion.Response.COLLISION_CHECKING_UNAVAILABLE:
            raise GpuPlannersError(f"the node answered: {answer.message}")

    def ask_all(self, seed):
        """[(DemoRequest, response, round trip in seconds)]; each motion starts where the one before ended."""
        answers, start = [], demo_scene.READY
        for request in demo_scene.REQUESTS:
            response, round_trip = self.ask(demo_scene.message_of(request, start, seed))
            answers.append((request, response, round_trip))
            if response.path.points:
                start = response.path.points[-1].positions
        return answers

    def ask(self, message):
        """(PlanMotion response, round trip in seconds)."""
        started = time.monotonic()
        return self._wait_for(self._client.call_async(message)), time.monotonic() - started

    def set_parameter(self, name, value):
        parameters = [Parameter(name, value=value).to_parameter_msg()]
        self._wait_for(self._parameters.call_async(SetParameters.Request(parameters=parameters)))

    def _wait_for(self, future):
        end = time.monotonic() + PATIENCE_S
        while not future.done():
            rclpy.spin_once(self._node, timeout_sec=0.1)
            self._process.require_alive()
            if time.monotonic() > end:
                raise GpuPlannersError(f"the node has not answered for {PATIENCE_S:.0f} s")
        return future.result()


def _report(console, files, scene, answers, planners, options):
    """Print the tables, draw the longest motion; 0 when every motion passed its checks."""
    robot = load_urdf(files.urdf, srdf=files.srdf, package_dirs=[files.package_dir], group=files.group)
    world = load_scene(scene, fixed_frames(robot))
    try:
        coal_check = CoalCheck(robot, world)
    except ImportError:
        coal_check = None
    table = Table(title="Requests to arm_planner/plan_motion", title_justify="left", title_style="bold")
    for column, justify in (
        ("request", "left"),
        ("answer", "left"),
        ("planning", "right"),
        ("round trip", "right"),
        ("path", "right"),
        ("motion", "right"),
        ("controller's rules", "left"),
        ("checked by coal", "left"),
    ):
        table.add_column(column, justify=justify)
    comparison, all_passed = table_of_planners(demo_scene.COMPARED, planners, lambda r: _checks(robot, coal_check, r))
    longest = None
    for request, response, round_trip in answers:
        passed, rules, collisions = _checks(robot, coal_check, response)
        expected = (response.code == PlanMotion.Response.SUCCESS) == request.possible
        all_passed &= passed and expected
        if response.code == PlanMotion.Response.SUCCESS:
            duration = seconds(response.trajectory.points[-1].time_from_start)
            table.add_row(
                request.title,
                "[green]solved[/]",
                f"{1e3 * response.planning_time_s:.1f} ms",
                f"{1e3 * round_trip:.0f} ms",
                f"{response.path_length:.2f} rad",
                f"{duration:.1f} s",
                rules,
                collisions,
            )
            if longest is None or response.path_length > longest.path_length:
                longest = response
        else:
            table.add_row(
                request.title,
                f"[{'yellow' if expected else 'red'}]refused, code {response.code}[/]",
                "",
                f"{1e3 * round_trip:.0f} ms",
                "",
                "",
                "",
                "",
            )
    facts = Table(show_header=False, box=None)
    for row in (
        (
            "robot",
            f"{robot.name}: {robot.dof} joints, {len(robot.shapes)} convex shapes, "
            f"{len(robot.self_collision_pairs)} self-collision pairs",
        ),
        ("scene", f"{scene.name}: {len(world.names)} obstacles"),
        ("device", next((response.device for _, response, _ in answers if response.device), "unknown")),
    ):
        facts.add_row(*row)
    console.print(facts, table, comparison, sep="\n")
    for request, response, _ in answers:
        if response.code != PlanMotion.Response.SUCCESS:
            console.print(f"[yellow]'{request.title}' was refused:[/] {response.message}", soft_wrap=True)
    if longest is not None:
        picture = draw_path(robot, world, _path(longest), options.picture)
        console.print(f"\npicture of the longest motion: [bold]{picture}[/]", soft_wrap=True)
    _say_what_next(console)
    return 0 if all_passed else 1


def _checks(robot, coal_check, response):
    """(passed, text on the controller's rules, text on collisions)."""
    if response.code != PlanMotion.Response.SUCCESS:
        return True, "", ""
    broken = broken_rules(robot, response.trajectory)
    rules = f"[red]{'; '.join(broken)}[/]" if broken else "[green]kept[/]"
    if coal_check is None:
        return not broken, rules, "coal is not installed"
    checked, colliding = coal_check.collisions(_path(response))
    text = f"[red]{colliding} of {checked} poses collide[/]" if colliding else f"[green]{checked} poses, all free[/]"
    return not broken and not colliding, rules, text


def _path(response):
    return np.array([point.positions for point in response.path.points])


def _say_what_next(console):
    console.print(
        """
What to try next
  another seed, another device        make demo ARGS="--seed 3 --device cpu"
  your own robot, as a node           .venv/bin/arm_planner --ros-args -p robot_description_file:=robot.urdf
  with RViz, where ROS 2 is installed ros2 launch gpu_planners demo.launch.py
  another planner                     the field `planner` of a request, or .venv/bin/arm_planner --ros-args -p planner:=prm
  how fast it is                      make bench
  the library without ROS             README.md, "In Python, without ROS\"""",
        soft_wrap=True,
    )


def _isolate():
    """Keep the demo's topics off the network and out of other robots' domain, unless the user chose one."""
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")


def _options(arguments):
    parser = argparse.ArgumentParser(
        prog="make demo", description="Plan motions of a real robot through the real node."
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the planner (default: %(default)s)")
    parser.add_argument("--picture", default="out/demo.png", help="file of the picture (default: %(default)s)")
    parser.add_argument("--no-node", action="store_true", help="ask a node that runs already")
    parser.add_argument("--repeat", action="store_true", help="ask again and again, for RViz")
    options, options.ros_arguments = parser.parse_known_args(arguments)
    return options


if __name__ == "__main__":
    sys.exit(main())
