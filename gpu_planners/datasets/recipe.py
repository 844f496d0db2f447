"""What the rows of a data set depend on, and nothing else: the same recipe gives the same rows."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .. import __version__
from ..arguments import checked, whole
from ..arm import RobotModel
from ..arm.collision.checker import MARGIN
from ..arm.planners import rrt_connect
from ..errors import SettingsError, shown
from ..settings import Described, setting
from .furniture import FAMILIES
from .obstacles import PRIMITIVES, Obstacle

FORMAT = 1  # of the files: a reader takes its own version alone
MOST_SEED = 2**63 - 1
MOST_TIMES = 100_000  # of a motion from one end of the joints' ranges to the other
SETTINGS = rrt_connect.Settings(max_samples=5_000, time_limit_s=60.0)  # rows that time ends differ from run to run
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


@dataclass(frozen=True, kw_only=True)
class Timing(Described):
    """How the motions of a data set are timed."""

    every_s: float = setting(
        0.0, "Sample a motion at equal times; 0: the knots of its spline", 0.0, 1e6, unit="seconds"
    )
    deviation: float = setting(
        0.0, "How far a motion may leave the path at a corner, where that is proven free; 0: it stops", 0.0, 1e3
    )
    velocity: float = setting(1.0, "Share of the joints' velocity limits", 1e-3, 1.0)
    acceleration: float = setting(1.0, "Share of the joints' acceleration limits", 1e-3, 1.0)


@checked(SettingsError)
@dataclass(frozen=True)
class Recipe:
    """What the rows of a data set depend on.

    robot: RobotModel;  tip: its link whose poses are stored
    files: {name: digest} of the robot's files;  source: where they are, to read the robot again: no row depends on it
    scenes: ((name, obstacles), ...) to take one of for each scene; none: random scenes
    draw: how problems are drawn;  settings: of the planner;  timing: of the motions; None: they are not timed
    seed: 0 to MOST_SEED;  margin: metres kept from obstacles;  device: kind of the planner's device, "cpu" or "cuda":
        a GPU takes its samples in other rounds, and so finds other paths
    """

    robot: RobotModel
    tip: str
    files: dict[str, Any] = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict)
    scenes: tuple[tuple[str, tuple[Obstacle, ...]], ...] = ()
    draw: Draw = Draw()
    settings: rrt_connect.Settings = SETTINGS
    timing: Timing | None = None
    seed: int = 0
    margin: float = 0.0
    device: str = "cpu"

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", whole("the seed of a data set", self.seed, 0, MOST_SEED))
        if self.device not in ("cpu", "cuda"):
            raise SettingsError(f"the kind of device is {shown(self.device)}; allowed: cpu, cuda")
        if self.settings.restarts or self.settings.optimise_s:
            raise SettingsError(
                "restarts and optimise_s are set, but a data set is planned in batches, which spend none; "
                "allowed: 0 for both"
            )
        MARGIN.checked("the margin of a data set", self.margin)
        self.robot.link_index(self.tip)
        if self.timing and self.timing.every_s and (longest := self._longest_s()) > MOST_TIMES * self.timing.every_s:
            raise SettingsError(
                f"Timing.every_s is {self.timing.every_s}, but with these limits a motion across the joints' ranges "
                f"takes {longest:.3g} s; allowed: from {longest / MOST_TIMES:.2g} s, for {MOST_TIMES} times"
            )

    def _longest_s(self):
        """How long the slowest joint takes from one end of its range to the other, seconds."""
        robot, timing = self.robot, self.timing
        ranges, acceleration = np.maximum(robot.upper - robot.lower, 1e-9), robot.acceleration * timing.acceleration
        velocity = np.minimum(robot.velocity * timing.velocity, np.sqrt(ranges * acceleration))
        return float((ranges / velocity + velocity / acceleration).max())

    def described(self) -> dict[str, Any]:
        """What the rows depend on as JSON has it, with digests in place of the robot's shapes and the scenes."""
        robot = self.robot
        names = {"name": robot.name, "joint_names": list(robot.joint_names), "root_link": robot.root_link}
        limits = {
            name: np.round(getattr(robot, name), 9).tolist() for name in ("lower", "upper", "velocity", "acceleration")
        }
        scenes = hashlib.sha256(json.dumps([obstacles for _, obstacles in self.scenes]).encode()).hexdigest()
        described = {
            "library": f"gpu_planners {__version__}",
            "robot": names | limits | {"tip": self.tip, "model_sha256": model_digest(robot)} | self.files,
            "scenes": {"count": len(self.scenes), "sha256": scenes} if self.scenes else "random",
            "draw": asdict(self.draw),
            "planner": {"name": "rrt_connect"} | asdict(self.settings),
            "timing": None if self.timing is None else asdict(self.timing),
            "seed": self.seed,
            "margin_m": self.margin,
            "device": self.device,
        }
        return json.loads(json.dumps(described))  # as it will be read again


def differences(old: Any, new: Any, name: str = "") -> list[str]:
    """A text for each value that two descriptions do not share: "draw.most was 16, is 20"."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*old, *(key for key in new if key not in old)]
        return [text for key in keys for text in differences(old.get(key), new.get(key), f"{name}.{key}".lstrip("."))]
    return [] if old == new else [f"{name} was {shown(old)}, is {shown(new)}"]


def model_digest(robot: RobotModel) -> str:
    """A digest of all that the planner knows about a robot: frames, limits, shapes, pairs of links that may meet."""
    key = hashlib.sha256(repr((robot.joint_names, robot.link_names, robot.frame_names)).encode())
    arrays: list[Any] = [robot.lower, robot.upper, robot.continuous, robot.periodic, robot.T_parent_base]
    arrays += [robot.link_frame, robot.T_frame_link, robot.shape_frame, robot.self_collision_pairs]
    arrays += [robot.frames[column] for column in robot.frames.dtype.names or ()]
    for shape in robot.shapes:
        arrays += [int(shape.kind), shape.pose, shape.half_extents, shape.vertices]
    for array in arrays:
        key.update((np.round(np.asarray(array, dtype=np.float64), 9) + 0.0).tobytes())
    return key.hexdigest()
