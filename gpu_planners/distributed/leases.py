"""Which worker of a machine has which device.

A lease is a lock on a file in the machine's temporary folder. The system lets go of it when the process that holds it
ends, however it ends, so nothing is left behind. Workers of different programs of one user see each other's leases.
"""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from ..errors import DeviceError


class Lease:
    """A device that one worker works on, until `give_back`, or until nobody holds this object any more.

    device: its name;  process: number of the process that took it
    """

    def __init__(self, device: str, file: IO) -> None:
        self.device, self.process, self._file = device, os.getpid(), file

    def give_back(self) -> None:
        """Let others have the device, also where a process that was forked meanwhile has the file, too."""
        if self.process == os.getpid():
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self._file.close()


def take(devices: Sequence[str]) -> Lease:
    """Lease the one of `devices` that the fewest workers of this machine have; of several, the first."""
    with _alone() as folder:
        device = min(devices, key=lambda name: sum(_taken(folder, name)))
        taken = _taken(folder, device)
        number = taken.index(False) if False in taken else len(taken)
        file = open(_path(folder, device, number), "a")  # noqa: SIM115 - it stays open for as long as the lease lasts
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return Lease(device, file)


def held(device: str) -> int:
    """How many workers of this machine have leased a device."""
    with _alone() as folder:
        return sum(_taken(folder, device))


@contextlib.contextmanager
def _alone() -> Iterator[Path]:
    """The folder of the leases, while nobody else looks at them or takes one."""
    folder = Path(tempfile.gettempdir()) / f"gpu_planners-{os.getuid()}" / "leases"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(folder / "guard", "a") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            yield folder
    except OSError as error:
        raise DeviceError(
            f"workers cannot lock the files in {folder} that say which device each has: {error}; "
            "allowed: a folder that this user can write, or another temporary folder (TMPDIR)"
        ) from error


def _path(folder, device, number):
    return folder / f"{device.replace(':', '-')}.{number}"


def _taken(folder, device):
    """[is it taken?] of the leases of a device that there are files for."""
    taken: list[bool] = []
    while (path := _path(folder, device, len(taken))).exists():
        with open(path, "a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                taken.append(False)
            except BlockingIOError:
                taken.append(True)
    return taken
