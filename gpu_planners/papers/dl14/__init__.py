"""[DL14]: a configuration space read from an image. PRM and its three versions are `arm.planners.prm`."""
