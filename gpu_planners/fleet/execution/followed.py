"""What the agents of a running fleet have really done, who stands, and where nobody may be sent because of that."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...grid.maps.grid_map import GridMap
from ..action_graph import ActionGraph
from ..fields.lanes import footprint_free
from ..motion import MOTIONS
from .bars import ANYTHING, Bars, between
from .doors import Doors
from .dynamics import Dynamics, ends_of, profiles_of
from .kept import Kept, StateFile, marks_of
from .known import STILL, KnownAgents, agent_text
from .places import AGENT, new_agent
from .progress import progress, scatter_of
from .reports import is_doubted
from .rules import Rules
from .telling import lasts

MINUTE_S = 60.0
UNSEEN = 3  # actions that one who tells no heading may be told besides: two turns and a move are one


class FollowedFleet(KnownAgents):
    """Agents that are followed by their reports.

    clashes: {id: what is wrong with its place, as of the last step}; began: when the last step began
    """

    def __init__(self, values: Rules) -> None:
        super().__init__(values)
        self.clashes: dict[str, str] = {}
        self._dynamics: dict[str, Dynamics] = {}
        self._closed: Any = None
        self._speeds: np.ndarray | None = None  # (sizes, rows, cols) m/s that zones allow
        self.doors: Doors | None = None
        self._bars = Bars()
        self._file: StateFile | None = None
        self.began = -np.inf
        self._moved = False  # has an agent arrived, or a tile been freed, since actions were allowed last?
        self._off = self._doubted = self._begins = np.zeros(0, bool)
        self.standing: set[str] = set()  # who says that it stays where it is for a while, whatever it is told
        self.withdrawn: set[str] = set()  # who is yet to give up what it was told, as `withdraw` says

    def withdraw(self, ids: Iterable[str]) -> None:
        """Agents say that they stand, and have forgotten what they were told: as of the next step they hold the tile
        that they are on, if nobody else does, and no other."""
        self.withdrawn |= {id for id in ids if id in self._number}

    def _silent(self, now):
        agents, after = self._agents, self._values.silent_after_s
        if self._values.lockstep:
            owes = agents["heard_step"] < self.steps
            return agents["there"] & owes & (now - np.maximum(agents["heard"], self.began) > after)
        return agents["there"] & (now - agents["heard"] > after)

    def _late(self, now):
        """(numbers,) bool, who does not do what it was told?"""
        late = now - self._agents["since"] - self._values.step_s * self._lasts() > self._values.silent_after_s
        return self._agents["there"] & (self._graph.allowed > 0) & late

    def _lasts(self):
        """(numbers,) steps until one can see that an agent has done what it may do next; by its dynamics, if known"""
        found = lasts(self._graph, self._values.fleet)
        if self._speeds is not None:
            found = found * self._slower()
        some = np.array([k for k, id in enumerate(self._ids) if id in self._dynamics], np.int64)
        if not len(some):
            return found
        seconds = self._ends(some)
        moves = (np.diff(self._graph.tiles[some], axis=1) != 0).any(axis=2)
        moves &= np.arange(seconds.shape[1]) < self._graph.allowed[some, None]
        # who tells no heading must have moved after its turns
        first = np.where(self._graph.blind[some] & moves.any(axis=1), moves.argmax(axis=1), 0)
        found = found.astype(float)
        found[some] = np.maximum(seconds[np.arange(len(some)), first] / self._values.step_s, 1.0)
        return found

    def _ends(self, numbers):
        """(K, most) seconds after which agents (K,), whose dynamics are known, have done each action, from a stand"""
        graph, profiles = self._graph, profiles_of([self._dynamics[self._ids[k]] for k in numbers.tolist()])
        given = graph.tiles[numbers], graph.headings[numbers], graph.allowed[numbers]
        return ends_of(*given, profiles, self._grid.resolution, self._limits(numbers))

    def _limits(self, numbers):
        """(K, most) m/s that zones allow agents (K,) in each of their actions; None: whatever they can"""
        if self._speeds is None:
            return None
        kinds = np.broadcast_to(self._graph.kinds[numbers, None], self._graph.headings[numbers].shape)
        places = kinds, *np.moveaxis(self._graph.tiles[numbers], -1, 0)
        at = self._speeds[places]
        return np.minimum(at[:, 1:], at[:, :-1])

    def _slower(self):
        """(numbers,) how many times as long slow zones make the first of what agents may do, at the usual pace"""
        every = np.arange(len(self._graph.planned))
        limits = self._limits(every)
        moves = (np.diff(self._graph.tiles, axis=1) != 0).any(axis=2)
        moves &= np.arange(limits.shape[1]) < self._graph.allowed[:, None]
        first = np.where(self._graph.blind, moves.argmax(axis=1), 0)
        slower = np.maximum(pace_of(self._values, self._grid) / limits[every, first], 1.0)
        return np.where(moves[every, first], slower, 1.0)

    def take_dynamics(self, dynamics: Mapping[str, Dynamics]) -> None:
        """How robots drive from now on, as they are loaded: an agent counts as late by its own dynamics."""
        self._dynamics |= dynamics

    # ---- what agents have done ----

    def _follow(self, now):
        """Find out which of their actions agents have done, by what they reported last.

        _off: (numbers,) bool, who is where nothing that it was told leads; _begins: who has not moved
        _doubted: of whom it is not known where they are
        """
        self._fresh = False
        graph, agents = self._graph, self._agents
        sizes = self._sizes_of(agents)
        places, faces = self.places.at(agents["point"], sizes), self._faces(agents["yaw"], -1)
        graph.blind = (faces < 0) & (MOTIONS[self._values.motion].headings > 1)
        found = progress(graph, agents, places, faces, self._values.tolerance, self._values.clearance)
        heard = agents["there"] & ~self._faulty() & (agents["heard"] > -np.inf)
        on_map = (self.places.tiles(agents["point"], sizes) >= 0).all(axis=1)
        before, off = self._off | self._doubted, self._off
        self._doubted = heard & is_doubted(agents)
        self._off, self._begins = heard & on_map & found.off, heard & found.begins
        self._moved |= bool(((self._off | self._doubted) != before).any())
        done = np.where(heard & on_map & ~self._off & ~self._doubted, found.done, 0)
        later = np.arange(graph.most + 1)
        passed = (graph.tiles == agents["goal"][:, None]).all(axis=2) & (later <= done[:, None])
        self._count(passed[:, 1:].any(axis=1))
        for k in range(int(done.max(initial=0))):
            step = graph.tiles[:, k + 1] - graph.tiles[:, k]
            moves = (k < done) & step.any(axis=1)
            agents["axis"][moves] = step[moves, 1] != 0
        numbers = np.flatnonzero(done)
        graph.arrive(numbers, done[numbers])
        agents["number"][numbers] += done[numbers]
        agents["told"][numbers], agents["since"][numbers] = np.nan, now
        agents["count"][numbers] = 1  # the places before this one belong to what is done
        self._moved |= len(numbers) > 0
        self._count(agents["there"] & (graph.tiles[:, 0] == agents["goal"]).all(axis=1))
        self._watch(now, ~off & self._off)

    def _watch(self, now, new):
        """Note how long agents that are off have stood in one place. new: (numbers,) bool, who is off since now"""
        agents, off = self._agents, np.flatnonzero(self._off)
        if len(off):
            agents["count"][new], agents["still_since"][new] = 1, now
            slack = np.maximum(STILL, 4 * scatter_of(agents)[off])
            kept = np.arange(agents["trail"].shape[1]) < agents["count"][off, None]
            apart = np.abs(agents["trail"][off] - agents["trail"][off, :1]).max(axis=2)
            moves = off[((apart > slack[:, None]) & kept).any(axis=1) | self._doubted[off]]
            agents["count"][moves], agents["still_since"][moves] = 1, now

    def _settled(self, now):
        """(K,) numbers of agents that are off, and have been in one place for so long that they are taken to stand
        there; with lockstep, where each step has its report, for two of them"""
        agents, graph = self._agents, self._graph
        since = np.where(self._off, agents["still_since"], now)
        here = now - since >= self._values.silent_after_s
        here &= agents["heard"] - since >= self._values.silent_after_s / 2
        # one that tells no heading, and was told to turn, may look anywhere
        turns = (graph.headings != graph.headings[:, :1]) & (np.arange(graph.most + 1) <= graph.allowed[:, None])
        here |= self._values.lockstep & (agents["count"] > 1)
        return np.flatnonzero(self._off & ~self._doubted & here & ~(graph.blind & turns.any(axis=1)))

    def _count(self, at_goal):
        """Count those of the agents (numbers,) bool that are at their goals for the first time."""
        self.reached += int((at_goal & ~self._agents["reached"]).sum())
        self._agents["reached"] |= at_goal

    def _explain(self, number, tile):
        """Say why an agent stands whose reports contradict what it was told, or each other, and how that ends."""
        agent, ahead, graph = self._agents[number], self._values.silent_after_s, self._graph
        ends = f"it stands until it reports a place on its way, or one place for {ahead:g} s"
        if self._doubted[number] and not np.isnan(agent["doubted_at"]):
            x, y = agent["doubted"]
            what = f"is doubted since it was reported at ({x:.2f}, {y:.2f}) too soon after that; {ends}"
        elif self._doubted[number]:
            what = f"is one of several that its reports go to and fro between: does one publisher report it? {ends}"
        else:
            held = " ".join(map(str, graph.tiles[number, : graph.allowed[number] + 1].tolist()))
            other = graph.holder(tile, number, int(self._sizes_of(agent)))
            on = f", where {agent_text(self._ids[other])} is" * (other >= 0)
            what = f"is on tile {tile.tolist()}{on}, and not on the way that it was told, {held}; {ends}"
            if graph.blind[number]:
                what += ", and its orientation"
        self._misplaced(self._ids[number], agent["point"], what)

    def _misplaced(self, id, point, what):
        self.clashes[id] = f"{agent_text(id)}: its position ({point[0]:.2f}, {point[1]:.2f}) {what}"

    # ---- where nobody may go ----

    def _bar(self):
        """Bar tiles that something may overlap and nobody has reserved. True if the set changed."""
        agents, graph, places, clearance = self._agents, self._graph, self.places, self._values.clearance
        found, sizes = [], self._sizes_of(agents)
        lost = self._off | self._doubted
        rests = np.flatnonzero(agents["there"] & ~lost & ~self._faulty() & (graph.allowed == 0) & (agents["count"] > 0))
        kept = np.arange(agents["trail"].shape[1]) < agents["count"][rests, None]
        mean = (agents["trail"][rests] * kept[..., None]).sum(axis=1) / np.maximum(kept.sum(axis=1), 1)[:, None]
        beside = np.abs(mean - graph.tiles[rests, 0]).max(axis=1, initial=0) > clearance
        for number, place in zip(rests[beside].tolist(), mean[beside]):
            tiles = places.touched(place[None], clearance)
            found.append((tiles[(tiles != graph.tiles[number, 0]).any(axis=1)], number, sizes[number]))
        for number in np.flatnonzero(lost):
            agent = agents[number]
            told = [agent["point"]] if np.isnan(agent["doubted_at"]) else [agent["point"], agent["doubted"]]
            reported, was = places.at(np.array(told), sizes[number]), graph.tiles[number, 0].astype(float)
            most = sum(self._grid.shape)
            lines = [between(was, place, most) for place in reported if np.isfinite(place).all()]
            if lines:
                found.append((places.touched(np.concatenate(lines), clearance), int(number), sizes[number]))
        points = [agent["point"][None] for agent in self._waiting.values()] + [*self._occupied.values()]
        if points:
            waiting, others = self._waiting_agents(), (self._occupied_sizes.get(id, 0) for id in self._occupied)
            each = [*self._sizes_of(waiting).tolist(), *(size or places.size for size in others)]
            of_point = np.repeat(each, [len(some) for some in points])
            where = places.at(np.concatenate(points), of_point)
            for size in np.unique(of_point).tolist():
                found.append((places.touched(where[of_point == size], clearance), ANYTHING, size))
        return self._bars.put(graph, places, self._values.fleet.safety_distance, found)

    def _close(self, stands):
        """Block tiles for the planner that a stopped, off-centre or joining agent may overlap. True if the set changed.
        stands: (numbers,) bool"""
        graph, places, apart = self._graph, self.places, self._values.fleet.safety_distance
        still, there = np.flatnonzero(stands), np.flatnonzero(self._agents["there"])
        cores = np.concatenate([self._bars.tiles, graph.held(still)])
        if not len(cores):
            return self._closed.close(set(), self._grid)
        sizes = np.r_[self._bars.sizes, graph.sizes_of(np.repeat(still, graph.allowed[still] + 1))]
        closed = set(map(tuple, places.covered(cores, sizes, apart).tolist()))
        tiles, sizes = self._fitting()
        ends = np.concatenate([graph.ends()[0][there], tiles]), np.r_[graph.sizes_of(there), sizes]
        closed -= set(map(tuple, places.covered(*ends).tolist()))
        return self._closed.close(closed, self._grid)

    def _wanted_tiles(self):
        """(K, 2) tiles on the map that agents wait for, (K,) their sizes"""
        agents = self._waiting_agents()
        sizes = self._sizes_of(agents)
        tiles = self.places.tiles(agents["point"], sizes)
        return tiles[tiles[:, 0] >= 0], sizes[tiles[:, 0] >= 0]

    def _fitting(self):
        """(K, 2) tiles where agents that wait may be put, (K,) their sizes"""
        tiles, sizes = self._wanted_tiles()
        fits = (self.places.part(tiles, sizes) > 0) & self._graph.is_free(tiles, sizes)
        return tiles[fits], sizes[fits]

    def _someone_fits(self):
        """Does an agent wait for a tile that somebody is to enter, but was not told to?"""
        tiles, sizes = self._wanted_tiles()
        taken = np.flatnonzero(~self._graph.is_free(tiles, sizes))
        return any(self._graph.holder(tiles[k], size=int(sizes[k])) < 0 for k in taken)

    def _blocked(self):
        """(sizes, rows, cols) bool, where agents of each size of the graph cannot be, or must not"""
        sizes = self._graph.sizes
        blocked = self.places.blocked(sizes)
        if self.doors is None:
            return blocked
        shut = self.doors.shut()
        return blocked | np.stack([~footprint_free(~shut, size) for size in sizes])

    def _someone_is_barred(self):
        """Is an agent to enter a tile where it may not go any more?"""
        graph = self._graph
        agents = np.flatnonzero(graph.planned > graph.allowed)
        end, now = (graph.tiles[agents, graph.allowed[agents] + k] for k in (1, 0))
        shut = graph.shut(agents, end, self.places.blocked(graph.sizes))
        return bool((shut & (end != now).any(axis=1) | graph.against(now, end)).any())

    # ---- what is kept on disk ----

    @property
    def state_fault(self) -> str:
        """Why it is not known what a node before this one has told."""
        return self._file.fault if self._file else ""

    def _take_up(self, values):
        """Take up what a node before this one has left -> are there agents that go on with what they were told?"""
        kept = self._file.load()
        if kept is None:
            return False
        self.steps = max(self.steps, kept.steps)
        self._occupied |= {id: np.array(points).reshape(-1, 2) for id, points in kept.occupied.items()}
        self._occupied_sizes = kept.occupied_sizes | self._occupied_sizes
        told = self._waiting.keys()  # what agents tell counts more than where they were
        for id, point, yaw in kept.waiting:
            if id not in told:
                self._waiting[id] = _left(point, yaw, kept.sizes.get(id, 0))
        fits = kept.frame == _kept_frame(self._grid) and kept.rules == _kept_rules(values)
        free = self._hold(kept, values) if fits else False
        if not free:
            for id, (points, size) in marks_of(kept, self._grid.resolution, told).items():
                self._occupied[id], self._occupied_sizes[id] = points, size
                self._left_behind.add(id)
        return free

    def _hold(self, kept, values):
        """Have agents hold the tiles that they held -> could they?"""
        graph, agents = graph_for(self._grid, values), []
        graph.admit(kept.sizes.values())
        graph.widen(max([most_actions(values), *(len(states) for _, _, states, *_ in kept.agents)]))
        for number, (id, done, states, point, yaw) in enumerate(kept.agents):
            size = kept.sizes.get(id, 0)
            new = self._waiting.get(id, _left(point, yaw, size)).copy()
            if new["size"] not in (0, size):
                return False
            new["size"], sizes = size, np.array([size or graph.sizes[0]])
            new["there"], new["number"], new["told"], new["since"] = True, done, np.nan, np.nan
            agents.append(new)
            for k, (row, col, heading) in enumerate(states):
                tile, heading = np.array([[row, col]]), np.array([heading])
                if k == 0:
                    if not graph.is_free(tile, sizes)[0]:
                        return False
                    graph.add(tile, heading, sizes)
                else:
                    graph.grant(np.array([number]), tile, heading)
        for id, *_ in kept.agents:
            self._waiting.pop(id, None)
        self._graph, self._bars, self._agents = graph, Bars(), np.array(agents, AGENT).reshape(-1)
        self._off = self._doubted = self._begins = np.zeros(len(agents), bool)
        self._ids = [id for id, *_ in kept.agents]
        self._number = {id: number for number, id in enumerate(self._ids)}
        return True

    def keep(self) -> None:
        """Write down what agents may do and where they are. Raises GpuPlannersError where that fails."""
        if self._grid is None or not self._file or not self._file.path or self.state_fault:
            return
        graph, agents = self._graph, self._agents
        states = np.concatenate([graph.tiles, graph.headings[..., None]], axis=2)
        kept = Kept(_kept_frame(self._grid), _kept_rules(self._values), self.steps)
        for id, number in self._number.items():
            pose = agents["point"][number], float(agents["yaw"][number])
            allowed = states[number, : graph.allowed[number] + 1]
            kept.agents.append((id, int(agents["number"][number]), allowed, *pose))
        kept.waiting = [(id, agent["point"], float(agent["yaw"])) for id, agent in self._waiting.items()]
        kept.occupied = {id: points.tolist() for id, points in self._occupied.items()}
        kept.occupied_sizes = {id: self._occupied_sizes[id] for id in self._occupied if self._occupied_sizes.get(id)}
        known = {id: self._agents[number] for id, number in self._number.items()} | self._waiting
        kept.sizes = {id: int(agent["size"]) for id, agent in known.items() if agent["size"]}
        self._file.save(kept)


def graph_for(grid: GridMap, values: Rules) -> ActionGraph:
    fleet = values.fleet
    near = fleet.size - 1 + fleet.safety_distance
    return ActionGraph(grid.shape, near, fleet.following, most_actions(values), fleet.size)


def pace_of(values: Rules, grid: GridMap) -> float:
    """m/s at which agents go"""
    return grid.resolution / (values.step_s * values.fleet.ticks_per_move)


def most_actions(values: Rules) -> int:
    """Actions of an agent that may be planned and not done."""
    return values.steps_ahead + 1 + UNSEEN * (MOTIONS[values.motion].headings > 1)


def rules_of(values: Rules) -> tuple[int, int, bool]:
    """What an agent's action may touch by."""
    return values.fleet.size, values.fleet.safety_distance, values.fleet.following


def _left(point, yaw, size):
    """An agent that a node before this one knew."""
    agent = new_agent()
    agent["point"], agent["yaw"], agent["goal"], agent["size"] = point, yaw, -1, size
    return agent


def _kept_frame(grid):
    return tuple(map(float, (*grid.shape, grid.resolution, *grid.origin)))


def _kept_rules(values):
    size, apart, following = rules_of(values)
    return {"motion": values.motion, "size": size, "safety_distance": apart, "following": following}
