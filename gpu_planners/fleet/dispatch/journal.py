"""The dispatcher's journal: a file that events are appended to before anybody is told of them.

A line is one batch of events that belong together, with a checksum before it; it is brought to the disk before the
call that made it returns. A process that dies leaves at most one torn line at the end, which nobody was told of, and
which is cut off when the file is opened again.
"""

import contextlib
import json
import os
import zlib
from pathlib import Path
from typing import IO, Any

from ...errors import SettingsError, TaskError, shown
from ...files import file_path, json_value, locked_file, read_file, write_whole
from .pool import Pool

FORMAT = 1  # raised when older versions cannot read it
WHAT = "journal"
MOST_BYTES = 1 << 32
LEAST_BYTES = 1 << 20  # a journal that is shorter is not written anew
GROWS = 8  # times what it was when it was written anew last, until that is done again


def line_of(content: object) -> bytes:
    text = json.dumps(content, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def read_line(line: bytes) -> Any:
    """The contrary of line_of; None where the line is not whole."""
    try:
        check, _, text = line.partition(b" ")
        if len(check) == 8 and int(check, 16) == zlib.crc32(text):
            return json_value(text, WHAT, SettingsError)
    except ValueError:
        pass
    return None


class Journal:
    """A pool's file, which no other process may open meanwhile.

    path: made where it is missing; frame: what the tiles are of, as JSON gives it; a file of another frame is refused

    Raises SettingsError, which names the file and the line.
    """

    def __init__(self, path: str | os.PathLike, pool: Pool, frame: object):
        self.path: Path = file_path(path, WHAT, SettingsError)
        if not self.path.name or self.path.is_dir():
            raise SettingsError(f"{WHAT} {shown(str(path))} cannot be opened: it is a folder; allowed: a file")
        self._frame = frame
        self._file: Any = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock: IO | None = locked_file(self.path.with_name(self.path.name + ".lock"))
        except OSError as error:
            raise self._failed("cannot be opened", error) from error
        if self._lock is None:
            raise SettingsError(f"{WHAT} {shown(str(self.path))} is in use by another process")
        try:
            self._read(pool)
            self._begin_anew(pool)
        except BaseException:
            self._lock.close()
            raise

    def _read(self, pool):
        if not self.path.exists():
            return
        *lines, _ = read_file(self.path, WHAT, SettingsError, MOST_BYTES).split(b"\n")  # what follows the last is torn
        found = [read_line(line) for line in lines]
        if found and found[-1] is None:
            found.pop()
        for k, content in enumerate(found):
            where = f"{WHAT} {shown(str(self.path))}, line {k + 1},"
            if content is None:
                raise SettingsError(f"{where} is damaged, and others follow it: put it right, or remove the file")
            try:
                self._take_line(k, content, pool)
            except (SettingsError, TaskError) as error:
                raise SettingsError(f"{where} cannot be: {error}") from None
            except Exception as error:
                raise SettingsError(f"{where} is not what is written here: {type(error).__name__}: {error}") from error

    def _take_line(self, k, content, pool):
        if k:
            for event in content:
                pool.apply(event)
        elif content["format"] != FORMAT:
            raise SettingsError(f"its format is {shown(content['format'])}; allowed: {FORMAT}")
        elif content["frame"] != self._frame:
            raise SettingsError(f"it is of another map, {shown(content['frame'])}; this one is {shown(self._frame)}")

    def _begin_anew(self, pool):
        """Write what the pool holds now, without all that led to it."""
        lines = [{"format": FORMAT, "frame": self._frame}, *([event] for event in pool.kept())]
        try:
            write_whole(self.path, b"".join(map(line_of, lines)))
            if self._file is not None:
                self._file.close()  # a file that has no name any more
            self._file = open(self.path, "r+b", buffering=0)  # noqa: SIM115 - until `close`
            self._good = self._file.seek(0, os.SEEK_END)
        except OSError as error:
            raise self._failed("cannot be written", error) from error
        self._anew_at = max(LEAST_BYTES, GROWS * self._good)

    def shorten(self, pool: Pool) -> None:
        """Write the file anew where it has grown long; where the disk has no room for both, the long one goes on, and
        this is tried again when it is twice as long. pool: what its events make"""
        if self._good > self._anew_at:
            self._anew_at = 2 * self._good
            with contextlib.suppress(SettingsError):
                self._begin_anew(pool)

    def append(self, events: list[list]) -> None:
        """Bring a batch of events to the disk. Raises SettingsError where that fails; the file is as it was then."""
        if self._lock is None:
            raise SettingsError(f"{WHAT} {shown(str(self.path))} is closed: another process may have it")
        try:
            self._file.seek(self._good)
            self._file.truncate(self._good)  # what an append that failed has left
            line = line_of(events)
            if self._file.write(line) != len(line):
                raise OSError("the disk is full")
            os.fsync(self._file.fileno())
        except (OSError, ValueError) as error:  # ValueError: it could not be opened again when it was written anew
            raise self._failed("cannot be written", error) from error
        self._good += len(line)

    def close(self) -> None:
        self._file.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _failed(self, what, error):
        return SettingsError(f"{WHAT} {shown(str(self.path))} {what}: {getattr(error, 'strerror', '') or error}")
