"""The dispatcher's choices beside those of a search through all of them, on distances of a plain Dijkstra."""

import numpy as np
import pytest
from dispatch_oracle import best_choice, distances_from
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_planners.errors import SettingsError
from gpu_planners.fleet import Dispatcher, DispatchSettings, FleetPlanner, Task, TaskStatus
from gpu_planners.fleet import Settings as FleetSettings
from gpu_planners.fleet.dispatch.matching import NONE, match
from gpu_planners.grid import GridMap

PLAIN = {"traffic": 0.0, "ageing": 0.0, "keep": 0.0, "look_ahead": 0.0}


def scene(seed, robots, tasks, motion="turning", guidance="lanes", shape=(7, 9)):
    """-> a fleet, tiles and headings of robots, tasks"""
    rng = np.random.default_rng(seed)
    free = rng.random(shape) > 0.25
    tiles = rng.permutation(np.argwhere(free))
    fleet = FleetPlanner(GridMap(free.astype(np.uint8), 4), motion, "cpu", FleetSettings(guidance=guidance))
    faces = rng.integers(0, 4, robots)
    errands = [tiles[rng.integers(0, len(tiles), rng.integers(1, 4))] for _ in range(tasks)]
    whose = [None if rng.random() < 0.7 else rng.choice(robots, 2).tolist() for _ in range(tasks)]
    return fleet, tiles[:robots], faces, [Task(e, int(rng.integers(0, 3)), robots=w) for e, w in zip(errands, whose)]


@pytest.mark.parametrize("motion", ["four", "turning"])
def test_distances_are_those_of_a_plain_dijkstra(motion):
    for seed in range(6):
        fleet, places, faces, _ = scene(seed, 5, 0, motion)
        goals = np.argwhere(fleet.grid.costs > 0)
        for place, face in zip(places, faces):
            known = distances_from(fleet, place, face)
            given = np.broadcast_to(place, goals.shape), np.full(len(goals), face), goals
            far, met = fleet.distances(*given, crowd=goals)
            assert far.tolist() == [known.get(tuple(goal), np.inf) for goal in goals.tolist()]
            moved = np.isfinite(far) & (goals != place).any(axis=1)
            assert (met[moved] >= np.abs(goals - place).sum(axis=1)[moved]).all() and not met[~moved].any()
            best, _ = fleet.distances(given[0], np.full(len(goals), -1), goals)
            of_all = [distances_from(fleet, place, h) for h in range(4)]
            assert best.tolist() == [min(k.get(tuple(goal), np.inf) for k in of_all) for goal in goals.tolist()]


