"""P-BA* [CE12]: paths of many agents through planning blocks, by A* searches that end where a block ends.

Border-to-border (III-B): from each border tile of each block an A* inside the block, until it takes a border tile of a
neighbouring block, or the goal, from the open list. Start-to-border: from each agent's start, until a border tile of
its own block or the goal. Paths are put together from these pieces on the device (III-C); only they are copied to the
host, so the paper's copy of the border-to-border step does not exist here. Heuristics are kept for the whole map, a
planning block's are in shared memory on the GPU (IV): Manhattan as in the paper, octile on 8-connected maps, times the
least cost of a tile.

The pieces may lead in circles, so that an agent never arrives. The paper names two treatments and details neither:
- loops="avoid", during the movement: an agent does not go back into the block that it has just come from; its search
  goes on to the first border tile of another block. Where there is none, and in circles through more blocks, the
  agent's status is LOOP. This reproduces the counts of table I on 4-connected maps (60 maps of 512x512, 10 %: 25, 46,
  59 % of A*'s paths for blocks of 4, 8, 16; paper 33, 45, 62 %); without the rule there are none. The lengths in table
  I are shorter than the Manhattan distance of the two corners, so they cannot be those of 4-connected paths; no variant
  of an 8-connected search that we tried gives both its counts and its lengths.
- loops="raise": the heuristic of a loop's border tiles is raised, by 1, 1, 2, 2, 4, 4... tiles each time the tile is in
  a loop, and the blocks that see them search again, until no loop is left, `most_rounds` are over or all tiles of the
  loops left have been raised 96 times, as in parts of the map that are cut off from the goal. Here an agent may turn
  back, and most paths are found. Raises of one tile each take more rounds, greater ones lead to longer paths.

Ties of f are broken by greater g (rounded down to multiples of the greatest power of two up to the least cost, and cut
off at 2047 of them), then by the lower row, then column. On 8-connected maps the searches count in units of 2**-20 tile
lengths; the costs of the answer are exact.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...device import njit
from ...errors import SettingsError, shown
from ...grid.exact.blocks import BLOCK_SIZES
from ...grid.maps.grid_map import GridMap
from ...grid.paths import PathSet
from ...settings import Described, setting
from .answers import Answers
from .arena import MovesDoNotFit
from .packed_tiles import check_sides, pack_all, units_of
from .pba_star_blocks import LINK, Layout, links_of_goal
from .pba_star_cpu import CpuSearches
from .pba_star_paths import mark_seen

LENGTH_UNITS = 1 << 20  # of a tile length in 8-connected searches
RAISING_BYTES = 9  # of a link with loops="raise": how often it was raised, and two int32 to find loops
TIMES = "upload", "border_to_border", "start_to_border", "reconstruction", "transfer"


@dataclass(frozen=True)
class Settings(Described):
    """Settings of P-BA*."""

    loops: str = setting(
        "avoid",
        "What is done about loops of border tiles: avoid them while moving, or raise their heuristics",
        choices=("avoid", "raise"),
    )
    most_rounds: int = setting(256, "Rounds of raising heuristics", 1, 2**31 - 1)
    memory_mb: int = setting(
        2048,
        "Bound on the memory for heuristics and links of distinct goals, and again on that for the links' moves; "
        "one goal is always taken, others in batches",
        1,
        2**31 - 1,
        unit="MB",
    )


def layout_of(grid: GridMap, block_size: int, avoid: bool) -> Layout:
    """How a GridMap is cut into planning blocks, for the compiled searches."""
    if block_size not in BLOCK_SIZES:
        raise SettingsError(f"block_size is {shown(block_size)}; allowed: {', '.join(map(str, BLOCK_SIZES))}")
    check_sides(grid, "pba_star")
    one, diagonal = units_of(grid.connectivity, LENGTH_UNITS)
    size, least = int(block_size), max(grid.least_cost, 1)
    blocks = size.bit_length() - 1, -(-grid.rows // size), -(-grid.cols // size), 4 * size - 4
    costs = grid.connectivity, one, diagonal, (least * one).bit_length() - 1
    return Layout(*grid.shape, *blocks, *costs, int(avoid), least)


class PbaStar:
    """P-BA* on one map.

    last_times: seconds of the last plan by step (`TIMES`; a step that was not needed takes 0)
    memory_bytes: what buffers on the device take, without the map of the host
    """

    def __init__(self, grid: GridMap, block_size: int = 8, device: str = "cpu", settings: Settings | None = None):
        self.settings = settings or Settings()
        self._grid, self._block_size = grid, block_size
        self._layout = layout_of(grid, block_size, self.settings.loops == "avoid")
        self.last_times = dict.fromkeys(TIMES, 0.0)
        if device == "cpu":
            self._searches: Any = CpuSearches(self.settings.memory_mb)
        else:
            from .pba_star_cuda import CudaSearches

            self._searches = CudaSearches(device, self.settings.memory_mb)
        self._searches.set_map(grid.costs, self._layout)
        self._goals = None  # whose border-to-border links are there

    @property
    def memory_bytes(self) -> int:
        return self._searches.memory_bytes

    def forget(self):
        """Let the next plan do the border-to-border step, also for the same goals and map."""
        self._goals = None

    def update(self, grid: GridMap, rows: np.ndarray, cols: np.ndarray):
        """Take a map of which some tiles have changed; the next plan searches again in the blocks that see them."""
        layout = layout_of(grid, self._block_size, self.settings.loops == "avoid")
        if layout != self._layout:
            self._goals = None
        self._grid, self._layout = grid, layout
        self._searches.set_map(grid.costs, layout)
        if self._goals is not None:
            todo = np.zeros(layout.block_rows * layout.block_cols, np.uint8)
            _mark_all(np.asarray(rows, np.int64), np.asarray(cols, np.int64), todo, layout)
            self._searches.mark(todo)

    def plan(self, starts: np.ndarray, goals: np.ndarray) -> PathSet:
        """Paths of agents. starts, goals: (N, 2) int32 [row, col], free tiles of the map"""
        self.last_times = dict.fromkeys(TIMES, 0.0)
        starts = np.ascontiguousarray(starts, np.int32)
        from_tile, to_tile = pack_all(starts), pack_all(np.asarray(goals, np.int32))
        if len(to_tile) and (to_tile == to_tile[0]).all():
            distinct, of_goal = to_tile[:1], np.zeros(len(to_tile), np.int32)
        else:
            distinct, which = np.unique(to_tile, return_inverse=True)
            of_goal = which.astype(np.int32)
        at_once, answers = self._goals_at_once(), Answers(len(starts))
        j = 0
        while j < len(distinct):
            agents: Any = slice(None)
            if len(distinct) > at_once:
                agents = np.flatnonzero((of_goal >= j) & (of_goal < j + at_once))
            try:
                *columns, words = self._plan_batch(
                    distinct[j : j + at_once], from_tile[agents], of_goal[agents] - np.int32(j)
                )
            except MovesDoNotFit:
                at_once = min(at_once, len(distinct)) // 2
                continue
            answers.put(agents, *columns, words=words)
            j += at_once
        return answers.path_set(starts, self._grid.connectivity)

    def _goals_at_once(self):
        layout = self._layout
        links = links_of_goal(layout)
        bytes_per_link = LINK * 4 + (0 if layout.avoid else RAISING_BYTES)
        bytes_per_goal = layout.rows * layout.cols * (4 if layout.moves == 4 else 8) + links * bytes_per_link
        most_links = 2**31 // LINK  # their places are int32
        return max(1, min(int(self.settings.memory_mb) * 2**20 // bytes_per_goal, most_links // links))

    def _plan_batch(self, goals, starts, of_goal):
        again = self._goals is None or not np.array_equal(goals, self._goals)
        self._goals = None  # while the step is under way
        self._searches.border_to_border(goals, again, self.settings.most_rounds, self.last_times)
        self._goals = goals
        return self._searches.paths(starts, of_goal, self.last_times)


@njit
def _mark_all(rows, cols, todo, layout):
    for row, col in zip(rows, cols):
        mark_seen(row, col, todo, layout)
