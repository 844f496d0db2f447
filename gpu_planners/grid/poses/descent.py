"""Paths down a field: from state to state by the first of its best moves."""

import numpy as np

from ...device import lean_njit
from .relax import FAR, state_of


@lean_njit
def first_best(layer, row, col, field, table):
    """-> the first move of a state that its value rests on, -1 where there is none"""
    value = field.value[state_of(layer, row, col, field)]
    for move in range(table.first[layer], table.first[layer + 1]):
        m = np.uint64(move)
        if field.free[table.plane[m], row, col >> 5] >> np.uint32(col & 31) & np.uint32(1):
            down, right = row + table.down[m], col + table.right[m]
            price = np.int64(table.price[m]) * field.cost[np.uint64(down * field.cols + right)]
            if field.value[state_of(np.int64(table.to[m]), down, right, field)] + price == value:
                return move
    return -1


@lean_njit
def walk(layer, row, col, field, table, moves, first):
    """Moves from a state to the goal -> how many. moves: (M,) int32, written from `first` on; first: -1: only count"""
    count = 0
    if field.value[state_of(layer, row, col, field)] >= FAR:
        return -1
    while field.value[state_of(layer, row, col, field)] > 0:
        move = first_best(layer, row, col, field, table)
        if move < 0:
            return -1
        if first >= 0:
            moves[first + count] = move
        count += 1
        layer, row, col = np.int64(table.to[move]), row + table.down[move], col + table.right[move]
    return count
