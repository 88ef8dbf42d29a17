"""Imports at a terminal or in a pipe: progress on stderr, results on stdout."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from langmem_ext.cli.control_characters import printable
from langmem_ext.maintenance.import_sqlite import ImportProgress, ImportReport, import_checkpoints
from langmem_ext.settings.origin import DEFAULT, Origin, masked

TENTHS: Final = 10
"""How many lines say how far an import in a pipe has come."""


def import_with(
    source: str,
    target: str,
    *,
    owner: str | None = None,
    threads: Sequence[str],
    verify: bool,
    skip_damaged: bool,
    compress: bool,
    as_json: bool,
    quiet: bool,
    interactive: bool,
    origin: Origin | None = None,
) -> None:
    """Import and say what was done, and where to.

    Args:
        source: The database of a SqliteSaver.
        target: Where to.
        owner: Whose the threads will be.
        threads: Only these.
        verify: Compare both afterwards.
        skip_damaged: Leave out what does not decode.
        compress: Compress what is stored.
        as_json: Print JSON.
        quiet: Print nothing but errors.
        interactive: Whether a person sits there.
        origin: Where the target was found, if the command did not name it: then that is said
            before anything is written.

    Raises:
        LangmemExtError: As `import_checkpoints` has it.
    """
    into = place_of(target)
    if origin is not None and not quiet:
        named = "its default" if origin == DEFAULT else f"from {printable(str(origin))}"
        typer.echo(f"importing into {into} (the setting storage_path, {named})", err=True)
    shown = _nothing if quiet else _bar if interactive else _lines
    with shown() as progress:
        report = import_checkpoints(
            source,
            target,
            owner=owner,
            threads=threads or None,
            verify=verify,
            skip_damaged=skip_damaged,
            compress=compress,
            own=True,
            progress=progress,
        )
    for name in report.damaged:
        typer.echo(f"skipped: {printable(name)}", err=True)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(report) | {"into": into}))
    elif not quiet:
        typer.echo("\n".join(lines_of(report, into, verify=verify)))


def place_of(target: str) -> str:
    """Where the threads go, for people: the whole path, or a URL without its password."""
    address = masked(target)
    return printable(
        address if target == ":memory:" or "://" in target else str(Path(address).absolute())
    )


def lines_of(report: ImportReport, into: str, *, verify: bool) -> list[str]:
    """A report in words; what was imported, there already and left out adds up."""
    times = report.bytes_before / report.bytes_after if report.bytes_after else 1.0
    threads = {
        "imported": report.threads_new,
        "added to": report.threads_extended,
        "there already": report.threads_there,
    }
    checkpoints = {"imported": report.checkpoints, "there already": report.skipped}
    lines = [
        f"into         {into}",
        f"threads      {_added_up(threads, report.threads)}",
        f"checkpoints  {_added_up(checkpoints, report.total)}",
        f"writes       {report.writes:,} imported",
        f"before       {_size(report.bytes_before)}",
        (
            f"after        {_size(report.bytes_after)} (1/{times:,.0f})"
            if times >= 2
            else f"after        {_size(report.bytes_after)}"
        ),
        f"took         {report.seconds:.1f} s",
    ]
    if report.damaged:
        lines.append(f"skipped      {len(report.damaged):,} damaged")
    if verify:
        lines.append(f"verified     {report.verified:,} checkpoints are identical in both")
    return lines


def _added_up(parts: Mapping[str, int], total: int) -> str:
    """The parts of a whole, and the whole; what is in none of them was left out."""
    known = {**parts, "left out": total - sum(parts.values())}
    counts = [
        f"{number:,} {what}"
        for what, number in known.items()
        if number or what in ("imported", "there already")
    ]
    return ", ".join([*counts, f"{total:,} in all"])


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"


Show = Callable[[ImportProgress], None]


@contextmanager
def _nothing() -> Iterator[Show | None]:
    yield None


@contextmanager
def _bar() -> Iterator[Show | None]:
    """A bar, for a person."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("importing", total=None)

        def show(at: ImportProgress) -> None:
            bar.update(
                task,
                description="verifying" if at.verifying else "importing",
                completed=at.done,
                total=at.total,
            )

        yield show


@contextmanager
def _lines() -> Iterator[Show | None]:
    """A line for each tenth."""
    shown: set[tuple[bool, int]] = set()

    def show(at: ImportProgress) -> None:
        tenth = at.verifying, TENTHS * at.done // max(at.total, 1)
        if tenth not in shown:
            shown.add(tenth)
            typer.echo(
                f"{'compared' if at.verifying else 'gone through'} {at.done:,} of {at.total:,}"
                " checkpoints",
                err=True,
            )

    yield show
