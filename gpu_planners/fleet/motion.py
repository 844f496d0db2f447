"""Models of motion, and what an agent can do within the next few ticks: its options.

An option is a sequence of actions over a fixed number of ticks, the horizon (Enhanced PIBT: Yukhnevich and Andreychuk,
arXiv 2511.09193). Options of one agent on the same tiles at the same ticks are one *track*, of which the best option is
taken: conflicts depend on tiles alone. Tracks are relative to the agent's tile and heading.

An action takes one tick, or as many as the agent's speed says. During a move the agent holds the tile that it leaves
and the one that it enters; it finishes what it has begun.
"""

import functools
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ..errors import SettingsError

EAST, SOUTH, WEST, NORTH = range(4)
ROWS_AHEAD = (0, 1, 0, -1)  # of one move, by heading
COLS_AHEAD = (1, 0, -1, 0)
FORWARD, CLOCKWISE = range(2)  # actions of "turning"; the last action of every model waits


def values_ahead(values: np.ndarray, way: int, beyond: float) -> np.ndarray:
    """(rows, cols) the value of the tile to the EAST, SOUTH, WEST or NORTH of each; `beyond`: outside the map"""
    rows, cols = values.shape
    padded = np.pad(values, 1, constant_values=beyond)
    down, right = ROWS_AHEAD[way], COLS_AHEAD[way]
    return padded[1 + down : 1 + down + rows, 1 + right : 1 + right + cols]


@dataclass(frozen=True)
class Motion:
    """A model of motion.

    name: "four" or "turning"; headings: of a state, 1 or 4
    actions: their names, by number; the last one waits
    """

    name: str
    headings: int
    actions: tuple[str, ...]

    @property
    def wait(self) -> int:
        return len(self.actions) - 1

    def after(self, action: int, heading: int) -> tuple[int, int, int]:
        """-> rows and columns that an action moves an agent with a heading, and its heading afterwards"""
        if action == self.wait:
            return 0, 0, heading
        if self.headings == 1:
            return ROWS_AHEAD[action], COLS_AHEAD[action], 0
        if action == FORWARD:
            return ROWS_AHEAD[heading], COLS_AHEAD[heading], heading
        return 0, 0, (heading + (1 if action == CLOCKWISE else 3)) % 4


MOTIONS = MappingProxyType(
    {
        "four": Motion("four", 1, ("east", "south", "west", "north", "wait")),
        "turning": Motion("turning", 4, ("forward", "clockwise", "counter-clockwise", "wait")),
    }
)


class Speed(NamedTuple):
    """How long an agent's actions take, in ticks."""

    move: int = 1
    turn: int = 1


class Options(NamedTuple):
    """What agents can do, for compiled code. A table for each speed and `rest`: ticks until the agent can act again.

    Steps, each the end of an action, form a tree, parents before children; a table's first step is where the agent can
    act.
    """

    first_step: np.ndarray  # (tables + 1,) int32
    first_option: np.ndarray  # (tables + 1,) int32
    parent: np.ndarray  # (S,) int32 step, -1 of the first
    tick: np.ndarray  # (S,) int32 ticks from now
    turn: np.ndarray  # (S,) int32 quarter turns clockwise since the first
    ahead: np.ndarray  # (S, headings) int32 its tile less the agent's, by the agent's heading
    moves: np.ndarray  # (S,) int32 actions but waiting
    leaf: np.ndarray  # (O,) int32 the last step of an option
    track: np.ndarray  # (O,) int32
    opening: np.ndarray  # (O,) int32 its first action
    tail: np.ndarray  # (O,) int32 the option that is left of it after one tick
    stay: np.ndarray  # (tables,) int32 the option that only waits
    fidget: np.ndarray  # (tables,) int32 the one that turns clockwise and waits; `stay` where nobody can turn in time
    here: np.ndarray  # (tracks, headings, horizon + 1) int32 the tile that it stands on or enters, less the agent's
    also: np.ndarray  # (tracks, headings, horizon + 1) int32 the tile that it still leaves, or the same
    most_tracks: int  # of a table


