"""Files that anybody may have written: sizes bounded, no pipes and devices, YAML that cannot explode, arrays without
pickles. And files that are written whole or not at all.

Every function that reads takes the error class of the caller's package, and raises nothing else for a bad file.
"""

import contextlib
import fcntl
import json
import os
import re
import stat
from pathlib import Path
from typing import IO, Any

import numpy as np
import yaml

from .errors import shortened, shown

MOST_BYTES = 16 * 2**20  # of a description in text: URDF, SRDF
MOST_DEPTH = 20  # of lists and mappings inside each other in a YAML file; a scene needs 5
PICTURES = "PNG", "PPM", "BMP", "TIFF", "JPEG"  # PPM: PGM and PBM, too; no EPS, for which Pillow runs a program
UNFINISHED = ".unfinished"  # ends the name of a file while it is written
LONGEST_SCALAR = 1000  # characters of a number or a text in a YAML file


_Fastest: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML has the first where it was built with libyaml


class _Loader(_Fastest):
    """Safe, and takes 1e-3 for a number, which YAML 1.1 calls a text."""


_POWER_OF_TEN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _POWER_OF_TEN, list("-+.0123456789"))


def file_path(path: str | os.PathLike, what: str, error: type[Exception]) -> Path:
    """Path of a str or os.PathLike, ~ expanded. Raises `error`, whose text names the file as `what`, here and below."""
    if not isinstance(path, (str, os.PathLike)) or isinstance(os.fspath(path), bytes):
        raise error(f"{what} must be a path (str or os.PathLike), got {shown(path)}")
    try:
        file = Path(path).expanduser()
        os.fsencode(file)
        file.exists()
    except (RuntimeError, OSError, ValueError) as reason:  # ~ of an unknown user, what is no name of a file
        raise error(f"{what} {shown(str(path))} cannot be read: {shortened(reason)}") from reason
    if "\0" in str(file):
        raise error(f"{what} {shown(str(path))} cannot be read: its name has a NUL")
    return file


def regular_file(path: str | os.PathLike, what: str, error: type[Exception], most: int) -> Path:
    """Path of a regular file of at most `most` bytes; pipes and devices are errors."""
    path = file_path(path, what, error)
    try:
        status = path.stat()  # before it is opened: to open a pipe waits for its writer
    except OSError as reason:
        raise error(f"{what} {shown(str(path))} cannot be read: {shortened(reason.strerror or reason)}") from reason
    if not stat.S_ISREG(status.st_mode):
        raise error(f"{what} {shown(str(path))} cannot be read: it is not a regular file")
    if status.st_size > most:
        raise error(f"{what} {shown(str(path))} cannot be read: it has {status.st_size} bytes; allowed: {most}")
    return path


def read_file(path: str | os.PathLike, what: str, error: type[Exception], most: int = MOST_BYTES) -> bytes:
    """Bytes of a regular file of at most `most` bytes."""
    path = regular_file(path, what, error, most)
    try:
        return path.read_bytes()
    except OSError as reason:
        raise error(f"{what} {shown(str(path))} cannot be read: {reason.strerror or reason}") from reason


def read_text_file(path: str | os.PathLike, what: str, error: type[Exception], most: int = MOST_BYTES) -> str:
    """Text of a regular UTF-8 file of at most `most` bytes; a byte order mark is dropped."""
    try:
        return read_file(path, what, error, most).decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        raise error(f"{what} {shown(str(path))} cannot be read: it is not UTF-8 text: {reason}") from reason


