"""The page of an arm: sliders for its joints, a goal that is dragged, and the motion between them.

The solid robot stands at the start, or plays the motion; the ghost shows where the motion ends.
"""

import argparse
import html

import numpy as np
from scipy.spatial.transform import Rotation

from ...arm import PLANNERS
from ...arm.trajectory import Trajectory, time_parameterize
from ...arm.view.browser import ArmScene, new_server, stop_server
from ..errors import require
from ..motions import PoseGoal, settings_of
from ..robots import configuration, load_robot, load_world, tip_of
from ..trajectory_files import read_path
from .motion_source import Answer, LocalSource, NodeSource, Wish, first_goal, first_start
from .threads import Newest, Player

PARTS = {"robot": True, "goal": True, "obstacles": True, "path": True, "trails": False}
ROADMAP_NODES = 400
HANDLE_SIZE = 0.075  # of the goal's handle, as a share of the distance from which it is seen
MOST_PAIRS = 4  # that are named


def open_arm_page(options: argparse.Namespace) -> "ArmPage":
    if options.node:
        how = "source a ROS 2 installation, or in a checkout run `make setup` and use .venv/bin/gpu-planners"
        require("rclpy", "--node", how)
        require("gpu_planners_msgs.srv", "--node", "build gpu_planners_msgs with colcon, or run `make setup`")
        source: LocalSource = NodeSource(options.node)
        start, path = source.measured(), None
    else:
        robot = load_robot(options)
        settings_of(options.planner, options.set, options.time)  # whatever is wrong with them is said now
        world, tip = load_world(options, robot), tip_of(options, robot)
        path, times = read_path(options.path, robot) if options.path else (None, None)
        start = configuration(robot, options.start, "--start") if options.start else None
        source = LocalSource(robot, world, tip, options.device, options.set)
    page = ArmPage(source, options, start)
    source.listen(page.refresh)
    if path is not None:
        page.show_motion(path, times)
    else:
        page.plan()
    return page


