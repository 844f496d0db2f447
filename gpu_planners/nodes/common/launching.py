"""What the launch files share. Only a ROS installation has launch and launch_ros, so they are imported where used.

What can be known to fail, a package that is not installed or an argument that is no truth value, fails before any
process starts: launch then stops its other actions, but a node that it has begun to start would live on.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import GpuPlannersError
from ...share import share_folder

LEVELS = "debug", "info", "warn", "error", "fatal"
TRUTH = {"true": True, "1": True, "false": False, "0": False}
MOVED = {  # {name: (default, text)} of the arguments of launch files that can start trajectory_player
    "player": (
        "false",
        "Start trajectory_player, a controller without hardware: true, false, or physics: moved by MuJoCo",
    ),
    "frame_prefix": (
        "",
        "What the names of the robot's frames begin with in tf2, where there are several robots: left/",
    ),
    "initial_state": ("", "State of the SRDF that trajectory_player begins in"),
    "robot_state_publisher": (
        "auto",
        "Publish transforms and description of the robot in `urdf`: true, false, or auto: where it is installed",
    ),
}
LIMITS = {  # {name: (default, text)} of the arguments of launch files that start arm_planner with MoveIt's limits
    "joint_limits": ("", "MoveIt's joint_limits.yaml"),
    "cartesian_limits": ("", "MoveIt's pilz_cartesian_limits.yaml"),
}


def usual_arguments(planner: str, frame_text: str, rviz: str = "false") -> dict[str, tuple[str, str]]:
    """{name: (default, text)} of the arguments of every launch file."""
    return {
        "namespace": ("", "Namespace of what is started and its topics"),
        "use_sim_time": ("false", "Take the time from /clock"),
        "params_file": (str(share_folder() / "config" / f"{planner}.yaml"), "Parameters of the planner"),
        "log_level": ("info", ", ".join(LEVELS)),
        "rviz": (rviz, "Start RViz with the planner's view: true or false"),
        "fixed_frame": ("", frame_text),
        "device": ("", "auto, cpu, cuda, cuda:N, or several with commas between them"),
    }


def launch_description(arguments: dict[str, tuple[str, str]], start: Callable[[dict[str, str]], list]) -> Any:
    """LaunchDescription with arguments {name: (default, text)} that starts what start({name: text given}) returns."""
    from launch.actions import DeclareLaunchArgument, OpaqueFunction
    from launch.substitutions import LaunchConfiguration

    from launch import LaunchDescription  # type: ignore[attr-defined]  # our folder launch/ hides it from mypy

    def start_given(context):
        return start({name: LaunchConfiguration(name).perform(context) for name in arguments})

    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, (default, text) in arguments.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=start_given)])


def arm_planner_included(given: dict[str, str]) -> Any:
    """The action that carries out arm_planner.launch.py with arguments {name: text}."""
    from launch.actions import IncludeLaunchDescription
    from launch.launch_description_sources import PythonLaunchDescriptionSource

    source = PythonLaunchDescriptionSource(str(share_folder() / "launch" / "arm_planner.launch.py"))
    return IncludeLaunchDescription(source, launch_arguments=given.items())


def planner_and_view(
    planner: str, given: dict[str, str], parameters: dict[str, tuple[str, type]], more: dict[str, Any] | None = None
) -> list:
    """[the planner's node, and RViz when asked]. GpuPlannersError where RViz is asked for and not installed.

    planner: name of the node, its executable, parameter file and view
    given: {argument: text}, those of usual_arguments and of `parameters`
    parameters: {argument: (parameter, type)}; an argument that is empty leaves the parameter to the file
    more: {parameter: value}
    """
    with_rviz, file = rviz_wanted(given), Path(given["params_file"]).expanduser()
    if not file.is_file():  # launch_ros would go on without
        raise GpuPlannersError(f"params_file:={given['params_file']}: there is no such file")
    if given["log_level"].strip().lower() not in LEVELS:
        raise GpuPlannersError(f"log_level:={given['log_level']}: allowed are {', '.join(LEVELS)}")
    values = {parameter: _typed(given, name, kind) for name, (parameter, kind) in parameters.items() if given[name]}
    level = ["--ros-args", "--log-level", given["log_level"]]
    node = node_action(given, planner, values | (more or {}), str(file), output="screen", arguments=level)
    if not with_rviz:
        return [node]
    frame = ["-f", given["fixed_frame"]] if given["fixed_frame"] else []
    view = ["-d", str(share_folder() / "config" / f"{planner}.rviz"), *frame]
    return [node, node_action(given, "rviz2", {}, package="rviz2", arguments=view)]


def rviz_wanted(given: dict[str, str]) -> bool:
    """Do the arguments ask for RViz? GpuPlannersError where they do and it is not installed."""
    if truth(given, "rviz") and not installed("rviz2"):
        raise GpuPlannersError(
            "rviz:=true needs the ROS package rviz2, which is not installed; install it (apt install "
            "ros-$ROS_DISTRO-rviz2) or launch with rviz:=false. Nothing was started"
        )
    return truth(given, "rviz")


def truth(given: dict[str, str], name: str) -> bool:
    """An argument that is true or false; GpuPlannersError for any other text."""
    try:
        return TRUTH[given[name].strip().lower()]
    except KeyError:
        raise GpuPlannersError(f"{name}:={given[name]}: allowed are true and false") from None


def installed(package: str) -> bool:
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix

    try:
        return bool(get_package_prefix(package))
    except PackageNotFoundError:
        return False


def node_action(
    given: dict[str, str], name: str, values: dict[str, Any], *files: str, package: str = "gpu_planners", **options: Any
) -> Any:
    """The action that starts the node `name` of an executable of this name.

    given: {argument: text} with `namespace` and `use_sim_time`; values: {parameter: value}, files: of parameters
    """
    from launch_ros.actions import Node
    from launch_ros.parameter_descriptions import ParameterValue

    # typed: a file name or a group that looks like a number must stay a text, and a radius of 1 is no whole number
    typed = {
        parameter: ParameterValue(value, value_type=type(value)) if isinstance(value, str | float) else value
        for parameter, value in values.items()
    }
    parameters = [*files, typed | {"use_sim_time": truth(given, "use_sim_time")}]
    namespace = given["namespace"]
    return Node(package=package, executable=name, name=name, namespace=namespace, parameters=parameters, **options)


def _typed(given, name, kind):
    try:
        return kind(given[name])
    except ValueError:
        raise GpuPlannersError(f"{name}:={given[name]}: allowed is a number") from None
