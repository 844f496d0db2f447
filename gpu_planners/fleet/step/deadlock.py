"""Agents that block each other: a few of them plan together, and follow the plan step by step.

Options look a few ticks ahead, so two agents that have to change places far from any room for it may stand for good.
LaCAM (lacam.py) finds a plan wherever there is one. While it searches, and while agents follow its plan, these agents
go first, and the plan's next move is the best of their options. The step is free of conflicts as ever; an agent that
cannot follow ends the plan.
"""

import functools
import threading

import numpy as np

from ..fields.next_hops import ground_of
from ..motion import Options
from ..plan import lacam
from ..plan.instance import Instance, Model
from ..plan.lacam import TreeSearch
from ..plan.retime import timed
from .priorities import Progress
from .state import Agents, Ranked

MOST = 8  # agents that plan together; of smaller fleets all do
PATIENCE = 32  # steps without coming nearer, or off a goal that was reached, after which an agent plans with others
CROWD_PATIENCE = 768  # the same in larger fleets, where earlier joint plans cost errands
EFFORT = 20_000  # moves of agents tried in a step
MOST_EFFORT = 1_000_000  # and for one plan of more than two agents
PAUSE = 256  # steps before the next plan, after one that was not found, or not followed in a larger fleet
FIRST = -(1 << 27)  # a cost below that of all options


class _Group:
    """Agents that search for a plan, or follow it.

    members, goals: (K,) numbers and tiles, -1 none; led: (K,) bool, who still follows the plan
    tiles, headings: (steps + 1, K) of the plan, or (1, K) where they stand during the search; at: the step reached
    search: TreeSearch, None once there is a plan; lonely: is it for the first member's goal alone? effort: moves tried
    """

    def __init__(self, members, agents, free, width):
        self.members, self.goals, self.free, self._width = members, agents.goal[members], free, width
        self.led = np.ones(len(members), bool)
        self.tiles, self.headings, self.at = agents.tile[members][None], agents.heading[members][None], 0
        order = np.argsort(members)
        self.key = members[order].tolist(), self.goals[order].tolist(), free.tobytes()

    def look_for(self, lonely, model, seed):
        """Begin to search, for all goals or that of the first member alone."""
        self.lonely, self._model, self.effort = lonely, model, 0
        places, ends = (
            np.stack(np.divmod(tiles, self._width), axis=1).astype(np.float64) for tiles in (self.tiles[0], self.goals)
        )
        ends[self.goals < 0] = np.nan
        if lonely:
            ends[1:] = np.nan
        self._instance = Instance(ground_of(self.free.reshape(-1, self._width) > 0), places, ends)
        self._instance.plan_next_hops()
        self.search = TreeSearch(self._instance, np.arange(len(self.members)), model, seed)

    def take_plan(self):
        faces = self.headings[0].astype(np.int32)
        tiles, headings, _, _ = timed(self._instance, self.search.tiles(), faces, self._model)
        self.tiles, self.headings = self._instance.place[tiles.T] @ (self._width, 1), headings.T
        self.search = None

    def holds(self, agents, broken, free):
        """Can they go on? Members that have done their part and have new goals leave."""
        m = self.members
        if free is not self.free and not np.array_equal(free, self.free):
            return False
        changed = agents.goal[m] != self.goals
        done = (self.tiles[self.at :] == self.tiles[-1]).all(axis=0) & (self.search is None)
        self.led &= ~(changed & done)
        there = (agents.there[m] > 0) & (agents.still[m] == 0) & (broken[m] == 0)
        fine = there & (agents.tile[m] == self.tiles[self.at]) & ~changed
        return self.led.any() and fine[self.led].all()


@functools.cache
def _search_once(model: Model, memory_limit_bytes: int) -> None:
    """Let two agents change places, so that all that a search needs is compiled."""
    agents, free = Agents(*np.zeros((len(Agents._fields), 2), np.int32)), np.zeros((4, 5), np.uint8)
    free[1:3, 1:4] = 1
    agents.tile[:], agents.goal[:] = (6, 7), (7, 6)
    group = _Group(np.arange(2), agents, free.ravel(), free.shape[1])
    group.look_for(False, model, 0)
    if group.search.go_on(EFFORT, memory_limit_bytes) == lacam.SOLVED:
        group.take_plan()


