"""Parameters of a node, made from one settings class, and refused with a text that names what is wrong.

A field that holds other settings, such as those of a planner, becomes the parameters `<field>.<field of the settings>`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.validate_topic_name import validate_topic_name

from ...device import resolve_devices
from ...errors import DeviceError, SettingsError, error_text, shown
from ...grid.maps.map_files import RULES, SINCE
from ...settings import Described, Setting, setting


def is_name(text: str) -> bool:
    try:
        return bool(validate_topic_name(text))
    except InvalidTopicNameException:
        return False


A_NAME = "a name of ROS: letters, digits, _ and /", is_name
RANGES = {int: ("integer_range", IntegerRange), float: ("floating_point_range", FloatingPointRange)}
DOUBLES = Parameter.Type.DOUBLE_ARRAY
NUMBERS = Parameter.Type.INTEGER, Parameter.Type.DOUBLE, Parameter.Type.INTEGER_ARRAY, DOUBLES
AS_GIVEN = ParameterDescriptor(description="As MoveIt has it, docs/moveit.md", read_only=True)
Kind = TypeVar("Kind", bound=Described)


@dataclass(frozen=True)
class NodeParameters(Described):
    """Base of a node's parameters."""

    device: str = setting(
        "auto",
        "Where to compute: auto, cpu, cuda or cuda:N, cuda:all, or several with commas between them; of several, each "
        "request that plans is answered on the first that is free",
    )
    max_waiting: int = setting(
        1000, "Most requests that wait; one more is answered at once, and not begun", 1, 1_000_000
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            resolve_devices(self.device)
        except DeviceError as error:
            raise SettingsError(f"parameter 'device': {error}") from error

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the devices, one or more; the CPU may be there several times."""
        return resolve_devices(self.device)

    @classmethod
    def label(cls, name: str) -> str:
        return f"parameter '{name}'"


def holding(settings: Mapping[str, Described]) -> Callable[[type[Kind]], type[Kind]]:
    """Class decorator, below `dataclass`: a field for each of these settings, by its name."""

    def add_fields(kind: type[Kind]) -> type[Kind]:
        for name, default in settings.items():
            kind.__annotations__[name] = type(default)
            setattr(kind, name, default)
        return kind

    return add_fields


def rules_of(kind: type[Described]) -> dict[str, Setting]:
    rules = dict(kind.rules)
    for name, held in settings_in(kind).items():
        rules |= {f"{name}.{field}": rule for field, rule in held.rules.items()}
    return rules


def settings_in(kind: type[Described]) -> dict[str, type[Described]]:
    held = {field.name: field.default for field in fields(kind)}  # type: ignore[arg-type]
    return {name: type(default) for name, default in held.items() if isinstance(default, Described)}


def given_below(node: Node, root: str) -> dict[str, Any]:
    """{name below `root.`: value} of what the node was given there, whose names nobody knows before; declared here, to
    be read only."""
    start, given = f"{root}.", {}
    for name, one in node._parameter_overrides.items():  # rclpy lists what was given nowhere else
        if name.startswith(start):
            given[name.removeprefix(start)] = one.value
            if not node.has_parameter(name):
                node.declare_parameter(name, one.value, AS_GIVEN, ignore_override=True)
    return given


def ros_default(rule: Setting) -> Any:
    """The default as ROS takes it: lists for tuples, and [""] for no texts, since an empty list has no type in ROS."""
    if not isinstance(rule.default, tuple):
        return rule.default
    return list(rule.default) or ([""] if rule.items is str else [])


def declare(node: Node, kind: type[Kind]) -> Kind:
    """Declare all parameters on a node -> their values; SettingsError when one that was given is wrong."""
    for name, rule in rules_of(kind).items():
        value, descriptor = _given(node, name, rule), _descriptor(rule)
        if value != []:
            node.declare_parameter(name, value, descriptor, ignore_override=True)
            continue
        node.declare_parameter(name, DOUBLES, ignore_override=True)
        node.set_parameters([Parameter(name, DOUBLES, [])])
        descriptor.type = DOUBLES.value
        node.set_descriptor(name, descriptor)  # at last, for then it may be read-only
    return read(kind, _values(node, kind))


def _given(node, name, rule):
    """The value that a parameter was given, or the default; SettingsError when it has another type."""
    given = node.declare_parameter(name, None, ParameterDescriptor(dynamic_typing=True)).value
    node.undeclare_parameter(name)
    default = ros_default(rule)
    if given is None:
        return default
    value = fitted(rule, given)
    wanted = DOUBLES if default == [] else Parameter.Type.from_parameter_value(default)
    if value != [] and Parameter.Type.from_parameter_value(value) != wanted:
        raise SettingsError(f"parameter '{name}' is {shown(value)}; allowed: {rule.allowed}")
    return value


def fitted(rule: Setting, value: Any) -> Any:
    """A parameter's value with its numbers as a rule has them: 1.0 of 1, and the text "253" of 253, which YAML makes a
    number."""

    def fit(kind, one):
        number = isinstance(one, int | float) and not isinstance(one, bool)
        return kind(one) if number and kind in (float, str) else one

    if not isinstance(rule.default, tuple):
        return fit(type(rule.default), value)
    return value if isinstance(value, str) or not isinstance(value, Iterable) else [fit(rule.items, x) for x in value]


def read(kind: type[Kind], given: dict[str, Any]) -> Kind:
    """The settings from parameter values {name: value}; SettingsError when one, or a combination of some, is wrong."""
    settings: dict[str, Any] = {name: as_tuple(given[name]) for name in kind.rules}
    for name, held in settings_in(kind).items():
        settings[name] = read(held, {field: given[f"{name}.{field}"] for field in held.rules})
    return kind(**settings)


def check_changes(node: Node, kind: type[Kind], accepted: Callable[[Kind], None]) -> None:
    """Refuse wrong changes of the node's parameters; before others, call `accepted` with all values as they will be."""

    def callback(changes: list[Parameter]) -> SetParametersResult:
        try:
            proposed = read(kind, _values(node, kind) | {change.name: change.value for change in changes})
        except Exception as error:  # whatever it is, the node must live on
            return SetParametersResult(successful=False, reason=error_text(error))
        accepted(proposed)
        return SetParametersResult(successful=True)

    def fit(change: Parameter) -> Parameter:
        value = fitted(rules[change.name], change.value) if change.name in rules and change.type_ in NUMBERS else []
        return change if value == [] else Parameter(change.name, value=value)

    rules = rules_of(kind)
    node.add_pre_set_parameters_callback(lambda changes: [fit(change) for change in changes])
    node.add_on_set_parameters_callback(callback)


def _values(node, kind):
    return {name: node.get_parameter(name).value for name in rules_of(kind)}


def as_tuple(value: Any) -> Any:
    """A list or an array.array as a tuple without empty texts; other values as they are."""
    return value if isinstance(value, str) or not isinstance(value, Iterable) else tuple(x for x in value if x != "")


def _descriptor(rule: Setting) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        description=f"{rule.text} ({rule.unit})" if rule.unit else rule.text, read_only=rule.read_only
    )
    descriptor.additional_constraints = f"one of {rule.range}" if rule.choices else rule.must[0] if rule.must else ""
    kind = type(rule.default)
    if kind in RANGES and rule.low is not None and rule.high is not None:
        name, range_of = RANGES[kind]
        setattr(descriptor, name, [range_of(from_value=kind(rule.low), to_value=kind(rule.high))])
    return descriptor


