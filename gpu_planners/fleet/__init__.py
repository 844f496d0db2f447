"""Fleets: agents on one map that never collide."""

from ..verify.fleets import Conflict, conflicts
from .batch import solve_batch
from .guidance import Guidance
from .learning import learn_guidance
from .plan import FleetPlan, FleetStatus
from .planner import FleetPlanner
from .settings import Settings

__all__ = [
    "Conflict",
    "FleetPlan",
    "FleetPlanner",
    "FleetStatus",
    "Guidance",
    "Settings",
    "conflicts",
    "learn_guidance",
    "solve_batch",
]
