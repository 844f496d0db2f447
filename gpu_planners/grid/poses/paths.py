"""Paths of a PosePlanner: moves for each agent, and the poses along them."""

import math
from dataclasses import dataclass

import numpy as np

from ...arguments import whole
from ...errors import GridMapError
from ..paths import STATUS_TEXT, AgentStatus
from .curves import dubins
from .masks import along_free, convex_pieces
from .moves import FORWARD, REVERSE, SPIN, STEP_ANGLE, poses_along, wrapped
from .pose_grid import PoseGrid

FORWARDS = {FORWARD: 1, REVERSE: -1}
LONGEST_END = 120  # poses of a path that a curve to the exact goal may replace
LONGER = 1.3  # times what it replaces, such a curve may be long; and two tiles more


@dataclass(frozen=True, eq=False)
class PosePathSet:
    """Answer of a plan for N agents.

    poses: the PoseGrid, with the map as it was;  goals: (N, 3) as given
    status: (N,) uint8 values of AgentStatus
    cost: (N,) float64 metres of driving straight ahead on tiles of cost 1 that would cost as much; inf: no path
    states: (N, 3) int32 layer, row, column where the moves begin;  first: (N + 1,) int64, moves: (M,) int32 of
        `PoseGrid.table`, agent i's are moves[first[i] : first[i + 1]]
    time_s: wall time of the plan in seconds
    """

    poses: PoseGrid
    goals: np.ndarray
    status: np.ndarray
    cost: np.ndarray
    states: np.ndarray
    first: np.ndarray
    moves: np.ndarray
    time_s: float = 0.0

    def __len__(self) -> int:
        return len(self.status)

    @property
    def solved(self) -> np.ndarray:
        """(N,) bool"""
        return self.status == AgentStatus.SOLVED

    def message(self, i: int) -> str:
        """What status i means, a sentence. Raises GridMapError."""
        return STATUS_TEXT[AgentStatus(self.status[self._index(i)])]

    def path(self, i: int) -> np.ndarray:
        """-> (K, 3) x, y metres in the map frame, heading rad; (0, 3) where there is none.

        Poses lie at most a tile apart, each with the heading that the robot has there; headings go on through 2 pi. The
        path begins in the start's tile and heading's sector, and has the place within the tile that the goal has in
        its own: whatever the place, states and moves are free. It ends at the goal itself where the plan has no
        tolerance: its last heading by turning on the spot, or by a curve of the least turning radius. Where no such
        curve is free it ends at the goal's place with the heading of its sector: see `ends_at_goal`.

        Raises GridMapError.
        """
        return self._in_map(self._poses(self._index(i))[0])

    def cusps(self, i: int) -> np.ndarray:
        """(K,) bool: where on path i the robot changes between forwards and backwards."""
        return _cusps(self._poses(self._index(i))[1])

    def directions(self, i: int) -> np.ndarray:
        """(K,) int: 1 where path i comes to a pose forwards, -1 backwards, 0 turning on the spot, sideways, or as its
        first."""
        return self._poses(self._index(i))[1]

    def ends_at_goal(self, i: int) -> bool:
        """Does path i end at the goal's place with its heading?"""
        i = self._index(i)
        poses, _ = self._poses(i)
        goal = self._goal(i)
        return (
            len(poses) > 0 and math.dist(poses[-1, :2], goal[:2]) < 1e-6 and abs(wrapped(poses[-1, 2] - goal[2])) < 1e-6
        )

    def _index(self, i):
        return whole("agent", i, -len(self), len(self) - 1, error=GridMapError) % len(self)

    def _goal(self, i):
        """Its goal in tiles, and its heading against the map."""
        row, col = self.poses.map.places_of(self.goals[i : i + 1, :2])[0]
        return np.array([col, row, self.goals[i, 2] - self.poses.map.origin[2]])

    def _poses(self, i):
        """-> poses (K, 3) in tiles, directions (K,)"""
        if not self.solved[i]:
            return np.zeros((0, 3)), np.zeros(0, int)
        goal, (layer, row, col) = self._goal(i), self.states[i]
        place = np.array([col, row, 0.0]) + [*(goal[:2] % 1), 0.0]
        heading = self.poses.angles[layer % self.poses.headings]
        numbers = [self.poses.table_moves[k][2] for k in self.moves[self.first[i] : self.first[i + 1]]]
        moves = [self.poses.moves[k] for k in numbers if k >= 0]  # without changes of gear
        first = np.array([[*place[:2], heading]])
        if not moves:
            return self._to_goal(first, np.zeros(1, int), goal)
        drawn, begin = self.poses.move_poses
        k = np.array([number for number in numbers if number >= 0])
        counts = begin[k + 1] - begin[k]
        poses = drawn[np.repeat(begin[k] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]
        steps = np.array([(move.right, move.down) for move in moves[:-1]]).reshape(-1, 2)
        poses[:, :2] += np.repeat(np.cumsum(np.concatenate([first[:, :2], steps]), axis=0), counts, axis=0)
        before = np.array([heading, *(move.poses[-1, 2] for move in moves[:-1])])
        turns = np.round((before - [move.poses[0, 2] for move in moves]) / (2 * math.pi))
        poses[:, 2] += np.repeat(2 * math.pi * np.cumsum(turns), counts)
        signs = np.repeat([0, *(FORWARDS.get(move.kind, 0) for move in moves)], [1, *counts])
        return self._to_goal(np.concatenate([first, poses]), signs, goal)

    def _to_goal(self, poses, signs, goal):
        """The end of a path brought to the goal's heading, where it ends at the goal's place."""
        turn = wrapped(goal[2] - poses[-1, 2])
        heading = self.poses.headings_of(goal[2:])[0]
        if math.dist(poses[-1, :2], goal[:2]) > 1e-6 or abs(turn) < 1e-9:
            return poses, signs
        if heading != self.poses.headings_of(poses[-1:, 2])[0]:
            return poses, signs
        if any(move.kind == SPIN for move in self.poses.moves):
            count = math.ceil(abs(turn) / STEP_ANGLE)
            more = np.repeat(poses[-1:], count, axis=0)
            more[:, 2] += turn * np.arange(1, count + 1) / count
            return np.concatenate([poses, more]), np.concatenate([signs, np.zeros(count, int)])
        return self._by_curve(poses, signs, np.array([*goal[:2], poses[-1, 2] + turn]))

    def _by_curve(self, poses, signs, goal):
        """The last poses replaced by the shortest curve to the goal that is free and not much longer."""
        radius = self.poses.turning_radius / self.poses.resolution
        if radius == 0:
            return poses, signs
        pieces = [piece / self.poses.resolution for piece in convex_pieces(self.poses.footprint)]
        sign, length = (signs[-1] or 1), 0.0
        for k in range(len(poses) - 2, max(len(poses) - LONGEST_END, 0) - 1, -1):
            if signs[k + 1] != sign:
                break
            length += math.dist(poses[k, :2], poses[k + 1, :2])
            start, end = (poses[k], goal) if sign > 0 else (goal, poses[k])
            parts = dubins(start, end, radius)
            if sum(long for long, _ in parts) > LONGER * length + 2:
                continue
            found = poses_along(tuple(start), parts)
            if along_free(pieces, found, self.poses.map.costs, 0.5):
                found = found if sign > 0 else found[::-1]
                found = found + [0.0, 0.0, poses[k, 2] - found[0, 2]]
                found[-1, :2] = goal[:2]
                ends = np.concatenate([signs[: k + 1], np.full(len(found) - 1, sign)])
                return np.concatenate([poses[: k + 1], found[1:]]), ends
        return poses, signs

    def _in_map(self, poses):
        x, y, yaw = self.poses.map.origin
        cos, sin = np.cos(yaw), np.sin(yaw)
        across, down = self.poses.resolution * poses[:, 0], self.poses.resolution * poses[:, 1]
        return np.column_stack([x + cos * across - sin * down, y + sin * across + cos * down, poses[:, 2] + yaw])


def _cusps(signs):
    """(K,) bool: poses at which the direction changes. signs: (K,) of the ways that lead to them"""
    cusps, last, at = np.zeros(len(signs), bool), 0, 0
    for k, sign in enumerate(signs):
        if sign and last and sign != last:
            cusps[at] = True
        if sign:
            last, at = sign, k
    return cusps
