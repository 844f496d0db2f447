"""Which pairs of shapes of a robot are checked against each other.

Left out are links that are adjacent or do not move against each other and, with an SRDF that disables pairs, those that
it disables. Without one a pair is left out only where it provably never meets (never_meet.py), or where it always does:
in the neutral pose, and in POSES others as well. Such links touch by design, and a robot whose links were checked so
could never move; but since nothing proves it, they are told by name. A pair that meets in the neutral pose and is apart
elsewhere stays.
"""

import functools
import itertools
import pickle
from collections.abc import Mapping, Sequence

import numpy as np

from ..geometry.shapes import ConvexShape
from .chains import Bodies
from .never_meet import POSES, LinkPairs
from .urdf_xml import Description

ADJACENT = "adjacent"
RIGID = "never moves against each other"
NEVER = "never meets: proven from the limits and lengths of the joints between"
ALWAYS = f"meets in the neutral pose and in {POSES} others: taken as touching by design"


def pairs_of_shapes(
    description: Description,
    link_frame: np.ndarray,
    shapes: Sequence[ConvexShape],
    shape_link: np.ndarray,
    disabled: Mapping[frozenset[str], str] | None,
    decided: dict[tuple[int, int], str | None],
) -> tuple[np.ndarray, tuple[tuple[str, str, str], ...]]:
    """Pairs of shapes to check, (P, 2) int32, and pairs of links that are not checked: (link, link, reason) each.

    link_frame: (L,) frame of each link, -1 fixed to the root; shapes: (S,) each posed in its link, shape_link: (S,)
    disabled: {frozenset({link, link}): reason} of an SRDF; None where none says anything of pairs
    decided: {pair of links: NEVER, ALWAYS, or None for those that are checked}, whichever joints are planned; what is
        found is added
    """
    names = tuple(description.links)
    shapes_of = {i: np.flatnonzero(shape_link == i) for i in sorted(set(shape_link.tolist()))}
    adjacent = adjacent_links(description, through_bare=disabled is None)
    reasons: dict[tuple[int, int], str | None] = {}
    for i, j in itertools.combinations(shapes_of, 2):
        key = frozenset((names[i], names[j]))
        if link_frame[i] == link_frame[j]:
            reasons[i, j] = RIGID
        else:
            reasons[i, j] = ADJACENT if key in adjacent else (disabled or {}).get(key)
    if disabled is None:
        left = [pair for pair, reason in reasons.items() if reason is None]
        if new := [pair for pair in left if pair not in decided]:
            links = {names[i]: [shapes[int(s)] for s in own] for i, own in shapes_of.items()}
            never, always = _decided(pickle.dumps((description, links, [(names[i], names[j]) for i, j in new])))
            for pair, apart, touch in zip(new, never, always, strict=True):
                decided[pair] = NEVER if apart else ALWAYS if touch else None
        reasons |= {pair: decided[pair] for pair in left}
    checked = [itertools.product(shapes_of[i], shapes_of[j]) for (i, j), reason in reasons.items() if reason is None]
    return (
        np.array([*itertools.chain(*checked)], dtype=np.int32).reshape(-1, 2),
        tuple((names[i], names[j], reason) for (i, j), reason in reasons.items() if reason is not None),
    )


@functools.lru_cache(maxsize=16)
def _decided(content):
    """Of a pickled (description, {link: shapes}, pairs of links): -> (P,) bool each: do they never meet, always?

    Kept, since a process loads its robot again: to plan other joints, with other limits of speed, in another node.
    """
    description, links, of_links = pickle.loads(content)
    pairs = LinkPairs(Bodies(description), links, of_links)
    never = pairs.never()
    return never, pairs.everywhere(pairs.in_neutral() & ~never)


def adjacent_links(description: Description, through_bare: bool) -> set[frozenset[str]]:
    """Pairs of links that a joint joins.

    through_bare: a link without collision geometry counts as a part of the link that it is fixed to or, where it hangs
        on a joint that moves, of the only link that is fixed to it: it is but the frame of a joint
    """
    joints = description.joints.values()
    whole = {link: link for link in description.links}  # {link: link that it is a part of}
    for joint in joints if through_bare else ():
        children = [other for other in joints if other.parent == joint.parent]
        if joint.kind.plannable:
            continue
        if not description.links[joint.child]:
            whole[joint.child] = whole[joint.parent]
        elif not description.links[joint.parent] and whole[joint.parent] == joint.parent and len(children) == 1:
            whole[joint.parent] = joint.child
    ends = [(joint.parent, joint.child) for joint in joints]
    return {frozenset(pair) for pair in ends} | {frozenset((whole[a], whole[b])) for a, b in ends}
