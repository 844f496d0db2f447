"""
10,000 agents on your own map
=============================

You have a map and many robots, players or parcels, each of which wants the shortest way to a goal.
``BlockPlanner`` computes the distance to the goal once, for every tile of the map (a *field*), and lets all
agents walk downhill in it. So 10,000 paths take a few times as long as one, not 10,000 times.

You learn how to load a map, plan for thousands of agents, change the map and plan again in a fraction of the
time, and how to check every answer with a library that shares no code with the planner. The agents of this page
do not see each other: two may stand on one tile. Where they must not meet, a fleet is what you want:
:ref:`sphx_glr_tutorials_07_warehouse_fleet.py`.

.. code-block:: bash

    pip install gpu_planners

It runs on an NVIDIA GPU where there is one, and otherwise on the CPU (:doc:`/install`).
"""

import os
import time
from pathlib import Path

import numpy as np
from PIL import Image

from gpu_planners.grid import BlockPlanner, load_map_yaml, save_map_yaml
from gpu_planners.grid.drawing import draw_map
from gpu_planners.grid.maps.generated import caves_and_rooms, random_free_tiles
from gpu_planners.verify import broken_paths, costs_to_goal

out = Path("out")
out.mkdir(exist_ok=True)
short = os.environ.get("GPU_PLANNERS_SHORT") == "1"
side, count = (256, 1000) if short else (1024, 10_000)

# %%
# A map
# -----
# ROS saves a map as a picture and a small YAML file beside it. We have none at hand, so we make one, rooms
# among caves, and save it as ``map_saver`` would. ``caves_and_rooms`` gives the same map for the same seed.
save_map_yaml(out / "map.yaml", caves_and_rooms(side, side, seed=4), picture=".pgm")
print((out / "map.yaml").read_text())

# %%
# From here on the map could be yours: put the name of your own YAML file in place of ``out / "map.yaml"``. Maps
# of MovingAI's benchmarks are read by ``load_movingai_map("brc202d.map")``, and a NumPy array becomes a map by
# ``GridMap(array)``: 0 is blocked, 1 to 255 is what it costs to enter the tile.
#
# Agents move to the 8 neighbours of a tile and never cut a corner. Tiles are counted ``[row, col]``;
# ``grid.tiles_of`` and ``grid.centres_of`` translate metres of the map frame to tiles and back.
grid = load_map_yaml(out / "map.yaml", connectivity=8)
print(f"{grid.rows} x {grid.cols} tiles, {100 * (1 - grid.blocked.mean()):.0f} % of them free")

# %%
# All to one goal
# ---------------
# Ten thousand agents start anywhere, and all of them go to the same place. The first call compiles the planner
# where nobody has on this machine, so we plan once before we look at the clock. Then a new planner plans for one
# agent, and another one for all.
starts = random_free_tiles(grid, count, seed=1)
places = random_free_tiles(grid, 4096, seed=2)
goal = places[np.abs(places - np.array(grid.shape) / 2).max(axis=1).argmin()]  # the one nearest to the middle
BlockPlanner(grid).plan(starts, goal)

for some in (1, count):
    planner = BlockPlanner(grid, device="auto")
    paths = planner.plan(starts[:some], goal)
    print(
        f"{paths.solved.sum()} of {some} agents have a path, planned in {1e3 * paths.time_s:.0f} ms, {planner.device}"
    )
print(f"agent 0 walks {paths.length[0]} steps, {paths.cost[0]:.1f} tile lengths: {paths.path(0)[:4].tolist()} ...")
print(
    f"the longest way is {paths.cost[paths.solved].max():.0f} tile lengths; all paths take {paths.nbytes / 1e6:.1f} MB"
)

# %%
# ``paths`` keeps its steps packed; ``paths.path(i)`` unpacks one path and ``paths.paths()`` all of them at
# once. An agent that has no path has a status that says why (``paths.message(i)``), and disturbs no other one.
#
# In the picture the field is the colour, from yellow at the goal to dark blue far from it, with lines of equal
# distance. The paths lie on top: the more agents share a tile, the whiter it is.
tiles, offsets = paths.paths()
picture = draw_map(grid, planner.field(goal), np.split(tiles, offsets[1:-1]), size=800)
picture.quantize(128).save(out / "06_one_goal.png")  # 128 colours make a small file

# %%
# Is it right?
# ------------
# ``gpu_planners.verify`` imports nothing of the planners. ``costs_to_goal`` asks scipy's Dijkstra for the
# distance of every tile, and ``broken_paths`` walks along paths tile by tile. We compare all costs, and walk
# 200 paths.


