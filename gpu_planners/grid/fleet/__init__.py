"""Fleets: agents on one map that never collide."""

from .plan import FleetPlan, FleetStatus
from .planner import FleetPlanner
from .settings import Settings
from .validator import Conflict, conflicts

__all__ = ["Conflict", "FleetPlan", "FleetPlanner", "FleetStatus", "Settings", "conflicts"]
