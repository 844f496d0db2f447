"""gpu_planners_nav2, Nav2's planner plugin, loaded and asked by Nav2's own planner server, which has the costmap.

Where nav2_planner is installed colcon builds the plugin, the planner server loads it by pluginlib, and clients of the
server's actions get plans of the real node. Without it the sources are compared with what they declare.
"""

import math
import re
import subprocess
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

import numpy as np
import running_node
import yaml
from checkout import ROOT
from geometry_msgs.msg import TransformStamped
from grid_harness import map_message, stamped
from lifecycle_msgs.srv import ChangeState
from nav_msgs.msg import OccupancyGrid
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.task import Future
from ros_plugins import declared_class, environment_with, prefix_of
from running_node import LATCHED
from test_footprints import BOX, CELL, HALL, assert_free, rows_of

from gpu_planners.nodes.grid.node import GridPlannerNode
from gpu_planners_msgs.srv import PlanAgents

PACKAGE = ROOT / "gpu_planners_nav2"
SOURCE = PACKAGE / "src/planner.cpp"
ACTION = "gpu_planners/compute_path_to_pose"  # the plugin's default
FLAT = (0.0, 0.0, 0.0)
START, GOAL = (1.5, 1.2, 0.4), (7.5, 4.9, -1.5)
REMAPPED = ["map:=/global_costmap/costmap_raw", "map_updates:=/global_costmap/costmap_raw_updates"]
OTHERS = {"Absent": "nowhere/compute_path_to_pose", "Silent": "silent/plan", "Refuses": "refuses/plan"}

slow = pytest.mark.slow
limited = pytest.mark.timeout(1200)  # the node may have to be compiled, and Nav2's headers are long


def test_what_is_installed_is_what_is_declared():
    """And what docs/nav2.md says."""
    name, source = declared_class(PACKAGE.name, "planner.cpp", "nav2_core::GlobalPlanner"), SOURCE.read_text()
    page = (ROOT / "docs/nav2.md").read_text()
    assert f'"{ACTION}"' in source and f'plugin: "{name}"' in page and name == PLUGIN["plugin"]
    assert all(f"`{one}`" in page for one in re.findall(r'name \+ "\.(\w+)"', source))


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """In which the planner server finds the plugin."""
    server = Path(prefix_of("nav2_planner") or "", "lib/nav2_planner/planner_server")
    if not server.is_file():
        pytest.skip("the ROS package nav2_planner is not installed: nothing loads the plugin")
    pytest.importorskip("nav2_msgs.action", reason="nav2_msgs is not installed for Python")
    return environment_with(PACKAGE.name, tmp_path_factory.mktemp)


PLUGIN = {"plugin": "gpu_planners_nav2::Planner", "server_timeout_s": 0.5, "answer_timeout_s": 60.0}
PLANNERS = {
    "GridBased": PLUGIN | {"server_timeout_s": 20.0},
    "Astar": PLUGIN | {"planner_id": "astar"},
    "Nonsense": PLUGIN | {"planner_id": "nonsense"},
    **{name: PLUGIN | {"action": action} for name, action in OTHERS.items()},
}
PLANNERS["Silent"] |= {"answer_timeout_s": 1.5}
COSTMAP = {
    "global_frame": "map",
    "robot_base_frame": "base_link",
    "footprint": BOX,
    "resolution": CELL,
    "always_send_full_costmap": True,
    "update_frequency": 10.0,
    "publish_frequency": 10.0,
    "plugins": ["static_layer", "inflation_layer"],
    "static_layer": {"plugin": "nav2_costmap_2d::StaticLayer", "map_topic": "/map"},
    "inflation_layer": {
        "plugin": "nav2_costmap_2d::InflationLayer",
        "inflation_radius": 0.8,
        "cost_scaling_factor": 3.0,
    },
}


