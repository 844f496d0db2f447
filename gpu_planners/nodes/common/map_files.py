"""Grid maps from files by the ending of their names."""

from pathlib import Path
from typing import Any

from ...errors import GridMapError
from ...grid import GridMap
from ...grid.maps.map_files import load_map_yaml
from ...grid.maps.movingai import load_movingai_map


def load_map(path: str | Path, connectivity: int, **occupancy: Any) -> GridMap:
    """GridMap of a map_server YAML file or a MovingAI .map file; ~ is the home folder.

    occupancy: as for GridMap.from_occupancy
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise GridMapError(f"no map file '{path}'; allowed: a map_server .yaml or a MovingAI .map")
    if path.suffix.lower() in (".yaml", ".yml"):
        return load_map_yaml(path, connectivity, **occupancy)
    if path.suffix.lower() == ".map":
        return load_movingai_map(path, connectivity)
    raise GridMapError(f"map file '{path}' ends with '{path.suffix}'; allowed: a map_server .yaml or a MovingAI .map")
