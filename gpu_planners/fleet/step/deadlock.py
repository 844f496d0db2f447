"""Agents that block each other plan together, and follow the plan step by step.

Options look a few ticks ahead, so agents that have to change places far from any room for it may stand for good. LaCAM
(lacam.py) finds a plan wherever there is one. An agent that gets no nearer to its goal plans with the nearest others
(groups.py), near lanes with all of its part of the map. While they search, and while they follow their plan, these
agents go first, and the plan's next move is the best of their options. The step is free of conflicts as ever; who is
late is waited for.
"""

import functools
import threading

import numpy as np

from ..fields.next_hops import NOBODY
from ..motion import Options
from ..plan import lacam
from ..plan.instance import Model
from ..plan.turns import nearest
from .groups import ALL, ONE, PATIENCE, PAUSE, Few, Group, Layout, Many
from .priorities import Progress
from .state import Agents, Ranked
from .ways import LOOK, MOST_LOOK

SOON = 4  # the same near lanes, where agents have no way around each other, in fleets of up to AT_ONCE
LOCAL_PATIENCE = 128  # the same near lanes in larger fleets that are not jammed, since a group ends whole paths of all
OPEN_PATIENCE = 768  # the same in larger fleets far from lanes, where joint plans cost errands
FEW = 8  # agents that plan together at first; of smaller fleets all do
TOGETHER = 1024  # the same near lanes, at most
AT_ONCE = 128  # so many do as soon as one is stuck, more
JAMMED = 0.2  # if so many of them are stalled
MOST = 256  # agents that plan together, at most, where this did not help for long
JAM = 0.5  # of them have to be stalled too, if they are to be more than before
RECENT = 64  # steps after a plan in which whoever is stuck again plans with twice as many
EFFORT = 20_000  # moves of agents tried in a step by a few that search
MOST_EFFORT = 1_000_000  # and in all, by three to FEW agents
LASTS = 8  # steps for each of many agents that they plan together for
FOR_GOOD = 1 << 62  # the same if they are all agents of their part of the map


@functools.cache
def _search_once(model: Model, memory_limit_bytes: int) -> None:
    """Let two agents change places, so that all that a search needs is compiled."""
    agents, free = Agents(*np.zeros((len(Agents._fields), 2), np.int32)), np.zeros((4, 5), np.uint8)
    free[1:3, 1:4] = agents.there[:] = 1
    agents.tile[:], agents.goal[:] = (6, 7), (7, 6)
    ground, members = Layout(free.ravel(), free.shape[1]), np.arange(2)
    nearest(0, np.full(ground.count + 1, NOBODY, np.int32), ground.ground.neighbour, 1)
    progress = Progress(*np.zeros((len(Progress._fields), 2), np.int64))
    few = Few(members, ground, model, 0)
    few.look_for(ALL, agents, progress, 0)
    if few.search.go_on(EFFORT, memory_limit_bytes) == lacam.SOLVED:
        few.take_plan()
    many = Many(members, ground, model, 0, agents, LOOK)
    many.plan(agents, progress, np.zeros(2, bool), 0, 0, memory_limit_bytes)
    many.plan_anew(agents, progress, 0, memory_limit_bytes)
    agents.tile[:] = 7, 6
    many.tick = 1
    many.holds(agents, np.zeros(2))


