"""Messages of fleets to arrays and back, as pure functions."""

from collections.abc import Sequence
from itertools import islice

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from std_msgs.msg import Header

from gpu_planners_msgs.msg import AgentActions

from ...fleet.execution.places import FleetStep, Places
from ..common.map_messages import Poses, as_array, pose_list

NANOSECONDS = 10**9
UNIT = 1e-2  # by how much a quaternion's length may differ from 1
TILT = 0.1  # rad that an agent may lean
SHOWN = 5  # things that a text names
A_QUATERNION = "allowed: a quaternion of length 1 about z, or zeros"
# The planner counts rows downwards, the map's y grows with them: its "clockwise" is a turn to the left.
ACTIONS = {
    "turning": np.array(
        [AgentActions.FORWARD, AgentActions.TURN_LEFT, AgentActions.TURN_RIGHT, AgentActions.WAIT], np.uint8
    ),
    "four": np.array(
        [AgentActions.PLUS_X, AgentActions.PLUS_Y, AgentActions.MINUS_X, AgentActions.MINUS_Y, AgentActions.WAIT],
        np.uint8,
    ),
}


def yaws_of(poses: Poses) -> tuple[np.ndarray, np.ndarray]:
    """-> (N,) rad, NaN where a pose has no orientation (zeros) or a wrong one; (N,) bool: is it a wrong one?"""
    x, y, z, w = poses.quaternions.T
    none = ~poses.quaternions.any(axis=1)
    with np.errstate(all="ignore"):
        size = np.linalg.norm(poses.quaternions, axis=1)
        lean = 2 * np.arctan2(np.hypot(x, y), np.hypot(z, w))
        wrong = ~none & ~((np.abs(size - 1) <= UNIT) & (lean <= TILT))
        return np.where(none | wrong, np.nan, 2 * np.arctan2(z, w)), wrong


def later(header: Header, seconds: float) -> Header:
    """A header some seconds later."""
    whole = header.stamp.sec * NANOSECONDS + header.stamp.nanosec + round(seconds * NANOSECONDS)
    return Header(frame_id=header.frame_id, stamp=Time(sec=whole // NANOSECONDS, nanosec=whole % NANOSECONDS))


def actions_message(step: FleetStep, motion: str, header: Header, step_s: float) -> AgentActions:
    return AgentActions(
        header=header,
        step=step.number,
        step_s=step_s,
        planning_time_s=step.time_s,
        ids=step.ids,
        actions=as_array(ACTIONS[motion][step.actions], np.uint8),
        states=as_array(step.states, np.uint8),
        tiles=as_array(step.tiles, np.int32),
        headings=as_array(step.headings, np.uint8),
        numbers=as_array(step.numbers, np.uint64),
        start_tiles=as_array(step.tiles_before, np.int32),
        start_headings=as_array(step.headings_before, np.uint8),
        ahead=as_array(step.ahead, np.uint8),
        ahead_actions=as_array(ACTIONS[motion][step.actions_ahead], np.uint8),
        ahead_tiles=as_array(step.tiles_ahead, np.int32),
        ahead_headings=as_array(step.headings_ahead, np.uint8),
    )


def step_paths(step: FleetStep, places: Places, header: Header, step_s: float) -> list[Path]:
    """The path of each agent: where it stands, where its action takes it, and those after it that it may do; or where
    it stays."""
    begin = _poses(places, step.tiles_before, step.headings_before, step.sizes)
    end = _poses(places, step.tiles, step.headings, step.sizes)
    ahead = iter(_poses(places, step.tiles_ahead, step.headings_ahead, np.repeat(step.sizes, step.ahead)))
    headers = [later(header, ticks * step_s) for ticks in range(int((step.ticks + step.ahead).max(initial=0)) + 1)]
    paths = []
    for first, last, ticks, more in zip(begin, end, step.ticks.tolist(), step.ahead.tolist()):
        poses = [first, last, *islice(ahead, more)] if ticks else [last, *islice(ahead, more)]
        times = [0, *range(ticks, ticks + more + 1)] if ticks else range(more + 1)
        stamped = [PoseStamped(header=headers[time], pose=pose) for time, pose in zip(times, poses)]
        paths.append(Path(header=header, poses=stamped))
    return paths


def timed_paths(
    places: Places,
    positions: np.ndarray,
    headings: np.ndarray | None,
    header: Header,
    step_s: float,
    sizes: np.ndarray | None = None,
) -> list[Path]:
    """Paths with a pose for each step.

    positions: (steps + 1, N, 2) tiles, negative where an agent is not there; headings: (steps + 1, N) or None
    sizes: (N,) as of Places
    """
    steps, n = positions.shape[:2]
    faces = np.zeros((steps, n), int) if headings is None else headings
    headers = [later(header, k * step_s) for k in range(steps)]
    paths = []
    for agent in range(n):
        there = np.flatnonzero(positions[:, agent, 0] >= 0)
        poses = _poses(places, positions[there, agent], faces[there, agent], None if sizes is None else sizes[agent])
        stamped = [PoseStamped(header=headers[k], pose=pose) for k, pose in zip(there.tolist(), poses)]
        paths.append(Path(header=header, poses=stamped))
    return paths


def _poses(places, tiles, headings, sizes):
    return pose_list(places.points(tiles, sizes), places.yaws(headings))


def named(what: Sequence[str]) -> str:
    """The first of some texts, and how many more there are."""
    more = f" and {len(what) - SHOWN} more" if len(what) > SHOWN else ""
    return "; ".join(what[:SHOWN]) + more
