"""The packed scenes of a batch, one after the other on a device."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ...spaces.interface import Packed

MOST_SPARE = 1 << 27  # numbers that a buffer has room for beyond what was asked for


class SceneStore:
    """Scenes that stay on a device until there is no room for others, so that the next batch of the same scenes, and
    the next part of a batch, need not send them again. Not for several threads at once.

    allocate: allocate(count, dtype) -> an array of the device
    """

    def __init__(self, allocate: Callable[[int, type], Any]) -> None:
        self._allocate = allocate
        self._places: dict[int, tuple[Packed, tuple[int, ...]]] = {}  # a scene that is kept keeps its id
        self._buffers: tuple = ()
        self._used: tuple[int, ...] = (0, 0)
        self._room: tuple[int, ...] = (0, 0)

    def placed(self, scenes: Mapping[int, Packed]) -> tuple[Any, Any, dict[int, tuple[int, ...]]]:
        """Bring scenes, by their id, to the device -> floats, ints on the device; {id: (first float, first int)} of at
        least these."""
        missing = {key: scene for key, scene in scenes.items() if key not in self._places}
        if not self._fits(missing):
            self._places, self._used, missing = {}, (0, 0), dict(scenes)
            if not self._fits(missing):
                self._buffers = ()  # given back before larger ones are asked for
                self._room = tuple(size + min(size, MOST_SPARE) for size in sizes_of(missing.values()))
                self._buffers = tuple(map(self._allocate, self._room, (np.float32, np.int32)))
        if missing:
            self._send(missing)
        return *self._buffers, {key: place for key, (_, place) in self._places.items()}

    def _fits(self, scenes):
        return all(used + size <= room for used, size, room in zip(self._used, sizes_of(scenes.values()), self._room))

    def _send(self, scenes):
        for part, buffer, first in zip(zip(*scenes.values()), self._buffers, self._used):
            together = np.concatenate(part)
            buffer[first : first + len(together)].copy_to_device(together)
        for key, scene in scenes.items():
            self._places[key] = scene, self._used
            self._used = tuple(used + len(part) for used, part in zip(self._used, scene))


def sizes_of(scenes: Iterable[Packed]) -> list[int]:
    """How many floats, and how many ints, scenes have."""
    return [sum(map(len, part)) for part in zip(*scenes)]
