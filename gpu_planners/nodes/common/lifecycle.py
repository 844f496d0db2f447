"""A managed node: the states and transitions of ROS 2's managed nodes, and the services that change and tell them.

rclpy.lifecycle has the same; there a transition that the present state does not have raises in the callback, which ends
the process. Here it is answered.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lifecycle_msgs.msg import State, Transition, TransitionDescription, TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetAvailableStates, GetAvailableTransitions, GetState
from rclpy.node import Node

from .qos import DEEP
from .request_error import NotBegunError, error_text

STATES = {
    State.PRIMARY_STATE_UNKNOWN: "unknown",
    State.PRIMARY_STATE_UNCONFIGURED: "unconfigured",
    State.PRIMARY_STATE_INACTIVE: "inactive",
    State.PRIMARY_STATE_ACTIVE: "active",
    State.PRIMARY_STATE_FINALIZED: "finalized",
    State.TRANSITION_STATE_CONFIGURING: "configuring",
    State.TRANSITION_STATE_CLEANINGUP: "cleaningup",
    State.TRANSITION_STATE_SHUTTINGDOWN: "shuttingdown",
    State.TRANSITION_STATE_ACTIVATING: "activating",
    State.TRANSITION_STATE_DEACTIVATING: "deactivating",
    State.TRANSITION_STATE_ERRORPROCESSING: "errorprocessing",
}
NUMBERS = {label: number for number, label in STATES.items()}


@dataclass(frozen=True)
class Step:
    """A transition: its number and label, the state it leads from, the state it leads to."""

    number: int
    label: str
    start: str
    goal: str


def _graph():
    """Every Step, in the order in which rcl_lifecycle lists them."""
    ways = (
        ("configure", "configuring", 10, "inactive", "unconfigured", {"unconfigured": 1}),
        ("cleanup", "cleaningup", 20, "unconfigured", "inactive", {"inactive": 2}),
        ("activate", "activating", 30, "active", "inactive", {"inactive": 3}),
        ("deactivate", "deactivating", 40, "inactive", "active", {"active": 4}),
        ("shutdown", "shuttingdown", 50, "finalized", "finalized", {"unconfigured": 5, "inactive": 6, "active": 7}),
    )
    for label, during, first, done, failed, starts in ways:
        yield from (Step(number, label, start, during) for start, number in starts.items())
        yield Step(first, "transition_success", during, done)
        yield Step(first + 1, "transition_failure", during, failed)
        yield Step(first + 2, "transition_error", during, "errorprocessing")
    for number, label, goal in (
        (60, "success", "unconfigured"),
        (61, "failure", "finalized"),
        (62, "error", "finalized"),
    ):
        yield Step(number, f"transition_{label}", "errorprocessing", goal)


GRAPH = tuple(_graph())


def steps_from(state: str) -> list[Step]:
    """The transitions that a state has."""
    return [step for step in GRAPH if step.start == state]


def step_named(state: str, label: str, number: int) -> Step | None:
    """The transition of a state by its label, or where that is empty by its number; None when there is none."""
    return next((s for s in steps_from(state) if (s.label == label if label else s.number == number)), None)


class Lifecycle:
    """The state of a node. One that nobody manages is active from the start, and offers none of the services.

    managed: offer ~/change_state, ~/get_state, ~/get_available_states, ~/get_available_transitions,
        ~/get_transition_graph and the topic ~/transition_event, and begin unconfigured
    callbacks: {label of a transition: called, without waiting, with the state that it leads from}; what is raised
        fails the transition
    """

    def __init__(self, node: Node, managed: bool, callbacks: Mapping[str, Callable[[str], Any]]) -> None:
        self._node, self._callbacks = node, callbacks
        self.state = "unconfigured" if managed else "active"
        if not managed:
            return
        self._events = node.create_publisher(TransitionEvent, "~/transition_event", 10)
        for kind, name, answer in (
            (ChangeState, "change_state", self._change),
            (GetState, "get_state", self._tell_state),
            (GetAvailableStates, "get_available_states", self._tell_states),
            (GetAvailableTransitions, "get_available_transitions", self._tell_steps),
            (GetAvailableTransitions, "get_transition_graph", self._tell_graph),
        ):
            node.create_service(kind, f"~/{name}", answer, qos_profile=DEEP)
        node.get_logger().info("unconfigured: waiting for a lifecycle manager, or ros2 lifecycle set")

    @property
    def active(self) -> bool:
        """Does the node answer requests?"""
        return self.state == "active"

    def gated(self, answer: Callable[..., Any]) -> Callable[..., Any]:
        """A function that raises NotBegunError while the node is not active, and otherwise does what `answer` does."""

        def gated(*arguments):
            if not self.active:
                name = self._node.get_fully_qualified_name()
                raise NotBegunError(
                    f"{name} is {self.state}; allowed: requests while it is active (ros2 lifecycle set)"
                )
            return answer(*arguments)

        return gated

    def change(self, label: str, number: int = 0) -> bool:
        """Make a transition by its label, or where that is empty by its number -> whether it succeeded."""
        step = step_named(self.state, label, number)
        if step is None:
            known = ", ".join(f"{step.label} ({step.number})" for step in steps_from(self.state)) or "none"
            self._node.get_logger().warning(
                f"transition {label or number} from the state {self.state}; allowed: {known}"
            )
            return False
        before, result = self.state, "transition_success"
        self._take(step)
        try:
            self._callbacks.get(step.label, lambda state: None)(before)
        except Exception as error:  # the state before stays, and the node goes on
            self._node.get_logger().error(f"{step.label}: {error_text(error)}")
            result = "transition_failure"
        self._take(next(s for s in steps_from(self.state) if s.label == result))
        self._node.get_logger().info(f"{step.label}: {self.state}")
        return result == "transition_success"

    def _take(self, step):
        self.state = step.goal
        event = TransitionEvent(
            timestamp=time.time_ns(),
            transition=Transition(id=step.number, label=step.label),
            start_state=state_message(step.start),
            goal_state=state_message(step.goal),
        )
        self._events.publish(event)

    def _change(self, request, response):
        response.success = self.change(request.transition.label, request.transition.id)
        return response

    def _tell_state(self, _, response):
        response.current_state = state_message(self.state)
        return response

    def _tell_states(self, _, response):
        response.available_states = [state_message(label) for label in NUMBERS]
        return response

    def _tell_steps(self, _, response):
        response.available_transitions = [step_message(step) for step in steps_from(self.state)]
        return response

    def _tell_graph(self, _, response):
        response.available_transitions = [step_message(step) for step in GRAPH]
        return response


def state_message(label: str) -> State:
    """A state as a message."""
    return State(id=NUMBERS[label], label=label)


def step_message(step: Step) -> TransitionDescription:
    """A transition as a message."""
    return TransitionDescription(
        transition=Transition(id=step.number, label=step.label),
        start_state=state_message(step.start),
        goal_state=state_message(step.goal),
    )
