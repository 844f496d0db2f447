"""Headings of a grid, and the moves between poses at the centres of its cells.

A heading is the direction of a vector of small whole numbers, so that a straight line in it leads from centre to centre
(as in state lattices: Pivtoraiko, Knepper, Kelly 2009). A curve is a line and an arc whose circle touches both
headings: two headings and two centres have one such pair, if the tangents from their crossing are long enough for the
radius. So moves begin and end exactly at centres with exact headings, and a path has no kink where two of them join.

Lengths are in cells; x grows with the columns, y with the rows; angles turn from x to y.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np

from ...errors import GridMapError, shown
from ...settings import Described, setting

FORWARD, REVERSE, SPIN, SIDEWAYS = "forward", "reverse", "spin", "sideways"
STEP, STEP_ANGLE = 0.9, 0.1  # most cells and radians between two poses of a move
MOST_TURNED = math.radians(60)  # by one curve
FARTHEST_VECTOR = 12  # cells that a straight move is long at most
TIGHTER = 0.98  # of a radius: what a second curve to one side must save
UNITS = 100  # of cost in a cell's length
MODELS = {"dubins": "curves", "reeds_shepp": "curves back", "differential": "curves back spin", "omni": "spin sideways"}
NAV2_NAMES = {"DUBIN": "dubins", "REEDS_SHEPP": "reeds_shepp", "DIFF": "differential", "OMNI": "omni"}


@dataclass(frozen=True)
class MoveCosts(Described):
    """What moves cost beside their length; each also times the cost of the tile that it ends on."""

    reverse: float = setting(
        2.0, "A length driven backwards counts so many times; 0: it never drives backwards", 0, 100
    )
    turn: float = setting(1.1, "The length of a curve counts so many times", 1, 100)
    spin: float = setting(0.3, "Turning on the spot by a radian costs as much as driving so far", 0, 100, unit="m")
    sideways: float = setting(1.5, "A length driven sideways counts so many times", 1, 100)
    change: float = setting(
        0.0, "Changing between forwards and backwards costs as much as driving so far", 0, 100, unit="m"
    )


@dataclass(frozen=True, eq=False)
class Move:
    """A move from heading to heading.

    start, end: numbers of headings;  down, right: rows and columns that it leads away
    poses: (K, 3) x, y, heading from the centre of the first cell on, both ends included; between two of them the robot
        turns about one point, or moves straight
    length: in cells;  turned: radians
    """

    start: int
    end: int
    down: int
    right: int
    kind: str
    poses: np.ndarray
    length: float
    turned: float

    def price(self, costs: MoveCosts, resolution: float) -> int:
        """In units of cost."""
        if self.kind == SPIN:
            cells = costs.spin / resolution * self.turned
        else:
            cells = self.length * (costs.turn if self.turned > 0 else 1.0)
            cells *= {REVERSE: costs.reverse, SIDEWAYS: costs.sideways}.get(self.kind, 1.0)
        return max(1, round(UNITS * cells))

    def backwards(self) -> "Move":
        """The same way driven backwards, from its end to its start."""
        poses = self.poses[::-1] - np.array([self.right, self.down, 0.0])
        return Move(self.end, self.start, -self.down, -self.right, REVERSE, poses, self.length, self.turned)


@functools.cache
def heading_vectors(count: int) -> tuple[tuple[int, int], ...]:
    """(x, y) whole numbers of each heading, one after the other around the circle, the first along x."""
    if count % 8 or not 8 <= count <= 72:
        raise GridMapError(f"headings is {shown(count)}; allowed: 8, 16, 24 .. 72")
    each = count // 8
    octant = [(1, 0)]
    fitting = [(a, b) for a in range(1, FARTHEST_VECTOR + 1) for b in range(1, a) if math.gcd(a, b) == 1]
    for k in range(1, each):
        ideal = k * math.pi / 4 / each

        def strange(vector, ideal=ideal):
            return abs(math.atan2(vector[1], vector[0]) - ideal) * each + 0.05 * math.hypot(*vector)

        octant.append(min((v for v in fitting if v not in octant), key=strange))
    quadrant = [*octant, (1, 1), *((b, a) for a, b in reversed(octant[1:]))]
    vectors = [*quadrant]
    for _ in range(3):
        quadrant = [(-b, a) for a, b in quadrant]
        vectors += quadrant
    return tuple(vectors)


def angles_of(vectors: tuple[tuple[int, int], ...]) -> np.ndarray:
    """(H,) rad, rising from 0 to below 2 pi."""
    return np.array([math.atan2(b, a) % (2 * math.pi) for a, b in vectors])


def wrapped(angle: float) -> float:
    """The same angle from -pi to pi."""
    return (angle + math.pi) % (2 * math.pi) - math.pi


def _line(pose, length, turn):
    """Poses after `pose` along a line, or an arc that turns so far, of such a length."""
    count = max(1, math.ceil(length / STEP), math.ceil(abs(turn) / STEP_ANGLE))
    x, y, heading = pose
    for k in range(1, count + 1):
        done, so_far = length * k / count, turn * k / count
        chord = done if turn == 0 else 2 * length / turn * math.sin(so_far / 2)
        yield (x + chord * math.cos(heading + so_far / 2), y + chord * math.sin(heading + so_far / 2), heading + so_far)


def poses_along(pose: tuple[float, float, float], parts: list[tuple[float, float]]) -> np.ndarray:
    """(K, 3) from a pose on along (length, turn) after (length, turn); of a negative length backwards"""
    found = [pose]
    for length, turn in parts:
        if length or turn:
            found += list(_line(found[-1], length, turn) if length >= 0 else _back(found[-1], -length, turn))
    return np.array(found)


def _back(pose, length, turn):
    for x, y, heading in _line((pose[0], pose[1], pose[2] + math.pi), length, turn):
        yield x, y, heading - math.pi


def _straight(number, vector, angle):
    length = math.hypot(*vector)
    poses = poses_along((0.0, 0.0, angle), [(length, 0.0)])
    return Move(number, number, vector[1], vector[0], FORWARD, _ending(poses, vector, angle), length, 0.0)


def _ending(poses, vector, angle):
    """The last pose exactly at a centre."""
    poses[-1] = *vector, angle
    return poses


def _curve(start, end, angles, radius):
    """The shortest curve from heading to heading, or None where they differ by too much."""
    turn = wrapped(angles[end] - angles[start])
    if not 0 < abs(turn) <= MOST_TURNED:
        return None
    half = math.tan(abs(turn) / 2)
    least = max(radius * half, 0.25)
    reach = math.ceil(2 * least) + 16
    right, down = np.meshgrid(np.arange(-reach, reach + 1), np.arange(-reach, reach + 1))
    (c1, s1), (c2, s2) = ((math.cos(angles[k]), math.sin(angles[k])) for k in (start, end))
    first = (right * s2 - down * c2) / math.sin(turn)
    second = (c1 * down - s1 * right) / math.sin(turn)
    tangent = np.minimum(first, second)
    length = first + second - 2 * tangent + tangent / half * abs(turn)
    length[tangent < least - 1e-9] = np.inf
    at = np.unravel_index(np.argmin(length), length.shape)
    if not np.isfinite(length[at]):
        return None
    t = tangent[at]
    parts = [(first[at] - t, 0.0), (t / half * abs(turn), turn), (second[at] - t, 0.0)]
    parts = [part for part in parts if part[0] > 1e-9]
    vector = int(right[at]), int(down[at])
    poses = _ending(poses_along((0.0, 0.0, angles[start]), parts), vector, angles[start] + turn)
    return Move(start, end, vector[1], vector[0], FORWARD, poses, float(length[at]), abs(turn))


def _curves(start, side, angles, radius):
    """To one side: the curve to the next heading, and the one that turns most for its length if that saves some."""
    count, found = len(angles), []
    for k in range(1, count // 3):
        move = _curve(start, (start + side * k) % count, angles, radius)
        if move is None:
            break
        found.append(move)
    chosen = found[:1]
    tightest = min(found, key=lambda move: move.length / move.turned)
    if tightest.length / tightest.turned < TIGHTER * chosen[0].length / chosen[0].turned:
        chosen.append(tightest)
    return chosen


@functools.cache
def moves_of(model: str, headings: int, radius: float) -> tuple[Move, ...]:
    """The moves of a model: see MODELS. radius: the least one, in cells"""
    vectors = heading_vectors(headings)
    angles, traits, moves = angles_of(vectors), MODELS[model].split(), []
    for h, vector in enumerate(vectors):
        moves.append(_straight(h, vector, angles[h]))
        if radius > 0 and "curves" in traits:
            moves += [move for side in (1, -1) for move in _curves(h, side, angles, radius)]
    if "back" in traits:
        moves += [move.backwards() for move in moves]
    for h in range(headings):
        if "spin" in traits:
            for side in (1, -1):
                end = (h + side) % headings
                turn = wrapped(angles[end] - angles[h])
                poses = poses_along((0.0, 0.0, angles[h]), [(0.0, turn)])
                moves.append(Move(h, end, 0, 0, SPIN, _ending(poses, (0, 0), angles[h] + turn), 0.0, abs(turn)))
        if "sideways" in traits:
            for right, down in ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)):
                if (right, down) != vectors[h]:
                    poses = np.array(
                        [(0.0, 0.0, angles[h]), (right / 2, down / 2, angles[h]), (right, down, angles[h])]
                    )
                    moves.append(Move(h, h, down, right, SIDEWAYS, poses, math.hypot(right, down), 0.0))
    return tuple(moves)
