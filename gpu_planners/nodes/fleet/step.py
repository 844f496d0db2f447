"""What is known of an agent, and what all agents do in a step."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

AGENT = np.dtype(
    [
        ("point", "f8", 2),  # metres, of the latest valid report
        ("yaw", "f8"),  # rad, of that report; NaN: none was given
        ("heard", "f8"),  # when anything was last heard
        ("heard_step", "i8"),  # how many steps had begun then
        ("busy", "i8"),  # the step with which its action ends
        ("goal", "i8", 2),  # tile; -1: none, or none that can be reached
        ("reached", "?"),  # has it been at that goal?
        ("there", "?"),  # is it on the map?
        ("silent", "?"),  # was it when the last step began?
    ]
)
SHOWN = 5  # things that a text names


@dataclass(frozen=True)
class FleetStep:
    """What K agents do in a step. Tiles are [row, col], headings quarter turns to the left from the map's x axis.

    number: counts from 1; ids: K texts; actions: (K,) of the planner; states: (K,) of AgentActions
    tiles_before, headings_before, tiles, headings: (K, 2), (K,) when the step begins, and when the action has ended
    ticks: (K,) steps that the action takes; 0: none is begun
    goals: (K, 2) tiles, -1: none
    time_s: of planning
    """

    number: int
    ids: list[str]
    actions: np.ndarray
    states: np.ndarray
    tiles_before: np.ndarray
    headings_before: np.ndarray
    tiles: np.ndarray
    headings: np.ndarray
    ticks: np.ndarray
    goals: np.ndarray
    time_s: float


def named(what: Sequence[str]) -> str:
    """The first of some texts, and how many more there are."""
    more = f" and {len(what) - SHOWN} more" if len(what) > SHOWN else ""
    return "; ".join(what[:SHOWN]) + more
