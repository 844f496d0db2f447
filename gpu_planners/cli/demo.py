"""gpu-planners demo: the demo of the nodes; arguments are passed on."""

import argparse
import importlib

from .errors import require


def run(_options: argparse.Namespace, rest: list[str]) -> int:
    require("gpu_planners.demo.main", "the demo", "from a checkout run `make demo`, which sets everything up")
    return importlib.import_module("gpu_planners.demo.main").main(rest)
