"""What a large world costs, by the number of its obstacles; and how many looks prove a motion, for many robots."""

import time

import numpy as np

from gpu_planners.arm import CollisionChecker, CollisionWorld
from gpu_planners.arm.collision.motions import prove
from gpu_planners.arm.planners import rrt_connect
from gpu_planners.arm.spaces.interface import END_FREE, space_of
from gpu_planners.device import njit

from . import generated_problems, robots
from .arm_checks import stepped
from .harness import Benchmark, Row, exponents, median, progress, seconds, told
from .problems import add_obstacles

SIZES = 10, 100, 1_000, 10_000, 100_000
POINTS = 100_000, 1_000_000  # small balls, as a depth camera gives them
LARGEST_ROOM = 1.2  # m from the middle of the room to each of its sides
EMPTY = 0.75  # m around MIDDLE, where no obstacle's centre is
MIDDLE = np.array([0.0, 0.0, 0.4])
WORLD_COLUMNS = {"rate": "rate", "over_100": "ratio", "motions": "rate", "plan_ms": "ms", "change_ms": "ms"}


def worlds(context):
    """Rows of a Panda in rooms full of boxes, and among points, on each device."""
    if why := robots.unavailable("panda"):
        return [Row("Panda", "all", note=why)]
    rows = []
    cases = [(n, "boxes") for n in SIZES] + [(n, "points") for n in POINTS]
    for device, missing in context.asked_for():
        if missing:
            rows.append(Row("Panda", f"gpu_planners, {device}", note=missing))
            continue
        of_100, of_boxes = None, []
        for n, what in cases[: 3 if context.quick else None]:
            figures = _in_a_room(n, what, device, context.quick)
            of_100 = figures["rate"] if n == 100 else of_100
            if of_100:
                figures["over_100"] = of_100 / figures["rate"]
            rows.append(told(Row(f"Panda, {n} {what}", f"gpu_planners, {device}", {"size": n} | figures)))
            of_boxes += rows[-1:] if what == "boxes" else []
        rows.append(exponents(of_boxes, WORLD_COLUMNS))
    return rows


def room(count, what):
    """CollisionWorld of so many boxes or points around the robot. The more there are, the smaller boxes are: their
    volume stays the same."""
    rng, world = np.random.default_rng(count), CollisionWorld()
    size = 0.3 / count ** (1 / 3) if what == "boxes" else 0.005
    places = np.zeros((0, 3))
    while len(places) < count:
        drawn = rng.uniform(-LARGEST_ROOM, LARGEST_ROOM, (2 * count, 3)) + MIDDLE
        places = np.concatenate([places, drawn[np.linalg.norm(drawn - MIDDLE, axis=1) > EMPTY]])
    pose = np.eye(4)
    for i, place in enumerate(places[:count]):
        pose[:3, 3] = place
        if what == "boxes":
            world.add_box(f"{i}", [size] * 3, pose.copy())
        else:
            world.add_sphere(f"{i}", size, pose.copy())
    return world


def _in_a_room(n, what, device, quick):
    robot = robots.rig("panda").model
    world = room(n, what)
    checker = CollisionChecker(robot, world, device)
    checker.warm_up()
    rng, many = np.random.default_rng(1), 1 if device == "cpu" else 16
    q = rng.uniform(robot.lower, robot.upper, (10_000 * many, robot.dof))
    free = q[checker.configurations_valid(q)][: 1000 * many]
    figures = {"rate": len(q) / median(seconds(lambda: checker.configurations_valid(q), 1 if quick else 3))}
    ends = free, stepped(rng, free, robot)
    figures["motions"] = len(free) / median(seconds(lambda: checker.motions_valid(*ends), 1 if quick else 3))
    settings, plans = rrt_connect.Settings(shortcut_rounds=0, time_limit_s=3.0), []
    for start, goal in zip(free[:20], free[20:40]):
        rrt_connect.solve(start, goal, checker, settings) if not plans else None
        began = time.perf_counter()
        rrt_connect.solve(start, goal, checker, settings)
        plans.append(time.perf_counter() - began)
    figures |= {"plan_ms": 1e3 * median(plans)}
    world.remove(world.names[0])
    began = time.perf_counter()
    checker.packed_scene  # noqa: B018 - packs what changed
    return figures | {"change_ms": 1e3 * (time.perf_counter() - began)}


def looks(context):
    """Rows of the robots of robots.ROBOTS among their generated furniture."""
    return [_looked_at(name, context.quick) for name in progress(robots.ROBOTS, "looks")]


def _looked_at(name, quick):
    if why := robots.unavailable(name):
        return Row(robots.ROBOTS[name].title, "all", note=why)
    robot, counts, free, rates = robots.rig(name).model, [], [], []
    for problem in generated_problems.problems(name, 1):
        checker = CollisionChecker(robot, add_obstacles(CollisionWorld(), problem.obstacles), "cpu")
        checker.warm_up()
        rng = np.random.default_rng(problem.index)
        q = rng.uniform(robot.lower, robot.upper, (20_000, robot.dof))
        q = q[checker.configurations_valid(q)][: 200 if quick else 2000]
        ends = q.astype(np.float32), stepped(rng, q, robot).astype(np.float32)
        taken, proven = np.zeros(len(q), int), np.zeros(len(q), bool)
        _prove_all(*ends, space_of(checker), taken, proven)
        counts.append(taken)
        free.append(proven)
        rates.append(len(q) / median(seconds(lambda c=checker, e=ends: c.motions_valid(*e), 1 if quick else 3)))
    counts, free = np.concatenate(counts), np.concatenate(free)
    figures = {"looks": float(counts[free].mean()), "looks_p95": float(np.percentile(counts[free], 95))}
    return told(Row(robots.ROBOTS[name].title, "gpu_planners, cpu", figures | {"motions": median(rates)}))


@njit
def _prove_all(qa, qb, space, looks, free):
    for i in range(len(qa)):
        free[i], looks[i] = prove(qa[i], qb[i], END_FREE, space, 0)


BENCHMARKS = (
    Benchmark(
        "worlds",
        "Large worlds",
        "A Panda in a room of boxes, whose volume together is always the same, or among points 5 mm in radius, none "
        "within 0.75 m of its shoulder: random configurations and motions of 0.5 rad checked a second, arrays in host "
        "memory; RRT-Connect without shortening between random free configurations, median of 20; time until the "
        "world is packed again after one obstacle is removed. Over 100: cost of a check beside that among 100 boxes. "
        "Exponent: slope of log(cost) over log(boxes) in the upper half of the sizes.",
        WORLD_COLUMNS,
        worlds,
    ),
    Benchmark(
        "looks",
        "Looks at a motion",
        "Motions of 0.5 rad from free configurations among generated furniture, on the CPU: configurations looked at "
        "to prove a free one, mean and 95th percentile, and motions checked a second.",
        {"looks": "ratio", "looks_p95": "ratio", "motions": "rate"},
        looks,
    ),
)
