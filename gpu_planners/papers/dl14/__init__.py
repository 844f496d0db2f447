"""[DL14]: PRM split over workers in three versions, and a configuration space read from an image."""
