"""Page-locked host memory that is used again when nobody looks at it any more."""

import sys

import numpy as np

ALONE = [sys.getrefcount(a) for a in [object()]][0]  # references counted to what only a list, and the loop over it, hold


class PinnedPool:
    """Buffers for answers: an answer keeps its buffer as long as any view of it lives.

    allocate: (count, dtype) -> array, such as cuda.pinned_array
    """

    def __init__(self, allocate):
        self._allocate, self._buffers = allocate, []

    def take(self, count, dtype):
        """-> (count,) array in page-locked memory; its content is undefined"""
        count_bytes = max(int(count) * np.dtype(dtype).itemsize, 1)
        free = [a for a in self._buffers if sys.getrefcount(a) == ALONE]  # a view's base is the buffer itself
        fitting = [a for a in free if a.nbytes >= count_bytes]
        if fitting:
            buffer = min(fitting, key=lambda a: a.nbytes)
        else:
            for small in free:
                self._buffers = [a for a in self._buffers if a is not small]
            buffer = self._allocate(count_bytes + count_bytes // 4, np.uint8)
            self._buffers.append(buffer)
        return buffer[:int(count) * np.dtype(dtype).itemsize].view(dtype)
