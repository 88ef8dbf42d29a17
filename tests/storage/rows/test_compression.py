"""Promise: a compressed database is the same database, smaller.

Each row says whether it is compressed, and reading asks for no option.

PostgreSQL compresses long texts itself, so a text stays one there, which everybody can read in SQL:
bytes alone are compressed here.
"""

from __future__ import annotations

import asyncio
import io
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from forged_rows import reseal_rows
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph, add_messages
from move_checks import assert_moved
from patience import PATIENCE_S
from promises.test_conformance import conform
from promises.test_equivalence import drive
from prune_reference import assert_clean, everything, rows
from samples import ShoutedMessage
from savers import COMPRESSED, SAMPLED, Backend, Mode, Shelf, new_schema

from langmem_ext import (
    DamagedRow,
    DeltaSaver,
    MessageLog,
    StorageUnavailable,
    ThreadChatMessageHistory,
    Threads,
    copy_saver,
    examine,
    stats,
)
from langmem_ext.storage.operation import Op, execute, operation
from langmem_ext.storage.rows import compression
from langmem_ext.storage.rows.compression import (
    FORMAT,
    MARK,
    Engine,
    expand,
    expand_text,
    original_length,
    shrink,
    shrink_text,
)
from langmem_ext.storage.schema.dialect import AT, ROW_PLACE

TEXT = (
    "The order was shipped last week. Is there anything else that I can help you with, or would you"
    " like to speak to somebody? "
)


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    report: str
    files: dict[str, str]


def build(saver: Any) -> Any:
    """A graph whose steps write texts, metadata and values that are worth compressing, and some
    that are not.
    """

    def answer(state: State) -> dict[str, Any]:
        turn = len(state["messages"])
        metadata = {"explanation": TEXT * 2, "model_name": "m"}
        message = AIMessage(f"{turn} {TEXT}", response_metadata=metadata, id=f"answer-{turn}")
        files = {f"file-{number}": TEXT for number in range(12)} | {
            f"file-{turn}": f"{turn} {TEXT}"
        }
        return {
            "messages": [message, AIMessage("Yes.", id=f"yes-{turn}")],
            "report": TEXT * 9 + str(turn),
            "files": files,
        }

    return (
        StateGraph(State)
        .add_node("answer", answer)
        .add_edge(START, "answer")
        .compile(checkpointer=saver)
    )


def config(thread: str = "t") -> Any:
    return {"configurable": {"thread_id": thread}}


def talk(saver: Any, turns: range = range(3), thread: str = "t") -> None:
    graph = build(saver)
    for turn in turns:
        graph.invoke(
            {"messages": [HumanMessage(f"{turn}: {TEXT}", id=f"human-{turn}")]}, config(thread)
        )


def opened(url: str, *, compress: bool = False) -> Any:
    return closing(DeltaSaver.open(url, compress=compress))


Place = tuple[str, int, int]
"""Column, thread's number and row's."""

TABLE = {"text": "item", "rest": "item", "body": "value"}


def cells(saver: DeltaSaver) -> dict[Place, Any]:
    """The content of all that may be compressed."""
    return {
        (column, thread, number): content
        for column, table in TABLE.items()
        for thread, number, content in rows(
            saver,
            f"SELECT {ROW_PLACE}, {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY"
            f" {ROW_PLACE}",
        )
    }


def cells_of(column: str, saver: DeltaSaver) -> list[Any]:
    return [content for place, content in cells(saver).items() if place[0] == column]


def is_compressed(content: Any) -> bool:
    return isinstance(content, bytes) and content[:1] == MARK


def kinds(saver: DeltaSaver) -> dict[str, set[bool]]:
    """Whether any of a column is compressed, and any is not."""
    return {
        column: {is_compressed(content) for content in cells_of(column, saver)} for column in TABLE
    }


