"""gpu-planners info: what is there, and how to get what is missing; or the robot that a URDF describes."""

import argparse
import importlib.util
import operator
import os
import platform
import re
import shutil
from importlib import metadata
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from .. import __version__

LIBRARIES = ("numpy", "numba", "scipy", "trimesh", "lxml", "ruckig")
EXTRAS = {  # extra of setup.py: (modules that show that it is there, what it is for)
    "gpu": (("numba_cuda",), "CUDA kernels"),
    "ros": (("rclpy",), "the nodes and the demo, without a ROS installation"),
    "ros-kilted": (("rclpy",), "the same with Kilted in place of Jazzy"),
    "dataset": (("pyarrow",), "data sets of planned motions"),
    "demo": (("pinocchio", "coal", "matplotlib"), "the demo's robot, checks and pictures"),
    "verify": (("pinocchio", "coal"), "independent checks of motions"),
    "view": (("matplotlib", "viser"), "pictures and the browser view"),
    "mpi": (("mpi4py",), "one search by several GPUs or machines"),
    "dask": (("distributed",), "batches shared by Dask's workers"),
    "vda5050": (("paho",), "vehicles that speak VDA 5050"),
    "sim": (("mujoco",), "motions executed in physics"),
    "fuzz": (("atheris",), "readers tried with inputs that coverage guides"),
    "test": (("pytest", "hypothesis", "pinocchio", "coal"), "tests"),
    "bench": (("pinocchio", "coal", "ompl"), "the benchmarks' peers"),
    "docs": (("sphinx", "sphinx_gallery", "furo"), "the site"),
}
ROS_PACKAGES = {  # used where they are installed: what there is with them
    "launch_ros": "ros2 launch",
    "rviz2": "rviz:=true",
    "robot_state_publisher": "the robot's transforms in RViz",
    "moveit_msgs": "MoveIt's services",
    "control_msgs": "motions sent to controllers",
    "nav2_msgs": "Nav2's actions",
    "map_msgs": "the topic map_updates",
    "tf2_ros": "poses in other frames",
}


def run(options: argparse.Namespace, _rest: list[str]) -> None:
    console = Console()
    if options.urdf:
        for table in _robot_tables(options):
            console.print(table)
        return
    for table in (_device_table(), _software_table(), _ros_table(), _data_table()):
        console.print(table)
    console.print(
        "Completion in your shell: [bold]gpu-planners completion bash[/] (or zsh, fish) prints it", highlight=False
    )


def _robot_tables(options):
    from ..arm.urdf.limits import told_limits
    from .robots import load_robot

    robot = load_robot(options)
    table = _table(f"Robot {escape(robot.name)}", "what", "value")
    table.add_row("root link", escape(robot.root_link))
    table.add_row("tip link", escape(f"{robot.tip_link}: {robot.tip_reason}"))
    table.add_row("bodies that collide", str(len(robot.shapes)))
    held = [f"{name} ({lower:.4g} to {upper:.4g})" for name, (lower, upper) in robot.other_joints.items()]
    virtual = (f"{one.name} ({one.type}, {one.child_link} in {one.parent_frame})" for one in robot.virtual_joints)
    for what, names in (
        ("joints that are not planned", held),
        ("joints that follow others", robot.mimic_joints),
        ("states", robot.named_states),
        ("virtual joints", virtual),
    ):
        table.add_row(what, escape(", ".join(names)) or "none")
    columns = ("position", "velocity", "acceleration", "jerk")[: 3 + (robot.jerk is not None)]
    joints = _table("Joints that are planned", "joint", *columns)
    for name, limits in told_limits(robot).items():
        joints.add_row(escape(name), *(escape(limits[what]) for what in columns))
    return table, joints, _pairs_table(robot)


def _pairs_table(robot):
    links = robot.shape_link[robot.self_collision_pairs]
    checked = len({frozenset(pair) for pair in links.reshape(-1, 2).tolist()})
    table = _table("Pairs of links", "what becomes of them", "pairs", "which")
    table.add_row("checked against each other", str(checked), f"{len(links)} pairs of bodies")
    reasons = {}
    for a, b, reason in robot.disabled_pairs:
        reasons.setdefault(reason, []).append(f"{a} - {b}")
    for reason, names in reasons.items():
        table.add_row(f"left out: {escape(reason)}", str(len(names)), escape(", ".join(names)))
    return table


def _table(title, *columns):
    """A table that breaks long words in a narrow terminal, and cuts none: some are commands to copy."""
    return Table(*(Column(name, overflow="fold") for name in columns), title=title, title_justify="left")


