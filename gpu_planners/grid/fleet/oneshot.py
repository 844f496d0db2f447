"""One-shot multi-agent path finding: every agent goes from its start to its goal and stays there.

First ways are spread over the map (spread.py), and LaCAM (lacam.py) finds where all agents go, moving one tile in a
step or waiting. Then loops in which an agent meets nobody are cut, and every agent gets as early as the order in which
agents pass tiles allows; turns, and tiles that stay free for a step before the next agent comes, are put in here
(retime.py). What is left of the time makes the plan better (refine.py). Parts of the map that are not connected are
solved by themselves.
"""

import time
from typing import NamedTuple

import numpy as np

from ...device import told_if_slow
from ...errors import GridMapError, SettingsError
from ..checks import array_of, number, whole
from ..maps.grid_map import GridMap
from . import exchange, lacam, refine, retime, sink, spread
from .arguments import checked_headings, checked_places
from .holding import step_and_stay, walk
from .plan import PARTLY, STATUS_TEXT, STUCK, FleetPlan, FleetStatus
from .ways import NO_PATH, ground_of, plan_ways, steps_down, steps_to

LOOPS = 20_000  # agents moved between two looks at the clock
REPLANS = 16  # between two looks at the clock
SPREADS = 64  # ways spread out between two looks at the clock
MOST_SPREADS = 4  # rounds
STEPS_SHARE, SPREAD_SHARE, AGAIN_SHARE = 0.5, 0.3, 0.5  # of the time that is left when another search begins
CROWDED = 1.0  # steps lost for each that all would take alone: the fleet's own steps are tried too
MOST_ATTEMPTS, SMALL = 6, 1 << 20  # searches beyond the second one; agents times steps that one more is worth
FEW_STATES = 2048  # of a search at first
ENOUGH = 0.02  # of the steps lost, gained in a round, for another one with few states
CUTS = 4  # rounds of loop cutting
GROUP = 12  # agents that are planned again together, at most
PATIENCE = 4000  # groups without a gain, after which a plan is left as it is
FIRST_NODES = 512  # of a tree
NODE_ARRAYS, LOW_ARRAYS = ("place", "order", "parent", "head", "tail"), ("up", "agent", "tile", "depth", "next")


class Model(NamedTuple):
    """turning: do turns take a step each? following: may an agent enter what another one leaves in the same step?"""

    turning: bool
    following: bool


