"""The names of `gpu_planners.fleet`, for programs that import them from here."""

from ..fleet import *  # noqa: F403
from ..fleet import __all__ as __all__
