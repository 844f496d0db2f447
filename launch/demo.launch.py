"""The demo with RViz: a Panda before a shelf, the node arm_planner, and requests that follow one another.

    ros2 launch gpu_planners demo.launch.py

The Panda comes from the package example-robot-data (pip install example-robot-data).
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from gpu_planners.nodes.demo_scene import demo_robot
from launch import LaunchDescription

SHARE = Path(get_package_share_directory("gpu_planners"))

ARGUMENTS = {
    "namespace": ("", "Namespace of the nodes and their topics"),
    "use_sim_time": ("false", "Take the time from /clock"),
    "params_file": (str(SHARE / "config" / "arm_planner.yaml"), "Parameters of the planner"),
    "log_level": ("info", "debug, info, warn, error or fatal"),
    "rviz": ("true", "Start RViz with the planner's view"),
    "fixed_frame": ("", "Root link of the robot, in which RViz shows all; empty: panda_link0"),
    "device": ("", "auto, cpu, cuda or cuda:N"),
    "urdf": ("", "URDF file; empty: the Panda of example-robot-data"),
    "srdf": ("", "SRDF file; empty: the one of the Panda"),
    "package_dir": ("", "Folder of the packages that the URDF's package:// paths name"),
    "group": ("", "SRDF group to plan; empty: the Panda's arm"),
    "scene": (str(SHARE / "config" / "scenes" / "panda_table_shelf.yaml"), "YAML file of obstacles"),
    "repeat": ("true", "Ask again and again, so that there is something to see"),
}


def start(context):
    given = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    if not given["urdf"]:
        robot = demo_robot()
        given |= {
            "urdf": str(robot.urdf),
            "srdf": str(robot.srdf),
            "package_dir": str(robot.package_dir),
            "group": robot.group,
        }
    repeat = given.pop("repeat")
    planner = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(SHARE / "launch" / "arm_planner.launch.py")), launch_arguments=given.items()
    )
    client = Node(
        package="gpu_planners",
        executable="arm_planner_demo",
        namespace=given["namespace"],
        output="screen",
        arguments=["--only", "arm", "--no-node", *(["--repeat"] if repeat == "true" else [])],
    )
    return [planner, client]


def generate_launch_description():
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, (default, text) in ARGUMENTS.items()
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=start)])
