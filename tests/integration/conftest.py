"""The order desk, as integration tests talk to it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from conversation import Conversation, Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture
def talk(server: Server, tmp_path: Path) -> Conversation:
    return Conversation(server, tmp_path)
