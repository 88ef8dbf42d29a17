"""Promise: LangGraph's own conformance suite passes, on every kind of database and for the sync
methods as well as for the async ones.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES
from langgraph.checkpoint.conformance.initializer import RegisteredCheckpointer
from savers import Backend, Mode, Shelf, SyncAsAsync

pytestmark = pytest.mark.contract

TESTS = 81
"""What release 0.0.2 of the suite holds; a suite that finds fewer has skipped some."""


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
    results = [report.results[capability.value] for capability in ALL_CAPABILITIES]
    assert len(results) == len(report.results) == 8
    assert [result.failures for result in results if result.failures] == []
    assert all(result.detected and result.passed for result in results), results
    assert sum(result.tests_passed for result in results) >= TESTS


async def test_all_eight_capabilities_pass_and_none_is_skipped(
    backend: Backend, mode: Mode, folder: Path
) -> None:
    await conform(backend, mode, folder)
