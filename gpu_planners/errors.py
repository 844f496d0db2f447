"""Errors of gpu_planners: each names what is wrong and what is allowed.

Mistakes in a description (a robot, an obstacle, a setting, a device) raise one of these. A query that has no answer (a
start in collision, no path within the budget) returns a result whose `status` says so.
"""

import re


class GpuPlannersError(ValueError):
    """Base of every error that this package raises on purpose."""


class RobotDescriptionError(GpuPlannersError):
    """A URDF or SRDF cannot be turned into a RobotModel; the text names the element."""


class ObstacleError(GpuPlannersError):
    """An obstacle is malformed (size, pose, vertices) or unknown; the text names it."""


class ConfigurationError(GpuPlannersError):
    """Joint values have the wrong shape or type or are not finite; the text names the row and the joint."""


class SettingsError(GpuPlannersError):
    """A setting is unknown or out of range; the text names the field, the value and what is allowed."""


class DeviceError(GpuPlannersError):
    """A device was asked for that is not there or not known."""


class GridMapError(GpuPlannersError):
    """A grid map, or what holds one, is malformed; the text names the tile, the field or the value."""


class TaskError(GpuPlannersError):
    """A task is not there, or has ended, or another one has its name; the text names it."""


class RanksError(GpuPlannersError):
    """Processes that work together cannot, or one of them failed; the text names its rank and says why."""


class WorkerError(GpuPlannersError):
    """A worker of an executor failed or died; the text names it, says why, and which part of the work it had."""


class StoppedError(GpuPlannersError):
    """What was being computed is not wanted any more, as whoever asked for it has said (`parallel.stopping`)."""


LONGEST_SHOWN = 200  # characters of a value in an error text


def shown(value: object) -> str:
    """The repr of any value for an error text, cut where it is long."""
    try:
        return shortened(repr(value))
    except Exception:  # an integer of 5000 digits, or whatever a foreign __repr__ raises
        return f"a value of type {type(value).__name__}"


def shortened(text: object) -> str:
    """The beginning of a text for an error text."""
    text = str(text)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + " ..."


# In the texts of numba-cuda's errors, which need not be installed.
CUDA_OUT_OF_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"
CUDA_LOST = re.compile(  # after which "the process must be terminated and relaunched", CUDA driver API, CUresult
    "CUDA_ERROR_(ILLEGAL_ADDRESS|ILLEGAL_INSTRUCTION|MISALIGNED_ADDRESS|INVALID_ADDRESS_SPACE|INVALID_PC|ASSERT"
    "|HARDWARE_STACK_ERROR|LAUNCH_FAILED|LAUNCH_TIMEOUT|ECC_UNCORRECTABLE|NVLINK_UNCORRECTABLE|CONTAINED|TENSOR_MEMORY_LEAK"
    "|EXTERNAL_DEVICE|DEVICE_UNAVAILABLE|CONTEXT_IS_DESTROYED|DEINITIALIZED|NO_DEVICE|UNKNOWN)"
)
LONGEST_TEXT = 2000  # characters: a request may hold megabytes of names, which its answer and the log should not repeat


def is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or CUDA_OUT_OF_MEMORY in _text(error)


def is_device_lost(error: Exception) -> bool:
    """Has this process lost its CUDA device for good?"""
    return not isinstance(error, GpuPlannersError) and bool(CUDA_LOST.search(_text(error)))


def error_text(error: Exception) -> str:
    """What whoever asked is told of any error."""
    text = _text(error) or type(error).__name__
    if is_out_of_memory(error):
        text = f"out of memory: {text}"
    elif is_device_lost(error):
        text = f"the CUDA device is lost to this process, and only a new one can use it: {text}"
    elif not isinstance(error, GpuPlannersError):
        text = f"internal error: {type(error).__name__}: {text}"
    return one_line(text)


def _text(error):
    """What an error says; nothing where that fails, as a foreign __str__ may."""
    try:
        return str(error)
    except Exception:
        return ""


def one_line(text: str) -> str:
    """A text fit for an answer and the log whatever a request put into it: no control characters, not too long."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:LONGEST_TEXT])
    return shown + f" ... ({len(text)} characters)" * (len(text) > LONGEST_TEXT)
