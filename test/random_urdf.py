"""Random robot descriptions, with or without shapes: trees of joints of every plannable type, axes and origins
anywhere."""

import numpy as np


def random_urdf(rng, joints, almost_parallel=False, shapes=False, size=1.0):
    """URDF text. rng: numpy Generator; joints: how many; almost_parallel: axes tilted by 1e-7 to 1e-2 rad only;
    shapes: each link has a box, a cylinder or a sphere; size: metres, of links at most, in each direction"""

    def link(i):
        return f'<link name="link{i}">{_collision(rng)}</link>' if shapes else f'<link name="link{i}"/>'

    lines = ['<robot name="random">', link(0)]
    movable = []
    for i in range(1, joints + 1):
        parent = i - 1 if rng.random() < 0.7 else rng.integers(0, i)
        kind = rng.choice(["revolute", "continuous", "prismatic", "fixed"], p=[0.5, 0.15, 0.2, 0.15])
        mimic = ""
        if movable and kind != "fixed" and rng.random() < 0.25:
            multiplier, offset = rng.uniform(-2, 2), rng.uniform(-1, 1)
            mimic = f'<mimic joint="{rng.choice(movable)}" multiplier="{multiplier:.3f}" offset="{offset:.3f}"/>'
        elif kind != "fixed":
            movable.append(f"joint{i}")
        kind = "revolute" if mimic and kind == "continuous" else kind
        if almost_parallel:
            rpy, axis = rng.normal(size=3) * 10 ** rng.uniform(-7, -2), np.array([0, 0, 1.0])
        else:
            rpy, axis = _angles(rng), _axis(rng)
        xyz = size * rng.uniform(-1, 1, 3) * (rng.random(3) < 0.6)
        lines += [
            f'<joint name="joint{i}" type="{kind}"><parent link="link{parent}"/><child link="link{i}"/>',
            f'<origin xyz="{_text(xyz)}" rpy="{_text(rpy)}"/><axis xyz="{_text(axis)}"/>',
            f'<limit lower="-1.5" upper="2" velocity="1" effort="1"/>{mimic}</joint>',
            link(i),
        ]
    return "\n".join([*lines, "</robot>"])


def _collision(rng):
    size = rng.uniform(0.03, 0.3, 3)
    shape = rng.choice(
        [
            f'<box size="{_text(size)}"/>',
            f'<cylinder radius="{size[0] / 2}" length="{size[1]}"/>',
            f'<sphere radius="{size[0] / 2}"/>',
        ]
    )
    origin = f'<origin xyz="{_text(rng.uniform(-0.2, 0.2, 3))}" rpy="{_text(_angles(rng))}"/>'
    return f"<collision>{origin}<geometry>{shape}</geometry></collision>"


def _angles(rng):
    """Right angles half of the time: axes that are parallel, coincide or meet."""
    return rng.integers(-2, 3, 3) * np.pi / 2 if rng.random() < 0.5 else rng.uniform(-np.pi, np.pi, 3)


def _axis(rng):
    axis = rng.permutation([1.0, 0, 0]) * rng.choice([-1, 1]) if rng.random() < 0.6 else rng.normal(size=3)
    return axis / np.linalg.norm(axis)


def _text(values):
    return " ".join(repr(float(value)) for value in values)
