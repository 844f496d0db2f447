"""FleetPlan: what `FleetPlanner.solve` answers."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from ...arguments import whole
from ...errors import GridMapError


class FleetStatus(IntEnum):
    """How one agent's query ended."""

    SOLVED = 0
    NOT_REACHED = 1
    NO_PATH = 2
    START_OUTSIDE = 3
    START_BLOCKED = 4
    START_NOT_FINITE = 5
    SAME_START = 6
    GOAL_OUTSIDE = 7
    GOAL_BLOCKED = 8
    GOAL_NOT_FINITE = 9
    SAME_GOAL = 10
    NO_JOINT_PLAN = 11


STATUS_TEXT = {
    FleetStatus.SOLVED: "the agent reaches its goal and stays there",
    FleetStatus.NOT_REACHED: "the agent is not at its goal when the plan ends",
    FleetStatus.NO_PATH: "no path leads from the start to the goal",
    FleetStatus.START_OUTSIDE: "the start lies outside the map",
    FleetStatus.START_BLOCKED: "the start lies on a blocked tile",
    FleetStatus.START_NOT_FINITE: "the start has a coordinate that is not finite",
    FleetStatus.SAME_START: "an agent with a lower number starts there, or too near to it",
    FleetStatus.GOAL_OUTSIDE: "the goal lies outside the map",
    FleetStatus.GOAL_BLOCKED: "the goal lies on a blocked tile",
    FleetStatus.GOAL_NOT_FINITE: "the goal has a coordinate that is not finite",
    FleetStatus.SAME_GOAL: "an agent with a lower number has that goal, or one too near to it",
    FleetStatus.NO_JOINT_PLAN: "no plan brings all agents of its part of the map to their goals",
}
# messages of a plan
PARTLY = "solved, but for agents that have no goal"
STUCK = "some agents are stuck"
NO_PLAN = "no plan exists in which every agent reaches its goal"
OUT_OF_TIME = "the time limit was reached before every agent could reach its goal"


@dataclass(frozen=True)
class FleetPlan:
    """Where N agents are at each step, from their starts until all that can have reached their goals.

    status: (N,) uint8 values of FleetStatus
    positions: (steps + 1, N, 2) int32 [row, col]; -1, -1 while an agent is not on the map: it never was, or it has been
        at the sink
    headings: (steps + 1, N) int32, 0 east, 1 south, 2 west, 3 north
    goals: (N, 2) int32 [row, col] where each agent is to go; -1, -1 where it has no goal that it could reach
    costs: (N,) int64 the step from which on the agent stays at its goal, or in which it reaches the sink; 0 unless
        SOLVED
    lower_bounds: (N,) int64 steps that each agent would take alone, by the same motion; 0 where it has no goal that it
        could reach. With one sink: when the first, second, ... to arrive could be there if others were in their way
        only at the sink. With tiles for any agent: steps to the nearest one. Both without turns
    time_s: seconds that planning took; first_s: until the first plan
    message: what happened
    optimal: is it proven that no plan in which all agents reach their goals has a lower sum of costs?
    """

    status: np.ndarray
    positions: np.ndarray
    headings: np.ndarray
    goals: np.ndarray
    costs: np.ndarray
    lower_bounds: np.ndarray
    time_s: float
    first_s: float
    message: str
    optimal: bool = False

    @property
    def solved(self) -> bool:
        """Has every agent reached its goal?"""
        return bool((self.status == FleetStatus.SOLVED).all())

    @property
    def makespan(self) -> int:
        """Steps of the plan."""
        return len(self.positions) - 1

    @property
    def sum_of_costs(self) -> int:
        """The sum of `costs`."""
        return int(self.costs.sum())

    @property
    def lower_bound(self) -> int:
        """No plan for the agents that are SOLVED has a lower sum of costs."""
        return int(self.lower_bounds[self.status == FleetStatus.SOLVED].sum())

    @property
    def lower_bound_makespan(self) -> int:
        """No plan in which every agent that has a goal reaches it takes fewer steps."""
        return int(self.lower_bounds.max(initial=0))

    def text(self, agent: int) -> str:
        """What became of an agent. Raises GridMapError for a number that no agent has."""
        agent = whole("agent", agent, 0, len(self.status) - 1, error=GridMapError)
        return f"agent {agent}: {STATUS_TEXT[FleetStatus(int(self.status[agent]))]}"
