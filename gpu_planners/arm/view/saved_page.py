"""A page that plays a motion and needs neither a server nor the internet: viser's own page with the motion in it."""

import numpy as np

from ..collision.world import CollisionWorld
from ..robot.model import RobotModel
from ..trajectory import Trajectory
from .browser import ArmScene, new_server, stop_server

PICTURES_S = 1 / 30
MOST_PICTURES = 3000  # of a long motion fewer a second
REST_S = 0.7  # before it begins again


def motion_page(robot: RobotModel, world: CollisionWorld, tip: str, trajectory: Trajectory) -> str:
    """The page as HTML. tip: link whose way is drawn"""
    server = new_server(port=0)
    try:
        scene = ArmScene(server, robot, world, tip)
        scene.place(trajectory.positions[0])
        scene.place_ghost(trajectory.positions[-1])
        scene.draw_path(trajectory.positions)
        scene.look(trajectory.positions)
        recorded = server.get_scene_serializer()
        step = max(PICTURES_S, trajectory.duration / MOST_PICTURES)
        for at in np.arange(0.0, trajectory.duration, step):
            scene.place(trajectory.at(at)[0][0])
            recorded.insert_sleep(step)
        scene.place(trajectory.positions[-1])
        recorded.insert_sleep(REST_S)
        return recorded.as_html()
    finally:
        stop_server(server)
