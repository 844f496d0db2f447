"""gpu-planners vda5050: fleet control for vehicles that speak VDA 5050."""

import argparse
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from .errors import InputError, NoAnswerError, require
from .motions import assigned

PASSWORD = "GPU_PLANNERS_MQTT_PASSWORD"
LOOK_S = 0.25  # between two looks at what is wrong


def run(options: argparse.Namespace, _rest: list[str]) -> None:
    require("paho.mqtt", "vda5050", "pip install 'gpu_planners[vda5050]'")
    from ..compiling import fleet_parts
    from ..parts import is_compiled
    from ..vda5050.control import FleetControl
    from ..vda5050.errands import read_errands
    from ..vda5050.layout import read_doors, write_lif
    from ..vda5050.settings import FleetRules, Speaking
    from ..vda5050.zones import read_zones

    speaking = Speaking(**assigned("--speak", options.speak, Speaking))
    layout = _layout(options, speaking.map_id)
    if options.write_lif:
        write_lif(options.write_lif, layout)
        return
    given = assigned("--set", options.set, FleetRules)
    if options.state_file:
        given = {"state_file": options.state_file, "task_file": f"{options.state_file}.tasks"} | given
    rules = FleetRules(**given)
    address, versions = _address(options), tuple(filter(None, options.versions.split(",")))
    zones = read_zones(options.zones, layout)[0].given if options.zones else None
    errands = list(read_errands(options.errands, layout)) if options.errands else []
    steps, _plans = fleet_parts(rules.devices[0], rules.motion, rules.fleet)
    if not options.quiet and not is_compiled(steps.what):
        print("what the fleet needs is compiled first, once on a machine", file=sys.stderr, flush=True)
    steps.run()
    doors = read_doors(options.doors, layout) if options.doors else None
    control = FleetControl(layout, address, rules, speaking, versions, zones, doors)
    for errand in errands:
        control.submit(errand)
    vehicles = _simulated(options.simulate, options.sizes, address, versions, control) if options.simulate else []
    stop = threading.Event()
    threads = [threading.Thread(target=control.run, args=(stop,))]
    if vehicles:
        from ..vda5050.simulated import simulate

        threads.append(threading.Thread(target=simulate, args=(vehicles, stop)))
    for thread in threads:
        thread.start()
    try:
        _watch(options, control)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        for vehicle in vehicles:
            vehicle.sign_off()
        control.close()
    failed = [f"{one.id}: {one.text}" for one in control.errands.by_id.values() if one.state == "FAILED"]
    if options.until_done and failed:
        raise NoAnswerError(f"{len(failed)} errands failed: {'; '.join(failed)}")


def _layout(options, map_id):
    from ..fleet.execution.places import coarser
    from ..grid.maps.map_files import load_map_yaml
    from ..grid.maps.movingai import load_movingai_map
    from ..vda5050.layout import Layout, read_lif

    path = Path(options.map)
    kind = path.suffix.lower()
    if kind in (".json", ".lif"):
        layout = read_lif(path, options.layout)
        return replace(layout, map_id=map_id) if map_id else layout
    grid = (load_map_yaml if kind in (".yaml", ".yml") else load_movingai_map)(path, connectivity=4)
    return Layout(coarser(grid, options.tile_size), map_id or path.stem)


def _address(options):
    from ..vda5050.broker import Address

    host, colon, port = options.broker.rpartition(":")
    if colon and not port.isdecimal():
        raise InputError(f"--broker '{options.broker}': '{port}' is no port; allowed: HOST or HOST:PORT")
    password = os.environ.get(PASSWORD, "")
    if options.password_file:
        password = Path(options.password_file).read_text(encoding="utf-8").partition("\n")[0]
    address = Address(
        host if colon else options.broker,
        int(port) if colon else 0,
        options.user,
        password,
        options.tls,
        options.ca or "",
        options.certificate or "",
        options.key or "",
    )
    if password and not address.secure:
        print("warning: without --tls the password goes to the broker as it is", file=sys.stderr)
    return address


def _simulated(count, sizes, address, versions, control):
    from ..vda5050.simulated import SimulatedVehicle
    from ..vda5050.versions import VERSIONS

    layout, rules = control.layout, control.rules
    tiles = np.argwhere(layout.grid.costs > 0)
    if not 0 < count <= len(tiles):
        raise InputError(f"--simulate {count}; allowed: 1 .. {len(tiles)}, as many as there are free tiles")
    sizes = np.resize(_sides(sizes) or [rules.fleet.size], count)
    size, chosen = layout.grid.resolution, _apart(layout.grid, sizes, rules.fleet.safety_distance)
    speed = size / rules.step_s
    return [
        SimulatedVehicle(
            address,
            VERSIONS[versions[k % len(versions)]],
            f"{k:04}",
            (*layout.point(tile), 0.0),
            layout.map_id,
            speed,
            side=size * (float(sizes[k]) - 2 * rules.clearance),
            seed=k,
            interface=control.speaking.interface,
        )
        for k, tile in enumerate(chosen)
    ]


def _sides(text):
    """Odd numbers of tiles with commas between them, so that a vehicle's node is in its middle."""
    from ..fleet.arguments import MOST_SIZE

    try:
        sizes = [int(word) for word in text.split(",") if word]
    except ValueError:
        sizes = [0]
    if not all(0 < size <= MOST_SIZE and size % 2 for size in sizes):
        raise InputError(f"--sizes '{text}'; allowed: odd numbers from 1 to {MOST_SIZE}, with commas between them")
    return sizes


def _apart(grid, sizes, apart):
    """Tiles [row, col] of vehicles of these sizes (N,) that do not meet, the largest placed first."""
    from ..fleet.fields.lanes import footprint_free

    free, rng = ~grid.blocked, np.random.default_rng(0)
    tiles = dict[int, list[int]]()
    for k in np.argsort(-sizes, kind="stable").tolist():
        low, high = (int(sizes[k]) - 1) // 2 + apart, int(sizes[k]) // 2 + apart
        places = np.argwhere(footprint_free(free, int(sizes[k])))
        if not len(places):
            raise InputError(f"--simulate {len(sizes)}: there is no room for all of them")
        row, col = tiles[k] = rng.choice(places).tolist()
        free[max(0, row - low) : row + high + 1, max(0, col - low) : col + high + 1] = False
    return [tiles[k] for k in range(len(sizes))]


def _watch(options, control):
    """Say what is new until it is time to end."""
    began, shown, states = time.monotonic(), set(), {}
    while not options.seconds or time.monotonic() - began < options.seconds:
        time.sleep(LOOK_S)
        faults = {*control.all_faults()} | ({f"broker: {control.broker.fault}"} if control.broker.fault else set())
        for text in sorted(faults - shown):
            print(f"warning: {text}", file=sys.stderr, flush=True)
        shown = faults
        every = list(control.errands.by_id.values())
        for errand in every:
            if states.get(errand.id) != errand.state and not options.quiet:
                states[errand.id] = errand.state
                by = f" by {errand.vehicle}" if errand.vehicle else ""
                print(f"{errand.id} {errand.state}{by}{': ' + errand.text if errand.text else ''}", flush=True)
        if options.until_done and all(errand.over for errand in every):
            return
