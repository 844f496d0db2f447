"""Random messages of any type: fields that are not finite, empty, huge, in wrong frames, or as they should be."""

import importlib
import re

import numpy as np

TEXTS = (
    "",
    "map",
    "base",
    "plate",
    "moon",
    "shoulder",
    "elbow",
    "rrt_connect",
    "exact",
    "a",
    "\u0663\u2028",
    "x" * 10_000,
)
FLOATS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, -3e38)
LENGTHS = (0, 0, 1, 1, 2, 3, 7)
LONG = 5000  # numbers of one field, at times
ARRAY = re.compile(r"^(?:sequence<(?P<kind>[^,>]+)(?:, \d+)?>|(?P<fixed>[\w/]+)\[(?P<count>\d+)\])$")


def random_message(kind, rng, depth=0):
    """A message of a type; deep ones stay empty."""
    message = kind()
    for name, what in kind.get_fields_and_field_types().items():
        if rng.random() < 0.25:
            continue  # as it is made
        found = ARRAY.match(what)
        if found and found["kind"]:
            setattr(message, name, _sequence(found["kind"], rng, depth))
        elif found:
            setattr(message, name, [_value(found["fixed"], rng, depth) for _ in range(int(found["count"]))])
        else:
            setattr(message, name, _value(what, rng, depth))
    return message


def _sequence(kind, rng, depth):
    length = int(rng.choice(LENGTHS))
    if "/" in kind:
        length = min(length, 2) * (depth < 4)
    elif length and rng.random() < 0.05:
        length = LONG
    values = [_value(kind, rng, depth) for _ in range(length)]
    return [bytes([value]) for value in values] if kind == "octet" else values


def _value(kind, rng, depth):
    if "/" in kind:
        package, name = kind.split("/")
        return random_message(getattr(importlib.import_module(f"{package}.msg"), name), rng, depth + 1)
    if kind.startswith(("string", "wstring")):
        return str(rng.choice(TEXTS))
    if kind == "boolean":
        return bool(rng.random() < 0.5)
    if kind in ("double", "float"):
        return float(rng.choice(FLOATS)) if rng.random() < 0.6 else float(rng.normal())
    if kind == "octet":
        return int(rng.integers(256))
    bits, signed = int(re.sub(r"\D", "", kind) or 8), not kind.startswith("u")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return [low, high, 0, 1, 2, 3, 5, min(1000, high)][int(rng.integers(8))]
