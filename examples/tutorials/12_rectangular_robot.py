"""
A rectangular robot in a narrow aisle
=====================================

A robot of 0.62 x 0.9 m works among shelves whose aisles are 1.1 m wide. As a circle it would need 1.09 m and could
hardly move; as a point it would scrape along. ``PosePlanner`` knows its footprint: a state is a tile and a heading,
and a path is a row of poses that the robot can drive, free of contact by proof.

You learn how to describe such a robot, plan for it, look at a path, and plan again when an aisle is blocked.

.. code-block:: bash

    pip install gpu_planners
"""

import math
from pathlib import Path

import numpy as np
from PIL import ImageDraw

from gpu_planners.grid import MoveCosts, PoseGrid, PosePlanner
from gpu_planners.grid.drawing import draw_map

out = Path("out")
out.mkdir(exist_ok=True)

# %%
# The map
# -------
# Shelves 0.8 m deep, aisles of 1.1 m between them, a hall at both ends. A tile is 0.05 m; 0 is blocked.
tiles = np.ones((194, 260), np.uint8)
for top in range(22, 180, 38):
    tiles[top : top + 16, 60:200] = 0

# %%
# The robot
# ---------
# Its footprint is a polygon around its place, x ahead. It drives forwards and backwards in curves of at least 0.4 m and
# turns on the spot. Driving backwards costs twice as much as forwards; ``MoveCosts(reverse=0)`` would forbid it.
footprint = [(0.45, 0.31), (-0.45, 0.31), (-0.45, -0.31), (0.45, -0.31)]
poses = PoseGrid(tiles, footprint, model="differential", turning_radius=0.4, resolution=0.05, move_costs=MoveCosts())
planner = PosePlanner(poses)
print(f"{poses.headings} headings, {len(poses.moves)} moves")

# %%
# A path
# ------
# Poses are ``x, y, heading``: metres in the map frame, and radians. The path ends at the goal itself.
start, goal = [1.3, 4.8, math.pi / 2], [11.7, 6.55, 0.0]
paths = planner.plan(start, goal)
path = paths.path(0)
print(
    f"{paths.message(0)}: costs {paths.cost[0]:.1f} m, {len(path)} poses, {paths.cusps(0).sum()} changes of direction"
)
print("it ends at the goal:", paths.ends_at_goal(0), "- it meets nothing:", planner.path_free(path))


# %%
# The picture has the robot's outline at every twelfth pose.
def draw(planner, path, name):
    """Save the map with the robot along a path."""
    picture = draw_map(planner.poses.map, size=1040, row_0_below=True)
    pen, scale = ImageDraw.Draw(picture), 1040 / 260 / 0.05
    for x, y, heading in [*path[::12], path[-1]]:
        cos, sin = math.cos(heading), math.sin(heading)
        outline = [(x + cos * a - sin * b, y + sin * a + cos * b) for a, b in footprint]
        pen.polygon([(a * scale, picture.height - b * scale) for a, b in outline], outline=(200, 60, 60), width=2)
    picture.save(out / name)


draw(planner, path, "rectangular_robot.png")

# %%
# Something stands in the aisle
# -----------------------------
# ``update`` changes tiles. The next plan is what planning from scratch would give.
blocked = np.mgrid[126:142, 120:130].reshape(2, -1)
planner.update(*blocked, 0)
again = planner.plan(start, goal)
print(f"{again.message(0)}: costs {again.cost[0]:.1f} m")
draw(planner, again.path(0), "rectangular_robot_again.png")

# %%
# In the aisle it cannot turn round: a goal that asks for it is refused, or reached by driving in backwards.
inside = [[6.5, 2.35, 0.0], [6.5, 2.35, math.pi]]
both = planner.plan([inside[0], start], inside[1])
for i in range(2):
    backwards = (both.directions(i) < 0).mean() if both.solved[i] else 0.0
    print(f"{both.message(i)}: costs {both.cost[i]:.1f} m, {100 * backwards:.0f} % of its poses backwards")