@pytest.fixture
def all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compress whatever can be, however short it is and however little it saves."""
    monkeypatch.setattr(compression, "MIN_BYTES", 1)
    monkeypatch.setattr(compression, "WORTH", 100)


# -- the same database -----------------------------------------------------------------------------


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


def test_a_mixed_database_reads_as_one(url: str) -> None:
    reference = InMemorySaver()
    for start, compress in ((0, False), (2, True), (4, False)):
        with opened(url, compress=compress) as saver:
            talk(saver, range(start, start + 2))
    talk(reference, range(6))
    with opened(url) as saver:
        assert kinds(saver) == {
            "text": {False} if "://" in url else {True, False},
            "rest": {True, False},
            "body": {True, False},
        }
        expected, found = (build(place).get_state(config()).values for place in (reference, saver))
        assert found == expected
        assert [type(message.content) for message in found["messages"]] == [str] * len(
            found["messages"]
        )
        assert_clean(saver)


def test_copying_pruning_and_moving_leave_compressed_rows_as_they_read(
    backend: Backend, tmp_path: Path
) -> None:
    with (
        opened(backend.new_url(tmp_path), compress=True) as saver,
        opened(backend.new_url(tmp_path), compress=True) as other,
        opened(backend.new_url(tmp_path)) as plain,
    ):
        talk(saver, range(4))
        whole = {place[1:]: found.checkpoint for place, found in everything(saver, ["t"]).items()}
        saver.copy_thread("t", "copy")
        assert {
            place[1:]: found.checkpoint for place, found in everything(saver, ["copy"]).items()
        } == whole
        for target in (other, plain):
            copy_saver(saver, target)
            assert_moved(saver, target)
        assert kinds(other)["body"] == {True}
        assert kinds(plain)["body"] == {False}
        saver.prune(["t"], keep_last=2)
        kept = {place[1:]: found.checkpoint for place, found in everything(saver, ["t"]).items()}
        assert 0 < len(kept) < len(whole)
        assert kept == {place: whole[place] for place in kept}
        saver.delete_thread("copy")
        talk(saver, range(4, 6))
        for each in (saver, other, plain):
            assert_clean(each)


def test_what_is_imported_is_compressed_as_what_is_written_is(
    backend: Backend, tmp_path: Path
) -> None:
    with opened(":memory:") as source, opened(backend.new_url(tmp_path), compress=True) as saver:
        talk(source)
        assert not any(map(is_compressed, cells(source).values()))
        Threads(saver).import_from(
            io.StringIO("".join(Threads(source).export_lines("t"))), keep_ids=True
        )
        assert kinds(saver) == {
            "text": {False} if backend.name == "postgres" else {True, False},
            "rest": {True},
            "body": {True},
        }
        assert build(saver).get_state(config()).values == build(source).get_state(config()).values
        assert_clean(saver)


def test_history_and_a_serializer_of_ones_own_work_on_a_compressed_database(
    durable: Backend, tmp_path: Path
) -> None:
    url = durable.new_url(tmp_path)
    with closing(MessageLog.open(url, compress=True)) as log:
        ThreadChatMessageHistory("t", log).add_messages([HumanMessage(TEXT), AIMessage("short")])
    with closing(MessageLog.open(url)) as log:
        assert [message.content for message in ThreadChatMessageHistory("t", log).messages] == [
            TEXT,
            "short",
        ]
    url = durable.new_url(tmp_path)
    with closing(DeltaSaver.open(url, serde=JsonPlusSerializer(), compress=True)) as saver:
        talk(saver)
        assert True in kinds(saver)["rest"]
    with closing(DeltaSaver.open(url, serde=JsonPlusSerializer())) as saver:
        assert build(saver).get_state(config()).values["messages"][0].content == f"0: {TEXT}"


# -- smaller ---------------------------------------------------------------------------------------


def test_what_is_long_is_compressed_and_what_is_short_stays_readable(
    backend: Backend, tmp_path: Path
) -> None:
    with (
        opened(backend.new_url(tmp_path), compress=True) as saver,
        opened(backend.new_url(tmp_path)) as other,
    ):
        for each in (saver, other):
            talk(each, range(40))
        taken, whole = stats(saver), stats(other)
        assert taken.largest[0].bytes < 0.6 * whole.largest[0].bytes
        if (
            backend.name != "postgres"
        ):  # whose tables other tests have used, and which are mostly pages that begin an index
            assert taken.file_bytes < 0.8 * whole.file_bytes
        plain = cells(other)
        assert not any(map(is_compressed, plain.values()))
        for (column, thread, number), content in cells(saver).items():
            original = plain[column, thread, number]
            length = len(original.encode() if isinstance(original, str) else original)
            assert (
                is_compressed(content) or length < compression.MIN_BYTES or len(content) == length
            )
            assert not is_compressed(content) or len(content) <= compression.WORTH * length
        shown = rows(
            saver, "SELECT text, count(*) FROM conversation GROUP BY text ORDER BY count(*)"
        )
        if backend.name != "postgres":
            assert sorted(shown, key=str) == [("Yes.", 40), (None, 80)]
        else:
            assert {text for text, _ in shown} == {
                "Yes.",
                *(f"{turn}: {TEXT}" for turn in range(40)),
                *answers_of(other),
            }


def answers_of(saver: DeltaSaver) -> list[str]:
    return [
        message.content
        for message in build(saver).get_state(config()).values["messages"]
        if message.type == "ai"
    ]


def test_the_statistics_count_what_is_stored(backend: Backend, tmp_path: Path) -> None:
    found = []
    for compress in (True, False):
        with opened(backend.new_url(tmp_path), compress=compress) as saver:
            talk(saver, range(20))
            found.append(stats(saver))
    assert found[0].bytes["rests"] < found[1].bytes["rests"]
    assert (found[0].bytes["texts"] < found[1].bytes["texts"]) == (backend.name != "postgres")
    assert sum(found[0].bytes.values()) == found[0].file_bytes


# -- the format ------------------------------------------------------------------------------------

MAGIC = compression._MAGIC
CHECKSUM = 0x04
"""The flag of a frame that carries one."""

STORED = (
    "c1c1247a8d01009065642e77737065616b6f6d65626f64793f200bfc4480956931860460ba999e002b15ed48"
    "7ea7689c0c38f3b723cb1ac17a7b43f2"
)


@given(
    st.one_of(
        st.binary(max_size=300),
        st.text(max_size=300).map(str.encode),
        st.builds(lambda n, b: b * n, st.integers(1, 999), st.binary()),
    )
)
def test_what_was_shrunk_expands_to_the_byte(body: bytes) -> None:
    if MARK in body[:2]:
        return  # no msgpack begins so
    stored = shrink(body)
    assert expand(stored) == body
    assert len(stored) <= len(body)
    if stored is not body:
        assert original_length(stored[: compression.HEAD_BYTES]) == len(body)


@pytest.mark.parametrize("length", [64, 255, 256, 257, 65_791, 65_792, 3_000_000])
def test_every_length_is_told_by_the_first_bytes(length: int) -> None:
    body = b"".join(b"%d" % (number % 9973) + b"a" * 300 for number in range(length // 300 + 1))[
        :length
    ]
    stored = shrink(body)
    assert original_length(stored[: compression.HEAD_BYTES]) == length
    assert expand(stored) == body


def test_a_few_bytes_do_not_stand_for_very_many() -> None:
    body = b"a" * 3_000_000
    assert shrink(body) == body
    forged = compression._PREFIX + compression._borrow().compress(body)[4:]
    with pytest.raises(ValueError, match="claims to have 3000000 bytes"):
        expand(forged)


def test_a_text_stays_a_text_or_becomes_a_blob_that_says_so() -> None:
    assert expand_text(shrink_text(TEXT)) == TEXT
    assert isinstance(shrink_text(TEXT), bytes)
    assert shrink_text("Yes.") == "Yes."
    assert expand_text(None) is None
    with pytest.raises(ValueError, match="is invalid"):
        expand_text(b"a blob of somebody else")


def test_what_was_compressed_once_is_read_for_ever() -> None:
    assert (
        sha256(DICTIONARY).hexdigest()
        == "4e5367fa6160e5c7a644b85fbeabff1186b279dbc0e623cc0242bc078d5fa3b1"
    )
    assert expand(bytes.fromhex(STORED)).decode() == TEXT


def test_what_is_larger_than_the_bound_is_stored_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "MAX_BYTES", 1000)
    assert shrink(b"a" * 1001) == b"a" * 1001
    assert is_compressed(shrink(b"a" * 1000))


DICTIONARY = files("langmem_ext.storage.rows").joinpath("dictionary-1.zdict").read_bytes()


def engines() -> list[Engine]:
    """Both ways to zstd."""
    own = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    return [
        compression._StandardLibrary(own, DICTIONARY),
        compression._Zstandard(import_module("zstandard"), DICTIONARY),
    ]


def test_both_ways_to_zstd_write_and_read_the_same() -> None:
    own, other = engines()
    for body in (TEXT.encode(), TEXT.encode() * 99, bytes(70), b"a" * 3_000_000):
        for writer in (own, other):
            frame = writer.compress(body)
            assert own.decompress(frame, len(body)) == other.decompress(frame, len(body)) == body


@pytest.mark.parametrize("body", [TEXT.encode(), TEXT.encode() * 99], ids=len)
def test_no_bytes_are_spent_on_a_checksum_that_the_row_has_already(body: bytes) -> None:
    for engine in engines():
        frame = engine.compress(body)
        assert not frame[len(MAGIC)] & CHECKSUM
        assert len(with_checksum(body)) == len(frame) + 4 - len(MAGIC) + len(MARK + FORMAT)


@pytest.mark.parametrize("engine", engines(), ids=lambda engine: type(engine).__name__)
@pytest.mark.parametrize(
    "body", [TEXT.encode(), TEXT.encode() * 20, bytes(range(256)) * 3, bytes(1000)], ids=len
)
def test_a_frame_with_a_checksum_is_read_and_compared_with_it(
    engine: Engine, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "_borrow", lambda: engine)
    stored = with_checksum(body)
    assert expand(stored) == body
    assert original_length(stored[: compression.HEAD_BYTES]) == len(body)
    read = 0
    for damaged in flips(
        stored, [0, 1, *range(3, 8 * len(stored))]
    ):  # with bit 2, the mark is that of a long `bytes` value
        try:
            found = expand(damaged)
        except Exception:
            continue
        assert found == body
        read += 1
    assert read <= 2  # bits that mean nothing


def with_checksum(body: bytes) -> bytes:
    """A compressed column whose frame carries a checksum of what it holds."""
    zstandard = import_module("zstandard")
    options = {
        "compression_level": compression.LEVEL,
        "write_content_size": True,
        "write_checksum": True,
        "write_dict_id": False,
    }
    dictionary = zstandard.ZstdCompressionDict(DICTIONARY, dict_type=zstandard.DICT_TYPE_FULLDICT)
    writer = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(**options), dict_data=dictionary
    )
    frame = writer.compress(body)
    assert frame[len(MAGIC)] & CHECKSUM
    return bytes(MARK + FORMAT + frame[len(MAGIC) :])


def test_threads_and_tasks_compress_at_the_same_time() -> None:
    bodies = [f"{number} {TEXT * (number % 40 + 1)}".encode() for number in range(400)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda body: expand(shrink(body)), bodies)) == bodies

    async def together() -> list[bytes]:
        return await asyncio.gather(
            *(asyncio.to_thread(lambda body=body: expand(shrink(body))) for body in bodies)
        )

    assert asyncio.run(together()) == bodies


# -- damage ----------------------------------------------------------------------------------------


def flips(content: bytes, bits: Iterable[int]) -> Iterator[bytes]:
    """The content with each of these bits flipped."""
    for bit in bits:
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        yield bytes(damaged)


@pytest.mark.parametrize(
    "body", [TEXT.encode(), TEXT.encode() * 20, bytes(range(256)) * 3, bytes(1000)], ids=len
)
def test_a_flipped_bit_is_an_error_or_gives_as_many_bytes_as_the_frame_says(body: bytes) -> None:
    stored = shrink(body)
    for damaged in flips(stored, range(8, 8 * len(stored))):
        try:
            found = expand(damaged)
        except Exception:
            continue
        assert len(found) == original_length(damaged)


@pytest.fixture
def whole(backend: Backend, tmp_path: Path) -> Iterator[DeltaSaver]:
    with opened(backend.new_url(tmp_path), compress=True) as saver:
        talk(saver, range(1))
        yield saver


NAMED = re.compile(
    r"(value|values|message) .* of thread number -?\d+\b|checkpoint .* of thread 't'"
)


def replaced(saver: DeltaSaver, place: Place, content: Any) -> None:
    """Have a row hold something else, behind the saver's back."""
    saver.log.run(_replaced(*place, content), write=True)
    saver.log.caches.forget()


