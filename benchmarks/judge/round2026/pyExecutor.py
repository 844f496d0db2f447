"""The executor that the judge of 2026 loads."""

import MAPF
from entry import executor


class pyExecutor:  # noqa: N801 (the judge's name)
    """What the judge calls: `process_new_plan` with each plan, `next_command` each tick."""

    def __init__(self):
        self.env = None

    def initialize(self, preprocess_time_limit):
        """Nothing is known yet."""

    def process_new_plan(self, sync_time_limit, plan, staged_actions):
        given = [[int(action) for action in actions] for actions in plan.actions]
        staged, ends = executor.take(self.env, given)
        for agent, actions in enumerate(staged):
            for action in actions:
                staged_actions[agent].append(MAPF.Action(action))
        return [MAPF.State(tile, -1, heading) for tile, heading in ends]

    def next_command(self, exec_time_limit):
        go, stop = MAPF.ExecutionCommand.GO, MAPF.ExecutionCommand.STOP
        return [go if may else stop for may in executor.go(self.env)]
