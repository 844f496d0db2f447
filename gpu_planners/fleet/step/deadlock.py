"""Agents that block each other plan together, and follow the plan step by step.

Options look a few ticks ahead, so agents that have to change places far from any room for it may stand for good. LaCAM
(lacam.py) finds a plan wherever there is one. An agent that gets no nearer to its goal, in or near a narrow place
(turns.py), plans with the nearest others, with twice as many each time that this did not help for long, and in the end
with all of its part of the map. While they search, and while they follow their plan, these agents go first, and the
plan's next move is the best of their options. The step is free of conflicts as ever; an agent that cannot follow ends
the plan.

A few agents plan ways to all of their goals. More than these take turns in narrow places, and plan only that each one
with a turn comes to its goal at some time; when half of them have, they plan anew.
"""

import functools
import threading

import numpy as np

from ...device import njit
from ..fields.next_hops import NOBODY, ground_of
from ..motion import Options
from ..plan import lacam
from ..plan.instance import Instance, Model
from ..plan.lacam import TreeSearch
from ..plan.retime import rest_of, visits_timed, visits_without_loops
from ..plan.turns import lanes_of, narrow_tiles, nearest, turns_of
from .priorities import Progress
from .state import Agents, Ranked

FEW = 8  # agents that plan together at first; of smaller fleets all do
MOST = 256  # and at most
PATIENCE = 16  # steps without coming nearer, or off a goal that was reached, after which an agent plans with others
OPEN_PATIENCE = 768  # the same in larger fleets far from narrow places, where joint plans cost errands
NEAR = 4  # tiles from a narrow place
EFFORT = 20_000  # moves of agents tried in a step
MOST_EFFORT = 1_000_000  # for a plan of three to FEW agents
TURNS_EFFORT = 60_000  # for a plan of agents that take turns, which is then followed as far as it was found
PAUSE = 256  # steps before an agent plans again, after a plan that was not found, or not followed in a larger fleet
SHARE = 0.5  # of the agents with a turn that have been at their goals, when all plan anew
LASTS = 8  # steps for each of many agents that they plan together for
WHOLE_LASTS = 1024  # the same if they are all agents of their part of the map
JAM = 0.5  # of them have to be stalled too, if they are to be more than before
TRIES = 4  # plans of agents that take turns, of which the best one is followed
RECENT = 64  # steps after a plan in which whoever is stuck again plans with twice as many
FIRST = -(1 << 27)  # a cost below that of all options
ALL, TURNS, ONE = range(3)  # what is planned: that all are at their goals, that some come there, that one does


class _Map:
    """What plans need to know of a map. free: (tiles,) uint8 of `lanes`"""

    def __init__(self, free, width):
        self.free, self.width = free, width
        rooms = free.reshape(-1, width) > 0
        self.tiles = self.ground, number, place = ground_of(rooms)
        self.number = np.where(rooms, number, len(place)).ravel()
        self.narrow = narrow_tiles(self.ground)
        near = np.zeros(rooms.shape, bool)
        near[rooms] = lanes_of(self.ground, place, rooms.shape)[:-1]
        for _ in range(NEAR):
            grown = near.copy()
            grown[1:] |= near[:-1]
            grown[:-1] |= near[1:]
            grown[:, 1:] |= near[:, :-1]
            grown[:, :-1] |= near[:, 1:]
            near = grown
        self.near_lane = near.ravel()


