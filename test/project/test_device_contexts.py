"""CUDA contexts stay open: who asks for them first, and who keeps them. The driver and Numba's CUDA are fakes."""

import contextlib
import sys
import threading
import types

import pytest

from gpu_planners import device
from gpu_planners.errors import DeviceError


@pytest.fixture
def asked(monkeypatch):
    """[(what was asked for, by which thread)]; `asked.error` is what the driver answers."""

    class Asked(list):
        error = types.SimpleNamespace(name="CUDA_SUCCESS")

    asked = Asked()
    good = asked.error

    def note(what):
        asked.append((what, threading.current_thread()))

    driver = types.SimpleNamespace(
        CUresult=types.SimpleNamespace(CUDA_SUCCESS=good),
        cuDeviceGet=lambda index: (good, f"device {index}"),
        cuDevicePrimaryCtxRetain=lambda which: (note(f"retain {which}"), (asked.error, None))[1],
    )
    context = types.SimpleNamespace(defer_cleanup=lambda: contextlib.nullcontext(note("put off")))
    gpu = types.SimpleNamespace(get_primary_context=lambda: (note("numba"), context)[1])
    numba_cuda = types.SimpleNamespace(gpus=[gpu, gpu])
    monkeypatch.setitem(sys.modules, "cuda", types.SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuda.bindings", types.SimpleNamespace(driver=driver))
    monkeypatch.setitem(sys.modules, "numba.cuda", numba_cuda)
    monkeypatch.setattr("numba.cuda", numba_cuda, raising=False)
    device._keep_open.cache_clear()
    yield asked
    device._keep_open.cache_clear()


def test_a_thread_that_ends_asks_first_and_the_process_retains_the_context(asked):
    for _ in range(2):
        device._keep_open(1)
    assert [what for what, _ in asked] == ["retain device 1", "numba", "put off"]
    for _, thread in asked:
        assert thread is not threading.main_thread() and not thread.is_alive()


def test_a_device_that_cannot_be_opened_is_named(asked):
    asked.error = types.SimpleNamespace(name="CUDA_ERROR_OUT_OF_MEMORY")
    with pytest.raises(DeviceError, match=r"'cuda:0' cannot be opened: CUDA_ERROR_OUT_OF_MEMORY"):
        device._keep_open(0)
    assert [what for what, _ in asked] == ["retain device 0"]


def test_lists_of_devices(asked, monkeypatch):
    monkeypatch.setattr(device, "cuda_problem", lambda: "")
    assert device.resolve_devices("cuda:all") == ("cuda:0", "cuda:1")
    assert device.resolve_devices("cuda:1, cpu,cpu") == ("cuda:1", "cpu", "cpu")
    assert device.resolve_devices(["auto"]) == ("cuda:0",)
    for twice in ("cuda,cuda:0", ("cuda:1", "cuda:all")):
        with pytest.raises(DeviceError, match=r"has cuda:[01] twice"):
            device.resolve_devices(twice)
    with pytest.raises(DeviceError, match=r"'cuda:2'.*2 CUDA device"):
        device.resolve_devices("cuda:0,cuda:2")


def test_all_devices_of_a_cuda_that_does_not_import_are_an_error_that_says_so(monkeypatch):
    monkeypatch.setattr(device, "cuda_problem", lambda: "numba's CUDA target does not import: numpy")
    monkeypatch.setitem(sys.modules, "numba.cuda", None)
    with pytest.raises(DeviceError, match="device 'cuda:all' was asked for, but numba's CUDA target does not import"):
        device.resolve_devices("cuda:all")


def test_numbas_own_cuda_does_not_do(monkeypatch):
    """It is there where numba-cuda is not, and sees the devices."""
    monkeypatch.setattr("numba.cuda.__file__", "/usr/lib/python3/numba/cuda/__init__.py")
    assert "pip install 'gpu_planners[gpu]'" in device.cuda_problem.__wrapped__()
