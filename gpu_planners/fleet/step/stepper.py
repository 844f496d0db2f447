"""A step of a fleet: sets priorities, makes room, and improves all options for as long as there is time."""

import math
import time

import numpy as np
from numba import get_num_threads

from ...parallel.team import clock_ns
from ...parallel.threads import one_thread
from ..fields.lanes import Lanes, PaddedMap
from ..fields.next_hops import NOBODY
from ..motion import FORWARD, Motion, Paces, speed_of
from ..plan.instance import Model
from ..settings import Settings
from . import epibt, priorities
from .cpu import SHARED_AGENTS
from .deadlock import Deadlocks
from .inherit import advance, inherit, settle
from .pockets import Pockets, pockets_of
from .state import BUSY, Agents, FleetState, Plans, Rules, new_ranked, new_stacks
from .window import WINDOW, Window, go_on, improve, new_window

DEEPEST = 1024  # agents that push each other in a row
AREA_SIDE = 32  # side in tiles of the squares that are searched side by side, without the margin that agents need
ONE_AREA = 1 << 12  # tiles of maps that are not cut
AT_ONCE = 32  # agents of such a map between two checks of the clock
FINEST = 1 << 30  # weight of the first agent
PACES = (0.3, 0.45, 0.6)  # moves by which agents come nearer in a tick, on average, from a jam to free traffic
SKEWS = (6, 2, 0)  # then: the power by which weights fall with the order of priorities; with 0 all weigh the same
IMPROVED = (0.5, 0.5, 0.75)  # and the part of them, first by priority, that looks for better options
MOST_WINDOWS = 4096  # agents that have whole paths
LEAST_S = 2e-3  # the time for these
LONGER = ((4, 0.95), (5, 0.8))  # horizons, and up to how many agents of free tiles they pay
LONGEST = 5  # horizon
APART = 4  # the least where nobody may follow another one at once: a push takes a tick more for each agent pushed
TRACK_NS = 180  # of one thread, for each agent and track, in a pass
SHARE = 0.55  # of a step, that a pass may take
HEADLONG = (0.05, 0.2, 0.75)  # as IMPROVED, where agents may not follow: the part that does not avoid crowds
COLOURS = 4  # of squares that are searched one after the other
STEADY = 20  # steps that want another horizon, after which they get it
FULL = 0.38  # agents of free tiles, from which on they push
PACKED = 0.7  # agents of free tiles, from which on nobody has room for detours, and who is stuck goes last
STALLED = 8  # steps without coming nearer, after which an agent counts as stalled
JAM = 0.1  # the part of the agents that are, from which on they are jammed
JAM_STEPS = (64, 256, 1 << 62)  # how long these move by options the first time, the second time, from then on
NOBODY_LEADS = np.zeros(0, np.int64)
WAYS_SHARE = 0.5  # of the time that is left, for whole ways near lanes
SEARCH_SHARE = 4  # the search out of a deadlock may take a fourth of the memory limit


