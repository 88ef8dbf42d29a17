"""LangGraph's own conformance suite, run on one kind of database."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES
from langgraph.checkpoint.conformance.initializer import RegisteredCheckpointer
from savers import Backend, Mode, Shelf, SyncAsAsync

# What release 0.0.2 of the suite holds; a suite that finds fewer tests than this has skipped some.
TESTS = 81


async def conform(backend: Backend, mode: Mode, folder: Path) -> None:
    """Run the suite on a kind of database."""

    async def factory() -> AsyncGenerator[BaseCheckpointSaver[Any], None]:
        shelf = Shelf(backend, mode, folder)
        try:
            # The suite calls async methods only: through the adapter they are the sync ones.
            yield SyncAsAsync(shelf.saver) if mode == "sync" else shelf.saver
        finally:
            await shelf.close()

    report = await validate(RegisteredCheckpointer(name=f"{backend.name} {mode}", factory=factory))
    results = {
        capability.value: report.results[capability.value] for capability in ALL_CAPABILITIES
    }
    assert len(results) == len(report.results) == 8
    assert {name: result.failures for name, result in results.items() if result.failures} == {}
    assert [
        name for name, result in results.items() if not result.detected or result.passed is not True
    ] == []
    assert sum(result.tests_passed for result in results.values()) >= TESTS
