"""Draws the README's plot: bytes and CPU against turns, for light and for dark pages.

    python -m docs.making.plot benchmarks/results/….json

Needs the group docs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks import results
from benchmarks.record import Record
from docs.making.palette import shrink

PICTURES = Path(__file__).parents[1] / "pictures"


@dataclass(frozen=True)
class Page:
    """The colours of a page."""

    name: str
    text: str
    quiet: str
    grid: str
    lines: Mapping[str, str]


LIGHT = Page(
    "light",
    text="#1f2328",
    quiet="#59636e",
    grid="#d8dee4",
    lines={
        "delta": "#0b7a53",
        "memory": "#8250df",
        "sqlite": "#bc4c00",
        "deltachannel": "#0969da",
        "postgres": "#9a6700",
        "none": "#818b98",
    },
)
DARK = Page(
    "dark",
    text="#e6edf3",
    quiet="#9198a1",
    grid="#30363d",
    lines={
        "delta": "#3fcf8e",
        "memory": "#c297ff",
        "sqlite": "#ff9d57",
        "deltachannel": "#6cb6ff",
        "postgres": "#e3b341",
        "none": "#848d97",
    },
)
LABELS = {
    "none": "no saver",
    "memory": "InMemorySaver",
    "sqlite": "SqliteSaver",
    "postgres": "PostgresSaver",
    "deltachannel": "DeltaChannel",
    "delta": "DeltaSaver",
}


def draw(record: Record, folder: Path = PICTURES) -> list[Path]:
    """Draw the growth of a short conversation; the files.

    Raises:
        ValueError: The run did not measure it.
    """
    short = next((result for result in record.shapes if result.name == "short"), None)
    if short is None:
        raise ValueError(
            "the run has no shape 'short' to draw: record one with --only short, or the whole set"
        )
    bytes_drawn, cpu_drawn = series(short.figures, "bytes"), series(short.figures, "turn_cpu_ms")
    paths = []
    for page in (LIGHT, DARK):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.6), dpi=200)
        panel(left, page, bytes_drawn, "Size of the database, log scale", _bytes, log=True)
        panel(right, page, cpu_drawn, "CPU time per turn", lambda value: f"{value:g} ms", log=False)
        figure.tight_layout(w_pad=2)
        paths.append(folder / f"performance-{page.name}.png")
        figure.savefig(paths[-1], transparent=True)
        shrink(paths[-1])
        plt.close(figure)
    return paths


def series(
    figures: Mapping[str, Mapping[str, float]], metric: str
) -> dict[str, list[tuple[int, float]]]:
    """A metric's points by contender that has a line, over the turns at which it was taken."""
    drawn = {}
    for name in LABELS.keys() & figures.keys():
        found = figures[name]
        points = [
            (int(key.partition("@")[2]), value)
            for key, value in found.items()
            if key.startswith(f"{metric}@")
        ]
        if points:
            drawn[name] = sorted(points)
    return drawn


def panel(
    axes: Any,
    page: Page,
    drawn: Mapping[str, list[tuple[int, float]]],
    title: str,
    shown: Any,
    *,
    log: bool,
) -> None:
    """One panel: a line for each contender, with its name at its end."""
    last = max(turn for points in drawn.values() for turn, _ in points)
    for name, points in drawn.items():
        ours = name == "delta"
        turns, values = zip(*points, strict=True)
        axes.plot(
            turns,
            values,
            color=page.lines[name],
            linewidth=2.6 if ours else 1.5,
            solid_capstyle="round",
            zorder=3 if ours else 2,
        )
    if log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlim(0, last)
    axes.set_title(title, loc="left", color=page.text, fontsize=11, fontweight="bold", pad=12)
    axes.set_xlabel("turns of the conversation", color=page.quiet, fontsize=9)
    axes.xaxis.set_major_locator(FixedLocator([last // 4, last // 2, 3 * last // 4, last]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: shown(value)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color=page.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=page.quiet, labelsize=9, length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    ends = {name: points[-1][1] for name, points in drawn.items()}
    for name, height in spread(axes, ends).items():
        text = f"{LABELS[name]} {shown(_rounded(ends[name]))}"
        weight = "bold" if name == "delta" else "normal"
        axes.text(
            1.02,
            height,
            text,
            transform=axes.transAxes,
            color=page.lines[name],
            fontsize=9,
            fontweight=weight,
            va="center",
        )


def spread(axes: Any, ends: Mapping[str, float], gap: float = 0.085) -> dict[str, float]:
    """Heights of the labels, as parts of the panel: at their lines' ends, without overlaps."""
    place = axes.transAxes.inverted()
    heights = {
        name: float(place.transform(axes.transData.transform((0, value)))[1])
        for name, value in ends.items()
    }
    placed: dict[str, float] = {}
    for name in sorted(heights, key=lambda name: heights[name]):
        lowest = max(placed.values(), default=-1) + gap
        placed[name] = max(heights[name], lowest)
    return placed


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")


def _bytes(value: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g} B"


if __name__ == "__main__":
    for path in draw(results.read(Path(sys.argv[1]))):
        print(f"wrote {path.name}")
