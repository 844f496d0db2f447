"""Agents that plan together, and follow their ways step by step.

A few agents plan to be at their goals all at once. More than these, above all those near lanes (turns.py), have whole
ways from goal to goal (ways.py), which are made better in each step. Where some have none, LaCAM plans for all anew.
"""

import numpy as np

from ...device import njit
from ...parallel.team import NEVER
from ..fields.next_hops import NO_PATH, ground_of, next_hops_to
from ..plan import lacam
from ..plan.instance import Instance
from ..plan.lacam import TreeSearch
from ..plan.retime import rest_of, visits_of, visits_timed, visits_without_loops
from ..plan.turns import lanes_of
from .state import STANDS
from .ways import KEPT, NOW, UNSERVED, cost_of, enter, improve, new_ways

PATIENCE = 16  # steps without coming nearer, or off a goal that was reached, after which an agent plans with others
NEAR = 4  # tiles from a lane
PLAN_EFFORT = 200_000  # moves tried for a plan of many, in one step
STATES = 10_000  # of searches for ways, made in a step
LEAST_STATES = 2_500  # the same in a step that is to end in time, which makes more as long as there is time
PAUSE = 256  # steps before agents plan again, at most, after plans that were not found
AWAY = 1024  # ticks, beyond which it does not matter when agents come to their goals
PRESSING = 64  # steps under way, after which an agent's way counts twice; after twice as many five times, ...
MOST_PRESSING = 1 << 14  # the number that is squared for it, at most
OVERDUE = 512  # steps under way, after which an agent without a way gets one, whatever it costs others
FIRST = -(1 << 27)  # a cost below that of all options
ALL, ONE = range(2)  # what few agents plan: that all are at their goals, or that one comes there


class Layout:
    """What plans need to know of a map. free: (tiles,) uint8 of `lanes`"""

    def __init__(self, free, width):
        self.free, self.width = free, width
        rooms = free.reshape(-1, width) > 0
        self.tiles = self.ground, number, place = ground_of(rooms)
        self.number = np.where(rooms, number, len(place)).ravel()
        self.count = len(place)
        near = np.zeros(rooms.shape, bool)
        near[rooms] = lanes_of(self.ground, place, rooms.shape)[:-1]
        for _ in range(NEAR):
            grown = near.copy()
            grown[1:] |= near[:-1]
            grown[:-1] |= near[1:]
            grown[:, 1:] |= near[:, :-1]
            grown[:, :-1] |= near[:, 1:]
            near = grown
        self.near_lane, self.on_map = near.ravel(), (place @ (width, 1)).astype(np.int32)

    def instance(self, start, goal):
        """start, goal: (K,) numbers of tiles, -1 none -> Instance"""
        place = np.vstack([self.tiles[2], [[np.nan, np.nan]]])
        instance = Instance(self.tiles, place[start], place[goal])
        instance.plan_next_hops()
        return instance


class Group:
    """Agents with ways that do not conflict.

    members: (K,) numbers; until: the step up to which they plan
    tile, heading: (K, steps + 1) of the ways, or (K, 1) where they stand; tick: the step reached
    led: (K,) bool, who still follows its way
    """

    def __init__(self, members, ground, model, until):
        self.members, self.map, self._model, self.until = members, ground, model, until
        self.led, self.tick, self.search, self.over = np.ones(len(members), bool), 0, None, False

    def holds(self, agents, broken):
        """Note how far members have come. Can they go on?"""
        raise NotImplementedError

    def _follow(self, agents):
        """Who is late is waited for: all pass each tile in the same order. -> are they where their ways allow it?"""
        tile, heading = self.map.number[agents.tile[self.members]], agents.heading[self.members]
        last = self.tile.shape[1] - 1
        now, before = min(self.tick, last), min(max(self.tick - 1, 0), last)
        tile, heading = (
            np.where(self.led, is_now, planned[:, now])
            for is_now, planned in ((tile, self.tile), (heading, self.heading))
        )
        if (tile == self.tile[:, now]).all() and (heading == self.heading[:, now]).all():
            return True
        visits = visits_of(np.ascontiguousarray(self.tile[:, before:].T), self.map.count)
        at, left = visits.first[:-1].copy(), np.zeros(self.map.count + 1, np.int32)
        moved = np.flatnonzero(tile != visits.tile[at])
        if (at[moved] + 1 == visits.first[moved + 1]).any():
            return False
        np.add.at(left, visits.tile[at[moved]], 1)
        at[moved] += 1
        if (visits.tile[at] != tile).any() or (visits.rank[at] != left[tile]).any():
            return False
        rest = rest_of(visits, at, left)
        tiles, faces, _, _ = visits_timed(self.map, rest, heading.astype(np.int32), self._model)
        self._take(tiles, faces)
        return True

    def put_first(self, agents, options, ranked):
        """Make the ways' next moves the best option of each member."""
        tiles = self.map.on_map[self.tile[:, self.tick :][:, : options.here.shape[2]]]
        faces = self.heading[:, self.tick :][:, : options.here.shape[2]]
        if tiles.shape[1] == 0:
            tiles, faces = self.map.on_map[self.tile[:, -1:]], self.heading[:, -1:]
        put_first(self.members, self.led, tiles, np.ascontiguousarray(faces, np.int32), agents, options, ranked)


