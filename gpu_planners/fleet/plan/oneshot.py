"""One-shot multi-agent path finding: every agent goes from its start to its goal and stays there.

LaCAM (lacam.py) finds a plan in which agents move one tile in a step or wait, and prefer one-way lanes; later attempts
first spread the paths over the map (spread.py). Then retime.py cuts loops in which an agent meets nobody, adds turns
and, where following is not allowed, the step between two agents on a tile, and makes every agent as early as the order
of agents on each tile allows. The rest of the time makes the plan better (refine.py). Unconnected parts of the map are
solved by themselves.
"""

import math
import time
from dataclasses import replace

import numpy as np

from ...arguments import array_of, number, whole
from ...device import told_if_slow
from ...errors import GridMapError, SettingsError, shown
from ...grid.maps.grid_map import GridMap
from ...parallel.team import NEVER, clock_ns
from ..arguments import MOST_SIZE, checked_headings, checked_places, checked_sizes, checked_speeds
from ..clock import deadline_after, fits, late, part_of
from ..fields.lanes import footprint_free
from ..fields.next_hops import ground_of
from ..guidance import Guidance
from . import joint
from .feasibility import unsolvable
from .fleet_plan import NO_PLAN, OUT_OF_TIME, STUCK, FleetPlan
from .gathering import assigned, exchanged, into_sink
from .instance import Instance, Model, arrivals
from .joint import JointSearch
from .lacam import first_plan, new_tree, rehash
from .refine import Moving
from .spread import spread_out
from .unlike import unlike

STEPS_SHARE = 0.5  # of the time that is left when the fleet's own steps are tried
SPREAD_SHARE = 0.3  # of the time that is left when paths are spread out
AGAIN_SHARE = 0.5  # of the time that is left when another search begins
LANES_SHARE = 0.3  # of the time that is left when lanes are planned
WALKED_NS = 100  # to tell of a walk, for each agent and step; a guess
CROWDED = 1.0  # steps lost for each step that all would take alone, from which on the fleet's own steps are tried too
WALK_PATIENCE = 300  # a walk ends after so many steps, and the longest path, without another agent at its goal
JOINT_SHARE = 0.5  # of the time that is left when few agents begin to plan together
TRIES = 200_000  # moves of one of these between two checks of the clock
FIRST_TRIES = 10_000_000  # moves of one of these without a deadline
FIRST_AGAIN = 1000  # added to the seed of first plans with which it begins again
MOST_ATTEMPTS = 6  # searches beside the first one
SMALL = 1 << 20  # agents times steps of a plan for which one more search is tried; smaller plans get more


def solve_for(fleet, starts, goals, time_limit_s, seed, headings, assign, speeds, sizes) -> FleetPlan:
    """Plan for a FleetPlanner; arguments and errors as of its `solve`."""
    most_s = number("time_limit_s", time_limit_s, 0, math.inf, " seconds")
    whole("seed", seed, 0, 2**63 - 1)
    if not isinstance(assign, bool | np.bool_):
        raise SettingsError(f"assign is {shown(assign)}; allowed: True or False")
    s, model = fleet.settings, Model(fleet.motion.headings > 1, fleet.settings.following)
    given = array_of("goals", goals, GridMapError)
    one_sink = given.ndim == 1 and given.size > 0 and not assign
    places, ends = checked_places("starts", starts), checked_places("goals", [goals] if one_sink else goals)
    faces = checked_headings(headings, len(places), fleet.motion.headings)
    ticks = checked_speeds(speeds, len(places), fleet.motion, s)
    sides = None if sizes is None else checked_sizes(sizes, len(places), tuple(range(1, MOST_SIZE + 1)))
    if sides is not None and (not len(sides) or (sides == sides[0]).all()):  # a fleet of one size
        if len(sides) and sides[0] != s.size:
            settings = replace(s, size=int(sides[0]))
            fleet = type(fleet)(fleet.grid, fleet.motion.name, fleet.device, settings, fleet.guidance)
            s = settings
        sides = None
    near = (s.size if sides is None else int(sides.max())) - 1 + s.safety_distance
    plain = near == 0 and ticks.max(initial=1) == 1
    if not plain and (one_sink or assign):
        raise SettingsError(
            "a sink for all agents, or tiles for any of them, want agents of size 1 without safety distance, whose "
            f"actions take 1 tick; this fleet's size is {s.size}, safety_distance {s.safety_distance}, and actions "
            f"take up to {ticks.max(initial=1)} ticks"
        )
    if not (one_sink or assign) and len(places) != len(ends):
        raise GridMapError(f"goals has {len(ends)} rows; allowed: {len(places)}, one for each start")
    _warm(plain, fleet, SINK if one_sink else ANY if assign else OWN)
    tiles = fleet.ground() if sides is None else ground_of(footprint_free(fleet.grid.costs > 0, int(sides.min())))
    began, deadline = time.perf_counter(), deadline_after(most_s)
    if one_sink:
        instance = Instance(tiles, places, np.repeat(ends, len(places), axis=0), shared=True)
        return into_sink(instance, faces, model, began, deadline)
    if sides is not None:
        instance = unlike(tiles, places, ends, sides, fleet.grid, s.safety_distance)
    else:
        instance = assigned(tiles, places, ends, deadline) if assign else Instance(tiles, places, ends, near)
    if plain:
        return _solve_plain(fleet, instance, faces, model, began, deadline, seed, assign)
    for agents in instance.parts():
        instance.refuse(agents, True, deadline)  # slow agents may follow each other in part
    walked, turned, least, message = walk(fleet, instance, faces, ticks, deadline, sides)
    cost = arrivals((walked != instance.places(instance.goal)).any(axis=2))
    return instance.plan_of(walked, turned, cost, least, message, began)


