"""The parameters of the node arm_planner, with the settings of every planner as `<planner>.<field>`."""

from dataclasses import dataclass, replace

from ...arm import PLANNERS
from ...arm.cartesian import Settings as LineSettings
from ...arm.collision.checker import MARGIN, MotionCheck
from ...arm.constraints.relative import POSITION, POSITIONS, ROTATION, ROTATIONS
from ...arm.distance_fields import FieldRule
from ...arm.planners.rrt_connect import Settings as RrtConnectSettings
from ...arm.planners.settings import PlannerSettings
from ...errors import SettingsError
from ...settings import changed, setting
from ..common.parameters import A_NAME, NodeParameters, holding, is_name

DURABILITIES = "transient_local", "volatile"
BY_DEVICE = -1.0  # the value of optimise_s that means:
ON_CUDA = 0.1  # seconds on a GPU
ON_CPU = 0.3  # seconds on the CPU


@dataclass(frozen=True)
class NodeRrtConnect(RrtConnectSettings):
    """Settings of RRT-Connect in the node, which makes paths shorter unless it is told not to."""

    optimise_s: float = changed(
        RrtConnectSettings,
        "optimise_s",
        default=BY_DEVICE,
        low=BY_DEVICE,
        text="Spent on further searches after the first path, as long as a shorter one is possible; the shortest path "
        f"counts. {BY_DEVICE:g}: {ON_CUDA} on CUDA, {ON_CPU} on the CPU",
        must=(f"{BY_DEVICE:g}, or a number from 0", lambda seconds: seconds >= 0 or seconds == BY_DEVICE),
    )
    objective: str = changed(RrtConnectSettings, "objective", default="time")
    label = RrtConnectSettings.label


def settings_on(device: str, settings: PlannerSettings) -> PlannerSettings:
    """The settings of a planner, with RRT-Connect's optimise_s that belongs to the device."""
    if isinstance(settings, NodeRrtConnect) and settings.optimise_s == BY_DEVICE:
        return replace(settings, optimise_s=ON_CPU if device == "cpu" else ON_CUDA)
    return settings


def _padding(default, what):
    return setting(
        default,
        f"Distance from the robot, by joint_states, within which {what} are its own and do not count; -1: all count",
        -1.0,
        10.0,
        unit="metres",
        must=("-1, or a number from 0", lambda metres: metres >= 0 or metres == -1),
    )


