"""ArmScratch: the memory of one worker that checks an arm. Kernels cannot allocate, so it is passed."""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from ...parallel.layout import floats, starts
from ...parallel.memory import item, set_item
from ..geometry.poses import POSE, load
from . import records

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
RECENT_COUNT = 2 * CODE  # in the CPU's `codes`: how many are kept
RECENT_NEAREST = 2 * CODE + 1  # and which of them is nearest to a motion


class ArmScratch(NamedTuple):
    """What one worker needs to check an arm.

    The lanes of the worker share:
    speeds: (`speeds_size`,) Speeds of a motion, per unit of its parameter, the metres that each shape and self pair
        moves at most first; balls and boxes are those of the middle lane
    waiting: (2 * QUEUE,) begin and end of the parts of a motion that wait for a check; on the CPU behind them (RECENT *
        dof,) configurations in collision
    tau: (2 * lanes,) each lane's answer so far, backwards, then ahead
    items: (2 * ITEM * lanes,) the pairs that wait for the exact search; codes: (2 * CODE * lanes,) int32;
        on the CPU behind them how many collisions were kept, and which of them is nearest to a motion
    Each lane has its own:
    q: (dof,) configuration; poses: (`poses_size`,) Poses in the world
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


class Poses(NamedTuple):
    """The parts of ArmScratch.poses."""

    frames: np.ndarray = floats("POSE * records.frame_count(scene)")
    balls: np.ndarray = floats("3 * records.shape_count(scene)")  # their centres
    blocks: np.ndarray = floats("records.BOX * records.block_count(scene)")  # their boxes
    twists: np.ndarray = floats("TWIST * records.frame_count(scene)")  # of the frames
    velocities: np.ndarray = floats("3 * records.shape_count(scene)")  # of the balls' centres


class Speeds(NamedTuple):
    """The parts of ArmScratch.speeds; shared: of the lane whose frames, balls' centres and blocks' boxes others see."""

    speeds: np.ndarray = floats("records.speed_count(scene)")
    bends: np.ndarray = floats("records.speed_count(scene)")  # bounds on the second derivatives (`closing.pair_bend`)
    rates: np.ndarray = floats("2 * records.frame_count(scene)")  # of the frames' values, and how fast each frame turns
    shared_frames: np.ndarray = floats("POSE * records.frame_count(scene)")
    shared_balls: np.ndarray = floats("3 * records.shape_count(scene)")
    shared_blocks: np.ndarray = floats("records.BOX * records.block_count(scene)")
    block_speeds: np.ndarray = floats("records.block_pair_count(scene)")  # of two blocks' pairs


# compiled functions (scene): where a part begins
_, own_balls, own_blocks, twists, ball_velocities, poses_size = map(lean_njit, starts(Poses, "scene"))
_, bends, rates, shared_frames, shared_balls, shared_blocks, block_speeds, speeds_size = map(
    lean_njit, starts(Speeds, "scene")
)


@njit
def new_scratch(scene):
    """CPU only: the scratch of one thread."""
    return ArmScratch(
        np.empty(speeds_size(scene), dtype=np.float32),
        np.empty(2 * QUEUE + RECENT * records.dof(scene), dtype=np.float32),
        np.empty(2, dtype=np.float32),
        np.empty(2 * ITEM, dtype=np.float32),
        np.zeros(RECENT_NEAREST + 1, dtype=np.int32),
        np.empty(records.dof(scene), dtype=np.float32),
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
