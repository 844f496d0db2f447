"""Arguments of public functions, each checked once, where it enters, by its annotation.

    @checked(GridMapError)
    def plan(grid: GridMap, starts: ArrayLike, seed: int = 0, names: Sequence[str] = ()) -> ...

bool, int, float, str   that and NumPy's own; no bool is a number, no text is one, NaN is none
ArrayLike, np.ndarray   an array of real numbers, as NumPy makes it: no texts, objects, complex or masked numbers, no
                        rows of different lengths; booleans only where `Booleans` says so. What lies on a CUDA device
                        stays there
Annotated[..., Numbers((None, 3))]     of that shape and finite as well
str | os.PathLike       everything: `files.file_path` looks at it
X | None, tuple, Sequence, Iterable, Mapping    of what they hold; iterators are read into a list
Callable, classes, protocols                    an object that is one, or that has the protocol's names
Any                     everything

`np.int64(3)` becomes 3, a list of numbers an array. Costs a microsecond for each argument. Ranges are for the function
itself to check, by `number`, `whole`, `numbers` and the functions beside them.
"""

import collections.abc
import functools
import inspect
import math
import os
import types
import typing
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from . import dlpack
from .errors import ConfigurationError, GpuPlannersError, SettingsError, shown
from .files import file_path

Decorated = TypeVar("Decorated", bound=Callable)
Thing = TypeVar("Thing")
Reader = Callable[[Any], Any]
_ARRAY = set(typing.get_args(getattr(ArrayLike, "__value__", ArrayLike)))  # NumPy names it by an alias on Python 3.14
SAME_LENGTH = "numbers in rows of the same length"  # allowed, where NumPy makes no array


class Numbers(NamedTuple):
    """What an array is, beside numbers: its shape, None for any length, or "..." first for any axes before; finite?"""

    shape: tuple | None = None
    finite: bool = True
    kinds: str = "iuf"  # of NumPy's types


Booleans = Annotated[ArrayLike, Numbers(finite=False, kinds="biuf")]  # numbers or booleans


class _Refused(Exception):
    """The text says what is allowed."""


def numbers(
    name: str,
    value: Any,
    shape: tuple | None = None,
    error: type[GpuPlannersError] = SettingsError,
    finite: bool = True,
) -> np.ndarray:
    """An array of real numbers, of its own type; otherwise `error`, which names it. shape, finite: as in Numbers."""
    try:
        return _numbers(Numbers(shape, finite), value)
    except _Refused as allowed:
        raise error(f"{name} {_told(value)}; allowed: {allowed}") from None


def array_of(name: str, value: Any, error: type[GpuPlannersError] = SettingsError) -> np.ndarray:
    """An array of numbers or booleans, whose type and shape the caller looks at; otherwise `error`, which names it."""
    array = as_array(value)
    if array is None:
        raise error(f"{name} is no array of numbers; allowed: {SAME_LENGTH}")
    if array.dtype.kind not in "biuf":
        raise error(f"{name} has the type {array.dtype}; allowed: numbers")
    return array


def integers(
    name: str, value: Any, shape: tuple, words: str, error: type[GpuPlannersError] = SettingsError
) -> np.ndarray:
    """An array of integers, of its own type; otherwise `error`, which names it. shape: as in Numbers; words: on it"""
    array = array_of(name, value, error)
    if array.dtype.kind not in "iu" or not _has_shape(array.shape, shape):
        raise error(f"{name} is {array.dtype} {array.shape}; allowed: integers {words}")
    return array


def instance(
    name: str, value: Any, kind: type[Thing], words: str, error: type[GpuPlannersError] = SettingsError
) -> Thing:
    """An object of a class; otherwise `error`, which names it. words: a GridMap"""
    if not isinstance(value, kind):
        raise error(f"{name} is a {type(value).__name__}; allowed: {words}")
    return value


def refuse_rows(
    name: str, array: np.ndarray, right: np.ndarray, allowed: str, error: type[GpuPlannersError] = SettingsError
) -> None:
    """Raise `error`, which names the first row of an array (N, ...) that is not right. right: bool, of its shape"""
    if not right.all():
        row = int(np.argmin(right.reshape(len(right), -1).all(axis=1)))
        raise error(f"{name}[{row}] is {shown(array[row].tolist())}; allowed: {allowed}")


