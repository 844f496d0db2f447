"""The demo: starts the real nodes as processes of their own, asks them over DDS, checks and draws the answers.

make demo                 or     python -m gpu_planners.demo.main --help
"""

import argparse
import contextlib
import os
import sys
from pathlib import Path

import rclpy
from rclpy.executors import ExternalShutdownException
from rich.console import Console
from rich.markup import escape

from ..device import device_names
from ..errors import GpuPlannersError
from . import ahead, arm, fleet, grid
from .page import write_page

PARTS = {"arm": arm, "grid": grid, "fleet": fleet}


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    console = Console(width=None if sys.stdout.isatty() else 130, highlight=False)
    try:
        device_names(options.device)
        if not options.no_node:  # topics stay off the network and in a domain of our own, unless the user chose one
            os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
            os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        rclpy.init(args=options.ros_arguments)
        told, folder = {}, Path(options.out)
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.nullcontext() if options.only or options.no_node else ahead.compiling(options.device):
            for name in [options.only] if options.only else PARTS:
                console.rule(f"[bold]{name}_planner", align="left")
                report = PARTS[name].run(console, options)
                console.print(*report.shown, sep="\n")
                told[name] = PARTS[name].ABOUT, report
        write_page(folder / "demo.html", told)
        console.print(f"\nall of it on one page: [bold]{escape(str(folder / 'demo.html'))}[/]", soft_wrap=True)
        return 0 if all(report.passed for _, report in told.values()) else 1
    except GpuPlannersError as error:
        console.print(f"demo: {error}", style="bold red", markup=False, soft_wrap=True)
        return 1
    except (KeyboardInterrupt, ExternalShutdownException):
        return 0 if options.repeat else 130  # what repeats without end is ended so
    finally:
        rclpy.try_shutdown()


def _options(arguments):
    parser = argparse.ArgumentParser(
        prog="make demo",
        description="Plan motions of a robot, paths of many agents and the moves of a fleet, through the real nodes.",
    )
    parser.add_argument("--only", choices=tuple(PARTS), help="one part of the demo (default: all)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of planners and generated maps (default: %(default)s)")
    parser.add_argument("--out", default="out", help="folder of the page and its pictures (default: %(default)s)")
    parser.add_argument("--no-node", action="store_true", help="ask nodes that run already")
    parser.add_argument("--repeat", action="store_true", help="ask for the arm's motions without end, until Ctrl-C")
    group = parser.add_argument_group("grid")
    text = "map_server .yaml or MovingAI .map, in place of a map of our own (default: %(default)s)"
    group.add_argument("--map", help=text)
    text = "rows and columns of the generated map (default: %(default)s)"
    group.add_argument("--size", type=int, default=1024, help=text)
    group.add_argument("--agents", type=int, default=10_000, help="how many agents (default: %(default)s)")
    group = parser.add_argument_group("fleet")
    group.add_argument("--fleet-agents", type=int, default=1000, help="how many agents (default: %(default)s)")
    group.add_argument("--fleet-steps", type=int, default=60, help="seconds of their time (default: %(default)s)")
    options, options.ros_arguments = parser.parse_known_args(arguments)
    if options.ros_arguments and options.ros_arguments[0] != "--ros-args":
        parser.error(f"unknown arguments: {' '.join(options.ros_arguments)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
