"""Fleets where rooms are joined by lanes: errands of `step`, beside those of `solve` carried out again and again."""

import numpy as np

from gpu_planners.fleet import FleetPlanner, Settings, conflicts
from gpu_planners.grid import GridMap
from gpu_planners.grid.maps.generated import warehouse_map

from .harness import Benchmark, Row, told

STEPS, LARGE_STEPS, QUICK = 1500, 600, 200
LIMIT_S = 1.0  # of each plan of `solve`
BUDGETS = (0.0, 0.01)  # seconds a step
LARGE_BUDGETS = (0.0, 0.05)  # for hundreds of agents
HELD_OUT = 1  # the seed of random maps and of starts; nothing was tuned on it


def two_rooms(lane=7, side=7):
    free = np.zeros((side + 2, 2 * side + lane + 2), bool)
    free[1:-1, 1 : side + 1] = free[1:-1, -side - 1 : -1] = True
    free[side // 2 + 1, side : side + lane + 2] = True
    return free


def comb(teeth=12, length=12, spine=1):
    free = np.zeros((spine + length + 2, 2 * teeth + 1), bool)
    free[1 : spine + 1, 1:-1] = free[1:-1, 1::2] = True
    return free


def ring(rows=10, cols=12):
    free = np.zeros((rows + 2, cols + 2), bool)
    free[1:-1, 1:-1] = True
    free[2:-2, 2:-2] = False
    return free


def rooms_with_doors(rows, cols, side, rng):
    """A tree of rooms, each joined to one before it by a door of a tile."""
    free = np.zeros((rows * (side + 1) + 1, cols * (side + 1) + 1), bool)
    for room in range(rows * cols):
        r, c = np.array(divmod(room, cols)) * (side + 1) + 1
        free[r : r + side, c : c + side] = True
        if room and (room < cols or (room % cols and rng.random() < 0.5)):
            free[r + rng.integers(side), c - 1] = True
        elif room:
            free[r - 1, c + rng.integers(side)] = True
    return free


def tree(side, rng):
    """A random tree of lanes (a maze without loops)."""
    free = np.zeros((side, side), bool)
    stack = [(1, 1)]
    free[1, 1] = True
    while stack:
        r, c = stack[-1]
        ways = [(r + a, c + b, r + a // 2, c + b // 2) for a, b in ((0, 2), (2, 0), (0, -2), (-2, 0))]
        ways = [way for way in ways if 0 < way[0] < side and 0 < way[1] < side and not free[way[:2]]]
        if not ways:
            stack.pop()
            continue
        r, c, *between = ways[rng.integers(len(ways))]
        free[r, c] = free[tuple(between)] = True
        stack.append((r, c))
    return free


def star(rooms, side, lane):
    """Rooms on all four sides of a junction, at the ends of lanes."""
    length = side + lane
    free = np.zeros((2 * length + 3, 2 * length + 3), bool)
    middle = length + 1
    free[middle, 1:-1] = free[1:-1, middle] = True
    for turn in range(rooms):
        at = np.rot90(free, turn)
        at[middle - side // 2 : middle + side // 2 + 1, 1 : side + 1] = True
    return free


def cases():
    """(name, free, agents); the last five were not looked at while the fleet's jams were worked on."""
    rng = np.random.default_rng(HELD_OUT)
    return [
        ("two rooms, a lane of 7", two_rooms(), 12),
        ("two rooms, a lane of 7", two_rooms(), 30),
        ("comb", comb(), 9),
        ("comb", comb(), 20),
        ("ring of one lane", ring(), 20),
        ("held out: two rooms, a lane of 15", two_rooms(15, 9), 40),
        ("held out: 12 rooms with doors", rooms_with_doors(3, 4, 5, rng), 40),
        ("held out: tree", tree(19, rng), 12),
        ("held out: four rooms around a junction", star(4, 5, 6), 30),
        ("held out: comb with two spines", comb(9, 8, 2), 20),
    ]


def double_comb(teeth, length):
    """Two combs on both sides of a spine of two tiles."""
    free = np.zeros((2 * length + 4, 2 * teeth + 1), bool)
    free[length + 1 : length + 3, 1:-1] = True
    free[1 : length + 1, 1:-1:2] = free[length + 3 : -1, 2:-1:2] = True
    return free


def loops(rows, cols, side):
    """A mesh of lanes."""
    free = np.zeros((rows * side + 3, cols * side + 3), bool)
    free[1::side, 1:-1] = free[1:-1, 1::side] = True
    free[-1] = free[:, -1] = False
    return free


def halls(count, side, lane):
    """Halls in a row."""
    free = np.zeros((side + 2, count * (side + lane) - lane + 2), bool)
    free[side // 2 + 1, 1:-1] = True
    for at in range(1, free.shape[1] - 1, side + lane):
        free[1:-1, at : at + side] = True
    return free


def large_cases():
    """The same with hundreds of agents, 10 to 70 % of all tiles taken."""
    rng = np.random.default_rng(HELD_OUT + 1)
    rooms, maze = rooms_with_doors(5, 6, 7, rng), tree(41, rng)
    warehouse = ~warehouse_map(31, 58, 4, aisle=1, apron=4).blocked
    return [
        ("two combs on a spine", double_comb(30, 12), 150),
        ("two combs on a spine", double_comb(30, 12), 300),
        ("comb", comb(28, 14, 3), 150),
        ("mesh of lanes", loops(4, 5, 9), 150),
        ("six halls in a row", halls(6, 11, 9), 150),
        ("six halls in a row", halls(6, 11, 9), 500),
        ("30 rooms with doors", rooms, 150),
        ("30 rooms with doors", rooms, 500),
        ("tree", maze, 150),
        ("four halls around a junction", star(4, 13, 8), 200),
        ("warehouse, aisles of a tile", warehouse, 150),
        ("warehouse, aisles of a tile", warehouse, 300),
    ]


def by_solve(fleet, tiles, agents, steps):
    """Errands a step of whole plans, one after the other."""
    rng = np.random.default_rng(HELD_OUT)
    at, faces, done, taken = tiles[rng.permutation(len(tiles))[:agents]], rng.integers(4, size=agents), 0, 0
    while taken < steps:
        goals = tiles[rng.permutation(len(tiles))[:agents]]
        plan = fleet.solve(at, goals, time_limit_s=LIMIT_S, headings=faces)
        done += int((plan.positions[-1] == goals).all(axis=1).sum())
        taken, at, faces = taken + max(1, plan.makespan), plan.positions[-1], plan.headings[-1]
    return done / taken


def by_steps(fleet, tiles, agents, steps, budget_s):
    """-> errands of each agent (N,), the most steps that one was under way, positions (steps + 1, N, 2)"""
    rng = np.random.default_rng(HELD_OUT)
    fleet.start(tiles[rng.permutation(len(tiles))[:agents]], rng.integers(4, size=agents))
    goals, done, worst = tiles[rng.integers(len(tiles), size=agents)], np.zeros(agents, int), 0
    walked, since = [fleet.positions], np.zeros(agents, int)
    for _ in range(steps):
        fleet.step(goals, budget_s)
        walked.append(fleet.positions)
        there = (walked[-1] == goals).all(axis=1)
        done, since = done + there, np.where(there, 0, since + 1)
        goals[there] = tiles[rng.integers(len(tiles), size=int(there.sum()))]
        worst = max(worst, int(since.max()))
    return done, worst, np.array(walked)


def lanes(context):
    return _measured(context, cases(), BUDGETS, STEPS)


def large(context):
    return _measured(context, large_cases(), LARGE_BUDGETS, LARGE_STEPS)


def _measured(context, some, budgets, steps):
    found, steps = [], QUICK if context.quick else steps
    for name, free, agents in some[:: 5 if context.quick else 1]:
        tiles, case = np.argwhere(free), f"{name}, {agents} agents of {int(free.sum())}"
        grid, settings = GridMap(free.astype(np.uint8), connectivity=4), Settings(following=False)
        solved = by_solve(FleetPlanner(grid, "turning", "cpu", settings), tiles, agents, steps)
        for budget in budgets:
            fleet = FleetPlanner(grid, "turning", "cpu", settings)
            done, worst, walked = by_steps(fleet, tiles, agents, steps, budget)
            figures = {
                "errands": float(done.sum() / steps),
                "solve": solved,
                "of_solve": float(done.sum() / steps / solved),
                "least": int(done.min()),
                "longest": worst,
                "conflicts": len(conflicts(walked, ~free, following=False)),
            }
            found.append(told(Row(case, f"step, {1e3 * budget:g} ms", figures)))
    return found


COLUMNS = {
    "errands": "ratio",
    "solve": "ratio",
    "of_solve": "share",
    "least": "count",
    "longest": "count",
    "conflicts": "count",
}
BENCHMARKS = (
    Benchmark(
        "fleet_lanes",
        "Fleets where rooms are joined by lanes",
        "Errands a step of agents that turn and do not follow each other closely, in 1,500 steps, beside those of "
        "`solve`, with a second for each plan, carried out again and again; the fewest errands of an agent, and the "
        "most steps that one was under way. Conflicts are those that a validator finds that shares no code.",
        COLUMNS,
        lanes,
    ),
    Benchmark(
        "fleet_lanes_large",
        "Hundreds of agents where rooms are joined by lanes",
        "The same in 600 steps for 150 to 500 agents.",
        COLUMNS,
        large,
    ),
)
