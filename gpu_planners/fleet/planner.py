"""FleetPlanner: agents on one map that never collide."""

import math
import time

import numpy as np
from numpy.typing import ArrayLike

from ..device import refuse_forked, resolve_device, told_if_slow
from ..errors import GridMapError, SettingsError, shown
from ..grid.checks import number, whole
from ..grid.maps.grid_map import GridMap
from ..parallel.threads import one_thread
from . import crowding, oneshot, stepper
from .arguments import checked_grid, checked_headings, checked_numbers, checked_tiles
from .clock import deadline_after, pieces
from .cpu import CpuFleet
from .deadlock import Deadlocks
from .fields import FieldStore
from .guidance import GUIDANCE, Guidance
from .instance import Model
from .layout import footprint_free, lanes_of
from .motion import MOTIONS, Motion
from .plan import FleetPlan
from .priorities import LOTS, idle, new_progress, note, order_of, order_of_holders, restless, wishes
from .repair import Change
from .settings import Settings
from .speeds import Paces, checked_speeds, speed_of
from .state import NOBODY, Agents, Plans, Ranked, Rules
from .ways import Ground, ground_of

LONGEST_STEP = 86_400.0  # seconds
DEEPEST = 1024  # agents that push each other in a row
SHARED_AGENTS = 2048  # fewer are moved on one thread: others take long to wake up
AREA_SIDE = 32  # tiles of the squares that are searched side by side, and twice as far as agents go
ONE_AREA = 1 << 12  # tiles of maps that are not cut
FINEST, SKEW = 1 << 30, 6  # of weights, which fall with the place in the order of priorities, to this power
IMPROVED = 0.5  # of the agents, the first ones by priority, look for something better; the others avoid crowds
MOST_VISITS = 10  # of an agent in a pass
SEARCH_SHARE = 4  # of the memory limit, for the search out of a deadlock: a fourth
FIELD_NS = 60  # that a state of a field takes


