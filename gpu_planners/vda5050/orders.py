"""Orders: what the fleet allows a vehicle is the base, what is planned beyond that the horizon.

Which part of its base a vehicle still has, and where its decision point is, each of its states says. So an update goes
on from the vehicle's own decision point, however many messages were lost, whoever sent them, and whether fleet control
has started anew meanwhile.
"""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .errands import Errand
from .layout import Layout, Tile
from .messages import VehicleState
from .versions import Version

FARTHER = 0.05  # tiles that the first node's deviation exceeds a vehicle's distance by
KEPT = 8  # decision points
MISMATCH = "mismatch"  # a vehicle has a base that leads where it may not go
TOO_LONG = "too long"  # an order of all its nodes would end where nobody may stop


class Way(NamedTuple):
    """Tiles: path from where a vehicle is to where it may go; planned beyond."""

    path: list[Tile]
    planned: list[Tile]


def way_of(tiles: np.ndarray, planned: np.ndarray) -> Way:
    """States of an action graph without its turns: a vehicle turns by itself before it enters an edge."""
    path: list[Tile] = []
    for tile in map(tuple, tiles.tolist()):
        if not path or path[-1] != tile:
            path.append(tile)
    more: list[Tile] = []
    for tile in map(tuple, planned.tolist()):
        if tile != (more or path)[-1]:
            more.append(tile)
    return Way(path, more)


@dataclass
class Order:
    """order, update: its ids; body: what the message holds beside its header; at: when it was sent"""

    order: str
    update: int
    body: dict[str, Any]
    at: float = -math.inf


@dataclass
class Composer:
    """Makes the orders of one vehicle. tolerance: metres that it may be off a node; most: nodes of an order

    size: side of the square of tiles that the vehicle covers
    """

    version: Version
    layout: Layout
    tolerance: float
    most: int
    size: int = 1
    _ends: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)  # last nodes of what was sent lately

    def next(
        self, state: VehicleState, way: Way, errand: Errand | None, fresh: str, last_update: int
    ) -> Order | str | None:
        """The order that a vehicle needs now; None: none; MISMATCH: it has a base that it must not have; TOO_LONG: the
        way through the no-stopping zone ahead has more nodes than an order of it may have.

        fresh: the id of a new order; last_update: of the latest one that was sent for the present order, or -1
        """
        layout, names = self.layout, [self.layout.name(tile) for tile in way.path]
        actions = []  # to be done at the errand's goal, and in no order yet
        if errand is not None and not any(one["actionId"] in state.actions for one in errand.actions):
            actions = errand.actions
        if state.idle:
            if self._off(state, way.path[0]) > layout.grid.resolution:
                return None  # the fleet finds out first where it is
            here = actions and way.path[0] == errand.goal if errand else False
            released = self._released(way.path)
            if len(way.path) > 1 and len(released) == 1 and not here:
                return TOO_LONG
            if len(way.path) > 1 or here:
                return self._order(state, fresh, 0, 0, released, way.planned, errand, actions, first=True)
            return None
        if not state.base and not state.horizon:
            return None  # it only has actions to do yet, or an order is on its way to it
        base = [name for name, _ in state.base]
        end, number = state.base[-1] if base else state.last
        if end not in names:
            return MISMATCH
        at = names.index(end)
        both = min(len(base), at + 1)
        if base and names[at + 1 - both : at + 1] != base[len(base) - both :]:
            return MISMATCH
        more, horizon = way.path[at + 1 :], [layout.tile(name) for name, _ in state.horizon]
        if not more and way.planned[: len(horizon)] == horizon:
            return None
        update = max(state.update, last_update) + 1
        released = self._released([way.path[at], *more])
        if more and len(released) == 1:
            return TOO_LONG
        return self._order(state, state.order, update, number, released, way.planned, errand, actions, first=False)

    def _released(self, path):
        """The first tiles of a path, as many as an order has nodes, but none after the last one where it may stop."""
        kept = path[: self.most]
        while 1 < len(kept) < len(path) and not self._may_stop(kept[-1]):
            kept.pop()
        return kept

    def _may_stop(self, tile):
        low, closed = (self.size - 1) // 2, self.layout.no_stopping
        square = range(-low, self.size - low)
        return not closed or not any((tile[0] + down, tile[1] + right) in closed for down in square for right in square)

    def _order(self, state, order, update, number, released, planned, errand, actions, first):
        planned = planned[: self.most - len(released)]
        tiles = [*released, *planned]
        nodes, edges = [], []
        for k, tile in enumerate(tiles):
            node = self._node(tile, number + 2 * k, k < len(released))
            if errand is not None and tile == errand.goal and (k or first) and k < len(released):
                node["actions"] = [dict(one) for one in actions]
                if errand.theta is not None:
                    node["nodePosition"]["theta"] = errand.theta
            if k:
                edges.append(self._edge(tiles[k - 1], tile, number + 2 * k - 1, k < len(released)))
            nodes.append(node)
        if not first:  # the contents of a decision point do not change
            nodes[0] = self._ends.get((order, number), nodes[0])
        elif (off := self._off(state, tiles[0])) > self.tolerance:
            self._deviate(nodes[0], off + FARTHER * self.layout.grid.resolution)
        last = nodes[len(released) - 1]
        self._ends = dict([*self._ends.items(), ((order, last["sequenceId"]), last)][-KEPT:])
        return Order(order, update, {"orderId": order, "orderUpdateId": update, "nodes": nodes, "edges": edges})

    def _off(self, state, tile):
        """Metres from a vehicle to a tile's centre; 0 where it does not tell"""
        x, y = self.layout.point(tile)
        return math.hypot(state.pose[0] - x, state.pose[1] - y) if state.pose else 0.0

    def _node(self, tile, number, released):
        x, y = self.layout.point(tile)
        node = {
            "nodeId": self.layout.name(tile),
            "sequenceId": number,
            "released": released,
            "nodePosition": {"x": round(x, 6), "y": round(y, 6), "mapId": self.layout.map_id},
            "actions": [],
        }
        self._deviate(node, self.tolerance)
        return node

    def _deviate(self, node, metres):
        round_ = {"a": metres, "b": metres, "theta": 0.0}
        node["nodePosition"]["allowedDeviationXY"] = metres if self.version.major == 2 else round_

    def _edge(self, one, other, number, released):
        start, end, speed = self.layout.name(one), self.layout.name(other), self.layout.speed(one, other)
        edge = {"edgeId": f"{start}:{end}", "sequenceId": number, "released": released, "actions": []}
        if self.version.major == 2:
            edge |= {"startNodeId": start, "endNodeId": end}
        if speed is not None:
            edge[self.version.word("edge speed")] = speed
        return edge
