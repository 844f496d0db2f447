"""LaCAM: a search over the places of all agents together (Okumura, AAAI 2023; IJCAI 2023; AAMAS 2024).

A node is a configuration: where every agent is. PIBT makes its successors one at a time: it moves all agents one step
(moves.py), each time under other constraints on the first few agents, which a breadth-first search enumerates. The
search over nodes is depth-first and goes on from a configuration that it meets again, so it is complete: whatever can
be solved is solved, given time and memory. Departure: priorities are a list of agents, not numbers that are sorted.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from ...parallel.team import NEVER
from ..clock import fits
from ..fields.next_hops import NOBODY
from .fleet_plan import NO_PLAN, OUT_OF_TIME
from .moves import UNDECIDED, Step, Task, chance, has_ring, move, new_mover

SOLVED, EXHAUSTED, MORE, FULL, LATE = range(5)
(NODES, LOWS, DEPTH, BEST, BEST_AWAY) = range(5)  # places in `count`
LOOPS = 20_000  # agents moved between two checks of the clock
FIRST_LOOKS = 5  # for each part of the map, before a proof is looked for that it has no plan
FIRST_NODES = 512  # of a tree
NODE_ARRAYS = ("place", "order", "parent", "head", "tail")  # of Tree, by node
LOW_ARRAYS = ("up", "agent", "tile", "depth", "next")  # of Tree, by constraint


class Tree(NamedTuple):
    """M nodes, L constraints."""

    place: np.ndarray  # (M, N) int32 tiles
    order: np.ndarray  # (M, N) int32 agents by priority
    parent: np.ndarray  # (M,) int32
    head: np.ndarray  # (M,) int32 the first constraint that a node has still to try
    tail: np.ndarray  # (M,) int32 the last one
    up: np.ndarray  # (L,) int32 the constraint that it extends
    agent: np.ndarray  # (L,) int32 whom it sends
    tile: np.ndarray  # (L,) int32 where to
    depth: np.ndarray  # (L,) int32 how many agents it sends, with those of `up`
    next: np.ndarray  # (L,) int32 the one that is tried after it
    table: np.ndarray  # (H,) int32 nodes by their hash, -1 none; H a power of two
    stack: np.ndarray  # (S,) int32 nodes, the last one is expanded next
    first: np.ndarray  # (N,) int32 agents by priority at the start
    goal: np.ndarray  # (N,) int32 tiles, -1 none


def first_plan(instance, model, deadline, seed, memory_limit_bytes):
    """-> (steps + 1, N) int32 tiles, -1 where an agent is not on the map; a text. Notes in instance.hopeless whom no
    plan serves; then the rest is not planned to its end."""
    paths, open_, endings = {}, {}, {}
    for part, agents in enumerate(instance.parts()):
        search, ended = TreeSearch(instance, agents, model, seed), MORE
        for _ in range(FIRST_LOOKS):
            if ended == MORE:
                ended = search.look(memory_limit_bytes, deadline, len(instance.start))
        paths[part], endings[part] = (agents, search.tiles()), ended
        if ended == EXHAUSTED:
            instance.hopeless[agents] = True
        elif ended != SOLVED:
            open_[part] = search
    for part in open_:
        if instance.refuse(paths[part][0], model.following, deadline):
            endings[part] = EXHAUSTED
    while not instance.hopeless.any() and any(endings[part] == MORE for part in open_):
        for part, search in open_.items():
            if endings[part] == MORE:
                ended = search.look(memory_limit_bytes // len(open_), deadline, len(instance.start))
                endings[part] = LATE if ended == MORE and search.late else ended
                instance.hopeless[paths[part][0]] = ended == EXHAUSTED
    for part, search in open_.items():
        paths[part] = paths[part][0], search.tiles()
    message = "solved"
    for ending, text in (
        (FULL, f"memory_limit_bytes, {memory_limit_bytes}, was reached before every agent could reach its goal"),
        (MORE, OUT_OF_TIME),
        (LATE, OUT_OF_TIME),
        (EXHAUSTED, NO_PLAN),
    ):
        message = text if ending in endings.values() else message
    whole = np.repeat(instance.start[None], max((len(tiles) for _, tiles in paths.values()), default=1), axis=0)
    for agents, tiles in paths.values():
        whole[: len(tiles), agents] = tiles
        whole[len(tiles) :, agents] = tiles[-1]
    return whole, message


class TreeSearch:
    """LaCAM for agents (K,) of an instance, in one part of the map; a search that can be continued.

    first: (K,) int who goes first, as places in `agents`; None: whose goal is farthest
    """

    def __init__(self, instance, agents, model, seed, first=None):
        if first is None:
            first = np.argsort(-instance.alone[agents], kind="stable")
        goal, field = instance.goal[agents], instance.field[agents]
        task = Task(goal, field, instance.next_hops, model.following, True, model.turning, True)
        self._mover = new_mover(task, instance.ground, np.random.default_rng(seed).integers(1, 2**62))
        self._count, self._tree = np.zeros(5, np.int64), new_tree(first.astype(np.int32), goal)
        self._tree.place[0] = instance.start[agents]
        self._loops, self._cell_ns, self.late = max(1, LOOPS // len(agents)), model.cell_ns, False
        self._lanes_end = int(instance.alone[agents].max(initial=0))  # who is left then may have to go against lanes
        begin(self._tree, self._count)
        self._away = int(self._count[BEST_AWAY])

    @property
    def nodes(self):
        return int(self._count[NODES])

    @property
    def gets_on(self):
        """Is there a configuration in which more agents are at their goals than at the start?"""
        return int(self._count[BEST_AWAY]) < self._away

    def look(self, memory_limit_bytes, deadline, agents):
        """Go on for a while, unless that left no time to tell of a plan for so many agents. -> as of `go_on`

        late: is there no time left? Then it ended with MORE
        """
        self.late = not fits(deadline, self._cell_ns * self.nodes * agents)
        return MORE if self.late else self.go_on(self._loops, memory_limit_bytes, deadline)

    def go_on(self, loops, memory_limit_bytes, deadline=NEVER):
        """-> SOLVED, EXHAUSTED, MORE after so many loops or without time for a larger tree, or FULL"""
        if self.nodes > self._lanes_end:
            self._mover = self._mover._replace(task=self._mover.task._replace(lanes=False))
        ended = search(loops, self._tree, self._mover, self._count)
        while ended == FULL and 2 * (size := sum(array.nbytes for array in self._tree)) <= memory_limit_bytes:
            if not fits(deadline, size):  # a nanosecond a byte
                return MORE
            self._tree = _grown(self._tree, self._count)
            ended = search(loops, self._tree, self._mover, self._count)
        return ended

    def tiles(self):
        """-> (steps + 1, K) int32 tiles, up to the configuration in which most agents are at their goals"""
        node, nodes = int(self._count[BEST]), []
        while node >= 0:
            nodes.append(node)
            node = int(self._tree.parent[node])
        return self._tree.place[nodes[::-1]]


def new_tree(first, goal):
    """first, goal: of Tree"""
    m, n = FIRST_NODES, len(first)
    place, order = np.empty((m, n), np.int32), np.empty((m, n), np.int32)
    arrays = (np.empty(size, np.int32) for size in (m, m, m, *5 * (8 * m,)))
    table, stack = np.full(4 * m, -1, np.int32), np.empty(2 * m, np.int32)
    return Tree(place, order, *arrays, table, stack, first, goal)


def _grown(tree, count):
    """The tree with twice the room wherever it is nearly full."""
    wanted = {}
    for names, used in ((NODE_ARRAYS, NODES), (LOW_ARRAYS, LOWS), (("stack",), DEPTH)):
        for name in names:
            array = getattr(tree, name)
            if count[used] + 8 > len(array):
                wanted[name] = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
                wanted[name][: count[used]] = array[: count[used]]
    tree = tree._replace(**wanted)
    if 2 * count[NODES] + 16 > len(tree.table):
        tree = tree._replace(table=np.full(2 * len(tree.table), -1, np.int32))
        rehash(tree, count[NODES])
    return tree


@lean_njit
def _successor(node, low, then, tree, mover):
    """Move all agents of a node's configuration one step, under a constraint. -> could all be moved?"""
    step = Step(then, tree.place[node], tree.place[max(0, tree.parent[node])])
    agents, fine, now = len(then), True, step.now
    then[:] = UNDECIDED
    for a in range(agents):
        mover.now[now[a]] = a
    while low >= 0 and tree.depth[low] > 0 and fine:
        a, there = tree.agent[low], tree.tile[low]
        other = mover.now[there]
        swaps = other != NOBODY and other != a and then[other] == now[a]
        if mover.then[there] != NOBODY or swaps:
            fine = False
        else:
            mover.then[there], then[a] = a, there
            low = tree.up[low]
    for k in range(agents):
        a = tree.order[node, k]
        if fine and then[a] == UNDECIDED:
            fine = move(a, mover, step)
    if fine and not mover.task.rings:
        fine = not has_ring(mover, step)
    for a in range(agents):
        mover.now[now[a]] = NOBODY
        if then[a] != UNDECIDED:
            mover.then[then[a]] = NOBODY
        mover.then[now[a]] = NOBODY
    return fine


