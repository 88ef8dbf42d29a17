"""Fixtures that all tests share, and how much the random ones do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, Phase, settings
from savers import BACKENDS, MODES, Backend, Mode

SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"

# Shrinking a program of forty graph runs takes minutes: ask for it when a failure is to be understood.
PHASES = [Phase.explicit, Phase.generate, *([Phase.shrink] if os.environ.get("LANGMEM_EXT_SHRINK") == "1" else [])]
EXAMPLES = int(os.environ.get("LANGMEM_EXT_EXAMPLES", "500" if SOAK else "6"))
COMMON = {"max_examples": EXAMPLES, "deadline": None, "database": None, "suppress_health_check": list(HealthCheck), "phases": PHASES}
settings.register_profile("default", settings(derandomize=True, **COMMON))  # type: ignore[arg-type]
settings.register_profile("soak", settings(print_blob=True, **COMMON))  # type: ignore[arg-type]
settings.load_profile("soak" if SOAK else "default")


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name, scope="session")
def backend(request: pytest.FixtureRequest) -> Backend:
    """Each kind of database that the subject runs on."""
    return cast(Backend, request.param)


@pytest.fixture(params=MODES, scope="session")
def mode(request: pytest.FixtureRequest) -> Mode:
    """Each way of calling: the sync methods, or their async twins on an event loop."""
    return cast(Mode, request.param)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the databases of a run."""
    return tmp_path_factory.mktemp("databases")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let a soak take its time."""
    for item in items if SOAK else ():
        item.add_marker(pytest.mark.timeout(0))