class Stepper:
    """The agents of a fleet, and how they move.

    paces, rules, state, progress: of the current agents; steps: since they were put there
    broken: (N,) uint8, who is not where the planner had it
    """

    def __init__(self, padded: PaddedMap, motion: Motion, settings: Settings):
        self._map, self._motion, self._settings = padded, motion, settings
        self.one_way = False  # are there moves that nobody may make? Then agents move by options alone
        self.crossing = 0  # ticks that have to be looked ahead to cross no-stopping zones; 0: there are none
        self.near = padded.near  # so far apart two agents are too near
        self.paces = Paces((speed_of(motion, settings),), motion, settings.least_horizon, padded.cols)
        near, plain = (padded.clearance, padded.layer), self._is_plain(self.paces)
        self.rules = Rules(*near, settings.following, settings.least_horizon, False, plain)
        model, memory = Model(motion.headings > 1, settings.following), settings.memory_limit_bytes // SEARCH_SHARE
        self._deadlocks = Deadlocks(padded.cols, model, memory)
        side = self._side = AREA_SIDE + 2 * (self.near + (settings.horizon or LONGEST))
        squares = [-(-(length + side - 1) // side) for length in (padded.rows, padded.cols)]
        one = len(padded.sizes) > 1 or padded.rows * padded.cols <= ONE_AREA  # layers are no squares beside each other
        self._squares = 1 if one else int(np.prod(squares))
        self.clear()

    def _is_plain(self, paces):
        return self.near == 0 and self._settings.following and paces.one_tick

    def clear(self):
        """There are no agents any more."""
        self.steps = self.passes = 0
        self._pace = 0.0  # of PACES, on average of the last STEADY steps
        self._deadlocks.forget()
        self._window: Window | None = None
        self._since = self._jammed_until = self._unlike = 0
        self._packed = False
        self._pockets: tuple[np.ndarray, Pockets] | None = None  # of which free tiles
        self._leaving = np.zeros(0, bool)  # who is to leave a dead end
        self._jams = 0
        self.set_agents(*(np.zeros(0, np.int32) for _ in range(3)))

    def set_agents(self, tiles: np.ndarray, headings: np.ndarray, tables: np.ndarray):
        """Replace all agents, by (N,) tiles, headings and tables of `paces`."""
        n, options = len(tiles), self.paces.options
        zero, none = np.zeros(n), np.full(n, -1)
        fields = tiles, headings, tiles, tables, none, none, zero + 1, zero, zero, tiles, headings, zero + 1
        agents = Agents(*(np.array(values, np.int32) for values in fields))
        reserved = np.full((self._map.rows * self._map.cols, self.rules.horizon + 1), NOBODY, np.int32)
        plans = Plans(options.stay[tables].astype(np.int32), np.zeros(n, np.int32), reserved)
        stacks = new_stacks(n, self._squares, min(n, DEEPEST) + 1)
        self.broken, self.progress = np.ones(n, np.uint8), priorities.new_progress(n)
        self.state = FleetState(agents, options, self.rules, new_ranked(n, options), plans, stacks)

    def take_paces(self, paces: Paces):
        """Allow the speeds of `paces`, which begins with the present ones."""
        before, self.paces, state = self.paces, paces, self.state
        agents, plans = state.agents, state.plans
        agents.table[:], plans.option[:] = before.moved(agents.table, plans.option, paces)
        self.state = state._replace(options=paces.options, ranked=new_ranked(len(agents.tile), paces.options))
        self.take_rules(self.rules._replace(plain=self._is_plain(paces)))

    def look_ahead(self, lanes: Lanes, budget_s: float) -> bool:
        """Choose the horizon for steps with so many seconds for options, where the settings do not say -> has it
        changed?"""
        horizon = self._horizon_for(lanes, budget_s)
        self._unlike = 0 if horizon == self.rules.horizon else self._unlike + 1
        soon = self.steps == 0 or horizon == self.crossing
        if self._unlike == 0 or (self._unlike < STEADY and not soon):
            return False
        self.paces, self.rules = self.paces.ahead(horizon), self.rules._replace(horizon=horizon)
        agents, options, tiles = self.state.agents, self.paces.options, len(self.state.plans.reserved)
        reserved = np.full((tiles, horizon + 1), NOBODY, np.int32)
        plans = Plans(options.stay[agents.table].astype(np.int32), np.zeros_like(agents.tile), reserved)
        ranked = new_ranked(len(agents.tile), options)
        self.state = self.state._replace(options=options, rules=self.rules, ranked=ranked, plans=plans)
        return True

    def _horizon_for(self, lanes, budget_s):
        count, free = np.count_nonzero(self.state.agents.there), np.count_nonzero(lanes.free)
        horizon = max(self._settings.least_horizon, self.crossing)
        if self.crossing:
            return horizon  # always: what is left of an option leads out of a zone
        simple = self._motion.headings > 1 and self.near == 0 and self.paces.one_tick  # others have too many options
        if self._settings.horizon or not simple or not count:
            return horizon
        if not self._settings.following:
            horizon = max(horizon, APART)
        threads = min(get_num_threads(), max(self._squares // COLOURS, 1)) if count >= SHARED_AGENTS else 1
        for longer, full in LONGER:
            least_ns = count * self.paces.ahead(longer).options.most_tracks * TRACK_NS / threads
            if count > full * free or least_ns > SHARE * 1e9 * budget_s:
                break
            horizon = max(horizon, longer)
        return horizon

    def take_rules(self, rules: Rules):
        self.rules, self.state = rules, self.state._replace(rules=rules)

    def move(
        self, engine, lanes: Lanes, parts: np.ndarray, room: np.ndarray, until: float, in_time: bool
    ) -> np.ndarray:
        """Move agents whose options are ranked by one tick. until: of time.perf_counter(); in_time: must it end then?

        engine: CpuFleet or CudaFleet, which has the fields
        parts, room: (tiles,) of `parts_of` and `crowd_around` the free tiles -> (N,) int32 actions
        """
        agents, progress = self.state.agents, self.progress
        self._packed = bool(np.count_nonzero(agents.there) > PACKED * np.count_nonzero(lanes.free))
        nothing_to_do = priorities.idle(agents, parts) | (agents.slot < 0)
        self._note_pace(nothing_to_do, lanes.unit)
        priorities.note(agents, progress, nothing_to_do, lanes.unit)
        self._leaving = np.zeros(len(agents.tile), bool)
        if self._packed and not self.rules.holding:
            hindered = progress.stalled > priorities.HINDERED
            self._leaving = self._pockets_of(lanes).leaving(agents, nothing_to_do, hindered)
        by_paths, leading = self._has_windows(nothing_to_do, lanes, until), NOBODY_LEADS
        if self.near == 0 and self.paces.one_tick and not self.one_way:
            state = agents, progress, nothing_to_do, self.broken, lanes.free, self.steps
            until_ns = clock_ns() + int(WAYS_SHARE * 1e9 * max(0.0, until - time.perf_counter())) if in_time else 0
            leading = self._deadlocks.leading(*state, until_ns, by_paths or self._packed)
        if by_paths and not len(leading):
            values, order = engine.host_fields(agents.slot), self._order(nothing_to_do, NOBODY_LEADS)
            action = self._move_by_paths(values, lanes, order, until)
        else:
            action = self._move_by_options(lanes, nothing_to_do, room, until, leading)
        self.broken[:] = 0
        agents.still[agents.still == BUSY] = 0
        progress.since[:] += 1
        progress.since[(agents.tile == agents.goal) | (agents.goal < 0)] = 0
        self.steps += 1
        return action

    def _pockets_of(self, lanes):
        if self._pockets is None or self._pockets[0] is not lanes.free:
            self._pockets = lanes.free, pockets_of(lanes.free, lanes.width)
        return self._pockets[1]

    def _note_pace(self, nothing_to_do, unit):
        """Before `priorities.note`: find how fast agents with the same goals as a step ago come nearer to them."""
        before, agents = self.progress, self.state.agents
        same = (agents.goal == before.goal) & (before.changed == 0) & ~nothing_to_do
        if same.any():
            self._pace += (np.mean((before.left - agents.left)[same]) / unit - self._pace) / STEADY

    def _move_by_options(self, lanes, nothing_to_do, room, until, leading):
        """`move` by options of a few ticks. leading: (K,) int agents that go first"""
        agents, progress = self.state.agents, self.progress
        self._window = None
        order = self._order(nothing_to_do, leading)
        self.state.plans.reserved.fill(NOBODY)
        with one_thread(len(agents.tile) < SHARED_AGENTS):
            self._make_room(order, nothing_to_do, lanes, room)
            self._deadlocks.lead(agents, self.state.options, self.state.ranked)
            inherit(self.broken, lanes.free, *self.state)
            if self.broken.any():
                settle(self.broken, self.state)
            self._pass(order, False, None)
            if self._settings.neighbourhood_search:
                self._improve(order, until)
        action = np.full(len(agents.tile), self._motion.wait, np.int32)
        stirred = priorities.restless(progress, self.steps)
        stirred[leading] = False
        advance(stirred, self._motion.headings, self.paces.ticks, self.paces.rests, self.state, action)
        self._deadlocks.follow()
        return action

    def may_plan_paths(self, lanes: Lanes) -> bool:
        """Are agents such that they plan whole paths where there is time?"""
        count, free = np.count_nonzero(self.state.agents.there), np.count_nonzero(lanes.free)
        plain = self.near == 0 and self.paces.one_tick and not self.rules.holding and not self.one_way
        few = 0 < count <= min(MOST_WINDOWS, FULL * free)
        fits = lanes.free.size * (WINDOW + 1) * 4 <= self._settings.memory_limit_bytes // SEARCH_SHARE
        return bool(plain and few and fits and self._jams < len(JAM_STEPS) and self._settings.neighbourhood_search)

    def _has_windows(self, nothing_to_do, lanes, until):
        """Is there time for whole paths, and do they lead on? Where agents jam, options push better."""
        in_time = until - time.perf_counter() > LEAST_S / 2
        if not in_time or self.steps < self._jammed_until or not self.may_plan_paths(lanes):
            return False
        jammed = np.count_nonzero((self.progress.stalled > STALLED) & ~nothing_to_do)
        if self._window is None or self.steps - self._since < 2 * STALLED or jammed <= JAM * len(nothing_to_do):
            return True
        self._window, self._jammed_until = None, self.steps + JAM_STEPS[self._jams]
        self._jams += 1
        return False

    def _move_by_paths(self, values, lanes, order, until):
        """`move` by whole paths."""
        agents, there = self.state.agents, self.state.agents.there > 0
        if self._window is None or len(self._window.cost) != len(agents.tile):
            self._window, self._since = new_window(agents, lanes.free.size, lanes.headings), self.steps
            self.broken[:] = 1
        stands = ((agents.still > 0) | (self.broken > 0)).astype(np.uint8)
        go_on(stands, lanes.free, agents, self._window)
        until_ns = clock_ns() + int(1e9 * (until - time.perf_counter()))
        ways = agents, values, lanes, self.rules, self._window
        improve(order, self.progress.stalled, self.steps, until_ns, *ways)
        tile, heading = np.where(there, self._window.tile[:, 1], agents.tile), self._window.heading[:, 1]
        action = np.full(len(there), self._motion.wait, np.int32)
        moved, turn = tile != agents.tile, (heading - agents.heading) % 4
        if self._motion.headings == 1:
            steps = np.array([1, lanes.width, -1, -lanes.width])
            action[moved] = ((tile - agents.tile)[moved][:, None] == steps).argmax(axis=1)
        else:
            action[there & (turn != 0)] = np.where(turn == 1, 1, 2)[there & (turn != 0)]
            action[moved] = FORWARD
        agents.tile[there], agents.heading[there], agents.origin[there] = tile[there], heading[there], tile[there]
        self.state.plans.option[:] = self.paces.options.stay[agents.table]
        return action

    def _order(self, nothing_to_do, leading):
        """(K,) int32 agents on the map by priority; sets their ranks and weights."""
        stacks, holding = self.state.stacks, self.rules.holding
        given = nothing_to_do, self._leaving, self.steps, holding, self._packed
        order = priorities.order_of(self.state.agents, self.progress, *given)
        order = np.r_[leading, order[~np.isin(order, leading)]].astype(np.int32)
        count = len(order)
        stacks.rank[order] = np.arange(count)
        share = (count - np.arange(count)) / (count + 1)
        skew = np.interp(self._pace, PACES, SKEWS)
        stacks.weight[order] = np.maximum((FINEST * share**skew).astype(np.int64), 1)
        return order

    def _make_room(self, order, nothing_to_do, lanes, room):
        """Low-priority agents avoid crowds; where it is not packed, stalled agents detour, except the first 1/200."""
        agents, n = self.state.agents, len(order)
        obeying = (agents.there > 0) & (agents.still == 0)
        wish = priorities.wishes(self.progress, self.steps, lanes.unit)
        wish[order[: -(-n // priorities.LOTS)]] = wish[~obeying] = 0
        if self._packed:
            wish[:] = 0
            goes = np.flatnonzero(self._leaving & nothing_to_do & obeying)
            wish[goes] = self._pockets_of(lanes).way_out(agents.tile[goes], lanes)
        minding = obeying & (agents.slot >= 0) & ~nothing_to_do
        minding[self._first(order, IMPROVED if self._settings.following else HEADLONG)] = False
        if self.rules.holding or not self._settings.avoid_crowds:
            minding[:] = False
        if minding.any() or wish.any():
            taken = np.zeros(lanes.free.size, np.int32)
            taken[agents.tile[obeying]] = (self.near + 1) ** 2
            taken = priorities.crowd_around(taken, self._map.cols)
            priorities.keep_away(minding, wish, taken, room, lanes, agents, self.state.options, self.state.ranked)

    def _first(self, order, parts=IMPROVED):
        """The first of an order, the part of it that `parts` says for the present pace."""
        return order[: math.ceil(np.interp(self._pace, PACES, parts) * len(order))]

    def _improve(self, order, until):
        """Let the first agents of an order look for better options until the time is over."""
        rng, first = np.random.default_rng(self.steps), self._first(order)
        parts = max(1, len(first) // AT_ONCE) if self._squares == 1 else 1
        while True:
            for some in np.array_split(rng.permutation(first), parts):
                if time.perf_counter() >= until:
                    return
                self._pass(some, True, until)

    def _pass(self, order, improving, until):
        """Let agents (N,), in this order, look for better options, square by square. Squares lie elsewhere each time"""
        self.passes += 1
        rows, cols, side = self._map.rows, self._map.cols, self._side
        shift = self.passes * 37 % side, self.passes * 53 % side
        many = [-(-(length + by) // side) for length, by in zip((rows, cols), shift)]
        margin = (side - self.near) // 2 - self.rules.horizon
        if self._squares == 1:
            many, shift, side, margin = [1, 1], (0, 0), max(rows, cols), 0
        by_square = np.empty_like(order), np.zeros(many[0] * many[1] + 1, np.int32)
        squares = side, margin, *many, -shift[0], -shift[1], cols
        common = epibt.Pass(self.passes, improving, *by_square, *squares)
        epibt.sort_by_square(order, self.state.agents.tile, common)
        for colour in range(COLOURS):
            epibt.pass_over(common, colour, *self.state)
            if until is not None and time.perf_counter() >= until:
                return
