"""A planner or a grid algorithm that enters its table is offered everywhere: no other list knows the names."""

import subprocess
import sys

import pytest
from checkout import ROOT

from gpu_planners.arm import PLANNERS
from gpu_planners.cli import parser

REGISTERED = """
import sys, types
from dataclasses import dataclass
import gpu_planners.arm as arm
import gpu_planners.grid.planner as grid
from gpu_planners.arm.planners.settings import PlannerSettings
from gpu_planners.settings import Described, setting

@dataclass(frozen=True, kw_only=True)
class Settings(PlannerSettings):
    patience: int = setting(3, "Looks before it gives up", 1, 9)

@dataclass(frozen=True)
class WalkSettings(Described):
    stride: float = setting(0.5, "Length of a stride", 0.1, 2.0, unit="metres")

arm.PLANNERS["bold"] = types.SimpleNamespace(Settings=Settings, solve=None)
sys.modules["walk"] = types.SimpleNamespace(Settings=WalkSettings)
grid.ALGORITHMS = types.MappingProxyType({**grid.ALGORITHMS, "walk": grid.Algorithm("walk", "Walk")})
"""
FOUND = """
import os
import rclpy
from gpu_planners.nodes.arm.parameters import ArmParameters
from gpu_planners.nodes.arm.plan_service import planner_of
from gpu_planners.nodes.common.parameters import declare
from gpu_planners.nodes.grid.parameters import GridParameters
from gpu_planners_msgs.srv import PlanMotion
sys.path.insert(0, "tools")
from write_settings import parameter_file

rclpy.init(args=["--ros-args", "-p", "bold.patience:=5", "-p", "planner:=bold", "-p", "walk.stride:=1.5"])
arm_values = declare(rclpy.create_node("one"), ArmParameters)
grid_values = declare(rclpy.create_node("other"), GridParameters)
assert planner_of(arm_values, PlanMotion.Request()) == ("bold", Settings(patience=5))
assert grid_values.walk == WalkSettings(1.5)
assert "patience: 3" in parameter_file("arm_planner", ArmParameters)
assert "stride: 0.5" in parameter_file("grid_planner", GridParameters)
print("found")
rclpy.shutdown()
"""


@pytest.mark.ros
def test_a_new_planner_has_its_parameters_in_the_nodes():
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")
    run = subprocess.run(
        [sys.executable, "-c", REGISTERED + FOUND], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0 and "found" in run.stdout, run.stderr


def test_the_command_line_offers_every_planner():
    assert parser.PLANNERS == tuple(PLANNERS)
