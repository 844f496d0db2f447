"""ArmScratch: the memory of one worker that checks an arm. Kernels cannot allocate, so it is passed."""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from ...parallel.memory import item, set_item
from ..geometry.poses import POSE, load, store
from .broad_phase import BOX
from .records import block_count, block_pair_count, dof, frame_count, moving_count, shape_count, speed_count

QUEUE = 128  # parts of a motion that wait for a check
RESERVE = 32  # of them: how often a part can be halved, so that its parts find room one after the other
SIEVE = 64  # pairs of a configuration that pass the first sieve together
TWIST = 6  # scalars of a frame: the velocity of its origin, the angular velocity
ITEM = POSE + 9  # scalars of a pair that waits for the exact search: the pose of A in B's frame, its closing.Twist
CODE = 2  # its integers: which pair, whose lane
MET = 8  # configurations in collision that the CPU keeps
COUNT, NEAREST = 2 * CODE, 2 * CODE + 1  # of the CPU's `codes`


class ArmScratch(NamedTuple):
    """What one worker needs to check an arm.

    The lanes of the worker share:
    speeds: (`speeds_size`,) of a motion, per unit of its parameter: metres that each shape and self pair moves at most,
        how fast the shapes' speeds change at most (`closing`); the rates of all frames' values, and how fast the
        frames turn; the centres of all shapes' balls on the motion's middle lane, and the boxes around its blocks;
        metres that the shapes of each pair of blocks move at most
    waiting: (2 * QUEUE,) begin and end of the parts of a motion that wait for a check; on the CPU behind them (MET *
        dof,) configurations in collision (`met`)
    tau: (2 * lanes,) each lane's answer so far, backwards, then ahead
    items: (2 * ITEM * lanes,) the pairs that wait for the exact search; codes: (2 * CODE * lanes,) int32;
        on the CPU behind them COUNT, how many collisions were kept, and which of them is NEAREST to a motion
    Each lane has its own:
    q: (dof,) configuration; poses: (`poses_size`,) of all frames, then the centres of all shapes' balls and the boxes
        around the blocks, in the world, then the velocities of frames and balls
    sieve: (SIEVE,) int32 numbers of the pairs that passed the first sieve
    """

    speeds: np.ndarray
    waiting: np.ndarray
    tau: np.ndarray
    items: np.ndarray
    codes: np.ndarray
    q: np.ndarray
    poses: np.ndarray
    sieve: np.ndarray


@njit
def new_scratch(scene):
    """CPU only: the scratch of one thread."""
    return ArmScratch(
        np.empty(speeds_size(scene), dtype=np.float32),
        np.empty(2 * QUEUE + MET * dof(scene), dtype=np.float32),
        np.empty(2, dtype=np.float32),
        np.empty(2 * ITEM, dtype=np.float32),
        np.zeros(NEAREST + 1, dtype=np.int32),
        np.empty(dof(scene), dtype=np.float32),
        np.empty(poses_size(scene), dtype=np.float32),
        np.empty(SIEVE, dtype=np.int32),
    )


@lean_njit
def poses_size(scene):
    return (POSE + TWIST) * frame_count(scene) + 6 * shape_count(scene) + BOX * block_count(scene)


@lean_njit
def speeds_size(scene):
    return block_speeds(scene) + block_pair_count(scene)


@lean_njit
def frame_pose(poses, f):
    return load(poses, POSE * f, 1)


@lean_njit
def set_frame_pose(poses, f, T):
    store(poses, POSE * f, 1, T)


@lean_njit
def own_balls(scene):
    """Where the balls' centres begin in `poses`."""
    return POSE * frame_count(scene)


@lean_njit
def own_blocks(scene):
    """Where the boxes around the blocks begin in `poses`: behind the balls."""
    return own_balls(scene) + 3 * shape_count(scene)


@lean_njit
def twists(scene):
    """Where the frames' twists begin in `poses`."""
    return own_blocks(scene) + BOX * block_count(scene)


@lean_njit
def ball_velocities(scene):
    """Where the velocities of the balls' centres begin in `poses`."""
    return twists(scene) + TWIST * frame_count(scene)


@lean_njit
def bends(scene):
    """Where the bounds on the moving shapes' second derivatives begin in `speeds`."""
    return speed_count(scene)


@lean_njit
def rates(scene):
    """Where the rates of the frames' values begin in `speeds`, and after them how fast each frame turns."""
    return bends(scene) + moving_count(scene)


@lean_njit
def shared_balls(scene):
    """Where the balls' centres begin in `speeds`."""
    return rates(scene) + 2 * frame_count(scene)


@lean_njit
def shared_blocks(scene):
    """Where the boxes around the blocks begin in `speeds`: behind the balls."""
    return shared_balls(scene) + 3 * shape_count(scene)


@lean_njit
def block_speeds(scene):
    """Where the speeds of the pairs of blocks begin in `speeds`."""
    return shared_blocks(scene) + BOX * block_count(scene)


@lean_njit
def triple(array, first, k):
    """-> x, y, z number k of those that begin at `first`; `array` is `poses`, or `speeds` for `shared_balls`."""
    at = first + 3 * k
    return item(array, at), item(array, at + 1), item(array, at + 2)


@lean_njit
def set_triple(array, first, k, xyz):
    at = first + 3 * k
    for n in range(3):
        set_item(array, at + n, xyz[n])
