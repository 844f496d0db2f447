# Images with the library, the command gpu-planners, the nodes, and code of the CPU for any x86-64 processor since 2013:
#   docker build --target cpu -t gpu_planners .          # or podman
#   docker build --target cuda -t gpu_planners:cuda .    # for hosts with NVIDIA's driver and container toolkit
#   docker run --rm gpu_planners gpu-planners info
#   docker run --rm --net host --ipc host gpu_planners grid_planner --ros-args -p map_file:=/opt/gpu_planners/config/maps/hall.yaml
#   docker run --rm --gpus all gpu_planners:cuda gpu-planners info
# A build sees no GPU, so code for CUDA is compiled by the first plan, or once and for all by
#   docker run --gpus all --name compiling gpu_planners:cuda gpu-planners compile && docker commit compiling gpu_planners:cuda
# ROS 2 comes as wheels, and the CUDA 12 libraries too: both images begin with plain Debian, or another one of
# docs/install.md: --build-arg BASE=ubuntu:26.04 --build-arg ROS_DISTRO=kilted
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
ARG ROS_DISTRO=jazzy
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates g++ make python3-dev python3-venv
WORKDIR /opt/gpu_planners
COPY . .
# What set-up compiles meanwhile becomes code for other machines, as tools/make_wheel.py makes it.
ENV GPU_PLANNERS_READY_MADE=/opt/gpu_planners/gpu_planners/ready_made NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES=
RUN python3 tools/setup_environment.py --extras view,verify --ros-distro ${ROS_DISTRO} \
 && .venv/bin/gpu-planners compile --device cpu \
 && rm -rf build .venv/logs ~/.cache

FROM build AS build-cuda
RUN .venv/bin/python -m pip install --no-cache-dir -e ".[gpu]"

FROM ${BASE} AS run
RUN apt-get update \
 && apt-get install -y --no-install-recommends libgomp1 python3 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home planner
ENV PATH=/opt/gpu_planners/.venv/bin:$PATH AMENT_PREFIX_PATH=/opt/gpu_planners/.venv
WORKDIR /home/planner
CMD ["gpu-planners", "info"]

FROM run AS cpu
COPY --from=build /opt/gpu_planners /opt/gpu_planners
USER planner
RUN python3 /opt/gpu_planners/tools/try_installed.py

FROM run AS cuda
COPY --from=build-cuda /opt/gpu_planners /opt/gpu_planners
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER planner
RUN python3 /opt/gpu_planners/tools/try_installed.py
