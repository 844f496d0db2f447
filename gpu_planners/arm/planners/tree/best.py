"""The best path of a tree, and how many of its nodes lie where a better one may pass."""

from ....device import lean_njit
from ....parallel.team import clock_ns, lane_count, least_lane, meet, sum_lanes
from ..node_store import FAR
from .state import apart, cost_of, first_node


@lean_njit
def look(job):
    """Find the cheapest node that is a goal or lies in a goal's region, and count the nodes of the informed set.

    After the deadline the best node so far is enough, and nobody needs the count.
    """
    g, worker = job.growth, job.worker
    n, lane = g.board.count[0], worker.lane
    best, node = best_of_worker(job, n)
    if lane == 0:
        g.looks.cost[worker.number], g.looks.node[worker.number] = best, node
    meet(worker)
    if worker.number == 0:
        best, node = FAR, -1
        for w in range(lane, worker.count, lane_count()):
            if g.looks.cost[w] < best or (g.looks.cost[w] == best and g.looks.node[w] < node):
                best, node = g.looks.cost[w], g.looks.node[w]
        best, node = least_lane(best, node)
        if lane == 0:
            g.board.best[0], g.board.best_node[0] = best, node
    if not g.ask.informed:
        return
    meet(worker)
    inside = inside_of_worker(job, n)
    if lane == 0:
        g.looks.inside[worker.number] = inside
    meet(worker)
    if worker.number == 0:
        inside = 0
        for w in range(lane, worker.count, lane_count()):
            inside += g.looks.inside[w]
        inside = sum_lanes(inside)
        if lane == 0:
            g.board.inside[0], g.board.looked[0] = inside, n


@lean_njit
def best_of_worker(job, n):
    """-> the least cost, and its node, among the best one so far and this worker's part of the first n nodes."""
    g, worker, start = job.growth, job.worker, first_node(job.growth)
    best, node = FAR, g.board.best_node[0]
    if node >= 0:
        best = cost_of(g, node)
    for i in range(worker.number * lane_count() + worker.lane, n, worker.count * lane_count()):
        if (i < g.ask.goals or i >= start) and g.tree.region[i] >= 0:
            cost = cost_of(g, i)
            if cost < best or (cost == best and i < node):
                best, node = cost, i
            if i >= start and clock_ns() > job.deadline:
                break
    return least_lane(best, node)


@lean_njit
def inside_of_worker(job, n):
    """How many of this worker's part of the first n nodes lie in the informed set."""
    g, worker, start, inside = job.growth, job.worker, first_node(job.growth), 0
    for i in range(start + worker.number * lane_count() + worker.lane, n, worker.count * lane_count()):
        if clock_ns() > job.deadline:
            break
        for goal in range(g.ask.goals):
            if apart(g, i, start) + apart(g, i, goal) <= g.board.best[0] + g.measures.goal_radius:
                inside += 1
                break
    return sum_lanes(inside)
