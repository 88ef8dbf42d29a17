"""Charts are inline SVG: bars per turn, coloured by the page's own rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 720
HEIGHT: Final = 180
BOTTOM: Final = 22
LEFT: Final = 52
MOST: Final = 60
"""Bars of a chart: the newest turns."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of a bar.

    Attributes:
        x, y, width, height: Where it is drawn.
        kind: Which series it is of: 0, 1, …
        title: What it says when it is pointed at.
    """

    x: float
    y: float
    width: float
    height: float
    kind: int
    title: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of stacked bars.

    Attributes:
        title: What it shows.
        names: The series, from the bottom up.
        bars: Its bars.
        ticks: Heights that are named: where, and the name.
        labels: Places on the axis that are named.
        total: What all bars come to, in words.
    """

    title: str
    names: tuple[str, ...]
    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    labels: tuple[tuple[float, str], ...]
    total: str


def stacked(
    title: str,
    names: Sequence[str],
    rows: Sequence[Sequence[float]],
    *,
    first: int = 1,
    unit: str = "",
    total: float | None = None,
) -> Chart:
    """A chart with a bar for each row; of many, the newest.

    Args:
        title: What it shows.
        names: What each number of a row is.
        rows: The numbers.
        first: The number of the first row.
        unit: What is counted.
        total: What it comes to; None: the sum.
    """
    total = sum(map(sum, rows)) if total is None else total
    first, rows = first + max(len(rows) - MOST, 0), rows[-MOST:]
    top = _round_up(max((sum(row) for row in rows), default=0))
    step = (WIDTH - LEFT - 8) / max(len(rows), 12)
    scale = (HEIGHT - BOTTOM - 12) / top
    bars = []
    for place, row in enumerate(rows):
        y = float(HEIGHT - BOTTOM)
        for kind, number in enumerate(row):
            height = number * scale
            y -= height
            if number:
                words = f"turn {first + place}: {number:,.0f} {unit} {names[kind]}".replace(
                    "  ", " "
                )
                bars.append(
                    Bar(
                        round(LEFT + place * step + 1, 1),
                        round(y, 1),
                        round(max(step - 2, 1), 1),
                        round(height, 1),
                        kind,
                        words,
                    )
                )
    ticks = tuple(
        (round(HEIGHT - BOTTOM - part * top * scale, 1), _named(part * top)) for part in (0, 0.5, 1)
    )
    every = max(math.ceil(len(rows) / 12), 1)
    labels = tuple(
        (round(LEFT + place * step + step / 2, 1), str(first + place))
        for place in range(0, len(rows), every)
    )
    return Chart(title, tuple(names), tuple(bars), ticks, labels, f"{total:,.0f} {unit}".strip())


def _round_up(number: float) -> float:
    """The next number that is 1, 2 or 5 with zeros behind it."""
    if number <= 0:
        return 1
    power = float(10 ** math.floor(math.log10(number)))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= number)


def _named(number: float) -> str:
    """A number in a few characters."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{unit}"
    return f"{number:g}"
