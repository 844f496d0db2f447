"""Timed motions: stops at corners against rounded ones, and lines of the tool. Needs no shared data.

The motion is looked at as a controller plays it, in even time: limits by the spline of scipy through the points,
collisions by coal.
"""

import time
from dataclasses import replace

import numpy as np

from gpu_planners.arm import CollisionChecker, CollisionWorld, cartesian
from gpu_planners.arm.planners import rrt_connect
from gpu_planners.arm.trajectory import JERK_TIME_S, time_parameterize

from . import coal_peer, generated_problems, robots
from .harness import Benchmark, Row, median, percentile, progress
from .problems import add_obstacles

SETTINGS = rrt_connect.Settings(optimise_s=0.3, time_limit_s=5.0)
QUICKEST = replace(SETTINGS, objective="time")
ASKED = (
    ("first path", replace(SETTINGS, optimise_s=0.0)),
    ("shortest of 0.3 s", SETTINGS),
    ("quickest of 0.3 s", QUICKEST),
)
BEST_S = 30.0  # of searching for the quickest motion, with which the others are compared
BEST_QUICK_S = 0.5  # the same in a quick run
DEVIATION = 0.1  # rad or m
EACH = 4  # problems of each family
EACH_QUICK = 1  # the same in a quick run
PLACES = 4000  # on a motion, at which limits are checked
JUDGED = 1000  # on a motion, at which collisions are checked
REPEATS = 3
LINES, LINES_QUICK = 100, 10
WAY = 0.3  # of the robot's reach, length of the lines


def trajectories(context):
    """Rows of stops and rounded corners for every robot of robots.ROBOTS on each device."""
    return _of_every_robot(context, lambda name, device: _timed(name, device, EACH_QUICK if context.quick else EACH))


def _of_every_robot(context, rows_of):
    """Rows of every robot on each device. rows_of: called with a robot's name and a device for a list of Rows"""
    rows = []
    for device, missing in context.asked_for():
        for name in robots.ROBOTS:
            if why := missing or robots.unavailable(name):
                rows.append(Row(robots.ROBOTS[name].title, f"gpu_planners, {device}", note=why))
            else:
                rows += rows_of(name, device)
    return rows


def _timed(name, device, each):
    maker = generated_problems.maker_of(name)
    robot, world = maker.model, CollisionWorld()
    checker, kept = CollisionChecker(robot, world, device), {0.0: [], DEVIATION: []}
    problems = generated_problems.problems(name, each)
    for problem in progress(problems, f"trajectories, {name}"):
        world.clear()
        add_obstacles(world, problem.obstacles)
        result = rrt_connect.solve(problem.start, problem.goals, checker, SETTINGS, seed=0)
        if not result.solved:
            continue
        scene = None if coal_peer.unavailable() else maker.rig.coal_scene(problem.obstacles)
        for deviation, rows in kept.items():
            rows.append(_figures(result.path, deviation, checker, scene))
    case = f"{robots.ROBOTS[name].title}, {len(kept[0.0])} paths"
    return [
        _row(case, f"gpu_planners, {device}: {who}", kept[deviation], kept[0.0])
        for who, deviation in (("stops at corners", 0.0), ("rounded corners", DEVIATION))
    ]


def durations(context):
    """Rows of the first path, the shortest and the quickest for every robot on each device."""
    return _of_every_robot(context, lambda name, device: _durations(name, device, context.quick))


def _durations(name, device, quick):
    maker = generated_problems.maker_of(name)
    checker, rows, best = CollisionChecker(maker.model, CollisionWorld(), device), [], []
    long = replace(QUICKEST, optimise_s=BEST_QUICK_S if quick else BEST_S, time_limit_s=60.0)
    problems = generated_problems.problems(name, EACH_QUICK)
    for problem in progress(problems, f"durations, {name}"):
        checker.world.clear()
        add_obstacles(checker.world, problem.obstacles)
        scene = None if coal_peer.unavailable() else maker.rig.coal_scene(problem.obstacles)
        results = [
            rrt_connect.solve(problem.start, problem.goals, checker, each) for _, each in (*ASKED, ("best", long))
        ]
        if all(result.solved for result in results):
            *asked, longest = (_figures(result.path, DEVIATION, checker, scene) for result in results)
            rows.append(asked)
            best.append(min(figures["duration"] for figures in (*asked, longest)))
    case = f"{robots.ROBOTS[name].title}, {len(rows)} paths"
    return [
        _compared(case, f"gpu_planners, {device}: {who}", of_one, np.array(best))
        for (who, _), of_one in zip(ASKED, zip(*rows, strict=True), strict=True)
    ]


def _compared(case, subject, rows, best):
    seconds = np.array([row["duration"] for row in rows])
    figures = {
        "duration_s": seconds.mean(),
        "over_best": (seconds / best).mean(),
        "worst_over_best": (seconds / best).max(),
        "valid": f"{sum(row['free'] for row in rows)} of {len(rows)}",
    }
    return Row(case, subject, figures)


