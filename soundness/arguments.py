"""Arguments that are none: hostile values in each argument of every public callable, found by introspection.

Public is what `__all__` of a package names, what README and docs import, and what the site's reference shows. Of a
class its constructor and its public methods are; of a callable that is added, each argument is attacked as well: its
name or its annotation says with what it works (`WORKING`), and where neither does, the attack fails and says so.

A refusal is a GpuPlannersError. A finding is any other exception, what takes long, and an answer where the annotation
allows no such value: a text for a number, a complex number, a bool for an integer.
"""

import ast
import contextlib
import copy
import dataclasses
import enum
import functools
import importlib
import inspect
import io
import math
import os
import pkgutil
import re
import tempfile
import time
import types
import typing
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing

import gpu_planners
from gpu_planners import distributed
from gpu_planners.errors import GpuPlannersError, shown

from .harness import Attack, Skipped

ROOT = Path(__file__).parents[1]
SLOW_S = 10.0  # once its code is compiled, no small answer takes longer, not even on a busy machine
MADE_HERE = (  # classes that the package makes: nobody calls their constructors
    "Line PlanningResult PoseSolutions RobotModel Trajectory SequenceResult Report Dataset FleetPlan PathSet "
    "PosePathSet Conflict ConvexShape Meeting PathReport Arc ThreadExchange Execution State Segment Volume "
    "RobotState TaskState PlanningResults "
).split()
INNER = {
    "PathSet.of_moves",
    "PlanningResults.of",
    "PlanningResults.joined",
    "PlanningResults.index",
    "PlanningResults.count",
    "SceneBatch.index",
    "SceneBatch.count",
    "CollisionChecker.device_scene",
    "CollisionChecker.judge_on_device",
    "KeepingChecker.device_scene",
    "BandedPlanner.update",
    "PoseGrid.with_costs",
}  # engines; what never works
OWN = set(  # for the package's own code
    "njit lean_njit cuda_jit shared_by_kernels told_if_slow shown shortened error_text is_out_of_memory "
    "one_line".split()
)
MJCF = """<mujoco><worldbody><body><joint name="pan" range="-1 1"/><geom size="0.1"/></body></worldbody></mujoco>"""
URDF = """<robot name="two"><link name="base"/>
<link name="one"><inertial><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>
<collision><origin xyz="0.25 0 0"/><geometry><box size="0.5 0.05 0.05"/></geometry></collision></link>
<link name="tool"><collision><origin xyz="0.2 0 0"/><geometry><box size="0.4 0.05 0.05"/></geometry></collision></link>
<joint name="a" type="revolute"><parent link="base"/><child link="one"/><axis xyz="0 0 1"/>
<limit lower="-2" upper="2" velocity="1" effort="1"/></joint>
<joint name="b" type="revolute"><parent link="one"/><child link="tool"/><origin xyz="0.5 0 0"/><axis xyz="0 0 1"/>
<limit lower="-2" upper="2" velocity="1" effort="1"/></joint></robot>"""
SRDF = """<robot name="two"><group name="both"><joint name="a"/><joint name="b"/></group>
<group name="first"><joint name="a"/></group></robot>"""


class Strange:
    """Nothing about it works."""

    def __array__(self, *args, **options):
        raise KeyError("no array")

    def __repr__(self):
        raise KeyError("no text")

    def __len__(self):
        raise KeyError("no length")

    def __iter__(self):
        raise KeyError("no items")

    def __eq__(self, other):
        raise KeyError("no comparison")

    __hash__ = None


def _closed():
    file = io.StringIO()
    file.close()
    return file


WRITTEN = (  # as Python has them
    "None, nan, inf, -inf, -1, 0, -0.0, 0.5, 1e300, 2**31, 2**70, 10**400, True, 1j, '', 'x', '1', b'', [], {}, {1}, "
    "{'x': None}, [None], ['x'], [[[[[[1.0]]]]]]"
)
HOSTILE: dict[str, Callable[[], Any]] = {  # made anew for each call
    **{text: functools.partial(eval, text, {"nan": math.nan, "inf": math.inf}) for text in WRITTEN.split(", ")},
    "'NUL'": lambda: "a\0b",
    "'long'": lambda: "x" * 100_000,
    "'surrogate'": lambda: "\ud800",
    "object": object,
    "strange": Strange,
    "class": lambda: dict,
    "lambda": lambda: lambda *args: None,
    "generator": lambda: (i for i in range(3)),
    "closed": _closed,
    "ragged": lambda: [[1.0, 2.0], [3.0]],
    "objects": lambda: np.array([None, "x"], dtype=object),
    "complex": lambda: np.ones((2, 2), dtype=complex),
    "strings": lambda: np.array([["1", "2"], ["3", "4"]]),
    "bools": lambda: np.ones((2, 2), dtype=bool),
    "nan array": lambda: np.full((2, 2), np.nan),
    "empty": lambda: np.zeros((0, 2)),
    "empty cols": lambda: np.zeros((2, 0)),
    "no axes": lambda: np.array(1.0),
    "one": lambda: np.ones(1),
    "2**70 array": lambda: np.full((2, 2), 2.0**70),
    "masked": lambda: np.ma.masked_array(np.ones((2, 2)), np.eye(2)),
    "datetime": lambda: np.array(["2020-01-01"], dtype="datetime64[D]"),
    "structured": lambda: np.zeros(2, dtype=[("a", int)]),
}


