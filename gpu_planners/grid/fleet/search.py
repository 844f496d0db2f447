"""First plans: ways that are spread over the map, and LaCAM for each part of the map that is connected in itself."""

import time

import numpy as np

from . import lacam, spread

LOOPS = 20_000  # agents moved between two looks at the clock
SPREADS = 64  # ways spread out between two looks at the clock
MOST_SPREADS = 4  # rounds
FIRST_NODES = 512  # of a tree
NODE_ARRAYS, LOW_ARRAYS = ("place", "order", "parent", "head", "tail"), ("up", "agent", "tile", "depth", "next")


def spread_out(instance, until, seed, memory_limit_bytes):
    """Mark a way for each agent, so that few of them meet, as long as the time and the memory allow."""
    n, tiles = len(instance.start), len(instance.place)
    steps = int(instance.alone.max(initial=0)) + spread.MARGIN
    if not (instance.goal >= 0).any() or spread.crowd_bytes(n, tiles, steps) > memory_limit_bytes:
        return
    crowd, front = spread.new_crowd(n, tiles, steps), spread.new_front(tiles)
    agents = instance.start, instance.goal, instance.field, instance.alone, instance.nearer
    rng, before = np.random.default_rng(seed), None
    for round_ in range(MOST_SPREADS):
        order, meetings = rng.permutation(n).astype(np.int32), 0
        for begin in range(0, n, SPREADS):
            end = min(begin + SPREADS, n)
            meetings += spread.spread(order, begin, end, round_, *agents, crowd, front, instance.ground)
            if time.perf_counter() > until:
                break
        if meetings == 0 or time.perf_counter() > until or (round_ > 1 and meetings > 0.9 * before):
            break
        before = meetings
    spread.mark_ways(crowd, instance.field, instance.nearer, instance.ground.near)


def first_plan(instance, model, until, seed, memory_limit_bytes):
    """-> (steps + 1, N) int32 tiles, -1 where an agent is not on the map; a text"""
    part = np.where(instance.start >= 0, instance.ground.part[instance.start], -1)
    plans, message = [], "solved"
    for which in np.unique(part[(part >= 0) & (instance.goal >= 0)]):
        agents = np.flatnonzero(part == which)
        tiles, ended = _search(instance, agents, model, until, seed, memory_limit_bytes)
        plans.append((agents, tiles))
        if ended != "solved":
            message = ended
    steps = max((len(tiles) for _, tiles in plans), default=1)
    whole = np.repeat(instance.start[None], steps, axis=0)
    for agents, tiles in plans:
        whole[: len(tiles), agents] = tiles
        whole[len(tiles) :, agents] = tiles[-1]
    return whole, message


def _search(instance, agents, model, until, seed, memory_limit_bytes):
    """LaCAM for agents of one part of the map -> (steps + 1, agents) int32 tiles, how it ended."""
    n = len(agents)
    first = np.argsort(-instance.alone[agents], kind="stable").astype(np.int32)
    task = lacam.Task(
        instance.goal[agents], instance.field[agents], instance.nearer, first, model.following, True, model.turning
    )
    scratch = lacam.new_scratch(n, len(instance.place))
    count = np.zeros(7, np.int64)
    count[lacam.RANDOM] = np.random.default_rng(seed).integers(1, 2**62)
    tree = new_tree(n)
    lacam.begin(instance.start[agents], tree, task, count)
    ended, loops = lacam.MORE, max(1, LOOPS // n)
    while ended in (lacam.MORE, lacam.FULL):
        ended = lacam.search(loops, tree, task, instance.ground, scratch, count)
        if ended == lacam.FULL:
            if 2 * sum(array.nbytes for array in tree) > memory_limit_bytes:
                break
            tree = _grown(tree, count)
        elif ended == lacam.MORE and time.perf_counter() > until:
            break
    node, nodes = int(count[lacam.BEST]), []
    while node >= 0:
        nodes.append(node)
        node = int(tree.parent[node])
    message = {
        lacam.SOLVED: "solved",
        lacam.EXHAUSTED: "no plan exists in which every agent reaches its goal",
        lacam.MORE: "the time limit was reached before every agent could reach its goal",
        lacam.FULL: f"memory_limit_bytes, {memory_limit_bytes}, was reached before every agent could reach its goal",
    }
    return tree.place[nodes[::-1]], message[ended]


def new_tree(agents):
    def numbers(*shape):
        return np.empty(shape, np.int32)

    m, low = FIRST_NODES, 8 * FIRST_NODES
    nodes = numbers(m, agents), numbers(m, agents), numbers(m), numbers(m), numbers(m)
    table = np.full(4 * m, -1, np.int32)
    return lacam.Tree(*nodes, *(numbers(low) for _ in range(5)), table, numbers(2 * m))


def _grown(tree, count):
    """The tree with twice the room for whatever is nearly full."""
    wanted = {}
    for names, used in ((NODE_ARRAYS, lacam.NODES), (LOW_ARRAYS, lacam.LOWS), (("stack",), lacam.DEPTH)):
        for name in names:
            array = getattr(tree, name)
            if count[used] + 8 > len(array):
                wanted[name] = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
                wanted[name][: count[used]] = array[: count[used]]
    tree = tree._replace(**wanted)
    if 2 * count[lacam.NODES] + 16 > len(tree.table):
        tree = tree._replace(table=np.full(2 * len(tree.table), -1, np.int32))
        lacam.rehash(tree, count[lacam.NODES])
    return tree
