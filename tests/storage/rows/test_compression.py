"""Promise: a compressed database is the same database, smaller.

Each row says whether it is compressed, and reading asks for no option.
"""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import tracemalloc
from contextlib import closing
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph, add_messages
from move_checks import assert_moved
from patience import PATIENCE_S
from promises.test_conformance import conform
from promises.test_equivalence import drive
from prune_reference import assert_clean, everything
from raw_tables import change
from savers import COMPRESSED, SAMPLED, Backend, Mode, Shelf, new_schema

from langmem_ext import (
    DamagedRow,
    DeltaSaver,
    LangmemExtError,
    StorageUnavailable,
    Threads,
    copy_saver,
    examine,
    stats,
)
from langmem_ext.storage.rows import compression

TEXT = (
    "The order was shipped last week. Is there anything else that I can help you with, or would you"
    " like to speak to somebody? "
)


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    report: str


def build(saver: Any) -> Any:
    """A graph whose steps write texts, metadata and values that are worth compressing, and some
    that are not.
    """

    def answer(state: State) -> dict[str, Any]:
        turn = len(state["messages"])
        metadata = {"explanation": TEXT * 2, "model_name": "m"}
        message = AIMessage(f"{turn} {TEXT}", response_metadata=metadata, id=f"answer-{turn}")
        return {
            "messages": [message, AIMessage("Yes.", id=f"yes-{turn}")],
            "report": TEXT * 9 + str(turn),
        }

    builder = StateGraph(State).add_node("answer", answer).add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


def config(thread: str = "t") -> Any:
    return {"configurable": {"thread_id": thread}}


def talk(saver: Any, turns: range = range(3)) -> None:
    graph = build(saver)
    for turn in turns:
        said = HumanMessage(f"{turn}: {TEXT}", id=f"human-{turn}")
        graph.invoke({"messages": [said]}, config())


def opened(url: str, *, compress: bool = False, **options: Any) -> Any:
    return closing(DeltaSaver.open(url, compress=compress, **options))