@lean_njit
def _hash(node, tree):
    h, place = np.uint64(1469598103934665603), tree.place[node]
    for a in range(len(place)):
        x = (np.uint64(a) << np.uint64(32)) ^ np.uint64(place[a])
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        h += x ^ (x >> np.uint64(31))
    return np.int64(h >> np.uint64(1))


@lean_njit
def _same(row, other):
    for a in range(len(row)):
        if other[a] != row[a]:
            return False
    return True


@lean_njit
def _slot(node, tree):
    """The place of a node's configuration in the table, free where it is not known."""
    mask = len(tree.table) - 1
    slot = _hash(node, tree) & mask
    while tree.table[slot] >= 0:
        if _same(tree.place[node], tree.place[tree.table[slot]]):
            return slot
        slot = (slot + 1) & mask
    return slot


@lean_njit
def _add_low(node, up, agent, tile, depth, tree, count):
    low = count[LOWS]
    count[LOWS] += 1
    tree.up[low], tree.agent[low], tree.tile[low], tree.depth[low], tree.next[low] = up, agent, tile, depth, -1
    if tree.head[node] < 0:
        tree.head[node] = low
    else:
        tree.next[tree.tail[node]] = low
    tree.tail[node] = low


@lean_njit
def _is_away(a, node, tree):
    return tree.goal[a] >= 0 and tree.place[node, a] != tree.goal[a]


