"""What a store has acknowledged outlives its process, and the agent server serves it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from agent_server import Desk
from patience import PATIENCE_S
from savers import BACKENDS, Backend

from langmem_ext import DeltaStore, examine
from langmem_ext.testing.finding_rules import word_index

pytestmark = pytest.mark.process

WRITER = """
import sys
from langgraph.store.base import PutOp
from langmem_ext import DeltaStore
from langmem_ext.testing.finding_rules import word_index

store = DeltaStore(sys.argv[1], index=word_index())
for at in range(100_000):
    value = {"at": at, "text": "red"}
    store.batch([PutOp((str(part),), f"k{at % 50}", value) for part in range(3)])
    print(at, flush=True)
"""


@pytest.mark.parametrize(
    "backend", [one for one in BACKENDS if one.survives_close], ids=lambda one: one.name
)
def test_a_killed_writer_leaves_whole_batches_and_all_that_it_has_acknowledged(
    backend: Backend, tmp_path: Path
) -> None:
    url = backend.new_url(tmp_path)
    DeltaStore(url).close()
    for count in (1, 7, 60):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(count)][-1]
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split()
        acknowledged = int(rest[-1]) if rest else acknowledged
        writer.wait(PATIENCE_S)
        writer.stdout.close()
        with DeltaStore.open(url, index=word_index()) as store:
            newest = [
                max(item.value["at"] for item in store.search((str(part),), limit=100))
                for part in range(3)
            ]
            assert newest[0] == newest[1] == newest[2]
            assert acknowledged <= newest[0] <= acknowledged + 1
            found = store.search((), query="red", limit=1000)
            assert len(found) == 3 * min(newest[0] + 1, 50)
            assert all(item.score == found[0].score for item in found)
            assert examine(store.log).ok
            for item in found:
                store.delete(item.namespace, item.key)


STORE = """
from contextlib import asynccontextmanager

from langmem_ext import DeltaStore


@asynccontextmanager
async def create():
    async with await DeltaStore.aopen("store.db") as store:
        yield store
"""


def test_the_agent_server_keeps_its_items_in_the_store_that_langgraph_json_names(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    (desk.folder / "items.py").write_text(STORE)
    settings = json.loads((desk.folder / "langgraph.json").read_text())
    settings["store"] = {"path": "./items.py:create"}
    (desk.folder / "langgraph.json").write_text(json.dumps(settings))
    with desk.serving() as client:
        client.store.put_item(("users", "anna"), "likes", {"drink": "tea"})
        client.store.put_item(("users", "bert"), "likes", {"drink": "coffee"})
        found = client.store.search_items(("users",), filter={"drink": "tea"})["items"]
        assert [item["namespace"] for item in found] == [["users", "anna"]]
    with desk.serving() as client:
        assert client.store.get_item(("users", "anna"), "likes")["value"] == {"drink": "tea"}
        client.store.delete_item(("users", "anna"), "likes")
        assert client.store.list_namespaces(prefix=["users"])["namespaces"] == [["users", "bert"]]
    with DeltaStore.open(desk.folder / "store.db") as store:
        assert [item.value for item in store.search(("users",))] == [{"drink": "coffee"}]
