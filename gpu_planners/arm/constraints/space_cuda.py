"""CUDA: the scratch of a warp for a checker that keeps a constraint, and its scene on the device."""

from numba import cuda, float32
from numba.cuda.extending import overload  # type: ignore[attr-defined]

from ..collision import checker_cuda  # noqa: F401 - registers the arm's scratch
from ..spaces.cuda import register_scratch, spilled_floats, warp_scratch
from ..spaces.interface import ARM, KEEPING, Packed, register
from .keeping import kept_and_free
from .measures import KeepingScratch


def _scratch(n_q, n_poses, n_speeds, n_work):
    """-> device function scratch(warp, spill). n_work: floats of a lane's `work`"""
    arm = warp_scratch(ARM, n_q, n_poses, n_speeds)

    @cuda.jit(device=True, inline="always")
    def scratch(warp, spill):
        return KeepingScratch(arm(warp, spill), cuda.local.array(n_work, float32))

    return scratch


register_scratch(KEEPING, _scratch, lambda *sizes: spilled_floats(ARM, *sizes[:-1]))
register(KeepingScratch, "cuda", kept_and_free, overload)


def uploaded(scene: Packed, device: str) -> tuple:
    """(floats, ints) of a packed scene on a device, "cuda:N"."""
    with cuda.gpus[int(device.partition(":")[2])]:
        return tuple(cuda.to_device(part) for part in scene)
