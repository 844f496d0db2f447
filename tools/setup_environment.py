#!/usr/bin/env python3
"""Makes the virtual environment `.venv` with what `make demo`, `make test` and `make bench` need.

Its steps, each done again only when what it depends on has changed:
  environment   the virtual environment itself, and uv, which fetches wheels faster than pip
  libraries     gpu_planners (editable) and the libraries that compile it; where they are new, the planners are compiled
                in the background from then on
  ros           ROS 2 and the tools that build interfaces, as wheels: of --ros-distro, else as it is there, else Jazzy
  interfaces    gpu_planners_msgs, built by colcon into the environment, where Python finds it without sourcing
  packages ...  meanwhile, the extras that were asked for
  share         launch files, configurations, robots and executables where ROS looks for them
  bytecode      of all packages, which come without
  ros_packages  with --ros-packages: what no package index has, built by colcon; `ros2 launch` for instance
Plain standard library, for it runs before anything is installed.
"""

import argparse
import ast
import contextlib
import fcntl
import hashlib
import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMPS = VENV / ".stamps"
LOGS = VENV / "logs"
REQUIREMENTS = ROOT / "tools/interface_build_requirements.txt"
PYTHONS = ((3, 10), (3, 14))
ROS_DISTROS = {  # those that are in the package index as wheels; the default first
    "jazzy": {"extra": "ros", "finds Python for interfaces": "ros-jazzy-python-cmake-module"},
    "kilted": {"extra": "ros-kilted", "finds Python for interfaces": "ros-kilted-ament-cmake-ros-core"},
}
# A sourced ROS workspace, or a process started from another such environment, must not leak into this one.
FOREIGN_VARIABLES = (
    "AMENT_PREFIX_PATH",
    "CMAKE_PREFIX_PATH",
    "COLCON_PREFIX_PATH",
    "LD_LIBRARY_PATH",
    "PYTHONDONTWRITEBYTECODE",  # wheels come without bytecode; Python writes that of the modules it imports
    "PYTHONHOME",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "_ROS_WHEELS_BOOTSTRAP_COMPLETE",
)
PIP = [VENV / "bin/python", "-m", "pip"]
PIP_OPTIONS = ["--disable-pip-version-check", "--no-input", "--no-compile"]
# pip's options in uv's words. Of the others these change nothing that is installed.
PIP_IN_UV = {
    "constraint": "--constraint",
    "extra-index-url": "--index",
    "find-links": "--find-links",
    "index-url": "--default-index",
    "trusted-host": "--allow-insecure-host",
}
PIP_IRRELEVANT = {
    "cache-dir",
    "cert",  # given to uv as SSL_CERT_FILE
    "config-file",  # it is read
    "default-timeout",
    "disable-pip-version-check",
    "no-color",
    "no-input",
    "progress-bar",
    "quiet",
    "retries",
    "root-user-action",
    "timeout",
}
processes: list[subprocess.Popen] = []  # all that were started, also those that have ended


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


def start(command, log, **extra_environment):
    """Starts a command with its output in a log."""
    LOGS.mkdir(exist_ok=True)
    with (LOGS / log).open("a") as file:
        file.write(f"\n$ {' '.join(map(str, command))}\n")
        file.flush()
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=ROOT,
            env=clean_environment(**extra_environment),
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    processes.append(process)
    return process


def run(command, log, **extra_environment):
    """Runs a command with its output in a log; a failure shows the end of the log."""
    started = time.monotonic()
    process = start(command, log, **extra_environment)
    shown = sys.stdout.isatty() and threading.current_thread() is threading.main_thread()
    while process.poll() is None:
        time.sleep(0.1)
        if shown:
            print(f"\r  {time.monotonic() - started:4.0f} s", end="", flush=True)
    if shown:
        print("\r", end="")
    if process.returncode != 0:
        tail = "\n".join((LOGS / log).read_text(errors="replace").splitlines()[-30:])
        raise SetupError(f"{tail}\n\nA set-up command failed (exit code {process.returncode}). Full log: {LOGS / log}")


def end_processes():
    for process in processes:
        if process.poll() is None:
            process.terminate()


