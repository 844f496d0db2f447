"""Fleets: agents on one map that never collide."""

from ..verify.fleets import Conflict, conflicts
from .batch import solve_batch
from .dispatch import Dispatcher, DispatchSettings, RobotState, Task, TaskState, TaskStatus
from .guidance import Guidance
from .learning import learn_guidance
from .plan import FleetPlan, FleetStatus
from .planner import FleetPlanner
from .settings import Settings
from .zones import Zones

__all__ = [
    "Conflict",
    "DispatchSettings",
    "Dispatcher",
    "FleetPlan",
    "FleetPlanner",
    "FleetStatus",
    "Guidance",
    "RobotState",
    "Settings",
    "Task",
    "TaskState",
    "TaskStatus",
    "Zones",
    "conflicts",
    "learn_guidance",
    "solve_batch",
]
