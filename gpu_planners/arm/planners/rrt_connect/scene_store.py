"""The scenes of a batch on a device: one after the other, and behind them, once, what they share."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

from ...spaces.interface import Packed, SceneParts

MOST_SPARE = 1 << 27  # numbers that a buffer has room for beyond what was asked for
GREATEST = (1 << 31) - 1  # of an int32: places are such


class SceneStore:
    """Scenes that stay on a device until there is no room for others, so that the next batch of the same scenes, and
    the next part of a batch, need not send them again. Not for several threads at once.

    allocate: allocate(count, dtype) -> an array of the device
    """

    def __init__(self, allocate: Callable[[int, type], Any]) -> None:
        self._allocate = allocate
        self._places: dict[int, tuple[Packed, np.ndarray]] = {}  # a part that is kept keeps its id
        self._buffers: tuple = ()
        self._room = self._end = self._top = np.zeros(2, np.int64)  # from the end of scenes to the top there is room

    def placed(self, scenes: Iterable[SceneParts]) -> tuple[Any, Any, dict[int, tuple[int, ...]]]:
        """Bring scenes to the device -> floats, ints on the device; {id of its own part: (first float, first int)} of
        at least these. None has more than GREATEST numbers of a kind, nor have all."""
        scenes = list(scenes)
        missing = self._missing(scenes)
        if not self._fits(missing):
            self._places, self._end, self._top = {}, np.zeros(2, np.int64), self._room
            missing = self._missing(scenes)
            if not self._fits(missing):
                self._buffers = ()  # given back before larger ones are asked for
                needed = sizes_of(missing.values())
                self._room = self._top = np.minimum(needed + np.minimum(needed, MOST_SPARE), GREATEST)
                self._buffers = tuple(map(self._allocate, self._room.tolist(), (np.float32, np.int32)))
        if missing:
            self._send(missing)
        return *self._buffers, {key: tuple(place.tolist()) for key, (_, place) in self._places.items()}

    def _missing(self, scenes):
        """Those that are not there, by the id of their own part. What they share may be there."""
        return {id(scene.own): scene for scene in scenes if id(scene.own) not in self._places}

    def _fits(self, missing):
        return (self._end + sizes_of(missing.values(), self._places) <= self._top).all()

    def _send(self, missing):
        for shared in _shared(missing.values(), self._places).values():
            self._top = self._top - _size(shared)
            self._copy(shared, self._top)
            self._places[id(shared)] = shared, self._top
        first, parts = self._end, []
        for key, (own, shared, ints_of) in missing.items():
            parts.append(Packed(own.floats, ints_of(own.ints, *(self._places[id(shared)][1] - self._end).tolist())))
            self._places[key] = own, self._end
            self._end = self._end + _size(own)
        self._copy(Packed(*map(np.concatenate, zip(*parts))), first)

    def _copy(self, packed, place):
        for buffer, part, first in zip(self._buffers, packed, place.tolist()):
            if len(part):
                buffer[first : first + len(part)].copy_to_device(part)


def sizes_of(scenes: Collection[SceneParts], there: Iterable[int] = ()) -> np.ndarray:
    """How many floats, and how many ints, scenes have, (2,). there: ids of shared parts that do not count"""
    parts = [scene.own for scene in scenes] + list(_shared(scenes, there).values())
    return np.array([_size(part) for part in parts], dtype=np.int64).reshape(-1, 2).sum(axis=0)


def _shared(scenes, there):
    return {id(scene.shared): scene.shared for scene in scenes if id(scene.shared) not in there}


def _size(packed):
    return np.array([len(packed.floats), len(packed.ints)])
