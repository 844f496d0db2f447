"""About how long a motion along a path takes: in a tenth of a millisecond, where timing it exactly, with proofs, takes
tens of milliseconds. It serves to compare paths."""

import numpy as np

JERK_TIME_S = 0.1  # default jerk limit: full acceleration is reached in this time
AWAY = 16 / 3  # a corner takes AWAY * deviation / |u_next - u| of its legs
THROUGH = 0.7  # of the speed at which an arc through a corner would need full acceleration


def estimated_duration(
    path: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray, deviation: float = 0.1
) -> float:
    """Seconds, about a tenth less than `time_parameterize` takes for the path (K, dof) with rounded corners.

    velocity, acceleration: (dof,) limits, per s and s^2; deviation: how far the motion leaves the path at corners

    Each leg is run through with trapezoids of velocity between the speeds that its corners allow.
    """
    steps = np.diff(np.asarray(path, dtype=float), axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    steps, lengths = steps[lengths > 1e-9], lengths[lengths > 1e-9]
    if not len(lengths):
        return 0.0
    ways = steps / lengths[:, None]
    most = (velocity / np.maximum(np.abs(ways), 1e-12)).min(axis=1)
    rise = (acceleration / np.maximum(np.abs(ways), 1e-12)).min(axis=1)

    turns = np.maximum(np.abs(np.diff(ways, axis=0)), 1e-12)
    room = np.minimum(lengths[:-1], lengths[1:]) / 2
    cuts = np.minimum(deviation * AWAY / np.linalg.norm(turns, axis=1), room)
    through = THROUGH * np.sqrt((acceleration / turns).min(axis=1) * 2 * cuts)
    speeds = np.zeros(len(lengths) + 1)
    speeds[1:-1] = np.minimum(through, np.minimum(most[:-1], most[1:]))
    for i in range(len(lengths)):
        speeds[i + 1] = min(speeds[i + 1], np.sqrt(speeds[i] ** 2 + 2 * rise[i] * lengths[i]))
    for i in reversed(range(len(lengths))):
        speeds[i] = min(speeds[i], np.sqrt(speeds[i + 1] ** 2 + 2 * rise[i] * lengths[i]))

    begin, end = speeds[:-1], speeds[1:]
    peak = np.minimum(most, np.sqrt(rise * lengths + (begin**2 + end**2) / 2))
    level = np.maximum(lengths - (2 * peak**2 - begin**2 - end**2) / (2 * rise), 0.0)
    jerks = JERK_TIME_S / 2 * ((peak > begin + 1e-3) + (peak > end + 1e-3).astype(float))
    return float(((2 * peak - begin - end) / rise + level / peak + jerks).sum())
