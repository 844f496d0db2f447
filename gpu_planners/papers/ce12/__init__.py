"""[CE12]: P-BA* and P-RTAA* on grid maps, to compare with. `BlockPlanner` loads them when they are asked for."""
