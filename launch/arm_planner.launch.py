"""Starts the node arm_planner, robot_state_publisher where it is installed, and RViz when asked.

    ros2 launch gpu_planners arm_planner.launch.py urdf:=/path/robot.urdf srdf:=/path/robot.srdf scene:=/path/scene.yaml

Without `urdf` the node takes the robot from the topic robot_description. An argument that is left empty leaves
the parameter to `params_file`.
"""

from pathlib import Path

from gpu_planners.errors import GpuPlannersError
from gpu_planners.nodes.common import launching

ARGUMENTS = launching.usual_arguments(
    "arm_planner", "Root link of the robot, in which RViz shows all; empty: panda_link0"
) | {
    "urdf": ("", "URDF file; empty: the topic robot_description"),
    "srdf": ("", "SRDF file with groups and disabled collisions"),
    "package_dir": ("", "Folder of the packages that the URDF's package:// paths name"),
    "group": ("", "SRDF group to plan"),
    "scene": ("", "YAML file of obstacles"),
    **launching.LIMITS,
    **launching.MOVED,
}
PARAMETERS = {
    "device": ("device", str),
    "urdf": ("robot_description_file", str),
    "srdf": ("srdf_file", str),
    "group": ("group", str),
    "scene": ("scene_file", str),
    "joint_limits": ("joint_limits_file", str),
    "cartesian_limits": ("cartesian_limits_file", str),
    "frame_prefix": ("frame_prefix", str),
}
PLAYED = {name: PARAMETERS[name][0] for name in ("urdf", "srdf", "group", "scene")} | {"initial_state": "initial_state"}


def robot_state_publisher(given):
    """[the node that publishes the robot's transforms and its description, for RViz], where the arguments name a URDF
    file and it is asked for, or is installed and not refused."""
    name, asked = "robot_state_publisher", given["robot_state_publisher"] != "auto"
    if not given["urdf"] or (asked and not launching.truth(given, name)):
        return []
    if not launching.installed(name):
        if asked:
            raise GpuPlannersError(f"{name}:=true needs the ROS package {name}, which is not installed")
        return []
    try:
        urdf = Path(given["urdf"]).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GpuPlannersError(f"urdf:={given['urdf']} cannot be read: {error}") from error
    values = {"robot_description": urdf, "frame_prefix": given["frame_prefix"]}
    return [launching.node_action(given, name, values, package=name)]


def trajectory_player(given, folders):
    """[the node that plays motions in place of a controller], where the argument `player` asks for it."""
    physics = given["player"].strip().lower() == "physics"
    if not physics and not launching.truth(given, "player"):
        return []
    if physics and not given["urdf"]:
        raise GpuPlannersError("player:=physics needs the argument urdf")
    values = {parameter: given[name] for name, parameter in PLAYED.items() if given[name]}
    return [launching.node_action(given, "trajectory_player", values | folders | {"physics": physics}, output="screen")]


def start(given):
    folders = {"package_dirs": [given["package_dir"]]} if given["package_dir"] else {}
    return [
        *launching.planner_and_view("arm_planner", given, PARAMETERS, folders),
        *robot_state_publisher(given),
        *trajectory_player(given, folders),
    ]


def generate_launch_description():
    return launching.launch_description(ARGUMENTS, start)
