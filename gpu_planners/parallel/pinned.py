"""Page-locked host memory that is used again when nobody looks at it any more."""

import weakref
from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike


class PinnedPool:
    """Buffers for answers: a buffer is free again when the answer in it and all views of the answer are gone.

    allocate: (count, dtype) -> array, such as cuda.pinned_array
    """

    def __init__(self, allocate: Callable[[int, DTypeLike], np.ndarray]):
        self._allocate = allocate
        self._free: list[np.ndarray] = []

    def take(self, count: int, dtype: DTypeLike) -> np.ndarray:
        """-> (count,) array in page-locked memory; its content is undefined"""
        nbytes = int(count) * np.dtype(dtype).itemsize
        fitting = [i for i, buffer in enumerate(self._free) if buffer.nbytes >= nbytes]
        if fitting:
            buffer = self._free.pop(min(fitting, key=lambda i: self._free[i].nbytes))
        else:
            self._free.clear()  # too small for what is asked for now
            buffer = self._allocate(max(nbytes + nbytes // 4, 1), np.uint8)
        # the base of `answer` is no array, so that NumPy lets views, and views of views, hold `answer` and not `buffer`
        answer = np.frombuffer(buffer.data, dtype, int(count))
        weakref.finalize(answer, self._free.append, buffer).atexit = False
        return answer
