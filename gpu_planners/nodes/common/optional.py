"""ROS packages that are used where they are installed; what is missing without one is said."""

import importlib
from typing import Any


def optional_module(name: str, what: str) -> tuple[Any, str]:
    """(module or None, text on what is missing; empty when it is there). what: what there is not without the package"""
    try:
        return importlib.import_module(name), ""
    except ImportError:
        return None, f"the ROS package {name.split('.')[0]} is not installed: no {what}"
