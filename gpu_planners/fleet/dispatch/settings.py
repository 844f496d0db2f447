"""Settings of the dispatcher."""

from dataclasses import dataclass

from ...settings import Described, setting


@dataclass(frozen=True)
class DispatchSettings(Described):
    """Settings of a dispatcher. Distances are steps: the time of an ordinary move."""

    candidates: int = setting(32, "tasks whose distance is found exactly, for each robot that may take one", 1, 10_000)
    window: int = setting(256, "robots whose tasks are chosen together by the Hungarian method", 2, 4096)
    improvements: int = setting(
        4, "windows that are chosen anew in a call, if there are more robots than one holds", 0, 10**6
    )
    at_once: int = setting(
        1024, "robots under way that are reconsidered in a call, in turns; all free ones always are", 0, 10**6
    )
    new_fields: int = setting(
        256,
        "first errands whose fields a call plans while it has time; until then the straight distance counts",
        1,
        10**6,
    )
    look_ahead: float = setting(
        10.0, "robots so near the end of their tasks are already considered for the next ones", 0.0, 1e6, unit="steps"
    )
    prefer_short: float = setting(
        1.0,
        "how much the length of a task counts beside the way to it, where there are more tasks than robots",
        0.0,
        10.0,
    )
    ageing: float = setting(
        0.05,
        "by how much a task gains on others for each step that it waits, so that long ones have their turn",
        0.0,
        10.0,
    )
    due_horizon: float = setting(
        100.0, "steps of slack below which a task with a due time goes before others", 1.0, 1e6, unit="steps"
    )
    keep: float = setting(
        2.0, "how much nearer another task must be for a robot under way to change to it", 0.0, 1e6, unit="steps"
    )
    traffic: float = setting(
        0.25, "steps that each robot on the way to a first errand is expected to cost", 0.0, 100.0, unit="steps"
    )
    busy_share: float = setting(
        0.4,
        "robots that have tasks, of the free tiles, where more than 70 % of these are taken: the others make way",
        0.01,
        1.0,
    )
    charge_below: float = setting(0.2, "charge of a battery below which a robot is sent to a charger", 0.0, 1.0)
    charged_at: float = setting(0.9, "charge of a battery from which on a robot leaves its charger", 0.0, 1.0)
    keep_ended: int = setting(1000, "tasks done or cancelled whose history is kept", 0, 10**7)
