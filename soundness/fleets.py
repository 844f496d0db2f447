"""Fleets on halls, lanes, rooms and trees, of one size or of unlike sizes, with zones, breakdowns and changes of the
map: nobody meets anybody, or a wall, or stands where nobody may stop; of steps and of whole plans."""

import numpy as np
from fleet_oracle import MOVES, faults, places_for, stands

from benchmarks.fleet_lanes import comb, ring, rooms_with_doors, star, tree, two_rooms
from gpu_planners.errors import GridMapError
from gpu_planners.fleet import FleetPlanner, FleetStatus, Settings, Zones
from gpu_planners.grid import GridMap
from gpu_planners.verify import conflicts

from .harness import Attack, numbers

STEPS = 120
LIMIT_S = 0.5  # of a whole plan


def case(run, rng, number, tally):
    free = _map(rng)
    many = rng.random() < 0.3
    sizes, apart = ((1, 2, 3), int(rng.integers(2))) if many else ((), 0)
    ticks = 1 if rng.random() < 0.7 else int(rng.integers(2, 4))
    motion, following = str(rng.choice(["four", "turning"])), bool(rng.random() < 0.5)
    zones = _zones(rng, free) if not many and ticks == 1 and rng.random() < 0.4 else None
    settings = Settings(
        following=following,
        safety_distance=apart,
        ticks_per_move=ticks,
        ticks_per_turn=ticks,
        horizon=min(5, 2 * ticks + 1) if ticks > 1 else 0,
    )
    for device in run.devices:
        where = f"{motion}, following {following}, ticks {ticks}, sizes {sizes}, apart {apart}, on {device}"
        where += f", zones {zones is not None}, map {''.join('.#'[not x] for x in free.ravel())} of {free.shape}"
        try:
            fleet = FleetPlanner(GridMap(free.astype(np.uint8)), motion, device, settings, sizes=sizes, zones=zones)
        except GridMapError as error:  # a zone that cuts the map in two
            tally.error(error)
            return
        starts, own = _crowd(np.random.default_rng(number), fleet, free, zones)
        if len(starts) < 2:
            return
        seed = np.random.default_rng(number)
        _steps(seed, tally, fleet, starts, own, where)
        if zones is None:
            _plan(seed, tally, fleet, starts, own, where)


def _map(rng):
    kind = rng.integers(7)
    if kind == 0:
        return rng.random(rng.integers(6, 24, 2)) > rng.uniform(0, 0.3)
    if kind == 1:
        return rooms_with_doors(*rng.integers(1, 4, 2).tolist(), int(rng.integers(3, 6)), rng)
    made = (
        lambda: two_rooms(int(rng.integers(1, 12)), int(rng.integers(3, 8))),
        lambda: comb(int(rng.integers(3, 10)), int(rng.integers(2, 9)), int(rng.integers(1, 3))),
        lambda: ring(*rng.integers(4, 12, 2).tolist()),
        lambda: tree(2 * int(rng.integers(3, 9)) + 1, rng),
        lambda: star(int(rng.integers(2, 5)), 5, int(rng.integers(2, 6))),
    )
    return made[kind - 2]()


def _zones(rng, free):
    closed = np.zeros(free.shape, bool)
    for _ in range(rng.integers(1, 4)):
        row, col = (int(rng.integers(n)) for n in free.shape)
        closed[row : row + rng.integers(1, 4), col : col + rng.integers(1, 4)] = True
    return Zones(closed)


def _crowd(rng, fleet, free, zones):
    """Starts (N, 2) of agents that do not meet, and the side of each (N,)."""
    own, starts, costs = [], [], free.astype(np.uint8)
    sizes, share = fleet.sizes, rng.uniform(0.05, 0.7)
    allowed = {size: {tuple(each) for each in places_for(costs, size).tolist()} for size in sizes}
    for tile in rng.permutation(np.argwhere(free)).tolist():
        size = int(rng.choice(sizes))
        closed = zones is not None and zones.no_stopping is not None and zones.no_stopping[tuple(tile)]
        if closed or tuple(tile) not in allowed[size]:
            continue
        wide = fleet.settings.safety_distance
        if not faults([np.array([*starts, tile])], [*own, size], costs, wide, True):
            starts.append(tile)
            own.append(size)
        if len(starts) > share * free.sum() / np.mean(sizes) ** 2 or len(starts) == 40:
            break
    return np.array(starts).reshape(-1, 2), np.array(own, int)


