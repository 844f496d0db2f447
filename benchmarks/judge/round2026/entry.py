"""FleetPlanner, Dispatcher and ActionGraph behind the Python interface of the judge of 2026 (Start-Kit v3.1.0), whose
robots take several ticks for an action, and are delayed.

`python -m benchmarks.judge --round 2026` runs it. This folder comes first in the judge's PYTHONPATH.

The planner plans on from the end of its last plan, as if nobody were ever late; whoever is late does the rest of its
plan later, and the action graph keeps the order in which agents enter tiles. Where agents are far behind, plans have
fewer steps.

The judge tells of what has been done when a plan is asked for, and takes a schedule when that plan is ready, when its
agents have gone on for as long as it took. So a schedule that names a task which its agent ends meanwhile would be
wrong. The schedule is made at once, from what was chosen in the plan before, and no agent moves until it is told.
"""

import os
import threading
import time

import numpy as np

from benchmarks.judge.prepared import BUDGET, SCHEDULE, STEPPED, prepared_fleet
from gpu_planners.fleet import Dispatcher, DispatchSettings, Settings, Task
from gpu_planners.fleet.action_graph import ActionGraph

WAIT = 3
GO, STOP = 0, 1
AHEAD = 10  # actions staged and not done, of an agent on average, at most: a plan that runs far ahead serves nobody
LEAST_S = 1e-3  # of a step
MOST_STEPS = 6  # of a plan
TOLD_S = 0.08  # agents wait at most so long for the schedule, of the 0.1 s that a tick has
MOVED_S = 0.1  # the planner waits at most so long until agents have done the ticks that come before its plan


