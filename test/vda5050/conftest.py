"""A broker, and halls of vehicles behind it."""

import pytest
from mqtt_broker import OPEN, Hall, Mosquitto

from gpu_planners.grid import GridMap
from gpu_planners.vda5050.layout import Layout


@pytest.fixture
def mosquitto(tmp_path):
    broker = Mosquitto(tmp_path)
    yield broker
    broker.kill()


@pytest.fixture
def hall_of(mosquitto):
    halls = []

    def make(costs=OPEN, **options):
        halls.append(Hall(mosquitto.address, Layout(GridMap(costs, 4, 1.0)), **options))
        return halls[-1]

    yield make
    for hall in halls:
        hall.close()
