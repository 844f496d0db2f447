"""Which links of a robot never meet, proven from the limits of the joints between them and from lengths.

Let the joints between two shapes stand in the middle of a box of their values. Moving them one after the other to
anywhere in that box brings the shapes nearer by no more than the sum of (half of the box's width) x (lever) over the
joints, since each joint moves what is on its one side as a whole against what is on the other: one that slides by its
way, one that turns by its angle times the greatest distance of the shape on that side from its axis. So where the
shapes' distance in the middle exceeds the sum they are apart in the whole box; else the box is halved along the
variable that counts most. Boxes are halved until all are proven, until the shapes meet in the middle of one, or until
there are too many. What is not proven may meet.
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from ..geometry.gaps import Supports, gaps
from ..geometry.shapes import ConvexShape
from .chains import Bodies, seen_from

CLEARANCE = 1e-4  # metres: shapes that come nearer count as meeting
ROUNDING = 1e-12  # share of the lengths between two shapes
HALVINGS = 13.0  # of the first box on the way to boxes small enough, by what the widths add up to: more take too long
AT_ONCE = 2**12  # boxes of all pairs: those with the most are given up
ROWS = 4096  # boxes that are looked at together: what fits a cache
POSES = 64  # in which links that touch by design have to meet
FEW = [4, 16]  # after so many those that do not are out
PROVEN, HALVE, MAY_MEET = range(3)  # states of a box


class LinkPairs:
    """Pairs of links that move against each other, and all that is between them.

    links: {link: shapes posed in its frame}; pairs: (P,) of their names
    """

    def __init__(
        self, bodies: Bodies, links: Mapping[str, Sequence[ConvexShape]], pairs: Sequence[tuple[str, str]]
    ) -> None:
        shapes: list[ConvexShape] = []
        numbers = {}
        for link, own in links.items():
            numbers[link] = range(len(shapes), len(shapes) + len(own))
            shapes += [shape.moved(bodies.T_body_link[link]) for shape in own]
        both = [
            (p, *two) for p, pair in enumerate(pairs) for two in itertools.product(*(numbers[link] for link in pair))
        ]
        self._pair, self._a, self._b = np.array(both, dtype=int).reshape(-1, 3).T  # of each pair of shapes
        self._supports = Supports(shapes)
        self._chains, self._neutral = bodies.chains([(bodies.of[a], bodies.of[b]) for a, b in pairs])
        self._count = len(pairs)
        self._size = np.bincount(self._pair, minlength=len(pairs))
        self._first = np.cumsum(self._size) - self._size

    def never(self) -> np.ndarray:
        """(P,) bool: do they provably never come nearer than CLEARANCE?"""
        never = np.ones(self._count, bool)
        two = np.argsort(self._chains.joints[self._pair], kind="stable")  # those of few joints together
        pair = self._pair[two]
        middle, half = self._chains.middle[pair], self._chains.half[pair]
        n, done = np.zeros((len(two), 3)), 0
        while len(two):
            pair, parts = self._pair[two], np.split(np.arange(len(two)), range(ROWS, len(two), ROWS))
            looked = [self._look(two[rows], middle[rows], half[rows], n[rows], done) for rows in parts]
            state, column, n = (np.concatenate(part) for part in zip(*looked))
            never[pair[state == MAY_MEET]] = False
            boxes = np.bincount(pair[(state == HALVE) & never[pair]], minlength=self._count)
            fewest = np.argsort(boxes, kind="stable")
            never[fewest[2 * np.cumsum(boxes[fewest]) > AT_ONCE]] = False
            left = (state == HALVE) & never[pair]
            two, column, n, middle, half = two[left], column[left], n[left], middle[left], half[left]
            rows = np.arange(len(two))
            half[rows, column] /= 2
            low, high = middle.copy(), middle
            low[rows, column] -= half[rows, column]
            high[rows, column] += half[rows, column]
            two, n = np.tile(two, 2), np.tile(n, (2, 1))
            middle, half = np.concatenate([low, high]), np.tile(half, (2, 1))
            done += 1
        return never

    def _look(self, two, middle, half, n, done):
        """What becomes of boxes (N, K) of pairs of shapes `two` (N,): -> (states (N,), the variables (N,) to halve
        along, unit vectors (N, 3) between the shapes: in the next look the search begins with them)."""
        a, b, supports, rows = self._a[two], self._b[two], self._supports, np.arange(len(two))
        chains = self._chains.of(self._pair[two])
        k = chains.axis.shape[1]
        placed = chains.placed(middle[:, :k], half[:, :k])
        of_b, ball, radius = placed.levers(supports.centre[b], supports.radius[b])
        ways = placed.half * np.minimum(of_b, placed.levers_of_near(supports.centre[a], supports.radius[a]))
        share = np.zeros_like(ways)  # metres that each variable takes
        for i in range(k):
            share[rows, chains.column[:, i]] += ways[:, i]
        lengths = np.abs(chains.E[:, :, :3, 3]).sum(axis=(1, 2)) + supports.reach[a] + supports.reach[b]
        lengths += np.abs(placed.M[:, :, :3, 3]).sum(axis=(1, 2))
        least = CLEARANCE + ROUNDING * lengths
        state = np.full(len(two), HALVE)
        apart = np.linalg.norm(ball - supports.centre[a], axis=1) - radius - supports.radius[a]
        state[apart > least] = PROVEN
        T = placed.pose()
        between = seen_from(T, supports.centre[b]) - supports.centre[a]
        distance = np.linalg.norm(between, axis=1)  # no smaller than the shapes'
        state[(state == HALVE) & (_halvings(share, distance) > HALVINGS - done)] = MAY_MEET
        if done == 0:
            n = _unit(between, distance)
        left = np.flatnonzero(state == HALVE)
        enough = least[left] + share[left].sum(axis=1)
        lower, upper, n[left] = gaps(supports, a[left], b[left], T[left], n[left], enough)
        state[left[lower <= CLEARANCE]] = MAY_MEET
        state[left[_halvings(share[left], upper) > HALVINGS - done]] = MAY_MEET
        state[left[lower > enough]] = PROVEN
        return state, np.argmax(share, axis=1), n

    def in_neutral(self) -> np.ndarray:
        """(P,) bool: do they meet in the neutral pose, where each joint stands at 0 or at the limit nearest to 0?"""
        return self._meet(np.arange(self._count), self._neutral)

    def everywhere(self, which: np.ndarray) -> np.ndarray:
        """(P,) bool: do those of `which` (P,) bool meet in each of POSES poses, which are always the same?"""
        meet, k = which.copy(), self._chains.middle.shape[1]
        half = np.where(np.isfinite(self._chains.half), self._chains.half, 1.0)
        steps = np.modf(np.sqrt(_primes(k)))[0]  # a Kronecker sequence
        for some in np.split(np.arange(1, POSES + 1), FEW):
            at = np.clip(1.25 * (2 * np.modf(some[:, None] * steps)[0] - 1), -1, 1)[:, None]  # a fifth at the limits
            left = np.flatnonzero(meet)
            variables = (self._chains.middle[left] + at * half[left]).reshape(-1, k)
            meet[left] = self._meet(np.tile(left, len(some)), variables).reshape(len(some), -1).all(axis=0)
        return meet

    def _meet(self, pairs, variables):
        """(L,) bool: do two shapes of each of these pairs (L,) meet where its variables (L, K) stand?"""
        chains = self._chains.of(pairs)
        k = chains.axis.shape[1]
        T = chains.placed(variables[:, :k], np.zeros((len(pairs), k))).pose()
        row = np.repeat(np.arange(len(pairs)), self._size[pairs])
        two = np.arange(len(row)) + np.repeat(
            self._first[pairs] - np.cumsum(self._size[pairs]) + self._size[pairs], self._size[pairs]
        )
        a, b, T, meet = self._a[two], self._b[two], T[row], np.zeros(len(pairs), bool)
        between = seen_from(T, self._supports.centre[b]) - self._supports.centre[a]
        distance = np.linalg.norm(between, axis=1)
        near = distance <= self._supports.radius[a] + self._supports.radius[b] + CLEARANCE
        row, a, b, T, n = row[near], a[near], b[near], T[near], _unit(between, distance)[near]
        _, upper, _ = gaps(self._supports, a, b, T, n, np.full(len(a), CLEARANCE))
        meet[row[upper <= CLEARANCE]] = True
        return meet


def _unit(vectors, lengths):
    return np.where(lengths[:, None] > 1e-9, vectors / np.maximum(lengths, 1e-9)[:, None], [1.0, 0, 0])


def _halvings(share, gap):
    """(N,) how often boxes are halved until what their variables take, (N, K) metres, adds up to less than the gap."""
    counts = np.maximum((share > 1e-3 * share.max(axis=1, keepdims=True)).sum(axis=1), 1)
    times = counts[:, None] * share / np.maximum(gap, 1e-9)[:, None]
    return np.log2(np.maximum(times, 1.0)).sum(axis=1)


def _primes(count):
    """(count,) the first of them."""
    found: list[int] = []
    for n in itertools.count(2):
        if len(found) == count:
            return np.array(found, dtype=float)
        if all(n % p for p in found):
            found.append(n)
