"""Arrays that are kept between launches and only grow."""

from collections.abc import Callable, Hashable
from typing import Any

from numpy.typing import DTypeLike


class DeviceBuffers:
    """One-dimensional arrays by name.

    allocate: (count, dtype) -> array, such as cuda.device_array
    release: called before an array is given up, to let go of it
    """

    def __init__(self, allocate: Callable[[int, DTypeLike], Any], release: Callable[[], None] = lambda: None):
        self._allocate, self._release = allocate, release
        self._arrays: dict[Hashable, Any] = {}

    def __getitem__(self, name: Hashable) -> Any:
        return self._arrays[name]

    def __contains__(self, name: Hashable) -> bool:
        return name in self._arrays

    def room(self, name: Hashable, count: int, dtype: DTypeLike) -> Any:
        """-> the array, of at least so many items.

        Its content is lost when it grows, which it does by a quarter more than is needed.
        """
        array = self._arrays.get(name)
        if array is None or array.size < count:
            spare = 0
            if array is not None:
                spare = count // 4
                del array, self._arrays[name]  # so that the old one is free before the new one is allocated
                self._release()
            array = self._arrays[name] = self._allocate(max(count + spare, 1), dtype)
        return array

    def filled(
        self, name: Hashable, dtype: DTypeLike, write: Callable[[Any], int], check: Callable[[int], None]
    ) -> int:
        """Let write(array) fill the array -> how many items it wrote

        write: returns how many items there are, and writes nothing where these are more than the array has
        check: raises where they are too many
        """
        array = self.room(name, 1, dtype)
        while True:
            count = write(array)
            check(count)
            if count <= len(array):
                return count
            array = self.room(name, count, dtype)

    @property
    def nbytes(self) -> int:
        """Memory of all arrays in bytes."""
        return sum(array.nbytes for array in self._arrays.values())
