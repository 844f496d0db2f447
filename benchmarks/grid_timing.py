"""How the grid planners are timed: with nothing kept from the query before, by step."""

import time

import numpy as np

from .harness import median

STEPS = {
    "field": ("border_to_border",),
    "agents": ("start_to_border", "search", "reconstruction"),
    "copy": ("transfer",),
}


def split_seconds(planner, starts, goal, most=9, enough_s=1.0):
    """-> (R,) wall seconds of a plan from nothing; {step: median seconds}; the PathSet. Warmed up by one plan;
    repeated at least twice and at most `most` times, until enough_s have passed.

    The steps are those that the planner measures itself; of one that does not, the plan for a goal whose field is there
    already tells what the agents take.
    """
    taken, steps, paths = [], [], None
    for repeat in range(most + 1):
        if len(taken) >= 2 and sum(taken) > enough_s:
            break
        if hasattr(planner._engine, "forget"):  # rtaa_star keeps nothing
            planner._engine.forget()
        began = time.perf_counter()
        paths = planner.plan(starts, goal)
        whole = time.perf_counter() - began
        measured = getattr(planner._engine, "last_times", None)
        if measured:
            by_step = {step: sum(measured.get(name, 0.0) for name in names) for step, names in STEPS.items()}
        else:
            began = time.perf_counter()
            planner.plan(starts, goal)
            agents = time.perf_counter() - began
            by_step = {"field": whole - agents, "agents": agents}
        if repeat:
            taken.append(whole)
            steps.append(by_step)
    return np.array(taken), {step: median([each[step] for each in steps]) for step in steps[0]}, paths


def field_seconds(planner, goals):
    """(len(goals),) wall seconds until the field of each goal is there."""
    taken = []
    for goal in goals:
        planner._engine.forget()
        began = time.perf_counter()
        planner.prepare(goal)
        taken.append(time.perf_counter() - began)
    return np.array(taken)


def descent_seconds(planner, starts, goal, repeats=9):
    """(repeats,) wall seconds on a GPU in which all paths are made and stay there, the field and the agents being
    there already."""
    fields, taken = planner._engine._fields, []
    launch = fields._launch

    def timed(*arguments):
        fields._stream.wait()
        began = time.perf_counter()
        launch(*arguments)
        fields._stream.wait()
        taken.append(time.perf_counter() - began)

    fields._launch = timed
    for _ in range(repeats):
        planner.plan(starts, goal)
    fields._launch = launch
    return np.array(taken)
