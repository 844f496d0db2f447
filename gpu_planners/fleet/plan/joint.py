"""The plan of least costs for a few agents: A* over the places and headings of all of them together.

An agent at its goal may settle: it stays there for good and costs nothing more; any other one costs a step each. So
paths in this space cost what the plan does, and the sum of each agent's steps to its goal alone bounds what is left.
Between the plan that is known and this bound there are only so many sums of costs, which buckets keep apart. A node
is expanded for one of them at a time (partial expansion; Yoshizumi, Miura and Ishida, AAAI 2000), so that of all that
many agents can do only what is cheap is looked at. If the search ends without a better plan, the known one is optimal.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from ...parallel.team import NEVER
from ..fields.next_hops import Ground, search_back

MOST_AGENTS = 16
MOST_TRIES = 4_000_000  # of one expansion: a search that needs more is given up
MOST_STATES = 1 << 24  # of all agents alone
MOST_BUCKETS = 1 << 16
FIRST_NODES = 1 << 12
FOUND, NONE, MORE, FULL = range(4)
DONE, NO_ROOM, TOO_MANY = range(3)  # how an expansion ended
(NODES, NOW, TRIED, LATER) = range(4)  # places in `count`


class Team(NamedTuple):
    """Agents that plan together; a code of an agent is 2 (headings tile + heading) + settled."""

    goal: np.ndarray  # (K,) int32 tiles, -1 none
    left: np.ndarray  # (K, headings T + 1) int32 steps that are left alone; 0 without a goal
    ground: Ground
    headings: int  # 1 or 4
    following: bool
    bound: int  # the sum of costs of a plan that is known


class Front(NamedTuple):
    """M nodes."""

    code: np.ndarray  # (M, K) int32
    cost: np.ndarray  # (M,) int32
    up: np.ndarray  # (M,) int32 parent
    next: np.ndarray  # (M,) int32 in its bucket
    table: np.ndarray  # (2 M,) int32 nodes by their hash, -1 none
    bucket: np.ndarray  # (B,) int32 lists of nodes by the least sum of costs, from that of the start on
    trial: np.ndarray  # (5, K + 1) int64 scratch: options, codes, tiles before and after, sums


class JointSearch:
    """A search for agents (K,) of an instance, in one part of the map, that can be continued.

    faces: (N,) int32 headings; bound: the sum of costs of a plan that is known; only better ones are looked for
    proves: is that plan optimal if there is none?
    """

    def __init__(self, instance, agents, faces, model, bound):
        goal, headings = instance.goal[agents], 4 if model.turning else 1
        before = _states_before(instance.ground.neighbour, headings)
        left = np.zeros((len(agents), len(before)), np.int32)
        _plan_steps(goal, headings, before, left)
        state = headings * instance.start[agents] + (faces[agents] if model.turning else 0)
        least = int(left[np.arange(len(agents)), state].sum())
        self.proves = bound - least <= MOST_BUCKETS
        bound = min(bound, least + MOST_BUCKETS)
        self._team = Team(goal, left, instance.ground, headings, model.following, bound)
        m, k = FIRST_NODES, len(agents)
        arrays = (np.empty(shape, np.int32) for shape in ((m, k), m, m, m))
        bucket = np.full(max(bound - least, 0), -1, np.int32)
        self._front = Front(*arrays, np.full(2 * m, -1, np.int32), bucket, np.zeros((5, k + 1), np.int64))
        self._count = np.zeros(4, np.int64)
        if len(bucket):
            self._front.code[0], self._front.cost[0], self._front.up[0] = 2 * state, 0, -1
            self._front.next[0], bucket[0] = -1, 0
            self._front.table[_slot(self._front.code[0], self._front)] = 0
            self._count[NODES] = 1
        self._end = -1

    @staticmethod
    def suits(instance, agents, model):
        """Are these few enough, on a map that is small enough?"""
        states = (4 if model.turning else 1) * len(instance.ground.neighbour) * len(agents)
        return len(agents) <= MOST_AGENTS and states <= MOST_STATES

    def go_on(self, tries, memory_limit_bytes):
        """Try so many moves of an agent -> FOUND, NONE: there is no better plan, MORE, or FULL: it needs more memory or
        too much time for one state"""
        self._count[TRIED] = 0
        while True:
            ended, self._end = search(tries, self._team, self._front, self._count)
            has_room = self._count[NODES] < len(self._front.code)
            if ended != FULL or has_room or 2 * sum(array.nbytes for array in self._front) > memory_limit_bytes:
                return ended
            self._grow()

    def _grow(self):
        front, count = self._front, int(self._count[NODES])
        grown = {}
        for name in ("code", "cost", "up", "next"):
            array = getattr(front, name)
            grown[name] = np.empty((2 * len(array), *array.shape[1:]), np.int32)
            grown[name][:count] = array[:count]
        self._front = front._replace(table=np.full(2 * len(front.table), -1, np.int32), **grown)
        fill_table(count, self._front)

    @property
    def cost(self):
        """The sum of costs of the plan that was found."""
        return int(self._front.cost[self._end])

    def tiles(self):
        """The plan that was found -> (steps + 1, K) int32"""
        node, nodes = self._end, []
        while node >= 0:
            nodes.append(node)
            node = int(self._front.up[node])
        return self._front.code[nodes[::-1]] // (2 * self._team.headings)


def _states_before(neighbour, headings):
    """(T + 1, 4) neighbours -> (headings T + 1, 4) int32, `before` of `search_back`"""
    if headings == 1:
        return neighbour
    none = 4 * (len(neighbour) - 1)
    tile, heading = np.divmod(np.arange(none), 4)
    before = np.full((none + 1, 4), none, np.int32)
    before[:-1, 0] = np.minimum(4 * neighbour[tile, (heading + 2) % 4] + heading, none)
    before[:-1, 1:3] = 4 * tile[:, None] + (heading[:, None] + [1, 3]) % 4
    return before


@njit
def _plan_steps(goals, headings, before, left):
    """Write left (K, headings T + 1): steps to each goal from every state, alone."""
    queue = np.empty(left.shape[1], np.int32)
    for k in range(len(goals)):
        if goals[k] >= 0:
            search_back(np.int64(goals[k]), headings, before, left[k], queue, NEVER)


@njit
def _slot(code, front):
    """The place of a state in the table, free where it is not known."""
    mask, h = len(front.table) - 1, np.uint64(1469598103934665603)
    for k in range(len(code)):
        h = (h ^ np.uint64(code[k])) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    slot = np.int64(h >> np.uint64(1)) & mask
    while front.table[slot] >= 0:
        other, same = front.table[slot], True
        for k in range(len(code)):
            same &= front.code[other, k] == code[k]
        if same:
            break
        slot = (slot + 1) & mask
    return slot


@njit
def fill_table(nodes, front):
    for node in range(nodes):
        slot = _slot(front.code[node], front)
        if front.table[slot] < 0 or front.cost[front.table[slot]] > front.cost[node]:
            front.table[slot] = node


@njit
def search(tries, team, front, count):
    """-> as of JointSearch.go_on; the last node of the plan that was found"""
    agents = len(team.goal)
    while count[NOW] < len(front.bucket):
        node = front.bucket[count[NOW]]
        if node < 0:
            count[NOW] += 1
            continue
        if count[TRIED] > tries:
            return MORE, -1
        front.bucket[count[NOW]] = front.next[node]
        if front.table[_slot(front.code[node], front)] != node:
            continue  # a cheaper path to it was found
        done = True
        for k in range(agents):
            done &= team.goal[k] < 0 or front.code[node, k] // (2 * team.headings) == team.goal[k]
        if done:
            return FOUND, node
        ended = _expand(node, team, front, count)
        place = count[NOW] if ended == NO_ROOM else count[LATER]
        if place < len(front.bucket):
            front.next[node], front.bucket[place] = front.bucket[place], node
        if ended != DONE:
            return FULL, -1
    return NONE, -1


@lean_njit
def _expand(node, team, front, count):
    """Enter the states after one step whose bound of all costs is that of count[NOW], and write to count[LATER] the
    place of the next higher one. -> how it ended"""
    agents, headings, trial = len(team.goal), team.headings, front.trial
    option, code, old, new, total = trial[0], trial[1], trial[2], trial[3], trial[4]
    rest = np.int64(front.cost[node])
    for k in range(agents):
        state = front.code[node, k] // 2
        old[k] = state // headings
        rest += 0 if front.code[node, k] & 1 else team.left[k, state]
    total[0], option[0], k = rest, -1, 0
    least, began = team.bound - len(front.bucket), count[TRIED]
    now = least + count[NOW]
    count[LATER] = len(front.bucket)
    while k >= 0:
        option[k] += 1
        count[TRIED] += 1
        if count[TRIED] - began > MOST_TRIES:
            return TOO_MANY
        if option[k] == 6:
            k -= 1
            continue
        price = _take(k, option[k], front.code[node, k], team, code)
        if price < 0:
            continue
        if total[k] + price > now:
            count[LATER] = min(count[LATER], total[k] + price - least)
            continue
        new[k] = code[k] // (2 * headings)
        if not _fits(k, agents, old, new, team.following):
            continue
        if k + 1 < agents:
            total[k + 1], option[k + 1] = total[k] + price, -1
            k += 1
        elif total[k] + price == now and not _enter(node, team, front, count):
            return NO_ROOM
    return DONE


@lean_njit
def _take(k, option, now, team, code):
    """Write code[k], agent k's after an option: settle, wait, move or turn. -> by how much the bound of all costs
    rises, or -1 where it cannot do so"""
    headings, goal, state = team.headings, team.goal[k], now // 2
    tile, heading = state // headings, state % headings
    if now & 1:
        code[k] = now
        return 0 if option == 0 else -1
    before = np.int64(team.left[k, state])
    if option == 0:
        code[k] = now + 1
        return 0 if tile == goal else -1
    after = np.int64(state)
    if option > 1:
        direction = option - 2
        if headings == 1 or direction == 0:
            there = team.ground.neighbour[tile, direction if headings == 1 else heading]
            if there == len(team.ground.neighbour) - 1:
                return -1
            after = headings * np.int64(there) + heading
        elif direction == 3:
            return -1
        else:
            after = 4 * np.int64(tile) + (heading + (1 if direction == 1 else 3)) % 4
    code[k] = 2 * after
    return 0 if goal < 0 else 1 + np.int64(team.left[k, after]) - before


@lean_njit
def _fits(k, agents, old, new, following):
    """Does agent k, on tile new[k], meet none of those before it, and does it enter nobody's tile too early?"""
    for j in range(agents):
        if j < k and (new[j] == new[k] or (new[j] == old[k] and new[k] == old[j])):
            return False
        if not following and j != k and new[k] == old[j]:
            return False
    return True


@lean_njit
def _enter(node, team, front, count):
    """Enter the state in front.trial[1], whose bound of all costs is that of count[NOW]. -> was there room?"""
    agents, number = len(team.goal), count[NODES]
    if number == len(front.code):
        return False
    cost = np.int64(front.cost[node])
    for k in range(agents):
        front.code[number, k] = front.trial[1, k]
        cost += team.goal[k] >= 0 and (front.trial[1, k] & 1) == 0
    slot = _slot(front.code[number], front)
    other = front.table[slot]
    if other >= 0 and front.cost[other] <= cost:
        return True
    place = count[NOW]
    front.cost[number], front.up[number], front.table[slot] = cost, node, number
    front.next[number], front.bucket[place] = front.bucket[place], number
    count[NODES] = number + 1
    return True