def _values(text):
    assert HOSTILE.keys() >= (names := set(text.split(", "))), names - HOSTILE.keys()
    return names


NO_ARRAY = _values(
    "None, 1j, '', 'x', '1', b'', object, class, lambda, generator, {1}, {'x': None}, {}, [None], ['x'], ragged, "
    "objects, complex, strings, masked, datetime"
)
NO_NUMBER = NO_ARRAY | _values("'NUL', 'long', 'surrogate', nan, True, strange, closed, [], bools")
FORBIDDEN = {  # what no argument of that annotation may be
    float: NO_NUMBER,
    int: NO_NUMBER | _values("inf, -inf, 0.5, 1e300"),
    bool: NO_NUMBER - {"True"} | _values("0, -1, 0.5, inf"),
    str: _values("b'', None, nan, 0, True, 1j, object, class, [], ['x'], {}"),
    "array": NO_ARRAY | {"structured"},
}


# ---------------------------------------------------------------------------------------------- what is public


@dataclasses.dataclass(frozen=True)
class Public:
    """A public callable. name: "rrt.solve" or "GridMap.changed"; owner: its class, for a method of an instance."""

    name: str
    call: Callable
    owner: type | None = None

    @functools.cached_property
    def parameters(self):
        skip = 1 if self.owner is not None else 0
        return list(inspect.signature(self.call).parameters.values())[skip:]

    @functools.cached_property
    def hints(self):
        target = self.call.__init__ if inspect.isclass(self.call) else self.call
        return typing.get_type_hints(inspect.unwrap(target))


@functools.cache
def publics() -> dict[str, Public]:
    """{name: Public} of all."""
    found: dict[str, Public] = {}
    for thing in _named():
        if inspect.isclass(thing):
            for public in _of_class(thing):
                found[public.name] = public
        elif thing.__name__ not in OWN:
            name = f"{_short(thing.__module__)}.{thing.__name__}"
            found[name] = Public(name, thing)
    return found


def _short(module):
    return module.removesuffix(".planner").removesuffix(".settings").rpartition(".")[2]


def reference_modules() -> list[str]:
    """The modules whose public names the site's reference shows: MODULES of docs/reference.py, which needs Sphinx."""
    for line in ast.parse((ROOT / "docs" / "reference.py").read_text("utf-8")).body:
        if isinstance(line, ast.Assign) and line.targets[0].id == "MODULES":
            return [module for modules in ast.literal_eval(line.value).values() for module in modules]
    raise AssertionError("docs/reference.py has no MODULES")


def _named() -> Iterator[Any]:
    seen = set()
    waiting = list(map(importlib.import_module, reference_modules()))
    for info in pkgutil.walk_packages(gpu_planners.__path__, "gpu_planners."):
        if info.ispkg and info.name.split(".")[1] not in ("nodes", "demo", "cli"):
            package = importlib.import_module(info.name)
            waiting += [getattr(package, name) for name in getattr(package, "__all__", ())]
    for text in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for module, names in re.findall(r"from (gpu_planners[\w.]*) import ([\w, ]+)", text.read_text("utf-8")):
            held = importlib.import_module(module)
            for name in names.replace(" ", "").split(","):
                try:
                    waiting.append(
                        getattr(held, name) if hasattr(held, name) else importlib.import_module(f"{module}.{name}")
                    )
                except ImportError:
                    continue  # an optional one that is not here
    while waiting:
        thing = waiting.pop(0)
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if inspect.ismodule(thing):
            names = getattr(thing, "__all__", None) or [n for n, v in vars(thing).items() if _is_own(thing, n, v)]
            waiting += [getattr(thing, name) for name in names]
        elif inspect.isclass(thing) or inspect.isfunction(thing):
            yield thing


def _is_own(module, name, value):
    is_kind = inspect.isclass(value) or inspect.isfunction(value)
    return not name.startswith("_") and is_kind and value.__module__ == module.__name__


