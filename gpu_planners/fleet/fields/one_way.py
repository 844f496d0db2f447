"""Moves that nobody may make, and tiles where nobody may stop: options that do neither, and ways around such moves.

A field counts such a move as dear, as high as a byte allows. Where the way around is longer still, the field leads
through it. Then an agent gets a goal on the way around, a *stop*, so near that no path to it that makes such a move can
be the cheapest one: it costs less than the move alone. So the fields stay as they are.
"""

from collections import OrderedDict

import numpy as np
from numba import prange

from ...device import lean_njit, njit
from ..motion import Paces
from ..step.state import Agents, Ranked
from .cost_to_go import downhill
from .lanes import Lanes, PaddedMap, ahead

MOST_WAYS = 256  # goals whose ways around are kept
NONE = np.int32(2**31 - 1)


@lean_njit
def _direction(step, width):
    """-> which way a move by so many tiles goes; -1: it is none"""
    for direction in range(4):
        if ahead(direction, width) == step:
            return direction
    return -1


@lean_njit
def _makes_barred(tile, track, heading, here, barred, width):
    """Does an option of an agent on a tile make a barred move?"""
    before = 0
    for tick in range(1, here.shape[2]):
        now = here[track, heading, tick]
        if now != before and barred[tile + before, _direction(now - before, width)]:
            return True
        before = now
    return False