class Entry:
    """What scheduler, planner and executor share."""

    def __init__(self):
        self._budget = float(os.environ.get(BUDGET, 0.05))
        self._taken = set()  # ids of tasks
        self._fleet = None
        self._staged = 0  # steps of the plans so far
        self._plan = []  # of the last call: [(actions, tiles, headings)] of each step
        self._told, self._moved = threading.Event(), threading.Event()
        self._graph = None
        self._behind = 0.0  # actions of an agent that are staged and not done, on average

    # ---- the scheduler, which is called before the planner ----

    def initialize(self, env, limit_s):
        n = env.num_of_agents
        free = 1 - np.array(env.map, np.uint8).reshape(env.rows, env.cols)
        self._fleet = prepared_fleet(free, n, limit_s, self._budget, Settings(following=False))
        # tasks stay with their agents: one that is taken back may have been begun since
        self._dispatcher = Dispatcher(self._fleet, DispatchSettings(at_once=0))
        tiles = np.argwhere(free)
        spare = Dispatcher(self._fleet)  # compiles
        spare.submit(Task(tiles[:1]))
        spare.assign([0], tiles[-1:], [0])
        self._n, self._cols = n, env.cols
        self._cycle = int(env.min_planner_communication_time / env.action_time)  # ticks between two plans
        self._ticks = env.max_counter  # of an action
        self._held, self._reached = np.full(n, -1), np.zeros(n, int)  # tasks, errands of these, at the end of the plans

    def schedule(self, env):
        """-> list of n ids of tasks, -1: none"""
        self._began = time.monotonic()
        if not self._staged:
            self._choose(env)
        current, pool = np.array(env.curr_task_schedule), env.task_pool
        ours = [id if id in pool else -1 for id in self._held.tolist()]
        self._confirmed = (current >= 0) & (current == self._held)
        return np.where(current >= 0, current, ours).tolist()

    # ---- the planner ----

    def plan(self, env, limit_s):
        """-> n lists of actions, all of one length"""
        self._told.set()
        first = not self._staged
        if not first:
            self._moved.wait(MOVED_S)
            self._choose(env)
        now = 0 if first else env.system_timestep
        begins = max(self._ticks * self._staged, now)  # tick in which the plan begins, if nobody is late
        ends = now + self._cycle * (1 if first else 2)
        steps = int(np.clip(-(-(ends - begins) // self._ticks), 1, MOST_STEPS))
        if not first:
            steps = int(np.clip(AHEAD - self._behind, 1, steps))
        self._staged = begins // self._ticks + steps
        nowhere, until = np.full((self._n, 2), -1), self._began + min(self._budget, 0.8 * limit_s)
        self._plan, tasks = [], self._tasks()
        for step in range(steps):
            goals = nowhere.copy()
            for agent, tiles in tasks.items():
                goals[agent] = tiles[min(self._reached[agent], len(tiles) - 1)]
            left = until - time.monotonic()
            goals[
                ~self._fleet.prepare(goals, max(0.0, 0.3 * left), 1, self._budget / steps)
            ] = -1  # without a field yet
            actions = self._fleet.step(goals, max(LEAST_S, left / (steps - step)))
            self._plan.append((actions, self._fleet.positions, self._fleet.headings))
            self._note(goals)
        print(STEPPED, flush=True)
        return np.array([actions for actions, *_ in self._plan]).T.tolist()

    def _note(self, goals):
        """Errands count as reached where the judge knows who does the task."""
        there = (self._fleet.positions == goals).all(axis=1) & self._confirmed
        self._reached[there] += 1

    def _tasks(self):
        """{agent: the tiles of its task}"""
        return {agent: self._dispatcher.state(id).task.tiles for agent, id in self._dispatcher.holders().items()}

    def _choose(self, env):
        """Note what will have been reached at the end of the plans so far, and choose who gets what."""
        pool, fleet, cols = env.task_pool, self._fleet, self._cols
        if not self._staged:
            where = np.array([state.location for state in env.curr_states])
            fleet.start(np.stack(np.divmod(where, cols), axis=1), [state.orientation for state in env.curr_states])
        now = env.system_timestep / self._ticks
        new = [id for id in pool if id not in self._taken]
        self._taken.update(new)
        for id in sorted(new):
            errands = np.array(list(pool[id].locations))
            self._dispatcher.submit(Task(np.stack(np.divmod(errands, cols), axis=1)), id, now)
        goals = np.full((self._n, 2), -1)
        for agent, tiles in self._tasks().items():
            if self._confirmed[agent]:
                id = int(self._held[agent])
                done = pool[id].idx_next_loc if id in pool else len(tiles)
                self._reached[agent] = max(self._reached[agent], done)
                goals[agent] = tiles[min(self._reached[agent], len(tiles) - 1)]
        if self._staged:
            self._note(goals)  # who was there before the judge knew
        budget = SCHEDULE * self._budget
        while True:
            arrived = np.zeros(self._n, bool)
            for agent, id in self._dispatcher.holders().items():
                state = self._dispatcher.state(id)
                arrived[agent] = self._held[agent] == id and self._reached[agent] > state.errand
            given = fleet.positions, fleet.headings, now, arrived
            self._dispatcher.assign(range(self._n), *given, budget_s=budget)
            held, budget = np.full(self._n, -1), 0.0
            for agent, id in self._dispatcher.holders().items():
                held[agent] = id
            self._reached[held != self._held] = 0
            self._held = held
            if not arrived.any():
                return

    # ---- the executor, which is called in another thread ----

    def stage(self, env, staged, action_of):
        """Append the last plan to what agents have to do -> (N, 2) tiles and (N,) headings where that ends

        staged: lists of actions; action_of: of the judge, by our numbers
        """
        if self._graph is None:
            self._graph = ActionGraph((env.rows, env.cols), 0, False, 8)
            tiles, self._at = self._seen(env)
            self._graph.add(tiles, self._at % 4)
        graph = self._graph
        graph.widen(int(graph.planned.max()) + len(self._plan))
        for actions, tiles, headings in self._plan:
            agents = np.flatnonzero(actions != WAIT)
            graph.plan(agents, tiles[agents].astype(np.int64), headings[agents].astype(np.int64))
            for agent, action in zip(agents.tolist(), actions[agents].tolist()):
                staged[agent].append(action_of[action])
        self._plan, self._behind = [], float(graph.planned.mean())
        self._told.clear()
        self._moved.clear()
        self._since = 0
        return graph.ends()

    def command(self, env):
        """-> list of n commands for this tick"""
        self._told.wait(TOLD_S)
        self._since += 1
        if self._since >= self._cycle:
            self._moved.set()
        graph, (_, at) = self._graph, self._seen(env)
        done = np.flatnonzero(at != self._at)
        graph.arrive(done, np.ones(len(done), np.int64))
        self._at = at
        graph.allow()
        return np.where(graph.allowed > 0, GO, STOP).tolist()

    def _seen(self, env):
        """(N, 2) tiles, (N,) numbers of the states in which agents are"""
        at = np.array([4 * state.location + state.orientation for state in env.system_states])
        return np.stack(np.divmod(at // 4, env.cols), axis=1), at


entry = Entry()
