"""mujoco_warp's collision detection as a peer, on CUDA or on Warp's CPU device, which has one thread.

The model is that of the MuJoCo peer: the same hulls, obstacles and pairs; each configuration is a world of its own. It
finds all contacts of each world, and says nothing of what lies between two configurations.
"""

import time

import numpy as np

ROOM = 4  # contacts, and pairs that the broad phase leaves, of each world, to begin with


def unavailable(device):
    """Why mujoco_warp cannot be measured on a device here, or None."""
    try:
        import mujoco  # noqa: F401
        import mujoco_warp  # noqa: F401
        import warp
    except ImportError as error:
        return f"skipped: {error.name} is not installed (pip install mujoco-warp)"
    if device != "cpu" and not warp.is_cuda_available():
        return "skipped: Warp finds no CUDA device"
    return None


class Checks:
    """Checks of (count, dof) configurations of a RobotModel among a CollisionWorld; compiled when it is made.

    compiled_s: seconds of the first check, which compiles what Warp's cache lacks
    """

    def __init__(self, robot, world, count, device):
        import mujoco_warp
        import warp

        from gpu_planners.sim.simulation import make_model

        warp.config.log_level = warp.LOG_WARNING
        self._warp, self._mujoco_warp = warp, mujoco_warp
        self._device = device if ":" in device or device == "cpu" else f"{device}:0"
        self._host = make_model(robot, world)
        self._host.opt.disableflags |= mujoco_warp.DisableBit.MULTICCD  # a pair needs one contact
        self._at = self._host.jnt_qposadr[[self._host.joint(name).id for name in robot.frame_names]]
        self._frames, self._kernel = robot.frames, _verdicts(warp)
        began = time.perf_counter()
        with warp.ScopedDevice(self._device):
            self._model, room = mujoco_warp.put_model(self._host), ROOM
            self._model.opt.warn_overflow = 0
            self._hit = warp.zeros(count, dtype=warp.bool)
            q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (count, robot.dof))
            while not self._fits(q, room * count):
                room *= 2
        self.compiled_s = time.perf_counter() - began

    def positions(self, q):
        """MuJoCo's (N, nq) float32 of configurations (N, dof)."""
        qpos, frames = np.zeros((len(q), self._host.nq), np.float32), self._frames
        qpos[:, self._at] = frames["multiplier"] * q[:, frames["joint"]] + frames["offset"]
        return qpos

    def uploaded(self, qpos):
        """positions, on the device."""
        return self._warp.array(qpos, dtype=float, device=self._device)

    def valid(self, qpos):
        """(N,) bool, True where there is no contact, of positions on the host, or of `uploaded` ones."""
        return ~self.hit(qpos).numpy()

    def hit(self, qpos):
        """(N,) bool on the device, which is done with it."""
        if isinstance(qpos, np.ndarray):
            self._data.qpos.assign(qpos)
        else:
            self._warp.copy(self._data.qpos, qpos)
        with self._warp.ScopedDevice(self._device):
            if self._graph:
                self._warp.capture_launch(self._graph)
            else:
                self._check()
            self._warp.synchronize_device()
        return self._hit

    def overflowed(self):
        """Whether a check since this was made lacked room for contacts."""
        lacks = self._mujoco_warp.OverflowType
        bits = int(lacks.BROADPHASE | lacks.NARROWPHASE | lacks.CCD)
        return bool((self._data.overflow.numpy() & bits).any()) or self._most() > self._data.naconmax

    def _fits(self, q, room):
        self._data = self._mujoco_warp.make_data(self._host, nworld=len(q), naconmax=room, njmax=0)
        self._graph = None
        self.hit(self.positions(q))
        if 2 * self._most() > room or self.overflowed():  # others may have more contacts than these
            return False
        if self._device != "cpu":
            with self._warp.ScopedCapture() as captured:
                self._check()
            self._graph = captured.graph
        return True

    def _most(self):
        return max(int(self._data.nacon.numpy()[0]), int(self._data.ncollision.numpy()[0]))

    def _check(self):
        self._mujoco_warp.kinematics(self._model, self._data)
        self._mujoco_warp.collision(self._model, self._data)
        self._hit.zero_()
        contact = self._data.contact
        self._warp.launch(
            self._kernel, self._data.naconmax, [contact.worldid, contact.dist, self._data.nacon], [self._hit]
        )


def _verdicts(warp):
    """The kernel that marks the worlds of contacts."""

    @warp.kernel(enable_backward=False)
    def verdicts(
        world: warp.array(dtype=int),
        distance: warp.array(dtype=float),
        count: warp.array(dtype=int),
        hit: warp.array(dtype=warp.bool),
    ):
        contact = warp.tid()
        if contact < count[0] and distance[contact] < 0.0:
            hit[world[contact]] = True

    return verdicts
