"""
A warehouse fleet
=================

Hundreds of robots carry goods through a warehouse for as long as it is open. ``FleetPlanner`` says at every
step what each of them does next, so that no two are ever on one tile or change places. You tell it where they
are and where they want to go.

You learn how to run such a fleet on errands, how to check that nobody ever collides, what traffic rules bring,
how many robots a warehouse takes, and how to close a tile while everybody moves. At the end, a plan of whole
ways from starts to goals in one call.

.. code-block:: bash

    pip install gpu_planners
"""

import os
import time
from pathlib import Path

import numpy as np
from PIL import Image

from gpu_planners.fleet import FleetPlanner, Settings, conflicts
from gpu_planners.fleet.drawing import draw_fleet, fleet_page
from gpu_planners.grid.drawing import draw_map
from gpu_planners.grid.maps.generated import warehouse_map

out = Path("out")
out.mkdir(exist_ok=True)
short = os.environ.get("GPU_PLANNERS_SHORT") == "1"

# %%
# The warehouse
# -------------
# Blocks of shelves with aisles of two tiles between them, and a free strip on the left and on the right, where
# goods come and go. A tile is as large as a robot. Your own warehouse is a map file or an array
# (:ref:`sphx_glr_tutorials_06_ten_thousand_agents.py`).
#
# Goods lie beside the shelves, and are brought to stations on both sides.
grid = warehouse_map(38, 70, apron=6)
free = np.argwhere(~grid.blocked)
beside_shelf = np.array([tile for tile in free if grid.blocked[max(tile[0] - 1, 0) : tile[0] + 2, tile[1]].any()])
stations = np.array([(row, col) for row in range(1, grid.rows, 4) for col in (0, grid.cols - 1)])
print(f"{grid.rows} x {grid.cols} tiles, {len(free)} of them free")
print(f"{len(beside_shelf)} places of goods, {len(stations)} stations")

# %%
# A day's work
# ------------
# These robots have a heading: in a step each goes forward, turns by a quarter, or waits (``motion="turning"``).
# Robots with wheels for all directions are ``motion="four"``.
#
# ``start`` places them; ``step`` takes a goal for each and moves all by one tick. Who has reached its goal gets
# the next one: from a shelf to a station, from a station to a shelf. That is the whole loop. On real robots you
# would send the actions that ``step`` returns, and tell ``observe`` where the robots really are before the next
# one.


def work(fleet, robots, steps, seed=0):
    """Robots on errands -> positions (steps + 1, N, 2), headings (steps + 1, N), goals (steps + 1, N, 2)"""
    rng = np.random.default_rng(seed)
    fleet.start(rng.permutation(free)[:robots], headings=rng.integers(0, 4, robots))
    loaded = rng.random(robots) < 0.5
    goals = np.where(loaded[:, None], rng.choice(stations, robots), rng.choice(beside_shelf, robots))
    history = [(fleet.positions, fleet.headings, goals)]
    for _ in range(steps):
        fleet.step(goals)
        reached = (fleet.positions == goals).all(axis=1)
        loaded = loaded ^ reached
        errands = np.where(loaded[:, None], rng.choice(stations, robots), rng.choice(beside_shelf, robots))
        history.append((fleet.positions, fleet.headings, goals))
        goals = np.where(reached[:, None], errands, goals)
    return map(np.array, zip(*history))


def errands_done(positions, goals):
    """Goals reached in each step: (steps,)"""
    return (positions[1:] == goals[1:]).all(axis=2).sum(axis=1)


robots, steps = (60, 60) if short else (200, 400)
fleet = FleetPlanner(grid, motion="turning")
work(fleet, robots, 1)  # compiles, where nobody has on this machine
began = time.perf_counter()
positions, headings, goals = work(fleet, robots, steps)
step_ms = 1e3 * (time.perf_counter() - began) / steps
done = errands_done(positions, goals).sum()
print(f"{robots} robots did {done} errands in {steps} steps; a step took {step_ms:.1f} ms")

# %%
# Did anybody collide?
# --------------------
# ``conflicts`` looks at nothing but positions: two robots on one tile, two that change places, a robot on a
# shelf, a jump. It knows nothing of the planner. To see that it would find something, we let robot 1 stand
# where robot 0 is.
print("conflicts:", conflicts(positions, grid.blocked))

forged = positions.copy()
forged[5, 1] = forged[5, 0]
print("with a forged step:", sorted({conflict.kind for conflict in conflicts(forged, grid.blocked)}))

# %%
# Watch them
# ----------
# ``fleet_page`` writes a page that plays the moves and needs nothing else, not even a network: click on a robot
# to follow it and to see where it goes.
page = fleet_page(grid, positions[:200], headings[:200], goals[:200], f"{robots} robots in a warehouse")
(out / "07_fleet.html").write_text(page, encoding="utf-8")

