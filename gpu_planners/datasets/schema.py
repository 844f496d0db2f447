"""The columns of a data set: what each is called, what it holds, in which unit. docs/datasets.md prints this table."""

import hashlib
import importlib
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import GpuPlannersError
from ..files import json_value
from .recipe import FORMAT

KEY = b"gpu_planners.dataset"  # of the metadata in each file
Q, PATH, POSE, TIMES, OBSTACLES = "q", "path", "pose", "times", "obstacles"


class MissingLibraryError(GpuPlannersError):
    """A library that an extra brings is not installed; the text says how to get it."""


def arrow() -> Any:
    """The module pyarrow, with its part `parquet` loaded. Raises MissingLibraryError."""
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ModuleNotFoundError as error:
        raise MissingLibraryError(
            f"data sets need the Python package 'pyarrow' ({error}): pip install 'gpu_planners[dataset]'"
        ) from error


class Column(NamedTuple):
    """kind: a type of Arrow, or Q: dof numbers, PATH: any number of Q, POSE: 7 numbers, TIMES: any number of numbers,
    OBSTACLES; timed: there only where motions are timed"""

    name: str
    kind: str
    unit: str
    text: str
    timed: bool = False


COLUMNS = (
    Column("number", "int64", "", "the problem's number, from 0 without a gap; the rows are in its order"),
    Column("scene", "int64", "", "place of the scene file in the list of `_dataset.json`, or number of a random scene"),
    Column("seed", "int64", "", "the planner's seed"),
    Column("status", "string", "", "`solved`, or why there is no path; the values are below"),
    Column("message", "string", "", "one sentence that says more; empty when solved"),
    Column("start", Q, "rad, m", "a free configuration; NaN where none was found"),
    Column("goals", PATH, "rad, m", "free configurations, any of which ends the motion; NaN where none was found"),
    Column("goal_index", "int32", "", "the goal that was reached; -1 without a path"),
    Column("start_pose", POSE, "m", "the tool at the start in the robot's root frame: x y z qx qy qz qw"),
    Column("goal_pose", POSE, "m", "the tool at the goal that was reached, or at the first one"),
    Column("waypoints", PATH, "rad, m", "the path, straight in joint space between rows; empty without one"),
    Column("cost", "double", "rad, m", "length of the path, weighted by the planner's `weights`; infinite without one"),
    Column("samples", "int64", "", "configurations that the planner drew"),
    Column("time_s", "double", "s", "measured: the call that planned a chunk of problems, divided by their number"),
    Column("times", TIMES, "s", "of the timed motion, from 0", timed=True),
    Column("positions", PATH, "rad, m", "at each time", timed=True),
    Column("velocities", PATH, "rad/s, m/s", "at each time", timed=True),
    Column("accelerations", PATH, "rad/s^2, m/s^2", "at each time", timed=True),
    Column(
        "obstacles",
        OBSTACLES,
        "m",
        "convex shapes in the robot's root frame: `name`; `kind`: box, cylinder, sphere, convex; `size` along its own "
        "axes (a cylinder's: diameter, diameter, height along z); `position`; `quat_xyzw`; `vertices` of a hull",
    ),
)


def columns(timed: bool) -> list[Column]:
    """Those of a data set whose motions are timed, or not."""
    return [column for column in COLUMNS if timed or not column.timed]


def arrow_schema(dof: int, timed: bool, facts: Mapping[str, Any]) -> Any:
    """pyarrow.Schema with units and texts in its fields, and the facts in its metadata."""
    pa = arrow()
    fields = [
        pa.field(column.name, _type(pa, column.kind, dof), metadata={"unit": column.unit, "text": column.text})
        for column in columns(timed)
    ]
    return pa.schema(fields, metadata={KEY: json.dumps({"format": FORMAT, **facts}, sort_keys=True)})


