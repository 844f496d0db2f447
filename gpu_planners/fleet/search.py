"""First plans: ways that are spread over the map, and LaCAM for each part of the map that is connected in itself."""

import numpy as np

from ..parallel.team import NEVER
from . import lacam, spread
from .clock import fits, late

LOOPS = 20_000  # agents moved between two looks at the clock
SPREADS = 64  # ways spread out between two looks at the clock
MOST_SPREADS = 4  # rounds
FIRST_NODES = 512  # of a tree
OUT_OF_TIME = "the time limit was reached before every agent could reach its goal"
NODE_ARRAYS, LOW_ARRAYS = ("place", "order", "parent", "head", "tail"), ("up", "agent", "tile", "depth", "next")


def spread_out(instance, deadline, seed, memory_limit_bytes):
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
            if late(deadline):
                break
        if meetings == 0 or late(deadline) or (round_ > 1 and meetings > 0.9 * before):
            break
        before = meetings
    spread.mark_ways(crowd, instance.field, instance.nearer, instance.ground.near)


def first_plan(instance, model, deadline, seed, memory_limit_bytes):
    """-> (steps + 1, N) int32 tiles, -1 where an agent is not on the map; a text"""
    part = np.where(instance.start >= 0, instance.ground.part[instance.start], -1)
    plans, message = [], "solved"
    for which in np.unique(part[(part >= 0) & (instance.goal >= 0)]):
        agents = np.flatnonzero(part == which)
        tiles, ended = _search(instance, agents, model, deadline, seed, memory_limit_bytes)
        plans.append((agents, tiles))
        if ended != "solved":
            message = ended
    steps = max((len(tiles) for _, tiles in plans), default=1)
    whole = np.repeat(instance.start[None], steps, axis=0)
    for agents, tiles in plans:
        whole[: len(tiles), agents] = tiles
        whole[len(tiles) :, agents] = tiles[-1]
    return whole, message


def _search(instance, agents, model, deadline, seed, memory_limit_bytes):
    """LaCAM for agents of one part of the map -> (steps + 1, agents) int32 tiles, how it ended."""
    search, loops = TreeSearch(instance, agents, model, seed), max(1, LOOPS // len(agents))
    ended = lacam.MORE
    while ended == lacam.MORE and not late(deadline):
        ended = search.go_on(loops, memory_limit_bytes, deadline)
    message = {
        lacam.SOLVED: "solved",
        lacam.EXHAUSTED: "no plan exists in which every agent reaches its goal",
        lacam.MORE: OUT_OF_TIME,
        lacam.FULL: f"memory_limit_bytes, {memory_limit_bytes}, was reached before every agent could reach its goal",
    }
    return search.tiles(), message[ended]


class TreeSearch:
    """LaCAM for agents (K,) of an instance, in one part of the map, that can be gone on with."""

    def __init__(self, instance, agents, model, seed):
        n = len(agents)
        first = np.argsort(-instance.alone[agents], kind="stable").astype(np.int32)
        self._task = lacam.Task(
            instance.goal[agents], instance.field[agents], instance.nearer, first, model.following, True, model.turning
        )
        self._ground, self._scratch = instance.ground, lacam.new_scratch(n, len(instance.place))
        self._count = np.zeros(7, np.int64)
        self._count[lacam.RANDOM] = np.random.default_rng(seed).integers(1, 2**62)
        self._tree = new_tree(n)
        lacam.begin(instance.start[agents], self._tree, self._task, self._count)

    def go_on(self, loops, memory_limit_bytes, deadline=NEVER):
        """-> lacam.SOLVED, EXHAUSTED, MORE after so many loops or without time for a larger tree, or FULL"""
        ended = lacam.search(loops, self._tree, self._task, self._ground, self._scratch, self._count)
        while ended == lacam.FULL and 2 * (size := sum(array.nbytes for array in self._tree)) <= memory_limit_bytes:
            if not fits(deadline, size):  # a nanosecond a byte
                return lacam.MORE
            self._tree = _grown(self._tree, self._count)
            ended = lacam.search(loops, self._tree, self._task, self._ground, self._scratch, self._count)
        return ended

    def tiles(self):
        """-> (steps + 1, K) int32 tiles, to the goals, or to where most agents are at theirs"""
        node, nodes = int(self._count[lacam.BEST]), []
        while node >= 0:
            nodes.append(node)
            node = int(self._tree.parent[node])
        return self._tree.place[nodes[::-1]]


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
