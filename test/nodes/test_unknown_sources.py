"""What counts as unknown after a message about obstacles was refused, and when it no longer does."""

import pytest

from gpu_planners.nodes.arm.unknown_sources import MOST, SILENCE_S, UnknownSources


@pytest.fixture
def sources():
    told = {}
    unknown = UnknownSources(told.__setitem__)
    unknown.told = told
    return unknown


def test_the_next_right_message_of_its_topic_ends_it(sources):
    sources.refuse("points/moon", "no moon", 10.0)
    sources.take("octomap/map", 10.1)
    assert sources.problem == sources.told["points/moon"] == "no moon"
    sources.take("points/camera", 10.2)
    assert sources.problem == sources.told["points/moon"] == ""


def test_a_source_that_goes_on_sending_is_not_ended_by_another_of_its_topic(sources):
    for k in range(20):
        sources.refuse("points/moon", "no moon", k / 10)
        sources.take("points/camera", k / 10 + 0.05)
        assert k == 0 or sources.problem == "no moon"
    sources.take("points/camera", 1.9 + SILENCE_S / 2)
    assert sources.problem
    sources.take("points/camera", 1.9 + SILENCE_S)
    assert not sources.problem
    sources.refuse("points/moon", "no moon", 10.0)
    sources.refuse("points/moon", "no moon", 10.1)
    sources.take("points/moon", 10.2)  # it is right itself
    assert not sources.problem and set(sources.told.values()) == {""}


def test_it_ends_with_the_life_of_what_it_tells_of_and_is_forgotten(sources):
    sources.refuse("points/moon", "no moon", 10.0, expires=12.0)
    sources.refuse("moveit", "no scene", 10.0)
    sources.clock_jumped_back(5.0)
    sources.forget_expired(6.9)
    assert sources.problem == "no moon"
    sources.forget_expired(7.0)
    assert sources.problem == "no scene" and sources.told["points/moon"] == ""
    sources.refuse("obstacles", "no frame", 7.0)
    assert sources.forget("moveit") == ["moveit"] and sources.problem == "no frame"
    assert sources.forget() == ["obstacles"] and not sources.problem and sources.forget() == []


def test_not_more_than_some_are_kept(sources):
    for k in range(MOST + 5):
        sources.refuse(f"points/{k}", f"no {k}", 0.0)
    assert sources.problem == "no 5" and sources.told["points/4"] == ""
