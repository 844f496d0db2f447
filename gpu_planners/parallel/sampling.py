"""Repeatable random numbers that any thread can draw without state: a hash of (seed, number, coordinate)."""

import hashlib

import numpy as np

from ..device import lean_njit, njit
from ..errors import SettingsError, shown

_A, _B, _C, _D = (
    np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
_S27, _S30, _S31, _S40 = (np.uint64(s) for s in (27, 30, 31, 40))
_UNIT = np.float32(2.0**-24)

SEED_BITS = 62  # two int32 that are not negative


def folded_seed(seed: int) -> int:
    """The seed that is used for any integer: itself, or a hash of those that are negative or have more than 62 bits."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise SettingsError(f"seed is {shown(seed)}; allowed: an integer")
    seed = int(seed)
    if seed >> SEED_BITS:
        text = seed.to_bytes(seed.bit_length() // 8 + 1, "little", signed=True)
        seed = int.from_bytes(hashlib.sha256(text).digest()[:8], "little") >> (64 - SEED_BITS)
    return seed


def halves(seed: int) -> tuple[int, int]:
    """A folded seed as two int32 that are not negative."""
    return seed & 0x7FFFFFFF, seed >> SEED_BITS // 2


@lean_njit
def joined_halves(low, high):
    """The seed, uint64, of its `halves`."""
    return np.uint64(low) | np.uint64(high) << _S31


@lean_njit
def uniform01(seed, number, coordinate):
    """float32 in [0, 1): the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014) over a counter."""
    z = np.uint64(seed) * _B + np.uint64(number) * _A + np.uint64(coordinate) * _D + _A
    z = (z ^ (z >> _S30)) * _C
    z = (z ^ (z >> _S27)) * _D
    z = z ^ (z >> _S31)
    return np.float32(z >> _S40) * _UNIT


@lean_njit
def sample(seed, number, lower, upper, q):
    """Write the sample `number` of a seed into q, uniform between lower and upper, all (dof,) float32."""
    for k in range(len(q)):
        q[k] = lower[k] + (upper[k] - lower[k]) * uniform01(seed, number, k)


@njit
def samples(seed, first, count, lower, upper):
    """(count, dof) float32: the samples first, first + 1, ... of a seed."""
    q = np.empty((count, len(lower)), dtype=np.float32)
    for i in range(count):
        sample(seed, first + i, lower, upper, q[i])
    return q
