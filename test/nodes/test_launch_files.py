"""Launch files: every argument is declared, leads to the right parameter, and empty ones leave the file's value."""

import importlib.util
import runpy
import time
from operator import attrgetter
from pathlib import Path

import pytest
import yaml
from checkout import setup_arguments

from gpu_planners.errors import GpuPlannersError

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "launch").glob("*.launch.py"))
USUAL_ARGUMENTS = {"namespace", "use_sim_time", "params_file", "log_level", "rviz", "device"}
ROBOT_ARGUMENTS = {"urdf", "srdf", "scene"}
RSP = "robot_state_publisher"
NODES = ("arm_planner", "fleet_planner", "grid_planner")
CHANGED = {  # parameter: (its default in the file, another value)
    "arm_planner": {"planner": ('"rrt_connect"', '"prm"'), "prm.roadmap_nodes": ("2000", "1234")},
    "fleet_planner": {"lockstep": ("false", "true"), "fleet.stuck_after": ("500", "99")},
    "grid_planner": {"algorithm": ('"exact"', '"astar"'), "footprint_radius": ("0.0", "0.35")},
}
SHOWN = {  # fixed frame of the RViz view, types of its topics
    "arm_planner": ("panda_link0", 2 * ["visualization_msgs/msg/MarkerArray"]),
    "fleet_planner": ("map", ["nav_msgs/msg/OccupancyGrid", "visualization_msgs/msg/MarkerArray"]),
    "grid_planner": (
        "map",
        [
            "nav_msgs/msg/OccupancyGrid",
            "visualization_msgs/msg/MarkerArray",
            "sensor_msgs/msg/PointCloud2",
            "nav_msgs/msg/Path",
        ],
    ),
}


