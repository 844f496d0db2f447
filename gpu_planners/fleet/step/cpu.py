"""On the CPU: fields, and each agent's ranked options."""

import mmap
from typing import Any

import numba
import numpy as np

from ...parallel.threads import one_thread
from ..fields.cost_to_go import plan_fields
from ..fields.lanes import Lanes
from ..fields.repair import Change, repair_fields
from ..motion import Options
from .epibt import rank
from .state import Agents, Ranked, Rules

SHARED_AGENTS = 2048  # fewer are ranked, and moved, on one thread: others take long to wake up
PRIVATE: dict[str, int] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}


class CpuFleet:
    """Plans fields and ranks the options of each agent by itself. Not for several threads at once."""

    def __init__(self, lanes: Lanes, options: Options, rules: Rules):
        self._lanes = lanes
        self.take_options(options, rules)
        self._values = np.zeros((0, lanes.free.size * lanes.headings), np.uint8)
        self._memory: Any = None  # of the values

    def take_options(self, options: Options, rules: Rules):
        """Take what agents can do now, and when they conflict."""
        self._options, self._rules = options, rules
        self._most_steps = int(np.diff(options.first_step).max())

    @property
    def at_once(self) -> int:
        """Fields that take together hardly longer than one."""
        return numba.get_num_threads()

    def grow(self, before: int, rows: int):
        """Make room for `rows` fields; the first `before` stay."""
        states, memory, self._values = self._values.shape[1], self._memory, np.zeros((0, 0), np.uint8)
        if memory is None:
            self._memory = mmap.mmap(-1, rows * states, **PRIVATE)
        else:
            try:  # the kernel moves pages; to copy gigabytes would take longer than a step
                memory.resize(rows * states)
            except (BufferError, SystemError):  # somebody holds a view, or it cannot
                self._memory = mmap.mmap(-1, rows * states, **PRIVATE)
                self._memory[: before * states] = memory[: before * states]
        self._values = np.frombuffer(self._memory, np.uint8).reshape(rows, states)

    def host_fields(self, slots: np.ndarray) -> np.ndarray:
        """-> (rows, states) uint8 fields, of which those in `slots`, where not negative, can be read here"""
        return self._values

    def plan(self, goals: np.ndarray, slots: np.ndarray):
        """Plan the fields of goals (K,) tiles into slots (K,)."""
        plan_fields(goals, slots, self._values, self._lanes)

    def take_map(self, lanes: Lanes):
        """Take the map after a change; the fields stay those of the map before."""
        self._lanes = lanes

    def repair(self, goals: np.ndarray, slots: np.ndarray, change: Change):
        """Let the fields of goals (K,) in slots (K,) follow a change, after which the map is as it is now."""
        repair_fields(goals, slots, self._values, self._lanes, change)

    def rank(self, agents: Agents, ranked: Ranked):
        """Find every agent's options and cost to go."""
        with one_thread(len(agents.tile) < SHARED_AGENTS):
            members = numba.get_num_threads()
            rank(agents, self._options, self._values, self._lanes, self._rules, ranked, self._most_steps, members)
