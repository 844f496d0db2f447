"""What is done with a block: `relax`, `withdraw`, `direct`, and `clear` for a whole field.

The type of the field, or of the worker's scratch, chooses the module that does it: see CHOICES.
"""

import functools

from numba.extending import overload

from . import bits, queues, values
from .blocks import LEAN

# by the class of a field, or of a worker's scratch; the CPU has a Buckets for what CUDA has Tiles
CHOICES = {
    bits.BitField: bits,
    values.ValueField: values,
    bits.Wave: bits,
    values.Tiles: values,
    queues.Buckets: queues,
}


def clear(slot, field, worker):
    """Make the field of a slot one without any value: each worker its share."""
    raise NotImplementedError("compiled code only")


def relax(visit, field, raw, scratch, lane):
    """Find the exact values inside a block, given the tiles around it. All lanes of the worker call it.

    raw: the values inside need not fit each other, as after a withdrawal
    -> bits of the neighbours (move codes) that get better by it
    """
    raise NotImplementedError("compiled code only")


def withdraw(visit, field, scratch, lane):
    """Take back the values that no neighbour supports any more; what is left is exact.

    -> bits of the neighbours that touch a tile taken back, and CHANGED when there is one
    """
    raise NotImplementedError("compiled code only")


def direct(visit, field, scratch, lane):
    """Write the block's directions: of each tile the first of its best moves, AT_GOAL or NOWHERE."""
    raise NotImplementedError("compiled code only")


def choose(overload, target, **options):
    """Let compiled code for a target call the four. overload: the target's"""
    on = functools.partial(overload, target=target, **options)
    on(clear)(lambda slot, field, worker: CHOICES[field.instance_class].clear.py_func)
    on(relax)(lambda visit, field, raw, scratch, lane: CHOICES[scratch.instance_class].relax.py_func)
    on(withdraw)(lambda visit, field, scratch, lane: CHOICES[scratch.instance_class].withdraw.py_func)
    on(direct)(lambda visit, field, scratch, lane: CHOICES[scratch.instance_class].direct.py_func)


choose(overload, "cpu", jit_options=LEAN)
