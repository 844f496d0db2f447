"""About how long motions along paths take: in a tenth of a millisecond, where timing one exactly, with proofs, takes
tens of milliseconds. It serves to compare paths."""

import numpy as np

JERK_TIME_S = 0.1  # default jerk limit: full acceleration is reached in this time
AWAY = 16 / 3  # a corner takes AWAY * deviation / |u_next - u| of its legs
THROUGH = 0.7  # of the speed at which an arc through a corner would need full acceleration
NONE = 1e-7  # rad or m: a leg that is no longer is none


def estimated_duration(
    path: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray, deviation: float = 0.1
) -> float:
    """Seconds, about a tenth less than `time_parameterize` takes for the path (K, dof) with rounded corners.

    velocity, acceleration: (dof,) limits, per s and s^2; deviation: how far the motion leaves the path at corners
    """
    path = np.asarray(path, dtype=float)
    path = path[distinct(path)]
    if len(path) < 2:
        return 0.0
    away = np.full((1, len(path) - 2), deviation)
    return float(estimated_durations(path[None], away, velocity, acceleration)[0][0])


def distinct(path: np.ndarray) -> np.ndarray:
    """(K,) bool: the rows of a path (K, dof) but those that repeat the one before; its end stays."""
    keep = np.append(True, np.linalg.norm(np.diff(path, axis=0), axis=1) > NONE)[: len(path)]
    if keep.sum() > 1 and not keep[-1]:
        keep[np.flatnonzero(keep)[-1]], keep[-1] = False, True
    return keep


def estimated_durations(
    paths: np.ndarray, away: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`estimated_duration` of paths (M, K, dof) -> (M,) seconds; (M, K - 2) what each corner takes of its legs.

    away: (M, K - 2) how far the motion leaves the path at each corner. A path that has fewer than K corners repeats its
    end

    Each leg is run through with trapezoids of velocity between the speeds that its corners allow.
    """
    steps = np.diff(paths, axis=1)
    lengths = np.sqrt((steps**2).sum(axis=2))
    there = lengths > NONE
    lengths = np.where(there, lengths, 0.0)
    ways = steps / np.where(there, lengths, 1.0)[:, :, None]
    shares = np.maximum(np.abs(ways), 1e-12)
    most, rise = (velocity / shares).min(axis=2), (acceleration / shares).min(axis=2)

    turns = np.maximum(np.abs(np.diff(ways, axis=1)), 1e-12)
    room = np.minimum(lengths[:, :-1], lengths[:, 1:]) / 2
    cuts = np.minimum(away * AWAY / np.sqrt((turns**2).sum(axis=2)), room)
    through = THROUGH * np.sqrt((acceleration / turns).min(axis=2) * 2 * cuts)
    speeds, gained = np.zeros((len(paths), paths.shape[1])), 2 * rise * lengths  # gained: of the square of the speed
    speeds[:, 1:-1] = np.minimum(through, np.minimum(most[:, :-1], most[:, 1:]))
    for i in range(lengths.shape[1]):
        speeds[:, i + 1] = np.minimum(speeds[:, i + 1], np.sqrt(speeds[:, i] ** 2 + gained[:, i]))
    for i in reversed(range(lengths.shape[1])):
        speeds[:, i] = np.minimum(speeds[:, i], np.sqrt(speeds[:, i + 1] ** 2 + gained[:, i]))

    begin, end = speeds[:, :-1], speeds[:, 1:]
    peak = np.minimum(most, np.sqrt((gained + begin**2 + end**2) / 2))
    level = np.maximum(lengths - (2 * peak**2 - begin**2 - end**2) / (2 * rise), 0.0)
    jerks = JERK_TIME_S / 2 * ((peak > begin + 1e-3) + (peak > end + 1e-3).astype(float))
    seconds = (2 * peak - begin - end) / rise + level / np.maximum(peak, 1e-300) + jerks
    return np.where(there, seconds, 0.0).sum(axis=1), cuts
