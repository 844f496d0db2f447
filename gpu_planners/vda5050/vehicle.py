"""A vehicle as fleet control knows it: what it said last, what it was sent and has not shown yet."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .errands import Errand
from .messages import ENDED, Factsheet, VehicleState
from .orders import Composer, Order
from .versions import Version

DRIVEN = ("AUTOMATIC", "SEMIAUTOMATIC")  # modes in which fleet control drives
KEEPS_ORDER = (*DRIVEN, "INTERVENED")  # modes in which a vehicle keeps its order
MOST_WAITS = 5  # times `answer_s` between two orders that are refused

REFUSALS = {  # errors by which orders are refused, of 2.1 and 3.0, without underscores
    "validationerror",
    "ordererror",
    "orderupdateerror",
    "noroutetotarget",
    "noroute",
    "validationfailure",
    "unsupportedparameter",
    "invalidorderaction",
    "outdatedorderupdate",
    "sameorderupdateid",
    "orderupdatefollowingcancel",
    "otherorderactive",
    "startnodeoutofrange",
    "mobilerobotnotavailable",
    "unknownmapid",
    "insufficientmemory",
}


@dataclass
class Asked:
    """An instant action that no state shows yet."""

    body: dict[str, Any]
    at: float


@dataclass
class Vehicle:
    """id: manufacturer/serialNumber; level: its topics without their last level

    pending: the order that no state shows yet; sent: (orderId, orderUpdateId) of the latest order
    asked: {actionId: Asked}; cancelling: its order is being cancelled, and it gets no other until it is idle
    refusals: how many orders in a row it has refused, the last one at refused_at; faults: {what: text}
    """

    id: str
    version: Version
    level: str
    composer: Composer
    connection: str = ""
    state: VehicleState | None = None
    heard: float = -math.inf
    factsheet: Factsheet | None = None
    pending: Order | None = None
    sent: tuple[str, int] = ("", -1)
    asked: dict[str, Asked] = field(default_factory=dict)
    cancelling: bool = False
    refusals: int = 0
    refused_at: float = -math.inf
    faults: dict[str, str] = field(default_factory=dict)
    headers: dict[str, int] = field(default_factory=dict)  # by topic, the next headerId
    answered: dict[str, str] = field(default_factory=dict)  # {requestId: what was answered}
    zones_sent: str = ""  # zoneSetId
    zones_failed: int = 0  # times that it was sent one and did not enable it
    bound: str = ""  # the first of the errand's actions that it was sent
    plug_asked: float = -math.inf  # when it was asked to begin or end charging

    @property
    def reachable(self) -> bool:
        return self.connection in ("", "ONLINE")

    def is_newer(self, state: VehicleState, now: float, after: float) -> bool:
        """Is a state newer than the latest one? A clock that was set back counts after so many seconds."""
        return self.state is None or state.stamp > self.state.stamp or now - self.heard > after

    def hear(self, state: VehicleState, now: float) -> None:
        self.state, self.heard = state, now
        pending = self.pending
        if pending and state.order == pending.order and state.update >= pending.update:
            self.pending, self.refusals = None, 0
            self.faults.pop("order", None)
        elif pending and (error := _refusal(state, pending)):
            self.faults["order"] = f"refuses order {pending.order} update {pending.update}: {error}"
            self.pending, self.refused_at, self.refusals = None, now, self.refusals + 1
        for id in [id for id in self.asked if id in state.actions]:
            status, text = state.actions[id]
            if status in ENDED:
                asked = self.asked.pop(id)
                if status == "FAILED":
                    self._fail(asked.body["actionType"], text)

    def _fail(self, action, text):
        """An instant action failed: a zone set may have been lost, and is sent again some times."""
        if action == "enableZoneSet":
            self.zones_failed += 1
            self.zones_sent = self.zones_sent if self.zones_failed >= MOST_WAITS else ""
        if action not in ("enableZoneSet", "cancelOrder") or self.zones_failed >= MOST_WAITS:
            self.faults["instant action"] = f"does not do {action}{': ' + text if text else ''}"

    def due(self, now: float, answer_s: float) -> bool:
        """May an order be sent: is none on its way, or none that a state should show by now?"""
        if self.pending is not None:
            return now - self.pending.at > answer_s
        return not self.refusals or now - self.refused_at > answer_s * min(self.refusals - 1, MOST_WAITS)

    def acts(self, errand: Errand | None) -> bool:
        """Does it do actions that do not let it drive?"""
        if errand is None or self.state is None:
            return False
        states = {one["actionId"]: self.state.actions.get(one["actionId"], ("", ""))[0] for one in errand.actions}
        running = ("INITIALIZING", "RUNNING", "PAUSED", "RETRIABLE")
        return any(
            states[one["actionId"]] in running and one["blockingType"] in ("SOFT", "HARD") for one in errand.actions
        )

    def is_bound(self, errand: Errand) -> bool:
        """Has it, or may it have, the actions of an errand's stop in its order?"""
        ids = [one["actionId"] for one in errand.actions]
        return bool(ids) and (
            self.bound == ids[0] or (self.state is not None and any(i in self.state.actions for i in ids))
        )

    def unfit(self, needs: Sequence[Sequence[tuple[str, str]]]) -> str:
        """Why it cannot do the actions (actionType, blockingType) of some stops, by its factsheet; "" where it can."""
        sheet = self.factsheet
        if sheet is None:
            return ""
        for kind, blocking in (one for stop in needs for one in stop):
            types = sheet.actions.get((kind, "NODE"))
            if types is None:
                return f"its factsheet has no action {kind!r} on nodes"
            if blocking not in types:
                return f"it does {kind!r} with blockingType {', '.join(types)}, not {blocking}"
        most = max(map(len, needs), default=0)
        if sheet.most_actions and most > sheet.most_actions:
            return f"it takes {sheet.most_actions} actions on a node, not {most}"
        return ""

    def told(self, does: str) -> dict[str, Any]:
        """What the fleet's status says of it. does: id of its errand or stay"""
        state = self.state
        return {
            "version": self.version.number,
            "connection": self.connection,
            "mode": state.mode if state else "",
            "node": state.last[0] if state else "",
            "position": [round(value, 3) for value in state.pose] if state and state.pose else None,
            "charge": state.charge if state else None,
            "charging": bool(state and state.charging),
            "paused": bool(state and state.paused),
            "errand": does,
            "errors": [str(error) for error in state.errors] if state else [],
            "faults": [*self.faults.values()],
        }


def _refusal(state, order):
    """The error by which a vehicle refuses an order; None where there is none"""
    for error in state.errors:
        told = error.references
        same = told.get("orderId") == order.order and told.get("orderUpdateId", str(order.update)) == str(order.update)
        if same and error.kind.replace("_", "").lower() in REFUSALS:
            return error
    return None
