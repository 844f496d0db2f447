"""Parameters of a node: declared once, described, with ranges, checked before they are taken.

The settings of planners are parameters too: `<prefix>.<field>` for each field of a Settings dataclass, with its default.
A wrong value is refused with a text that names it, when the node starts and when it runs.
"""

from dataclasses import dataclass, field, fields

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.parameter import Parameter as RclParameter

from ..errors import SettingsError

DOUBLES = RclParameter.Type.DOUBLE_ARRAY


@dataclass(frozen=True)
class Parameter:
    """One parameter of a node.

    low, high: inclusive range of a number; choices: the values that a string or whole number may have
    read_only: taken at start only
    """

    name: str
    default: object
    description: str
    low: float | None = None
    high: float | None = None
    choices: tuple = ()
    read_only: bool = False


@dataclass(frozen=True)
class ParameterSet:
    """All parameters of a node.

    settings_kinds: {prefix: Settings dataclass}, which validates itself
    setting_texts: {"<prefix>.<field>": (description, low, high)} for `ros2 param describe`
    further_check: called with {name: value} of all; raises SettingsError
    """

    parameters: tuple[Parameter, ...]
    settings_kinds: dict = field(default_factory=dict)
    setting_texts: dict = field(default_factory=dict)
    further_check: object = None

    def declare(self, node):
        """Declare all parameters on an rclpy node; SettingsError when a given value is wrong."""
        for parameter in self.parameters:
            node.declare_parameter(parameter.name, parameter.default, _descriptor(parameter))
        for name, default in self.setting_defaults().items():
            descriptor = _descriptor(Parameter(name, default, *self.setting_texts[name]))
            if default != []:
                node.declare_parameter(name, default, descriptor)
            elif node.declare_parameter(name, DOUBLES, descriptor).type_ != DOUBLES:  # an empty list has no type in ROS
                node.set_parameters([RclParameter(name, DOUBLES, [])])
        self.check(self.values(node))

    def values(self, node):
        """{name: value} of every parameter."""
        names = (*(p.name for p in self.parameters), *self.setting_defaults())
        return {name: node.get_parameter(name).value for name in names}

    def setting_defaults(self):
        """{"<prefix>.<field>": default} of every field of every Settings, a tuple as the list that ROS has for it."""
        return {
            f"{prefix}.{setting.name}": list(setting.default) if isinstance(setting.default, tuple) else setting.default
            for prefix, kind in self.settings_kinds.items()
            for setting in fields(kind)
        }

    def settings(self, values, prefix):
        """The frozen Settings of a prefix from parameter values; they validate themselves."""
        kind = self.settings_kinds[prefix]
        given = {setting.name: values[f"{prefix}.{setting.name}"] for setting in fields(kind)}
        return kind(
            **{name: value if isinstance(value, bool | int | float | str) else tuple(value) for name, value in given.items()}
        )

    def check(self, values):
        """SettingsError when a value, or a combination of values, is impossible."""
        for parameter in self.parameters:
            if parameter.choices and values[parameter.name] not in parameter.choices:
                allowed = ", ".join(map(str, parameter.choices))
                raise SettingsError(f"parameter '{parameter.name}' is '{values[parameter.name]}'; allowed: {allowed}")
        for prefix in self.settings_kinds:
            self.settings(values, prefix)
        if self.further_check is not None:
            self.further_check(values)

    def checker_of_changes(self, node, accepted):
        """Callback for add_on_set_parameters_callback: refuse what `check` refuses, else hand on the new values.

        accepted: called with {name: value} of all parameters as they will be
        """

        def callback(changes: list[RclParameter]):
            proposed = self.values(node) | {change.name: change.value for change in changes}
            try:
                self.check(proposed)
            except (SettingsError, TypeError) as error:
                return SetParametersResult(successful=False, reason=str(error))
            accepted(proposed)
            return SetParametersResult(successful=True)

        return callback


def strings(value):
    """A string array parameter without its empty strings (ROS has no typed empty array default)."""
    return tuple(text for text in value if text)


def _descriptor(parameter):
    descriptor = ParameterDescriptor(description=parameter.description, read_only=parameter.read_only)
    if parameter.choices:
        descriptor.additional_constraints = f"one of {', '.join(map(str, parameter.choices))}"
    if parameter.low is not None:
        if isinstance(parameter.default, int):
            descriptor.integer_range = [IntegerRange(from_value=int(parameter.low), to_value=int(parameter.high))]
        else:
            descriptor.floating_point_range = [
                FloatingPointRange(from_value=float(parameter.low), to_value=float(parameter.high))
            ]
    return descriptor
