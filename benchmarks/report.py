"""A run's findings as a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.contenders import TITLES
from benchmarks.record import Record, ShapeResult, Verdict

BUSY = 1.5
"""Load per core from which on wall times are not to be trusted: the benchmarks alone stay below it,
but for the crowds."""


def header(record: Record) -> str:
    """Machine and versions."""
    machine = record.machine
    versions = ", ".join(f"{name} {number}" for name, number in record.versions.items())
    return (
        f"{machine.cpu}, {machine.cores} cores, {machine.memory_gb:g} GB,"
        f" {machine.system}\n{versions}; commit {record.commit or '-'}"
    )


def shape_lines(result: ShapeResult, cores: int) -> Iterator[str]:
    """A shape: a line for every contender, one for every aim."""
    yield (
        f"\n{result.name}: {result.title}  ({result.seconds:.0f} s, load {result.load[0]:g} to"
        f" {result.load[1]:g})"
    )
    if max(result.load) > BUSY * cores:
        yield (
            f"  the machine was busy with other work too (load above {BUSY} per core): wall times"
            " and rates mean little"
        )
    yield from _table(result.figures)
    for name, text in result.errors.items():
        yield f"  {TITLES.get(name, name):28}failed: {text}"
    yield from map(verdict_line, result.verdicts)


def _table(figures: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Contenders down, metrics across; a metric measured at several turns has its own table."""
    metrics = list(dict.fromkeys(metric for found in figures.values() for metric in found))
    groups: dict[str, list[str]] = defaultdict(list)
    for metric in metrics:
        group, at, _ = metric.partition("@")
        if not at or group in SERIES:
            groups[group if at else ""].append(metric)
    for group, columns in groups.items():
        titles = [column.partition("@")[2] for column in columns] if group else columns
        wide = [max(len(title), 12 if group else 9) for title in titles]
        yield f"  {f'{group} at turn' if group else '':26}" + _row(titles, wide)
        for name, found in figures.items():
            if any(column in found for column in columns):
                yield f"  {TITLES.get(name, name):26}" + _row(
                    [number(found[key]) if key in found else "" for key in columns], wide
                )


SERIES = ("bytes", "by_raw", "turn_cpu_ms", "turn_wall_ms")
"""The metrics over turns that are printed; the others are kept all the same."""


def _row(texts: Sequence[str], wide: Sequence[int]) -> str:
    return "".join(f"  {text:>{width}}" for text, width in zip(texts, wide, strict=True))


def verdict_line(verdict: Verdict) -> str:
    """An aim in one line."""
    times = " ×" if verdict.against else ""
    line = f"  → {verdict.what}: {number(verdict.ours)}"
    if verdict.against and verdict.theirs:
        line += f", {TITLES[verdict.against]} {number(verdict.theirs)}: {number(verdict.ratio)} ×"
    if verdict.bound is None:
        return line
    sign = "≤" if verdict.sense == "at_most" else "≥"
    return (
        f"{line}, aim {sign} {number(verdict.bound)}{times}:"
        f" {'reached' if verdict.reached else 'NOT REACHED'}"
    )


def summary(record: Record) -> Iterator[str]:
    """What was aimed at, as a Markdown table."""
    yield "| what | DeltaSaver | against | | ratio | aim | reached |"
    yield "|---|---|---|---|---|---|---|"
    for verdict in (verdict for result in record.shapes for verdict in result.verdicts):
        against = TITLES[verdict.against] if verdict.against else ""
        theirs = number(verdict.theirs) if verdict.theirs is not None else ""
        ratio = f"{number(verdict.ratio)} ×" if verdict.against else ""
        sign = "≤" if verdict.sense == "at_most" else "≥"
        aim = (
            ""
            if verdict.bound is None
            else f"{sign} {number(verdict.bound)}{' ×' if verdict.against else ''}"
        )
        reached = "" if verdict.reached is None else "yes" if verdict.reached else "**no**"
        yield (
            f"| {verdict.what} | {number(verdict.ours)} | {against} | {theirs} | {ratio} | {aim} |"
            f" {reached} |"
        )


def number(value: float) -> str:
    """A figure with as many digits as mean something."""
    size = abs(value)
    return (
        f"{value:,.0f}"
        if size >= 100 or value == int(value)
        else f"{value:.1f}"
        if size >= 10
        else f"{value:.2f}"
    )
