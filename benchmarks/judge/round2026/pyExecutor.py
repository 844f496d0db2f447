"""The executor that the judge of 2026 loads."""

import MAPF
from entry import entry


class pyExecutor:  # noqa: N801 (the judge's name)
    """What the judge calls: with each plan, and in each tick."""

    def __init__(self):
        self.env = None

    def initialize(self, preprocess_time_limit):
        """The scheduler makes all ready."""

    def process_new_plan(self, sync_time_limit, plan, staged_actions):
        action_of = MAPF.Action.FW, MAPF.Action.CR, MAPF.Action.CCR
        tiles, headings = entry.stage(self.env, staged_actions, action_of)
        where = (tiles[:, 0] * self.env.cols + tiles[:, 1]).tolist()
        now = self.env.system_timestep
        return [MAPF.State(place, now, heading) for place, heading in zip(where, headings.tolist())]

    def next_command(self, exec_time_limit):
        return entry.command(self.env)
