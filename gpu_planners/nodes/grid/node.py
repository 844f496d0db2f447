"""The node grid_planner: parameters, topics, services and Nav2's action around the library of gpu_planners.grid.

Callbacks only hand on what arrives. One worker thread owns the map and does all planning (CUDA contexts belong to one
thread): a map published before a request is the one that is planned on. Updates that come in a burst are taken as one.
"""

import sys
from typing import Any

import numpy as np
from nav_msgs.msg import Path
from nav_msgs.srv import GetPlan

from gpu_planners_msgs.srv import PlanAgents

from ...grid.planner import ALGORITHMS
from ..common import map_codes as codes
from ..common.diagnostics import OK, WARN
from ..common.frames import Frames
from ..common.lifecycle import Lifecycle
from ..common.map_messages import Poses, as_poses, pose_of, poses_of
from ..common.planner_node import PlannerNode
from ..common.process import run
from ..common.request_error import NotBegunError, RequestError, check_count, error_text
from ..common.topic_maps import TopicMaps
from . import agent_planning, nav2
from .near_goals import reached
from .parameters import GridParameters
from .path_checks import nearest, unreachable_poses
from .plan_publishers import PlanPublishers
from .scene import GridScene
from .topic_agents import TopicAgents

WAITING = "waiting for a map"


