"""FleetPlanner behind the Python interface of the judge of the League of Robot Runners 2023 (Start-Kit v1.1.5).

`python -m benchmarks.judge` runs it. This folder comes first in the judge's PYTHONPATH.
"""

import os
import time

import MAPF  # noqa: F401  (the judge's types)
import numpy as np

from gpu_planners.device import resolve_device
from gpu_planners.fleet import Settings
from gpu_planners.grid import FleetPlanner, GridMap

BUDGET = "GPU_PLANNERS_BUDGET_S"  # seconds a step, of the environment
FIRST = 0.8  # share of the time limit before the first step that fields get
LATER = 0.5  # share of a step's time limit that fields get
MEMORY = 32 << 30  # bytes of fields on a host
PLANNED = 25  # fields a second that any host plans


class pyMAPFPlanner:  # noqa: N801 (the judge's name)
    """What the judge calls: `initialize` once, `plan` each step.

    It never reads where agents are: the judge moves them as it is told, and what is told too late one step later.
    """

    def __init__(self, pyenv=None):
        self.env = pyenv.env if pyenv is not None else None
        self._budget = float(os.environ.get(BUDGET, 0.05))

    def initialize(self, preprocess_time_limit):
        """Take the map; plan fields of tiles that may become goals, as many as time and memory allow."""
        until = time.monotonic() + FIRST * preprocess_time_limit
        self._cols, n = self.env.cols, self.env.num_of_agents
        free = 1 - np.array(self.env.map, np.uint8).reshape(self.env.rows, self.env.cols)
        field, few = 4 * (free.shape[0] + 2) * (free.shape[1] + 2), max(n + n // 4, PLANNED * preprocess_time_limit)
        settings = Settings(memory_limit_bytes=_memory(few * field))
        self._fleet = fleet = FleetPlanner(GridMap(free, connectivity=4), "turning", settings=settings)
        tiles = np.random.default_rng(0).permutation(np.argwhere(free))
        fleet.start(tiles[:n])  # anywhere: goals are those of agents
        fleet.step(np.where(np.arange(n)[:, None] < 100, tiles[:n][::-1], -1), self._budget)  # compiles
        ahead = tiles[: settings.memory_limit_bytes // field]
        for goals in np.r_[ahead, np.full((-len(ahead) % n, 2), -1)].reshape(-1, n, 2):
            fleet.prepare(goals, max(0.0, until - time.monotonic()), 0, self._budget)
        self._started = False
        return True

    def plan(self, time_limit):
        """-> list of n int actions: 0 forward, 1 clockwise, 2 counter-clockwise, 3 wait. time_limit: seconds"""
        began = time.monotonic()
        tiles = np.array([tasks[0][0] if tasks else -1 for tasks in self.env.goal_locations])
        goals = np.stack(np.divmod(tiles, self._cols), axis=1)  # a negative row: none
        if not self._started:
            states = self.env.curr_states
            where = np.array([state.location for state in states])
            self._fleet.start(np.stack(np.divmod(where, self._cols), axis=1), [state.orientation for state in states])
            self._started = True
        goals[~self._fleet.prepare(goals, LATER * time_limit, budget_s=self._budget)] = -1  # they wait for their fields
        left = min(self._budget, 0.8 * time_limit) - (time.monotonic() - began)
        return self._fleet.step(goals, max(0.0, left)).tolist()


def _memory(few):
    """Limit of fields, in bytes: by default on a GPU; on a host room for `few` bytes, which is filled before the first
    step. If it grew later, fields would be copied, for seconds."""
    if resolve_device("auto") != "cpu":
        return Settings().memory_limit_bytes
    return min(few, MEMORY, os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
