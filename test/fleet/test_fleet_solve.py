"""One-shot plans: never a conflict, solved where a search over joint states finds a solution, true statuses."""

import heapq
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from fleet_oracle import MODELS, MOVES, free_tiles, joint_optimum, random_query

from benchmarks import fleets_one_shot, report
from benchmarks.harness import Context
from gpu_planners.errors import GridMapError, SettingsError
from gpu_planners.fleet import FleetStatus, Settings, conflicts
from gpu_planners.fleet.fields.next_hops import ground_of
from gpu_planners.fleet.plan.instance import Instance
from gpu_planners.grid import FleetPlanner, GridMap
from gpu_planners.parallel.team import NEVER


def planner(free, motion="four", following=True, improve_until="settled", **settings):
    chosen = Settings(following=following, improve_until=improve_until, **settings)
    return FleetPlanner(GridMap(free, connectivity=4), motion, "cpu", chosen)


def check(plan, free, starts, goals, motion, following):
    """What holds for every plan."""
    walked, facing = plan.positions, plan.headings
    assert conflicts(walked, ~free, following=following) == []
    there = walked[0, :, 0] >= 0
    assert (walked[0][there] == np.asarray(starts)[there]).all()
    reached = plan.status == FleetStatus.SOLVED
    assert (walked[-1][reached] == np.asarray(goals)[reached]).all()
    for agent in np.flatnonzero(reached):
        away = np.flatnonzero((walked[:, agent] != goals[agent]).any(axis=1))
        assert plan.costs[agent] == (away[-1] + 1 if len(away) else 0)
        assert plan.costs[agent] >= plan.lower_bounds[agent]
    for agent in np.flatnonzero(np.isin(plan.status, [FleetStatus.NOT_REACHED, FleetStatus.NO_JOINT_PLAN])):
        assert (walked[-1, agent] != goals[agent]).any()
    if motion == "turning":
        moved = np.diff(walked, axis=0)[:, there]
        turned = np.diff(facing, axis=0)[:, there] % 4
        walks = np.abs(moved).sum(axis=2) > 0
        assert (moved == np.array(MOVES)[facing[:-1, there]])[walks].all()
        assert (turned[walks] == 0).all() and (turned != 2).all()


@pytest.mark.parametrize(("motion", "following"), MODELS)
def test_tiny_queries_are_solved_exactly_where_a_search_over_joint_states_solves_them(motion, following):
    solved = unsolvable = 0
    for seed in range(24):
        agents = 3 if motion == "four" and seed % 2 else 2
        free, starts, goals = random_query(seed, (3, 4), 0.35, agents)
        plan = planner(free, motion, following).solve(starts, goals, 2.0)
        check(plan, free, starts, plan.goals, motion, following)
        if (plan.status == FleetStatus.NO_PATH).any():
            continue
        best = joint_optimum(free, starts, goals, motion, following)
        assert plan.solved == (best is not None), seed
        solved, unsolvable = solved + plan.solved, unsolvable + (not plan.solved)
        if best is None:
            assert plan.message == "no plan exists in which every agent reaches its goal"
        else:
            assert plan.makespan >= best >= plan.lower_bound_makespan
    assert solved > 5 and unsolvable > 0


CORRIDORS = {
    "bay in the middle": ("....... ###.###", [(0, 0), (0, 6)], [(0, 6), (0, 0)]),
    "bay at one end": (".###### ....... .######", [(1, 0), (1, 6)], [(1, 6), (1, 0)]),
    "three in a corridor with a room": ("####.. ...... ####..", [(1, 0), (1, 1), (1, 2)], [(1, 2), (1, 1), (1, 0)]),
    "a goal in another's way": ("..... ##.##", [(0, 0), (0, 2)], [(0, 4), (0, 3)]),
}


@pytest.mark.parametrize("name", CORRIDORS)
@pytest.mark.parametrize(("motion", "following"), MODELS)
def test_agents_change_places_where_a_corridor_has_room(name, motion, following):
    text, starts, goals = CORRIDORS[name]
    free = free_tiles(text)
    plan = planner(free, motion, following).solve(starts, goals, 2.0)
    assert plan.solved, plan.message
    check(plan, free, starts, goals, motion, following)


def test_two_agents_cannot_change_places_in_a_corridor():
    free = free_tiles(".....")
    plan = planner(free).solve([(0, 0), (0, 4)], [(0, 4), (0, 0)], 2.0)
    assert not plan.solved and plan.message == "no plan exists in which every agent reaches its goal"
    assert FleetStatus.NO_JOINT_PLAN in plan.status and FleetStatus.NOT_REACHED not in plan.status
    check(plan, free, [(0, 0), (0, 4)], [(0, 4), (0, 0)], "four", True)


