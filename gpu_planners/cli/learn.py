"""gpu-planners learn: one-way lanes and weights for a fleet on a map, learnt by simulation."""

import argparse
import os
import sys
import time
from contextlib import nullcontext
from pathlib import Path

from ..datasets.making import allowed_workers
from ..device import resolve_devices
from ..distributed.processes import processes
from ..errors import GpuPlannersError
from ..fleet import Settings, learn_guidance
from ..grid.maps.map_files import load_map_yaml
from ..grid.maps.movingai import load_movingai_map
from .errors import InputError, complain
from .motions import assigned
from .progress import shown_progress

INTERRUPTED = 130


def run(options: argparse.Namespace, _rest: list[str]) -> None:
    path = Path(options.map)
    output = Path(options.output or path.with_suffix(".guidance.npz"))
    if output.is_dir() or not output.resolve().parent.is_dir():
        raise InputError(f"--output '{output}' cannot be written: allowed: a file in a folder that is there")
    allowed_workers(options.workers)
    devices = resolve_devices(options.devices)
    grid = (load_map_yaml if path.suffix.lower() in (".yaml", ".yml") else load_movingai_map)(path, connectivity=4)
    settings = Settings(**assigned("--set", options.set, Settings))
    began, text = time.monotonic(), ""
    reached: list[float] = []

    def each(guidance, goals):
        nonlocal reached, text
        if not reached or goals[-1] > reached[-1]:
            guidance.save(output)
        reached, text = goals, f"{goals[-1]:.3f} goals a step, {goals[0]:.3f} at first"

    cores = len(os.sched_getaffinity(0)) if devices[0] == "cpu" else len(devices)
    workers = options.workers or cores
    try:
        with processes(workers) if workers > 1 else nullcontext() as pool:
            with shown_progress(options.quiet) as update:
                learn_guidance(
                    grid,
                    options.agents,
                    options.motion,
                    devices[0],
                    settings,
                    options.rounds,
                    options.steps,
                    options.seed,
                    children=options.children,
                    executor=pool,
                    devices=devices if pool else None,
                    progress=lambda done, total: update(done, text, total),
                    each=each,
                )
    except KeyboardInterrupt:
        kept = f"'{output}' holds the best so far: {text}" if reached else "nothing is learnt yet"
        complain(GpuPlannersError(f"stopped; {kept}"), INTERRUPTED)
        os._exit(INTERRUPTED)  # processes that simulate would be waited for
    if not options.quiet:
        print(f"'{output}': {text}; {time.monotonic() - began:.0f} s", file=sys.stderr)
