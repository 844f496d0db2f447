"""A one-shot query as the planners take it: agents on a map, checked, with a status for each."""

import time
from typing import NamedTuple

import numpy as np

from ...device import njit
from ...parallel.team import NEVER
from ..clock import at_least, pieces
from ..fields.next_hops import NO_PATH, plan_next_hops, prefer
from .feasibility import unsolvable
from .fleet_plan import OUT_OF_TIME, PARTLY, FleetPlan, FleetStatus

TIME_NS = 100  # to time a plan (retime.py), for each agent and step; a guess
TELL_NS = 25  # to tell of it, for each agent and step; a guess
STEPS_TOGETHER = 16  # that are told at once: a line of the cache
GRACE_NS = 100_000_000  # that a plan may be told at least, before it is cut


class Model(NamedTuple):
    """turning: does a quarter turn take a step? following: may an agent enter a tile in the step that empties it?"""

    turning: bool
    following: bool

    @property
    def cell_ns(self):
        """How long it may take to time a plan, which turns make longer, and to tell of it, for each agent and step."""
        return (2 if self.turning else 1) * (TIME_NS + TELL_NS)


class Instance:
    """Agents on a map, checked.

    status: (N,) uint8 FleetStatus; start, goal: (N,) int32 tiles, -1 where there is none
    ground: Ground; number: (rows, cols) int32 tile or -1; place: (T, 2) int32 [row, col]
    next_hops, alone: of next_hops.plan_next_hops, for agents with goals; field: (N,) int32 rows of next_hops or -1
    hopeless: (N,) bool, is it proven that not all agents of its part of the map can reach their goals?
    bound: None, or (N,) int64 steps that each agent takes at least, where it may choose its goal
    """

    def __init__(self, tiles: tuple, places: np.ndarray, ends: np.ndarray, near: int = 0, shared: bool = False):
        """tiles: of ground_of; places, ends: (N, 2) float64 starts and goals; near: rows and columns between two
        agents that are too near; shared: may agents have the same goal?"""
        self.ground, self.number, self.place = tiles
        self.status = np.zeros(len(places), np.uint8)
        self.start = self._tiles(places, "START", np.ones(len(places), bool))
        self._first_only(self.start, FleetStatus.SAME_START, near)
        self.goal = self._tiles(ends, "GOAL", self.start >= 0)
        lost = (self.goal >= 0) & (self.ground.part[self.start] != self.ground.part[self.goal])
        self.status[lost], self.goal[lost] = FleetStatus.NO_PATH, -1
        if not shared:
            self._first_only(self.goal, FleetStatus.SAME_GOAL, near)
        self.hopeless = np.zeros(len(places), bool)
        self.bound = None

    def _tiles(self, places, what, asked):
        """(N, 2) float64 -> (N,) int32 tiles, -1 none; the status of those `asked` says why."""
        finite = np.isfinite(places).all(axis=1)
        inside = finite & (places >= 0).all(axis=1) & (places < self.number.shape).all(axis=1)
        row, col = np.where(inside[:, None], places, 0).astype(np.int64).T
        tiles = np.where(inside & asked, self.number[row, col] if self.number.size else -1, -1).astype(np.int32)
        for bad, why in ((~finite, "NOT_FINITE"), (finite & ~inside, "OUTSIDE"), (inside & (tiles < 0), "BLOCKED")):
            self.status[bad & asked] = FleetStatus[f"{what}_{why}"]
        return tiles

    def _first_only(self, tiles, why, near):
        """Of agents at most `near` rows and columns apart only the first one keeps its tile."""
        if near == 0:
            there = np.flatnonzero(tiles >= 0)
            again = np.ones(len(there), bool)
            again[np.unique(tiles[there], return_index=True)[1]] = False
            self.status[there[again]], tiles[there[again]] = why, -1
            return
        kept = np.zeros(np.add(self.number.shape, 2 * near), bool)
        for agent in np.flatnonzero(tiles >= 0).tolist():
            row, col = self.place[tiles[agent]].tolist()
            if kept[row : row + 2 * near + 1, col : col + 2 * near + 1].any():
                self.status[agent], tiles[agent] = why, -1
            else:
                kept[row + near, col + near] = True

    def parts(self):
        """-> [(K,) int agents of each connected part of the map in which some have goals]"""
        part = np.where(self.start >= 0, self.ground.part[self.start], -1)
        return [np.flatnonzero(part == which) for which in np.unique(part[(part >= 0) & (self.goal >= 0)])]

    def refuse(self, agents, following, deadline):
        """Look for a proof that agents (K,) of a part cannot all reach their goals, and note it. -> is there one?"""
        proven = unsolvable(self.start[agents], self.goal[agents], self.ground, following, deadline)
        self.hopeless[agents] = proven
        return proven

    def places(self, tiles):
        """(...) tiles, -1 none -> (..., 2) int32 [row, col] or -1"""
        return np.vstack([self.place, np.full((1, 2), -1, np.int32)])[tiles]

    def told(self, tiles, headings, deadline=NEVER):
        """(N, steps + 1) tiles and headings -> (steps + 1, N, 2) int32 [row, col] or -1; (steps + 1, N) int32; of the
        first steps alone if that takes long, and longer than until the deadline"""
        agents, steps = tiles.shape
        place = np.vstack([self.place, np.full((1, 2), -1, np.int32)])
        positions, facing = np.empty((steps, agents, 2), np.int32), np.empty((steps, agents), np.int32)
        _tell(0, 1, tiles, headings, place, positions, facing)
        end, by = 1, at_least(deadline, GRACE_NS)
        for first, last in pieces(steps - 1, by, TELL_NS * max(1, agents)):
            end = last + 1
            _tell(first + 1, end, tiles, headings, place, positions, facing)
        return positions[:end], facing[:end]

    def plan_next_hops(self, deadline=NEVER):
        """Set `next_hops`, `field`, `alone`; after the deadline hops are missing, and `alone` counts no detours."""
        some = np.flatnonzero(self.goal >= 0)
        self.field = np.full(len(self.goal), -1, np.int32)
        self.field[some] = np.arange(len(some))
        self.next_hops, alone, done = plan_next_hops(self.goal[some], self.start[some], self.ground, deadline)
        self.alone = np.zeros(len(self.goal), np.int32)
        if not done:
            alone = np.abs(self.place[self.goal[some]] - self.place[self.start[some]]).sum(axis=1)
        self.alone[some] = np.where(alone == NO_PATH, 0, alone)

    def prefer(self, moves, deadline):
        """Let agents prefer paths of low costs: moves (rows, cols, 4) uint8, as of Guidance."""
        costs = np.ones_like(self.ground.neighbour, np.uint8)
        costs[:-1] = moves[tuple(self.place.T)]
        prefer(self.goal[self.goal >= 0], costs, self.ground, self.next_hops, deadline)

    def plan_of(self, positions, headings, cost, least, message, began, first_s=None, optimal=False) -> FleetPlan:
        """-> FleetPlan of moves and lower bounds `least` (N,)

        cost: (N,) the step from which on each agent stays at its goal, beyond the last one if it does not
        message: "solved" where all that have goals arrive; began: of time.perf_counter()
        """
        has_goal, status, goals, cost = self.goal >= 0, self.status.copy(), self.places(self.goal), cost.copy()
        passing = has_goal & (cost >= len(positions)) & (positions[-1] == goals).all(axis=1)  # where the plan was cut
        cost[passing] = arrivals((positions[:, passing] != goals[passing]).any(axis=2))
        away = has_goal & (cost >= len(positions))
        status[away] = np.where(self.hopeless[away], FleetStatus.NO_JOINT_PLAN, FleetStatus.NOT_REACHED)
        solved, taken = status == FleetStatus.SOLVED, time.perf_counter() - began
        costs = np.where(has_goal & solved, cost, 0).astype(np.int64)
        bounds = np.where(has_goal, least, 0).astype(np.int64)
        if message == "solved" and not solved.all():
            message = OUT_OF_TIME if (status == FleetStatus.NOT_REACHED).any() else PARTLY
        first_s = taken if first_s is None else first_s
        optimal = bool(optimal and solved.any() and solved[has_goal].all())
        return FleetPlan(status, positions, headings, goals, costs, bounds, taken, first_s, message, optimal)


@njit
def _tell(first, last, tiles, headings, place, positions, facing):
    """Write positions and facing of steps first .. last - 1."""
    for begin in range(first, last, STEPS_TOGETHER):
        for a in range(len(tiles)):
            for step in range(begin, min(begin + STEPS_TOGETHER, last)):
                tile = tiles[a, step]
                positions[step, a, 0], positions[step, a, 1] = place[tile, 0], place[tile, 1]
                facing[step, a] = headings[a, step]


def arrivals(away: np.ndarray) -> np.ndarray:
    """(steps + 1, N) bool, is an agent away from its goal? -> (N,) step from which on it stays there, or steps + 1"""
    return np.where(away.any(axis=0), len(away) - np.argmax(away[::-1], axis=0), 0)