# %%
# Traffic rules
# -------------
# In narrow aisles robots meet head on, and one has to back out. So moves against one-way lanes, whose directions
# alternate, are dear but not forbidden: the more, the fuller the warehouse is. ``guidance="plain"`` does without.
# How much lanes bring depends on how full it is:
counts = (60,) if short else (50, 100, 200, 400)
print("robots  errands in a step, plain   with lanes")
for robots in counts:
    done = []
    for guidance in ("plain", "auto"):
        fleet = FleetPlanner(grid, motion="turning", settings=Settings(guidance=guidance))
        positions, headings, goals = work(fleet, robots, steps)
        assert not conflicts(positions, grid.blocked)
        done.append(errands_done(positions, goals)[steps // 4 :].mean())  # once traffic has built up
    print(f"{robots:6} {done[0]:26.2f} {done[1]:12.2f}")

# %%
# A picture of the last step of the fullest warehouse: dots are robots, lines are the last 30 steps of some of
# them.
draw_fleet(grid, positions, size=900).quantize(128).save(out / "07_lanes.png")

# %%
# A pallet falls
# --------------
# Tiles can be closed and opened while robots move: ``update`` takes tiles and their costs, 0 is blocked. Here
# all robots go from the left to the right; after ten steps, pallets close the aisles in the middle, before the
# first robots arrive there. Only the aisles at the top and at the bottom stay open. Robots take another way
# from the next step on.
fleet = FleetPlanner(grid, motion="turning")
rng = np.random.default_rng(1)
robots, moments, closing = (30, 60, 10) if short else (120, 150, 10)
fleet.start(rng.permutation(free[free[:, 1] < 20])[:robots])
goals = rng.permutation(free[free[:, 1] >= 50])[:robots]
pallets = free[np.isin(free[:, 1], (34, 35)) & (free[:, 0] > 6) & (free[:, 0] < 31)]
walked = [fleet.positions]
for moment in range(moments):
    if moment == closing:
        fleet.update(*pallets.T, 0)
    fleet.step(goals)
    walked.append(fleet.positions)
walked = np.array(walked)
found = conflicts(walked[: closing + 1], grid.blocked) + conflicts(walked[closing:], fleet.grid.blocked)
print(f"{len(pallets)} tiles closed after {closing} steps; conflicts: {found}")
arrived = (walked == goals).all(axis=2).any(axis=0)
print(f"{arrived.sum()} of {robots} robots have been at their goals after {moments} steps")

# %%
# As an animation; ``draw_fleet`` draws any step.
pictures = []
for moment in range(0, moments, 2):
    now = grid if moment < closing else fleet.grid
    pictures.append(draw_fleet(now, walked, moment, size=520).quantize(32, dither=Image.Dither.NONE))
pictures[0].save(out / "07_pallets.gif", save_all=True, append_images=pictures[1:], duration=120, loop=0)

# %%
# Whole plans
# -----------
# ``step`` looks a few steps ahead and goes on for ever. ``solve`` plans all ways from starts to goals at once,
# where the robots stay, and spends the time it is given on a lower sum of their arrival times. ``lower_bound``
# is what they would need if each had the warehouse to itself.
fleet = FleetPlanner(grid, motion="turning")
robots = 40 if short else 150
mixed = rng.permutation(free)
starts, goals = mixed[:robots], mixed[robots : 2 * robots]
plan = fleet.solve(starts, goals, time_limit_s=0.5 if short else 5.0)
print(f"{plan.message}: first plan after {plan.first_s:.2f} s, {plan.makespan} steps until all are there")
print(f"sum of arrival times: {plan.sum_of_costs}; each alone in the warehouse: {plan.lower_bound}")
print("conflicts:", conflicts(plan.positions, grid.blocked))

# %%
# In the evening robots go home, and it does not matter who parks where: with ``assign=True`` any robot may take
# any place.
home = free[free[:, 1] < 6][: robots + 10]
evening = fleet.solve(starts, home, time_limit_s=0.5 if short else 5.0, assign=True)
print(f"{evening.message}: {evening.makespan} steps; conflicts: {conflicts(evening.positions, grid.blocked)}")
ways = [evening.positions[:, robot] for robot in range(robots)]
draw_map(grid, None, ways, evening.positions[-1], size=900).quantize(128).save(out / "07_evening.png")

# %%
# What to try next
# ----------------
# * Robots that are late or fail: :ref:`sphx_glr_tutorials_10_late_robots.py`.
# * Slower and larger robots, agents that come and go: :doc:`/fleets`.
# * A budget: ``fleet.step(goals, budget_s=0.02)`` makes each step better for 20 ms.
# * ``learn_guidance`` learns from your own errands where moves should cost more.
# * ``gpu-planners view --map map.yaml --agents 300 --fleet``: a fleet in a browser, on your own map
#   (:doc:`/view`).
# * The same over ROS, by the node ``fleet_planner``, with a topic for what each robot does next
#   (:doc:`/fleet_planner`).
