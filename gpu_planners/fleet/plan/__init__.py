"""Whole plans: every agent goes from its start to its goal."""

from .fleet_plan import FleetPlan, FleetStatus

__all__ = ["FleetPlan", "FleetStatus"]
