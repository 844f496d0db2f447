"""The fleet that runs: who is where, who goes where, and the next step. It belongs to the worker thread.

The planner moves agents on paper, step by step, at an even pace; what they really do follows. An ActionGraph keeps what
is planned and not done, and says what each agent may do without waiting for others; so one that is late stops only
those that come after it on its tiles. Where an agent falls silent, is found elsewhere, or the map changes, what nobody
was told yet is forgotten and planned anew.

An agent whose reports contradict what it was told, or each other, stands, and keeps all tiles where it may be: those
that it was told to go to, and those between where it was last and where it is reported. It goes on when its reports
fit again, or have shown it in one place for `silent_after_s`.

Times are seconds of the node's clock.
"""

import math
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ...errors import GridMapError, SettingsError, one_line, shown
from ...grid.maps.grid_map import GridMap
from ..guidance import Guidance
from ..motion import MOTIONS
from ..planner import FleetPlanner
from ..zones import LONGEST, Zones
from .bars import Bars
from .followed import MINUTE_S, UNSEEN, FollowedFleet, graph_for, most_actions, pace_of, rules_of
from .kept import StateFile
from .known import agent_text
from .places import AgentState, ClosedTiles, FleetStep, Lanes, Places, Told
from .rules import Rules
from .telling import actions_of, ticks_of

FIELDS_SHARE = 0.5  # of the time of a step, for the fields of new goals
KEPT = 0.1  # of the time of a step: one that begins later than that delays those that follow
LEAST_DEAD = 256  # that many agents must have left before the planner is made anew
TOLD_AGAIN = 2.0  # times that an action takes: one whose agent has not moved by then is told again


