"""ArmScratch: the memory of one worker that checks an arm. Kernels cannot allocate, so it is passed."""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from ...parallel.memory import item, set_item
from ..geometry.poses import POSE, load
from .records import BOX, block_count, block_pair_count, dof, frame_count, named, shape_count, speed_count

QUEUE = 128  # parts of a motion that wait for a check
RESERVE = 32  # of them: how often a part can be halved, so that its parts find room one after the other
SIEVE = 64  # pairs of a configuration that pass the first sieve together
TWIST = 6  # scalars of a frame: the velocity of its origin, the angular velocity
ITEM = POSE + 9  # scalars of a pair that waits for the exact search: the pose of A in B's frame, its closing.Twist
CODE = 2  # its integers: which pair, whose lane
SHARED_SPEEDS = 1280  # speeds of a warp that shared memory has room for
ANY = 1 << 30
# Sizes of the kernels of CUDA: joints, floats of `poses` and of `speeds` at most. Few, so that robots share compiled
# kernels, and a wheel can bring all. Larger robots have kernels of their own.
SIZES = ((8, 256, 384), (32, 1024, SHARED_SPEEDS), (32, 1024, ANY), (128, 4096, ANY))
RECENT = 8  # configurations in collision that the CPU keeps (`recent_collisions`)
RECENT_COUNT, RECENT_NEAREST = 2 * CODE, 2 * CODE + 1  # of the CPU's `codes`


class ArmScratch(NamedTuple):
    """What one worker needs to check an arm.

    The lanes of the worker share:
    speeds: (`speeds_size`,) of a motion, per unit of its parameter: metres that each shape and self pair moves at most,
        then what is listed below; balls and boxes are those of the middle lane
    waiting: (2 * QUEUE,) begin and end of the parts of a motion that wait for a check; on the CPU behind them (RECENT *
        dof,) configurations in collision
    tau: (2 * lanes,) each lane's answer so far, backwards, then ahead
    items: (2 * ITEM * lanes,) the pairs that wait for the exact search; codes: (2 * CODE * lanes,) int32;
        on the CPU behind them how many collisions were kept, and which of them is nearest to a motion
    Each lane has its own:
    q: (dof,) configuration; poses: (`poses_size`,) of all frames in the world, then what is listed below
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


def _length(name, frames=0, shapes=0, blocks=0, speeds=0, block_pairs=0):
    """-> compiled function (scene): how many numbers there are with so many for each frame, shape, ..."""

    def length(scene):
        of_shapes = shapes * shape_count(scene) + speeds * speed_count(scene)
        of_blocks = blocks * block_count(scene) + block_pairs * block_pair_count(scene)
        return frames * frame_count(scene) + of_shapes + of_blocks

    return named(length, name)


# where the parts of `poses` begin behind the frames' poses: the balls' centres, the blocks' boxes, the frames' twists,
# the velocities of the balls' centres
own_balls = _length("own_balls", frames=POSE)
own_blocks = _length("own_blocks", frames=POSE, shapes=3)
twists = _length("twists", frames=POSE, shapes=3, blocks=BOX)
ball_velocities = _length("ball_velocities", frames=POSE + TWIST, shapes=3, blocks=BOX)
poses_size = _length("poses_size", frames=POSE + TWIST, shapes=6, blocks=BOX)
# and those of `speeds` behind the speeds: bounds on the second derivatives (`closing.pair_bend`); the rates of the
# frames' values, and how fast each frame turns; the frames, the balls' centres, the blocks' boxes of a lane that others
# see; the speeds of two blocks' pairs
bends = _length("bends", speeds=1)
rates = _length("rates", speeds=2)
shared_frames = _length("shared_frames", speeds=2, frames=2)
shared_balls = _length("shared_balls", speeds=2, frames=2 + POSE)
shared_blocks = _length("shared_blocks", speeds=2, frames=2 + POSE, shapes=3)
block_speeds = _length("block_speeds", speeds=2, frames=2 + POSE, shapes=3, blocks=BOX)
speeds_size = _length("speeds_size", speeds=2, frames=2 + POSE, shapes=3, blocks=BOX, block_pairs=1)


@njit
def new_scratch(scene):
    """CPU only: the scratch of one thread."""
    return ArmScratch(
        np.empty(speeds_size(scene), dtype=np.float32),
        np.empty(2 * QUEUE + RECENT * dof(scene), dtype=np.float32),
        np.empty(2, dtype=np.float32),
        np.empty(2 * ITEM, dtype=np.float32),
        np.zeros(RECENT_NEAREST + 1, dtype=np.int32),
        np.empty(dof(scene), dtype=np.float32),
        np.empty(poses_size(scene), dtype=np.float32),
        np.empty(SIEVE, dtype=np.int32),
    )


@lean_njit
def frame_pose(poses, f):
    return load(poses, POSE * f, 1)


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
