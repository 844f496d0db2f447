"""Controllers as MoveIt's users keep them, moveit_controllers.yaml, whose content a launch file gives as parameters.

`moveit_simple_controller_manager` has the names of controllers, their actions and joints; `trajectory_execution` how
long a motion may take.
"""

from collections.abc import Collection
from typing import NamedTuple

from rclpy.node import Node
from rclpy.parameter import Parameter

from ...errors import SettingsError, shortened, shown
from ..common.parameters import as_tuple, given_below
from .controller import Controller
from .parameters import ArmParameters

MANAGER, EXECUTION = "moveit_simple_controller_manager", "trajectory_execution"
NAMES, MONITORING = "controller_names", "execution_duration_monitoring"
SERVED = "FollowJointTrajectory"  # the type that the node has a client of
SCALING, MARGIN = "allowed_execution_duration_scaling", "allowed_goal_duration_margin"  # of both, by the same names


class Given(NamedTuple):
    """A controller of the manager. joints: that it moves; kind: its type"""

    name: str
    action: str
    kind: str
    joints: frozenset[str]


class Controllers:
    """The controllers of a node, each with a client from the start on. On the executor's thread.

    The parameters controller_action (of the node's own group) and group_controllers count before the manager's, which
    counts for all other groups where it is given.
    """

    def __init__(self, node: Node, values: ArmParameters) -> None:
        self._given = _given(node)
        of_groups = values.controllers
        if self._given and values.controller_action == ArmParameters.rules["controller_action"].default:
            del of_groups[""]
        self._of_group = {group: Controller(node, action) for group, action in of_groups.items()}
        self._managed = {
            one.name: Controller(node, one.action, f"parameters {MANAGER}") for one in self._given if one.kind == SERVED
        }
        self._node = node

    def of(self, group: str, joints: Collection[str]) -> Controller:
        """The controller of a group ("" is the node's own), which has these planning joints; one with a `problem` where
        none moves them."""
        if group in self._of_group or not self._given:
            return self._of_group.get(group) or self._of_group[""]
        able = sorted((one for one in self._given if one.joints.issuperset(joints)), key=lambda one: len(one.joints))
        for one in able:
            if one.kind == SERVED:
                return self._managed[one.name]
        told = ", ".join(f"{one.name} ({one.kind})" for one in self._given)
        text = f"no {SERVED} controller of {MANAGER} moves all of {', '.join(joints)}; it has {shortened(told)}"
        return Controller(self._node, group, missing=text)


def take_execution(node: Node) -> None:
    """Have the parameters of how long a motion may take as `trajectory_execution` has them, where they are not given
    themselves. SettingsError for what they cannot be."""
    given = given_below(node, EXECUTION)
    wanted = {name: given[name] for name in (SCALING, MARGIN) if name in given}
    if given.get(MONITORING) is False:
        wanted[SCALING] = 0.0
    for name in wanted.keys() - node._parameter_overrides.keys():
        result = node.set_parameters([Parameter(name, value=wanted[name])])[0]
        if not result.successful:
            node.destroy_node()
            raise SettingsError(f"{EXECUTION}.{name}: {result.reason}")


def _given(node: Node) -> tuple[Given, ...]:
    """The manager's controllers; SettingsError, with which the node has ended, where one is not described."""
    given = given_below(node, MANAGER)
    names = given.get(NAMES, ())
    found = []
    for name in [names] if isinstance(names, str) else names:
        kind, joints, space = (as_tuple(given.get(f"{name}.{key}", "")) for key in ("type", "joints", "action_ns"))
        for key, value in (("type", kind), ("joints", joints)):
            if not value:
                node.destroy_node()
                raise SettingsError(f"parameters {MANAGER}: controller {shown(name)} of {NAMES} has no {key}")
        action = f"{name}/{space}" if space else name
        found.append(Given(name, action, kind, frozenset([joints] if isinstance(joints, str) else joints)))
    return tuple(found)