def maze(rows, cols, seed):
    """A perfect maze on 2 rows + 1 by 2 cols + 1 tiles, by a random depth-first walk, and a few walls less."""
    rng = np.random.default_rng(seed)
    free = np.zeros((2 * rows + 1, 2 * cols + 1), bool)
    free[1, 1], stack = True, [(0, 0)]
    while stack:
        row, col = stack[-1]
        ways = [(row + r, col + c) for r, c in MOVES if 0 <= row + r < rows and 0 <= col + c < cols]
        ways = [(r, c) for r, c in ways if not free[2 * r + 1, 2 * c + 1]]
        if not ways:
            stack.pop()
            continue
        r, c = ways[rng.integers(len(ways))]
        free[2 * r + 1, 2 * c + 1] = free[row + r + 1, col + c + 1] = True
        stack.append((r, c))
    return free | ((rng.uniform(size=free.shape) < 0.1) & np.pad(np.ones((2 * rows - 1, 2 * cols - 1), bool), 1))


@pytest.mark.parametrize(("motion", "following"), MODELS)
@pytest.mark.parametrize(("free", "share"), [(maze(6, 8, 0), 0.3), (np.ones((9, 9), bool), 0.9)], ids=["maze", "dense"])
def test_mazes_and_dense_rooms_are_solved(motion, following, free, share):
    rng, tiles = np.random.default_rng(1), np.argwhere(free)
    n = int(share * len(tiles))
    starts, goals = tiles[rng.permutation(len(tiles))[:n]], tiles[rng.permutation(len(tiles))[:n]]
    plan = planner(free, motion, following).solve(starts, goals, 3.0)
    assert plan.solved, plan.message
    check(plan, free, starts, goals, motion, following)


def test_a_plan_is_near_the_lower_bound_where_there_is_room():
    free = np.ones((24, 24), bool)
    rng, tiles = np.random.default_rng(2), np.argwhere(free)
    starts, goals = tiles[rng.permutation(576)[:40]], tiles[rng.permutation(576)[:40]]
    plan = planner(free).solve(starts, goals, 5.0)
    assert plan.solved and plan.sum_of_costs <= 1.05 * plan.lower_bound
    assert plan.lower_bound == np.abs(starts - goals).sum()
    assert plan.lower_bound_makespan == np.abs(starts - goals).sum(axis=1).max() <= plan.makespan


@pytest.mark.parametrize("motion", ["four", "turning"])
def test_a_plan_is_the_same_for_the_same_seed(motion):
    free, starts, goals = random_query(3, (7, 8), 0.2, 12)
    plans = [planner(free, motion).solve(starts, goals, 1e6, seed=5) for _ in range(2)]
    assert (plans[0].positions == plans[1].positions).all() and (plans[0].headings == plans[1].headings).all()


def test_agents_with_bad_starts_or_goals_have_a_status_and_the_others_are_planned():
    free = free_tiles("....#. ....#. ....##")
    nan = float("nan")
    starts = [(0, 0), (nan, 0), (9, 0), (0, 4), (0, 0), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]
    goals = [(0, 3), (0, 1), (0, 1), (0, 1), (0, 1), (nan, 1), (-1, 2), (1, 4), (1, 5), (0, 3), (2, 3)]
    plan = planner(free).solve(starts, goals, 2.0)
    assert [FleetStatus(int(s)).name for s in plan.status] == [
        "SOLVED", "START_NOT_FINITE", "START_OUTSIDE", "START_BLOCKED", "SAME_START", "GOAL_NOT_FINITE",
        "GOAL_OUTSIDE", "GOAL_BLOCKED", "NO_PATH", "SAME_GOAL", "SOLVED",
    ]  # fmt: skip
    assert not plan.solved and (plan.positions[:, 1:5] == -1).all() and (plan.positions[:, 5:] >= 0).all()
    assert conflicts(plan.positions, ~free) == []
    assert plan.text(9) == "agent 9: an agent with a lower number has that goal, or one too near to it"
    assert plan.message == "solved, but for agents that have no goal"


@pytest.mark.parametrize(
    ("starts", "goals", "more", "error", "text"),
    [
        ([(0, 0, 0)], [(0, 0)], {}, GridMapError, r"starts has the shape \(1, 3\)"),
        ([(0, 0)], [(0, 0), (0, 1)], {}, GridMapError, "goals has 2 rows; allowed: 1"),
        ([(0, 0.5)], [(0, 0)], {}, GridMapError, r"starts\[0\] is \[0.0, 0.5\]; allowed: whole numbers"),
        ([("a", "b")], [(0, 0)], {}, GridMapError, "starts has the type"),
        ([(0, 0)], [(0, 0)], {"headings": [4]}, GridMapError, "the heading of agent 0 is 4"),
        ([(0, 0)], [(0, 0)], {"headings": [0, 1]}, GridMapError, r"headings is int64 \(2,\)"),
        ([(0, 0)], [(0, 0)], {"time_limit_s": -1}, SettingsError, "time_limit_s is -1"),
        ([(0, 0)], [(0, 0)], {"seed": 0.5}, SettingsError, "seed is 0.5"),
    ],
)
def test_malformed_arguments_are_named(starts, goals, more, error, text):
    with pytest.raises(error, match=text):
        planner(np.ones((2, 3), bool), "turning").solve(starts, goals, **more)


