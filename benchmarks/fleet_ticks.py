"""What whole ticks cost a fleet whose robots differ: a plan in ticks beside the same plan as its robots drive it."""

import math
from functools import partial

import numpy as np

from gpu_planners.fleet import FleetPlanner, Settings
from gpu_planners.fleet.execution.dynamics import Dynamics, ends_of, profiles_of
from gpu_planners.grid.maps.generated import warehouse_map

from . import fleets_late
from .harness import Benchmark, Row, progress, told

SIDE = 1.0  # metres of a tile
MOST_TICKS = 5  # that an action of the planner may take
SPEEDS, ACCELERATIONS, TURNS = (1.0, 0.75, 0.6, 0.4), (2.0, 0.8, 0.4, 0.25), (2.0, 1.2, 0.8, 0.5)  # m/s, m/s2, rad/s
QUICK, TURN = math.inf, 1000.0  # what does not count
CASES = (
    ("alike, 1 m/s", SPEEDS[:1], (QUICK,), (TURN,)),
    ("speeds 0.4 to 1 m/s", SPEEDS, (QUICK,), (TURN,)),
    ("accelerations 0.25 to 2 m/s2", SPEEDS[:1], ACCELERATIONS, (TURN,)),
    ("turns 0.5 to 2 rad/s", SPEEDS[:1], (QUICK,), TURNS),
    ("all of these", SPEEDS, ACCELERATIONS, TURNS),
)


def robots_of(count, speeds, accelerations, turns, seed=0):
    """Dynamics of so many robots, whose speeds, accelerations and turning speeds are drawn from some."""
    rng = np.random.default_rng(seed)
    drawn = zip(*(rng.choice(some, count).tolist() for some in (speeds, accelerations, turns)))
    return [Dynamics(speed, rise, rise, turn, QUICK) for speed, rise, turn in drawn]


def ticks_of(robots, tick_s):
    """(N, 2) whole ticks of a move at speed, and of a quarter turn, of each robot: the next slower ones"""
    seconds = np.array([(SIDE / one.speed, math.pi / 2 / one.turn_speed) for one in robots])
    return np.clip(np.ceil(seconds / tick_s - 1e-9), 1, MOST_TICKS).astype(np.int32)


def planned(grid, robots, tick_s, seconds, seed=0):
    """Agents do errands -> (ticks + 1, N, 2) tiles, (ticks + 1, N) headings, (N,) errands"""
    rng, tiles = np.random.default_rng(seed), np.argwhere(~grid.blocked)
    fleet = FleetPlanner(grid, "turning", "cpu", Settings(following=False, horizon=MOST_TICKS))
    fleet.start(rng.permutation(tiles)[: len(robots)], speeds=ticks_of(robots, tick_s))
    goals, errands = tiles[rng.integers(len(tiles), size=len(robots))], np.zeros(len(robots), int)
    places, faces = [fleet.positions], [fleet.headings]
    for _ in range(round(seconds / tick_s)):
        fleet.step(goals)
        there = (fleet.positions == goals).all(axis=1)
        errands += there
        goals[there] = tiles[rng.integers(len(tiles), size=there.sum())]
        places.append(fleet.positions)
        faces.append(fleet.headings)
    return np.array(places), np.array(faces), errands


def driven(places, faces, robots):
    """When each robot has done all of its plan, in seconds, (N,): it does each action as soon as its own one before is
    done and its tile is empty, in the plan's order, and brakes only where it turns; and the same if nobody were in the
    way.

    places: (T + 1, N, 2) tiles, faces: (T + 1, N) headings: an agent counts where it moves to
    """
    count, changed = places.shape[1], (np.diff(places, axis=0) != 0).any(axis=2) | (np.diff(faces, axis=0) != 0)
    lasts, alone = [], np.zeros(count)
    for a in range(count):
        states = np.r_[0, 1 + np.flatnonzero(changed[:, a])]
        given = places[states, a][None], faces[states, a][None], np.array([len(states) - 1])
        ends = ends_of(*given, profiles_of([robots[a]]), SIDE)[0]
        lasts.append(np.diff(ends, prepend=0.0))
        alone[a] = ends.max(initial=0.0)
    empty = {}  # by tile, when whoever was there last has left it
    done, number = np.zeros(count), np.zeros(count, int)
    for step in range(len(changed)):
        for a in np.flatnonzero(changed[step]).tolist():
            before, tile = tuple(places[step, a].tolist()), tuple(places[step + 1, a].tolist())
            begins = done[a] if tile == before else max(done[a], empty.get(tile, 0.0))
            done[a] = begins + lasts[a][number[a]]
            number[a] += 1
            if tile != before:
                empty[before] = done[a]
    return done, alone


