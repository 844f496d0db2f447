"""Configurations as callers give them, for the compiled code: shape and type checked, whole turns taken off in float64, then float32."""

import numpy as np

from ..device import njit
from ..errors import ConfigurationError, SettingsError
from .space import FREE, NOT_FINITE

LARGEST = 1e10  # rad or m: float64 still holds a micrometre
TURN = 2 * np.pi
POLICIES = ("error", "false")


def narrow(q, robot, name, device="cpu"):
    """q: (N, dof) -> (N, dof) float32; joints that turn come back within a turn of 0. What is no finite number becomes NaN.

    A float32 array on the CUDA device of `device` stays there, as it is. Raises ConfigurationError naming `name`.
    """
    if on_device(q, robot, name, device):
        return q
    q = _numbers(q, robot, name)
    out = np.empty(q.shape, dtype=np.float32)
    _narrow(q, q, _turning(robot), out)
    return out


def narrow_motions(q_from, q_to, robot, device="cpu"):
    """The same for the ends of straight motions: both are turned by the same whole turns, their middle to within half a turn of 0."""
    if on_device(q_from, robot, "q_from", device) and on_device(q_to, robot, "q_to", device):
        ends = q_from, q_to
    else:
        q_from, q_to = _numbers(q_from, robot, "q_from"), _numbers(q_to, robot, "q_to")
        ends = np.empty(q_from.shape, dtype=np.float32), np.empty(q_to.shape, dtype=np.float32)
    if q_from.shape != q_to.shape:
        raise ConfigurationError(f"q_from and q_to must have the same shape, got {q_from.shape} and {q_to.shape}")
    if ends[0] is not q_from:
        turning = _turning(robot)
        _narrow(q_from, q_to, turning, ends[0])
        _narrow(q_to, q_from, turning, ends[1])
    return ends


def check_policy(not_finite):
    """Raises SettingsError unless `not_finite` is one of POLICIES."""
    if not_finite not in POLICIES:
        raise SettingsError(f"not_finite is {not_finite!r}; allowed: {', '.join(map(repr, POLICIES))}")


def as_bools(verdicts, not_finite, robot, **configurations):
    """(N,) uint8 verdicts of `space` -> (N,) bool. not_finite: "error" raises ConfigurationError naming the first row and joint of
    the configurations, {name: (N, dof)} as the caller gave them, that is no finite number; "false" calls them not free."""
    refused = verdicts == NOT_FINITE
    if not_finite == "error" and refused.any():
        row = int(np.argmax(refused))
        for name, q in configurations.items():
            values = np.asarray(q.copy_to_host() if hasattr(q, "copy_to_host") else q, dtype=np.float64)[row]
            for joint, value in zip(robot.joint_names, values):
                if not abs(value) <= LARGEST:
                    raise ConfigurationError(f"{name}[{row}]: joint '{joint}' is {value}; allowed: finite numbers up to {LARGEST:g}")
        raise ConfigurationError(f"row {row} holds a value that is not finite")
    return verdicts == FREE


def on_device(q, robot, name, device):
    """Is q an array on the CUDA device that computes? Raises ConfigurationError where it lies on one and cannot be used."""
    if not hasattr(q, "__cuda_array_interface__"):
        return False
    if device == "cpu":
        raise ConfigurationError(f"{name} lies on a CUDA device, but this checker computes on the CPU; allowed: arrays of the host")
    if q.dtype != np.float32 or len(q.shape) != 2 or q.shape[1] != robot.dof:
        raise ConfigurationError(f"{name} must be float32 of shape (N, {robot.dof}), got {q.dtype} of shape {tuple(q.shape)}")
    return True


def _numbers(q, robot, name):
    try:
        given = np.asarray(q)
        if given.dtype.kind not in "fiub":
            raise TypeError(f"an array of type {given.dtype}")
        q = np.ascontiguousarray(given, dtype=given.dtype if given.dtype in (np.float32, np.float64) else np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{name} must be an array of real numbers of shape (N, {robot.dof}), got {error}") from error
    if q.ndim != 2 or q.shape[1] != robot.dof:
        raise ConfigurationError(f"{name} must have shape (N, {robot.dof}), got {q.shape}")
    return q


def _turning(robot):
    """(dof,) bool: joints of which a whole turn changes nothing."""
    return np.asarray(getattr(robot, "periodic", np.zeros(robot.dof, dtype=bool)))


@njit
def _narrow(q, other, turning, out):
    """out = q less the whole turns of the middle between it and `other`, where one of the two is more than a turn from 0."""
    for i in range(len(q)):
        for k in range(q.shape[1]):
            value, end = np.float64(q[i, k]), np.float64(other[i, k])
            if not (abs(value) <= LARGEST and abs(end) <= LARGEST):
                value = np.nan
            elif turning[k] and max(abs(value), abs(end)) > TURN:
                value -= TURN * np.round((value + end) / (2 * TURN))
            out[i, k] = value
