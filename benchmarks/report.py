"""Results as JSON, as Markdown tables and as a plot."""

import json
import math

GRID_PLANNERS = {"astar": "A\\*", "pba_4": "P-BA\\*-4", "pba_8": "P-BA\\*-8", "pba_16": "P-BA\\*-16", "exact": "exact"}
HEADINGS = {
    "waypoints": "waypoints",
    "left_mm": "leaves the constraint by, 1/1000 m or rad",
    "contacts": "in collision by coal",
    "cold_cpu_s": "nothing compiled, CPU s",
    "cold_s": "nothing compiled, s",
    "warm_s": "compiled before, s",
    "case": "case",
    "dof": "joints",
    "hulls": "hulls",
    "read_cpu_ms": "read, CPU ms",
    "off_um": "off, um",
    "wrong": "wrong",
    "plan_cpu_ms": "plan, CPU ms",
    "driven": "driven, m",
    "timed_cpu_ms": "timed, CPU ms",
    "subject": "who",
    "rate": "median /s",
    "lowest": "lowest /s",
    "highest": "highest /s",
    "ratio": "x coal",
    "compared": "compared",
    "differing": "differing",
    "false_free": "false free",
    "false_hit": "false hit",
    "free": "free",
    "solved": "solved",
    "scenarios": "scenarios",
    "goals": "goals",
    "found": "found",
    "as_published": "as published",
    "valid": "valid",
    "plan_ms": "plan, ms",
    "plan_p95_ms": "p95",
    "short_ms": "shortened, ms",
    "short_p95_ms": "p95",
    "length": "length",
    "short_length": "shortened",
    "scene_ms": "new scene, ms",
    "samples": "samples",
    "ranks": "ranks",
    "checks": "checks",
    "check_ms": "in checks, ms",
    "exchange_ms": "in exchanges, ms",
    "exchanges": "exchanges",
    "million_ms": "10^6, ms",
    "motion_us": "per motion, us",
    "time_ms": "time, ms",
    "time_p95_ms": "p95",
    "reached": "at their goals",
    "first_ms": "first, ms",
    "cost": "sum of costs",
    "over_bound": "x bound",
    "makespan": "makespan",
    "plans": "raw plans/s",
    "short_plans": "shortened plans/s",
    "workers": "workers",
    "over_one": "x one worker",
    "efficiency": "efficiency",
    "over_reference": "over reference",
    "over_rrt": "over RRT",
    "check_share": "share of checks",
    "cost_2500": "cost at 2,500",
    "cost_10000": "cost at 10,000",
    "cost_40000": "cost at 40,000",
    "field_ms": "field, ms",
    "agents_ms": "agents, ms",
    "copy_ms": "copy, ms",
    "over_rtaa": "x P-RTAA\\*",
    "memory_mb": "memory, MB",
    "steps": "mean steps",
    "over_bfs": "x BFS",
    "over_queue": "x bucket queue",
    "each_ms": "of each in pairs, ms",
    "device_ms": "paths on the device, ms",
    "paths_ms": "all paths, ms",
    "step_rate": "steps/s",
    "paths_mb": "paths, MB",
    "repair_ms": "repair, ms",
    "recompute_ms": "recompute, ms",
    "over_recompute": "x recompute",
    "lowest_ratio": "lowest",
    "one_piece_mb": "in one piece, MiB",
    "window_mb": "window, MiB",
    "windows": "windows",
    "over_100": "over 100",
    "duration_s": "duration, s",
    "over_toppra": "over toppra",
    "refused": "refused",
    "heavy": "heavy",
    "over_free": "over without",
    "evenly": "evenly slowed",
    "over_stops": "x stops",
    "over_best": "x best",
    "worst_over_best": "worst x best",
    "worst_velocity": "velocity",
    "worst_acceleration": "acceleration",
    "worst_jerk": "jerk",
    "points": "points",
    "leaving": "leave it",
    "off_mm": "off, mm",
    "off_mrad": "off, mrad",
    "fraction": "fraction",
    "ended": "ended by",
    "motions": "motions /s",
    "free_rate": "free ones /s",
    "change_ms": "changed, ms",
    "voxels": "voxels",
    "boxes": "boxes",
    "filter_ms": "filter, ms",
    "boxes_ms": "to boxes, ms",
    "ready_ms": "until known, ms",
    "update_worst_ms": "both, worst",
    "update_cpu_ms": "both, CPU ms",
    "updates": "updates/s",
    "pack_ms": "pack, ms",
    "later_ms": "later, ms",
    "later_p99_ms": "p99",
    "later_worst_ms": "worst",
    "looks": "looks",
    "looks_p95": "p95",
    "visits": "visits",
    "solve": "errands/step, solved again and again",
    "of_solve": "x that",
    "least": "fewest of an agent",
    "longest": "longest without one, steps",
    "open_ms": "opened, ms",
    "pose_rate": "poses/s",
    "query_ms": "query, ms",
    "queries": "queries",
    "early_ms": "early, ms",
    "early_p99_ms": "early, p99, ms",
    "late_ms": "late, ms",
    "late_p99_ms": "late, p99, ms",
    "mb": "memory, MiB",
    "more_mb": "more memory, MiB",
    "more_threads": "more threads",
    "more_files": "more files",
    "query_p95_ms": "p95",
    "time_s": "time, s",
    "one_piece_s": "in one piece, s",
    "identical": "identical",
    "solution_rate": "solutions/s",
    "solutions": "solutions a pose",
    "error_um": "worst, um",
    "error_urad": "worst, urad",
    **{f"{name}_length": f"{title} steps" for name, title in GRID_PLANNERS.items()},
    **{f"{name}_found": f"{title} found" for name, title in GRID_PLANNERS.items()},
    "agents": "agents",
    "errands": "errands",
    "ideal": "ideal errands",
    "over_epibt": "errands / EPIBT's",
    "finished": "finished",
    "of_best": "errands a step / best known",
    "of_best_late": "the same, second half",
    "choice_ms": "choice of tasks, ms",
    "of_default": "errands / default",
    "of_ideal": "errands / ideal",
    "ticks": "errands/min in ticks",
    "as_driven": "as driven",
    "of_driven": "ticks / driven",
    "of_free": "ticks / nobody in the way",
    "running": "running fleet",
    "running_of_driven": "running / driven",
    "overlaps": "overlaps",
    "longest_s": "longest stand, s",
    "first_s": "first step, s",
    "step_ms": "step, ms",
    "step_p95_ms": "p95, ms",
    "step_worst_ms": "worst, ms",
    "all_valid": "all valid",
    "conflicts": "conflicts",
    "stuck": "stuck",
    "fields_MB": "fields, MB",
    "map_s": "map, s",
    "one_rank_s": "one rank, s",
    "rounds": "rounds",
    "sent_mb": "sent, MiB",
    "paths_s": "paths, s",
}


