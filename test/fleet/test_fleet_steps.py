"""Fleets for life: no step ever has a conflict, agents arrive, faults are met. The validator shares no code."""

import numba
import numpy as np
import pytest

from gpu_planners.device import cuda_problem
from gpu_planners.distributed.processes import processes
from gpu_planners.errors import GridMapError, SettingsError
from gpu_planners.fleet import Guidance, Settings, conflicts, learn_guidance
from gpu_planners.fleet.step.stepper import STEADY
from gpu_planners.grid import FleetPlanner, GridMap
from gpu_planners.grid.maps.generated import largest_component, warehouse_map


def room(seed=0, shape=(16, 20), blocked=0.15):
    """A map whose free tiles all hang together."""
    return largest_component(np.random.default_rng(seed).uniform(size=shape) > blocked)


def places(free, n, rng):
    tiles = np.argwhere(free)
    return tiles[rng.permutation(len(tiles))[:n]]


def run(fleet, free, steps, seed=0, budget_s=0.0, each=None):
    """Errands until the end -> positions (steps + 1, N, 2), goals reached by each agent"""
    rng = np.random.default_rng(seed)
    n = len(fleet.positions)
    goals, done, walked = places(free, n, rng) if n <= free.sum() else None, np.zeros(n, int), [fleet.positions]
    for step in range(steps):
        fleet.step(goals, budget_s)
        if each:
            each(step, fleet)
        walked.append(fleet.positions)
        there = (walked[-1] == goals).all(axis=1)
        done += there
        goals[there] = np.argwhere(free)[rng.integers(free.sum(), size=there.sum())]
    return np.array(walked), done


@pytest.mark.parametrize("motion", ["four", "turning"])
@pytest.mark.parametrize("following", [True, False])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_no_step_has_a_conflict_and_agents_arrive(motion, following, share):
    free = room()
    fleet = FleetPlanner(GridMap(free, connectivity=4), motion, "cpu", Settings(following=following))
    fleet.start(places(free, int(share * free.sum()), np.random.default_rng(1)))
    walked, done = run(fleet, free, 150)
    assert conflicts(walked, ~free, following=following) == []
    assert done.sum() > (150 if share < 0.9 and (following or share < 0.5) else 0)


def horizon_after(share, budgets, motion="turning", **settings):
    """The horizon of a fleet that has had steps with these budgets, in seconds; nobody has met, or is stuck."""
    free = room(shape=(10, 12))
    fleet = FleetPlanner(GridMap(free, connectivity=4), motion, "cpu", Settings(**settings))
    fleet.start(places(free, int(share * free.sum()), np.random.default_rng(1)))
    goals, walked = places(free, len(fleet.positions), np.random.default_rng(2)), [fleet.positions]
    for budget_s in budgets:
        fleet.step(goals, budget_s)
        walked.append(fleet.positions)
    assert conflicts(np.array(walked), ~free, following=settings.get("following", True)) == []
    return fleet._stepper.rules.horizon


def test_thousands_of_agents_look_ahead_as_far_as_their_threads_have_time():
    free = room(shape=(90, 90))
    fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", "cpu")
    fleet.start(places(free, 4500, np.random.default_rng(1)))
    for budget_s, horizon in ((0.01, 3), (10.0, 5)):
        fleet._stepper.look_ahead(fleet._lanes, budget_s)
        assert fleet._stepper.rules.horizon == horizon


def test_on_a_map_that_is_not_cut_one_thread_counts():
    free = room(shape=(60, 60))
    fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", "cpu")
    fleet.start(places(free, 2200, np.random.default_rng(1)))
    before, horizons = numba.get_num_threads(), []
    for threads in (1, before):
        numba.set_num_threads(threads)
        horizons.append([fleet._stepper._horizon_for(fleet._lanes, s) for s in np.geomspace(0.005, 0.2, 40)])
    assert set(horizons[0]) == {3, 4, 5} and horizons[0] == horizons[1]


def test_the_horizon_follows_time_and_room():
    long = 0.05
    assert horizon_after(0.6, [long] * 5) == 5 and horizon_after(0.9, [long] * 5) == 4
    assert horizon_after(0.99, [long] * 5) == 3 and horizon_after(0.6, [0.0] * 5) == 3
    assert horizon_after(0.6, [long] * 5, following=False) == 5
    assert horizon_after(0.2, [long] * 5) == 3  # these plan whole ways
    assert horizon_after(0.6, [long] * 3 + [0.0] * (STEADY - 1)) == 5  # it does not follow each step
    assert horizon_after(0.6, [long] * 3 + [0.0] * STEADY) == 3
    assert horizon_after(0.6, [0.0] * 3 + [long] * STEADY) == 5
    assert horizon_after(0.6, [long] * 5, horizon=3) == 3  # as it was asked
    assert horizon_after(0.6, [long] * 5, ticks_per_move=2) == 3
    assert horizon_after(0.6, [long] * 5, "four") == 3  # these have five times the options with each tick


