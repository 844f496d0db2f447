"""Launch files: every argument is declared, leads to the right parameter, and empty ones leave the file's value."""

import ast
import importlib.util
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "launch").glob("arm_planner.launch.py")) + sorted((ROOT / "launch").glob("demo.launch.py"))
USUAL_ARGUMENTS = {"namespace", "use_sim_time", "params_file", "log_level", "rviz", "device", "urdf", "srdf", "scene"}


def declared_arguments(file):
    """Keys of the table ARGUMENTS, read from the source, so that it needs no ROS installation."""
    table = next(node.value for node in ast.parse(file.read_text()).body
                 if isinstance(node, ast.Assign) and node.targets[0].id == "ARGUMENTS")
    return {key.value for key in table.keys}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_usual_arguments_are_there(file):
    assert declared_arguments(file) >= USUAL_ARGUMENTS


def test_the_demo_passes_on_every_argument_of_the_planner():
    planner, demo = (declared_arguments(ROOT / "launch" / f"{name}.launch.py") for name in ("arm_planner", "demo"))
    assert demo - {"repeat"} == planner


def flat(tree, prefix=""):
    """{"a.b": value} of nested mappings."""
    names = {}
    for name, value in tree.items():
        names |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return names


def test_the_parameter_file_names_declared_parameters_with_their_types():
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    from gpu_planners.nodes import parameters

    declared = {p.name: p.default for p in parameters.PARAMETERS}
    declared |= {f"{prefix}.{field.name}": field.default for prefix, kind in parameters.SETTINGS.items()
                 for field in parameters._plain_fields(kind)}
    given = yaml.safe_load((ROOT / "config/arm_planner.yaml").read_text())["/**"]["arm_planner"]["ros__parameters"]
    for name, value in flat(given).items():
        assert name in declared and type(value) is type(declared[name]), name
        assert value == declared[name], f"{name}: the file and the default differ"
    parameters.check(declared)


def test_every_setting_of_the_planners_is_described():
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    from gpu_planners.nodes import parameters

    fields = {f"{prefix}.{field.name}" for prefix, kind in parameters.SETTINGS.items() for field in parameters._plain_fields(kind)}
    assert fields == set(parameters.SETTING_TEXTS)


def test_the_rviz_view_shows_the_planners_markers():
    for file in (ROOT / "config").glob("*.rviz"):
        displays = yaml.safe_load(file.read_text())["Visualization Manager"]["Displays"]
        topics = [display["Topic"] for display in displays if display["Class"] == "rviz_default_plugins/MarkerArray"]
        assert topics[0]["Value"] == "arm_planner/markers" and topics[0]["Durability Policy"] == "Transient Local"


def module_of(file):
    spec = importlib.util.spec_from_file_location(file.name.replace(".", "_"), file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_launch_description_is_made(file):
    # not "launch": the folder of that name would be found as a namespace package
    pytest.importorskip("launch_ros.actions", reason="launch and launch_ros are not among the ROS wheels; they come with a ROS installation")
    import launch
    from launch.actions import DeclareLaunchArgument, OpaqueFunction

    module = module_of(file)
    description = module.generate_launch_description()
    declared = {entity.name for entity in description.entities if isinstance(entity, DeclareLaunchArgument)}
    assert declared == set(module.ARGUMENTS)
    context = launch.LaunchContext()
    context.launch_configurations.update({name: default for name, (default, _) in module.ARGUMENTS.items()})
    opaque = next(entity for entity in description.entities if isinstance(entity, OpaqueFunction))
    assert len(opaque.execute(context)) == 2
