"""A running fleet of robots of unlike sizes, late, lost and broken ones among them: shapely finds none that meet."""

import numpy as np
import pytest
import shapely
from fleet_devices import needs_gpu, walked_on_both

from benchmarks.fleets_late import Robots, run
from gpu_planners.fleet import Dispatcher, FleetPlanner, Guidance, Settings, Task
from gpu_planners.fleet.execution.doors import Doors
from gpu_planners.fleet.execution.rules import Rules
from gpu_planners.fleet.execution.running import RunningFleet
from gpu_planners.grid import GridMap
from gpu_planners.grid.maps.generated import warehouse_map

CLEARANCE = 0.125  # tiles, the default
SIZES = (1, 2, 3)


def hall(rows=22, cols=26, share=0.04, seed=5):
    return GridMap((np.random.default_rng(seed).random((rows, cols)) >= share).astype(np.uint8), 4)


def bodies(places, sizes):
    """Squares of robots whose tiles are at places (N, 2), with what is free on each side left out."""
    low = places - (sizes[:, None] - 1) // 2 + CLEARANCE
    high = low + sizes[:, None] - 2 * CLEARANCE
    return shapely.box(low[:, 0], low[:, 1], high[:, 0], high[:, 1])


class JudgedRobots(Robots):
    """Robots that shapely looks at ten times a second. faults: [(seconds, what is wrong)]; done: errands by size"""

    def __init__(self, grid, *arguments):
        super().__init__(grid, *arguments)
        self.hall = shapely.box(0, 0, *grid.shape)
        self.walls = shapely.union_all([shapely.box(r, c, r + 1, c + 1) for r, c in np.argwhere(grid.blocked)])
        self.faults, self.done = [], dict.fromkeys(self.sizes.tolist(), 0)

    def move(self, now):
        before = self.goals.copy()
        super().move(now)
        for a in np.flatnonzero((self.goals != before).any(axis=1)):
            self.done[int(self.sizes[a])] += 1
        shapes = bodies(self.places(now), self.sizes)
        tree = shapely.STRtree(shapes)
        one, other = tree.query(shapes, predicate="intersects")
        for a, b in zip(one[one < other], other[one < other]):
            self.faults.append((now, f"{a} of size {self.sizes[a]} and {b} of size {self.sizes[b]} meet"))
        if not shapely.covers(self.hall, shapes).all() or shapely.intersects(self.walls, shapes).any():
            self.faults.append((now, "a body is outside the map, or on a wall"))


@pytest.mark.parametrize("motion", ["turning", "four"])
@pytest.mark.parametrize(
    "faults", [{}, {"late": 0.3}, {"lost": 0.3}, {"late": 0.2, "lost": 0.1, "broken": 90.0}], ids=str
)
def test_no_two_bodies_meet_and_all_sizes_get_on(motion, faults):
    robots, fleet, _ = run(hall(), 14, 60.0, sizes=SIZES, kind=JudgedRobots, seed=3, motion=motion, **faults)
    assert robots.faults == [] and robots.overlaps == 0
    assert sorted(fleet.planner.sizes) == [1, 2, 3] and all(robots.done.values()), robots.done


def test_a_fleet_that_starts_again_knows_how_large_those_are_that_are_silent(tmp_path):
    given = {"late": 0.2, "lost": 0.1, "broken": 90.0, "state_file": str(tmp_path / "state.json")}
    robots, fleet, _ = run(hall(seed=2), 14, 60.0, sizes=SIZES, kind=JudgedRobots, restarts=(15.0, 35.0), **given)
    assert robots.faults == [] and all(robots.done.values()), robots.done
    assert not fleet.state_fault


@pytest.mark.parametrize("apart", [0, 1])
def test_larger_ones_among_many_small_ones(apart):
    fleet = Settings(following=False, safety_distance=apart)
    grid = warehouse_map(23, 34, aisle=3, apron=6)
    robots, *_ = run(grid, 20, 40.0, sizes=(1, 1, 1, 3), kind=JudgedRobots, late=0.1, lost=0.1, fleet=fleet)
    assert robots.faults == [] and all(robots.done.values())


