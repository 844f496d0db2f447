"""The command `gpu-planners`: info | demo | bench | view.

Exit codes: 0 done; 1 it failed while running; 2 the command line is wrong or something needed is not there.
"""

import argparse
import importlib
import importlib.util
import os
import platform
import sys
from importlib import metadata
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from . import __version__
from .errors import DeviceError, GpuPlannersError, SettingsError

LIBRARIES = ("numpy", "numba", "scipy", "trimesh", "lxml", "ruckig")
EXTRAS = {  # extra of setup.py: (modules that show that it is there, what it is for)
    "gpu": (("numba_cuda",), "CUDA kernels"),
    "ros": (("rclpy",), "the nodes and the demo"),
    "view": (("matplotlib", "viser"), "pictures and the browser view"),
    "test": (("pytest", "hypothesis", "pinocchio", "coal"), "tests"),
    "bench": (("pinocchio", "coal", "ompl"), "the benchmarks' peers"),
}


class MissingError(GpuPlannersError):
    """Something that a command needs is not installed or not found; the text says how to get it."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command -> the exit code."""
    errors = Console(stderr=True)
    options, rest = _parser().parse_known_args(arguments)
    if rest and options.command not in ("demo", "bench"):
        _parser().error(f"unknown arguments: {' '.join(rest)}")
    try:
        return options.run(options, rest) or 0
    except (MissingError, DeviceError, SettingsError, FileNotFoundError) as error:
        errors.print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)
        return 2
    except GpuPlannersError as error:
        errors.print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        return 130


def info(_options: argparse.Namespace, _rest: list[str]) -> None:
    """Versions, devices, extras and data, each with what to do where it is missing."""
    console = Console()
    console.print(_device_table())
    console.print(_software_table())
    console.print(_data_table())


def demo(_options: argparse.Namespace, rest: list[str]) -> int:
    """The demo of the nodes: arguments are passed on."""
    try:
        module = importlib.import_module("gpu_planners.demo.main")
    except ModuleNotFoundError as error:
        raise MissingError(
            f"the demo needs '{error.name}': from a checkout run `make demo`, which sets everything up"
        ) from error
    return module.main(rest)


def bench(_options: argparse.Namespace, rest: list[str]) -> int:
    """The benchmarks of the checkout that this package runs from: arguments are passed on."""
    root = Path(__file__).resolve().parent.parent
    if not (root / "benchmarks" / "__main__.py").is_file():
        raise MissingError(
            "the benchmarks are in the source tree, not in the installed package: run `make bench` in a checkout"
        )
    sys.path.insert(0, str(root))
    peers = filter(None, (str(root), os.environ.get("PYTHONPATH")))  # the peers run in processes of their own
    os.environ["PYTHONPATH"] = os.pathsep.join(peers)
    return importlib.import_module("benchmarks.__main__").main(rest)


def view(options: argparse.Namespace, _rest: list[str]) -> None:
    """A robot, a scene and a path in the browser."""
    from .arm import CollisionWorld, load_urdf

    try:
        from .arm.view import browser as browser_view
    except ModuleNotFoundError as error:
        raise MissingError(f"the browser view needs '{error.name}': pip install 'gpu_planners[view]'") from error
    robot = load_urdf(options.urdf, options.srdf, package_dirs=options.package_dirs)
    world, path = CollisionWorld(), None
    if options.scene:
        from .arm.collision.scene_file import fixed_frames, load_scene

        world = load_scene(options.scene, fixed_frames(robot))
    if options.path:
        path = browser_view.read_path(options.path, robot.dof)
    server = browser_view.show(robot, world, path, host=options.host, port=options.port)
    Console().print(
        f"{robot.name} is at [bold]http://{options.host}:{server.get_port()}[/]; Ctrl-C ends it", highlight=False
    )
    browser_view.wait(server)


def _parser():
    parser = argparse.ArgumentParser(
        prog="gpu-planners",
        description="Collision-free arm motions and many-agent grid paths, on an NVIDIA GPU or the CPU.",
    )
    parser.add_argument("--version", action="version", version=f"gpu_planners {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="info | demo | bench | view")
    commands.add_parser("info", help="versions, devices, extras and data that are there").set_defaults(run=info)
    commands.add_parser(
        "demo",
        help="plan motions of a real robot and paths of many agents through the real nodes, and draw them",
        add_help=False,
    ).set_defaults(run=demo)
    commands.add_parser("bench", help="measure, with peers in the same run", add_help=False).set_defaults(run=bench)
    viewer = commands.add_parser("view", help="show a robot, a scene and a path in the browser")
    viewer.add_argument("urdf", type=_file)
    viewer.add_argument("--srdf", type=_file)
    viewer.add_argument("--package-dirs", nargs="+", default=(), help="folders in which package:// paths are looked up")
    viewer.add_argument("--scene", type=_file, help="scene file (YAML) with the obstacles")
    viewer.add_argument("--path", type=_file, help="configurations, one a row: .csv, .txt or .npy")
    viewer.add_argument("--host", default="127.0.0.1")
    viewer.add_argument("--port", type=int, default=8080)
    viewer.set_defaults(run=view)
    return parser


def _file(text):
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"no file '{text}'")
    return text


def _device_table():
    from .device import cuda_problem

    table = Table("device", "state", title="Devices", title_justify="left")
    table.add_row("cpu", f"{len(os.sched_getaffinity(0))} cores, {platform.machine()}")
    problem = cuda_problem()
    if problem:
        table.add_row("cuda", f"[yellow]not usable[/]: {escape(problem)}")
        return table
    from numba import cuda

    for device in cuda.gpus:
        name = device.name.decode() if isinstance(device.name, bytes) else device.name
        table.add_row(
            f"cuda:{device.id}", f"{name}, compute capability {'.'.join(map(str, device.compute_capability))}"
        )
    return table


def _software_table():
    table = Table(
        "package",
        "version",
        title=f"gpu_planners {__version__} on Python {platform.python_version()}",
        title_justify="left",
    )
    for name in LIBRARIES:
        table.add_row(name, _version(name) or "[red]missing[/]")
    for extra, (modules, purpose) in EXTRAS.items():
        missing = [module for module in modules if importlib.util.find_spec(module) is None]
        state = (
            f"[yellow]{', '.join(missing)} missing[/]: pip install 'gpu_planners\\[{extra}]'" if missing else "there"
        )
        table.add_row(f"extra {extra} ({purpose})", state)
    interfaces = importlib.util.find_spec("gpu_planners_msgs")
    built = interfaces is not None and interfaces.origin is not None  # the source folder is a namespace without origin
    table.add_row("gpu_planners_msgs", "there" if built else "[yellow]not built[/]: `make setup`, or colcon build")
    return table


def _data_table():
    root = Path(__file__).resolve().parent.parent
    given = os.environ.get("GPU_PLANNERS_DATA")
    folders = [Path(given)] if given else [root.parent / "shared" / "data", root / "shared" / "data"]
    found = next((folder for folder in folders if (folder / "motion_bench_maker").is_dir()), None)
    table = Table("data of tests and benchmarks", title="Data", title_justify="left")
    table.add_row(
        str(found)
        if found
        else f"[yellow]not found[/]: looked at {', '.join(map(str, folders))}; set GPU_PLANNERS_DATA"
    )
    return table


def _version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main())
