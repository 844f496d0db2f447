"""
From one compartment into the other
===================================

A Panda reaches into a shelf, then from the upper compartment into the lower one. Corners are rounded where that is
proven to be free. (Install: ``pip install "gpu_planners[view]" example-robot-data``.)
"""

import os
from pathlib import Path

import numpy as np
from PIL import Image

from gpu_planners.arm import CollisionChecker, load_urdf, rrt_connect
from gpu_planners.arm.collision.scene_file import fixed_frames, load_scene
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.arm.view.drawing import good_camera, shape_triangles
from gpu_planners.arm.view.rasterizer import Layer, render
from gpu_planners.share import example_robots_share, share_folder

out = Path("out")
out.mkdir(exist_ok=True)
share = example_robots_share()
panda = share / "example-robot-data/robots/panda_description"
robot = load_urdf(panda / "urdf/panda.urdf", srdf=panda / "srdf/panda.srdf", package_dirs=[share], group="arm")
world = load_scene(share_folder() / "config/scenes/panda_table_shelf.yaml", fixed_frames(robot))
checker = CollisionChecker(robot, world)
settings = rrt_connect.Settings(optimise_s=0.3)


def hand_at(x, y, z):
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = [[0, 0, 1], [0, 1, 0], [-1, 0, 0]], [x, y, z]  # metres; the hand points along x
    return robot.inverse_kinematics(pose, checker, seed_q=paths[-1][-1] if paths else READY).q


# %%
# Two plans, one motion.
READY, paths = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785]), []
for place in ((0.60, 0.0, 0.60), (0.60, 0.1, 0.20)):
    start = paths[-1][-1] if paths else READY
    paths.append(rrt_connect.solve(start, hand_at(*place), checker, settings).path)
timed = [time_parameterize(p, robot.velocity, robot.acceleration, deviation=0.1, checker=checker) for p in paths]
count = 6 if "GPU_PLANNERS_SHORT" in os.environ else 24
q = np.concatenate([motion.at(np.linspace(0, motion.duration, count))[0] for motion in timed])

camera, frames = good_camera(robot, world, q, (480, 400)), []
still = [Layer(t := shape_triangles(shape), np.full((len(t), 3), 0.7), 0.35) for shape in world.shapes]
for poses in robot.frame_poses(q):
    turned = [(shape_triangles(s), poses[f] if f >= 0 else np.eye(4)) for s, f in zip(robot.shapes, robot.shape_frame)]
    body = np.concatenate([t @ pose[:3, :3].T + pose[:3, 3] for t, pose in turned])
    layers = [Layer(body, np.tile([0.1, 0.46, 0.66], (len(body), 1))), *still]
    frames.append(Image.fromarray(np.uint8(255 * np.clip(render(layers, camera, (480, 400), 0.0), 0, 1))).quantize(64))
frames[len(frames) // 2].save(out / "shelf.png")  # a still one
frames[0].save(out / "shelf.gif", save_all=True, append_images=frames[1:], duration=80, loop=0)
