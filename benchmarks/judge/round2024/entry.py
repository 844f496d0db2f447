"""FleetPlanner and Dispatcher behind the Python interface of the judge of 2024 (Start-Kit v2.1.2).

`python -m benchmarks.judge --round 2024` runs it. This folder comes first in the judge's PYTHONPATH.
"""

import os
import time

import numpy as np

from benchmarks.judge.prepared import BUDGET, GOALS, LATER, SCHEDULE, STEPPED, prepared_fleet
from gpu_planners.fleet import Dispatcher, Task


class Entry:
    """What the judge's scheduler and planner share. env: the judge's; one for both"""

    def __init__(self, env):
        self._env, self._budget = env, float(os.environ.get(BUDGET, 0.05))
        self._goals = self._began = None
        self._taken = set()  # ids of tasks

    def initialize(self, limit_s):
        """Take the map, and plan fields."""
        env, n = self._env, self._env.num_of_agents
        free = 1 - np.array(env.map, np.uint8).reshape(env.rows, env.cols)
        self._fleet = prepared_fleet(free, n, limit_s, self._budget, goals=GOALS)
        self._dispatcher = Dispatcher(self._fleet)
        tiles = np.argwhere(free)
        spare = Dispatcher(self._fleet)  # compiles
        spare.submit(Task(tiles[:1]))
        spare.assign([0], tiles[-1:], [0])
        self._started = False

    def schedule(self, limit_s):
        """-> list of n ids of tasks, -1: none. limit_s: seconds of the step"""
        self._began, env = time.monotonic(), self._env
        n, cols, pool = env.num_of_agents, env.cols, env.task_pool
        states = env.curr_states
        where = np.array([state.location for state in states])
        tiles, faces = np.stack(np.divmod(where, cols), axis=1), np.array([state.orientation for state in states])
        if not self._started:
            self._fleet.start(tiles, faces)
            self._started = True
        new = [id for id in pool if id not in self._taken]
        self._taken.update(new)
        for id in sorted(new):
            errands = np.array(list(pool[id].locations))
            self._dispatcher.submit(Task(np.stack(np.divmod(errands, cols), axis=1)), id, float(env.curr_timestep))
        for _ in range(3):  # of steps that were late an errand may have been reached in each
            arrived = self._arrived(pool)
            given = tiles, faces, float(env.curr_timestep), arrived
            self._goals = self._dispatcher.assign(range(n), *given, budget_s=SCHEDULE * min(self._budget, limit_s))
            if not arrived.any() or not self._arrived(pool).any():
                break
        holders = self._dispatcher.holders()
        return [holders.get(agent, -1) for agent in range(n)]

    def _arrived(self, pool):
        arrived = np.zeros(self._env.num_of_agents, bool)
        for agent, id in self._dispatcher.holders().items():
            arrived[agent] = id not in pool or pool[id].idx_next_loc > self._dispatcher.state(id).errand
        return arrived

    def plan(self, limit_s):
        """-> list of n int actions: 0 forward, 1 clockwise, 2 counter-clockwise, 3 wait"""
        goals = self._goals.copy()
        spent = time.monotonic() - self._began
        goals[~self._fleet.prepare(goals, max(0.0, LATER * limit_s - spent), budget_s=self._budget)] = -1
        left = min(self._budget, 0.8 * limit_s) - (time.monotonic() - self._began)
        print(STEPPED, flush=True)
        return self._fleet.step(goals, max(0.0, left)).tolist()


_entries: dict[int, Entry] = {}


def entry_of(env):
    return _entries.setdefault(0, Entry(env))
