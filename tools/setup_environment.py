#!/usr/bin/env python3
"""Makes the virtual environment `.venv` with everything that `make demo`, `make test` and `make bench` need.

Its steps, each done again only when what it depends on has changed:
  environment   the virtual environment itself
  packages      gpu_planners (editable) with its libraries, ROS 2 Jazzy and the interface build tools, as wheels
  share         launch files, configurations, robots and executables where ROS looks for them
  interfaces    gpu_planners_msgs, built by colcon into the environment, where Python finds it without sourcing
  ros_packages  with --ros-packages: what no package index has, likewise; `ros2 launch` for instance
Plain standard library, for it runs before anything is installed.
"""

import argparse
import fcntl
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMPS = VENV / ".stamps"
LOG = VENV / "setup.log"
PYTHONS = ((3, 10), (3, 13))
# A sourced ROS workspace, or a process started from another such environment, must not leak into this one.
FOREIGN_VARIABLES = (
    "AMENT_PREFIX_PATH",
    "CMAKE_PREFIX_PATH",
    "COLCON_PREFIX_PATH",
    "LD_LIBRARY_PATH",
    "PYTHONHOME",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "_ROS_WHEELS_BOOTSTRAP_COMPLETE",
)


class SetupError(Exception):
    """Set-up cannot go on; the text says what to do about it."""


def digest(*parts):
    """One key for texts and for the contents of files and folders."""
    key = hashlib.sha256()
    for part in parts:
        files = [part] if isinstance(part, Path) and part.is_file() else []
        if isinstance(part, Path) and part.is_dir():
            files = sorted(file for file in part.rglob("*") if file.is_file())
        for file in files:
            key.update(os.path.relpath(file, ROOT).encode() + b"\0" + file.read_bytes())
        if not isinstance(part, Path):
            key.update(str(part).encode() + b"\0")
    return key.hexdigest()


def clean_environment(**extra):
    kept = {name: value for name, value in os.environ.items() if name not in FOREIGN_VARIABLES}
    return {**kept, "PATH": f"{VENV / 'bin'}{os.pathsep}{kept.get('PATH', os.defpath)}", **extra}


def run(command, **extra_environment):
    """Runs a command with its output in the log; a failure shows the end of the log."""
    started = time.monotonic()
    with LOG.open("a") as log:
        log.write(f"\n$ {' '.join(map(str, command))}\n")
        log.flush()
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=ROOT,
            env=clean_environment(**extra_environment),
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
        while process.poll() is None:
            time.sleep(0.2)
            if sys.stdout.isatty():
                print(f"\r  {time.monotonic() - started:4.0f} s", end="", flush=True)
    if sys.stdout.isatty():
        print("\r", end="")
    if process.returncode != 0:
        tail = "\n".join(LOG.read_text(errors="replace").splitlines()[-30:])
        raise SetupError(f"{tail}\n\nA set-up command failed (exit code {process.returncode}). Full log: {LOG}")


def check_machine():
    """Names everything that is missing on this machine at once, with the package that brings it."""
    version = sys.version_info[:2]
    if not PYTHONS[0] <= version <= PYTHONS[1]:
        raise SetupError(
            f"Python {version[0]}.{version[1]} ({sys.executable}) does not serve: 3.10 to 3.13 do. "
            "Choose one with: make setup PYTHON=python3.12"
        )
    name = f"python{version[0]}.{version[1]}"
    missing = []
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        missing.append(("Python's venv and ensurepip modules", f"{name}-venv"))
    # Inside a virtual environment, `include` already names the folder of the Python that it was made from.
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        missing.append(("Python.h", f"{name}-dev"))
    if not any(shutil.which(name) for name in (os.environ.get("CXX", "c++"), "g++", "clang++")):
        missing.append(("a C++ compiler", "g++"))
    if not any(shutil.which(name) for name in (os.environ.get("CC", "cc"), "gcc", "clang")):
        missing.append(("a C compiler", "gcc"))
    if missing:
        raise SetupError(
            "This machine lacks " + ", ".join(what for what, _ in missing) + ". On Debian and Ubuntu:\n"
            "  sudo apt install " + " ".join(package for _, package in missing)
        )


def has_nvidia_gpu():
    return Path("/proc/driver/nvidia/version").exists() or Path("/dev/nvidiactl").exists()


def make_environment():
    if VENV.exists() and (VENV / "pyvenv.cfg").exists():
        shutil.rmtree(VENV)
    # The log lies in the environment, so this one command runs without it.
    made = subprocess.run(
        [sys.executable, "-m", "venv", str(VENV)], env=clean_environment(), capture_output=True, text=True
    )
    if made.returncode != 0:
        raise SetupError(f"{made.stdout}{made.stderr}\n{sys.executable} -m venv failed.")


def install_packages(extras):
    run(
        [
            VENV / "bin/python",
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "--no-input",
            "-r",
            "tools/interface_build_requirements.txt",
            "-e",
            f".[{','.join(extras)}]",
        ]
    )


def shared_files():
    """What colcon and pip install into share/gpu_planners, relative to the checkout."""
    folders = (ROOT / name for name in ("launch", "config", "urdf"))
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    return ["package.xml", *sorted(str(file.relative_to(ROOT)) for file in files if "__pycache__" not in file.parts)]