def test_agents_that_follow_each_other():
    fleet = Settings(following=True)
    robots, *_ = run(hall(), 12, 40.0, sizes=(1, 3), kind=JudgedRobots, fleet=fleet, late=0.0)
    assert [what for _, what in robots.faults if "outside" in what] == [] and all(robots.done.values())


class Steps:
    """A RunningFleet whose agents do at once what they are told, for tests of single things."""

    def __init__(self, grid, **parameters):
        self.fleet = RunningFleet(Rules(device="cpu", step_s=1.0, silent_after_s=3.0, **parameters))
        self.fleet.take_map(grid)
        self.at, self.sizes, self.now = {}, {}, 0.0

    def put(self, id, tile, size):
        self.at[id], self.sizes[id] = np.array(tile), size

    def report(self, ids=None):
        ids = list(self.at) if ids is None else ids
        sizes = np.array([self.sizes[id] for id in ids])
        tiles = np.array([self.at[id] for id in ids]).reshape(-1, 2)
        points = self.fleet.places.points(tiles, np.where(sizes > 0, sizes, 1))
        self.fleet.take_states(ids, points, np.full(len(ids), np.nan), np.full(len(ids), self.now), {}, None, sizes)

    def step(self, count=1):
        for _ in range(count):
            self.now += 1.0
            self.report()
            step = self.fleet.step(self.now) if self.fleet.due(self.now) else None
            for id, tile in zip(step.ids, step.tiles) if step is not None else ():
                self.at[id] = tile


def test_a_size_that_changes_under_way_is_told_and_stands_until_the_agent_comes_again():
    given = Steps(GridMap(np.ones((7, 9), np.uint8), 4), motion="four")
    given.put("a", (3, 2), 1)
    given.step(2)
    given.sizes["a"] = 3
    given.fleet.take_goals(["a"], np.array([[6.5, 3.5]]), {})
    given.step(2)
    assert "its size is 3; allowed: 1" in given.fleet.faults["a"] and tuple(given.at["a"]) == (3, 2)
    given.fleet.remove(["a"])
    given.step(2)
    assert given.fleet.faults == {} and given.fleet.size_of("a") == 3
    given.fleet.take_goals(["a"], np.array([[6.5, 3.5]]), {})
    given.step(8)
    assert tuple(given.at["a"]) == (3, 6)


def test_who_does_not_fit_is_told_so_and_others_keep_away_from_all_of_it():
    grid = GridMap(np.ones((5, 11), np.uint8), 4)
    given = Steps(grid, motion="four")
    given.put("small", (2, 0), 1)
    given.put("large", (1, 6), 3)
    given.put("larger", (2, 9), 5)
    given.step(2)
    assert "cannot start" in given.fleet.clashes["larger"] or "is blocked" in given.fleet.clashes["larger"]
    given.fleet.take_goals(["small"], np.array([[10.5, 2.5]]), {})
    given.step(12)
    assert given.at["small"][1] <= 6  # the body of the one that waits for a place begins with column 7


def test_what_occupies_tiles_has_a_size():
    given = Steps(GridMap(np.ones((3, 12), np.uint8), 4), motion="four")
    given.put("a", (1, 0), 1)
    given.step(2)
    given.fleet.take_occupied(["pallet"], np.array([[7.5, 1.5]]), {}, np.array([3]))
    given.fleet.take_goals(["a"], np.array([[11.5, 1.5]]), {})
    given.step(12)
    assert given.at["a"][1] < 6
    given.fleet.free(["pallet"])
    given.step(14)
    assert tuple(given.at["a"]) == (1, 11)


def test_a_door_is_asked_for_by_whoever_covers_its_tiles():
    given = Steps(GridMap(np.ones((3, 12), np.uint8), 4), motion="four")
    given.fleet.doors = Doors({"door": np.array([[0, 6], [1, 6], [2, 6]])}, (3, 12))
    given.put("a", (1, 1), 3)
    given.fleet.take_goals(["a"], np.array([[9.5, 1.5]]), {})
    given.step(8)
    assert given.at["a"][1] == 4 and given.fleet.wanted_doors() == ["door"]  # its body ends with column 5
    given.fleet.tell_door("door", True)
    given.step(8)
    assert given.at["a"][1] == 9 and given.fleet.wanted_doors() == []


