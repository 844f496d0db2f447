"""A bond with a lifecycle manager: it sees when the node dies, by bond_core's messages on the topic bond.

Each end says ten times a second that it lives; the bond is formed once an end has heard the other, and broken once one
says that it does not live, which the other repeats. As with Nav2's own nodes, a manager that falls silent breaks
nothing: it does not say that the node shall stop.
"""

import time
import uuid
from typing import Any

from rclpy.node import Node

from .ros import optional_module, steady_clock

PERIOD_S = 0.1  # between heartbeats, as of Nav2's nodes
TIMEOUT_S = 4.0  # told with each heartbeat; the manager goes by its own
CONNECT_S, DISCONNECT_S = (
    10.0,
    2.0,
)  # how long it looks for the other end; and waits for it to agree that the bond is broken
DEAD, WAITING, ALIVE, DYING = "dead", "waiting for the other end", "alive", "waiting for the other end's death"


class Bond:
    """One end of the bond that has the node's name. All is called on the executor's thread.

    missing: why there is none; empty where bond is installed;  state: DEAD before `form` and after the end
    """

    def __init__(self, node: Node) -> None:
        self.state = DEAD
        self._name, self._instance, self._since = node.get_name(), "", 0.0
        self._agrees = False  # that the bond is broken, as the other end said first
        bond, self.missing = optional_module("bond.msg", "bond: a lifecycle manager needs bond_timeout 0.0")
        if self.missing:
            return
        self._status = bond.Status
        self._publisher = node.create_publisher(bond.Status, "bond", 5)
        node.create_subscription(bond.Status, "bond", self._hear, 100)
        self._timer = node.create_timer(PERIOD_S, self._beat, clock=steady_clock())
        self._timer.cancel()

    def form(self) -> None:
        """Look for the other end."""
        if not self.missing and self.state not in (WAITING, ALIVE):
            self._instance, self._agrees = str(uuid.uuid4()), False
            self._turn(WAITING)
            self._timer.reset()
            self._tell(True)

    def end(self) -> None:
        """Break the bond."""
        if self.state in (WAITING, ALIVE):
            self._turn(DYING if self.state == ALIVE else DEAD)
            self._tell(False)

    def _turn(self, state):
        self.state, self._since = state, time.monotonic()
        if state == DEAD:
            self._timer.cancel()

    def _beat(self):
        patience = {WAITING: CONNECT_S, DYING: DISCONNECT_S}.get(self.state)
        if patience and time.monotonic() - self._since > patience:
            self._turn(DEAD)
        else:
            self._tell(self.state != DYING)

    def _hear(self, message: Any):
        if message.id != self._name or message.instance_id == self._instance:
            return
        if message.active:
            if self.state == WAITING:
                self._turn(ALIVE)
            return
        self._agrees |= self.state in (WAITING, ALIVE)
        self._turn(DEAD)
        if self._agrees:
            self._tell(False)  # also when it repeats that, since an answer was lost

    def _tell(self, active):
        message = self._status(id=self._name, instance_id=self._instance, active=active)
        message.heartbeat_timeout, message.heartbeat_period = TIMEOUT_S, PERIOD_S
        self._publisher.publish(message)