def test_agents_of_another_speed_may_join_while_the_horizon_is_long():
    free = np.ones((10, 12), bool)
    fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", "cpu")
    tiles = np.argwhere(free)
    fleet.start(tiles[:70])
    goals, walked = np.r_[tiles[-70:], tiles[:1]], [np.r_[fleet.positions, tiles[-1:]]]
    fleet.step(goals[:70], 0.05)
    assert fleet._stepper.rules.horizon == 5
    fleet.add(tiles[-1:], speeds=[[2, 1]])
    for _ in range(STEADY + 10):
        walked.append(fleet.positions)
        fleet.step(goals, 0.0)
    assert conflicts(np.array(walked), ~free) == [] and fleet._stepper.rules.horizon == 3


def covered(positions, size):
    """Every tile that agents of a side cover: (steps + 1, N, 2) -> (steps + 1, N, size^2, 2)"""
    low = (size - 1) // 2
    offsets = np.array([(r, c) for r in range(-low, size - low) for c in range(-low, size - low)])
    return positions[:, :, None, :] + offsets


@pytest.mark.parametrize("motion", ["four", "turning"])
@pytest.mark.parametrize("size, gap", [(2, 0), (3, 1)])
def test_agents_with_a_size_keep_their_distance(motion, size, gap):
    free = np.ones((24, 24), bool)
    free[10:13, 10:13] = False
    fleet = FleetPlanner(GridMap(free, connectivity=4), motion, "cpu", Settings(size=size, safety_distance=gap))
    rows, cols = np.meshgrid(range(2, 22, 5), range(2, 22, 5), indexing="ij")
    starts = np.stack([rows.ravel(), cols.ravel()], 1)
    starts = starts[[free[r - 1 : r + 2, c - 1 : c + 2].all() for r, c in starts]]
    fleet.start(starts)
    inner = np.zeros_like(free)
    inner[2:-2, 2:-2] = True
    inner[8:15, 8:15] = False
    walked, done = run(fleet, inner, 120)
    reach = size + gap
    near = [(r, c) for r in range(1 - reach, reach) for c in range(1 - reach, reach)]
    assert conflicts(walked, None, near) == []
    tiles = covered(walked, size)
    assert ((tiles >= 0) & (tiles < 24)).all() and free[tiles[..., 0], tiles[..., 1]].all()
    assert done.sum() > 5


@pytest.mark.parametrize("move, turn", [(2, 1), (1, 2), (3, 2)])
def test_slow_agents_hold_both_tiles_of_a_move(move, turn):
    """Tick by tick, with the tile that a moving agent still leaves as an agent of its own kind."""
    free = room(3)
    settings = Settings(ticks_per_move=move, ticks_per_turn=turn, horizon=4)
    fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", "cpu", settings)
    fleet.start(places(free, 60, np.random.default_rng(2)))
    began, held, now = np.full(60, -(10**6)), [], [fleet.positions]
    origin = fleet.positions

    def look(step, fleet):
        nonlocal origin
        moved = (fleet.positions != now[-1]).any(axis=1)
        assert (step - began[moved] >= move).all()  # a move takes its time
        began[moved], origin = step, np.where(moved[:, None], now[-1], origin)
        moving = step - began < move - 1
        held.append(np.concatenate([fleet.positions, np.where(moving[:, None], origin, -1)]))
        now.append(fleet.positions)

    _, done = run(fleet, free, 300, each=look)
    assert conflicts(np.array(held)[:, :60], ~free) == []
    for both in held:  # nobody is on a tile that somebody still leaves
        tiles = [tuple(tile) for tile in both if tile[0] >= 0]
        assert len(tiles) == len(set(tiles))
    assert done.sum() > 10


@pytest.mark.parametrize("motion", ["four", "turning"])
def test_agents_that_do_not_move_as_told_are_passed(motion):
    """Some are delayed at random, some break down: no two ever come together, and the others go on."""
    free, rng = room(4, blocked=0.05), np.random.default_rng(5)
    fleet = FleetPlanner(GridMap(free, connectivity=4), motion, "cpu", Settings(following=False))
    fleet.start(places(free, 60, rng))
    broken = np.array([3, 17])
    real = [fleet.positions.copy(), fleet.headings.copy()]

    def fail(step, fleet):
        late = rng.uniform(size=60) < 0.1
        late[broken] |= step >= 30
        seen = np.where(late[:, None], real[0], fleet.positions)
        faces = np.where(late, real[1], fleet.headings)
        fleet.observe(seen, faces, still=broken if step >= 30 else ())
        real[0], real[1] = seen.copy(), faces.copy()

    walked, done = run(fleet, free, 250, each=fail)
    assert conflicts(walked, ~free, following=False) == []
    assert (walked[31:, broken] == walked[31, broken]).all()
    assert np.delete(done, broken).sum() > 300