def check_machine():
    """Names everything that is missing on this machine at once, with the package that brings it."""
    version = sys.version_info[:2]
    if not PYTHONS[0] <= version <= PYTHONS[1]:
        raise SetupError(
            f"Python {version[0]}.{version[1]} ({sys.executable}) does not serve: 3.10 to 3.14 do. "
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


def make_environment(distro):
    if VENV.exists() and (VENV / "pyvenv.cfg").exists():
        shutil.rmtree(VENV)
    # The logs lie in the environment, so this one command runs without them.
    made = subprocess.run(
        [sys.executable, "-m", "venv", str(VENV)], env=clean_environment(), capture_output=True, text=True
    )
    if made.returncode != 0:
        raise SetupError(f"{made.stdout}{made.stderr}\n{sys.executable} -m venv failed.")
    (VENV / "ros_distro").write_text(distro)
    with contextlib.suppress(SetupError):  # pip serves too
        run([*PIP, "install", *PIP_OPTIONS, "uv>=0.5,<1"], "uv.log")


def install(log, *requirements):
    """Installs requirements by uv, which takes a third of the time, or else by pip, which tells what fails."""
    options = uv_options()
    if options is not None:
        words, environment = options
        command = [VENV / "bin/uv", "pip", "install", "--python", VENV / "bin/python", *words, *requirements]
        with contextlib.suppress(SetupError):
            return run(command, log, **environment)
    run([*PIP, "install", *PIP_OPTIONS, *requirements], log)


def uv_options():
    """(options, environment) that have uv do what pip is configured to do here; None where uv does not serve"""
    listed = subprocess.run([*PIP, "config", "list"], env=clean_environment(), capture_output=True, text=True)
    configured = {}
    for scope in ("global.", "install.", ":env:."):  # pip's own order
        for line in listed.stdout.splitlines():
            name, _, value = line.removeprefix(scope).partition("=")
            if line.startswith(scope):
                configured[name] = ast.literal_eval(value)
    if not (VENV / "bin/uv").exists() or configured.keys() - PIP_IN_UV.keys() - PIP_IRRELEVANT:
        return None
    words = ["--index-strategy", "unsafe-best-match"]  # as pip chooses among indexes
    for name, option in PIP_IN_UV.items():
        for value in configured.get(name, "").split():
            words += [option, value]
    return words, {"SSL_CERT_FILE": configured["cert"]} if "cert" in configured else {}


def install_libraries(compiling):
    """compiling: the arguments of Python that have it compile what first answers need, from now on"""
    install("libraries.log", "-e", ".[gpu]" if has_nvidia_gpu() else ".")
    start([VENV / "bin/python", *compiling], "compiling.log")


def compile_bytecode():
    with contextlib.suppress(SetupError):  # some packages have files that no Python 3 compiles
        run([VENV / "bin/python", "-m", "compileall", "-q", "-j0", site_packages()], "bytecode.log")


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
    """Only what Python loads of gpu_planners_msgs; a `colcon build` of your own builds all of it."""
    colcon_build("gpu_planners_msgs", ROOT / "build/interfaces", "interfaces_for_python.cmake")


def build_ros_packages(folder):
    install("ros_packages.log", "osrf-pycommon")
    colcon_build(folder, ROOT / "build/ros_packages", "existing_include_folders.cmake")


def colcon_build(base_path, build, included):
    """Builds all ROS packages below a folder into the environment. included: a file of tools/ for each CMake project"""
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
            "-GNinja",
            "-DBUILD_TESTING=OFF",
            f"-DPython3_EXECUTABLE={VENV}/bin/python",
            f"-DCMAKE_PROJECT_INCLUDE={ROOT}/tools/{included}",
        ],
        f"{build.name}.log",
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
    print(f"setup: {what} ...\n", end="", flush=True)  # in one piece, for steps side by side
    started = time.monotonic()
    stamp.unlink(missing_ok=True)
    action()
    STAMPS.mkdir(parents=True, exist_ok=True)
    stamp.write_text(key)
    print(f"setup: {name} ready in {time.monotonic() - started:.0f} s\n", end="", flush=True)


def chosen_distro(asked):
    """The ROS distribution that is asked for, else that of the environment that is there, else the default."""
    note = VENV / "ros_distro"
    if asked and asked not in ROS_DISTROS:
        raise SetupError(
            f"ROS_DISTRO={asked}: the package index has no wheels of it; allowed: {', '.join(ROS_DISTROS)}. "
            "Where it is installed, build with colcon: docs/install.md"
        )
    return asked or (note.read_text() if note.exists() else next(iter(ROS_DISTROS)))


def install_ros(distro):
    told = ROS_DISTROS[distro]
    names = REQUIREMENTS.read_text("utf-8").replace("DISTRO", distro).splitlines()
    names = [name for name in names if name and not name.startswith("#")]
    install("ros.log", *names, told["finds Python for interfaces"], "-e", f".[{told['extra']}]")


