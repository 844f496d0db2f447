"""Starts and goals that come by topics, and when they are due to be planned."""

from collections.abc import Callable
from functools import partial

from geometry_msgs.msg import PoseArray
from rclpy.node import Node

from ..common.diagnostics import Diagnostics
from ..common.request_error import error_text
from ..common.worker import Worker


class TopicAgents:
    """The latest messages on ~/starts and ~/goals. All but the subscriptions runs on the worker thread.

    plan: called with starts and goals when a plan is due; may raise
    state: told what is wrong with them
    """

    def __init__(
        self, node: Node, worker: Worker, state: Diagnostics, plan: Callable[[PoseArray, PoseArray], None]
    ) -> None:
        self._node, self._worker, self._state, self._plan = node, worker, state, plan
        self._messages = {"starts": None, "goals": None}
        self._goals_are_new = self._queued = False
        for name in self._messages:
            node.create_subscription(PoseArray, f"~/{name}", partial(worker.do, self._take, name), 10)

    def _take(self, name, message):
        self._messages[name] = message
        self._goals_are_new |= name == "goals"
        self.plan_again()

    def plan_again(self) -> None:
        """Plan after what is queued now, once for all of it; without the parameter `replan` only for new goals."""
        replan = self._node.get_parameter("replan").value
        if (replan or self._goals_are_new) and None not in self._messages.values() and not self._queued:
            self._queued = True
            self._worker.do(self._plan_now)

    def _plan_now(self):
        self._queued = False
        try:
            self._plan(**self._messages)
        except Exception as error:  # whatever it is, the next plan may succeed
            self._state.set_problem("topics", f"the starts and goals of the topics: {error_text(error)}")
            return
        self._goals_are_new = False
        self._state.set_problem("topics", "")
