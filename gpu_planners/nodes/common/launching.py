"""What the launch files share. Only a ROS installation has launch and launch_ros, so they are imported where used.

Whatever can be known to fail, a package that is not installed or an argument that is no truth value, fails before any
process starts: launch stops its other actions then, but a node that it has begun to start would live on.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import GpuPlannersError
from ...share import share_folder

LEVELS = "debug", "info", "warn", "error", "fatal"
TRUTH = {"true": True, "1": True, "false": False, "0": False}


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


def planner_and_view(
    planner: str, given: dict[str, str], parameters: dict[str, tuple[str, type]], more: dict[str, Any] | None = None
) -> list:
    """[the planner's node, and RViz when asked]. Raises GpuPlannersError where RViz is asked for and not installed.

    planner: name of the node, its executable, parameter file and view
    given: {argument: text}, those of usual_arguments and of `parameters`
    parameters: {argument: (parameter, type)}; an argument that is empty leaves the parameter to the file
    more: {parameter: value}
    """
    from launch_ros.actions import Node
    from launch_ros.parameter_descriptions import ParameterValue

    with_rviz = rviz_wanted(given)
    parameter_file = Path(given["params_file"]).expanduser()
    if not parameter_file.is_file():  # launch_ros would go on without
        raise GpuPlannersError(f"params_file:={given['params_file']}: there is no such file")
    if given["log_level"].strip().lower() not in LEVELS:
        raise GpuPlannersError(f"log_level:={given['log_level']}: allowed are {', '.join(LEVELS)}")
    # typed, for a file name or a group that looks like a number must stay a text, and a radius of 1 is no whole number
    values = {
        parameter: ParameterValue(_typed(given, name, kind), value_type=kind)
        for name, (parameter, kind) in parameters.items()
        if given[name]
    }
    node = Node(
        package="gpu_planners",
        executable=planner,
        name=planner,
        namespace=given["namespace"],
        output="screen",
        parameters=[str(parameter_file), {**values, **(more or {}), "use_sim_time": truth(given, "use_sim_time")}],
        arguments=["--ros-args", "--log-level", given["log_level"]],
    )
    if not with_rviz:
        return [node]
    frame = ["-f", given["fixed_frame"]] if given["fixed_frame"] else []
    rviz = Node(
        package="rviz2",
        executable="rviz2",
        name="rviz2",
        namespace=given["namespace"],
        arguments=["-d", str(share_folder() / "config" / f"{planner}.rviz"), *frame],
        parameters=[{"use_sim_time": truth(given, "use_sim_time")}],
    )
    return [node, rviz]


def robot_state_publisher(given: dict[str, str]) -> list:
    """[the node that publishes the robot's transforms and its description, for RViz], where the arguments name a URDF
    file and it is asked for, or is installed and not refused.

    given: {argument: text} with `urdf`, `robot_state_publisher` ("auto", "true" or "false"), `frame_prefix`,
        `namespace` and `use_sim_time`
    """
    from launch_ros.actions import Node
    from launch_ros.parameter_descriptions import ParameterValue

    name, asked = "robot_state_publisher", given["robot_state_publisher"] != "auto"
    if not given["urdf"] or (asked and not truth(given, name)):
        return []
    if not installed(name):
        if asked:
            raise GpuPlannersError(f"{name}:=true needs the ROS package {name}, which is not installed")
        return []
    try:
        urdf = Path(given["urdf"]).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GpuPlannersError(f"urdf:={given['urdf']} cannot be read: {error}") from error
    description = ParameterValue(urdf, value_type=str)  # a text, even where it could be read as YAML
    return [
        Node(
            package=name,
            executable=name,
            name=name,
            namespace=given["namespace"],
            parameters=[
                {
                    "robot_description": description,
                    "frame_prefix": ParameterValue(given["frame_prefix"], value_type=str),
                    "use_sim_time": truth(given, "use_sim_time"),
                }
            ],
        )
    ]


def trajectory_player(given: dict[str, str]) -> list:
    """[the node that plays motions in place of a controller], where the argument `player` asks for it.

    given: {argument: text} with `player` ("true", "false" or "physics"), `initial_state`, `urdf`, `srdf`, `group`,
        `package_dir`, `scene`, `namespace` and `use_sim_time`
    """
    from launch_ros.actions import Node
    from launch_ros.parameter_descriptions import ParameterValue

    physics = given["player"].strip().lower() == "physics"
    if not physics and not truth(given, "player"):
        return []
    if physics and not given["urdf"]:
        raise GpuPlannersError("player:=physics needs the argument urdf")
    texts = {
        "robot_description_file": given["urdf"],
        "srdf_file": given["srdf"],
        "group": given["group"],
        "initial_state": given["initial_state"],
        "scene_file": given["scene"],
    }
    values = {name: ParameterValue(text, value_type=str) for name, text in texts.items() if text}
    folders = {"package_dirs": [given["package_dir"]]} if given["package_dir"] else {}
    name = "trajectory_player"
    return [
        Node(
            package="gpu_planners",
            executable=name,
            name=name,
            namespace=given["namespace"],
            output="screen",
            parameters=[{**values, **folders, "physics": physics, "use_sim_time": truth(given, "use_sim_time")}],
        )
    ]


def rviz_wanted(given: dict[str, str]) -> bool:
    """Do the arguments ask for RViz? Raises GpuPlannersError where they do and it is not installed."""
    if not truth(given, "rviz"):
        return False
    if not installed("rviz2"):
        raise GpuPlannersError(
            "rviz:=true needs the ROS package rviz2, which is not installed; install it (apt install "
            "ros-$ROS_DISTRO-rviz2) or launch with rviz:=false. Nothing was started"
        )
    return True


def _typed(given, name, kind):
    try:
        return kind(given[name])
    except ValueError:
        raise GpuPlannersError(f"{name}:={given[name]}: allowed is a number") from None


def truth(given: dict[str, str], name: str) -> bool:
    """An argument that is true or false; GpuPlannersError for any other text."""
    try:
        return TRUTH[given[name].strip().lower()]
    except KeyError:
        raise GpuPlannersError(f"{name}:={given[name]}: allowed are true and false") from None


def installed(package: str) -> bool:
    """Is a ROS package in the sourced installation?"""
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix

    try:
        return bool(get_package_prefix(package))
    except PackageNotFoundError:
        return False