def test_tiles_blocked_and_freed_while_agents_move():
    free, rng = room(6, blocked=0.05), np.random.default_rng(7)
    fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", "cpu")
    fleet.start(places(free, 60, rng))
    now, goals, done = free.copy(), places(free, 60, rng), 0
    for step in range(120):
        if step % 10 == 5:
            tile = np.argwhere(free)[rng.integers(free.sum())]
            now[tuple(tile)] ^= True
            before = fleet.positions
            fleet.update(tile[:1], tile[1:], [int(now[tuple(tile)])])
            assert (fleet.positions == before).all()
        before = fleet.positions
        fleet.step(np.where(now[goals[:, 0], goals[:, 1]][:, None], goals, -1))
        walked = np.array([before, fleet.positions])
        assert conflicts(walked) == []
        entered = (walked[0] != walked[1]).any(axis=1)
        assert now[walked[1][entered, 0], walked[1][entered, 1]].all()
        there = (fleet.positions == goals).all(axis=1)
        done += there.sum()
        goals[there] = np.argwhere(free)[rng.integers(free.sum(), size=there.sum())]
    assert done > 150


def test_agents_come_and_go():
    free, rng = room(8), np.random.default_rng(9)
    fleet = FleetPlanner(GridMap(free, connectivity=4), "four", "cpu")
    fleet.start(places(free, 30, rng))
    there = np.ones(30, bool)
    for step in range(60):
        if step % 5 == 0:
            taken = {tuple(tile) for tile in fleet.positions[there]}
            new = next(tile for tile in places(free, 300, rng) if tuple(tile) not in taken)
            assert fleet.add([new]).tolist() == [len(there)]
            gone = rng.choice(np.flatnonzero(there))
            fleet.remove([gone])
            there[gone] = False
            there = np.r_[there, True]
        before = fleet.positions
        fleet.step(places(free, len(there), rng)[: len(there)] if step % 2 else np.full((len(there), 2), -1))
        walked = np.where(there[:, None], [before, fleet.positions], -1)
        assert conflicts(walked, ~free) == []
        assert (before[~there] == fleet.positions[~there]).all()


def test_who_has_no_goal_makes_way():
    """A corridor with a bay: the one in the middle has no goal and is pushed aside."""
    free = np.zeros((2, 7), bool)
    free[0], free[1, 3] = True, True
    fleet = FleetPlanner(GridMap(free, connectivity=4), "four", "cpu")
    fleet.start([[0, 0], [0, 3]])
    for _ in range(12):
        fleet.step([[0, 6], [-1, -1]])
    assert fleet.positions.tolist()[0] == [0, 6]


@pytest.mark.parametrize("following", [True, False])
def test_who_has_nothing_to_do_stands_still(following):
    """Half of the agents are at their goals and half have none: nobody moves or turns."""
    free = room()
    fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", "cpu", Settings(following=following))
    starts = places(free, 40, np.random.default_rng(1))
    fleet.start(starts, np.arange(40) % 4)
    for _ in range(20):
        actions = fleet.step(np.where(np.arange(40)[:, None] < 20, starts, -1))
        assert (actions == fleet.motion.wait).all()


@pytest.mark.parametrize("following", [True, False])
def test_who_cannot_get_to_its_goal_stands_and_makes_way(following):
    """A goal that is blocked, and one behind a wall: agents stand as near as they come, and let others pass."""
    free = np.ones((12, 14), bool)
    free[3, 3], free[:, 11] = False, False
    settings = Settings(following=following)
    fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", "cpu", settings)
    starts = places(free[:, :11], 12, np.random.default_rng(1))
    fleet.start(starts)
    goals = np.where(np.arange(12)[:, None] < 6, [3, 3], [5, 13])
    for step in range(120):
        actions = fleet.step(goals)
        assert step < 60 or (actions == fleet.motion.wait).all()
    corridor = np.zeros((2, 9), bool)
    corridor[0, :8], corridor[1, 7] = True, True
    fleet = FleetPlanner(GridMap(corridor, connectivity=4), "four", "cpu", settings)
    fleet.start([[0, 0], [0, 7]])
    for _ in range(12):
        fleet.step([[0, 7], [0, 8]])
    assert fleet.positions.tolist() == [[0, 7], [1, 7]]