def test_no_agents_are_a_plan():
    plan = planner(np.ones((2, 3), bool)).solve(np.zeros((0, 2), int), np.zeros((0, 2), int))
    assert plan.solved and plan.makespan == 0 and plan.sum_of_costs == plan.lower_bound == 0


def test_without_time_no_agent_is_called_solved_that_is_not():
    free, starts, goals = random_query(4, (12, 12), 0.1, 80)
    plan = planner(free).solve(starts, goals, 0.0)
    check(plan, free, starts, goals, "four", True)


def test_large_agents_keep_their_distance():
    free = np.ones((14, 14), bool)
    starts, goals = [(1, 1), (1, 8), (8, 1), (8, 8)], [(1, 8), (8, 8), (1, 1), (8, 1)]
    plan = planner(free, size=2, safety_distance=1).solve(starts, goals, 10.0)
    span = range(-2, 3)
    assert plan.solved, plan.message
    assert conflicts(plan.positions, near=[(r, c) for r in span for c in span]) == []
    assert plan.sum_of_costs >= plan.lower_bound == 4 * 7


@pytest.mark.parametrize(("motion", "following"), MODELS)
def test_agents_queue_into_one_sink_and_leave_the_map_there(motion, following):
    free, starts, _ = random_query(7, (12, 12), 0.1, 60)
    sink = starts[20]
    plan = planner(free, motion, following).solve(starts, sink, 5.0)
    assert conflicts(plan.positions, ~free, following=following) == []
    at_sink = (plan.positions == sink).all(axis=2)
    assert plan.solved and (at_sink.sum(axis=0) == 1).all() and (at_sink.sum(axis=1) <= 1).all()
    assert (at_sink.argmax(axis=0) == plan.costs).all()
    for agent in range(len(starts)):
        assert ((plan.positions[:, agent, 0] < 0) == (np.arange(plan.makespan + 1) > plan.costs[agent])).all()
    alone = np.sort(distances(free, sink)[tuple(np.transpose(starts))])
    earliest = [int(alone[0])]
    for steps in alone[1:].tolist():
        earliest.append(max(steps, earliest[-1] + 1))
    assert (
        (plan.costs >= plan.lower_bounds).all()
        and plan.lower_bound == sum(earliest)
        and plan.lower_bound_makespan == earliest[-1]
    )
    if motion == "four" and following:
        assert plan.sum_of_costs == plan.lower_bound


def distances(free, goal):
    """Steps to a goal, by a breadth-first search; -1 where no path leads."""
    steps = np.full(free.shape, -1)
    steps[tuple(goal)], queue = 0, deque([tuple(goal)])
    while queue:
        row, col = queue.popleft()
        for r, c in MOVES:
            there = row + r, col + c
            if 0 <= there[0] < free.shape[0] and 0 <= there[1] < free.shape[1] and free[there] and steps[there] < 0:
                steps[there] = steps[row, col] + 1
                queue.append(there)
    return steps


@pytest.mark.parametrize(("motion", "following"), MODELS)
def test_every_agent_gets_one_of_the_tiles_for_any(motion, following):
    for seed in range(4):
        free, starts, goals = random_query(seed, (10, 10), 0.1, 60)
        keep = distances(free, starts[0])[tuple(np.transpose(starts))] >= 0
        starts = np.array(starts)[keep][:30]
        goals = [goal for goal in goals if distances(free, starts[0])[tuple(goal)] >= 0]
        plan = planner(free, motion, following).solve(starts, goals, 0.5, assign=True)
        assert plan.solved, plan.message
        check(plan, free, starts, plan.goals, motion, following)
        assert len({tuple(goal) for goal in plan.goals}) == len(starts)
        assert {tuple(goal) for goal in plan.goals} <= set(map(tuple, goals))
        nearest = [min(distances(free, goal)[tuple(start)] for goal in goals) for start in starts]
        assert (plan.lower_bounds == nearest).all()


def test_agents_park_in_a_corridor_that_they_could_not_pass_each_other_in():
    free = free_tiles("........")
    plan = planner(free).solve([(0, 0), (0, 1), (0, 2)], [(0, 7), (0, 6), (0, 5)], 1.0, assign=True)
    assert plan.solved and plan.sum_of_costs == 15


