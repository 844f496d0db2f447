"""The demo as a new user runs it, and that its checks find what they are there to find."""

import os
import re
import signal
import subprocess
import sys
import time
from argparse import Namespace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

import rclpy
from node_harness import GROUP, ROBOT
from PIL import Image
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from running_node import new_context

from gpu_planners.arm import load_urdf
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.compiling import arm_parts, fleet_parts, grid_parts, planner_part
from gpu_planners.demo import ahead, main
from gpu_planners.demo import fleet as demo_fleet
from gpu_planners.demo import grid as demo_grid
from gpu_planners.demo.arm import demo_robot
from gpu_planners.demo.node import AGAIN_S, NodeClient
from gpu_planners.errors import GpuPlannersError
from gpu_planners.grid import GridMap
from gpu_planners.grid.maps.generated import caves_and_rooms
from gpu_planners.grid.maps.map_files import save_map_yaml
from gpu_planners.nodes.arm.conversions import trajectory_message
from gpu_planners.nodes.arm.parameters import PLANNERS
from gpu_planners.nodes.common.ros import seconds
from gpu_planners_msgs.msg import AgentActions
from gpu_planners_msgs.srv import PlanAgents, PlanMotion


@pytest.fixture(scope="module")
def robot():
    return load_urdf(ROBOT, joints=GROUP)


def timed(robot):
    return trajectory_message(
        robot, time_parameterize(np.array([[0, 0, 0], [1, 0.5, 0.2]]), robot.velocity, robot.acceleration)
    )


def text_of_page(file, files):
    """The text of the page of results, which shows these files beside it and nothing from elsewhere."""
    page = file.read_text(encoding="utf-8")
    links = set(re.findall(r'(?:src|href)="([^"]*)"', page))
    assert links == set(files) and all((file.parent / link).stat().st_size > 20_000 for link in links)
    assert "http" not in page
    return page


@pytest.mark.slow
def test_the_demo_runs_checks_and_draws(tmp_path):
    pytest.importorskip("coal")
    try:
        demo_robot()
    except GpuPlannersError as error:
        pytest.skip(str(error))
    command = [sys.executable, "-m", "gpu_planners.demo.main", "--only", "arm", "--device", "cpu"]
    run = subprocess.run([*command, "--out", tmp_path / "out"], capture_output=True, text=True, timeout=580)
    assert run.returncode == 0, run.stdout + run.stderr
    for word in (
        "panda",
        "12 obstacles",
        "cpu",
        "solved",
        "refused, code -12",
        "shelf_top",
        "Every planner",
        "out/demo.html",
    ):
        assert word in run.stdout
    assert "hits " not in run.stdout and run.stdout.count("kept") == 3
    rows = {
        words[1]: words for words in map(str.split, run.stdout.splitlines()) if len(words) > 1 and words[1] in PLANNERS
    }
    assert rows.keys() == PLANNERS.keys() and all("solved" in row and "free" in row for row in rows.values())
    for row in rows.values():  # ... │ raw time ms │ raw length rad │ time ms │ length rad │
        raw, short = (float(row[i - 1]) for i, word in enumerate(row) if word == "rad")
        assert 0 < short <= raw
    page = text_of_page(tmp_path / "out/demo.html", ["demo_arm.html", "demo.png"])
    assert "Motions of a robot arm" in page and page.count("kept") == 3 and "All checks passed" in page


@pytest.mark.slow
def test_the_repeating_demo_shows_each_motion_and_ends_cleanly_on_ctrl_c(robot):
    """A node of the test answers with one motion of a second or so, and notes when it was asked."""
    context = new_context()
    node, asked = rclpy.create_node("arm_planner", context=context), []

    def answer(_request, response):
        asked.append(time.monotonic())
        response.code, response.message, response.trajectory = response.SUCCESS, "solved", timed(robot)
        return response

    node.create_service(PlanMotion, "~/plan_motion", answer)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    command = [sys.executable, "-m", "gpu_planners.demo.main", "--only", "arm", "--no-node", "--repeat"]
    environment = os.environ | {"ROS_DOMAIN_ID": str(context.get_domain_id())}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as demo:
        end = time.monotonic() + 60
        while len(asked) < 4 and time.monotonic() < end:
            executor.spin_once(timeout_sec=0.1)
        demo.send_signal(signal.SIGINT)
        printed, _ = demo.communicate(timeout=300)
    rclpy.shutdown(context=context)
    assert len(asked) == 4, printed
    assert demo.returncode == 0 and "Traceback" not in printed, printed
    motion_s = seconds(timed(robot).points[-1].time_from_start)
    assert motion_s > 0.5 and all(np.diff(asked[1:]) > motion_s)  # the first request only waits for the node