def module_of(file):
    """A launch file as a module: it needs no ROS before its description is made."""
    spec = importlib.util.spec_from_file_location(file.name.replace(".", "_"), file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_usual_arguments_are_there(file):
    more = {"fleet": {"map"}, "grid": {"map"}, "desk": set()}.get(
        file.name.split("_")[0].split(".")[0], ROBOT_ARGUMENTS
    )
    assert set(module_of(file).ARGUMENTS) >= USUAL_ARGUMENTS | more


def test_the_demo_passes_on_every_argument_of_the_planner():
    planner, demo = (module_of(ROOT / "launch" / f"{name}.launch.py").ARGUMENTS for name in ("arm_planner", "demo"))
    assert demo.keys() - {"repeat"} == planner.keys()


@pytest.mark.parametrize("name", NODES)
def test_arguments_lead_to_parameters_of_the_node(name):
    _, declared = node_and_defaults(name)
    module = module_of(ROOT / "launch" / f"{name}.launch.py")
    assert module.PARAMETERS.keys() == module.ARGUMENTS.keys() - (USUAL_ARGUMENTS - {"device"}) - {
        "fixed_frame",
        "package_dir",
        "robot_state_publisher",
        "player",
        "initial_state",
    }
    for parameter, kind in module.PARAMETERS.values():
        assert type(declared[parameter]) is kind


def flat(tree, prefix=""):
    """{"a.b": value} of nested mappings."""
    names = {}
    for name, value in tree.items():
        names |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return names


def parameter_file(name):
    return ROOT / f"config/{name}.yaml"


def node_and_parameters(name):
    """Class of a node, its parameters"""
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    if name == "arm_planner":
        from gpu_planners.nodes.arm.node import ArmPlannerNode as kind
        from gpu_planners.nodes.arm.parameters import ArmParameters as parameters
    elif name == "fleet_planner":
        from gpu_planners.nodes.fleet.node import FleetPlannerNode as kind
        from gpu_planners.nodes.fleet.parameters import FleetParameters as parameters
    else:
        from gpu_planners.nodes.grid.node import GridPlannerNode as kind
        from gpu_planners.nodes.grid.parameters import GridParameters as parameters
    return kind, parameters


def node_and_defaults(name):
    """Class of a node, {parameter: default}"""
    kind, parameters = node_and_parameters(name)
    from gpu_planners.nodes.common.parameters import ros_default, rules_of

    return kind, {name: ros_default(rule) for name, rule in rules_of(parameters).items()}


def test_config_and_docs_are_what_the_settings_say():
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    written = runpy.run_path(str(ROOT / "tools/write_settings.py"))["texts"]()
    wrong = [path for path, text in written.items() if (ROOT / path).read_text(encoding="utf-8") != text]
    assert not wrong, "run tools/write_settings.py"


@pytest.mark.parametrize("name", NODES)
def test_a_node_and_its_parameters_in_python_have_the_same_defaults(name):
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    from gpu_planners.nodes.common.parameters import rules_of

    _, parameters = node_and_parameters(name)
    values = parameters()
    wrong = [name for name, rule in rules_of(parameters).items() if attrgetter(name)(values) != rule.default]
    assert not wrong


@pytest.mark.parametrize("name", NODES)
def test_the_parameter_file_holds_every_parameter_with_its_default(name):
    _, declared = node_and_defaults(name)
    given = flat(yaml.safe_load(parameter_file(name).read_text())["/**"][name]["ros__parameters"])
    assert given == declared
    assert {name: type(value) for name, value in given.items()} == {
        name: type(value) for name, value in declared.items()
    }


@pytest.mark.parametrize("namespace", ["", "/cell/left"])
@pytest.mark.parametrize("name", NODES)
def test_the_node_takes_the_parameter_file(tmp_path, name, namespace):
    kind, declared = node_and_defaults(name)
    import rclpy
    from running_node import new_context

    text, changed = parameter_file(name).read_text(), {}
    for parameter, (default, value) in CHANGED[name].items():
        line = f" {parameter.split('.')[-1]}: {default}\n"
        assert line in text
        text, changed[parameter] = text.replace(line, line.replace(default, value)), yaml.safe_load(value)
    (tmp_path / "changed.yaml").write_text(text)
    context = new_context()
    for file, expected in ((parameter_file(name), declared), (tmp_path / "changed.yaml", declared | changed)):
        node = kind(context=context, namespace=namespace, cli_args=["--ros-args", "--params-file", str(file)])
        given = {parameter: node.get_parameter(parameter).value for parameter in expected}
        assert {k: list(v) if hasattr(v, "tolist") else v for k, v in given.items()} == expected
        node.close()
    rclpy.shutdown(context=context)


@pytest.mark.parametrize("name", NODES)
def test_the_rviz_view_shows_what_the_node_publishes(name):
    kind, _ = node_and_parameters(name)
    import rclpy
    from running_node import new_context

    frame, expected = SHOWN[name]
    document = yaml.safe_load((ROOT / f"config/{name}.rviz").read_text())["Visualization Manager"]
    assert document["Global Options"]["Fixed Frame"] == frame
    topics = [display["Topic"] for display in document["Displays"] if "Topic" in display]
    context = new_context()
    node = kind(context=context)
    end = time.monotonic() + 30
    while len(published := dict(node.get_publisher_names_and_types_by_node(name, "/"))) < len(list(node.publishers)):
        assert time.monotonic() < end  # the graph is told of a publisher a little later
        time.sleep(0.05)
    assert [published[f"/{topic['Value']}"] for topic in topics] == [[kind] for kind in expected]
    for topic in topics:
        (publisher,) = node.get_publishers_info_by_topic(f"/{topic['Value']}")
        assert publisher.qos_profile.durability.name == topic["Durability Policy"].upper().replace(" ", "_")
    node.close()
    rclpy.shutdown(context=context)


def test_launch_files_parameters_and_views_are_installed():
    installed = {file for _, files in setup_arguments()["data_files"] for file in files}
    assert installed >= {
        *(f"config/{name}.{ending}" for name in NODES for ending in ("yaml", "rviz")),
        *(f"launch/{file.name}" for file in FILES),
    }


def launching(monkeypatch, *packages):
    """The module that the launch files share, in a ROS installation that has these packages."""
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    from gpu_planners.nodes.common import launching

    monkeypatch.setattr(launching, "installed", lambda package: package in packages)
    return launching


@pytest.mark.parametrize("text, wanted", [("true", True), ("False", False), ("1", True), ("0", False)])
def test_rviz_is_looked_for_only_when_asked(monkeypatch, text, wanted):
    assert launching(monkeypatch, "rviz2").rviz_wanted({"rviz": text}) is wanted
    if wanted:
        with pytest.raises(GpuPlannersError, match="rviz2.*not installed.*rviz:=false"):
            launching(monkeypatch).rviz_wanted({"rviz": text})


@pytest.mark.parametrize("name", ["rviz", "use_sim_time"])
def test_an_argument_that_is_no_truth_value_is_named(monkeypatch, name):
    with pytest.raises(GpuPlannersError, match=f"{name}:=maybe"):
        launching(monkeypatch).truth({name: "maybe"}, name)


@pytest.fixture
def context():
    """What a launch file is carried out in."""
    # not "launch": the folder of that name would be found as a namespace package
    pytest.importorskip(
        "launch_ros.actions",
        reason="launch and launch_ros are not among the ROS wheels; they come with a ROS installation",
    )
    import launch

    return launch.LaunchContext()


def started_by(file, context, **given):
    """Actions that a launch file starts, with arguments given."""
    from launch.actions import DeclareLaunchArgument, OpaqueFunction

    module = module_of(file)
    description = module.generate_launch_description()
    declared = {entity.name for entity in description.entities if isinstance(entity, DeclareLaunchArgument)}
    assert declared == set(module.ARGUMENTS)
    context.launch_configurations.update({name: default for name, (default, _) in module.ARGUMENTS.items()} | given)
    return next(entity for entity in description.entities if isinstance(entity, OpaqueFunction)).execute(context)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_without_rviz2_nothing_is_started(file, context, monkeypatch):
    launching(monkeypatch)
    with pytest.raises(GpuPlannersError, match="rviz2.*not installed"):
        started_by(file, context, rviz="true")


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("params_file", "/none.yaml", "params_file:=/none.yaml: there is no such file"),
        ("log_level", "loud", "log_level:=loud: allowed are debug"),
        ("footprint_radius", "wide", "footprint_radius:=wide: allowed is a number"),
    ],
)
def test_a_wrong_argument_is_named_and_nothing_is_started(context, name, value, words):
    with pytest.raises(GpuPlannersError, match=words):
        started_by(ROOT / "launch/grid_planner.launch.py", context, **{name: value})


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_launch_description_is_made(file, context, monkeypatch):
    launching(monkeypatch, "rviz2")
    with_view, without = {"demo.launch.py": (2, 2), "desk.launch.py": (1, 1)}.get(
        file.name, (2, 1)
    )  # an include is one
    assert len(started_by(file, context, rviz="true")) == with_view
    assert len(started_by(file, context, rviz="false")) == without


