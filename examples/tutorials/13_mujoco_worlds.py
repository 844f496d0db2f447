"""
1,024 MuJoCo worlds, a plan for each
====================================

Simulators for learning run thousands of environments side by side: the same robot among the same objects, each time at
other poses. A ``SceneBatch`` holds such scenes, takes the poses as one array, and has a checker of each, so that one
call of ``solve_batch`` plans for all of them. On a GPU the array may be a tensor of the simulator's (PyTorch, JAX,
CuPy, Warp): it stays where it is.

Install: ``pip install "gpu_planners[view,sim]"``, with a GPU ``[view,sim,gpu]``.
"""

import os
import time
from pathlib import Path

import matplotlib
import mujoco
import numpy as np

from gpu_planners.arm import SceneBatch, load_mjcf, mjcf_obstacles, rrt_connect
from gpu_planners.device import resolve_device

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

short = "GPU_PLANNERS_SHORT" in os.environ
count, settle = (16, 200) if short else (1024, 600)
out, device = Path("out"), resolve_device("auto")
out.mkdir(exist_ok=True)

# %%
# A robot and its objects
# -----------------------
#
# An arm of six joints before a table, on which three objects lie that may be anywhere. ``load_mjcf`` makes the robot of
# what carries the planning joints; ``mjcf_obstacles`` makes obstacles of all other bodies.

MJCF = """
<mujoco model="cell">
  <compiler autolimits="true"/>
  <default><joint range="-170 170" damping="5"/><geom friction="1"/></default>
  <worldbody>
    <geom name="table" type="box" size="0.4 0.6 0.02" pos="0.55 0 -0.02"/>
    <body name="base">
      <geom type="cylinder" size="0.07 0.05" pos="0 0 0.05"/>
      <body name="turret" pos="0 0 0.12">
        <joint name="pan" axis="0 0 1"/>
        <geom type="cylinder" size="0.06 0.05" pos="0 0 0.03"/>
        <body name="upper_arm" pos="0 0 0.1">
          <joint name="shoulder" axis="0 1 0" range="-100 100"/>
          <geom type="capsule" fromto="0 0 0.08 0 0 0.3" size="0.045"/>
          <body name="forearm" pos="0 0 0.38">
            <joint name="elbow" axis="0 1 0" range="-150 150"/>
            <geom type="capsule" fromto="0 0 0.08 0 0 0.28" size="0.04"/>
            <body name="wrist" pos="0 0 0.36">
              <joint name="roll" axis="0 0 1"/>
              <geom type="cylinder" size="0.035 0.03"/>
              <body name="palm" pos="0 0 0.07">
                <joint name="pitch" axis="0 1 0" range="-110 110"/>
                <geom type="sphere" size="0.035"/>
                <body name="hand" pos="0 0 0.06">
                  <joint name="twist" axis="0 0 1"/>
                  <geom type="box" size="0.04 0.02 0.05" pos="0 0 0.04"/>
                </body>
              </body>
            </body>
          </body>
        </body>
      </body>
    </body>
    <body name="crate" pos="0.5 0 0.1"><freejoint/><geom type="box" size="0.06 0.08 0.1"/></body>
    <body name="can" pos="0.5 0.3 0.1"><freejoint/><geom type="cylinder" size="0.04 0.08"/></body>
    <body name="pole" pos="0.5 -0.3 0.2"><freejoint/><geom type="box" size="0.03 0.03 0.2"/></body>
  </worldbody>
  <keyframe>
    <key name="ready" qpos="0 -0.6 1.8 0 1.0 0  0.5 0 0.1 1 0 0 0  0.5 0.3 0.1 1 0 0 0  0.5 -0.3 0.2 1 0 0 0"/>
  </keyframe>
</mujoco>
"""
model = mujoco.MjModel.from_xml_string(MJCF)
joints, objects = ["pan", "shoulder", "elbow", "roll", "pitch", "twist"], ["crate", "can", "pole"]
robot = load_mjcf(model, joints=joints)
obstacles = mjcf_obstacles(model, robot)
print(robot.name, robot.joint_names, "among", obstacles.names)

