"""Fields of a fleet and its agents' options, on the CPU."""

import numba
import numpy as np

from ..parallel.threads import one_thread
from . import ranking
from .fields import Lanes, plan_fields
from .motion import Options
from .repair import Change, repair_fields
from .state import Agents, Ranked, Rules

SHARED_AGENTS = 2048  # fewer are ranked on one thread: others take long to wake up


class CpuFleet:
    """What takes each agent by itself. Not for several threads at once.

    lanes: the map; options: of the agents; rules
    """

    def __init__(self, lanes: Lanes, options: Options, rules: Rules):
        self._lanes = lanes
        self.take_options(options, rules)
        self._values = np.zeros((0, lanes.free.size * lanes.headings), np.uint8)

    def take_options(self, options: Options, rules: Rules):
        """Take what agents can do now, and when they conflict."""
        self._options, self._rules = options, rules
        self._most_steps = int(np.diff(options.first_step).max())

    def grow(self, before: int, rows: int):
        """Make room for so many fields; the first `before` stay."""
        grown = np.empty((rows, self._values.shape[1]), np.uint8)
        grown[:before] = self._values[:before]
        self._values = grown

    def plan(self, goals: np.ndarray, slots: np.ndarray):
        """Plan the fields of goals (K,) tiles into slots (K,)."""
        plan_fields(goals, slots, self._values, self._lanes)

    def repair(self, goals: np.ndarray, slots: np.ndarray, change: Change):
        """Let the fields of goals (K,) in slots (K,) follow a change of the map."""
        repair_fields(goals, slots, self._values, self._lanes, change)

    def take_map(self, lanes: Lanes):
        """Take the map as it is now."""
        self._lanes = lanes

    def field(self, slot: int) -> np.ndarray:
        """-> (states,) uint8, modulo 256"""
        return self._values[slot]

    def rank(self, agents: Agents, ranked: Ranked):
        """Find every agent's options and cost to go."""
        with one_thread(len(agents.tile) < SHARED_AGENTS):
            members = numba.get_num_threads()
            ranking.rank_all(
                agents, self._options, self._values, self._lanes, self._rules, ranked, self._most_steps, members
            )
