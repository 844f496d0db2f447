"""Runs compiled code as Python, a thread for each lane of a warp: what lanes share and when they meet is tested without
a GPU. `python emulated_warp.py LANES CASES` proves the motions of a pickled file and prints the verdicts as JSON.

A process of its own, since functions are no longer compiled in it.
"""

import json
import pickle
import sys
import threading
import traceback
from pathlib import Path

import numpy as np

import gpu_planners.device as device


class Warp:
    """Lanes that meet at a barrier for everything they ask of each other."""

    def __init__(self, lanes):
        self.lanes, self.local, self.lock = lanes, threading.local(), threading.Lock()
        self.barrier, self.shown = threading.Barrier(lanes), [None] * lanes

    def exchange(self, value):
        """What each lane shows to the others, in the order of the lanes."""
        self.shown[self.local.lane] = value
        self.barrier.wait()
        seen = list(self.shown)
        self.barrier.wait()
        return seen

    def rank_lanes(self, there):
        seen = self.exchange(bool(there))
        return sum(seen[: self.local.lane]), sum(seen)

    def vote_lanes(self, vote):
        return sum(1 << lane for lane, each in enumerate(self.exchange(bool(vote))) if each)

    def lower(self, array, i, value):
        with self.lock:
            array[i] = min(array[i], value)

    def run(self, lane_function):
        """-> [lane_function(lane)], each in a thread of its own; raises the first error of any."""
        answers, errors = [None] * self.lanes, []

        def work(lane):
            self.local.lane = lane
            try:
                answers[lane] = lane_function(lane)
            except Exception:
                errors.append(traceback.format_exc())
                self.barrier.abort()

        threads = [threading.Thread(target=work, args=(lane,)) for lane in range(self.lanes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise RuntimeError(errors[0])
        return answers

    def take_the_place_of(self, team):
        """Of what `parallel.team` has for the lanes of a worker; before anything imports it from there."""
        team.lane_count = lambda: self.lanes
        team.sync_lanes = lambda: self.exchange(None) and None
        team.any_lane = lambda value: any(self.exchange(bool(value)))
        team.from_lane = lambda value, lane: self.exchange(value)[lane]
        team.greatest_lane = lambda value: max(self.exchange(value))
        team.rank_lanes, team.vote_lanes, team.lower = self.rank_lanes, self.vote_lanes, self.lower


def main():
    lanes, cases = int(sys.argv[1]), pickle.loads(Path(sys.argv[2]).read_bytes())
    device.njit = lambda function=None, **options: function or (lambda given: given)
    device.lean_njit = device.njit
    from gpu_planners.parallel import team

    warp = Warp(lanes)
    warp.take_the_place_of(team)
    from gpu_planners.arm.collision import certify, motions
    from gpu_planners.arm.collision import scratch as sizes
    from gpu_planners.arm.spaces.interface import END_FREE, Packed, Space

    certify.RUN = lanes  # 32 on a warp: a lane for each pair of a run
    verdicts = []
    for floats, ints, mode, step, q_from, q_to in cases:
        scene, dof = Packed(floats, ints), q_from.shape[1]
        shared = [
            np.zeros(n, kind)
            for n, kind in (
                (sizes.speeds_size(scene), np.float32),
                (2 * sizes.QUEUE, np.float32),
                (2 * lanes, np.float32),
                (2 * sizes.ITEM * lanes, np.float32),
                (2 * sizes.CODE * lanes, np.int32),
            )
        ]
        for ends in zip(q_from, q_to):

            def prove(lane, ends=ends, shared=shared, scene=scene, dof=dof, mode=mode, step=step):
                own = np.zeros(dof, np.float32), np.zeros(sizes.poses_size(scene), np.float32)
                scratch = sizes.ArmScratch(*shared, *own, np.zeros(sizes.SIEVE, np.int32))
                space = Space(np.int32(mode), np.float32(step), scene.floats, scene.ints, scratch)
                return bool(motions.motion_valid(*ends, END_FREE, space, lane))

            answers = warp.run(prove)
            assert len(set(answers)) == 1, f"the lanes disagree: {answers}"
            verdicts.append(answers[0])
    print(json.dumps(verdicts))


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
