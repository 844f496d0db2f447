"""FleetPlanner: agents on one map that never collide."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numba import get_num_threads
from numpy.typing import ArrayLike

from ..arguments import instance, integers, number, refuse_rows, whole
from ..device import refuse_forked, resolve_device, told_if_slow
from ..errors import GridMapError, SettingsError, shown
from ..grid.maps.grid_map import GridMap
from ..parallel.team import NEVER
from ..parallel.threads import one_thread
from .arguments import all_sizes, checked_headings, checked_numbers, checked_sizes, checked_speeds, checked_tiles
from .clock import deadline_after
from .fields.cost_to_go import FAR
from .fields.distances import ANY, pair_costs
from .fields.lanes import PaddedMap, footprint_free, parts_of
from .fields.next_hops import Ground, ground_of
from .fields.one_way import OneWay
from .fields.store import FieldStore
from .guidance import GUIDANCE, Guidance, suited
from .motion import MOTIONS, Motion
from .plan import FleetPlan, oneshot
from .settings import Settings
from .step.cpu import CpuFleet
from .step.priorities import crowd_around
from .step.state import BUSY, STANDS
from .step.stepper import LEAST_S, Stepper
from .zones import LONGEST, Crossings, Zones, crossings

LONGEST_STEP = 86_400.0  # seconds
FIELDS_SHARE = 0.5  # of a step's budget, for the fields of new goals
SHARED_PAIRS = 512  # whose distances are found on several threads; fewer are on one
BARE = 50  # steps without time for whole paths, after which these are given up


class FleetPlanner:
    """Moves many agents on one map, so that no two are ever on one tile or change places.

    grid: GridMap; agents move to the four neighbours of a tile, whatever its connectivity is
    motion: "four" (east, south, west, north, wait) or "turning" (an agent has a heading; forward, clockwise,
        counter-clockwise, wait)
    device: "auto", "cpu", "cuda" or "cuda:N"
    settings: fleet.Settings; None: its defaults
    guidance: fleet.Guidance; None: as the settings say
    sizes: sides of the squares that agents may cover beside `size` of the settings, in tiles; an agent's tile is the
        middle one, an even side reaches farther down and right

    zones: fleet.Zones, where nobody may stop or go fast; None: there are none

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
        sizes: Sequence[int] = (),
        zones: Zones | None = None,
    ):
        instance("grid", grid, GridMap, "a GridMap", GridMapError)
        if not isinstance(motion, str) or motion not in MOTIONS:
            raise SettingsError(f"motion is {shown(motion)}: use one of {', '.join(MOTIONS)}")
        if settings is not None and not isinstance(settings, Settings):
            raise SettingsError(f"settings of a fleet are a fleet.Settings, not a {type(settings).__name__}")
        self.device: str = resolve_device(device)
        self.settings = settings or Settings()
        self.motion: Motion = MOTIONS[motion]
        self.grid = grid
        self._ground: tuple[Ground, np.ndarray, np.ndarray] | None = None
        self._given_guidance = guidance
        if guidance is None:
            guidance = suited(grid, 0) if self.settings.guidance == "auto" else GUIDANCE[self.settings.guidance](grid)
        self._guidance = self._fitting(guidance)
        self.sizes: tuple[int, ...] = all_sizes(self.settings, sizes)
        self._map = PaddedMap(grid.shape, self.sizes, self.settings.safety_distance)
        self._stepper = Stepper(self._map, self.motion, self.settings)
        self._waiting = np.zeros(0, bool)
        self._zones, self._crossings = self._checked_zones(zones, grid, self._stepper.paces)
        self._by_paths, self._bare = False, 0  # do agents plan whole paths? steps since there was time for them
        self._take_lanes()

    def __reduce__(self) -> tuple:
        return FleetPlanner, self._made_of("cpu")

    def _made_of(self, device):
        given = self._given_guidance, self.sizes, self._zones
        return self.grid, self.motion.name, device, self.settings, *given

    def on(self, device: str) -> "FleetPlanner":
        """A planner of the same map and rules on another device, without agents; this one if that is its own device.
        Raises DeviceError."""
        if resolve_device(device) == self.device:
            return self
        return FleetPlanner(*self._made_of(device))

    # ------------------------------------------------------------------------------------------------ the map

    def _lanes_now(self):
        """`Lanes` of the current map and guidance; agents that stand for good are obstacles."""
        lanes = self._lanes_of(self._guidance)
        agents = self._stepper.state.agents
        stand = np.flatnonzero((agents.still == STANDS) & (agents.there > 0))
        for first in range(0, lanes.free.size, self._map.layer):
            lanes.free[first + agents.tile[stand] % self._map.layer] = 0
            lanes.free[first + agents.origin[stand] % self._map.layer] = 0
        return lanes

    def _lanes_of(self, guidance):
        """`Lanes` of the map, with what zones add to the guidance."""
        barred = [zone.barred for zone in self._crossings]
        guided = self._zones.guided(guidance)
        return self._map.lanes(self.grid, self.motion, guided, barred)

    def _take_lanes(self, lanes=None):
        """Forget all fields and take lanes, by default the current ones."""
        self._set_lanes(lanes or self._lanes_now())
        barred, self._one_way = self._guidance.barred, None
        if barred is not None or self._crossings:
            nowhere, none = np.zeros(self.grid.shape, bool), np.zeros((*self.grid.shape, 4), bool)
            barred = none if barred is None else barred
            ways = self._crossings or [Crossings(nowhere, 0, none)] * len(self.sizes)
            self._one_way = OneWay([barred | way.barred for way in ways], [way.tiles for way in ways], self._map)
        self._stepper.one_way = self._one_way is not None
        self._stepper.crossing = max((zone.ticks for zone in self._crossings), default=0)
        on = self._lanes, self._stepper.paces.options, self._stepper.rules
        if self.device == "cpu":
            self._engine: Any = CpuFleet(*on)
        else:
            from .step.cuda import CudaFleet

            self._engine = CudaFleet(*on, self.device)
        self._fields = FieldStore(self._engine, self._lanes, self._parts, self.settings.memory_limit_bytes)
        agents = self._stepper.state.agents
        agents.goal[:] = agents.slot[:] = -1
        self._stepper.progress.changed[:] = 1

    def _set_lanes(self, lanes):
        self._lanes, self._room = lanes, None
        self._parts = parts_of(lanes.free.reshape(self._map.rows, self._map.cols)).ravel()

    @property
    def guidance(self) -> Guidance:
        """What moves cost in the fields; may be set between steps. Raises GridMapError for another map's shape."""
        return self._guidance

    @guidance.setter
    def guidance(self, guidance: Guidance):
        self._guidance = self._fitting(guidance)
        self._given_guidance = guidance
        self._take_lanes()

    @property
    def zones(self) -> Zones:
        """Where nobody may stop or go fast; may be set between steps. Raises GridMapError for another map's shape, and
        where a no-stopping zone cannot be crossed."""
        return self._zones

    @zones.setter
    def zones(self, zones: Zones | None):
        self.take_zones(zones)

    def take_zones(self, zones: Zones | None, grid: GridMap | None = None):
        """Set `zones`. grid: the map by which they are crossed, without tiles that are closed for a while; None: as it
        is"""
        grid = self.grid if grid is None else instance("grid", grid, GridMap, "a grid.GridMap", GridMapError)
        if grid.shape != self.grid.shape:
            raise GridMapError(f"grid has {grid.shape} tiles; allowed: {self.grid.shape}, as many as the fleet's map")
        self._zones, self._crossings = self._checked_zones(zones, grid, self._stepper.paces)
        self._take_lanes()

    def _checked_zones(self, zones, grid, paces):
        """-> the zones, and how agents of each size that have these paces cross them"""
        zones = Zones() if zones is None else instance("zones", zones, Zones, "a fleet.Zones", GridMapError)
        zones = zones.fitting(self.grid)
        if zones.no_stopping is None:
            return zones, []
        most = (self.settings.horizon or LONGEST) // paces.rests
        ways, free = [], grid.costs > 0
        for size in self.sizes:
            places, tiles = footprint_free(free, size), zones.stops_refused(size)
            way = crossings(tiles & places, places, self.motion, most, self._guidance.barred)
            ways.append(replace(way, tiles=tiles, ticks=way.ticks * paces.rests))
        return zones, ways

    def _suited(self, agents):
        """The guidance for so many agents: the present one where it was given, or still suits."""
        if self.settings.guidance != "auto" or self._given_guidance is not None:
            return self._guidance
        return suited(self.grid, agents, self._guidance, self._by_paths)

    def _suit(self):
        """Take the guidance for the present agents."""
        guidance = self._suited(np.count_nonzero(self._stepper.state.agents.there))
        if guidance is not self._guidance:
            self._guidance = guidance
            self._take_lanes()

    def _take_budget(self, budget_s):
        """Find out whether agents plan whole paths, if steps have so many seconds."""
        self._bare = 0 if budget_s >= LEAST_S else self._bare + 1
        by_paths = self._stepper.may_plan_paths(self._lanes) and (
            self._bare == 0 or (self._by_paths and self._bare < BARE)
        )
        if by_paths != self._by_paths:
            self._by_paths = by_paths
            self._suit()

    def _fitting(self, guidance):
        """The guidance, if it is one for this map."""
        instance("guidance", guidance, Guidance, "a fleet.Guidance", GridMapError)
        if guidance.moves.shape[:2] != self.grid.shape:
            size = guidance.moves.shape[:2]
            raise GridMapError(f"guidance is for a map of {size} tiles; this one has {self.grid.shape}")
        return guidance

    # ------------------------------------------------------------------------------------------------ agents

    def start(
        self,
        starts: ArrayLike,
        headings: ArrayLike | None = None,
        speeds: ArrayLike | None = None,
        sizes: ArrayLike | None = None,
    ):
        """Replace all agents.

        starts: (N, 2) int [row, col]; headings: (N,) int, 0 east, 1 south, 2 west, 3 north; None: all face east
        speeds: (N, 2) int ticks that a move and a quarter turn of each agent take; None: as the settings say
        sizes: (N,) int side of each agent, one of `sizes` of the planner; None: `size` of the settings

        Raises GridMapError, which names the agent, where a start is no free tile or two agents are too near.
        """
        refuse_forked()
        places, faces, paces, layers = self._checked(starts, headings, speeds, sizes)
        stepper = self._stepper
        changed = (stepper.state.agents.still == STANDS).any()  # of the agents before these
        lanes, guidance = self._lanes, self._suited(len(places))
        if changed := changed or guidance is not self._guidance:
            lanes = self._lanes_of(guidance)
        tiles = self._refuse_bad(places, layers, np.zeros(0, np.int32), lanes.free)
        new_paces = stepper.paces.only(paces)
        self._refuse_slow(new_paces)
        self._guidance = guidance
        stepper.clear()
        self._take_paces(new_paces)
        stepper.set_agents(tiles, faces, stepper.paces.tables(paces))
        if changed:
            self._take_lanes(lanes)

    def _refuse_slow(self, paces):
        """Raise where agents of these paces could not cross no-stopping zones."""
        if self._crossings and paces.rests > self._stepper.paces.rests:
            self._crossings = self._checked_zones(self._zones, self.grid, paces)[1]
            self._take_lanes()

    def _take_paces(self, paces):
        if paces is not self._stepper.paces:
            self._stepper.take_paces(paces)
            self._engine.take_options(paces.options, self._stepper.rules)

    def _checked(self, starts, headings, speeds, sizes):
        """-> (N, 2) int64 [row, col], (N,) int32 headings, (N, 2) int32 ticks, (N,) layers"""
        places = checked_tiles("starts", starts)
        faces = checked_headings(headings, len(places), self.motion.headings)
        sides = checked_sizes(sizes, len(places), self.sizes)
        return (places, faces, checked_speeds(speeds, len(places), self.motion, self.settings), self._map.layers(sides))

    def _refuse_bad(self, places, layers, taken, free_tiles):
        """Raise where a place is blocked (free_tiles: of lanes) or too near to another one, or to tiles that are taken
        -> tiles of the places"""
        new = len(places)
        self._map.refuse_outside(places, np.arange(new))
        tiles = np.concatenate([self._map.tiles(places, layers), taken])
        free = free_tiles[tiles[:new]] > 0
        if not free.all():
            agent = int(np.argmin(free))
            raise GridMapError(f"agent {agent} is at {places[agent].tolist()}, which is blocked or too near to it")
        order = np.argsort(tiles, kind="stable")
        ordered = tiles[order]
        for offset in self._stepper.rules.clearance[layers].T if new else ():
            low, high = (np.searchsorted(ordered, tiles[:new] + offset, side) for side in ("left", "right"))
            for a in np.flatnonzero(high > low + (offset == 0)):
                b = next(int(b) for b in order[low[a] : high[a]] if b != a)
                where = " and ".join(str(place) for place in self._map.places(tiles[[a, b]]).tolist())
                raise GridMapError(f"agent {a} of those that start is too near to another one: {where}")
        return tiles[:new]

    def add(
        self,
        starts: ArrayLike,
        headings: ArrayLike | None = None,
        speeds: ArrayLike | None = None,
        sizes: ArrayLike | None = None,
    ) -> np.ndarray:
        """Add agents, between steps; takes and raises what `start` does -> (K,) int their numbers"""
        refuse_forked()
        places, faces, paces, layers = self._checked(starts, headings, speeds, sizes)
        stepper = self._stepper
        before, n = stepper.state.agents, len(stepper.state.agents.tile)
        taken = np.unique(np.concatenate([before.tile[before.there > 0], before.origin[before.there > 0]]))
        tiles = self._refuse_bad(places, layers, taken, self._lanes.free)
        new_paces = stepper.paces.also(paces)
        self._refuse_slow(new_paces)
        self._take_paces(new_paces)
        kept = *before, *stepper.progress, stepper.state.plans.option, stepper.broken
        tables = np.r_[before.table, stepper.paces.tables(paces)]
        stepper.set_agents(np.r_[before.tile, tiles], np.r_[before.heading, faces], tables)
        now = *stepper.state.agents, *stepper.progress, stepper.state.plans.option, stepper.broken
        for old, new in zip(kept, now):
            new[:n] = old
        self._suit()
        return np.arange(n, len(stepper.state.agents.tile))

    def remove(self, agents: ArrayLike):
        """Take agents off the map. agents: (K,) int numbers, which are not given again

        Raises GridMapError for a number that no agent has, or that comes twice; nothing has changed then.
        """
        now = self._stepper.state.agents
        numbers = checked_numbers("agents", agents, now.there)
        once, count = np.unique(numbers, return_counts=True)
        if len(once) < len(numbers):
            raise GridMapError(f"agents names {once[count > 1][0]} more than once; allowed: each agent once")
        now.there[numbers] = 0
        now.goal[numbers] = now.slot[numbers] = -1
        self._stepper.progress.since[numbers] = 0
        stood = (now.still[numbers] == STANDS).any()
        now.still[numbers] = 0
        if stood:
            self._follow_map()

    def observe(
        self, positions: ArrayLike, headings: ArrayLike | None = None, still: ArrayLike = (), busy: ArrayLike = ()
    ):
        """Say where agents really are, before a step. One that is not where the planner had it stands for a tick.

        positions: (N, 2) int [row, col]; a negative row: not known, the agent is taken to be where the planner has it
        headings: (N,) int; None: those that the planner has
        still: (K,) int numbers of agents that do not move, whatever they are told (broken down, lost): others find
            ways around them
        busy: (K,) int numbers of agents that begin nothing in the next step, and may move again after it

        Raises GridMapError where two agents are on one tile, one is outside the map, or `still` or `busy` names an
        agent that is not there; nothing has changed then.
        """
        stepper = self._stepper
        agents = stepper.state.agents
        places = checked_tiles("positions", positions)
        if len(places) != len(agents.tile):
            raise GridMapError(f"positions has {len(places)} rows; allowed: {len(agents.tile)}, one for each agent")
        seen = (places[:, 0] >= 0) & (agents.there > 0)
        places = np.where(seen[:, None], places, self._map.places(agents.tile))
        faces = agents.heading if headings is None else checked_headings(headings, len(places), self.motion.headings)
        there = np.flatnonzero(agents.there)
        self._map.refuse_outside(places[there], there)
        tiles = self._map.tiles(places, self._map.layer_of(agents.tile))
        bare = self._map.tiles(places)
        order = there[np.argsort(bare[there], kind="stable")]
        for k in np.flatnonzero(np.diff(bare[order]) == 0):
            raise GridMapError(f"agents {order[k]} and {order[k + 1]} are both at {places[order[k]].tolist()}")
        stands = np.zeros(len(places), np.uint8)
        stands[checked_numbers("busy", busy, agents.there)] = BUSY
        stands[checked_numbers("still", still, agents.there)] = STANDS
        off = seen & ((tiles != agents.tile) | (faces != agents.heading))
        stepper.broken[off] = stepper.progress.changed[off] = 1
        agents.tile[off] = agents.origin[off] = tiles[off]
        agents.heading[off] = faces[off]
        agents.table[off] -= agents.table[off] % stepper.paces.rests
        stepper.broken[(stands > 0) & (agents.still == 0)] = 1
        stay_now = off | (agents.still > 0)
        stepper.state.plans.option[stay_now] = stepper.paces.options.stay[agents.table[stay_now]]
        stood = agents.still == STANDS
        agents.fresh[off | (stood & (stands != STANDS))] = 1
        agents.still[:] = stands
        if ((stands == STANDS) != stood).any() or off[stood].any():
            self._follow_map()

    def update(self, rows: ArrayLike, cols: ArrayLike, costs: ArrayLike):
        """Change tiles, between steps; takes and raises what `GridMap.changed` does. Fields are repaired when they are
        next read, by a step or by `prepare`.

        An agent on a tile that is blocked may leave it.
        """
        refuse_forked()
        grid, guidance = self.grid.changed(rows, cols, costs), self._guidance
        uniform = grid.uniform_cost and self.grid.uniform_cost  # then guidance does not depend on costs
        if self._given_guidance is None and self.settings.guidance != "lanes" and not uniform:
            guidance = Guidance.plain(grid)
        self.grid, self._guidance, self._ground = grid, guidance, None
        self._follow_map()

    def _follow_map(self):
        """Update fields and agents after the map, or the agents that stand for good, have changed."""
        stepper, before, after = self._stepper, self._lanes, self._lanes_now()
        if (before.forward != after.forward).any():
            self._take_lanes(after)
        else:
            self._set_lanes(after)
            self._fields.take_map(after, self._parts)
            stepper.state.agents.fresh[:] = stepper.progress.changed[:] = 1

    @property
    def memory_bytes(self) -> int:
        """Memory of the fields."""
        return self._fields.memory_bytes

    @property
    def stuck(self) -> np.ndarray:
        """(K,) int agents that have been on the way to a goal for more than `stuck_after` steps."""
        return np.flatnonzero(self._stepper.progress.since > self.settings.stuck_after)

    # ------------------------------------------------------------------------------------------------ steps

    @property
    def positions(self) -> np.ndarray:
        """(N, 2) int32 [row, col] where agents are, or what they move to."""
        return self._map.places(self._stepper.state.agents.tile)

    @property
    def headings(self) -> np.ndarray:
        """(N,) int32"""
        return self._stepper.state.agents.heading.copy()

    def step(self, goals: ArrayLike, budget_s: float = 0.0) -> np.ndarray:
        """Move every agent by one tick. The planner assumes that all do as they are told; if not, call `observe`.

        goals: (N, 2) int [row, col], a negative row for an agent without one. An agent that is at its goal when a step
            begins stays there unless others need the place; one whose goal is blocked goes beside it, one whose goal
            is cut off stands, and both make way for others
        budget_s: seconds for making the step better than its first solution, which is always found. Up to half of them
            plan the fields of new goals, one at least; who has to wait for the field of its goal (`waiting`) wants to
            stay until then, those that have waited longest first. 0: all fields are planned in this step, however long
            that takes, as `prepare` does ahead of it

        -> (N,) int actions: of "turning" 0 forward, 1 clockwise, 2 counter-clockwise, 3 wait; of "four" 0 east, 1
        south, 2 west, 3 north, 4 wait. An agent in the middle of an action of several ticks waits.

        Raises GridMapError, SettingsError; nothing has moved then.
        """
        began = time.perf_counter()
        refuse_forked()
        until = began + number("budget_s", budget_s, 0.0, LONGEST_STEP, " seconds")
        with told_if_slow(f"fleets for {self.device}"):
            self._take_budget(budget_s)
            if self._stepper.look_ahead(self._lanes, 0.0 if self._by_paths else budget_s):
                self._engine.take_options(self._stepper.paces.options, self._stepper.rules)
            by = deadline_after(FIELDS_SHARE * budget_s) if budget_s > 0 else NEVER
            self._rank(goals, by)
            if self._room is None:
                self._room = crowd_around(self._lanes.free.astype(np.int32), self._map.cols)
            ground = self._engine, self._lanes, self._parts, self._room
            return self._stepper.move(*ground, until, in_time=budget_s > 0)

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
        sizes: ArrayLike | None = None,
    ) -> FleetPlan:
        """Plan the paths of agents from starts to goals, where they stay. Agents of `start` take no part in it.

        starts: (N, 2) int [row, col]
        goals: (N, 2) int, one for each agent; or (2,), one sink for all, where agents leave the map, one in a step; or,
            with `assign`, (M, 2), M >= N parking tiles, any one for each agent
        time_limit_s: seconds in all; what the first plan leaves of them makes it better, until the plan is proven to be
            optimal, or as long as `improve_until` of the settings says. Without a limit (infinity) that is 'settled'
        headings: (N,) int, 0 east, 1 south, 2 west, 3 north; None: all face east
        speeds: (N, 2) int ticks that a move and a quarter turn of each agent take; None: as the settings say
        sizes: (N,) int side of the square that each agent covers, 1 .. 15 tiles; None: as the settings say

        -> FleetPlan; an agent with a bad start or goal has a status that says so, and the others are planned. Where it
        is proven that no plan serves all agents of a part of the map, that is told at once (NO_JOINT_PLAN). The plan is
        the same for the same seed, unless the time was over.

        Raises GridMapError, SettingsError.
        """
        refuse_forked()
        if self._crossings:
            raise SettingsError("zones has no_stopping tiles; allowed for solve: None. Use step")
        if self._guidance.barred is not None:
            raise SettingsError("guidance has moves that nobody may make, `barred`; allowed for solve: None. Use step")
        least = self._zones.slowest(self.grid)
        if least < self._zones.usual:
            raise SettingsError(
                f"zones has tiles with a limit of {least:g} m/s, and agents go at {self._zones.usual:g} "
                "m/s (`usual`); allowed for solve: none that are slower. Use step"
            )
        return oneshot.solve_for(self, starts, goals, time_limit_s, seed, headings, assign, speeds, sizes)

    def hold_goals(self):
        """Before `step`: agents stay at their goals; whoever was at its goal longest ago has priority."""
        self._stepper.take_rules(self._stepper.rules._replace(holding=True))
        self._take_lanes()

    def ground(self) -> tuple[Ground, np.ndarray, np.ndarray]:
        """`next_hops.ground_of` the current map for agents of the settings' size; made once."""
        if self._ground is None:
            self._ground = ground_of(footprint_free(self.grid.costs > 0, self.settings.size))
        return self._ground

    def prepare(
        self, goals: ArrayLike, time_limit_s: float = math.inf, least: int = 1, budget_s: float | None = None
    ) -> np.ndarray:
        """Plan fields ahead of `step`, for its goals: as many as the time allows, but at least so many new ones.

        budget_s: what `step` will be given, on which fields depend; None: as before

        -> (N,) bool which goals have their fields; an agent without a goal needs none. Raises what `step` does.
        """
        refuse_forked()
        deadline = deadline_after(number("time_limit_s", time_limit_s, 0.0, math.inf, " seconds"))
        least = whole("least", least, 0, 2**31 - 1)
        if budget_s is not None:
            self._take_budget(number("budget_s", budget_s, 0.0, LONGEST_STEP, " seconds"))
        tiles = self._goal_tiles(goals)
        with told_if_slow(f"fleets for {self.device}"):
            slots = self._fields.slots(tiles, deadline, least, self._stepper.progress.since)
        return (slots >= 0) | (tiles < 0)

    def _goal_tiles(self, goals):
        agents = self._stepper.state.agents
        layers = self._map.layer_of(agents.tile)
        tiles = self._map.goal_tiles(goals, agents.there, layers)
        for layer, zone in enumerate(self._crossings):
            some = np.flatnonzero((tiles >= 0) & (layers == layer))
            places = self._map.places(tiles[some])
            refused = some[zone.tiles[tuple(places.T)]]
            if len(refused):
                where = self._map.places(tiles[refused[:1]])[0].tolist()
                raise GridMapError(
                    f"the goal of agent {refused[0]} is {where}, in a no-stopping zone; allowed: tiles outside of zones"
                )
        return tiles

    def steps_to_go(self, goals: ArrayLike) -> np.ndarray:
        """(N, 2) goals, as `step` takes them -> (N,) int32 cost of each agent's path to its goal alone"""
        refuse_forked()
        agents = self._stepper.state.agents
        still, left = agents.still.copy(), agents.left.copy()
        agents.still[:] = 0  # else their costs stay those of their last goals
        try:
            self._rank(goals)
        finally:
            agents.still[:] = still
        found, stopped = agents.left.copy(), still > 0
        agents.left[stopped], agents.fresh[stopped] = left[stopped], 1
        return found

    def has_fields(self, goals: ArrayLike, sizes: ArrayLike | None = None) -> np.ndarray:
        """(K, 2) tiles, (K,) sizes as of `distances` -> (K,) bool, are their fields planned?"""
        return self._fields.known(self._tiles_on_map("goals", goals, sizes))

    def parts(self, places: ArrayLike, sizes: ArrayLike | None = None) -> np.ndarray:
        """(K, 2) tiles, (K,) sizes as of `distances` -> (K,) int32 in which connected part of the map each agent is;
        0: it cannot be there. Agents that stand for good are obstacles."""
        return self._parts[self._tiles_on_map("places", places, sizes)]

    def plan_fields(self, goals: ArrayLike, goes_on: Callable[[], bool], sizes: ArrayLike | None = None) -> np.ndarray:
        """Plan fields of (K, 2) tiles, (K,) sizes as of `distances`, in this order, as long as `goes_on` says so; it is
        asked after 1, 2, 4, ... times as many as there are threads -> (K,) bool, of these, whose fields are planned"""
        tiles, done, lot = self._tiles_on_map("goals", goals, sizes), 0, get_num_threads()
        if not callable(goes_on):
            raise GridMapError(f"goes_on is a {type(goes_on).__name__}; allowed: a function without arguments")
        with told_if_slow(f"fleets for {self.device}"):
            while done < len(tiles) and goes_on():
                self._fields.slots(tiles[done : done + min(lot, self._fields.most)])
                done, lot = done + min(lot, self._fields.most), 2 * lot
        return np.arange(len(tiles)) < done

    def distances(
        self,
        places: ArrayLike,
        headings: ArrayLike,
        goals: ArrayLike,
        crowd: ArrayLike = (),
        sizes: ArrayLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """How far it is from places to goals, with headings and lanes; plans the goals' fields that are missing.

        places, goals: (K, 2) int [row, col] on the map
        headings: (K,) int as of `start`, or -1 for the best one
        crowd: (C, 2) tiles where others are
        sizes: (K,) int sides of the agents, each one of `sizes` of the planner; None: `size` of the settings

        -> (K,) float64 what the cheapest path costs, in ordinary moves, inf where none leads there; (K,) int64 how many
        of the crowd stand on it. Raises GridMapError.
        """
        refuse_forked()
        tiles, ends = self._tiles_on_map("places", places, sizes), self._tiles_on_map("goals", goals, sizes)
        faces = integers("headings", headings, tiles.shape, f"{tiles.shape}, -1 .. 3", GridMapError).astype(np.int64)
        refuse_rows("headings", faces, (faces >= ANY) & (faces < 4), "-1 .. 3", GridMapError)
        if len(ends) != len(tiles):
            raise GridMapError(f"goals has {len(ends)} rows; allowed: {len(tiles)}, one for each place")
        standing = np.bincount(self._tiles_on_map("crowd", crowd), minlength=self._map.layer)
        standing = np.tile(standing, len(self.sizes))
        cost, met = np.empty((2, len(tiles)), np.int64)
        order, most = np.argsort(ends, kind="stable"), max(1, self._fields.most // 2)
        different = np.r_[0, np.cumsum(np.diff(ends[order]) != 0)] // most  # which lot of goals each pair belongs to
        with told_if_slow(f"fleets for {self.device}"):
            for lot in range(int(different[-1]) + 1 if len(ends) else 0):
                some = order[different == lot]
                slots = self._fields.slots(ends[some])
                values, out = self._engine.host_fields(slots), (np.empty(len(some), np.int64) for _ in range(2))
                found = tuple(out)
                given = tiles[some], faces[some], ends[some], slots
                with one_thread(len(some) < SHARED_PAIRS):
                    pair_costs(*given, values, self._lanes, standing, *found)
                cost[some], met[some] = found
        return np.where(cost < FAR, cost / self._lanes.unit, np.inf), met

    def _tiles_on_map(self, name, places, sizes=None):
        array = checked_tiles(name, places)
        self._map.refuse_outside(array, np.arange(len(array)), f"row {{}} of {name} is")
        return self._map.tiles(array, self._map.layers(checked_sizes(sizes, len(array), self.sizes)))

    @property
    def waiting(self) -> np.ndarray:
        """(K,) int agents that stood in the last step since the fields of their goals were not planned yet."""
        return np.flatnonzero(self._waiting)

    def _rank(self, goals, deadline=NEVER):
        """Take goals, and find every agent's options and cost to go. Agents whose goals have no fields by the deadline
        want to stay; one field at least is planned."""
        agents = self._stepper.state.agents
        tiles = self._goal_tiles(goals)
        slots = self._fields.slots(tiles, deadline, 1, self._stepper.progress.since)
        self._waiting, barred = (slots < 0) & (tiles >= 0), np.zeros(len(tiles), bool)
        if self._one_way is not None:
            stops = self._one_way.stops(agents, tiles, slots, self._engine, self._lanes)
            barred, around = stops < 0, (stops >= 0) & (stops != tiles)
            if around.any():
                tiles = np.where(around, stops, tiles).astype(np.int32)
                slots = self._fields.slots(tiles)
            barred &= tiles >= 0
        changed = np.flatnonzero((tiles != agents.goal) | ((agents.slot < 0) & (slots >= 0)))
        agents.slot[:] = slots
        if not self._stepper.rules.holding:
            agents.slot[tiles == agents.tile] = -1  # who is there has nothing to do
        agents.slot[barred | self._map.cut_off(agents.tile, tiles, self._parts)] = -1  # its field leads nowhere
        agents.goal[:] = tiles
        agents.fresh[changed] = 1
        self._engine.rank(agents, self._stepper.state.ranked)
        if self._one_way is not None:
            self._one_way.leave_out(self._map.cols, agents, self._stepper.paces, self._stepper.state.ranked)
