"""Arguments that are none: hostile values in each argument of every public callable, found by introspection.

Public is what `__all__` of a package names, and what README and docs import. Of a class its constructor and its public
methods are; of a callable that is added, each argument is attacked as well: its name or its annotation says with what
it works (`WORKING`), and where neither does, the attack fails and says so.

A refusal is a GpuPlannersError. A finding is any other exception, what takes long, and an answer where the annotation
allows no such value: a text for a number, a complex number, a bool for an integer.
"""

import dataclasses
import enum
import functools
import importlib
import inspect
import io
import math
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
AT_ONCE = 40  # values of a case
SLOW_S = 3.0  # once its code is compiled, no refusal and no small answer takes longer
MADE_HERE = {  # classes that the package makes: nobody calls their constructors
    "Line",
    "PlanningResult",
    "PoseSolutions",
    "RobotModel",
    "SequenceResult",
    "Report",
    "Dataset",
    "FleetPlan",
    "PathSet",
    "Conflict",
    "ConvexShape",
    "Arc",
    "ThreadExchange",
    "Execution",
    "State",
    "Segment",
}
INNER = {"PathSet.of_moves", "CollisionChecker.device_scene", "BandedPlanner.update"}  # engines; what never works
COMPILERS = {"njit", "lean_njit", "cuda_jit", "told_if_slow"}  # for the package's own compiled code
URDF = """<robot name="two"><link name="base"/>
<link name="one"><collision><origin xyz="0.25 0 0"/><geometry><box size="0.5 0.05 0.05"/></geometry></collision></link>
<link name="tool"><collision><origin xyz="0.2 0 0"/><geometry><box size="0.4 0.05 0.05"/></geometry></collision></link>
<joint name="a" type="revolute"><parent link="base"/><child link="one"/><axis xyz="0 0 1"/>
<limit lower="-2" upper="2" velocity="1" effort="1"/></joint>
<joint name="b" type="revolute"><parent link="one"/><child link="tool"/><origin xyz="0.5 0 0"/><axis xyz="0 0 1"/>
<limit lower="-2" upper="2" velocity="1" effort="1"/></joint></robot>"""


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


