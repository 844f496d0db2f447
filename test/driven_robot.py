"""A robot that is driven tick by tick: full speed ahead unless it has to brake."""

import math

TICK = 2e-4  # seconds


def driven(marks, limits, speed, acceleration, deceleration):
    """Seconds at which marks on a way are passed, the last one standing. limits: of speed, on the way to each mark"""
    tops = [min(speed, limit) for limit in limits]
    at, now, seconds, found = 0.0, 0.0, 0.0, []
    while len(found) < len(marks):
        part = len(found)
        slower = [(marks[k - 1], tops[k]) for k in range(part + 1, len(tops))] + [(marks[-1], 0.0)]
        most = min(math.sqrt(top**2 + 2 * deceleration * max(mark - at, 0)) for mark, top in slower)
        now = max(min(now + acceleration * TICK, most, tops[part]), 1e-3)
        at, seconds = at + now * TICK, seconds + TICK
        while len(found) < len(marks) and at >= marks[len(found)] - 1e-6:
            found.append(seconds)
    return found
