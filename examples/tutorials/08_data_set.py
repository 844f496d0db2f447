"""
A data set of 100,000 motions
=============================

To train a planner, or to test one, you need many solved problems. Here you make a data set of a robot among random
furniture, on all cores or GPUs of the machine, end the run in the middle and let it go on, have every row checked, and
load what came out as arrays.

It takes about six minutes on two cores. The pictures of this page are of a smaller one: ``PROBLEMS=2000 python
08_data_set.py``.

Install: ``pip install "gpu_planners[dataset,view]"``
"""

import os
import signal
import subprocess
import time
from pathlib import Path

import matplotlib
import numpy as np

from gpu_planners.arm import load_urdf
from gpu_planners.datasets import check, load
from gpu_planners.share import share_folder

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

short = "GPU_PLANNERS_SHORT" in os.environ
problems = 100 if short else int(os.environ.get("PROBLEMS", 100_000))
out = Path("out")
out.mkdir(exist_ok=True)

# %%
# What is asked
# -------------
#
# The rows depend on the robot, on how scenes, starts and goals are drawn (``--draw``), on the planner's settings and
# the seed, and on nothing else. Here a gantry robot plans in front of shelves and boxes; four problems in a row share
# a scene. ``--timing`` adds times, velocities and accelerations. With your robot: its URDF, and ``--srdf robot.srdf
# --group arm``.

urdf = share_folder() / "urdf/gantry.urdf"
asked = ["gpu-planners", "dataset", str(urdf), "--problems", str(problems), "--rows", str(max(10, problems // 20))]
asked += ["--draw", "furniture=shelf,box", "--draw", "per_scene=4", "--timing", "--workers", "2", "--seed", "1"]
folder = out / f"gantry_{problems}"
print(*asked, "--output", folder)

# %%
# Make it
# -------
#
# ``--workers`` processes draw and plan; on GPUs add ``--devices cuda:all``. In a terminal a bar tells how far it is;
# ``--dry-run`` tells beforehand how large it will be and how long it takes. Each file of the folder is written whole
# or not at all. So a run may end at any moment, by Ctrl-C or a power cut, and the same command goes on where it was.
# We play that: the first run gets a Ctrl-C once two files are there.

run = subprocess.Popen([*asked, "--output", str(folder)], stderr=subprocess.PIPE, text=True)
while len(list(folder.glob("problems-*"))) < 2 and run.poll() is None:
    time.sleep(0.05)
run.send_signal(signal.SIGINT)
print(run.communicate()[1].strip(), "- files:", len(list(folder.glob("problems-*"))))
print(subprocess.run([*asked, "--output", str(folder)], capture_output=True, text=True, check=True).stderr.strip())

# %%
# In Python ``datasets.make`` does the same, and takes any executor's workers, Dask's or MPI's. (A script that asks it
# for ``workers`` needs the usual ``if __name__ == "__main__":``, since each new process imports the script.)
#
# Check it
# --------
#
# ``check`` reads every row again: are start and goals free, is the path free all along, does it keep the limits, is
# its length what is said?

robot = load_urdf(urdf)
report = check(folder, robot)
print(report.rows, "rows,", report.errors, "errors;", report.counts)

# %%
# Use it
# ------
#
# ``load`` gives NumPy arrays. pandas, Polars, DuckDB and Hugging Face read the folder as it is, since it holds Parquet
# files.

data = load(folder)
paths = data.resampled(50)  # (solved, 50, dof), at equal lengths in joint space
durations = np.array([data.of("times", row)[-1] for row in np.flatnonzero(data.solved)])
print(data.columns[:8], "...", paths.shape)

fig, axes = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
axes[0].hist(data.cost[data.solved], 40, color="tab:blue")
axes[0].set(xlabel="length of the path, rad and m", ylabel="motions", title=f"{data.solved.mean():.0%} solved")
axes[1].hist(durations, 40, color="tab:green")
axes[1].set(xlabel="time of the motion, s", title="within the joints' limits")
tips = robot.link_poses(paths.reshape(-1, robot.dof))[robot.tip_link][:, :3, 3].reshape(len(paths), 50, 3)
for tip in tips[:200]:
    axes[2].plot(tip[:, 0], tip[:, 1], lw=0.6, alpha=0.5)
axes[2].set(xlabel="x of the tool, m", ylabel="y, m", title="200 paths from above", aspect="equal")
fig.savefig(out / "08_data_set.png", dpi=110)

# %%
# Next: :doc:`/datasets` has all columns and how to split by scene; :doc:`/distributed` has Dask's and MPI's workers on
# many machines.
