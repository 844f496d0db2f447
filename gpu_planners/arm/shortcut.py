"""Shorten a path by replacing stretches of it with straight motions.

Rounds of many candidates at once, so that they fill a GPU: each candidate cuts from one point of the path to
another (Geraerts and Overmars, IJRR 2007, section 4.1); those that are free and do not overlap are applied, the
most saving ones first.
"""

import numpy as np

CANDIDATES = 24
LEAST_SAVING = 1e-3  # of the path's length


def shortcut(path, checker, rounds, seed):
    """path: (K, dof) -> a path with the same ends, no longer and free by the checker's MotionCheck."""
    rng = np.random.default_rng([seed, 1])
    path = np.asarray(path, dtype=np.float64)
    for _ in range(rounds):
        if len(path) < 3:
            break
        lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)
        at = np.concatenate([[0.0], np.cumsum(lengths)])
        cuts = np.sort(rng.uniform(0, at[-1], (CANDIDATES, 2)), axis=1)
        corners = rng.random((CANDIDATES, 2)) < 0.3  # some cuts begin or end at a corner
        nearest_corner = at[np.abs(cuts[:, :, None] - at).argmin(axis=2)]
        cuts = np.where(corners, nearest_corner, cuts)
        q_from, q_to = point_at(path, at, cuts[:, 0]), point_at(path, at, cuts[:, 1])
        savings = cuts[:, 1] - cuts[:, 0] - np.linalg.norm(q_to - q_from, axis=1)
        useful = np.flatnonzero(savings > LEAST_SAVING * at[-1])
        if not len(useful):
            continue
        useful = useful[checker.motions_valid(q_from[useful], q_to[useful])]
        path = _apply(path, at, cuts, q_from, q_to, useful[np.argsort(-savings[useful], kind="stable")])
    return path


def point_at(path, at, s):
    """Points (n, dof) at the arc lengths s (n,) of a path whose corners are at the arc lengths `at` (K,)."""
    i = np.clip(np.searchsorted(at, s, side="right") - 1, 0, len(path) - 2)
    t = (s - at[i]) / np.maximum(at[i + 1] - at[i], 1e-12)
    return path[i] + t[:, None] * (path[i + 1] - path[i])


def _apply(path, at, cuts, q_from, q_to, order):
    taken = []
    for c in order:
        if all(cuts[c, 1] <= cuts[d, 0] or cuts[c, 0] >= cuts[d, 1] for d in taken):
            taken.append(c)
    for c in sorted(taken, key=lambda c: -cuts[c, 0]):  # from the end, so that arc lengths before stay true
        path = np.concatenate([path[at < cuts[c, 0] - 1e-9], q_from[c][None], q_to[c][None], path[at > cuts[c, 1] + 1e-9]])
        at = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    return path