class Deadlocks:
    """The group of agents that plans together, if there is one. For agents of size 1 whose actions take one tick.

    width: of the map; memory_limit_bytes: of a search
    """

    def __init__(self, width: int, model: Model, memory_limit_bytes: int):
        self._width, self._model, self._memory = width, model, memory_limit_bytes
        self._compiling: threading.Thread | None = None
        self.forget()

    def forget(self) -> None:
        """There are other agents."""
        self._group: _Group | None = None
        self._next = 0  # step from which on another plan may be begun
        self._hopeless: tuple = ()  # a group and goals for which there is no plan

    def leading(
        self, agents: Agents, progress: Progress, nothing_to_do: np.ndarray, broken: np.ndarray, free: np.ndarray,
        step: int, in_time: bool,
    ) -> np.ndarray:  # fmt: skip
        """Look for a group, and for its plan. -> (K,) int agents that go first in this step

        in_time: must the step end in time? Then no group is made before the search is compiled
        """
        obeying = (agents.there > 0) & (agents.still == 0) & (free[agents.tile] > 0)
        small = np.count_nonzero(obeying) <= MOST
        if self._group is not None and not self._group.holds(agents, broken, free):
            self._group, self._next = None, step + (0 if small else PAUSE)
        if self._group is None and step >= self._next:
            # agents of a small fleet may push each other off their goals in turns
            waited = np.maximum(progress.stalled, progress.away) if small else progress.stalled
            waited = np.where(obeying & ~nothing_to_do, waited, 0)
            if waited.max(initial=0) >= (PATIENCE if small else CROWD_PATIENCE) and self._compiled(in_time):
                self._begin(agents, progress, int(np.argmax(waited)), np.flatnonzero(obeying), free, step)
        if self._group is not None and self._group.search is not None:
            self._search_on(step)
        return np.zeros(0, np.int64) if self._group is None else self._group.members[self._group.led]

    def _compiled(self, in_time):
        """Is the search compiled? A thread compiles it, or loads it, for which only a step without a time waits."""
        if self._compiling is None:
            self._compiling = threading.Thread(target=_search_once, args=(self._model, self._memory))
            self._compiling.start()
        if not in_time:
            self._compiling.join()
        return not self._compiling.is_alive()

    def _begin(self, agents, progress, worst, members, free, step):
        """Let agent `worst` plan with the nearest of `members`."""
        row, col = np.divmod(agents.tile, self._width)
        far = np.abs(row - row[worst]) + np.abs(col - col[worst])
        members = members[np.argsort(far[members], kind="stable")][:MOST]
        if len(members) > 1:
            self._group = _Group(members, agents, free, self._width)
            self._group.look_for(self._group.key == self._hopeless, self._model, step)
            progress.away[members] = np.minimum(progress.away[members], 0)

    def _search_on(self, step):
        """Spend a step's effort on the search; where no plan serves all goals, on one for the first member's alone."""
        group, count = self._group, len(self._group.members)
        ended = group.search.go_on(EFFORT // count, self._memory)
        group.effort += EFFORT
        if ended == lacam.SOLVED:
            group.take_plan()
        elif ended == lacam.EXHAUSTED and not group.lonely:
            self._hopeless = group.key
            group.look_for(True, self._model, step)
        elif ended != lacam.MORE or (count > 2 and group.effort >= MOST_EFFORT):
            self._group, self._next = None, step + PAUSE

    def lead(self, agents: Agents, options: Options, ranked: Ranked) -> None:
        """Make the plan's next moves the best option of each member."""
        group = self._group
        if group is None:
            return
        ticks = np.minimum(group.at + np.arange(1, options.here.shape[2]), len(group.tiles) - 1)
        for k in np.flatnonzero(group.led):
            a = group.members[k]
            many, heading, table = ranked.length[a], agents.heading[a], agents.table[a]
            mine = np.arange(options.first_option[table], options.first_option[table + 1])
            along = (agents.tile[a] + options.here[:, heading, 1:] == group.tiles[ticks, k]).all(axis=1)
            turned = (heading + options.turn[options.leaf[mine]]) % 4 == group.headings[ticks[-1], k] % 4
            fit = mine[along[options.track[mine]] & (turned | (options.here.shape[1] == 1))]
            at = np.flatnonzero(along[options.track[ranked.option[a, :many]]])
            if len(fit) and len(at):
                for row, first in ((ranked.option[a], fit[0]), (ranked.cost[a], FIRST)):
                    row[1 : at[0] + 1] = row[: at[0]].copy()
                    row[0] = first

    def follow(self) -> None:
        """The step is over."""
        group = self._group
        if group is not None and group.search is None:
            group.at += 1
            if group.at == len(group.tiles) - 1:
                self._group = None
