"""What the node grid_planner publishes: paths as they are planned, and pictures of them where someone looks."""

from nav_msgs.msg import OccupancyGrid, Path
from sensor_msgs.msg import PointCloud2
from visualization_msgs.msg import MarkerArray

from .diagnostics import steady_clock
from .grid_conversions import agents_message, map_message
from .grid_markers import path_lines, paths_markers
from .grid_parameters import plan_topics
from .qos import LATCHED
from .worker import Worker


class PlanPublishers:
    """Calls are made on the planning thread, which expands paths (by Numba, in parallel: from one thread at a time). Pictures
    become messages on another one, so that no request waits for them.

    on_failure: called with the text of what went wrong with a picture
    """

    def __init__(self, node, values, planning, on_failure):
        self._planning, self._drawing, self._is_drawing = planning, Worker(on_failure), False
        self._plan = node.create_publisher(Path, "plan", 10)
        self._robots = [node.create_publisher(Path, topic, 10) for topic in plan_topics(values)]
        self._latched = {
            name: node.create_publisher(kind, f"~/{name}", LATCHED)
            for name, kind in (("paths_markers", MarkerArray), ("agents", PointCloud2), ("map", OccupancyGrid))
        }
        self._pending = {}  # name: (computes what the latest picture shows, makes its message of that), which nobody has looked for
        node.create_timer(0.2, self._look, clock=steady_clock())

    def close(self, patience_s):
        """As Worker.stop."""
        return self._drawing.stop(patience_s)

    def show_path(self, path):
        """nav_msgs/Path of a request for one path, which belongs to no agent of the topics."""
        self._plan.publish(path)

    def show(self, plan, values):
        """A Plan of agents: paths go out now, pictures a little later."""
        agent = values["plan_agent"]
        if agent < len(plan.paths) and self._plan.get_subscription_count():
            self._plan.publish(plan.path(agent))
        for agent, publisher in enumerate(self._robots[: len(plan.paths)]):
            if publisher.get_subscription_count():
                publisher.publish(plan.path(agent))
        most_agents, width = values["marker_agents"], values["marker_width"] or 0.5 * plan.grid.resolution
        self._pending["paths_markers"] = (
            lambda: path_lines(plan.grid, plan.paths, most_agents),
            lambda lines: paths_markers(lines, plan.header, width),
        )
        self._pending["agents"] = lambda: plan, lambda plan: agents_message(plan.starts, plan.paths, plan.header)

    def show_map(self, grid, header):
        self._pending["map"] = lambda: grid, lambda grid: map_message(grid, header)

    def _look(self):
        if not self._is_drawing and any(self._is_wanted(name) for name in list(self._pending)):
            self._is_drawing = True
            self._planning.do(self._draw)

    def _is_wanted(self, name):
        return self._latched[name].get_subscription_count() > 0

    def _draw(self):
        try:
            for name in filter(self._is_wanted, list(self._pending)):
                compute, message = self._pending.pop(name)
                self._drawing.do(self._publish, name, message, compute())
        finally:
            self._drawing.do(self._done)

    def _publish(self, name, message, shown):
        self._latched[name].publish(message(shown))

    def _done(self):
        self._is_drawing = False