class RunningFleet(FollowedFleet):
    """The agents of a fleet, their goals and its planner.

    simulated: time stands still while it plans, so that all fields of new goals are planned in their step: then the
        machine's load does not change what agents do. Else those that are not ready in time wait for the next step

    guidance_fault: why guidance_file is not used; doors: Doors of the map's tiles, or None
    """

    def __init__(self, values: Rules, simulated: bool = False) -> None:
        super().__init__(values)
        self._simulated = simulated
        self.guidance_fault = ""
        self._now = -np.inf
        self._ticks = 0  # of the planner
        self._lanes: Lanes | None = None
        self._zones = Zones()
        self._counted, self._recent = 0, deque[int]()
        self.step_times: deque[float] = deque(maxlen=100)

    # ---- map and parameters ----

    def configure(self, values: Rules) -> None:
        before = self._values
        was, now = ((each.fleet, each.devices[0], each.guidance_file) for each in (before, values))
        if self._grid is not None and was != now:
            self._refuse_zones(values, self._grid, self._lanes, self._zones)
            self._open(values, goes_on=rules_of(before) == rules_of(values))
        if self._grid is not None:
            self._graph.widen(most_actions(values))
        if before.state_file != values.state_file and self._file is not None:
            self._file = StateFile(values.state_file)
        self._values = values
        if self._grid is not None and self._zones.speeds is not None and pace_of(before, self._grid) != self._pace():
            self._take_lanes()

    def take_map(self, grid: GridMap, lanes: Lanes | None = None, zones: Zones | None = None) -> None:
        """Run on this map from now on. Agents keep their places where it covers the same tiles as the one before.

        Raises GridMapError for zones that cannot be crossed, or where `doors` are of other tiles; nothing changes then.
        """
        if self.doors is not None and self.doors.shape != grid.shape:
            raise GridMapError(f"doors are of {self.doors.shape} tiles, the map has {grid.shape}; allowed: as many")
        zones = Zones() if zones is None else zones
        self._refuse_zones(self._values, grid, lanes, zones)
        before, self._grid, self._lanes, self._zones = self._grid, grid, lanes, zones
        if before is None or _frame(before) != _frame(grid):
            self._refuse_sizes(self._values.fleet.size)
            self._open(self._values)
            return
        self.places = Places(grid, self._values.fleet.size)
        self._take_lanes()
        self._plan_anew()  # else agents are allowed what was planned before the map changed
        self._find_goals(np.arange(len(self._agents)))

    def _refuse_zones(self, values, grid, lanes, zones):
        """Raise where agents of the present sizes could not cross no-stopping zones."""
        if zones.no_stopping is not None:
            given = None if lanes is None else lanes.guidance
            sizes = () if self.planner is None else self.planner.sizes
            FleetPlanner(grid, values.motion, "cpu", values.fleet, given, sizes, zones=zones)

    def _pace(self):
        return pace_of(self._values, self._grid)

    def _open(self, values, goes_on=False):
        """Make a planner for the present map. Where that raises, nothing changes.

        goes_on: agents go on with what they were told, and have new numbers; else all wait for a place again
        """
        fleet, grid = values.fleet, self._grid
        if self._file is None:
            self._file = StateFile(values.state_file)
            goes_on = self._take_up(values)
        stay = np.flatnonzero(self._agents["there"]) if goes_on else np.zeros(0, np.int64)
        sizes = np.where(self._agents["size"] > 0, self._agents["size"], fleet.size)
        if len(stay):
            tiles, headings = (ends[stay] for ends in self._graph.forget())
            self._agents["busy"] = 0
            under = Places(grid).covered(tiles, sizes[stay])
            under = under[grid.blocked[tuple(under.T)]]  # by now; ClosedTiles tells the planner
            grid = grid.changed(*under.T, 1) if len(under) else grid
        every = {*sizes.tolist(), *self._sizes_of(self._waiting_agents()).tolist()}
        planner = FleetPlanner(grid, values.motion, values.devices[0], fleet, sizes=sorted(every))
        if len(stay):
            planner.start(tiles, headings, sizes=sizes[stay])
        self.planner, self.guidance_fault = planner, ""
        if values.guidance_file:
            try:
                self.planner.guidance = Guidance.load(values.guidance_file)
            except GridMapError as error:
                self.guidance_fault = f"guidance_file is not used: {one_line(str(error))}"
        self.places = Places(self._grid, values.fleet.size)
        self._closed = ClosedTiles(self.planner, grid)
        if goes_on:
            self._graph.keep(stay)
        else:
            if self._graph is not None:
                self._agents["number"] += self._graph.allowed + 1  # what they were told does not count any more
            self._graph, self._bars = graph_for(grid, values), Bars()
            self._waiting |= {id: self._agents[number].copy() for id, number in self._number.items()}
            for agent in self._waiting.values():
                agent["busy"], agent["reached"], agent["stands"] = 0, False, False
        if self._graph.admit(every):
            self._bars = Bars()
        self._take_lanes()
        self._agents = self._agents[stay]
        self._off, self._doubted, self._begins = (old[stay] for old in (self._off, self._doubted, self._begins))
        self._ids = [self._ids[number] for number in stay]
        self._number = {id: number for number, id in enumerate(self._ids)}

    def _admit(self):
        """Make room for agents of sizes that nobody has had yet."""
        if self._refuse_sizes(*self.planner.sizes):
            self._open(self._values, goes_on=True)

    def _refuse_sizes(self, *known):
        """Set agents aside that wait, and could not cross no-stopping zones -> other sizes than those that are known"""
        new = {*self._sizes_of(self._waiting_agents()).tolist()} - {*known}
        for size in sorted(new) if self._zones.no_stopping is not None else ():
            try:
                given = None if self._lanes is None else self._lanes.guidance
                fleet = replace(self._values.fleet, size=size)
                FleetPlanner(self._grid, self._values.motion, "cpu", fleet, given, zones=self._zones)
            except GridMapError as error:
                new.remove(size)
                self._set_aside(size, f"agents of size {size} cannot be on this map: {error}")
        return new

    def _set_aside(self, size, why):
        """Agents of a size that wait are no agents now: others keep away from where they are."""
        for id in [id for id, agent in self._waiting.items() if self._sizes_of(agent) == size]:
            self._occupied[id], self._occupied_sizes[id] = self._waiting.pop(id)["point"].reshape(1, 2), size
            self._left_behind.add(id)  # until it tells where it is
            self.faults[id] = f"{agent_text(id)}: {why}"

    def _take_lanes(self):
        if self._lanes is not None:
            self.planner.guidance, self._graph.one_way = self._lanes.guidance, self._lanes.one_way
        if self._zones or self.planner.zones:
            self.planner.take_zones(replace(self._zones, usual=self._pace()), self._grid)
        zones, sizes = self._zones, self._graph.sizes
        self._speeds = None if zones.speeds is None else np.stack([zones.limits(size) for size in sizes])
        refused = None if zones.no_stopping is None else np.stack([zones.stops_refused(size) for size in sizes])
        self._graph.no_stopping = refused
        if self._graph.no_stopping is not None:
            self._graph.widen(most_actions(self._values) + LONGEST)  # all actions through a zone

    # ---- agents that leave ----

    def remove(self, ids: Iterable[str]) -> None:
        gone = []
        for id in ids:
            self._note_gone(id)
            for known in (self._waiting, self._goals, self._sent, self.faults, self.clashes, self.goal_faults):
                known.pop(id, None)
            self.standing.discard(id)
            self.withdrawn.discard(id)
            if id in self._left_behind:
                self.free([id])
            if id in self._number:
                gone.append(self._number.pop(id))
        if gone:
            self._agents["there"][gone] = self._agents["stands"][gone] = False
            self._agents["goal"][gone] = -1
            self._off[gone] = self._doubted[gone] = False
            self._plan_anew()
            self._graph.remove(np.array(gone))
            self.planner.remove(np.array(gone))
        if len(self._agents) > LEAST_DEAD + 2 * len(self._number):
            self._open(self._values, goes_on=True)

    # ---- when a step is due ----

    def due(self, now: float) -> bool:
        if now < self._now:
            self.forget_stamps()
        self._now = now
        self.began = min(self.began, now)  # a simulated time may begin anew
        for times in ("heard", "told", "since"):
            np.minimum(self._agents[times], now, out=self._agents[times])
        if self.planner is None or not len(self) or now < self.due_from or self._lost():
            return False
        if not self._number:  # others may tell too where they are, before anybody moves
            return self._values.lockstep or not 0 <= now - self._first_heard < self._values.step_s
        if not self._values.lockstep or now >= self.due_from + self._values.silent_after_s:
            return True
        self._follow(now)
        agents = self._agents
        done = (self._graph.planned == 0) | (agents["busy"] > self._ticks) | self._off
        done &= agents["heard_step"] >= self.steps
        return not (agents["there"] & ~self._silent(now) & ~self._faulty() & ~done).any()

    @property
    def due_from(self) -> float:
        """Before this time no step is due."""
        return self.began + (0.0 if self._values.lockstep else self._values.step_s)

    def _lost(self):
        """Is it not known what agents were told? Where the file that should say so has been removed, or put right, go
        on."""
        if self.state_fault and self._file is not None and self._file.has_changed():
            self._file = None
            self._open(self._values)
        return bool(self.state_fault)

    def news(self, now: float) -> FleetStep | None:
        """What agents may do since others have gone on, between two steps; None where there is nothing to be said."""
        if self._values.lockstep or not self._number or self.state_fault:
            return None
        if not (self._fresh or self._moved) or (self._file and self._file.is_busy()):
            return None
        self._follow(now)
        if not self._moved:
            return None
        self._moved = False
        self._bar()
        self._allow()
        numbers = np.flatnonzero(self._agents["there"] & (self._graph.allowed > 0) & np.isnan(self._agents["told"]))
        if not len(numbers):
            return None
        self.keep()
        return self._told(numbers, now, 0.0)

    def _allow(self):
        self._graph.allow(self._off | self._doubted | self._faulty(), self._blocked())

    def tell_door(self, name: str, is_open: bool) -> None:
        """A door of `doors` is open from now on, or not. Raises SettingsError."""
        if self.doors is None:
            raise SettingsError(f"door {shown(name)} is not known; allowed: none")
        self.doors.tell(name, is_open)
        self._moved = True  # somebody may go on

    def wanted_doors(self) -> list[str]:
        """Doors that have to open, or to stay open."""
        return [] if self.doors is None or not self._number else list(self.doors.wanted(self._graph, self.places))

    # ---- the step ----

    def step(self, now: float) -> FleetStep | None:
        """Begin a step; None where no agent is on the map. Raises GridMapError before there is one."""
        if self._grid is None:
            raise GridMapError("there is no map yet; allowed: a step after take_map")
        self.clashes = {}
        self._admit()
        if self._number:
            self._follow(now)
        self._observe(now)
        self._join()
        late = now - self.due_from
        on_time = not self._values.lockstep and 0 <= late < KEPT * self._values.step_s
        self.began = self.due_from if on_time else now
        if not self._number:
            return None
        self._recent.append(self.reached - self._counted)
        self._counted = self.reached
        while len(self._recent) > max(1, MINUTE_S / self._values.step_s):
            self._recent.popleft()
        began = time.perf_counter()
        self._plan()
        self._allow()
        took = time.perf_counter() - began
        self._moved = False
        self.steps += 1
        self.step_times.append(took)
        self.keep()
        return self._told(np.flatnonzero(self._agents["there"]), now, took)

    def give_out(self, now: float) -> None:
        """Let the step begin now, when its actions are given out, if planning took longer than a step: meanwhile no
        agent could act, and none counts as silent for it."""
        took = now - self.began
        if self._values.lockstep or took > self._values.step_s:
            self.began = now
            for times in ("heard", "told", "since"):
                self._agents[times][~self._agents["stands"]] += max(took, 0.0)

    def _plan_anew(self):
        """Forget what agents were not told yet."""
        tiles, headings = self._graph.forget()
        moved = (tiles != self.planner.positions).any(axis=1) | (headings != self.planner.headings)
        self._agents["busy"][moved] = 0

    def _observe(self, now):
        """Take agents for what they report to be. One that is silent, late or at fault stands; others go around it."""
        agents, graph = self._agents, self._graph
        there, faulty = agents["there"], self._faulty()
        tiles = self.places.tiles(agents["point"], self._sizes_of(agents))
        faces = self._faces(agents["yaw"], graph.headings[:, 0])
        outside = there & (tiles[:, 0] < 0) & ~faulty & (agents["heard"] > -np.inf)
        for number in np.flatnonzero(outside):
            self._misplaced(self._ids[number], agents["point"][number], "is outside the map, or not finite")
        settled = self._settled(now) if len(there) else np.zeros(0, int)
        withdrawn = self._of(self.withdrawn)
        settled = np.union1d(settled, withdrawn[(tiles[withdrawn, 0] >= 0) & ~(faulty | self._doubted)[withdrawn]])
        agents["silent"], agents["late"] = self._silent(now), self._late(now)
        for number in np.flatnonzero(agents["silent"] & (agents["older"] > 0)):
            behind, after = agents["stamp"][number] - agents["older"][number], self._values.silent_after_s
            what = f"is old: reports that came since are stamped {behind:.1f} s before it, and are passed over"
            what += f"; a clock that was set back counts after {after:g} s"
            self._misplaced(self._ids[number], agents["point"][number], what)
        held = graph.held_outside() & (now - agents["since"] > self._values.silent_after_s)
        if self.doors is not None and held.any():
            held &= ~self.doors.waited_for(graph)  # a lift takes its time
        agents["since"][held] = now  # they stand for a step, so that all is planned anew around them
        stands = agents["silent"] | agents["late"] | faulty | outside | self._off | self._doubted | held
        stands[self._of(self.standing)] = True
        if len(settled) or (stands & ~agents["stands"]).any() or self._someone_fits() or self._someone_is_barred():
            self._plan_anew()
        moves = graph.movable(settled, tiles[settled])
        placed = settled[moves]
        self.withdrawn -= {self._ids[number] for number in placed}
        stands[placed] = self._off[placed] = False
        stands[self._of(self.standing)] = True
        agents["number"][placed] += graph.allowed[placed] + 1  # whatever it was told does not count any more
        graph.remove(placed)
        graph.place(placed, tiles[placed], faces[placed])
        agents["told"][placed], agents["busy"][placed], agents["axis"][placed] = np.nan, 0, -1
        for number in np.flatnonzero(self._off | self._doubted):
            self._explain(number, tiles[number])
        agents["stands"] = stands
        self._bar()
        if self._close(stands):
            self._plan_anew()
        self._show_planner()

    def _show_planner(self, busy=()):
        """Tell the planner where agents are on paper. busy: numbers of those that get nothing more to do now"""
        tiles, headings = self._graph.ends()
        there = self._agents["there"]
        stands = np.flatnonzero(there & self._agents["stands"])
        self.planner.observe(np.where(there[:, None], tiles, -1), headings, stands, busy)

    # ---- plans ----

    def _plan(self):
        """Plan the next action of every agent that has not too much to do yet."""
        agents, graph, values = self._agents, self._graph, self._values
        goals = agents["goal"].copy()
        share_s = math.inf if self._simulated else FIELDS_SHARE * values.step_s
        ready = self.planner.prepare(goals, share_s, budget_s=values.budget_s)
        goals[~ready] = -1  # an agent whose field is not ready stands
        full = self._full()
        full &= agents["there"] & ~agents["stands"] & (agents["busy"] <= self._ticks)
        self._show_planner(np.flatnonzero(full))
        actions = self.planner.step(goals, values.budget_s)
        self._ticks += 1
        begun = np.flatnonzero(agents["there"] & (actions != MOTIONS[values.motion].wait))
        graph.plan(begun, self.planner.positions[begun], self.planner.headings[begun])
        agents["busy"][begun] = self._ticks - 1 + self._ticks_of(actions[begun])

    def _full(self):
        """(numbers,) bool, who has too much to do to get more? Who tells no heading gets turns up to the next move."""
        graph, ahead = self._graph, self._values.steps_ahead
        every = np.arange(len(graph.planned))
        planned = graph.planned
        turning = (graph.tiles[every, planned] == graph.tiles[every, np.maximum(planned - 1, 0)]).all(axis=1)
        turning &= graph.blind & (planned > 0)
        numbers = np.flatnonzero(turning & (planned - graph.allowed >= UNSEEN))
        if len(numbers):
            same = graph.tiles[numbers, graph.allowed[numbers]] == graph.ends()[0][numbers]
            graph.drop_turns(numbers[same.all(axis=1)])  # turns to and fro, which nobody was told of
            self._agents["busy"][numbers] = 0
        goes_on = turning
        if graph.no_stopping is not None:
            goes_on = turning | graph.no_stop(every, graph.ends()[0])
        full = (graph.planned > ahead) & ~(goes_on & (graph.planned < graph.most))
        return full | (graph.planned >= graph.most)

    def _ticks_of(self, actions):
        return ticks_of(actions, self._values.motion, self._values.fleet)

    def _join(self):
        """Put agents that wait on the map where they fit; the others wait on, and it is said why."""
        if not self._waiting:
            return
        ids, agents = list(self._waiting), self._waiting_agents()
        sizes = self._sizes_of(agents)
        tiles = self.places.tiles(agents["point"], sizes)
        off_centre = self.places.off_centre(agents["point"], tiles, sizes) > self._values.tolerance
        moving = off_centre & (agents["heard"] - agents["still_since"] < self._values.step_s)
        at: dict[tuple, str] = {}
        fitting = []
        for k, (id, tile, part) in enumerate(zip(ids, map(tuple, tiles.tolist()), self.places.part(tiles, sizes))):
            holder = self._graph.holder(tiles[k], size=int(sizes[k])) if tile[0] >= 0 else -1
            other = at.get(tile, self._ids[holder] if holder >= 0 else None)
            if tile[0] < 0:
                self._misplaced(id, agents["point"][k], "is outside the map, or not finite")
            elif other is not None:
                self._misplaced(id, agents["point"][k], f"is on tile {list(tile)}, where {agent_text(other)} is")
            elif not part:
                large = f", for agents of size {sizes[k]}" if sizes[k] != self.places.size else ""
                self._misplaced(id, agents["point"][k], f"is blocked: tile {list(tile)}{large}")
            elif not moving[k]:  # else the next report tells where it stops
                at[tile] = id
                fitting.append(k)
        before, faces = len(self._ids), self._faces(agents["yaw"], np.zeros(len(ids), np.int64))
        self._add([ids[k] for k in fitting], tiles[fitting], faces[fitting], sizes[fitting])
        self._find_goals(np.arange(before, len(self._ids)))
        if len(self._ids) > before:
            self._bar()  # they do not bar others any more, but hold tiles

    def _add(self, ids, tiles, faces, sizes):
        if not ids:
            return
        try:
            numbers = self.planner.add(tiles, faces, sizes=sizes).tolist()
        except GridMapError as error:
            half = len(ids) // 2
            if half:
                for some in (slice(half), slice(half, None)):
                    self._add(ids[some], tiles[some], faces[some], sizes[some])
            else:
                self.clashes[ids[0]] = f"{agent_text(ids[0])} cannot start on tile {tiles[0].tolist()}: {error}"
            return
        self._graph.add(tiles, faces, sizes)
        told = np.array([self._waiting[id]["yaw"] for id in ids])
        self._graph.blind[-len(ids) :] = np.isnan(told) & (MOTIONS[self._values.motion].headings > 1)
        self._off, self._doubted, self._begins = (
            np.append(old, np.zeros(len(ids), bool)) for old in (self._off, self._doubted, self._begins)
        )
        agents = np.stack([self._waiting.pop(id) for id in ids])
        agents["there"], agents["told"], agents["axis"], agents["count"] = True, np.nan, -1, 1
        agents["trail"][:, 0] = self.places.at(agents["point"], sizes)
        agents["doubted_at"], agents["doubts"] = np.nan, 0.0
        self._agents = np.concatenate([self._agents, agents])
        self._number |= zip(ids, numbers)
        self._ids += ids

    # ---- what is said ----

    @property
    def goals_per_minute(self) -> float:
        """Goals reached per minute of steps, over the last minute."""
        return sum(self._recent) * MINUTE_S / (self._values.step_s * max(len(self._recent), 1))

    def silent_ids(self) -> list[str]:
        """Agents that were silent when the last step began."""
        return [self._ids[number] for number in np.flatnonzero(self._agents["silent"] & self._agents["there"])]

    def late_ids(self) -> list[str]:
        """Agents that had not done what they were told when the last step began."""
        return [self._ids[number] for number in np.flatnonzero(self._agents["late"] & self._agents["there"])]

    def stuck_ids(self) -> list[str]:
        """Agents that are on the way for too long."""
        numbers = () if self.planner is None else self.planner.stuck
        return [self._ids[number] for number in numbers if self._agents["there"][number]]

    # ---- what agents are told ----

    def told(self, id: str) -> Told | None:
        """What an agent was told, as of the last step or news; None for one that is not on the map."""
        number = self._number.get(id)
        if number is None:
            return None
        graph, agent = self._graph, self._agents[number]
        allowed, planned = int(graph.allowed[number]), int(graph.planned[number])
        states = graph.tiles[number].copy()
        return Told(
            states[: allowed + 1],
            states[allowed + 1 : planned + 1],
            agent["goal"].copy(),
            bool(agent["reached"]),
            bool(agent["stands"]),
            float(self._ends(np.array([number]))[0].max(initial=0.0)) if id in self._dynamics else math.nan,
        )

    def _told(self, numbers, now, took):
        """What some agents (K,) are told now. took: seconds of planning -> FleetStep"""
        agents, graph, values = self._agents, self._graph, self._values
        told, has = agents["told"][numbers], graph.allowed[numbers] > 0
        new = has & np.isnan(told)
        again = has & (now - told >= TOLD_AGAIN * values.step_s * self._lasts()[numbers])
        again &= self._begins[numbers] & (agents["heard"][numbers] > told)
        begins = (new | again | (has & values.lockstep)) & ~agents["silent"][numbers]
        agents["told"][numbers[begins]] = now
        agents["since"][numbers[new]] = now
        first = actions_of(graph, values.motion, numbers, np.ones(len(numbers), int))
        actions = np.where(begins, first, MOTIONS[values.motion].wait)
        k, more = np.nonzero(np.arange(graph.most - 1) < graph.allowed[numbers, None] - 1)
        later = numbers[k], more + 2
        return FleetStep(
            self.steps,
            [self._ids[number] for number in numbers],
            actions,
            self._states(numbers),
            graph.tiles[numbers, 0],
            graph.headings[numbers, 0],
            graph.tiles[numbers, has.astype(int)],
            graph.headings[numbers, has.astype(int)],
            self._ticks_of(actions),
            agents["number"][numbers] + has,
            np.bincount(k, minlength=len(numbers)),
            actions_of(graph, values.motion, *later),
            graph.tiles[later],
            graph.headings[later],
            agents["goal"][numbers],
            took,
            self._sizes_of(agents[numbers]),
        )

    def _states(self, numbers):
        """(K,) AgentState; of several that hold, the one that is assigned last counts."""
        agents, ids = self._agents[numbers], [self._ids[number] for number in numbers]
        states = np.full(len(numbers), AgentState.MOVING, np.uint8)
        states[np.isin(numbers, self.planner.stuck)] = AgentState.STUCK
        states[(self._graph.tiles[numbers, 0] == agents["goal"]).all(axis=1)] = AgentState.AT_GOAL
        states[agents["goal"][:, 0] < 0] = AgentState.NO_GOAL
        states[[id in self.goal_faults for id in ids]] = AgentState.BAD_GOAL
        states[agents["late"]] = AgentState.LATE
        states[(self._faulty() | self._off | self._doubted)[numbers]] = AgentState.BAD_STATE
        states[[id in self.clashes for id in ids]] = AgentState.BAD_STATE
        states[agents["silent"]] = AgentState.SILENT
        return states


def _frame(grid):
    return grid.shape, grid.resolution, grid.origin
