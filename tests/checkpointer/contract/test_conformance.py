"""LangGraph's own conformance suite passes, on every kind of database and for the sync methods as
well as for the async ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance import conform
from savers import Backend, Mode

pytestmark = pytest.mark.contract


async def test_all_eight_capabilities_pass_and_none_is_skipped(
    backend: Backend, mode: Mode, folder: Path
) -> None:
    await conform(backend, mode, folder)
