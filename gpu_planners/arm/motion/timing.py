"""Legs of a motion with stops or rounded corners between them, their timing, and the proof of what a controller plays.

A controller joins a trajectory's points by straight lines, cubics or quintics, as they carry velocities and
accelerations or not. Where the motion bends, points lie so densely that all three stay in a tube around the points'
chords: no point of the robot is farther than TUBE metres from where it would be on the chord. Then the checker proves
the chords free for a robot that is thicker by TUBE; and the curves stay within the joints' limits, since their control
points do. A corner for which that fails is rounded less, at last not at all; a smooth leg becomes the straight motions
that it was made from. Chords on a straight leg are as free as the leg.

Many straight legs that follow each other without a stop become a smooth one that is fitted to them (`fitted_legs`),
where that is quicker than to round each corner. Where rounding makes the motion between two stops no quicker than stops
at all corners are, they are rounded less, at last not at all.
"""

import itertools
from typing import Any

import numpy as np

from ...errors import SettingsError, shown
from ..collision.reach import joint_reach
from .curve import aside, at, bernstein, straight, turn
from .fitted_legs import LEAST_CUT, quicker, runs, with_fitted
from .loads import LEAST, shares
from .played import STRAIGHT, TUBE, Leg, Timed, timed_once, within

LESS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03, 0.02)  # shares of a cut that are tried
SLOW = (0.5, 0.5, 0.3, 0.0)  # shares of cuts that are tried in turn where rounding is no quicker than stops
TRIES = 4  # after which a corner, halved each time that the motion's own points find it not free, becomes a stop
LIGHTER = 40  # times that parts of a motion get less torque, at most, until all limits are proven to be kept
LEAST_LEFT = 0.05  # of the torque that moves a corner: where less is left for it, it is rounded less
LEAST_REST = 1e-4  # rad or m: what two corners leave of a leg is no less, or nothing; rounding would tell what it is
REST = 0.99  # of all cuts, where they would leave less


def timed(legs: list[Leg], cuts: np.ndarray, checker: Any = None, away: np.ndarray | None = None) -> Timed:
    """The fastest motion along the legs under their limits, whose corners are rounded.

    cuts: (legs - 1,) how much of its two legs a corner may take, rad or m; 0: stop there
    checker: CollisionChecker that proves corners free and within the joints' limits, or they are rounded less; None:
        nothing is proven
    away: (legs - 1,) how far, in the joint-space L2 norm, a smooth leg in place of straight ones may leave them beside
        each corner; 0: stop there. None: there is none

    Raises SettingsError for limits that lie too far apart.
    """
    cuts = room_for(legs, np.asarray(cuts, dtype=float))
    if away is not None:
        legs, cuts = with_fitted(legs, cuts, np.asarray(away, dtype=float), checker, _proven)
    motion, legs, cuts, last = _proven(legs, cuts, checker)
    for share in SLOW:
        slow = _no_quicker_than_stops(legs, cuts, motion)
        if not slow.any():
            break
        motion, legs, cuts, new = _proven(legs, np.where(slow, share * cuts, cuts), checker)
        last = new[last]
    return motion._replace(ends_s=motion.ends_s[last])


def _proven(legs, cuts, checker):
    """-> Timed; the legs and cuts that it is of, which may be other ones; and (legs that were given,) the numbers of
    their ends among its ends_s."""
    motion, legs, cuts, last = _free(legs, cuts, checker)
    if legs[0].load is None:
        return motion, legs, cuts, last
    torques = legs[0].load.torques
    for _ in range(LIGHTER):
        found = shares(motion.times, motion.rows, torques)
        heavy = found.share < 1.0
        if not heavy.any():
            return motion, legs, cuts, last
        for owner in np.unique(motion.owner[heavy]).tolist():
            share = found.share[heavy & (motion.owner == owner)].min()
            legs, cuts = _lightened(legs, cuts, owner, float(share))
        motion, legs, cuts, new = _free(legs, cuts, checker)
        last = new[last]
    worst = int(np.argmin(found.share))
    joint = found.joint[worst]
    raise SettingsError(
        f"torques: no motion is found that is proven to keep the limits. After {motion.times[worst]:.3g} s joint "
        f"'{torques.dynamics.robot.joint_names[joint]}' needs {found.torque[worst]:.5g} N m (or N); "
        f"allowed: {torques.limits[joint]:.5g}"
    )


def _lightened(legs, cuts, owner, share):
    """The legs and cuts, with less torque in what is named as in Timed.owner: about `share` of what moves it there. A
    corner where nearly all torque goes into holding the robot is rounded less."""
    legs, cuts = list(legs), cuts.copy()
    if owner < 0 and share < LEAST_LEFT:
        cuts[-1 - owner] /= 2
        return legs, cuts
    for i in (owner,) if owner >= 0 else (-1 - owner, -owner):
        leg = legs[i]
        fitted = leg.fitted and leg.fitted._replace(pace=leg.fitted.pace.slower(max(share, LEAST) ** -0.5))
        legs[i] = leg._replace(load=leg.load.lightened(share), fitted=fitted)
    return legs, cuts