def test_tasks_go_to_robots_that_fit():
    costs = np.ones((9, 20), np.uint8)
    costs[:, 10] = 0
    costs[4, 10] = 1  # a door of one tile
    fleet = FleetPlanner(GridMap(costs, 4), "four", "cpu", sizes=(1, 3))
    fleet.start([[4, 2], [4, 5]], sizes=[1, 3])
    dispatcher = Dispatcher(fleet)
    far = dispatcher.submit(Task([(4, 7), (4, 15)]))
    names, told = ["small", "large"], {"sizes": [1, 3]}
    goals = dispatcher.assign(names, [[4, 2], [4, 5]], now=1.0, **told)
    assert goals.tolist() == [[4, 7], [-1, -1]] and dispatcher.holders() == {"small": far}
    near = dispatcher.submit(Task([(4, 6)]))
    goals = dispatcher.assign(names, [[4, 2], [4, 5]], now=2.0, **told)
    assert dispatcher.holders() == {"small": far, "large": near} and goals.tolist() == [[4, 7], [4, 6]]
    distances, _ = fleet.distances([[4, 5], [4, 5]], [-1, -1], [[4, 15], [4, 15]], sizes=[1, 3])
    assert distances.tolist() == [10.0, np.inf]


def test_large_robots_do_not_park_beside_each_other():
    fleet = FleetPlanner(GridMap(np.ones((9, 20), np.uint8), 4), "four", "cpu", sizes=(1, 3))
    dispatcher = Dispatcher(fleet, parking=[(4, 2), (4, 3), (4, 6), (4, 10)])
    robots, at = ["a", "b", "c"], np.array([[4, 2], [4, 7], [8, 0]])
    goals = dispatcher.assign(robots, at, now=1.0, sizes=[3, 3, 1])
    apart = np.abs(goals[0] - goals[1]).max()
    assert (goals >= 0).all() and apart >= 3
    for large in goals[:2]:
        assert np.abs(goals[2] - large).max() >= 2


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("motion", ["four", "turning"])
def test_steps_of_unlike_sizes_are_the_same_on_cuda(motion):
    def begun(device):
        robots = Robots(hall(), 14, 1.0, 0.0, 0.0, 0.0, 3, SIZES)
        fleet = FleetPlanner(hall(), motion, device, sizes=SIZES)
        fleet.start(robots.at, sizes=robots.sizes)
        return fleet, robots.goals.copy(), robots.drawn

    def block(fleet, step):
        if step == 20:
            fleet.update([11], [13], [0])

    assert np.array_equal(*walked_on_both(begun, 60, block))


@pytest.mark.gpu
@needs_gpu
def test_a_running_fleet_of_unlike_sizes_on_cuda():
    given = {"late": 0.2, "lost": 0.1, "broken": 90.0, "device": "cuda"}
    robots, *_ = run(hall(), 14, 60.0, sizes=SIZES, kind=JudgedRobots, **given)
    assert robots.faults == [] and all(robots.done.values())


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("motion", ["four", "turning"])
@pytest.mark.parametrize("sizes", [(1,), (1, 2)])
def test_barred_moves_are_the_same_on_cuda(motion, sizes):
    grid = GridMap(np.ones((12, 16), np.uint8), 4)
    barred = np.random.default_rng(4).random((12, 16, 4)) < 0.12
    guidance = Guidance(np.full((12, 16, 4), 4, np.uint8), 4, 1, barred)

    def begun(device):
        robots = Robots(grid, 8, 1.0, 0.0, 0.0, 0.0, 6, sizes)
        fleet = FleetPlanner(grid, motion, device, guidance=guidance, sizes=sizes)
        fleet.start(robots.at, sizes=robots.sizes)
        return fleet, robots.goals.copy(), robots.drawn

    walked = walked_on_both(begun, 60)
    for positions in walked:
        before, moves = positions[:-1], np.diff(positions, axis=0)
        went = moves.any(axis=2)
        way = np.where(moves[..., 1] != 0, 1 - moves[..., 1], 2 - moves[..., 0])
        assert not barred[before[went][:, 0], before[went][:, 1], way[went]].any()
    assert np.array_equal(*walked)
