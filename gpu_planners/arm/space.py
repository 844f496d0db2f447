"""What a planner asks of a checker, whatever the robot: an arm among polytopes, the planar arm of [BKF11], an image.

A checker is any object with
    robot                   dof, joint_names, lower, upper (dof,), continuous (dof,) bool
    device                  "cpu" or "cuda:N"
    version                 changes when the obstacles do
    warm_up()               compile, so that no query pays for it
    configurations_valid(q), motions_valid(q_from, q_to), colliding_pairs(q)     as CollisionChecker has them
    packed_scene            Packed(floats, ints): all constant data of robot and obstacles
    motion_args             (mode, step) of its MotionCheck, for the compiled code
    new_scratch()           a NamedTuple of arrays: what one CPU thread needs for a check
    device_scene()          (floats, ints) on the CUDA device
    scratch_sizes           (kind of space, sizes...), integers: what a kernel must allocate

Compiled planners call `motion_free`. Which code that is follows from the type of the scratch: each space registers its
own for the CPU and for CUDA.
"""

import numpy as np
from numba.extending import overload

from ..device import njit

ARM, PLANAR, IMAGE = range(3)  # kinds of space
NOT_FREE, FREE, NOT_FINITE = range(3)  # verdicts, uint8
LARGEST = np.float32(3e38)  # a float32 beyond is infinite


def motion_free(qa, qb, mode, step, F, I, S, lane):
    """Is the straight motion qa -> qb, (dof,) float32 each, free? All lanes of the worker call it and get the answer.

    mode, step: checker.motion_args; F, I: checker.packed_scene; S: scratch of the worker, whose type picks the space
    """
    raise NotImplementedError("compiled code only")


def register(scratch_class, target, implementation, overload=overload):
    """Let `motion_free` be `implementation`, same arguments, where S is a scratch_class. target: "cpu" or "cuda"."""

    @overload(motion_free, target=target)
    def choose(qa, qb, mode, step, F, I, S, lane):
        if getattr(S, "instance_class", None) is scratch_class:
            return lambda qa, qb, mode, step, F, I, S, lane: implementation(qa, qb, mode, step, F, I, S, lane)


@njit
def motion_verdict(qa, qb, mode, step, F, I, S, lane):
    """`motion_free` as FREE or NOT_FREE, or NOT_FINITE where an end is not. All lanes of the worker get the answer."""
    if not (finite(qa) and finite(qb)):
        return NOT_FINITE
    return FREE if motion_free(qa, qb, mode, step, F, I, S, lane) else NOT_FREE


@njit
def finite(q):
    """Is no joint's value infinite or NaN?"""
    for k in range(len(q)):
        if not abs(q[k]) <= LARGEST:
            return False
    return True
