"""One-shot planning by the stepper: agents step towards their goals and stay there.

For agents that turn, whose options look some ticks ahead (stepper.py), and for agents that cover several tiles, keep
distances, or take several ticks for an action, which LaCAM (lacam.py) does not know. Priorities are PIBT's: whoever was
at its goal longest ago comes first. It may end before all have arrived.
"""

import time
from dataclasses import replace

import numpy as np

from .clock import late, seconds_left
from .guidance import Guidance
from .plan import PARTLY, STUCK, FleetPlan, FleetStatus
from .search import OUT_OF_TIME

PATIENCE = 300  # steps without another agent at its goal, beyond the longest way, after which it ends


def step_and_stay(fleet, instance, faces, speeds, deadline, began):
    """Plan by the rules of a fleet. instance: Instance; faces: (N,) int32; speeds: (N, 2) int32 -> FleetPlan"""
    walked, headings, least, message = walk(fleet, instance, faces, speeds, deadline)
    has_goal, steps = instance.goal >= 0, len(walked) - 1
    ends = np.full((len(has_goal), 2), -1, np.int32)
    ends[has_goal] = instance.place[instance.goal[has_goal]]
    away = (walked != ends).any(axis=2)
    cost = np.where(away.any(axis=0), steps + 1 - np.argmax(away[::-1], axis=0), 0)
    status = instance.status.copy()
    status[has_goal & (cost > steps)] = FleetStatus.NOT_REACHED
    if message == "solved" and (status != FleetStatus.SOLVED).any():
        message = PARTLY
    costs = np.where(has_goal & (status == FleetStatus.SOLVED), cost, 0)
    taken = time.perf_counter() - began
    return FleetPlan(status, walked, headings, ends, costs, least, taken, taken, message)


def walk(fleet, instance, faces, speeds, deadline):
    """Step until all agents are at their goals, or no more of them get there, or the time is over.

    -> (steps + 1, N, 2) int32 [row, col], -1 where an agent is not on the map; (steps + 1, N) int32 headings
    (N,) int64 ticks that each agent takes at least; what happened
    """
    settings = replace(fleet.settings, guidance="plain", adapt_every=0, neighbourhood_search=False)
    steps = Guidance(np.ones((*fleet.grid.shape, 4), np.int64))
    own = type(fleet)(fleet.grid, fleet.motion.name, "cpu", settings, steps)
    own.hold_goals()
    n, some = len(instance.start), np.flatnonzero(instance.start >= 0)
    own.start(instance.place[instance.start[some]], faces[some] if fleet.motion.headings > 1 else None, speeds[some])
    wanted = instance.goal[some] >= 0
    goals = np.where(wanted[:, None], instance.place[instance.goal[some]], -1)
    walked, turned = [own.positions], [own.headings]
    ticks = speeds[some, 0]
    quickest = speeds[some].min(axis=1) if fleet.motion.headings > 1 else ticks
    in_time = own.prepare(goals, seconds_left(deadline), least=0).all()
    actions = np.where(wanted, own.steps_to_go(goals) if in_time else np.abs(goals - own.positions).sum(axis=1), 0)
    least = np.maximum(actions * quickest - (ticks - 1), actions)  # an agent counts where it moves to
    most, last = -1, 0
    message = "solved"
    while not (there := (walked[-1] == goals).all(axis=1))[wanted].all():
        if there.sum() > most:
            most, last = int(there.sum()), len(walked)
        if not in_time or late(deadline):
            message = OUT_OF_TIME
            break
        if len(walked) - last > PATIENCE + least.max(initial=0):
            message = STUCK
            break
        own.step(goals)
        walked.append(own.positions)
        turned.append(own.headings)
    positions = np.full((len(walked), n, 2), -1, np.int32)
    headings, least_of = np.zeros((len(walked), n), np.int32), np.zeros(n, np.int64)
    positions[:, some], headings[:, some], least_of[some] = walked, turned, least
    return positions, headings, least_of, message
