"""get_planner_params and set_planner_params: the node's parameters of its planners, as texts."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from moveit_msgs.msg import MotionPlanRequest, PlannerParams
from moveit_msgs.srv import GetPlannerParams, SetPlannerParams
from rclpy.node import Node
from rclpy.parameter import Parameter

from ...errors import SettingsError, shortened, shown
from ...settings import Setting
from ..arm import codes
from ..arm.parameters import ArmParameters
from ..common.parameters import fitted, ros_default, rules_of
from ..common.request_error import RequestError
from .requests import INDUSTRIAL, kind_of

LINES = "line"  # settings of LIN and CIRC
TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def params_message(request: GetPlannerParams.Request, values: ArmParameters, groups: Collection[str]) -> PlannerParams:
    """The settings of the planner that a request names; RequestError for one that plans nothing here.

    groups: of the SRDF, none where there is none
    """
    name = _settings_of(request, values, groups)
    rules, settings = _rules(name), getattr(values, name, None)
    return PlannerParams(
        keys=list(rules),
        values=[_text(getattr(settings, key)) for key in rules],
        descriptions=[rule.line for rule in rules.values()],
    )


def change(request: SetPlannerParams.Request, values: ArmParameters, groups: Collection[str], node: Node) -> None:
    """Change the node's parameters, all or none; SettingsError or RequestError names what is wrong.

    replace: settings that are not given become their defaults
    """
    name, given = _settings_of(request, values, groups), request.params
    rules = _rules(name)
    if len(given.keys) != len(given.values):
        raise SettingsError(f"there are {len(given.keys)} keys and {len(given.values)} values; allowed: as many")
    for key in given.keys:
        if key not in rules:
            raise SettingsError(f"planner {name} has no setting {shown(key)}; allowed: {', '.join(rules) or 'none'}")
    wanted = {key: ros_default(rule) for key, rule in rules.items()} if request.replace else {}
    wanted |= {key: _value(rules[key], key, text) for key, text in zip(given.keys, given.values, strict=True)}
    changes = [Parameter(f"{name}.{key}", *_typed(value)) for key, value in wanted.items()]
    result = node.set_parameters_atomically(changes)
    if not result.successful:
        raise SettingsError(result.reason)


def answered(what: str, node: Node, answer: Callable[[Any, Any], None]) -> Callable[[Any, Any], Any]:
    """The callback of a service whose response has no place for an error: that is logged, and nothing is changed."""

    def callback(request, response):
        try:
            answer(request, response)
        except Exception as error:  # whatever it is, the node must live on
            node.get_logger().warning(f"{what}: {error}")
        return response

    return callback


def _settings_of(request: Any, values: ArmParameters, groups: Collection[str]) -> str:
    """The field of the parameters that has the settings of a planner, for all groups; "PTP" has none."""
    if request.group and groups and request.group not in groups:
        text = f"group '{request.group}' is unknown; groups of the SRDF: {shortened(', '.join(groups))}"
        raise RequestError(codes.INVALID_GROUP_NAME, text)
    asked = MotionPlanRequest(pipeline_id=request.pipeline_id, planner_id=request.planner_config)
    kind = kind_of(asked, values)
    return LINES if kind in INDUSTRIAL and kind != "PTP" else kind


def _rules(name: str) -> dict[str, Setting]:
    return {
        key.removeprefix(f"{name}."): rule
        for key, rule in rules_of(ArmParameters).items()
        if key.startswith(f"{name}.") and not rule.read_only
    }


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _value(rule: Setting, key: str, text: str) -> Any:
    """A setting's value from its text; SettingsError names it."""
    try:
        if isinstance(rule.default, bool):
            return TRUTHS[text.strip().lower()]
        if isinstance(rule.default, tuple):
            parts: Iterable[str] = filter(None, (one.strip() for one in text.strip("[]() ").split(",")))
            return fitted(rule, [rule.items(one) for one in parts])
        return type(rule.default)(text)
    except (KeyError, ValueError):
        raise SettingsError(f"{key} is {shown(text)}; allowed: {rule.allowed}") from None


def _typed(value: Any) -> tuple[Parameter.Type | None, Any]:
    return (Parameter.Type.DOUBLE_ARRAY if value == [] else None), value
