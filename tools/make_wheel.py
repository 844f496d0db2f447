#!/usr/bin/env python3
"""Makes a wheel of gpu_planners with ready-made code, in dist/.

The wheel is for the version of Python that runs this, and its code for the installed versions of Numba and numba-cuda:
for processors with AVX2 (x86-64-v3) and, where there is a GPU, for CUDA devices of the compute capabilities that
code_cache.py lists, whichever the GPU here is. With other versions and devices the package compiles as ever.
Arguments go to `gpu-planners compile`: --for arm makes a wheel with the arm's code alone.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build" / "wheel"
WHAT = ("gpu_planners", "launch", "config", "urdf", "resource", "package.xml", "setup.py", "setup.cfg")
WHAT += ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in")


def main():
    shutil.rmtree(COPY, ignore_errors=True)
    for name in WHAT:
        place = ROOT / name
        copy = shutil.copytree if place.is_dir() else shutil.copy2
        COPY.mkdir(parents=True, exist_ok=True)
        copy(place, COPY / name, **({"ignore": shutil.ignore_patterns("__pycache__")} if place.is_dir() else {}))
    ready = COPY / "gpu_planners" / "ready_made"
    sys.path.insert(0, str(ROOT))
    from gpu_planners.code_cache import MAKING, PROCESSOR
    from gpu_planners.device import cuda_problem

    environment = os.environ | {
        MAKING: str(ready),
        "NUMBA_CPU_NAME": PROCESSOR,
        "NUMBA_CPU_FEATURES": "",
        "PYTHONPATH": os.pathsep.join([str(COPY), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "gpu_planners.cli", "compile", *sys.argv[1:], "--device"]
    devices = ["cpu"] if cuda_problem() else ["cuda", "cpu"]
    compiling = [subprocess.Popen([*command, device], cwd=COPY, env=environment) for device in devices]
    if any([each.wait() for each in compiling]):
        sys.exit("make_wheel: see above")
    for build in ("build", "gpu_planners.egg-info"):
        shutil.rmtree(COPY / build, ignore_errors=True)
    options = "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-q"
    run("-m", "pip", "wheel", *options, "-w", ROOT / "dist", ".", cwd=COPY, env=os.environ)
    for wheel in sorted((ROOT / "dist").glob("gpu_planners-*.whl"), key=os.path.getmtime)[-1:]:
        made_for = "the CPU alone" if cuda_problem() else "the CPU and CUDA"
        print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.1f} MB, with code for {made_for}")


def run(*arguments, **options):
    subprocess.run([sys.executable, *map(str, arguments)], check=True, **options)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"make_wheel: {error}")
