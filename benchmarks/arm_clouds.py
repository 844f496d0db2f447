"""From a point cloud to a checker that knows it, and how much later a plan comes that is asked for meanwhile."""

import itertools
import threading
import time
import timeit
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from gpu_planners.arm import CollisionChecker, CollisionWorld
from gpu_planners.arm.collision.packing import pack_robot
from gpu_planners.arm.collision.point_cloud import obstacle_voxels, points_in_root
from gpu_planners.arm.collision.scene_packing import pack_bricks
from gpu_planners.arm.planners import rrt_connect

from . import robots
from .harness import Benchmark, Row, median, told

POINTS = 20_000, 100_000
VOXEL = 0.02  # metres, edge length
PADDING = 0.03  # metres around the robot in which points are left out
PERIOD_S = 0.1  # from cloud to cloud
QUERIES_S = 10.0  # for which queries are planned beside clouds
WORLDS = 4  # different clouds
PAIRS = 20  # different queries
READY = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
SCENES = {"a room": "surfaces", "scattered": "scattered points"}


def clouds(context):
    """Rows of a Panda, on each device."""
    if why := robots.unavailable("panda"):
        return [Row("Panda", "all", note=why)]
    rows = []
    for device, missing in context.asked_for():
        for scene, what in SCENES.items():
            for count in POINTS[: 1 if context.quick else None]:
                case = f"Panda, {count} points, {what}"
                subject = f"gpu_planners, {device}"
                figures = {} if missing else _measured(scene, count, device, 2.0 if context.quick else QUERIES_S)
                rows.append(told(Row(case, subject, figures, note=missing or "")))
    return rows


def seen_points(scene, count, seed=0):
    """(count, 3) float32, metres in the root frame: of a table, walls and the robot itself, some not finite; or
    anywhere from 0.8 to 1.5 m from the robot."""
    rng = np.random.default_rng(seed)
    if scene == "scattered":
        directions = rng.normal(size=(count, 3))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        return (directions * rng.uniform(0.8, 1.5, (count, 1)) + [0, 0, 0.4]).astype(np.float32)
    u, v, which = rng.uniform(-1, 1, count), rng.uniform(-1, 1, count), rng.integers(0, 4, count)
    noise = rng.normal(0, 0.003, count)
    table = np.column_stack([0.55 + 0.25 * u, 0.5 * v, 0.1 + noise])
    wall = np.column_stack([0.95 + noise, 1.2 * u, 0.7 + 0.7 * v])
    side = np.column_stack([0.3 + 0.9 * u, -0.85 + 0.1 * u + noise, 0.7 + 0.7 * v])
    robot = np.column_stack([0.05 * u, 0.05 * v, 0.2 + 0.3 * np.abs(u)])
    points = np.choose(which[:, None], [table, wall, side, robot]).astype(np.float32)
    points[:: max(count // 50, 1)] = np.nan
    return points


def _measured(scene, count, device, queries_s):
    robot = robots.rig("panda").model
    checker, packed = CollisionChecker(robot, CollisionWorld(), device), []
    checker.warm_up()
    steps = []
    for seed in range(8):
        began = time.perf_counter()
        world, boxes, voxels = _world(seen_points(scene, count, seed), robot)
        made = time.perf_counter()
        checker.world = world
        checker.packed_scene  # noqa: B018 - packs and uploads
        steps.append((made - began, time.perf_counter() - made))
        packed.append((voxels, boxes))
    made, ready = np.array(steps[2:]).T
    q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (20_000, robot.dof))
    free = q[checker.configurations_valid(q)][: 2 * PAIRS]
    figures = {
        "voxels": median([voxels for voxels, _ in packed]),
        "boxes": median([boxes for _, boxes in packed]),
        "filter_ms": 1e3 * median(made),
        "pack_ms": 1e3 * median(ready),
    }
    if len(free) < 2 * PAIRS:
        return figures
    later = _delays(checker, free, scene, count, queries_s)
    shares = np.percentile(later, [50, 99, 100])
    return figures | {
        f"{name}_ms": 1e3 * float(share) for name, share in zip(("later", "later_p99", "later_worst"), shares)
    }


def _world(points, robot):
    """(CollisionWorld, boxes, voxels) of a cloud."""
    voxels = obstacle_voxels(points_in_root(points, np.eye(4)), VOXEL, robot, READY, PADDING)
    world = CollisionWorld()
    world.add_voxels("cloud", voxels.cells, voxels.size, np.eye(4))
    pack_bricks(world.pieces[0], pack_robot(robot), 0.0)
    return world, len(world.pieces[0]), len(voxels.cells)


def _delays(checker, free, scene, count, for_s):
    """(Q,) seconds by which queries, asked one after the other, come later than the same query without clouds, while a
    thread makes a world of a cloud every PERIOD_S. As in the node: the thread that plans packs the newest, and a query
    that is asked then waits."""
    clouds = [seen_points(scene, count, seed) for seed in range(WORLDS)]
    worlds = [_world(cloud, checker.robot)[0] for cloud in clouds]
    settings = rrt_connect.Settings(shortcut_rounds=0, time_limit_s=0.05)

    def ask(turn):
        rrt_connect.solve(free[turn % PAIRS], free[PAIRS + turn % PAIRS], checker, settings, seed=turn % PAIRS)

    alone = np.empty((WORLDS, PAIRS))
    for number, world in enumerate(worlds):
        checker.world = world
        checker.packed_scene  # noqa: B018 - packs
        for turn in range(PAIRS):
            alone[number, turn] = min(timeit.repeat(lambda turn=turn: ask(turn), number=1, repeat=3))
    ready, over = [], threading.Event()

    def see():
        for turn in itertools.count():
            began = time.perf_counter()
            ready.append((turn % WORLDS, _world(clouds[turn % WORLDS], checker.robot)[0]))
            if over.wait(max(PERIOD_S - (time.perf_counter() - began), 0.0)):
                return

    later, number, end = [], WORLDS - 1, time.perf_counter() + for_s
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(see)
        for turn in itertools.count():
            began = time.perf_counter()
            if began > end:
                break
            if ready:
                number, checker.world = ready[-1]
                ready.clear()
                checker.packed_scene  # noqa: B018 - packs
            ask(turn)
            later.append(time.perf_counter() - began - alone[number, turn % PAIRS])
            time.sleep(0.002)
        over.set()
        work.result()
    return np.array(later)


BENCHMARKS = (
    Benchmark(
        "clouds",
        "Point clouds",
        "A Panda among what a camera sees: surfaces (a table, two walls, the robot itself), or points anywhere 0.8 to "
        "1.5 m from it, where hardly any voxels touch. Filter: points that are not finite or within "
        f"{PADDING} m of the robot left out, the others into voxels of {VOXEL} m, merged into boxes and packed, on a "
        "thread of its own in the node. Pack: until a checker knows them, on the thread that plans. Later: by how much "
        f"plans of up to 0.05 s, one after the other, come later when there is a cloud every {PERIOD_S} s from another "
        "thread than the same plan without, waiting for the packing included: median, 99th percentile and worst.",
        {
            "voxels": "count",
            "boxes": "count",
            "filter_ms": "ms",
            "pack_ms": "ms",
            "later_ms": "ms",
            "later_p99_ms": "ms",
            "later_worst_ms": "ms",
        },
        clouds,
    ),
)
