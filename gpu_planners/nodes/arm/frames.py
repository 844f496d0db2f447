"""Frames of messages to the arm: those fixed to the robot's root are known, others come through tf2 where it is."""

from typing import Any

import numpy as np

from ..common.transforms import Transforms


class RobotFrames(dict[str, np.ndarray]):
    """{frame: (4, 4) T_root_frame} of the frames fixed to the robot's root, "" among them. Others are asked of tf2
    each time; a KeyError says why there is none.

    root: name of the root frame in tf2
    moved: those that joints which are not planned (of a head that pans) move: they are where joint_states have them
        now, but at another time only tf2 knows
    """

    def __init__(
        self,
        fixed: dict[str, np.ndarray],
        root: str,
        transforms: Transforms | None = None,
        moved: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(fixed)
        self.root, self.moved, self._transforms = root, moved, transforms

    @property
    def asks_tf2(self) -> bool:
        """Is tf2 there to ask?"""
        return self._transforms is not None and not self._transforms.missing

    def __missing__(self, frame: str) -> np.ndarray:
        return self.at(frame, None)

    def at(self, frame: str, stamp: Any) -> np.ndarray:
        """(4, 4) T_root_frame at a time; KeyError with a text. A frame that is fixed has the same one at all times."""
        if frame in self and (stamp is None or frame not in self.moved):
            return self[frame]
        if self._transforms is None:
            raise KeyError("there is no tf2")
        return self._transforms.look_up(self.root, frame, stamp)
