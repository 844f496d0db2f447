"""README's lines for ROS: each service call is answered by the nodes that its launch lines start; pasted into a shell
where ros2 is installed, else as the messages that they spell."""

import importlib
import os
import re
import shutil
import signal
import subprocess
import time

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

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)
CALLS = [call for block in BLOCKS for call in re.findall(r'ros2 service call (\S+) (\S+) "(.*?)"', block, re.DOTALL)]
PUBLISHED = [
    call for block in BLOCKS for call in re.findall(r'ros2 topic pub .*?(\S+) (\S+) "(.*?)"', block, re.DOTALL)
]
NODES = {"arm_planner": ArmPlannerNode, "grid_planner": GridPlannerNode, "fleet_planner": FleetPlannerNode}
DESK = share_folder() / "urdf/desk_arm.urdf", share_folder() / "urdf/desk_arm.srdf"
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


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("ros2"), reason="ros2 is not installed")
def test_the_desk_is_launched_called_and_moves(tmp_path):
    """Pasted as it stands: the launch, the service call, the motion."""
    launch = next(line for block in BLOCKS for line in block.splitlines() if "desk.launch.py" in line).partition("#")[0]
    wanted = ("/arm_planner/plan_motion", "/arm_planner/move")
    pasted = [call for block in BLOCKS for call in re.findall(r'ros2 (?:service|action) [^"]*"[^"]*"', block)]
    calls = [next(call for call in pasted if name in call) for name in wanted]
    log = tmp_path / "launch.log"
    with open(log, "w") as out:
        process = subprocess.Popen(
            launch.split(), stdout=out, stderr=out, start_new_session=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
    try:
        end = time.monotonic() + 400
        while "ready on" not in log.read_text():
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.2)
        planned, moved = (
            subprocess.run(call, shell=True, capture_output=True, text=True, timeout=300).stdout for call in calls
        )
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(20)
    assert "code=1," in planned, planned + log.read_text()
    assert "SUCCEEDED" in moved, moved + log.read_text()
