"""gpu-planners compile: compile now what first answers need, for images, installers and whoever will not wait later."""

import argparse
import contextlib
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .. import compiling
from ..code_cache import code_folder
from ..device import resolve_device
from ..errors import GpuPlannersError
from .errors import InputError


def run(options: argparse.Namespace, _rest: list[str]) -> int:
    products = [word.strip() for word in options.products.split(",")]
    if unknown := sorted(set(products) - set(compiling.PRODUCTS)):
        raise InputError(f"--for: unknown {', '.join(unknown)}; allowed: {', '.join(compiling.PRODUCTS)}")
    device, began = resolve_device(options.device), time.monotonic()
    parts = compiling.parts_of(dict.fromkeys(products), device)
    due = [part for part in parts if not compiling.is_compiled(part.what)]
    with _bar(options.quiet) as told:
        failed = compiling.compile_parts(due, told)
    if failed:
        raise GpuPlannersError("; ".join(f"{what} could not be compiled: {why}" for what, why in failed.items()))
    if not options.quiet:
        told = f"{len(due)} compiled in {time.monotonic() - began:.0f} s" if due else "nothing is left to compile"
        print(f"{', '.join(dict.fromkeys(products))} for {device}: {told}; kept in {code_folder()}", file=sys.stderr)
    return 0


@contextlib.contextmanager
def _bar(quiet):
    """A bar on a terminal -> what takes a compiling.Progress."""
    columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}")
    console = Console(stderr=True, quiet=quiet or not sys.stderr.isatty())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def told(progress):
            text = f"about {progress.left_s:.0f} s left; {', '.join(progress.doing)}"
            bar.update(task, completed=len(progress.ended), total=progress.total, description=text)

        yield told
