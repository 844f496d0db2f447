"""Ways between a pose where only the margin of its state meets an obstacle, and states that are free.

PosePlanner plans between states, which are free for every place of a tile and every angle of a sector. A robot that is
free where it stands may be nearer to an obstacle than that: it leaves, or enters, by moves from its very pose, each
proven free as it is driven.
"""

import heapq
import math
from typing import NamedTuple

import numpy as np

from ...grid import PoseGrid, PosePlanner
from ...grid.poses.moves import UNITS

MOST_CHECKS = 300  # moves that are looked at
MOST_WAYS = 4


class Way(NamedTuple):
    """Poses (K, 3) in the map's frame as they are driven, and what they cost in metres."""

    poses: np.ndarray
    cost: float


def ways(planner: PosePlanner, pose: np.ndarray, reach: float, into: bool = False) -> list[Way]:
    """The cheapest ways from a pose to free states, or from these into it; the pose alone where its state is free.

    pose: (3,) x, y, heading in the map's frame; reach: metres that a way may cost; into: to the pose
    -> at most MOST_WAYS; none where the robot is not free at the pose itself, or gets nowhere
    """
    if planner.states_free(pose)[0]:
        return [Way(pose[None], 0.0)]
    if not np.isfinite(pose).all() or not planner.path_free(pose):
        return []
    robot, found, checks = planner.poses, list[Way](), 0
    metres = robot.resolution / UNITS
    heading = int(robot.headings_of([pose[2] - robot.origin[2]])[0])
    first = heading, 0, 0
    best, before, done = {first: 0}, dict[tuple, tuple](), set()
    queue = [(0, first)]
    while queue and len(found) < MOST_WAYS and checks < MOST_CHECKS:
        cost, state = heapq.heappop(queue)
        if state in done:
            continue
        done.add(state)
        if state != first and planner.states_free(_placed(robot, pose, heading, np.array([_at(robot, state)])))[0]:
            found.append(Way(_along(before, state, into), cost * metres))
            continue
        for move in robot.moves:
            if (move.end if into else move.start) != state[0]:
                continue
            sign = -1 if into else 1
            to = (move.start if into else move.end), state[1] + sign * move.right, state[2] + sign * move.down
            price = cost + move.price(robot.move_costs, robot.resolution)
            if price * metres > reach or price >= best.get(to, math.inf):
                continue
            base = to if into else state
            poses = _placed(robot, pose, heading, move.poses + [base[1], base[2], 0.0])
            checks += 1
            if planner.path_free(poses):
                best[to], before[to] = price, (state, poses)
                heapq.heappush(queue, (price, to))
    return found


def _at(robot: PoseGrid, state):
    return state[1], state[2], robot.angles[state[0]]


def _placed(robot, pose, heading, poses):
    """Poses (K, 3) in tiles about the given pose, as if it had the heading of its sector -> in the map's frame"""
    turn = pose[2] - robot.angles[heading]
    cos, sin = math.cos(turn), math.sin(turn)
    across, down = robot.resolution * poses[:, 0], robot.resolution * poses[:, 1]
    return np.column_stack(
        [pose[0] + cos * across - sin * down, pose[1] + sin * across + cos * down, poses[:, 2] + turn]
    )


def _along(before, state, into):
    """The moves between the given pose and a state as one path."""
    parts = []
    while state in before:
        state, poses = before[state]
        parts.append(poses)
    parts = parts if into else parts[::-1]
    return np.concatenate([parts[0], *(part[1:] for part in parts[1:])])
