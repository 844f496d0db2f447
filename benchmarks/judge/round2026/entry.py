"""FleetPlanner and Dispatcher behind the Python interface of the judge of 2026 (Start-Kit v3.1.0), whose robots take
several ticks for an action, and are delayed.

`python -m benchmarks.judge --round 2026` runs it. This folder comes first in the judge's PYTHONPATH.

The kit's own executor lets agents enter tiles in the order of the plan. One in Python would wait for the interpreter
while the planner runs, and each tick that it waits, all agents wait. It stages as much of a plan as would be done until
the next one without delays, and tells the states in which that ends: there the next plan begins.
"""

import os
import time

import numpy as np

from benchmarks.judge.prepared import BUDGET, STEPPED, prepared_fleet
from gpu_planners.fleet import Dispatcher, DispatchSettings, Settings, Task

WAIT = 3
SCHEDULE = 0.2  # share of a call's budget for better choices of tasks
TRAIL = 16  # states of an agent that are kept


class Entry:
    """What scheduler and planner share."""

    def __init__(self):
        self._budget = float(os.environ.get(BUDGET, 0.05))
        self._taken = set()  # ids of tasks
        self._task = {}  # by agent: the id of its task in the last call
        self._trails = []  # of each agent: [(row, col, heading, errands of its task that it has reached then)]
        self._began = 0.0

    # ---- the scheduler, which is called before the planner ----

    def initialize(self, env, limit_s):
        n = env.num_of_agents
        free = 1 - np.array(env.map, np.uint8).reshape(env.rows, env.cols)
        self._fleet = prepared_fleet(free, n, limit_s, self._budget, Settings(following=False))
        # tasks stay with their agents: one that is taken back may have been opened since
        self._dispatcher = Dispatcher(self._fleet, DispatchSettings(at_once=0))
        tiles = np.argwhere(free)
        spare = Dispatcher(self._fleet)  # compiles
        spare.submit(Task(tiles[:1]))
        spare.assign([0], tiles[-1:], [0])
        self._steps = int(env.min_planner_communication_time / (env.action_time * env.max_counter)) + 1  # as it stages

    def schedule(self, env, limit_s):
        """-> list of n ids of tasks, -1: none"""
        self._began = time.monotonic()
        n, cols, pool = env.num_of_agents, env.cols, env.task_pool
        self._observe(env)
        new = [id for id in pool if id not in self._taken]
        self._taken.update(new)
        for id in sorted(new):
            errands = np.array(list(pool[id].locations))
            self._dispatcher.submit(Task(np.stack(np.divmod(errands, cols), axis=1)), id, float(env.curr_timestep))
        for _ in range(4):  # several errands may have been reached since the last call
            arrived = self._arrived(pool, n)
            given = self._fleet.positions, self._fleet.headings, float(env.curr_timestep), arrived
            self._dispatcher.assign(range(n), *given, budget_s=SCHEDULE * min(self._budget, limit_s))
            if not self._arrived(pool, n).any():
                break
        holders = self._dispatcher.holders()
        for agent in range(n):
            if holders.get(agent) != self._task.get(agent):
                self._trails[agent] = [(*self._trails[agent][-1][:3], 0)]
        self._task = holders
        return [holders.get(agent, -1) for agent in range(n)]

    def _observe(self, env):
        """Take agents for where they will be when this plan begins."""
        where = np.array([state.location for state in env.curr_states])
        tiles = np.stack(np.divmod(where, env.cols), axis=1)
        headings = np.array([state.orientation for state in env.curr_states])
        if not self._trails:
            self._fleet.start(tiles, headings)
            self._trails = [[(*tile, heading, 0)] for tile, heading in zip(tiles.tolist(), headings.tolist())]
        self._fleet.observe(tiles, headings)
        for agent, state in enumerate(zip(*tiles.T.tolist(), headings.tolist())):
            trail = self._trails[agent]
            at = next((k for k in range(len(trail) - 1, -1, -1) if trail[k][:3] == state), None)
            self._trails[agent] = [(*state, 0)] if at is None else trail[: at + 1][-TRAIL:]

    def _arrived(self, pool, n):
        """(n,) bool, whose next errand is reached: when this plan begins, or, of the last one, by now"""
        arrived = np.zeros(n, bool)
        for agent, id in self._dispatcher.holders().items():
            state = self._dispatcher.state(id)
            reached = self._trails[agent][-1][3] if self._task.get(agent) == id else 0
            reached = min(reached, len(state.task.tiles) - 1)
            arrived[agent] = id not in pool or max(pool[id].idx_next_loc, reached) > state.errand
        return arrived

    # ---- the planner ----

    def plan(self, limit_s):
        """-> n lists of actions, all of one length"""
        states = {agent: self._dispatcher.state(id) for agent, id in self._task.items()}
        reached = {agent: max(self._trails[agent][-1][3], state.errand) for agent, state in states.items()}
        plans = []
        for step in range(self._steps):
            goals = np.full((len(self._trails), 2), -1)
            for agent, state in states.items():
                goals[agent] = state.task.tiles[min(reached[agent], len(state.task.tiles) - 1)]
            left = min(self._budget, 0.7 * limit_s) - (time.monotonic() - self._began)
            self._fleet.prepare(goals, max(0.0, 0.3 * left), 0, self._budget / self._steps)
            plans.append(self._fleet.step(goals, max(0.0, left / (self._steps - step))))
            there = (self._fleet.positions == goals).all(axis=1)
            for agent in np.flatnonzero(there).tolist():
                reached[agent] += 1
            now = zip(*self._fleet.positions.T.tolist(), self._fleet.headings.tolist())
            for agent, state in enumerate(now):
                self._trails[agent].append((*state, reached.get(agent, 0)))
        print(STEPPED, flush=True)
        return np.array(plans).T.tolist()


entry = Entry()
