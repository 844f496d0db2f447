"""Fields and paths of many agents on large maps, beside peers; and the repair of a field after an obstacle."""

import functools
import time
from dataclasses import dataclass

import numpy as np

from gpu_planners.grid import BlockPlanner, GridMap, load_movingai_map
from gpu_planners.grid.exact.values import unit_of
from gpu_planners.grid.maps.generated import random_free_tiles, random_map

from . import grid_peers
from .grid_timing import descent_seconds, field_seconds
from .harness import Benchmark, Row, median, progress, seconds, told, with_data
from .problems import data_dir

AGENTS = 262_144
DENSITY = 0.2
LARGEST_OBSTACLE = 16  # tiles a side


@dataclass(frozen=True)
class Case:
    """A kind of map and where it is measured: everywhere, or where the context is full or the device a GPU."""

    size: int
    connectivity: int
    highest_cost: int = 1
    always: bool = True

    @property
    def text(self):
        costs = "cost 1" if self.highest_cost == 1 else f"costs 1 to {self.highest_cost}"
        return f"{self.size}x{self.size}, {self.connectivity}-connected, {costs}"

    def grid(self):
        centre = [self.size // 2] * 2
        grid = random_map(self.size, self.size, DENSITY, seed=self.size, connectivity=self.connectivity, free=[centre])
        if self.highest_cost == 1:
            return grid
        rng = np.random.default_rng(self.size)
        return GridMap(
            grid.costs * rng.integers(1, self.highest_cost + 1, grid.shape, dtype=np.uint8), self.connectivity
        )


CASES = (
    Case(1024, 4),
    Case(1024, 8),
    Case(1024, 8, highest_cost=10),
    Case(4096, 4),
    Case(4096, 8, always=False),
    Case(16384, 4, always=False),
)


def fields(context):
    """Rows of fields and all paths, of the planner by device and of the peers."""
    rows = []
    for case in CASES[:1] if context.quick else CASES:
        whole = context.full or any(device != "cpu" for device in context.devices)
        if not (case.always or whole) or not context.devices:
            rows.append(
                Row(case.text, "gpu_planners", note="no device" if case.always else "only with --full, or on a GPU")
            )
            continue
        grid = case.grid()
        starts = random_free_tiles(grid, 4096 if context.quick else AGENTS, seed=1)
        goals = _near_centre(grid, 3 if context.quick or case.size > 4096 else 7)
        peers, reference = _peers(case, grid, starts, goals, context)
        for device, missing in context.asked_for():
            subject = f"gpu_planners, {device}"
            if missing:
                rows.append(Row(case.text, subject, note=missing))
            elif device == "cpu" and not (case.always or context.full):
                rows.append(Row(case.text, subject, note="only with --full"))
            else:
                rows.append(_ours(case, grid, starts, goals, subject, device, reference))
        rows += peers
    return rows


def _ours(case, grid, starts, goals, subject, device, reference):
    planner = BlockPlanner(grid, device=device)
    planner.plan(starts, goals[0])
    taken = field_seconds(planner, goals)
    planner.plan(starts[:1], goals[0])  # its field is there
    walks = seconds(lambda: planner.plan(starts, goals[0]), 3 if device == "cpu" else 9)
    descents = {} if device == "cpu" else {"device_ms": 1e3 * median(descent_seconds(planner, starts, goals[0]))}
    together = _from_nothing(planner, starts, goals[0], 2 if device == "cpu" else 9)
    paths = planner.plan(starts, goals[0])
    figures = {
        "field_ms": 1e3 * median(taken),
        "over_bfs": reference / median(taken) if reference else float("nan"),
        **descents,
        "paths_ms": 1e3 * median(walks),
        "time_ms": 1e3 * median(together),
        "step_rate": int(paths.length.sum(dtype=np.int64)) / median(walks),
        "paths_mb": paths.nbytes / 2**20,
        "solved": float(paths.solved.mean()),
    }
    return told(Row(case.text, subject, figures, taken.tolist()))


def _from_nothing(planner, starts, goal, repeats):
    taken = []
    for _ in range(repeats):
        planner._engine.forget()
        began = time.perf_counter()
        planner.plan(starts, goal)
        taken.append(time.perf_counter() - began)
    return np.array(taken)


def _peers(case, grid, starts, goals, context):
    """Rows of the peers that can do this case, and the breadth-first search's median seconds, or None."""
    rows, reference = [], None
    if case.connectivity == 4 and case.highest_cost == 1:
        peer = grid_peers.Bfs(grid)
        peer.field(goals[0])
        taken = np.array([seconds(lambda goal=goal: peer.field(goal), 1, 0)[0] for goal in goals])
        peer.field(goals[0])
        figures = {"field_ms": 1e3 * median(taken), "over_bfs": 1.0}
        some = starts if case.size <= 1024 else starts[: 2**24 // case.size]
        steps = len(peer.paths(some))
        walks = seconds(lambda: peer.paths(some), 1, 0)
        figures["step_rate"] = steps / median(walks)
        if len(some) == len(starts):
            figures |= {"paths_ms": 1e3 * median(walks), "time_ms": 1e3 * (median(taken) + median(walks))}
        rows.append(told(Row(case.text, peer.name, figures, taken.tolist(), "its paths: a byte a step")))
        reference = median(taken)
    if case.size <= 1024 or (context.full and case.size <= 4096):
        peer = grid_peers.scipy_dijkstra(grid)
        taken = seconds(lambda: peer(goals[0]), 1, 0)
        rows.append(
            Row(
                case.text,
                "scipy.sparse.csgraph.dijkstra",
                {"field_ms": 1e3 * median(taken)},
                note="its graph is built before",
            )
        )
        if case.connectivity == 4 and case.highest_cost == 1:
            peer = grid_peers.skimage_mcp(grid)
            note = "" if peer else "skipped: scikit-image is not installed"
            figures = {"field_ms": 1e3 * median(seconds(lambda: peer(goals[0]), 1, 0))} if peer else {}
            rows.append(Row(case.text, "skimage.graph.MCP", figures, note=note))
    return rows, reference


def _near_centre(grid, count):
    """(count, 2) free tiles about the centre, which is free."""
    centre = grid.rows // 2
    side = grid.costs[centre, centre : centre + 8 * count]
    cols = centre + np.flatnonzero(side)[:count]
    return np.stack([np.full(len(cols), centre), cols], axis=1)


def repair(context):
    """Rows of updates after an obstacle appears and goes, against the field from nothing."""
    maps = {
        "no obstacles": GridMap(np.ones((1024, 1024), np.uint8), 4),
        "5 % obstacles": random_map(1024, 1024, 0.05, 5, 4, [(512, 512)]),
    }
    rows = _repaired_on(maps, context)
    rows += with_data("1024x1024, Berlin_0_1024", lambda: _repaired_on(_berlin(context), context))
    rows.append(Row("any", "Nav2's proposal", quoted="13 times faster than recomputing (docs/references.md)"))
    return rows


def _berlin(context):
    return {"Berlin_0_1024": load_movingai_map(data_dir(context.data) / "movingai" / "Berlin_0_1024.map", 4)}


def _repaired_on(maps, context):
    """Rows of {name: GridMap}."""
    rows = []
    for name, grid in maps.items():
        for connectivity in (4,) if context.quick else (4, 8):
            grid = GridMap(grid.costs, connectivity)
            for device, missing in context.asked_for():
                case, subject = f"1024x1024, {name}, {connectivity}-connected", f"gpu_planners, {device}"
                if missing:
                    rows.append(Row(case, subject, note=missing))
                    continue
                count = 4 if context.quick else 12 if device == "cpu" else 50
                rows.append(_repaired(case, subject, grid, device, count))
    return rows


def _repaired(case, subject, grid, device, count):
    goal = random_free_tiles(grid, 1, seed=0)[0]
    rng = np.random.default_rng(0)
    planner, other = BlockPlanner(grid, device=device), BlockPlanner(grid, device=device)
    for each in (planner, other):
        each.plan(goal[None], goal)
        for cost in (0, grid.costs[0, 0]):  # compiles
            each.update(0, 0, cost)
            each.prepare(goal)
    repairs, anew, identical = [], [], 0
    for _ in progress(range(count), f"{case}, {device}"):
        side = rng.integers(1, LARGEST_OBSTACLE + 1, 2)
        corner = random_free_tiles(grid, 1, seed=rng.integers(2**31))[0]
        block = [slice(first, first + size) for first, size in zip(corner, side, strict=True)]
        rows, cols = (
            index.ravel()
            for index in np.meshgrid(*(np.arange(n)[part] for n, part in zip(grid.shape, block)), indexing="ij")
        )
        clear = (rows != goal[0]) | (cols != goal[1])
        rows, cols = rows[clear], cols[clear]
        for costs in (np.zeros(len(rows), np.uint8), grid.costs[rows, cols]):
            began = time.perf_counter()
            planner.update(rows, cols, costs)
            planner.prepare(goal)
            repairs.append(time.perf_counter() - began)
            other.update(rows, cols, costs)
            anew.append(field_seconds(other, [goal])[0])
            identical += np.array_equal(planner.field(goal), other.field(goal))
    ratio = np.array(anew) / repairs
    figures = {
        "repair_ms": 1e3 * median(repairs),
        "recompute_ms": 1e3 * median(anew),
        "over_recompute": median(ratio),
        "lowest_ratio": float(ratio.min()),
        "identical": f"{identical}/{len(ratio)}",
    }
    return told(Row(case, subject, figures, repairs))


QUEUE_CASES = tuple(Case(size, *kind) for size in (512, 1024, 2048) for kind in ((4, 1), (8, 1), (4, 10), (8, 10)))
UNTUNED = ("Berlin_0_1024", "16room_000", "maze512-1-0", "maze512-32-0", "den520d")
MANY_GOALS = 64


def against_queue(context):
    """Rows of single fields, and of many at once, beside a bucket queue's."""
    cases = QUEUE_CASES[:1] if context.quick else (*QUEUE_CASES, Case(1024, 4, 255), Case(1024, 8, 255))
    maps = {case.text: case.grid for case in cases}
    if not context.quick:
        for connectivity in (4, 8):
            empty = np.ones((1024, 1024), np.uint8)
            maps[f"1024x1024, empty, {connectivity}-connected"] = functools.partial(GridMap, empty, connectivity)
            for name in UNTUNED:
                file = f"{name}.map"
                maps[f"{name}, {connectivity}-connected"] = functools.partial(_shared_map, context, file, connectivity)
    rows = []
    for case, make in maps.items():
        rows += with_data(case, lambda make=make, case=case: _beside_queue(case, make(), context))
    return rows


def _shared_map(context, file, connectivity):
    return load_movingai_map(data_dir(context.data) / "movingai" / file, connectivity)


def _beside_queue(case, grid, context):
    """Rows of one map. All are measured in turn, so that what else the machine does slows all of them."""
    repeats = 2 if context.quick else 9
    goal = random_free_tiles(grid, 1, seed=0)[0] if grid.costs[grid.rows // 2, grid.cols // 2] == 0 else None
    goal = np.array([grid.rows // 2, grid.cols // 2]) if goal is None else goal
    many = random_free_tiles(grid, MANY_GOALS, seed=2) if grid.costs.size <= 512 * 512 else goal[None]
    queue, rows = grid_peers.BucketQueue(grid), []
    units = queue.field(goal)
    expected = np.where(units < 0, np.inf, units / unit_of(grid.connectivity))
    of_queue = []
    for device, missing in context.asked_for():
        subject = f"gpu_planners, {device}"
        if missing:
            rows.append(Row(case, subject, note=missing))
            continue
        planner = BlockPlanner(grid, device=device)
        identical = np.array_equal(planner.field(goal), expected)
        fields = planner._engine._fields
        threads = {1, fields.members} if device == "cpu" else {0}
        taken, together = {count: [] for count in threads}, []
        for _ in range(repeats):
            for count in threads:
                if count:
                    fields.members = count
                taken[count].append(field_seconds(planner, [goal])[0])
            of_queue.append(seconds(lambda: queue.search(goal), 1, 0)[0])
            if len(many) > 1 and len(together) < 3:
                together.append(field_seconds(planner, [many])[0])
        for count in sorted(threads):
            figures = {
                "field_ms": 1e3 * min(taken[count]),
                "over_queue": min(of_queue) / min(taken[count]),
                "identical": "yes" if identical else "no",
            }
            if together and count == max(threads):
                figures["each_ms"] = 1e3 * min(together[1:] or together) / len(many)
            threads_text = f", {count} thread{'s' if count > 1 else ''}" if count else ""
            rows.append(told(Row(case, subject + threads_text, figures, taken[count])))
    if of_queue:
        rows.append(told(Row(case, queue.name, {"field_ms": 1e3 * min(of_queue), "over_queue": 1.0}, of_queue)))
    return rows


BENCHMARKS = (
    Benchmark(
        "grid_fields",
        "Fields and paths of 262,144 agents",
        f"Random maps with {100 * DENSITY:.0f} % obstacles, goals about the centre, random free starts; warm, median "
        f"wall time with nothing "
        "kept. Field: until the cost-to-go of all tiles is there, where it was computed. Paths on the device: of all "
        "agents, left on the "
        "GPU. All paths: on the host, the field being there. Time: field and all paths. x BFS: how often faster the "
        "field is than the "
        "breadth-first search of the same run. Paths, MB: host memory of the PathSet. On the CPU without --full: not "
        "the largest maps.",
        {
            "field_ms": "ms",
            "over_bfs": "ratio",
            "device_ms": "ms",
            "paths_ms": "ms",
            "time_ms": "ms",
            "step_rate": "rate",
            "paths_mb": "ms",
            "solved": "share",
        },
        fields,
    ),
    Benchmark(
        "weighted_fields",
        "Fields beside a bucket queue",
        f"One field to the map's centre, or to a free tile where that is blocked; random maps have "
        f"{100 * DENSITY:.0f} % obstacles, the others are MovingAI's. Best of several wall times, taken in turn. Ours "
        "has directions too. x queue: how often faster than the bucket queue, which runs on one thread of the CPU. "
        f"Each of {MANY_GOALS}: time of a field when so many goals are asked for at once. Identical: all costs-to-go "
        "equal the queue's.",
        {"field_ms": "ms", "over_queue": "ratio", "each_ms": "ms", "identical": "text"},
        against_queue,
    ),
    Benchmark(
        "grid_repair",
        "Repair after an obstacle",
        f"An obstacle of up to {LARGEST_OBSTACLE}x{LARGEST_OBSTACLE} tiles appears at a random place and goes again. "
        f"Repair: update() and prepare(). Recompute: "
        "prepare() on the changed map with no field there. Median "
        "wall times; x recompute: median of the single ratios, and the lowest. Identical: fields equal bit for bit.",
        {
            "repair_ms": "ms",
            "recompute_ms": "ms",
            "over_recompute": "ratio",
            "lowest_ratio": "ratio",
            "identical": "text",
        },
        repair,
    ),
)