class Server(running_node.RunningNode):
    """grid_planner, a client, and Nav2's planner server in a process of its own."""

    def __init__(self, environment, folder):
        def node(**options):
            remap = [part for one in REMAPPED for part in ("-r", one)]
            return GridPlannerNode(namespace="gpu_planners", cli_args=["--ros-args", *remap], **options)

        given = {"device": running_node.DEVICE, "map_kind": "costmap_raw", "footprint": BOX}
        super().__init__(node, "gpu_planners/grid_planner", (PlanAgents, "plan_agents"), given)
        parameters = {"planner_plugins": [*PLANNERS], **PLANNERS}
        told = {"planner_server": {"ros__parameters": parameters}}
        told["global_costmap"] = {"global_costmap": {"ros__parameters": COSTMAP}}
        (folder / "nav2.yaml").write_text(yaml.safe_dump(told))
        self.log = folder / "planner_server.log"
        program = Path(prefix_of("nav2_planner"), "lib/nav2_planner/planner_server")
        command = [program, "--ros-args", "--params-file", folder / "nav2.yaml"]
        domain = {"ROS_DOMAIN_ID": str(self.context.get_domain_id())}
        with self.log.open("w") as log:
            self.server = subprocess.Popen(command, env=environment | domain, stdout=log, stderr=subprocess.STDOUT)

    def open(self):
        """Have the planner server configured and activated, and the node know its costmap."""
        self._frame = self._latched("tf2_msgs.msg", "TFMessage", "/tf_static")
        transform = TransformStamped(child_frame_id="base_link")
        transform.header.frame_id = "map"
        transform.transform.translation.x, transform.transform.translation.y = START[:2]
        transform.transform.rotation.w = 1.0
        self._frame(transforms=[transform])
        self.client_node.create_publisher(OccupancyGrid, "/map", LATCHED).publish(map_message(HALL, CELL))
        change = self.client_node.create_client(ChangeState, "/planner_server/change_state")
        assert change.wait_for_service(60), self.log.read_text()
        for label in ("configure", "activate"):
            request = ChangeState.Request()
            request.transition.id = {"configure": 1, "activate": 3}[label]
            assert self.call(change, request, 120).success, self.log.read_text()
        self.wait_until(lambda: self.facts["map"].startswith("60 x 90"), 120)
        nav2 = pytest.importorskip("nav2_msgs.action")
        self.kind = nav2.ComputePathToPose
        self.actions = ActionClient(self.client_node, self.kind, "/compute_path_to_pose")
        assert self.actions.wait_for_server(20)

    def _latched(self, module, name, topic):
        kind = getattr(pytest.importorskip(module), name)
        publisher = self.client_node.create_publisher(kind, topic, LATCHED)
        return lambda **fields: publisher.publish(kind(**fields))

    def ask(self, start, goal, planner="GridBased", cancel_after=None, frame="map"):
        """-> (status, error code, text, path) of the planner server"""
        request = self.kind.Goal(start=stamped(*start, frame=frame), goal=stamped(*goal, frame=frame), use_start=True)
        request.planner_id = planner
        for _ in range(6):  # a server may answer before it knows that this client listens
            accepted, end = self.actions.send_goal_async(request), time.monotonic() + 10
            self.wait_until(lambda accepted=accepted, end=end: accepted.done() or time.monotonic() > end)
            if accepted.done():
                break
        answer = accepted.result().get_result_async()
        if cancel_after is not None:
            time.sleep(cancel_after)
            accepted.result().cancel_goal_async()
        self.wait_until(answer.done, 100)
        result = answer.result().result
        return answer.result().status, result.error_code, getattr(result, "error_msg", ""), result.path

    def close(self):
        self.server.terminate()
        self.server.wait(30)
        super().close()


@pytest.fixture(scope="module")
def server(environment, tmp_path_factory):
    server = Server(environment, tmp_path_factory.mktemp("server"))
    try:
        server.open()
        end = time.monotonic() + 600
        while server.ask(START, GOAL)[1] == 207:  # not yet compiled
            assert time.monotonic() < end, "timed out"
            time.sleep(0.5)
        yield server
    finally:
        server.close()


