"""Settings of PRM."""

from dataclasses import dataclass

import numpy as np

from ....settings import Setting, changed, setting
from ..settings import PlannerSettings

NODES, JOINTS = Setting(2, "Nodes of a roadmap", 0, 2**31 - 1), Setting(1, "Joints of a robot", 1, 2**31 - 1)


@dataclass(frozen=True)
class Settings(PlannerSettings):
    """Settings of PRM."""

    radius: float = setting(
        1.0,
        "d_0 of [DL14]: a new node lies at most this far from the graph and is tried with nodes within it, "
        "joint-space L2",
        1e-3,
        100.0,
        unit="rad",
    )
    near: float = setting(
        1.0,
        "Share of the samples that are moved to within the radius of the graph; the others count only if they fall "
        "near it",
        0.0,
        1.0,
    )
    connections: int = setting(
        3, "Nodes within the radius that a new node is tried with, besides the one that it came from", 1, 64
    )
    neighbour_factor: float = setting(
        0.5,
        "A node of a kept roadmap is tried with neighbour_factor * e (1 + 1 / dof) log(n) others; 1 is PRM*'s constant",
        0.01,
        100.0,
    )
    batch: int = setting(
        0,
        "Samples between two looks at the graph; 0: 32 on the CPU (256 in versions 1 to 3), 512 on CUDA, where long "
        "searches gain from 2048",
        0,
        1_000_000,
    )
    lazy: bool = setting(
        False, "Check motions inside a tree (version 0) or of a kept roadmap only where the shortest path needs them"
    )
    version: int = setting(
        0, "0: the whole search is compiled; 1, 2, 3: the parallelizations of [DL14] 3.2 over `workers` workers", 0, 3
    )
    workers: int = setting(1, "Workers of versions 1 to 3", 1, 64)
    roadmap_nodes: int = setting(
        2000, "Configurations that a kept roadmap (`build`) has; requests to the node do not use one", 1, 1_000_000
    )
    max_samples: int = changed(PlannerSettings, "max_samples", default=200_000)

    def neighbours(self, n: int, dof: int) -> int:
        """Neighbours that a node of a roadmap of n nodes is tried with, for a robot of `dof` joints."""
        n, dof = NODES.checked("n", n), JOINTS.checked("dof", dof)
        return int(np.ceil(self.neighbour_factor * np.e * (1 + 1 / dof) * np.log(max(n, 2))))
