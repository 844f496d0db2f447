"""The planner that the judge of 2026 loads."""

from entry import entry


class pyMAPFPlanner:  # noqa: N801 (the judge's name)
    """What the judge calls, after the scheduler. Times are milliseconds."""

    def __init__(self):
        self.env = None

    def initialize(self, preprocess_time_limit):
        """The scheduler has made all ready."""

    def plan(self, time_limit):
        return entry.plan(self.env, 1e-3 * time_limit)