SUCCEEDED, CANCELED, ABORTED = 4, 5, 6  # of action_msgs/GoalStatus


@slow
@limited
@pytest.mark.parametrize("planner", ["GridBased", "Astar"])
def test_the_planner_servers_clients_get_the_nodes_plans(server, planner):
    """On the server's costmap: the node has no other map."""
    status, code, text, path = server.ask(START, GOAL, planner)
    assert (status, code) == (SUCCEEDED, 0), (text, server.log.read_text())
    assert path.header.frame_id == "map"
    assert_free(path, HALL, FLAT)
    ends = rows_of(path)[[0, -1]]
    assert np.abs(ends[:, :2] - [START[:2], GOAL[:2]]).max() < 1e-6
    assert np.abs(np.sin(ends[:, 2] - [START[2], GOAL[2]])).max() < 1e-6


@slow
@limited
def test_codes_of_the_node_become_those_of_the_server(server):
    for start, goal, planner, wanted in (
        ((4.5, 1.0, 0.0), GOAL, "GridBased", 205),
        (START, (4.5, 3.55, math.pi / 2), "GridBased", 206),
        ((50.0, 1.2, 0.0), GOAL, "GridBased", 203),
        (START, (50.0, 1.2, 0.0), "GridBased", 204),
        (START, GOAL, "Nonsense", 201),
    ):
        status, code, _, path = server.ask(start, goal, planner)
        assert (status, code, len(path.poses)) == (ABORTED, wanted, 0), server.log.read_text()
    log = server.log.read_text()
    assert "the footprint with its margin" in log and "unknown planner_id 'nonsense'; known are GridBased, auto" in log


@slow
@limited
def test_an_absent_node_is_named(server):
    status, code, _, _ = server.ask(START, GOAL, "Absent")
    assert (status, code) == (ABORTED, 200)
    log = server.log.read_text()
    assert (
        "no node serves the action /nowhere/compute_path_to_pose" in log and "Start gpu_planners' grid_planner" in log
    )


@pytest.fixture
def strangers(server):
    """Servers that take a goal and never answer, or take none -> ends the silent one; cancels that it heard of."""
    never, cancels, ended = Future(), [], []

    async def execute(goal):
        await never

    def heard(goal):
        cancels.append(goal)
        return CancelResponse.REJECT

    silent = ActionServer(server.client_node, server.kind, OTHERS["Silent"], execute, cancel_callback=heard)
    refuses = ActionServer(
        server.client_node, server.kind, OTHERS["Refuses"], execute, goal_callback=lambda goal: GoalResponse.REJECT
    )

    def end():
        if not ended:
            ended.append(True)
            silent.destroy()

    yield end, cancels
    end()
    refuses.destroy()


@slow
@limited
def test_a_node_that_gives_no_answer_is_named(server, strangers):
    end_silent, cancels = strangers
    assert server.ask(START, GOAL, "Refuses")[:2] == (ABORTED, 200)
    assert "/refuses/plan takes no goal now" in server.log.read_text()
    assert server.ask(START, GOAL, "Silent")[:2] == (ABORTED, 207)
    waited = re.search(r"/silent/plan gave no answer within (\d+\.\d+)", server.log.read_text())
    assert waited and float(waited[1]) >= 1.5  # longer on a busy machine
    server.wait_until(lambda: cancels)  # what nobody waits for is not planned
    threading.Timer(0.7, end_silent).start()
    assert server.ask(START, GOAL, "Silent")[:2] == (ABORTED, 200)
    assert "the node that serves /silent/plan went away while it planned" in server.log.read_text()


@slow
@limited
def test_a_cancelled_goal_is_cancelled_in_the_node(server, strangers):
    _, cancels = strangers
    before = len(cancels)
    began = time.monotonic()
    status = server.ask(START, GOAL, "Silent", cancel_after=0.3)[0]
    assert status == CANCELED and len(cancels) > before and time.monotonic() - began < 10
    assert server.ask(START, GOAL)[:2] == (SUCCEEDED, 0)
