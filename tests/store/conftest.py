"""The databases that the tests of the store run on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres.server import SHARED
from savers import BACKENDS, Backend

from langmem_ext import MessageLog


@pytest.fixture(
    scope="module", params=[one for one in BACKENDS if one.survives_close], ids=lambda one: one.name
)
def log(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MessageLog]:
    """An open database of each kind, which the tests of a module share."""
    backend: Backend = request.param
    folder: Path = tmp_path_factory.mktemp("stores")
    with SHARED.own_schemas():
        opened = MessageLog.open(backend.new_url(folder), synchronous="normal")
        yield opened
        opened.close()
