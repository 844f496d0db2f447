"""
What a motion passes over
=========================

Boxes that hold the robot at every place of a motion, one for each shape and piece of the motion: what other robots, or
people, have to keep clear of. (Install: ``pip install "gpu_planners[view]" example-robot-data``.)
"""

from pathlib import Path

import numpy as np
from PIL import Image

from gpu_planners.arm import CollisionWorld, load_urdf
from gpu_planners.arm.geometry.shapes import ConvexShape
from gpu_planners.arm.swept import swept_boxes
from gpu_planners.arm.view.drawing import good_camera, shape_triangles
from gpu_planners.arm.view.rasterizer import Layer, render
from gpu_planners.share import example_robots_share

out = Path("out")
out.mkdir(exist_ok=True)
share = example_robots_share()
panda = share / "example-robot-data/robots/panda_description"
robot = load_urdf(panda / "urdf/panda.urdf", srdf=panda / "srdf/panda.srdf", package_dirs=[share], group="arm")
waypoints = [[-1.2, -0.3, 0, -2.2, 0, 2.0, 0.8], [0.2, 0.4, 0, -1.4, 0, 1.8, 0.8], [1.3, -0.3, 0, -2.2, 0, 2.0, 0.8]]
path, blue, orange = np.array(waypoints), [0.10, 0.46, 0.66], [0.91, 0.60, 0.25]

# %%
# A smaller ``slack`` makes more boxes, which fit more tightly.
size, pictures = (640, 560), []
camera = good_camera(robot, CollisionWorld(), path, size)
for slack in (0.05, 0.005):
    boxes = [ConvexShape.box("swept", *each) for each in zip(*swept_boxes(robot, path, slack))]
    layers = []
    for frames, opacity in zip(robot.frame_poses(path), (1.0, 0.5, 1.0)):
        for shape, frame in zip(robot.shapes, robot.shape_frame):
            pose = frames[frame] if frame >= 0 else np.eye(4)
            triangles = shape_triangles(shape) @ pose[:3, :3].T + pose[:3, 3]
            layers.append(Layer(triangles, np.tile(blue, (len(triangles), 1)), opacity))
    around = np.concatenate([shape_triangles(box) for box in boxes])
    picture = render([*layers, Layer(around, np.tile(orange, (len(around), 1)), 0.25)], camera, size)
    pictures.append(np.uint8(255 * np.clip(picture, 0, 1)))
    print(f"slack {1e3 * slack:.0f} mm: {len(boxes)} boxes")
Image.fromarray(np.concatenate(pictures, axis=1)).quantize(220).save(out / "swept.png")
