"""What the launch files share. Only a ROS installation has launch and launch_ros, so they are imported where used."""

from collections.abc import Callable
from typing import Any

from ...share import share_folder


def usual_arguments(planner: str, frame_text: str, rviz: str = "false") -> dict[str, tuple[str, str]]:
    """{name: (default, text)} of the arguments of every launch file."""
    return {
        "namespace": ("", "Namespace of what is started and its topics"),
        "use_sim_time": ("false", "Take the time from /clock"),
        "params_file": (str(share_folder() / "config" / f"{planner}.yaml"), "Parameters of the planner"),
        "log_level": ("info", "debug, info, warn, error or fatal"),
        "rviz": (rviz, "Start RViz with the planner's view"),
        "fixed_frame": ("", frame_text),
        "device": ("", "auto, cpu, cuda or cuda:N"),
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
    """[the planner's node, RViz when asked]

    planner: name of the node, its executable, parameter file and view
    given: {argument: text}, those of usual_arguments and of `parameters`
    parameters: {argument: (parameter, type)}; an argument that is empty leaves the parameter to the file
    more: {parameter: value}
    """
    from launch.conditions import IfCondition
    from launch.substitutions import LaunchConfiguration
    from launch_ros.actions import Node
    from launch_ros.parameter_descriptions import ParameterValue

    # typed, for a file name or a group that looks like a number must stay a text, and a radius of 1 is no whole number
    values = {
        parameter: ParameterValue(kind(given[name]), value_type=kind)
        for name, (parameter, kind) in parameters.items()
        if given[name]
    }
    use_sim_time = ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool)
    node = Node(
        package="gpu_planners",
        executable=planner,
        name=planner,
        namespace=given["namespace"],
        output="screen",
        parameters=[given["params_file"], {**values, **(more or {}), "use_sim_time": use_sim_time}],
        arguments=["--ros-args", "--log-level", given["log_level"]],
    )
    frame = ["-f", given["fixed_frame"]] if given["fixed_frame"] else []
    rviz = Node(
        package="rviz2",
        executable="rviz2",
        name="rviz2",
        namespace=given["namespace"],
        arguments=["-d", str(share_folder() / "config" / f"{planner}.rviz"), *frame],
        condition=IfCondition(given["rviz"]),
    )
    return [node, rviz]
