"""The node grid_planner: parameters, topics, services and Nav2's action around the library of gpu_planners.grid.

Callbacks only hand on what arrives. One worker thread owns the map and does all planning (CUDA contexts belong to one
thread), in the order in which things arrive: a map published before a request is the one that is planned on. Updates
that come in a burst are taken as one. Callbacks of services wait for that thread, never for the executor.
"""

import sys
import time
from typing import Any

from nav_msgs.msg import Path
from nav_msgs.srv import GetPlan
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node

from gpu_planners_msgs.srv import PlanAgents

from ..common.diagnostics import OK, WARN, Diagnostics
from ..common.frames import Frames
from ..common.map_messages import pose_of, poses_of
from ..common.parameters import check_changes, declare
from ..common.process import run
from ..common.request_error import RequestError, error_text
from ..common.topic_maps import TopicMaps
from ..common.worker import Worker
from . import agent_planning
from . import codes as grid_codes
from .nav2_action import ComputePathToPose
from .parameters import GridParameters
from .plan_publishers import PlanPublishers
from .scene import GridScene
from .topic_agents import TopicAgents


class GridPlannerNode(Node):
    """The node; options: as rclpy.node.Node takes them."""

    def __init__(self, **options: Any) -> None:
        super().__init__("grid_planner", **options)
        self._values = declare(self, GridParameters)
        check_changes(self, GridParameters, self._change_parameters)
        self._scene, self._frames = GridScene(self._values, lambda: self.get_clock().now().to_msg()), Frames(self)
        self._requests, self._last_answer = 0, ""
        self._warm: set[tuple] = set()  # what is compiled
        self._maps: TopicMaps | None = None
        self._state = Diagnostics(self, "waiting for a map", self._facts)
        self._worker = Worker(self._state.fail)
        self._outputs = PlanPublishers(self, self._values, self._worker)
        self._agents = TopicAgents(self, self._worker, self._state, self._plan_topics)
        self._maps = TopicMaps(self, self._values, self._worker, self._state, self._scene, self._get_ready)
        for kind, name, callback in (
            (PlanAgents, "plan_agents", self._plan_agents),
            (GetPlan, "get_plan", self._get_plan),
        ):
            self.create_service(kind, f"~/{name}", callback, callback_group=MutuallyExclusiveCallbackGroup())
        self._action = ComputePathToPose(self, self._worker, self._path_of_one)
        for missing in filter(None, (self._frames.missing, self._maps.missing, self._action.missing)):
            self.get_logger().info(missing)

    def close(self, patience_s: float = -1.0) -> bool:
        """Stop; False when the job under way has not ended within patience_s seconds (negative: wait for it)."""
        stopped = self._worker.stop(patience_s)
        if stopped:
            self.destroy_node()
        return stopped

    def _change_parameters(self, values):
        self._worker.do(self._configure, values)

    def _configure(self, values):
        self._values, changes = values, self._scene.changes
        self._scene.configure(values)
        self._get_ready(changed=self._scene.changes != changes)

    def _get_ready(self, changed):
        """After a change of map or parameters: compile, so that no request has to wait for it, and plan anew."""
        grid = self._scene.grid
        if grid is None:
            return
        values = self._values
        key = values.algorithm, values.device, values.block_size, bool(grid.uniform_cost)
        if key not in self._warm:
            self._state.say(WARN, "compiling; a request waits for it")
            started = time.monotonic()
            device = agent_planning.warm_up(self._scene, self._values.algorithm)
            self._warm.add(key)
            took = time.monotonic() - started
            self.get_logger().info(f"map of {grid.rows} x {grid.cols} cells, ready on {device} after {took:.1f} s")
        self._state.say(OK, "ready")
        if changed:
            self._outputs.show_map(grid, self._scene.map_header())
            self._agents.plan_again()
            self._worker.do(self._scene.planner, self._values.algorithm)  # takes the changes over before anybody asks

    def _plan(self, starts, goals, algorithm="", tolerance=0.0):
        algorithm = algorithm or self._values.algorithm
        return agent_planning.plan(self._scene, self._frames, starts, goals, algorithm, tolerance)

    def _plan_topics(self, starts, goals):
        agent_planning.check_agents(len(starts.poses), len(goals.poses), self._values)
        plan = self._plan(poses_of(starts), poses_of(goals))
        self._last_answer = plan.text()
        self.get_logger().info(
            f"topics: {self._last_answer}",
            throttle_duration_sec=1.0,  # maps may change many times a second
        )
        self._outputs.show(plan, self._values)

    def _say(self, plan, what):
        self._last_answer = plan.text()
        self.get_logger().info(f"{what}: {self._last_answer}")

    def _plan_agents(self, request, response):
        try:
            return self._worker.call(self._answer, request, response)
        except Exception as error:  # a callback that raises would end spin() and leave the client waiting
            return PlanAgents.Response(code=grid_codes.UNKNOWN, message=error_text(error))

    def _answer(self, request, response):
        self._requests += 1
        response, plan = agent_planning.answer(self._scene, self._frames, self._values, request, response)
        response.message += f" (warning: {self._state.problem})" if self._state.problem else ""
        if plan is None:
            self._last_answer = response.message
            self.get_logger().warning(f"plan_agents: {response.message}")
        else:
            self._say(plan, "plan_agents")
            self._outputs.show(plan, self._values)
        return response

    def _get_plan(self, request, response):
        try:
            response.plan = self._worker.call(
                self._path_of_one, request.start, request.goal, "", float(request.tolerance)
            )
        except Exception as error:  # GetPlan has no code: an empty path, and the reason in the log and diagnostics
            self._last_answer = f"code {grid_codes.code_of(error)}: {error_text(error)}"
            self.get_logger().warning(f"get_plan: {self._last_answer}")
            self._state.publish()
            response.plan = Path(header=self._scene.header())
        return response

    def _path_of_one(self, start, goal, algorithm, tolerance=0.0):
        """nav_msgs/Path between two PoseStamped; start None: from where the robot stands."""
        self._requests += 1
        origin = self._frames.origin_of
        starts = (
            pose_of(start) if start is not None else origin(self._values.robot_frame, self._scene.frame, "the start")
        )
        plan = self._plan(starts, pose_of(goal), algorithm, tolerance)
        code, text = plan.failure()
        if code != grid_codes.NONE:
            raise RequestError(code, text)
        self._say(plan, "one path")
        path = plan.path(0)
        self._outputs.show_path(path)
        return path

    def _facts(self):
        grid = self._scene.grid
        return {
            "map": f"{grid.rows} x {grid.cols} cells of {grid.resolution} m in '{self._scene.frame}'"
            if grid
            else "none",
            "map changes": self._scene.changes,
            "map messages": self._maps.taken if self._maps else 0,
            "device": self._values.device,
            "algorithm": self._values.algorithm,
            "requests": self._requests,
            "last answer": self._last_answer,
        }


def main(arguments: list[str] | None = None) -> int:
    """Run the node until it is told to stop -> the exit code."""
    return run(GridPlannerNode, "grid_planner", arguments, threads=4)


if __name__ == "__main__":
    sys.exit(main())
