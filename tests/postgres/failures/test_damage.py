"""Promise: damaged or forged rows on PostgreSQL are a clear error that names them; nobody else's
words are shown, and no code is run.

The twin of the tests of damaged files: whole pages are the server's own affair, and what a column's
type does not take needs no test. Frames of compressed rows: tests/storage/rows/test_compression.py;
what the doctor says of damage: tests/storage/damage/test_doctor.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from forged_rows import ID, REFERENCES, assert_named, reseal_rows
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from prune_reference import rows
from savers import empty_tables

from langmem_ext import DamagedRow, DeltaSaver, LangmemExtError, ThreadChatMessageHistory, examine
from langmem_ext.storage.operation import Op, execute, operation
from langmem_ext.storage.rows.ids import thread_number

OPTIONS = ormsgpack.OPT_NON_STR_KEYS
FORGED, WHOLE = thread_number("forged"), thread_number("whole")

KEYS = {
    "item": ("thread", "number"),
    "value": ("thread", "number"),
    "checkpoint": ("thread", "namespace", "id"),
    "pending_write": ("thread", "namespace", "checkpoint", "task"),
    "word": ("thread", "number"),
    "namespace": ("thread", "number"),
}
DERIVED = {("item", "tokens")}
"""Columns that nobody reads who restores a checkpoint; the doctor compares them."""


def at(thread: str, checkpoint_id: str | None = None) -> Any:
    return {
        "configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint_id}
    }


def checkpoint(values: dict[str, Any], id: str = ID) -> Any:
    versions = dict.fromkeys(values, "1")
    return {
        "v": 4,
        "id": id,
        "ts": "now",
        "channel_values": values,
        "channel_versions": versions,
        "versions_seen": {},
    }


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(empty_tables(tmp_path)) as saver:
        yield saver


def change(saver: DeltaSaver, statement: str, *, sealed: bool, **params: Any) -> None:
    """Change rows behind the saver's back; `sealed`: with checks that match, as one who forges
    writes them.
    """

    @operation
    def changed() -> Op[None]:
        yield from execute(statement, **params)

    saver.log.run(changed(), write=True)
    if sealed:
        reseal_rows(saver)
    saver.log.caches.forget()


def read(saver: DeltaSaver, thread: str) -> Any:
    saver.log.caches.forget()
    found = saver.get_tuple(at(thread))
    return None if found is None else found.checkpoint["channel_values"]


# -- changed columns -------------------------------------------------------------------------------


@pytest.fixture
def varied(saver: DeltaSaver) -> DeltaSaver:
    """A thread with a row of every kind: metadata of messages, blocks, a value of its own, a
    namespace, pending writes.
    """
    blocks: Any = [
        {"type": "text", "text": "some words"},
        {"type": "image_url", "image_url": {"url": "x"}},
    ]
    said = [
        HumanMessage("hello", id="a", name="Ann"),
        AIMessage(
            blocks,
            id="b",
            response_metadata={"model": "one", "finish": "stop", "more": list(range(9))},
        ),
        ToolMessage("found", id="c", tool_call_id="call"),
    ]
    for namespace in ("", "child:1"):
        place: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": namespace}}
        first = saver.put(
            place,
            checkpoint({"messages": said, "big": ["x"] * 50}),
            {"step": 1},
            {"messages": "1", "big": "1"},
        )
        saver.put_writes(first, [("messages", [HumanMessage("more")]), ("big", ["y"] * 50)], "task")
        saver.put(
            first, checkpoint({"messages": said[:2]}, f"{ID[:-1]}2"), {"step": 2}, {"messages": "2"}
        )
    return saver


def other(value: Any) -> Any:
    """A value of the same kind that differs a little."""
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:] if value else b"\x01"
    if isinstance(value, str):
        return chr(ord(value[0]) ^ 1) + value[1:] if value else "x"
    return value + 1


def something(column: str) -> Any:
    """A value for a column that has none."""
    bare = {"message_id": b"x", "rest": b"\x80", "parent": bytes(16), "given_id": bytes(16)}
    return bare.get(column, "x" if column in ("name", "text", "tool_call_id") else 1)


@pytest.mark.parametrize("table", KEYS)
def test_every_column_of_every_row_that_is_changed_is_noticed(
    table: str, varied: DeltaSaver
) -> None:
    key = KEYS[table]
    names = [
        name
        for (name,) in rows(
            varied,
            "SELECT CAST(attname AS text) FROM pg_attribute WHERE attrelid ="
            f" CAST('{schema_of(varied)}.{table}' AS regclass) AND attnum > 0 AND NOT attisdropped",
        )
    ]
    where = " AND ".join(f"{name} = :{name}" for name in key)
    found = [
        dict(zip(names, row, strict=True))
        for row in rows(varied, f"SELECT {', '.join(names)} FROM {table}")
    ]
    assert found
    for row in found:
        place = {name: row[name] for name in key}
        for name in sorted(row.keys() - {*key}):
            changed = something(name) if row[name] is None else other(row[name])
            change(
                varied,
                f"UPDATE {table} SET {name} = :changed WHERE {where}",
                sealed=False,
                changed=changed,
                **place,
            )
            assert [one for one in examine(varied).findings if one.severity != "note"], (
                name,
                place,
            )
            varied.log.caches.forget()
            if (table, name) not in DERIVED:
                with pytest.raises(DamagedRow):
                    repr(list(varied.list(None)))
            change(
                varied,
                f"UPDATE {table} SET {name} = :changed WHERE {where}",
                sealed=False,
                changed=row[name],
                **place,
            )
    assert examine(varied).ok


def schema_of(saver: DeltaSaver) -> str:
    schema: str = saver.log.driver.server.schema  # type: ignore[attr-defined]
    return schema


def test_a_checkpoint_that_vanishes_is_noticed_by_the_one_that_followed_it(
    varied: DeltaSaver,
) -> None:
    change(varied, "DELETE FROM checkpoint WHERE namespace = 0 AND step = 1", sealed=False)
    with pytest.raises(DamagedRow, match=f"{ID[:-1]}2"):
        read(varied, "t")
    assert {name for finding in examine(varied).findings for name in finding.checkpoints} == {
        f"{ID[:-1]}2"
    }


def flipped(body: bytes, bit: int) -> bytes:
    return body[: bit // 8] + bytes([body[bit // 8] ^ 1 << bit % 8]) + body[bit // 8 + 1 :]


def test_the_doctor_names_a_checkpoint_whose_id_has_changed(varied: DeltaSaver) -> None:
    stored = rows(varied, "SELECT id FROM checkpoint WHERE namespace = 0")
    assert len(stored) == 2
    for (key,) in stored:
        for bit in range(
            122, 128
        ):  # those that leave it beside the other: the server sorts what is updated
            change(
                varied,
                "UPDATE checkpoint SET id = :new WHERE namespace = 0 AND id = :key",
                sealed=False,
                key=key,
                new=flipped(key, bit),
            )
            assert [one for one in examine(varied).findings if one.severity != "note"]
            change(
                varied,
                "UPDATE checkpoint SET id = :key WHERE namespace = 0 AND id = :new",
                sealed=False,
                key=key,
                new=flipped(key, bit),
            )
    assert examine(varied).ok


@pytest.mark.parametrize("column", ["checkpoint", "task"])
def test_the_doctor_names_pending_writes_in_whose_key_a_bit_has_flipped(
    column: str, varied: DeltaSaver
) -> None:
    expected = list(varied.list(None))
    keys = rows(varied, f"SELECT namespace, {column} FROM pending_write")
    assert len(keys) == 2
    for space, key in keys:
        for bit in range(0, 8 * len(key), 5):
            statement = (
                f"UPDATE pending_write SET {column} = :new WHERE namespace = :space AND {column} ="
                " :old"
            )
            change(varied, statement, sealed=False, space=space, old=key, new=flipped(key, bit))
            assert [one for one in examine(varied).findings if one.severity != "note"], bit
            change(varied, statement, sealed=False, space=space, old=flipped(key, bit), new=key)
    assert list(varied.list(None)) == expected


def test_a_thread_with_a_damaged_message_goes_on_from_before_it(saver: DeltaSaver) -> None:
    said = [HumanMessage(f"{number}", id=f"m{number}") for number in range(4)]
    first = saver.put(at("t"), checkpoint({"messages": said[:2]}), {"step": 1}, {"messages": "1"})
    second = saver.put(
        first, checkpoint({"messages": said}, f"{ID[:-1]}2"), {"step": 2}, {"messages": "2"}
    )
    change(saver, "UPDATE item SET text = 'never said' WHERE text = '3'", sealed=False)
    with pytest.raises(DamagedRow, match="message 3"):
        saver.get_tuple(second)
    instead = [*said[:2], HumanMessage("instead", id="new")]
    third = saver.put(
        first, checkpoint({"messages": instead}, f"{ID[:-1]}3"), {"step": 2}, {"messages": "2"}
    )
    saver.log.caches.forget()
    found = saver.get_tuple(third)
    assert found is not None
    assert [message.content for message in found.checkpoint["channel_values"]["messages"]] == [
        "0",
        "1",
        "instead",
    ]


# -- forged rows -----------------------------------------------------------------------------------


@pytest.fixture
def forged(saver: DeltaSaver) -> DeltaSaver:
    """Two threads of one checkpoint each; a test changes the rows of `forged`."""
    for name in ("forged", "whole"):
        messages = [HumanMessage(f"{name} {number}", id=f"{name}{number}") for number in range(5)]
        saver.put(
            at(name),
            checkpoint({"messages": messages, "big": [name] * 50}),
            {"step": 1},
            {"messages": "1", "big": "1"},
        )
    return saver


def forge_header(saver: DeltaSaver, fields: list[Any]) -> None:
    body = ormsgpack.packb(fields)
    change(
        saver,
        "UPDATE checkpoint SET body = :body WHERE thread = :thread",
        sealed=True,
        body=body,
        thread=FORGED,
    )


def header_of(saver: DeltaSaver) -> list[Any]:
    [(body,)] = rows(saver, f"SELECT body FROM checkpoint WHERE thread = {FORGED}")
    fields: list[Any] = ormsgpack.unpackb(body)
    return fields


@pytest.mark.parametrize("reference", REFERENCES)
def test_a_forged_reference_is_an_error_that_names_its_checkpoint(
    reference: str, forged: DeltaSaver
) -> None:
    fields = header_of(forged)
    fields[2][0] = REFERENCES[reference]
    forge_header(forged, fields)
    assert_named(forged, read, examine)


def test_a_header_of_a_newer_release_is_an_error(forged: DeltaSaver) -> None:
    forge_header(forged, [*header_of(forged)[:3], None, None, "news"])
    assert_named(forged, read, examine)


ONE = "thread = :thread AND number = 1"
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "an unknown role": (f"UPDATE item SET role = :is WHERE {ONE}", {"is": 99}),
    "a negative role": (f"UPDATE item SET role = :is WHERE {ONE}", {"is": -1}),
    "a rest that is none": (f"UPDATE item SET rest = :is WHERE {ONE}", {"is": b"text"}),
    "a field of a newer release": (
        f"UPDATE item SET rest = :is WHERE {ONE}",
        {"is": ormsgpack.packb({99: 1}, option=OPTIONS)},
    ),
    "a message kept whole that is none": (
        f"UPDATE item SET role = NULL, rest = :is WHERE {ONE}",
        {"is": ormsgpack.packb([1, 2, 3])},
    ),
    "a message that is not there": (f"DELETE FROM item WHERE {ONE}", {}),
    "another thread's message": (f"UPDATE item SET number = number + 100 WHERE {ONE}", {}),
    "a value of a newer release": (
        "UPDATE value SET body = :is WHERE thread = :thread",
        {"is": ormsgpack.packb(ormsgpack.Ext(99, b""))},
    ),
    "a value that names no message": (
        "UPDATE value SET body = :is WHERE thread = :thread",
        {"is": ormsgpack.packb(ormsgpack.Ext(64, b"\x07"))},
    ),
    "an empty value": ("UPDATE value SET body = :is WHERE thread = :thread", {"is": b""}),
    "a word in another's place": ("UPDATE checkpoint SET shape = label WHERE thread = :thread", {}),
    "a word that is none": ("UPDATE word SET body = :is WHERE thread = :thread", {"is": b"\xc1"}),
    "a label that is none": ("UPDATE checkpoint SET label = shape WHERE thread = :thread", {}),
    "no label": ("UPDATE checkpoint SET label = :is WHERE thread = :thread", {"is": 99}),
}


@pytest.mark.parametrize("sealed", [True, False], ids=["forged", "damaged"])
@pytest.mark.parametrize("row", ROWS)
def test_a_forged_row_is_an_error_that_names_its_checkpoint(
    row: str, sealed: bool, forged: DeltaSaver
) -> None:
    statement, params = ROWS[row]
    change(forged, statement, sealed=sealed, thread=FORGED, **params)
    assert_named(forged, read, examine)


@pytest.mark.parametrize("sealed", [True, False], ids=["forged", "damaged"])
def test_forged_pending_writes_are_an_error_that_names_their_checkpoint(
    sealed: bool, forged: DeltaSaver
) -> None:
    forged.put_writes(
        at("forged", ID), [("messages", [HumanMessage("more")]), ("big", ["y"] * 50)], "task"
    )
    for body in (b"", b"\xc1", ormsgpack.packb([[1]]), ormsgpack.packb(7)):
        change(
            forged,
            "UPDATE pending_write SET body = :body WHERE thread = :thread",
            sealed=sealed,
            body=body,
            thread=FORGED,
        )
        assert_named(forged, read, examine)


def test_a_row_that_comes_to_stand_in_another_thread_is_no_row_of_it(forged: DeltaSaver) -> None:
    change(forged, f"DELETE FROM item WHERE {ONE}", sealed=False, thread=WHOLE)
    change(
        forged,
        f"UPDATE item SET thread = :whole WHERE {ONE}",
        sealed=False,
        thread=FORGED,
        whole=WHOLE,
    )
    with pytest.raises(DamagedRow, match="message 1 of thread"):
        read(forged, "whole")


@pytest.mark.parametrize(
    "column", ["next_item", "next_value", "next_word", "next_namespace", "generation"]
)
@pytest.mark.parametrize("value", [-1, 0, 1 << 30])
def test_a_forged_counter_never_leads_a_write_to_another_thread(
    column: str, value: int, forged: DeltaSaver
) -> None:
    change(
        forged,
        f"UPDATE thread SET {column} = :is WHERE number = :thread",
        sealed=False,
        thread=FORGED,
        **{"is": value},
    )
    with suppress(LangmemExtError):  # the server itself refuses numbers that are there
        ThreadChatMessageHistory("forged", forged).add_messages([HumanMessage("more")])
    examine(forged, fix=True)
    forged.log.caches.forget()
    ThreadChatMessageHistory("forged", forged).add_messages([HumanMessage("still more")])
    assert [finding for finding in examine(forged).findings if finding.severity != "note"] == []
    assert [message.content for message in read(forged, "whole")["messages"]] == [
        f"whole {number}" for number in range(5)
    ]


CALLS = [
    ("os", "system", "touch {path}"),
    ("os", "getenv", "SECRET"),
    ("subprocess", "getoutput", "touch {path}"),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: ".".join(call[:2]))
def test_a_forged_value_runs_nothing_and_imports_nothing(
    call: tuple[str, str, str], saver: DeltaSaver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "do not tell")
    touched = tmp_path / "touched"
    module, name, argument = call[0], call[1], call[2].format(path=touched)
    saver.put(at("t"), checkpoint({"big": ["x"] * 50}), {"step": 1}, {"big": "1"})
    for code in range(9):
        for payload in (argument, [argument], {"command": argument}):
            for more in ([], ["__call__"], ["model_validate_json"]):
                body = ormsgpack.packb(
                    ormsgpack.Ext(code, ormsgpack.packb([module, name, payload, *more]))
                )
                change(
                    saver, "UPDATE value SET body = :body WHERE number = 0", sealed=True, body=body
                )
                with suppress(LangmemExtError):
                    assert "do not tell" not in repr(read(saver, "t"))
                examine(saver)
    assert not touched.exists()