@pytest.fixture
def all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compress whatever can be, however short it is and however little it saves."""
    monkeypatch.setattr(compression, "MIN_BYTES", 1)
    monkeypatch.setattr(compression, "WORTH", 100)


class Switching(Shelf):
    """Opens its database with and without the option, in turns."""

    compress = False

    def _open(self) -> Any:
        self.compress = not self.compress
        return DeltaSaver.open(self.url, compress=self.compress)


@pytest.mark.parametrize("compressed", COMPRESSED, ids=lambda backend: backend.name)
async def test_langgraphs_conformance_suite_passes_with_everything_compressed(
    all_of_it: None, compressed: Backend, mode: Mode, folder: Path
) -> None:
    await conform(compressed, mode, folder)


@pytest.mark.parametrize("compressed", SAMPLED, ids=lambda backend: backend.name)
def test_whatever_is_done_reads_back_as_on_langgraphs_saver_while_the_option_changes(
    all_of_it: None, compressed: Backend, mode: Mode, folder: Path
) -> None:
    drive(compressed, mode, folder, 4, shelf_kind=Switching)


@pytest.mark.parametrize("serde", [None, JsonPlusSerializer()], ids=["own", "langgraph's"])
def test_a_mixed_database_reads_as_one(url: str, serde: Any) -> None:
    reference = InMemorySaver()
    for start, compress in ((0, False), (2, True), (4, False)):
        with opened(url, compress=compress, serde=serde) as saver:
            talk(saver, range(start, start + 2))
    talk(reference, range(6))
    with opened(url, serde=serde) as saver:
        expected, found = (build(place).get_state(config()).values for place in (reference, saver))
        assert found == expected
        assert {type(message.content) for message in found["messages"]} == {str}
        assert_clean(saver)


def test_copying_pruning_moving_and_importing_leave_compressed_rows_as_they_read(
    url: str, durable: Backend, tmp_path: Path
) -> None:
    with (
        opened(url, compress=True) as saver,
        opened(durable.new_url(tmp_path), compress=True) as other,
        opened(durable.new_url(tmp_path)) as plain,
    ):
        talk(saver, range(4))
        whole = {place[1:]: found.checkpoint for place, found in everything(saver, ["t"]).items()}
        saver.copy_thread("t", "copy")
        copied = everything(saver, ["copy"])
        assert {place[1:]: found.checkpoint for place, found in copied.items()} == whole
        for target in (other, plain):
            copy_saver(saver, target)
            assert_moved(saver, target)
        if "://" not in url:  # there, these few fit into a page
            assert stats(other).bytes["values"] < stats(plain).bytes["values"]
        Threads(plain).export_to(tmp_path / "lines.jsonl")
        Threads(other).delete("t")
        Threads(other).import_from(tmp_path / "lines.jsonl", keep_ids=True)
        assert everything(other, ["t"]) == everything(plain, ["t"])
        saver.prune(["t"], keep_last=2)
        kept = {place[1:]: found.checkpoint for place, found in everything(saver, ["t"]).items()}
        assert 0 < len(kept) < len(whole)
        assert kept == {place: whole[place] for place in kept}
        for each in (saver, other, plain):
            assert_clean(each)


def test_what_is_long_is_compressed_and_what_is_short_stays_readable(tmp_path: Path) -> None:
    found = []
    for compress in (True, False):
        path = tmp_path / f"{compress}.db"
        with opened(str(path), compress=compress) as saver:
            talk(saver, range(40))
            found.append(stats(saver))
        with closing(sqlite3.connect(path)) as other:
            shown = other.execute("SELECT text, count(*) FROM conversation GROUP BY 1").fetchall()
            assert ("Yes.", 40) in shown
            assert (f"0: {TEXT}" in dict(shown)) is not compress
    assert found[0].largest[0].bytes < 0.6 * found[1].largest[0].bytes
    assert found[0].file_bytes < 0.8 * found[1].file_bytes
    assert sum(found[0].bytes.values()) == found[0].file_bytes


def test_a_damaged_compressed_row_is_named_or_reads_as_it_was(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.db", tmp_path / "memory.db"
    with opened(str(whole), compress=True) as saver:
        talk(saver)
        expected = repr(list(saver.list(None)))
    data, chance, noticed = whole.read_bytes(), random.Random(4), 0
    marks = [at for at in range(len(data)) if data.startswith(compression.MARK * 2, at)]
    for _ in range(25):
        at = chance.choice(marks) + chance.randrange(60)
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])
        try:
            with DeltaSaver.from_conn_string(str(path)) as saver:
                assert repr(list(saver.list(None))) == expected
        except LangmemExtError:
            noticed += 1
            assert not examine(str(path)).ok
        for left in tmp_path.glob("memory.db*"):
            left.unlink()
    assert noticed > 5


FRAME = compression.MARK + compression.FORMAT


def test_a_forged_frame_is_a_damaged_row_and_a_few_bytes_do_not_become_very_many(
    tmp_path: Path,
) -> None:
    path, many = str(tmp_path / "memory.db"), b"a" * 50_000_000
    with opened(path, compress=True) as saver:
        talk(saver, range(1))
    bomb = FRAME + compression._borrow().compress(many)[4:]
    for frame in (FRAME, compression.MARK + b"\x02" + bytes(20), bomb):
        change(path, "UPDATE value SET body = ?", frame, sealed=True)
        tracemalloc.start()
        try:
            with opened(path) as saver, pytest.raises(DamagedRow, match="value .* of thread"):
                repr(list(saver.list(None)))
            assert tracemalloc.get_traced_memory()[1] < len(many)
        finally:
            tracemalloc.stop()
        assert any(finding.severity == "damaged" for finding in examine(path).findings)


def test_both_ways_to_zstd_write_and_read_the_same() -> None:
    dictionary = files("langmem_ext.storage.rows").joinpath("dictionary-1.zdict").read_bytes()
    own = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    engines = (
        compression._StandardLibrary(own, dictionary),
        compression._Zstandard(import_module("zstandard"), dictionary),
    )
    for body in (TEXT.encode(), TEXT.encode() * 99, bytes(70), b"a" * 3_000_000):
        for writer in engines:
            frame = writer.compress(body)
            assert [reader.decompress(frame, len(body)) for reader in engines] == [body] * 2


WITHOUT = """
import sys
from langmem_ext import DeltaSaver, MissingExtra, examine, stats
from langgraph.checkpoint.base import empty_checkpoint

for name in ("zstandard", "compression.zstd", "backports.zstd"):
    sys.modules[name] = None
compressed, plain, new = sys.argv[1:]

def refused(work):
    try:
        work()
    except MissingExtra as error:
        assert "pip install 'langmem-ext[zstd]'" in str(error), error
        return True
    return False

config = {"configurable": {"thread_id": "t"}}
assert refused(lambda: DeltaSaver.open(new, compress=True))
with DeltaSaver.from_conn_string(compressed) as saver:
    assert refused(lambda: saver.get_tuple(config))
    other = {"configurable": {"thread_id": "other", "checkpoint_ns": ""}}
    checkpoint = empty_checkpoint() | {
        "channel_values": {"text": "long " * 99},
        "channel_versions": {"text": "1"},
    }
    saver.put(other, checkpoint, {}, {"text": "1"})
    assert saver.get_tuple(other).checkpoint["channel_values"] == {"text": "long " * 99}
assert refused(lambda: examine(compressed))
assert refused(lambda: stats(compressed))
with DeltaSaver.from_conn_string(plain) as saver:
    assert saver.get_tuple(config) is not None
assert examine(plain).ok and stats(plain).messages
print("done")
"""


@pytest.mark.process
def test_without_zstd_compressed_rows_are_a_clear_error_and_all_others_work(
    durable: Backend, tmp_path: Path
) -> None:
    compressed, plain = (durable.new_url(tmp_path) for _ in range(2))
    for url in (compressed, plain):
        with opened(url, compress=url is compressed) as saver:
            talk(saver)
    new = new_schema(tmp_path) if durable.name == "postgres" else str(tmp_path / "new.db")
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT, compressed, plain, new],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert result.stdout == "done\n", result.stderr
    with pytest.raises(StorageUnavailable, match="not found: pass the path|has no tables"):
        stats(new)  # not even made