def _of_class(kind):
    if issubclass(kind, (enum.Enum, Exception)) or getattr(kind, "_is_protocol", False):
        return
    name = f"{_short(kind.__module__)}.Settings" if kind.__name__ == "Settings" else kind.__name__
    if kind.__name__ not in MADE_HERE:
        yield Public(name, kind)
    for attribute in dir(kind):
        member = inspect.getattr_static(kind, attribute)
        if attribute.startswith("_") or not hasattr(kind, attribute) or f"{name}.{attribute}" in INNER:
            continue
        if isinstance(member, (staticmethod, classmethod)):
            if attribute != "label":
                yield Public(f"{name}.{attribute}", getattr(kind, attribute))
        elif inspect.isfunction(member):
            yield Public(f"{name}.{attribute}", member, kind)


# ---------------------------------------------------------------------------------------------- what works


@functools.cache
def robot():
    from gpu_planners.arm import load_urdf

    return load_urdf(URDF, SRDF)


@functools.cache
def folder():
    return Path(tempfile.mkdtemp(prefix="arguments"))


@functools.cache
def checker():
    from gpu_planners.arm import CollisionChecker

    return CollisionChecker(robot(), world(), "cpu")


def world():
    from gpu_planners.arm import CollisionWorld

    made = CollisionWorld()
    made.add_box("box", (0.1, 0.1, 0.1), np.eye(4) + [[0, 0, 0, 3], [0] * 4, [0] * 4, [0] * 4])
    return made


def upright():
    return gpu_planners.arm.upright.Upright(robot(), "tool", (0, 0, 1), (0, 0, 1), 0.2)


def two_links():
    from gpu_planners.arm.constraints import RelativePose, pose_between

    return RelativePose(robot(), "one", "tool", pose_between(robot(), [0.0, 0.0], "one", "tool"))


def shape():
    from gpu_planners.arm.geometry.shapes import ConvexShape

    return ConvexShape.box("shape", (0.05, 0.05, 0.05), np.eye(4))


@functools.cache
def grid():
    from gpu_planners.grid import GridMap

    costs = np.ones((8, 8), np.uint8)
    costs[3, 2:6] = 0
    return GridMap(costs)


def pose_grid():
    from gpu_planners.grid import PoseGrid

    return PoseGrid(np.ones((40, 40), np.uint8), FOOTPRINT)


def pose_planner():
    from gpu_planners.grid import PosePlanner

    return PosePlanner(pose_grid(), device="cpu")


def fleet():
    from gpu_planners.grid import FleetPlanner

    made = FleetPlanner(grid(), device="cpu")
    made.start([[0, 0], [7, 7]])
    return made


def dispatcher():
    """One with a task."""
    from gpu_planners.fleet import Dispatcher, Task

    made = Dispatcher(fleet())
    made.submit(Task([[0, 1]]), "one")
    return made


@functools.cache
def block_planner():
    from gpu_planners.grid import BlockPlanner

    return BlockPlanner(grid(), device="cpu")


def banded():
    from gpu_planners.grid import BandedPlanner, MapRows

    return BandedPlanner(MapRows.of_grid(grid()), alone(), device="cpu")


class Alone:
    """An Exchange of one."""

    rank, size, local_rank = 0, 1, 0

    def all_gather(self, value):
        return [value]

    def swap(self, arrays):
        return None


def alone():
    return Alone()


@functools.cache
def trajectory():
    from gpu_planners.arm.trajectory import time_parameterize

    return time_parameterize([[0.0, 0.0], [0.5, 0.5]], [1.0, 1.0], [1.0, 1.0])


def spline():
    from gpu_planners.arm.control.spline import Spline

    return Spline.of(trajectory())


def mover():
    from gpu_planners.arm.control.moving import MovingObstacle

    return MovingObstacle("cart", (shape(),), (0.0, 0.0, 0.1))


def quick():
    from gpu_planners.arm import rrt_connect

    return rrt_connect.Settings(time_limit_s=0.5)


def settings_of(hint):
    """Settings that end soon, of the kind that an annotation names; None where it names none."""
    for kind in (*typing.get_args(hint), hint):
        if inspect.isclass(kind) and dataclasses.is_dataclass(kind):
            names = {field.name for field in dataclasses.fields(kind)}
            return kind(**{k: v for k, v in {"time_limit_s": 0.5, "max_samples": 500}.items() if k in names})
    return None


def recipe():
    from gpu_planners.datasets import Draw, Recipe

    return Recipe(robot(), "tool", draw=Draw(least=0, most=1, per_scene=2, tries=8))


@functools.cache
def dataset_folder():
    from gpu_planners.datasets import make

    make(recipe(), folder() / "data", 2)
    return folder() / "data"


