"""The order desk, as integration tests talk to it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from savers import Backend

sys.path.insert(0, str(Path(__file__).parent))

from conversation import Conversation, Server


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Ctrl-C reaches the processes that the tests start: a shell that runs the tests in the
    background has their whole family ignore it.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture
def talk(server: Server, place: str, tmp_path: Path) -> Conversation:
    return Conversation(server, place, tmp_path)


@pytest.fixture
def place(durable: Backend, tmp_path: Path) -> str:
    """Where a test's database is: `memory.db` in the test's folder, or tables on PostgreSQL."""
    return str(tmp_path / "memory.db") if durable.name == "file" else durable.new_url(tmp_path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder of its own; nothing of the machine's settings leaks in."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("LANGMEM_EXT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LANGMEM_EXT_SHOP_DB", str(tmp_path / "shop.db"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path
