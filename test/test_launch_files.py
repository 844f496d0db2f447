"""Launch files: every argument is declared, leads to the right parameter, and empty ones leave the file's value."""

import ast
import importlib.util
from pathlib import Path

import pytest
import yaml
from checkout import setup_arguments

ROOT = Path(__file__).resolve().parent.parent
PARAMETER_FILE = ROOT / "config/arm_planner.yaml"
FILES = sorted((ROOT / "launch").glob("arm_planner.launch.py")) + sorted((ROOT / "launch").glob("demo.launch.py"))
USUAL_ARGUMENTS = {"namespace", "use_sim_time", "params_file", "log_level", "rviz", "device", "urdf", "srdf", "scene"}


def declared_arguments(file):
    """Keys of the table ARGUMENTS, read from the source, so that it needs no ROS installation."""
    table = next(
        node.value
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.Assign) and node.targets[0].id == "ARGUMENTS"
    )
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


def declared_parameters():
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    from gpu_planners.nodes.arm_parameters import ARM_PARAMETERS

    return {p.name: p.default for p in ARM_PARAMETERS.parameters} | ARM_PARAMETERS.setting_defaults()


def test_the_parameter_file_holds_every_parameter_with_its_default():
    declared = declared_parameters()
    given = {}
    for name, value in yaml.safe_load(PARAMETER_FILE.read_text())["/**"]["arm_planner"]["ros__parameters"].items():
        given |= (
            {f"{name}.{field}": inner for field, inner in value.items()} if isinstance(value, dict) else {name: value}
        )
    assert given == declared
    assert {name: type(value) for name, value in given.items()} == {
        name: type(value) for name, value in declared.items()
    }


@pytest.mark.parametrize("namespace", ["", "/cell/left"])
def test_the_node_takes_the_parameter_file(tmp_path, namespace):
    declared = declared_parameters()
    import rclpy

    from gpu_planners.nodes.arm_planner_node import ArmPlannerNode

    changed = {"planner": ("rrt_connect", "prm"), "roadmap_nodes": ("2000", "1234")}
    text = PARAMETER_FILE.read_text()
    for name, (default, value) in changed.items():
        text = text.replace(f'{name}: "{default}"', f'{name}: "{value}"').replace(
            f"{name}: {default}\n", f"{name}: {value}\n"
        )
    (tmp_path / "changed.yaml").write_text(text)
    context = rclpy.Context()
    rclpy.init(context=context)
    for file, expected in (
        (PARAMETER_FILE, declared),
        (tmp_path / "changed.yaml", declared | {"planner": "prm", "prm.roadmap_nodes": 1234}),
    ):
        node = ArmPlannerNode(context=context, namespace=namespace, cli_args=["--ros-args", "--params-file", str(file)])
        assert node._values == expected
        node.close()
    rclpy.shutdown(context=context)


def test_the_rviz_view_shows_what_the_node_publishes():
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    import rclpy

    from gpu_planners.nodes.arm_planner_node import ArmPlannerNode

    document = yaml.safe_load((ROOT / "config/arm_planner.rviz").read_text())["Visualization Manager"]
    assert document["Global Options"]["Fixed Frame"] == "panda_link0"
    topics = [display["Topic"] for display in document["Displays"] if "Topic" in display]
    assert topics and all(topic["Durability Policy"] == "Transient Local" for topic in topics)
    context = rclpy.Context()
    rclpy.init(context=context)
    node = ArmPlannerNode(context=context)
    published = dict(node.get_publisher_names_and_types_by_node("arm_planner", "/"))
    kinds = [published[f"/{topic['Value']}"] for topic in topics]
    node.close()
    rclpy.shutdown(context=context)
    assert kinds == [["visualization_msgs/msg/MarkerArray"]]


def test_launch_files_parameters_and_views_are_installed():
    installed = {file for _, files in setup_arguments()["data_files"] for file in files}
    assert installed >= {
        "config/arm_planner.yaml",
        "config/arm_planner.rviz",
        *(f"launch/{file.name}" for file in FILES),
    }


def module_of(file):
    spec = importlib.util.spec_from_file_location(file.name.replace(".", "_"), file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_launch_description_is_made(file):
    # not "launch": the folder of that name would be found as a namespace package
    pytest.importorskip(
        "launch_ros.actions",
        reason="launch and launch_ros are not among the ROS wheels; they come with a ROS installation",
    )
    from launch.actions import DeclareLaunchArgument, OpaqueFunction

    import launch

    module = module_of(file)
    description = module.generate_launch_description()
    declared = {entity.name for entity in description.entities if isinstance(entity, DeclareLaunchArgument)}
    assert declared == set(module.ARGUMENTS)
    context = launch.LaunchContext()
    context.launch_configurations.update({name: default for name, (default, _) in module.ARGUMENTS.items()})
    opaque = next(entity for entity in description.entities if isinstance(entity, OpaqueFunction))
    assert len(opaque.execute(context)) == 2
