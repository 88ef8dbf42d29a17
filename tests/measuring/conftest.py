"""What the tests of the benchmarks share."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from postgres.missing import missing


@pytest.fixture
def peers() -> None:
    """Skips the test where the checkpointers that are compared with are not installed."""
    if not find_spec("langgraph.checkpoint.postgres"):
        missing("langgraph-checkpoint-postgres is not installed: pip install --group dev")
