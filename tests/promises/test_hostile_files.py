"""Promise: a stranger's export or database runs nothing, and an import stores all of it or nothing.

Whatever is changed in an export is refused with the line, or gives a thread that can be read.
"""

from __future__ import annotations

import gzip
import io
import os
import pickle
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde import jsonplus
from langgraph.graph import MessagesState
from savers import Calls, Mode
from small_graphs import chain, config

from langmem_ext import DataSerializer, DeltaSaver, MalformedExport, StorageError, Threads, examine
from langmem_ext.errors import NotADatabase

SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"
ROUNDS = 1000 if SOAK else 25

RAN: list[str] = []
"""What was run, though nothing may be."""


class Trap:
    """A thing that says when it is built or called."""

    def __init__(self, *args: Any, **options: Any) -> None:
        RAN.append("built")

    def __call__(self, *args: Any) -> None:
        RAN.append("called")

    def __reduce__(self) -> Any:
        return RAN.append, ("unpickled",)


def forged(code: int, payload: Any) -> tuple[str, bytes]:
    return "msgpack", ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(payload)))


RUNNABLE = ("langchain_core.runnables.base", "RunnableLambda", {"func": "x"}, "m")
HOSTILE: dict[str, tuple[str, bytes]] = {
    "a function": forged(jsonplus.EXT_CONSTRUCTOR_POS_ARGS, ("os", "getenv", ("PATH",))),
    "a method": forged(jsonplus.EXT_METHOD_SINGLE_ARG, ("os", "environ", "PATH", "get")),
    "a callable": forged(jsonplus.EXT_CONSTRUCTOR_KW_ARGS, (__name__, "Trap", {"name": "x"})),
    "a runnable": forged(jsonplus.EXT_PYDANTIC_V2, RUNNABLE),
    "a process": forged(jsonplus.EXT_CONSTRUCTOR_POS_ARGS, ("subprocess", "Popen", (["true"],))),
    "an import": forged(jsonplus.EXT_CONSTRUCTOR_POS_ARGS, ("this", "s", ())),
    "a pickle": ("pickle", pickle.dumps(Trap())),
}


def test_what_a_row_names_is_neither_imported_nor_run() -> None:
    RAN.clear()  # the trap of the pickle was built here
    sys.modules.pop("this", None)
    for name, row in HOSTILE.items():
        try:
            found = DataSerializer().loads_typed(row)
        except (StorageError, NotImplementedError, ValueError):
            found = None
        assert RAN == [], name
        assert found is None or isinstance(found, list | dict | str | tuple), name
        assert "this" not in sys.modules, name


STRANGERS = """
import os
from langmem_ext import DataSerializer
os.environ["OPENAI_API_KEY"] = "key-of-the-reader"
import langchain_openai.embeddings.base as library
from pydantic import BaseModel

class OpenAIEmbeddings(BaseModel):
    base_url: str

OpenAIEmbeddings.__module__ = library.__name__
row = DataSerializer().dumps_typed(OpenAIEmbeddings(base_url="http://stranger.example"))
print(DataSerializer().loads_typed(row))
"""


@pytest.mark.interop
def test_no_client_of_a_library_is_built() -> None:
    """It would hold the reader's key, and the stranger's address."""
    command = [sys.executable, "-c", STRANGERS]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == str({"base_url": "http://stranger.example"})
    assert "is not restored" in done.stderr


@pytest.fixture(scope="module")
def export() -> str:
    """An export of a thread with a few turns."""

    def answer(state: MessagesState) -> Any:
        call = {"name": "find", "args": {"deep": [{"a": 1.5}]}, "id": "call"}
        blocks: Any = [{"type": "text", "text": "found " * 30}, {"type": "image", "url": "x.png"}]
        return {"messages": [AIMessage(blocks, tool_calls=[call]), ("tool", "yes", "call")][:1]}

    with DeltaSaver() as saver:
        graph = chain(answer, saver=saver)
        for text in ("hello", "and then"):
            graph.invoke({"messages": [HumanMessage(text)]}, config())
        return "".join(Threads(saver).export_lines("t"))


