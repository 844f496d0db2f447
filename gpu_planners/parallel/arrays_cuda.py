"""Arrays on CUDA devices, from other libraries and for them, without copies.

Streams: what a caller has queued for an array of his is done before our work reads it, where the array speaks DLPack
(torch, cupy, jax), or names its stream in `__cuda_array_interface__` (cupy, Numba); otherwise what he has queued on the
legacy default stream. Our own work is done when a call returns, so any stream may read what comes back.
"""

import functools
from typing import Any

import numpy as np
from cuda.bindings import driver
from numba import cuda
from numba.cuda.cudadrv.devicearray import DeviceNDArray

from .. import dlpack
from ..errors import DeviceError

LEGACY = 1  # DLPack's number of the legacy default stream, for which streams of Numba wait


class DeviceArray(DeviceNDArray):
    """Numba's array on a CUDA device that speaks DLPack too: torch.from_dlpack, cupy.from_dlpack, jax.dlpack take it,
    and numpy.asarray copies it to the host."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, device_number(self)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        """Its content is there for every stream. Raises BufferError for another device, a copy, or rows with gaps."""
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("this array is lent where it lies, without a copy")
        if not self.flags["C_CONTIGUOUS"]:
            raise BufferError("this array is no array in C order without gaps")
        device, pointer = self.__dlpack_device__(), self.device_ctypes_pointer.value or 0
        return dlpack.capsule_of(pointer, self.shape, self.dtype, device, self)


def new_array(shape: Any, dtype: Any) -> DeviceArray:
    """On the current device, with any content."""
    plain = cuda.device_array(shape, dtype)
    return as_device_array(plain)


@functools.cache
def stream_of(number: int) -> Any:
    """A stream of a CUDA device, for work of no checker."""
    with cuda.gpus[number]:
        return cuda.stream()


def as_device_array(plain: Any) -> DeviceArray:
    """The same array of Numba's, which then speaks DLPack."""
    return DeviceArray(plain.shape, plain.strides, plain.dtype, 0, plain.gpu_data)


def device_number(array: Any) -> int:
    """Of the device where an array lies that has `__cuda_array_interface__`. Numba's know the context that they were
    made in; of others the driver is asked for their pointer's.

    Raises DeviceError where nobody knows it, unless the machine has one device."""
    if isinstance(array, DeviceNDArray):
        return int(array.gpu_data.context.device.id)
    pointer = array.__cuda_array_interface__["data"][0]
    if len(cuda.gpus) == 1:
        return 0
    attribute = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    error, number = driver.cuPointerGetAttribute(attribute, driver.CUdeviceptr(pointer))
    if not pointer or error != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(
            "the driver does not know on which CUDA device an array lies; allowed: one that speaks DLPack"
        )
    return int(number)


def number_of(array: Any) -> int:
    """Of the CUDA device where an array lies, of any library."""
    device = None if isinstance(array, DeviceNDArray) else dlpack.device_of(array)
    return device_number(array) if device is None else device[1]


def taken(array: Any, number: int) -> Any:
    """An array that lies on CUDA device `number`, of any library -> the same as an array of Numba's; see above for
    streams. Raises DeviceError for one that lies on another device, or that cannot be read as it is."""
    there = number_of(array)
    if there != number:
        raise DeviceError(f"an array lies on cuda:{there}; allowed: arrays on cuda:{number}, which computes")
    with cuda.gpus[number]:
        if isinstance(array, DeviceNDArray):
            if array.stream:
                array.stream.synchronize()
            return array
        if dlpack.device_of(array) is not None:
            return _by_dlpack(array)
        return cuda.as_cuda_array(array)  # which waits for the stream that the array names


def to_host(array: Any) -> np.ndarray:
    """A copy on the host of an array that lies on a CUDA device, of any library."""
    number = number_of(array)
    with cuda.gpus[number]:
        return taken(array, number).copy_to_host()


def _by_dlpack(array):
    try:
        lent = dlpack.opened(array.__dlpack__(stream=LEGACY))
    except Exception as error:  # whatever another library raises, as torch does for tensors with gradients
        raise DeviceError(f"an array on a CUDA device cannot be read: {error}") from error
    size = int(np.prod(lent.shape)) * lent.dtype.itemsize
    if not size:
        return cuda.device_array(lent.shape, lent.dtype)
    last = sum(step * (count - 1) for step, count in zip(lent.strides, lent.shape)) + lent.dtype.itemsize
    data = cuda.cudadrv.driver.MemoryPointer(
        cuda.current_context(), driver.CUdeviceptr(lent.pointer), size=last, owner=lent.memory
    )
    return DeviceNDArray(lent.shape, lent.strides, lent.dtype, 0, data)