def dataset():
    from gpu_planners.datasets import load

    return load(dataset_folder())


def plan():
    return fleet().solve([[0, 0], [7, 7]], [[7, 7], [0, 0]], 1.0)


def _file(name, text):
    path = folder() / name
    if not path.exists():
        path.write_text(text)
    return path


def map_file():
    return _file("map.map", "type octile\nheight 2\nwidth 2\nmap\n..\n..\n")


def scen_file():
    return _file("map.scen", "version 1\n0\tmap.map\t2\t2\t0\t0\t1\t1\t1.414\n")


def yaml_map():
    from gpu_planners.grid import save_map_yaml

    save_map_yaml(folder() / "saved.yaml", grid())
    return folder() / "saved.yaml"


def npy_file():
    np.save(folder() / "map.npy", np.ones((8, 8), np.uint8))
    return folder() / "map.npy"


def guidance():
    from gpu_planners.fleet import Guidance

    return Guidance.plain(grid())


def simulation():
    from gpu_planners.sim.simulation import Simulation

    return Simulation(robot(), world())


def ranks():
    try:
        return distributed.Ranks()
    except GpuPlannersError as error:
        raise Skipped(f"no MPI: {error}") from None


def free_segment():
    from gpu_planners.arm.sequence import Free

    return Free(goals=[0.5, 0.5])


def pose():
    T = np.eye(4)
    T[0, 3] = 0.9
    return T


def planner():
    from gpu_planners.arm import rrt_connect

    return rrt_connect


