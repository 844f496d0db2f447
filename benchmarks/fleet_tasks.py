"""Fleets that are given tasks: instances of the League of Robot Runners 2024 and 2026, and a simulator."""

import json
import math
import time
from dataclasses import dataclass

import numpy as np

from gpu_planners.fleet import Dispatcher, Task
from gpu_planners.grid import GridMap

from .fleet_instances import map_of, numbers_of
from .problems import MissingDataError, data_dir


@dataclass(frozen=True, eq=False)
class TaskInstance:
    """A fleet's tasks.

    free: (rows, cols) bool; starts: (N, 2) [row, col]; tasks: each (K, 2) errands, revealed in this order, the first
    again after the last; open: how many are open at any time; steps, best_known: as published, 0: not
    """

    name: str
    free: np.ndarray
    starts: np.ndarray
    tasks: list[np.ndarray]
    open: int
    steps: int = 0
    best_known: int = 0

    @property
    def grid(self):
        return GridMap(self.free.astype(np.uint8), connectivity=4)


def names_of(year, data=None):
    """Names of the published instances. Raises MissingDataError."""
    folder = data_dir(data) / f"lorr{year}"
    if not folder.is_dir():
        raise MissingDataError(f"{folder} is not there")
    return sorted(file.stem for file in folder.glob("*.json") if file.stem != "best_known")


def published_tasks(name, year=2024, data=None):
    """An instance of a round. Raises MissingDataError where its files are not there."""
    if name not in names_of(year, data):
        raise MissingDataError(f"lorr{year} has no {name}; it has {', '.join(names_of(year, data))}")
    folder = data_dir(data) / f"lorr{year}"
    about = json.loads((folder / f"{name}.json").read_text())
    free = map_of(folder / about["mapFile"])
    starts = numbers_of(folder / about["agentFile"])[: about["teamSize"]]
    lines = [line for line in (folder / about["taskFile"]).read_text().split("\n") if line and line[0] != "#"]
    tasks = [np.array(line.split(","), np.int64) for line in lines[1 : int(lines[0]) + 1]]
    tasks = [np.stack(np.divmod(task, free.shape[1]), axis=1) for task in tasks]
    known = folder / "best_known.json"
    known = json.loads(known.read_text()) if known.exists() else {}
    best = known.get(name, {"steps": 0, "best_known_tasks": 0})
    places = np.stack(np.divmod(starts, free.shape[1]), axis=1)
    open = int(about["numTasksReveal"] * about["teamSize"])
    return TaskInstance(name, free, places, tasks, open, best["steps"], best["best_known_tasks"])


def simulate_tasks(fleet, instance, steps, budget_s=0.0, settings=None, each=None, choice_s=math.inf):
    """Let a fleet work by the rules of 2024 -> how many tasks it has finished after each step, positions (steps + 1,
    N, 2), seconds of each choice

    each(step, seconds): called after every step; choice_s: seconds for better choices
    """
    n, dispatcher = len(instance.starts), Dispatcher(fleet, settings)
    fleet.start(instance.starts)
    finished, walked, took, revealed, done = [], [fleet.positions], [], 0, 0
    for step in range(steps):
        while revealed - done < instance.open:
            dispatcher.submit(Task(instance.tasks[revealed % len(instance.tasks)]), revealed, float(step))
            revealed += 1
        began = time.perf_counter()
        goals = dispatcher.assign(range(n), fleet.positions, fleet.headings, float(step), budget_s=choice_s)
        took.append(time.perf_counter() - began)
        left = budget_s
        if step == 0:
            fleet.prepare(goals, budget_s=budget_s)
        elif budget_s > 0:  # the choice has its share of the step; who has no field yet waits for it
            goals[~fleet.prepare(goals, 0.5 * budget_s, budget_s=budget_s)] = -1
            left = max(0.1 * budget_s, budget_s - (time.perf_counter() - began))
        fleet.step(goals, left)
        if each:
            each(step, time.perf_counter() - began)
        walked.append(fleet.positions)
        done = revealed - dispatcher.open_tasks - _ending(dispatcher, walked[-1])
        finished.append(done)
    return finished, np.array(walked), took


def _ending(dispatcher, positions):
    """How many open tasks have just been ended, which the dispatcher notes in the next step."""
    ended = 0
    for robot, id in dispatcher.holders().items():
        state = dispatcher.state(id)
        last = len(state.task.tiles) - 1
        ended -= state.errand == last and (positions[robot] == state.task.tiles[last]).all()
    return ended