def test_a_train_longer_than_any_search_stops_behind_its_first_agent():
    free = np.ones((1, 1360), bool)
    fleet = FleetPlanner(GridMap(free, connectivity=4), "four", "cpu", Settings(avoid_crowds=False))
    fleet.start([[0, col] for col in range(1200)])
    goals, walked = np.tile([0, 1359], (1200, 1)), [fleet.positions]
    for step in range(6):
        if step == 3:
            assert (walked[-1] != walked[-2]).any(axis=1).all()  # they all move
            fleet.observe(fleet.positions, still=[1199])
        fleet.step(goals)
        walked.append(fleet.positions)
    assert conflicts(np.array(walked), ~free) == []


def test_agents_that_were_carried_far_away_go_straight_back():
    """In a hall where each has a row of its own; and likewise where a gap is closed and they have to go round."""
    fleet = FleetPlanner(GridMap(np.ones((12, 80), bool), connectivity=4), "turning", "cpu")
    rows = np.arange(12)
    fleet.start(np.stack([rows, rows * 0 + 72], 1))
    goals, arrived = np.stack([rows, rows * 0 + 78], 1), np.zeros(12, bool)
    for step in range(85):
        if step == 3:
            fleet.observe(np.stack([rows, rows * 0 + 2], 1))
            arrived[:] = False
        fleet.step(np.where(arrived[:, None], -1, goals))
        arrived |= (fleet.positions == goals).all(axis=1)
    assert arrived.all()
    free = np.ones((13, 40), bool)
    free[6, 1:] = False
    free[6, 30] = True
    fleet = FleetPlanner(GridMap(free, connectivity=4), "four", "cpu")
    fleet.start([[5 - k, 30] for k in range(5)])
    goals, arrived = np.array([[7, 32 - k] for k in range(5)]), np.zeros(5, bool)
    for step in range(90):
        if step == 1:
            fleet.update([6], [30], [0])
        fleet.step(np.where(arrived[:, None], -1, goals))
        arrived |= (fleet.positions == goals).all(axis=1)
    assert arrived.all()


@pytest.mark.parametrize("following", [True, False])
def test_agents_face_to_face_pass_each_other(following):
    """Two agents in a hall, each on the other's way."""
    free = np.ones((3, 8), bool)
    fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", "cpu", Settings(following=following))
    fleet.start([[1, 3], [1, 4]], [0, 2])
    goals, arrived = np.array([[1, 7], [1, 0]]), np.zeros(2, bool)
    for _ in range(60):
        fleet.step(np.where(arrived[:, None], -1, goals))
        arrived |= (fleet.positions == goals).all(axis=1)
    assert arrived.all()


def test_agents_far_from_their_goals_keep_away_from_crowds():
    """In a room that is three quarters full, more goals are reached where they do."""
    free, errands = room(seed=3, shape=(24, 24)), []
    for avoid in (True, False):
        settings = Settings(guidance="lanes", avoid_crowds=avoid)
        fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", "cpu", settings)
        fleet.start(places(free, int(0.75 * free.sum()), np.random.default_rng(1)))
        walked, done = run(fleet, free, 300)
        assert conflicts(walked, ~free) == []
        errands.append(done.sum())
    assert errands[0] > 1.1 * errands[1]


def test_a_room_that_is_nearly_full_does_not_slow_down():
    """Agents that are stuck near their goals do not become walls for the others."""
    errands = 0
    for seed in (3, 4):
        free = room(seed, shape=(24, 24))
        fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", "cpu")
        fleet.start(places(free, int(0.97 * free.sum()), np.random.default_rng(1)))
        walked, done = run(fleet, free, 600)
        assert conflicts(walked, ~free) == []
        errands += done.sum()
    assert errands > 1950  # 2,109; 1,749 where whoever is nearest to its goal always goes first


@pytest.mark.parametrize("share, even", [(0.1, True), (0.9, False)])
def test_all_agents_weigh_the_same_in_free_traffic_and_the_first_ones_more_in_a_jam(share, even):
    free = room(seed=3, shape=(24, 24))
    fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", "cpu")
    fleet.start(places(free, int(share * free.sum()), np.random.default_rng(1)))
    run(fleet, free, 80)
    weights = fleet._stepper.state.stacks.weight
    assert (weights.max() < 2 * weights.min()) == even
    assert even or weights.max() > 1000 * weights.min()


