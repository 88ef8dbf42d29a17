"""The package's clock, moved by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

EARLY: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
"""What it tells at first."""

TOLD: Final = (
    "checkpointer.saver",
    "checkpointer.pruner",
    "maintenance.copy",
    "memory.facts.facts",
    "memory.generator",
    "memory.prompts.versions",
    "log.scope",
    "store.store",
    "threads.continuation.turns",
    "threads.lifetime",
    "threads.threads",
)
"""The modules that ask what time it is."""


class Clock:
    """The time that the package's clock tells; it stands still unless it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = EARLY
        for module in TOLD:
            monkeypatch.setattr(
                f"langmem_ext.{module}.now_ms", lambda: round(self.now.timestamp() * 1000)
            )

    def wait(self, **apart: float) -> None:
        """Move it on by so many days, hours, seconds."""
        self.now += timedelta(**apart)
