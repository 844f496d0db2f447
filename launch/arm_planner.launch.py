"""Starts the node arm_planner, robot_state_publisher where it is installed, and RViz when asked.

    ros2 launch gpu_planners arm_planner.launch.py urdf:=/path/robot.urdf srdf:=/path/robot.srdf scene:=/path/scene.yaml

Without `urdf` the node takes the robot from the topic robot_description. An argument that is left empty leaves
the parameter to `params_file`.
"""

from gpu_planners.nodes.common.launching import (
    MOVED,
    launch_description,
    planner_and_view,
    robot_state_publisher,
    trajectory_player,
    usual_arguments,
)

ARGUMENTS = usual_arguments("arm_planner", "Root link of the robot, in which RViz shows all; empty: panda_link0") | {
    "urdf": ("", "URDF file; empty: the topic robot_description"),
    "srdf": ("", "SRDF file with groups and disabled collisions"),
    "package_dir": ("", "Folder of the packages that the URDF's package:// paths name"),
    "group": ("", "SRDF group to plan"),
    "scene": ("", "YAML file of obstacles"),
    **MOVED,
}
PARAMETERS = {
    "device": ("device", str),
    "urdf": ("robot_description_file", str),
    "srdf": ("srdf_file", str),
    "group": ("group", str),
    "scene": ("scene_file", str),
    "frame_prefix": ("frame_prefix", str),
}


def start(given):
    folders = {"package_dirs": [given["package_dir"]]} if given["package_dir"] else {}
    return [
        *planner_and_view("arm_planner", given, PARAMETERS, folders),
        *robot_state_publisher(given),
        *trajectory_player(given),
    ]


def generate_launch_description():
    return launch_description(ARGUMENTS, start)