def test_agents_that_do_not_get_on_are_named():
    free = np.zeros((1, 6), bool) | True
    fleet = FleetPlanner(GridMap(free, connectivity=4), "four", "cpu", Settings(stuck_after=20))
    fleet.start([[0, 0], [0, 5]])
    for _ in range(30):
        fleet.step([[0, 5], [0, 0]])
    assert fleet.stuck.tolist() == [0, 1]


@pytest.mark.parametrize(
    "starts, text",
    [
        ([[0, 0], [0, 0]], "agent 0 .* too near to another"),
        ([[0, 0], [9, 0]], r"agent 1 is at \[9, 0\], outside the 3 x 3 map"),
        ([[1, 1]], r"agent 0 is at \[1, 1\], which is blocked"),
        ([[0, float("nan")]], r"starts\[0\] is .*nan.*whole numbers"),
        ([0, 1], r"starts has the shape \(2,\)"),
    ],
)
def test_bad_starts_are_named(starts, text):
    free = np.ones((3, 3), bool)
    free[1, 1] = False
    fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", "cpu")
    with pytest.raises(GridMapError, match=text):
        fleet.start(starts)


def test_bad_input_changes_nothing():
    free = np.ones((3, 3), bool)
    fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", "cpu")
    fleet.start([[0, 0], [2, 2]], [1, 2])
    for call, error, text in (
        (lambda: fleet.step([[0, 1]]), GridMapError, "goals has 1 rows; allowed: 2"),
        (lambda: fleet.step([[0, 1], [5, 5]]), GridMapError, "goal of agent 1"),
        (lambda: fleet.observe([[0, 0], [0, 0]]), GridMapError, "agents 0 and 1 are both"),
        (lambda: fleet.observe([[0, 0], [7, 0]]), GridMapError, "agent 1 .* outside"),
        (lambda: fleet.observe([[0, 0], [1, 0]], still=[5]), GridMapError, r"still\[0\] is 5; allowed"),
        (lambda: fleet.start([[0, 0]], [7]), GridMapError, "heading of agent 0 is 7"),
        (lambda: FleetPlanner(GridMap(free), "six"), SettingsError, "motion is 'six': use one of four, turning"),
    ):
        with pytest.raises(error, match=text):
            call()
        assert fleet.positions.tolist() == [[0, 0], [2, 2]] and fleet.headings.tolist() == [1, 2]


def test_fields_that_do_not_fit_are_refused():
    fleet = FleetPlanner(GridMap(np.ones((3, 3), bool)), "four", "cpu", Settings(memory_limit_bytes=50))
    fleet.start([[0, 0], [2, 2], [1, 1]])
    with pytest.raises(SettingsError, match="fields of 3 goals take 75 bytes; memory_limit_bytes allows 50"):
        fleet.step([[0, 1], [1, 0], [2, 0]])
    fleet.step([[0, 1], [1, 0], [0, 1]])
    fleet.step([[0, 2], [2, 0], [0, 2]])  # others take the places of those that nobody needs


@pytest.mark.parametrize("motion", ["four", "turning"])
def test_fields_are_dijkstras(motion):
    """Cost to go of every state, against SciPy's Dijkstra on the graph of states, with random costs of moves."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    rng = np.random.default_rng(11)
    free, headings = room(12, (9, 11)), 4 if motion == "turning" else 1
    moves = rng.integers(1, 100, (9, 11, 4))
    turn = 5
    step = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    edges = []
    for r, c in np.argwhere(free):
        for d, (dr, dc) in enumerate(step):
            if headings == 4:
                here = (r * 11 + c) * 4 + d
                edges += [(here, (r * 11 + c) * 4 + (d + q) % 4, turn) for q in (1, 3)]
            if 0 <= r + dr < 9 and 0 <= c + dc < 11 and free[r + dr, c + dc]:
                face = d if headings == 4 else 0
                edges.append(
                    (((r * 11 + c) * headings + face), ((r + dr) * 11 + c + dc) * headings + face, moves[r, c, d])
                )
    a, b, cost = np.array(edges).T
    graph = coo_array((cost, (b, a)), shape=(99 * headings, 99 * headings))  # backwards
    fleet = FleetPlanner(GridMap(free), motion, "cpu", guidance=Guidance(moves, 1, turn))
    goal = np.argwhere(free)[5]
    sources = (goal[0] * 11 + goal[1]) * headings + np.arange(headings)
    want = dijkstra(graph, indices=sources, min_only=True).reshape(9, 11, headings)[free]
    assert (costs_to(fleet, goal, free) == want).all()


def test_guidance_follows_the_number_of_agents():
    """Lanes get stricter as agents join; costs of a map's tiles, and guidance that was given, stay."""
    free, rng = np.ones((24, 24), np.uint8), np.random.default_rng(0)
    places = rng.permutation(np.argwhere(free))
    fleet = FleetPlanner(GridMap(free), "turning", "cpu")
    strict = []
    for agents in (1, 40, 200):
        fleet.start(places[:agents])
        strict.append(fleet.guidance.moves.max() / fleet.guidance.unit)
    assert 1 < strict[0] < strict[1] < strict[2]
    few = FleetPlanner(GridMap(free), "turning", "cpu")
    few.start(places[:1])
    for agent in range(1, 200):
        few.add(places[agent : agent + 1])
    assert few.guidance.moves.max() >= 0.7 * fleet.guidance.moves.max()
    goals = places[-200:]
    few.step(goals)
    fleet.step(goals)
    assert not conflicts(np.array([places[:200], few.positions]), ~free.astype(bool))

    given = Guidance.plain(GridMap(free))
    fleet = FleetPlanner(GridMap(free), "turning", "cpu", guidance=given)
    fleet.start(places[:200])
    assert fleet.guidance is given
    costs = GridMap(rng.integers(1, 9, free.shape).astype(np.uint8))
    fleet = FleetPlanner(costs, "turning", "cpu")
    before = fleet.guidance
    fleet.start(places[:200])
    fleet.add(places[200:201])
    assert fleet.guidance is before  # so that no field is lost
    assert (fleet.guidance.moves == Guidance.plain(costs).moves).all()
    fleet.update([0], [0], 0)
    assert (fleet.guidance.moves == Guidance.plain(fleet.grid).moves).all()