UNKNOWN = "free, blocked, or a cost from 1 to 255"


def unknown_cells(text: str) -> str | int | None:
    """The parameter `unknown` as GridMap.from_occupancy takes it; None when it is wrong."""
    if text in ("free", "blocked"):
        return text
    return int(text) if text.isdigit() and 1 <= int(text) <= 255 else None


@dataclass(frozen=True)
class MapParameters(NodeParameters):
    """Parameters of a map."""

    map_file: str = setting(
        "", "Map to begin with: a map_server .yaml or a MovingAI .map; empty: wait for the topic map", read_only=True
    )
    map_frame: str = setting("map", "Frame of map_file, and of maps that name none", read_only=True)
    map_durability: str = setting(
        "transient_local",
        "QoS durability of the subscription map; volatile for publishers that do not latch",
        choices=("transient_local", "volatile"),
        read_only=True,
    )
    map_rules: str = setting(
        SINCE,
        "What the pixels of map_file mean: as in map_server since Nav2 1.3.7 (Jazzy of May 2025, Kilted, Lyrical), or "
        "up to 1.3.6 (Humble, Iron, older Jazzy)",
        choices=RULES,
        read_only=True,
    )
    unknown: str = setting(
        "blocked",
        "What unknown cells of a map are",
        must=(UNKNOWN, lambda text: unknown_cells(text) is not None),
        read_only=True,
    )
    occupied_from: int = setting(65, "Occupancy values from here on are blocked", 1, 100, read_only=True)
    footprint_radius: float = setting(
        0.0, "Radius of the robots: cells nearer to an obstacle are blocked", 0.0, 1000.0, unit="metres"
    )

    @property
    def occupancy_rules(self) -> dict[str, Any]:
        """What GridMap.from_occupancy takes beside the values and their place."""
        return {"unknown": unknown_cells(self.unknown), "occupied_from": self.occupied_from}
