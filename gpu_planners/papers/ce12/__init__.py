"""[CE12]: P-BA*, P-RTAA* and A* on grid maps, `BlockPlanner`'s algorithms to compare with."""
