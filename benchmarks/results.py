"""The recorded runs: one file each, with machine and versions inside."""

from __future__ import annotations

from pathlib import Path

from benchmarks.record import Record

RESULTS = Path(__file__).parent / "results"


def keep(record: Record, folder: Path = RESULTS) -> Path:
    """Write a run down; its file.

    Raises:
        ValueError: It had errors: what is kept can be relied on.
    """
    failed = [f"{result.name} ({name})" for result in record.shapes for name in result.errors]
    if failed:
        raise ValueError(f"a run with errors is not recorded: {', '.join(failed)}")
    folder.mkdir(exist_ok=True)
    moment = record.date[:16].replace(":", "").replace("T", "-")
    path = folder / f"{moment}-{(record.commit or 'unknown').rstrip('+')}.json"
    path.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> Record:
    """A recorded run."""
    return Record.model_validate_json(path.read_text(encoding="utf-8"))
