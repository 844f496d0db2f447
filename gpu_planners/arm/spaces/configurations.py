"""Configurations from callers for compiled code: shape and type are checked, whole turns taken off in float64, the rest
becomes float32. And back: verdicts become answers, or errors that name the row and the joint.

Arrays that lie on the CUDA device that computes, of any library, stay there as they are, and so do the answers
(`parallel.arrays_cuda`)."""

import numba
import numpy as np

from ...arguments import as_array, lies_on_cuda, numbers, refuse_joints
from ...device import njit
from ...errors import ConfigurationError, DeviceError, SettingsError, shown
from .interface import FREE, NOT_FINITE

LARGEST = 1e10  # rad or m: float64 still holds a micrometre
TURN = 2 * np.pi
TOGETHER = 1024  # rows that are looked at, and copied, at once
POLICIES = ("error", "false")
FEW = 1 << 18  # rows that one thread narrows sooner than several wake up


def new_array(number, rows, columns):
    """float32 (rows, columns) for narrowed configurations. number: 0, or 1 for the second end of motions"""
    return np.empty((rows, columns), dtype=np.float32)


def narrow(q, robot, name, device="cpu", room=new_array):
    """q: (N, dof) -> (N, dof) float32; joints that turn come back within a turn of 0. What is not finite becomes NaN.

    A float32 array on the CUDA device that computes stays there, as it is: -> an array of Numba's.
    name: of the argument, for ConfigurationError; room: makes the arrays that are filled, as `new_array` does
    """
    if lies_on_cuda(q):
        return on_device(q, robot, name, device)
    q = _numbers(q, robot, name)
    out = room(0, *q.shape)
    _narrow(q, q, robot, out)
    return out


def narrow_motions(q_from, q_to, robot, device="cpu", room=new_array):
    """`narrow` both ends of straight motions by the same whole turns: their middle is within half a turn of 0."""
    stay = lies_on_cuda(q_from)
    if stay != lies_on_cuda(q_to):
        raise ConfigurationError("q_from and q_to lie in different places; allowed: both on the host or both on a GPU")
    read = on_device if stay else _numbers
    q_from, q_to = read(q_from, robot, "q_from", device), read(q_to, robot, "q_to", device)
    if q_from.shape != q_to.shape:
        raise ConfigurationError(f"q_from and q_to must have the same shape, got {q_from.shape} and {q_to.shape}")
    if stay:
        return q_from, q_to
    ends = room(0, *q_from.shape), room(1, *q_to.shape)
    _narrow(q_from, q_to, robot, ends[0])
    _narrow(q_to, q_from, robot, ends[1])
    return ends


def check_policy(not_finite):
    """Raises SettingsError unless `not_finite` is one of POLICIES."""
    if not isinstance(not_finite, str) or not_finite not in POLICIES:
        raise SettingsError(f"not_finite is {shown(not_finite)}; allowed: {', '.join(map(repr, POLICIES))}")


def as_bools(verdicts, not_finite, robot, **configurations):
    """(N,) uint8 verdicts of `interface` -> (N,) bool; those of a device, (N,) bool and whether any value was not
    finite, stay there.

    not_finite: "error" raises ConfigurationError for the first value that is not finite; "false" calls its row not free
    configurations: {name: (N, dof)} as the caller gave them, for the error's text
    """
    if isinstance(verdicts, tuple):
        free, refused = verdicts
    else:
        free, refused = verdicts == FREE, (verdicts == NOT_FINITE).any()
    if not_finite == "error" and refused:
        for name, q in configurations.items():
            refuse_joints(name, on_host(q), robot.joint_names, LARGEST)
        raise ConfigurationError(f"{' or '.join(configurations)} holds a value that is not finite")
    return free


def on_device(q, robot, name, device):
    """An array that lies on a CUDA device, as Numba's. Raises ConfigurationError where it cannot be used as it is."""
    if device == "cpu":
        raise ConfigurationError(
            f"{name} lies on a CUDA device, but this checker computes on the CPU; allowed: arrays of the host"
        )
    from ...parallel.arrays_cuda import taken

    try:
        q = taken(q, int(device.partition(":")[2]))
    except DeviceError as error:
        raise ConfigurationError(f"{name}: {error}") from error
    if q.dtype != np.float32 or len(q.shape) != 2 or q.shape[1] != robot.dof:
        raise ConfigurationError(
            f"{name} must be float32 of shape (N, {robot.dof}), got {q.dtype} of shape {tuple(q.shape)}"
        )
    if not q.flags["C_CONTIGUOUS"]:
        raise ConfigurationError(f"{name} lies on a CUDA device in another order than C; allowed: rows without gaps")
    return q


def on_host(q):
    """An array of any library, wherever it lies, as float64 on the host."""
    if not lies_on_cuda(q):
        return np.asarray(as_array(q), dtype=np.float64)
    from ...parallel.arrays_cuda import to_host

    return to_host(q).astype(np.float64)


def _numbers(q, robot, name, device="cpu"):
    given = numbers(name, q, (None, robot.dof), ConfigurationError, finite=False)
    return np.ascontiguousarray(given, dtype=given.dtype if given.dtype in (np.float32, np.float64) else np.float64)


def _narrow(q, other, robot, out):
    """out = q less the whole turns of the middle between q and `other`, where one of the two is over a turn from 0."""
    if len(q) < FEW:
        _narrow_rows(q, other, robot.periodic, out, 0, len(q))
    else:
        _narrow_all(q, other, robot.periodic, out, numba.get_num_threads())


@njit(parallel=True)
def _narrow_all(q, other, turning, out, parts):
    for c in numba.prange(parts):
        _narrow_rows(q, other, turning, out, c * len(q) // parts, (c + 1) * len(q) // parts)


@njit
def _narrow_rows(q, other, turning, out, first, last):
    for begin in range(first, last, TOGETHER):
        _narrow_block(q, other, turning, out, begin, min(begin + TOGETHER, last))


@njit
def _narrow_block(q, other, turning, out, first, last):
    values, ends, far = q[first:last].reshape(-1), other[first:last].reshape(-1), 0
    for k in range(len(values)):  # over a turn from 0, or not finite: most blocks have none
        far += not (abs(values[k]) <= TURN and abs(ends[k]) <= TURN)
    if far == 0:
        narrowed = out[first:last].reshape(-1)
        for k in range(len(values)):
            narrowed[k] = values[k]
        return
    for i in range(first, last):
        for k in range(q.shape[1]):
            value, end = np.float64(q[i, k]), np.float64(other[i, k])
            if not (abs(value) <= LARGEST and abs(end) <= LARGEST):
                value = np.nan
            elif turning[k] and max(abs(value), abs(end)) > TURN:
                value -= TURN * np.round((value + end) / (2 * TURN))
            out[i, k] = value