def refuse_joints(name: str, q: np.ndarray, joint_names: Sequence[str], most: float) -> None:
    """Raise ConfigurationError, which names the first of the joints' values (N, dof) that is not finite or beyond
    -most .. most."""
    wrong = ~(np.abs(q) <= most)
    if wrong.any():
        row, joint = np.argwhere(wrong)[0]
        raise ConfigurationError(
            f"{name}[{row}]: joint '{joint_names[joint]}' is {q[row, joint]}; allowed: finite numbers up to {most:g}"
        )


def number(
    name: str, value: Any, least: float, most: float, unit: str = "", error: type[GpuPlannersError] = SettingsError
) -> float:
    """A number from least to most; otherwise `error`, which names it."""
    if not _is_a(Real, value) or not least <= value <= most:
        raise error(f"{name} is {shown(value)}; allowed: a number from {least:g} to {most:g}{unit}")
    try:
        return float(value)
    except OverflowError:  # of an integer, where infinity is allowed
        return math.inf


def whole(
    name: str,
    value: Any,
    least: float,
    most: float,
    words: str = "whole numbers ",
    error: type[GpuPlannersError] = SettingsError,
) -> int:
    """A whole number from least to most; otherwise `error`, which names it."""
    if not _is_a(Integral, value) or not least <= value <= most:
        raise error(f"{name} is {shown(value)}; allowed: {words}{least} .. {most}")
    return int(value)