def link_as_installed():
    """Puts links where `ros2 launch` and `ros2 run` look for what colcon would install: an edit needs no set-up.

    Each file is a link of its own, for `ros2 launch` does not follow links to folders; pip has put the executables into
    bin, where launch does not look for them.
    """
    share, lib = VENV / "share/gpu_planners", VENV / "lib/gpu_planners"
    installed = next(iter(importlib.metadata.distributions(name="gpu_planners", path=[str(site_packages())])))
    scripts = [entry.name for entry in installed.entry_points if entry.group == "console_scripts"]
    links = {share / name: ROOT / name for name in shared_files()}
    links |= {lib / name: VENV / "bin" / name for name in scripts}
    for folder in (share, lib):
        shutil.rmtree(folder, ignore_errors=True)
    links[VENV / "share/ament_index/resource_index/packages/gpu_planners"] = ROOT / "resource/gpu_planners"
    for link, target in links.items():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def site_packages():
    return VENV / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


def build_interfaces():
    colcon_build("gpu_planners_msgs", ROOT / "build/interfaces")


def build_ros_packages(folder):
    run([VENV / "bin/python", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "osrf-pycommon"])
    colcon_build(folder, ROOT / "build/ros_packages")


def colcon_build(base_path, build):
    """Builds all ROS packages below a folder into the environment."""
    shutil.rmtree(build, ignore_errors=True)
    run(
        [
            VENV / "bin/colcon",
            "--log-base",
            build / "log",
            "build",
            "--merge-install",
            "--install-base",
            VENV,
            "--build-base",
            build,
            "--base-paths",
            base_path,
            "--cmake-args",
            "-DBUILD_TESTING=OFF",
            f"-DPython3_EXECUTABLE={VENV}/bin/python",
            f"-DCMAKE_PROJECT_INCLUDE={ROOT}/tools/existing_include_folders.cmake",
        ],
        CMAKE_PREFIX_PATH=str(VENV),
        AMENT_PREFIX_PATH=str(VENV),
        LD_LIBRARY_PATH=str(VENV / "lib"),
        COLCON_DEFAULTS_FILE=os.devnull,
    )


def is_done(name, key):
    stamp = STAMPS / name
    return stamp.exists() and stamp.read_text() == key


def step(name, key, action, what):
    """Does the action unless it was done with the same key. Only a finished action leaves its stamp."""
    if is_done(name, key):
        return
    stamp = STAMPS / name
    print(f"setup: {what} ...", flush=True)
    started = time.monotonic()
    stamp.unlink(missing_ok=True)
    action()
    STAMPS.mkdir(parents=True, exist_ok=True)
    stamp.write_text(key)
    print(f"setup: {name} ready in {time.monotonic() - started:.0f} s", flush=True)


def plan(extras, ros_packages=None):
    """The steps in order: (name, key of what it depends on, action, what it does in words)."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    requirements = ROOT / "tools/interface_build_requirements.txt"
    environment = digest(python, str(ROOT))  # a moved checkout starts anew: scripts in .venv hold absolute paths
    packages = digest(
        environment, *extras, *(ROOT / name for name in ("setup.py", "setup.cfg", "pyproject.toml")), requirements
    )
    interfaces = digest(
        environment, ROOT / "gpu_planners_msgs", requirements, ROOT / "tools/existing_include_folders.cmake"
    )
    share = digest(packages, *shared_files())
    steps = [
        ("environment", environment, make_environment, f"virtual environment .venv, Python {python}"),
        ("packages", packages, lambda: install_packages(extras), f"wheels ({', '.join(extras)}; about 2 GB)"),
        ("share", share, link_as_installed, "launch files and executables, for ROS"),
        ("interfaces", interfaces, build_interfaces, "gpu_planners_msgs, built by colcon"),
    ]
    if ros_packages:
        build = partial(build_ros_packages, ros_packages)
        steps.append(
            ("ros_packages", digest(interfaces, ros_packages), build, f"packages in {ros_packages}, by colcon")
        )
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--extras",
        default="bench,dask,mpi,ros,sim,test,view" + (",gpu" if has_nvidia_gpu() else ""),
        help="extras of setup.py to install (default: %(default)s)",
    )
    parser.add_argument(
        "--ros-packages", metavar="FOLDER", help="a folder of ROS packages to build into the environment"
    )
    parser.add_argument("--check", action="store_true", help="only name the steps that are due; exit code 1 if any")
    arguments = parser.parse_args()
    folder = Path(arguments.ros_packages).expanduser().resolve() if arguments.ros_packages else None
    if folder and not folder.is_dir():
        raise SetupError(f"--ros-packages {folder}: there is no such folder")
    steps = plan(sorted(arguments.extras.split(",")), folder)
    if arguments.check:
        due = [name for name, key, *_ in steps if not is_done(name, key)]
        sys.exit(f"setup: due: {', '.join(due)}" if due else 0)

    check_machine()
    lock = os.open(ROOT, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)  # two `make` at once: the second waits, then finds everything done
    for one in steps:
        step(*one)


if __name__ == "__main__":
    try:
        main()
    except SetupError as error:
        sys.exit(f"setup: {error}")
    except KeyboardInterrupt:
        sys.exit("setup: interrupted; the next run goes on from the last finished step")
