"""How fleet control speaks to vehicles."""

from dataclasses import dataclass

from ..errors import SettingsError, shown
from ..fleet.execution.rules import Rules
from ..fleet.execution.tasks import TaskRules
from ..settings import Described, setting


@dataclass(frozen=True)
class FleetRules(Rules, TaskRules):
    """What a fleet of vehicles and its tasks go by."""


@dataclass(frozen=True)
class Speaking(Described):
    """How messages are sent, and when they are sent again."""

    interface: str = setting("", "First level of topics; empty: uagv of 2.1 and vda5050 of 3.0")
    map_id: str = setting("", "mapId of orders and states; empty: as the layout says, or the map's file is called")
    answer_s: float = setting(
        3.0, "An order or instant action that no state shows by then is sent again", 0.05, 600.0, unit="seconds"
    )
    status_s: float = setting(1.0, "How often the fleet's state is published at most", 0.05, 3600.0, unit="seconds")
    most_nodes: int = setting(50, "Most nodes of an order, where the factsheet does not say fewer", 2, 10_000)
    topic: str = setting(
        "gpu_planners", "Level of topics for errands and the fleet's state: <topic>/errands, <topic>/status"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, refused in (("interface", "/+#\0"), ("topic", "+#\0")):
            if set(refused) & set(value := getattr(self, name)):
                allowed = "one level of a topic of MQTT" if "/" in refused else "levels of a topic of MQTT"
                raise SettingsError(f"{self.label(name)} is {shown(value)}; allowed: {allowed}, without + and #")
