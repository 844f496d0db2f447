"""Each kernel of a first plan on CUDA by itself, for processes that compile one (`beside`), or many (`compiling`)."""

import numpy as np

from .arm import CollisionChecker, CollisionWorld, MotionCheck, RobotModel, load_urdf
from .arm.planners.rrt_connect.planner import load_kernel
from .parts import Part, kernel_name
from .share import share_folder

ROBOT = "desk_arm"  # that code is compiled with where nobody gives a robot; it serves all


def kernel_part(kernel: str, device: str, size: int) -> Part:
    """kernel: one of beside.KERNELS; size: number of the least of arm.collision.scratch.SIZES"""
    return Part(kernel_name(kernel, device, size), _compile_kernel, (kernel, device, size), 9)


def _compile_kernel(kernel, device, size):
    checker, q = checker_of_size(device, None, None, size)
    if kernel == "configurations":
        checker.configurations_valid(q)
    elif kernel == "motions":
        checker.motions_valid(q[:1], q[1:2])
    else:
        load_kernel(checker, kernel)


def checker_of_size(
    device: str, robot: RobotModel | None, motion: MotionCheck | None, size: int
) -> tuple[CollisionChecker, np.ndarray]:
    """(checker in a world with nothing near, configurations). Arguments: as `compiling.arm_parts` takes them"""
    if robot is None:
        urdf = share_folder() / "urdf" / ROBOT
        robot = load_urdf(urdf.with_suffix(".urdf"), urdf.with_suffix(".srdf"))
    rng, world = np.random.default_rng(0), CollisionWorld()
    world.add_convex("a hull with many corners", rng.normal(size=(200, 3)), np.eye(4) + 1e3 * np.eye(4, k=3))
    q = rng.uniform(robot.lower, robot.upper, (64, robot.dof))
    checker = CollisionChecker(robot, world, device, motion or MotionCheck())
    return checker.of_size(size) if size else checker, q
