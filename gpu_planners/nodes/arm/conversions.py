"""Messages to types and back, as pure functions: joint states, frames, poses, trajectories.

Every failure is a RequestError (or an ObstacleError from the world) whose text names the offender.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ...arm import RobotModel
from ...arm.collision.scene_file import pose_matrix
from ...arm.robot.model import VirtualJoint
from ...arm.spaces.configurations import LARGEST
from ...arm.trajectory import Trajectory
from ...errors import ObstacleError
from ..common.request_error import RequestError, answered_with
from ..common.ros import Transforms, duration_message, seconds
from . import codes

SHOWN_NAMES = 20  # in a text
AGREES = 1e-3  # m and rad by which two words on where the root stands may differ
COLUMNS = "positions", "velocities", "accelerations"


def joint_positions(
    message: JointState, what: str, code: int, known: Collection[str] | None = None
) -> dict[str, float]:
    """{joint name: position} of a message, rad or m.

    what: what texts call the message, for instance "joint goal 0"; code: of the answer where it is malformed
    known: joints to look at, whatever the others' values; None: all
    """
    names, positions = list(message.name), list(message.position)
    if len(names) != len(positions):
        raise RequestError(code, f"{what} has {len(names)} joint names but {len(positions)} positions")
    if len(set(names)) < len(names):
        twice, _ = Counter(names).most_common(1)[0]
        raise RequestError(code, f"{what} names joint '{twice}' twice")
    given = {name: value for name, value in zip(names, positions, strict=True) if known is None or name in known}
    for name, value in given.items():
        if not abs(value) <= LARGEST:
            raise RequestError(
                code, f"{what}: the position of joint '{name}' is {value}; allowed: finite, up to {LARGEST:g} rad or m"
            )
    return given


def configuration(robot: RobotModel, positions: dict[str, float], what: str, code: int) -> np.ndarray:
    """(dof,) the planning joints' values of {joint name: position}, in the order of robot.joint_names."""
    missing = [name for name in robot.joint_names if name not in positions]
    if missing:
        raise RequestError(
            code, f"{what} lacks {_listed(missing, 'joint')}; the planner plans {_listed(robot.joint_names, 'joint')}"
        )
    return np.array([positions[name] for name in robot.joint_names])


def only_joints(allowed: Sequence[str], positions: dict[str, float], what: str, code: int) -> None:
    unknown = [name for name in positions if name not in allowed]
    if unknown:
        raise RequestError(
            code, f"{what} has unknown {_listed(unknown, 'joint')}; known are {_listed(allowed, 'joint')}"
        )


def joint_goals(messages: Sequence[JointState], robot: RobotModel, where: str = "") -> list[np.ndarray]:
    """[(dof,)] of joint goals, each of which names every planning joint and no other. where: what texts begin with"""
    code, goals = codes.GOAL_STATE_INVALID, []
    for number, message in enumerate(messages):
        what = f"{where}joint goal {number}"
        positions = joint_positions(message, what, code)
        only_joints(robot.joint_names, positions, what, code)
        goals.append(configuration(robot, positions, what, code))
    return goals


def frame_transform(frames: dict[str, np.ndarray], frame: str, what: str) -> np.ndarray:
    """(4, 4) T_root_frame of a message's frame_id.

    frames: {frame name: T_root_frame} with "" for the root link; RobotFrames asks tf2 for others
    """
    try:
        return frames[frame]
    except KeyError as error:
        allowed = _listed([name for name in frames if name], "frame")
        why = f"; {error.args[0]}" if error.args[0] != frame else ""
        raise RequestError(
            codes.FRAME_TRANSFORM_FAILURE,
            f"{what} is given in frame '{frame}', which is not fixed to the robot's root; allowed: {allowed}{why}",
        ) from error


def pose_goal(message: PoseStamped, frames: dict[str, np.ndarray], what: str) -> np.ndarray:
    """(4, 4) T_root_goal of a pose."""
    with answered_with(codes.GOAL_STATE_INVALID, ObstacleError):
        return frame_transform(frames, message.header.frame_id, what) @ pose_of(message.pose, what)


def pose_of(pose: Pose, name: str) -> np.ndarray:
    """(4, 4) of a pose; ObstacleError names `name`."""
    p, o = pose.position, pose.orientation
    return pose_matrix((p.x, p.y, p.z), (o.x, o.y, o.z, o.w), name)


def points_of(points: Sequence[Point]) -> np.ndarray:
    """(N, 3) of points."""
    return np.array([(p.x, p.y, p.z) for p in points]).reshape(-1, 3)


def moved_by(point: Point) -> np.ndarray:
    """(4, 4) of a translation."""
    T = np.eye(4)
    T[:3, 3] = point.x, point.y, point.z
    return T


def pose_message(T: np.ndarray) -> Pose:
    """The message of a pose (4, 4)."""
    return pose_messages(T[None])[0]


def pose_messages(T: np.ndarray) -> list[Pose]:
    """The messages of poses (N, 4, 4). To call SciPy for each takes ten times as long."""
    quaternions = Rotation.from_matrix(T[:, :3, :3]).as_quat().tolist()
    return [
        Pose(position=Point(x=px, y=py, z=pz), orientation=Quaternion(x=x, y=y, z=z, w=w))
        for (px, py, pz), (x, y, z, w) in zip(T[:, :3, 3].tolist(), quaternions, strict=True)
    ]


