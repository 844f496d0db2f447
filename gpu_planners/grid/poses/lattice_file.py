"""Moves from a file of Nav2's state lattice planner (`lattice_primitives/*.json`)."""

import math
import os

import numpy as np

from ...errors import GridMapError, shown
from ...files import read_json
from .moves import FORWARD, REVERSE, SIDEWAYS, SPIN, STEP, STEP_ANGLE, Move, wrapped

MOST_BYTES = 1 << 27
MOST_HEADINGS = 72
LONGEST = 1000.0  # cells of a move
OFF = 0.02  # cells and rad that an end may be off: files are rounded to five digits


def read_lattice(path: str | os.PathLike, resolution: float) -> tuple[np.ndarray, tuple[Move, ...]]:
    """-> angles of the headings (H,) rad, rising from 0; moves as the file has them. resolution: of the map, metres

    Raises GridMapError, which names what is missing or wrong.
    """
    try:
        data = read_json(path, "lattice file", GridMapError, MOST_BYTES)
        of_grid = float(data["lattice_metadata"]["grid_resolution"])
        given = np.array(data["lattice_metadata"]["heading_angles"], float)
        entries = [
            (int(p["start_angle_index"]), int(p["end_angle_index"]), np.array(p["poses"], float))
            for p in data["primitives"]
        ]
    except GridMapError:
        raise
    except Exception as error:  # whatever is not in the file as it should be
        raise GridMapError(f"lattice file {shown(str(path))}: {type(error).__name__}: {error}") from None
    if abs(of_grid - resolution) > 1e-6:
        raise GridMapError(f"lattice file {shown(str(path))} is for {of_grid} m a cell; the map has {resolution}")
    if given.ndim != 1 or not 4 <= len(given) <= MOST_HEADINGS or not np.isfinite(given).all() or not entries:
        raise GridMapError(
            f"lattice file {shown(str(path))}: allowed: 4 to {MOST_HEADINGS} finite angles, and primitives"
        )
    order = np.argsort(given % (2 * math.pi))
    angles, number = (given % (2 * math.pi))[order], np.argsort(order)
    moves = []
    for k, (start, end, poses) in enumerate(entries):
        good = poses.ndim == 2 and poses.shape[1] == 3 and len(poses) and np.isfinite(poses).all()
        if not good or not (0 <= start < len(angles) and 0 <= end < len(angles)):
            raise GridMapError(f"lattice file {shown(str(path))}: primitive {k} has no poses or an unknown angle")
        moves.append(_move(k, path, int(number[start]), int(number[end]), poses, angles, resolution))
    return angles, tuple(moves)


def _move(k, path, start, end, poses, angles, resolution):
    cells = np.vstack([[0.0, 0.0, angles[start]], poses])
    cells[1:, :2] /= resolution
    cells[:, 2] = angles[start] + np.cumsum([0.0, *(wrapped(turn) for turn in np.diff(cells[:, 2]))])
    right, down = np.rint(cells[-1, :2])
    turned = wrapped(angles[end] - angles[start])
    target = np.array([right, down, angles[start] + turned])
    if np.abs(cells[-1] - target).max() > OFF:
        raise GridMapError(
            f"lattice file {shown(str(path))}: primitive {k} ends at {cells[-1].tolist()} (cells, rad), "
            f"{OFF} or more from a centre and its end's angle"
        )
    cells[-1] = target
    length = float(np.hypot(*np.diff(cells[:, :2], axis=0).T).sum())
    if length > LONGEST:
        raise GridMapError(
            f"lattice file {shown(str(path))}: primitive {k} is {length:g} cells long; allowed: up to {LONGEST:g}"
        )
    cells = _filled(cells)
    steps = np.diff(cells[:, :2], axis=0)
    length = float(np.hypot(*steps.T).sum())
    ahead = steps @ np.array([math.cos(angles[start]), math.sin(angles[start])])
    if length == 0:
        kind = SPIN
    elif turned == 0 and abs(ahead.sum()) < 0.9 * length:
        kind = SIDEWAYS
    else:
        kind = FORWARD if ahead[0] > 0 or ahead.sum() > 0 else REVERSE
    return Move(start, end, int(down), int(right), kind, cells, length, abs(turned))


def _filled(poses):
    """Poses with others between those that lie too far apart, on the circle that leads from one to the other."""
    found = [poses[0]]
    for a, b in zip(poses, poses[1:]):
        (x, y), turn = b[:2] - a[:2], b[2] - a[2]
        chord, count = math.hypot(x, y), 1
        if chord == 0 and turn == 0:
            continue
        count = max(1, math.ceil(chord / STEP), math.ceil(abs(turn) / STEP_ANGLE))
        for k in range(1, count):
            share = k / count
            part = share if abs(turn) < 1e-9 else math.sin(share * turn / 2) / math.sin(turn / 2)
            direction = math.atan2(y, x) - (1 - share) * turn / 2
            at = a[:2] + part * chord * np.array([math.cos(direction), math.sin(direction)])
            found.append(np.array([*at, a[2] + share * turn]))
        found.append(b)
    return np.array(found)
