"""Fleets: agents on one map that never collide."""

from .planner import FleetPlanner
from .settings import Settings
from .validator import Conflict, conflicts

__all__ = ["Conflict", "FleetPlanner", "Settings", "conflicts"]
