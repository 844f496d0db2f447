"""Where furniture stands: around a point that the robot reaches, scaled by its reach and its end effector, facing the
middle of what it reaches."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from ..arm import RobotModel
from ..errors import GpuPlannersError
from .furniture import FAMILIES
from .obstacles import Obstacle

NEAREST, FARTHEST = 0.6, 0.95  # level distance of the furniture's middle from the middle of what is reached, in reaches
LOWEST, HIGHEST = 15, 75  # heights of the furniture's middle, percentiles of what is reached


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
    corners = np.array(list(itertools.product((-1, 1), repeat=3)))
    points = [
        (shape.pose @ np.append(corner * shape.half_extents, 1.0))[:3]
        for shape, frame in zip(model.shapes, model.shape_frame, strict=True)
        if frame == model.link_frame[link]
        for corner in corners
    ]
    return float(np.sort(np.ptp(points, axis=0))[1]) if points else 0.0


def _placed(obstacle, turn, shift):
    """An obstacle dict turned and shifted, its numbers rounded so that they read the same everywhere."""
    position = np.round(turn.apply(obstacle["position"]) + shift, 4)
    quat = (turn * Rotation.from_quat(obstacle["quat_xyzw"])).as_quat(canonical=True)
    return obstacle | {"position": position.tolist(), "quat_xyzw": np.round(quat, 6).tolist()}