TILES = [[0, 0], [7, 7]]
FOOTPRINT = [[0.2, 0.1], [-0.2, 0.1], [-0.2, -0.1], [0.2, -0.1]]
CONSTRAINTS = ("Upright", "Constraint", "Orientation", "Within", "Position", "Tilt", "JointRange")
WORKING: dict[str, Any] = {  # by "Class.method.argument", or by argument: what works, or a function that makes it
    name: value
    for value, names in (
        (
            [0.1, 0.2],
            "CollisionChecker.colliding_pairs.q KeepingChecker.colliding_pairs.q Simulation.reset.q "
            "cartesian.shifted.q Spline.nearest_time.q",
        ),
        (0.001, "CollisionChecker.thickened.thickness thickness"),
        (0, "CollisionWorld.shape_name.index agent i row first"),
        ("box", "CollisionWorld.pieces_of.name CollisionWorld.remove.name Dataset.padded_obstacles.kind"),
        ([[0, 0, 0], [1, 0, 0]], "CollisionWorld.add_voxels.cells"),
        ("held", "RobotModel.detach.name"),
        (lambda: robot().attach("held", shape(), "tool"), "RobotModel.detach"),
        ("first", "RobotModel.of_group.group"),
        ("tool", "RobotModel.link_index.link link tip"),
        ([("one", "tool")], "RobotModel.allow_collisions.pairs"),
        (
            2,
            "MapRows.checked.last cut.plan_bands.ranks learning.learn_guidance.agents "
            "learning.learn_guidance.steps exchange.run.size dof count",
        ),
        (lambda: np.ones((8, 8), np.uint8), "MapRows.of_array.costs GridMap.costs"),
        (lambda: np.ones((40, 40), np.uint8), "PoseGrid.costs"),
        (pose_grid, "PosePlanner.poses"),
        (FOOTPRINT, "PoseGrid.footprint PoseGrid.with_footprint.footprint"),
        (16, "PoseGrid.headings"),
        ([0.0, 7.0], "PoseGrid.headings_of.angles"),
        ([[1.0, 1.0, 0.0]], "PosePlanner.plan.starts PosePlanner.states_free.poses PosePlanner.path_free.path"),
        ([1.0, 1.2, 0.5], "PosePlanner.plan.goals PosePlanner.prepare.goal PosePlanner.field.goal"),
        (npy_file, "MapRows.of_file.path"),
        (8, "MapRows.random.rows MapRows.random.cols MapRows.rows MapRows.cols"),
        (64, "cut.plan_bands.rows drawing.draw_map.size"),
        (
            16,
            "generated.caves_and_rooms.rows generated.caves_and_rooms.cols generated.random_map.rows "
            "generated.random_map.cols",
        ),
        (32, "generated.warehouse_map.rows generated.warehouse_map.cols"),
        (lambda: np.ones((4, 4), bool), "generated.largest_component.free"),
        (lambda: np.array([TILES, TILES]), "drawing.draw_fleet.positions drawing.fleet_page.positions"),
        (None, "drawing.fleet_page.goals"),
        (robot, "checking.check.robot upright.Upright.robot Upright.robot"),
        (lambda: np.array([[0.1, 0.2]]), "Upright.kept.q_from Upright.tilts.q"),
        (lambda: np.array([[0.1, 0.3]]), "Upright.kept.q_to"),
        (lambda: np.array([0.1, 0.2]), "Upright.set_right.q"),
        (
            lambda: TILES[::-1],
            "FleetPlanner.prepare.goals FleetPlanner.step.goals FleetPlanner.steps_to_go.goals "
            "FleetPlanner.solve.goals",
        ),
        (lambda: lambda first, last: np.ones((last - first, 8), np.uint8), "MapRows.read"),
        ([[0, 0]], "PathSet.of_moves.starts"),
        ([0], "PathSet.of_moves.moves FleetPlanner.remove.agents FleetPlanner.observe.still agents"),
        (
            None,
            "BlockPlanner.plan.executor BlockPlanner.plan.devices rrt_connect.solve_batch.executor "
            "rrt_connect.solve_batch.devices batch.solve_batch.headings batch.solve_batch.speeds "
            "loader.load_urdf.srdf Ranks.communicator BlockPlanner.settings settings speeds ranks roadmap "
            "executor progress told FleetPlanner.take_zones.zones",
        ),
        ([[0.0, 0.0]], "rrt_connect.solve_batch.starts"),
        ([[0.5, 0.5]], "rrt_connect.solve_batch.goals GridMap.tiles_of.points GridMap.places_of.points"),
        (lambda: [TILES], "batch.solve_batch.starts"),
        (lambda: [TILES[::-1]], "batch.solve_batch.goals"),
        (fleet, "batch.solve_batch.fleets"),
        (lambda: Path(tempfile.mkdtemp(dir=folder())) / "made", "making.make.folder"),
        (1, "making.make.problems learning.learn_guidance.rounds extents last value"),
        (dataset_folder, "checking.check.folder reading.load.path"),
        ("waypoints", "Dataset.of.name Dataset.offsets.name"),
        (lambda: URDF, "load_urdf.urdf loader.load_urdf.urdf"),
        (lambda: _file("scene.yaml", "obstacles: []\n"), "scene_file.load_scene.file"),
        (yaml_map, "map_files.load_map_yaml.path"),
        (lambda: folder() / "written.yaml", "map_files.save_map_yaml.path"),
        (map_file, "movingai.load_movingai_map.path"),
        (scen_file, "movingai.load_movingai_scen.path"),
        (lambda: folder() / "guidance.npz", "Guidance.save.path"),
        (lambda: (guidance().save(folder() / "guidance.npz"), folder() / "guidance.npz")[1], "Guidance.load.path"),
        (lambda: guidance().moves, "Guidance.moves"),
        (lambda: np.array([TILES, TILES]), "fleets.conflicts.positions"),
        (lambda: np.zeros((8, 8), bool), "fleets.conflicts.blocked"),
        (lambda: lambda exchange: exchange.rank, "exchange.run.work"),
        (URDF, "CoalScene.urdf paths.check_path.urdf"),
        (MJCF, "mjcf.load_mjcf.mjcf mjcf.mjcf_obstacles.mjcf"),
        (2, "SceneBatch.count"),
        ("box", "CollisionWorld.pose_of.name"),
        (lambda: np.tile(np.eye(4), (2, len(world().names), 1, 1)), "SceneBatch.set_poses.poses"),
        (
            [[0.0, 0.0], [0.1, 0.2]],
            "SceneBatch.configurations_valid.q SceneBatch.motions_valid.q_from SceneBatch.motions_valid.q_to",
        ),
        ([], "CoalScene.among.obstacles"),
        ([0.1, 0.2], "CoalScene.placed.q CoalScene.in_collision.q CoalScene.distance.q CoalScene.pair_distances.q"),
        (
            [[0.0, 0.0], [0.1, 0.2]],
            "CoalScene.first_collision.path CoalScene.measured.path paths.check_path.path "
            "limits.broken_rules.positions",
        ),
        (lambda: np.ones((8, 8), np.uint8), "grids.walk.costs grids.costs_to_goal.costs"),
        (8, "grids.walk.connectivity grids.costs_to_goal.connectivity"),
        ([[0, 0], [0, 1]], "grids.walk.path"),
        ([0, 0], "grids.walk.start"),
        ([0, 1], "grids.walk.goal grids.costs_to_goal.goal grids.broken_paths.goals"),
        (TILES, "grids.broken_paths.starts"),
        ([0.0, 1.0], "Spline.times"),
        (lambda: (shape(),), "MovingObstacle.pieces"),
        ([0.0, 0.0, 0.1], "MovingObstacle.velocity"),
        (0.0, "MovingObstacle.during.begin MovingObstacle.during.end MovingObstacle.since"),
        (lambda: [mover()], "moving.first_contact.obstacles moving.solve.obstacles"),
        (0.0, "moving.first_contact.begin moving.first_contact.time moving.first_contact.slack moving.solve.slack"),
        (spline, "moving.first_contact.curve"),
        (checker, "moving.first_contact.checker moving.solve.checker"),
        ([0.0, 0.0], "moving.solve.start"),
        ([0.5, 0.5], "moving.solve.goals"),
        (quick, "moving.solve.settings"),
        (lambda: lambda path: trajectory(), "moving.solve.timed"),
        (lambda: lambda: 0.0, "moving.solve.clock"),
        ([[0.0, 0.0], [1.0, 1.0]], "Spline.positions"),
        ([0.0, 0.5], "Spline.at.times Trajectory.at.times"),
        (lambda: spline().at, "Simulation.advance.reference"),
        ("cpu", "device.model_of.device device devices"),
        ((0.0, 0.0, 1.0), "Upright.axis axis direction"),
        (0.2, "Upright.tolerance Tilt.tolerance"),
        (lambda: np.eye(3), "Orientation.R"),
        ((0.2, 0.2, 0.2), "Orientation.tolerances"),
        ((0.0, 0.0, 0.0), "Within.point Position.point"),
        ((-1.0, -1.0, -1.0), "Position.lower Volume.box.lower"),
        ((1.0, 1.0, 1.0), "Position.upper Volume.box.upper"),
        ([[0.0, 0.0, 1.0, -1.0]], "Volume.bounded.planes"),
        (lambda: [gpu_planners.arm.constraints.Volume.sphere(1.0)], "Within.volumes"),
        (lambda: {robot().joint_names[0]: (-0.5, 0.5)}, "JointRange.ranges"),
        (
            [0.1, 0.2],
            " ".join(f"{kind}.told.q" for kind in (*CONSTRAINTS, "RelativePose")) + " relative.pose_between.q",
        ),
        (robot, "RelativePose.robot relative.pose_between.robot"),
        ("one", "RelativePose.link relative.pose_between.link"),
        ("tool", "RelativePose.other relative.pose_between.other"),
        (lambda: two_links().pose, "RelativePose.T_link_other"),
        (lambda: np.eye(4), "RelativePose.carrying.T_root_link"),
        (lambda: upright().parts, "Constraint.parts"),
        (upright, "KeepingChecker.constraint"),
        (lambda: [upright()], "constraint.all_of.constraints"),
        (0.001, "KeepingChecker.thickened.thickness"),
        (robot, "Constraint.robot Orientation.robot Within.robot Position.robot Tilt.robot JointRange.robot"),
        ([0.2, 0.4], "cartesian.solve.start"),
        (lambda: robot().link_poses([0.25, 0.45])["tool"][0], "cartesian.solve.goal"),
        (lambda: planner().Settings(time_limit_s=0.5, max_samples=500), "sequence.Settings.planning"),
        (
            [0, 0],
            "BlockPlanner.field.goal BandedPlanner.field.goal BandedPlanner.prepare.goal BandedPlanner.plan.goals "
            "headings",
        ),
        ((0, 8), "BandedPlanner.field.rows"),
        (1.0, "Payload.mass"),
        ([[0, 7]], "FleetPlanner.add.starts"),
        (
            TILES,
            "FleetPlanner.distances.places FleetPlanner.distances.goals FleetPlanner.has_fields.goals "
            "FleetPlanner.parts.places FleetPlanner.plan_fields.goals Task.errands",
        ),
        ("one", "Dispatcher.cancel.id Dispatcher.reprioritise.id Dispatcher.state.id Dispatcher.remove.robot"),
        (["a", "b"], "Dispatcher.assign.robots"),
        (lambda: lambda: True, "FleetPlanner.plan_fields.goes_on"),
        (lambda: importlib.import_module("gpu_planners.fleet").Task(TILES), "Dispatcher.submit.task"),
        (lambda: TILES, "FleetPlanner.start.starts tiles starts positions"),
        (lambda: np.ones((8, 8)), "drawing.draw_map.field"),
        (lambda: [np.array(TILES)], "drawing.draw_map.paths"),
        (lambda: np.zeros((8, 8), np.int8), "GridMap.from_occupancy.data"),
        (lambda: recipe().draw, "Recipe.draw"),
        (lambda: gpu_planners.arm.cartesian.Arc(through=(0.0, 0.5, 0.0)), "Circular.arc"),
        ([[0.1, 0.2]], "q q_from"),
        ([[0.2, 0.3]], "q_to"),
        ([0.0, 0.0], "start"),
        ([0.5, 0.5], "goals"),
        ([0.1, 0.1], "seed_q"),
        (pose, "pose poses T_from T_to T_link_object T_new_frame"),
        ([0.0, 0.01, 0.0], "translation"),
        (2, "Zones.limits.size Zones.stops_refused.size"),
        ((0.1, 0.1, 0.1), "size"),
        (lambda: np.ones((4, 4, 4), np.float32), "fields.grid_bricks.distances"),
        (lambda: np.ones((1, 8, 8, 8), np.float32), "fields.block_bricks.distances"),
        ([[0, 0, 0]], "fields.block_bricks.indices"),
        (lambda: np.random.default_rng(0).normal(size=(8, 3)), "vertices points"),
        (lambda: __import__("trimesh").creation.box(), "mesh"),
        (lambda: [shape()], "shapes"),
        ([1], "rows cols costs"),
        (lambda: RuntimeError("lost"), "errors.is_device_lost.error"),
        ([[0.0, 0.0], [0.5, 0.5]], "path"),
        ([1.0, 1.0], "velocity acceleration"),
        ([10.0, 10.0], "jerk"),
        (lambda: [free_segment()], "segments"),
        (planner, "planner"),
        (checker, "checker checkers"),
        (5, "n"),
        ("thing", "name"),
        ("text", "text"),
        (0.5, "time_limit_s time"),
        (alone, "exchange"),
        (dict, "arrays fixed"),
        (trajectory, "trajectory Trajectory.at"),
        (lambda: spline(), "motion"),
        (0.1, "radius height up_to"),
        (0.01, "until"),
    )
    for name in names.split()
}
OBJECTS: dict[str, Callable[[], Any]] = {
    "RobotModel": robot,
    "CollisionWorld": world,
    "CollisionChecker": checker,
    "PlanningResults": lambda: gpu_planners.arm.rrt_connect.solve_batch([[0.0, 0.0]] * 2, [[0.1, 0.2]] * 2, checker()),
    "SceneBatch": lambda: gpu_planners.arm.SceneBatch(robot(), world(), 2, "cpu"),
    "ConvexShape": shape,
    "GridMap": grid,
    "PoseGrid": pose_grid,
    "PosePlanner": pose_planner,
    "PosePathSet": lambda: pose_planner().plan([[1.0, 1.0, 0.0]], [1.0, 1.2, 0.5]),
    "Grid": grid,
    "Limits": robot,
    "CoalScene": lambda: importlib.import_module("gpu_planners.verify").CoalScene(URDF),
    "Paths": lambda: block_planner().plan(TILES, [0, 1]),
    "BlockPlanner": block_planner,
    "BandedPlanner": banded,
    "FleetPlanner": fleet,
    "FleetPlan": plan,
    "Dispatcher": dispatcher,
    "PathSet": lambda: block_planner().plan(TILES, [0, 0]),
    "MapRows": lambda: gpu_planners.grid.MapRows.of_grid(grid()),
    "Guidance": guidance,
    "Spline": spline,
    "MovingObstacle": mover,
    "Simulation": simulation,
    "Dataset": dataset,
    "Recipe": recipe,
    **dict.fromkeys(CONSTRAINTS, upright),
    "RelativePose": two_links,
    "Volume": lambda: gpu_planners.arm.constraints.Volume.sphere(1.0),
    "KeepingChecker": lambda: gpu_planners.arm.constraints.KeepingChecker(checker(), upright()),
    "ThreadExchange": lambda: distributed.ThreadExchange(0, [None], __import__("threading").Barrier(1)),
    "Ranks": ranks,
    "Report": lambda: importlib.import_module("gpu_planners.datasets").Report(),
    "MotionCheck": lambda: gpu_planners.arm.MotionCheck(),
    "InverseDynamics": lambda: importlib.import_module("gpu_planners.arm.dynamics").InverseDynamics(robot()),
}


