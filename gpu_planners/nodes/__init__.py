"""ROS 2 nodes: the only part of the package that imports rclpy and message packages.

The executables start here, so that a missing ROS is said in words.
"""

import importlib
import sys

SET_UP = "or, in a checkout, run `make setup` and use .venv/bin/python"
WAYS = {
    "rclpy": f"source a ROS 2 installation, {SET_UP}",
    "gpu_planners_msgs": f"colcon build --base-paths src src/gpu_planners/gpu_planners_msgs, {SET_UP}",
}


def arm_planner() -> int:
    """The executable arm_planner."""
    return _main_of("nodes.arm.node")


def arm_planner_demo() -> int:
    """The executable arm_planner_demo."""
    return _main_of("demo.main")


def fleet_planner() -> int:
    """The executable fleet_planner."""
    return _main_of("nodes.fleet.node")


def grid_planner() -> int:
    """The executable grid_planner."""
    return _main_of("nodes.grid.node")


def trajectory_player() -> int:
    """The executable trajectory_player."""
    return _main_of("nodes.player.node")


def _main_of(module):
    try:
        main = importlib.import_module(f"gpu_planners.{module}").main
    except ModuleNotFoundError as error:
        name = (error.name or "").split(".")[0]
        sys.exit(f"{module} needs the Python package '{name}'; {WAYS.get(name, f'pip install {name}')}")
    return main()