@functools.cache
def options_of(motion: Motion, speeds: tuple[Speed, ...], horizon: int, width: int) -> Options:
    """The options within `horizon` ticks, at least as many as the longest action takes, on a map `width` tiles wide.

    Tables are ordered by speed, then by rest, from 0 to one tick less than the longest action of all takes.
    """
    tables = [_Table(motion, speed, horizon, rest) for speed in speeds for rest in range(max(map(max, speeds)))]
    steps, options, tracks = (np.cumsum([0, *(len(getattr(t, name)) for t in tables)]) for name in _Table.LISTS)
    paths = np.array([track for table in tables for track in table.tracks])  # (T, horizon + 1, 4)
    flat = [step for table in tables for step in table.steps]
    parents = [s.parent + first if s.parent >= 0 else -1 for t, first in zip(tables, steps) for s in t.steps]
    leaves = [(k, option) for k, table in enumerate(tables) for option in table.options.values()]

    def numbers(values):
        return np.array(values, np.int32)

    def turned(pairs):
        """(..., 2) rows and columns -> (headings, ...) offsets of tiles"""
        row, col = np.moveaxis(np.asarray(pairs), -1, 0)
        every_way = (row, col), (col, -row), (-row, -col), (-col, row)
        return np.stack([r * width + c for r, c in every_way[: motion.headings]])

    return Options(
        numbers(steps),
        numbers(options),
        numbers(parents),
        numbers([step.tick for step in flat]),
        numbers([step.turn for step in flat]),
        np.ascontiguousarray(turned([step.moved for step in flat]).T, np.int32),
        numbers([step.actions for step in flat]),
        numbers([option.leaf + steps[k] for k, option in leaves]),
        numbers([option.track + tracks[k] for k, option in leaves]),
        numbers([option.opening for _, option in leaves]),
        numbers([_tail(motion, tables, options, k, option) for k, option in leaves]),
        numbers([options[k] + list(table.options).index(table.waiting) for k, table in enumerate(tables)]),
        numbers([options[k] + list(table.options).index(table.fidget) for k, table in enumerate(tables)]),
        np.ascontiguousarray(np.moveaxis(turned(paths[..., :2]), 0, 1), np.int32),
        np.ascontiguousarray(np.moveaxis(turned(paths[..., 2:]), 0, 1), np.int32),
        max(len(table.tracks) for table in tables),
    )


def speed_of(motion: Motion, settings) -> Speed:
    """The speed that settings give. Raises SettingsError where the horizon is too short for it."""
    speed = Speed(settings.ticks_per_move, settings.ticks_per_turn if motion.headings > 1 else 1)
    if settings.least_horizon < max(speed):
        raise SettingsError(
            f"horizon is {settings.least_horizon} ticks; allowed: at least {max(speed)}, what the longest action takes"
        )
    return speed


class Paces:
    """The speeds that agents of a fleet have, and the options of each.

    speeds: the different ones; ticks: (speeds, 2) int32 of a move and of a turn
    options: tables by speed, then by `rest`; rests: tables of a speed; one_tick: do all actions take one tick?
    """

    def __init__(self, speeds: tuple[Speed, ...], motion: Motion, horizon: int, width: int):
        self.speeds: tuple[Speed, ...] = speeds
        self.ticks: np.ndarray = np.array(speeds, np.int32)
        self.options: Options = options_of(motion, speeds, horizon, width)
        self.rests: int = max(map(max, speeds))
        self.one_tick: bool = self.rests == 1
        self._of_motion = motion, horizon, width

    def only(self, speeds: np.ndarray) -> "Paces":
        """The paces of agents (N, 2) and no others; these where there are no agents."""
        found = _different(speeds)
        return self if not found or found == self.speeds else Paces(found, *self._of_motion)

    def also(self, speeds: np.ndarray) -> "Paces":
        """These paces and those of agents (N, 2)."""
        new = tuple(speed for speed in _different(speeds) if speed not in self.speeds)
        return Paces(self.speeds + new, *self._of_motion) if new else self

    def ahead(self, horizon: int) -> "Paces":
        """These paces with options of so many ticks."""
        motion, _, width = self._of_motion
        return Paces(self.speeds, motion, horizon, width)

    def tables(self, speeds: np.ndarray) -> np.ndarray:
        """(N, 2) speeds -> (N,) int32 tables of agents that can act"""
        number = {speed: k for k, speed in enumerate(self.speeds)}
        return np.array([number[Speed(*pair)] * self.rests for pair in speeds.tolist()], np.int32)

    def moved(self, table: np.ndarray, option: np.ndarray, other: "Paces") -> tuple[np.ndarray, np.ndarray]:
        """Tables (N,) and options (N,) in these paces -> the same in `other`, whose first speeds are these"""
        pace, rest = np.divmod(table, self.rests)
        then = pace * other.rests + rest
        return then, option - self.options.first_option[table] + other.options.first_option[then]