def _goals(rng, fleet, own):
    costs, zones = fleet.grid.costs, fleet.zones
    open = costs if zones is None or zones.no_stopping is None else costs * ~zones.no_stopping
    places = {size: places_for(open, size) for size in set(own.tolist())}
    return lambda who: np.array([rng.choice(places[size]) if len(places[size]) else [-1, -1] for size in own[who]])


def _steps(rng, tally, fleet, starts, own, where):
    closed = None if fleet.zones is None else fleet.zones.no_stopping
    fleet.start(starts, sizes=own if len(fleet.sizes) > 1 else None)
    drawn, who = _goals(rng, fleet, own), np.arange(len(own))
    goals, walked, costs, broken = drawn(who), [fleet.positions], fleet.grid.costs.copy(), who[:0]
    maps = [costs.copy()]
    for step in range(STEPS):
        if rng.random() < 0.03 and closed is None:  # some break down
            broken = rng.choice(len(own), rng.integers(0, 3), replace=False)
            fleet.observe(np.full((len(own), 2), -1), still=broken)
        if rng.random() < 0.03 and closed is None and len(fleet.sizes) == 1:  # a tile that nobody is on
            taken = {tuple(each) for each in [*walked[-1].tolist(), *(walked[-2] if step else walked[-1]).tolist()]}
            tile = tuple(int(rng.integers(n)) for n in fleet.grid.shape)
            if tile not in taken and fleet.settings.ticks_per_move == 1:
                costs[tile] = costs[tile] == 0
                fleet.update([tile[0]], [tile[1]], [costs[tile]])
                drawn = _goals(rng, fleet, own)
        before, faces = fleet.positions, fleet.headings
        actions = fleet.step(goals, 0.002 if rng.random() < 0.3 else 0.0)
        walked.append(fleet.positions)
        there, turned = _done(actions, before, faces, fleet.motion.name)
        same = np.array_equal(there, walked[-1]) and np.array_equal(turned, fleet.headings)
        tally.check(same, f"actions {numbers(actions)} do not lead to where agents are said to be: {where}")
        maps.append(costs.copy())
        moved = broken[(walked[-1][broken] != before[broken]).any(axis=1)]
        tally.check(not len(moved), f"agents {moved.tolist()} are broken down and move in step {step}: {where}")
        if closed is not None:
            stood = stands(before, walked[-1], faces, fleet.headings, closed)
            tally.check(not stood, f"agents {stood} stand in a zone after step {step}: {where}")
        there = (walked[-1] == goals).all(axis=1)
        if there.any():
            goals[there] = drawn(who[there])
    _judge(tally, fleet, np.array(walked), own, maps, where)


def _done(actions, places, faces, motion):
    """-> where agents are, (N, 2) and (N,) headings, that do actions, as the text of `step` numbers them."""
    moves = np.array([*MOVES, (0, 0)])
    if motion == "four":
        return places + moves[actions], faces
    ahead = np.where((actions == 0)[:, None], moves[faces], 0)
    return places + ahead, (faces + np.array([0, 1, 3, 0])[actions]) % 4


def _judge(tally, fleet, walked, own, maps, where):
    """maps: costs after each step"""
    settings = fleet.settings
    if len(fleet.sizes) > 1:
        found = faults(walked, own, maps[0], settings.safety_distance, settings.following)
    else:
        found = conflicts(walked, None, ((0, 0),), settings.following, ticks=settings.ticks_per_move)
        found += [k for k, (now, costs) in enumerate(zip(walked, maps)) if (costs[tuple(now.T)] == 0).any()]
    tally.check(not found, f"{found[:3]}, of {len(found)}, starts {numbers(walked[0])}: {where}")


def _plan(rng, tally, fleet, starts, own, where):
    """A whole plan, on the map as it is now."""
    costs = fleet.grid.costs
    inside = faults([starts], own, costs, fleet.settings.safety_distance, True)
    if inside or fleet.settings.ticks_per_move > 1:
        return
    goals = starts.copy()
    for size in np.unique(own):  # among those of a size
        goals[own == size] = rng.permutation(starts[own == size])
    sizes = own if len(fleet.sizes) > 1 else None
    plan = fleet.solve(starts, goals, time_limit_s=LIMIT_S, seed=int(rng.integers(1000)), sizes=sizes)
    _judge(tally, fleet, plan.positions, own, [costs] * len(plan.positions), f"whole plan, {where}")
    solved = plan.status == FleetStatus.SOLVED
    there = (plan.positions[-1] == goals).all(axis=1)
    tally.check(there[solved].all(), f"agents {np.flatnonzero(solved & ~there)} are not at their goals: {where}")


ATTACK = Attack("fleets", "fleets on lanes, in rooms, of unlike sizes, with zones", case)