def _free(legs, cuts, checker):
    """As `_proven`; the torques are not looked at."""
    last = np.arange(sum(legs_in(leg) for leg in legs))
    if checker is None:
        cuts = _rested(legs, np.where(cuts < LEAST_CUT, 0.0, cuts))
        return timed_once(legs, cuts, None), legs, cuts, last
    cuts = _provable(legs, cuts, checker)
    tries = np.zeros(len(cuts), dtype=int)
    while True:
        cuts = _rested(legs, np.where(cuts < LEAST_CUT, 0.0, cuts))
        motion = timed_once(legs, cuts, checker.robot)
        owners = np.unique(motion.owner[_unproven(motion, checker)])
        if not len(owners):
            return motion, legs, cuts, last
        corners = -1 - owners[owners < 0]
        tries[corners] += 1
        cuts[corners] *= np.where(tries[corners] < TRIES, 0.5, 0.0)
        if len(corners) < len(owners):
            legs, cuts, new = _straightened(legs, cuts, owners[owners >= 0])
            last, tries = new[last], np.zeros(len(cuts), dtype=int)


def _rested(legs, cuts):
    """The cuts; a little less, where they would leave a length of a leg that is next to nothing."""
    taken = np.r_[0.0, cuts] + np.r_[cuts, 0.0]
    rest = np.array([leg.curve.length for leg in legs]) - taken
    nothing = (rest > STRAIGHT) & (rest < LEAST_REST) & (taken > 0)
    return REST * cuts if nothing.any() else cuts


def legs_in(leg):
    """How many of the legs that were given are in one."""
    return 1 if leg.fitted is None else len(leg.fitted.replaced)


def _straightened(legs, cuts, which):
    """Put straight motions, and stops between them, in place of some smooth legs -> legs, cuts, and (legs that were
    given,) the numbers of their ends among the new ones."""
    parts, new, count = [], [], 0
    for i, leg in enumerate(legs):
        if i not in which:
            parts.append([leg])
        elif leg.fitted is not None:
            parts.append(leg.fitted.replaced)
        else:
            lines = (straight(a, b) for a, b in itertools.pairwise(leg.rows))
            parts.append([Leg(line, leg.limits, load=leg.load, tool=leg.tool) for line in lines])
        given, count = legs_in(leg), count + sum(legs_in(each) for each in parts[-1])
        new.extend(range(count - given, count))
    last = np.cumsum([len(each) for each in parts]) - 1
    found = np.zeros(last[-1])
    beside = np.isin(np.arange(len(cuts)), which) | np.isin(np.arange(1, len(legs)), which)
    found[last[:-1]] = np.where(beside, 0.0, cuts)
    return [leg for each in parts for leg in each], found, np.array(new)


def _no_quicker_than_stops(legs, cuts, motion):
    """(legs - 1,) bool: corners between two stops, where the motion is no quicker than if it stopped at all of them."""
    slow = np.zeros(len(cuts), dtype=bool)
    ends = np.r_[0.0, motion.ends_s[np.cumsum([legs_in(leg) for leg in legs]) - 1]]
    for first, last in runs(cuts > 0):
        slow[first:last] = not quicker(ends[last + 1] - ends[first], legs[first : last + 1], np.zeros(last - first))
    return slow


def body_checker(checker: Any) -> Any:
    """The checker; SettingsError where it is no CollisionChecker."""
    if isinstance(checker, type) or not callable(getattr(checker, "thickened", None)):
        raise SettingsError(f"checker is {shown(checker)}; allowed: a CollisionChecker")
    return checker


def _provable(legs, cuts, checker):
    """(legs - 1,) for each corner the largest of LESS times its cut with which it is free, or 0."""
    asked = [(i, share * cuts[i]) for i in range(len(cuts)) for share in LESS if share * cuts[i] >= LEAST_CUT]
    found = np.zeros(len(cuts))
    if not asked:
        return found
    turns = [turn(legs[i].curve, legs[i + 1].curve, cut) for i, cut in asked]
    starts, ends = (np.concatenate([getattr(each, side) for each in turns]) for side in ("starts", "ends"))
    hulls = bernstein(np.array([each.length for each in turns]), starts, ends)
    off = aside(hulls) @ joint_reach(checker.robot).T
    counts = np.maximum(np.ceil(np.sqrt(off.max(axis=1, initial=0.0) / TUBE)), 1).astype(int)
    points = [at(each, np.linspace(0, each.length, n + 1))[:, 0] for each, n in zip(turns, counts, strict=True)]
    free = checker.thickened(TUBE).motions_valid(
        np.concatenate([q[:-1] for q in points]), np.concatenate([q[1:] for q in points])
    )
    whole = np.logical_and.reduceat(free, np.r_[0, np.cumsum(counts)[:-1]]) & within(checker.robot, hulls)
    for (i, cut), proven in zip(asked, whole, strict=True):
        if proven:
            found[i] = max(found[i], cut)
    return found


def _unproven(motion, checker):
    """Numbers of the bent intervals that are not proven free and within the joints' limits."""
    bent = np.flatnonzero(motion.bent)
    if not len(bent):
        return bent
    q = motion.rows[:, 0]
    return bent[~(checker.thickened(TUBE).motions_valid(q[bent], q[bent + 1]) & motion.inside[bent])]


def room_for(legs: list[Leg], cuts: np.ndarray) -> np.ndarray:
    """The cuts, none more than half of what it cuts."""
    lengths = np.array([leg.curve.length for leg in legs])
    return np.minimum(cuts, 0.5 * np.minimum(lengths[:-1], lengths[1:]))