@pytest.mark.gpu
@pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}")
@pytest.mark.parametrize("motion", ["four", "turning"])
@pytest.mark.parametrize("guidance", ["plain", "lanes"])
def test_cuda_moves_as_the_cpu(motion, guidance):
    free = room(13, (60, 70))
    starts = places(free, 1500, np.random.default_rng(14))
    both = []
    for device in ("cpu", "cuda"):
        fleet = FleetPlanner(GridMap(free), motion, device, Settings(guidance=guidance))
        fleet.start(starts)
        both.append(run(fleet, free, 40))
        assert conflicts(both[-1][0], ~free) == []
    assert (both[0][0] == both[1][0]).all() and (both[0][1] == both[1][1]).all()


def costs_to(fleet, goal, free):
    """(tiles, headings) what the way to a goal costs from every free tile, where agents are put"""
    tiles, costs = np.argwhere(free), []
    for heading in range(fleet.motion.headings):
        fleet.start(tiles, np.full(len(tiles), heading))
        costs.append(fleet.steps_to_go(np.tile(goal, (len(tiles), 1))))
    return np.array(costs).T


def assert_same_fields(one, other, goals, free):
    """Of two fleets on a map: the way to each goal costs the same from everywhere."""
    for goal in goals:
        assert (costs_to(one, goal, free) == costs_to(other, goal, free)).all()


@pytest.mark.parametrize("motion", ["four", "turning"])
@pytest.mark.parametrize("guidance", ["plain", "lanes"])
@pytest.mark.parametrize("share", [0.02, 0.4])
def test_repaired_fields_are_those_from_scratch(motion, guidance, share):
    """Every state that leads to the goal, after changes that block, free, cut off and join parts of the map."""
    rng, shape = np.random.default_rng(15), (26, 31)
    free = rng.uniform(size=shape) > share
    fleet = FleetPlanner(GridMap(free), motion, "cpu", Settings(guidance=guidance))
    goals = places(free, 6, rng)
    fleet.start(goals)
    fleet.step(goals)
    for change in range(60):
        count = rng.integers(1, 6)
        rows, cols = rng.integers(shape[0], size=count), rng.integers(shape[1], size=count)
        keep = ~(np.stack([rows, cols], 1)[:, None] == goals).all(axis=2).any(axis=1)
        rows, cols = rows[keep], cols[keep]
        free[rows, cols] = rng.uniform(size=keep.sum()) > share
        fleet.update(rows, cols, free[rows, cols].astype(int))
        if change % 6:
            continue
        fresh = FleetPlanner(GridMap(free), motion, "cpu", guidance=fleet.guidance)
        fresh.start(goals)
        fresh.step(goals)
        assert_same_fields(fleet, fresh, goals, free)