class Instance:
    """Agents on a map, checked.

    status: (N,) uint8 FleetStatus; start, goal: (N,) int32 tiles, -1 where there is none
    ground: Ground; number: (rows, cols) int32 tile or -1; place: (T, 2) int32 [row, col]
    nearer, alone: of ways.plan_ways, for agents with goals; field: (N,) int32 rows of nearer or -1
    """

    def __init__(self, free: np.ndarray, places: np.ndarray, ends: np.ndarray, near: int = 0, shared: bool = False):
        """free: (rows, cols) bool; places, ends: (N, 2) float64 starts and goals; near: so far apart two agents are too
        near; shared: may agents have the same goal?"""
        self.ground, self.number, self.place = ground_of(free)
        self.status = np.zeros(len(places), np.uint8)
        self.start = self._tiles(places, "START", np.ones(len(places), bool))
        self._first_only(self.start, FleetStatus.SAME_START, near)
        self.goal = self._tiles(ends, "GOAL", self.start >= 0)
        lost = (self.goal >= 0) & (self.ground.part[self.start] != self.ground.part[self.goal])
        self.status[lost], self.goal[lost] = FleetStatus.NO_PATH, -1
        if not shared:
            self._first_only(self.goal, FleetStatus.SAME_GOAL, near)
        self.bound = None  # (N,) int64 steps that each agent takes at least, where it may choose its goal

    def _tiles(self, places, what, asked):
        """(N, 2) float64 -> (N,) int32 tiles; notes in the status of those `asked` why there is none."""
        finite = np.isfinite(places).all(axis=1)
        inside = finite & (places >= 0).all(axis=1) & (places < self.number.shape).all(axis=1)
        row, col = np.where(inside[:, None], places, 0).astype(np.int64).T
        tiles = np.where(inside & asked, self.number[row, col] if self.number.size else -1, -1).astype(np.int32)
        for bad, why in ((~finite, "NOT_FINITE"), (finite & ~inside, "OUTSIDE"), (inside & (tiles < 0), "BLOCKED")):
            self.status[bad & asked] = FleetStatus[f"{what}_{why}"]
        return tiles

    def _first_only(self, tiles, why, near):
        """Of agents whose tiles are not farther apart than `near` in rows and in columns, the first one keeps its
        tile."""
        kept: set[tuple[int, int]] = set()
        span = range(-near, near + 1)
        for agent in np.flatnonzero(tiles >= 0).tolist():
            row, col = self.place[tiles[agent]].tolist()
            if any((row + r, col + c) in kept for r in span for c in span):
                self.status[agent], tiles[agent] = why, -1
            else:
                kept.add((row, col))

    def plan_ways(self):
        some = np.flatnonzero(self.goal >= 0)
        self.field = np.full(len(self.goal), -1, np.int32)
        self.field[some] = np.arange(len(some))
        self.nearer, alone = plan_ways(self.goal[some], self.start[some], self.ground)
        self.alone = np.zeros(len(self.goal), np.int32)
        self.alone[some] = np.where(alone == NO_PATH, 0, alone)


def solve_for(fleet, starts, goals, time_limit_s, seed, headings, assign) -> FleetPlan:
    """Plan for a FleetPlanner; arguments and errors as of its `solve`."""
    most_s = number("time_limit_s", time_limit_s, 0, float("inf"), " seconds", SettingsError)
    whole("seed", seed, 0, 2**63 - 1)
    s = fleet.settings
    model = Model(fleet.motion.headings > 1, s.following)
    one_sink = array_of(goals, "goals").ndim == 1
    places = checked_places(starts, "starts")
    ends = checked_places([goals] if one_sink else goals, "goals")
    faces = checked_headings(headings, len(places), fleet.motion.headings)
    free, near = footprint_free(fleet.grid, s.size), s.size - 1 + s.safety_distance
    plain = near == 0 and s.ticks_per_move == 1 and (s.ticks_per_turn == 1 or not model.turning)
    if not plain and (one_sink or assign):
        raise SettingsError(
            "a sink for all agents, or tiles for any of them, want agents of size 1 without safety distance, whose "
            f"actions take 1 tick; this fleet's size is {s.size}, safety_distance {s.safety_distance}, ticks_per_move "
            f"{s.ticks_per_move}, ticks_per_turn {s.ticks_per_turn}"
        )
    _warm(plain, fleet)
    began = time.perf_counter()
    until = began + most_s
    if one_sink:
        return _into_sink(
            Instance(free, places, np.repeat(ends, len(places), axis=0), shared=True), faces, model, began
        )
    if assign:
        instance = _assigned(free, places, ends)
    else:
        if len(places) != len(ends):
            raise GridMapError(f"goals has {len(ends)} rows; allowed: {len(places)}, one for each start")
        instance = Instance(free, places, ends, near)
    if not plain:
        return step_and_stay(fleet, instance, faces, until, began)
    needed = int((instance.goal >= 0).sum()) * len(instance.ground.ways)
    if needed > s.memory_limit_bytes:
        raise SettingsError(
            f"the fields of {(instance.goal >= 0).sum()} goals take {needed} bytes; allowed by memory_limit_bytes: "
            f"{s.memory_limit_bytes}"
        )
    instance.plan_ways()
    if assign:
        tiles, message = _exchanged(instance, s.memory_limit_bytes)
    else:
        tiles, message = _first_plan(instance, model, until, seed, s.memory_limit_bytes)
    tiles, facing = timed(instance, tiles, faces, model)
    moving = Moving(instance, tiles, facing, model)
    first_s = time.perf_counter() - began
    if not assign and instance.bound is None:
        moving, message = _other_plans(moving, message, faces, model, until, seed, s.memory_limit_bytes)
        if model.turning and moving.loss() > CROWDED * moving.traffic.least.sum(dtype=np.int64):
            moving, message = _stepped(moving, message, fleet, faces, model, until)
    moving.improve(until, seed, s.memory_limit_bytes)
    return moving.plan(began, first_s, message)


