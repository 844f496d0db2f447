"""The lines for ROS in README and the nodes' pages: the nodes that its launch lines start answer each service call;
pasted into a shell where ros2 is installed, else as the messages that they spell."""

import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest
import yaml
from checkout import ROOT

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

import running_node
from running_node import starter
from sensor_msgs.msg import JointState

from gpu_planners.arm import load_urdf
from gpu_planners.nodes.arm.node import ArmPlannerNode
from gpu_planners.nodes.fleet.node import FleetPlannerNode
from gpu_planners.nodes.grid.node import GridPlannerNode
from gpu_planners.share import share_folder

PAGES = ("README.md", "docs/arm_planner.md", "docs/grid_planner.md", "docs/fleet_planner.md")
TEXT = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
BLOCKS = re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)
CALLS = [call for block in BLOCKS for call in re.findall(r'ros2 service call (\S+) (\S+) "(.*?)"', block, re.DOTALL)]
PUBLISHED = [
    call for block in BLOCKS for call in re.findall(r'ros2 topic pub .*?(\S+) (\S+) "(.*?)"', block, re.DOTALL)
]
NODES = {"arm_planner": ArmPlannerNode, "grid_planner": GridPlannerNode, "fleet_planner": FleetPlannerNode}
DESK = share_folder() / "urdf/desk_arm.urdf", share_folder() / "urdf/desk_arm.srdf"
PATH = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
ANSWERS = {  # of a node's block in the README
    "arm_planner": ("code=1,", "SUCCEEDED"),
    "grid_planner": ("code=0,",),
    "fleet_planner": ("actions:", "code=0,"),
}
SUCCESS = {"arm_planner": 1, "grid_planner": 0, "fleet_planner": 0}


def named(kind):
    """gpu_planners_msgs/srv/PlanMotion -> the class"""
    package, folder, name = kind.split("/")
    return getattr(importlib.import_module(f"{package}.{folder}"), name)


def fill(message, values):
    """Set fields of a message from what YAML spells."""
    for name, value in values.items():
        field = getattr(message, name)
        if isinstance(value, dict):
            fill(field, value)
        elif value and isinstance(value, list) and isinstance(value[0], dict):
            of = re.match(r"sequence<(\w+)/(\w+)", message.get_fields_and_field_types()[name])
            kind = named(f"{of[1]}/msg/{of[2]}")
            setattr(message, name, [fill(kind(), each) for each in value])
        else:
            setattr(message, name, type(field)(value) if isinstance(field, int | float | str) else value)
    return message


class Running(running_node.RunningNode):
    def __init__(self, name, service, kind, **parameters):
        super().__init__(NODES[name], name, (kind, service), {"device": "cpu"} | parameters)
        assert self.client.wait_for_service(10)


start_node = starter(Running)


def test_the_readme_calls_each_node():
    assert {call[0].split("/")[1] for call in CALLS} == set(NODES) and len(CALLS) >= 3


@pytest.mark.parametrize("name, kind, text", CALLS, ids=[call[0] for call in CALLS])
def test_a_service_call_is_answered(start_node, name, kind, text):
    node, service = name.strip("/").split("/")
    kind = named(kind)
    if node == "arm_planner":
        more = {"robot_description_file": str(DESK[0]), "srdf_file": str(DESK[1]), "group": "arm"}
        more["scene_file"] = str(share_folder() / "config/scenes/desk.yaml")
    else:
        more = {"map_file": str(share_folder() / "config/maps/hall.yaml")}
    running = start_node(node, service, kind, **more)
    if node == "arm_planner":  # as trajectory_player would tell
        robot = load_urdf(DESK[0], srdf=DESK[1], group="arm")
        state = JointState(name=list(robot.joint_names), position=robot.named_states["ready"].tolist())
        states = running.publisher(JointState, "/joint_states")
        states.publish(state)
        running.client_node.create_timer(0.1, lambda: states.publish(state))
    else:
        running.wait_until(lambda: running.status.message == "ready")
    response = running.plan(fill(kind.Request(), yaml.safe_load(text)))
    assert response.code == SUCCESS[node], response.message


@pytest.mark.parametrize("kind, text", [call[1:] for call in PUBLISHED])
def test_what_is_published_is_a_message(kind, text):
    fill(named(kind)(), yaml.safe_load(text))


LAUNCHES = [
    line.partition("#")[0].strip() for block in BLOCKS for line in re.findall("ros2 launch gpu_planners .*", block)
]


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.skipif(not shutil.which("ros2", path=PATH), reason="ros2 is not installed: README says how to get it")
@pytest.mark.parametrize("line", LAUNCHES, ids=lambda line: line.split()[3])
def test_lines_pasted_into_shells_work(tmp_path, line):
    """The launch line in one, the block that calls its node in another."""
    (name,) = (name for name in NODES if name in line.replace("desk.", "arm_planner."))
    (block,) = (block for block in BLOCKS if f"call /{name}/" in block)
    log = tmp_path / "launch.log"
    with shell(line, log) as launch:
        wait_for(log, "ready on", launch)
        with shell(block, tmp_path / "calls.log") as calls:
            for words in ANSWERS[name]:
                wait_for(tmp_path / "calls.log", words, launch)
            calls.wait(60)


@contextmanager
def shell(text, log):
    environment = {"AMENT_PREFIX_PATH": sys.prefix, **os.environ, "PATH": PATH, "PYTHONUNBUFFERED": "1"}
    with open(log, "w") as out:
        process = subprocess.Popen(
            ["bash", "-c", text], stdout=out, stderr=out, cwd=log.parent, start_new_session=True, env=environment
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):  # nothing is left of it
            os.killpg(process.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            os.killpg(process.pid, signal.SIGKILL)


def wait_for(log, words, launch):
    end = time.monotonic() + 1000  # to compile
    while words not in log.read_text():
        assert launch.poll() is None and time.monotonic() < end, log.read_text()
        time.sleep(0.2)
