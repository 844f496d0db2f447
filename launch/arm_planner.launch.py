"""Starts the node arm_planner, and RViz when asked.

    ros2 launch gpu_planners arm_planner.launch.py urdf:=/path/robot.urdf srdf:=/path/robot.srdf scene:=/path/scene.yaml

Without `urdf` the node takes the robot from the topic robot_description. An argument that is left empty leaves
the parameter to `params_file`.
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from launch import LaunchDescription

SHARE = Path(get_package_share_directory("gpu_planners"))

ARGUMENTS = {
    "namespace": ("", "Namespace of the node and its topics"),
    "use_sim_time": ("false", "Take the time from /clock"),
    "params_file": (str(SHARE / "config" / "arm_planner.yaml"), "Parameters of the node"),
    "log_level": ("info", "debug, info, warn, error or fatal"),
    "rviz": ("false", "Start RViz with the planner's view"),
    "fixed_frame": ("", "Root link of the robot, in which RViz shows all; empty: panda_link0"),
    "device": ("", "auto, cpu, cuda or cuda:N"),
    "urdf": ("", "URDF file; empty: the topic robot_description"),
    "srdf": ("", "SRDF file with groups and disabled collisions"),
    "package_dir": ("", "Folder of the packages that the URDF's package:// paths name"),
    "group": ("", "SRDF group to plan"),
    "scene": ("", "YAML file of obstacles"),
}
PARAMETER_OF_ARGUMENT = {
    "device": "device",
    "urdf": "robot_description_file",
    "srdf": "srdf_file",
    "group": "group",
    "scene": "scene_file",
}


def start_nodes(context):
    given = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    # a file name or a group that looks like a number must stay a text
    parameters = {
        parameter: ParameterValue(given[name], value_type=str)
        for name, parameter in PARAMETER_OF_ARGUMENT.items()
        if given[name]
    }
    if given["package_dir"]:
        parameters["package_dirs"] = [given["package_dir"]]
    parameters["use_sim_time"] = ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool)
    planner = Node(
        package="gpu_planners",
        executable="arm_planner",
        name="arm_planner",
        namespace=given["namespace"],
        output="screen",
        parameters=[given["params_file"], parameters],
        arguments=["--ros-args", "--log-level", given["log_level"]],
    )
    view = [
        "-d",
        str(SHARE / "config" / "arm_planner.rviz"),
        *(["-f", given["fixed_frame"]] if given["fixed_frame"] else []),
    ]
    rviz = Node(
        package="rviz2",
        executable="rviz2",
        name="rviz2",
        namespace=given["namespace"],
        arguments=view,
        condition=IfCondition(given["rviz"]),
    )
    return [planner, rviz]


def generate_launch_description():
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, (default, text) in ARGUMENTS.items()
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=start_nodes)])
