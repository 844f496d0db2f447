"""
Three kilograms in the hand
===========================

The torques of a fast motion, with and without the motors' limits. With ``torques`` it is slower, but only where the
motors would not give what it takes. (Install: ``pip install "gpu_planners[view]" example-robot-data``.)
"""

from pathlib import Path

import matplotlib
import numpy as np

from gpu_planners.arm import load_urdf
from gpu_planners.arm.dynamics import Payload, TorqueLimits
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.share import example_robots_share

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

out = Path("out")
out.mkdir(exist_ok=True)
share = example_robots_share()
urdf = share / "example-robot-data/robots/panda_description/urdf/panda.urdf"
robot = load_urdf(urdf, package_dirs=[share], joints=[f"panda_joint{k}" for k in range(1, 8)])
limits = TorqueLimits(robot, payloads=[Payload(3.0, centre=[0, 0, 0.05])])  # at the tip link
path = np.array([[0.0, -0.8, 0.0, -2.4, 0.0, 1.6, 0.8], [0.8, 0.7, 0.0, -1.2, 0.0, 2.0, 0.8]])

# %%
# The joints of a Panda may accelerate faster than the URDF's speed in half a second; here, three times as fast.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
for axis, torques, title in zip(axes, (None, limits), ("without torques", "with torques")):
    motion = time_parameterize(path, robot.velocity, 3 * robot.acceleration, torques=torques)
    times = np.linspace(0, motion.duration, 500)
    shares = limits.dynamics.torques(*motion.at(times)) / limits.limits
    axis.plot(times, shares, label=robot.joint_names)
    axis.axhspan(-1, 1, color="0.93")
    axis.set(title=f"{title}: {motion.duration:.2f} s", xlabel="s")
    print(f"{title}: {motion.duration:.2f} s, up to {np.abs(shares).max():.2f} of a limit")
axes[0].set_ylabel("torque / limit")
axes[1].legend(fontsize=7, ncols=2)
figure.savefig(out / "payload.png", dpi=100)
