"""Every parameter of the arm planner node: declared once, described, with ranges, checked before it is taken.

The planners' settings are parameters too: `<planner>.<field>` for each field of their Settings dataclass, with
its default. A wrong value is refused with a text that names it, when the node starts and when it runs.
"""

from dataclasses import dataclass, fields

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.parameter import Parameter as RclParameter

from ..arm import prm, rrt_connect
from ..arm.collision_checker import MotionCheck
from ..errors import SettingsError

PLANNERS = {"rrt_connect": rrt_connect, "prm": prm}
SETTINGS = {name: planner.Settings for name, planner in PLANNERS.items()} | {"motion_check": MotionCheck}


@dataclass(frozen=True)
class Parameter:
    """One parameter of the node.

    low, high: inclusive range of a number; choices: the values that a string may have
    read_only: taken at start only
    """

    name: str
    default: object
    description: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    read_only: bool = False


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
    Parameter(
        "ik_solutions",
        8,
        "Most collision-free joint solutions used for each pose goal, nearest to the start first",
        1,
        256,
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

# what `ros2 param describe` says of the fields of Settings: text, inclusive range of a number
SETTING_TEXTS = {
    "rrt_connect.range": ("Longest motion added to a tree at once, rad (joint-space L2)", 1e-3, 100.0),
    "rrt_connect.dynamic_domain": (
        "Radius within which a node that failed to extend still takes samples, rad; 0: any",
        0.0,
        1000.0,
    ),
    "rrt_connect.batch": ("Samples per round on CUDA; the CPU takes one at a time", 1, 100_000),
    "rrt_connect.max_samples": ("Most configurations drawn", 1, 100_000_000),
    "rrt_connect.time_limit_s": ("Longest search, seconds", 1e-3, 86_400.0),
    "rrt_connect.shortcut_rounds": ("Rounds of shortening the path; 0: raw path", 0, 10_000),
    "prm.batch": ("Configurations drawn between two looks at the roadmap", 1, 1_000_000),
    "prm.neighbour_factor": ("Neighbours tried for each node, as a fraction of PRM*'s number", 0.01, 100.0),
    "prm.max_samples": ("Most configurations drawn", 1, 100_000_000),
    "prm.time_limit_s": ("Longest search, seconds", 1e-3, 86_400.0),
    "prm.shortcut_rounds": ("Rounds of shortening the path; 0: raw path", 0, 10_000),
    "motion_check.mode": (
        "How motions are checked: continuous (proven), workspace (metres), joint (rad), count (parts)",
        None,
        None,
    ),
    "motion_check.step": ("Its step, in the unit of the mode", 1e-5, 1e6),
}


def declare(node):
    """Declare all parameters on an rclpy node; SettingsError when a given value is wrong."""
    for parameter in PARAMETERS:
        node.declare_parameter(parameter.name, parameter.default, _descriptor(parameter))
    for prefix, settings in SETTINGS.items():
        for field in _plain_fields(settings):
            name = f"{prefix}.{field.name}"
            node.declare_parameter(
                name, field.default, _descriptor(Parameter(name, field.default, *SETTING_TEXTS[name]))
            )
    check(values(node))


def values(node):
    """{name: value} of every parameter."""
    names = [p.name for p in PARAMETERS] + [
        f"{prefix}.{field.name}" for prefix, kind in SETTINGS.items() for field in _plain_fields(kind)
    ]
    return {name: node.get_parameter(name).value for name in names}


def settings(values, prefix):
    """The frozen Settings of a planner (or MotionCheck) from parameter values; they validate themselves."""
    kind = SETTINGS[prefix]
    return kind(**{field.name: values[f"{prefix}.{field.name}"] for field in _plain_fields(kind)})


def strings(value):
    """A string array parameter without its empty strings (ROS has no typed empty array default)."""
    return tuple(text for text in value if text)


def check(values):
    """SettingsError when a value, or a combination of values, is impossible."""
    for parameter in PARAMETERS:
        if parameter.choices and values[parameter.name] not in parameter.choices:
            raise SettingsError(
                f"parameter '{parameter.name}' is '{values[parameter.name]}'; allowed: {', '.join(parameter.choices)}"
            )
    for prefix in SETTINGS:
        settings(values, prefix)


def checker_of_changes(node, accepted):
    """Callback for add_on_set_parameters_callback: refuse what `check` refuses, else hand on the new values.

    accepted: called with {name: value} of all parameters as they will be
    """

    def callback(changes: list[RclParameter]):
        proposed = values(node) | {change.name: change.value for change in changes}
        try:
            check(proposed)
        except (SettingsError, TypeError) as error:
            return SetParametersResult(successful=False, reason=str(error))
        accepted(proposed)
        return SetParametersResult(successful=True)

    return callback


def _plain_fields(settings):
    """Fields that a ROS parameter can hold."""
    return [field for field in fields(settings) if isinstance(field.default, bool | int | float | str)]


def _descriptor(parameter):
    descriptor = ParameterDescriptor(description=parameter.description, read_only=parameter.read_only)
    if parameter.choices:
        descriptor.additional_constraints = f"one of {', '.join(parameter.choices)}"
    if parameter.low is not None:
        if isinstance(parameter.default, int):
            descriptor.integer_range = [IntegerRange(from_value=int(parameter.low), to_value=int(parameter.high))]
        else:
            descriptor.floating_point_range = [
                FloatingPointRange(from_value=float(parameter.low), to_value=float(parameter.high))
            ]
    return descriptor
