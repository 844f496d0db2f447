"""Hulls that coal itself refuses."""

import numpy as np
import pytest

pytest.importorskip("coal", reason="needs pinocchio and coal (extra `test`)")

import coal  # noqa: E402

from gpu_planners.verify.shapes import hull, signed_distance  # noqa: E402


def test_a_cylinder_of_many_sides_has_its_distances():
    """coal holds 255 neighbours of a vertex, and Qhull cuts a face of 400 corners into a fan."""
    angles = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    rim = np.stack([0.5 * np.cos(angles), 0.5 * np.sin(angles)], axis=1)
    shape = hull(np.concatenate([np.c_[rim, np.full(400, z)] for z in (-0.2, 0.2)]))
    rng, ball = np.random.default_rng(0), coal.Sphere(0.05)
    for place in rng.normal(size=(300, 3)):
        aside, up = np.hypot(*place[:2]) - 0.5, abs(place[2]) - 0.2
        expected = np.hypot(max(aside, 0), max(up, 0)) + min(max(aside, up), 0) - 0.05
        found = signed_distance(shape, coal.Transform3s(), ball, coal.Transform3s(np.eye(3), place))[0]
        assert found == pytest.approx(expected, abs=1e-4)
