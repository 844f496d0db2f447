"""Minima and bits that several workers write at once, beside `team.add` and `team.raise_to`; `atomics_cuda` has them
for kernels."""

import numpy as np
from numba.extending import overload

from .team import _atomic


def drop_to(N, i, value):
    """N[i] = min(N[i], value), also where several workers do it at once. N: int32"""
    N[i] = min(N[i], value)


def set_bits(N, i, bits):
    """N[i] |= bits, also where several workers do it at once. N: int32"""
    N[i] |= bits


_atomic_min, _atomic_or = _atomic("min"), _atomic("or")


@overload(drop_to, target="cpu")
def _drop_to(N, i, value):
    def implementation(N, i, value):
        _atomic_min(N, i, np.int32(value))

    return implementation


@overload(set_bits, target="cpu")
def _set_bits(N, i, bits):
    def implementation(N, i, bits):
        _atomic_or(N, i, np.int32(bits))

    return implementation
