"""One-shot multi-agent path finding: every agent goes from its start to its goal and stays there.

First ways are spread over the map (spread.py), and LaCAM (lacam.py) finds where all agents go, moving one tile in a
step or waiting (search.py). Then loops in which an agent meets nobody are cut, and every agent gets as early as the
order in which agents pass tiles allows; turns, and tiles that stay free for a step before the next agent comes, are put
in here (retime.py). What is left of the time makes the plan better (improving.py, refine.py). Parts of the map that are
not connected are solved by themselves.
"""

import time

import numpy as np

from ..device import told_if_slow
from ..errors import GridMapError, SettingsError
from ..grid.checks import array_of, number, whole
from ..grid.maps.grid_map import GridMap
from ..parallel.team import NEVER
from . import lacam
from .arguments import checked_flag, checked_headings, checked_places
from .clock import deadline_after, late, part_of
from .gathering import assigned, exchanged, into_sink
from .holding import step_and_stay, walk
from .improving import Moving, timed
from .instance import Instance, Model
from .plan import FleetPlan
from .search import first_plan, new_tree, spread_out
from .speeds import checked_speeds
from .ways import ground_of

STEPS_SHARE, SPREAD_SHARE, AGAIN_SHARE = 0.5, 0.3, 0.5  # of the time that is left when another search begins
FIRST_SHARE = 0.9  # and for the first one; the rest is for making a plan of what it found
CROWDED = 1.0  # steps lost for each that all would take alone: the fleet's own steps are tried too
MOST_ATTEMPTS, SMALL = 6, 1 << 20  # searches beyond the second one; agents times steps that one more is worth


def solve_for(fleet, starts, goals, time_limit_s, seed, headings, assign, speeds) -> FleetPlan:
    """Plan for a FleetPlanner; arguments and errors as of its `solve`."""
    most_s = number("time_limit_s", time_limit_s, 0, float("inf"), " seconds", SettingsError)
    whole("seed", seed, 0, 2**63 - 1)
    assign = checked_flag("assign", assign)
    s, model = fleet.settings, Model(fleet.motion.headings > 1, fleet.settings.following)
    given = array_of(goals, "goals")
    one_sink = given.ndim == 1 and given.size > 0 and not assign
    places, ends = checked_places(starts, "starts"), checked_places([goals] if one_sink else goals, "goals")
    faces = checked_headings(headings, len(places), fleet.motion.headings)
    ticks = checked_speeds(speeds, len(places), fleet.motion, s)
    near = s.size - 1 + s.safety_distance
    plain = near == 0 and ticks.max(initial=1) == 1
    if not plain and (one_sink or assign):
        raise SettingsError(
            "a sink for all agents, or tiles for any of them, want agents of size 1 without safety distance, whose "
            f"actions take 1 tick; this fleet's size is {s.size}, safety_distance {s.safety_distance}, and actions "
            f"take up to {ticks.max(initial=1)} ticks"
        )
    if not (one_sink or assign) and len(places) != len(ends):
        raise GridMapError(f"goals has {len(ends)} rows; allowed: {len(places)}, one for each start")
    _warm(plain, fleet)
    tiles = fleet.ground()
    began, deadline = time.perf_counter(), deadline_after(most_s)
    if one_sink:
        instance = Instance(tiles, places, np.repeat(ends, len(places), axis=0), shared=True)
        return into_sink(instance, faces, model, began, deadline)
    instance = assigned(tiles, places, ends, deadline) if assign else Instance(tiles, places, ends, near)
    if not plain:
        return step_and_stay(fleet, instance, faces, ticks, deadline, began)
    return _solve_plain(fleet, instance, faces, model, began, deadline, seed, assign)


def _solve_plain(fleet, instance, faces, model, began, deadline, seed, assign):
    """Plan for agents of one tile and one tick. assign: may they exchange goals?"""
    memory, goals = fleet.settings.memory_limit_bytes, int((instance.goal >= 0).sum())
    needed = goals * len(instance.ground.ways)
    if needed > memory:
        raise SettingsError(f"the fields of {goals} goals take {needed} bytes; allowed by memory_limit_bytes: {memory}")
    instance.plan_ways(deadline)
    if assign:
        tiles, message = exchanged(instance, memory, part_of(deadline, FIRST_SHARE))
    else:
        tiles, message = first_plan(instance, model, part_of(deadline, FIRST_SHARE), seed, memory)
    tiles, facing = timed(instance, tiles, faces, model)
    moving = Moving(instance, tiles, facing, model, deadline=deadline)
    first_s = time.perf_counter() - began
    if not assign:
        moving, message = _other_plans(moving, message, faces, model, deadline, seed, memory)
        if model.turning and moving.loss() > CROWDED * moving.traffic.least.sum(dtype=np.int64):
            moving, message = _stepped(moving, message, fleet, faces, model, deadline)
    moving.improve(deadline, seed, memory)
    return moving.plan(began, first_s, message)


