"""The scheduler that the judge of 2026 loads."""

import os
import sys
import traceback

from entry import entry


class pyTaskScheduler:  # noqa: N801 (the judge's name)
    """What the judge calls. Times are milliseconds."""

    def __init__(self):
        self.env = None

    def initialize(self, preprocess_time_limit):
        try:
            entry.initialize(self.env, 1e-3 * preprocess_time_limit)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)  # the judge would go on, and say nothing

    def plan(self, time_limit):
        return entry.schedule(self.env)
