"""Arrays in compiled code where no index counts from the end.

For `array[i]` Numba looks whether i is negative each time. On CUDA most instructions of a check of a configuration were
such tests, more than a multiprocessor keeps at hand.
"""

import numpy as np

from ..device import lean_njit


@lean_njit
def item(array, i):
    """array[i]; i is not negative."""
    return array[np.uint64(i)]


@lean_njit
def set_item(array, i, value):
    """array[i] = value; i is not negative."""
    array[np.uint64(i)] = value
