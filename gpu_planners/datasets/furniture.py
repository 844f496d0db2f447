"""Furniture to reach into: a shelf, a cage of bars, a table with things on it, an open crate.

Each kind is a function (rng, opening, tips) -> Furniture. opening: metres that an end effector needs to pass;
tips: how many end effectors there are, each with a place of its own at the start and another at the goal. In its own
frame x leads away from the robot, y to the left, and z up. It stands around a point that the robot reaches, scaled by
its reach and its end effector, and faces the middle of what it reaches.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from ..arm import RobotModel
from ..arm.geometry.shapes import BOX_CORNERS
from ..errors import GpuPlannersError
from .obstacles import Obstacle

NEAREST = 0.6  # least level distance of the furniture's middle from the middle of what is reached, in reaches
FARTHEST = 0.95  # greatest such distance, in reaches
LOWEST = 15  # least height of the furniture's middle, a percentile of what is reached
HIGHEST = 75  # greatest height of the furniture's middle, a percentile of what is reached
UPRIGHT = (0.0, 0.0, 0.0, 1.0)  # quaternions x, y, z, w: a cylinder along z,
LYING_ALONG_X = (0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5))  # along x,
LYING_ALONG_Y = (-np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))  # and along y


@dataclass
class Furniture:
    """obstacles: dicts as in Problem.obstacles, in the furniture's own frame
    places: [(lowest corner (3,), highest corner (3,))] of the rooms for the centre of an end effector, metres"""

    obstacles: list = field(default_factory=list)
    places: list = field(default_factory=list)

    def box(self, name, low, high):
        """A box between two opposite corners."""
        low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
        self._add(name, "box", (low + high) / 2, UPRIGHT, size=(high - low).tolist())

    def cylinder(self, name, centre, radius, height, quat=UPRIGHT):
        self._add(name, "cylinder", centre, quat, radius=float(radius), height=float(height))

    def sphere(self, name, centre, radius):
        self._add(name, "sphere", centre, UPRIGHT, radius=float(radius))

    def place(self, centre, size):
        """A room around a centre (3,), of a size (3,)."""
        half = np.asarray(size) / 2
        self.places.append((np.asarray(centre) - half, np.asarray(centre) + half))

    def _add(self, name, kind, centre, quat, **sizes):
        position = [float(c) for c in centre]
        self.obstacles.append({"name": name, "type": kind, "position": position, "quat_xyzw": list(quat), **sizes})


def shelf(rng, opening, tips):
    """Compartments open to the front, some with a thing at the back."""
    made = Furniture()
    columns, rows = tips + int(rng.integers(0, 2)), 2 + int(tips == 1 and rng.integers(0, 2))
    width, height, depth = opening * rng.uniform((1.0, 0.9, 0.9), (1.3, 1.2, 1.2))
    board = 0.06 * opening
    ys, zs = np.arange(columns + 1) * (width + board), np.arange(rows + 1) * (height + board)
    for number, z in enumerate(zs):
        made.box(f"board{number}", (0, 0, z), (depth, ys[-1] + board, z + board))
    for number, y in enumerate(ys):
        made.box(f"side{number}", (0, y, 0), (depth, y + board, zs[-1] + board))
    made.box("back", (depth, 0, 0), (depth + board, ys[-1] + board, zs[-1] + board))
    for column, y in enumerate(ys[:-1] + board + width / 2):
        for row, z in enumerate(zs[:-1] + board):
            made.place((0.4 * depth, y, z + height / 2), (0.5 * depth, 0.6 * width, 0.5 * height))
            if rng.random() < 0.5:
                tall, radius = height * rng.uniform(0.2, 0.5), opening * rng.uniform(0.05, 0.1)
                where = (depth - radius - board, y + width * rng.uniform(-0.3, 0.3), z + tall / 2)
                made.cylinder(f"can{column}{row}", where, radius, tall)
    return made


def cage(rng, opening, tips):
    """Bars on all sides. The front has windows of the width of an opening, elsewhere no gap is half as wide."""
    made = Furniture()
    columns, rows = tips + int(rng.integers(0, 2)), 2
    width, height, depth = opening * rng.uniform((1.0, 1.0, 1.1), (1.25, 1.25, 1.5))
    bar = 0.035 * opening
    wide, tall = columns * width, rows * height
    for number in range(columns + 1):
        made.cylinder(f"front_post{number}", (0, number * width, tall / 2), bar, tall)
    for number in range(rows + 1):
        made.cylinder(f"front_rail{number}", (0, wide / 2, number * height), bar, wide, LYING_ALONG_Y)
    for number in range(3 * columns + 1):
        y = number * width / 3
        made.cylinder(f"back_post{number}", (depth, y, tall / 2), bar, tall)
        for where, z in (("top", tall), ("bottom", 0.0)):
            made.cylinder(f"{where}{number}", (depth / 2, y, z), bar, depth, LYING_ALONG_X)
    for side, y in (("right", 0.0), ("left", wide)):
        for number in (1, 2, 3):
            made.cylinder(f"{side}_post{number}", (number * depth / 4, y, tall / 2), bar, tall)
    for column in range(columns):
        for row in range(rows):
            centre = (0.4 * depth, (column + 0.5) * width, (row + 0.5) * height)
            made.place(centre, (0.5 * depth, 0.6 * width, 0.6 * height))
    return made


def table(rng, opening, tips):
    """A plate on four legs with tall things on it: places between the things, and places below the plate."""
    made = Furniture()
    slots, leg, plate = tips + 2, opening * rng.uniform(1.3, 1.6), 0.08 * opening
    width, depth = opening * rng.uniform((0.9, 1.4), (1.1, 1.8))
    made.box("plate", (0, 0, -plate), (depth, slots * width, 0))
    for name, x in (("front", 0.05 * depth), ("back", 0.95 * depth)):
        for side, y in (("right", plate), ("left", slots * width - plate)):
            made.cylinder(f"{name}_{side}_leg", (x, y, -plate - leg / 2), 0.05 * opening, leg)
    for number in range(1, slots):
        thick, tall = opening * rng.uniform((0.06, 0.7), (0.12, 1.4))
        x, y, kind = depth * rng.uniform(0.25, 0.75), number * width, rng.integers(0, 3)
        if kind == 0:
            made.box(f"thing{number}", (x - thick, y - thick, 0), (x + thick, y + thick, tall))
        else:
            made.cylinder(f"thing{number}", (x, y, tall / 2), thick, tall)
        if kind == 2:
            made.sphere(f"knob{number}", (x, y, tall + thick), 1.6 * thick)
    for number in range(slots):
        made.place((0.45 * depth, (number + 0.5) * width, 0.45 * opening), (0.6 * depth, 0.5 * width, 0.6 * opening))
    for number in range(0, slots, 2):
        centre = (0.35 * depth, (number + 0.5) * width, -plate - 0.5 * leg)
        made.place(centre, (0.5 * depth, 0.7 * width, 0.5 * leg))
    return made


def crate(rng, opening, tips):
    """Cells with walls around them, open above: places in the cells, and one above each."""
    made = Furniture()
    cells, board = tips + int(rng.integers(0, 2)), 0.06 * opening
    width, depth, height = opening * rng.uniform((1.1, 1.1, 0.6), (1.5, 1.7, 1.1))
    wide = cells * (width + board) + board
    made.box("floor", (0, 0, -board), (depth + 2 * board, wide, 0))
    made.box("front", (0, 0, 0), (board, wide, height))
    made.box("back", (depth + board, 0, 0), (depth + 2 * board, wide, height))
    for number in range(cells + 1):
        y = number * (width + board)
        made.box(f"wall{number}", (0, y, 0), (depth + 2 * board, y + board, height))
    for number in range(cells):
        x, y = depth / 2 + board, number * (width + board) + board + width / 2
        made.place((x, y, 0.4 * height), (0.6 * depth, 0.6 * width, 0.6 * height))
        made.place((x, y, height + 0.6 * opening), (0.8 * depth, 0.8 * width, 0.6 * opening))
    return made


FAMILIES = {"shelf": shelf, "cage": cage, "table": table, "box": crate}


@dataclass(frozen=True)
class Reached:
    """What a robot reaches: centres of its end effectors at random configurations, in the root frame, metres.

    middle: (3,) of all centres;  reach: the distance from it that one in twenty exceeds
    anchors: (A, 3) centres that furniture may stand around: not near the middle, nor high up or low down
    opening: width that an end effector needs to pass with room to spare
    """

    middle: np.ndarray
    reach: float
    anchors: np.ndarray
    opening: float


def reached(model: RobotModel, tips: list[str], centres: np.ndarray) -> Reached:
    """What links `tips` reach. centres: (N, 3) of them. Raises GpuPlannersError where furniture has no room."""
    middle = centres.mean(axis=0)
    reach = float(np.percentile(np.linalg.norm(centres - middle, axis=1), 95))
    low, high = np.percentile(centres[:, 2], (LOWEST, HIGHEST))
    out = np.hypot(*(centres - middle)[:, :2].T)
    anchors = centres[
        (NEAREST * reach < out) & (out < FARTHEST * reach) & (low < centres[:, 2]) & (centres[:, 2] < high)
    ]
    if not len(anchors):
        raise GpuPlannersError(f"the end effectors of '{model.name}' reach no room to put furniture in")
    thick = max(_thickness(model, tip) for tip in tips)
    return Reached(middle, reach, anchors, 1.1 * thick + 0.22 * reach)


def furnish(
    family: str, room: Reached, tips: int, rng: np.random.Generator
) -> tuple[list[dict[str, Any]], list[tuple[np.ndarray, np.ndarray]], np.ndarray, np.ndarray]:
    """Furniture of one of FAMILIES where the robot reaches it. tips: how many end effectors it is for

    -> obstacles in the root frame, as dicts with the keys of a scene file; places of `Furniture`, in its own frame;
    rotation (3, 3) and origin (3,) of that frame in the root frame
    """
    made = FAMILIES[family](rng, room.opening, tips)
    at = room.anchors[rng.integers(len(room.anchors))]
    yaw = np.arctan2(*(at - room.middle)[1::-1]) + rng.uniform(-0.3, 0.3)
    turn = Rotation.from_euler("z", yaw)
    origin = at - turn.apply(np.mean([np.add(*place) / 2 for place in made.places], axis=0))
    return [_placed(obstacle, turn, origin) for obstacle in made.obstacles], made.places, turn.as_matrix(), origin


def as_obstacles(entries: list[dict[str, Any]]) -> tuple[Obstacle, ...]:
    """Obstacles of a data set from the dicts of `furnish`."""
    return tuple(
        Obstacle(one["name"], one["type"], _size(one), tuple(one["position"]), tuple(one["quat_xyzw"]))
        for one in entries
    )


def _size(one):
    if one["type"] == "box":
        return tuple(one["size"])
    across = 2 * one["radius"]
    return across, across, one.get("height", across)


def _thickness(model, tip):
    """The middle one of the three sides of a box around all that the link's last joint moves, metres."""
    link = model.link_index(tip)
    points = [
        (shape.pose @ np.append(corner * shape.half_extents, 1.0))[:3]
        for shape, frame in zip(model.shapes, model.shape_frame, strict=True)
        if frame == model.link_frame[link]
        for corner in BOX_CORNERS
    ]
    return float(np.sort(np.ptp(points, axis=0))[1]) if points else 0.0


def _placed(obstacle, turn, shift):
    """An obstacle dict turned and shifted, its numbers rounded so that they read the same everywhere."""
    position = np.round(turn.apply(obstacle["position"]) + shift, 4)
    quat = (turn * Rotation.from_quat(obstacle["quat_xyzw"])).as_quat(canonical=True)
    return obstacle | {"position": position.tolist(), "quat_xyzw": np.round(quat, 6).tolist()}
