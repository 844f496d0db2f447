"""gpu-planners bench: the benchmarks of the checkout that this package runs from; arguments are passed on."""

import argparse
import importlib
import os
import sys
from pathlib import Path

from .errors import MissingError

ROOT = Path(__file__).resolve().parents[2]


def run(_options: argparse.Namespace, rest: list[str]) -> int:
    if not (ROOT / "benchmarks" / "__main__.py").is_file():
        raise MissingError(
            "the benchmarks are in the source tree, not in the installed package: run `make bench` in a checkout"
        )
    sys.path.insert(0, str(ROOT))
    peers = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))  # the peers run in processes of their own
    os.environ["PYTHONPATH"] = os.pathsep.join(peers)
    return importlib.import_module("benchmarks.__main__").main(rest)