def facts_of(schema: Any) -> dict[str, Any] | None:
    """The facts of a schema, or None where it is not one of a data set. GpuPlannersError where they are no JSON."""
    facts = json_value((schema.metadata or {}).get(KEY, "null"), "the metadata", GpuPlannersError)
    return facts if isinstance(facts, dict) else None


def misfit(table: Any) -> str:
    """What is wrong with the columns of a table, "" where they are those of a data set, or some of them."""
    pa, dof = arrow(), 1
    for column in COLUMNS:
        if column.name not in table.column_names:
            continue
        found = table.schema.field(column.name).type
        if column.kind in (Q, PATH) and dof == 1:  # the first one says how many joints there are
            vector = found.value_type if column.kind == PATH and pa.types.is_list(found) else found
            dof = vector.list_size if pa.types.is_fixed_size_list(vector) else 1
        if found != _type(pa, column.kind, dof):
            return f"column '{column.name}' is {found}; allowed: {_type(pa, column.kind, dof)}"
        if any(map(_has_nulls, table[column.name].chunks)):
            return f"column '{column.name}' has values that are null; allowed: none"
    return ""


def _has_nulls(array):
    if array.null_count:
        return True
    pa = arrow()
    if pa.types.is_list(array.type) or pa.types.is_fixed_size_list(array.type):
        return _has_nulls(array.flatten())
    return pa.types.is_struct(array.type) and any(map(_has_nulls, array.flatten()))


def table_of(rows: Mapping[str, Sequence], schema: Any) -> Any:
    """pyarrow.Table of {column: a value for each row}; configurations, paths (K, dof) and times (K,) as arrays."""
    pa, arrays = arrow(), []
    for field in schema:
        values = rows[field.name]
        if field.name == "obstacles":
            values = [[obstacle._asdict() for obstacle in scene] for scene in values]
        elif pa.types.is_list(field.type) or pa.types.is_fixed_size_list(field.type):
            values = [list(value) for value in values]  # pyarrow takes arrays of one axis
        arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def digest_of(table: Any) -> str:
    """A digest of the values of a table, whatever file or memory they are in."""
    pa, key = arrow(), hashlib.sha256()

    def visit(array):
        if pa.types.is_list(array.type):
            offsets = array.offsets.to_numpy()
            key.update(offsets - offsets[0])
            visit(array.flatten())
        elif pa.types.is_fixed_size_list(array.type):
            visit(array.flatten())
        elif pa.types.is_struct(array.type):
            for field in array.flatten():
                visit(field)
        elif pa.types.is_string(array.type):
            key.update(json.dumps(array.to_pylist()).encode())
        else:
            key.update(np.ascontiguousarray(array.to_numpy(zero_copy_only=False)))

    for column in table.columns:
        visit(pa.concat_arrays(column.chunks))
    return key.hexdigest()


def plain_floats(schema: Any) -> list[str]:
    """The paths of the columns of float64 as Parquet counts them: bytes of one significance lie together there, which
    halves them, since most are float32 numbers."""
    parquet, empty = arrow().parquet, io.BytesIO()
    parquet.write_table(schema.empty_table(), empty)
    columns = parquet.read_metadata(empty).schema
    return [one.path for one in map(columns.column, range(len(columns))) if one.physical_type == "DOUBLE"]


def _type(pa, kind, dof):
    number, text = pa.float64(), pa.string()
    vector, three = pa.list_(number, dof), pa.list_(number, 3)
    obstacle = {"name": text, "kind": text, "size": three, "position": three, "quat_xyzw": pa.list_(number, 4)}
    known = {
        Q: vector,
        PATH: pa.list_(vector),
        POSE: pa.list_(number, 7),
        TIMES: pa.list_(number),
        OBSTACLES: pa.list_(pa.struct([*obstacle.items(), ("vertices", pa.list_(three))])),
    }
    return known[kind] if kind in known else getattr(pa, {"double": "float64"}.get(kind, kind))()