def check(grid, paths, starts, goals):
    """Compare the costs of all agents with Dijkstra's, and walk 200 of their paths."""
    differ = 0
    for goal in np.unique(goals, axis=0):
        there = (goals == goal).all(axis=1)
        expected = costs_to_goal(grid.costs, grid.connectivity, goal)[tuple(starts[there].T)]
        differ += (~np.isclose(paths.cost[there], expected, rtol=1e-9)).sum()
    some = np.linspace(0, len(starts) - 1, 200).astype(int)
    broken = broken_paths(grid, paths, starts, goals, some)
    print(f"{differ} of {len(starts)} costs differ from Dijkstra's, {len(broken)} of {len(some)} paths are broken")


check(grid, paths, starts, np.broadcast_to(goal, starts.shape))

# %%
# Each to a goal of its own
# -------------------------
# Goals may differ: give one for each agent. There is one field for each different goal, so the number of goals
# is what costs time, not that of the agents. Let there be 12 exits, and let each agent take the nearest:
# ``planner.field(goal)`` is the distance of every tile to a goal.
exits = places[:12]
distances = np.stack([planner.field(goal)[tuple(starts.T)] for goal in exits])
goals = exits[distances.argmin(axis=0)]
to_exits = planner.plan(starts, goals)
print(f"to {len(exits)} exits: {1e3 * to_exits.time_s:.0f} ms; the mean way is {to_exits.cost.mean():.0f} tile lengths")
print(f"to the middle it was {paths.cost.mean():.0f}")
check(grid, to_exits, starts, goals)

nearest = np.min([planner.field(goal) for goal in exits], axis=0)
tiles, offsets = to_exits.paths()
picture = draw_map(grid, nearest, np.split(tiles, offsets[1:-1]), size=800)
picture.quantize(128).save(out / "06_exits.png")

# %%
# The map changes
# ---------------
# Twenty crates fall onto the map, one after the other, each onto the middle of some agent's way. ``update``
# takes tiles and their new costs. A field that the change affects is repaired when it is needed next; the
# answer is the same, to the last bit, as that of a new planner.
size = max(grid.shape) // 64
repair_s = []
for agent in np.flatnonzero(paths.cost > np.median(paths.cost))[:20]:
    row, col = paths.path(agent)[paths.length[agent] // 2]
    rows, cols = np.mgrid[row : row + size, col : col + size].reshape(2, -1)
    inside = (rows < grid.rows) & (cols < grid.cols)
    began = time.perf_counter()
    planner.update(rows[inside], cols[inside], 0)
    repaired = planner.field(goal)
    repair_s.append(time.perf_counter() - began)

anew = BlockPlanner(planner.grid)
began = time.perf_counter()
fresh = anew.field(goal)
anew_s = time.perf_counter() - began
print(f"a repair took {1e3 * np.median(repair_s):.1f} ms (median), a new field {1e3 * anew_s:.1f} ms")
print("repaired and new are equal:", np.array_equal(repaired, fresh))

detours = planner.plan(starts, goal)
changed = detours.solved & (detours.cost != paths.cost)
print(f"{changed.sum()} of {count} agents walk farther now; {(~detours.solved).sum()} have no path")
check(planner.grid, detours, starts, np.broadcast_to(goal, starts.shape))

# %%
# Who has no path? The status of an agent says why: it stands under a crate, for instance.
for agent in np.flatnonzero(~detours.solved)[:3]:
    print(f"agent {agent}: {detours.message(agent)}")

# %%
# Watch them go
# -------------
# At time ``t`` an agent is on tile ``t`` of its path, and stays at the end of it. An animation is one picture
# per moment, the agents as bright points on the field.
pixels, frames = 480, 20 if short else 60
background = np.asarray(draw_map(planner.grid, repaired, size=pixels)) // 2  # darker, so that agents stand out
tiles, offsets = detours.paths(detours.solved)
last = np.diff(offsets) - 1
pictures = []
for moment in np.linspace(0, np.quantile(last, 0.98), frames).astype(int):
    now = tiles[offsets[:-1] + np.minimum(moment, last)] * pixels // max(grid.shape)
    picture = background.copy()
    picture[tuple(now.T)] = (255, 236, 150)
    pictures.append(Image.fromarray(picture))
palette = pictures[0].quantize(48)
pictures = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
pictures[0].save(out / "06_agents.gif", save_all=True, append_images=pictures[1:], duration=80, loop=0)

# %%
# What to try next
# ----------------
# * Your own map, with ``grid.inflated(0.3)`` for robots of 0.3 m radius.
# * 100,000 agents, and ``device="cuda"`` where there is a GPU (figures in :doc:`/grid`).
# * Costs: ``GridMap(array)`` with values above 1 for mud, carpets or forbidden hours.
# * ``gpu-planners view --map out/map.yaml`` shows field and agents in a browser, where you drag the goal
#   (:doc:`/view`).
# * The same over ROS, by the node ``grid_planner``: :ref:`sphx_glr_tutorials_05_nav2_planner.py`.
