"""
Real robots, as they are checked
================================

Every mesh becomes one convex hull, or several that cover it. This is what the planner sees of five robots of
example-robot-data; their URDFs are read as they are. (Install: ``pip install "gpu_planners[view]"
example-robot-data``.)
"""

from pathlib import Path

import numpy as np
from PIL import Image

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.arm.view.drawing import draw_path
from gpu_planners.share import example_robots_share

out = Path("out")
out.mkdir(exist_ok=True)
share = example_robots_share()
ROBOTS = {  # URDF, and the joints to plan; None: all
    "Panda": ("panda_description/urdf/panda.urdf", [f"panda_joint{k}" for k in range(1, 8)]),
    "UR10": ("ur_description/urdf/ur10_robot.urdf", None),
    "xArm 7": ("xarm_description/urdf/xarm7.urdf", [f"joint{k}" for k in range(1, 8)]),
    "TIAGo": ("tiago_description/robots/tiago.urdf", [f"arm_{k}_joint" for k in range(1, 8)]),
    "Baxter": (
        "baxter_description/urdf/baxter.urdf",
        [f"{s}_{j}{k}" for s in ("left", "right") for j in "se" for k in (0, 1)],
    ),
}
FIXED = {"TIAGo": {"torso_lift_joint": 0.3}}  # where joints stand that are not planned

# %%
# For each robot draw a free configuration at random, and draw it.
pictures = []
for name, (urdf, joints) in ROBOTS.items():
    robot = load_urdf(
        share / "example-robot-data/robots" / urdf, package_dirs=[share], joints=joints, fixed=FIXED.get(name, {})
    )
    q = np.random.default_rng(4).uniform(robot.lower, robot.upper, (5000, robot.dof))
    free = q[CollisionChecker(robot, CollisionWorld()).configurations_valid(q)]
    print(f"{name}: {robot.dof} joints, {len(robot.shapes)} convex shapes, {len(robot.self_collision_pairs)} pairs")
    picture = Image.open(draw_path(robot, CollisionWorld(), free[:1], out / f"{name}.png", size=(800, 880)))
    pictures.append(picture.convert("RGB").crop((0, 80, 800, 880)).resize((400, 400)))
    (out / f"{name}.png").unlink()

row = Image.new("RGB", (400 * len(pictures), 400), "white")
for number, picture in enumerate(pictures):
    row.paste(picture, (400 * number, 0))
row.quantize(220).save(out / "robots.png")
