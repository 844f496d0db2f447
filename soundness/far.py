"""Robots and obstacles 1 m to 10 km from the origin, and obstacles of up to 1 km: no overlap above the stated
accuracy is free. What the package refuses by an error is no wrong answer.

An overlap is known without any iterative search: a vertex of the robot's body, placed by pinocchio, lies inside a
box, a cylinder or a sphere by so much.
"""

import coal
import numpy as np

from gpu_planners.errors import GpuPlannersError

from .contacts import close_to
from .harness import ACCURACY, Attack, Skipped, numbers
from .obstacles import Obstacle, direction, rotation
from .robots import free_of

BASES = (  # where robots stand, metres: few, since each is loaded anew
    ("panda", (0.0, 0, 0)),
    ("ur5", (1.0, 0, 0)),
    ("random-0", (0, -10.0, 0)),
    ("kinova", (60.0, 64.0, 48.0)),
    ("panda", (0, -1000.0, 0)),
    ("random-1", (600.0, 640.0, 480.0)),
    ("ur5", (6000.0, 6400.0, 4800.0)),
    ("tiago", (0, 10_000.0, 0)),
)


def case(run, rng, number, tally):
    name, base = BASES[number % len(BASES)]
    rig = run.rig_named(name, base)
    q = rig.configurations(rng, 1)
    if not len(q) or not rig.oracle.bodies:
        raise Skipped(f"{name}: no configuration without self-collision was drawn")
    body = int(rng.integers(rig.oracle.bodies))
    point, normal = rig.oracle.point_on(q[0], body, direction(rng))
    depth = rng.choice([-1, 1], p=[0.3, 0.7]) * 10 ** rng.uniform(-5, -1.5)
    obstacle = _large(rng, point - depth * normal, normal)
    q = close_to(rng, q[0])
    depths = np.array([_depth(rig.oracle, row, obstacle) for row in q])
    try:
        rig.put([obstacle])
        free = free_of(rig.checkers, q)
    except GpuPlannersError as error:
        tally.error(error)
        return
    what = lambda i: f"base at {base}, q = {numbers(q[i])}, {obstacle}"  # noqa: E731
    # depths below 0 say nothing: the body's faces may overlap where no vertex does
    gaps = np.where(depths > 0, -depths, 0.0)
    tally.verdicts(rig.name, free, gaps, what, allowed=ACCURACY)
    if obstacle.radius < 10 and np.linalg.norm(base) < 200:
        alone = rig.bare.configurations_valid(q)
        tally.verdicts(rig.name, free, rig.oracle.gaps(q, [obstacle]), what, allowed=ACCURACY, widest=alone)


def _large(rng, at, normal):
    """An obstacle of 1 cm to 1 km whose surface passes through `at` (3,) with the outward normal -normal."""
    size, across = 10 ** rng.uniform(-2, 3), 10 ** rng.uniform(-2, 3, 2)
    pose = np.eye(4)
    pose[:3, :3] = _frame(rng, normal)  # z along the normal
    kind = rng.choice(["box", "cylinder", "long cylinder", "sphere"])
    if kind == "box":
        slide = rng.uniform(-0.45, 0.45, 2) * across
        pose[:3, 3] = at + pose[:3, :3] @ np.append(slide, size / 2)
        return Obstacle.of("box", pose, size=np.append(across, size))
    if kind == "cylinder":  # its flat end is met
        turn = rng.uniform(0, 2 * np.pi)
        slide = 0.4 * across[0] * np.array([np.cos(turn), np.sin(turn)])
        pose[:3, 3] = at + pose[:3, :3] @ np.append(slide, size / 2)
        return Obstacle.of("cylinder", pose, radius=across[0], height=size)
    if kind == "long cylinder":  # its side is met: its axis lies across the normal
        pose[:3, :3] = pose[:3, [1, 2, 0]]
        radius = min(across[0], 100.0)
        pose[:3, 3] = at + normal * radius + pose[:3, 2] * rng.uniform(-0.45, 0.45) * size
        return Obstacle.of("cylinder", pose, radius=radius, height=size)
    pose[:3, 3] = at + normal * size
    return Obstacle.of("sphere", pose, radius=size)


def _frame(rng, z):
    """(3, 3) rotation with its third column along z, the others anyhow."""
    x = np.cross(z, rotation(rng)[:3, 0])
    x = np.cross(z, [1.0, 0, 0] if abs(z[0]) < 0.9 else [0, 1.0, 0]) if np.linalg.norm(x) < 1e-3 else x
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _depth(oracle, q, obstacle):
    """How deep the deepest known point of the robot lies inside the obstacle, metres; negative where none is inside."""
    return max(
        _inside(obstacle, points @ R.T + t)
        for geometry, (R, t), _ in oracle.placed(q)
        for points in [_points(geometry)]
    )


def _points(geometry):
    """Points on a geometry: vertices of a hull or a box, some of a cylinder or a sphere."""
    if isinstance(geometry, coal.Box):
        return np.array(np.meshgrid(*[[-h, h] for h in np.ravel(geometry.halfSide)])).reshape(3, -1).T
    if isinstance(geometry, coal.Sphere):
        return geometry.radius * np.vstack([np.eye(3), -np.eye(3)])
    if isinstance(geometry, coal.Cylinder):
        turn = np.arange(16) * np.pi / 8
        ring = geometry.radius * np.column_stack([np.cos(turn), np.sin(turn)])
        return np.vstack([np.column_stack([ring, np.full(16, z)]) for z in (-geometry.halfLength, geometry.halfLength)])
    return np.array([np.ravel(geometry.point(i)) for i in range(geometry.num_points)])


def _inside(obstacle, points):
    local = (points - obstacle.pose[:3, 3]) @ obstacle.pose[:3, :3]
    if obstacle.kind == "sphere":
        return obstacle.sizes["radius"] - np.linalg.norm(local, axis=1).min()
    if obstacle.kind == "box":
        return (obstacle.sizes["size"] / 2 - np.abs(local)).min(axis=1).max()
    from_side = obstacle.sizes["radius"] - np.linalg.norm(local[:, :2], axis=1)
    return np.minimum(from_side, obstacle.sizes["height"] / 2 - np.abs(local[:, 2])).max()


ATTACK = Attack("far", "bases up to 10 km away, obstacles up to 1 km", case)
