"""An arm on a desk, without hardware: the node arm_planner, and trajectory_player, which moves the arm.

    ros2 launch gpu_planners desk.launch.py rviz:=true

The arm is the package's own, urdf/desk_arm.urdf, among the obstacles of config/scenes/desk.yaml.
"""

from gpu_planners.nodes.common import launching
from gpu_planners.share import share_folder

ARGUMENTS = launching.usual_arguments(
    "arm_planner", "Root link of the robot, in which RViz shows all; empty: base_link"
) | {
    "player": ("true", "What moves the arm: true, trajectory_player; physics: moved by MuJoCo; false: nothing"),
    "frame_prefix": launching.MOVED["frame_prefix"],
    "scene": (str(share_folder() / "config" / "scenes" / "desk.yaml"), "YAML file of obstacles"),
}


def start(given):
    launching.rviz_wanted(given)  # before anything is started
    share = share_folder()
    robot = {
        "urdf": str(share / "urdf" / "desk_arm.urdf"),
        "srdf": str(share / "urdf" / "desk_arm.srdf"),
        "initial_state": "ready",
        "fixed_frame": given["fixed_frame"] or given["frame_prefix"] + "base_link",
    }
    return [launching.arm_planner_included(given | robot)]


def generate_launch_description():
    return launching.launch_description(ARGUMENTS, start)
