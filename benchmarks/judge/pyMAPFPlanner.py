"""FleetPlanner behind the Python interface of the judge of the League of Robot Runners 2023 (Start-Kit v1.1.5).

`python -m benchmarks.judge` runs it. This folder comes first in the judge's PYTHONPATH.
"""

import os
import time

import MAPF  # noqa: F401  (the judge's types)
import numpy as np

from benchmarks.judge.prepared import BUDGET, LATER, prepared_fleet


class pyMAPFPlanner:  # noqa: N801 (the judge's name)
    """What the judge calls: `initialize` once, `plan` each step.

    It never reads where agents are: the judge moves them as it is told, and what is told too late one step later.
    """

    def __init__(self, pyenv=None):
        self.env = pyenv.env if pyenv is not None else None
        self._budget = float(os.environ.get(BUDGET, 0.05))

    def initialize(self, preprocess_time_limit):
        """Take the map; plan fields of tiles that may become goals, as many as time and memory allow."""
        free = 1 - np.array(self.env.map, np.uint8).reshape(self.env.rows, self.env.cols)
        self._cols = self.env.cols
        self._fleet = prepared_fleet(free, self.env.num_of_agents, preprocess_time_limit, self._budget)
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