def _figures(path, deviation, checker, scene):
    """{duration, seconds of computing, worst ratios of velocity, acceleration and jerk, points, free} of one path."""
    robot, took = checker.robot, []
    for _ in range(REPEATS):
        began = time.perf_counter()
        trajectory = time_parameterize(
            path, robot.velocity, robot.acceleration, deviation=deviation, checker=checker if deviation else None
        )
        took.append(time.perf_counter() - began)
    times = np.linspace(0, trajectory.duration, PLACES)
    q, v, a = trajectory.at(times)
    jerk = np.abs(np.diff(a, axis=0)) / times[1] * JERK_TIME_S
    free = scene is None or not any(scene.in_collision(each) for each in q[:: PLACES // JUDGED])
    return {
        "duration": trajectory.duration,
        "seconds": min(took),
        "velocity": (np.abs(v) / robot.velocity).max(),
        "acceleration": (np.abs(a) / robot.acceleration).max(),
        "jerk": (jerk / robot.acceleration).max(),
        "points": len(trajectory.times),
        "free": free,
    }


def _row(case, subject, rows, stopping):
    if not rows:
        return Row(case, subject, note="no path")
    total = sum(row["duration"] for row in rows)
    seconds = [row["seconds"] for row in rows]
    figures = {
        "duration_s": total / len(rows),
        "over_stops": total / sum(row["duration"] for row in stopping),
        "worst_velocity": max(row["velocity"] for row in rows),
        "worst_acceleration": max(row["acceleration"] for row in rows),
        "worst_jerk": max(row["jerk"] for row in rows),
        "points": median([row["points"] for row in rows]),
        "valid": f"{sum(row['free'] for row in rows)} of {len(rows)}",
        "time_ms": 1e3 * median(seconds),
        "time_p95_ms": 1e3 * percentile(seconds, 95),
    }
    return Row(case, subject, figures, [1e3 * each for each in seconds])


def lines(context):
    """Rows of straight lines from random configurations, for every robot."""
    count = LINES_QUICK if context.quick else LINES
    return _of_every_robot(context, lambda name, device: [_lines(name, device, count)])


def _lines(name, device, count):
    maker, rng = generated_problems.maker_of(name), np.random.default_rng(0)
    robot, tip = maker.model, maker.rig.tips[0]
    checker = CollisionChecker(robot, CollisionWorld(), device)
    starts = maker.pool.q[rng.permutation(len(maker.pool.q))[: 8 * count]]
    starts = starts[checker.thickened(2e-3).configurations_valid(starts)][:count]
    cartesian.solve(starts[0], cartesian.shifted(robot, starts[0], [9.0, 0, 0], tip), checker, link=tip)
    took, ends, fractions = [], [], []
    for q in progress(starts, f"lines, {name}"):
        way = rng.normal(size=3)
        goal = cartesian.shifted(robot, q, WAY * maker.pool.room.reach * way / np.linalg.norm(way), tip)
        began = time.perf_counter()
        line = cartesian.solve(q, goal, checker, link=tip)
        took.append(time.perf_counter() - began)
        ends.append(line.end)
        fractions.append(line.fraction)
    figures = {
        "solved": f"{ends.count(cartesian.End.REACHED)} of {len(ends)}",
        "fraction": float(np.mean(fractions)),
        "ended": ", ".join(
            f"{end.value} {ends.count(end)}" for end in cartesian.End if end in ends and end.value != "reached"
        ),
        "time_ms": 1e3 * median(took),
        "time_p95_ms": 1e3 * percentile(took, 95),
    }
    return Row(robots.ROBOTS[name].title, f"gpu_planners, {device}", figures, [1e3 * each for each in took])


COLUMNS = {
    "duration_s": "length",
    "over_stops": "ratio",
    "worst_velocity": "ratio",
    "worst_acceleration": "ratio",
    "worst_jerk": "ratio",
    "points": "count",
    "valid": "text",
    "time_ms": "ms",
    "time_p95_ms": "ms",
}
DURATION_COLUMNS = {"duration_s": "length", "over_best": "ratio", "worst_over_best": "ratio", "valid": "text"}
LINE_COLUMNS = {"solved": "text", "fraction": "length", "ended": "text", "time_ms": "ms", "time_p95_ms": "ms"}

BENCHMARKS = (
    Benchmark(
        "trajectories",
        "Timed motions",
        "Generated problems, paths of RRT-Connect after 0.3 s of optimising, seed 0. Mean duration, and over that with "
        "stops at all corners; the greatest share of the limits that any joint takes, at 4000 places; median number of "
        f"points; valid: the quintics through the points, by coal at 1000 places. Corners deviate by {DEVIATION:g} rad "
        "at most. Time: of the timing with its proof, the path known.",
        COLUMNS,
        trajectories,
    ),
    Benchmark(
        "durations",
        "Motions that take little time",
        f"Generated problems, seed 0. Mean duration, with corners that deviate by {DEVIATION:g} rad at most; ratio to "
        f"the quickest motion that these and {BEST_S:g} s with objective time found, mean and worst. Valid: by coal at "
        "1000 places.",
        DURATION_COLUMNS,
        durations,
    ),
    Benchmark(
        "lines",
        "Straight lines of the tool",
        f"From random free configurations, {WAY:g} of the robot's reach in a random direction, the orientation kept: "
        "how many reach their end, the mean fraction, and why the others end.",
        LINE_COLUMNS,
        lines,
    ),
)
