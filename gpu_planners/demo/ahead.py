"""Compiles what the demo's requests need, in the order in which it asks; needs no ROS.

The set-up starts it as soon as the libraries are there, and goes on; so does the demo, where something is left to do.
The nodes load what is compiled, and wait for what is under way.
"""

import contextlib
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator

from ..code_cache import code_folder
from ..compiling import arm_parts, fleet_parts, grid_parts, planner_part
from ..device import resolve_devices
from ..distributed.processes import processes
from ..parts import Part, compile_in_turn, is_compiled

CONNECTIVITY = 8  # of the generated map, whose costs are uniform
MOTION = "turning"  # of the fleet


def parts(device: str) -> list[Part]:
    """device: as resolved"""
    return [part for chain in _chains(device) for part in chain]


def _chains(device):
    """Lists of parts: those of one list have much of their code in common."""
    checks, *more = arm_parts(device)
    first, *others = (planner_part(name, device) for name in ("rrt_connect", "prm", "rrt", "rrt_star"))
    grid = grid_parts(device, "exact", CONNECTIVITY, uniform_cost=True)
    return [checks, first, *more, *others], [*grid, *fleet_parts(device, MOTION)]


def due(devices: str) -> list[Part]:
    """What is not compiled. devices: as the user names them"""
    return [part for chain in due_chains(devices, 1) for part in chain]


def due_chains(devices: str, cores: int) -> list[list[Part]]:
    """What is not compiled, in lists that a process each compiles: as few as cores need, since each list costs less CPU
    time than its parts in processes of their own. devices: as the user names them"""
    alike = zip(*map(_chains, resolve_devices(devices)), strict=True)  # of all devices
    named = [{part.what: part for chain in chains for part in chain} for chains in alike]
    chains = [[part for part in chain.values() if not is_compiled(part.what)] for chain in named]
    if cores > len(chains):
        chains = [[part] for chain in chains for part in chain]
    return [chain for chain in chains if chain]


@contextlib.contextmanager
def compiling(devices: str) -> Iterator[None]:
    """Meanwhile a process of its own compiles what is due."""
    if not due(devices):
        yield
        return
    process = subprocess.Popen([sys.executable, "-m", __name__, devices], stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def main(devices: str = "auto") -> int:
    code_folder().mkdir(parents=True, exist_ok=True)
    with open(code_folder() / "demo.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # another one does it
            return 0
        os.nice(5)  # what is asked for goes first
        cores = len(os.sched_getaffinity(0))
        chains = due_chains(devices, cores)
        failed: dict[str, str] = {}
        with processes(min(cores, max(len(chains), 1))) as pool:
            for future in [pool.submit(compile_in_turn, chain) for chain in chains]:
                failed |= future.result()
    for what, why in failed.items():
        print(f"{what}: {why}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
