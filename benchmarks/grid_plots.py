"""Plots of the grid benchmarks: [CE12]'s figures 5 and 6, and fields by map."""

import math
import re

from . import report


def plot(file, results):
    """Write the picture. Returns why not, or None."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return "no plot: matplotlib is not installed (extra `bench`)"
    tables = {table["name"]: [row for row in table["rows"] if row["figures"]] for table in results["tables"]}
    groups = _groups(tables.get("grid_agents", ()))
    panels = [(_speed_ups, *group) for group in groups.items()] + [(_steps, *group) for group in groups.items()]
    if tables.get("grid_fields"):
        panels.append((_fields, "fields", tables["grid_fields"]))
    if not panels:
        return "no plot: no grid benchmark was run"
    columns = max(1, len(groups)) if groups else 1
    lines = -(-len(panels) // columns)
    figure = Figure(figsize=(7.2 * columns, 4.4 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    for axes in (every := figure.subplots(lines, columns, squeeze=False).ravel())[len(panels) :]:
        axes.set_axis_off()
    for axes, (draw, title, rows) in zip(every, panels, strict=False):
        draw(axes, rows)
        axes.set_title(f"{title}: {draw.__doc__}", fontsize=11, weight="bold", loc="left")
        axes.spines[["top", "right"]].set_visible(False)
    report.save(figure, file, results)
    return None


def _groups(rows):
    """{"512x512, cpu": [(agents, planner, row)]}"""
    groups = {}
    for row in rows:
        match = re.fullmatch(r"(\d+x\d+), ([\d,]+) agents", row["case"])
        name, _, device = row["subject"].rpartition(", ")
        if match:
            groups.setdefault(f"{match[1]}, {device}", []).append((int(match[2].replace(",", "")), name, row))
    return groups


def _speed_ups(axes, rows):
    """times faster than P-RTAA*"""
    for name in dict.fromkeys(name for _, name, _ in rows):
        points = sorted((count, row["figures"]["over_rtaa"]) for count, each, row in rows if each == name)
        style = {"exact": {"lw": 2.6, "color": "#111111"}}.get(
            name, {"lw": 1.4, "ls": "--" if name.startswith("P-RTAA") else "-"}
        )
        axes.plot(*zip(*points, strict=True), marker="o", ms=4, label=name, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("agents")
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, ncols=2, framealpha=0.9)


def _steps(axes, rows):
    """milliseconds by step"""
    planners = [name for name in dict.fromkeys(name for _, name, _ in rows) if not name.startswith("P-RTAA")]
    counts = sorted({count for count, _, _ in rows})
    width = 0.84 / len(planners)
    for i, name in enumerate(planners):
        for j, count in enumerate(counts):
            figures = next(row["figures"] for each, other, row in rows if (each, other) == (count, name))
            bottom = 0.0
            for step, colour in (("field_ms", "#3b6fb6"), ("agents_ms", "#5aa469"), ("copy_ms", "#b45f9c")):
                value = figures.get(step) or 0.0
                label = step.removesuffix("_ms") if i == j == 0 else None
                axes.bar(
                    j + (i - (len(planners) - 1) / 2) * width, value, 0.9 * width, bottom, color=colour, label=label
                )
                bottom += value
            axes.text(
                j + (i - (len(planners) - 1) / 2) * width,
                bottom,
                f" {name}",
                rotation=90,
                fontsize=6,
                ha="center",
                va="bottom",
            )
    axes.set_ylim(top=1.3 * max(row["figures"]["time_ms"] for _, name, row in rows if name in planners))
    axes.set_xticks(range(len(counts)), [f"{count:,}" for count in counts], fontsize=8, rotation=30)
    axes.set_xlabel("agents; bars stacked: field, agents, copy")
    axes.legend(fontsize=8)


def _fields(axes, rows):
    """milliseconds of a field, and of all paths (hatched)"""
    labels = [f"{row['subject']}\n{row['case']}" for row in rows][::-1]
    for at, row in enumerate(rows[::-1]):
        colour = "#1876a8" if row["subject"].startswith("gpu_planners") else "#b9bfc7"
        axes.barh(at + 0.2, row["figures"]["field_ms"], 0.4, color=colour)
        if row["figures"].get("paths_ms"):
            axes.barh(at - 0.2, row["figures"]["paths_ms"], 0.4, color=colour, alpha=0.55, hatch="///")
    axes.set_yticks(range(len(rows)), labels, fontsize=6)
    axes.set_xscale("log")
    axes.set_xlim(
        left=0.4 * min(row["figures"].get(step) or math.inf for row in rows for step in ("field_ms", "paths_ms"))
    )
