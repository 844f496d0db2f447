"""The operations of `atomics` on CUDA: importing this module gives them to kernels."""

import numpy as np
from numba import cuda
from numba.cuda.extending import overload

from .atomics import drop_to, set_bits


@overload(drop_to, target="cuda")
def _drop_to(N, i, value):
    def implementation(N, i, value):
        cuda.atomic.min(N, np.int64(i), np.int32(value))

    return implementation


@overload(set_bits, target="cuda")
def _set_bits(N, i, bits):
    def implementation(N, i, bits):
        cuda.atomic.or_(N, np.int64(i), np.int32(bits))

    return implementation
