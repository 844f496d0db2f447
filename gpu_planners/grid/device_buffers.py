"""Arrays on a CUDA device that are kept between launches and only grow."""

from .agents import check_words


class DeviceBuffers:
    """One-dimensional arrays by name.

    allocate: (count, dtype) -> array, such as cuda.device_array
    """

    def __init__(self, allocate):
        self._allocate, self._arrays = allocate, {}

    def __getitem__(self, name):
        return self._arrays[name]

    def __contains__(self, name):
        return name in self._arrays

    def room(self, name, count, dtype):
        """-> the array, of at least so many items; its content is lost when it grows, then by a quarter more than is needed"""
        array = self._arrays.get(name)
        if array is None or array.size < count:
            spare = 0 if array is None else count // 4
            del array  # so that the old one is free before the new one is allocated
            self._arrays.pop(name, None)
            array = self._arrays[name] = self._allocate(max(count + spare, 1), dtype)
        return array

    def filled(self, name, dtype, write):
        """The array as write(array) has filled it -> how many items it wrote.

        write returns how many there are, and writes nothing where these are more than the array has or MOST_WORDS.
        """
        array = self.room(name, 1, dtype)
        while True:
            count = write(array)
            check_words(count)
            if count <= len(array):
                return count
            array = self.room(name, count, dtype)

    @property
    def nbytes(self):
        return sum(array.nbytes for array in self._arrays.values())
