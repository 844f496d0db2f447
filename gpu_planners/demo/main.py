"""The demo: starts the real nodes as processes of their own, asks them over DDS, checks and draws the answers.

make demo                 or     python -m gpu_planners.demo.main --help
"""

import argparse
import contextlib
import os
import sys

import rclpy
from rclpy.executors import ExternalShutdownException
from rich.console import Console

from ..device import device_names
from ..errors import GpuPlannersError
from . import ahead, arm, fleet, grid

NEXT = """
What to try next
  another seed, another device        make demo ARGS="--seed 3 --device cpu"
  many agents, a map of your own      make demo ARGS="--only grid --agents 100000 --map map.yaml"
  a fuller warehouse, for longer      make demo ARGS="--only fleet --fleet-agents 2000 --fleet-steps 300"
  your own robot, as a node           .venv/bin/arm_planner --ros-args -p robot_description_file:=robot.urdf
  your own map, as a node             .venv/bin/grid_planner --ros-args -p map_file:=map.yaml
  with RViz, where ROS 2 is installed ros2 launch gpu_planners demo.launch.py (arm), or
                                      ros2 launch gpu_planners grid_planner.launch.py rviz:=true map:=...
  another planner                     the field `planner` or `algorithm` of a request; parameters of the same names
  how fast it is                      make bench
  the library without ROS             README.md, \"In Python, without ROS\""""
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
        passed = []
        with contextlib.nullcontext() if options.only or options.no_node else ahead.compiling(options.device):
            for name in [options.only] if options.only else PARTS:
                console.rule(f"[bold]{name}_planner", align="left")
                passed.append(PARTS[name].run(console, options))
        console.print(NEXT, soft_wrap=True)
        return 0 if all(passed) else 1
    except GpuPlannersError as error:
        console.print(f"demo: {error}", style="bold red", markup=False, soft_wrap=True)
        return 1
    except (KeyboardInterrupt, ExternalShutdownException):
        return 0 if options.repeat else 130  # what repeats without end is ended so
    finally:
        rclpy.try_shutdown()


OPTIONS = {  # of a group: (option, default, text)
    "arm": [("picture", "out/demo.png", "file of the picture")],
    "grid": [
        ("map", None, "map_server .yaml or MovingAI .map, in place of a map of our own"),
        ("size", 1024, "rows and columns of the generated map"),
        ("agents", 10_000, "how many agents"),
        ("grid-picture", "out/demo_grid.png", "file of the picture"),
    ],
    "fleet": [
        ("fleet-agents", 1000, "how many agents"),
        ("fleet-steps", 60, "seconds of their time"),
        ("fleet-page", "out/demo_fleet.html", "file of the page"),
        ("fleet-picture", "out/demo_fleet.png", "file of the picture"),
    ],
}


def _options(arguments):
    parser = argparse.ArgumentParser(
        prog="make demo",
        description="Plan motions of a robot, paths of many agents and the moves of a fleet, through the real nodes.",
    )
    parser.add_argument("--only", choices=tuple(PARTS), help="one part of the demo (default: all)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of planners and generated maps (default: %(default)s)")
    parser.add_argument("--no-node", action="store_true", help="ask nodes that run already")
    parser.add_argument("--repeat", action="store_true", help="ask for the arm's motions without end, until Ctrl-C")
    for name, options in OPTIONS.items():
        group = parser.add_argument_group(name)
        for option, default, text in options:
            kind = int if isinstance(default, int) else str
            group.add_argument(f"--{option}", type=kind, default=default, help=f"{text} (default: %(default)s)")
    options, options.ros_arguments = parser.parse_known_args(arguments)
    if options.ros_arguments and options.ros_arguments[0] != "--ros-args":
        parser.error(f"unknown arguments: {' '.join(options.ros_arguments)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
