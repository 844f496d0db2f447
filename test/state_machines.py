"""How long hypothesis drives the state machines of the tests.

By default each takes some seconds. GPU_PLANNERS_STATES=100 runs a hundred times as many sequences of steps.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

TIMES = float(os.environ.get("GPU_PLANNERS_STATES", "1"))


def driven(machine, sequences, steps):
    """The test case of a RuleBasedStateMachine: so many sequences of at most so many steps."""
    case = machine.TestCase
    case.settings = settings(
        max_examples=max(1, round(sequences * TIMES)),
        stateful_step_count=steps,
        deadline=None,
        phases=set(Phase) - {Phase.explain},  # which traces every line, those of Numba's compiler among them
        suppress_health_check=[HealthCheck.too_slow],
    )
    return pytest.mark.timeout(600 * max(1.0, TIMES))(case)
