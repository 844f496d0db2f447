"""FleetPlanner behind the Python interface of the judge of the League of Robot Runners 2023 (Start-Kit v1.1.5).

Name this folder as "python_path" in the judge's config.json; README.md here has the lines.
"""

import os

import MAPF  # noqa: F401  (the judge's types)
import numpy as np

from gpu_planners.fleet import Settings
from gpu_planners.grid import FleetPlanner, GridMap

BUDGET = "GPU_PLANNERS_BUDGET_S"  # seconds a step, of the environment
GUIDANCE = "GPU_PLANNERS_GUIDANCE"


class pyMAPFPlanner:  # noqa: N801 (the judge's name)
    """What the judge calls: `initialize` once, `plan` each step."""

    def __init__(self, pyenv=None):
        self.env = pyenv.env if pyenv is not None else None
        self._fleet = None

    def initialize(self, preprocess_time_limit):
        """Take the map. preprocess_time_limit: seconds"""
        costs = 1 - np.array(self.env.map, np.uint8).reshape(self.env.rows, self.env.cols)
        settings = Settings(guidance=os.environ.get(GUIDANCE, "lanes"))
        self._fleet = FleetPlanner(GridMap(costs, connectivity=4), "turning", settings=settings)
        return True

    def plan(self, time_limit):
        """-> (n,) int actions: 0 forward, 1 clockwise, 2 counter-clockwise, 3 wait. time_limit: seconds"""
        states, cols = self.env.curr_states, self.env.cols
        here = np.array([(state.location, state.orientation) for state in states])
        goals = np.array([tasks[0][0] for tasks in self.env.goal_locations])
        tiles = np.stack(np.divmod(here[:, 0], cols), axis=1)
        if len(self._fleet.positions) == 0:
            self._fleet.start(tiles, here[:, 1])
        else:
            self._fleet.observe(tiles, here[:, 1])
        budget = min(float(os.environ.get(BUDGET, 0.5)), 0.8 * time_limit)
        return self._fleet.step(np.stack(np.divmod(goals, cols), axis=1), budget)
