"""The node grid_planner: parameters, topics, services and Nav2's action around the library of gpu_planners.grid.

Callbacks only hand on what arrives. A worker owns the map and does all planning, on a thread for each device: a map
published before a request is the one that is planned on. Updates that come in a burst are taken as one.
"""

import sys
from functools import partial
from typing import Any

from nav_msgs.msg import Path
from nav_msgs.srv import GetPlan

from gpu_planners_msgs.srv import PlanAgents

from ...errors import error_text, shown
from ...grid import AgentStatus
from ..common import map_codes as codes
from ..common.actions import QueuedAction
from ..common.lifecycle import ManagedNode, transition
from ..common.map_messages import poses_of
from ..common.map_scene import Frames, TopicMaps
from ..common.planner_node import OK, WARN, PlannerNode
from ..common.process import run
from ..common.request_error import NotBegunError, RequestError, check_count
from . import agent_planning, nav2, pose_routes, routes
from .parameters import GridParameters
from .scene import GridScene
from .topics import PlanPublishers, TopicAgents


class GridPlannerNode(PlannerNode, ManagedNode):
    """The node; options: as rclpy.node.Node takes them."""

    def __init__(self, **options: Any) -> None:
        super().__init__("grid_planner", GridParameters, "a map", "map_file", **options)
        self._scene, self._frames = GridScene(self.values, lambda: self.get_clock().now().to_msg()), Frames(self)
        self._warm: set[tuple] = set()  # what is loaded
        self._outputs = PlanPublishers(self)
        self._agents = TopicAgents(self, self._plan_topics)
        self._maps: TopicMaps | None = None
        if self.values.lifecycle:
            self.manage()
            self.state.say(WARN, "unconfigured")
        else:
            self._open_maps()
        self.serve(PlanAgents, "~/plan_agents", self._answer, self._refusal, beside=True)
        self.serve(GetPlan, "~/get_plan", self._get_plan, self._no_plan, beside=True)
        for text in (
            self._frames.missing,
            nav2.offer_actions(self, self._nav2_route),
            nav2.offer_service(
                self, "is_path_valid", "IsPathValid", self._is_path_valid, self._tell, beside=True, is_valid=False
            ),
            nav2.offer_service(self, self.values.clear_costmap_service, "ClearEntireCostmap", self._clear, self._tell),
        ):
            if text:
                self.get_logger().info(text)
        self.worker.start()

    def serve(self, kind: Any, name: str, answer: Any, *more: Any, **options: Any) -> None:
        super().serve(kind, name, self.gated(answer), *more, **options)

    def act(self, kind: Any, name: str, answer: Any, *more: Any, **options: Any) -> QueuedAction:
        return super().act(kind, name, self.gated(answer), *more, **options)

    # ---- map and parameters ----

    @transition
    def on_configure(self):
        self._open_maps()

    @transition
    def on_activate(self):
        self._agents.plan_again()

    @transition
    def on_cleanup(self):
        """Take no maps, and forget the one that there is."""
        if self._maps is not None:
            self._maps.close()
            self._maps = None
        self.worker.do(self._forget)

    on_shutdown = on_cleanup  # type: ignore[assignment]  # a decorated method, as those of rclpy are

    def _open_maps(self):
        file = self.values.map_file
        self.state.say(WARN, f"loading {file}" if file else "waiting for a map")
        self._maps = TopicMaps(self, self._scene, self._get_ready_for)
        if self._maps.missing:
            self.get_logger().info(self._maps.missing)

    def _forget(self):
        self._scene.forget()
        self.state.say(WARN, self.lifecycle_state)

    def _clear(self, request, response):
        """Plan on the map as it last came whole."""
        text = "this node does not make the costmap; ask the node that publishes it to clear it"
        if plugins := list(getattr(request, "plugins", ())):  # of later releases of Nav2
            text = f"plugins is {shown(plugins)}; allowed: none, for the map has no layers"
        if plugins or self._scene.kind.costs is not None:
            raise RequestError(codes.INVALID_REQUEST, text)
        self._scene.require_map()
        changes = self._scene.changes
        self._scene.clear()
        self._scene.apply()
        self._get_ready_for(self._scene.changes != changes)
        return response

    def _change_parameters(self, values):
        self.worker.do(self._configure, values)

    def _configure(self, values):
        self.values, changes = values, self._scene.changes
        self._scene.configure(values)
        self._get_ready_for(self._scene.changes != changes)

    def _get_ready_for(self, changed):
        """After a change of map or parameters: compile, so that no request has to wait for it, and plan anew."""
        grid, algorithm = self._scene.grid, self.values.route_algorithm
        if grid is None:
            return
        if self._key(algorithm) not in self._warm:
            took = self._load(algorithm)
            devices = ", ".join(self.values.devices)
            self.get_logger().info(f"map of {grid.rows} x {grid.cols} cells, ready on {devices} after {took:.1f} s")
        self.state.say(OK, "ready")
        if changed:
            self._outputs.show_map(grid, self._scene.map_header())
            self._agents.plan_again()
            self.worker.do(self._scene.planners, algorithm)  # takes the changes over before anybody asks

    def _key(self, algorithm):
        values, grid = self.values, self._scene.grid
        if values.outline is not None:
            return "poses", values.device
        return algorithm, values.device, values.block_size, grid.connectivity, bool(grid.uniform_cost)

    def _parts(self, algorithm):
        if self.values.outline is not None:
            return pose_routes.parts(self.values)
        return agent_planning.parts(self.values, self._scene.grid, algorithm)

    def _load(self, algorithm):
        """-> seconds taken"""
        shaped = self.values.outline is not None  # the parts' own small requests load what it needs
        load = None if shaped else partial(agent_planning.load, self._scene, algorithm)
        took = self._get_ready(self._parts(algorithm), load=load)
        self._warm.add(self._key(algorithm))
        return took

    def _prepare(self, algorithm):
        """Load an algorithm; one that was never used on this machine is compiled, while other requests go on."""
        grid = self._scene.grid
        with self._lock:
            if algorithm not in self.values.route_algorithms or grid is None or self._key(algorithm) in self._warm:
                return
            self._unless_compiled(self._parts(algorithm))
            self._load(algorithm)

    # ---- plans ----

    def _plan(self, starts, goals, algorithm):
        self._prepare(algorithm)
        return agent_planning.plan(self._scene, self._frames, starts, goals, algorithm)

    def _plan_topics(self, starts, goals):
        if self.lifecycle_state not in ("activating", "active"):
            raise NotBegunError(f"the node is {self.lifecycle_state}")
        self._refuse_agents("the topics starts and goals")
        count = max(len(starts.poses), len(goals.poses))
        check_count("agents", count, "max_agents", self.values, codes.INVALID_REQUEST)
        plan = self._plan(poses_of(starts), poses_of(goals), self.values.algorithm)
        self._last_answer = plan.text()
        # maps may change many times a second
        self.get_logger().info(f"topics: {self._last_answer}", throttle_duration_sec=1.0)
        self._outputs.show(plan)

    def _refuse_agents(self, what):
        if self.values.outline is not None:
            text = f"{what}: these agents are discs; allowed: the parameter footprint empty, or paths of one robot"
            raise RequestError(codes.INVALID_REQUEST, text)

    def _answer(self, request, response):
        self._refuse_agents("plan_agents")
        self._prepare(request.algorithm or self.values.algorithm)
        plan = agent_planning.answer(self._scene, self._frames, self.values, request, response)
        self._answered("plan_agents", response, True)
        with self._lock:
            self._outputs.show(plan)
        return response

    def _refusal(self, error):
        response = PlanAgents.Response(code=codes.code_of(error), message=error_text(error))
        return self._answered("plan_agents", response, False)

    def _get_plan(self, request, response):
        algorithm = self.values.route_algorithm
        response.plan = self._route(request.start, [request.goal], algorithm, float(request.tolerance))
        return response

    def _no_plan(self, error):
        """GetPlan has no code: an empty path, and the reason in the log and diagnostics."""
        self._tell("get_plan", f"code {codes.code_of(error)}: {error_text(error)}", False)
        self.state.publish()
        return GetPlan.Response(plan=Path(header=self._scene.header()))

    def _nav2_route(self, start, goals, planner_id):
        values = self.values
        algorithm = nav2.algorithm_of(planner_id, values.planner_ids, values.route_algorithms, values.route_algorithm)
        return self._route(start, goals, algorithm, values.goal_tolerance)

    def _route(self, start, goals, algorithm, tolerance):
        """nav_msgs/Path from a PoseStamped (None: from where the robot stands) through others."""
        self._count()
        scene, values = self._scene, self.values
        scene.require_map()
        way = routes.way(self._frames, scene.frame, start, goals, values.robot_frame)
        if values.outline is not None:
            self._prepare(algorithm)
            path, text = pose_routes.route(scene, values, way, algorithm, tolerance)
            self._tell("one path", text, True)
            self._outputs.plan.publish(path)
            return path
        route = routes.route(scene, way, tolerance, values.start_tolerance)
        plan = self._plan(route.poses[:-1], route.poses[1:], algorithm)  # agents that go from each pose to the next
        if tolerance and (plan.paths.status == AgentStatus.NO_PATH).any():
            route = routes.route(scene, way, tolerance, values.start_tolerance, cut_off=True)
            plan = self._plan(route.poses[:-1], route.poses[1:], algorithm)
        path = routes.joined(plan, route.out, way[:1])
        self._tell("one path", "; ".join((plan.text(), *route.texts)), True)
        self._outputs.plan.publish(path)
        return path

    def _is_path_valid(self, request, response):
        path = request.path
        self._count()
        check_count("poses in the path", len(path.poses), "max_path_poses", self.values, codes.INVALID_REQUEST)
        blocked = routes.blocked_ahead(self._scene, self._frames, request, self.values.robot_frame)
        self._last_answer = f"is_path_valid: {len(blocked)} of {len(path.poses)} poses cannot be reached"
        response.is_valid = not blocked
        if hasattr(response, "invalid_pose_indices"):  # not in every release of Nav2
            response.invalid_pose_indices = blocked
        return response

    def _facts(self):
        grid = self._scene.grid
        where = f"of {grid.resolution} m in '{self._scene.frame}'" if grid else ""
        return {
            "map": f"{grid.rows} x {grid.cols} cells {where}" if grid else "none",
            "map changes": self._scene.changes,
            "map messages": self._maps.taken if self._maps else 0,
            "lifecycle": self.lifecycle_state,
            "device": self.values.device,
            "algorithm": self.values.route_algorithm,
            "requests": self._requests,
            "last answer": self._last_answer,
        }


main = partial(run, GridPlannerNode, "grid_planner")  # until it is told to stop -> the exit code

if __name__ == "__main__":
    sys.exit(main())
