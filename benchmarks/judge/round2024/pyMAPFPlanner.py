"""The planner that the judge of 2024 loads."""

import MAPF  # noqa: F401  (the judge's types)
from entry import entry_of


class pyMAPFPlanner:  # noqa: N801 (the judge's name)
    """What the judge calls, after the scheduler. Times are milliseconds."""

    def __init__(self, env=None):
        self._entry = entry_of(env)

    def initialize(self, preprocess_time_limit):
        """The scheduler, which comes first, has made all ready."""

    def plan(self, time_limit):
        return self._entry.plan(1e-3 * time_limit)
