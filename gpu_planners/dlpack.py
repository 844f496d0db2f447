"""Arrays of others by DLPack (dmlc/dlpack, version 0), in and out, without a copy, on the CPU and on CUDA devices.

An array comes as a capsule, a PyCapsule around a DLManagedTensor: its memory is there until the consumer calls the
tensor's deleter. `opened` reads a capsule of others; `capsule_of` makes one of an array of ours.
"""

import ctypes
import itertools
from typing import Any, NamedTuple

import numpy as np

CPU, CUDA, MANAGED = 1, 2, 13  # kinds of devices; MANAGED: memory that the CPU and CUDA see
_NAME, _USED = b"dltensor", b"used_dltensor"  # of a capsule, and of one that a consumer has opened
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}  # of types, by NumPy's kinds
_KINDS = {code: kind for kind, code in _CODES.items()}
_python = ctypes.PyDLL(None)  # our own, so that its types are nobody else's


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = (("tensor", _Tensor), ("manager", ctypes.c_void_p), ("deleter", _Deleter))
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

for _name, _result, *_arguments in (
    ("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Destructor),
    ("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p),
    ("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p),
    ("PyCapsule_SetName", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p),
):
    getattr(_python, _name).restype, getattr(_python, _name).argtypes = _result, _arguments


class Memory:
    """What another library lends, until this object goes."""

    def __init__(self, managed: Any) -> None:
        self._managed = managed

    def __del__(self) -> None:
        if self._managed.deleter:
            self._managed.deleter(ctypes.byref(self._managed))


class Lent(NamedTuple):
    """An array of others. pointer: of its first entry; strides: bytes; device: (kind, number); memory: keep it as long
    as the array is used"""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    device: tuple[int, int]
    memory: Memory


def device_of(array: Any) -> tuple[int, int] | None:
    """(kind, number) of the device on which an object says by DLPack that it lies; None: it says nothing."""
    try:
        kind, number = array.__dlpack_device__()
        return int(kind), int(number)
    except Exception:  # it has no such method, or whatever the object of another library raises
        return None


def opened(capsule: Any) -> Lent:
    """Read a capsule, which is used up by this. Raises BufferError for a type that NumPy does not have."""
    at = id(capsule)
    if not _python.PyCapsule_IsValid(at, _NAME):
        raise BufferError("no capsule of DLPack, or one that was opened before")
    managed = _Managed.from_address(_python.PyCapsule_GetPointer(at, _NAME))
    tensor = managed.tensor
    kind = _KINDS.get(tensor.code)
    if kind is None or tensor.lanes != 1 or tensor.bits % 8:
        raise BufferError(f"a type that NumPy does not have (code {tensor.code}, {tensor.bits} bits)")
    dtype = np.dtype(f"{kind}{tensor.bits // 8}")
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[k] * dtype.itemsize for k in range(tensor.ndim))
    else:
        strides = _strides_of(shape, dtype.itemsize)
    _python.PyCapsule_SetName(at, _USED)
    pointer = (tensor.data or 0) + tensor.byte_offset
    return Lent(pointer, shape, strides, dtype, (tensor.device_type, tensor.device_id), Memory(managed))


def capsule_of(pointer: int, shape: tuple[int, ...], dtype: np.dtype, device: tuple[int, int], owner: Any) -> Any:
    """A capsule of an array in C order. owner: is kept until the consumer has done with it"""
    managed, numbers = _Managed(), (ctypes.c_int64 * len(shape))(*shape)
    strides = (ctypes.c_int64 * len(shape))(*(step // dtype.itemsize for step in _strides_of(shape, dtype.itemsize)))
    key = next(_keys)
    tensor = _Tensor(
        pointer, *device, len(shape), _CODES[dtype.kind], 8 * dtype.itemsize, 1,
        ctypes.cast(numbers, ctypes.POINTER(ctypes.c_int64)), ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)), 0,
    )  # fmt: skip
    managed.tensor, managed.manager, managed.deleter = tensor, key, _delete
    _lent[key] = managed, numbers, strides, owner
    return _python.PyCapsule_New(ctypes.addressof(managed), _STATIC_NAME, _destroy)


def _strides_of(shape, itemsize):
    """Bytes, in C order."""
    after = list(itertools.accumulate(reversed(shape[1:]), lambda a, b: a * b, initial=1))
    return tuple(itemsize * count for count in reversed(after)) if shape else ()


_keys = itertools.count(1)
_lent: dict[int, tuple] = {}  # what a capsule needs as long as it is used
_STATIC_NAME = ctypes.create_string_buffer(_NAME)  # a capsule keeps the pointer alone


@_Deleter
def _delete(managed):
    _lent.pop(managed.contents.manager, None)


@_Destructor
def _destroy(capsule):
    """Of a capsule that nobody has opened."""
    if _python.PyCapsule_IsValid(capsule, _NAME):
        managed = _Managed.from_address(_python.PyCapsule_GetPointer(capsule, _NAME))
        _lent.pop(managed.manager, None)