@lean_njit
def _add_node(slot, parent, tree, count):
    """Make a node of the configuration in row count[NODES] of the tree."""
    node = count[NODES]
    count[NODES] += 1
    place, order = tree.place[node], tree.order[node]
    tree.parent[node], tree.head[node], tree.table[slot] = parent, -1, node
    before = tree.first if parent < 0 else tree.order[parent]
    away = 0
    for k in range(len(place)):
        a = before[k]
        if _is_away(a, node, tree):
            order[away] = a
            away += 1
    last = away
    for k in range(len(place)):
        a = tree.first[k]
        if not _is_away(a, node, tree):
            order[last] = a
            last += 1
    if away < count[BEST_AWAY]:
        count[BEST], count[BEST_AWAY] = node, away
    nobody = np.int64(-1)
    _add_low(node, nobody, nobody, nobody, np.int64(0), tree, count)
    return node


@njit
def begin(tree, count):
    """Begin a tree with the configuration of the start, which is in tree.place[0]."""
    count[BEST_AWAY] = len(tree.first) + 1
    node = _add_node(_slot(np.int64(0), tree), np.int64(-1), tree, count)
    tree.stack[0], count[DEPTH] = node, 1


@njit
def rehash(tree, nodes):
    for node in range(nodes):
        tree.table[_slot(np.int64(node), tree)] = node


@njit
def search(loops, tree, mover, count):
    """Continue for so many loops -> SOLVED, EXHAUSTED, MORE, or FULL: the tree needs more memory"""
    agents, ground = tree.place.shape[1], mover.ground
    blocked = len(ground.neighbour) - 1
    for _ in range(loops):
        if count[BEST_AWAY] == 0:
            return SOLVED
        if count[DEPTH] == 0:
            return EXHAUSTED
        if (
            count[NODES] == len(tree.place)
            or count[LOWS] + 6 > len(tree.up)
            or count[DEPTH] == len(tree.stack)
            or 2 * count[NODES] > len(tree.table)
        ):
            return FULL
        node = tree.stack[count[DEPTH] - 1]
        low = tree.head[node]
        if low < 0:
            count[DEPTH] -= 1
            continue
        tree.head[node] = tree.next[low]
        depth = tree.depth[low]
        if depth < agents:
            a = tree.order[node, depth]
            at, turn = tree.place[node, a], chance(mover.random) % 5
            for k in range(5):
                direction = (k + turn) % 5
                there = at if direction == 4 else ground.neighbour[at, direction]
                if there != blocked:
                    _add_low(np.int64(node), np.int64(low), np.int64(a), np.int64(there), depth + 1, tree, count)
        then = tree.place[count[NODES]]
        if not _successor(node, low, then, tree, mover):
            continue
        slot = _slot(np.int64(count[NODES]), tree)
        known = tree.table[slot]
        if known < 0:
            known = _add_node(slot, np.int64(node), tree, count)
        tree.stack[count[DEPTH]] = known
        count[DEPTH] += 1
    return MORE
