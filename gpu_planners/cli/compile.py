"""gpu-planners compile: compile now what first answers need, for images, installers and whoever will not wait later."""

import argparse
import sys
import time

from .. import compiling
from ..code_cache import code_folder
from ..device import resolve_device
from ..errors import GpuPlannersError
from .errors import InputError
from .progress import shown_progress


def run(options: argparse.Namespace, _rest: list[str]) -> None:
    products = [word.strip() for word in options.products.split(",")]
    if unknown := sorted(set(products) - set(compiling.PRODUCTS)):
        raise InputError(f"--for: unknown {', '.join(unknown)}; allowed: {', '.join(compiling.PRODUCTS)}")
    device, began = resolve_device(options.device), time.monotonic()
    parts = compiling.parts_of(dict.fromkeys(products), device)
    due = [part for part in parts if not compiling.is_compiled(part.what)]
    with shown_progress(options.quiet) as update:

        def told(progress):
            text = f"{progress.time}; {', '.join(progress.doing)}"
            update(len(progress.ended), text, progress.total)

        failed = compiling.compile_parts(due, told)
    if failed:
        raise GpuPlannersError("; ".join(f"{what} could not be compiled: {why}" for what, why in failed.items()))
    if not options.quiet:
        done = f"{len(due)} compiled in {time.monotonic() - began:.0f} s" if due else "nothing is left to compile"
        print(f"{', '.join(dict.fromkeys(products))} for {device}: {done}; kept in {code_folder()}", file=sys.stderr)
