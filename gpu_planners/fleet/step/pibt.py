"""PIBT: an agent takes the best place it can get, and pushes who is there (Okumura et al., Artif. Intelligence, 2022).

A step (epibt.py) and LaCAM (moves.py) say what a place is, who may be pushed, and what one that finds nothing does.
"""

import numpy as np

from ...device import lean_njit

DONE, FAILED = -1, -2  # what `look` answers in place of an agent


def make_pibt(enter, look, give_up, finish):
    """-> push(agent, crew, aim) -> bool: find a place for an agent by pushing others, or leave all as it is

    The four functions keep a stack of agents in `crew`, which all searches share; `aim` is this search's own.
    enter(level, agent, crew, aim): put an agent on the stack
    look(level, crew, aim): try its next places -> DONE, the agent that it pushes, or FAILED
    give_up(level, crew, aim): it found no place; whoever pushed it looks on
    finish(level, crew, aim): all on the stack have their places
    """

    @lean_njit
    def push(agent, crew, aim):
        level = np.int64(0)  # of one type from the beginning: Numba compiles for constants apart
        enter(level, np.int64(agent), crew, aim)
        while True:
            found = look(level, crew, aim)
            if found >= 0:
                level += 1
                enter(level, found, crew, aim)
            elif found == FAILED:
                give_up(level, crew, aim)
                if level == 0:
                    return False
                level -= 1
            else:
                finish(level, crew, aim)
                return True

    return push
