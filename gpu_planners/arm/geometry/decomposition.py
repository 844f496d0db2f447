"""Convex pieces that together cover a mesh.

One hull is kept where its surface stays close to the mesh. Else the mesh is cut into slabs along one axis and
each slab is hulled. Slabs always cover: through any point of the solid runs a line inside its slab that meets
the surface on both sides, so the point lies in the hull of the slab's surface. (Approximate decomposers such
as coacd may leave slivers out.) Where to cut is greedy: the worst slab is cut where the two hulls are smallest.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import tempfile
from typing import TYPE_CHECKING, NamedTuple

import lazy_loader
import numpy as np
from numpy.typing import ArrayLike

from ...code_cache import cache_folder, open_to
from ...errors import ObstacleError
from ...files import read_arrays
from .meshes import check_mesh
from .shapes import ConvexShape

if TYPE_CHECKING:
    import trimesh
    from scipy import spatial
else:  # take half a second, and only meshes need them
    trimesh, spatial = lazy_loader.load("trimesh"), lazy_loader.load("scipy.spatial", suppress_warning=True)

log = logging.getLogger(__name__)

DEFAULT_TOLERANCE = 0.02  # m; real arms' collision meshes fall in two groups, below 18 mm and above 27 mm
MAX_PIECES = 8
CACHE_VERSION = 1  # part of the cache key: raise it when the cutting changes
CUTS = np.arange(1, 12) / 12  # where a slab may be cut, as fractions of its width
LEAST_GAIN = 0.02  # a cut must save this fraction of the whole mesh's hull volume
SAMPLE_SPACING = 0.002  # m, of the surface samples that distances are measured to
MAX_SAMPLES = 100_000
MOST_CACHED_BYTES = 1 << 28  # of the pieces of a mesh
MAX_FINE_FACES = 30_000  # of a hull, the largest ones, that are looked at in 28 points each; the others in one
CHUNK = 2**16  # sample-to-facet distances at a time: 512 KiB, which stay in the cache
MOST_DISTANCES = 10**9  # of samples to facets that `uncovered` computes, a few seconds


class _Slab(NamedTuple):
    lower: float  # bounds along the axis, metres; infinite at the ends of the mesh
    upper: float
    hull: spatial.ConvexHull
    excess: float


def convex_pieces(
    name: str, mesh: trimesh.Trimesh, pose: ArrayLike, tolerance: float = DEFAULT_TOLERANCE
) -> list[ConvexShape]:
    """Shapes that cover a mesh: `name`, or `name#0`, `name#1`, ... when one hull is too coarse.

    pose: (4, 4) pose of the mesh's frame, metres
    tolerance: m, how far a hull's surface may stick out from the mesh before it is cut; inf keeps one hull
    Raises ObstacleError when the mesh is flat (see meshes.thickened), malformed or larger than meshes.MOST_TRIANGLES.
    """
    check_mesh(name, mesh)
    whole = ConvexShape.convex_hull(name, mesh.vertices, pose)
    if not np.isfinite(tolerance) or np.ptp(mesh.vertices, axis=0).max() <= tolerance:
        return [whole]
    key = _cache_key(mesh, tolerance)
    pieces = _read_cache(key)
    if pieces is None:
        pieces = slab_hulls(mesh, tolerance)
        _write_cache(key, pieces)
    if len(pieces) == 1:
        return [whole]
    return [ConvexShape.convex_hull(f"{name}#{i}", points, pose) for i, points in enumerate(pieces)]


def uncovered(mesh: trimesh.Trimesh, pieces: list[np.ndarray], slack: float = 1e-6) -> np.ndarray:
    """Surface samples (N, 3) of the mesh that lie outside every piece [(V, 3), ...] by more than slack, metres.

    Where the pieces have very many facets not every sample is looked at (MOST_DISTANCES).
    """
    samples, facets = _surface_samples(mesh), [spatial.ConvexHull(points).equations for points in pieces]
    samples = samples[:: 1 + len(samples) * sum(map(len, facets)) // MOST_DISTANCES]
    for equations in facets:
        rows = max(1, CHUNK // len(equations))
        blocks = [samples[start : start + rows] for start in range(0, len(samples), rows)]
        outside = ((block @ equations[:, :3].T + equations[:, 3]).max(axis=1) > slack for block in blocks)
        samples = samples[np.concatenate([np.zeros(0, bool), *outside])]
    return samples


def slab_hulls(mesh: trimesh.Trimesh, tolerance: float) -> list[np.ndarray]:
    """[(V, 3) vertices of each piece, in the mesh's frame]; one piece where one hull is close enough."""
    tree = spatial.cKDTree(_surface_samples(mesh))
    whole = _slab(mesh, 0, tree, -np.inf, np.inf, tolerance)
    if whole.excess <= tolerance:
        return [whole.hull.points[whole.hull.vertices]]

    def rank(slabs):
        close = max(slab.excess for slab in slabs) <= tolerance
        return not close, len(slabs) if close else 0, sum(slab.hull.volume for slab in slabs)

    best = min((_cut_along(mesh, axis, tree, whole, tolerance) for axis in range(3)), key=rank)
    pieces = [slab.hull.points[slab.hull.vertices] for slab in best]
    if len(uncovered(mesh, pieces)):
        log.warning("slabs leave a part of a mesh uncovered, which cannot be for finite vertices; keeping one hull")
        return [mesh.vertices[spatial.ConvexHull(mesh.vertices).vertices]]
    return pieces


def _cut_along(mesh, axis, tree, whole, tolerance):
    """Slabs along one axis, cut until each is close to the mesh, a cut gains little, or there are MAX_PIECES."""
    slabs, finished = [whole], set()
    while len(slabs) < MAX_PIECES:
        open_slabs = [i for i, slab in enumerate(slabs) if slab.excess > tolerance and slab.lower not in finished]
        if not open_slabs:
            break
        worst = max(open_slabs, key=lambda i: slabs[i].excess)
        slab = slabs[worst]
        coordinates = slab.hull.points[:, axis]
        halves = [
            (_slab(mesh, axis, None, slab.lower, at), _slab(mesh, axis, None, at, slab.upper))
            for at in coordinates.min() + CUTS * np.ptp(coordinates)
        ]
        halves = [pair for pair in halves if None not in pair]
        pair = min(halves, key=lambda pair: pair[0].hull.volume + pair[1].hull.volume, default=None)
        gain = slab.hull.volume - pair[0].hull.volume - pair[1].hull.volume if pair else 0.0
        if gain < LEAST_GAIN * whole.hull.volume:
            finished.add(slab.lower)
            continue
        slabs[worst : worst + 1] = [_slab(mesh, axis, tree, half.lower, half.upper, tolerance) for half in pair]
    return slabs


def _slab(mesh, axis, tree, lower, upper, tolerance=0.0):
    """The slab lower <= x[axis] <= upper of the surface, hulled; None when it is flat. tree None: excess unknown."""
    points, edges = mesh.vertices, mesh.edges_unique
    x = points[:, axis]
    parts = [points[(x >= lower) & (x <= upper)]]
    for at in (lower, upper):
        if np.isfinite(at):
            p, q = points[edges[:, 0]], points[edges[:, 1]]
            cut = (p[:, axis] < at) != (q[:, axis] < at)
            p, q = p[cut], q[cut]
            crossing = p + ((at - p[:, axis]) / (q[:, axis] - p[:, axis]))[:, None] * (q - p)
            crossing[:, axis] = at
            parts.append(crossing)
    try:
        hull = spatial.ConvexHull(np.concatenate(parts))
    except (spatial.QhullError, ValueError):
        return None
    excess = np.nan if tree is None else _excess(hull, tree, axis, lower, upper, tolerance)
    return _Slab(lower, upper, hull, excess)


def _excess(hull, tree, axis, lower, upper, tolerance):
    """Greatest distance from the hull's surface to the mesh; where that is below `tolerance`, this or less.

    Faces on a cut lie inside the solid and do not count, nor do faces whose edges are all shorter than `tolerance`:
    their corners lie on the mesh.
    """
    faces = hull.points[hull.simplices]
    along = faces[:, :, axis]
    faces = faces[~((np.abs(along - lower) < 1e-9).all(axis=1) | (np.abs(along - upper) < 1e-9).all(axis=1))]
    longest = np.sqrt(((faces - np.roll(faces, 1, axis=1)) ** 2).sum(axis=2).max(axis=1, initial=0.0))
    faces = faces[longest > tolerance]
    if not len(faces):
        return 0.0
    if len(faces) > MAX_FINE_FACES:
        faces = faces[np.argsort(-longest[longest > tolerance], kind="stable")]
    # midpoints of a twice-subdivided face: the largest distance is reached in the middle of large faces
    weights = np.array([(i, j, 6 - i - j) for i in range(7) for j in range(7 - i)]) / 6
    samples = np.einsum("wk,fkx->fwx", weights, faces[:MAX_FINE_FACES]).reshape(-1, 3)
    samples = np.concatenate([samples, faces[MAX_FINE_FACES:].mean(axis=1)])
    return float(tree.query(samples)[0].max())


def _surface_samples(mesh):
    count = int(np.clip(mesh.area / SAMPLE_SPACING**2, 2000, MAX_SAMPLES))
    return np.vstack([mesh.vertices, trimesh.sample.sample_surface(mesh, count, seed=0)[0]])


def _cache_key(mesh, tolerance):
    settings = (CACHE_VERSION, tolerance, MAX_PIECES, LEAST_GAIN, SAMPLE_SPACING, MAX_SAMPLES, CUTS.tolist())
    content = hashlib.sha256(repr(settings).encode())
    content.update(np.ascontiguousarray(mesh.vertices, np.float64).tobytes())
    content.update(np.ascontiguousarray(mesh.faces, np.int64).tobytes())
    return content.hexdigest()[:32]


@functools.cache
def _is_own(folder):
    """Can nobody else put smaller pieces there, with which a robot would be called free? Told once."""
    if who := open_to(folder):
        log.warning("convex pieces are cut anew and not kept: %s", who)
    return not who


def _read_cache(key):
    folder = cache_folder()
    if not _is_own(folder):
        return None
    try:
        stored = read_arrays(folder / f"pieces-{key}.npz", "pieces", ObstacleError, MOST_CACHED_BYTES)
        pieces = np.split(stored["vertices"], stored["ends"][:-1])
    except (KeyError, ValueError, IndexError, TypeError):  # absent, or damaged
        return None
    return pieces if all(len(points) >= 4 and np.isfinite(points).all() for points in pieces) else None


def _write_cache(key, pieces):
    """Write aside and rename, so that no reader sees half a file. Without a writable cache the work is redone."""
    folder = cache_folder()
    if not _is_own(folder):
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".tmp", delete=False) as file:
            np.savez(file, vertices=np.concatenate(pieces), ends=np.cumsum([len(points) for points in pieces]))
        os.replace(file.name, folder / f"pieces-{key}.npz")
    except OSError as error:
        log.info("the cache of convex pieces cannot be written: %s", error)
