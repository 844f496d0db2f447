"""Fleets for life: the League of Robot Runners' instances, generated ones, and a simulator that counts errands."""

import json
import time
from dataclasses import dataclass

import numpy as np

from gpu_planners.grid import GridMap
from gpu_planners.grid.maps.generated import largest_component

from .problems import MissingDataError, data_dir

NAMES = (
    "MR23-I-07",
    "TR23-random",
    "TR23-Paris",
    "MR23-I-01",
    "TR23-sortation_large",
    "TR23-warehouse_large",
    "MR23-I-10",
)


@dataclass(frozen=True, eq=False)
class Instance:
    """A fleet's work.

    free: (rows, cols) bool; starts: (N, 2) [row, col]; tasks: (M,) tiles row * cols + col, of which agent i's k-th one
    is number (k N + i) modulo M
    steps, best_known: how long the published runs are, and the most errands that anybody finished; 0: not published
    """

    name: str
    free: np.ndarray
    starts: np.ndarray
    tasks: np.ndarray
    steps: int = 0
    best_known: int = 0

    def task(self, done):
        """(N,) how many tasks agents have finished -> (N, 2) where the next ones are"""
        n = len(self.starts)
        tiles = self.tasks[(done * n + np.arange(n)) % len(self.tasks)]
        return np.stack(np.divmod(tiles, self.free.shape[1]), axis=1)

    @property
    def grid(self):
        return GridMap(self.free.astype(np.uint8), connectivity=4)


def published(name, data=None):
    """An instance of the League of Robot Runners 2023. Raises MissingDataError where its files are not there."""
    folder = data_dir(data) / "lorr2023"
    if not folder.is_dir():
        raise MissingDataError(f"{folder} is not there")
    about = json.loads((folder / f"{name}.json").read_text())
    free = map_of(folder / about["mapFile"])
    starts, tasks = (numbers_of(folder / about[key]) for key in ("agentFile", "taskFile"))
    known = json.loads((folder / "best_known.json").read_text())[name]
    places = np.stack(np.divmod(starts[: about["teamSize"]], free.shape[1]), axis=1)
    return Instance(name, free, places, tasks, known["steps"], known["best_known_errands"])


def map_of(path):
    """(rows, cols) bool of a map's file, which tiles are free?"""
    lines = path.read_text().split("\n")[4:]
    return np.array([[tile not in "@T" for tile in line] for line in lines if line])


def numbers_of(path):
    """Numbers of a file whose first one says how many follow; lines with # are comments."""
    lines = [line for line in path.read_text().split("\n") if line and not line.startswith("#")]
    return np.array(lines[1 : int(lines[0]) + 1], np.int64)


def scattered(rows, cols, agents, goals, blocked=0.1, seed=0):
    """Agents on a map with random obstacles, whose tasks are among so many tiles."""
    rng = np.random.default_rng(seed)
    free = largest_component(rng.uniform(size=(rows, cols)) > blocked)
    tiles = np.flatnonzero(free)
    starts = np.stack(np.divmod(rng.permutation(tiles)[:agents], cols), axis=1)
    pool = rng.permutation(tiles)[:goals]
    return Instance(f"{rows}x{cols}, {agents} agents", free, starts, rng.choice(pool, 20 * agents))


def simulate(fleet, instance, steps, budget_s=0.0, each=None):
    """Let a fleet work, which does as it is told -> errands by agent (N,), positions (steps + 1, N, 2)

    each(step, seconds): called after every step
    """
    fleet.start(instance.starts)
    done, walked = np.zeros(len(instance.starts), np.int64), [fleet.positions]
    for step in range(steps):
        goals = instance.task(done)
        began = time.perf_counter()
        if step == 0:
            fleet.prepare(goals, budget_s=budget_s)
        fleet.step(goals, budget_s)
        if each:
            each(step, time.perf_counter() - began)
        walked.append(fleet.positions)
        done += (walked[-1] == goals).all(axis=1)
    return done, np.array(walked)
