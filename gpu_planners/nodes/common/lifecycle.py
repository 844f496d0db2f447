"""A managed node: ROS 2's states and transitions, by rclpy.lifecycle.

Two things of rclpy.lifecycle do not suffice. A transition that the present state does not have raises in the service's
callback, which ends the process: here it is refused. A callback that raises sends the node to error processing, and so
to "unconfigured": here the transition fails, and the state stays.
"""

import functools
from collections.abc import Callable
from typing import Any

from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNodeMixin, LifecycleState, TransitionCallbackReturn

from ...errors import error_text
from .bond import Bond
from .request_error import NotBegunError


def transition(callback: Callable[[Any], None]) -> Callable[[Any, LifecycleState], TransitionCallbackReturn]:
    """Decorator of `on_configure` and the like, which must not wait: what they raise fails the transition."""

    @functools.wraps(callback)
    def make(node, _):
        try:
            callback(node)
        except Exception as error:  # the state before stays, and the node goes on
            node.get_logger().error(f"{callback.__name__}: {error_text(error)}")
            return TransitionCallbackReturn.FAILURE
        return TransitionCallbackReturn.SUCCESS

    return make


class ManagedNode(LifecycleNodeMixin):
    """Mixin, behind its base class, of a node that may be managed; its `on_configure` and the like are `transition`s.

    A node that nobody manages is active from the start, and offers none of the services.
    """

    _managed = False

    def manage(self: Any) -> None:
        """Be unconfigured; offer ~/change_state and the other services of managed nodes, and a bond while active."""
        LifecycleNodeMixin.__init__(self)
        self._managed, change, bond = True, self._service_change_state.callback, Bond(self)
        if bond.missing:
            self.get_logger().info(bond.missing)

        def answer(request, response):
            try:
                response = change(request, response)
                (bond.form if self.lifecycle_state == "active" else bond.end)()
                return response
            except rclpy_implementation.RCLError as error:
                self.get_logger().warning(f"transition from the state {self.lifecycle_state}: {error}")
                response.success = False
                return response

        self._service_change_state.callback = answer
        self.get_logger().info("unconfigured: waiting for a lifecycle manager, or ros2 lifecycle set")

    @property
    def lifecycle_state(self) -> str:
        """The state, such as "active", or the transition under way, such as "activating"."""
        return self._state_machine.current_state[1] if self._managed else "active"

    def gated(self: Any, answer: Callable[..., Any]) -> Callable[..., Any]:
        """A function that raises NotBegunError while the node is not active, and otherwise does what `answer` does."""

        def gated(*arguments):
            if (state := self.lifecycle_state) != "active":
                name = self.get_fully_qualified_name()
                raise NotBegunError(f"{name} is {state}; allowed: requests while it is active (ros2 lifecycle set)")
            return answer(*arguments)

        return gated
