"""The scheduler that the judge of 2024 loads."""

import MAPF  # noqa: F401  (the judge's types)
from entry import entry_of


class pyTaskScheduler:  # noqa: N801 (the judge's name)
    """What the judge calls. Times are milliseconds."""

    def __init__(self, env):
        self._entry = entry_of(env)

    def initialize(self, preprocess_time_limit):
        self._entry.initialize(1e-3 * preprocess_time_limit)

    def plan(self, time_limit):
        return self._entry.schedule(1e-3 * time_limit)
