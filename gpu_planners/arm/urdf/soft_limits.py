"""Soft limits of joints, <safety_controller soft_lower_limit soft_upper_limit>, which MoveIt plans within."""

import numpy as np
from lxml import etree

from ...errors import shown
from .notes import Note

BEYOND = 1e-6  # rad or m by which files round soft limits that are the same as the others


def read_soft_limits(
    element: etree._Element | None, what: str, limits: tuple[float, float], notes: list[Note]
) -> tuple[tuple[float, float] | None, str]:
    """((lower, upper) of a <safety_controller> within the limits, None where they do not count; what is wrong, "").

    Beside `limits` these are what MoveIt plans within; the URDF's default is 0 for each.
    """
    if element is None:
        return None, ""
    texts = [element.get(key, "0") for key in ("soft_lower_limit", "soft_upper_limit")]
    try:
        lower, upper = map(float, texts)
    except ValueError:
        lower = upper = np.nan
    told = f"{what} ({texts[0]} to {texts[1]}, the <limit> is {limits[0]:g} to {limits[1]:g})"
    if np.isnan([lower, upper]).any():
        return None, f"<safety_controller>: soft limits {shown(texts[0])} and {shown(texts[1])} are no numbers"
    inside = max(lower, limits[0]), min(upper, limits[1])
    if lower == upper == 0:
        notes.append(Note("soft limits that are missing, or both 0, do not count", what))
    elif lower > upper:
        notes.append(Note("soft limits whose lower one is above the upper one do not count", told))
    elif not inside[0] < inside[1]:
        notes.append(Note("soft limits that leave the joint no room do not count", told))
    else:
        if lower < limits[0] - BEYOND or upper > limits[1] + BEYOND:
            notes.append(Note("soft limits are beyond the <limit>, which counts there", told))
        return inside, ""
    return None, ""
