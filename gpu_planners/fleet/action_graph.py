"""What agents may do without waiting for others: action dependency graphs (Hönig et al., RA-L 2019).

A plan says in which order agents are on each tile, and nothing else of it has to be kept: an agent may enter a tile as
soon as all that come before it there have left. So whoever is late stops only those that come after it on its tiles.

Each visit of a tile has a number, counted tile by tile as visits are planned. A visit may begin when as many visits of
that tile are over as its number says.
"""

from collections.abc import Iterable, Sequence

import numpy as np


class ActionGraph:
    """The actions of agents on a map that are planned and not done. An agent's state is a tile and a heading.

    shape: (rows, cols) of the map; near: agents conflict where both their rows and their columns differ by so much or
        less, where they are of the same `size`, which they are if nothing else is said; sizes: that they may have
        beside, as FleetPlanner takes them; following: may an agent enter a tile while the one before it leaves?
    most: actions of an agent that may be planned and not done

    planned, allowed: (N,) int64 how many actions of each agent are planned, and how many of these it may do now
    blind: (N,) bool, who does not tell its heading? It is allowed turns only together with the move that follows them,
        by which one sees that it has turned
    barred: (sizes, rows, cols) int32, of each of `sizes` 0: agents may enter; k + 1: only agent k may; -1: nobody may
    one_way: (rows, cols, 4) bool, the moves out of a tile to the east, south, west, north that nobody may make; None:
        all may be made
    no_stopping: (rows, cols) bool, or that for each of `sizes`, where agents may not stop: one is allowed to enter such
        a tile only together with all that it does until it is on another one; None: agents may stop everywhere
    tiles: (N, most + 1, 2) int64, headings: (N, most + 1) int64: the state of each agent, then those after each planned
        action
    """

    def __init__(
        self, shape: tuple[int, int], near: int, following: bool, most: int, size: int = 1, sizes: Sequence[int] = ()
    ):
        self.sizes: tuple[int, ...] = (size, *sorted({*sizes} - {size}))
        self._following, self._shape, self._near = following, shape, near
        count = self._lay()
        self._visits, self._over = np.zeros(count, np.int64), np.zeros(count, np.int64)  # by tile: planned, over
        self._holder = np.full(count, -1)  # who is on a tile, or is going there
        self.most = most
        self.one_way: np.ndarray | None = None
        self.no_stopping: np.ndarray | None = None
        self.planned = self.allowed = np.zeros(0, np.int64)
        self._kind = np.zeros(0, np.int64)  # of `sizes`
        self.blind = np.zeros(0, bool)
        self._there = np.zeros(0, bool)  # who holds tiles?
        self.tiles, self.headings = np.zeros((0, most + 1, 2), np.int64), np.zeros((0, most + 1), np.int64)
        self._turn = np.zeros((0, most + 1, self._covers.shape[1]), np.int64)  # numbers of the visits of a state

    def _lay(self):
        """Number the tiles, with room for agents of all sizes -> how many there are"""
        shape, near, size = self._shape, self._near, self.sizes[0]
        first = {side: (size - 1) // 2 - (side - 1) // 2 for side in self.sizes}  # of the rows that a side covers
        reach = {side: near + side - size for side in self.sizes}  # from there to the last one
        pad = -min(first.values())
        self._width = shape[1] + pad + max(first[side] + reach[side] for side in self.sizes)
        most_cover = max(reach.values()) + 1
        self._covers = np.zeros((len(self.sizes), most_cover**2), np.int64)  # by size; too many: the first one again
        self._once = np.zeros(self._covers.shape, bool)
        for k, side in enumerate(self.sizes):
            span = pad + first[side] + np.arange(reach[side] + 1)
            cover = (span[:, None] * self._width + span).ravel()
            self._covers[k] = cover[0]
            self._covers[k, : len(cover)], self._once[k, : len(cover)] = cover, True
        self._pad, self._reach = pad, np.array([reach[side] for side in self.sizes])
        self.barred: np.ndarray = np.zeros((len(self.sizes), *shape), np.int32)
        return (shape[0] + self._width - shape[1]) * self._width

    def admit(self, sizes: Iterable[int]) -> bool:
        """Agents may have these sizes, too, from now on; those that there are go on, and nothing is barred -> are any
        of them new?"""
        new = {*sizes} - {*self.sizes}
        if not new:
            return False
        pad, width, covered = self._pad, self._width, self._covers.shape[1]
        self.sizes += (*sorted(new),)
        rows = self._lay() // self._width
        first = self._pad - pad
        for name, none in (("_visits", 0), ("_over", 0), ("_holder", -1)):
            old, wide = getattr(self, name).reshape(-1, width), np.full((rows, self._width), none)
            wide[first : first + len(old), first : first + width] = old
            setattr(self, name, wide.ravel())
        more = self._covers.shape[1] - covered  # the first one again
        self._turn = np.concatenate([self._turn, np.repeat(self._turn[..., :1], more, axis=-1)], axis=-1)
        return True

    @property
    def there(self) -> np.ndarray:
        """(N,) bool, who holds tiles?"""
        return self._there

    def _covered(self, tiles, agents):
        """(K, 2) tiles of agents (K,) -> (K, C) numbers of the tiles that they keep others from there"""
        return self._covered_by(tiles, self._kind[agents])

    def _covered_by(self, tiles, kinds):
        return (tiles[:, 0] * self._width + tiles[:, 1])[:, None] + self._covers[kinds]

    def _kinds(self, count, sizes):
        if sizes is None:
            return np.zeros(count, np.int64)
        return np.array([self.sizes.index(side) for side in np.asarray(sizes).tolist()], np.int64)

    def is_free(self, tiles: np.ndarray, sizes: np.ndarray | None = None) -> np.ndarray:
        """(K, 2) tiles -> (K,) bool, can an agent of that size (K,) be there: is nobody near, nor going to be?"""
        covered = self._covered_by(tiles, self._kinds(len(tiles), sizes))
        return (self._visits[covered] == self._over[covered]).all(axis=1) & (self._holder[covered] < 0).all(axis=1)

    def add(self, tiles: np.ndarray, headings: np.ndarray, sizes: np.ndarray | None = None) -> None:
        """More agents, on tiles (K, 2) that are free. sizes: (K,) of `sizes`; None: the first one"""
        n, k = len(self.planned), len(tiles)
        for name in ("planned", "allowed", "tiles", "headings", "_turn"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros((k, *old.shape[1:]), np.int64)]))
        self.blind = np.append(self.blind, np.zeros(k, bool))
        self._there = np.append(self._there, np.zeros(k, bool))
        self._kind = np.append(self._kind, self._kinds(k, sizes))
        self.place(np.arange(n, n + k), tiles, headings)

    def place(self, agents: np.ndarray, tiles: np.ndarray, headings: np.ndarray) -> None:
        """Agents (K,), which hold no tiles, are on free tiles (K, 2)."""
        covered = self._covered(tiles, agents)
        self.tiles[agents, 0], self.headings[agents, 0] = tiles, headings
        self._there[agents] = True
        self._turn[agents, 0] = self._visits[covered]
        self._visits[covered] += 1
        self._holder[covered] = agents[:, None]

    def plan(self, agents: np.ndarray, tiles: np.ndarray, headings: np.ndarray) -> None:
        """One more action for each of some agents (K,): where and with which heading it ends."""
        k = self.planned[agents]
        new, before = self._covered(tiles, agents), self._covered(self.tiles[agents, k], agents)
        entered = (new[:, :, None] != before[:, None]).all(axis=2)
        stays = (new[:, :, None] == before[:, None]).argmax(axis=2)
        turn = np.take_along_axis(self._turn[agents, k], stays, axis=1)
        turn[entered] = self._visits[new[entered]]
        self._visits[new[entered]] += 1
        self.tiles[agents, k + 1], self.headings[agents, k + 1], self._turn[agents, k + 1] = tiles, headings, turn
        self.planned[agents] += 1

    def allow(self, halted: np.ndarray | None = None, blocked: np.ndarray | None = None) -> np.ndarray:
        """Allow all that nobody has to be waited for. -> (K,) agents that may do more than before

        halted: (N,) bool, who is allowed no more? blocked: (rows, cols) bool, where nobody can be, or that for each of
            `sizes`
        """
        blocked = None if blocked is None else np.broadcast_to(blocked, self.barred.shape)
        going = np.ones(len(self.planned), bool) if halted is None else ~halted
        before = self.allowed.copy()
        agents = np.flatnonzero(going & (self.planned > self.allowed))
        while len(agents := self._next(agents, blocked)):
            self._grant(agents)
            if self._following:
                agents = np.flatnonzero(going)  # others may follow
            agents = agents[self.planned[agents] > self.allowed[agents]]
        return np.flatnonzero(self.allowed > before)

    def _grant(self, agents):
        """Allow agents (K,) one action more."""
        k = self.allowed[agents]
        now, then = (self._covered(self.tiles[agents, k + more], agents) for more in (0, 1))
        self._holder[then] = agents[:, None]
        self.allowed[agents] += 1
        if self._following:
            self._leave(now, then, agents)

    def grant(self, agents: np.ndarray, tiles: np.ndarray, headings: np.ndarray) -> None:
        """One more action for each of some agents (K,), planned and allowed whatever stands in its way."""
        self.plan(agents, tiles, headings)
        self._grant(agents)

    def _next(self, agents, blocked):
        """Those of some agents (K,), which have more to do, that may do one action more."""
        k = self.allowed[agents]
        blind, earlier = self.blind[agents], np.arange(self.most + 1) <= k[:, None]
        again = (self.tiles[agents] == self.tiles[agents, k + 1][:, None]).all(axis=2)
        again &= blind[:, None] | (self.headings[agents] == self.headings[agents, k + 1][:, None])
        again &= earlier  # else a report would not tell which of two equal states it is
        turns = (self.tiles[agents, k] == self.tiles[agents, k + 1]).all(axis=1)
        agents = agents[np.where(blind & turns, self._moves_after(agents, blocked), ~again.any(axis=1))]
        k = self.allowed[agents]
        end, moves = self.tiles[agents, k + 1], (self.tiles[agents, k] != self.tiles[agents, k + 1]).any(axis=1)
        agents = agents[~(self.shut(agents, end, blocked) & moves) & ~self.against(self.tiles[agents, k], end)]
        if self.no_stopping is not None:
            passes = ~self.no_stop(agents, self.tiles[agents, self.allowed[agents] + 1])
            passes[~passes] = [self._leads_out(a, blocked) for a in agents[~passes].tolist()]
            agents = agents[passes]
        k = self.allowed[agents]
        covered, turn = self._covered(self.tiles[agents, k + 1], agents), self._turn[agents, k + 1]
        free = self._over[covered] == turn
        if not self._following:
            return agents[free.all(axis=1)]
        holder, leaves = self._holder[covered], np.zeros(len(self.planned), bool)
        last = (self._over[covered] == turn - 1) & (holder >= 0) & self._left_next(holder, covered)
        leaves[agents] = True
        while True:  # the most agents that can all go at once, each to tiles that are free or that another one leaves
            stays = leaves[agents] & ~(free | (last & leaves[holder])).all(axis=1)
            if not stays.any():
                return agents[leaves[agents]]
            leaves[agents[stays]] = False

    def _moves_after(self, agents, blocked):
        """(K,) bool, are all the turns that agents are about to make followed by a planned move that is free?"""
        found = np.zeros(len(agents), bool)
        for i, a in enumerate(agents.tolist()):
            if not self.blind[a]:
                continue
            k, planned = self.allowed[a], self.planned[a]
            moves = np.flatnonzero((self.tiles[a, k + 1 : planned + 1] != self.tiles[a, k]).any(axis=1))
            if len(moves):
                j = k + 1 + moves[0]
                end = self.tiles[a, j]
                new = not (self.tiles[a, :k] == end).all(axis=1).any()
                free = (self._over[self._covered(end[None], [a])[0]] == self._turn[a, j]).all()
                opened = not self.shut(np.array([a]), end[None], blocked)[0]
                with_lane = not self.against(self.tiles[a, j - 1][None], end[None])[0]
                found[i] = new and free and opened and with_lane
        return found

    def _leads_out(self, a, blocked):
        """May agent a, whose next state is in a no-stopping zone, do all that is planned until it is out again?"""
        k, planned, tiles, headings = self.allowed[a], self.planned[a], self.tiles[a], self.headings[a]
        outside = np.flatnonzero(~self.no_stop(np.full(planned - k, a), tiles[k + 1 : planned + 1]))
        if not len(outside):
            return False
        for j in range(k + 2, k + 2 + outside[0]):
            end, moves = tiles[j], (tiles[j] != tiles[j - 1]).any()
            again = (tiles[:j] == end).all(axis=1)
            if not self.blind[a]:
                again &= headings[:j] == headings[j]
            shut = self.shut(np.array([a]), end[None], blocked)[0]
            free = (self._over[self._covered(end[None], [a])[0]] == self._turn[a, j]).all()
            if not free or (moves and (shut or self.against(tiles[j - 1][None], end[None])[0])):
                return False
            if again.any() and not (self.blind[a] and not moves):
                return False
        return True

    def held_outside(self) -> np.ndarray:
        """(N,) bool, who stands before a no-stopping zone, and does not get through?"""
        if self.no_stopping is None:
            return np.zeros(len(self.planned), bool)
        every = np.arange(len(self.planned))
        return (self.allowed == 0) & (self.planned > 0) & self.no_stop(every, self.tiles[:, 1])

    def no_stop(self, agents: np.ndarray, tiles: np.ndarray) -> np.ndarray:
        """(K,) bool, must agents (K,) not stop on tiles (K, 2)?"""
        if self.no_stopping is None:
            return np.zeros(len(agents), bool)
        at = self._kind[agents], *tiles.T
        return np.broadcast_to(self.no_stopping, self.barred.shape)[at]

    def shut(self, agents: np.ndarray, tiles: np.ndarray, blocked: np.ndarray | None = None) -> np.ndarray:
        """(K,) bool, are tiles (K, 2) barred for agents (K,), or blocked? blocked: (sizes, rows, cols) bool"""
        at = self._kind[agents], *tiles.T
        bar = self.barred[at]
        shut = (bar != 0) & (bar != agents + 1)
        return shut if blocked is None else shut | blocked[at]

    def against(self, tiles: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """(K,) bool, does a move from tiles (K, 2) to the next ones (K, 2) go against a one-way lane?"""
        rows, cols = (ends - tiles).T
        moves = (rows != 0) | (cols != 0)
        if self.one_way is None:
            return np.zeros(len(tiles), bool)
        out = (*tiles.T, np.where(cols != 0, 1 - cols, 2 - rows))
        return moves & self.one_way[out]

    def drop_turns(self, agents: np.ndarray) -> None:
        """Forget what agents (K,) are not allowed yet, which is turns alone."""
        self.planned[agents] = self.allowed[agents]

    def _left_next(self, holder, covered):
        """(K, C) bool, does the next action of the agents (K, C) that hold tiles (K, C) leave these?"""
        end = self.tiles[holder, np.minimum(self.allowed[holder] + 1, self.most)]
        kind = self._kind[holder]
        first = self._covers[kind, 0]
        down = covered // self._width - first // self._width - end[..., 0]
        right = covered % self._width - first % self._width - end[..., 1]
        reach = self._reach[kind]
        return ~((down >= 0) & (down <= reach) & (right >= 0) & (right <= reach))

    def _leave(self, covered, still, agents):
        """Agents (K,) end the visits of the tiles `covered` (K, C), except tiles also in `still` (K, C)."""
        ended = (covered[:, :, None] != still[:, None]).all(axis=2) & self._once[self._kind[agents]]
        np.add.at(self._over, covered[ended], 1)

    def arrive(self, agents: np.ndarray, actions: np.ndarray) -> None:
        """Agents (K,) have done so many of the actions (K,) that they were allowed."""
        for _ in range(int(actions.max(initial=0))):
            agents, actions = agents[actions > 0], actions[actions > 0] - 1
            before, now = (self._covered(self.tiles[agents, k], agents) for k in (0, 1))
            gone = (before[:, :, None] != now[:, None]).all(axis=2) & (self._holder[before] == agents[:, None])
            self._holder[before[gone]] = -1
            if not self._following:
                self._leave(before, now, agents)
            for states in (self.tiles, self.headings, self._turn):
                states[agents, :-1] = states[agents, 1:]
            self.planned[agents] -= 1
            self.allowed[agents] -= 1
        self._hold_on()

    def _holdings(self):
        """-> (M,) agents, (M, C) tiles: all that agents are on, or may enter"""
        some = self._there[:, None] & (np.arange(self.most + 1) <= self.allowed[:, None])
        owner = np.nonzero(some)[0]
        return owner, self._covered(self.tiles[some], owner)

    def _hold_on(self):
        """Tiles that one has given up are still those of others who are on them, or may enter them."""
        owner, held = self._holdings()
        row, k = np.nonzero(self._holder[held] < 0)
        self._holder[held[row, k]] = owner[row]

    def forget(self) -> tuple[np.ndarray, np.ndarray]:
        """Forget what is not allowed yet. -> (N, 2) tiles and (N,) headings at the end of what is"""
        for k in range(1, self.most + 1):
            agents = np.flatnonzero((self.planned >= k) & (self.allowed < k))
            new, before = (self._covered(self.tiles[agents, k - less], agents) for less in (0, 1))
            entered = (new[:, :, None] != before[:, None]).all(axis=2) & self._once[self._kind[agents]]
            np.add.at(self._visits, new[entered], -1)
        self.planned[:] = self.allowed
        return self.ends()

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """(N, 2) tiles and (N,) headings after all that is planned."""
        every = np.arange(len(self.planned))
        return self.tiles[every, self.planned], self.headings[every, self.planned]

    def holder(self, tile: np.ndarray, but: int = -1, size: int | None = None) -> int:
        """Who, but for one, is so near to a tile (2,), or going there, that nobody else of that size can be on it? -1:
        nobody"""
        holders = self._holder[self._covered_by(tile[None], self._kinds(1, None if size is None else [size]))]
        return max(-1, int(np.where(holders == but, -1, holders).max()))

    def movable(self, agents: np.ndarray, tiles: np.ndarray) -> np.ndarray:
        """(K,) bool, which of some agents can be put on tiles (K, 2) at once, without meeting another one?"""
        covered, moves = self._covered(tiles, agents), np.zeros(len(self.planned), bool)
        moves[agents] = True
        owner, held = self._holdings()
        while True:
            clash = np.isin(covered, held[~moves[owner]]).any(axis=1)
            mine = np.repeat(agents, covered.shape[1])[np.argsort(covered.ravel(), kind="stable")]
            order = np.sort(covered.ravel())
            same = (order[1:] == order[:-1]) & (mine[1:] != mine[:-1]) & moves[mine[1:]] & moves[mine[:-1]]
            clash |= np.isin(agents, mine[1:][same])
            if not (clash & moves[agents]).any():
                return moves[agents]
            moves[agents[clash]] = False

    def remove(self, agents: np.ndarray) -> None:
        """Take agents (K,) from their tiles, after `forget`."""
        for a in agents.tolist():
            states = self.tiles[a, (self.allowed[a] if self._following else 0) : self.allowed[a] + 1]
            held = np.unique(self._covered(states, np.full(len(states), a)))
            self._over[held] += 1
            self._holder[self._holder == a] = -1
            self.planned[a] = self.allowed[a] = 0
        self._there[agents] = False
        self._hold_on()

    def keep(self, agents: np.ndarray) -> None:
        """Number agents (K,) anew: 0 .. K - 1. The others hold no tiles."""
        number = np.full(len(self.planned) + 1, -1)  # the last one: nobody
        number[agents] = np.arange(len(agents))
        self._holder = number[self._holder]
        for name in ("planned", "allowed", "tiles", "headings", "_turn", "blind", "_there", "_kind"):
            setattr(self, name, getattr(self, name)[agents])

    def widen(self, most: int) -> None:
        """Make room for so many actions of each agent."""
        more = max(0, most - self.most)
        self.most += more
        for name in ("tiles", "headings", "_turn"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros((len(old), more, *old.shape[2:]), np.int64)], axis=1))

    @property
    def kinds(self) -> np.ndarray:
        """(N,) int64 place of each agent's size among `sizes`"""
        return self._kind

    def sizes_of(self, agents: np.ndarray) -> np.ndarray:
        """(K,) int64 sizes of agents (K,)."""
        return np.array(self.sizes)[self._kind[agents]]

    def held(self, agents: np.ndarray) -> np.ndarray:
        """(T, 2) tiles that agents (K,) are on, or may enter."""
        some = np.arange(self.most + 1) <= self.allowed[agents][:, None]
        return self.tiles[agents][some]
