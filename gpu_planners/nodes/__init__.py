"""ROS 2 nodes: the only part of the package that imports rclpy and message packages.

The executables start here, so that a missing ROS is said in words.
"""

import importlib
import os
import platform
import signal
import sys
from functools import partial

SET_UP = "or, in a checkout, run `make setup` and use .venv/bin/python"
WAYS = {
    "rclpy": f"source a ROS 2 installation, {SET_UP}",
    "gpu_planners_msgs": f"colcon build --base-paths src src/gpu_planners/gpu_planners_msgs, {SET_UP}",
    "PIL": "pip install pillow",
    "yaml": "pip install pyyaml",
}


def run_executable(module: str, interrupted: bool = False) -> int:
    """Run `main` of a module -> the exit code.

    interrupted: Ctrl-C is a KeyboardInterrupt for `main`; else `main` takes signals by itself
    """
    for one in (signal.SIGINT, signal.SIGTERM):  # while all is imported: nothing is open yet
        signal.signal(one, lambda *_: os._exit(0))
    try:
        importlib.import_module("rclpy")  # else the first that is missing may be one of messages
        main = importlib.import_module(f"gpu_planners.{module}").main
    except ModuleNotFoundError as error:
        name, _, part = (error.name or "").partition(".")
        if name == "rclpy" and part:  # its compiled part
            sys.exit(
                f"{module} runs on Python {platform.python_version()}, for which the ROS 2 in PYTHONPATH is not built: "
                f"use its Python, or start without that ROS 2 (env -u PYTHONPATH), {SET_UP}"
            )
        package = f"ros-{os.environ.get('ROS_DISTRO', '<distribution>')}-{name.replace('_', '-')}"
        of_ros = name.endswith(("_msgs", "_interfaces"))
        way = f"apt install {package}, {SET_UP}" if of_ros else f"pip install {name}"
        sys.exit(f"{module} needs the Python package '{name}'; {WAYS.get(name, way)}")
    if interrupted:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return main()


# the executables
arm_planner = partial(run_executable, "nodes.arm.node")
arm_planner_demo = partial(run_executable, "demo.main", interrupted=True)
fleet_planner = partial(run_executable, "nodes.fleet.node")
grid_planner = partial(run_executable, "nodes.grid.node")
trajectory_player = partial(run_executable, "nodes.player.node")
