"""Pictures of fleets that move: an image of one step, and an HTML file that plays all steps and needs nothing else."""

import base64
import html
import json
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from ..arguments import checked, integers
from ..errors import GridMapError
from ..grid.drawing import draw_map
from ..grid.maps.grid_map import GridMap

__all__ = ("draw_fleet", "fleet_page")

TRAIL = 30  # steps of a trail
TRAILS = 60  # agents that have one, spread evenly
PAGE, SCRIPT = (Path(__file__).with_name(name) for name in ("page.html", "page.js"))
MOST_STEPS_OF_AGENTS = 50_000_000  # that a page holds: a byte each


@checked(GridMapError)
def draw_fleet(grid: GridMap, positions: ArrayLike, step: int = -1, size: int = 1200) -> Image.Image:
    """A picture of a step: agents as dots, and where some of them were in the steps before it as lines.

    positions: (steps + 1, N, 2) int [row, col]; negative rows: an agent is not there
    step: which one; negative: from the end
    size: pixels of the longer side
    """
    place = _checked_positions(positions)
    if not -len(place) <= step < len(place):
        raise GridMapError(f"step is {step}; allowed: {-len(place)} .. {len(place) - 1}")
    step %= len(place)
    there = np.flatnonzero(place[step, :, 0] >= 0)
    trails = []
    for agent in there[np.linspace(0, len(there) - 1, min(TRAILS, len(there))).astype(int)]:
        past = place[max(0, step - TRAIL) : step + 1, agent]
        gone = np.flatnonzero(past[:, 0] < 0)
        trails.append(past[gone[-1] + 1 :] if len(gone) else past)
    return draw_map(grid, None, trails, place[step, there], size)


@checked(GridMapError)
def fleet_page(
    grid: GridMap,
    positions: ArrayLike,
    headings: ArrayLike | None = None,
    goals: ArrayLike | None = None,
    title: str = "Fleet",
    step_s: float = 1.0,
) -> str:
    """A page that plays the moves of a fleet: play and pause, a slider, a speed; a click on an agent follows it.

    positions: (steps + 1, N, 2) int [row, col]; negative rows: an agent is not there
    headings: (steps + 1, N) int, 0 east, 1 south, 2 west, 3 north; None: agents have none
    goals: (steps + 1, N, 2) int [row, col] where they go, negative rows: nowhere; None: not shown
    title: shown as plain text; step_s: how long a step takes, seconds

    -> the text of an HTML file. Raises GridMapError for arrays of another shape, or a map that is too large.
    """
    return page_of(grid, moves_of(positions, headings, goals), title, step_s, turning=headings is not None)


def moves_of(positions: ArrayLike, headings: ArrayLike | None = None, goals: ArrayLike | None = None) -> dict[str, Any]:
    """What page.js takes of moves; arguments as of `fleet_page`."""
    place = _checked_positions(positions)
    steps, agents = place.shape[:2]
    if steps * agents > MOST_STEPS_OF_AGENTS:
        raise GridMapError(f"{steps} x {agents} steps of agents; allowed on a page: {MOST_STEPS_OF_AGENTS}")
    faces = np.zeros((steps, agents), np.int64) if headings is None else np.asarray(headings)
    aims = np.full(place.shape, -1) if goals is None else np.asarray(goals)
    for name, array, shape in (("headings", faces, (steps, agents)), ("goals", aims, place.shape)):
        if array.shape != shape or array.dtype.kind not in "iu":
            raise GridMapError(f"{name} is {array.dtype} {array.shape}; allowed: integers {shape}")
    aims = np.where(aims[..., :1] < 0, -1, aims)
    first = np.ones((steps, agents), bool)
    first[1:] = (aims[1:] != aims[:-1]).any(axis=2)
    when, who = np.nonzero(first)
    return {
        "steps": steps,
        "agents": agents,
        # row, col, heading of each agent at each step
        "places": _packed(np.moveaxis(place, -1, 0).astype("<i2")),
        "headings": _packed((faces % 4).astype(np.uint8)),
        # goals as they change: step, agent, row, col
        "goals": _packed(np.stack([when, who, *aims[when, who].T]).astype("<i4")),
    }


def page_of(grid: GridMap, moves: dict[str, Any], title: str, step_s: float, **more: Any) -> str:
    """The HTML of a page. more: turning: do agents have headings? below: is row 0 at the bottom? live: see page.js"""
    facts = {"rows": grid.rows, "cols": grid.cols, "map": _packed(np.packbits(grid.blocked))}
    data = {**facts, "stepSeconds": float(step_s), **more, **moves}
    page, script = Template(PAGE.read_text(encoding="utf-8")), SCRIPT.read_text(encoding="utf-8")
    last = moves["steps"] - 1
    return page.substitute(title=html.escape(title), last=last, data=json.dumps(data), script=script)


def _packed(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def _checked_positions(positions):
    place = integers("positions", positions, (None, None, 2), "(steps + 1, N, 2)", GridMapError)
    if not len(place):
        raise GridMapError(f"positions has the shape {place.shape}; allowed: (steps + 1, N, 2), one step at least")
    return place
