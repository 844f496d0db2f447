from .fleets import Conflict, conflicts
from .grids import BrokenPathError, broken_paths, costs_to_goal, walk
from .limits import broken_rules
from .paths import PathReport, check_path
from .scene import CoalScene, Meeting

__all__ = [
    "BrokenPathError",
    "CoalScene",
    "Conflict",
    "Meeting",
    "PathReport",
    "broken_paths",
    "broken_rules",
    "check_path",
    "conflicts",
    "costs_to_goal",
    "walk",
]
