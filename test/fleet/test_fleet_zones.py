"""Zones: nobody stands where nobody may stop, on paper and as robots drive; slow zones are gone around, and take their
time. The checks share no code with the planner."""

import math

import numpy as np
import pytest
from driven_robot import driven
from fleet_devices import needs_gpu, walked_on_both
from fleet_oracle import covers, stands

from gpu_planners.errors import GridMapError, SettingsError
from gpu_planners.fleet import Dispatcher, FleetPlanner, Settings, Task, Zones, conflicts
from gpu_planners.fleet.action_graph import ActionGraph
from gpu_planners.fleet.execution.doors import Doors
from gpu_planners.fleet.execution.dynamics import Dynamics, ends_of, profiles_of
from gpu_planners.fleet.execution.rules import Rules
from gpu_planners.fleet.execution.running import RunningFleet
from gpu_planners.grid import GridMap


def crossroads(wide=1):
    """Rooms of 7 x 7 tiles, a street between them where nobody may stop, and a crossing."""
    free = np.ones((16, 19), np.uint8)
    closed = np.zeros(free.shape, bool)
    closed[:, 7 : 7 + wide] = closed[9 : 9 + wide] = True
    return free, closed


CASES = [
    ("turning", {}, 1, 0.0),
    ("turning", {"following": False}, 1, 0.004),
    ("turning", {"following": False}, 2, 0.0),
    ("turning", {"size": 2}, 1, 0.0),
    ("four", {"following": False}, 1, 0.0),
    ("four", {}, 2, 0.002),
    ("turning", {"ticks_per_move": 2, "ticks_per_turn": 2}, 1, 0.0),
]