# %%
# The worlds
# ----------
#
# Each world drops the objects somewhere above the table and lets them come to rest.

rng = np.random.default_rng(0)
worlds = []
for _ in range(count):
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    for k, name in enumerate(objects):
        at = model.jnt_qposadr[model.body(name).jntadr[0]]
        data.qpos[at : at + 2] = rng.uniform([0.3, 0.4 * k - 0.55], [0.7, 0.4 * k - 0.25])
        data.qpos[at + 2] += 0.01
    mujoco.mj_step(model, data, settle)
    worlds.append(data)
numbers = [model.body(name).id for name in objects]
poses = np.array([np.hstack([data.xpos[numbers], data.xquat[numbers]]) for data in worlds])
print("poses of all objects", poses.shape)

# %%
# One batch of scenes
# -------------------
#
# Positions and quaternions go in as MuJoCo has them. After each step of a simulation this is the only call that is
# needed: nothing else is packed or sent again.

batch = SceneBatch(robot, obstacles, count, device, moving=objects)
batch.set_poses(poses)
began = time.perf_counter()
batch.set_poses(poses)
print(f"{count} scenes are posed in {1e3 * (time.perf_counter() - began):.2f} ms on {device}")

# %%
# Where can the arm stand? Many configurations are checked in every scene at once; of those that are free, each scene
# takes the first as its goal. Scenes whose start is blocked sit out.

q = rng.uniform(robot.lower, robot.upper, (count, 200, robot.dof))
free = batch.configurations_valid(q)
start = np.tile(robot.named_states["ready"], (count, 1))
able = np.flatnonzero(batch.configurations_valid(start) & free.any(axis=1))
goals = np.array([q[e][free[e]][0] for e in able])
print(f"{free.mean():.0%} of the configurations are free; {len(able)} scenes can be planned for")

# %%
# A plan for each
# ---------------
#
# ``batch[e]`` is the checker of scene e; the whole ``batch`` would do where all scenes have a problem. The results are
# arrays, and objects where they are asked for.

scenes = [batch[int(e)] for e in able]
rrt_connect.solve_batch(start[able][:2], goals[:2], scenes[:2])  # compiles, or loads what was compiled
began = time.perf_counter()
results = rrt_connect.solve_batch(start[able], goals, scenes)
took = time.perf_counter() - began
print(f"{results.solved.sum()} of {len(able)} scenes are solved in {took:.2f} s, {len(able) / took:.0f} plans/s")
motions = results.padded()  # (scenes, longest path, joints), as a tensor for all environments
print("paths as one array", motions.shape)

# %%
# What does MuJoCo say?
# ---------------------
#
# It moves the arm along each plan, in that plan's own world, and looks for contacts of the robot.

addresses = [model.joint(name).qposadr[0] for name in joints]
parts, touches = set(robot.link_names) - {"world"}, 0
for e, result in zip(able[:200], results[:200]):
    data = worlds[e]
    for a, b in zip(result.path[:-1], result.path[1:]):
        for s in np.linspace(0, 1, 20):
            data.qpos[addresses] = (1 - s) * a + s * b
            mujoco.mj_forward(model, data)
            for contact in data.contact[: data.ncon]:
                bodies = {model.body(int(model.geom_bodyid[g])).name for g in contact.geom}
                touches += contact.dist < -1e-4 and bool(bodies & parts) and bool(bodies - parts)
print("contacts of the robot with anything else:", touches)
assert not touches

# %%
# Where the objects of all worlds lie, seen from above, and how long the paths are.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
for k, name in enumerate(objects):
    left.plot(poses[:, k, 0], poses[:, k, 1], ".", markersize=3, label=name)
left.set(xlabel="x, m", ylabel="y, m", title=f"where the objects of {count} worlds lie", aspect="equal")
left.legend()
right.hist(results.costs[results.solved], bins=30)
right.set(xlabel="length of a path, rad", ylabel="scenes", title="a plan for each")
figure.tight_layout()
figure.savefig(out / "13_mujoco_worlds.png", dpi=100)