def _is_a(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def checked(error: type[GpuPlannersError] = SettingsError, scalars: type[GpuPlannersError] | None = None) -> Callable:
    """Decorator of a public function, or of a class: its constructor and public methods.

    A dataclass has no constructor yet where `dataclass` comes above: then only its methods are checked.
    error: raised for what is not allowed; scalars: for single numbers, texts, True and False, if another one
    """

    def decorate(thing: Decorated) -> Decorated:
        if not isinstance(thing, type):
            return _checked_function(thing, error, scalars or error)
        for name, member in list(vars(thing).items()):
            inner = getattr(member, "__func__", member)  # of a static or class method
            if isinstance(inner, types.FunctionType) and (name == "__init__" or not name.startswith("_")):
                wrapped = _checked_function(inner, error, scalars or error)
                setattr(thing, name, wrapped if inner is member else type(member)(wrapped))
        return thing  # type: ignore[return-value]

    return decorate


def _checked_function(function, error, scalars):
    parameters = list(inspect.signature(function).parameters.values())
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

    @functools.cache
    def readers():
        hints = typing.get_type_hints(function, include_extras=True)
        named = {p.name: p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
        found = {name: None if _is_path(hints.get(name)) else _reader_of(hints.get(name, Any)) for name in named}
        errors = {name: _error_of(hints.get(name, Any), error, scalars) for name in named}
        return {name: (read, errors[name], named[name].default) for name, read in found.items() if read}

    def read(name, value):
        reader = readers().get(name)
        if reader is None or value is reader[2]:  # nothing to check, or the default
            return value
        try:
            return reader[0](value)
        except _Refused as allowed:
            raise reader[1](f"{name} {_told(value)}; allowed: {allowed}") from None

    @functools.wraps(function)
    def call(*args, **options):
        try:
            given = [read(name, value) for name, value in zip(positional, args)]
            options = {name: read(name, value) for name, value in options.items()}
        except GpuPlannersError as refused:
            thing = dict(zip(positional, args), **options).get("name")
            if isinstance(thing, str) and thing and not str(refused).startswith("name "):
                raise type(refused)(f"{shown(thing)}: {refused}") from None
            raise
        return function(*given, *args[len(given) :], **options)

    return call


def _told(value):
    """What a refused value is, for an error."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"is an array of type {value.dtype} and shape {value.shape}"
    return f"is {shown(value)}"


def _error_of(hint, error, scalars):
    """The error of an argument: one that its annotation holds, or that for its kind."""
    if typing.get_origin(hint) is Annotated:
        own = [each for each in hint.__metadata__ if isinstance(each, type) and issubclass(each, GpuPlannersError)]
        return own[0] if own else _error_of(hint.__origin__, error, scalars)
    parts = set(typing.get_args(hint)) - {types.NoneType} if _is_union(hint) else {hint}
    return scalars if parts <= set(_SCALARS) else error


def _is_path(hint):
    """Is an argument a file, which `files.file_path` looks at?"""
    return any((typing.get_origin(each) or each) is os.PathLike for each in typing.get_args(hint))


def _is_union(hint):
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _reader_of(hint: Any) -> Reader | None:
    """What reads values of an annotation; None: all are taken."""
    if hint is ArrayLike:
        return functools.partial(_numbers, Numbers(finite=False))
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint is object:
        return None
    if hint in _SCALARS:
        return _SCALARS[hint]
    if hint is np.ndarray or origin is np.ndarray:
        return functools.partial(_numbers, Numbers(finite=False))
    if origin is Annotated:
        own = [each for each in hint.__metadata__ if isinstance(each, Numbers)]
        return functools.partial(_numbers, own[0]) if own else _reader_of(hint.__origin__)
    if _is_union(hint):
        return _of_union(inner)
    if origin in (tuple, list) or (isinstance(origin, type) and issubclass(origin, collections.abc.Iterable)):
        return _of_many(origin, inner)
    if hint in (tuple, list, collections.abc.Sequence, collections.abc.Iterable):
        return _of_many(hint, ())
    if origin is collections.abc.Callable or hint is Callable:
        return functools.partial(_that, callable, "a function")
    if origin is typing.Literal:
        return functools.partial(_that, lambda value: isinstance(value, str) and value in inner, f"one of {inner}")
    if not isinstance(hint, type):
        return None
    if getattr(hint, "_is_protocol", False):
        return functools.partial(_with_names, hint)
    return functools.partial(_that, lambda value: isinstance(value, hint), _words(hint.__name__))


def _words(name):
    return f"a{'n' if name[0] in 'AEIOUaeiou' else ''} {name}"


def _of_union(inner):
    rest, readers = list(inner), []
    if ArrayLike in inner or _ARRAY <= set(inner):
        rest = [each for each in inner if each is not ArrayLike and each not in _ARRAY]
        readers.append(functools.partial(_numbers, Numbers(finite=False)))
    may_be_none = types.NoneType in rest
    rest = [each for each in rest if each is not types.NoneType]
    if str in rest and any(each is os.PathLike or typing.get_origin(each) is os.PathLike for each in rest):
        rest = [each for each in rest if each is not str and (typing.get_origin(each) or each) is not os.PathLike]
        readers.append(_path)
    found = [_reader_of(each) for each in rest]
    if None in found:
        return None
    readers = found + readers

    def read(value):
        if may_be_none and value is None:
            return None
        texts = []
        for reader in readers:
            try:
                return reader(value)
            except _Refused as allowed:
                texts.append(str(allowed))
        raise _Refused(", or ".join([*texts, *(["None"] * may_be_none)]))

    return read


def _of_many(kind, inner):
    """Of a tuple of given items, of a mapping, or of any number of items."""
    if kind is tuple and inner and inner[-1] is not Ellipsis:
        return functools.partial(_of_fixed, [_reader_of(each) for each in inner])
    readers = [_reader_of(each) for each in inner if each is not Ellipsis]
    if issubclass(kind, collections.abc.Mapping):
        return functools.partial(_mapping, *(readers or (None, None)))
    once = kind in (collections.abc.Iterable, collections.abc.Iterator)
    return functools.partial(_items, once, readers[0] if readers else None)


def _of_fixed(readers, value):
    if isinstance(value, np.ndarray) and value.ndim:
        value = tuple(value)
    if not isinstance(value, list | tuple) or len(value) != len(readers):
        raise _Refused(f"{len(readers)} values")
    return tuple(read(each) if read else each for read, each in zip(readers, value))


def _mapping(key, item, value):
    if not isinstance(value, collections.abc.Mapping):
        raise _Refused("a mapping")
    try:
        return {(key(k) if key else k): (item(each) if item else each) for k, each in value.items()}
    except _Refused as allowed:
        raise _Refused(f"a mapping, in which each is {allowed}") from None


def _items(once, read, value):
    try:
        ordered = once or (hasattr(value, "__len__") and not isinstance(value, collections.abc.Set))
        if isinstance(value, str | bytes | collections.abc.Mapping) or not ordered:
            raise TypeError
        items = value if hasattr(value, "__len__") else list(value)
        if read is None:
            iter(items)
            return items
        found = [read(each) for each in items]
        return tuple(found) if isinstance(items, tuple) else found
    except _Refused as allowed:
        raise _Refused(f"several, of which each is {allowed}") from None
    except Exception:  # whatever an object of the caller raises
        raise _Refused("several in a list or tuple") from None


def _numbers(wanted, value):
    if lies_on_cuda(value):
        return value
    array, shape = as_array(value), wanted.shape
    if array is None:
        raise _Refused(SAME_LENGTH)
    if array.dtype.kind not in wanted.kinds:
        raise _Refused(f"an array of real numbers{f' of shape {_shape(shape)}' if shape is not None else ''}")
    if shape is not None and not _has_shape(array.shape, shape):
        raise _Refused(f"numbers of shape {_shape(shape)}, not {array.shape}")
    if wanted.finite and not (finite := np.isfinite(array)).all():
        row = f", unlike those in row {np.argwhere(~finite)[0][0]}" if array.ndim > 1 else ""
        raise _Refused(f"finite numbers{row}")
    return array


def lies_on_cuda(value: Any) -> bool:
    """Is it an array on a CUDA device, of whatever library?"""
    if isinstance(value, (np.ndarray, list, tuple)):
        return False
    device = dlpack.device_of(value)
    if device is not None:
        return device[0] in (dlpack.CUDA, dlpack.MANAGED)
    return hasattr(value, "__cuda_array_interface__")


def speaks(value: Any) -> bool:
    """Is it an array of a library other than NumPy, on the host or on a CUDA device?"""
    plain = isinstance(value, (np.ndarray, list, tuple))
    return not plain and (dlpack.device_of(value) is not None or hasattr(value, "__cuda_array_interface__"))


def as_array(value: Any) -> np.ndarray | None:
    """What NumPy makes of a value, without a copy of an array that lies on the host, of whatever library; None of
    masked numbers and rows of different lengths."""
    try:
        if isinstance(value, np.ma.MaskedArray):
            return None
        array = np.asarray(value)
        return np.from_dlpack(value) if array.dtype == object and hasattr(value, "__dlpack__") else array
    except Exception:  # NumPy's, and whatever an object of the caller raises
        return None


def _has_shape(shape, wanted):
    if wanted and wanted[0] == "...":
        wanted = wanted[1:]
        shape = shape[max(0, len(shape) - len(wanted)) :]
    return len(shape) == len(wanted) and all(b is None or a == b for a, b in zip(shape, wanted))


def _shape(shape):
    return f"({', '.join('N' if each is None else str(each) for each in shape)}{',' * (len(shape) == 1)})"


def _that(is_one, allowed, value):
    if not is_one(value):
        raise _Refused(allowed)
    return value


def _with_names(protocol, value):
    if name := missing_name(protocol, value):
        raise _Refused(f"{_words(protocol.__name__)}, which has {name}")
    return value


def missing_name(protocol: type, value: Any) -> str:
    """The first name of a Protocol that an object does not have, "" where it has all; of what it holds too, where that
    has a Protocol: "robot.dof"."""
    for name, inner in names_of(protocol).items():
        # of the class first, so that no property is computed
        if not hasattr(value.__class__, name) and not hasattr(value, name):
            return name
        if inner and (within := missing_name(inner, getattr(value, name))):
            return f"{name}.{within}"
    return ""


@functools.cache
def names_of(protocol: type) -> dict[str, type | None]:
    """The names that an object of a Protocol has, its attributes first, each with its Protocol if it has one."""
    hints = typing.get_type_hints(protocol)
    names = [*hints, *(name for name, member in inspect.getmembers(protocol, callable) if not name.startswith("_"))]
    return {name: hints[name] if getattr(hints.get(name), "_is_protocol", False) else None for name in names}


def _path(value):
    try:
        file_path(value, "it", SettingsError)
    except SettingsError:
        raise _Refused("a path") from None
    return value


def _scalar(kind, kinds, allowed, value):
    if not isinstance(value, kinds) or (isinstance(value, bool) and kind is not bool) or value != value:
        raise _Refused(allowed)
    try:
        return value if kind is str else kind(value)
    except OverflowError:  # of an integer beyond the floats
        raise _Refused(allowed) from None


_SCALARS: dict[Any, Reader] = {
    kind: functools.partial(_scalar, kind, kinds, allowed)
    for kind, kinds, allowed in (
        (bool, bool | np.bool_, "True or False"),
        (int, Integral, "an integer"),
        (float, Real, "a number"),
        (str, str, "a text"),
    )
}