def made(value):
    """A value of WORKING, anew for each call."""
    return value() if callable(value) else copy.deepcopy(value)


def working(public: Public, parameter) -> Any:
    """A value with which a call works; LookupError where nobody says so."""
    key = f"{public.name}.{parameter.name}"
    if key in WORKING:
        return made(WORKING[key])
    if parameter.name == "settings" and (settings := settings_of(public.hints.get("settings"))) is not None:
        return settings
    if parameter.default is not parameter.empty:
        return parameter.default
    if parameter.name in WORKING:
        return made(WORKING[parameter.name])
    hint = public.hints.get(parameter.name)
    name = getattr(hint, "__name__", "")
    if name in OBJECTS:
        return OBJECTS[name]()
    if hint in (int, float):
        return hint(1)
    raise LookupError(f"{public.name} has an argument {parameter.name!r} ({hint}): say in WORKING with what it works")


def instance(public: Public):
    """What a method is called on."""
    if public.name in WORKING:
        return made(WORKING[public.name])
    name = public.owner.__name__
    if name in OBJECTS:
        return OBJECTS[name]()
    if dataclasses.is_dataclass(public.owner):
        return public.owner()
    raise LookupError(f"nothing is known that makes a {name}: say in OBJECTS what does")


def arguments(public: Public) -> dict[str, Any]:
    """{name: value} of a call that works."""
    fixed = [p for p in public.parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return {p.name: working(public, p) for p in fixed}


# ---------------------------------------------------------------------------------------------- the attack


@contextlib.contextmanager
def _inside(path):
    """Work in a folder: a text may be the name of a file."""
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


def call(public: Public, given: dict[str, Any]) -> Any:
    """Call it, in a folder where it may write."""
    target = public.call if public.owner is None else functools.partial(public.call, instance(public))
    with _inside(folder()), warnings.catch_warnings():
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        return target(**given)


def kind_of(hint) -> Any:
    """The key of FORBIDDEN for an annotation, or None."""
    if "Callable" in str(hint) or "Mapping" in str(hint):
        return None
    parts = set(typing.get_args(hint)) - {type(None)}
    like = np.typing.ArrayLike  # a named alias on Python 3.14
    members = set(typing.get_args(getattr(like, "__value__", like)))
    if hint is np.ndarray or hint is like or like in parts or members <= parts:
        return "array"
    if isinstance(hint, type) and hint in FORBIDDEN:
        return hint
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return parts.pop() if is_union and len(parts) == 1 and parts <= FORBIDDEN.keys() else None


def attack(public: Public, name: str, value: str) -> str:
    """What is wrong where an argument has a hostile value, "" where nothing is."""
    if value == "class" and "Callable" in str(public.hints.get(name)):
        return ""  # it may be called, and what it then does is its own affair
    try:
        for _ in range(2):  # the first time may compile
            given = arguments(public) | {name: HOSTILE[value]()}
            began = time.perf_counter()
            answer = call(public, given)
            seconds = time.perf_counter() - began
            if seconds <= SLOW_S:
                return _accepted(public, name, value, answer)
    except GpuPlannersError as error:
        text = str(error)
        if not text:
            return "a GpuPlannersError without a text"
        if len(text) > 2000:
            return f"a text of {len(text)} characters"
        return ""
    except Skipped:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:120]}"
    return f"took {seconds:.1f} s"


