"""The buffers of PRM's trees on the host, and on the CPU what lets the trees grow."""

import numpy as np

from ....device import njit
from ....parallel.team import Worker, borrowed, deadline_in
from ...spaces.interface import space_of
from ..node_store import new_desk
from .growth import grow
from .state import Ask, Job, Report, buffer_sizes, open_report, open_trees


class CpuBuffers:
    """New for each query: memory is only touched as far as the trees grow. One worker, one lane."""

    def allocate(self, ask: Ask) -> None:
        """Room for the trees of a query; what the buffers held is lost."""
        n_floats, n_ints, n_told, n_found = buffer_sizes(ask.dof, ask.batch, ask.tried, ask.capacity, 1)
        self._floats, self._ints = np.empty(n_floats, dtype=np.float32), np.empty(n_ints, dtype=np.int32)
        self._told, self._found = np.empty(n_told, dtype=np.float32), np.empty(n_found, dtype=np.int32)

    def report(self, ask: Ask) -> Report:
        """What host and compiled code tell each other."""
        return open_report.py_func(ask, self._told, self._found)

    def grow(self, checker, ask: Ask) -> None:
        """Some rounds."""
        desk = new_desk(space_of(checker), ask.dof)
        _grow(ask, self._floats, self._ints, self._told, self._found, desk)


@njit
def _grow(ask, floats, ints, told, found, desk):
    worker = Worker(0, 1, 0, 0, 1, borrowed(ints), borrowed(ints))
    trees, report = open_trees(ask, borrowed(floats), worker), open_report(ask, borrowed(told), borrowed(found))
    grow(Job(ask, trees, report, borrowed(desk), deadline_in(ask.left_ms), worker))
