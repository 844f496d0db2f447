"""Fleets: agents on one map that never collide."""

from .guidance import Guidance
from .learning import learn_guidance
from .planner import FleetPlanner
from .settings import Settings
from .validator import Conflict, conflicts

__all__ = ["Conflict", "FleetPlanner", "Guidance", "Settings", "conflicts", "learn_guidance"]