@pytest.mark.parametrize("motion", ["four", "turning"])
def test_fields_of_goals_that_were_blocked_are_those_from_scratch(motion):
    """The map changes around goals that are blocked, which are freed at last."""
    rng, shape = np.random.default_rng(5), (12, 13)
    free = np.ones(shape, bool)
    goals = places(free, 8, rng)
    fleet = FleetPlanner(GridMap(free), motion, "cpu", Settings(guidance="lanes"))
    others = np.argwhere(~(np.argwhere(free)[:, None] == goals).all(axis=2).any(axis=1).reshape(shape))
    for _ in range(8):
        fleet.start(places(free, 8, np.random.default_rng(6)))
        fleet.step(goals)
        for change in range(5):
            tiles = np.concatenate([goals, others[rng.permutation(len(others))[:8]]])
            costs = np.r_[np.full(8, int(change == 4)), rng.integers(2, size=8)]
            free[tuple(tiles.T)] = costs > 0
            fleet.update(*tiles.T, costs)
            fleet.step(goals)
        fresh = FleetPlanner(GridMap(free), motion, "cpu", guidance=fleet.guidance)
        fresh.start(np.argwhere(free)[:8])
        fresh.step(goals)
        assert_same_fields(fleet, fresh, goals, free)


def test_guidance_is_saved_and_learnt(tmp_path):
    free = room(16, blocked=0.1)
    grid, told = GridMap(free), []
    how = {"device": "cpu", "rounds": 3, "steps": 20, "children": 4, "seed": 5}
    best, reached = learn_guidance(grid, 80, **how, each=lambda *so_far: told.append(so_far))
    assert len(reached) == len(told) == 3 and told[-1][0] is best and told[-1][1] == reached == sorted(reached)
    assert best.moves.shape == (*free.shape, 4) and best.moves.min() >= 1
    with processes(2) as pool:
        other, again = learn_guidance(grid, 80, **how, executor=pool)
    assert (other.moves == best.moves).all() and (other.turn, again) == (best.turn, reached)
    best.save(tmp_path / "guidance.npz")
    again = Guidance.load(tmp_path / "guidance.npz")
    assert (again.moves == best.moves).all() and (again.unit, again.turn) == (best.unit, best.turn)
    both = []
    for guidance in (best, again):
        fleet = FleetPlanner(grid, "turning", "cpu", guidance=guidance)
        fleet.start(places(free, 80, np.random.default_rng(0)))
        both.append(run(fleet, free, 30)[0])
    assert (both[0] == both[1]).all()
    (tmp_path / "other").write_text("no guidance")
    with pytest.raises(GridMapError, match="guidance '.*other' cannot be read: "):
        Guidance.load(tmp_path / "other")
    with pytest.raises(GridMapError, match=r"guidance is for a map of \(16, 20\) tiles; this one has \(3, 3\)"):
        FleetPlanner(GridMap(np.ones((3, 3))), "four", "cpu", guidance=best)


def test_lanes_alternate_from_corridor_to_corridor():
    free = np.ones((12, 13), bool)
    free[2:10, :] = False
    free[:, 0::4] = True  # corridors of which every other one would have the same number modulo 2
    moves = Guidance.lanes(GridMap(free)).moves
    south, north = moves[5, 0::4, 1], moves[5, 0::4, 3]
    assert (south != north).all() and (south[1:] != south[:-1]).all()


def test_agents_go_round_one_that_stands():
    """Also an agent that broke down between two tiles, both of which stay closed."""
    fleet = FleetPlanner(GridMap(np.ones((5, 12), bool)), "turning", "cpu", Settings(ticks_per_move=2, horizon=4))
    fleet.start([[2, 0], [2, 5]])
    fleet.step([[2, 11], [2, 11]])  # agent 1 leaves (2, 5)
    for _ in range(120):
        fleet.observe(fleet.positions, still=[1])
        fleet.step([[2, 11], [2, 11]])
        assert fleet.positions[1].tolist() == [2, 6] and fleet.positions[0].tolist() not in ([2, 5], [2, 6])
    assert fleet.positions[0].tolist() == [2, 11]


def test_a_change_that_is_refused_changes_nothing():
    fleet = FleetPlanner(GridMap(np.ones((4, 5), int)), "four", "cpu")
    fleet.start([[0, 0], [3, 3]])
    with pytest.raises(GridMapError, match="the map has the cost 200; allowed for fleets: at most 123"):
        fleet.update([1, 1], [1, 2], [200, 0])
    assert (fleet.grid.costs == 1).all()
    fleet.update([1], [2], [0])
    fleet.remove([1])
    for _ in range(3):
        fleet.step([[0, 4], [0, 0]])
    assert fleet.positions[0].tolist() == [0, 3]


def crowded():
    """A fleet in a hall that is nearly full -> FleetPlanner, its map"""
    free = room(seed=3, shape=(12, 12), blocked=0.05)
    fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", "cpu", Settings(guidance="lanes"))
    fleet.start(places(free, int(0.8 * free.sum()), np.random.default_rng(1)))
    return fleet, free


