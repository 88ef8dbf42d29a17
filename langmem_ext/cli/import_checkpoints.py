"""Importing at a terminal or in a pipe: how far it has come on stderr, what it has done on stdout."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from langmem_ext.cli.control_characters import printable
from langmem_ext.transfer import ImportProgress, ImportReport, import_checkpoints

TENTHS: Final = 10
"""How many lines say how far an import in a pipe has come."""


def import_with(
    source: str,
    target: str,
    *,
    threads: Sequence[str],
    verify: bool,
    skip_damaged: bool,
    compress: bool,
    as_json: bool,
    quiet: bool,
    interactive: bool,
) -> None:
    """Import and say what was done.

    Raises:
        LangmemExtError: As `import_checkpoints` has it.
    """
    shown = _nothing if quiet else _bar if interactive else _lines
    with shown() as progress:
        report = import_checkpoints(
            source,
            target,
            threads=threads or None,
            verify=verify,
            skip_damaged=skip_damaged,
            compress=compress,
            own=True,
            progress=progress,
        )
    for name in report.damaged:
        typer.echo(f"left out: {printable(name)}", err=True)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(report)))
    elif not quiet:
        typer.echo("\n".join(lines_of(report, verify=verify)))


def lines_of(report: ImportReport, *, verify: bool) -> list[str]:
    """A report in words."""
    times = report.bytes_before / report.bytes_after if report.bytes_after else 1.0
    lines = [
        f"threads      {report.threads:,}",
        f"checkpoints  {report.checkpoints:,} imported, {report.skipped:,} there already",
        f"writes       {report.writes:,} imported",
        f"before       {_size(report.bytes_before)}",
        f"after        {_size(report.bytes_after)} (1/{times:,.0f})" if times >= 2 else f"after        {_size(report.bytes_after)}",
        f"took         {report.seconds:.1f} s",
    ]
    if report.damaged:
        lines.append(f"left out     {len(report.damaged):,} damaged")
    if verify:
        lines.append(f"verified     {report.verified:,} checkpoints are the same in both")
    return lines


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"


Show = Callable[[ImportProgress], None]


@contextmanager
def _nothing() -> Iterator[Show | None]:
    yield None


@contextmanager
def _bar() -> Iterator[Show | None]:
    """A bar, for a person."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("importing", total=None)

        def show(at: ImportProgress) -> None:
            bar.update(task, description="verifying" if at.verifying else "importing", completed=at.done, total=at.total)

        yield show


@contextmanager
def _lines() -> Iterator[Show | None]:
    """A line for each tenth."""
    said: set[tuple[bool, int]] = set()

    def show(at: ImportProgress) -> None:
        tenth = at.verifying, TENTHS * at.done // max(at.total, 1)
        if tenth not in said:
            said.add(tenth)
            typer.echo(f"{'verified' if at.verifying else 'imported'} {at.done:,} of {at.total:,} checkpoints", err=True)

    yield show