def joint_state(names: Sequence[str], q: Sequence[float] | np.ndarray) -> JointState:
    """The message of joints at q (n,)."""
    return JointState(name=list(names), position=[float(value) for value in q])


def path_of(message: JointTrajectory) -> np.ndarray:
    """(K, n) positions of a trajectory's points."""
    return np.array([point.positions for point in message.points])


def path_message(robot: RobotModel, path: np.ndarray) -> JointTrajectory:
    """JointTrajectory of bare waypoints (K, dof), times left at 0."""
    return _trajectory(robot, [JointTrajectoryPoint(positions=q.tolist()) for q in path])


def trajectory_message(robot: RobotModel, trajectory: Trajectory) -> JointTrajectory:
    """JointTrajectory that a joint trajectory controller accepts. The stamp stays 0: start at once.

    RequestError where times do not increase after rounding to nanoseconds, or the last velocity is not exactly 0.
    """
    points = [
        JointTrajectoryPoint(time_from_start=duration_message(time), **dict(zip(COLUMNS, columns, strict=True)))
        for time, *columns in zip(
            trajectory.times, *(getattr(trajectory, name).tolist() for name in COLUMNS), strict=True
        )
    ]
    times = [seconds(point.time_from_start) for point in points]
    rising = all(before < after for before, after in zip(times, times[1:], strict=False))
    if not rising or np.any(trajectory.velocities[-1] != 0):
        raise RequestError(codes.FAILURE, "the timed trajectory breaks the rules of joint trajectory controllers")
    return _trajectory(robot, points)


def trajectory_of(message: JointTrajectory) -> Trajectory:
    """The Trajectory of a message whose points have positions, velocities and accelerations."""
    times = np.array([seconds(point.time_from_start) for point in message.points])
    return Trajectory(times, *(np.array([getattr(p, name) for p in message.points], float) for name in COLUMNS))


def _trajectory(robot, points):
    message = JointTrajectory(joint_names=list(robot.joint_names), points=points)
    message.header.frame_id = robot.root_link
    return message


def _listed(names, noun):
    """ "joint 'a'" or "joints 'a', 'b'"; the first ones of many."""
    shown = ", ".join(f"'{name}'" for name in names[:SHOWN_NAMES])
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return f"{noun}{'s' * (len(names) != 1)} {shown or 'none'}{more}"


def root_joint(robot: RobotModel) -> VirtualJoint | None:
    """The virtual joint of the SRDF that says in which frame the root stands. MoveIt, too, takes the first one."""
    return next((joint for joint in robot.virtual_joints if joint.child_link == robot.root_link), None)


def outside_frame(robot: RobotModel) -> str:
    """Name of the frame that the SRDF has the root stand in; "" where it names none."""
    joint = root_joint(robot)
    return joint.parent_frame.removeprefix("/") if joint else ""


@dataclass
class Outside:
    """The frame outside of the robot in which its root stands, by the SRDF. It is where tf2 has it; where tf2 has never
    heard of it, the root is taken to stand at its origin, as in MoveIt.

    assumed: has a message been read so?
    """

    frame: str = ""
    assumed: bool = False


class RobotFrames(dict[str, np.ndarray]):
    """{frame: (4, 4) T_root_frame} of the frames fixed to the robot's root, "" among them. Others are asked of tf2
    each time; a KeyError says why there is none.

    root: name of the root frame in tf2
    moved: those that joints which are not planned (of a head that pans) move: they are where joint_states have them
        now, but at another time only tf2 knows
    """

    def __init__(
        self,
        fixed: dict[str, np.ndarray],
        root: str,
        transforms: Transforms | None = None,
        moved: frozenset[str] = frozenset(),
        outside: Outside | None = None,
    ) -> None:
        super().__init__(fixed)
        self.root, self.moved, self._transforms = root, moved, transforms
        self._outside = outside or Outside()

    @property
    def asks_tf2(self) -> bool:
        return self._transforms is not None and not self._transforms.missing

    def __missing__(self, frame: str) -> np.ndarray:
        return self.at(frame, None)

    def at(self, frame: str, stamp: Any) -> np.ndarray:
        """(4, 4) T_root_frame at a time; KeyError with a text. A frame that is fixed has the same one at all times."""
        if frame in self and (stamp is None or frame not in self.moved):
            return self[frame]
        if frame and frame == self._outside.frame and not self._known_to_tf2(frame):
            self._outside.assumed = True
            return np.eye(4)
        if self._transforms is None:
            raise KeyError("there is no tf2")
        return self._transforms.look_up(self.root, frame, stamp)

    def contradiction(self) -> str:
        """What tf2 says by now of the frame outside that other messages were read without; "" where it is the same."""
        frame = self._outside.frame
        if not self._outside.assumed or not self._known_to_tf2(frame):
            return ""
        self._outside.assumed = False
        T = self[frame]
        if np.abs(T - np.eye(4)).max() <= AGREES:
            return ""
        return (
            f"messages in frame '{frame}' were read as in '{self.root}', which the SRDF has stand there, before tf2 "
            f"told that it stands elsewhere: x y z {np.linalg.inv(T)[:3, 3].round(4).tolist()}"
        )

    def _known_to_tf2(self, frame):
        try:
            return self._transforms is not None and self._transforms.look_up(self.root, frame) is not None
        except KeyError:
            return False
