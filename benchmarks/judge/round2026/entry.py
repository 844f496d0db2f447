"""FleetPlanner, Dispatcher and the order of robots on tiles behind the Python interface of the judge of 2026 (Start-Kit
v3.1.0), whose robots take several ticks for an action, and are delayed.

`python -m benchmarks.judge --round 2026` runs it. This folder comes first in the judge's PYTHONPATH.

The planner moves the agents on paper, some steps in each call; the executor lets each enter a tile when those that were
there before it on paper have left it (Ma, Kumar and Koenig, AAAI 2017). So paper never has to follow what is late: who
has too much to do gets nothing more. Tasks stay with their agents: one that is taken back may have been opened since.
"""

import os
import time
from collections import deque

import numpy as np

from benchmarks.judge.prepared import BUDGET, STEPPED, prepared_fleet
from gpu_planners.fleet import Dispatcher, DispatchSettings, Settings, Task

FORWARD, CLOCKWISE, WAIT = 0, 1, 3
SCHEDULE = 0.2  # share of a call's budget for better choices of tasks
MORE = 1  # actions that an agent may have to do beside those that fit between two calls


class Entry:
    """What scheduler, planner and executor share. Tiles on paper are [row, col]."""

    def __init__(self):
        self._budget = float(os.environ.get(BUDGET, 0.05))
        self._taken = set()  # ids of tasks
        self._reached = {}  # by agent: (id of its task, errands that it has reached on paper)
        self._goals = None
        self._began = 0.0

    # ---- the scheduler, which is called before the planner ----

    def initialize(self, env, limit_s):
        n = env.num_of_agents
        free = 1 - np.array(env.map, np.uint8).reshape(env.rows, env.cols)
        self._fleet = prepared_fleet(free, n, limit_s, self._budget, Settings(following=False))
        self._dispatcher = Dispatcher(self._fleet, DispatchSettings(at_once=0))
        tiles = np.argwhere(free)
        spare = Dispatcher(self._fleet)  # compiles
        spare.submit(Task(tiles[:1]))
        spare.assign([0], tiles[-1:], [0])
        self._started = False
        actions = env.min_planner_communication_time / (env.action_time * env.max_counter)
        self._steps = int(np.ceil(actions))  # on paper, in each call

    def schedule(self, env, limit_s):
        """-> list of n ids of tasks, -1: none"""
        self._began = time.monotonic()
        n, cols, pool = env.num_of_agents, env.cols, env.task_pool
        if not self._started:
            self._start(env)
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
        return [holders.get(agent, -1) for agent in range(n)]

    def _start(self, env):
        where = np.array([state.location for state in env.curr_states])
        self._fleet.start(np.stack(np.divmod(where, env.cols), axis=1), [s.orientation for s in env.curr_states])
        self._started = True

    def _arrived(self, pool, n):
        """(n,) bool, whose next errand is reached: on paper, or, of the last one, in truth"""
        arrived = np.zeros(n, bool)
        for agent, id in self._dispatcher.holders().items():
            state = self._dispatcher.state(id)
            last = len(state.task.tiles) - 1
            mine, reached = self._reached.get(agent, (id, 0))
            reached = min(reached, last) if mine == id else 0
            arrived[agent] = id not in pool or max(pool[id].idx_next_loc, reached) > state.errand
        return arrived

    # ---- the planner ----

    def plan(self, limit_s):
        """-> n lists of actions"""
        tasks = {agent: (id, self._dispatcher.state(id).task.tiles) for agent, id in self._dispatcher.holders().items()}
        n, plans = len(self._fleet.positions), [[] for _ in range(len(self._fleet.positions))]
        queued = np.array([len(queue) for queue in executor.queues] or [0] * n)
        for step in range(self._steps):
            goals = np.full((n, 2), -1)
            for agent, (id, tiles) in tasks.items():
                mine, reached = self._reached.get(agent, (id, 0))
                reached = max(reached, self._dispatcher.state(id).errand) if mine == id else 0
                goals[agent] = tiles[min(reached, len(tiles) - 1)]
            busy = np.flatnonzero(queued + [len(plan) for plan in plans] >= self._steps + MORE)
            self._fleet.observe(self._fleet.positions, self._fleet.headings, busy=busy)
            left = min(self._budget, 0.7 * limit_s) - (time.monotonic() - self._began)
            self._fleet.prepare(goals, max(0.0, 0.3 * left), 0, self._budget / self._steps)
            actions = self._fleet.step(goals, max(0.0, left / (self._steps - step)))
            for agent, action in enumerate(actions.tolist()):
                if action != WAIT:
                    plans[agent].append(action)
            there = (self._fleet.positions == goals).all(axis=1)
            for agent in np.flatnonzero(there).tolist():
                id, _ = tasks[agent]
                mine, reached = self._reached.get(agent, (id, 0))
                reached = max(reached, self._dispatcher.state(id).errand) if mine == id else 0
                self._reached[agent] = id, reached + 1
        print(STEPPED, flush=True)
        return plans


class Executor:
    """Lets agents enter tiles in the order of the plan. queues: actions that each has to do"""

    def __init__(self):
        self.queues = []
        self._order = {}  # of each tile: agents, in the order in which they are on it

    def take(self, env, plan):
        """-> what is staged for each agent, the state in which it ends"""
        if not self.queues:
            states = [(s.location, s.orientation) for s in env.system_states]
            self.queues, self._now = [deque() for _ in states], list(states)
            self._ends = list(states)
            for agent, (tile, _) in enumerate(states):
                self._order[tile] = deque([agent])
        self._follow(env)
        moves = (1, env.cols, -1, -env.cols)
        for agent, actions in enumerate(plan):
            tile, heading = self._ends[agent]
            for action in actions:
                if action == FORWARD:
                    tile += moves[heading]
                    self._order.setdefault(tile, deque()).append(agent)
                else:
                    heading = (heading + (1 if action == CLOCKWISE else 3)) % 4
                self.queues[agent].append(action)
            self._ends[agent] = tile, heading
        return plan, self._ends

    def _follow(self, env):
        for agent, state in enumerate(env.system_states):
            now, before = (state.location, state.orientation), self._now[agent]
            if now != before:
                self.queues[agent].popleft()
                self._now[agent] = now
                if now[0] != before[0]:
                    self._order[before[0]].popleft()

    def go(self, env):
        """-> (n,) bool, who may do its next action?"""
        self._follow(env)
        moves, may = (1, env.cols, -1, -env.cols), []
        for agent, queue in enumerate(self.queues):
            tile, heading = self._now[agent]
            forward = bool(queue) and queue[0] == FORWARD
            may.append(bool(queue) and (not forward or self._order[tile + moves[heading]][0] == agent))
        return may


entry, executor = Entry(), Executor()
