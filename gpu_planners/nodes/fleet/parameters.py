"""The parameters of the node fleet_planner, with the settings of fleets as `fleet.<field>`."""

from dataclasses import dataclass
from typing import Any

from ...fleet.execution.rules import Rules
from ...fleet.execution.tasks import TaskRules
from ...settings import changed, setting
from ..common.parameters import MapParameters


@dataclass(frozen=True)
class FleetParameters(Rules, TaskRules, MapParameters):
    """Parameters of the node fleet_planner."""

    device: str = changed(
        MapParameters,
        "device",
        text="Where to compute: auto, cpu, cuda or cuda:N, cuda:all, or several with commas between them; the first of "
        "several moves the fleet, and each request to ~/plan_fleet is answered on whichever other is free",
    )
    agent_topics: bool = setting(
        False, "Publish the path of each agent on /<id>/plan too, where its id is fit for a topic", read_only=True
    )
    tile_size: float = setting(
        0.0,
        "Side of a tile, about that of a robot, rounded up to whole cells of the map; 0: a tile is a cell",
        0.0,
        1000.0,
        unit="metres",
    )
    zones_file: str = setting(
        "",
        "Zones of the map, a zoneSet of VDA 5050 3.0 (JSON): closed tiles, lanes, slow zones, and, as NO_STOPPING, "
        "tiles where nobody may stop; empty: none",
        read_only=True,
    )
    time_limit_s: float = setting(
        5.0, "Planning time of requests that give none; steps go on meanwhile", 0.001, 3600.0, unit="seconds"
    )
    marker_rate: float = setting(2.0, "How often ~/markers is published at most", 0.01, 100.0, unit="per second")
    marker_agents: int = setting(5000, "Most agents that ~/markers shows, spread evenly", 0, 10_000_000)

    @property
    def occupancy_rules(self) -> dict[str, Any]:
        return super().occupancy_rules | {"connectivity": 4}
