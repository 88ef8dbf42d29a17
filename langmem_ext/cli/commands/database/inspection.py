"""The doctor and the statistics at a terminal or in a pipe."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from langmem_ext.cli.commands.threads.listing import counted
from langmem_ext.cli.control_characters import printable
from langmem_ext.maintenance.doctor import examine
from langmem_ext.maintenance.statistics import Statistics, stats
from langmem_ext.storage.inspect.examine import Report
from langmem_ext.storage.inspect.findings import Finding

_ROWS: Final = ("threads", "checkpoints", "writes", "messages", "values", "store_items")
STYLES: Final = {"note": "dim", "wrong": "yellow", "damaged": "bold red"}


def examine_with(db: str, *, fix: bool, as_json: bool, interactive: bool) -> bool:
    """Examine a database and say what was found; whether all is well now.

    Raises:
        LangmemExtError: As `examine` has it.
    """
    with _bar(interactive and sys.stderr.isatty()) as progress:
        report = examine(db, fix=fix, progress=progress)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(report) | {"ok": report.ok}))
    elif interactive:
        _show(report, fix=fix)
    else:
        typer.echo("\n".join([*map(_line, report.findings), _summary(report, fix=fix)]))
    return report.ok


@contextmanager
def _bar(shown: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar, for a person."""
    if not shown:
        yield None
        return
    columns = (TextColumn("examining"), BarColumn(), MofNCompleteColumn(), TextColumn("threads"))
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("examining", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _line(finding: Finding) -> str:
    """A finding in a line that other programs can cut up: severity, place, thread, message."""
    thread = "" if finding.thread is None else f" of thread {printable(finding.thread)!r}"
    needed = f" [{', '.join(map(printable, finding.checkpoints))}]" if finding.checkpoints else ""
    fixed = "fixed" if finding.fixed else finding.severity
    return f"{fixed}: {printable(finding.place)}{thread}: {printable(finding.message)}{needed}"


def _summary(report: Report, *, fix: bool) -> str:
    counts = {
        name: sum(finding.severity == name and not finding.fixed for finding in report.findings)
        for name in STYLES
    }
    counts["fixed"] = sum(finding.fixed for finding in report.findings)
    findings = [
        counted(count, name) if name == "note" else f"{count:,} {name}"
        for name, count in counts.items()
        if count
    ]
    looked = (
        f"{report.threads:,} threads, {report.checkpoints:,} checkpoints, {report.items:,} messages"
    )
    if report.store_items:
        looked += f", {report.store_items:,} items of the store"
    fixable = any(finding.fixable and not finding.fixed for finding in report.findings)
    hint = " (--fix repairs what it can)" if fixable and not fix else ""
    parts = [*(["all is well"] if report.ok and not counts["fixed"] else []), *findings]
    return f"{looked}: {', '.join(parts)}{hint}"


def _show(report: Report, *, fix: bool) -> None:
    console = Console(highlight=False)
    if report.findings:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for column in ("", "thread", "place", "what"):
            table.add_column(column, overflow="fold")
        for finding in report.findings:
            state = (
                Text("fixed", style="green")
                if finding.fixed
                else Text(finding.severity, style=STYLES[finding.severity])
            )
            message = finding.message + (
                f"\nneeded by {', '.join(finding.checkpoints)}" if finding.checkpoints else ""
            )
            table.add_row(
                state,
                Text(printable(finding.thread or "")),
                Text(printable(finding.place)),
                Text(printable(message)),
            )
        console.print(table)
    console.print(Text(_summary(report, fix=fix), style="green" if report.ok else "bold"))


# -- statistics ------------------------------------------------------------------------------------


def count_with(db: str, *, as_json: bool, interactive: bool) -> None:
    """Print the statistics of a database.

    Raises:
        LangmemExtError: As `stats` has it.
    """
    statistics = stats(db)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(statistics)))
        return
    if not interactive:
        typer.echo("\n".join(f"{name}\t{value}" for name, value in _totals(statistics)))
        typer.echo(
            "\n".join(
                f"thread\t{printable(size.id)}\t{size.bytes}\t{size.messages}\t{size.checkpoints}"
                for size in statistics.largest
            )
        )
        return
    console = Console(highlight=False)
    for title, rows in _tables(statistics):
        table = Table(
            title=title,
            title_justify="left",
            title_style="bold",
            box=None,
            pad_edge=False,
            show_header=False,
        )
        table.add_column(overflow="fold")
        for _ in range(len(rows[0]) - 1):
            table.add_column(justify="right")
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        console.print(table)
        console.print()


def _totals(statistics: Statistics) -> list[tuple[str, int | float]]:
    counted = [(name, getattr(statistics, name)) for name in _ROWS]
    per_turn = (
        []
        if statistics.bytes_per_turn is None
        else [("bytes per turn", round(statistics.bytes_per_turn, 1))]
    )
    sizes = [(f"bytes of {kind}", size) for kind, size in statistics.bytes.items()]
    return [*counted, *sizes, ("bytes of the file", statistics.file_bytes), *per_turn]


def _tables(statistics: Statistics) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    yield "rows", [(name, f"{getattr(statistics, name):,}") for name in _ROWS]
    shares = [
        (kind, bytes_in_words(size), f"{size / (statistics.file_bytes or 1):.0%}")
        for kind, size in statistics.bytes.items()
        if size
    ]
    yield (
        "bytes" if statistics.exact else "bytes, about",
        [*shares, ("file", bytes_in_words(statistics.file_bytes), "")],
    )
    if statistics.bytes_per_turn is not None:
        yield "per turn", [("on average", bytes_in_words(round(statistics.bytes_per_turn)))]
    if statistics.largest:
        sizes = [
            (size.id, bytes_in_words(size.bytes), f"{size.messages:,}", f"{size.checkpoints:,}")
            for size in statistics.largest
        ]
        yield "largest threads", [("", "bytes", "messages", "checkpoints"), *sizes]


def bytes_in_words(size: int) -> str:
    """A number of bytes as people say it."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