class ArmPage:
    """The page; `close` ends it.

    source: of motions;  options: the command line's, for the first values of the page's controls
    start: (dof,) where the motion begins at first; None: somewhere free
    answer: to the last wish;  answers: how many there were
    """

    def __init__(self, source: LocalSource, options: argparse.Namespace, start: np.ndarray | None = None) -> None:
        self.source, robot = source, source.robot
        self.title = robot.name
        self.start = first_start(source) if start is None else np.clip(start, robot.lower, robot.upper)
        self._goal = first_goal(source, self.start)
        self.answer, self.answers = Answer(""), 0
        self.server = new_server(options.host, options.port)
        self.port = self.server.get_port()
        self.scene = ArmScene(self.server, robot, source.world, source.tip)
        self._seed = 0
        self._quiet = False  # a slider that we move ourselves asks for nothing
        self._work = Newest(lambda error: self._say(f"{type(error).__name__}: {error}", "red"))
        self._player = Player(self._show_time, lambda: self._play_or_stop(False))
        self._add_controls(options)
        self.scene.place(self.start)
        size = HANDLE_SIZE * self.scene.look(np.stack([self.start, self._goal]))
        self.goal_handle = self.server.scene.add_transform_controls("/goal_handle", scale=size, depth_test=False)
        self._move_handle(self._goal)
        self.goal_handle.on_update(lambda event: self._dragged(event.phase))

    @property
    def playing(self) -> bool:
        return self._player.playing

    @property
    def busy(self) -> bool:
        return self._work.busy

    def close(self) -> None:
        self._player.close()
        self._work.stop()
        self.source.close()
        stop_server(self.server)

    def plan(self, dragged: bool = False, other_seed: bool = False) -> None:
        """Ask for the motion from the start to the goal, as they are now."""
        self._seed += other_seed
        self._work.do("plan", lambda: self._plan(dragged))

    def refresh(self) -> None:
        """Take the obstacles as they are now, and plan again."""

        def take():
            self.scene.set_world(self.source.world)
            self._plan(dragged=False)

        self._work.do("world", take)

    def show_motion(self, path: np.ndarray, times: np.ndarray | None = None) -> None:
        """Show a motion that was planned elsewhere. path: (K, dof); times: (K,) seconds, None: by the robot's limits"""
        robot = self.source.robot
        if times is None:
            timed = time_parameterize(path, robot.velocity, robot.acceleration)
        else:
            speeds = np.gradient(path, times, axis=0) if len(path) > 2 else np.zeros_like(path)
            timed = Trajectory(times - times[0], path, speeds, np.zeros_like(path))
        self.start, self._goal = path[0], path[-1]
        self._move_sliders(self.start)
        self._move_handle(self._goal)
        self._take(Answer(f"{len(path)} configurations, {timed.duration:.2f} s long", True, path, timed))

    def _add_controls(self, options):
        gui, robot = self.server.gui, self.source.robot
        gui.set_panel_label(f"{robot.name}: {robot.dof} joints")
        self._status = gui.add_html("")
        with gui.add_folder("Motion"):
            self._play = gui.add_button("Play", icon="player-play")
            self._time = gui.add_slider(
                "time", min=0.0, max=1.0, step=0.001, initial_value=0.0, hint="share of the motion"
            )
            self._repeat = gui.add_checkbox("again and again", True)
            again = gui.add_button("Plan again, other seed")
            onward = gui.add_button("Go on from the goal", hint="the goal becomes the start")
        with gui.add_folder("Start"):
            self._sliders = [self._add_slider(i) for i in range(robot.dof)]
            if robot.named_states:
                names = ("", *robot.named_states)
                state = gui.add_dropdown("state", names, initial_value="", hint="of the SRDF")
                state.on_update(lambda _: state.value and self._set_start(robot.named_states[state.value]))
            if self.source.measured() is not None:
                now = gui.add_button("Where the robot is", hint="by joint_states")
                now.on_click(lambda _: self._set_start(self.source.measured()))
        with gui.add_folder("Goal"):
            self._turning = gui.add_checkbox("orientation counts", True, disabled=not self.source.turns_freely)
            here = gui.add_button("Bring the goal to the start")
            anywhere = gui.add_button("Somewhere else")
        with gui.add_folder("Planner", expand_by_default=False):
            self._planner = gui.add_dropdown("planner", tuple(PLANNERS), initial_value=options.planner)
            self._time_s = gui.add_number("time, s", initial_value=options.time, min=0.05, max=60.0, step=0.05)
            self._margin = gui.add_number("margin, m", initial_value=options.margin, min=0.0, max=0.5, step=0.005)
            gui.add_markdown(f"planned {self.source.where}")
        with gui.add_folder("Show", expand_by_default=False):
            for part, shown in PARTS.items():
                self._add_part(part, shown)
            if hasattr(self.source, "roadmap"):
                roadmap = gui.add_checkbox(
                    "roadmap of the tool", False, hint=f"{ROADMAP_NODES} configurations of a PRM"
                )
                roadmap.on_update(lambda _: self._work.do("roadmap", lambda: self._draw_roadmap(roadmap.value)))
        self._play.on_click(lambda _: self._play_or_stop(not self._player.playing))
        self._repeat.on_update(lambda _: setattr(self._player, "repeat", self._repeat.value))
        self._time.on_update(lambda _: self._seek())
        again.on_click(lambda _: self.plan(other_seed=True))
        onward.on_click(lambda _: self._go_on())
        here.on_click(lambda _: self._set_goal(self.start))
        anywhere.on_click(lambda _: self._work.do("goal", self._another_goal))
        for control in (self._planner, self._time_s, self._margin):
            control.on_update(lambda _: self.plan())
        self._turning.on_update(lambda _: self.plan())
        self.server.gui.main_panel.dock_right()

    def _add_slider(self, i):
        robot, gui = self.source.robot, self.server.gui
        low, high, name = float(robot.lower[i]), float(robot.upper[i]), robot.joint_names[i]
        slider = gui.add_slider(
            name, min=low, max=high, step=(high - low) / 1000, initial_value=float(self.start[i]), hint="rad or m"
        )
        slider.on_update(lambda _: self._slid())
        return slider

    def _add_part(self, part, shown):
        box = self.server.gui.add_checkbox(part, shown)
        self.scene.show_part(part, shown)
        box.on_update(lambda _: self.scene.show_part(part, box.value))

    def _slid(self):
        if not self._quiet:
            self._set_start(np.array([slider.value for slider in self._sliders]), sliders=False)

    def _set_start(self, q, sliders=True):
        self._play_or_stop(False)
        self.start = np.asarray(q, dtype=float)
        if sliders:
            self._move_sliders(self.start)
        self.scene.place(self.start)
        self.plan()

    def _set_goal(self, q):
        self._goal = np.asarray(q, dtype=float)
        self._move_handle(self._goal)
        self.plan()

    def _dragged(self, phase):
        self._goal = None  # known when a motion to the handle's pose has been found
        self.plan(dragged=phase != "end")

    def _goal_pose(self):
        T = np.eye(4)
        T[:3, :3] = Rotation.from_quat(np.asarray(self.goal_handle.wxyz)[[1, 2, 3, 0]]).as_matrix()
        T[:3, 3] = self.goal_handle.position
        return PoseGoal(T, not self._turning.value)

    def _move_handle(self, q):
        T = self.source.robot.link_poses(q)[self.source.tip][0]
        self.goal_handle.position = T[:3, 3]
        self.goal_handle.wxyz = Rotation.from_matrix(T[:3, :3]).as_quat()[[3, 0, 1, 2]]

    def _move_sliders(self, q):
        self._quiet = True
        try:
            for slider, value in zip(self._sliders, q, strict=True):
                slider.value = float(np.clip(value, slider.min, slider.max))
        finally:
            self._quiet = False

    def _plan(self, dragged):
        goal = self._goal_pose() if self._goal is None else self._goal
        wish = Wish(self.start, goal, dragged, self._planner.value, self._time_s.value, self._margin.value, self._seed)
        self._take(self.source.plan(wish))

    def _take(self, answer):
        self.answer, self.answers = answer, self.answers + 1
        pairs = self.source.colliding(self.start)
        self.scene.place_ghost(answer.path[-1] if answer.solved else None)
        self.scene.draw_path(answer.path)
        self.scene.place(self.start, [name for pair in pairs for name in pair])
        took = f" in {1e3 * answer.took_s:.0f} ms" if answer.took_s else ""
        if answer.solved:
            self._say(f"{answer.text}, planned{took}" if took else answer.text, "green")
        elif pairs:
            named = "; ".join(f"{a} meets {b}" for a, b in pairs[:MOST_PAIRS])
            self._say(f"the start collides: {named}", "red")
        else:
            self._say(answer.text, "red")
        self._player.load(answer.trajectory.duration if answer.trajectory else 0.0)

    def _another_goal(self):
        self._seed += 1
        self._set_goal(first_goal(self.source, self.start, self._seed))

    def _go_on(self):
        if self.answer.solved:
            end, begin = self.answer.path[-1], self.start
            self._goal = begin
            self._move_handle(begin)
            self._set_start(end)

    def _draw_roadmap(self, wanted):
        empty = np.zeros((0, self.source.robot.dof)), np.zeros((0, 2), int)
        self.scene.draw_graph(*(self.source.roadmap(ROADMAP_NODES, self._seed) if wanted else empty))

    def _play_or_stop(self, wanted):
        self._player.play(wanted)
        self._play.label, self._play.icon = ("Stop", "player-pause") if wanted else ("Play", "player-play")

    def _seek(self):
        if not self._quiet and (trajectory := self.answer.trajectory) is not None:
            self._player.seek(self._time.value * trajectory.duration)
            self._show_at(self._time.value * trajectory.duration)

    def _show_time(self, at_s):
        trajectory = self.answer.trajectory
        if trajectory is None:
            return
        self._quiet = True
        try:
            self._time.value = round(min(at_s / max(trajectory.duration, 1e-9), 1.0), 3)
        finally:
            self._quiet = False
        self._show_at(at_s)

    def _show_at(self, at_s):
        self.scene.place(self.answer.trajectory.at(at_s)[0][0])

    def _say(self, text, colour):
        mark = {"green": "#2b8a3e", "red": "#c92a2a"}[colour]
        style = f"padding:0.6em 1em;font-size:0.9em;line-height:1.35;border-left:4px solid {mark};color:{mark}"
        self._status.content = f'<div style="{style}">{html.escape(text)}</div>'
