"""Benchmarks under mpirun: all ranks run the same ones, and the first alone prints and writes."""

import contextlib
import os
import tempfile

RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")  # what launchers set
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")


def _told(names):
    return next((int(os.environ[name]) for name in names if os.environ.get(name, "").isdigit()), None)


def launched():
    """-> how many ranks a launcher started; 1 without one."""
    return _told(SIZES) or 1


def first():
    """Is this process the first rank, or the only one?"""
    return launched() == 1 or not _told(RANKS)


@contextlib.contextmanager
def first_alone_tells(out):
    """-> the folder to write to. Of the other ranks it is one that goes, and what they print is nowhere."""
    if first():
        yield out
        return
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), tempfile.TemporaryDirectory() as folder:
        yield folder
