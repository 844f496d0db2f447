"""Answers PlanFleet requests: conversion, one call of the planner, what came out for each agent.

Everything here runs on the worker's threads, which may answer requests beside each other.
"""

import math
import time
from typing import Any

import numpy as np

from gpu_planners_msgs.srv import PlanFleet

from ...fleet.plan import FleetStatus
from ...grid import FleetPlanner
from ..common import map_codes as codes
from ..common.frames import Frames
from ..common.map_messages import Poses, as_array, poses_of
from ..common.map_scene import MapScene
from ..common.request_error import RequestError, check_count, error_text
from ..common.worker import device_of_seat, seat
from .conversions import timed_paths, yaws_of
from .parameters import FleetParameters
from .places import Places, coarser
from .step import named

LONGEST_S = 3600.0  # of a request's time limit and step
OF_STATUS = {  # of a FleetPlan's agents: code, text
    FleetStatus.SOLVED: (codes.NONE, ""),
    FleetStatus.NOT_REACHED: (codes.TIMEOUT, "it is not at its goal when the plan ends"),
    FleetStatus.NO_PATH: (codes.NO_VALID_PATH, "no path leads from its start to its goal"),
    FleetStatus.START_OUTSIDE: (codes.START_OUTSIDE_MAP, "its start is outside the map"),
    FleetStatus.START_BLOCKED: (codes.START_OCCUPIED, "its start is blocked"),
    FleetStatus.START_NOT_FINITE: (codes.START_NOT_FINITE, "its start is not finite"),
    FleetStatus.SAME_START: (codes.START_TAKEN, "another agent starts there, or too near"),
    FleetStatus.GOAL_OUTSIDE: (codes.GOAL_OUTSIDE_MAP, "its goal is outside the map"),
    FleetStatus.GOAL_BLOCKED: (codes.GOAL_OCCUPIED, "its goal is blocked"),
    FleetStatus.GOAL_NOT_FINITE: (codes.GOAL_NOT_FINITE, "its goal is not finite"),
    FleetStatus.SAME_GOAL: (codes.GOAL_TAKEN, "another agent has that goal, or one too near"),
}


class Solver:
    """The planners of requests, one for each thread of the worker: others than that of the running fleet, made anew for
    each map and its settings.

    scene: the map; its tiles are those that the parameter tile_size says
    """

    def __init__(self, scene: MapScene) -> None:
        self._scene = scene
        self._planners: dict[int, tuple[Any, Any]] = {}  # by thread: what it was made for, the planner

    def planner(self, values: FleetParameters) -> Any:
        """The FleetPlanner of the thread that calls this, on the present map; RequestError while there is none."""
        grid = self._scene.require_map()
        key = grid, values.tile_size, values.fleet, values.device
        known, planner = self._planners.get(seat(), ((), None))
        if planner is None or key[0] is not known[0] or key[1:] != known[1:]:
            tiles = coarser(grid, values.tile_size)
            planner = FleetPlanner(tiles, values.motion, device_of_seat(values.device), values.fleet)
            self._planners[seat()] = key, planner
        return planner


def answer(
    solver: Solver,
    scene: MapScene,
    frames: Frames,
    values: FleetParameters,
    request: PlanFleet.Request,
    response: PlanFleet.Response,
) -> PlanFleet.Response:
    """The response of a PlanFleet request. Never raises: every failure becomes a code and a text."""
    try:
        _check(request, values)
        planner = solver.planner(values)
        starts, goals = (
            frames.to_map(poses_of(given), scene.frame, f"the {name}")
            for name, given in (("starts", request.starts), ("goals", request.goals))
        )
        places = Places(planner.grid, values.fleet.size)
        yaws, turned = yaws_of(starts)
        for k in np.flatnonzero(turned):
            raise RequestError(
                codes.INVALID_REQUEST,
                f"agent {k} starts with the orientation {starts.quaternions[k].tolist()}; allowed: a quaternion of "
                "length 1 about z, or zeros",
            )
        began = time.perf_counter()
        plan = planner.solve(
            places.float_tiles(starts.points[:, :2]),
            places.float_tiles(goals.points[:, :2]),
            headings=places.headings(yaws, np.zeros(len(starts), np.int64)).astype(np.int32),
            time_limit_s=request.time_limit_s or values.time_limit_s,
            seed=request.seed,
        )
        response.planning_time_s = time.perf_counter() - began
        _fill(response, plan, starts, goals, places, scene, request, values)
        response.device = planner.device
    except Exception as error:  # a client must get an answer whatever goes wrong
        return PlanFleet.Response(code=codes.code_of(error), message=error_text(error))
    return response


def _check(request, values):
    starts, goals = len(request.starts.poses), len(request.goals.poses)
    if not starts or starts != goals:
        raise RequestError(
            codes.INVALID_REQUEST,
            f"there are {starts} starts and {goals} goals; allowed: 1 or more, a goal for each start",
        )
    check_count("agents", starts, "max_agents", values, codes.INVALID_REQUEST)
    for name in ("time_limit_s", "step_s"):
        value = getattr(request, name)
        if not (math.isfinite(value) and 0 <= value <= LONGEST_S):
            raise RequestError(
                codes.INVALID_REQUEST, f"{name} is {value}; allowed: 0 (the parameter {name}) to {LONGEST_S:g} seconds"
            )


def _fill(response, plan, starts: Poses, goals: Poses, places, scene, request, values):
    """Put a plan into a response."""
    response.header, response.step_s = scene.header(), request.step_s or values.step_s
    status = np.asarray(plan.status)
    came_out = [OF_STATUS[FleetStatus(s)] for s in status]
    response.codes = as_array([code for code, _ in came_out], np.uint16)
    response.texts = [text and _text(agent, text, starts, goals) for agent, (_, text) in enumerate(came_out)]
    failed = [text for text in response.texts if text]
    response.code = next((code for code in response.codes if code), codes.NONE)
    response.message = f"{len(status) - len(failed)} of {len(status)} agents reach their goals; {plan.message}"
    if failed:
        response.message += f"; {named(failed)}"
    durations = np.where(status == 0, np.asarray(plan.costs) * response.step_s, np.inf)
    response.durations = as_array(durations, float)
    response.sum_of_costs, response.makespan = int(plan.sum_of_costs), int(plan.makespan)
    response.lower_bound = int(plan.lower_bound)
    if not request.without_paths:
        response.paths = timed_paths(places, plan.positions, plan.headings, response.header, response.step_s)


def _text(agent, what, starts, goals):
    (x, y), (u, v) = starts.points[agent, :2], goals.points[agent, :2]
    return f"agent {agent} from ({x:.2f}, {y:.2f}) to ({u:.2f}, {v:.2f}): {what}"