def _different(speeds):
    return tuple(Speed(*pair) for pair in np.unique(speeds, axis=0).tolist())


class _Step(NamedTuple):
    parent: int
    tick: int
    turn: int
    moved: tuple[int, int]
    actions: int


class _Option(NamedTuple):
    leaf: int
    track: int
    opening: int
    sequence: tuple[int, ...]


class _Table:
    """The options of agents of one speed and `rest`."""

    LISTS = "steps", "options", "tracks"

    def __init__(self, motion, speed, horizon, rest):
        self.motion, self.speed, self.horizon, self.rest = motion, speed, horizon, rest
        self.tracks = {}  # track -> number
        self.waiting = self.key_of((motion.wait,) * (horizon - rest))
        left = horizon - rest - speed.turn
        turns = motion.headings > 1 and left >= 0
        self.fidget = self.key_of((CLOCKWISE,) + (motion.wait,) * left) if turns else self.waiting
        found = sorted((sequence, many, *key) for key, (many, sequence) in self._shortest().items())
        number = {sequence: k for k, (sequence, *_) in enumerate(found)}
        self.steps = [
            _Step(number.get(sequence[:-1], -1) if sequence else -1, len(path) - 1, turn, path[-1][:2], many)
            for sequence, many, path, turn in found
        ]
        options = []  # ((track, quarter turns at its end), _Option)
        for leaf, (sequence, _, path, turn) in enumerate(found):
            if len(path) - 1 == horizon:
                track = self.tracks.setdefault(path, len(self.tracks))
                opening = sequence[0] if sequence else motion.wait
                options.append(((path, turn), _Option(leaf, track, opening, sequence)))
        # of a track those with the fewest actions come first, and win where costs are equal
        self.options = dict(sorted(options, key=lambda item: (item[1].track, self.steps[item[1].leaf].actions)))

    def after(self, action, path, turn):
        """-> ticks, the track and the quarter turns after one more action; None where it would take too long"""
        ticks = 1 if action == self.motion.wait else self.speed.turn
        row, col, heading = self.motion.after(action, turn)
        if row or col:
            ticks = self.speed.move
        if len(path) - 1 + ticks > self.horizon:
            return None
        r, c = path[-1][:2]
        there = r + row, c + col
        return ticks, (*path, *((*there, r, c),) * (ticks - 1), (*there, *there)), heading

    def _shortest(self):
        """{(track until now, turn): (actions, sequence)}: the sequence of fewest actions, as early as possible"""
        shortest = {self.key_of(()): (0, ())}
        for ticks in range(self.rest, self.horizon):
            for (path, turn), (actions, sequence) in list(shortest.items()):
                if len(path) - 1 != ticks:
                    continue
                for action in range(len(self.motion.actions)):
                    after = self.after(action, path, turn)
                    if after is not None:
                        found = actions + (action != self.motion.wait), (*sequence, action)
                        shortest[after[1:]] = min(shortest.get(after[1:], found), found)
        return shortest

    def key_of(self, sequence):
        """The key in `options` of what a sequence of actions does."""
        path, turn = ((0, 0, 0, 0),) * (self.rest + 1), 0
        for action in sequence:
            _, path, turn = self.after(action, path, turn)
        return path, turn


def _tail(motion, tables, first, k, option):
    """Number of the tail of `option` of table k after one tick."""
    rest = tables[k].rest
    if rest:
        number, left = k - 1, option.sequence
    else:
        ticks, *_ = tables[k].after(option.opening, ((0, 0, 0, 0),), 0)
        number, left = k + ticks - 1, option.sequence[1:]
    return first[number] + list(tables[number].options).index(tables[number].key_of((*left, motion.wait)))
