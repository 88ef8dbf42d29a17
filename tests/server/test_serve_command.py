"""`langmem-ext serve` serves a database until it is stopped, and nobody without a token beyond this
machine.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from langchain_core.messages import HumanMessage
from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import AuthenticationError
from patience import until
from serving import listening

from langmem_ext import DeltaSaver, DeltaStore, Retention, ThreadChatMessageHistory

GRAPH = """
from langgraph.graph import START, MessagesState, StateGraph

graph = StateGraph(MessagesState)
graph.add_node("answer", lambda state: {"messages": [("ai", "hello")]}).add_edge(START, "answer")
"""
TOKEN = "0123456789abcdef-ann"


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[str]:
    """The command, running in a folder; its URL. Ends as by Ctrl-C."""

    def command(port: int) -> list[str]:
        serve = [sys.executable, "-m", "langmem_ext.cli", "serve", "memory.db"]
        return [*serve, "--port", str(port), *words]

    with listening(command, folder) as (port, _):
        yield f"http://127.0.0.1:{port}"


@pytest.mark.process
def test_a_database_is_served_and_outlives_the_server(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(GRAPH)
    with serving(tmp_path) as url, get_sync_client(url=url) as client:
        client.threads.create(thread_id="t1")
        page = httpx.get(f"{url}/langmem/ui/")
        assert (page.status_code, "t1" in page.text) == (200, True)
        assert httpx.get(url, follow_redirects=True).url.path == "/langmem/ui/"
    (tmp_path / "tokens").write_text(f"# who may come in\n{TOKEN} ann\n")
    with serving(
        tmp_path, "--graph", "app.py:graph", "--graph-id", "greeter", "--tokens", "tokens"
    ) as url:
        with get_sync_client(url=url) as stranger, pytest.raises(AuthenticationError):
            stranger.threads.get("t1")
        assert httpx.get(f"{url}/langmem/ui/").status_code == 404
        with get_sync_client(url=url, headers={"Authorization": f"Bearer {TOKEN}"}) as ann:
            assert ann.threads.count() == 0  # t1 is nobody's
            assert ann.threads.create()["metadata"]["graph_id"] == "greeter"


@pytest.mark.process
@pytest.mark.parametrize("minutes", [15, 0])
def test_what_has_expired_is_deleted_unless_a_setting_says_not_to(
    minutes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGMEM_EXT_SWEEP_INTERVAL_MINUTES", str(minutes))
    monkeypatch.setenv("LANGMEM_EXT_AUTO_PRUNE_DAYS", "30")
    with DeltaSaver.open(
        str(tmp_path / "memory.db"), retention=Retention(ttl=timedelta(days=30))
    ) as saver:
        DeltaStore(saver).put(("notes",), "short", {"text": "gone"}, ttl=1e-6)
        ThreadChatMessageHistory("old", saver).add_messages([HumanMessage("Bye")])
        with closing(sqlite3.connect(tmp_path / "memory.db")) as file, file:
            file.execute("UPDATE thread SET updated_at = 0, active_at = 0")

        def left() -> int:
            pruned = saver.sweep(dry_run=True)
            return pruned.threads + pruned.store_items

        assert left() == 2
        with serving(tmp_path) as url:
            if minutes:
                until(lambda: left() == 0)
            assert httpx.get(f"{url}/ok").is_success
        assert left() == (0 if minutes else 2)
