"""A one-shot query as the planners take it: agents on a map, checked, with a status for each."""

from typing import NamedTuple

import numpy as np

from .plan import FleetStatus
from .ways import NO_PATH, ground_of, plan_ways


class Model(NamedTuple):
    """turning: do turns take a step each? following: may an agent enter what another one leaves in the same step?"""

    turning: bool
    following: bool


class Instance:
    """Agents on a map, checked.

    status: (N,) uint8 FleetStatus; start, goal: (N,) int32 tiles, -1 where there is none
    ground: Ground; number: (rows, cols) int32 tile or -1; place: (T, 2) int32 [row, col]
    nearer, alone: of ways.plan_ways, for agents with goals; field: (N,) int32 rows of nearer or -1
    """

    def __init__(self, free: np.ndarray, places: np.ndarray, ends: np.ndarray, near: int = 0, shared: bool = False):
        """free: (rows, cols) bool; places, ends: (N, 2) float64 starts and goals; near: so far apart two agents are too
        near; shared: may agents have the same goal?"""
        self.ground, self.number, self.place = ground_of(free)
        self.status = np.zeros(len(places), np.uint8)
        self.start = self._tiles(places, "START", np.ones(len(places), bool))
        self._first_only(self.start, FleetStatus.SAME_START, near)
        self.goal = self._tiles(ends, "GOAL", self.start >= 0)
        lost = (self.goal >= 0) & (self.ground.part[self.start] != self.ground.part[self.goal])
        self.status[lost], self.goal[lost] = FleetStatus.NO_PATH, -1
        if not shared:
            self._first_only(self.goal, FleetStatus.SAME_GOAL, near)
        self.bound = None  # (N,) int64 steps that each agent takes at least, where it may choose its goal

    def _tiles(self, places, what, asked):
        """(N, 2) float64 -> (N,) int32 tiles; notes in the status of those `asked` why there is none."""
        finite = np.isfinite(places).all(axis=1)
        inside = finite & (places >= 0).all(axis=1) & (places < self.number.shape).all(axis=1)
        row, col = np.where(inside[:, None], places, 0).astype(np.int64).T
        tiles = np.where(inside & asked, self.number[row, col] if self.number.size else -1, -1).astype(np.int32)
        for bad, why in ((~finite, "NOT_FINITE"), (finite & ~inside, "OUTSIDE"), (inside & (tiles < 0), "BLOCKED")):
            self.status[bad & asked] = FleetStatus[f"{what}_{why}"]
        return tiles

    def _first_only(self, tiles, why, near):
        """Of agents whose tiles are not farther apart than `near` in rows and in columns, the first one keeps its
        tile."""
        kept: set[tuple[int, int]] = set()
        span = range(-near, near + 1)
        for agent in np.flatnonzero(tiles >= 0).tolist():
            row, col = self.place[tiles[agent]].tolist()
            if any((row + r, col + c) in kept for r in span for c in span):
                self.status[agent], tiles[agent] = why, -1
            else:
                kept.add((row, col))

    def plan_ways(self):
        some = np.flatnonzero(self.goal >= 0)
        self.field = np.full(len(self.goal), -1, np.int32)
        self.field[some] = np.arange(len(some))
        self.nearer, alone = plan_ways(self.goal[some], self.start[some], self.ground)
        self.alone = np.zeros(len(self.goal), np.int32)
        self.alone[some] = np.where(alone == NO_PATH, 0, alone)