def changed(text: str, chance: random.Random) -> str:
    """The export with one thing changed."""
    lines = text.splitlines(keepends=True)
    at, place = chance.randrange(len(lines)), chance.randrange(len(text))
    other = chance.randrange(len(lines))
    ways: list[Callable[[], str]] = [
        lambda: text[:place],
        lambda: text[:place] + chance.choice('0"{}[]\\\0é') + text[place + 1 :],
        lambda: "".join(lines[:at] + lines[at + 1 :]),
        lambda: "".join([*lines[: at + 1], *lines[at:]]),
        lambda: "".join(
            lines[other] if number == at else lines[at] if number == other else line
            for number, line in enumerate(lines)
        ),
        lambda: text[:place] + text[place:].replace("1", "2", 1),
    ]
    return chance.choice(ways)()


async def test_an_export_that_was_changed_leaves_no_trace_or_a_sound_thread(
    url: str, mode: Mode, export: str
) -> None:
    with DeltaSaver.open(url, synchronous="normal") as saver:
        threads, chance, refused = Threads(saver), random.Random(None if SOAK else 7), []
        for _ in range(ROUNDS):
            text = changed(export, chance)
            try:
                source = io.BytesIO(text.encode())
                await Calls(mode).call(threads, "import_from", source, keep_ids=True)
            except MalformedExport as error:
                refused.append(str(error))
                assert threads.list() == [], text
                continue
            assert [one.id for one in threads.list()] == ["t"], text
            assert not [one for one in examine(saver).findings if one.severity == "damaged"], text
            saver.delete_thread("t")
        assert len(refused) > ROUNDS / 2
        assert all(text.startswith("line ") for text in refused)
        await Calls(mode).call(threads, "import_from", io.BytesIO(export.encode()), keep_ids=True)
        assert len(threads.messages("t")) == 4


TRIGGER = "CREATE TRIGGER odd AFTER INSERT ON item BEGIN DELETE FROM thread; END;"
FORGE = "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = "
CHANGES = {
    "a trigger 'odd'": TRIGGER,
    "a loss 'odd'": TRIGGER.replace("AFTER", "BEFORE").replace(
        "DELETE FROM thread", "SELECT RAISE(IGNORE)"
    ),
    "an index 'odd'": "CREATE UNIQUE INDEX odd ON item (key, role)",
    "a view 'search'": "CREATE VIEW search AS SELECT 1 AS words",
    "a table 'thread'": FORGE + "replace(sql, 'NULL UNIQUE', 'NULL UNIQUE ON CONFLICT IGNORE')",
    "bytes 'odd'": TRIGGER + FORGE + "CAST(sql AS BLOB), type = CAST(type AS BLOB), tbl_name ="
    " CAST(tbl_name || char(0) || 1 AS BLOB) WHERE name = 'odd'",
}
OWN = """CREATE TABLE orders (item, value); CREATE UNIQUE INDEX word_of_mine ON orders (value);
    CREATE TRIGGER log AFTER INSERT ON orders BEGIN UPDATE orders SET value = item; END;
    CREATE VIEW mine AS SELECT id FROM thread; CREATE VIRTUAL TABLE notes USING fts5(word)"""


def test_sql_that_would_run_with_what_is_stored_is_refused_by_its_name(tmp_path: Path) -> None:
    for name, change in {"own": OWN, **CHANGES}.items():
        path = tmp_path / name
        with DeltaSaver.open(path) as saver:
            chain(lambda state: {}, saver=saver).invoke({"messages": ["said"]}, config())
        with closing(sqlite3.connect(path)) as other:
            other.executescript(change)
        if name == "own":
            assert examine(path).ok
            continue
        for way in (DeltaSaver.open, examine, lambda path: DeltaSaver(sqlite3.connect(path))):
            with pytest.raises(NotADatabase, match=f"{name.split()[-1]}.* export"):
                way(path)


def bombs(folder: Path) -> Iterator[Path]:
    """Small files that are large, or deep, when they are read."""
    for name, line in (("zeros", b"0" * 1_000_000), ("deep", b"[" * 1_000_000)):
        path = folder / f"{name}.jsonl.gz"
        with gzip.open(path, "wb") as file:
            for _ in range(40):
                file.write(line)
        yield path


def test_a_small_file_that_is_large_inside_is_refused(url: str, tmp_path: Path) -> None:
    with DeltaSaver.open(url) as saver:
        for path in bombs(tmp_path):
            assert path.stat().st_size < 100_000
            with pytest.raises(MalformedExport):
                Threads(saver).import_from(path)
        assert Threads(saver).list() == []
