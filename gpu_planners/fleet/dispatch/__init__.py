"""Tasks for fleets: who gets which, kept on disk, taken back where a robot fails."""

from .dispatcher import Dispatcher
from .settings import DispatchSettings
from .task import RobotState, Task, TaskState, TaskStatus

__all__ = ["DispatchSettings", "Dispatcher", "RobotState", "Task", "TaskState", "TaskStatus"]