@pytest.mark.parametrize(
    ("goals", "text"),
    [
        ([(0, 0)], "goals has 1 rows; allowed: 2 at least"),
        ([(0, 0), (0, 1)], "goals.1. is .*it lies on a blocked tile"),
        ([(1, 1), (5, 0)], "goals.1. is .*it lies outside the map"),
        ([(1, 1), (1, 1)], "goals.1. is .*another row has that tile"),
    ],
)
def test_tiles_for_any_agent_that_are_none_are_named(goals, text):
    with pytest.raises(GridMapError, match=text):
        planner(free_tiles(".#. ...")).solve([(0, 0), (0, 2)], goals, assign=True)


def test_preferred_directions_lead_along_ways_of_least_cost():
    free, _, goals = random_query(5, (9, 11), 0.25, 40)  # more goals than one sweep takes
    tiles, goals = ground_of(free), np.array(goals)
    moves = np.random.default_rng(0).integers(1, 20, (*free.shape, 4)).astype(np.uint8)
    instance = Instance(tiles, goals, goals)
    instance.plan_next_hops()
    plain = instance.next_hops.copy()
    instance.prefer(moves, NEVER)
    assert (instance.next_hops & 15 == plain).all()
    for agent in range(len(goals)):
        cost, queue = {tuple(goals[agent]): 0}, [(0, *goals[agent])]
        while queue:
            so_far, row, col = heapq.heappop(queue)
            for direction, (r, c) in enumerate(MOVES):
                there = row - r, col - c
                if 0 <= there[0] < free.shape[0] and 0 <= there[1] < free.shape[1] and free[there]:
                    if so_far + moves[there][direction] < cost.get(there, np.inf):
                        cost[there] = so_far + int(moves[there][direction])
                        heapq.heappush(queue, (cost[there], *there))
        for (row, col), best in cost.items():
            ways = [(row + r, col + c) for r, c in MOVES]
            wanted = [cost.get(to, np.inf) + int(moves[row, col][d]) == best for d, to in enumerate(ways)]
            bits = int(instance.next_hops[instance.field[agent], instance.number[row, col]]) >> 4
            assert [bits >> d & 1 for d in range(4)] == wanted


def test_a_sink_wants_small_agents():
    with pytest.raises(SettingsError, match="a sink for all agents.* this fleet's size is 2"):
        planner(np.ones((6, 6), bool), size=2).solve([(1, 1)], (4, 4))


def test_a_sink_that_is_blocked_is_every_agents_status():
    plan = planner(free_tiles(".#. ...")).solve([(0, 0), (0, 2)], (0, 1))
    assert (plan.status == FleetStatus.GOAL_BLOCKED).all() and plan.makespan == 0


def test_the_benchmark_names_what_it_measures(monkeypatch):
    free = np.ones((6, 7), bool)
    monkeypatch.setattr(fleets_one_shot, "INSTANCES", (("room", 3, 0.2),))
    monkeypatch.setattr(fleets_one_shot, "load_movingai_map", lambda path, connectivity: GridMap(free, connectivity=4))
    query = np.array([(0, 0), (1, 1), (2, 2)]), np.array([(5, 6), (4, 5), (3, 4)])
    monkeypatch.setattr(fleets_one_shot, "_query", lambda *_: query)
    monkeypatch.setattr(fleets_one_shot, "data_dir", lambda _: Path())
    monkeypatch.delenv(fleets_one_shot.PEER, raising=False)
    rows = fleets_one_shot.one_shot(Context(("cpu",), {}))
    assert [bool(row.figures) for row in rows] == [True, True, False, False]
    assert rows[0].figures["cost"] == 11 + 7 + 3 and rows[0].figures["over_bound"] == 1
    assert all(fleets_one_shot.PEER in row.note for row in rows[2:])
    (benchmark,) = fleets_one_shot.BENCHMARKS
    assert set(benchmark.columns) == set(rows[0].figures) <= set(report.HEADINGS)


def test_fields_that_take_too_much_memory_are_named():
    with pytest.raises(SettingsError, match="the fields of 1 goals take 37 bytes; allowed by memory_limit_bytes: 30"):
        planner(np.ones((6, 6), bool), memory_limit_bytes=30).solve([(0, 0)], [(1, 1)])


def test_lower_bounds_are_ticks_also_where_tiles_have_costs():
    fleet = FleetPlanner(GridMap(np.array([[1, 2, 50, 3, 1]])), "four", "cpu", Settings(ticks_per_move=2))
    plan = fleet.solve([[0, 0]], [[0, 4]], 2.0)  # it ends when the agent is there
    assert plan.solved and plan.lower_bound == plan.sum_of_costs == 7  # the last of four moves begins then
