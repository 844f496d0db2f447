"""CUDA: poses of frames and links of configurations that lie on a device, and poses that lie there as goals."""

import functools
import weakref
from typing import Any

import numpy as np
from numba import cuda

from ...arguments import refuse_joints
from ...device import cuda_jit, resolve_device
from ...errors import ConfigurationError, GpuPlannersError
from ...parallel.arrays_cuda import new_array, number_of, stream_of, taken, to_host
from ...ranges import GREATEST_LENGTH
from ..geometry.poses import POSE
from .placing import RIGHT, Tree, given_pose, place_all, tree_of

THREADS = 64  # of a block
ROWS = 1 << 18  # of a launch, whose frames there is memory for
_trees: weakref.WeakKeyDictionary[Any, dict[int, tuple]] = weakref.WeakKeyDictionary()


def frame_poses(robot: Any, q: Any) -> Any:
    """`RobotModel.frame_poses` of q on a device, (N, dof) float32 or float64 -> there, of the same type."""
    return _placed(robot, q, True)


def link_poses(robot: Any, q: Any) -> dict[str, Any]:
    """`RobotModel.link_poses` likewise: {link name: (N, 4, 4)}."""
    links = _placed(robot, q, False)
    return {name: links[k] for k, name in enumerate(robot.link_names)}


def _placed(robot, q, of_frames):
    number = number_of(q)
    resolve_device(f"cuda:{number}")
    q = taken(q, number)
    if q.dtype not in (np.float32, np.float64) or len(q.shape) != 2 or q.shape[1] != robot.dof:
        raise ConfigurationError(
            f"q must be float32 or float64 of shape (N, {robot.dof}), got {q.dtype} of shape {tuple(q.shape)}"
        )
    if not q.flags["C_CONTIGUOUS"]:
        raise ConfigurationError("q lies on a CUDA device in another order than C; allowed: rows without gaps")
    with cuda.gpus[number]:
        trees = _trees.setdefault(robot, {})
        if number not in trees:
            trees[number] = tuple(cuda.to_device(each) for each in tree_of(robot))
        n, frames, links = len(q), len(robot.frames), len(robot.link_names)
        out = new_array((n, frames, 4, 4) if of_frames else (links, n, 4, 4), q.dtype)
        none = cuda.device_array((1, 0, 4, 4) if not of_frames else (0, 1, 4, 4), q.dtype)
        work = cuda.device_array((min(n, ROWS), frames, POSE), np.float64)
        given = (out, none) if of_frames else (none, out)
        for first in range(0, n, ROWS):
            count = min(ROWS, n - first)
            blocks, stream = -(-count // THREADS), stream_of(number)
            _place_kernel()[blocks, THREADS, stream](q, *trees[number], work, *given, first, count)
        stream_of(number).synchronize()
    return out


@functools.cache
def _place_kernel() -> Any:
    """The kernel that places configurations, a lane each."""

    @cuda_jit
    def place(q, frames, factors, numbers, links, link_frames, work, frames_out, links_out, first, count):
        i = cuda.grid(1)
        if i < count:
            tree = Tree(frames, factors, numbers, links, link_frames)
            place_all(first, i, q, tree, work, frames_out, links_out)

    return place


def goal_rows(poses: Any, device: str, reach: float, link: str) -> Any:
    """Poses on a device, (N, 4, 4) or (4, 4) float32 or float64 -> (N, POSE) float64 there, lengths in units of the
    reach (`chain.pose_row`). GpuPlannersError that names the first that is none."""
    T = taken(poses, number := int(device.partition(":")[2]))
    shape = tuple(T.shape)
    if shape[-2:] != (4, 4) or len(shape) not in (2, 3) or not shape[0] or T.dtype not in (np.float32, np.float64):
        raise GpuPlannersError(
            f"the poses of link '{link}' must be float32 or float64 of shape (4, 4), or (N, 4, 4) with N at least 1, "
            f"got {T.dtype} of shape {shape}"
        )
    if not T.flags["C_CONTIGUOUS"]:
        raise GpuPlannersError(f"the poses of link '{link}' lie in another order than C; allowed: no gaps")
    T = T.reshape(1, 4, 4) if len(shape) == 2 else T
    rows, first = _copied(_goal_kernel(), T, POSE, number, reach)
    if first < len(T):
        raise GpuPlannersError(
            f"pose {first} of link '{link}' is no finite rigid transform at most {GREATEST_LENGTH:g} m away: "
            f"{to_host(T)[first].tolist()}"
        )
    return rows


def first_rows(q: Any, device: str, robot: Any, count: int, most: float) -> Any:
    """seed_q on a device, (count, dof) float32 or float64 -> float64 there. most: a value at most. Raises
    ConfigurationError."""
    q = taken(q, number := int(device.partition(":")[2]))
    shape = count, robot.dof
    if q.dtype not in (np.float32, np.float64) or tuple(q.shape) != shape or not q.flags["C_CONTIGUOUS"]:
        raise ConfigurationError(
            f"seed_q on a CUDA device must be float32 or float64 of shape {shape}, in C order, got {q.dtype} of shape "
            f"{tuple(q.shape)}"
        )
    rows, first = _copied(_first_kernel(), q, robot.dof, number, most)
    if first < count:
        refuse_joints("seed_q", to_host(q).astype(np.float64), robot.joint_names, most)
    return rows


def _copied(kernel, given, width, number, most):
    """-> what a kernel, a lane each, makes of `given` (N, ..) on a device: (N, width) float64 there; the first of them
    that it refuses, or N"""
    with cuda.gpus[number]:
        rows, wrong = (
            cuda.device_array((len(given), width), np.float64),
            cuda.to_device(np.full(1, len(given), np.int32)),
        )
        stream = stream_of(number)
        kernel[-(-len(given) // THREADS), THREADS, stream](given, rows, wrong, most)
        stream.synchronize()
        return rows, int(wrong.copy_to_host()[0])


@functools.cache
def _first_kernel() -> Any:
    """The kernel that copies configurations, and notes the first with a value that is not finite or too large."""

    @cuda_jit
    def firsts(q, rows, wrong, most):
        i = cuda.grid(1)
        if i < len(q):
            for k in range(q.shape[1]):
                rows[i, k] = q[i, k]
                if not abs(rows[i, k]) <= most:
                    cuda.atomic.min(wrong, 0, i)

    return firsts


@functools.cache
def _goal_kernel() -> Any:
    """The kernel that reads poses, and notes the first that is none."""

    @cuda_jit
    def goals(T, rows, wrong, reach):
        i = cuda.grid(1)
        if i < len(T):
            if given_pose(T[i], rows[i], GREATEST_LENGTH) != RIGHT:
                cuda.atomic.min(wrong, 0, i)
            for k in range(9, POSE):
                rows[i, k] /= reach

    return goals