def _accepted(public, name, value, answer):
    hint = public.hints.get(name)
    optional = type(None) in typing.get_args(hint) or hint is None
    default = inspect.signature(public.call).parameters[name].default
    if value == "None" and (optional or default is None):
        return ""
    if value in FORBIDDEN.get(kind_of(hint), ()) and not _says_no(answer):
        return f"is taken, and answered by {shown(answer)[:80]}"
    return ""


def _says_no(answer):
    """Is it a planner's answer that a start or a goal is none?"""
    answers = list(answer) if isinstance(answer, list | gpu_planners.arm.PlanningResults) else [answer]
    return bool(answers) and all(
        str(getattr(each, "status", "")).rpartition(".")[2].startswith("INVALID_") for each in answers
    )


def targets() -> list[tuple[str, str]]:
    """[(public callable, argument)] of all."""
    fixed = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        (name, p.name) for name, public in sorted(publics().items()) for p in public.parameters if p.kind not in fixed
    ]


def unready(public: Public) -> str:
    """What keeps a public callable from being attacked: no working call, or one that fails; "" where nothing does."""
    try:
        answer = call(public, arguments(public))
    except Skipped:
        raise
    except Exception as error:
        if isinstance(error, GpuPlannersError) and "pip install" in str(error):  # of an extra that is not here
            raise Skipped(str(error)) from None
        return f"{public.name}: no working call: {type(error).__name__}: {str(error)[:200]}"
    return f"{public.name}: no working call: {shown(answer)[:200]}" if _says_no(answer) else ""


def case(run, rng, number, tally):
    """All hostile values in one argument; as many cases as `targets` try all of them."""
    everything = targets()
    order = np.random.default_rng(tally.seed).permutation(len(everything))
    name, argument = everything[order[number % len(order)]]
    public = publics()[name]
    tally.check(not (why := unready(public)), why)
    for value in HOSTILE:
        found = attack(public, argument, value)
        tally.check(not found, f"{name}({argument}={value}): {found}")


ATTACK = Attack("arguments", "arguments: hostile values", case)
