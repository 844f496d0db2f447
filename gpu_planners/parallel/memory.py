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


@lean_njit
def copy_items(source, first, target, to, count):
    """target[to : to + count] = source[first : first + count], four at a time, since loads wait for earlier stores."""
    k = 0
    while k + 4 <= count:
        a, b = item(source, first + k), item(source, first + k + 1)
        c, d = item(source, first + k + 2), item(source, first + k + 3)
        set_item(target, to + k, a)
        set_item(target, to + k + 1, b)
        set_item(target, to + k + 2, c)
        set_item(target, to + k + 3, d)
        k += 4
    while k < count:
        set_item(target, to + k, item(source, first + k))
        k += 1