@pytest.mark.parametrize("seed", range(25))
def test_small_choices_are_the_best_of_all(seed):
    robots, count = 1 + seed % 4, 1 + seed * 7 % 5
    fleet, places, faces, tasks = scene(seed, robots, count, ["four", "turning"][seed % 2])
    dispatcher = Dispatcher(fleet, DispatchSettings(**PLAIN))
    ids = [dispatcher.submit(task) for task in tasks]
    goals = dispatcher.assign(range(robots), places, faces, now=0.0)
    best, table = best_choice(fleet, places, faces, tasks)
    holders = {robot: ids.index(id) for robot, id in dispatcher.holders().items()}
    priorities = sum(tasks[task].priority for task in holders.values())
    total = sum(table[robot][task] for robot, task in holders.items())
    assert (len(holders), priorities, round(-total, 6)) == (best[0], best[1], round(best[2], 6))
    for robot in range(robots):
        task = holders.get(robot)
        assert goals[robot].tolist() == ([-1, -1] if task is None else tasks[task].tiles[0].tolist())


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_windows_never_choose_twice_and_never_worse(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    robots, tasks, many = rng.integers(1, 40), rng.integers(1, 50), rng.integers(1, 8)
    many = min(many, tasks)
    wanted = np.array([rng.choice(tasks, many, replace=False) for _ in range(robots)])
    costs = np.where(rng.random(wanted.shape) < 0.2, np.inf, rng.integers(-50, 50, wanted.shape).astype(float))

    def worth(chosen):
        assert len(set(chosen[chosen != NONE].tolist())) == (chosen != NONE).sum()
        paid = [costs[r][wanted[r] == t][0] for r, t in enumerate(chosen) if t != NONE]
        assert np.isfinite(paid).all()
        return len(paid), -sum(paid)

    greedy = worth(match(wanted, costs, 8, 0, lambda: False))
    some = worth(match(wanted, costs, 8, 5))
    whole = worth(match(wanted, costs, 64, 0))
    assert greedy <= some <= whole
    assert (match(wanted, costs, 8, 5) == match(wanted, costs, 8, 5)).all()


def test_a_task_goes_to_a_nearer_robot_until_it_is_begun():
    fleet = FleetPlanner(GridMap(np.ones((1, 20), np.uint8), 4), "four", "cpu")
    dispatcher = Dispatcher(fleet)
    id = dispatcher.submit(Task([[0, 10], [0, 12]]))
    assert dispatcher.assign(["a"], [[0, 0]]).tolist() == [[0, 10]]
    assert dispatcher.assign(["a", "b"], [[0, 1], [0, 14]]).tolist() == [[-1, -1], [0, 10]]
    assert dispatcher.assign(["a", "b"], [[0, 9], [0, 10]]).tolist() == [[-1, -1], [0, 12]]  # begun
    assert dispatcher.state(id).status == TaskStatus.BEGUN
    assert dispatcher.assign(["a"], [[0, 11]]).tolist() == [[-1, -1]]  # b is not told of, and keeps it
    assert dispatcher.assign(["b", "a"], [[0, 12], [0, 11]]).tolist() == [[-1, -1], [-1, -1]]
    what = [(event.what, event.robot) for event in dispatcher.state(id).history]
    assert what == [
        ("submitted", None), ("assigned", "a"), ("withdrawn", "a"), ("assigned", "b"), ("errand", "b"), ("errand", "b"),
    ]  # fmt: skip
    assert dispatcher.state(id).status == TaskStatus.DONE


def test_priorities_releases_and_dues_count():
    fleet = FleetPlanner(GridMap(np.ones((1, 60), np.uint8), 4), "four", "cpu")
    dispatcher = Dispatcher(fleet)
    near, far = dispatcher.submit(Task([[0, 2]])), dispatcher.submit(Task([[0, 40]], priority=1))
    later = dispatcher.submit(Task([[0, 1]], priority=9, release=5.0))
    assert dispatcher.assign([0], [[0, 0]], now=0.0).tolist() == [[0, 40]]
    dispatcher.reprioritise(near, 2)
    assert dispatcher.assign([0], [[0, 0]], now=1.0).tolist() == [[0, 2]]
    assert dispatcher.assign([0], [[0, 0]], now=5.0).tolist() == [[0, 1]]
    dispatcher.cancel(later)
    dispatcher.cancel(near)
    dispatcher.cancel(far)
    soon = dispatcher.submit(Task([[0, 30]], due=50.0))
    dispatcher.submit(Task([[0, 2]]))
    assert dispatcher.assign([0], [[0, 0]], now=6.0).tolist() == [[0, 30]]
    assert dispatcher.holders() == {0: soon}


def test_a_robot_that_is_nearly_done_keeps_the_task_beside_it():
    """The free robot is far from both tasks; the busy one ends beside one of them in two steps."""
    fleet = FleetPlanner(GridMap(np.ones((1, 60), np.uint8), 4), "four", "cpu")
    dispatcher = Dispatcher(fleet)
    dispatcher.submit(Task([[0, 50], [0, 53]]))
    dispatcher.assign(["busy"], [[0, 50]])
    dispatcher.assign(["busy"], [[0, 50]])  # begun
    dispatcher.submit(Task([[0, 54]]))
    dispatcher.submit(Task([[0, 20]]))
    assert dispatcher.assign(["busy", "free"], [[0, 51], [0, 36]])[1].tolist() == [0, 20]


def test_idle_robots_park_and_low_ones_charge():
    fleet = FleetPlanner(GridMap(np.ones((6, 20), np.uint8), 4), "turning", "cpu")
    dispatcher = Dispatcher(fleet, chargers=[[5, 19]], parking=[[0, 0], [0, 1]])
    fleet.start([[3, 3], [3, 9], [3, 15]])
    names, charge = ["a", "b", "c"], {"a": 1.0, "b": 0.1, "c": 0.15}
    for _ in range(60):
        goals = dispatcher.assign(names, fleet.positions, fleet.headings, batteries=charge)
        fleet.step(goals)
    assert fleet.positions.tolist()[:2] == [[0, 1], [5, 19]]
    assert goals[2].tolist() == [-1, -1] and dispatcher.robots()["b"].status == "charge"  # c waits for the charger
    states = dispatcher.states()
    assert states["park:a"].status == states["charge:b"].status == TaskStatus.BEGUN and states["park:a"].kind == "park"
    task = dispatcher.submit(Task([[3, 3]]))
    goals = dispatcher.assign(names, fleet.positions, fleet.headings, batteries=charge)
    assert dispatcher.holders() == {"a": task} and "park:a" not in dispatcher.states()
    charge["b"] = 0.95
    goals = dispatcher.assign(names, fleet.positions, fleet.headings, batteries=charge)
    assert goals[2].tolist() == [5, 19] and dispatcher.robots()["b"].status == "park"


def test_in_a_full_room_not_all_get_tasks_but_all_tasks_are_done():
    """Eight robots on ten tiles: four have tasks at a time, the nearest; a task that only one may do is done, too."""
    fleet = FleetPlanner(GridMap(np.ones((2, 5), np.uint8), 4), "four", "cpu")
    dispatcher = Dispatcher(fleet)
    places = [[k // 5, k % 5] for k in range(8)]
    tasks = [dispatcher.submit(Task([[k % 2, k % 5]])) for k in range(20)] + [
        dispatcher.submit(Task([[0, 0]], robots=[7]))
    ]
    fleet.start(places)
    for _ in range(400):
        goals = dispatcher.assign(range(8), fleet.positions)
        assert len(dispatcher.holders()) <= 4
        fleet.step(goals)
    assert all(dispatcher.state(task).status == TaskStatus.DONE for task in tasks)
    fleet, two = FleetPlanner(GridMap(np.ones((2, 5), np.uint8), 4), "four", "cpu"), range(2)
    dispatcher = Dispatcher(fleet)
    for _ in two:
        dispatcher.submit(Task([[0, 0]]))
    dispatcher.assign(two, [[0, 1], [1, 4]])
    assert len(dispatcher.holders()) == 2  # there is room


def test_time_that_is_over_leaves_the_straight_distance():
    """No field is planned then, and tasks are given all the same."""
    free = np.ones((3, 9), np.uint8)
    free[:2, 1] = 0  # a wall: the task beside it is far
    for seconds, nearest in ((0.0, [0, 0]), (np.inf, [0, 5])):
        fleet = FleetPlanner(GridMap(free, 4), "four", "cpu")
        dispatcher = Dispatcher(fleet)
        dispatcher.submit(Task([[0, 0]]))
        dispatcher.submit(Task([[0, 5]]))
        assert dispatcher.assign([0], [[0, 2]], budget_s=seconds).tolist() == [nearest]
        assert fleet.has_fields([[0, 0]])[0] == (seconds > 0)


def test_the_same_calls_give_the_same_choices():
    found = []
    for _ in range(2):
        fleet, places, faces, tasks = scene(3, 30, 80, shape=(20, 24))
        dispatcher = Dispatcher(
            fleet, DispatchSettings(window=8, improvements=3, candidates=6, new_fields=20, at_once=5)
        )
        for task in tasks:
            dispatcher.submit(task)
        fleet.start(places, faces)
        for _ in range(60):
            goals = dispatcher.assign(range(30), fleet.positions, fleet.headings)
            found.append(goals.tolist())
            fleet.step(goals)
    assert found[:60] == found[60:]


@pytest.mark.parametrize("due", [990.0, 500.0, -5000.0])
def test_a_task_that_is_late_already_is_done_beside_a_stream_of_others(due):
    fleet = FleetPlanner(GridMap(np.ones((7, 9), np.uint8)), "four", "cpu")
    dispatcher, place = Dispatcher(fleet), [[1, 2]]
    for now in range(1000, 1030):
        while dispatcher.open_tasks < 5:
            count = len(dispatcher.states())
            dispatcher.submit(Task([[count % 7, count * 5 % 9]]), now=float(now))
        if now == 1001:
            dispatcher.submit(Task([[6, 8]], due=due), "late", now=float(now))
        goal = dispatcher.assign(["a"], place, now=float(now))
        place = goal.tolist() if goal[0, 0] >= 0 else place
    assert dispatcher.state("late").status == TaskStatus.DONE


def test_a_priority_counts_whatever_the_unit_of_time():
    fleet = FleetPlanner(GridMap(np.ones((7, 9), np.uint8)), "four", "cpu")
    dispatcher = Dispatcher(fleet, DispatchSettings(candidates=4, ageing=1.0))
    for k in range(40):  # since 1970, in seconds; the one that matters is new
        dispatcher.submit(Task([[5, k % 9]]), now=0.0)
    dispatcher.submit(Task([[0, 0]], priority=1), "high", now=1.7e9)
    assert dispatcher.assign(["a"], [[5, 5]], now=1.7e9 + 1).tolist() == [[0, 0]]


def test_a_robot_whose_battery_is_not_told_charges_on():
    fleet = FleetPlanner(GridMap(np.ones((7, 9), np.uint8)), "four", "cpu")
    dispatcher = Dispatcher(fleet, chargers=[[0, 0]])
    dispatcher.submit(Task([[6, 8]]))
    for charges in ({"a": 0.1}, {}, None, {"b": 1.0}, {"a": 0.5}, {}):
        goals = dispatcher.assign(["a"], [[0, 0]], batteries=charges)
        assert goals.tolist() == [[0, 0]] and dispatcher.robots()["a"].status == "charge"
    assert dispatcher.assign(["a"], [[0, 0]], batteries={"a": 0.95}).tolist() == [[6, 8]]


@pytest.mark.parametrize("answer", [5, "a", [["a"]], b"a"])
def test_what_is_no_list_of_robots_is_refused(answer):
    dispatcher = Dispatcher(FleetPlanner(GridMap(np.ones((7, 9), np.uint8)), "four", "cpu"))
    dispatcher.submit(Task([[6, 8]]))
    with pytest.raises(SettingsError, match=r"able gives .*; allowed: a list of names of robots, or None"):
        dispatcher.assign(["a"], [[0, 0]], able=lambda task: answer)
    assert dispatcher.assign(["a"], [[0, 0]], able=lambda task: {"a"}).tolist() == [[6, 8]]


@pytest.mark.parametrize("improvements", [0, 4])
def test_of_more_robots_than_a_window_holds_the_nearest_gets_a_lone_task_and_keeps_it(improvements):
    fleet = FleetPlanner(GridMap(np.ones((7, 9), np.uint8)), "turning", "cpu")
    dispatcher = Dispatcher(fleet, DispatchSettings(window=2, improvements=improvements))
    fleet.start([[0, 0], [0, 8], [6, 0], [6, 8], [4, 4], [0, 4]])
    task = dispatcher.submit(Task([[4, 7]]))
    for _ in range(12):
        fleet.step(dispatcher.assign(range(6), fleet.positions, fleet.headings))
    state = dispatcher.state(task)
    assert state.status == TaskStatus.DONE
    assert [event.robot for event in state.history if event.what == "assigned"] in ([3], [4])