def _device_table():
    from ..device import cuda_problem

    table = _table("Devices", "device", "state")
    table.add_row("cpu", f"{len(os.sched_getaffinity(0))} cores, {platform.machine()}{_openmp_problem()}")
    problem = cuda_problem()
    if problem:
        table.add_row("cuda", f"[yellow]not usable[/]: {escape(problem)}\n{_how_to_get_cuda()}")
        return table
    from numba import cuda

    for device in cuda.gpus:
        name = device.name.decode() if isinstance(device.name, bytes) else device.name
        table.add_row(
            f"cuda:{device.id}", f"{name}, compute capability {'.'.join(map(str, device.compute_capability))}"
        )
    return table


def _openmp_problem():
    """Numba's other threads end the process when several threads of it plan at once."""
    try:
        import numba.np.ufunc.omppool  # noqa: F401
    except ImportError:
        return "; [yellow]GNU OpenMP missing[/], only one thread may plan: apt install libgomp1"
    return ""


def _how_to_get_cuda():
    """The first thing that is missing for CUDA, from the hardware upwards."""
    if not (Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi")):
        return "no NVIDIA driver: apt install nvidia-driver (Debian), or ubuntu-drivers install; nvidia-smi shows it"
    if importlib.util.find_spec("numba_cuda") is None:
        return "pip install 'gpu_planners\\[gpu]'"
    return "nvidia-smi must list a GPU; in a container, start it with --gpus all"


def _software_table():
    table = _table(f"gpu_planners {__version__} on Python {platform.python_version()}", "package", "version")
    for name in LIBRARIES:
        version, allowed = _version(name), _allowed(name)
        state = version or f"[red]missing[/]: pip install {name}"
        if version and allowed and not _is_within(version, allowed):
            state = f"[red]{version} does not serve[/]: pip install '{name}{allowed}'"
        table.add_row(name, state)
    for extra, (modules, purpose) in EXTRAS.items():
        missing = [module for module in modules if importlib.util.find_spec(module) is None]
        how = f"pip install 'gpu_planners\\[{extra}]'" + (", or source a ROS 2 installation" if "ros" in extra else "")
        state = f"[yellow]{', '.join(missing)} missing[/]: {how}" if missing else "there"
        table.add_row(f"extra {extra} ({purpose})", state)
    return table


def _ros_table():
    distribution = os.environ.get("ROS_DISTRO", "")
    table = _table(f"ROS 2 {distribution}".rstrip(), "package", "state")
    interfaces = importlib.util.find_spec("gpu_planners_msgs")
    built = interfaces is not None and interfaces.origin is not None  # the source folder is a namespace without origin
    table.add_row("gpu_planners_msgs", "there" if built else "[yellow]not built[/]: `make setup`, or colcon build")
    for name, purpose in ROS_PACKAGES.items():
        package = f"ros-{distribution or '<distribution>'}-{name.replace('_', '-')}"
        state = "there" if _ros_package(name) else f"[yellow]not there[/]: apt install {package}"
        table.add_row(f"{name} ({purpose})", state)
    return table


def _ros_package(name):
    prefixes = filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep))
    index = "share/ament_index/resource_index/packages"
    return any((Path(prefix) / index / name).exists() for prefix in prefixes)


def _data_table():
    root = Path(__file__).resolve().parents[2]
    given = os.environ.get("GPU_PLANNERS_DATA")
    folders = [Path(given)] if given else [root.parent / "shared" / "data", root / "shared" / "data"]
    found = next((folder for folder in folders if (folder / "motion_bench_maker").is_dir()), None)
    table = _table("Data", "data of tests and benchmarks")
    table.add_row(
        escape(str(found))
        if found
        else f"[yellow]not found[/]: looked at {escape(', '.join(map(str, folders)))}; set GPU_PLANNERS_DATA"
    )
    return table


def _version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _allowed(name):
    """The bounds that this package sets for a library, ">=0.63,<0.69"; "" where it is not installed itself."""
    try:
        declared = metadata.requires("gpu_planners") or []
    except metadata.PackageNotFoundError:
        return ""
    found = (re.fullmatch(rf"{name}(?:\[.*\])?([<>=.,\d]+)", each) for each in declared)
    return next((",".join(reversed(sorted(match[1].split(",")))) for match in found if match), "")


def _is_within(version, bounds):
    """colcon and distributions install without looking at bounds, so they may not hold."""

    def numbers(text):
        return [int(each) for each in re.findall(r"\d+", text)[:3]]

    compare = {">=": operator.ge, "<": operator.lt}
    return all(compare[sign](numbers(version), numbers(bound)) for sign, bound in re.findall(r"(>=|<)([\d.]+)", bounds))
