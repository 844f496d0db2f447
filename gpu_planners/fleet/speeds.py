"""How fast each agent is, and the options that agents of all speeds have."""

import numpy as np
from numpy.typing import ArrayLike

from ..errors import GridMapError, SettingsError, shown
from ..grid.checks import array_of
from .motion import Motion, Options, Speed, options_of, slowest


def checked_speeds(speeds: ArrayLike | None, agents: int, motion: Motion, settings) -> np.ndarray:
    """(N, 2) int ticks of a move and of a turn, None: those of the settings -> (N, 2) int32

    Turns count as 1 where nobody turns. Raises GridMapError, which names the agent.
    """
    if speeds is None:
        return np.tile(np.array(speed_of(motion, settings), np.int32), (agents, 1))
    array = array_of(speeds, "speeds")
    if array.shape != (agents, 2) or array.dtype.kind not in "iu":
        raise GridMapError(
            f"speeds is {array.dtype} {array.shape}; allowed: integers ({agents}, 2), ticks of a move and of a turn"
        )
    right = ((array >= 1) & (array <= settings.horizon)).all(axis=1)
    if not right.all():
        agent = int(np.argmin(right))
        raise GridMapError(
            f"speeds[{agent}] is {shown(array[agent].tolist())}; allowed: 1 .. {settings.horizon} ticks, the horizon"
        )
    array = array.astype(np.int32)
    if motion.headings == 1:
        array[:, 1] = 1
    return array


def speed_of(motion: Motion, settings) -> Speed:
    """Of agents whose speed is not given. Raises SettingsError where the horizon is too short for it."""
    speed = Speed(settings.ticks_per_move, settings.ticks_per_turn if motion.headings > 1 else 1)
    if settings.horizon < max(speed):
        raise SettingsError(
            f"horizon is {settings.horizon} ticks; allowed: at least {max(speed)}, what the longest action takes"
        )
    return speed


class Paces:
    """The speeds that agents of a fleet have, and the options of each.

    speeds: the different ones; options: Options, tables by speed, then by `rest`; rests: tables of a speed
    """

    def __init__(self, speeds: tuple[Speed, ...], motion: Motion, horizon: int, width: int):
        self.speeds: tuple[Speed, ...] = speeds
        self.options: Options = options_of(motion, speeds, horizon, width)
        self.rests: int = max(map(slowest, speeds)) + 1
        self._of_motion = motion, horizon, width

    @property
    def ticks(self) -> np.ndarray:
        """(speeds, 2) int32 of a move and of a turn"""
        return np.array(self.speeds, np.int32)

    @property
    def one_tick(self) -> bool:
        """Do all actions take one tick?"""
        return self.rests == 1

    def only(self, speeds: np.ndarray) -> "Paces":
        """Those of agents (N, 2) alone; the same where there are no agents."""
        found = _different(speeds)
        return self if not found or found == self.speeds else Paces(found, *self._of_motion)

    def also(self, speeds: np.ndarray) -> "Paces":
        """These and those of agents (N, 2)."""
        new = tuple(speed for speed in _different(speeds) if speed not in self.speeds)
        return Paces(self.speeds + new, *self._of_motion) if new else self

    def tables(self, speeds: np.ndarray) -> np.ndarray:
        """(N, 2) -> (N,) int32 tables of agents that can act"""
        number = {speed: k for k, speed in enumerate(self.speeds)}
        return np.array([number[Speed(*pair)] * self.rests for pair in speeds.tolist()], np.int32)

    def moved(self, table: np.ndarray, option: np.ndarray, other: "Paces") -> tuple[np.ndarray, np.ndarray]:
        """Tables (N,) and options (N,) of agents of these paces -> the same in other ones, which begin with these."""
        pace, rest = np.divmod(table, self.rests)
        then = pace * other.rests + rest
        return then, option - self.options.first_option[table] + other.options.first_option[then]


def _different(speeds):
    return tuple(Speed(*pair) for pair in np.unique(speeds, axis=0).tolist())
