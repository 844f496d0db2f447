"""The parameters of the node trajectory_player."""

from dataclasses import dataclass

from ...settings import Described, setting
from ..common.parameters import A_NAME, NodeParameters


@dataclass(frozen=True)
class PlayerParameters(Described):
    """Parameters of the node trajectory_player."""

    robot_description_file: str = setting("", "URDF file; empty: wait for the topic robot_description", read_only=True)
    srdf_file: str = setting("", "SRDF file with groups, states and disabled collisions", read_only=True)
    group: str = setting("", "SRDF group that the controller moves; empty: `joints`, or the only group", read_only=True)
    joints: tuple = setting(
        (),
        "Joints that the controller moves; empty: those of `group`, or all that move and mimic none",
        items=str,
        read_only=True,
    )
    controller: str = setting(
        "joint_trajectory_controller",
        "Name of the controller that is played: it takes <controller>/joint_trajectory, and the action "
        "<controller>/follow_joint_trajectory where control_msgs is installed",
        must=A_NAME,
        read_only=True,
    )
    initial_positions: tuple = setting(
        (),
        "Where the joints are when the robot comes, in their order; empty: as `initial_state` says",
        items=float,
        unit="rad or m",
    )
    initial_state: str = setting(
        "", "State of the SRDF that the robot begins in; empty: at 0, or at the limits nearest to 0", read_only=True
    )
    rate: float = setting(100.0, "How often joint_states are published", 1.0, 1000.0, unit="Hz", read_only=True)
    start_tolerance: float = setting(
        0.05, "How far from where a joint is a trajectory may begin that begins at once", 1e-6, 10.0, unit="rad or m"
    )
    physics: bool = setting(
        False, "Move the robot by MuJoCo's physics, which needs robot_description_file", read_only=True
    )
    package_dirs: tuple = setting(
        (), "With physics: folders that hold the packages of package:// mesh paths", items=str, read_only=True
    )
    scene_file: str = setting("", "With physics: YAML file of obstacles", read_only=True)

    label = NodeParameters.label
