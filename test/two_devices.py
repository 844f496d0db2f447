"""What the processes of test_cuda_devices.py do: batches on several devices, compared with one."""

import threading

import numpy as np
from walled_point import walled

from gpu_planners.arm import rrt_connect
from gpu_planners.grid import BlockPlanner
from gpu_planners.grid.maps.generated import caves_and_rooms, random_free_tiles

SETTINGS = rrt_connect.Settings(time_limit_s=60.0)


def given(count=200):
    """Starts and goals (count, 2): free points around the wall."""
    q = np.random.default_rng(0).uniform(0, 1, (4 * count, 2))
    q = q[walled("cpu").configurations_valid(q)][: 2 * count]
    return q[:count], q[count:]


def say_same(some, others):
    """Print "same" where all paths are."""
    print("same" if [one.path.tobytes() for one in some] == [one.path.tobytes() for one in others] else "different")


def compare(problems, device="cuda:0", **how):
    """A batch as usual, and shared by devices."""
    checker = walled(device)
    plain = rrt_connect.solve_batch(*problems, checker, SETTINGS)
    say_same(plain, rrt_connect.solve_batch(*problems, checker, SETTINGS, **how))


def both_at_once(problems, devices=("cuda:0", "cuda:1"), times=3):
    """The same batch by two threads, a device each, and apart."""
    plain = rrt_connect.solve_batch(*problems, walled(devices[0]), SETTINGS)
    found, start = {}, threading.Barrier(len(devices))

    def run(device):
        checker = walled(device)
        start.wait()
        found[device] = [rrt_connect.solve_batch(*problems, checker, SETTINGS) for _ in range(times)]

    threads = [threading.Thread(target=run, args=(device,)) for device in devices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for device in devices:
        for results in found[device]:
            say_same(plain, results)


def compare_grids(devices, device="cuda:0"):
    """A plan of many goals as usual, and shared by devices."""
    grid = caves_and_rooms(128, 128)
    starts, goals = random_free_tiles(grid, 500), random_free_tiles(grid, 50, seed=1)[np.arange(500) % 50]
    planner = BlockPlanner(grid, device=device)
    plain, shared = planner.plan(starts, goals), planner.plan(starts, goals, devices=devices)
    print(
        "same" if np.array_equal(plain.words, shared.words) and np.array_equal(plain.cost, shared.cost) else "different"
    )