class Mixed(fleets_late.Robots):
    """Robots that drive as they can: who drives on over tiles in a row does not brake between them."""

    def __init__(self, dynamics, *given):
        super().__init__(*given)
        self.dynamics = dynamics
        self.lasts, self.drove = np.ones(len(dynamics)), np.zeros(len(dynamics), bool)

    def seconds_of(self, a, now):
        one, moves = self.dynamics[a], (self.to[a] != self.at[a]).any()
        on = moves and self.drove[a] and now - self.moved[a] < fleets_late.TICK_S / 2
        start = 0.0 if on else one.speed / (2 * one.acceleration)
        self.drove[a] = moves
        self.lasts[a] = SIDE / one.speed + start if moves else math.pi / 2 / one.turn_speed
        return self.lasts[a]

    def places(self, now):
        share = np.where(np.isinf(self.ends), 0.0, np.clip(1 - (self.ends - now) / self.lasts, 0, 1))[:, None]
        return self.at + share * (self.to - self.at)


def mixed_robots(context):
    """Errands of robots that differ, by ticks, and as they drive."""
    rows, cols, count, seconds = 38, 70, 150, 180 if context.quick else 600
    grid, found = warehouse_map(rows, cols, apron=6), []
    for (name, *some), tick_s in progress([(fleet, tick) for fleet in CASES for tick in (1.0, 0.5)], "ticks"):
        robots = robots_of(count, *some)
        places, faces, errands = planned(grid, robots, tick_s, seconds)
        done, alone = driven(places, faces, robots)
        by_ticks, as_driven, free = (
            float((errands / np.maximum(each, 1e-9)).sum() * 60) for each in (np.full(count, seconds), done, alone)
        )
        given = {"kind": partial(Mixed, robots), "dynamics": {str(a): one for a, one in enumerate(robots)}}
        ran, _, running = fleets_late.run(grid, count, seconds, step_s=tick_s, **given)
        figures = {
            "ticks": by_ticks,
            "as_driven": as_driven,
            "of_driven": by_ticks / as_driven,
            "of_free": by_ticks / free,
            "running": running,
            "running_of_driven": running / as_driven,
            "overlaps": ran.overlaps,
        }
        found.append(told(Row(f"{name}, {count} robots", f"ticks of {tick_s:g} s", figures)))
    return found


BENCHMARKS = (
    Benchmark(
        "fleet_ticks",
        "What whole ticks cost",
        "A warehouse of 38x70 tiles of 1 m, robots that differ, drawn evenly. Ticks: errands a minute of a plan whose "
        "actions take whole ticks, 1 to 5, the next slower ones of a robot's move at speed and of its quarter turn. "
        "Driven: errands a minute of the same plan, each robot doing each action as soon as its own one before is done "
        "and its tile is empty, in the plan's order; it accelerates after turns alone, and never brakes before others, "
        "so no execution of the plan is quicker. Of free: beside the same actions if nobody were in the way. Running: "
        "errands a minute of a running fleet, the node's defaults, steps of a tick, which plans as if all actions took "
        "one step and follows what robots report; its robots accelerate, but brake at once.",
        {
            "ticks": "ratio",
            "as_driven": "ratio",
            "of_driven": "share",
            "of_free": "share",
            "running": "ratio",
            "running_of_driven": "share",
            "overlaps": "count",
        },
        mixed_robots,
    ),
)