@pytest.mark.parametrize("motion, given, wide, budget", CASES)
def test_nobody_stands_in_a_zone_in_traffic(motion, given, wide, budget):
    free, closed = crossroads(wide)
    settings, rng = Settings(**given), np.random.default_rng(wide)
    fleet = FleetPlanner(GridMap(free), motion, "cpu", settings, zones=Zones(closed))
    size = settings.size
    tiles = np.argwhere(free[: 17 - size, : 20 - size])
    tiles = np.array([t for t in tiles if not covers(closed, t - (size - 1) // 2, size)])
    starts = rng.permutation(tiles)
    if size > 1:
        starts = np.array([t for t in starts if (t % 3 == 0).all()])
    n = min(30, len(starts) // 2)
    fleet.start(starts[:n])
    goals, done, ever, ticks = tiles[rng.integers(len(tiles), size=n)], 0, [fleet.positions], settings.ticks_per_move
    crossed = 0
    for _ in range(100 * ticks):
        before, faces = fleet.positions, fleet.headings
        fleet.step(goals, budget)
        ever.append(fleet.positions)
        if ticks == 1:
            assert stands(before, ever[-1], faces, fleet.headings, closed, size) == []
        crossed += int((closed[tuple(ever[-1].T)]).sum())
        there = (ever[-1] == goals).all(axis=1)
        done += int(there.sum())
        goals[there] = tiles[rng.integers(len(tiles), size=there.sum())]
    near = [(r, c) for r in range(1 - size, size) for c in range(1 - size, size)]
    assert conflicts(np.array(ever), None, near, settings.following, ticks=ticks) == []
    assert done > n and crossed > n, (done, crossed)
    if ticks > 1:  # in a zone everybody goes on: a move of two ticks, and a turn of two at most
        inside = np.array([closed[tuple(each.T)] for each in ever])
        same = np.array([(a == b).all(axis=1) for a, b in zip(ever, ever[1:])])
        longest = run = np.zeros(n, int)
        for k in range(len(same)):
            run = np.where(inside[k] & same[k], run + 1, 0)
            longest = np.maximum(longest, run)
        assert longest.max() <= 2 + 2 * 2, longest


def test_a_large_zone_is_crossed_straight_and_one_that_cuts_is_refused():
    free, closed = np.ones((20, 30), np.uint8), np.zeros((20, 30), bool)
    closed[8:12] = True  # four rows: crossed from north to south alone
    fleet = FleetPlanner(GridMap(free), "turning", "cpu", zones=Zones(closed))
    fleet.start([[0, 0], [19, 29]])
    goals, before, reached = np.array([[19, 29], [0, 0]]), fleet.positions, np.zeros(2, bool)
    for _ in range(120):
        faces = fleet.headings
        fleet.step(goals)
        assert stands(before, fleet.positions, faces, fleet.headings, closed) == []
        before = fleet.positions
        assert not (closed[tuple(before.T)] & (faces % 2 == 0) & (fleet.headings % 2 == 0)).any()
        reached |= (before == goals).all(axis=1)
    assert reached.all()
    closed[8:13] = True
    with pytest.raises(
        GridMapError, match=r"a no-stopping zone cuts tile \[\d+, \d+\] off; .* within 5 ticks, 4 tiles"
    ):
        FleetPlanner(GridMap(free), "turning", "cpu", zones=Zones(closed))
    with pytest.raises(GridMapError, match="cuts tile"):  # two ticks for an action
        FleetPlanner(GridMap(free), "turning", "cpu", zones=Zones(closed[::-1])).start([[0, 0]], speeds=[[2, 2]])


@pytest.mark.parametrize("size", (1, 3))
def test_a_large_zone_is_crossed_through_a_door_in_it(size):
    """In the doorway the shorter run of tiles ends at its posts, and leads nowhere."""
    free, closed = np.ones((30, 20), np.uint8), np.zeros((30, 20), bool)
    free[:, 10] = 0
    free[12 : 12 + size, 10] = 1
    closed[:, 9 if size > 1 else 8 : 11] = True
    fleet = FleetPlanner(GridMap(free), "turning", "cpu", Settings(size=size), zones=Zones(closed))
    fleet.start([[20, 4]])
    for _ in range(60):
        before = fleet.positions, fleet.headings
        fleet.step([[3, 15]])
        assert not stands(before[0], fleet.positions, before[1], fleet.headings, closed, size)
    assert fleet.positions.tolist() == [[3, 15]]


def test_what_is_refused():
    closed = np.zeros((4, 6), bool)
    closed[1, 2] = True
    grid = GridMap(np.ones((4, 6), np.uint8))
    fleet = FleetPlanner(grid, "turning", "cpu", zones=Zones(closed))
    fleet.start([[0, 0]])
    with pytest.raises(GridMapError, match=r"the goal of agent 0 is \[1, 2\], in a no-stopping zone"):
        fleet.step([[1, 2]])
    with pytest.raises(SettingsError, match="no_stopping tiles; allowed for solve: None"):
        fleet.solve([[0, 0]], [[3, 3]])
    speeds = np.full((4, 6), np.inf)
    speeds[1, 1] = 0.3
    for usual, refused in ((1.0, True), (math.inf, True), (0.3, False)):
        slow = FleetPlanner(grid, "turning", "cpu", zones=Zones(None, speeds, usual))
        if refused:
            with pytest.raises(SettingsError, match="a limit of 0.3 m/s, and agents go at .*; allowed for solve"):
                slow.solve([[0, 0]], [[3, 3]])
        else:
            assert slow.solve([[0, 0]], [[3, 3]]).message == "solved"
    with pytest.raises(GridMapError, match=r"errands\[1\] is \[1, 2\], in a no-stopping zone"):
        Dispatcher(fleet).submit(Task([[0, 1], [1, 2]]))
    for bad, text in ((closed.astype(int), "no_stopping is int64"), (closed[0], "no_stopping is bool")):
        with pytest.raises(GridMapError, match=text):
            Zones(bad)
    with pytest.raises(GridMapError, match="speeds is float64 .* more than 0 m/s"):
        Zones(speeds=np.zeros((4, 6)))
    with pytest.raises(GridMapError, match=r"no_stopping is for a map of \(4, 6\) tiles; this one has \(6, 4\)"):
        FleetPlanner(GridMap(np.ones((6, 4))), "turning", "cpu", zones=Zones(closed))
    fleet.zones = None
    fleet.step([[1, 2]])


def test_slow_zones_are_gone_around_where_that_is_sooner():
    free, speeds = np.ones((3, 12), np.uint8), np.full((3, 12), np.inf)
    speeds[0, 2:10] = 0.2
    for usual, row in ((1.0, 2), (0.2, 0)):
        fleet = FleetPlanner(GridMap(free), "four", "cpu", Settings(guidance="plain"), zones=Zones(None, speeds, usual))
        fleet.start([[0, 0]])
        rows = []
        for _ in range(20):
            fleet.step([[0, 11]])
            rows.append(int(fleet.positions[0, 0]))
        assert (max(rows) > 0) == (row > 0) and fleet.positions.tolist() == [[0, 11]]


@pytest.mark.parametrize("seed", range(5))
def test_robots_take_their_time_in_slow_zones(seed):
    rng = np.random.default_rng(seed)
    speed, rise, fall = rng.uniform((0.5, 0.3, 0.3), (2.5, 2.0, 2.0))
    limits = np.where(rng.random(6) < 0.5, rng.uniform(0.1, 1.0, 6), np.inf)
    tiles = np.stack([np.zeros(7, int), np.arange(7)], axis=1)[None]
    found = ends_of(
        tiles, np.zeros((1, 7), int), np.array([6]), profiles_of([Dynamics(speed, rise, fall)]), 0.9, limits[None]
    )
    assert found[0] == pytest.approx(driven(0.9 * np.arange(1, 7), limits, speed, rise, fall), rel=0.015)


def test_the_graph_lets_nobody_into_a_zone_who_would_stop_there():
    graph = ActionGraph((1, 8), 0, False, 6)
    graph.no_stopping = np.zeros((1, 8), bool)
    graph.no_stopping[0, 2:4] = True
    graph.add(np.array([[0, 1], [0, 5]]), np.zeros(2, int))
    for col in (2, 3):
        graph.plan(np.array([0]), np.array([[0, col]]), np.array([0]))
    assert not graph.allow().size and graph.held_outside().tolist() == [True, False]  # it is not planned to come out
    for col in (4, 5):
        graph.plan(np.array([0]), np.array([[0, col]]), np.array([0]))
    assert graph.allow().tolist() == [0] and graph.allowed[0] == 3  # out of the zone; the other one stands behind
    graph = ActionGraph((1, 8), 0, False, 6)
    graph.no_stopping = np.zeros((1, 8), bool)
    graph.no_stopping[0, 2:4] = True
    graph.add(np.array([[0, 1], [0, 4]]), np.zeros(2, int))
    graph.plan(np.array([1]), np.array([[0, 5]]), np.array([0]))
    for col in (2, 3, 4):
        graph.plan(np.array([0]), np.array([[0, col]]), np.array([0]))
    assert graph.allow().tolist() == [1] and graph.allowed.tolist() == [0, 1]
    graph.arrive(np.array([1]), np.array([1]))
    assert graph.allow().tolist() == [0] and graph.allowed[0] == 3


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, needs_gpu])])
@pytest.mark.parametrize("wide, late", [(1, 0.0), (2, 0.2)])
def test_robots_that_are_late_never_wait_in_a_zone(wide, late, device):
    """Robots do what they are told, some late; one that has nothing more to do is never in a zone."""
    free, closed = crossroads(wide)
    rng, n = np.random.default_rng(3), 24
    tiles = np.argwhere(~closed)
    fleet = RunningFleet(Rules(device=device, step_s=1.0))
    fleet.take_map(GridMap(free, 4), zones=Zones(closed))
    at, face = rng.permutation(tiles)[:n], np.zeros(n, int)
    ids, queue, ends, number = [str(k) for k in range(n)], [[] for _ in range(n)], np.zeros(n), np.zeros(n, int)
    goals, errands, crossed = tiles[rng.integers(len(tiles), size=n)], 0, 0
    for tick in range(480):
        now = 0.25 * tick
        for a in range(n):
            if queue[a] and now >= ends[a] - 1e-9:
                number[a], at[a], face[a] = queue[a].pop(0)
                ends[a] = now + (3.0 if rng.random() < late else 1.0)
            if not queue[a]:
                assert not closed[tuple(at[a])], (now, a)
                ends[a] = now + 1.0
        crossed += int(closed[tuple(at.T)].sum())
        there = (at == goals).all(axis=1)
        errands += int(there.sum())
        goals[there] = tiles[rng.integers(len(tiles), size=there.sum())]
        places = fleet.places
        fleet.take_states(ids, places.points(at), places.yaws(face), np.full(n, now), {})
        fleet.take_goals(ids, places.points(goals), {})
        step = fleet.step(now) if fleet.due(now) else fleet.news(now)
        if step is None:
            continue
        first = np.r_[0, np.cumsum(step.ahead)]
        for k, id in enumerate(step.ids):
            a, more = int(id), slice(first[k], first[k + 1])
            told = [(step.tiles[k], step.headings[k]), *zip(step.tiles_ahead[more], step.headings_ahead[more])]
            orders = [(step.numbers[k] + j, tile, heading) for j, (tile, heading) in enumerate(told)]
            was = bool(queue[a])
            queue[a] = [order for order in orders if order[0] > number[a]]
            if queue[a] and not was:
                ends[a] = now + 1.0
    assert errands > n and crossed > n, (errands, crossed)
    fleet.take_goals(["0"], fleet.places.points(np.argwhere(closed)[:1]), {})
    assert "is in a no-stopping zone" in fleet.goal_faults["0"]


