"""Records of views of flat buffers: each field says where it lies, compiled code opens them, the host writes them.

    class Slots(NamedTuple):
        q: np.ndarray = floats("batch * dof")
        parent: np.ndarray = ints("batch")

    slots_sizes, open_slots, write_slots = layout(Slots, "batch dof")
    n_floats, n_ints = slots_sizes(batch, dof)
    slots = open_slots(floats, ints, batch, dof)
    write_slots(floats, ints, batch, dof, parent=-1)

Such a table becomes straight code, as one would write it by hand, so that it costs a kernel no registers.
"""

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..device import lean_njit

Int32: TypeAlias = int | np.int32  # annotations of numbers that are read as they are
Float32: TypeAlias = float | np.float32
CASTS = {int: "int({})", bool: "{} != 0"}  # of others


class Part(NamedTuple):
    """Where a field lies: see `floats`."""

    buffer: str
    length: str
    gap: str
    own: bool


def floats(length: str = "", gap: str = "0", own: bool = False) -> Any:
    """A field in the float32 buffer, behind those above it.

    length: of the view; none: the field is a number, of which lengths below may be made
    gap: numbers left out before it;  own: each worker has such a part, behind what all share
    """
    return Part("floats", length, gap, own)


def ints(length: str = "", gap: str = "0", own: bool = False) -> Any:
    """A field in the int32 buffer: see `floats`."""
    return Part("ints", length, gap, own)


def layout(record: Any, given: str = "") -> tuple[Any, Any, Any]:
    """-> sizes(*given): lengths of the float32 and of the int32 buffer; open(*buffers, *given): the record;
    write(floats, ints, *given, **fields): the host writes these fields, of one record or, along leading axes, of many.

    given: what lengths are made of, beside constants of the record's module. `open` reads those that are fields. With
    parts of each worker's own, `sizes` also takes the number of workers, and `open` the Worker

    `open` takes only buffers that the record has parts in. Python calls its `py_func`: see `lean_njit`. `write` needs
    no `given` for fields before which no length depends on it.
    """
    parts = sorted(record._field_defaults.items(), key=lambda item: item[1].own)
    names, fields, lines, offsets, places = given.split(), {}, [], [], []
    ends, totals = {"floats": "0", "ints": "0"}, {"floats": "0", "ints": "0"}
    for k, (name, (buffer, length, gap, own)) in enumerate(parts):
        lines.append(f"at{k}, n{k} = {ends[buffer]} + ({gap}), {length or 1}")
        if not own:
            offsets.append(lines[-1])
            places.append(f"{name!r}: ({buffer!r}, {f'slice(at{k}, at{k} + n{k})' if length else f'at{k}'})")
        if length:
            first = f"at{k} + worker.number * n{k}" if own else f"at{k}"
            fields[name] = f"{buffer}[{first} : {first} + n{k}]"
        else:
            fields[name] = name
            lines.append(f"{name} = " + CASTS.get(record.__annotations__[name], "{}").format(f"{buffer}[at{k}]"))
        ends[buffer] = f"at{k} + n{k}" + (" * worker.count" if own else "")
        totals[buffer] += f" + ({gap}) + ({length or 1})" + (" * workers" if own else "")
    shared = any(part.own for _, part in parts)
    opened = [buffer for buffer in ends if ends[buffer] != "0"] + [name for name in names if name not in fields]
    values = ", ".join(fields[name] for name in record._fields)
    found = [*offsets, f"return {{{', '.join(places)}}}"]
    return (
        lean_njit(
            _made(record, "sizes", names + ["workers"] * shared, [f"return {totals['floats']}, {totals['ints']}"])
        ),
        lean_njit(_made(record, "open", opened + ["worker"] * shared, [*lines, f"return {record.__name__}({values})"])),
        functools.partial(_write, functools.lru_cache(_made(record, "places", [f"{name}=0" for name in names], found))),
    )


def starts(record: Any, given: str) -> tuple[Callable, ...]:
    """-> for each field of a record in one buffer a function (*given), to be compiled, that tells where it begins, and
    one that tells where the last field ends."""
    functions, end = [], "0"
    for name, part in (*record._field_defaults.items(), ("end", None)):
        functions.append(_made(record, f"start_{name}", given.split(), [f"return {end}"]))
        end += f" + {part.length}" if part else ""
    return tuple(functions)


def reader(record: Any) -> Any:
    """-> compiled function (buffer, at): the record, whose fields are numbers that follow one another from `at` on. Its
    module has `memory.item`."""
    places = ", ".join(f"item(buffer, at + {k})" for k in range(len(record._fields)))
    return lean_njit(_made(record, "read", ["buffer", "at"], [f"return {record.__name__}({places})"]))


def _write(places, floats, ints, *given, **values):
    found = places(*given)
    for name, value in values.items():
        buffer, at = found[name]
        buffer = floats if buffer == "floats" else ints
        buffer[at if buffer.ndim == 1 else (..., at)] = value  # the former takes a tenth of the time


def _made(record, what, arguments, lines):
    """A function of the record's module; the cache of compiled code finds it by that module's file."""
    module, name = sys.modules[record.__module__], f"{what}_{record.__name__}"
    text = "\n    ".join([f"def {name}({', '.join(arguments)}):", *lines])
    made: dict[str, Callable] = {}
    exec(compile(text, str(module.__file__), "exec"), vars(module), made)
    return made[name]


def on_host(function: Any) -> Callable:
    """A compiled function as Python code, with the compiled functions that it calls: see `lean_njit`."""
    plain = function.py_func
    called = {name: value for name, value in vars(sys.modules[plain.__module__]).items() if hasattr(value, "py_func")}
    names = {name: on_host(called[name]) for name in plain.__code__.co_names if name in called}
    return FunctionType(plain.__code__, {**plain.__globals__, **names}, plain.__name__)
