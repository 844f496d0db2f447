"""Starts the node fleet_planner, and RViz when asked.

    ros2 launch gpu_planners fleet_planner.launch.py map:=/path/map.yaml motion:=turning step_s:=1.0

Without `map` the node takes it from the topic map, of nav2_map_server or SLAM. An argument that is left empty leaves
the parameter to `params_file`.
"""

from gpu_planners.nodes.common.launching import launch_description, planner_and_view, usual_arguments

ARGUMENTS = usual_arguments("fleet_planner", "Frame in which RViz shows all; empty: map") | {
    "map": ("", "Map file, a map_server .yaml or a MovingAI .map; empty: the topic map"),
    "motion": ("", "four or turning: can the robots move along both axes, or do they turn on the spot?"),
    "step_s": ("", "How long a step takes, seconds"),
}
PARAMETERS = {
    "device": ("device", str),
    "map": ("map_file", str),
    "motion": ("motion", str),
    "step_s": ("step_s", float),
}


def generate_launch_description():
    return launch_description(ARGUMENTS, lambda given: planner_and_view("fleet_planner", given, PARAMETERS))