class _Group:
    """Agents that search for a plan, or follow it.

    members, goals: (K,) numbers and tiles, -1 none; led: (K,) bool, who still follows the plan
    came: (K,) bool, who has been at its goal; until: the step up to which they plan anew
    visits: Visits of the plan; at: (K,) the one that each member is making; left: (T,) how many of each tile are over
    tiles, headings: (steps + 1, K) of the rest of the plan, or (1, K) where they stand during the search; tick: the
        step reached; idle: steps in which nobody has come farther
    search: TreeSearch, None once there is a plan; aim: ALL, TURNS or ONE; effort: moves tried
    """

    def __init__(self, members, ground, until):
        self.members, self.map, self.until = members, ground, until

    def look_for(self, aim, agents, progress, model, seed):
        """Begin to search."""
        m = self.members
        self.aim, self._model, self.effort = aim, model, 0
        self.goals, self.led, self.came = agents.goal[m], np.ones(len(m), bool), np.zeros(len(m), bool)
        self.tiles, self.headings, self.tick = agents.tile[m][None], agents.heading[m][None], 0
        order = np.argsort(m)
        self.key = m[order].tolist(), self.goals[order].tolist()
        order = np.argsort(-progress.since[m], kind="stable")
        places, ends = (
            np.stack(np.divmod(tiles, self.map.width), axis=1).astype(np.float64)
            for tiles in (self.tiles[0], self.goals)
        )
        ends[self.goals < 0] = np.nan
        if aim == ONE:
            ends[1:] = np.nan
        elif aim == TURNS:
            again = np.ones(len(m), bool)
            again[order[np.unique(self.goals[order], return_index=True)[1]]] = False
            ends[again] = np.nan
        self._instance = instance = Instance(self.map.tiles, places, ends)
        instance.plan_next_hops()
        if aim != TURNS:
            self.wanted = instance.goal >= 0
            self.search = TreeSearch(instance, np.arange(len(m)), model, seed)
            return
        ways = instance.start, instance.goal, instance.field, instance.next_hops, instance.ground, self.map.narrow
        has_turn = turns_of(order, *ways) | self.map.narrow[instance.start]
        instance.goal[~has_turn] = instance.field[~has_turn] = -1
        self.wanted = instance.goal >= 0
        self._seed, self._first = seed, np.r_[order[has_turn[order]], order[~has_turn[order]]]
        self.search = self._turns(seed)

    def _turns(self, seed):
        members = np.arange(len(self.members))
        return TreeSearch(self._instance, members, self._model, seed, once=True, first=self._first)

    def take_plan(self, memory_limit_bytes):
        """Follow the plan that was found, or, where agents take turns, the best one of a few."""
        faces, plans = self.headings[0], [self.search.tiles()]
        if self.aim == TURNS:
            for seed in range(self._seed + 1, self._seed + TRIES):
                search = self._turns(seed)
                search.go_on(max(1, EFFORT // len(faces)), memory_limit_bytes)
                plans.append(search.tiles())
        best, most = None, -1.0
        for tiles in plans:
            self.visits = visits_without_loops(tiles, len(self._instance.place))
            self.at, self.left = self.visits.first[:-1].copy(), np.zeros(len(self._instance.place) + 1, np.int32)
            self._time(faces)
            if (errands := self._errands()) > most:
                best, most = (self.visits, self.at, self.left, self.tiles, self.headings), errands
        self.visits, self.at, self.left, self.tiles, self.headings = best
        self.search, self.idle = None, 0

    def _errands(self):
        """A step, until they plan anew."""
        came = np.maximum.accumulate(self.tiles == self.goals, axis=0)[:, self.wanted].sum(axis=1)
        tick = int(np.argmax(came >= min(came[-1], max(1, SHARE * self.wanted.sum()))))
        return came[tick] / max(1, tick)

    def _time(self, headings):
        """Time the rest of the plan anew: whoever is late is waited for."""
        rest = rest_of(self.visits, self.at, self.left)
        tiles, faces, _, _ = visits_timed(self._instance, rest, headings.astype(np.int32), self._model)
        self.tiles, self.headings, self.tick = self._instance.place[tiles.T] @ (self.map.width, 1), faces.T, 0

    def holds(self, agents, broken):
        """Note how far members have come. Can they go on? Those that have done their part and have new goals leave."""
        m = self.members
        tile, changed = agents.tile[m], agents.goal[m] != self.goals
        there = (agents.there[m] > 0) & (agents.still[m] == 0) & (broken[m] == 0)
        if self.search is not None:
            return bool((there & (tile == self.tiles[0]) & ~changed).all())
        self.came |= tile == self.goals
        done = self.at + 1 == self.visits.first[1:]
        if self.aim == TURNS:
            changed[:] = False
        self.led &= ~(changed & done)
        if not self.led.any() or not (there & ~changed)[self.led].all():
            return False
        if not self._move_on(self.map.number[tile]) or self.idle > PATIENCE:
            return False
        late = (tile != self.tiles[self.tick]) | (agents.heading[m] != self.headings[self.tick])
        if late[self.led].any():
            self._time(agents.heading[m])
        return True

    def _move_on(self, tiles):
        """Note that members are on tiles (K,) now. -> are they where the plan allows it?"""
        visits = self.visits
        moved = np.flatnonzero((tiles != visits.tile[self.at]) & self.led)
        if (self.at[moved] + 1 == visits.first[moved + 1]).any():
            return False
        np.add.at(self.left, visits.tile[self.at[moved]], 1)
        self.at[moved] += 1
        self.idle = 0 if len(moved) else self.idle + 1
        now = self.at[moved]
        return bool(((visits.tile[now] == tiles[moved]) & (visits.rank[now] == self.left[tiles[moved]])).all())

    @property
    def over(self):
        """Have they followed the plan as far as they want to?"""
        if self.search is not None:
            return False
        came = self.came[self.wanted]
        enough = self.aim == TURNS and came.sum() >= max(1, SHARE * len(came))
        return bool(enough or (self.at + 1 == self.visits.first[1:]).all())


@njit
def put_first(members, led, tick, tiles, headings, agents, options, ranked):
    """Make the plan's next moves, from a tick on, the best option of each member; the next best ones are late."""
    last, horizon, faces = len(tiles) - 1, options.here.shape[2], options.here.shape[1]
    for k in range(len(members)):
        a = members[k]
        if not led[k]:
            continue
        heading, table, option_of, cost_of = agents.heading[a], agents.table[a], ranked.option[a], ranked.cost[a]
        for late in range(horizon - 1, -1, -1):
            end = headings[min(tick + horizon - 1 - late, last), k]
            for option in range(options.first_option[table], options.first_option[table + 1]):
                track, fits = options.track[option], True
                for ahead in range(1, horizon):
                    tile = agents.tile[a] + options.here[track, heading, ahead]
                    fits &= tile == tiles[min(tick + max(ahead - late, 0), last), k]
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


@functools.cache
def _search_once(model: Model, memory_limit_bytes: int) -> None:
    """Let two agents change places, so that all that a search needs is compiled."""
    agents, free = Agents(*np.zeros((len(Agents._fields), 2), np.int32)), np.zeros((4, 5), np.uint8)
    free[1:3, 1:4] = 1
    agents.tile[:], agents.goal[:] = (6, 7), (7, 6)
    ground = _Map(free.ravel(), free.shape[1])
    nearest(0, np.full(len(ground.narrow), NOBODY, np.int32), ground.ground.neighbour, 1)
    group = _Group(np.arange(2), ground, 0)
    for aim in (ALL, TURNS):
        group.look_for(aim, agents, Progress(*np.zeros((len(Progress._fields), 2), np.int64)), model, 0)
        if group.search.go_on(EFFORT, memory_limit_bytes) == lacam.SOLVED:
            group.take_plan(memory_limit_bytes)


class Deadlocks:
    """The groups of agents that plan together. For agents of size 1 whose actions take one tick.

    width: of the map; memory_limit_bytes: of a search
    """

    def __init__(self, width: int, model: Model, memory_limit_bytes: int):
        self._width, self._model, self._memory = width, model, memory_limit_bytes
        self._compiling: threading.Thread | None = None
        self._map: _Map | None = None
        self.forget()

    def forget(self) -> None:
        """There are other agents."""
        self._groups: list[_Group] = []
        self._size = self._ended = self._rests = np.zeros(0, np.int64)
        self._hopeless: tuple = ()  # a group and goals for which there is no plan

    def leading(
        self, agents: Agents, progress: Progress, nothing_to_do: np.ndarray, broken: np.ndarray, free: np.ndarray,
        step: int, in_time: bool, only_lanes: bool,
    ) -> np.ndarray:  # fmt: skip
        """Look for groups, and for their plans. -> (K,) int agents that go first in this step

        in_time: must the step end in time? Then no group is made before the search is compiled
        only_lanes: may only agents near lanes plan together, since others plan whole paths (window.py), or are packed?
        """
        obeying = (agents.there > 0) & (agents.still == 0) & (free[agents.tile] > 0)
        small = np.count_nonzero(obeying) <= FEW
        if self._map is not None and free is not self._map.free:
            if not np.array_equal(free, self._map.free):
                self._groups, self._map = [], None
        if len(self._size) != len(obeying):  # how many an agent plans with, until when it did, when it may again
            more = len(obeying) - len(self._size)
            self._size = np.r_[self._size, np.full(more, FEW)]
            self._ended, self._rests = (np.r_[old, np.full(more, -RECENT)] for old in (self._ended, self._rests))
        for group in self._groups[:]:
            if not group.holds(agents, broken):
                self._end(group, step, 0)
            elif group.over and step < group.until:
                group.look_for(self._aim(group, progress), agents, progress, self._model, step)
            elif group.over:
                self._end(group, step, 0)
        self._begin(agents, progress, obeying & ~nothing_to_do, obeying, small, free, step, in_time, only_lanes)
        for group in self._groups[:]:
            if group.search is not None:
                self._search_on(group, agents, progress, step)
        return np.concatenate([np.zeros(0, np.int64), *(group.members[group.led] for group in self._groups)])

    def _end(self, group, step, pause):
        self._groups.remove(group)
        self._ended[group.members], self._rests[group.members] = step, step + pause

    def _compiled(self, in_time):
        """Is the search compiled? A thread compiles it, or loads it, for which only a step without a time waits."""
        if self._compiling is None:
            self._compiling = threading.Thread(target=_search_once, args=(self._model, self._memory))
            self._compiling.start()
        if not in_time:
            self._compiling.join()
        return not self._compiling.is_alive()

    def _begin(self, agents, progress, on_the_way, obeying, small, free, step, in_time, only_lanes):
        """Let the agent that has waited longest, if it is too long, plan with the nearest others."""
        # agents of a small fleet may push each other off their goals in turns
        waited = np.maximum(progress.stalled, progress.away) if small else progress.stalled
        waited = np.where(on_the_way & (self._rests <= step), waited, 0)
        for group in self._groups:
            waited[group.members] = 0
        if waited.max(initial=0) < PATIENCE:
            return
        if self._map is None:
            self._map = _Map(free, self._width)
        if not small:
            waited[~self._map.near_lane[agents.tile] & (only_lanes | (waited < OPEN_PATIENCE))] = 0
        if waited.max(initial=0) < PATIENCE or not self._compiled(in_time):
            return
        worst, ground, numbers = int(np.argmax(waited)), self._map.ground, self._map.number[agents.tile]
        occupant = np.full(len(ground.neighbour), NOBODY, np.int32)
        occupant[numbers[obeying]] = np.flatnonzero(obeying)
        again = step - self._ended[worst] < RECENT
        size = min(2 * int(self._size[worst]), MOST) if again else FEW
        members = nearest(numbers[worst], occupant, ground.neighbour, size)
        if np.mean(progress.stalled[members] >= PATIENCE // 2) < JAM:
            members, size = members[: size // 2], size // 2
        if len(members) < 2:
            return
        for group in self._groups[:]:
            if np.isin(members, group.members).any():
                members = np.union1d(members, group.members)
                size = max(size, len(members))
                self._end(group, step, 0)
        whole = len(members) == np.count_nonzero(ground.part[numbers[obeying]] == ground.part[numbers[worst]])
        lasts = 0 if len(members) <= FEW else WHOLE_LASTS if whole else LASTS * len(members)
        self._size[members] = size
        group = _Group(members, self._map, step + lasts)
        group.look_for(self._aim(group, progress), agents, progress, self._model, step)
        if group.key == self._hopeless:
            group.look_for(self._less(group), agents, progress, self._model, step)
        progress.away[members] = np.minimum(progress.away[members], 0)
        self._groups.append(group)

    def _aim(self, group, progress):
        """Few agents, and those that had to leave the goals that they still have, plan to be there all at once."""
        return ALL if len(group.members) <= FEW or (progress.away[group.members] > 0).any() else TURNS

    def _less(self, group):
        return ONE if len(group.members) <= FEW else TURNS

    def _search_on(self, group, agents, progress, step):
        """Spend a step's effort on the search; where no plan serves all goals, on one for less."""
        count = len(group.members)
        ended = group.search.go_on(max(1, EFFORT // count), self._memory)
        group.effort += EFFORT
        most = MOST_EFFORT if count <= FEW else TURNS_EFFORT
        tired = ended != lacam.MORE or (count > 2 and group.effort >= most)
        if ended == lacam.SOLVED or (tired and group.aim == TURNS and group.search.gets_on):
            group.take_plan(self._memory)
        elif tired and group.aim == ALL and (ended == lacam.EXHAUSTED or count > FEW):
            self._hopeless = group.key
            group.look_for(self._less(group), agents, progress, self._model, step)
        elif tired:
            self._end(group, step, PAUSE)

    def lead(self, agents: Agents, options: Options, ranked: Ranked) -> None:
        """Make the plans' next moves the best option of each member."""
        for group in self._groups:
            put_first(group.members, group.led, group.tick, group.tiles, group.headings, agents, options, ranked)

    def follow(self) -> None:
        """The step is over."""
        for group in self._groups:
            if group.search is None:
                group.tick = min(group.tick + 1, len(group.tiles) - 1)