def write_whole(file: Path, data: bytes | memoryview) -> None:
    """Write a file under another name, bring it to the disk, and give it its name, so that a name stands for a whole
    file whatever ends the process. One process at a time may write it. OSError where the disk is full."""
    unfinished = file.with_name(f".{file.name}{UNFINISHED}")
    try:
        with open(unfinished, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(unfinished, file)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()  # a full disk has room again
        raise
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def locked_file(path: Path, shared: bool = False) -> IO | None:
    """The file, locked while it is open, so at most as long as this process lives; None where another one has it
    locked. shared: with others that lock it so, too"""
    file = open(path, "a")  # noqa: SIM115 - it is lent
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def read_array(
    path: str | os.PathLike, what: str, error: type[Exception], most: int, mapped: bool = False
) -> np.ndarray:
    """The array of a NumPy file .npy of at most `most` bytes. mapped: read from the file when it is asked for"""
    mode: Any = "r" if mapped else None
    array = _numpy_file(path, what, error, most, lambda file: np.load(file, mode, allow_pickle=False))
    if not isinstance(array, np.ndarray):
        raise error(f"{what} {shown(str(path))} cannot be read: it is an archive; allowed: a NumPy file .npy")
    return array


def read_arrays(path: str | os.PathLike, what: str, error: type[Exception], most: int) -> dict[str, np.ndarray]:
    """The arrays of a NumPy archive .npz of at most `most` bytes, packed and unpacked."""

    def read(file):
        with np.load(file, allow_pickle=False) as archive:
            unpacked = sum(member.file_size for member in archive.zip.infolist())
            if unpacked > most:
                raise ValueError(f"it unpacks to {unpacked} bytes; allowed: {most}")
            return {name: archive[name] for name in archive.files}

    return _numpy_file(path, what, error, most, read)


def _numpy_file(path, what, error, most, read):
    file = regular_file(path, what, error, most)
    try:
        with np.errstate(over="raise"):  # of a size in a header
            return read(file)
    except Exception as reason:  # zipfile, its decompressors and NumPy's reader of headers have a dozen classes
        raise error(
            f"{what} {shown(str(path))} cannot be read: {shortened(reason) or type(reason).__name__}; "
            "allowed: NumPy's files without pickled objects"
        ) from reason


def read_yaml(path: str | os.PathLike, what: str, error: type[Exception], most: int = MOST_BYTES) -> object:
    """The document of a YAML file as plain Python values. Aliases are refused: a kilobyte stands for gigabytes."""
    text = read_text_file(path, what, error, most)
    where = f"{what} {shown(str(path))}"
    try:
        problem = _yaml_problem(text)
        document = None if problem else yaml.load(text, _Loader)  # a safe loader
    except Exception as reason:  # yaml's constructors raise what int, float and their tables raise
        raise error(f"{where} is not YAML: {shortened(reason)}") from reason
    if problem:
        raise error(f"{where} {problem}")
    return document


def read_json(path: str | os.PathLike, what: str, error: type[Exception], most: int = MOST_BYTES) -> Any:
    """The value of a JSON file."""
    return json_value(read_text_file(path, what, error, most), f"{what} {shown(str(path))}", error)


def json_value(text: str | bytes, where: str, error: type[Exception]) -> Any:
    """The value of a JSON text, whose place `where` an error names."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as reason:  # also bytes of no Unicode, numbers of 5000 digits
        raise error(f"{where} is not JSON: {shortened(reason)}") from reason


def yaml_value(text: str) -> object:
    """A value on one line; 1e-3 is a number. Raises yaml.YAMLError."""
    return yaml.load(text, _Loader)  # a safe loader


def _yaml_problem(text):
    """What makes a YAML text too large to be built, or None; looks at its events, which take no recursion."""
    depth = documents = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        line = event.start_mark.line + 1
        documents += isinstance(event, yaml.DocumentStartEvent)
        if documents > 1:
            return f"has a second document in line {line}; one is allowed"
        if isinstance(event, yaml.AliasEvent):
            return f"has an alias (*{event.anchor}) in line {line}; write the value out, aliases are not allowed"
        if depth > MOST_DEPTH:
            return f"is nested more than {MOST_DEPTH} deep in line {line}"
        if isinstance(event, yaml.ScalarEvent) and len(event.value) > LONGEST_SCALAR:
            return f"has a value of {len(event.value)} characters in line {line}; allowed: {LONGEST_SCALAR}"
    return None
