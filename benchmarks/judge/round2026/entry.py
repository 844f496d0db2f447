"""FleetPlanner, Dispatcher and TickGraph behind the Python interface of the judge of 2026 (Start-Kit v3.1.0), whose
robots take several ticks for an action, and are delayed.

`python -m benchmarks.judge --round 2026` runs it. This folder comes first in the judge's PYTHONPATH.

The judge asks for a plan while agents carry out what is staged, and stages it when that time is over. Then what nobody
can have begun by the next time is taken back, so each plan is made from where agents may be by then, and lasts until
the next one: an order that delays have upset is forgotten. Who is delayed is taken to go on at once: it has something
to do when it does.

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
from gpu_planners.fleet.tick_graph import TickGraph

FORWARD, CLOCKWISE, COUNTER, WAIT = range(4)
GO, STOP = 0, 1
SLACK = 2  # ticks that agents may be ahead of what is expected before they have nothing to do
FIRST = 0.6  # share of a plan's time for its first step, from which the others follow
LEAST = 0.06  # share of a plan's time that each of them has
TOLD_S = 0.08  # agents wait at most so long for the schedule, of the 0.1 s that a tick has


class Entry:
    """What scheduler, planner and executor share."""

    def __init__(self):
        self._budget = float(os.environ.get(BUDGET, 0.05))
        self._taken = set()  # ids of tasks
        self._fleet = self._graph = None
        self._plan = []  # of the last call: [(actions, tiles, headings)] of each step
        self._told = threading.Event()

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
        if self._graph is None:
            tiles, headings, _ = _seen(env.curr_states, self._cols)
            self._fleet.start(tiles, headings)
            self._graph = TickGraph((env.rows, env.cols), 4)
            self._graph.add(tiles, headings)
            self._ends, self._ways = self._graph.ends(), tiles[:, None]
            self._choose(env)
        current, pool = np.array(env.curr_task_schedule), env.task_pool
        self._confirmed = (current >= 0) & (current == self._held)
        ours = [id if id in pool else -1 for id in self._held.tolist()]
        return np.where(current >= 0, current, ours).tolist()

    # ---- the planner ----

    def plan(self, env, limit_s):
        """-> n lists of actions, all of one length"""
        self._told.set()
        self._choose(env)
        until = self._began + min(self._budget, 0.8 * limit_s)
        tasks, nowhere = self._tasks(), np.full((self._n, 2), -1)
        reached, found, fleet = self._reached.copy(), [], self._fleet
        steps = -(-self._cycle // self._ticks)
        fleet.start(*self._ends)
        for step in range(steps):
            goals = nowhere.copy()
            for agent, tiles in tasks.items():
                goals[agent] = tiles[min(reached[agent], len(tiles) - 1)]
            left = until - time.monotonic()
            goals[~fleet.prepare(goals, max(0.0, 0.3 * left), 1, self._budget)] = -1  # without a field yet
            share = FIRST if step == 0 else 1 / (steps - step)
            actions = fleet.step(goals, max(LEAST * self._budget, share * (until - time.monotonic())))
            found.append((actions, fleet.positions.astype(np.int64), fleet.headings.astype(np.int64)))
            reached[(fleet.positions == goals).all(axis=1) & self._confirmed] += 1
        self._plan = _straightened(found)
        print(STEPPED, flush=True)
        return np.array([actions for actions, *_ in self._plan]).T.tolist()

    def _tasks(self):
        """{agent: the tiles of its task}"""
        return {agent: self._dispatcher.state(id).task.tiles for agent, id in self._dispatcher.holders().items()}

    def _choose(self, env):
        """Note what will have been reached when agents have done what is staged, and choose who gets what."""
        pool, cols = env.task_pool, self._cols
        now = env.system_timestep / self._ticks
        new = [id for id in pool if id not in self._taken]
        self._taken.update(new)
        for id in sorted(new):
            errands = np.array(list(pool[id].locations))
            self._dispatcher.submit(Task(np.stack(np.divmod(errands, cols), axis=1)), id, now)
        for agent, tiles in self._tasks().items():
            if self._confirmed[agent]:
                self._reached[agent] = self._reached_by(agent, int(self._held[agent]), tiles, pool)
        budget = SCHEDULE * self._budget
        while True:
            arrived = np.zeros(self._n, bool)
            for agent, id in self._dispatcher.holders().items():
                state = self._dispatcher.state(id)
                arrived[agent] = self._held[agent] == id and self._reached[agent] > state.errand
            self._dispatcher.assign(range(self._n), *self._ends, now, arrived, budget_s=budget)
            held, budget = np.full(self._n, -1), 0.0
            for agent, id in self._dispatcher.holders().items():
                held[agent] = id
            self._reached[held != self._held] = 0
            self._held = held
            if not arrived.any():
                return

    def _reached_by(self, agent, id, tiles, pool):
        """How many errands of its task an agent will have reached."""
        if id not in pool:
            return len(tiles)
        reached = pool[id].idx_next_loc
        for tile in self._ways[agent]:
            reached += bool(reached < len(tiles) and (tile == tiles[reached]).all())
        return reached

    # ---- the executor, which is called in another thread, but not while a plan is asked for ----

    def stage(self, env, staged, action_of):
        """Append the last plan to what agents have to do, and take back what they will not have begun before the next
        one -> (N, 2) tiles and (N,) headings where that ends

        staged: lists of actions; action_of: of the judge, by our numbers
        """
        graph, (tiles, headings, done) = self._graph, _seen(env.system_states, self._cols)
        graph.follow(tiles, headings)
        graph.widen(int(graph.planned.max()) + len(self._plan))
        for actions, ends, faces in self._plan:
            agents = np.flatnonzero(actions != WAIT)
            graph.plan(agents, ends[agents], faces[agents])
            for agent, action in zip(agents.tolist(), actions[agents].tolist()):
                staged[agent].append(action_of[action])
        self._plan = []
        self._ends = graph.keep_only(graph.forecast(self._cycle + SLACK, self._ticks, done))
        self._ways = [graph.tiles[agent, : graph.planned[agent] + 1] for agent in range(self._n)]
        for actions, kept in zip(staged, graph.planned.tolist()):
            if len(actions) > kept:
                del actions[kept:]
        self._told.clear()
        return self._ends

    def command(self, env):
        """-> list of n commands for this tick"""
        self._told.wait(TOLD_S)
        tiles, headings, done = _seen(env.system_states, self._cols)
        self._graph.follow(tiles, headings)
        return np.where(self._graph.go(done), GO, STOP).tolist()


def _seen(states, cols):
    """The judge's states -> (N, 2) tiles, (N,) headings, (N,) ticks of their actions that are done"""
    rows = [(state.location, state.orientation, state.counter.count) for state in states]
    places, headings, done = np.array(rows, np.int64).T
    return np.stack(np.divmod(places, cols), axis=1), headings, done


def _straightened(plan):
    """The same plan with the fewest turns between two moves: an agent that turns to and fro waits instead."""
    actions, headings = np.stack([each[0] for each in plan]), np.stack([each[2] for each in plan])
    before = (headings[0] - (actions[0] == CLOCKWISE) + (actions[0] == COUNTER)) % 4
    for agent in np.flatnonzero(((actions == CLOCKWISE) | (actions == COUNTER)).sum(axis=0) > 1):
        heading = before[agent]
        moves = [-1, *np.flatnonzero(actions[:, agent] == FORWARD).tolist(), len(plan)]
        for first, end in zip(moves[:-1], moves[1:]):
            turns = [[], [CLOCKWISE], [CLOCKWISE, CLOCKWISE], [COUNTER]][(headings[end - 1, agent] - heading) % 4]
            for step, action in zip(range(first + 1, end), [*turns, *[WAIT] * len(plan)]):
                heading = (heading + (action == CLOCKWISE) - (action == COUNTER)) % 4
                actions[step, agent], headings[step, agent] = action, heading
    return [(acts, tiles, faces) for acts, (_, tiles, _), faces in zip(actions, plan, headings)]


entry = Entry()
