"""
What it does, in one picture
============================

A robot's motion into a shelf, paths of 1,500 agents to one goal, a fleet of 300 in a warehouse: each planned here.
(Install: ``pip install "gpu_planners[view]" example-robot-data``.)
"""

from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from gpu_planners.arm import CollisionChecker, load_urdf, rrt_connect
from gpu_planners.arm.collision.scene_file import fixed_frames, load_scene
from gpu_planners.arm.view.drawing import draw_path
from gpu_planners.fleet.drawing import draw_fleet
from gpu_planners.grid import BlockPlanner, FleetPlanner
from gpu_planners.grid.drawing import draw_map
from gpu_planners.grid.maps.generated import caves_and_rooms, random_free_tiles, warehouse_map
from gpu_planners.share import example_robots_share, share_folder

out = Path("out")
out.mkdir(exist_ok=True)

# %%
# A Panda, from its SRDF's state "default" into the lower compartment of a shelf.
share = example_robots_share()
panda = share / "example-robot-data/robots/panda_description"
robot = load_urdf(panda / "urdf/panda.urdf", srdf=panda / "srdf/panda.srdf", package_dirs=[share], group="arm")
world = load_scene(share_folder() / "config/scenes/panda_table_shelf.yaml", fixed_frames(robot))
checker = CollisionChecker(robot, world)
start, pose = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785]), np.eye(4)
pose[:3, :3], pose[:3, 3] = [[0, 0, 1], [0, 1, 0], [-1, 0, 0]], [0.62, 0.1, 0.2]  # metres; the hand points along x
goals = robot.inverse_kinematics(pose, checker, seed_q=start).q
path = rrt_connect.solve(start, goals, checker, rrt_connect.Settings(optimise_s=0.3)).path
arm = Image.open(draw_path(robot, world, path, out / "arm.png", size=(900, 800)))

# %%
# 1,500 agents, one field of costs, and a fleet on errands, none of which ever meet.
grid = caves_and_rooms(256, 256, 3)
planner, starts, goal = BlockPlanner(grid), random_free_tiles(grid, 1500), random_free_tiles(grid, 1, seed=1)[0]
paths = planner.plan(starts, goal)
field = draw_map(grid, planner.field(goal), [paths.path(i) for i in range(len(starts))])

house, rng, walked = warehouse_map(48, 48, 4, apron=4), np.random.default_rng(0), []
fleet, places = FleetPlanner(house, "turning"), np.argwhere(~house.blocked)
fleet.start(places[rng.permutation(len(places))[:300]])
goals = places[rng.integers(len(places), size=300)]
for _ in range(60):
    fleet.step(goals)
    walked.append(fleet.positions)
    goals = np.where((walked[-1] == goals).all(axis=1)[:, None], places[rng.integers(len(places), size=300)], goals)
crowd = draw_fleet(house, np.array(walked))

row = Image.new("RGB", (1600, 500), "white")
for left, width, picture in ((0, 560, arm), (570, 510, field), (1090, 510, crowd)):
    row.paste(ImageOps.fit(picture.convert("RGB"), (width, 500)), (left, 0))
row.quantize(200).save(out / "overview.png")
