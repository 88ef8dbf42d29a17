"""The recorded runs: one file each, with machine and versions inside."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.machine import commit, load, machine, versions
from benchmarks.record import Record

RESULTS = Path(__file__).parent / "results"
POSTGRES = RESULTS / "postgres"


def keep(record: Record, folder: Path = RESULTS) -> Path:
    """Write a run down; its file.

    Raises:
        ValueError: It had errors: what is kept can be relied on.
    """
    failed = [f"{result.name} ({name})" for result in record.shapes for name in result.errors]
    if failed:
        raise ValueError(f"a run with errors is not recorded: {', '.join(failed)}")
    folder.mkdir(exist_ok=True)
    path = folder / f"{_moment(record.date)}-{(record.commit or 'unknown').rstrip('+')}.json"
    path.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return path


def tell(
    name: str,
    found: Mapping[str, Any],
    before: float,
    *,
    as_json: bool,
    record: bool,
    folder: Path = POSTGRES,
) -> None:
    """Print a PostgreSQL script's results as JSON, or store them with machine, load and versions.

    Args:
        name: What the file is called by, behind its date and the commit.
        found: Figures, and what they are of.
        before: The machine's load when it began.
        as_json: Whether to print it.
        record: Whether to keep it.
        folder: Where.
    """
    date = datetime.now(UTC).isoformat(timespec="seconds")
    whole = {
        **found,
        "date": date,
        "commit": commit(),
        "machine": machine().model_dump(),
        "versions": versions(),
        "load": (before, load()),
    }
    if as_json:
        print(json.dumps(whole))
    if record:
        folder.mkdir(exist_ok=True)
        path = folder / f"{_moment(date)}-{(whole['commit'] or 'unknown').rstrip('+')}-{name}.json"
        path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
        print(f"\nkept in {path.name}", file=sys.stderr)


def _moment(date: str) -> str:
    return date[:16].replace(":", "").replace("T", "-")


def read(path: Path) -> Record:
    """A recorded run."""
    return Record.model_validate_json(path.read_text(encoding="utf-8"))