def _stepped(moving, message, fleet, faces, model, until):
    """Let the fleet's own steps plan too, which look ahead what turns cost. -> the best plan"""
    instance, left = moving.instance, until - time.perf_counter()
    walked, _, _, ended = walk(fleet, instance, faces, time.perf_counter() + STEPS_SHARE * left)
    if ended != "solved":
        return moving, message
    tiles = np.where(walked[..., 0] < 0, -1, instance.number[walked[..., 0], walked[..., 1]]).astype(np.int32)
    tiles, facing = timed(instance, tiles, faces, model)
    other = Moving(instance, tiles, facing, model, moving.traffic.least)
    return (other, ended) if message != "solved" or other.loss() < moving.loss() else (moving, message)


def _other_plans(moving, message, faces, model, until, seed, memory_limit_bytes):
    """Search again, with ways that are spread over the map, and more often the smaller the plan is. -> the best plan"""
    instance = moving.instance
    size = max(1, moving.traffic.tile.size)
    for attempt in range(1, 2 + min(MOST_ATTEMPTS, SMALL // size)):
        left = until - time.perf_counter()
        if left <= 0 or moving.loss() == 0:
            break
        if attempt == 1:
            spread_out(instance, time.perf_counter() + SPREAD_SHARE * left, seed, memory_limit_bytes)
        stop = time.perf_counter() + AGAIN_SHARE * left
        tiles, ended = _first_plan(instance, model, stop, seed + attempt, memory_limit_bytes)
        if ended == "solved":
            tiles, facing = timed(instance, tiles, faces, model)
            other = Moving(instance, tiles, facing, model, moving.traffic.least)
            if message != "solved" or other.loss() < moving.loss():
                moving, message = other, ended
        elif message != "solved" and attempt > 1:
            break
    instance.nearer &= 15
    return moving, message


_warmed: set = set()


def _warm(plain, fleet):
    """Compile or load what a plan needs, before the clock runs."""
    kind = (fleet.motion.name, plain or fleet.settings)
    if kind in _warmed:
        return
    _warmed.add(kind)
    with told_if_slow("a fleet's search for a whole plan"):
        if not plain or fleet.motion.headings > 1:
            side = 4 * fleet.settings.size
            grid = GridMap(np.ones((side, side), np.uint8))
            tiny, middle = type(fleet)(grid, fleet.motion.name, "cpu", fleet.settings), [[side // 2, side // 2]]
            instance = Instance(footprint_free(grid, fleet.settings.size), *np.array([middle, middle], float))
            instance.goal += 1
            walk(tiny, instance, np.zeros(1, np.int32), np.inf)
        if not plain:
            return
        free = np.ones((2, 3), bool)
        model, one, other = Model(False, True), np.array([[0.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 2.0], [0.0, 0.0]])
        instance = Instance(free, one, other)
        instance.plan_ways()
        spread_out(instance, np.inf, 0, 1 << 30)
        tiles, _ = _first_plan(instance, model, np.inf, 0, 1 << 30)
        tiles, facing = timed(instance, tiles, np.zeros(2, np.int32), model)
        moving = Moving(instance, tiles, facing, model)
        moving.improve(np.inf, 0, 1 << 30)
        _into_sink(Instance(free, one, np.zeros((2, 2)), shared=True), np.zeros(2, np.int32), model, 0.0)
        instance = _assigned(free, one, other)
        instance.plan_ways()
        _exchanged(instance, 1 << 30)
        lacam.rehash(_new_tree(2), 0)


def _into_sink(instance, faces, model, began):
    """All agents queue into one tile."""
    n, some = len(instance.start), np.flatnonzero(instance.goal >= 0)
    costs, bounds, status = np.zeros(n, np.int64), np.zeros(n, np.int64), instance.status.copy()
    tiles, facing = instance.start[None].copy(), faces[None].copy()
    if len(some):
        goal = instance.goal[some[:1]]
        nearer, _ = plan_ways(goal, goal, instance.ground)
        alone = steps_to(goal[0], instance.ground)[instance.start[some]]
        field = np.zeros(len(some), np.int32)
        task = lacam.Task(instance.goal[some], field, nearer, field, model.following, False, model.turning)
        count = np.zeros(7, np.int64)
        count[lacam.RANDOM] = 1
        scratch = lacam.new_scratch(len(some), len(instance.place))
        most = int(alone.max()) + len(some) + 1
        walked = sink.queue_up(instance.start[some], alone.copy(), most, task, instance.ground, scratch, count)
        tiles = np.repeat(tiles, len(walked), axis=0)
        tiles[:, some] = walked
        tiles, facing = timed(instance, tiles, faces, model, instance.goal >= 0)
        there = tiles == goal[0]
        costs[some] = np.argmax(there[:, some], axis=0)
        status[some[~there[:, some].any(axis=0)]] = FleetStatus.NOT_REACHED
        bounds[some[np.argsort(costs[some], kind="stable")]] = sink.earliest(alone)
        last = int(costs.max()) + 1
        tiles, facing = tiles[:last], facing[:last]
    goals = np.full((len(instance.goal), 2), -1, np.int32)
    goals[instance.goal >= 0] = instance.place[instance.goal[instance.goal >= 0]]
    taken = time.perf_counter() - began
    message = "solved" if (status == FleetStatus.SOLVED).all() else PARTLY
    if (status == FleetStatus.NOT_REACHED).any():
        message = STUCK
    return FleetPlan(status, _positions(instance, tiles), facing, goals, costs, bounds, taken, taken, message)


def _assigned(free, places, ends):
    """-> Instance whose agents each have one of the tiles `ends` (M, 2)"""
    bad = Instance(free, ends, ends).status
    for row in np.flatnonzero(bad != FleetStatus.SOLVED):
        text = STATUS_TEXT[FleetStatus(int(bad[row]))].replace("the start", "it")
        same = bad[row] == FleetStatus.SAME_START
        raise GridMapError(f"goals[{row}] is {ends[row].tolist()}: {'another row has that tile' if same else text}")
    if len(ends) < len(places):
        raise GridMapError(f"goals has {len(ends)} rows; allowed: {len(places)} at least, one for each agent")
    instance = Instance(free, places, places)
    some = np.flatnonzero(instance.start >= 0)
    instance.goal[:] = -1
    row, col = ends.astype(np.int64).T
    instance.bound = np.zeros(len(places), np.int64)
    given, instance.bound[some] = exchange.assign(instance.start[some], instance.number[row, col], instance.ground.near)
    instance.goal[some] = given
    instance.status[some[given < 0]] = FleetStatus.NO_PATH
    return instance


def _exchanged(instance, memory_limit_bytes):
    """TSWAP -> (steps + 1, N) tiles, what happened; the agents' goals become those that they end with"""
    some = np.flatnonzero(instance.start >= 0)
    goal, field = instance.goal[some], instance.field[some]
    steps = 64
    while True:
        ends, rows = goal.copy(), field.copy()
        walked = exchange.walk(instance.start[some], ends, rows, instance.nearer, instance.ground.near, steps)
        done = len(walked) <= steps
        if done or 8 * steps * len(some) > memory_limit_bytes:
            break
        steps *= 2
    instance.goal[some], instance.field[some] = ends, rows
    instance.status[some] = np.where(ends >= 0, FleetStatus.SOLVED, FleetStatus.NO_PATH)
    instance.alone[some] = steps_down(instance.start[some], ends, rows, instance.nearer, instance.ground.near)
    tiles = np.repeat(instance.start[None], len(walked), axis=0)
    tiles[:, some] = walked
    return tiles, "solved" if done else STUCK


def footprint_free(grid, size):
    """(rows, cols) bool: may the middle of an agent that covers size x size tiles be there?"""
    low = (size - 1) // 2
    free = np.pad(grid.costs > 0, size)
    rows, cols = grid.shape
    every = range(size - low, 2 * size - low)
    return np.logical_and.reduce([free[r : r + rows, c : c + cols] for r in every for c in every])


def spread_out(instance, until, seed, memory_limit_bytes):
    """Mark a way for each agent, so that few of them meet, as long as the time and the memory allow."""
    n, tiles = len(instance.start), len(instance.place)
    steps = int(instance.alone.max(initial=0)) + spread.MARGIN
    if not (instance.goal >= 0).any() or spread.crowd_bytes(n, tiles, steps) > memory_limit_bytes:
        return
    crowd, front = spread.new_crowd(n, tiles, steps), spread.new_front(tiles)
    agents = instance.start, instance.goal, instance.field, instance.alone, instance.nearer
    rng, before = np.random.default_rng(seed), None
    for round_ in range(MOST_SPREADS):
        order, meetings = rng.permutation(n).astype(np.int32), 0
        for begin in range(0, n, SPREADS):
            end = min(begin + SPREADS, n)
            meetings += spread.spread(order, begin, end, round_, *agents, crowd, front, instance.ground)
            if time.perf_counter() > until:
                break
        if meetings == 0 or time.perf_counter() > until or (round_ > 1 and meetings > 0.9 * before):
            break
        before = meetings
    spread.mark_ways(crowd, instance.field, instance.nearer, instance.ground.near)


def _first_plan(instance, model, until, seed, memory_limit_bytes):
    """-> (steps + 1, N) int32 tiles, -1 where an agent is not on the map; a text"""
    part = np.where(instance.start >= 0, instance.ground.part[instance.start], -1)
    plans, message = [], "solved"
    for which in np.unique(part[(part >= 0) & (instance.goal >= 0)]):
        agents = np.flatnonzero(part == which)
        tiles, ended = _search(instance, agents, model, until, seed, memory_limit_bytes)
        plans.append((agents, tiles))
        if ended != "solved":
            message = ended
    steps = max((len(tiles) for _, tiles in plans), default=1)
    whole = np.repeat(instance.start[None], steps, axis=0)
    for agents, tiles in plans:
        whole[: len(tiles), agents] = tiles
        whole[len(tiles) :, agents] = tiles[-1]
    return whole, message


def _search(instance, agents, model, until, seed, memory_limit_bytes):
    """LaCAM for agents of one part of the map -> (steps + 1, agents) int32 tiles, how it ended."""
    n = len(agents)
    first = np.argsort(-instance.alone[agents], kind="stable").astype(np.int32)
    task = lacam.Task(
        instance.goal[agents], instance.field[agents], instance.nearer, first, model.following, True, model.turning
    )
    scratch = lacam.new_scratch(n, len(instance.place))
    count = np.zeros(7, np.int64)
    count[lacam.RANDOM] = np.random.default_rng(seed).integers(1, 2**62)
    tree = _new_tree(n)
    lacam.begin(instance.start[agents], tree, task, count)
    ended, loops = lacam.MORE, max(1, LOOPS // n)
    while ended in (lacam.MORE, lacam.FULL):
        ended = lacam.search(loops, tree, task, instance.ground, scratch, count)
        if ended == lacam.FULL:
            if 2 * sum(array.nbytes for array in tree) > memory_limit_bytes:
                break
            tree = _grown(tree, count)
        elif ended == lacam.MORE and time.perf_counter() > until:
            break
    node, nodes = int(count[lacam.BEST]), []
    while node >= 0:
        nodes.append(node)
        node = int(tree.parent[node])
    message = {
        lacam.SOLVED: "solved",
        lacam.EXHAUSTED: "no plan exists in which every agent reaches its goal",
        lacam.MORE: "the time limit was reached before every agent could reach its goal",
        lacam.FULL: f"memory_limit_bytes, {memory_limit_bytes}, was reached before every agent could reach its goal",
    }
    return tree.place[nodes[::-1]], message[ended]


def _new_tree(agents):
    def numbers(*shape):
        return np.empty(shape, np.int32)

    m, low = FIRST_NODES, 8 * FIRST_NODES
    nodes = numbers(m, agents), numbers(m, agents), numbers(m), numbers(m), numbers(m)
    table = np.full(4 * m, -1, np.int32)
    return lacam.Tree(*nodes, *(numbers(low) for _ in range(5)), table, numbers(2 * m))


def _grown(tree, count):
    """The tree with twice the room for whatever is nearly full."""
    wanted = {}
    for names, used in ((NODE_ARRAYS, lacam.NODES), (LOW_ARRAYS, lacam.LOWS), (("stack",), lacam.DEPTH)):
        for name in names:
            array = getattr(tree, name)
            if count[used] + 8 > len(array):
                wanted[name] = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
                wanted[name][: count[used]] = array[: count[used]]
    tree = tree._replace(**wanted)
    if 2 * count[lacam.NODES] + 16 > len(tree.table):
        tree = tree._replace(table=np.full(2 * len(tree.table), -1, np.int32))
        lacam.rehash(tree, count[lacam.NODES])
    return tree


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


def _positions(instance, tiles):
    """(steps + 1, N) tiles, -1 where an agent is not on the map -> (steps + 1, N, 2) int32 [row, col] or -1"""
    places = np.vstack([instance.place, np.full((1, 2), -1, np.int32)])
    return places[tiles]


class Moving:
    """A plan that is made better.

    tiles, headings: (steps + 1, N) int32
    """

    def __init__(self, instance, tiles, headings, model, least=None):
        """least: (N,) int32 steps that agents take alone; None: not known yet"""
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
            refine.ways_alone(with_goal, longest, self.traffic._replace(who=lonely), instance.ground, states)

    def loss(self):
        """Steps that all agents take more than they would alone."""
        some = self.instance.goal >= 0
        return int((self.traffic.cost - self.traffic.least)[some].sum(dtype=np.int64))

    def improve(self, until, seed, memory_limit_bytes):
        """Make the plan better until the time is over, or nothing more is gained for long."""
        traffic, ground = self.traffic, self.instance.ground
        steps, n = traffic.tile.shape[1] - 1, len(traffic.cost)
        if n == 0 or 4 * len(ground.ways) * (steps + 1) > memory_limit_bytes:
            return
        if time.perf_counter() > until:
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
                gained += refine.each_alone(order, begin, min(begin + REPLANS, n), traffic, ground, states)
                if time.perf_counter() > until:
                    return
        idle, most = 0, min(GROUP, n)
        while idle < PATIENCE and n > 1 and (traffic.cost > traffic.least).any():
            gained = refine.groups(REPLANS, most, traffic, ground, states, group, count)
            idle = 0 if gained else idle + REPLANS
            if time.perf_counter() > until:
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
            _positions(instance, tiles),
            np.ascontiguousarray(traffic.heading[:, : steps + 1].T, np.int32),
            goals,
            np.where(arrived, traffic.cost, 0).astype(np.int64),
            np.where(there, traffic.least if instance.bound is None else instance.bound, 0).astype(np.int64),
            time.perf_counter() - began,
            first_s,
            message,
        )