def test_a_signal_just_before_messages_are_taken_ends_the_demo_cleanly(monkeypatch):
    rclpy.init()
    client = NodeClient("arm", PlanMotion, "plan_motion", {}, Namespace(device="cpu", no_node=True))
    spin_once = rclpy.spin_once
    spin_once(client.node, timeout_sec=0)

    def spin_too_late(*arguments, **more):
        rclpy.shutdown()
        spin_once(*arguments, **more)

    monkeypatch.setattr(rclpy, "spin_once", spin_too_late)
    with pytest.raises(ExternalShutdownException):
        client.wait_for(lambda: False, "nothing comes")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["generated", "map_server", "MovingAI"])
def test_the_grid_demo_runs_checks_and_draws(tmp_path, kind):
    grid, options = caves_and_rooms(96, 128, seed=3), []
    if kind == "map_server":
        save_map_yaml(tmp_path / "caves.yaml", GridMap(grid.costs, resolution=0.1, origin=(1.0, 2.0, 0.4)))
        options = ["--map", str(tmp_path / "caves.yaml")]
    elif kind == "MovingAI":
        rows = ["".join(".@"[int(blocked)] for blocked in row) for row in grid.blocked]
        (tmp_path / "caves.map").write_text("\n".join(["type octile", "height 96", "width 128", "map", *rows]) + "\n")
        options = ["--map", str(tmp_path / "caves.map")]
    command = [
        sys.executable,
        "-m",
        "gpu_planners.demo.main",
        "--only",
        "grid",
        "--device",
        "cpu",
        "--agents",
        "300",
        "--size",
        "160",
    ]
    run = subprocess.run([*command, "--out", tmp_path / "out", *options], capture_output=True, text=True, timeout=280)
    assert run.returncode == 0, run.stdout + run.stderr
    size = "160 x 160" if kind == "generated" else "96 x 128"
    for word in (
        "all to one goal",
        "to 15 goals",
        "changed map",
        "obstacles fell",
        "ms from its message",
        "300 equal",
        "all free",
        size,
        "cpu",
        "exact",
        "out/demo.html",
    ):
        assert word in run.stdout, run.stdout
    assert "differ" not in run.stdout and "wrong" not in run.stdout
    assert "300 equal" in text_of_page(tmp_path / "out/demo.html", ["demo_grid.png"])
    assert Image.open(tmp_path / "out/demo_grid.png").size[0] >= 1000


def test_a_node_that_loses_its_map_is_named():
    answer = PlanAgents.Response(code=PlanAgents.Response.NO_MAP, message="no map has arrived")
    with pytest.raises(GpuPlannersError, match="no map has arrived"):
        demo_grid._ask(SimpleNamespace(ask=lambda _: (answer, 0.0)), PlanAgents.Request())


def test_a_node_that_compiles_is_asked_again_after_a_pause(monkeypatch):
    """It refuses at once. Asked without a break, it and the demo took a third of the CPU time of the first run."""
    codes = [PlanMotion.Response.ABORT, PlanMotion.Response.ABORT, PlanMotion.Response.SUCCESS]
    done, client = [], NodeClient.__new__(NodeClient)
    client.node, client._service, client._process = None, "arm_planner/plan_motion", None

    def call_async(message):
        response = PlanMotion.Response(code=codes.pop(0))
        done.append("asked")
        return SimpleNamespace(done=lambda: True, result=lambda: response)

    client._client = SimpleNamespace(call_async=call_async)
    monkeypatch.setattr(rclpy, "ok", lambda: True)
    monkeypatch.setattr(rclpy, "spin_once", lambda *_, **__: None)
    monkeypatch.setattr(NodeClient, "pause", lambda _, duration_s: done.append(duration_s))
    assert client.ask(PlanMotion.Request())[0].code == PlanMotion.Response.SUCCESS
    assert done == ["asked", AGAIN_S, "asked", AGAIN_S, "asked"] and AGAIN_S > 0


