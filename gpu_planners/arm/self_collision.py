"""Which pairs of shapes of a robot can collide with each other.

With an SRDF: every pair of links except its disabled ones. Adjacent links, and links that do not move
against each other, are always left out.
"""

import numpy as np


def candidate_pairs(link_names, link_frame, shape_link, adjacent, disabled):
    """Pairs of shapes to check, and pairs of links that are not.

    link_names: (L,); link_frame: (L,) frame of each link, -1 fixed to the root; shape_link: (S,) link of each shape
    adjacent: set of frozenset({link, link}) joined by a joint
    disabled: {frozenset({link, link}): reason}
    Returns pairs (P, 2) int32 and a tuple of (link, link, reason)
    """
    pairs, left_out = [], []
    links = sorted(set(shape_link.tolist()))
    shapes_of = {i: np.flatnonzero(shape_link == i) for i in links}
    for n, i in enumerate(links):
        for j in links[n + 1:]:
            key = frozenset((link_names[i], link_names[j]))
            if link_frame[i] == link_frame[j]:
                reason = "same frame"
            elif key in adjacent:
                reason = "adjacent"
            else:
                reason = disabled.get(key)
            if reason is None:
                pairs += [(a, b) for a in shapes_of[i] for b in shapes_of[j]]
            else:
                left_out.append((link_names[i], link_names[j], reason))
    return np.array(pairs, dtype=np.int32).reshape(-1, 2), tuple(left_out)
