"""From tiles to a plan that is carried out by the motion, and better and better plans from there on."""

import time

import numpy as np

from ..parallel.team import NEVER
from . import lacam, refine, retime
from .clock import fits, late, part_of
from .plan import PARTLY, FleetPlan, FleetStatus

REPLANS = 16  # between two looks at the clock
FEW_STATES = 2048  # of a search at first
ENOUGH = 0.02  # of the steps lost, gained in a round, for another one with few states
CUTS = 4  # rounds of loop cutting
GROUP = 12  # agents that are planned again together, at most
PATIENCE = 4000  # groups without a gain, after which a plan is left as it is


def timed(instance, tiles, faces, model, leaves=None):
    """(steps + 1, N) tiles, changed -> the same of the plan that is carried out by the motion, and headings.

    leaves: (N,) bool, who leaves the map in the step after its last tile; None: nobody
    """
    count = len(instance.place)
    last, when = np.empty(count, np.int32), np.zeros(count, np.int32)
    for _ in range(CUTS):
        if not retime.cut_loops(tiles, last, when):
            break
    first, tile, rank = retime.visits_of(tiles, count)
    leaves = np.zeros(len(faces), bool) if leaves is None else leaves
    most = (3 if model.turning else 1) * len(tiles) + 2
    near, done = instance.ground.near, False
    while not done:
        tiles, headings, done = retime.carry_out(first, tile, rank, faces, leaves, *model, near, most)
        most *= 2
    return tiles, headings


def places_of(instance, tiles):
    """(steps + 1, N) tiles, -1 where an agent is not on the map -> (steps + 1, N, 2) int32 [row, col] or -1"""
    places = np.vstack([instance.place, np.full((1, 2), -1, np.int32)])
    return places[tiles]


class Moving:
    """A plan that is made better.

    tiles, headings: (steps + 1, N) int32
    """

    def __init__(self, instance, tiles, headings, model, least=None, deadline=NEVER):
        """least: (N,) int32 steps that agents take alone; None: not known yet, to be found until the deadline"""
        self.instance, n = instance, len(instance.start)
        steps = len(tiles) - 1
        away = tiles != instance.goal
        cost = np.where(away.any(axis=0), steps + 1 - np.argmax(away[::-1], axis=0), 0)
        cost[instance.goal < 0] = 0
        self.traffic = refine.Traffic(
            np.ascontiguousarray(tiles.T),
            np.ascontiguousarray(headings.T, np.uint8),
            np.zeros((0, 0), np.int32),
            cost.astype(np.int32),
            instance.alone,
            np.zeros(n, np.int32) if least is None else least,
            instance.goal,
            instance.field,
            instance.nearer,
            *model,
        )
        if least is None:
            longest = int((3 if model.turning else 1) * instance.alone.max(initial=0) + 2)
            states, lonely = refine.new_states(longest), np.zeros((1, longest + 1), np.int32)
            with_goal = np.flatnonzero(instance.goal >= 0)
            refine.ways_alone(with_goal, longest, self.traffic._replace(who=lonely), instance.ground, states, deadline)

    def loss(self):
        """Steps that all agents take more than they would alone."""
        some = self.instance.goal >= 0
        return int((self.traffic.cost - self.traffic.least)[some].sum(dtype=np.int64))

    def improve(self, deadline, seed, memory_limit_bytes):
        """Make the plan better until the time is over, or nothing more is gained for long."""
        traffic, ground = self.traffic, self.instance.ground
        steps, n = traffic.tile.shape[1] - 1, len(traffic.cost)
        size = 4 * len(ground.ways) * (steps + 1)
        if n == 0 or size > memory_limit_bytes or not fits(part_of(deadline, 0.5), size):  # a nanosecond a byte
            return
        traffic = self.traffic = traffic._replace(who=np.full((len(ground.ways), steps + 1), -1, np.int32))
        refine.enter_all(traffic)
        states, group = refine.new_states(steps), refine.new_group(n, steps)
        rng, count = np.random.default_rng(seed), np.zeros(7, np.int64)
        count[lacam.RANDOM] = rng.integers(1, 2**62)
        gained, states.many[1] = 1, FEW_STATES
        while gained or states.many[1] == FEW_STATES:
            if gained <= ENOUGH * self.loss():
                states.many[1] = refine.MOST_STATES
            order, gained = rng.permutation(n).astype(np.int32), 0
            for begin in range(0, n, REPLANS):
                gained += refine.each_alone(order, begin, min(begin + REPLANS, n), traffic, ground, states, deadline)
                if late(deadline):
                    return
        idle, most = 0, min(GROUP, n)
        while idle < PATIENCE and n > 1 and (traffic.cost > traffic.least).any():
            gained = refine.groups(REPLANS, most, traffic, ground, states, group, count, deadline)
            idle = 0 if gained else idle + REPLANS
            if late(deadline):
                return

    def plan(self, began, first_s, message):
        """-> FleetPlan"""
        traffic, instance = self.traffic, self.instance
        steps = traffic.tile.shape[1] - 1
        status, there = instance.status.copy(), instance.goal >= 0
        status[there & (traffic.cost > steps)] = FleetStatus.NOT_REACHED
        arrived = there & (status == FleetStatus.SOLVED)
        if (arrived == there).all():
            steps = int(traffic.cost.max(initial=0))
            message = "solved" if (status == FleetStatus.SOLVED).all() else PARTLY
        tiles = traffic.tile[:, : steps + 1].T
        goals = np.full((len(status), 2), -1, np.int32)
        goals[there] = instance.place[instance.goal[there]]
        return FleetPlan(
            status,
            places_of(instance, tiles),
            np.ascontiguousarray(traffic.heading[:, : steps + 1].T, np.int32),
            goals,
            np.where(arrived, traffic.cost, 0).astype(np.int64),
            np.where(there, traffic.least if instance.bound is None else instance.bound, 0).astype(np.int64),
            time.perf_counter() - began,
            first_s,
            message,
        )
