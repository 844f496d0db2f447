"""The machine and the versions behind a figure, and which devices are there."""

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

PACKAGES = ("numpy", "numba", "numba-cuda", "scipy", "trimesh", "ruckig", "pin", "coal", "ompl", "toppra")


def describe():
    """{cpu, cores, memory_gib, load, gpu, driver, system, python, versions} of this machine."""
    gpu, driver = graphics_card()
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(_memory_gib()),
        "load": round(os.getloadavg()[0], 1),  # before the run: above 0 others share the cores
        "gpu": gpu,
        "driver": driver,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions(),
    }


def versions():
    """{package: version} of what is installed, gpu_planners first."""
    from gpu_planners import __version__

    found = {"gpu_planners": __version__}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def graphics_card():
    """(name, driver version) of the first NVIDIA GPU, or (None, None)."""
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None, None
    first = answer.strip().splitlines()[:1]
    return tuple(part.strip() for part in first[0].split(",")[:2]) if first else (None, None)


def devices(asked):
    """Split "cpu", "cuda" or "all" into (devices that are there, {device: why it is not there})."""
    from gpu_planners.device import resolve_device
    from gpu_planners.errors import DeviceError

    there, missing = [], {}
    for device in ("cpu", "cuda") if asked == "all" else (asked,):
        try:
            there.append(resolve_device(device))
        except DeviceError as error:
            missing[device] = f"no device: {error}"
    return tuple(there), missing


def _cpu_model():
    match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return match.group(1) if match else platform.processor() or "unknown"


def _memory_gib():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