HOSTILE: dict[str, Callable[[], Any]] = {  # made anew for each call
    "None": lambda: None,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
    "-1": lambda: -1,
    "0": lambda: 0,
    "-0.0": lambda: -0.0,
    "0.5": lambda: 0.5,
    "1e300": lambda: 1e300,
    "2**31": lambda: 2**31,
    "2**70": lambda: 2**70,
    "10**400": lambda: 10**400,
    "True": lambda: True,
    "1j": lambda: 1j,
    "''": lambda: "",
    "'x'": lambda: "x",
    "'1'": lambda: "1",
    "'NUL'": lambda: "a\0b",
    "'long'": lambda: "x" * 100_000,
    "'surrogate'": lambda: "\ud800",
    "b''": lambda: b"",
    "object": object,
    "strange": Strange,
    "class": lambda: dict,
    "lambda": lambda: lambda *args: None,
    "generator": lambda: (i for i in range(3)),
    "closed": _closed,
    "[]": list,
    "{}": dict,
    "{1}": lambda: {1},
    "{'x': None}": lambda: {"x": None},
    "[None]": lambda: [None],
    "['x']": lambda: ["x"],
    "ragged": lambda: [[1.0, 2.0], [3.0]],
    "deep": lambda: [[[[[[1.0]]]]]],
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
TEXTS = {"''", "'x'", "'1'", "'NUL'", "'long'", "'surrogate'", "b''"}
NO_NUMBER = TEXTS | {
    "None",
    "nan",
    "True",
    "1j",
    "object",
    "strange",
    "class",
    "lambda",
    "generator",
    "closed",
    "[]",
    "{}",
    "{1}",
    "[None]",
    "['x']",
    "ragged",
    "objects",
    "complex",
    "strings",
    "bools",
    "masked",
    "datetime",
}
FORBIDDEN = {  # what no argument of that annotation may be
    float: NO_NUMBER,
    int: NO_NUMBER | {"inf", "-inf", "0.5", "1e300"},
    bool: (NO_NUMBER - {"True"}) | {"0", "-1", "0.5", "inf"},
    str: {"b''", "None", "nan", "0", "True", "1j", "object", "class", "[]", "['x']", "{}"},
    "array": {
        "None",
        "1j",
        "''",
        "'x'",
        "'1'",
        "b''",
        "object",
        "class",
        "lambda",
        "generator",
        "{1}",
        "{'x': None}",
        "{}",
        "[None]",
        "['x']",
        "ragged",
        "objects",
        "complex",
        "strings",
        "masked",
        "datetime",
        "structured",
    },
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
        elif thing.__name__ not in COMPILERS:
            name = f"{_short(thing.__module__)}.{thing.__name__}"
            found[name] = Public(name, thing)
    return found


def _short(module):
    return module.removesuffix(".planner").removesuffix(".settings").rpartition(".")[2]


def _named() -> Iterator[Any]:
    seen = set()
    waiting = [importlib.import_module("gpu_planners.device")]
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

    return load_urdf(URDF)


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


def shape():
    from gpu_planners.arm.geometry.shapes import ConvexShape

    return ConvexShape.box("shape", (0.05, 0.05, 0.05), np.eye(4))


@functools.cache
def grid():
    from gpu_planners.grid import GridMap

    costs = np.ones((8, 8), np.uint8)
    costs[3, 2:6] = 0
    return GridMap(costs)


def fleet():
    from gpu_planners.grid import FleetPlanner

    made = FleetPlanner(grid(), device="cpu")
    made.start([[0, 0], [7, 7]])
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


def settings_of(public):
    """Settings that end soon, of the module of a planner."""
    for text in ("settings", "line_settings"):
        hint = public.hints.get(text)
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
    from gpu_planners.grid.fleet import Guidance

    return Guidance.plain(grid())


def simulation():
    try:
        from gpu_planners.sim.simulation import Simulation

        return Simulation(robot(), world())
    except (ImportError, GpuPlannersError) as error:
        raise Skipped(f"no MuJoCo: {error}") from None


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
WORKING: dict[str, Callable[[], Any]] = {  # by "Class.method.argument", by argument, by the name of the annotation
    "CollisionChecker.colliding_pairs.q": lambda: [0.1, 0.2],
    "CollisionChecker.thickened.thickness": lambda: 0.001,
    "CollisionWorld.shape_name.index": lambda: 0,
    "CollisionWorld.pieces_of.name": lambda: "box",
    "CollisionWorld.remove.name": lambda: "box",
    "CollisionWorld.add_voxels.cells": lambda: [[0, 0, 0], [1, 0, 0]],
    "RobotModel.detach.name": lambda: "held",
    "RobotModel.detach": lambda: robot().attach("held", shape(), "tool"),
    "RobotModel.link_index.link": lambda: "tool",
    "RobotModel.allow_collisions.pairs": lambda: [("one", "tool")],
    "MapRows.checked.last": lambda: 2,
    "MapRows.of_array.costs": lambda: np.ones((8, 8), np.uint8),
    "MapRows.of_file.path": npy_file,
    "MapRows.random.rows": lambda: 8,
    "MapRows.random.cols": lambda: 8,
    "cut.plan_bands.rows": lambda: 64,
    "cut.plan_bands.ranks": lambda: 2,
    "generated.caves_and_rooms.rows": lambda: 16,
    "generated.caves_and_rooms.cols": lambda: 16,
    "checking.check.robot": robot,
    "upright.Upright.robot": robot,
    "Upright.robot": robot,
    "Upright.kept.q_from": lambda: np.array([[0.1, 0.2]]),
    "Upright.kept.q_to": lambda: np.array([[0.1, 0.3]]),
    "Upright.set_right.q": lambda: np.array([0.1, 0.2]),
    "Upright.tilts.q": lambda: np.array([[0.1, 0.2]]),
    "FleetPlanner.step.goals": lambda: TILES[::-1],
    "FleetPlanner.steps_to_go.goals": lambda: TILES[::-1],
    "drawing.draw_map.size": lambda: 64,
    "MapRows.rows": lambda: 8,
    "MapRows.cols": lambda: 8,
    "MapRows.read": lambda: lambda first, last: np.ones((last - first, 8), np.uint8),
    "PathSet.of_moves.starts": lambda: [[0, 0]],
    "PathSet.of_moves.moves": lambda: [0],
    "BlockPlanner.plan.executor": lambda: None,
    "BlockPlanner.plan.devices": lambda: None,
    "rrt_connect.solve_batch.executor": lambda: None,
    "rrt_connect.solve_batch.devices": lambda: None,
    "rrt_connect.solve_batch.starts": lambda: [[0.0, 0.0]],
    "rrt_connect.solve_batch.goals": lambda: [[0.5, 0.5]],
    "batch.solve_batch.starts": lambda: [TILES],
    "batch.solve_batch.goals": lambda: [TILES[::-1]],
    "batch.solve_batch.fleets": fleet,
    "batch.solve_batch.headings": lambda: None,
    "batch.solve_batch.speeds": lambda: None,
    "making.make.folder": lambda: Path(tempfile.mkdtemp(dir=folder())) / "made",
    "making.make.problems": lambda: 1,
    "checking.check.folder": dataset_folder,
    "reading.load.path": dataset_folder,
    "Dataset.of.name": lambda: "waypoints",
    "Dataset.offsets.name": lambda: "waypoints",
    "Dataset.padded_obstacles.kind": lambda: "box",
    "load_urdf.urdf": lambda: URDF,
    "scene_file.load_scene.file": lambda: _file("scene.yaml", "obstacles: []\n"),
    "loader.load_urdf.urdf": lambda: URDF,
    "loader.load_urdf.srdf": lambda: None,
    "map_files.load_map_yaml.path": yaml_map,
    "map_files.save_map_yaml.path": lambda: folder() / "written.yaml",
    "movingai.load_movingai_map.path": map_file,
    "movingai.load_movingai_scen.path": scen_file,
    "Guidance.save.path": lambda: folder() / "guidance.npz",
    "Guidance.load.path": lambda: (guidance().save(folder() / "guidance.npz"), folder() / "guidance.npz")[1],
    "Guidance.moves": lambda: guidance().moves,
    "Guidance.with_crowds.waiting": lambda: np.ones((8, 8), np.int32),
    "learning.learn_guidance.agents": lambda: 2,
    "learning.learn_guidance.rounds": lambda: 1,
    "learning.learn_guidance.steps": lambda: 2,
    "validator.conflicts.positions": lambda: np.array([TILES, TILES]),
    "validator.conflicts.blocked": lambda: np.zeros((8, 8), bool),
    "exchange.run.size": lambda: 2,
    "exchange.run.work": lambda: lambda exchange: exchange.rank,
    "Ranks.communicator": lambda: None,
    "Spline.times": lambda: [0.0, 1.0],
    "Spline.positions": lambda: [[0.0, 0.0], [1.0, 1.0]],
    "Spline.at.times": lambda: [0.0, 0.5],
    "Simulation.advance.reference": lambda: lambda q: spline().at(0.0),
    "device.model_of.device": lambda: "cpu",
    "upright.solve.axis": lambda: (0.0, 0.0, 1.0),
    "upright.solve.tolerance": lambda: 0.2,
    "Upright.axis": lambda: (0.0, 0.0, 1.0),
    "Upright.tolerance": lambda: 0.2,
    "cartesian.solve.start": lambda: [0.2, 0.4],
    "cartesian.solve.goal": lambda: robot().link_poses([0.25, 0.45])["tool"][0],
    "sequence.solve.settings": lambda: planner().Settings(time_limit_s=0.5, max_samples=500),
    "BlockPlanner.settings": lambda: None,
    "BlockPlanner.field.goal": lambda: [0, 0],
    "BandedPlanner.field.goal": lambda: [0, 0],
    "BandedPlanner.prepare.goal": lambda: [0, 0],
    "BandedPlanner.field.rows": lambda: (0, 8),
    "BandedPlanner.plan.goals": lambda: [0, 0],
    "FleetPlanner.add.starts": lambda: [[0, 7]],
    "FleetPlanner.start.starts": lambda: TILES,
    "FleetPlanner.solve.goals": lambda: TILES[::-1],
    "FleetPlanner.remove.agents": lambda: [0],
    "FleetPlanner.observe.still": lambda: [0],
    "drawing.draw_map.field": lambda: np.ones((8, 8)),
    "drawing.draw_map.paths": lambda: [np.array(TILES)],
    "GridMap.costs": lambda: np.ones((8, 8), np.uint8),
    "GridMap.from_occupancy.data": lambda: np.zeros((8, 8), np.int8),
    "GridMap.tiles_of.points": lambda: [[0.5, 0.5]],
    "Recipe.draw": lambda: recipe().draw,
    "q": lambda: [[0.1, 0.2]],
    "q_from": lambda: [[0.1, 0.2]],
    "q_to": lambda: [[0.2, 0.3]],
    "start": lambda: [0.0, 0.0],
    "goals": lambda: [0.5, 0.5],
    "seed_q": lambda: [0.1, 0.1],
    "pose": pose,
    "poses": pose,
    "T_link_object": pose,
    "T_new_frame": pose,
    "translation": lambda: [0.0, 0.01, 0.0],
    "size": lambda: (0.1, 0.1, 0.1),
    "vertices": lambda: np.random.default_rng(0).normal(size=(8, 3)),
    "points": lambda: np.random.default_rng(0).normal(size=(8, 3)),
    "extents": lambda: 1,
    "mesh": lambda: __import__("trimesh").creation.box(),
    "shapes": lambda: [shape()],
    "tiles": lambda: TILES,
    "starts": lambda: TILES,
    "positions": lambda: TILES,
    "rows": lambda: [1],
    "cols": lambda: [1],
    "costs": lambda: [1],
    "path": lambda: [[0.0, 0.0], [0.5, 0.5]],
    "velocity": lambda: [1.0, 1.0],
    "acceleration": lambda: [1.0, 1.0],
    "jerk": lambda: [10.0, 10.0],
    "axis": lambda: (0.0, 0.0, 1.0),
    "direction": lambda: (0.0, 0.0, 1.0),
    "segments": lambda: [free_segment()],
    "planner": planner,
    "checker": checker,
    "checkers": checker,
    "link": lambda: "tool",
    "tip": lambda: "tool",
    "device": lambda: "cpu",
    "devices": lambda: "cpu",
    "settings": lambda: None,
    "headings": lambda: [0, 0],
    "speeds": lambda: None,
    "agents": lambda: [0],
    "agent": lambda: 0,
    "i": lambda: 0,
    "row": lambda: 0,
    "first": lambda: 0,
    "last": lambda: 1,
    "n": lambda: 5,
    "dof": lambda: 2,
    "name": lambda: "thing",
    "text": lambda: "text",
    "time_limit_s": lambda: 0.5,
    "exchange": alone,
    "ranks": lambda: None,
    "roadmap": lambda: None,
    "executor": lambda: None,
    "progress": lambda: None,
    "told": lambda: None,
    "value": lambda: 1,
    "arrays": dict,
    "trajectory": trajectory,
    "motion": lambda: spline(),
    "radius": lambda: 0.1,
    "height": lambda: 0.1,
    "up_to": lambda: 0.1,
    "thickness": lambda: 0.001,
    "count": lambda: 2,
    "time": lambda: 0.5,
    "until": lambda: 0.01,
    "fixed": dict,
}
OBJECTS: dict[str, Callable[[], Any]] = {
    "RobotModel": robot,
    "CollisionWorld": world,
    "CollisionChecker": checker,
    "ConvexShape": shape,
    "GridMap": grid,
    "BlockPlanner": block_planner,
    "BandedPlanner": banded,
    "FleetPlanner": fleet,
    "FleetPlan": plan,
    "PathSet": lambda: block_planner().plan(TILES, [0, 0]),
    "MapRows": lambda: gpu_planners.grid.MapRows.of_grid(grid()),
    "Guidance": guidance,
    "Spline": spline,
    "Simulation": simulation,
    "Dataset": dataset,
    "Recipe": recipe,
    "Upright": lambda: gpu_planners.arm.upright.Upright(robot(), "tool", (0, 0, 1), (0, 0, 1), 0.2),
    "ThreadExchange": lambda: distributed.ThreadExchange(0, [None], __import__("threading").Barrier(1)),
    "Ranks": ranks,
    "Report": lambda: importlib.import_module("gpu_planners.datasets").Report(),
    "MotionCheck": lambda: gpu_planners.arm.MotionCheck(),
}


def working(public: Public, parameter) -> Any:
    """A value with which a call works; LookupError where nobody says so."""
    key = f"{public.name}.{parameter.name}"
    if key in WORKING:
        return WORKING[key]()
    if parameter.name in ("settings", "line_settings") and (made := settings_of(public)) is not None:
        return made
    if parameter.default is not parameter.empty:
        return parameter.default
    if parameter.name in WORKING:
        return WORKING[parameter.name]()
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
        return WORKING[public.name]()
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


def call(public: Public, given: dict[str, Any]) -> Any:
    """Call it; a generator's first item is asked for, too."""
    target = public.call if public.owner is None else functools.partial(public.call, instance(public))
    with warnings.catch_warnings():
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        return target(**given)


def kind_of(hint) -> Any:
    """The key of FORBIDDEN for an annotation, or None."""
    if "Callable" in str(hint) or "Mapping" in str(hint):
        return None
    parts = set(typing.get_args(hint)) - {type(None)}
    if hint is np.ndarray or set(typing.get_args(np.typing.ArrayLike)) <= parts:
        return "array"
    if isinstance(hint, type) and hint in FORBIDDEN:
        return hint
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return parts.pop() if is_union and len(parts) == 1 and parts <= FORBIDDEN.keys() else None


def attack(public: Public, name: str, value: str) -> str:
    """What is wrong where an argument has a hostile value, "" where nothing is."""
    given = arguments(public)
    if value == "class" and "Callable" in str(public.hints.get(name)):
        return ""  # it may be called, and what it then does is its own affair
    hostile = HOSTILE[value]()
    given[name] = hostile
    began = time.perf_counter()
    try:
        answer = call(public, given)
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
    seconds = time.perf_counter() - began
    if seconds > SLOW_S:
        return f"took {seconds:.1f} s"
    return _accepted(public, name, value, answer)


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
    answers = answer if isinstance(answer, list) else [answer]
    return bool(answers) and all(
        str(getattr(each, "status", "")).rpartition(".")[2].startswith("INVALID_") for each in answers
    )


def targets() -> list[tuple[str, str]]:
    """[(public callable, argument)] of all."""
    fixed = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        (name, p.name) for name, public in sorted(publics().items()) for p in public.parameters if p.kind not in fixed
    ]


def unready() -> list[str]:
    """What keeps a public callable from being attacked: no working call, or one that fails."""
    wrong = []
    for public in publics().values():
        try:
            call(public, arguments(public))
        except Skipped:
            pass
        except Exception as error:
            wrong.append(f"{public.name}: {type(error).__name__}: {str(error)[:200]}")
    return wrong


def case(run, rng, number, tally):
    """Some hostile values, each in an argument of its own."""
    all_targets, values = targets(), list(HOSTILE)
    for _ in range(AT_ONCE):
        name, argument = all_targets[rng.integers(len(all_targets))]
        value = values[rng.integers(len(values))]
        try:
            found = attack(publics()[name], argument, value)
        except Skipped as why:
            tally.skipped[str(why)] += 1
            continue
        tally.check(not found, f"{name}({argument}={value}): {found}")


ATTACK = Attack("arguments", "arguments: hostile values", case)
