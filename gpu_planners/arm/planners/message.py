"""How a message between host and compiled code begins: see `host`."""

from typing import Any, NamedTuple

from ...parallel.layout import Float32, Int32, floats, ints, layout

BARRIER = 1  # int32 at the beginning of a team's own memory, which are its barrier


class Head(NamedTuple):
    """What each message begins with. mode, step: of the motion check"""

    dof: int = ints()
    mode: Int32 = ints()
    step: Float32 = floats()


_, open_head, _ = layout(Head)


def head_of(checker: Any) -> dict[str, Any]:
    """The fields of Head."""
    mode, step = checker.motion_args
    return {"dof": checker.robot.dof, "mode": mode, "step": step}
