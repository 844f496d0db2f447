"""What a running fleet goes by."""

from dataclasses import dataclass

import numpy as np

from ...device import resolve_devices
from ...grid.maps.grid_map import GridMap
from ...settings import Described, changed, setting
from ..motion import MOTIONS
from ..planner import FleetPlanner
from ..settings import Settings


@dataclass(frozen=True)
class LateFleet(Settings):
    """Settings of agents that may be late."""

    following: bool = changed(Settings, "following", default=False)
    label = Settings.label


@dataclass(frozen=True)
class Rules(Described):
    """What a RunningFleet goes by."""

    device: str = setting("auto", "Where to compute: auto, cpu, cuda or cuda:N; the first of several moves the fleet")
    motion: str = setting(
        "turning",
        "four: agents move along the map's axes; turning: they have a heading, move ahead and turn on the spot",
        choices=tuple(MOTIONS),
        read_only=True,
    )
    step_s: float = setting(1.0, "How long a step takes", 0.001, 3600.0, unit="seconds")
    lockstep: bool = setting(
        False, "Begin a step as soon as every agent has told that it did the last one, however soon: for simulators"
    )
    steps_ahead: int = setting(
        2,
        "How many steps an agent may be behind the plan; it is told at once all that it may do without waiting for "
        "others",
        0,
        20,
    )
    budget_s: float = setting(
        0.0, "Time of a step that is spent on better moves than the first ones found", 0.0, 3600.0, unit="seconds"
    )
    silent_after_s: float = setting(
        5.0,
        "An agent that is not heard of, or does not do its action, for so long is taken to stand: others go around it",
        0.01,
        1e6,
        unit="seconds",
    )
    arrival_tolerance: float = setting(
        0.25,
        "How far from its tile's centre an agent may be when a step ends; of more than `clearance`, so much counts",
        0.0,
        0.5,
        unit="tiles",
    )
    clearance: float = setting(
        0.125,
        "What is free on each side of a robot, with its load and whatever its heading, in the middle of its tiles: one "
        "of a tile that is as wide as 0.75 tiles has 0.125. It has left a tile when all of it is out",
        0.01,
        0.5,
        unit="tiles",
    )
    state_file: str = setting(
        "",
        "Where the node keeps, before it tells orders, what each agent may do and where it is: one that starts again "
        "takes it up, so that nobody is sent to where a silent robot stands; empty: nothing is kept",
    )
    max_agents: int = setting(100_000, "Most agents of the fleet, or of a request", 1, 2**31 - 1)
    guidance_file: str = setting(
        "", "What `gpu-planners learn` has learnt for the map's tiles; empty: as the parameter fleet.guidance says"
    )
    fleet: Settings = LateFleet()

    def __post_init__(self) -> None:
        super().__post_init__()
        one_tile = GridMap(np.ones((1, 1), np.uint8))
        FleetPlanner(one_tile, self.motion, "cpu", self.fleet)  # refuses settings that do not go together

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the devices, one or more."""
        return resolve_devices(self.device)

    @property
    def tolerance(self) -> float:
        """Tiles that an agent may be off a tile's centre when it has arrived there, and left the tile before."""
        return min(self.arrival_tolerance, self.clearance)