def write_json(file, results):
    file.write_text(json.dumps(results, indent=1, allow_nan=True) + "\n", encoding="utf-8")


def read_json(file):
    return json.loads(file.read_text(encoding="utf-8"))


def markdown(results, title="Benchmarks"):
    """The whole report of one run as Markdown."""
    lines = [f"# {title}", "", machine_line(results), ""]
    return "\n".join(lines + [section(table) for table in results["tables"]])


def section(table):
    """One benchmark's table as Markdown."""
    return "\n".join([f"## {table['title']}", "", table["text"], "", *_table(table), ""])


def machine_line(results):
    machine = results["machine"]
    gpu = f"{machine['gpu']} (driver {machine['driver']})" if machine["gpu"] else "no GPU"
    packages = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB; {gpu}; "
        f"{machine['system']}, Python {machine['python']}; "
        f"{packages}. Run of {results['date']}{', quick' if results['quick'] else ''}: `{results['command']}`"
        f"{f', load average {load} before it' if (load := machine.get('load')) is not None else ''}."
    )


def number(value, kind):
    """A figure as text, by the kind of its column."""
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if kind == "rate":
        for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
            if value >= size:
                return f"{value / size:.3g} {unit}"
        return f"{value:.3g}"
    return {
        "count": f"{value:d}" if isinstance(value, int) else f"{value:g}",
        "ratio": f"{value:.2f}" if value < 10 else f"{value:.1f}",
        "share": f"{100 * value:.0f} %",
        "ms": f"{value:.3g}" if value < 100 else f"{value:.0f}",
        "length": f"{value:.2f}",
    }[kind]


