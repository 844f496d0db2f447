"""RRT* as Karaman and Frazzoli write it (IJRR 2011, algorithm 6), serial, plain numpy, float64: what the planner's
costs are compared with. Nothing here comes from gpu_planners."""

import math

import numpy as np


def least_gamma(measure, dof):
    """Their bound (theorem 38) for a free space of at most this measure."""
    ball = math.pi ** (dof / 2) / math.gamma(dof / 2 + 1)
    return (2 * (1 + 1 / dof)) ** (1 / dof) * (measure / ball) ** (1 / dof)


def rrt_star(start, goal, lower, upper, free, samples, seed, factor=1.1, goal_bias=0.05):
    """free(a, b): (N, dof), (N, dof) -> (N,) bool.  -> (samples,) cost of the best path to the goal after each
    sample."""
    rng = np.random.default_rng(seed)
    start, goal, lower, upper = (np.asarray(v, dtype=np.float64) for v in (start, goal, lower, upper))
    gamma = factor * least_gamma(np.prod(upper - lower), len(start))
    V, cost = np.empty((samples + 1, len(start))), np.full(samples + 1, np.inf)
    V[0], cost[0], n, parent, children = start, 0.0, 1, {0: -1}, {0: set()}
    at_goal, history = None, np.full(samples, np.inf)

    def lower_cost(i, saved):
        waiting = [i]
        while waiting:
            j = waiting.pop()
            cost[j] -= saved
            waiting += children[j]

    for s in range(samples):
        x = goal if at_goal is None and rng.random() < goal_bias else rng.uniform(lower, upper)
        d = np.linalg.norm(V[:n] - x, axis=1)
        nearest = d.argmin()
        if free(V[nearest][None], x[None])[0]:
            near = np.union1d(np.flatnonzero(d <= gamma * (math.log(n) / n) ** (1 / len(x))), [nearest])
            reach = near[free(V[near], np.repeat(x[None], len(near), axis=0))]
            best = reach[(cost[reach] + d[reach]).argmin()]
            V[n], cost[n], parent[n], children[n] = x, cost[best] + d[best], best, set()
            children[best].add(n)
            for u in reach:
                if cost[n] + d[u] < cost[u] - 1e-12:
                    children[parent[u]].remove(u)
                    children[n].add(u)
                    parent[u] = n
                    lower_cost(u, cost[u] - (cost[n] + d[u]))
            if x is goal:
                at_goal = n
            n += 1
        if at_goal is not None:
            history[s] = cost[at_goal]
    return history