def _stepped(moving, message, fleet, faces, model, deadline):
    """Let the fleet's own steps plan too, which look ahead what turns cost. -> the best plan"""
    instance = moving.instance
    walked, _, _, ended = walk(fleet, instance, faces, _ones(faces), part_of(deadline, STEPS_SHARE))
    if ended != "solved":
        return moving, message
    tiles = np.where(walked[..., 0] < 0, -1, instance.number[walked[..., 0], walked[..., 1]]).astype(np.int32)
    tiles, facing = timed(instance, tiles, faces, model)
    other = Moving(instance, tiles, facing, model, moving.traffic.least)
    return (other, ended) if message != "solved" or other.loss() < moving.loss() else (moving, message)


def _ones(faces):
    """Ticks of agents (N,) whose actions take one."""
    return np.ones((len(faces), 2), np.int32)


def _other_plans(moving, message, faces, model, deadline, seed, memory_limit_bytes):
    """Search again, with ways that are spread over the map, and more often the smaller the plan is. -> the best plan"""
    instance = moving.instance
    size = max(1, moving.traffic.tile.size)
    for attempt in range(1, 2 + min(MOST_ATTEMPTS, SMALL // size)):
        if late(deadline) or moving.loss() == 0:
            break
        if attempt == 1:
            spread_out(instance, part_of(deadline, SPREAD_SHARE), seed, memory_limit_bytes)
        tiles, ended = first_plan(instance, model, part_of(deadline, AGAIN_SHARE), seed + attempt, memory_limit_bytes)
        if ended == "solved":
            tiles, facing = timed(instance, tiles, faces, model)
            other = Moving(instance, tiles, facing, model, moving.traffic.least)
            if message != "solved" or other.loss() < moving.loss():
                moving, message = other, ended
        elif message != "solved" and attempt > 1:
            break
    return moving, message


_warmed: set = set()


def _warm(plain, fleet):
    """Compile or load what a plan needs, before the clock runs."""
    kind = (fleet.motion.name, plain or fleet.settings)
    if kind in _warmed:
        return
    _warmed.add(kind)
    with told_if_slow("a fleet's search for a whole plan"):
        if not plain or fleet.motion.headings > 1:
            _step_once(fleet)
        if plain:
            _plan_once()


def _step_once(fleet):
    """Let one agent walk to the next tile by the rules of a fleet."""
    side = 4 * fleet.settings.size
    grid = GridMap(np.ones((side, side), np.uint8))
    tiny, middle = type(fleet)(grid, fleet.motion.name, "cpu", fleet.settings), [[side // 2, side // 2]]
    instance = Instance(tiny.ground(), *np.array([middle, middle], float))
    instance.goal += 1
    walk(tiny, instance, np.zeros(1, np.int32), _ones([0]), NEVER)


def _plan_once():
    """Plan for two agents in every way that there is."""
    tiles_of = ground_of(np.ones((2, 3), bool))
    model, one, other = Model(False, True), np.array([[0.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 2.0], [0.0, 0.0]])
    instance = Instance(tiles_of, one, other)
    instance.plan_ways()
    spread_out(instance, NEVER, 0, 1 << 30)
    tiles, _ = first_plan(instance, model, NEVER, 0, 1 << 30)
    tiles, facing = timed(instance, tiles, np.zeros(2, np.int32), model)
    moving = Moving(instance, tiles, facing, model)
    moving.improve(NEVER, 0, 1 << 30)
    into_sink(Instance(tiles_of, one, np.zeros((2, 2)), shared=True), np.zeros(2, np.int32), model, 0.0, NEVER)
    instance = assigned(tiles_of, one, other, NEVER)
    instance.plan_ways()
    exchanged(instance, 1 << 30, NEVER)
    lacam.rehash(new_tree(2), 0)