class Few(Group):
    """Agents that are to be at their goals all at once, or, if that cannot be, one of them.

    goals: (K,) tiles of the map, -1 none; aim: ALL or ONE
    search: TreeSearch, None once there is a plan; effort: moves tried; idle: steps in which nobody has come farther
    """

    def look_for(self, aim, agents, progress, seed):
        """Begin to search."""
        m = self.members
        self.aim, self.effort, self.idle = aim, 0, 0
        self.goals, self.led[:] = agents.goal[m], True
        self.tile, self.heading, self.tick = self.map.number[agents.tile[m]][:, None], agents.heading[m][:, None], 0
        order = np.argsort(m)
        self.key = m[order].tolist(), self.goals[order].tolist()
        goal = np.where(self.goals >= 0, self.map.number[self.goals], -1)
        if aim == ONE:
            goal[1:] = -1
        instance = self.map.instance(self.tile[:, 0], goal)
        self.search = TreeSearch(instance, np.arange(len(m)), self._model, seed)

    def take_plan(self):
        """Follow the plan that was found."""
        visits = visits_without_loops(self.search.tiles(), self.map.count)
        tiles, faces, _, _ = visits_timed(self.map, visits, self.heading[:, 0].astype(np.int32), self._model)
        self._take(tiles, faces)
        self.search, self.idle, self.over = None, 0, False

    def _take(self, tiles, faces):
        self.tile, self.heading, self.tick = tiles, faces.astype(np.int32), 0

    def holds(self, agents, broken):
        """Can they go on? Those that have done their part and have new goals leave."""
        m = self.members
        changed = agents.goal[m] != self.goals
        there = (agents.there[m] > 0) & (agents.still[m] == 0) & (broken[m] == 0)
        if self.search is not None:
            return bool((there & (self.map.number[agents.tile[m]] == self.tile[:, 0]) & ~changed).all())
        rest = self.tile[:, self.tick :]
        self.led &= ~(changed & (rest == self.tile[:, -1:]).all(axis=1))
        if not self.led.any() or not (there & ~changed)[self.led].all():
            return False
        before = self.tile[:, max(self.tick - 1, 0) :][:, :1]
        self.idle = 0 if (self.map.number[agents.tile[m]][:, None] != before).any() else self.idle + 1
        self.over = self.tick >= self.tile.shape[1] - 1
        return self._follow(agents) and self.idle <= PATIENCE


