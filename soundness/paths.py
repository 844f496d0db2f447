"""Every planner's paths among random obstacles: ends, limits, and no collision along them, by coal."""

import numpy as np

from gpu_planners.arm.planners import prm, rrt_connect
from gpu_planners.arm.planners.tree import rrt, rrt_star

from .harness import NEAR, Attack, Skipped, numbers
from .obstacles import random_obstacle

SOLVERS = {
    "rrt_connect": (rrt_connect, {}),
    "prm": (prm, {}),
    "rrt": (rrt, {}),
    "rrt_star": (rrt_star, {"max_samples": 2000}),
}
TIME_LIMIT = 2.0  # seconds
OBSTACLES = (2, 12)


def case(run, rng, number, tally):
    rig = run.rig(number)
    rig.world.clear()
    obstacles = []
    for i in range(rng.integers(*OBSTACLES)):
        obstacle = random_obstacle(rng, 0.03, 0.4)
        away = rng.normal(size=3) * [0.5, 0.5, 0.4] + [0, 0, 0.3]
        obstacles.append(obstacle.at(away))
        obstacles[-1].add_to(rig.world, str(i))
    first = rig.checkers[rig.devices[0]]
    q = rig.configurations(rng, 64)
    q = q[first.configurations_valid(q)] if len(q) else q
    if len(q) < 4:
        raise Skipped(f"{rig.name}: the random scene leaves no start or goal")
    start, goals = q[0], q[1 : 1 + rng.integers(1, 4)]
    for name, (planner, options) in SOLVERS.items():
        settings = planner.Settings(time_limit_s=TIME_LIMIT, shortcut_rounds=int(rng.integers(0, 4)), **options)
        seed = int(rng.integers(1 << 31))
        for device, checker in rig.checkers.items():
            result = planner.solve(start, goals, checker, settings, seed=seed)
            tally.checks += 1
            if result.solved:
                check(rig, tally, f"{name} on {device}", result, start, goals, obstacles)


def check(rig, tally, who, result, start, goals, obstacles):
    path, robot = result.path, rig.robot
    where = f"{who}, {rig.name}, path {numbers(path)}, {'; '.join(map(str, obstacles))}"
    missed = path[-1] - goals[result.goal_index]  # whole turns of a joint that turns without end lead to the same place
    missed = np.where(robot.continuous, (missed + np.pi) % (2 * np.pi) - np.pi, missed)
    if not (np.abs(path[0] - start).max() < 1e-6 and np.abs(missed).max() < 1e-6):
        tally.fail(f"the path does not lead from the start to goal {result.goal_index}: {where}")
    if (~robot.continuous & ((path < robot.lower) | (path > robot.upper))).any():
        tally.fail(f"the path leaves the limits: {where}")
    if not np.isclose(result.cost, np.linalg.norm(np.diff(path, axis=0), axis=1).sum()):
        tally.fail(f"the cost {result.cost} is not the path's length: {where}")

    def gaps(rows):
        return rig.oracle.gaps(rows, obstacles, enough=0.05)

    for a, b in zip(path[:-1], path[1:], strict=True):
        samples = int(np.clip(np.abs(b - a).max() / 0.02, 9, 129))
        for what, gap in (("an obstacle", gaps), ("itself", rig.oracle.self_gaps)):
            least, at = rig.oracle.least_gap(a, b, gap, samples=samples if gap is gaps else samples // 4 + 2)
            if least < -NEAR:
                tally.fail(f"overlap of {-1e6 * least:.3g} um with {what} at {numbers(a + at * (b - a))}: {where}")
            tally.deepest = max(tally.deepest, -least)


ATTACK = Attack("paths", "paths of rrt_connect, prm, rrt, rrt_star", case)
