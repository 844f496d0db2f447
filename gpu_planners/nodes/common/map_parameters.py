"""The parameters of nodes that plan on a map: where it comes from, what its cells are, where to compute."""

from dataclasses import dataclass
from typing import Any

from ...settings import setting
from .parameters import NodeParameters

UNKNOWN = "free, blocked, or a cost from 1 to 255"


def unknown_cells(text: str) -> str | int | None:
    """The parameter `unknown` as GridMap.from_occupancy takes it; None when it is wrong."""
    if text in ("free", "blocked"):
        return text
    return int(text) if text.isdigit() and 1 <= int(text) <= 255 else None


@dataclass(frozen=True)
class MapParameters(NodeParameters):
    """Parameters of a map."""

    map_file: str = setting(
        "", "Map to begin with: a map_server .yaml or a MovingAI .map; empty: wait for the topic map", read_only=True
    )
    map_frame: str = setting("map", "Frame of map_file, and of maps that name none", read_only=True)
    map_durability: str = setting(
        "transient_local",
        "QoS durability of the subscription map; volatile for publishers that do not latch",
        choices=("transient_local", "volatile"),
        read_only=True,
    )
    unknown: str = setting(
        "blocked",
        "What unknown cells of a map are",
        must=(UNKNOWN, lambda text: unknown_cells(text) is not None),
        read_only=True,
    )
    occupied_from: int = setting(65, "Occupancy values from here on are blocked", 1, 100, read_only=True)
    footprint_radius: float = setting(
        0.0, "Radius of the robots: cells nearer to an obstacle are blocked", 0.0, 1000.0, unit="metres"
    )

    @property
    def occupancy_rules(self) -> dict[str, Any]:
        """What GridMap.from_occupancy takes beside the values and their place."""
        return {"unknown": unknown_cells(self.unknown), "occupied_from": self.occupied_from}