def test_agents_that_were_removed_do_not_count():
    """The others move as if they had never been there."""
    both = []
    for gone in (0, 300):
        fleet, free = crowded()
        tile = places(free, free.sum(), np.random.default_rng(1))[-1]
        for _ in range(gone):
            fleet.remove(fleet.add([tile]))
        rng, n = np.random.default_rng(2), int(0.8 * free.sum())
        goals, walked = np.full((n + gone, 2), -1), []
        goals[:n] = places(free, n, rng)
        for _ in range(150):
            fleet.step(goals)
            walked.append(fleet.positions[:n])
            there = (walked[-1] == goals[:n]).all(axis=1)
            goals[:n][there] = np.argwhere(free)[rng.integers(free.sum(), size=there.sum())]
        both.append(np.array(walked))
    assert (both[0] == both[1]).all()


def test_asking_for_the_way_to_other_goals_changes_no_step():
    def ask(_, fleet):
        fleet.steps_to_go(np.repeat(fleet.positions[:1], len(fleet.positions), 0))

    both = []
    for each in (None, ask):
        fleet, free = crowded()
        both.append(run(fleet, free, 150, each=each)[0])
    assert (both[0] == both[1]).all()


def test_the_way_of_one_that_is_busy_is_that_to_its_new_goal():
    fleet = FleetPlanner(GridMap(np.ones((1, 9)), connectivity=4), "four", "cpu", Settings(guidance="plain"))
    fleet.start([[0, 0], [0, 8]])
    far, near = (fleet.steps_to_go([[0, goal], [0, 8]])[0] for goal in (6, 2))
    fleet.observe(fleet.positions, busy=[0])
    assert fleet.steps_to_go([[0, 6], [0, 8]])[0] == far == 3 * near > 0
    assert fleet.steps_to_go([[0, 2], [0, 8]])[0] == near
    fleet.step([[0, 6], [0, 8]])
    assert fleet.positions[0].tolist() == [0, 0] and fleet.steps_to_go([[0, 6], [0, 8]])[0] == far


def test_a_fleet_that_has_worked_for_weeks_moves_as_a_new_one():
    both = []
    for passes in (0, 2**31 - 10):
        fleet, free = crowded()
        fleet._stepper.passes = passes
        both.append(run(fleet, free, 30))
    assert (both[0][0] == both[1][0]).all()


def test_an_agent_that_broke_down_and_is_removed_frees_its_tile():
    fleet = FleetPlanner(GridMap(np.ones((1, 9), bool)), "four", "cpu")
    fleet.start([[0, 0], [0, 4]])
    fleet.observe(fleet.positions, still=[1])
    fleet.remove([1])
    for _ in range(12):
        fleet.step([[0, 8], [-1, -1]])
    assert fleet.positions[0].tolist() == [0, 8]


def test_nobody_is_planned_for():
    fleet = FleetPlanner(GridMap(np.ones((3, 3), int)), "four", "cpu")
    fleet.start([])
    assert fleet.step([]).tolist() == [] and fleet.add([]).tolist() == []
    with pytest.raises(SettingsError, match="budget_s is nan"):
        fleet.step([], float("nan"))


def test_agents_that_stand_close_their_tiles_until_others_start():
    fleet = FleetPlanner(GridMap(np.ones((1, 9))), "four", "cpu")
    fleet.start([[0, 1], [0, 4]])
    fleet.observe(fleet.positions, still=[1])
    for _ in range(12):
        fleet.step([[0, 8], [0, 4]])
        assert fleet.steps_to_go([[0, 8], [0, 4]])[0] == 0  # no way leads through the one that stands
    fleet.start([[0, 4]])  # where the other one stood
    for _ in range(6):
        fleet.step([[0, 8]])
    assert fleet.positions.tolist() == [[0, 8]]


def test_agents_that_may_not_follow_do_not_jam_in_aisles_two_tiles_wide():
    """By default they look farther ahead than three ticks, with which ever more of them stand."""
    grid = warehouse_map(40, 72, apron=6)
    tiles, errands = np.argwhere(~grid.blocked), []
    for horizon in (3, 0):
        rng = np.random.default_rng(1)
        fleet = FleetPlanner(grid, "turning", "cpu", Settings(following=False, horizon=horizon))
        fleet.start(rng.permutation(tiles)[:340])
        goals, done = tiles[rng.integers(len(tiles), size=340)], 0
        for _ in range(300):
            fleet.step(goals)
            there = (fleet.positions == goals).all(axis=1)
            done += int(there.sum())
            goals[there] = tiles[rng.integers(len(tiles), size=there.sum())]
        errands.append(done)
    assert errands[1] > 1.1 * errands[0] > 800, errands
