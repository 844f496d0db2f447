"""The node fleet_planner: agents on one map that never collide, step by step for life or once by a service.

Callbacks only hand on what arrives. A worker owns the map, the fleet and all planning: its first thread takes maps and
moves the fleet, on the first device, and others answer requests meanwhile, on the other devices if there are any. A
step begins when it is due, whoever is late; agents that are told nothing by it since they have to wait are told between
two steps, as soon as they may go on.
"""

import math
import sys
from functools import partial
from typing import Any

import numpy as np

from gpu_planners_msgs.srv import PlanFleet

from ...compiling import fleet_parts
from ...errors import GpuPlannersError, error_text
from ...fleet.execution.places import coarser
from ...fleet.execution.running import RunningFleet
from ...fleet.execution.tasks import FleetTasks
from ...grid import GridMap
from ...vda5050.zones import zoned
from ..common import map_codes as codes
from ..common.map_scene import Frames, MapScene, TopicMaps
from ..common.planner_node import COMPILING, OK, PlannerNode
from ..common.process import run
from ..common.ros import steady_clock
from .conversions import named
from .parameters import FleetParameters
from .plan_service import Solver
from .task_services import TaskServices
from .topics import FleetPublishers, TopicFleet

POLLS = 20  # of the clock in the time of a step
LEAST_S = 0.005  # between two polls, at least
MOST_S = 0.05  # between two polls, at most


