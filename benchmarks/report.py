"""A run's findings as a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from benchmarks.contenders import TITLES
from benchmarks.record import Record, ShapeResult, Verdict


def header(record: Record) -> str:
    """Machine and versions."""
    machine = record.machine
    versions = ", ".join(f"{name} {number}" for name, number in record.versions.items())
    return f"{machine.cpu}, {machine.cores} cores, {machine.memory_gb:g} GB, {machine.system}\n{versions}; commit {record.commit or '-'}"


def shape_lines(result: ShapeResult) -> Iterator[str]:
    """A shape: a line for every contender, one for every aim."""
    yield f"\n{result.name}: {result.title}  ({result.seconds:.0f} s, load {result.load[0]:g} to {result.load[1]:g})"
    yield from _table(result.figures)
    for name, text in result.errors.items():
        yield f"  {TITLES.get(name, name):28}failed: {text}"
    yield from map(verdict_line, result.verdicts)


def _table(figures: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Contenders down, metrics across; a metric that was taken at several turns has a table of its own."""
    metrics = list(dict.fromkeys(metric for found in figures.values() for metric in found))
    groups: dict[str, list[str]] = defaultdict(list)
    for metric in metrics:
        groups[metric.partition("@")[0] if "@" in metric else ""].append(metric)
    for group, columns in groups.items():
        titles = [f"{group} @{column.partition('@')[2]}" if group else column for column in columns]
        yield f"  {'':26}" + "".join(f"  {title:>16}" for title in titles)
        for name, found in figures.items():
            if any(column in found for column in columns):
                shown = (number(found[column]) if column in found else "" for column in columns)
                yield f"  {TITLES.get(name, name):26}" + "".join(
                    f"  {text:>{max(16, len(title))}}" for text, title in zip(shown, titles, strict=True)
                )


def verdict_line(verdict: Verdict) -> str:
    """An aim in one line."""
    times = " ×" if verdict.against else ""
    line = f"  → {verdict.what}: {number(verdict.ours)}"
    if verdict.against and verdict.theirs:
        line += f", {TITLES[verdict.against]} {number(verdict.theirs)}: {number(verdict.ratio)} ×"
    if verdict.bound is None:
        return line
    sign = "≤" if verdict.sense == "at_most" else "≥"
    return f"{line}, aim {sign} {number(verdict.bound)}{times}: {'reached' if verdict.reached else 'NOT REACHED'}"


def number(value: float) -> str:
    """A figure with as many digits as mean something."""
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 or value == int(value) else f"{value:.1f}" if size >= 10 else f"{value:.2f}"
