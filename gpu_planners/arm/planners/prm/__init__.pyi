from .planner import Settings, build, solve

__all__ = ["Settings", "build", "solve"]
