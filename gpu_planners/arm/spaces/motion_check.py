"""How a straight motion in joint space is checked."""

from dataclasses import dataclass

import numpy as np

from ...errors import SettingsError
from ...settings import Described, setting

CONTINUOUS, WORKSPACE, JOINT, COUNT = range(4)  # modes, for compiled code
MODES = {"continuous": CONTINUOUS, "workspace": WORKSPACE, "joint": JOINT, "count": COUNT}


@dataclass(frozen=True)
class MotionCheck(Described):
    """How a straight motion in joint space is checked.

    mode: "continuous": proven free all along; a motion that comes closer than `step` metres may be refused.
          "workspace": at equal steps, so that no point of the robot moves more than `step` metres between two checks.
          "joint": at equal steps of at most `step` in the joint-space L2 norm ([DL14], definition 1).
          "count": in `step` equal parts, whatever the length ([BKF11], III-B-3).
    """

    mode: str = setting("continuous", "How motions are checked, proven or at steps", choices=tuple(MODES))
    step: float = setting(
        1e-3, "Step of the mode: metres, metres, rad (m for prismatic joints), number of parts", 1e-5, 1e6
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode == "count" and self.step < 1:
            raise SettingsError(f"MotionCheck.step is {self.step!r}; allowed in mode 'count': at least 1 part")

    @property
    def compiled(self) -> tuple[int, np.float32]:
        """(mode, step) as compiled code takes them."""
        return MODES[self.mode], np.float32(self.step)