def test_a_slow_robot_in_a_slow_zone_is_not_late():
    """The same robot does nothing: with a slow zone ahead it is late later."""
    late = {}
    for speed in (np.inf, 0.25):
        fleet, speeds = RunningFleet(Rules(device="cpu", step_s=0.5, silent_after_s=2.0)), np.full((1, 9), speed)
        fleet.take_map(GridMap(np.ones((1, 9), np.uint8), 4), zones=Zones(None, speeds))
        for tick in range(200):
            now = 0.1 * tick
            fleet.take_states(["a"], fleet.places.points(np.array([[0, 0]])), np.zeros(1), np.full(1, now), {})
            fleet.take_goals(["a"], fleet.places.points(np.array([[0, 8]])), {})
            if fleet.due(now):
                fleet.step(now)
                if fleet.late_ids():
                    late.setdefault(speed, now)
    assert late[0.25] == pytest.approx(late[np.inf] + 3.5, abs=0.6)  # 4 s for a metre in place of 0.5


def test_the_dispatcher_goes_by_zones():
    """Robots that cross a zone get tasks all the same; nobody gets one that ends where it may not stop, by its size, or
    since a zone came after the task."""
    closed = np.zeros((8, 12), bool)
    closed[:, 5] = True
    fleet = FleetPlanner(GridMap(np.ones((8, 12))), "turning", "cpu", Settings(horizon=5), sizes=(1, 3))
    dispatcher = Dispatcher(fleet, parking=[[7, 5], [7, 8]])
    dispatcher.submit(Task([[2, 5]]), "in")
    fleet.zones = Zones(closed)
    dispatcher.submit(Task([[2, 6]]), "beside")
    robots, places = ["crosses", "large"], [[4, 5], [2, 8]]
    assert dispatcher.assign(robots, places, sizes=[1, 3]).tolist()[0] == [2, 6]
    assert "large" not in dispatcher.holders()
    assert dispatcher.assign(["large"], [[2, 8]], sizes=[3]).tolist() != [[2, 6]]
    assert dispatcher.state("in").robot is None
    dispatcher.remove("crosses")
    assert dispatcher.assign(["idle", "other"], [[6, 4], [7, 9]]).tolist().count([7, 5]) == 0  # nobody parks in it