class Many(Group):
    """Agents with whole ways (ways.py). most_ticks: of these"""

    def __init__(self, members, ground, model, until, agents, most_ticks):
        super().__init__(members, ground, model, until)
        self._most_ticks = most_ticks
        self._wait, self._rests = PATIENCE, 0
        self._stay(agents)

    def _stay(self, agents):
        """All stay where they are."""
        m, neighbour = self.members, self.map.ground.neighbour
        self.ways = new_ways(self.map.number[agents.tile[m]], agents.heading[m], neighbour, *self._model)
        self.tile, self.heading, self.tick = self.ways.tile, self.ways.heading, 0

    def _take(self, tiles, faces, tick=None):
        """Take ways from a tick on, as much of them as there is room for."""
        tick = self.tick if tick is None else tick
        if tick + tiles.shape[1] > self.tile.shape[1] and self.tile.shape[1] <= self._most_ticks:
            self.ways = self.ways.longer(min(tick + tiles.shape[1] + KEPT, self._most_ticks))
            self.tile, self.heading = self.ways.tile, self.ways.heading
        for whole, rest in ((self.tile, tiles), (self.heading, faces)):
            fits = min(rest.shape[1], whole.shape[1] - tick)
            whole[:, tick : tick + fits], whole[:, tick + fits :] = rest[:, :fits], rest[:, fits - 1 : fits]
        enter(self.ways)

    def holds(self, agents, broken):
        m = self.members
        if not ((agents.there[m] > 0) & (agents.still[m] != STANDS)).all():
            return False
        if broken[m].any() or not self._follow(agents):
            self._stay(agents)
        return True

    def plan(self, agents, progress, nothing_to_do, step, until_ns, memory_limit_bytes):
        """Take new goals, and find ways to them."""
        m, ways, count = self.members, self.ways, self.map.count
        if self.tick >= KEPT:
            for whole in (self.tile, self.heading):
                whole[:, : -self.tick] = whole[:, self.tick :].copy()
                whole[:, -self.tick :] = whole[:, -1:]
            self.tick = 0
            enter(ways)
        ways.clock[NOW], ways.random[0] = self.tick, step + 1
        goal = np.where(nothing_to_do[m] | (agents.goal[m] < 0), -1, self.map.number[agents.goal[m]])
        goal = np.where(goal == count, -1, goal).astype(np.int32)
        fresh = np.flatnonzero(goal != ways.goal)
        for k in fresh[goal[fresh] >= 0]:
            ways.steps[k] = next_hops_to(goal[k], self.map.ground, NEVER)[1]
        goal[(goal >= 0) & (ways.steps[np.arange(len(m)), self.tile[:, self.tick]] == NO_PATH)] = -1
        ways.goal[:] = goal
        ways.steps[goal < 0] = 0
        ways.weight[:] = 1 + np.minimum(progress.since[m] // PRESSING, MOST_PRESSING) ** 2
        ways.least[:] = self.tick + ways.steps[np.arange(len(m)), self.tile[:, self.tick]]
        ways.cost[:] = cost_of(ways, self.tile)
        fresh = fresh[ways.cost[fresh] == UNSERVED]
        improve(fresh, LEAST_STATES if until_ns else STATES, until_ns, ways)
        if step >= self._rests and (ways.cost == UNSERVED).any():
            better = self.plan_anew(agents, progress, step, memory_limit_bytes)
            self._wait = PATIENCE if better else min(2 * self._wait, PAUSE)
            self._rests = step + self._wait

    def plan_anew(self, agents, progress, step, memory_limit_bytes):
        """Look for a plan in which all come to their goals, those first that have no way. -> is it better?

        Everybody gets a turn: an agent without a way that is overdue gets one whatever it costs others, but those that
        are longer under way and have ways keep them; the plan begins when they have come to their goals.
        """
        m, ways, since = self.members, self.ways, progress.since[self.members]
        unserved, begin = ways.cost == UNSERVED, self.tick
        overdue = int(np.argmax(np.where(unserved, since, -1)))
        if since[overdue] >= OVERDUE:
            begin = int(ways.cost[~unserved & (since >= since[overdue])].max(initial=begin))
        first = np.lexsort((-since, ~unserved)).astype(np.int32)
        goal, start = np.where(ways.cost <= begin, -1, ways.goal), self.tile[:, begin].copy()
        instance = self.map.instance(start, self._each_one(goal, start, first))
        search = TreeSearch(instance, np.arange(len(m)), self._model, step, first=first)
        ended = search.go_on(max(1, PLAN_EFFORT // len(m)), memory_limit_bytes)
        if ended != lacam.SOLVED and not search.gets_on:
            return False
        visits = visits_without_loops(search.tiles(), self.map.count)
        tiles, faces, _, _ = visits_timed(self.map, visits, self.heading[:, begin].astype(np.int32), self._model)
        before = self.tile.copy(), self.heading.copy()
        self._take(tiles, faces, begin)
        cost = cost_of(self.ways, self.tile)
        gets_turn = since[overdue] >= OVERDUE and cost[overdue] < UNSERVED
        if not gets_turn and self._worth(cost) >= self._worth(ways.cost):
            self._take(*before, 0)
            return False
        ways.cost[:] = cost
        return True

    def _worth(self, cost):
        return (self.ways.weight.astype(np.int64) * np.minimum(cost - self.tick, AWAY)).sum()

    def _each_one(self, goal, start, first):
        """Give a tile of its own to who has no goal, or that of one who comes before: where it is, or near. -> goal"""
        part, place = self.map.ground.part[:-1], self.map.tiles[2]
        ordered = goal[first]
        again = np.ones(len(goal), bool)
        again[first[np.unique(ordered, return_index=True)[1]]] = False
        goal[again] = -1
        free = np.ones(len(place), bool)
        free[goal[goal >= 0]] = False
        for k in np.flatnonzero(goal < 0):
            some = np.flatnonzero(free & (part == part[start[k]]))
            if len(some):
                goal[k] = some[np.abs(place[some] - place[start[k]]).sum(axis=1).argmin()]
                free[goal[k]] = False
        return goal


@njit
def put_first(members, led, tiles, headings, agents, options, ranked):
    """Make the next moves of ways (K, ticks) the best option of each member; the next best ones are late."""
    last, horizon, faces = tiles.shape[1] - 1, options.here.shape[2], options.here.shape[1]
    for k in range(len(members)):
        a = members[k]
        if not led[k]:
            continue
        heading, table, option_of, cost_of = agents.heading[a], agents.table[a], ranked.option[a], ranked.cost[a]
        for late in range(horizon - 1, -1, -1):
            end = headings[k, min(horizon - 1 - late, last)]
            for option in range(options.first_option[table], options.first_option[table + 1]):
                track, fits = options.track[option], True
                for ahead in range(1, horizon):
                    tile = agents.tile[a] + options.here[track, heading, ahead]
                    fits &= tile == tiles[k, min(max(ahead - late, 0), last)]
                if not fits or (faces > 1 and (heading + options.turn[options.leaf[option]] - end) % 4):
                    continue
                at = 0
                while at < ranked.length[a] and options.track[option_of[at]] != track:
                    at += 1
                if at < ranked.length[a]:
                    for place in range(at, 0, -1):
                        option_of[place], cost_of[place] = option_of[place - 1], cost_of[place - 1]
                    option_of[0], cost_of[0] = option, FIRST + late
                    break
