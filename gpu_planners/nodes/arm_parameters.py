"""The parameters of the node arm_planner, with the settings of every planner as `<planner>.<field>`."""

from ..arm import prm, rrt, rrt_connect, rrt_star
from ..arm.collision_checker import GREATEST_MARGIN, MotionCheck
from .parameters import Parameter, ParameterSet

PLANNERS = {"rrt_connect": rrt_connect, "prm": prm, "rrt": rrt, "rrt_star": rrt_star}
SETTINGS = {name: planner.Settings for name, planner in PLANNERS.items()} | {"motion_check": MotionCheck}

PARAMETERS = (
    Parameter("robot_description_file", "", "URDF file; empty: wait for the topic robot_description", read_only=True),
    Parameter(
        "srdf_file", "", "SRDF file with groups and disabled collisions; empty: pairs found by sampling", read_only=True
    ),
    Parameter("package_dirs", [""], "Folders that hold the packages of package:// mesh paths", read_only=True),
    Parameter("group", "", "SRDF group to plan; empty: `joints`, or the only group", read_only=True),
    Parameter("joints", [""], "Joints to plan, in the order of q; empty: those of `group`", read_only=True),
    Parameter("tip_link", "", "Link that pose goals place; empty: the group's tip", read_only=True),
    Parameter("world_frame", "", "A further name of the root frame, for instance 'world'", read_only=True),
    Parameter("scene_file", "", "YAML file of obstacles that are always there", read_only=True),
    Parameter(
        "obstacles_durability",
        "volatile",
        "QoS durability of the subscription ~/obstacles",
        choices=("volatile", "transient_local"),
        read_only=True,
    ),
    Parameter("device", "auto", "Where to compute: auto, cpu, cuda or cuda:N"),
    Parameter("planner", "rrt_connect", "Planner of requests that name none", choices=tuple(PLANNERS)),
    Parameter("velocity_scaling", 1.0, "Fraction of the velocity limits that motions use", 1e-3, 1.0),
    Parameter("acceleration_scaling", 1.0, "Fraction of the acceleration limits that motions use", 1e-3, 1.0),
    Parameter("margin", 0.0, "Distance kept from obstacles in requests that give none, metres", 0.0, GREATEST_MARGIN),
    Parameter(
        "ik_solutions",
        8,
        "Most collision-free joint solutions used for each pose goal, nearest to the start first",
        1,
        256,
    ),
    Parameter("max_goals", 1000, "Most goals of a request, joint goals and pose goals together", 1, 1_000_000),
    Parameter("max_obstacles", 10_000, "Most obstacles of a message, and of ~/obstacles altogether", 1, 10_000_000),
    Parameter(
        "max_triangles",
        20_000,
        "Most triangles of a message, and of ~/obstacles altogether, in obstacles that are a TRIANGLE_LIST",
        1,
        100_000_000,
    ),
    Parameter("joint_state_timeout_s", 2.0, "Oldest joint_states that a motion may start from, seconds", 0.01, 3600.0),
    Parameter(
        "fixed_joint_tolerance",
        0.002,
        "Move of a joint that is not planned (a gripper) after which its collision geometry is placed anew, rad or m",
        1e-6,
        1.0,
    ),
)

TREE_TEXTS = {  # rrt and rrt_star
    "range": ("Longest motion added at once, in units of cost (rad); 0: samples are approached all the way", 0.0, 1e4),
    "goal_radius": ("A path may end so close to a goal, in units of cost (rad); 0: it ends at the goal", 0.0, 1e4),
    "goal_bias": ("Share of the samples that are drawn at a goal not reached yet", 0.0, 1.0),
    "batch": ("Samples of a round at most; 0: 64 on the CPU, 2048 on CUDA", 0, 1 << 14),
}
SHARED_TEXTS = {  # every planner
    "max_samples": ("Most configurations drawn", 1, 100_000_000),
    "time_limit_s": ("Longest search, seconds", 1e-3, 86_400.0),
    "shortcut_rounds": ("Passes of shortening the path; 0: raw path", 0, 10_000),
    "limit_tolerance": ("A start or goal value this far beyond a joint limit is taken to the limit, rad or m", 0.0, 0.1),
    "weights": ("One positive number per joint: a motion costs sqrt(sum of weight * change squared); empty: 1 each",),
}
# what `ros2 param describe` says of the fields of Settings: text, inclusive range of a number
SETTING_TEXTS = {
    f"{planner}.{field}": text
    for planner, texts in zip(PLANNERS, ({}, {}, TREE_TEXTS, TREE_TEXTS), strict=True)
    for field, text in (texts | SHARED_TEXTS).items()
} | {
    "rrt_connect.range": ("Longest motion added to a tree at once, rad (joint-space L2)", 1e-3, 100.0),
    "rrt_connect.dynamic_domain": (
        "Radius within which a node that failed to extend still takes samples, rad; 0: any",
        0.0,
        1000.0,
    ),
    "rrt_connect.batch": ("Samples of a round; 0: 1 on the CPU, 64 on CUDA", 0, 4096),
    "rrt_connect.restarts": ("Searches after the first while time is left; the shortest path counts", 0, 100_000),
    "rrt_connect.max_samples": ("Most configurations drawn in a search", 1, 100_000_000),
    "prm.radius": ("A node lies at most so far from the graph and is tried with nodes within it, rad", 1e-3, 100.0),
    "prm.near": ("Share of the samples that are moved to within the radius of the graph", 0.0, 1.0),
    "prm.connections": ("Nodes that a new node is tried with, besides the one that it came from", 1, 64),
    "prm.neighbour_factor": ("Neighbours of a node of a kept roadmap, as a fraction of PRM*'s number", 0.01, 100.0),
    "prm.batch": ("Samples between two looks at the graph; 0: chosen by device", 0, 1_000_000),
    "prm.lazy": ("Check motions inside a tree only where the shortest path needs them",),
    "prm.version": ("0: all of the search compiled; 1, 2, 3: the parallelizations of [DL14] over `workers`", 0, 3),
    "prm.workers": ("Workers of versions 1 to 3", 1, 64),
    "prm.roadmap_nodes": ("Configurations of a kept roadmap, which requests do not use", 1, 1_000_000),
    "rrt.stop_at_first": ("End with the first path; otherwise at the budget, with the cheapest",),
    "rrt_star.radius_factor": ("Near nodes lie within this times Karaman and Frazzoli's least radius", 0.01, 100.0),
    "rrt_star.informed": ("Once a path is known, draw only where a shorter one may pass",),
    "rrt_star.max_samples": ("Configurations drawn; all of them, unless the time limit comes first", 1, 100_000_000),
    "motion_check.mode": (
        "How motions are checked: continuous (proven), workspace (metres), joint (rad), count (parts)",
    ),
    "motion_check.step": ("Its step, in the unit of the mode", 1e-5, 1e6),
}

ARM_PARAMETERS = ParameterSet(PARAMETERS, SETTINGS, SETTING_TEXTS)
