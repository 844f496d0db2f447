"""Agents of a running fleet do tasks: who comes, goes and falls silent, on a map that changes, and after restarts."""

from dataclasses import dataclass

import numpy as np
import pytest

from gpu_planners.errors import GpuPlannersError
from gpu_planners.fleet import Task, TaskStatus
from gpu_planners.fleet.execution.rules import Rules
from gpu_planners.fleet.execution.running import RunningFleet
from gpu_planners.fleet.execution.tasks import FleetTasks, TaskRules
from gpu_planners.grid import GridMap


@dataclass(frozen=True)
class Values(Rules, TaskRules):
    """All that a running fleet with tasks goes by."""


class World:
    """Agents {id: [tile, heading]} that do what they are told at once, unless they are silent."""

    def __init__(self, agents, shape=(6, 8), **values):
        self.fleet = RunningFleet(Values(device="cpu", silent_after_s=3.0, dead_after_s=8.0, **values))
        self.tasks = FleetTasks(self.fleet, self.fleet._values)
        self.grid = GridMap(np.ones(shape, np.uint8), 4)
        self.fleet.take_map(self.grid)
        self.agents = {id: [tile, 0] for id, tile in agents.items()}
        self.silent, self.now = set(), 0.0

    def step(self, count=1):
        for _ in range(count):
            ids = [id for id in self.agents if id not in self.silent]
            tiles = np.array([self.agents[id][0] for id in ids]).reshape(-1, 2)
            yaws = np.array([self.agents[id][1] for id in ids]) * np.pi / 2
            self.fleet.take_states(ids, self.fleet.places.points(tiles), yaws, np.full(len(ids), self.now), {})
            if self.fleet.due(self.now):
                self.tasks.give(self.now)
                step = self.fleet.step(self.now)
                for id, tile, heading in zip(
                    *((step.ids, step.tiles.tolist(), step.headings.tolist()) if step else ((),) * 3)
                ):
                    if id not in self.silent:
                        self.agents[id] = [tuple(tile), heading]
            self.now += 1.0

    def submit(self, *errands, id="", **fields):
        return self.tasks.submit(Task(errands, **fields), id, self.now)

    def state(self, id):
        return self.tasks.dispatcher().state(id)


def until(world, condition, most=100):
    for _ in range(most):
        world.step()
        if condition():
            return
    raise AssertionError(f"not within {most} steps: {world.tasks.dispatcher().states()}")


def test_all_tasks_are_done_and_who_is_idle_parks():
    world = World({"a": (0, 0), "b": (5, 7), "c": (2, 2)}, parking=(0.5, 5.5, 1.5, 5.5, 2.5, 5.5))
    rng = np.random.default_rng(0)
    ids = [world.submit(*map(tuple, rng.integers(0, 6, (2, 2)).tolist())) for _ in range(9)]
    until(world, lambda: all(world.state(id).status == TaskStatus.DONE for id in ids), 300)
    until(world, lambda: {world.agents[id][0] for id in "abc"} == {(5, 0), (5, 1), (5, 2)})
    for id in ids:
        assert [event.detail for event in world.state(id).history if event.what == "errand"] == [1, 2]


def test_goals_of_their_own_go_before_tasks():
    world = World({"a": (0, 0)})
    world.step(3)
    world.fleet.take_goals(["a"], world.fleet.places.points(np.array([[0, 5]])), {})
    id = world.submit((3, 3))
    world.step(10)
    assert world.agents["a"][0] == (0, 5) and world.state(id).status == TaskStatus.WAITING
    world.fleet.clear_goals(["a"])
    until(world, lambda: world.state(id).status == TaskStatus.DONE)


