"""Configurations from callers become float32, whole turns taken off: by the rule of the module, in NumPy."""

from types import SimpleNamespace

import numpy as np
import pytest

from gpu_planners.arm.spaces.configurations import FEW, LARGEST, TOGETHER, TURN, narrow, narrow_motions

PERIODIC = np.array([False, True, True, False, False])
ROBOT = SimpleNamespace(dof=len(PERIODIC), periodic=PERIODIC)


def by_rule(q, other):
    """float32 of q less the whole turns of the middle of q and `other`; NaN where one of them is not finite."""
    q, other = q.astype(np.float64), other.astype(np.float64)
    with np.errstate(invalid="ignore"):
        far = PERIODIC & (np.maximum(np.abs(q), np.abs(other)) > TURN)
        turned = q - TURN * np.round((q + other) / (2 * TURN))
        known = (np.abs(q) <= LARGEST) & (np.abs(other) <= LARGEST)
    return np.where(known, np.where(far, turned, q), np.nan).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 5 * TOGETHER + 7, FEW + 3])
def test_some_rows_lie_far_away(rows, dtype):
    """Most are copied, a few are turned back or are not finite, in blocks of any size and by threads."""
    rng = np.random.default_rng(rows)
    ends = rng.uniform(-3, 3, (2, rows, ROBOT.dof))
    for end in ends:
        some = rng.integers(rows, size=3)
        end[some] = rng.uniform(-40, 40, (3, ROBOT.dof))
        end[some[-1], rng.integers(ROBOT.dof)] = rng.choice([np.nan, np.inf, 1e12])
    a, b = ends.astype(dtype)
    np.testing.assert_array_equal(narrow(a, ROBOT, "q"), by_rule(a, a))
    for found, wanted in zip(narrow_motions(a, b, ROBOT), (by_rule(a, b), by_rule(b, a)), strict=True):
        np.testing.assert_array_equal(found, wanted)