class FleetPlanner:
    """Moves many agents on one map, so that no two are ever on one tile or change places.

    grid: GridMap; agents move to the four neighbours of a tile, whatever its connectivity is
    motion: "four" (east, south, west, north, wait) or "turning" (an agent has a heading; forward, clockwise,
        counter-clockwise, wait)
    device: "auto", "cpu", "cuda" or "cuda:N"
    settings: fleet.Settings; None: its defaults
    guidance: fleet.Guidance; None: as the settings say

    Raises GridMapError, SettingsError, DeviceError. Not for several threads at once. A pickled planner comes back on
    the CPU and without agents; `on` makes one for another device.
    """

    def __init__(
        self,
        grid: GridMap,
        motion: str = "four",
        device: str = "auto",
        settings: Settings | None = None,
        guidance: Guidance | None = None,
    ):
        checked_grid(grid)
        if not isinstance(motion, str) or motion not in MOTIONS:
            raise SettingsError(f"motion is {shown(motion)}: use one of {', '.join(MOTIONS)}")
        if settings is not None and not isinstance(settings, Settings):
            raise SettingsError(f"settings of a fleet are a fleet.Settings, not a {type(settings).__name__}")
        self.device: str = resolve_device(device)
        self.settings = settings or Settings()
        self.motion: Motion = MOTIONS[motion]
        self.grid = grid
        self._ground: tuple[Ground, np.ndarray, np.ndarray] | None = None
        self._given_guidance, self._own_guidance = guidance, guidance is not None
        guidance = GUIDANCE[self.settings.guidance](grid) if guidance is None else guidance
        self._guidance = self._fit(guidance, grid)
        self._open()

    def __reduce__(self) -> tuple:
        return FleetPlanner, (self.grid, self.motion.name, "cpu", self.settings, self._given_guidance)

    def on(self, device: str) -> "FleetPlanner":
        """A planner of the same map by the same rules on another device, without agents; this one where that is its own
        device. Raises DeviceError."""
        if resolve_device(device) == self.device:
            return self
        return FleetPlanner(self.grid, self.motion.name, device, self.settings, self._given_guidance)

    # ------------------------------------------------------------------------------------------------ the map

    def _open(self):
        """Take the map and make what depends on its layout."""
        s = self.settings
        self._near = s.size - 1 + s.safety_distance  # so far apart two agents are too near, in rows and in columns
        self._pad = max(1, self._near)
        self._rows, self._cols = self.grid.rows + 2 * self._pad, self.grid.cols + 2 * self._pad
        self._paces = Paces((speed_of(self.motion, s),), self.motion, s.horizon, self._cols)
        span = np.arange(-self._near, self._near + 1)
        near = (span[:, None] * self._cols + span).ravel()
        near = np.array(near[np.argsort(np.abs(near))], np.int32)
        self._rules = Rules(near, s.following, s.horizon, False, self._is_plain(self._paces))
        model = Model(self.motion.headings > 1, s.following)
        self._deadlocks = Deadlocks(self._cols, model, s.horizon, s.memory_limit_bytes // SEARCH_SHARE)
        self._number, self._steps = 0, 0
        self._waited: np.ndarray | None = None  # by tile, since costs were adapted last
        self._crowds: np.ndarray | None = None
        self._set_agents(*(np.zeros(0, np.int32) for _ in range(3)))
        self._take_lanes()

    def _is_plain(self, paces):
        return self._near == 0 and self.settings.following and paces.one_tick

    def _lanes_without_agents(self):
        return lanes_of(self.grid, self.motion, self.settings.size, self._guidance, self._pad)

    def _lanes_now(self):
        """`Lanes` of the map, the guidance and the crowds as they are now; agents that stand for good are obstacles."""
        guidance = self._guidance if self._crowds is None else self._guidance.with_crowds(self._crowds)
        lanes, agents = lanes_of(self.grid, self.motion, self.settings.size, guidance, self._pad), self._agents
        stand = np.flatnonzero((agents.still > 0) & (agents.there > 0))
        lanes.free[agents.tile[stand]] = lanes.free[agents.origin[stand]] = 0
        return lanes

    def _take_lanes(self, lanes=None):
        """Take the map and guidance as they are now; fields are planned anew when they are needed."""
        self._lanes = lanes or self._lanes_now()
        self._room: np.ndarray | None = None
        self._parts: np.ndarray | None = None
        self._engine = self._open_engine()
        field_bytes = self._lanes.free.size * self.motion.headings
        self._fields = FieldStore(self._engine, field_bytes, self.settings.memory_limit_bytes)
        self._agents.goal[:] = self._agents.slot[:] = -1
        self._progress.changed[:] = 1

    def _parts_of_map(self):
        """(tiles,) int32 of tiles between which there are ways, 0 where a tile is blocked"""
        if self._parts is None:
            from scipy.ndimage import label

            self._parts = label(self._lanes.free.reshape(self._rows, self._cols))[0].astype(np.int32).ravel()
        return self._parts

    def _cut_off(self, goals):
        """(N,) tiles -> (N,) bool, does no way lead an agent to its goal, or beside it where it is blocked?"""
        parts = self._parts_of_map()
        here, near = parts[self._agents.tile], np.array([0, 1, -1, self._cols, -self._cols])
        around = parts[np.where(goals < 0, self._pad * self._cols + self._pad, goals)[:, None] + near]
        around[around[:, 0] > 0, 1:] = 0
        return (here > 0) & (around != here[:, None]).all(axis=1)

    def _open_engine(self):
        if self.device == "cpu":
            return CpuFleet(self._lanes, self._paces.options, self._rules)
        from .cuda import CudaFleet

        return CudaFleet(self._lanes, self._paces.options, self._rules, self.device)

    @property
    def guidance(self) -> Guidance:
        """What moves cost to agents that look for their ways; may be set between steps.

        Raises GridMapError for guidance of another map's shape.
        """
        return self._guidance

    @guidance.setter
    def guidance(self, guidance: Guidance):
        self._guidance, self._own_guidance = self._fit(guidance, self.grid), True
        self._given_guidance = guidance
        self._take_lanes()

    def _fit(self, guidance, grid):
        """A guidance of a map, in finer units where crowds will add to them."""
        if not isinstance(guidance, Guidance):
            raise GridMapError(f"guidance is a {type(guidance).__name__}; allowed: a fleet.Guidance")
        if guidance.moves.shape[:2] != grid.shape:
            raise GridMapError(f"guidance is for a map of {guidance.moves.shape[:2]} tiles; this one has {grid.shape}")
        return guidance.finer() if self.settings.adapt_every else guidance

    def _tiles(self, places):
        """(N, 2) [row, col] -> (N,) int32 tiles of the padded map"""
        return ((places[:, 0] + self._pad) * self._cols + places[:, 1] + self._pad).astype(np.int32)

    def _places(self, tiles):
        """(N,) tiles of the padded map -> (N, 2) int32 [row, col]"""
        return np.stack([tiles // self._cols - self._pad, tiles % self._cols - self._pad], axis=1).astype(np.int32)

    # ------------------------------------------------------------------------------------------------ agents

    def _set_agents(self, tiles, headings, tables):
        """Put agents (N,) in place of those there are; the paces know their tables."""
        n, options = len(tiles), self._paces.options
        zero, none = np.zeros(n), np.full(n, -1)
        fields = tiles, headings, tiles, tables, none, none, zero + 1, zero, zero, tiles, headings, zero + 1
        self._agents = Agents(*(np.array(values, np.int32) for values in fields))
        self._broken = np.ones(n, np.uint8)
        self._progress = new_progress(n)
        self._make_ranked()
        held = np.full((self._rows * self._cols, self._rules.horizon + 1), NOBODY, np.int32)
        self._plans = Plans(options.stay[tables].astype(np.int32), np.zeros(n, np.int32), held)
        stack = (np.zeros((1, min(n, DEEPEST) + 1), np.int32) for _ in range(4))
        self._search = stepper.Search(
            *stack,
            np.zeros(n, np.uint8),
            np.zeros(n, np.int32),
            np.zeros(n, np.int64),
            np.zeros(n, np.int32),
            np.ones(n, np.int64),
            MOST_VISITS,
        )

    def _make_ranked(self):
        n, most = len(self._agents.tile), self._paces.options.most_tracks
        self._ranked = Ranked(np.zeros(n, np.int32), *(np.zeros((n, most), np.int32) for _ in range(2)))

    def _take_paces(self, paces):
        """Let agents have the speeds that `paces` knows; those that there are keep theirs."""
        if paces is self._paces:
            return
        before, agents, plans = self._paces, self._agents, self._plans
        agents.table[:], plans.option[:] = before.moved(agents.table, plans.option, paces)
        self._paces, self._rules = paces, self._rules._replace(plain=self._is_plain(paces))
        self._make_ranked()
        self._engine.take_options(paces.options, self._rules)

    def start(self, starts: ArrayLike, headings: ArrayLike | None = None, speeds: ArrayLike | None = None):
        """Put agents on the map, in place of those there are.

        starts: (N, 2) int [row, col]; headings: (N,) int, 0 east, 1 south, 2 west, 3 north; None: all face east
        speeds: (N, 2) int ticks that a move and a quarter turn of each agent take; None: as the settings say

        Raises GridMapError, which names the agent, where a start is no free tile or two agents are too near.
        """
        refuse_forked()
        places, faces, paces = self._checked(starts, headings, speeds)
        changed = self._crowds is not None or (self._agents.still > 0).any()  # by the agents before these
        lanes = self._lanes
        if changed:
            lanes = self._lanes_without_agents()
        self._refuse_bad(places, len(places), lanes.free)
        self._number, self._steps, self._waited, self._crowds = 0, 0, None, None
        self._deadlocks.forget()
        self._set_agents(*(np.zeros(0, np.int32) for _ in range(3)))
        self._take_paces(self._paces.only(paces))
        self._set_agents(self._tiles(places), faces, self._paces.tables(paces))
        if changed:
            self._take_lanes(lanes)

    def _checked(self, starts, headings, speeds):
        """-> (N, 2) int64 [row, col], (N,) int32 headings, (N, 2) int32 ticks"""
        places = checked_tiles(starts, "starts")
        faces = checked_headings(headings, len(places), self.motion.headings)
        return places, faces, checked_speeds(speeds, len(places), self.motion, self.settings)

    def _refuse_outside(self, places, numbers):
        inside = ((places >= 0) & (places < self.grid.shape)).all(axis=1)
        if not inside.all():
            k = int(np.argmin(inside))
            rows, cols = self.grid.shape
            raise GridMapError(f"agent {numbers[k]} is at {places[k].tolist()}, outside the {rows} x {cols} map")

    def _refuse_bad(self, places, new, free_tiles):
        """Raise where one of the first `new` places is no place for an agent, or is too near to another one.

        free_tiles: of lanes
        """
        self._refuse_outside(places[:new], np.arange(new))
        tiles = self._tiles(places)
        free = free_tiles[tiles[:new]] > 0
        if not free.all():
            agent = int(np.argmin(free))
            raise GridMapError(f"agent {agent} is at {places[agent].tolist()}, which is blocked or too near to it")
        order = np.argsort(tiles, kind="stable")
        ordered = tiles[order]
        for offset in self._rules.near:
            low = np.searchsorted(ordered, tiles[:new] + offset, "left")
            high = np.searchsorted(ordered, tiles[:new] + offset, "right")
            for a in np.flatnonzero(high > low + (offset == 0)):
                b = next(int(b) for b in order[low[a] : high[a]] if b != a)
                where = f"{places[a].tolist()} and {places[b].tolist()}"
                raise GridMapError(f"agent {a} of those that start is too near to another one: {where}")

    @staticmethod
    def _same_tile(tiles):
        """A pair of places in an array of tiles that are the same tile, or None."""
        order = np.argsort(tiles, kind="stable")
        same = np.flatnonzero(np.diff(tiles[order]) == 0)
        return order[same[0] : same[0] + 2] if len(same) else None

    def add(self, starts: ArrayLike, headings: ArrayLike | None = None, speeds: ArrayLike | None = None) -> np.ndarray:
        """Put more agents on the map, between steps; takes and raises what `start` does -> (K,) int their numbers"""
        refuse_forked()
        places, faces, paces = self._checked(starts, headings, speeds)
        before, n = self._agents, len(self._agents.tile)
        taken = np.unique(np.concatenate([before.tile[before.there > 0], before.origin[before.there > 0]]))
        self._refuse_bad(np.concatenate([places, self._places(taken)]), len(places), self._lanes.free)
        self._take_paces(self._paces.also(paces))
        kept = *before, *self._progress, self._plans.option, self._broken
        tables = np.r_[before.table, self._paces.tables(paces)]
        self._set_agents(np.r_[before.tile, self._tiles(places)], np.r_[before.heading, faces], tables)
        for old, new in zip(kept, (*self._agents, *self._progress, self._plans.option, self._broken)):
            new[:n] = old
        return np.arange(n, len(self._agents.tile))

    def remove(self, agents: ArrayLike):
        """Take agents off the map. agents: (K,) int numbers, which are not given again

        Raises GridMapError for a number that no agent has, or that comes twice; nothing has changed then.
        """
        numbers = checked_numbers(agents, "agents", self._agents.there)
        once, count = np.unique(numbers, return_counts=True)
        if len(once) < len(numbers):
            raise GridMapError(f"agents names {once[count > 1][0]} more than once; allowed: each agent once")
        self._agents.there[numbers] = 0
        self._agents.goal[numbers] = self._agents.slot[numbers] = -1
        self._progress.since[numbers] = 0
        stood = self._agents.still[numbers].any()
        self._agents.still[numbers] = 0
        if stood:
            self._follow_map()

    def observe(self, positions: ArrayLike, headings: ArrayLike | None = None, still: ArrayLike = ()):
        """Say where agents really are, before a step. Who is not where the planner had it stands for a tick.

        positions: (N, 2) int [row, col]; a negative row: nothing is known of it, it is taken to be where it was
        headings: (N,) int; None: those that the planner has
        still: (K,) int numbers of agents that do not move, whatever they are told (broken down, lost); all others do

        Raises GridMapError where two agents are on one tile, or one is outside the map, or `still` names one that is
        not there; nothing has changed then.
        """
        agents, stay = self._agents, self._paces.options.stay
        places = checked_tiles(positions, "positions")
        if len(places) != len(agents.tile):
            raise GridMapError(f"positions has {len(places)} rows; allowed: {len(agents.tile)}, one for each agent")
        seen = (places[:, 0] >= 0) & (agents.there > 0)
        places = np.where(seen[:, None], places, self._places(agents.tile))
        faces = (
            agents.heading.copy() if headings is None else checked_headings(headings, len(places), self.motion.headings)
        )
        there = np.flatnonzero(agents.there)
        self._refuse_outside(places[there], there)
        tiles = self._tiles(places)
        pair = self._same_tile(tiles[there])
        if pair is not None:
            a, b = there[list(pair)]
            raise GridMapError(f"agents {a} and {b} are both at {places[a].tolist()}")
        stands = np.zeros(len(places), np.uint8)
        stands[checked_numbers(still, "still", agents.there)] = 1
        off = seen & ((tiles != agents.tile) | (faces != agents.heading))
        self._broken[off] = self._progress.changed[off] = 1
        agents.tile[off] = agents.origin[off] = tiles[off]
        agents.heading[off] = faces[off]
        agents.table[off] -= agents.table[off] % self._paces.rests
        self._broken[stands > agents.still] = 1
        stay_now = off | (agents.still > 0)
        self._plans.option[stay_now] = stay[agents.table[stay_now]]
        agents.fresh[off | (agents.still > stands)] = 1
        stood = agents.still.astype(bool)
        agents.still[:] = stands
        if (stands != stood).any() or off[stood].any():
            self._follow_map()

    def update(self, rows: ArrayLike, cols: ArrayLike, costs: ArrayLike):
        """Change tiles, between steps; takes and raises what `GridMap.changed` does. Fields are repaired.

        An agent on a tile that is blocked may leave it.
        """
        grid, guidance = self.grid.changed(rows, cols, costs), self._guidance
        if self.settings.guidance == "plain" and not self._own_guidance:
            guidance = self._fit(Guidance.plain(grid), grid)
        self.grid, self._guidance, self._ground = grid, guidance, None
        self._follow_map()

    def _follow_map(self):
        """Let fields and agents follow a map that has changed; agents that stand for good are obstacles."""
        crowds, self._crowds = self._crowds, None
        before, after = self._lanes, self._lanes_now()
        if (before.forward != after.forward).any() or crowds is not None:
            self._take_lanes(after)
        else:
            part = self._parts_of_map()
            blocked, freed = (
                np.flatnonzero(one.free > other.free).astype(np.int32)
                for one, other in ((before, after), (after, before))
            )
            self._fields.repair(Change(blocked, freed, before.free, after.free, part))
            self._engine.take_map(after)
            self._lanes, self._room, self._parts = after, None, None
            self._agents.fresh[:] = self._progress.changed[:] = 1
        stepper.find_blocked(self._broken, self._agents, self._paces.options, self._lanes.free, self._plans)

    @property
    def memory_bytes(self) -> int:
        """Memory of the fields."""
        return self._fields.memory_bytes

    @property
    def stuck(self) -> np.ndarray:
        """(K,) int agents that have been on the way to a goal for longer than `stuck_after` steps."""
        return np.flatnonzero(self._progress.since > self.settings.stuck_after)

    # ------------------------------------------------------------------------------------------------ steps

    @property
    def positions(self) -> np.ndarray:
        """(N, 2) int32 [row, col] where agents are, or what they move to."""
        return self._places(self._agents.tile)

    @property
    def headings(self) -> np.ndarray:
        """(N,) int32"""
        return self._agents.heading.copy()

    def step(self, goals: ArrayLike, budget_s: float = 0.0) -> np.ndarray:
        """Move every agent by one tick; the planner takes for granted that they do so (else: `observe`).

        goals: (N, 2) int [row, col] of every agent, or a negative row where it has none; an agent that is at its goal
            when a step begins stays there unless others need the place; one whose goal is blocked goes beside it, one
            whose goal is cut off stands, and both make way for others
        budget_s: seconds that may be used to make the step better than its first solution, which is always found

        -> (N,) int actions: of "turning" 0 forward, 1 clockwise, 2 counter-clockwise, 3 wait; of "four" 0 east, 1
        south, 2 west, 3 north, 4 wait. An agent that goes on with an action that takes longer waits.

        Raises GridMapError, SettingsError; nothing has moved then.
        """
        began = time.perf_counter()
        refuse_forked()
        until = began + number("budget_s", budget_s, 0.0, LONGEST_STEP, " seconds", SettingsError)
        with told_if_slow(f"fleets for {self.device}"):
            return self._step(goals, until)

    def _step(self, goals, until):
        self._take_goals(goals)
        agents, options, rules, ranked, plans, search = (
            self._agents,
            self._paces.options,
            self._rules,
            self._ranked,
            self._plans,
            self._search,
        )
        n = len(agents.tile)
        self._engine.rank(agents, ranked)
        nothing_to_do = idle(agents, self._parts_of_map())
        note(agents, self._progress, nothing_to_do, self._lanes.unit)
        if rules.holding:
            order = order_of_holders(agents, self._progress)
        else:
            order = order_of(agents, self._progress, nothing_to_do, self._steps)
        leading = self._leading(nothing_to_do)
        order = np.r_[leading, order[~np.isin(order, leading)]].astype(np.int32)
        count = len(order)
        search.rank[order] = np.arange(count)
        share = (count - np.arange(count)) / (count + 1)
        search.weight[order] = np.maximum((FINEST * share**SKEW).astype(np.int64), 1)
        plans.held.fill(NOBODY)
        with one_thread(n < SHARED_AGENTS):
            self._make_room(order, nothing_to_do)
            self._deadlocks.lead(agents, options, ranked)
            stepper.inherit(self._broken, agents, options, rules, ranked, plans)
            if self._broken.any():
                stepper.settle(self._broken, agents, options, rules, plans)
            self._pass(order, False, None)
            if self.settings.neighbourhood_search:
                self._improve(order, until)
        action = np.full(n, self.motion.wait, np.int32)
        stirred = restless(self._progress, self._steps)
        stirred[leading] = False
        stepper.advance(
            stirred, agents, options, self.motion.headings, self._paces.ticks, self._paces.rests, plans, action
        )
        self._broken[:] = 0
        self._deadlocks.follow()
        if self.settings.adapt_every:
            self._adapt()
        self._progress.since[:] += 1
        self._progress.since[(agents.tile == agents.goal) | (agents.goal < 0)] = 0
        self._steps += 1
        return action

    def _leading(self, nothing_to_do):
        """(K,) int agents that go first, since they follow a plan that leads out of a deadlock."""
        if self._near or not self._paces.one_tick:
            return np.zeros(0, np.int64)
        return self._deadlocks.leading(
            self._agents, self._progress, nothing_to_do, self._broken, self._lanes.free, self._steps
        )

    def _improve(self, order, until):
        """Let the first agents of an order look for something better until the time is over."""
        rng, first = np.random.default_rng(self._steps), order[: math.ceil(IMPROVED * len(order))]
        while time.perf_counter() < until:
            self._pass(rng.permutation(first), True, until)

    def _make_room(self, order, nothing_to_do):
        """Let the last agents of an order keep away from crowds, and those that get no nearer go elsewhere for a while,
        but for the first ones."""
        agents, lanes, n = self._agents, self._lanes, len(order)
        obeying = (agents.there > 0) & (agents.still == 0)
        wish = wishes(self._progress, self._steps, lanes.unit)
        wish[order[: -(-n // LOTS)]] = wish[~obeying] = 0
        minding = obeying & (agents.slot >= 0) & ~nothing_to_do
        minding[order[: math.ceil(IMPROVED * n)]] = False
        if self._rules.holding or not self.settings.avoid_crowds:
            minding[:] = False
        if not (minding.any() or wish.any()):
            return
        if self._room is None:
            self._room = crowding.around(lanes.free.reshape(self._rows, self._cols).astype(np.int32)).ravel()
        taken = np.zeros(lanes.free.size, np.int32)
        taken[agents.tile[obeying]] = (self._near + 1) ** 2
        taken = crowding.around(taken.reshape(self._rows, self._cols)).ravel()
        crowding.keep_away(minding, wish, taken, self._room, lanes, agents, self._paces.options, self._ranked)

    # ------------------------------------------------------------------------------------------------ whole plans

    def solve(
        self,
        starts: ArrayLike,
        goals: ArrayLike,
        time_limit_s: float = 10.0,
        seed: int = 0,
        headings: ArrayLike | None = None,
        assign: bool = False,
        speeds: ArrayLike | None = None,
    ) -> FleetPlan:
        """Plan ways of agents from their starts to their goals, where they stay. Those of `start` are no part of it.

        starts: (N, 2) int [row, col]
        goals: (N, 2) int, one for each agent; or (2,), one sink for all, where agents leave the map, one in a step; or,
            with `assign`, (M, 2), M >= N parking tiles, any one for each agent
        time_limit_s: seconds for all; what a first plan leaves of them makes it better
        headings: (N,) int, 0 east, 1 south, 2 west, 3 north; None: all face east
        speeds: (N, 2) int ticks that a move and a quarter turn of each agent take; None: as the settings say

        -> FleetPlan; an agent with a bad start or goal has a status that says so, and the others are planned. The plan
        is the same for the same seed, unless the time was over.

        Raises GridMapError, SettingsError.
        """
        refuse_forked()
        return oneshot.solve_for(self, starts, goals, time_limit_s, seed, headings, assign, speeds)

    def hold_goals(self):
        """From now on agents stay at their goals; whoever was at its goal longest ago has priority. Before `step`."""
        self._rules = self._rules._replace(holding=True)
        self._take_lanes()

    def ground(self) -> tuple[Ground, np.ndarray, np.ndarray]:
        """Of ways.ground_of, on the map as it is now, for agents of the settings' size; made when it is needed."""
        if self._ground is None:
            self._ground = ground_of(footprint_free(self.grid.costs > 0, self.settings.size))
        return self._ground

    def prepare(self, goals: ArrayLike, time_limit_s: float = math.inf, least: int = 1) -> np.ndarray:
        """Plan the fields of goals, as `step` takes them, so that it need not: as many as there is time for, and so
        many new ones at least.

        -> (N,) bool which goals have their fields; an agent without a goal needs none. Raises what `step` does.
        """
        refuse_forked()
        deadline = deadline_after(number("time_limit_s", time_limit_s, 0.0, math.inf, " seconds", SettingsError))
        least = whole("least", least, 0, 2**31 - 1)
        tiles = self._goal_tiles(goals)
        known = self._fields.known(tiles)
        new = np.unique(tiles[~known & (tiles >= 0)])
        each_ns, done = FIELD_NS * self._lanes.free.size * self.motion.headings, min(least, len(new))
        ready = np.r_[np.unique(tiles[known]), new[:done]]
        with told_if_slow(f"fleets for {self.device}"):
            self._fields.slots(ready)
            for begin, end in pieces(len(new) - done, deadline, each_ns):
                ready = np.r_[ready, new[done + begin : done + end]]
                self._fields.slots(ready)
        return np.isin(tiles, ready) | (tiles < 0)

    def steps_to_go(self, goals: ArrayLike) -> np.ndarray:
        """(N, 2) goals, as `step` takes them -> (N,) int32 what the way of each agent alone to its goal costs"""
        self._take_goals(goals)
        self._engine.rank(self._agents, self._ranked)
        return self._agents.left.copy()

    def _adapt(self):
        """Note who waits; now and then, let it count."""
        agents, every = self._agents, self.settings.adapt_every
        waits = (agents.there > 0) & (agents.goal >= 0) & (agents.tile != agents.goal)
        waits &= (agents.tile == agents.was_tile) & (agents.heading == agents.was_heading)
        if self._waited is None:
            self._waited = np.zeros(self.grid.shape)
        np.add.at(self._waited, tuple(self._places(agents.tile[waits]).T), 1.0)
        if (self._steps + 1) % every == 0:
            share, self._waited = self._waited / every, None
            self._crowds = share if self._crowds is None else (self._crowds + share) / 2
            self._lanes = self._lanes_now()
            self._engine.take_map(self._lanes)
            self._fields.forget_idle(self._agents.goal)

    def _pass(self, order, improving, until):
        """Let agents (N,), in this order, look for something better, square by square; each time the squares lie
        elsewhere."""
        self._number += 1
        side = AREA_SIDE + 2 * (self._near + self._rules.horizon)
        shift = self._number * 37 % side, self._number * 53 % side
        squares = [-(-(length + by) // side) for length, by in zip((self._rows, self._cols), shift)]
        margin = (side - self._near) // 2 - self._rules.horizon
        if self._rows * self._cols <= ONE_AREA:
            squares, shift, side, margin = [1, 1], (0, 0), max(self._rows, self._cols), 0
        areas = stepper.Areas(side, margin, *squares, -shift[0], -shift[1], self._cols)
        first, sorted_agents = np.zeros(squares[0] * squares[1] + 1, np.int32), np.empty_like(order)
        self._make_stacks(len(first) - 1)
        stepper.sort_by_area(order, areas, self._agents, first, sorted_agents)
        for colour in range(4):
            stepper.pass_over(
                sorted_agents, first, colour, self._number, improving, areas, self._agents, self._paces.options,
                self._rules, self._ranked, self._plans, self._search,
            )  # fmt: skip
            if until is not None and time.perf_counter() >= until:
                return

    def _make_stacks(self, areas):
        if len(self._search.agent) < areas:
            depth = min(len(self._agents.tile), DEEPEST) + 1
            stacks = {name: np.zeros((areas, depth), np.int32) for name in ("agent", "place", "before", "before_cost")}
            self._search = self._search._replace(**stacks)

    def _goal_tiles(self, goals):
        """(N, 2) goals, as `step` takes them -> (N,) int32 tiles, -1 where an agent has none"""
        agents = self._agents
        places = checked_tiles(goals, "goals")
        if len(places) != len(agents.tile):
            raise GridMapError(f"goals has {len(places)} rows; allowed: {len(agents.tile)}, one for each agent")
        none = (places[:, 0] < 0) | (agents.there == 0)
        inside = ((places >= 0) & (places < self.grid.shape)).all(axis=1)
        if not (inside | none).all():
            agent = int(np.argmin(inside | none))
            rows, cols = self.grid.shape
            raise GridMapError(
                f"the goal of agent {agent} is {places[agent].tolist()}, outside the {rows} x {cols} map"
            )
        return np.where(none, -1, self._tiles(np.where(none[:, None], 0, places))).astype(np.int32)

    def _take_goals(self, goals):
        agents, tiles = self._agents, self._goal_tiles(goals)
        changed = np.flatnonzero(tiles != agents.goal)
        agents.slot[:] = self._fields.slots(tiles)
        if not self._rules.holding:
            agents.slot[tiles == agents.tile] = -1  # who is there has nothing to do
        agents.slot[self._cut_off(tiles)] = -1  # its field leads nowhere
        agents.goal[:] = tiles
        agents.fresh[changed] = 1
