"""From a distance field to a checker that knows it: what an update takes, and checks among its boxes."""

import time

import numpy as np
from scipy.ndimage import distance_transform_edt

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.arm.distance_fields import FieldRule, block_bricks, grid_bricks

from . import robots
from .harness import Benchmark, Row, median, told, with_data
from .problems import robot_files

EDGE = 256  # voxels
ROOM = 2.56  # metres, edge of what the field covers
BLOCK = 8  # voxels
BALLS, BOXES = 25, 10
UPDATES = 15
CHECKS = 100_000


def fields(context):
    """Rows of a Panda in a field, on each device; on CUDA the distances lie on the device, too."""
    return with_data("Panda", lambda: _rows(context, _panda(context.data)))


def _panda(data):
    """The RobotModel of the installed descriptions, or of the shared data."""
    return load_urdf(*robot_files("panda", data)) if robots.unavailable("panda") else robots.rig("panda").model


def _rows(context, robot):
    rows = []
    edge = EDGE // 4 if context.quick else EDGE
    kinds = [] if not context.devices else list(_kinds(edge))
    for device, missing in context.asked_for():
        if missing:
            rows.append(Row(f"Panda, {edge}^3", f"gpu_planners, {device}", note=missing))
            continue
        for case, field in kinds:
            rows.append(told(Row(f"Panda, {case}", f"gpu_planners, {device}", _measured(robot, device, *field))))
    return rows


def seen_room(edge, seed=0):
    """(edge, edge, edge) float32 metres: signed distances of a floor, balls and boxes, none where the robot stands."""
    rng, size = np.random.default_rng(seed), ROOM / edge
    occupied = np.zeros((edge, edge, edge), bool)
    occupied[:, :, : edge // 10] = True
    x, y, z = np.indices(occupied.shape, sparse=True)
    for _ in range(BALLS):
        a, b, c = rng.uniform(0, edge, 3) * [1, 1, 0.6]
        occupied |= (x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2 < (rng.uniform(0.03, 0.1) * edge) ** 2
    for _ in range(BOXES):
        low = rng.integers(0, edge, 3)
        a, b, c = low + rng.integers(3, edge // 5, 3)
        occupied[low[0] : a, low[1] : b, low[2] : c] = True
    occupied &= (x - edge / 2) ** 2 + (y - edge / 2) ** 2 + 0 * z > (0.14 * edge) ** 2
    signed = distance_transform_edt(~occupied) - distance_transform_edt(occupied)
    return (size * signed).astype(np.float32)


def _kinds(edge):
    """(case, (function, its arrays, rule)) of a dense field, and of the blocks of it near surfaces."""
    distances, size = seen_room(edge), ROOM / edge
    yield f"dense, {edge}^3", (grid_bricks, (), distances, size, FieldRule(error=size / 2))
    count = edge // BLOCK
    blocks = distances.reshape(count, BLOCK, count, BLOCK, count, BLOCK).transpose(0, 2, 4, 1, 3, 5)
    near = np.argwhere(np.abs(blocks).min(axis=(3, 4, 5)) < 4 * size)
    rule = FieldRule(error=size / 2, truncation=8 * size, unknown="free")
    some = np.clip(np.ascontiguousarray(blocks[tuple(near.T)]), -8 * size, 8 * size)
    yield f"{len(near)} blocks of {BLOCK}^3", (block_bricks, (near,), some, size, rule)


def _measured(robot, device, bricks_of, first, distances, size, rule):
    T_root_field = np.eye(4)
    T_root_field[:3, 3] = -ROOM / 2, -ROOM / 2, -ROOM / 8
    checker = CollisionChecker(robot, CollisionWorld(), device)
    checker.warm_up()
    if device != "cpu":
        from numba import cuda

        with cuda.gpus[int(device.partition(":")[2] or 0)]:
            distances = cuda.to_device(distances)
    steps = []
    for _ in range(UPDATES):
        began, cpu = time.perf_counter(), time.process_time()
        bricks = bricks_of("field", *first, distances, size, T_root_field, rule)
        made, world = time.perf_counter(), CollisionWorld()
        world.add_shapes("field", [bricks])
        checker.world = world
        checker.prepare()
        steps.append((made - began, time.perf_counter() - made, time.process_time() - cpu))
    made, ready, cpu = np.array(steps[3:]).T
    q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (CHECKS, robot.dof)).astype(np.float32)
    checker.configurations_valid(q)
    began = time.perf_counter()
    free = checker.configurations_valid(q)
    taken = time.perf_counter() - began
    return {
        "boxes": len(bricks),
        "boxes_ms": 1e3 * median(made),
        "ready_ms": 1e3 * median(ready),
        "update_worst_ms": 1e3 * float((made + ready).max()),
        "update_cpu_ms": 1e3 * median(cpu),
        "updates": 1 / (median(made) + median(ready)),
        "rate": CHECKS / taken,
        "free": float(free.mean()),
    }


BENCHMARKS = (
    Benchmark(
        "fields",
        "Distance fields",
        f"A Panda in a field of {EDGE}^3 voxels of 1 cm: a floor, {BALLS} balls, {BOXES} boxes; and the blocks of it "
        "that lie near surfaces, truncated, as nvblox keeps them. On CUDA the distances lie on the device. To boxes: "
        "from the field to merged boxes. Until known: until a checker on that device knows them, packing and upload "
        "included. CPU: of all threads. Checks of configurations among the boxes, arrays on the host.",
        {
            "boxes": "count",
            "boxes_ms": "ms",
            "ready_ms": "ms",
            "update_worst_ms": "ms",
            "update_cpu_ms": "ms",
            "updates": "rate",
            "rate": "rate",
            "free": "share",
        },
        fields,
    ),
)