def _table(table):
    columns = table["columns"]
    quoted, notes = (any(row[key] for row in table["rows"]) for key in ("quoted", "note"))
    head = [HEADINGS["case"], HEADINGS["subject"], *(HEADINGS[column] for column in columns)]
    head += ["**quoted, not measured here**"] * quoted + ["note"] * notes
    lines = [
        "| " + " | ".join(head) + " |",
        "|" + " --- |" * 2 + " ---: |" * len(columns) + " --- |" * (quoted + notes),
    ]
    for row in table["rows"]:
        cells = [
            row["case"],
            row["subject"],
            *(number(row["figures"].get(column), kind) if row["figures"] else "" for column, kind in columns.items()),
        ]
        cells += [row["quoted"]] * quoted + [row["note"]] * notes
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def plot(file, results):
    """A picture: rates as bars, planning times as cumulative curves, costs against sizes as lines. Returns why not, or
    None."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return "no plot: matplotlib is not installed (extra `view`)"
    tables = {table["name"]: table for table in results["tables"]}
    shown = {
        name: drawn
        for name in DRAWN
        if (drawn := [row for row in tables.get(name, {"rows": ()})["rows"] if _has_points(row)])
    }
    if not shown:
        return f"no plot: none was measured of {', '.join(DRAWN)}"
    figure = Figure(figsize=(6.4 * len(shown), 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, name in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        DRAWN[name](axes, shown[name])
        axes.set_title(tables[name]["title"], fontsize=12, weight="bold", loc="left")
        axes.spines[["top", "right"]].set_visible(False)
    save(figure, file, results)
    return None


def _has_points(row):
    return bool(row["samples"]) or "size" in row["figures"]


def save(figure, file, results):
    """Write a matplotlib figure, with the machine that it was measured on below it."""
    machine = results["machine"]
    figure.supxlabel(
        f"{machine['cpu']}, {machine['cores']} cores; {machine['gpu'] or 'no GPU'}",
        fontsize=9,
        color="#666666",
        x=0.01,
        ha="left",
    )
    figure.savefig(file, dpi=130)


def _bars(axes, rows):
    values = [row["figures"]["rate"] for row in rows][::-1]
    spread = [
        [v - min(row["samples"]) for v, row in zip(values, rows[::-1], strict=True)],
        [max(row["samples"]) - v for v, row in zip(values, rows[::-1], strict=True)],
    ]
    colours = ["#1876a8" if row["subject"].startswith("gpu_planners") else "#b9bfc7" for row in rows][::-1]
    axes.barh(range(len(rows)), values, color=colours, xerr=spread, error_kw={"ecolor": "#444444", "lw": 1})
    axes.set_yticks(range(len(rows)), [f"{row['subject']}\n{row['case']}" for row in rows][::-1], fontsize=8)
    axes.set_xscale("log")
    axes.set_xlabel("per second (bar: median, line: lowest to highest scene)")
    axes.margins(x=0.12)
    for y, (value, row) in enumerate(zip(values, rows[::-1], strict=True)):
        axes.annotate(
            number(value, "rate"), (max(row["samples"]), y), (5, 0), textcoords="offset points", va="center", fontsize=8
        )


def _curves(axes, rows):
    for row in rows:
        times = sorted(1e3 * t for t in row["samples"])
        axes.step(
            times,
            [(i + 1) / len(times) for i in range(len(times))],
            where="post",
            label=f"{row['subject']} ({row['case']})",
        )
    axes.set_xscale("log")
    axes.set_xlabel("planning with shortening, ms")
    axes.set_ylabel("share of solved problems")
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, loc="upper left", framealpha=0.9)


def _by_size(axes, rows):
    """A line for each cost of rows of one kind, whose case is their size and what it counts, and one subject."""
    kinds = {}
    for row in rows:
        what = row["case"].replace(f"{row['figures']['size']} ", "")
        kinds.setdefault(f"{what} ({row['subject'].removeprefix('gpu_planners, ')})", []).append(row["figures"])
    for colour, (kind, figures) in enumerate(kinds.items()):
        for column, (cost, of, style) in COSTS.items():
            points = [(each["size"], of(each[column])) for each in figures if each.get(column)]
            if points:
                style = {"ls": style, "marker": "o", "ms": 4, "color": f"C{colour}"}
                axes.plot(*zip(*points, strict=True), label=f"{cost}, by {kind}", **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("size")
    axes.set_ylabel("microseconds")
    axes.grid(alpha=0.25)
    axes.legend(fontsize=7, framealpha=0.9)


COSTS = {  # column: name, microseconds of a figure, line
    "rate": ("configuration", lambda rate: 1e6 / rate, "-"),
    "motions": ("motion", lambda rate: 1e6 / rate, "--"),
    "plan_ms": ("plan", lambda ms: 1e3 * ms, ":"),
}
DRAWN = {
    "configurations": _bars,
    "motions": _bars,
    "rrt_connect": _curves,
    "prm": _curves,
    "worlds": _by_size,
    "sizes": _by_size,
}
