"""Tasks of a fleet: what is chosen first is the best of all choices, and whatever happens then (robots that are gone,
tasks that are cancelled or changed, a journal that is read again), each task is done once, errand by errand."""

import tempfile
from pathlib import Path

import numpy as np
from dispatch_oracle import best_choice

from gpu_planners.fleet import Dispatcher, DispatchSettings, FleetPlanner, Settings, Task, TaskStatus
from gpu_planners.fleet.dispatch.task import ENDED
from gpu_planners.grid import GridMap

from .harness import Attack

PLAIN = {"traffic": 0.0, "ageing": 0.0, "keep": 0.0, "look_ahead": 0.0}
STEPS = 150


def case(run, rng, number, tally):
    shape = rng.integers(5, 12, 2)
    free = rng.random(shape) > rng.uniform(0, 0.3)
    tiles = rng.permutation(np.argwhere(free))
    if len(tiles) < 6:
        return
    motion, guidance = str(rng.choice(["four", "turning"])), str(rng.choice(["plain", "lanes"]))
    grid, how = GridMap(free.astype(np.uint8), 4), Settings(guidance=guidance)
    fleet = FleetPlanner(grid, motion, run.devices[-1], how)
    where = f"{motion}, {guidance}, {free.shape}, {run.devices[-1]}"
    robots = int(rng.integers(1, 5))
    _best(rng, tally, fleet, tiles[:robots], rng.integers(0, 4, robots), where)
    _work(rng, tally, fleet, tiles, int(rng.integers(1, min(9, len(tiles) // 2))), where)


def _task(rng, tiles, robots):
    errands = tiles[rng.integers(0, len(tiles), rng.integers(1, 4))]
    whose = None if rng.random() < 0.7 else rng.choice(robots, 2).tolist()
    return Task(errands, int(rng.integers(0, 3)), robots=whose)


def _best(rng, tally, fleet, places, faces, where):
    tiles = np.argwhere(fleet.grid.costs)
    tasks = [_task(rng, tiles, len(places)) for _ in range(rng.integers(1, 6))]
    dispatcher = Dispatcher(fleet, DispatchSettings(**PLAIN))
    ids = [dispatcher.submit(task) for task in tasks]
    dispatcher.assign(range(len(places)), places, faces, now=0.0)
    best, table = best_choice(fleet, places, faces, tasks)
    held = [(robot, ids.index(id)) for robot, id in dispatcher.holders().items()]
    cost = sum(table[robot][task] for robot, task in held)
    mine = len(held), sum(tasks[task].priority for _, task in held), round(-cost, 6)
    tally.check(mine == (*best[:2], round(best[2], 6)), f"a choice is worth {mine}, the best {best}: {where}")


def _work(rng, tally, fleet, tiles, count, where):
    with tempfile.TemporaryDirectory() as folder:
        kept = {"journal": Path(folder) / "tasks"} if rng.random() < 0.5 else {}
        dispatcher, reached, done, begun = Dispatcher(fleet, **kept), {}, set(), {}
        fleet.start(tiles[:count])
        names = list(range(count))
        fresh = count
        for step in range(STEPS):
            if rng.random() < 0.2:
                reached[dispatcher.submit(_task(rng, tiles, fresh))] = 0
            some = [id for id, state in dispatcher.states().items() if state.status not in ENDED and id in reached]
            if some and rng.random() < 0.03:
                dispatcher.cancel(some.pop(rng.integers(len(some))))
            if some and rng.random() < 0.05:
                dispatcher.reprioritise(some[rng.integers(len(some))], int(rng.integers(0, 5)))
            if rng.random() < 0.02:  # another robot in the place of one that died
                k = int(rng.integers(count))
                gone, names[k], fresh = names[k], fresh, fresh + 1
                id = dispatcher.holders().get(gone)
                dispatcher.remove(gone)
                if id in reached:
                    reached[id] = 0
                    begun.pop(id, None)
            if kept and rng.random() < 0.03:
                before = dispatcher.states()
                dispatcher.close()
                dispatcher = Dispatcher(fleet, **kept)
                told, after = (
                    {
                        id: (s.status, s.robot, s.errand, s.history, s.task.priority, s.task.tiles.tolist())
                        for id, s in states.items()
                    }
                    for states in (before, dispatcher.states())
                )
                tally.check(told == after, f"a journal read again differs in step {step}: {where}")
            before, positions = dispatcher.states(), fleet.positions
            goals = dispatcher.assign(names, positions, fleet.headings, float(step + 1))
            _look(tally, dispatcher, before, positions, names, reached, done, begun, f"step {step}: {where}")
            fleet.step(goals)
        tally.check(len(dispatcher.holders()) <= count, f"{dispatcher.holders()} of {count} robots: {where}")
        dispatcher.close()


def _look(tally, dispatcher, before, positions, names, reached, done, begun, where):
    """What has changed in a call of `assign` is what robots did. reached: {task: errands that robots have come to}"""
    holders = dispatcher.holders()
    tally.check(len(set(holders.values())) == len(holders), f"two robots have one task, {holders}: {where}")
    for id, state in dispatcher.states().items():
        if id not in reached:
            continue
        old = before.get(id)
        if old is not None and state.errand > old.errand:
            tile = positions[names.index(old.robot)].tolist() if old.robot in names else None
            goal = old.task.tiles[old.errand].tolist()
            tally.check(
                state.errand == old.errand + 1 and tile == goal,
                f"errand {state.errand} of {id} is not reached: {where}",
            )
            reached[id] += 1
        if state.status == TaskStatus.BEGUN:
            tally.check(begun.setdefault(id, state.robot) == state.robot, f"{id} was {begun[id]}'s, begun: {where}")
        if state.robot is not None and state.task.robots is not None:
            tally.check(state.robot in state.task.robots, f"{state.robot} has {id}, of {state.task.robots}: {where}")
        if state.status == TaskStatus.DONE and id not in done:
            done.add(id)
            tally.check(reached[id] == len(state.task.tiles), f"{id} is done after {reached[id]} errands: {where}")
        if id in done:
            tally.check(state.status == TaskStatus.DONE, f"{id} was done, and is {state.status.name}: {where}")


ATTACK = Attack("tasks", "tasks of a fleet: choices, and what becomes of tasks", case)
