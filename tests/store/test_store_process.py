"""What a store has acknowledged outlives its process, and the agent server serves it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from agent_server import Desk
from finding_rules import word_index
from patience import PATIENCE_S, until
from savers import BACKENDS, Backend

from langmem_ext import DeltaStore, examine

pytestmark = pytest.mark.process

WRITER = """
import sys
from langgraph.store.base import PutOp
from langmem_ext import DeltaStore
from finding_rules import word_index

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
            [sys.executable, "-c", WRITER, url],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
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


FILES = """
from deepagents.backends import StoreBackend

files = StoreBackend(store=store, namespace=lambda _: ("files",))


def write(at):  # the file may be there, from before the kill
    files.write(f"/notes/{at}.txt", f"line {at} " * 100)
    assert files.edit(f"/notes/{at}.txt", "line", "Line", replace_all=True).error is None
"""

MEMORIES = """
import langmem
from scripted_model import ScriptedModel
from langchain_core.messages import AIMessage


def write(at):
    said = {"name": "Memory", "args": {"content": f"fact {at}"}, "id": "1"}
    model = ScriptedModel(answer=lambda messages: AIMessage("", tool_calls=[said]))
    manager = langmem.create_memory_store_manager(model, namespace=("memories",), store=store)
    manager.invoke({"messages": [{"role": "user", "content": f"fact {at}"}]})
"""

GOING_ON = """
import sys
from langmem_ext import DeltaStore

store = DeltaStore(sys.argv[1])
{write}
for at in range(int(sys.argv[2]), int(sys.argv[3])):
    write(at)
    print(at, flush=True)
"""


def whole_file(value: dict[str, Any]) -> int:
    """The number of a file that is written; of one that is not edited yet, -1."""
    first, number = value["content"].split()[:2]
    assert value["content"] == f"{first} {number} " * 100
    return int(number) if first == "Line" else -1


def whole_memory(value: dict[str, Any]) -> int:
    return int(value["content"]["content"].removeprefix("fact "))


@pytest.mark.interop
@pytest.mark.parametrize(
    ("write", "number"),
    [
        pytest.param(FILES, whole_file, id="deepagents"),
        pytest.param(MEMORIES, whole_memory, id="langmem"),
    ],
)
@pytest.mark.parametrize(
    "backend", [one for one in BACKENDS if one.survives_close], ids=lambda one: one.name
)
def test_agents_memory_that_is_killed_goes_on_where_it_was(
    backend: Backend, write: str, number: Callable[[Any], int], tmp_path: Path
) -> None:
    url = backend.new_url(tmp_path)
    script = [sys.executable, "-c", GOING_ON.format(write=write), url]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    first = subprocess.Popen(
        [*script, "0", "100000"], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert first.stdout is not None
    for _ in range(9):
        first.stdout.readline()
    first.kill()
    rest = first.stdout.read().split()
    first.wait(PATIENCE_S)
    first.stdout.close()
    done = int(rest[-1]) + 1 if rest else 9

    def stored() -> set[int]:
        with DeltaStore.open(url) as store:
            assert examine(store.log).ok
            return {number(item.value) for item in store.search((), limit=100_000)} - {-1}

    assert stored() - {done} == {*range(done)}
    subprocess.run(
        [*script, str(done), str(done + 5)], check=True, timeout=PATIENCE_S, env=environment
    )
    assert stored() == {*range(done + 5)}


STORE = """
from contextlib import asynccontextmanager

from langmem_ext import DeltaStore


@asynccontextmanager
async def create():
    async with await DeltaStore.aopen("store.db") as store:
        yield store
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A folder for an agent server whose store is `store.db`."""
    made = Desk(tmp_path)
    (made.folder / "items.py").write_text(STORE)
    settings = json.loads((made.folder / "langgraph.json").read_text())
    settings["store"] = {"path": "./items.py:create"}
    (made.folder / "langgraph.json").write_text(json.dumps(settings))
    return made


@pytest.mark.interop
def test_an_agent_server_that_is_killed_while_it_puts_has_all_that_it_has_acknowledged(
    desk: Desk,
) -> None:
    acknowledged: list[int] = []
    with desk.serving() as client:

        def put_until_it_fails() -> None:
            with suppress(httpx.HTTPError):
                for at in range(100_000):
                    client.store.put_item(("notes",), f"k{at}", {"at": at, "text": "red " * 50})
                    acknowledged.append(at)

        putting = Thread(target=put_until_it_fails)
        putting.start()
        until(lambda: len(acknowledged) > 20)
        desk.kill()
        putting.join(PATIENCE_S)
        assert not putting.is_alive()
    with DeltaStore.open(desk.folder / "store.db") as store:
        assert examine(store.log).ok
        found = {item.value["at"] for item in store.search(("notes",), limit=100_000)}
        assert found - {len(acknowledged)} == {*acknowledged}
    with desk.serving() as client:
        client.store.put_item(("notes",), "k0", {"at": -1})
        found = client.store.search_items(("notes",), limit=2)["items"]
        assert [item["value"]["at"] for item in found] == [-1, 1]