def _solve_plain(fleet, instance, faces, model, began, deadline, seed, assign):
    """Plan for agents of size 1 whose actions take one tick. assign: may they exchange goals?"""
    memory, goals = fleet.settings.memory_limit_bytes, int((instance.goal >= 0).sum())
    needed = goals * len(instance.ground.neighbour)
    if needed > memory:
        raise SettingsError(f"the fields of {goals} goals take {needed} bytes; allowed by memory_limit_bytes: {memory}")
    instance.plan_next_hops(deadline)
    if assign:
        tiles, message = exchanged(instance, model, memory, deadline)
    else:
        stop, ways_ns = part_of(deadline, LANES_SHARE), 1e9 * (time.perf_counter() - began)
        if fleet.settings.guidance != "plain" and fits(stop, ways_ns):  # lanes take about as long
            instance.prefer(Guidance.lanes(fleet.grid).moves, stop)
        tiles, message = first_plan(instance, model, deadline, seed, memory)
    moving = Moving(instance, tiles, message, faces, model, deadline=deadline)
    first_s = time.perf_counter() - began
    if instance.hopeless.any():
        return moving.plan(began, first_s)
    until = fleet.settings.improve_until
    if until != "first":
        if not assign:
            by = moving.told_by(deadline)
            moving = _other_plans(moving, model, by, seed, memory)
            crowded = moving.loss() > CROWDED * moving.traffic.least.sum(dtype=np.int64)
            if model.turning and crowded and not late(by):
                moving = _stepped(moving, fleet, faces, by)
        moving.improve(deadline, seed, memory)
        if not assign:
            most = NEVER if until == "limit" and deadline != NEVER else FIRST_TRIES
            moving = _together(moving, faces, model, deadline, memory, most)
            if until == "limit":
                moving = _begin_again(moving, model, deadline, seed, memory)
    return moving.plan(began, first_s)


def _together(moving, faces, model, deadline, memory_limit_bytes, most):
    """Let the agents of each small part of the map plan together, by at most so many tries. -> the better plan"""
    instance = moving.instance
    for agents in instance.parts() if moving.message == "solved" else ():
        own = agents[instance.goal[agents] >= 0]
        cost = int(moving.traffic.cost[own].sum())
        if cost == moving.traffic.least[own].sum():
            moving.proven[agents] = True
            continue
        if late(moving.told_by(deadline)) or not JointSearch.suits(instance, agents, model):
            continue
        stop, tries, ended = part_of(moving.told_by(deadline), JOINT_SHARE), 0, joint.MORE
        search = JointSearch(instance, agents, faces, model, cost)
        while ended == joint.MORE and tries < most and not late(stop):
            ended = search.go_on(TRIES, memory_limit_bytes)
            tries += TRIES
        if ended == joint.FOUND:
            moving, cost = moving.or_better(moving.with_tiles(agents, search.tiles())), search.cost
            moving.proven[agents] = moving.traffic.cost[own].sum() == cost
        elif ended == joint.NONE:
            moving.proven[agents] = search.proves
    return moving


def _begin_again(moving, model, deadline, seed, memory_limit_bytes):
    """Begin again with other first plans until the deadline, or the proof that nothing is better. -> the best plan"""
    instance, attempt = moving.instance, FIRST_AGAIN
    while not moving.proven[instance.goal >= 0].all():
        by = moving.told_by(deadline)
        if deadline == NEVER or late(by):
            break
        tiles, ended = first_plan(instance, model, part_of(by, AGAIN_SHARE), seed + attempt, memory_limit_bytes)
        if ended == "solved":
            other = moving.another(tiles)
            other.improve(deadline, seed + attempt, memory_limit_bytes)
            other.proven = moving.proven
            moving = moving.or_other(other)
        attempt += 1
    return moving