def test_who_is_silent_loses_what_it_has_not_begun_and_who_is_dead_all():
    world = World({"a": (0, 0), "b": (5, 7)})
    id = world.submit((0, 4), (0, 7))
    until(world, lambda: world.state(id).status == TaskStatus.ASSIGNED)
    assert world.state(id).robot == "a"
    world.silent = {"a"}
    until(world, lambda: world.state(id).robot == "b", 8)
    world.silent = set()
    until(world, lambda: world.state(id).status == TaskStatus.DONE)
    other = world.submit(world.agents["a"][0], (5, 0), (0, 0))
    until(world, lambda: world.state(other).status == TaskStatus.BEGUN)
    assert world.state(other).robot == "a"
    until(world, lambda: np.abs(np.subtract(world.agents["a"][0], (0, 7))).sum() > 3)  # else it is in the others' way
    world.silent = {"a"}
    world.step(5)
    assert world.state(other).robot == "a"  # it may report again
    until(world, lambda: world.state(other).status == TaskStatus.DONE and world.state(other).robot == "b", 80)
    assert "silent" in [event.detail for event in world.state(other).history]
    world.fleet.remove(["a", "b"])
    world.agents.clear()
    world.step()
    assert world.tasks.dispatcher().holders() == {}


def test_a_blocked_errand_waits_until_it_is_free():
    world = World({"a": (0, 0)})
    world.step(2)
    id = world.submit((3, 3))
    world.fleet.take_map(world.grid.changed([3], [3], [0]))
    world.step(15)
    assert world.state(id).status != TaskStatus.DONE
    world.fleet.take_map(world.grid)
    until(world, lambda: world.state(id).status == TaskStatus.DONE)


def test_a_restart_goes_on_where_it_ended(tmp_path):
    file = str(tmp_path / "tasks")
    world = World({"a": (0, 0), "b": (5, 7)}, task_file=file)
    begun, waits = world.submit((0, 1), (0, 7)), world.submit((5, 0), robots=["c"])
    until(world, lambda: world.state(begun).status == TaskStatus.BEGUN)
    before = {id: world.state(id).history for id in (begun, waits)}
    world.tasks.close()
    after = World({"a": world.agents["a"][0]}, task_file=file)
    after.now = world.now
    assert {id: after.state(id).history for id in (begun, waits)} == before
    until(after, lambda: after.state(begun).status == TaskStatus.DONE)
    assert after.state(begun).robot == "a" and after.state(waits).status == TaskStatus.WAITING
    after.tasks.close()
    with pytest.raises(GpuPlannersError, match="another map"):
        World({}, shape=(3, 3), task_file=file).tasks.dispatcher()


def test_a_holder_that_never_reports_after_a_restart_is_dead(tmp_path):
    file = str(tmp_path / "tasks")
    world = World({"a": (0, 0)}, task_file=file)
    id = world.submit((0, 1), (0, 7))
    until(world, lambda: world.state(id).status == TaskStatus.BEGUN)
    world.tasks.close()
    after = World({"b": (5, 7)}, task_file=file)
    after.now = world.now
    after.step(5)
    assert after.state(id).robot == "a"
    until(after, lambda: after.state(id).status == TaskStatus.DONE and after.state(id).robot == "b")
    assert "never heard of" in [event.detail for event in after.state(id).history]


def test_places_that_are_blocked_are_named():
    world = World({"a": (0, 0)}, chargers=(99.0, 0.5))
    with pytest.raises(GpuPlannersError, match=r"chargers: no agent can be at \(99.00, 0.50\)"):
        world.tasks.dispatcher()
    with pytest.raises(GpuPlannersError, match="parking has 1 numbers"):
        Values(parking=(1.0,))


def test_low_batteries_are_charged():
    world = World({"a": (0, 0)}, chargers=(7.5, 5.5))
    world.tasks.batteries["a"] = 0.1
    id = world.submit((0, 5))
    until(world, lambda: world.agents["a"][0] == (5, 7))
    assert world.state(id).status == TaskStatus.WAITING
    assert world.tasks.dispatcher().robots()["a"].status == "charge"
    world.tasks.batteries["a"] = 1.0
    until(world, lambda: world.state(id).status == TaskStatus.DONE)