class FleetPlannerNode(PlannerNode):
    """The node; options: as rclpy.node.Node takes them."""

    first_apart = True

    def __init__(self, **options: Any) -> None:
        super().__init__("fleet_planner", FleetParameters, "a map", "map_file", **options)
        self._scene, frames = MapScene(self.values, lambda: self.get_clock().now().to_msg()), Frames(self)
        self._fleet, self._solver = RunningFleet(self.values), Solver(self._scene, frames, self.worker.release)
        self._queued = False
        self._grid: GridMap | None = None  # of tiles
        self._silent = self._late = self._stuck = ""  # ids, as of the last step
        self._warm: set[tuple] = set()  # what is compiled
        self._outputs = FleetPublishers(self)
        self._tasks = FleetTasks(self._fleet, self.values)
        self._told = TopicFleet(self, self._fleet, self._tasks.batteries, frames, lambda: self._scene.frame, self._poll)
        self._maps = TopicMaps(self, self._scene, self._take_map)
        self._task_services = TaskServices(self, self._tasks, frames, self._scene, self._say_task)
        self.serve(PlanFleet, "~/plan_fleet", self._answer, self._refusal, beside=True)
        period = float(np.clip(self.values.step_s / POLLS, LEAST_S, MOST_S))
        self.create_timer(period, self._poll_soon, clock=steady_clock())
        for missing in filter(None, (frames.missing, self._maps.missing)):
            self.get_logger().info(missing)
        self.worker.start()

    # ---- map and parameters ----

    def _change_parameters(self, values):
        self.worker.do(self._configure, values)

    def _configure(self, values):
        changes = self._scene.changes
        try:
            self._fleet.configure(values)
        except Exception as error:  # what was before goes on
            self.state.set_problem("parameters", f"parameters were not taken: {error_text(error)}")
            return
        self.state.set_problem("parameters", "")
        before, self.values = self.values, values
        self._tasks.configure(values)
        self._scene.configure(values)
        self._outputs.pictures.look_every(1.0 / values.marker_rate)
        self._take_map(self._scene.changes != changes or before.tile_size != values.tile_size)

    def _take_map(self, changed):
        if self._scene.grid is None:
            return
        changed = changed or self._grid is None
        grid = self._grid = coarser(self._scene.grid, self.values.tile_size) if changed else self._grid
        key = self.values.motion, self.values.device, self.values.fleet
        if key not in self._warm:
            took = self._get_ready(*self._parts())
            self._warm.add(key)
            devices = ", ".join(self.values.devices)
            self.get_logger().info(f"map of {grid.rows} x {grid.cols} tiles, ready on {devices} after {took:.1f} s")
        if changed:
            self._take_with_zones(grid)
            self._outputs.show_map(grid, self._scene.map_header())
        self.state.set_problem("guidance", self._fleet.guidance_fault)
        self._say_ready()

    def _take_with_zones(self, grid):
        """Have the fleet run on a map, with the zones of zones_file; without them where they cannot be used."""
        path, why = self.values.zones_file, ""
        try:
            layout = zoned(path, grid)
            self._fleet.take_map(layout.grid, layout.lanes(), layout.zones())
        except GpuPlannersError as error:
            if not path:
                raise
            why = f"zones_file is not used: {error_text(error)}"
            self._fleet.take_map(grid)
        self.state.set_problem("zones", why)

    def _parts(self):
        """(what steps need, what requests need)"""
        given = self.values.motion, self.values.fleet
        return zip(*(fleet_parts(device, *given) for device in dict.fromkeys(self.values.devices)), strict=True)

    def _say_ready(self):
        _, plans = self._parts()
        if self._warm and not self._due(plans):
            self.state.say(OK, "ready")

    def _take_compiled(self, answers):
        super()._take_compiled(answers)
        if self.state.told[1] == COMPILING:
            self.worker.do(self._say_ready)

    # ---- steps ----

    def _poll_soon(self):
        if not self._queued and self._fleet.due_from <= self.now():
            self._queued = True
            self.worker.do_aside(self._poll)

    def _poll(self):
        """Begin the next step if it is due."""
        self._queued = False
        self._told.take()  # the latest reports count, also those that came while a step was planned
        now = self.now()
        self.state.set_problem("state_file", self._fleet.state_fault)
        try:
            due = self._fleet.due(now)
            if due:
                self._task_services.give(now)
            step = self._fleet.step(now) if due else self._fleet.news(now)
            self.state.set_problem("step", "")
        except Exception as error:  # whatever it is, agents stand, and the next step may be right
            self._fleet.began = now
            self.state.set_problem("step", f"a step was not planned, all agents stand: {error_text(error)}")
            return
        if step is not None:
            self._outputs.show(step, self._fleet.places, self._scene.header(), due)
        if due:
            self._fleet.give_out(self.now())
            self._say_faults()

    def _say_faults(self):
        fleet, tell = self._fleet, self.state.set_problem
        for what, faults in (("states", {**fleet.clashes, **fleet.faults}), ("goals", fleet.goal_faults)):
            tell(what, named([faults[id] for id in sorted(faults)]))
        self._silent, self._stuck = named(fleet.silent_ids()), named(fleet.stuck_ids())
        self._late = named(fleet.late_ids())
        after = f"{self.values.silent_after_s:g} s"
        tell("silent", f"agents not heard of for {after}: {self._silent}" if self._silent else "")
        tell("late", f"agents that have not done their action for {after}: {self._late}" if self._late else "")
        tell("stuck", f"agents that are on the way for too long: {self._stuck}" if self._stuck else "")

    # ---- the service ----

    def _answer(self, request, response):
        if self.state.told[1] == COMPILING:
            _, plans = self._parts()
            self._unless_compiled(plans)
        return self._say_answer(self._solver.answer(request, response, self.values))

    def _refusal(self, error):
        return self._say_answer(PlanFleet.Response(code=codes.code_of(error), message=error_text(error)))

    def _say_answer(self, response):
        return self._say_task("plan_fleet", response)

    def _say_task(self, name, response):
        self._count()
        self._tell(name, f"code {response.code}: {response.message}", response.code == codes.NONE)
        return response

    def finish(self, patience_s: float = -1.0) -> bool:
        ended = super().finish(patience_s)
        if ended:
            self._tasks.close()
        return ended

    def _facts(self):
        grid, fleet = self._grid, self._fleet
        times = list(fleet.step_times) or [math.nan]
        where = f"of {grid.resolution} m in '{self._scene.frame}'" if grid else ""
        return {
            "map": f"{grid.rows} x {grid.cols} tiles {where}" if grid else "none",
            "map changes": self._scene.changes,
            "map messages": self._maps.taken,
            "device": self.values.device,
            "motion": self.values.motion,
            "agents": len(fleet),
            "agents on the map": fleet.on_map,
            "steps": fleet.steps,
            "step time": f"{1e3 * times[-1]:.2f} ms, longest of {len(times)}: {1e3 * max(times):.2f} ms",
            "goals reached": fleet.reached,
            "goals per minute": f"{fleet.goals_per_minute:.1f}",
            "silent": self._silent,
            "late": self._late,
            "stuck": self._stuck,
            "occupied": named(fleet.occupied_ids()),
            "tasks": self._task_services.counts,
            "requests": self._requests,
            "last answer": self._last_answer,
        }


main = partial(run, FleetPlannerNode, "fleet_planner")  # until it is told to stop -> the exit code

if __name__ == "__main__":
    sys.exit(main())
