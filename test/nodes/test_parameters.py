"""Whole numbers where a parameter is a double or a text, as a command line has them: `margin:=1`, `unknown:=253`."""

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

import rclpy
from rclpy.node import Node
from rclpy.parameter import Parameter
from running_node import new_context

from gpu_planners.errors import SettingsError
from gpu_planners.nodes.arm.parameters import ArmParameters
from gpu_planners.nodes.common.parameters import check_changes, declare, rules_of
from gpu_planners.nodes.fleet.parameters import FleetParameters
from gpu_planners.nodes.grid.parameters import GridParameters
from gpu_planners.nodes.player.parameters import PlayerParameters

KINDS = (ArmParameters, FleetParameters, GridParameters, PlayerParameters)


@pytest.fixture(scope="module")
def context():
    one = new_context()
    yield one
    rclpy.shutdown(context=one)


@pytest.fixture
def make_node(context):
    """Makes a node with parameters given as on a command line."""
    nodes = []

    def make(given):
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        nodes.append(Node("parameters", context=context, parameter_overrides=overrides, start_parameter_services=False))
        return nodes[-1]

    yield make
    for node in nodes:
        node.destroy_node()


def whole_numbers(kind):
    """{name of a parameter with real numbers: a whole one of its range, where there is one}"""
    found = {}
    for name, rule in rules_of(kind).items():
        if isinstance(rule.default, float):
            default = rule.default if math.isfinite(rule.default) else 1.0
            low, high = (default - 9, default + 9) if rule.low is None else (rule.low, min(rule.high, 1e9))
            if math.ceil(low) <= math.floor(high):
                found[name] = int(np.clip(math.ceil(default), math.ceil(low), math.floor(high)))
        elif isinstance(rule.default, tuple) and rule.items is float:
            found[name] = [math.ceil(value) for value in rule.default] or [1]
    return found


def value_of(values, name):
    for part in name.split("."):
        values = getattr(values, part)
    return values


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_number_is_a_real_one(make_node, kind):
    numbers = whole_numbers(kind)
    assert len(numbers) >= 2
    for name, number in numbers.items():
        try:
            values = declare(node := make_node({name: number}), kind)
        except SettingsError as error:  # of another condition than its type: a length, another parameter
            assert "expecting type" not in str(error)
            assert "an integer" not in str(error) and isinstance(number, list), (name, error)
            continue
        got = value_of(values, name)
        assert got == (tuple(number) if isinstance(number, list) else number)
        assert {type(one) for one in (got if isinstance(got, tuple) else (got,))} == {float}
        kinds = Parameter.Type.DOUBLE, Parameter.Type.DOUBLE_ARRAY
        assert node.get_parameter(name).type_ in kinds and node.describe_parameter(name).type in [
            k.value for k in kinds
        ]


def test_a_number_is_a_text(make_node):
    assert declare(make_node({"unknown": 253}), GridParameters).unknown == "253"
    assert declare(make_node({"planner_ids": [1, 2]}), GridParameters).planner_ids == ("1", "2")
    for kind in KINDS:
        texts = [
            name
            for name, rule in rules_of(kind).items()
            if isinstance(rule.default, str) and not rule.choices and not rule.must
        ]
        for name in texts:
            try:
                assert value_of(declare(make_node({name: 7}), kind), name) == "7"
            except SettingsError as error:  # no device, no group, no file of that name
                assert "7" in str(error)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("unknown", 0, "parameter 'unknown' is '0'; allowed: free, blocked"),
        ("unknown", 253.5, "parameter 'unknown' is '253.5'"),
        ("unknown", True, "parameter 'unknown' is True; allowed: a text"),
        (
            "footprint_radius",
            "wide",
            "parameter 'footprint_radius' is 'wide'; allowed: a number from 0.0 to 1000.0 metres",
        ),
        ("footprint_radius", False, "parameter 'footprint_radius' is False"),
        ("max_agents", 2.5, "parameter 'max_agents' is 2.5; allowed: an integer"),
        ("lifecycle", 1, "parameter 'lifecycle' is 1; allowed: true or false"),
        ("robots", "red", "parameter 'robots' is 'red'; allowed: a list of texts"),
        ("footprint_radius", [1.0], r"parameter 'footprint_radius' is \[1.0\]"),
    ],
)
def test_another_type_is_named(make_node, name, value, words):
    with pytest.raises(SettingsError, match=words):
        declare(make_node({name: value}), GridParameters)


def test_changes_are_taken_so_too(make_node):
    node, seen = make_node({}), []
    declare(node, GridParameters)
    check_changes(node, GridParameters, seen.append)
    for name, value in (("inflation_radius", 2), ("inflation_radius", 0), ("robot_frame", 7), ("planner_ids", [1, 2])):
        assert node.set_parameters([Parameter(name, value=value)])[0].successful
        assert getattr(seen[-1], name) == {"robot_frame": "7", "planner_ids": ("1", "2")}.get(name, value)
    assert node.get_parameter("inflation_radius").type_ == Parameter.Type.DOUBLE
    for name, value in (("inflation_radius", "2"), ("max_agents", 1.5), ("inflation_radius", -1)):
        assert not node.set_parameters([Parameter(name, value=value)])[0].successful
    assert node.set_parameters([Parameter("use_sim_time", value=True)])[0].successful
