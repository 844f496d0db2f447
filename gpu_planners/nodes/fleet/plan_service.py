"""Answers PlanFleet requests: conversion, one call of the planner, what came out for each agent.

Everything here runs on the worker's threads, which may answer requests beside each other.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gpu_planners_msgs.srv import PlanFleet

from ...fleet.arguments import MOST_SIZE
from ...fleet.execution.followed import pace_of
from ...fleet.execution.places import ROUNDING, Places, coarser
from ...fleet.plan import FleetStatus
from ...grid import FleetPlanner
from ...vda5050.layout import LayoutError
from ...vda5050.zones import zoned
from ..common import map_codes as codes
from ..common.map_messages import as_array, poses_of
from ..common.map_scene import Frames, MapScene
from ..common.request_error import RequestError, check_count
from ..common.worker import device_of_seat, seat
from .conversions import A_QUATERNION, named, timed_paths, yaws_of
from .parameters import FleetParameters

LONGEST_S = 3600.0  # of a request's time limit and step
OF_STATUS = {  # of a FleetPlan's agents: code, text
    FleetStatus.SOLVED: (codes.NONE, ""),
    FleetStatus.NOT_REACHED: (codes.TIMEOUT, "it is not at its goal when the plan ends"),
    FleetStatus.NO_PATH: (codes.NO_VALID_PATH, "no path leads from its start to its goal"),
    FleetStatus.NO_JOINT_PLAN: (
        codes.NO_VALID_PATH,
        "no plan brings all agents of its part of the map to their goals; that is proven",
    ),
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
    """Answers PlanFleet requests with a planner for each of the worker's threads, made anew for each map and its
    settings. The running fleet has another one."""

    def __init__(self, scene: MapScene, frames: Frames, release: Callable[[], None]) -> None:
        """release: called when a request has read all that changes of the node may change (`Worker.release`)"""
        self._scene, self._frames, self._release = scene, frames, release
        self._planners: dict[int, tuple[Any, Any, Any]] = {}  # by thread: what it was made for, the planner, the Layout

    def answer(
        self, request: PlanFleet.Request, response: PlanFleet.Response, values: FleetParameters
    ) -> PlanFleet.Response:
        """Fill the response of a request; raises what goes wrong."""
        _check(request, values)
        step_s = request.step_s or values.step_s
        planner = self._planner(values, step_s)
        starts, goals = (
            self._frames.to_map(poses_of(getattr(request, name)), self._scene.frame, f"the {name}")
            for name in ("starts", "goals")
        )
        places, frame = Places(planner.grid, values.fleet.size), self._scene.frame
        self._release()
        yaws, turned = yaws_of(starts)
        for k in np.flatnonzero(turned):
            text = f"agent {k} starts with the orientation {starts.quaternions[k].tolist()}; {A_QUATERNION}"
            raise RequestError(codes.INVALID_REQUEST, text)
        sizes = np.asarray(request.sizes, np.int64) if len(request.sizes) else None
        if sizes is not None:
            sizes = np.where(sizes > 0, sizes, values.fleet.size)
        began = time.perf_counter()
        plan = planner.solve(
            places.float_tiles(starts.points[:, :2], sizes),
            places.float_tiles(goals.points[:, :2], sizes),
            headings=places.headings(yaws, np.zeros(len(starts), np.int64)).astype(np.int32),
            time_limit_s=request.time_limit_s or values.time_limit_s,
            seed=request.seed,
            sizes=sizes,
        )
        response.planning_time_s, response.device = time.perf_counter() - began, planner.device
        response.header, response.step_s = self._scene.header(), step_s
        response.header.frame_id = frame
        _fill(response, plan, starts.points, goals.points)
        if not request.without_paths:
            given = places, plan.positions, plan.headings, response.header, response.step_s, sizes
            response.paths = timed_paths(*given)
        return response

    def _planner(self, values, step_s):
        """The FleetPlanner of the thread that calls this, on the present map without what zones close; RequestError
        while there is none, and for zones that a plan whose steps take `step_s` would not keep."""
        grid = self._scene.require_map()
        key = grid, values.tile_size, values.fleet, values.device
        known, planner, layout = self._planners.get(seat(), ((), None, None))
        if planner is None or key[0] is not known[0] or key[1:] != known[1:]:
            try:
                layout = zoned(values.zones_file, coarser(grid, values.tile_size))
            except LayoutError as error:
                raise RequestError(codes.INVALID_REQUEST, f"zones_file cannot be used: {error}") from error
            planner = FleetPlanner(layout.grid, values.motion, device_of_seat(values.device), values.fleet)
            self._planners[seat()] = key, planner, layout
        _refuse_zones(layout, values, step_s)
        return planner


def _refuse_zones(layout, values, step_s):
    """Raise RequestError where a plan whose steps take `step_s` would not keep the zones of a layout. What they close
    is blocked, and what they make dearer is a wish."""
    what, goes = "", "the fleet that runs goes by it"
    if layout.zones().no_stopping is not None:
        what = f"NO_STOPPING zones, and agents may wait anywhere in a plan; allowed for ~/plan_fleet: none, {goes}"
    elif layout.forbidden is not None:
        what = f"lanes that nobody may drive against, which plans do not keep; allowed for ~/plan_fleet: none, {goes}"
    else:
        least, pace = layout.zones().slowest(layout.grid), pace_of(replace(values, step_s=step_s), layout.grid)
        if least < pace * (1 - ROUNDING):
            longer = step_s * pace / least
            what = (
                f"a speed limit of {least:g} m/s, and agents go {pace:g} m/s; allowed: step_s of at least {longer:g} s"
            )
    if what:
        raise RequestError(codes.INVALID_REQUEST, f"zones_file has {what}")


def _check(request, values):
    starts, goals = len(request.starts.poses), len(request.goals.poses)
    if not starts or starts != goals:
        text = f"there are {starts} starts and {goals} goals; allowed: 1 or more, a goal for each start"
        raise RequestError(codes.INVALID_REQUEST, text)
    check_count("agents", starts, "max_agents", values, codes.INVALID_REQUEST)
    if len(request.sizes) not in (0, starts) or max(request.sizes, default=0) > MOST_SIZE:
        text = f"sizes is {list(request.sizes)}; allowed: none, or one for each agent, 0 (the parameter fleet.size) to "
        raise RequestError(codes.INVALID_REQUEST, f"{text}{MOST_SIZE} tiles")
    for name in ("time_limit_s", "step_s"):
        value = getattr(request, name)
        if not (math.isfinite(value) and 0 <= value <= LONGEST_S):
            text = f"{name} is {value}; allowed: 0 (the parameter {name}) to {LONGEST_S:g} seconds"
            raise RequestError(codes.INVALID_REQUEST, text)


def _fill(response, plan, starts, goals):
    """Put what came out into a response. starts, goals: (N, 3) metres"""
    status = np.asarray(plan.status)
    came_out = [OF_STATUS[FleetStatus(s)] for s in status]
    response.codes = as_array([code for code, _ in came_out], np.uint16)
    response.texts = [
        what and f"agent {k} from ({x:.2f}, {y:.2f}) to ({u:.2f}, {v:.2f}): {what}"
        for k, ((_, what), (x, y, _), (u, v, _)) in enumerate(zip(came_out, starts, goals))
    ]
    failed = [text for text in response.texts if text]
    response.code = next((code for code in response.codes if code), codes.NONE)
    response.message = f"{len(status) - len(failed)} of {len(status)} agents reach their goals; {plan.message}"
    if failed:
        response.message += f"; {named(failed)}"
    response.durations = as_array(np.where(status == 0, np.asarray(plan.costs) * response.step_s, np.inf), float)
    response.sum_of_costs, response.makespan = int(plan.sum_of_costs), int(plan.makespan)
    response.lower_bound = int(plan.lower_bound)
