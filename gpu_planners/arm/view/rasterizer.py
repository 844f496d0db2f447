"""A small software renderer for pictures of scenes: triangles in layers, depth-sorted in every pixel.

Each layer keeps its nearest surface; layers are then blended back to front, pixel by pixel, so that transparent
bodies that pass through one another look right, which sorting whole faces does not achieve.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter

from ...device import njit

SUPERSAMPLING = 2
BAND = 100  # rows of the picture that are drawn at a time, which bounds the memory
LIGHT = np.array([0.35, -0.5, 0.8]) / np.linalg.norm([0.35, -0.5, 0.8])  # in camera axes right, forward, up
NEARER = 1.002  # a surface this much nearer hides another: coinciding ones show the first, without speckle
INK = np.array([0.13, 0.15, 0.19])
SKY = np.array([[0.985, 0.988, 0.992], [0.86, 0.885, 0.915]])  # top and bottom of the picture


@dataclass(frozen=True)
class Layer:
    """Triangles of one body or group, blended as one surface.

    triangles: (T, 3, 3) corners in the root frame, metres, counter-clockwise seen from outside
    colours: (T, 3) in 0..1;  opacity: 0..1
    casts_shadow: does it darken the ground?
    shows_through: its opacity where nearer bodies hide it
    """

    triangles: np.ndarray
    colours: np.ndarray
    opacity: float = 1.0
    casts_shadow: bool = True
    shows_through: float = 0.0


@dataclass(frozen=True)
class Camera:
    """A pinhole looking at `target` (3,) from `distance` metres; azimuth and elevation in rad, about z and upwards."""

    target: np.ndarray
    distance: float
    azimuth: float
    elevation: float
    focal: float = 2.2  # in half picture heights

    @property
    def axes(self) -> np.ndarray:
        """(3, 3) rows: right, forward, up in the root frame."""
        c, s = np.cos(self.azimuth), np.sin(self.azimuth)
        ce, se = np.cos(self.elevation), np.sin(self.elevation)
        forward = -np.array([c * ce, s * ce, se])
        right = np.array([-s, c, 0.0])
        return np.array([right, forward, np.cross(right, forward)])

    @property
    def eye(self) -> np.ndarray:
        """(3,) where the camera stands, metres in the root frame."""
        return self.target - self.distance * self.axes[1]

    def project(self, points: np.ndarray, width: int, height: int) -> np.ndarray:
        """points: (..., 3) metres -> (..., 3): column, row in pixels, 1 / depth (0 behind the camera)."""
        local = (points - self.eye) @ self.axes.T
        depth = np.maximum(local[..., 1], 1e-3)
        scale = self.focal * height / 2 / depth
        inverse = np.where(local[..., 1] > 1e-2, 1 / depth, 0.0)
        return np.stack([width / 2 + scale * local[..., 0], height / 2 - scale * local[..., 2], inverse], axis=-1)


def render(layers: Sequence[Layer], camera: Camera, size: tuple[int, int], ground: float = 0.0) -> np.ndarray:
    """Picture (height, width, 3) float in 0..1 of layers over a ground plane at z = `ground` metres.

    size: width and height, pixels. It is drawn in bands of rows, with one more row on each side for outlines.
    """
    (width, height), s = size, SUPERSAMPLING
    projected = [camera.project(layer.triangles, s * width, s * height) for layer in layers]
    colours = np.concatenate([_shade(layer, camera) for layer in layers])
    normals = np.concatenate([_normals(layer.triangles) for layer in layers])
    first = np.r_[0, np.cumsum([len(layer.triangles) for layer in layers])][:-1]
    opacity = np.array([layer.opacity for layer in layers])
    through = np.array([layer.shows_through for layer in layers])
    picture = _background(camera, width, height, ground, _shadow(layers, ground))
    for top in range(0, height, BAND):
        samples = picture[top : top + BAND].repeat(s, axis=0).repeat(s, axis=1)
        inverse = np.zeros((len(layers), len(samples) + 2, s * width), np.float32)
        index = np.zeros(inverse.shape, np.int32)
        for k, triangles in enumerate(projected):
            _fill(triangles, inverse[k], index[k], s * top - 1)
        _blend(samples, inverse, index, first, colours, normals, opacity, through)
        picture[top : top + BAND] = samples.reshape(-1, s, width, s, 3).mean(axis=(1, 3))
    return np.clip(picture, 0, 1)


def visible_share(front: Layer, layers: Sequence[Layer], camera: Camera, size: tuple[int, int]) -> float:
    """Share of the pixels of `front` that no other layer hides from this camera."""
    own = _depths(front, camera, *size)
    others = np.max([_depths(layer, camera, *size) for layer in layers], axis=0) if layers else np.zeros_like(own)
    return float((own > others).sum()) / max(int((own > 0).sum()), 1)


def _depths(layer, camera, width, height):
    """Inverse depth (height, width) float32 of a layer, 0 where empty."""
    inverse, index = np.zeros((height, width), np.float32), np.zeros((height, width), np.int32)
    _fill(camera.project(layer.triangles, width, height), inverse, index, 0)
    return inverse


@njit
def _fill(triangles, inverse, index, first_row):
    """Nearest triangle of each pixel; row 0 of the buffers is row `first_row` of the picture."""
    height, width = inverse.shape
    for t in range(len(triangles)):
        x0, y0, w0 = triangles[t, 0, 0], triangles[t, 0, 1], triangles[t, 0, 2]
        x1, y1, w1 = triangles[t, 1, 0], triangles[t, 1, 1], triangles[t, 1, 2]
        x2, y2, w2 = triangles[t, 2, 0], triangles[t, 2, 1], triangles[t, 2, 2]
        area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
        if area == 0 or w0 <= 0 or w1 <= 0 or w2 <= 0:
            continue
        left, right = max(0, int(min(x0, x1, x2))), min(width - 1, int(max(x0, x1, x2)) + 1)
        y0, y1, y2 = y0 - first_row, y1 - first_row, y2 - first_row
        top, bottom = max(0, int(min(y0, y1, y2))), min(height - 1, int(max(y0, y1, y2)) + 1)
        for row in range(top, bottom + 1):
            y = row + 0.5
            for column in range(left, right + 1):
                x = column + 0.5
                a = ((x1 - x) * (y2 - y) - (x2 - x) * (y1 - y)) / area
                b = ((x2 - x) * (y0 - y) - (x0 - x) * (y2 - y)) / area
                c = 1.0 - a - b
                if a >= 0 and b >= 0 and c >= 0:
                    w = a * w0 + b * w1 + c * w2
                    if w > NEARER * inverse[row, column]:
                        inverse[row, column], index[row, column] = w, t


def _normals(triangles):
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    return normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)


def _shade(layer, camera):
    """(T, 3) colour of each triangle under a key light, a fill light and a little gloss."""
    axes = camera.axes
    normal, light = _normals(layer.triangles), LIGHT @ axes
    view = camera.eye - layer.triangles.mean(axis=1)
    view /= np.linalg.norm(view, axis=1, keepdims=True)
    half = light + view
    half /= np.linalg.norm(half, axis=1, keepdims=True)
    key = np.clip(normal @ light, 0, 1)[:, None]
    sky = (0.5 + 0.5 * normal[:, 2])[:, None]
    gloss = np.clip((normal * half).sum(1), 0, 1)[:, None] ** 40
    return np.clip(layer.colours * (0.42 + 0.26 * sky + 0.5 * key) + 0.14 * gloss, 0, 1)


@njit
def _blend(samples, inverse, index, first, colours, normals, opacity, through):
    """Blend the layers over the background in `samples` (rows, width, 3), far to near in each of them.

    inverse, index: (layers, rows + 2, width); first: (layers,) number of each layer's first triangle
    """
    order = np.zeros(len(inverse), np.int32)
    for row in range(samples.shape[0]):
        for x in range(samples.shape[1]):
            y, sample = row + 1, samples[row, x]
            count = _sort_layers(inverse, y, x, order)
            for k in range(count):
                layer = order[k]
                colour = colours[first[layer] + index[layer, y, x]]
                ink = _ink(inverse[layer], index[layer], normals, first[layer], y, x)
                a = opacity[layer] + (1 - opacity[layer]) * 0.7 * ink
                for c in range(3):
                    sample[c] += a * (colour[c] * (1 - ink) + INK[c] * ink - sample[c])
            for k in range(count - 1):
                layer = order[k]
                colour = colours[first[layer] + index[layer, y, x]]
                for c in range(3):
                    sample[c] += through[layer] * (colour[c] - sample[c])


@njit
def _sort_layers(inverse, y, x, order):
    """Write the layers that cover a sample into `order`, the farthest first; -> how many they are."""
    count = 0
    for layer in range(len(inverse)):
        depth = inverse[layer, y, x]
        if depth > 0:
            k = count
            while k > 0 and NEARER * inverse[order[k - 1], y, x] > depth:  # coinciding: the first stays on top
                order[k] = order[k - 1]
                k -= 1
            order[k] = layer
            count += 1
    return count


@njit
def _ink(inverse, index, normals, first, y, x):
    """Strength of an outline, or 0: at silhouettes, and at creases sharper than about 40 degrees."""
    own, triangle = inverse[y, x], first + index[y, x]
    for dy, dx in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        v, u = y + dy, x + dx
        if u < 0 or u >= inverse.shape[1]:
            continue
        other = inverse[v, u]
        if other == 0:
            return 0.55
        beside = first + index[v, u]
        if beside == triangle:
            continue
        cosine = 0.0
        for k in range(3):
            cosine += normals[triangle, k] * normals[beside, k]
        if cosine < 0.75 or abs(own - other) > 0.03 * max(own, other):
            return 0.55
    return 0.0


def _shadow(layers, ground, cells=500):
    """The function (x, y) -> soft contact shadow on the ground: what lies above each place, blurred."""
    casting = [layer.triangles for layer in layers if layer.casts_shadow and layer.opacity > 0.5]
    points = np.concatenate(casting).reshape(-1, 3) if casting else np.zeros((1, 3))
    low, high = points[:, :2].min(0) - 0.5, points[:, :2].max(0) + 0.5
    scale = cells / (high - low).max()
    mask, index = np.zeros((cells, cells), np.float32), np.zeros((cells, cells), np.int32)
    for triangles in casting:
        flat = np.ones_like(triangles)
        flat[..., :2] = (triangles[..., :2] - low) * scale
        flat[..., 2] = np.exp(-np.maximum(triangles[..., 2] - ground, 0) / 0.6) + 1e-3
        _fill(flat, mask, index, 0)
    mask = 0.75 * gaussian_filter(mask, 0.05 * scale) + 0.25 * gaussian_filter(mask, 0.015 * scale)

    def at(x, y):
        column, row = ((x - low[0]) * scale).astype(int), ((y - low[1]) * scale).astype(int)
        inside = (column >= 0) & (row >= 0) & (column < cells) & (row < cells)
        return np.where(inside, mask[np.clip(row, 0, cells - 1), np.clip(column, 0, cells - 1)], 0)

    return at


def _background(camera, width, height, ground, shadow):
    """(height, width, 3) sky gradient and ground with a grid every 0.25 m, fading with distance."""
    right, forward, up = camera.axes
    v, h = np.mgrid[0:height, 0:width] + 0.5
    sky = SKY[0] + (SKY[1] - SKY[0]) * (v / height)[..., None]
    scale = camera.focal * height / 2
    ray = forward + ((h - width / 2) / scale)[..., None] * right + ((height / 2 - v) / scale)[..., None] * up
    hits = ray[..., 2] < -1e-3
    reach = np.where(hits, (ground - camera.eye[2]) / np.where(hits, ray[..., 2], -1.0), 0)
    x, y = camera.eye[0] + reach * ray[..., 0], camera.eye[1] + reach * ray[..., 1]
    away = np.hypot(x - camera.target[0], y - camera.target[1])
    fade = np.where(hits, np.exp(-((away / (0.75 * camera.distance)) ** 2)), 0)
    colour = sky * (1 - fade[..., None]) + np.array([0.955, 0.958, 0.962]) * fade[..., None]
    per_pixel = reach / scale  # metres
    for spacing, strength in ((0.25, 0.05), (1.0, 0.10)):
        near = np.minimum(np.abs((x / spacing + 0.5) % 1 - 0.5), np.abs((y / spacing + 0.5) % 1 - 0.5)) * spacing
        line = np.clip(1.5 - near / np.maximum(per_pixel, 1e-6), 0, 1)
        colour = colour * (1 - (strength * line * fade)[..., None])
    return colour * (1 - (0.42 * shadow(x, y) * fade)[..., None])