@dataclass(frozen=True)
@holding({name: planner.Settings() for name, planner in PLANNERS.items()} | {"rrt_connect": NodeRrtConnect()})
class ArmParameters(NodeParameters):
    """Parameters of the node arm_planner."""

    robot_description: str = setting(
        "",
        "Text of a URDF, as MoveIt's launch files give it to move_group; empty: robot_description_file",
        read_only=True,
    )
    robot_description_file: str = setting("", "URDF file; empty: wait for the topic robot_description", read_only=True)
    srdf_file: str = setting(
        "",
        "SRDF file; where there is no SRDF all pairs of links are checked that are not proven to stay apart",
        read_only=True,
    )
    robot_description_semantic: str = setting(
        "", "Text of an SRDF, in place of srdf_file; empty: srdf_file, or else the topic of this name", read_only=True
    )
    joint_limits_file: str = setting(
        "", "MoveIt's joint_limits.yaml, whose limits count beside the URDF's; empty: none", read_only=True
    )
    cartesian_limits_file: str = setting(
        "", "MoveIt's pilz_cartesian_limits.yaml, within which LIN and CIRC move the tool; empty: none", read_only=True
    )
    package_dirs: tuple = setting((), "Folders of the packages of package:// mesh paths", items=str, read_only=True)
    group: str = setting(
        "", "SRDF group of requests that name none; empty: `joints`, or the only group", read_only=True
    )
    joints: tuple = setting((), "Joints to plan, in the order of q; empty: those of `group`", items=str, read_only=True)
    tip_link: str = setting("", "Link that pose goals place; empty: the one that the log names", read_only=True)
    frame_prefix: str = setting(
        "", "What names of the robot's frames begin with in tf2 and RViz, for instance 'left/'", read_only=True
    )
    world_frame: str = setting("", "A further name of the root frame, for instance 'world'", read_only=True)
    scene_file: str = setting("", "YAML file of obstacles that are always there", read_only=True)
    obstacles_durability: str = setting(
        "volatile", "QoS durability of the subscription ~/obstacles", choices=DURABILITIES, read_only=True
    )
    voxels_durability: str = setting(
        "transient_local",
        "QoS durability of the subscriptions ~/octomap and ~/voxel_grid; volatile for publishers that do not latch",
        choices=DURABILITIES,
        read_only=True,
    )
    controller_action: str = setting(
        "joint_trajectory_controller/follow_joint_trajectory",
        "The action of the controller that executes the motions of ~/move",
        must=A_NAME,
        read_only=True,
    )
    group_controllers: tuple = setting(
        (),
        "Actions of other groups' controllers, each 'group=action'; a group that is not named has controller_action",
        items=str,
        must=("'group=action' with names of ROS", lambda text: is_name(f"/{text.partition('=')[2].strip('/')}")),
        read_only=True,
    )
    publish_trajectories: bool = setting(
        False, "Publish what is planned on ~/joint_trajectory; a controller that listens there executes it"
    )
    monitor_patience_s: float = setting(
        1.0,
        "How long a motion of ~/move goes on while other requests keep the scene from being looked at, before it stops",
        0.1,
        60.0,
        unit="seconds",
    )
    torque_limits: bool = setting(
        False,
        "Planned motions keep the URDF's efforts, by its inertias and attached_mass; stops, and what joins a motion "
        "under way, do not",
    )
    attached_mass: float = setting(
        0.0, "What each attached object weighs, for torque_limits: a point in its middle", 0.0, 1e4, unit="kg"
    )
    allowed_execution_duration_scaling: float = setting(
        1.2,
        "Times a motion's duration, with allowed_goal_duration_margin, by which a controller must have ended it; else "
        "it is stopped. 0: it may take as long as it says that it executes it",
        0.0,
        1000.0,
        must=("0, or a number from 1", lambda times: times == 0 or times >= 1),
    )
    allowed_goal_duration_margin: float = setting(
        0.5, "See allowed_execution_duration_scaling", 0.0, 3600.0, unit="seconds"
    )
    execution_limit_tolerance: float = setting(
        0.02,
        "By what share of them a trajectory of ExecuteTrajectory may exceed the limits of velocity and acceleration",
        0.0,
        10.0,
    )
    goals_while_moving: str = setting(
        "move",
        "Whose goals take the place of the motion under way, which ends as PREEMPTED: those of ~/move; all: those of "
        "MoveGroup too; none: they are refused",
        choices=("none", "move", "all"),
    )
    switch_lead_s: float = setting(
        0.0,
        "How long a motion goes on while one that takes its place is planned; then the robot goes over to that, or "
        "brakes. 0: time for 95 % of the last 100 plans, and as many times of joining motions",
        0.0,
        60.0,
        unit="seconds",
    )
    moveit_interface: str = setting(
        "all",
        "MoveIt's interfaces, where moveit_msgs is installed: all, only the action (beside a move_group), or none",
        choices=("all", "action", "none"),
        read_only=True,
    )
    move_group_action: str = setting("move_action", "Name of the action MoveGroup", must=A_NAME, read_only=True)
    planner: str = setting("rrt_connect", "Planner of requests that name none", choices=tuple(PLANNERS))
    velocity_scaling: float = setting(1.0, "Fraction of the velocity limits that motions use", 1e-3, 1.0)
    acceleration_scaling: float = setting(1.0, "Fraction of the acceleration limits that motions use", 1e-3, 1.0)
    corner_deviation: float = setting(
        0.1,
        "Farthest that a motion leaves its path to pass corners without a stop, if proven free; L2 norm. 0: stop there",
        0.0,
        10.0,
        unit="rad or m",
    )
    jerk_time_s: float = setting(
        0.1,
        "Time from rest to full acceleration: the jerk limit is the acceleration limit over it",
        1e-3,
        10.0,
        unit="seconds",
    )
    margin: float = setting(
        MARGIN.default, "Distance from obstacles where requests give none", MARGIN.low, MARGIN.high, unit=MARGIN.unit
    )
    ik_solutions: int = setting(8, "Most free joint solutions of a pose goal, nearest to the start first", 1, 256)
    max_goals: int = setting(1000, "Most goals of a request, joint goals and pose goals together", 1, 1_000_000)
    max_segments: int = setting(100, "Most segments of a sequence", 1, 10_000)
    max_obstacles: int = setting(10_000, "Most obstacles of a message, and of ~/obstacles altogether", 1, 10_000_000)
    max_triangles: int = setting(
        20_000, "Most triangles of TRIANGLE_LISTs in a message, and in ~/obstacles altogether", 1, 100_000_000
    )
    joint_state_timeout_s: float = setting(2.0, "Oldest joint_states that count", 0.01, 3600.0, unit="seconds")
    fixed_joint_tolerance: float = setting(
        0.002, "Move of a joint that is not planned (a gripper) that counts", 1e-6, 1.0, unit="rad or m"
    )
    moving_horizon_s: float = setting(
        5.0,
        "How long after a message of ~/moving_obstacles they go on moving; then they stand where they have got to",
        0.0,
        3600.0,
        unit="seconds",
    )
    hands_position: float = setting(
        POSITION,
        "Farthest that an object in two hands lets one of them leave its place in the other one's frame",
        *POSITIONS,
        unit="metres",
    )
    hands_rotation: float = setting(
        ROTATION,
        "Farthest that an object in two hands lets one of them turn in the other one's frame",
        *ROTATIONS,
        unit="rad",
    )
    moving_slack_s: float = setting(
        0.2,
        "How much earlier or later than told the robot, or what moves, may be where it will be",
        0.0,
        60.0,
        unit="seconds",
    )
    other_arms: tuple = setting(
        (),
        "Namespaces of other arm_planner nodes, whose arms are obstacles that move",
        items=str,
        must=("names of ROS", lambda name: is_name(f"/{name.strip('/')}")),
        read_only=True,
    )
    other_arm_poses: tuple = setting(
        (), "Of each of other_arms x, y, z, yaw of its root in this root frame", items=float, unit="metres, rad"
    )
    other_arm_padding: float = setting(
        0.02, "Distance by which the boxes about other arms are larger on each side", 0.0, 1.0, unit="metres"
    )
    points_voxel_size: float = setting(0.02, "Edge of the voxels that points become", 1e-3, 10.0, unit="metres")
    points_padding: float = _padding(0.03, "points")
    points_box: tuple = setting(
        (), "Lowest and highest x, y, z of points that count, in the root frame; empty: all", items=float, unit="metres"
    )
    points_max: int = setting(1_000_000, "Most points of a cloud; one of more is refused", 1, 100_000_000)
    points_max_voxels: int = setting(
        50_000, "Most voxels of a cloud, which are doubled in size until it has no more", 8, 10_000_000
    )
    points_max_age_s: float = setting(1.0, "Oldest cloud that is taken, if it has a stamp", 0.0, 1e9, unit="seconds")
    points_lifetime_s: float = setting(
        0.0, "How long the obstacles of a cloud stay; 0: until the next cloud in its frame", 0.0, 1e9, unit="seconds"
    )
    voxels_padding: float = _padding(-1.0, "voxels of ~/octomap, ~/voxel_grid, ~/distance_slice and ~/voxel_blocks")
    slice_error: float = changed(FieldRule, "error", text="Greatest error of a distance of ~/distance_slice")
    slice_unknown: str = changed(FieldRule, "unknown", text="What unknown cells of ~/distance_slice are")
    slice_heights: tuple = setting(
        (),
        "Lowest and highest z, in its frame, of what ~/distance_slice has the distances of in the plane; empty: it is "
        "a layer of a field in space",
        items=float,
        unit="metres",
    )
    line: LineSettings = LineSettings()
    motion_check: MotionCheck = MotionCheck()

    @property
    def urdf(self) -> str:
        """Text or file of the URDF, "" where the topic brings it."""
        return self.robot_description or self.robot_description_file

    @property
    def controllers(self) -> dict[str, str]:
        """{group: action of its controller}, "" for all others."""
        pairs = (text.partition("=")[::2] for text in self.group_controllers)
        return {"": self.controller_action} | dict(pairs)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.other_arm_poses) != 4 * len(self.other_arms):
            raise SettingsError(
                f"parameter 'other_arm_poses' has {len(self.other_arm_poses)} numbers; "
                f"allowed: {4 * len(self.other_arms)}, four for each of other_arms"
            )
        if self.srdf_file and self.robot_description_semantic:
            raise SettingsError(
                "parameters 'srdf_file' and 'robot_description_semantic' both give an SRDF; allowed: one"
            )
        heights = self.slice_heights
        if heights and (len(heights) != 2 or not heights[0] < heights[1]):
            raise SettingsError(
                f"parameter 'slice_heights' is {list(heights)}; allowed: two numbers, the first below the second, or "
                "none"
            )
        box = self.points_box
        if box and (len(box) != 6 or not all(low < high for low, high in zip(box[:3], box[3:], strict=True))):
            raise SettingsError(
                f"parameter 'points_box' is {list(box)}; allowed: six numbers, each of the first three below its "
                "highest, or none"
            )
