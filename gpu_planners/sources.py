"""Which sources compiled code comes from, so that an edit elsewhere compiles nothing again.

Numba itself looks only at the file of the decorated function, so a change in a callee of another module would bring old
code back. Here a function goes by a digest of its product: every file of the product that compiles something, and all
that these import. Files alone would not do: `motion_free` is registered for a space by the type of its scratch, so keys
in the cache also name the products of the types and functions that compiled code is given (`device`).
"""

import functools
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numba

ROOT = Path(__file__).parent
PACKAGE = ROOT.name
# parts of the package by their paths, the first that fits; the last one is whatever else compiles something
PRODUCTS = (
    "papers/bkf11",
    "papers/dl14",
    "papers/ce12",
    "fleet",
    "arm/distance_fields",
    "arm/dynamics",
    "arm",
    "grid",
    "",
)
FOLDERS = {"nodes", "demo", "cli", "distributed", "datasets", "sim", "verify", "vda5050"}  # they compile nothing
FILES = {
    "arguments.py",
    "beside.py",
    "dlpack.py",
    "errors.py",
    "settings.py",
    "files.py",
    "parts.py",
    "share.py",
}  # nor do these, and no kernel reads them
_COMPILES = re.compile(rb"\b(njit|\w+_njit|cuda_jit|cuda\.jit|with_threads|overload|intrinsic)\b")
_IMPORT = re.compile(rb"^ *from (\.+)([\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)


@functools.cache
def product_of(module: str) -> str:
    """The product of a module by its name, "" also for those of other packages."""
    path = module.removeprefix(f"{PACKAGE}.").replace(".", "/")
    return next(product for product in PRODUCTS if path.startswith(product))


class NoSourceError(Exception):
    """Code comes from no file: somebody types it, or gives it to python -c. Next time it may be other code."""


def digest(module: str, file: str = "") -> str:
    """A digest of the sources that code of a module, by its name, is compiled from.

    file: where code of another package comes from; "": the module's. Raises NoSourceError where there is none.
    """
    if module.partition(".")[0] == PACKAGE:
        return _digest_of_product(product_of(module))
    place = Path(file or getattr(sys.modules.get(module), "__file__", None) or "")
    if not place.is_file():
        raise NoSourceError(f"{module} comes from no file")
    return _digest_of_files((place,))


@functools.cache
def _digest_of_product(product):
    return _digest_of_files(tuple(sorted(reach(product))))


@functools.cache
def digest_of_all() -> str:
    """A digest of the sources of all that the package compiles."""
    return _digest_of_files(tuple(sorted({file for product in PRODUCTS for file in reach(product)})))


@functools.cache
def reach(product: str) -> frozenset[Path]:
    """The files of a product that compile something, and all that they import."""
    todo = [file for file, text in _texts().items() if _product_of_file(file) == product and _COMPILES.search(text)]
    seen: set[Path] = set()
    while todo:
        file = todo.pop()
        if file not in seen:
            seen.add(file)
            todo += [other for other in _imports(file) if other in _texts()]
    return frozenset(seen)


@functools.cache
def _texts():
    """{file: its bytes} of all that may be part of compiled code"""
    files = sorted(ROOT.rglob("*.py"))
    return {file: file.read_bytes() for file in files if file.relative_to(ROOT).parts[0] not in FOLDERS | FILES}


def _product_of_file(file):
    return product_of(file.relative_to(ROOT).with_suffix("").as_posix())


def _imports(file) -> Iterator[Path]:
    """The files that a file imports, and some that are not there."""
    for dots, name, names in _IMPORT.findall(_texts()[file]):
        base = file.parents[len(dots) - 1].joinpath(*name.decode().split("."))
        modules = {base / f"{imported.decode()}.py" for imported in re.findall(rb"\w+", names)}
        yield base.with_suffix(".py")
        yield from modules
        if not modules <= _texts().keys():
            yield base / "__init__.py"


def _digest_of_files(files):
    total = hashlib.sha256(numba.__version__.encode())
    for file in files:
        total.update(file.name.encode() + file.read_bytes())
    return total.hexdigest()[:16]