@lean_njit
def _stops(a, track, ticks, rests, no_stopping, width, agents, options):
    """Does an option of agent a stand on tiles where nobody may stop? It may turn there on its way, but not back."""
    tile, table, last = agents.tile[a], agents.table[a], options.here.shape[2] - 1
    here, also = options.here[track, agents.heading[a]], options.also[track, agents.heading[a]]
    if no_stopping[tile + here[last]]:
        return True  # it ends in waiting
    rest = options.tick[options.first_step[table]]
    at, came, stood, entered = here[rest], agents.heading[a], 0, False
    for tick in range(rest + 1, last + 1):
        if here[tick] == at:
            stood += also[tick] == at and also[tick - 1] == at
            continue
        way = _direction(here[tick] - at, width)
        turns = (way - came) % 4
        if no_stopping[tile + at]:
            needed = min(turns, 4 - turns) * ticks[table // rests, 1] if options.here.shape[1] == 4 else 0
            if stood > needed or (entered and turns == 2):
                return True
        at, came, stood, entered = here[tick], way, 0, True
    return False


@njit(parallel=True)
def leave_out(barred, no_stopping, width, ticks, rests, agents, options, ranked):
    """Take options that make barred moves, or stop where nobody may, out of the ranked ones.

    barred: (tiles, 4) bool; no_stopping: (tiles,) bool; ticks, rests: as in `advance`
    """
    for a in prange(len(agents.tile)):
        _leave_out(a, barred, no_stopping, width, ticks, rests, agents, options, ranked)


@lean_njit
def _leave_out(a, barred, no_stopping, width, ticks, rests, agents, options, ranked):
    """A function of its own: inside the parallel loop Numba takes writes to an array of a record for dead code."""
    kept = 0
    for place in range(ranked.length[a]):
        option = ranked.option[a, place]
        track, heading = options.track[option], agents.heading[a]
        out = _makes_barred(agents.tile[a], track, heading, options.here, barred, width)
        if not out and not _stops(a, track, ticks, rests, no_stopping, width, agents, options):
            ranked.option[a, kept], ranked.cost[a, kept] = option, ranked.cost[a, place]
            kept += 1
    ranked.length[a] = kept


@njit
def _crosses(tiles, headings, goals, slots, values, lanes, barred, found):
    """(K,) does the way of an agent down its goal's field make a barred move? Written to found"""
    for k in range(len(tiles)):
        tile, heading, field = tiles[k], headings[k], values[slots[k]]
        found[k] = False
        for _ in range(len(field)):
            if tile == goals[k] or not lanes.free[tile]:
                break
            down, there, turned = downhill(tile, heading, field, lanes)
            if down == 0:
                break
            if there != tile and barred[tile, _direction(there - tile, lanes.width)]:
                found[k] = True
                break
            tile, heading = there, turned


@njit
def _steps_back(goal, free, barred, width, steps, queue):
    """Breadth-first from a goal backwards, without barred moves. steps: (tiles,) int32, written; queue: scratch"""
    steps[:] = NONE
    steps[goal], queue[0], count, at = 0, goal, 1, 0
    while at < count:
        tile = queue[at]
        at += 1
        for direction in range(4):
            behind = tile - ahead(direction, width)
            if free[behind] and not barred[behind, direction] and steps[behind] == NONE:
                steps[behind], queue[count] = steps[tile] + 1, behind
                count += 1


@njit
def _stop_on(tile, heading, steps, lanes, barred, most):
    """-> the last tile on the way of fewest steps to which it costs less than `most`; -1: there is no way"""
    if steps[tile] == NONE:
        return np.int64(-1)
    cost, stop = 0, np.int64(tile)
    while steps[tile] > 0:
        best, way = 1 << 30, -1
        for quarters in range(4):  # straight on first
            direction = (heading + quarters) % 4
            there = tile + ahead(direction, lanes.width)
            if lanes.free[there] and not barred[tile, direction] and steps[there] == steps[tile] - 1:
                turns = min(quarters, 4 - quarters) if lanes.headings == 4 else 0
                now = lanes.forward[tile, direction] + turns * lanes.turn
                if now < best:
                    best, way = now, direction
        cost += best
        tile, heading = tile + ahead(way, lanes.width), way
        if cost >= most:
            break
        stop = tile
    return stop


class OneWay:
    """barred: (rows, cols, 4) bool, moves to the east, south, west, north that nobody may make, of each size
    no_stopping: (rows, cols) bool of each size, tiles where nobody may stop
    """

    def __init__(self, barred: list[np.ndarray], no_stopping: list[np.ndarray], padded: PaddedMap):
        pad = padded.pad
        moves = [np.pad(one, ((pad, pad), (pad, pad), (0, 0))) for one in barred]
        self.barred: np.ndarray = np.ascontiguousarray(np.concatenate(moves).reshape(-1, 4))
        self._no_stopping = np.concatenate([np.pad(one, pad) for one in no_stopping]).ravel()
        self._some = bool(self.barred.any())
        self._free: np.ndarray | None = None
        self._ways: OrderedDict[int, np.ndarray] = OrderedDict()  # by goal, steps to it
        self._goal = self._stop = np.zeros(0, np.int64)  # of agents that go around

    def leave_out(self, width: int, agents: Agents, paces: Paces, ranked: Ranked) -> None:
        rules = self.barred, self._no_stopping, width, paces.ticks, paces.rests
        leave_out(*rules, agents, paces.options, ranked)

    def stops(self, agents: Agents, goals: np.ndarray, slots: np.ndarray, engine, lanes: Lanes) -> np.ndarray:
        """Where agents go first: (N,) tiles, their goals (N,) where these fields lead there, -1: there is no way.

        slots: (N,) of the goals' fields, -1: not there yet
        """
        n = len(goals)
        if not self._some:
            return goals
        if self._free is None or not np.array_equal(self._free, lanes.free):
            self._free = lanes.free.copy()
            self._ways.clear()
            self._stop[:] = -1
        if len(self._goal) != n:
            self._goal, self._stop = np.full(n, -1), np.full(n, -1)
        self._stop[(self._goal != goals) | (self._stop == agents.tile)] = -1
        self._goal[:] = goals
        values = engine.host_fields(np.concatenate([slots, agents.slot]))
        moves = (agents.there > 0) & (goals >= 0) & (goals != agents.tile) & (lanes.free[agents.tile] > 0)
        kept = moves & (self._stop >= 0) & (agents.goal == self._stop) & (agents.slot >= 0)
        kept[kept] = ~self._cross(np.flatnonzero(kept), agents, self._stop, agents.slot, values, lanes)
        self._stop[~kept] = -1
        found = np.where(kept, self._stop, goals).astype(np.int64)
        goes = np.flatnonzero(moves & ~kept & (slots >= 0))
        most = int(lanes.forward[self.barred].min())
        for a in goes[self._cross(goes, agents, goals, slots, values, lanes)].tolist():
            steps = self._steps_to(int(goals[a]), lanes)
            place = int(agents.tile[a]), int(agents.heading[a])
            self._stop[a] = found[a] = _stop_on(*place, steps, lanes, self.barred, most)
        return found

    def _cross(self, some, agents, goals, slots, values, lanes):
        """Agents (K,) -> (K,) bool, do their ways to goals (N,) by the fields in slots (N,) make barred moves?"""
        crosses = np.zeros(len(some), bool)
        ends = goals[some].astype(np.int64), slots[some].astype(np.int64)
        _crosses(agents.tile[some], agents.heading[some], *ends, values, lanes, self.barred, crosses)
        return crosses

    def _steps_to(self, goal, lanes):
        if goal not in self._ways:
            steps, queue = np.empty(lanes.free.size, np.int32), np.empty(lanes.free.size, np.int32)
            _steps_back(goal, lanes.free, self.barred, lanes.width, steps, queue)
            self._ways[goal] = steps
            while len(self._ways) > MOST_WAYS:
                self._ways.popitem(last=False)
        self._ways.move_to_end(goal)
        return self._ways[goal]
