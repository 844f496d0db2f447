"""The systems of three papers, by name: BKF11, DL14, CE12. Each package reads like its paper."""
