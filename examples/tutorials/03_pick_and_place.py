"""
Pick and place
==============

A Panda takes a can out of the upper compartment of a shelf and stands it on the table beside the shelf. The can is an
obstacle until the hand holds it, then a part of the robot that must touch nothing either, then an obstacle again, in
another place.

Install: ``pip install "gpu_planners[view]" example-robot-data``
"""

import os
from pathlib import Path

import numpy as np
from PIL import Image

from gpu_planners.arm import CollisionChecker, load_urdf, rrt_connect, sequence
from gpu_planners.arm.collision.scene_file import fixed_frames, load_scene
from gpu_planners.arm.geometry.shapes import ConvexShape
from gpu_planners.arm.view.drawing import good_camera, shape_triangles
from gpu_planners.arm.view.rasterizer import Layer, render
from gpu_planners.share import example_robots_share, share_folder

out = Path("out")
out.mkdir(exist_ok=True)

# %%
# Robot and scene
# ---------------
#
# The fingers are not planned: ``fixed`` opens them, 8 cm in all. Poses are those of the point between the fingertips,
# ``panda_hand_tcp``.

TOOL, HAND, FINGERS = "panda_hand_tcp", "panda_hand", ["panda_leftfinger", "panda_rightfinger"]
share = example_robots_share()
panda = share / "example-robot-data/robots/panda_description"
files = {"srdf": panda / "srdf/panda.srdf", "package_dirs": [share], "group": "arm"}
wide = {"panda_finger_joint1": 0.04}
robot = load_urdf(panda / "urdf/panda.urdf", **files, fixed=wide)
world = load_scene(share_folder() / "config/scenes/panda_table_shelf.yaml", fixed_frames(robot))
ready = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])


def gripper(x, y, z, yaw=0.0):
    """(4, 4) pose of the tool: level, pointing away from the robot; metres and rad in the root frame."""
    sine, cosine = np.sin(yaw), np.cos(yaw)
    return np.array([[0, -sine, cosine, x], [0, cosine, sine, y], [-1, 0, 0, z], [0, 0, 0, 1.0]])


# %%
# Reach for it
# ------------
#
# A motion of two parts: freely to 12 cm before the can, then on a straight line along the tool, slowly.
# ``sequence.solve`` chooses among the configurations of the first pose one from which the line can be done to its end,
# and times both parts as one motion.

can = np.array([0.74, 0.20, 0.47])
checker = CollisionChecker(robot, world)
reach = sequence.solve(
    ready,
    [
        sequence.Free(poses=gripper(*can - [0.12, 0.0, 0.0])),
        sequence.Straight(translation=[0.0, 0.0, 0.10], along_tool=True, velocity_scaling=0.3),
    ],
    checker,
    rrt_connect,
    link=TOOL,
)
print("reach:", reach.text or f"{reach.trajectory.duration:.2f} s, parts end at {reach.ends_s.round(2)} s")

# %%
# The fingers come 2 cm deep beside the can, which is an obstacle still: nothing has touched it.
#
# Take it
# -------
#
# The can leaves the scene and becomes a shape that the hand carries. ``touch_links`` may touch it, everything else may
# not, not even the board on which it stands: so the shape is 5 mm lower than the can. Neither call reads a file again;
# a checker for the robot that carries is made in milliseconds. The fingers close to the can's width.

q = reach.trajectory.positions[-1]
without_can = world.copy()
without_can.remove("can_above")
closed = robot.with_other_joints({"panda_finger_joint1": 0.033})
T_root_hand, T_root_can = closed.link_poses(q)[HAND][0], np.eye(4)
T_root_can[:3, 3] = can
shape = ConvexShape.cylinder("can", 0.033, 0.115, np.eye(4))
holding = closed.attach("can", shape, HAND, np.linalg.inv(T_root_hand) @ T_root_can, touch_links=FINGERS)
carrying = CollisionChecker(holding, without_can)
print("collisions with the can in the hand:", carrying.colliding_pairs(q))

# %%
# Carry it
# --------
#
# Lift by 2 cm, back out of the shelf, freely to a place above the table, and down. ``blend_radius`` lets the tool pass
# the end of a part without a stop, where the rounded corner is proven to be free, too.


above = gripper(0.35, 0.55, 0.062, yaw=0.9)
before = above.copy()
before[2, 3] += 0.15
carry = sequence.solve(
    q,
    [
        sequence.Straight(translation=[0.0, 0.0, 0.02], velocity_scaling=0.2, blend_radius=0.005),
        sequence.Straight(translation=[-0.22, 0.0, 0.0], velocity_scaling=0.5),
        sequence.Free(poses=before),
        sequence.Straight(pose=above, velocity_scaling=0.3),
    ],
    carrying,
    rrt_connect,
    link=TOOL,
)
print("carry:", carry.text or f"{carry.trajectory.duration:.2f} s, parts end at {carry.ends_s.round(2)} s")

# %%
# Let go
# ------
#
# The hand opens; the can is an obstacle again, where it stands now. The way back begins with a straight line, so that
# the fingers do not knock it over.

q = carry.trajectory.positions[-1]
placed, T_root_can = without_can.copy(), holding.link_poses(q)[HAND][0] @ np.linalg.inv(T_root_hand) @ T_root_can
placed.add_cylinder("can", 0.033, 0.12, T_root_can)
back = sequence.solve(
    q,
    [sequence.Straight(translation=[0.0, 0.0, -0.15], along_tool=True), sequence.Free(goals=ready)],
    CollisionChecker(robot, placed),
    rrt_connect,
    link=TOOL,
)
print("back:", back.text or f"{back.trajectory.duration:.2f} s; the can stands at", T_root_can[:3, 3].round(3))

# %%
# Watch it
# --------

phases = [(robot, world, reach), (holding, without_can, carry), (robot, placed, back)]
every = 1.0 if "GPU_PLANNERS_SHORT" in os.environ else 0.12  # seconds between two pictures
size, frames = (560, 480), []
camera = good_camera(robot, world, np.concatenate([phase[2].trajectory.positions for phase in phases]), size)
for body, scene, result in phases:
    still = [Layer(t := shape_triangles(one), np.full((len(t), 3), 0.7), 0.35) for one in scene.shapes]
    for poses in body.frame_poses(result.trajectory.at(np.arange(0, result.trajectory.duration, every))[0]):
        layers = []
        for one, frame in zip(body.shapes, body.shape_frame):
            pose, colour = poses[frame] if frame >= 0 else np.eye(4), [0.1, 0.46, 0.66]
            triangles = shape_triangles(one) @ pose[:3, :3].T + pose[:3, 3]
            colour = [0.91, 0.42, 0.17] if "can" in one.name else colour
            layers.append(Layer(triangles, np.tile(colour, (len(triangles), 1))))
        picture = render([*layers, *still], camera, size)
        frames.append(Image.fromarray(np.uint8(255 * np.clip(picture, 0, 1))).quantize(160, Image.Quantize.FASTOCTREE))
frames[len(frames) // 2].save(out / "03_pick_and_place.png")  # a still one
frames[0].save(out / "03_pick_and_place.gif", save_all=True, append_images=frames[1:], duration=100, loop=0)
print(len(frames), "pictures")

# %%
# Over ROS the service ``~/plan_sequence`` plans such parts, ``~/attach_objects`` has links take objects up and put
# them down, and ``~/move`` has a controller execute a motion (:doc:`/execution`). Feet, wrists and second arms are
# robots' links like any other: each may carry something.
