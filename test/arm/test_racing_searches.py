"""Searches of RRT-Connect that race on the CPU: the winner follows from numbers of samples, not from the clock."""

import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from gpu_planners.arm import Status
from gpu_planners.arm.planners import rrt_connect
from gpu_planners.arm.planners.rrt_connect.cpu import APART, LEAD
from gpu_planners.errors import SettingsError
from gpu_planners.papers.dl14.image import ImageChecker

START, GOAL = np.array([0.05, 0.95]), np.array([0.95, 0.05])
PLAIN = rrt_connect.Settings(shortcut_rounds=0, time_limit_s=3600.0)


@pytest.fixture(scope="module")
def maze():
    """Five walls with a door each, now at one end and now at the other."""
    image = np.ones((100, 100), dtype=bool)
    for number, column in enumerate(range(10, 100, 18)):
        image[:, column : column + 4] = False
        door = 4 if number % 2 else 90
        image[door : door + 5, column : column + 4] = True
    return ImageChecker(image, (0.0, 0.0), (1.0, 1.0), "cpu")


def alone(maze, settings, seed):
    """The results of the searches that race for a seed, each by itself."""
    single = replace(settings, searches=1)
    return [rrt_connect.solve(START, GOAL, maze, single, seed=seed + k * APART) for k in range(settings.searches)]


@pytest.mark.parametrize("searches, batch", [(2, 0), (5, 0), (3, 7), (2, 100)])
def test_the_least_number_of_samples_wins(maze, searches, batch):
    settings, winners = replace(PLAIN, searches=searches, batch=batch), set()
    for seed in range(12):
        results = alone(maze, settings, seed)
        numbers = [each.samples + k * LEAD for k, each in enumerate(results)]
        assert all(each.solved for each in results)
        winner = int(np.argmin(numbers))
        raced = rrt_connect.solve(START, GOAL, maze, settings, seed=seed)
        assert np.array_equal(raced.path, results[winner].path) and raced.cost == results[winner].cost
        most, size = [numbers[winner] - k * LEAD for k in range(searches)], max(batch, 1)
        others = [max(min(each.samples, n // size * size), 0) for each, n in zip(results, most) if n != most[winner]]
        assert raced.samples == results[winner].samples + sum(others)
        winners.add(winner)
    assert len(winners) > 1  # each search is the quickest for some seed


def test_the_default_is_two(maze):
    for seed in range(6):
        default, two = (rrt_connect.solve(START, GOAL, maze, replace(PLAIN, searches=n), seed=seed) for n in (0, 2))
        assert np.array_equal(default.path, two.path) and default.samples == two.samples


def test_a_batch_makes_one_search_each(maze):
    one = [rrt_connect.solve(START, GOAL, maze, replace(PLAIN, searches=1), seed=5 + i) for i in range(4)]
    for each, expected in zip(rrt_connect.solve_batch([START] * 4, [GOAL] * 4, maze, PLAIN, seed=5), one):
        assert np.array_equal(each.path, expected.path)


def test_many_threads_ask_at_once(maze):
    expected = [rrt_connect.solve(START, GOAL, maze, PLAIN, seed=seed).path for seed in range(8)]
    answers = [None] * 8

    def ask(seed):
        answers[seed] = rrt_connect.solve(START, GOAL, maze, PLAIN, seed=seed).path

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(a, b) for a, b in zip(answers, expected))


def walled_off(maze):
    image = maze.image.copy()
    image[:, 50:54] = False
    return ImageChecker(image, (0.0, 0.0), (1.0, 1.0), "cpu")


def test_the_limits_of_samples_and_of_time_hold(maze):
    checker = walled_off(maze)
    spent = rrt_connect.solve(START, GOAL, checker, replace(PLAIN, max_samples=1000))
    assert spent.status is Status.SAMPLES_EXHAUSTED and spent.samples == 1000 + 1000 - LEAD
    assert str(spent.samples) in spent.message
    late = rrt_connect.solve(START, GOAL, checker, replace(PLAIN, time_limit_s=0.2, max_samples=100_000_000))
    assert late.status is Status.TIMED_OUT and late.samples > LEAD


def batch(checker, settings):
    return rrt_connect.solve_batch([START] * 1000, [GOAL] * 1000, checker, settings)


def single(checker, settings):
    return rrt_connect.solve(START, GOAL, checker, settings)


@pytest.mark.parametrize("ask", [single, batch])
def test_ctrl_c_ends_all_searches(maze, ask):
    """Without that they would go on for a minute."""
    checker, before = walled_off(maze), threading.active_count()
    ask(checker, replace(PLAIN, max_samples=1))  # compiled
    timer = threading.Timer(0.3, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
    others = signal.signal(signal.SIGINT, signal.default_int_handler)  # rclpy's, where a test before this one used it
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            ask(checker, replace(PLAIN, max_samples=100_000_000))
    finally:
        timer.join()
        signal.signal(signal.SIGINT, others or signal.default_int_handler)
    wait_until(lambda: threading.active_count() == before)


def wait_until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_how_many_searches_are_allowed():
    with pytest.raises(SettingsError, match="Settings.searches is 65.*allowed"):
        rrt_connect.Settings(searches=65)
