"""Errors of the command line, and how they are printed: one line that begins with "error:"."""

import os
import sys

from ..errors import GpuPlannersError


class MissingError(GpuPlannersError):
    """Something that a command needs is not installed or not found; the text says how to get it."""


class InputError(GpuPlannersError):
    """An argument or an input file is wrong; the text names it and what is allowed."""


class NoAnswerError(GpuPlannersError):
    """The question was understood and has no answer: no motion was found, or start or goal collide."""


def complain(error: Exception, code: int) -> int:
    """Print an error as one line on stderr -> the exit code."""
    text = " ".join(str(error).split())
    plain = not sys.stderr.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    print("error:" if plain else "\033[1;31merror:\033[0m", text, file=sys.stderr)
    return code


def require(module: str, what: str, how: str) -> None:
    """Raise MissingError unless a module can be imported. what: needs it; how: to get it"""
    import importlib

    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingError(f"{what} needs the Python package '{error.name}': {how}") from error
