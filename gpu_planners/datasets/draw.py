"""How problems are drawn: settings that a data set is made by."""

from dataclasses import dataclass

from ..errors import SettingsError
from ..settings import Described, setting
from .furniture import FAMILIES

PRIMITIVES = ("box", "cylinder", "sphere")
GOALS = ("configuration", "pose")
ENDS = ("anywhere", "furniture")


@dataclass(frozen=True, kw_only=True)
class Draw(Described):
    """How scenes, starts and goals are drawn. A reach is the distance from the middle of all places of the tool that
    one place in twenty exceeds. The first eight are of random scenes."""

    least: int = setting(4, "Fewest obstacles of a random scene", 0, 10_000)
    most: int = setting(16, "Most obstacles of a random scene", 0, 10_000)
    smallest: float = setting(0.05, "Smallest edge or diameter of an obstacle", 1e-3, 10.0, unit="reaches")
    largest: float = setting(0.5, "Largest edge or diameter of an obstacle", 1e-3, 10.0, unit="reaches")
    kinds: tuple = setting(PRIMITIVES, "Kinds of obstacles", items=str, choices=PRIMITIVES)
    tilted: bool = setting(False, "Obstacles are turned about all axes, not about the vertical alone")
    away: float = setting(0.2, "Distance that obstacles keep from the robot's base", 0.0, 10.0, unit="reaches")
    furniture: tuple = setting(
        (),
        "Furniture, one piece in each random scene, in place of the loose obstacles of the settings above; empty: none",
        items=str,
        choices=tuple(FAMILIES),
    )
    ends: str = setting("anywhere", "Where the tool is at starts and goals; furniture: in its places", choices=ENDS)
    per_scene: int = setting(4, "Problems in a row that share a scene", 1, 1_000_000)
    apart: float = setting(0.3, "Least distance of start and goal; 1: the mean of random configurations", 0.0, 2.0)
    straight: bool = setting(True, "Pairs that the straight motion solves are taken, too")
    tries: int = setting(256, "Configurations drawn for a start and a goal, at most", 2, 1_000_000)
    goals: str = setting("configuration", "What a goal is; pose: all configurations found for its pose", choices=GOALS)
    solutions: int = setting(4, "Configurations of a pose that are goals, at most", 1, 64)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.kinds:
            raise SettingsError(f"Draw.kinds is empty; allowed: one or more of {', '.join(PRIMITIVES)}")
        if self.ends == "furniture" and not self.furniture:
            raise SettingsError(
                f"Draw.ends is 'furniture', but Draw.furniture is empty; allowed: one or more of {', '.join(FAMILIES)}"
            )
        for low, high in (("least", "most"), ("smallest", "largest")):
            if getattr(self, low) > getattr(self, high):
                raise SettingsError(
                    f"Draw.{low} is {getattr(self, low)}; allowed: up to Draw.{high}, {getattr(self, high)}"
                )