def plan(extras, ros_packages=None, demo=False, distro="jazzy"):
    """The steps in order, lists of those that are done side by side: (name, key of what it depends on, action, what it
    does in words). demo: only what the demo needs
    """
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if distro != next(iter(ROS_DISTROS)):  # another one starts anew: the distributions' wheels have names in common
        python += f", ROS 2 {distro}"
    environment = digest(python, str(ROOT))  # a moved checkout starts anew: scripts in .venv hold absolute paths
    libraries = digest(environment, *(ROOT / name for name in ("setup.py", "setup.cfg", "pyproject.toml")))
    ros = digest(libraries, REQUIREMENTS)
    interfaces = digest(environment, ROOT / "gpu_planners_msgs", REQUIREMENTS, *ROOT.glob("tools/*.cmake"))
    share = digest(libraries, *shared_files())
    words = "demo" if demo else ",".join(extras)
    compiling = ["-m", "gpu_planners.demo.ahead"] if demo else ["-m", "gpu_planners.cli", "compile", "--quiet"]
    install_extras = partial(install, "packages.log", "-e", f".[{words}]")
    steps = [
        [("environment", environment, partial(make_environment, distro), f"environment .venv, Python {python}")],
        [("libraries", libraries, partial(install_libraries, compiling), "gpu_planners and its libraries")],
        [("ros", ros, partial(install_ros, distro), f"ROS 2 {distro}, and what builds interfaces")],
        [
            ("interfaces", interfaces, build_interfaces, "gpu_planners_msgs, built by colcon"),
            (f"packages {words}", digest(libraries, words), install_extras, f"extras {words}"),
        ],
        [("share", share, link_as_installed, "launch files and executables, for ROS")],
    ]
    if not demo:  # Python writes that of what the demo imports
        steps.append([("bytecode", digest(libraries, words), compile_bytecode, "bytecode of all packages")])
    if ros_packages:
        build = partial(build_ros_packages, ros_packages)
        steps.append(
            [("ros_packages", digest(interfaces, ros_packages), build, f"packages in {ros_packages}, by colcon")]
        )
    return steps


def do(steps):
    """Does some steps side by side, the first one in this thread."""
    with ThreadPoolExecutor() as pool:
        others = [pool.submit(step, *one) for one in steps[1:]]
        step(*steps[0])
    for other in others:
        other.result()


def end(signum, _):
    end_processes()
    sys.exit(128 + signum)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--extras",
        default="bench,dask,docs,mpi,sim,test,view",
        help="extras of setup.py to install, beside ros and, where there is an NVIDIA GPU, gpu (default: %(default)s)",
    )
    parser.add_argument("--demo", action="store_true", help="only what the demo needs, in place of extras and bytecode")
    parser.add_argument(
        "--ros-distro",
        metavar="NAME",
        help=f"the ROS 2 to install: {', '.join(ROS_DISTROS)} (default: that of .venv, else {next(iter(ROS_DISTROS))})",
    )
    parser.add_argument(
        "--ros-packages", metavar="FOLDER", help="a folder of ROS packages to build into the environment"
    )
    parser.add_argument("--check", action="store_true", help="only name the steps that are due; exit code 1 if any")
    arguments = parser.parse_args()
    folder = Path(arguments.ros_packages).expanduser().resolve() if arguments.ros_packages else None
    if folder and not folder.is_dir():
        raise SetupError(f"--ros-packages {folder}: there is no such folder")
    distro = chosen_distro(arguments.ros_distro)
    plan_of_steps = plan(sorted(arguments.extras.split(",")), folder, arguments.demo, distro)
    if arguments.check:
        due = [name for steps in plan_of_steps for name, key, *_ in steps if not is_done(name, key)]
        sys.exit(f"setup: due: {', '.join(due)}" if due else 0)

    check_machine()
    lock = os.open(ROOT, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)  # two `make` at once: the second waits, then finds everything done
    signal.signal(signal.SIGTERM, end)
    try:
        for steps in plan_of_steps:
            do(steps)
    except BaseException:
        end_processes()  # among them what compiles, which otherwise goes on when all is set up
        raise


if __name__ == "__main__":
    try:
        main()
    except SetupError as error:
        sys.exit(f"setup: {error}")
    except KeyboardInterrupt:
        sys.exit("setup: interrupted; the next run goes on from the last finished step")
