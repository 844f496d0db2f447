"""An action graph whose agents are told in every tick whether to go on: several ticks make an action, and an agent may
be halted in the middle of one.

Who is seen at each tick needs less room than who only says when an action has ended: behind an agent that leaves a
tile straight ahead, the next one may enter it on the same line, as long as it is less far in its move than that one. It
never gets nearer to it, even if that one stops. So a queue moves on after a tick for each agent, not after an action.

And what nobody has begun can be taken back. `forecast` says what agents will have begun some ticks ahead, so a plan for
then can be made from there, and all else planned anew: an order of agents that delays have upset is not kept for long.
"""

import numpy as np

from .action_graph import ActionGraph


class TickGraph(ActionGraph):
    """An ActionGraph of agents that cover one tile. What is allowed is what has begun: an action of each agent at most.

    shape: (rows, cols) of the map; most: actions of an agent that may be planned and not done
    """

    def __init__(self, shape: tuple[int, int], most: int):
        super().__init__(shape, 0, False, most)

    def go(self, done: np.ndarray) -> np.ndarray:
        """Say who goes on in this tick. done: (N,) ticks of the action at hand that agents have done -> (N,) bool"""
        every = np.arange(len(self.planned))
        at, stands = self._numbers(), np.full(len(self._over), -1)
        stands[at[:, 0]] = every
        going = self._goes(at, np.zeros(len(every), np.int64), done, self._over, stands)
        begin = np.flatnonzero(going & (self.allowed == 0))
        if len(begin):
            self._grant(begin)
        return going

    def forecast(self, ticks: int, lasts: int, done: np.ndarray) -> np.ndarray:
        """What agents will have begun after so many ticks, if nobody is late.

        lasts: ticks of an action; done: (N,) ticks of the action at hand that are done
        -> (N,) how many of its planned actions each agent will have begun
        """
        every = np.arange(len(self.planned))
        at, over, stands = self._numbers(), self._over.copy(), np.full(len(self._over), -1)
        stands[at[:, 0]] = every
        ended, done, begun = np.zeros(len(every), np.int64), np.array(done, np.int64), self.allowed.copy()
        for _ in range(ticks):
            goes = self._goes(at, ended, done, over, stands)
            begun[goes] = np.maximum(begun[goes], ended[goes] + 1)
            done[goes] += 1
            ends = np.flatnonzero(done >= lasts)
            here, there = at[ends, ended[ends]], at[ends, ended[ends] + 1]
            moved = here != there
            over[here[moved]] += 1
            stands[here[moved]] = -1
            stands[there[moved]] = ends[moved]
            ended[ends] += 1
            done[ends] = 0
        return begun

    def keep_only(self, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Forget all but the first `kept` (N,) actions of each agent, as `forecast` tells them, and what has begun ->
        (N, 2) tiles and (N,) headings at the end of these"""
        begun = self.allowed
        self.allowed = np.clip(kept, begun, self.planned)
        ends = self.forget()
        self.allowed = begun
        return ends

    def follow(self, tiles: np.ndarray, headings: np.ndarray) -> None:
        """Agents are seen on tiles (N, 2) with headings (N,): whoever is where its action leads has done it."""
        ended = (tiles != self.tiles[:, 0]).any(axis=1) | (headings != self.headings[:, 0])
        agents = np.flatnonzero(ended)
        if len(agents):
            self.arrive(agents, np.ones(len(agents), np.int64))

    def _numbers(self):
        """(N, most + 1) numbers of the tiles that agents are on, then of those after each planned action"""
        return self.tiles[..., 0] * self._width + self.tiles[..., 1] + self._covers[0, 0]

    def _goes(self, at, ended, done, over, stands):
        """(N,) bool, who may go on after `ended` (N,) of its planned actions.

        at: (N, most + 1) of `_numbers`; over: (tiles,) how many visits are over; stands: (tiles,) who is there, or -1
        """
        every = np.arange(len(at))
        after = np.minimum(ended + 1, self.most)
        here, there, turn = at[every, ended], at[every, after], self._turn[every, after, 0]
        other = stands[there]
        leaves = there[other] - here[other] == there - here  # straight on
        leaves &= (here[other] == there) & (other >= 0) & (ended[other] < self.planned[other])
        behind = leaves & (over[there] == turn - 1) & (done < done[other])
        return (ended < self.planned) & ((here == there) | (over[there] == turn) | behind)
