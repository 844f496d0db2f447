"""Starts the node grid_planner, and RViz when asked.

    ros2 launch gpu_planners grid_planner.launch.py map:=/path/map.yaml

Without `map` the node takes it from the topic map, of nav2_map_server or SLAM. An argument that is left empty leaves the
parameter to `params_file`.
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
    "params_file": (str(SHARE / "config" / "grid_planner.yaml"), "Parameters of the node"),
    "log_level": ("info", "debug, info, warn, error or fatal"),
    "rviz": ("false", "Start RViz with the planner's view"),
    "fixed_frame": ("", "Frame in which RViz shows all; empty: map"),
    "device": ("", "auto, cpu, cuda or cuda:N"),
    "map": ("", "Map file, a map_server .yaml or a MovingAI .map; empty: the topic map"),
    "algorithm": ("", "exact, pba_star, rtaa_star or astar"),
    "footprint_radius": ("", "Radius of the robots, metres"),
}
PARAMETER_OF_ARGUMENT = {
    "device": ("device", str),
    "map": ("map_file", str),
    "algorithm": ("algorithm", str),
    "footprint_radius": ("footprint_radius", float),
}


def start_nodes(context):
    given = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    # a file name that looks like a number must stay a text, and the radius 1 a number with a point
    parameters = {
        parameter: ParameterValue(kind(given[name]), value_type=kind)
        for name, (parameter, kind) in PARAMETER_OF_ARGUMENT.items()
        if given[name]
    }
    parameters["use_sim_time"] = ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool)
    planner = Node(
        package="gpu_planners",
        executable="grid_planner",
        name="grid_planner",
        namespace=given["namespace"],
        output="screen",
        parameters=[given["params_file"], parameters],
        arguments=["--ros-args", "--log-level", given["log_level"]],
    )
    view = [
        "-d",
        str(SHARE / "config" / "grid_planner.rviz"),
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
