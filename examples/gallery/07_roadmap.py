"""
A roadmap, and paths that get shorter
=====================================

Left: a roadmap of PRM for an arm on a desk, drawn where its tool is: each edge is proven to be free. Right: the paths
of RRT* for one query with more and more samples, from the first (light) to the best (dark).
"""

import os
from pathlib import Path

import matplotlib
import numpy as np

from gpu_planners.arm import CollisionChecker, load_urdf, prm, rrt_star
from gpu_planners.arm.collision.scene_file import fixed_frames, load_scene
from gpu_planners.share import share_folder

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from mpl_toolkits.mplot3d.art3d import Line3DCollection  # noqa: E402

out = Path("out")
out.mkdir(exist_ok=True)
share, short = share_folder(), "GPU_PLANNERS_SHORT" in os.environ
robot = load_urdf(share / "urdf/desk_arm.urdf", srdf=share / "urdf/desk_arm.srdf", group="arm")
checker = CollisionChecker(robot, load_scene(share / "config/scenes/desk.yaml", fixed_frames(robot)))
start, goal = robot.named_states["ready"], np.array([-0.9, 0.55, 1.0, 1.5, 0.0, 0.0])
shares = np.linspace(0, 1, 12)[:, None]


def tool(q):
    """(..., dof) -> (..., 3) where the tool is, metres"""
    return robot.link_poses(q.reshape(-1, robot.dof))[robot.tip_link][:, :3, 3].reshape(*q.shape[:-1], 3)


fig = plt.figure(figsize=(12, 5.4), layout="constrained")
left, right = (fig.add_subplot(1, 2, place, projection="3d", xlabel="x, m", ylabel="y, m") for place in (1, 2))
roadmap = prm.build(checker, prm.Settings(roadmap_nodes=60 if short else 150, lazy=False))
a, b = roadmap.nodes[roadmap.edges[roadmap.edge_states == 1]].transpose(1, 0, 2)
ways = tool(a[:, None] + shares * (b - a)[:, None])
left.add_collection3d(Line3DCollection(ways, colors=plt.cm.viridis(ways[:, :, 2].mean(axis=1)), lw=0.35, alpha=0.6))
left.scatter(*tool(roadmap.nodes).T, s=4, color="black")
left.set(title=f"{len(roadmap.nodes)} configurations, {len(ways)} proven motions")
for limit in (left.set_xlim, left.set_ylim, left.set_zlim):
    limit(-0.9, 0.9)

budgets = [50, 200, 1000] if short else [50, 200, 1000, 20_000]
for number, samples in enumerate(budgets, 1):
    result = rrt_star.solve(start, goal, checker, rrt_star.Settings(max_samples=samples, time_limit_s=20.0), seed=3)
    if result.solved:
        way = tool(np.concatenate([p + shares * (q - p) for p, q in zip(result.path, result.path[1:])]))
        right.plot(
            *way.T, color=plt.cm.Blues(0.2 + 0.8 * number / len(budgets)), label=f"{samples:,}: {result.cost:.2f} rad"
        )
right.scatter(*tool(np.array([start, goal])).T, color=["tab:green", "tab:red"], s=40)
right.legend(title="samples")
fig.savefig(out / "roadmap.png", dpi=110)