@pytest.mark.parametrize("asked, packages, nodes", [("auto", (), 1), ("auto", [RSP], 2), ("false", [RSP], 1)])
def test_robot_state_publisher_is_started_where_it_is_installed(context, monkeypatch, asked, packages, nodes):
    launching(monkeypatch, *packages)
    given = {"urdf": str(ROOT / "urdf" / "planar_arm.urdf"), "rviz": "false", RSP: asked}
    started = started_by(ROOT / "launch" / "arm_planner.launch.py", context, **given)
    assert len(started) == nodes
    assert len(started_by(ROOT / "launch" / "arm_planner.launch.py", context, **given | {"urdf": ""})) == 1


def test_robot_state_publisher_that_is_asked_for_and_missing_is_named(context, monkeypatch):
    launching(monkeypatch)
    given = {"urdf": str(ROOT / "urdf" / "planar_arm.urdf"), "rviz": "false", RSP: "true"}
    with pytest.raises(GpuPlannersError, match=f"{RSP}.*not installed"):
        started_by(ROOT / "launch" / "arm_planner.launch.py", context, **given)


@pytest.mark.parametrize(
    "name, given, expected",
    [
        ("grid_planner", {"map": "12", "footprint_radius": "1"}, {"map_file": "12", "footprint_radius": 1.0}),
        ("fleet_planner", {"map": "12", "step_s": "1"}, {"map_file": "12", "step_s": 1.0}),
        ("arm_planner", {"group": "1", "package_dir": "/a b"}, {"group": "1", "package_dirs": ("/a b",)}),
    ],
)
def test_arguments_keep_the_types_of_their_parameters(context, name, given, expected):
    from launch_ros.utilities import evaluate_parameters

    (node,) = started_by(
        ROOT / "launch" / f"{name}.launch.py", context, use_sim_time="true", namespace="fleet", **given
    )
    file, values = evaluate_parameters(context, node._Node__parameters)
    assert str(file) == str(ROOT / "config" / f"{name}.yaml")
    assert values == expected | {"use_sim_time": True}
    assert node._Node__node_namespace == "fleet"
