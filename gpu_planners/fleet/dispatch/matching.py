"""Who gets which: as many robots as possible get a task, at the lowest total cost.

The first choice is made greedily by regret: the robot that would lose most if it did not get its best task comes first
(Potvin and Rousseau 1993). Then the tasks of a window of robots are chosen anew by the Hungarian method, which never
makes it worse: of all robots, if the window holds them, else of robots that want the same tasks, one window after the
other (a large neighbourhood search, Shaw 1998). Nothing is random.
"""

import heapq
from collections.abc import Callable

import numpy as np

NONE = -1


def match(
    tasks: np.ndarray, costs: np.ndarray, window: int, improvements: int, goes_on: Callable[[], bool] = lambda: True
) -> np.ndarray:
    """Choose a task for each robot.

    tasks, costs: (R, C) candidates of each robot, NONE and inf where there are fewer
    window: robots of one; improvements: windows; goes_on: is there time for another one?

    -> (R,) tasks, NONE for who gets none
    """
    order = np.argsort(costs, axis=1, kind="stable")
    tasks, costs = np.take_along_axis(tasks, order, 1), np.take_along_axis(costs, order, 1)
    chosen = _by_regret(tasks, costs)
    robots = len(tasks)
    if robots <= window:
        if robots and goes_on():
            _choose_anew(np.arange(robots), tasks, costs, chosen)
        return chosen
    if improvements == 0 or not goes_on():
        return chosen
    wants: dict[int, list[int]] = {}
    for robot, task in zip(*(at.tolist() for at in np.nonzero(np.isfinite(costs)))):
        wants.setdefault(int(tasks[robot, task]), []).append(robot)
    for seed in _seeds(costs, tasks, chosen)[:improvements]:
        if not goes_on():
            break
        _choose_anew(_around(seed, tasks, costs, wants, window), tasks, costs, chosen)
    return chosen


def _by_regret(tasks, costs):
    """tasks, costs: sorted by costs for each robot"""
    chosen, taken = np.full(len(tasks), NONE), set()
    rows, prices = tasks.tolist(), costs.tolist()

    def regret(robot):
        """-> minus what it loses without its best free task, what that costs, that task; None where none is free.
        Many have one task left and lose all: of these, and of any others that lose as much, the cheapest comes first"""
        best = None
        for task, price in zip(rows[robot], prices[robot]):
            if price == np.inf:
                break
            if task not in taken:
                if best is not None:
                    return best[0] - price, *best
                best = price, task
        return best and (-np.inf, *best)

    queue = []
    for robot in range(len(rows)):
        if found := regret(robot):
            queue.append((*found[:2], robot))
    heapq.heapify(queue)
    while queue:
        *before, robot = heapq.heappop(queue)
        found = regret(robot)
        if found is None:
            continue
        if list(found[:2]) != before:  # tasks that it wanted are gone
            heapq.heappush(queue, (*found[:2], robot))
            continue
        chosen[robot] = found[2]
        taken.add(found[2])
    return chosen


def _seeds(costs, tasks, chosen):
    """Robots, those first that are farthest from what they would like best; who has none comes before all."""
    paid = np.where(tasks == chosen[:, None], costs, np.inf).min(axis=1)
    best = np.where(np.isfinite(costs[:, 0]), costs[:, 0], 0.0)
    wanting = np.isfinite(costs[:, 0])
    return np.flatnonzero(wanting)[np.argsort(-(paid - best)[wanting], kind="stable")]


def _around(seed, tasks, costs, wants, window):
    """Up to `window` robots that want what a robot wants, or what these want, and so on."""
    found, queue = {int(seed): None}, [int(seed)]
    for robot in queue:
        for task in tasks[robot][np.isfinite(costs[robot])].tolist():
            for other in wants[task]:
                if other not in found:
                    if len(found) == window:
                        return np.array(list(found))
                    found[other] = None
                    queue.append(other)
    return np.array(list(found))


def _choose_anew(robots, tasks, costs, chosen):
    """Choose the best tasks for some robots (K,) among those that no other robot has."""
    from scipy.optimize import linear_sum_assignment

    others = np.ones(len(tasks), bool)
    others[robots] = False
    held = chosen[others]
    free = np.isfinite(costs[robots]) & ~np.isin(tasks[robots], held[held != NONE])
    row, col = np.nonzero(free)
    if not len(row):
        return
    columns, column = np.unique(tasks[robots][row, col], return_inverse=True)
    price = costs[robots][row, col]
    price = price - price.min()
    table = np.full((len(robots), len(columns)), (len(robots) + 1) * (price.max() + 1.0))  # dearer than all others
    table[row, column] = price
    allowed = np.zeros(table.shape, bool)
    allowed[row, column] = True
    mine, its = linear_sum_assignment(table)
    right = allowed[mine, its]
    chosen[robots] = NONE
    chosen[robots[mine[right]]] = columns[its[right]]
