"""The demo with RViz: a Panda before a shelf, the node arm_planner, and requests that follow one another.

    ros2 launch gpu_planners demo.launch.py

The Panda comes from the package example-robot-data (pip install example-robot-data).
"""

from gpu_planners.nodes.common import launching
from gpu_planners.share import share_folder

ARGUMENTS = launching.usual_arguments(
    "arm_planner", "Root link of the robot, in which RViz shows all; empty: panda_link0", rviz="true"
) | {
    "urdf": ("", "URDF file; empty: the Panda of example-robot-data"),
    "srdf": ("", "SRDF file; empty: the one of the Panda"),
    "package_dir": ("", "Folder of the packages that the URDF's package:// paths name"),
    "group": ("", "SRDF group to plan; empty: the Panda's arm"),
    "scene": (str(share_folder() / "config" / "scenes" / "panda_table_shelf.yaml"), "YAML file of obstacles"),
    **launching.LIMITS,
    **launching.MOVED,
    "repeat": ("true", "Ask again and again, so that there is something to see"),
}


def start(given):
    from launch_ros.actions import Node

    from gpu_planners.demo.arm import demo_robot

    launching.rviz_wanted(given)  # before anything is started
    if not given["urdf"]:
        given |= demo_robot()
    repeat = launching.truth(given, "repeat")
    del given["repeat"]
    client = Node(
        package="gpu_planners",
        executable="arm_planner_demo",
        namespace=given["namespace"],
        output="screen",
        arguments=["--only", "arm", "--no-node", *(["--repeat"] if repeat else [])],
    )
    return [launching.arm_planner_included(given), client]


def generate_launch_description():
    return launching.launch_description(ARGUMENTS, start)