def walk(fleet, instance, faces, speeds, deadline, sides=None):
    """Let the fleet step until all agents are at their goals, or no more of them get there, or the time is over.

    instance: Instance; faces: (N,) int32; speeds: (N, 2) int32; sides: (N,) sizes, None: as the settings say
    -> (steps + 1, N, 2) int32 [row, col], -1 where an agent is not on the map; (steps + 1, N) int32 headings; (N,)
    int64 ticks that each agent takes at least; what happened
    """
    settings = replace(fleet.settings, guidance="plain", neighbourhood_search=False)
    steps = Guidance(np.ones((*fleet.grid.shape, 4), np.int64))
    sizes = () if sides is None else np.unique(sides).tolist()
    if sides is not None:
        settings = replace(settings, size=sizes[0])
    own = type(fleet)(fleet.grid, fleet.motion.name, "cpu", settings, steps, sizes)
    own.hold_goals()
    some = np.flatnonzero(instance.start >= 0)
    faced = faces[some] if fleet.motion.headings > 1 else None
    own.start(instance.place[instance.start[some]], faced, speeds[some], None if sides is None else sides[some])
    wanted = instance.goal[some] >= 0
    goals = np.where(wanted[:, None], instance.place[instance.goal[some]], -1)
    walked, turned = [own.positions], [own.headings]
    ticks = speeds[some, 0]
    quickest = speeds[some].min(axis=1) if fleet.motion.headings > 1 else ticks
    if instance.hopeless.any():
        deadline = min(deadline, clock_ns())
    in_time = own.prepare(goals, max(0.0, 1e-9 * (deadline - clock_ns())), least=0).all()
    actions = np.where(wanted, own.steps_to_go(goals) if in_time else np.abs(goals - own.positions).sum(axis=1), 0)
    least = np.maximum(actions * quickest - (ticks - 1), actions)  # an agent counts where it moves to
    most, last, message = -1, 0, "solved"
    while not (there := (walked[-1] == goals).all(axis=1))[wanted].all():
        if there.sum() > most:
            most, last = int(there.sum()), len(walked)
        if not in_time or not fits(deadline, WALKED_NS * len(walked) * len(some)):
            message = NO_PLAN if instance.hopeless.any() else OUT_OF_TIME
            break
        if len(walked) - last > WALK_PATIENCE + least.max(initial=0):
            message = STUCK
            break
        own.step(goals)
        walked.append(own.positions)
        turned.append(own.headings)
    shape = len(walked), len(instance.start)
    positions, headings = np.full((*shape, 2), -1, np.int32), np.zeros(shape, np.int32)
    bounds = np.zeros(shape[1], np.int64)
    positions[:, some], headings[:, some], bounds[some] = walked, turned, least
    return positions, headings, bounds, message


def _stepped(moving, fleet, faces, deadline):
    """Let the fleet's own steps, which look ahead at the cost of turns, plan too. -> the better plan"""
    ticks = np.ones((len(faces), 2), np.int32)
    walked, _, _, ended = walk(fleet, moving.instance, faces, ticks, part_of(deadline, STEPS_SHARE))
    if ended != "solved":
        return moving
    tiles = np.where(walked[..., 0] < 0, -1, moving.instance.number[walked[..., 0], walked[..., 1]]).astype(np.int32)
    return moving.or_better(tiles)


def _other_plans(moving, model, deadline, seed, memory_limit_bytes):
    """Search again with paths spread over the map, more often the smaller the plan. -> the best plan"""
    instance = moving.instance
    size = max(1, moving.traffic.tile.size)
    for attempt in range(1, 2 + min(MOST_ATTEMPTS, SMALL // size)):
        if late(deadline) or moving.loss() == 0:
            break
        if attempt == 1:
            spread_out(instance, part_of(deadline, SPREAD_SHARE), seed, memory_limit_bytes)
        tiles, ended = first_plan(instance, model, part_of(deadline, AGAIN_SHARE), seed + attempt, memory_limit_bytes)
        if ended == "solved":
            moving = moving.or_better(tiles)
        elif moving.message != "solved" and attempt > 1:
            break
    return moving


_warmed: set = set()
OWN, ANY, SINK = range(3)  # whose goals: one's own, any of some, or one for all


def _warm(plain, fleet, whose):
    """Compile or load what a plan needs, before the clock runs. whose: OWN, ANY or SINK"""
    kind = fleet.motion.name, plain or fleet.settings, whose
    if kind in _warmed:
        return
    _warmed.add(kind)
    with told_if_slow("a fleet's search for a whole plan"):
        unsolvable(*np.array([[0, 2], [2, 0]], np.int32), ground_of(np.ones((2, 3), bool))[0], True, NEVER)
        if not plain or fleet.motion.headings > 1:
            side = 4 * fleet.settings.size
            tiny = type(fleet)(GridMap(np.ones((side, side), np.uint8)), fleet.motion.name, "cpu", fleet.settings)
            instance = Instance(tiny.ground(), *np.full((2, 1, 2), side // 2, float))
            instance.goal += 1
            walk(tiny, instance, np.zeros(1, np.int32), np.ones((1, 2), np.int32), NEVER)
        if plain:
            tiny, starts = type(fleet)(GridMap(np.ones((2, 3), np.uint8)), "four", "cpu"), [[0, 0], [0, 2]]
            tiny.solve(starts, {OWN: starts[::-1], ANY: starts, SINK: starts[0]}[whose], math.inf, assign=whose == ANY)
            if whose == OWN:
                rehash(new_tree(*np.zeros((2, 2), np.int32)), 0)
