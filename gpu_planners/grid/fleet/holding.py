"""One-shot planning by the stepper: agents step towards their goals and stay there.

For agents that cover several tiles, keep distances, or take several ticks for an action, which LaCAM (lacam.py) does
not know. Priorities are PIBT's: whoever was at its goal longest ago comes first. It may end before all have arrived.
"""

import time
from dataclasses import replace

import numpy as np

from .plan import NOT_THERE, FleetPlan, FleetStatus

PATIENCE = 300  # steps without another agent at its goal, beyond the longest way, after which it ends


def step_and_stay(fleet, instance, faces, until, began):
    """Plan by the rules of a fleet. instance: oneshot.Instance; faces: (N,) int32 -> FleetPlan"""
    settings = replace(fleet.settings, lanes=False, neighbourhood_search=False)
    own = type(fleet)(fleet.grid, fleet.motion.name, "cpu", settings)
    own.hold_goals()
    some = np.flatnonzero(instance.start >= 0)
    own.start(instance.place[instance.start[some]], faces[some] if fleet.motion.headings > 1 else None)
    goals = np.where(instance.goal[some, None] >= 0, instance.place[instance.goal[some]], -1)
    wanted = instance.goal[some] >= 0
    walked, turned = [own.positions], [own.headings]
    least = own.steps_to_go(goals) * min(settings.ticks_per_move, settings.ticks_per_turn)
    most, last = 0, 0
    message = "solved"
    while not (there := (walked[-1] == goals).all(axis=1))[wanted].all():
        if there.sum() > most:
            most, last = int(there.sum()), len(walked)
        if time.perf_counter() > until:
            message = "the time limit was reached before every agent could reach its goal"
            break
        if len(walked) - last > PATIENCE + least.max(initial=0):
            message = "some agents are stuck"
            break
        own.step(goals)
        walked.append(own.positions)
        turned.append(own.headings)
    n, steps = len(instance.start), len(walked) - 1
    positions = np.full((steps + 1, n, 2), -1, np.int32)
    headings = np.zeros((steps + 1, n), np.int32)
    positions[:, some], headings[:, some] = walked, turned
    ends = np.full((n, 2), -1, np.int32)
    ends[some] = goals
    away = (positions != ends).any(axis=2)
    cost = np.where(away.any(axis=0), steps + 1 - np.argmax(away[::-1], axis=0), 0)
    status, has_goal = instance.status.copy(), instance.goal >= 0
    status[has_goal & (cost > steps)] = FleetStatus.NOT_REACHED
    least_of = np.zeros(n, np.int64)
    least_of[some] = np.where(wanted, least, 0)
    if message == "solved" and (status != FleetStatus.SOLVED).any():
        message = "solved, but for agents that have no goal"
    positions[:, np.isin(instance.status, NOT_THERE)] = -1
    costs = np.where(has_goal & (status == FleetStatus.SOLVED), cost, 0)
    taken = time.perf_counter() - began
    return FleetPlan(status, positions, headings, ends, costs, least_of, taken, taken, message)