class Deadlocks:
    """The groups of agents that plan together. For agents of size 1 whose actions take one tick.

    width: of the map; memory_limit_bytes: of a search
    """

    def __init__(self, width: int, model: Model, memory_limit_bytes: int):
        self._width, self._model, self._memory = width, model, memory_limit_bytes
        self._compiling: threading.Thread | None = None
        self._map: Layout | None = None
        self.forget()

    def forget(self) -> None:
        """There are other agents."""
        self._groups: list[Group] = []
        self._size = self._ended = self._rests = np.zeros(0, np.int64)
        self._hopeless: tuple = ()  # a group and goals for which there is no plan

    def leading(
        self, agents: Agents, progress: Progress, nothing_to_do: np.ndarray, broken: np.ndarray, free: np.ndarray,
        step: int, until_ns: int, only_lanes: bool,
    ) -> np.ndarray:  # fmt: skip
        """Look for groups, and for their plans. -> (K,) int agents that go first in this step

        until_ns: of clock_ns, for how long ways are made better; then no group is made before the search is compiled.
            0: there is no limit, and all steps have the same effort
        only_lanes: may only agents near lanes plan together, since others plan whole paths (window.py), or are packed?
        """
        obeying = (agents.there > 0) & (agents.still == 0) & (free[agents.tile] > 0)
        small = np.count_nonzero(obeying) <= FEW
        if self._map is not None and free is not self._map.free:
            if not np.array_equal(free, self._map.free):
                self._groups, self._map = [], None
        if len(self._size) != len(obeying):  # how many an agent plans with, until when it did, when it may again
            more = len(obeying) - len(self._size)
            self._size = np.r_[self._size, np.full(more, FEW)]
            self._ended, self._rests = (np.r_[old, np.full(more, -RECENT)] for old in (self._ended, self._rests))
        for group in self._groups[:]:
            if not group.holds(agents, broken) or group.over or step >= group.until:
                self._end(group, step, 0)
        self._begin(agents, progress, obeying & ~nothing_to_do, obeying, small, free, step, until_ns > 0, only_lanes)
        for group in self._groups[:]:
            if isinstance(group, Many):
                group.plan(agents, progress, nothing_to_do, step, until_ns, self._memory)
            elif group.search is not None:
                self._search_on(group, agents, progress, step)
        return np.concatenate([np.zeros(0, np.int64), *(group.members[group.led] for group in self._groups)])

    def _end(self, group, step, pause):
        self._groups.remove(group)
        self._ended[group.members], self._rests[group.members] = step, step + pause

    def _compiled(self, in_time):
        """Is the search compiled? A thread compiles it, or loads it, for which only a step without a time waits."""
        if self._compiling is None:
            self._compiling = threading.Thread(target=_search_once, args=(self._model, self._memory))
            self._compiling.start()
        if not in_time:
            self._compiling.join()
        return not self._compiling.is_alive()

    def _begin(self, agents, progress, on_the_way, obeying, small, free, step, in_time, only_lanes):
        """Let the agent that has waited longest, if it is too long, plan with the nearest others."""
        # agents of a small fleet may push each other off their goals in turns
        waited = np.maximum(progress.stalled, progress.away) if small else progress.stalled
        waited = np.where(on_the_way & (self._rests <= step), waited, 0)
        for group in self._groups:
            waited[group.members] = 0
        if waited.max(initial=0) < SOON:
            return
        if self._map is None:
            self._map = Layout(free, self._width)
        by_lane = self._map.near_lane[agents.tile]
        at_once = np.count_nonzero(obeying) <= AT_ONCE
        if not at_once and waited.max() < PATIENCE:
            return
        waited[~by_lane & (waited < PATIENCE)] = 0
        if not small:
            waited[~by_lane & (only_lanes | (waited < OPEN_PATIENCE))] = 0
        if not waited.any() or not self._compiled(in_time):
            return
        worst, ground, numbers = int(np.argmax(waited)), self._map.ground, self._map.number[agents.tile]
        here = obeying & (ground.part[numbers] == ground.part[numbers[worst]])
        stalled = progress.stalled >= PATIENCE // 2
        all_here = by_lane[worst] and (at_once or (np.mean(stalled[here]) >= JAMMED and here.sum() <= TOGETHER))
        if not (at_once or all_here) and waited[worst] < LOCAL_PATIENCE:
            return
        for group in self._groups:
            if isinstance(group, Many) and (at_once or not all_here):  # its ways stay
                obeying = obeying & ~np.isin(np.arange(len(obeying)), group.members)
        occupant = np.full(len(ground.neighbour), NOBODY, np.int32)
        occupant[numbers[obeying]] = np.flatnonzero(obeying)
        again = step - self._ended[worst] < RECENT
        size = TOGETHER if all_here else min(2 * int(self._size[worst]), MOST) if again else FEW
        members = nearest(numbers[worst], occupant, ground.neighbour, size)
        if not all_here and np.mean(stalled[members]) < JAM:
            members, size = members[: size // 2], size // 2
        if len(members) < 2:
            return
        for group in self._groups[:]:
            if np.isin(members, group.members).any():
                members = np.union1d(members, group.members)
                size = max(size, len(members))
                self._end(group, step, 0)
        self._size[members] = size
        ticks = min(self._memory // (8 * (self._map.count + 1)) - len(members) // 2, MOST_LOOK)
        if len(members) > FEW and ticks >= LOOK:
            whole = len(members) == np.count_nonzero(obeying & here)
            until = FOR_GOOD if whole else step + LASTS * len(members)
            self._groups.append(Many(members, self._map, self._model, until, agents, ticks))
            return
        group = Few(members, self._map, self._model, FOR_GOOD)
        group.look_for(ALL, agents, progress, step)
        if group.key == self._hopeless:
            group.look_for(ONE, agents, progress, step)
        progress.away[members] = np.minimum(progress.away[members], 0)
        self._groups.append(group)

    def _search_on(self, group, agents, progress, step):
        """Spend a step's effort on the search; where no plan serves all goals, on one for less."""
        count = len(group.members)
        ended = group.search.go_on(max(1, EFFORT // count), self._memory)
        group.effort += EFFORT
        tired = ended != lacam.MORE or (count > 2 and group.effort >= MOST_EFFORT)
        if ended == lacam.SOLVED:
            group.take_plan()
        elif tired and group.aim == ALL and ended == lacam.EXHAUSTED:
            self._hopeless = group.key
            group.look_for(ONE, agents, progress, step)
        elif tired:
            self._end(group, step, PAUSE)

    def lead(self, agents: Agents, options: Options, ranked: Ranked) -> None:
        """Make the plans' next moves the best option of each member."""
        for group in self._groups:
            group.put_first(agents, options, ranked)

    def follow(self) -> None:
        """The step is over."""
        for group in self._groups:
            if isinstance(group, Many) or group.search is None:
                group.tick += 1
