"""Which speed along a curve keeps limits of torque: a speed that rises and falls evenly, from rest to rest."""

from ...device import njit


@njit
def first_that_holds(x, speeds, accelerations, jerk, moving, push, up, down):
    """The number of the first of some pairs of greatest speed and acceleration with which all torques are between -down
    and up at places x (N,) of a curve, from x[0] = 0 to its end; -1: none is.

    speeds, accelerations: (K,) of the curve's length by time; acceleration 0: passed at constant speed
    jerk: in ramps as long as it makes them the acceleration is taken to be whole
    moving, push: (N, dof) torques for a speed of 1, and for an acceleration of 1; up, down: (N, dof) above 0
    """
    length = x[-1]
    for k in range(len(speeds)):
        speed, a = speeds[k], accelerations[k]
        ramp = min(speed * speed / a, length) / 2 + speed * a / (2 * jerk) if a > 0 else 0.0
        holds = True
        for n in range(len(x)):
            squared = speed * speed
            if a > 0:
                squared = min(squared, 2 * a * min(x[n], length - x[n]))
            highest = a if x[n] <= ramp else 0.0
            lowest = -a if length - x[n] <= ramp else 0.0
            for i in range(moving.shape[1]):
                one, other = highest * push[n, i], lowest * push[n, i]
                torque = moving[n, i] * squared
                holds &= torque + max(one, other, 0.0) <= up[n, i]
                holds &= torque + min(one, other, 0.0) >= -down[n, i]
            if not holds:
                break
        if holds:
            return k
    return -1
