"""DLPack in and out, against NumPy's own; and jax and torch, where they are installed."""

import gc

import numpy as np
import pytest

from gpu_planners import dlpack
from gpu_planners.arguments import as_array, lies_on_cuda

TYPES = (np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_)


class Lender:
    """An array that speaks DLPack by our capsules and nothing else. kind: of the device that it says"""

    def __init__(self, array, kind=dlpack.CPU):
        self._array, self._kind = array, kind

    def __dlpack_device__(self):
        return self._kind, 0

    def __dlpack__(self, **options):
        array = self._array
        return dlpack.capsule_of(array.ctypes.data, array.shape, array.dtype, (self._kind, 0), array)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(5,), (3, 4), (0, 7), (2, 3, 4)])
def test_numpy_sees_the_same_memory(dtype, shape):
    gc.collect()
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    before = len(dlpack._lent)
    seen = np.from_dlpack(Lender(array))
    assert seen.dtype == array.dtype and np.array_equal(seen, array)
    assert not array.size or np.shares_memory(seen, array)
    del seen
    gc.collect()
    assert len(dlpack._lent) == before


@pytest.mark.parametrize("dtype", TYPES)
def test_arrays_of_numpy_are_opened(dtype):
    array = np.ones((4, 6), dtype)[:, 1:4]
    lent = dlpack.opened(array.__dlpack__())
    assert (lent.pointer, lent.shape, lent.strides) == (array.ctypes.data, array.shape, array.strides)
    assert lent.dtype == array.dtype and lent.device == (dlpack.CPU, 0)


def test_capsules_are_given_back():
    array, before = np.zeros(3), len(dlpack._lent)
    capsule = Lender(array).__dlpack__()
    assert len(dlpack._lent) == before + 1
    del capsule  # which nobody has opened
    assert len(dlpack._lent) == before
    capsule = Lender(array).__dlpack__()
    lent = dlpack.opened(capsule)
    with pytest.raises(BufferError):
        dlpack.opened(capsule)
    del capsule
    assert len(dlpack._lent) == before + 1
    del lent
    assert len(dlpack._lent) == before
    with pytest.raises(BufferError, match="NumPy"):
        dlpack.opened(np.zeros(3, np.complex64).__dlpack__())


def test_arrays_of_others_come_in_without_a_copy():
    array = np.zeros((3, 2), np.float32)
    assert np.shares_memory(as_array(Lender(array)), array)
    assert not lies_on_cuda(Lender(array)) and lies_on_cuda(Lender(array, dlpack.CUDA))
    for name in ("jax.numpy", "torch"):
        library = pytest.importorskip(name)
        tensor = library.ones((3, 2))
        assert np.asarray(tensor).ctypes.data == as_array(tensor).ctypes.data
        assert not lies_on_cuda(tensor)
