"""The same walk of a fleet on the CPU and on a GPU."""

import numpy as np
import pytest

from gpu_planners.device import cuda_problem

needs_gpu = pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}")


def walked_on_both(begun, steps, meanwhile=lambda fleet, step: None):
    """-> [on "cpu", on "cuda"] (steps + 1, N, 2) positions

    begun(device): -> a fleet whose agents are there, their goals (N, 2), and drawn(agents) -> the next goals of these
    meanwhile(fleet, step): is called after each step
    """
    walked = []
    for device in ("cpu", "cuda"):
        fleet, goals, drawn = begun(device)
        positions = [fleet.positions]
        for step in range(steps):
            fleet.step(goals)
            positions.append(fleet.positions)
            there = np.flatnonzero((positions[-1] == goals).all(axis=1))
            goals[there] = drawn(there)
            meanwhile(fleet, step)
        walked.append(np.array(positions))
    return walked
