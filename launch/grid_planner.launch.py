"""Starts the node grid_planner, and RViz when asked.

    ros2 launch gpu_planners grid_planner.launch.py map:=/path/map.yaml

Without `map` the node takes it from the topic map, of nav2_map_server or SLAM. An argument that is left empty leaves
the parameter to `params_file`.
"""

from gpu_planners.nodes.common.launching import launch_description, planner_and_view, usual_arguments

ARGUMENTS = usual_arguments("grid_planner", "Frame in which RViz shows all; empty: map") | {
    "map": ("", "Map file, a map_server .yaml or a MovingAI .map; empty: the topic map"),
    "algorithm": ("", "Algorithm of requests that name none; empty: exact"),
    "footprint_radius": ("", "Radius of the robots, metres"),
}
PARAMETERS = {
    "device": ("device", str),
    "map": ("map_file", str),
    "algorithm": ("algorithm", str),
    "footprint_radius": ("footprint_radius", float),
}


def generate_launch_description():
    return launch_description(ARGUMENTS, lambda given: planner_and_view("grid_planner", given, PARAMETERS))