@operation
def _replaced(column: str, thread: int, number: int, content: Any) -> Op[None]:
    yield from execute(
        f"UPDATE {TABLE[column]} SET {column} = :content WHERE {AT}",
        thread=thread,
        number=number,
        content=content,
    )


def test_a_flipped_bit_in_a_row_is_a_damaged_row_that_is_named(whole: DeltaSaver) -> None:
    expected = everything(whole)
    tried = 0
    for place, content in cells(whole).items():
        if not is_compressed(content):
            continue
        for damaged in flips(content, [*range(8), *range(8, 8 * len(content), 41)]):
            replaced(whole, place, damaged)
            assert not examine(whole).ok
            with pytest.raises(DamagedRow, match=NAMED.pattern):
                assert (
                    everything(whole) == expected
                )  # a list decodes values when they are looked at
            tried += 1
        replaced(whole, place, content)
    assert tried > 50
    assert everything(whole) == expected


def claiming(length: int, content: bytes = b"") -> bytes:
    """A frame that claims to hold so many bytes."""
    return MARK + FORMAT + b"\xe0" + length.to_bytes(8, "little") + content


FORGED: dict[str, Callable[[bytes], bytes]] = {
    "gigabytes": lambda stored: claiming(8 << 30, stored[4:]),
    "more than it holds": lambda stored: claiming(1 << 20, stored[4:]),
    "no length": lambda stored: MARK + FORMAT + b"\x00" + stored[3:],
    "nothing": lambda stored: MARK,
    "nothing but its format": lambda stored: MARK + FORMAT,
    "half": lambda stored: stored[: len(stored) // 2],
    "more behind its end": lambda stored: stored + b"more",
    "a newer format": lambda stored: MARK + b"\x02" + stored[2:],
    "another dictionary": lambda stored: (
        MARK + FORMAT + bytes([stored[2] | 1]) + b"\x07" + stored[3:]
    ),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_a_forged_frame_is_a_damaged_row_that_is_named(forgery: str, whole: DeltaSaver) -> None:
    tried = 0
    for place, content in cells(whole).items():
        if is_compressed(content):
            replaced(whole, place, FORGED[forgery](content))
            with pytest.raises(DamagedRow, match=NAMED.pattern):
                everything(whole)
            assert any(finding.severity == "damaged" for finding in examine(whole).findings)
            assert stats(whole).messages == 3
            replaced(whole, place, content)
            tried += 1
    assert tried > 1


def test_a_repair_leaves_what_is_compressed_as_it_stands(whole: DeltaSaver) -> None:
    before, expected = cells(whole), everything(whole)
    assert any(map(is_compressed, before.values()))
    whole.log.run(operation(execute)("UPDATE item SET tokens = 99999"), write=True)
    assert examine(whole, fix=True).ok
    assert examine(whole).findings == ()
    assert cells(whole) == before
    whole.log.caches.forget()
    assert everything(whole) == expected


def test_a_text_that_is_derived_again_is_compressed_where_it_was(url: str) -> None:
    for compress in (True, False):
        with opened(url, compress=compress) as saver:
            build(saver).update_state(
                config(), {"messages": [ShoutedMessage(TEXT)]}, as_node="answer"
            )
    with opened(url) as saver:
        before = cells(saver)
        texts = {place: text for place, text in before.items() if place[0] == "text"}
        assert [is_compressed(text) for text in texts.values()] == [
            saver.log.driver.compresses is False,
            False,
        ]
        for place, text in texts.items():
            replaced(
                saver,
                place,
                (shrink_text if is_compressed(text) else str)(TEXT + "What it never said."),
            )
        reseal_rows(saver)
        assert [finding.kind for finding in examine(saver).findings] == ["column", "column"]
        assert examine(saver, fix=True).ok
        assert examine(saver).findings == ()
        assert cells(saver) == before


# -- without zstd ----------------------------------------------------------------------------------

WITHOUT = """
import sys
import langmem_ext
from langmem_ext import DeltaSaver, MissingExtra, examine, stats
from langchain_core.messages import HumanMessage
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
    assert refused(lambda: list(saver.list(None)))
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


@pytest.fixture(autouse=True)
def fresh_engines() -> Iterator[None]:
    """No engine that a test made of something else is used by another."""
    yield
    compression._idle.clear()
