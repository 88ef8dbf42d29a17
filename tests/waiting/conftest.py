"""The order desk, as the tests of the waiting graph talk to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conversation import Conversation, Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The order desk, where every step is a process of its own."""
    running = Server()
    yield running
    running.close()


@pytest.fixture
def talk(server: Server, place: str, tmp_path: Path) -> Conversation:
    """A conversation with the order desk."""
    return Conversation(server, place, tmp_path)