@pytest.mark.parametrize("opens_after", (1.0, 20.0))
def test_a_door_behind_a_zone_is_asked_for_until_it_opens(opens_after):
    """A robot waits before the zone, and the door stays asked for, however long that takes."""
    closed = np.zeros((1, 9), bool)
    closed[0, 3:5] = True
    fleet = RunningFleet(Rules(device="cpu", step_s=1.0, silent_after_s=3.0))
    fleet.take_map(GridMap(np.ones((1, 9), np.uint8), 4), zones=Zones(closed))
    fleet.doors = Doors({"gate": np.array([[0, 5]])}, (1, 9))
    at, number, queue, asked, since = np.array([0, 0]), 0, [], [], math.inf
    for tick in range(200):
        now = 0.25 * tick
        if tick % 4 == 0 and queue:
            number, at = queue.pop(0)
        fleet.take_states(["a"], fleet.places.points(at[None]), np.zeros(1), np.full(1, now), {})
        fleet.take_goals(["a"], fleet.places.points(np.array([[0, 8]])), {})
        step = fleet.step(now) if fleet.due(now) else fleet.news(now)
        if step is not None:
            told = [step.tiles[0], *step.tiles_ahead]
            queue = [(n, tile) for n, tile in zip(range(step.numbers[0], 1 << 30), told) if n > number]
        wants = fleet.wanted_doors() == ["gate"]
        since = min(since, now if wants else math.inf)
        asked.append(wants)
        if now - since >= opens_after:
            fleet.tell_door("gate", True)
        else:
            assert at[1] < 3
    with pytest.raises(GridMapError, match=r"doors are of \(1, 9\) tiles, the map has \(2, 9\)"):
        fleet.take_map(GridMap(np.ones((2, 9), np.uint8), 4))
    assert at.tolist() == [0, 8]
    first = asked.index(True)
    assert all(asked[first : first + int(4 * opens_after)])


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("motion", ["four", "turning"])
@pytest.mark.parametrize("wide", [1, 2])
def test_zones_give_the_same_steps_on_cuda(motion, wide):
    """Tiles where nobody may stop, slow tiles, and a tile that is blocked under way."""
    free, closed = crossroads(wide)
    speeds = np.where(np.random.default_rng(1).random(free.shape) < 0.2, 0.3, np.inf)
    tiles = np.argwhere(~closed)

    def begun(device):
        rng = np.random.default_rng(2)
        fleet = FleetPlanner(GridMap(free), motion, device, Settings(following=False), zones=Zones(closed, speeds))
        fleet.start(rng.permutation(tiles)[:24])
        return (
            fleet,
            tiles[rng.integers(len(tiles), size=24)],
            lambda some: tiles[rng.integers(len(tiles), size=len(some))],
        )

    def block(fleet, step):
        if step == 30:
            empty = next(t for t in tiles if t[0] in range(2, 6) and not (fleet.positions == t).all(axis=1).any())
            fleet.update(*([k] for k in empty), [0])

    walked = walked_on_both(begun, 80, block)
    assert np.array_equal(*walked)
    assert closed[tuple(walked[0].reshape(-1, 2).T)].sum() > 24
