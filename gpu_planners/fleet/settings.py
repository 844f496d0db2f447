"""Settings of FleetPlanner."""

from dataclasses import dataclass

from ..settings import Described, setting

TICKS = 3  # looked ahead, where the settings do not say


@dataclass(frozen=True)
class Settings(Described):
    """Settings of a fleet."""

    horizon: int = setting(
        0,
        "ticks that are looked ahead; with less than twice what the longest action takes, agents may block each other. "
        "0: 3; for agents that turn, whose actions take a tick, 4 where they may not follow each other at once, and "
        "4 or 5 where a step has time and there is room",
        0,
        5,
    )
    ticks_per_move: int = setting(1, "how long a move to the next tile takes", 1, 5, unit="ticks")
    ticks_per_turn: int = setting(1, "how long a quarter turn takes", 1, 5, unit="ticks")
    size: int = setting(1, "side of the square that an agent covers", 1, 15, unit="tiles")
    safety_distance: int = setting(0, "tiles that stay free between agents", 0, 15, unit="tiles")
    following: bool = setting(True, "may an agent enter a tile that another one leaves in the same step?")
    guidance: str = setting(
        "auto",
        "what agents avoid: 'plain' nothing, they take shortest ways; 'lanes' moving against one-way lanes whose "
        "directions alternate, which keeps dense traffic from meeting head on; 'auto' the same, the more strictly the "
        "more agents there are for the free tiles; nothing where tiles have costs of their own",
        choices=("auto", "plain", "lanes"),
    )
    avoid_crowds: bool = setting(
        True, "agents that are farther from their goals than most keep away from where it is crowded"
    )
    neighbourhood_search: bool = setting(True, "use the rest of a step's budget to make its moves better")
    improve_until: str = setting(
        "limit",
        "how long `solve` makes its first plan better: 'limit' until its time limit, unless the plan is proven to be "
        "optimal before; 'settled' until nothing was gained for long, which gives the same plan for the same seed; "
        "'first' not at all",
        choices=("limit", "settled", "first"),
    )
    stuck_after: int = setting(500, "steps without reaching a goal, after which an agent is called stuck", 1, 10**9)
    memory_limit_bytes: int = setting(4 << 30, "of all cost-to-go fields", 1, 1 << 50, unit="bytes")

    @property
    def least_horizon(self) -> int:
        """Ticks that are looked ahead at least."""
        return self.horizon or TICKS