@pytest.mark.slow
def test_the_fleet_demo_runs_checks_and_draws(tmp_path):
    page, picture = tmp_path / "out/demo_fleet.html", tmp_path / "out/demo_fleet.png"
    command = [sys.executable, "-m", "gpu_planners.demo.main", "--only", "fleet", "--device", "cpu"]
    command += ["--fleet-agents", "150", "--fleet-steps", "24", "--out", tmp_path / "out"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=580)
    assert run.returncode == 0, run.stdout + run.stderr
    for word in ("warehouse of 78 x 134", "150 agents", "from second 8 to 16", "24 steps of 150 agents: no conflict"):
        assert word in run.stdout, run.stdout
    assert "no conflict" in text_of_page(tmp_path / "out/demo.html", [page.name, picture.name])
    assert "150 agents in a warehouse" in page.read_text() and Image.open(picture).size[0] >= 1000


def test_the_fleet_demos_agents_find_conflicts_and_refuse_what_they_cannot_do():
    grid = demo_fleet.warehouse_map(demo_fleet.ROWS, demo_fleet.COLS, 4)
    warehouse = demo_fleet.Warehouse(grid, 2, 0)
    warehouse.tiles, warehouse.headings = np.array([[0, 3], [0, 5]]), np.array([0, 2])
    warehouse.history = [(warehouse.tiles, warehouse.headings, warehouse.goals)]
    assert not warehouse.conflicts()

    def told(actions, tiles, start_tiles=(0, 5, 0, 3)):
        return AgentActions(ids=["r1", "r0"], actions=actions, tiles=tiles, start_tiles=start_tiles)

    forward, left = AgentActions.FORWARD, AgentActions.TURN_LEFT
    with pytest.raises(GpuPlannersError, match="do not agree"):
        warehouse.do(told([left, forward], [0, 5, 0, 3]))
    warehouse.tiles = np.array([[0, 3], [0, 5]])
    warehouse.headings = np.array([0, 2])
    with pytest.raises(GpuPlannersError, match="begin where they are not"):
        warehouse.do(told([forward, forward], [0, 4, 0, 4], [0, 5, 0, 2]))
    warehouse.do(told([forward, forward], [0, 4, 0, 4]))
    assert [each.kind for each in warehouse.conflicts()] == ["vertex"]
    with pytest.raises(GpuPlannersError, match="1 agents of 2"):
        warehouse.do(AgentActions(ids=["r0"], actions=[left], tiles=[0, 0]))


def test_all_that_the_demo_asks_for_is_compiled_ahead():
    grid = caves_and_rooms(64, 64, seed=0)
    asked = [planner_part(planner, "cpu") for planner in PLANNERS]
    asked += grid_parts("cpu", "exact", ahead.CONNECTIVITY, grid.uniform_cost)
    asked += [*arm_parts("cpu"), *fleet_parts("cpu", demo_fleet.PARAMETERS["motion"])]
    assert {part.what for part in ahead.parts("cpu")} == {part.what for part in asked}


def test_the_demo_compiles_for_each_device_that_it_is_given(monkeypatch):
    monkeypatch.setattr(ahead, "is_compiled", lambda what: False)
    assert [part.what for part in ahead.due("cpu,cpu")] == [part.what for part in ahead.parts("cpu")]


def test_on_two_cores_one_process_makes_all_parts_of_the_arm(monkeypatch):
    """In processes of their own they cost up to twice the CPU time."""
    monkeypatch.setattr(ahead, "is_compiled", lambda what: what == "inverse kinematics")
    names = [[part.what for part in chain] for chain in ahead.due_chains("cpu", 2)]
    arm = {part.what for part in arm_parts("cpu")} | {planner_part(planner, "cpu").what for planner in PLANNERS}
    assert len(names) == 2 and set(names[0]) == arm - {"inverse kinematics"} and not set(names[1]) & arm
    assert [[name] for chain in names for name in chain] == [
        [part.what for part in chain] for chain in ahead.due_chains("cpu", 8)
    ]


def test_a_wrong_option_of_the_demo_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main.main(["--agentz", "3"])
    assert "--agentz" in capsys.readouterr().err
    assert main.main(["--only", "grid", "--map", str(tmp_path / "[gpu]x.map")]) == 1
    assert "[gpu]x.map" in capsys.readouterr().out  # no markup
    for device in ("", "CUDA:0"):
        assert main.main(["--only", "grid", "--device", device]) == 1
        assert f"unknown device '{device}'" in capsys.readouterr().out
    assert main.main(["--only", "fleet", "--fleet-steps", "1"]) == 1
    assert "--fleet-steps is 1; allowed: 2 or more" in capsys.readouterr().out
