"""Plans for agents given as poses: conversion, one call of the planner, a text about the outcome.

Everything here runs on the worker's threads, to which the scene belongs.
"""

import time
from dataclasses import dataclass

import numpy as np
from nav_msgs.msg import Path
from std_msgs.msg import Header

from gpu_planners_msgs.srv import PlanAgents

from ...compiling import grid_parts, use_planner
from ...grid import AgentStatus, GridMap, PathSet
from ...parts import Part
from ..common import map_codes as codes
from ..common.map_messages import Poses, geometry_message
from ..common.map_scene import Frames
from ..common.request_error import RequestError, check_count
from .conversions import fill_paths, path_message, request_poses
from .parameters import GridParameters
from .scene import GridScene

UNIT = 1e-2  # by how much a quaternion's length may differ from 1


@dataclass(frozen=True)
class AgentsPlan:
    """What was planned, on which map.

    header: frame of the map, time of planning
    starts: Poses of all agents; goals: of all or of one; both in the map's frame
    """

    paths: PathSet
    grid: GridMap
    header: Header
    starts: Poses
    goals: Poses
    algorithm: str
    device: str
    time_s: float

    def paths_of(self, agents: list[int]) -> list[Path]:
        """Paths of some agents, from their exact starts to their exact goals; empty where there is none."""
        tiles, offsets = self.paths.paths(agents)
        return [
            path_message(self.grid, tiles[first:end], self.header, self.starts.one(agent), self.goals.one(agent))
            for agent, first, end in zip(agents, offsets[:-1], offsets[1:])
        ]

    def text(self) -> str:
        """How many agents have a path, and for each reason why others have none, how many and the first of them."""
        status, n = self.paths.status, len(self.paths)
        took = f"by {self.algorithm} on {self.device} in {1e3 * self.time_s:.1f} ms"
        text = f"paths found for {int(self.paths.solved.sum())} of {n} agents, {took}"
        for failure in np.unique(status[status != AgentStatus.SOLVED]):
            agents = np.flatnonzero(status == failure)
            first = int(agents[0])
            (x, y, _), (u, v, _) = self.starts.one(first).points[0], self.goals.one(first).points[0]
            count = f"{len(agents)} agent{'s' if len(agents) > 1 else ''}"
            where = f"from ({x:.2f}, {y:.2f}) to ({u:.2f}, {v:.2f})"
            text += f"; {self.paths.message(first)}: {count}, first agent {first} {where}"
        return text


def plan(scene: GridScene, frames: Frames, starts: Poses, goals: Poses, algorithm: str) -> AgentsPlan:
    """Plan agents; one goal serves all. RequestError or another GpuPlannersError says what is wrong."""
    if not len(starts) or len(goals) not in (1, len(starts)):
        text = f"there are {len(starts)} starts and {len(goals)} goals; allowed: 1 start or more, 1 goal or as many"
        raise RequestError(codes.INVALID_REQUEST, text)
    check_orientations(starts, "start")
    check_orientations(goals, "goal")
    planner = scene.planner(algorithm)
    grid, header = scene.require_map(), scene.header()
    starts, goals = frames.to_map(starts, scene.frame, "the starts"), frames.to_map(goals, scene.frame, "the goals")
    start_tiles, goal_tiles = (grid.tiles_of(poses.points[:, :2]) for poses in (starts, goals))
    started = time.perf_counter()
    paths = planner.plan(start_tiles, goal_tiles[0] if len(goals) == 1 else goal_tiles)
    return AgentsPlan(paths, grid, header, starts, goals, algorithm, planner.device, time.perf_counter() - started)


def check_orientations(poses: Poses, what: str) -> None:
    """RequestError where an orientation is neither a rotation nor zeros, which stand for none. what: start or goal"""
    with np.errstate(over="ignore"):
        size = np.linalg.norm(poses.quaternions, axis=1)
    for k in np.flatnonzero(poses.quaternions.any(axis=1) & ~(np.abs(size - 1) <= UNIT)):
        text = f"{what} {k} has the orientation {poses.quaternions[k].tolist()}; allowed: "
        raise RequestError(codes.INVALID_REQUEST, text + "a quaternion of length 1, or zeros")


def answer(
    scene: GridScene, frames: Frames, values: GridParameters, request: PlanAgents.Request, response: PlanAgents.Response
) -> AgentsPlan:
    """Fill the response of a PlanAgents request; raises what goes wrong."""

    def check_poses(count):
        check_count("poses in the paths of path_agents", count, "max_path_poses", values, codes.INVALID_REQUEST)

    starts, goals = request_poses(request, "starts"), request_poses(request, "goals")
    check_count("agents", max(len(starts), len(goals)), "max_agents", values, codes.INVALID_REQUEST)
    agents = np.array(request.path_agents, np.int64)
    check_poses(len(agents))
    if (agents >= len(starts)).any():
        text = f"path_agents names agent {agents.max()}; allowed: 0 to {len(starts) - 1}, the agents of the request"
        raise RequestError(codes.INVALID_REQUEST, text)
    planned = plan(scene, frames, starts, goals, request.algorithm or values.algorithm)
    check_poses((planned.paths.length[agents].astype(np.int64) + 1).sum())
    fill_paths(response, planned.paths, not request.without_steps)
    response.paths = planned.paths_of(agents.tolist())
    response.code, response.message = codes.NONE, planned.text()
    response.header, response.map = scene.map_header(), geometry_message(planned.grid)
    response.map.map_load_time = scene.stamp
    response.planning_time_s, response.algorithm, response.device = planned.time_s, planned.algorithm, planned.device
    return planned


def parts(values: GridParameters, grid: GridMap, algorithm: str) -> list[Part]:
    """What requests to an algorithm need on maps like this one, on each device."""
    given = grid.connectivity, bool(grid.uniform_cost), values.block_size, getattr(values, algorithm)
    return [part for device in dict.fromkeys(values.devices) for part in grid_parts(device, algorithm, *given)]


def load(scene: GridScene, algorithm: str) -> None:
    """Load what requests and changes of the map need, by small examples on the map there is."""
    planners, grid = scene.planners(algorithm), scene.require_map()
    for planner in planners:
        use_planner(planner, grid)