class GridPlannerNode(PlannerNode):
    """The node; options: as rclpy.node.Node takes them."""

    def __init__(self, **options: Any) -> None:
        super().__init__("grid_planner", GridParameters, "a map", **options)
        self._scene, self._frames = GridScene(self._values, lambda: self.get_clock().now().to_msg()), Frames(self)
        self._warm: set[tuple] = set()  # what is loaded
        self._outputs = PlanPublishers(self, self._values, self._worker)
        self._agents = TopicAgents(self, self._worker, self._state, self._plan_topics)
        self._maps: TopicMaps | None = None
        callbacks = {
            "configure": self._open_maps,
            "activate": lambda _: self._agents.plan_again(),
            "cleanup": self._close_maps,
            "shutdown": self._close_maps,
        }
        self._lifecycle = Lifecycle(self, self._values.lifecycle, callbacks)
        if self._lifecycle.active:
            self._open_maps()
        else:
            self._state.say(WARN, "unconfigured")
        self.serve(PlanAgents, "~/plan_agents", self._answer, self._refusal)
        self.serve(GetPlan, "~/get_plan", self._get_plan, self._no_plan)
        for text in (
            self._frames.missing,
            nav2.offer_actions(self, self._nav2_route),
            nav2.offer_is_path_valid(self, self._unreachable_poses),
            nav2.offer_clear(self, self._values.clear_costmap_service, self._clear),
        ):
            if text:
                self.get_logger().info(text)
        self._worker.start()

    def serve(self, kind: Any, name: str, answer: Any, refused: Any) -> None:
        super().serve(kind, name, self._lifecycle.gated(answer), refused)

    def act(self, kind: Any, name: str, answer: Any, refused: Any, cancelled: Any) -> None:
        super().act(kind, name, self._lifecycle.gated(answer), refused, cancelled)

    def _open_maps(self, _: str = "") -> None:
        self._maps = TopicMaps(self, self._values, self._worker, self._state, self._scene, self._get_ready_for)
        self._state.say(WARN, WAITING)
        if self._maps.missing:
            self.get_logger().info(self._maps.missing)

    def _close_maps(self, _: str) -> None:
        """Take no maps, and forget the one that there is."""
        if self._maps is not None:
            self._maps.close()
            self._maps = None
        self._worker.do(self._forget)

    def _forget(self):
        self._scene.forget()
        self._state.say(WARN, self._lifecycle.state)

    def _clear(self):
        """Plan on the map as it last came whole."""
        changes = self._scene.changes
        self._scene.clear()
        self._scene.apply()
        self._get_ready_for(self._scene.changes != changes)

    def _change_parameters(self, values):
        self._worker.do(self._configure, values)

    def _configure(self, values):
        self._values, changes = values, self._scene.changes
        self._scene.configure(values)
        self._get_ready(changed=self._scene.changes != changes)

    def _get_ready_for(self, changed):
        """After a change of map or parameters: compile, so that no request has to wait for it, and plan anew."""
        grid = self._scene.grid
        if grid is None:
            return
        values = self._values
        if self._key(values.algorithm) not in self._warm:
            device, took = self._get_ready(lambda: self._load(values.algorithm))
            self.get_logger().info(f"map of {grid.rows} x {grid.cols} cells, ready on {device} after {took:.1f} s")
        self._state.say(OK, "ready")
        if changed:
            self._outputs.show_map(grid, self._scene.map_header())
            self._agents.plan_again()
            self._worker.do(self._scene.planner, values.algorithm)  # takes the changes over before anybody asks

    def _key(self, algorithm):
        values, grid = self._values, self._scene.grid
        return algorithm, values.device, values.block_size, grid.connectivity, bool(grid.uniform_cost)

    def _load(self, algorithm):
        device = agent_planning.warm_up(self._scene, self._values, algorithm)
        self._warm.add(self._key(algorithm))
        return device

    def _prepare(self, algorithm):
        """Load an algorithm; one that was never used on this machine is compiled, while other requests go on."""
        if algorithm not in ALGORITHMS or self._scene.grid is None or self._key(algorithm) in self._warm:
            return
        grid, values = self._scene.grid, self._values
        self._unless_compiled(
            agent_planning.kind_of(algorithm, grid, values),
            agent_planning.compile_algorithm,
            algorithm,
            grid.connectivity,
            bool(grid.uniform_cost),
            values,
        )
        self._get_ready(lambda: self._load(algorithm))

    def _plan(self, starts, goals, algorithm=""):
        algorithm = algorithm or self._values.algorithm
        self._prepare(algorithm)
        return agent_planning.plan(self._scene, self._frames, starts, goals, algorithm)

    def _plan_topics(self, starts, goals):
        if self._lifecycle.state not in ("activating", "active"):
            raise NotBegunError(f"the node is {self._lifecycle.state}")
        agent_planning.check_agents(len(starts.poses), len(goals.poses), self._values)
        plan = self._plan(poses_of(starts), poses_of(goals))
        self._last_answer = plan.text()
        self.get_logger().info(
            f"topics: {self._last_answer}",
            throttle_duration_sec=1.0,  # maps may change many times a second
        )
        self._outputs.show(plan, self._values)

    def _say(self, plan, what, notes=()):
        self._last_answer = "; ".join((plan.text(), *notes))
        self.get_logger().info(f"{what}: {self._last_answer}")

    def _answer(self, request, response):
        self._prepare(request.algorithm or self._values.algorithm)
        response, plan = agent_planning.answer(self._scene, self._frames, self._values, request, response)
        self._requests += 1
        if plan is None:
            return self._warned(response)
        response.message += f" (warning: {self._state.problem})" if self._state.problem else ""
        self._say(plan, "plan_agents")
        self._outputs.show(plan, self._values)
        return response

    def _refusal(self, error):
        """The response to a request that was not begun, or that failed."""
        self._requests += 1
        return self._warned(PlanAgents.Response(code=codes.code_of(error), message=error_text(error)))

    def _warned(self, response):
        response.message += f" (warning: {self._state.problem})" if self._state.problem else ""
        self._last_answer = response.message
        self.get_logger().warning(f"plan_agents: {response.message}")
        return response

    def _get_plan(self, request, response):
        response.plan = self._route(request.start, [request.goal], self._values.algorithm, float(request.tolerance))
        return response

    def _no_plan(self, error):
        """GetPlan has no code: an empty path, and the reason in the log and diagnostics."""
        self._last_answer = f"code {codes.code_of(error)}: {error_text(error)}"
        self.get_logger().warning(f"get_plan: {self._last_answer}")
        self._state.publish()
        return GetPlan.Response(plan=Path(header=self._scene.header()))

    def _nav2_route(self, start, goals, planner_id):
        values = self._values
        algorithm = nav2.algorithm_of(planner_id, values.planner_ids, tuple(ALGORITHMS), values.algorithm)
        return self._route(start, goals, algorithm, values.goal_tolerance)

    def _route(self, start, goals, algorithm, tolerance):
        """nav_msgs/Path from a PoseStamped (None: from where the robot stands) through others."""
        self._requests += 1
        grid = self._scene.require_map()
        ways, moved = reached(grid, self._way(start, goals), tolerance)
        plan = self._plan(*agent_planning.legs(ways), algorithm)
        code, text = agent_planning.failure_of_legs(plan)
        if code != codes.NONE:
            raise RequestError(code, text)
        self._say(plan, "one path", moved)
        path = agent_planning.joined(plan)
        self._outputs.show_path(path)
        return path

    def _way(self, start, goals):
        """Poses in the map's frame of a PoseStamped, or where the robot stands, and of others."""
        poses = [("the start", self._robot() if start is None else pose_of(start))]
        poses += [("the goal", pose_of(goal)) for goal in goals]
        for what, pose in poses:
            agent_planning.check_orientations(pose, what.split()[1])
        moved = [self._frames.to_map(pose, self._scene.frame, what) for what, pose in poses]
        points, quaternions = (
            np.concatenate([getattr(pose, name) for pose in moved]) for name in ("points", "quaternions")
        )
        return Poses(points, quaternions, self._scene.frame)

    def _robot(self):
        return self._frames.origin_of(self._values.robot_frame, self._scene.frame, "the start")

    def _unreachable_poses(self, path):
        """Indices of the poses of a nav_msgs/Path, from the one nearest to the robot on, that it cannot get to now."""
        self._requests += 1
        check_count("poses in the path", len(path.poses), "max_path_poses", self._values, codes.INVALID_REQUEST)
        if not path.poses:
            raise RequestError(codes.INVALID_REQUEST, "the path has no poses; allowed: 1 or more")
        frame = path.header.frame_id or path.poses[0].header.frame_id
        poses = as_poses([pose.pose for pose in path.poses], frame)
        points = self._frames.to_map(poses, self._scene.frame, "the path").points[:, :2]
        try:
            first = nearest(points, self._robot().points[0, :2])
        except RequestError:  # nobody knows where the robot is
            first = 0
        invalid = (first + unreachable_poses(self._scene.require_map(), points[first:])).tolist()
        self._last_answer = f"is_path_valid: {len(invalid)} of {len(points) - first} poses ahead cannot be reached"
        return invalid

    def _facts(self):
        grid = self._scene.grid
        return {
            "map": f"{grid.rows} x {grid.cols} cells of {grid.resolution} m in '{self._scene.frame}'"
            if grid
            else "none",
            "map changes": self._scene.changes,
            "map messages": self._maps.taken if self._maps else 0,
            "lifecycle": self._lifecycle.state,
            "device": self._values.device,
            "algorithm": self._values.algorithm,
            "requests": self._requests,
            "last answer": self._last_answer,
        }


def main(arguments: list[str] | None = None) -> int:
    """Run the node until it is told to stop -> the exit code."""
    return run(GridPlannerNode, "grid_planner", arguments)


if __name__ == "__main__":
    sys.exit(main())
