"""Errands: where vehicles shall go, and what they shall do there. They are kept on disk, so that none is lost."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import GpuPlannersError, SettingsError, one_line, shown
from ..files import read_text_file, write_whole
from .layout import Layout, Tile
from .messages import MessageError, action_rule, checked
from .versions import VERSIONS

MOST_BYTES = 1 << 28
MOST_ENDED = 1000  # errands that are over and still told of
WAITING, UNDERWAY, ACTING, DONE, FAILED, CANCELLED = "WAITING", "UNDERWAY", "ACTING", "DONE", "FAILED", "CANCELLED"
STATES = (WAITING, UNDERWAY, ACTING, DONE, FAILED, CANCELLED)
BUSY, OVER = (UNDERWAY, ACTING), (DONE, FAILED, CANCELLED)
_RULE = {
    "errandId": str,
    "node?": str,
    "x?": float,
    "y?": float,
    "theta?": float,
    "vehicle?": str,
    "actions?": [action_rule(VERSIONS["3.0"])],
}


class ErrandError(GpuPlannersError):
    """An errand cannot be taken; the text names it, and what is allowed."""


@dataclass
class Errand:
    """id: its name; goal: tile; theta: rad of the map, None: any; vehicle: who does it, "": nobody yet
    named: was the vehicle asked for by name? actions: of VDA 5050, with their ids; state: of STATES; text: why
    """

    id: str
    goal: Tile
    theta: float | None = None
    vehicle: str = ""
    named: bool = False
    actions: list[dict[str, Any]] = field(default_factory=list)
    state: str = WAITING
    text: str = ""

    @property
    def over(self) -> bool:
        return self.state in OVER

    def told(self, layout: Layout) -> dict[str, str]:
        """What the fleet's status says of it."""
        return {"state": self.state, "vehicle": self.vehicle, "node": layout.name(self.goal), "text": self.text}


def errand_of(content: Any, layout: Layout) -> Errand:
    """An errand {errandId, node or x and y, theta, vehicle, actions}. Raises ErrandError."""
    name = content.get("errandId") if isinstance(content, dict) else None
    try:
        checked(content, _RULE)
        if not name:
            raise MessageError("errandId is empty; allowed: any other text")
        goal = _goal(content, layout)
    except MessageError as error:
        raise ErrandError(f"errand {shown(name)}: {error}") from error
    if not layout.grid.costs[goal]:
        raise ErrandError(f"errand {name!r}: its goal {layout.name(goal)!r} is blocked; allowed: a free tile")
    actions = [
        {"blockingType": "HARD", "actionParameters": [], **one, "actionId": f"{name}.{k}"}
        for k, one in enumerate(content.get("actions") or ())
    ]
    vehicle = content.get("vehicle") or ""
    return Errand(name, goal, content.get("theta"), vehicle, bool(vehicle), actions)


def _goal(content, layout):
    if content.get("node") is not None:
        tile = layout.tile(content["node"])
        if tile is None:
            raise MessageError(f"node is {content['node']!r}; allowed: a node or station of the layout")
        return tile
    if content.get("x") is None or content.get("y") is None:
        raise MessageError("it has no goal; allowed: node, or x and y")
    row, col = (int(value) for value in layout.grid.tiles_of([[content["x"], content["y"]]])[0])
    if not (0 <= row < layout.grid.rows and 0 <= col < layout.grid.cols):
        raise MessageError(f"its goal ({content['x']:g}, {content['y']:g}) is outside the map")
    return row, col


class Errands:
    """All errands, by id, in the order in which they came.

    path: of the file where they are kept; "": nowhere. Raises SettingsError for a file that cannot be read
    """

    def __init__(self, path: str = "") -> None:
        self._path = Path(path).expanduser() if path else None
        self.by_id: dict[str, Errand] = {}
        if self._path and self._path.exists():
            try:
                kept = json.loads(read_text_file(self._path, "errands", SettingsError, MOST_BYTES))
                for one in kept["errands"]:
                    one["goal"] = tuple(one["goal"])
                    self.by_id[one["id"]] = Errand(**one)
            except (ValueError, TypeError, KeyError) as error:
                raise SettingsError(
                    f"errands '{path}' cannot be taken up: {one_line(str(error))}; remove it, or put it right"
                ) from error

        self._open = {one.id: one for one in self.by_id.values() if not one.over}
        self._busy = {one.vehicle: one for one in self._open.values() if one.state in BUSY}
        self._changed = False

    def take(self, errand: Errand) -> bool:
        """-> is it new? Who sends it again, since nobody answered, gets it once."""
        if errand.id in self.by_id:
            return False
        self.by_id[errand.id] = self._open[errand.id] = errand
        self._changed = True
        return True

    def waiting(self) -> list[Errand]:
        return [errand for errand in list(self._open.values()) if errand.state == WAITING]

    def of(self, vehicle: str) -> Errand | None:
        """What a vehicle is doing"""
        return self._busy.get(vehicle)

    def set(self, errand: Errand, state: str, text: str = "", vehicle: str = "") -> None:
        """vehicle: who does it from now on"""
        if (errand.state, errand.text) == (state, text) and not vehicle:
            return
        errand.state, errand.text, errand.vehicle = state, text, vehicle or errand.vehicle
        self._changed = True
        if state in BUSY:
            self._busy[errand.vehicle] = errand
            return
        if self._busy.get(errand.vehicle) is errand:
            del self._busy[errand.vehicle]
        if errand.over:
            self._open.pop(errand.id, None)
        elif not errand.named:
            errand.vehicle = ""

    def keep(self) -> None:
        """Write down what has changed. Raises SettingsError where that fails."""
        if not self._changed:
            return
        self._changed = False
        ended = [one.id for one in list(self.by_id.values()) if one.over]
        for id in ended[: max(0, len(ended) - MOST_ENDED)]:
            del self.by_id[id]
        if self._path:
            every = [asdict(one) for one in list(self.by_id.values())]
            try:
                write_whole(self._path, json.dumps({"errands": every}).encode())
            except OSError as error:
                self._changed = True
                raise SettingsError(f"errands '{self._path}' cannot be written: {error.strerror or error}") from error


def read_errands(path: str | os.PathLike, layout: Layout) -> Iterable[Errand]:
    """Errands of a JSON file: an array, or an object with `errands`. Raises ErrandError or SettingsError."""
    try:
        content = json.loads(read_text_file(path, "errands", SettingsError, MOST_BYTES))
    except ValueError as error:
        raise SettingsError(f"errands {shown(str(path))} cannot be read: {error}") from error
    every = content.get("errands") if isinstance(content, dict) else content
    if not isinstance(every, list):
        raise SettingsError(f"errands {shown(str(path))} hold {shown(content)}; allowed: an array of errands")
    return [errand_of(one, layout) for one in every]
