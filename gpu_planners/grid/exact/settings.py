"""Settings of the algorithm `exact`."""

from dataclasses import dataclass

from ...settings import Described, setting
from ..checks import time_limit


@dataclass(frozen=True)
class Settings(Described):
    """Settings of `exact`."""

    memory_limit_bytes: int = setting(
        2 << 30,
        "Bound on the memory of all fields together: goals beyond it are planned in further batches, and a map of "
        "which not even one field fits is planned in pieces",
        1,
        2**62,
    )
    time_limit_s: float = time_limit(
        "Longest plan for several goals: agents to goals whose batch has not begun by then are timed out; one field is "
        "always planned to its end"
    )
