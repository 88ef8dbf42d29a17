"""Promise: what somebody sends, a file or a database, takes memory in proportion to its bytes, or
is refused: it ends no process.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import ormsgpack
import pytest
from carried import bring_in, exported
from hostile import (
    Lines,
    Reader,
    add_messages,
    add_value,
    add_word,
    config,
    edited,
    export,
    newest,
    of_kind,
    packed,
    put,
    refer,
    repeated,
    replaced,
    text_of,
    unpacked,
    widen,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.types import Send
from prune_reference import rows
from samples import Order

from langmem_ext import DamagedRow, DeltaSaver, InvalidInput, MalformedExport, Threads, examine
from langmem_ext.log import codec
from langmem_ext.messages import size_limits
from langmem_ext.messages.manifest import LONGEST_LIST
from langmem_ext.messages.size_limits import MEMORY
from langmem_ext.storage.checkpoints import get as read_ops
from langmem_ext.storage.inspect import size_limits as inspect_limits
from langmem_ext.storage.rows import checkpoint as header
from langmem_ext.threads.export import reader as export_reader

SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"
LONG: Final = "x" * 1_000_000
MARK: Final = packed("MARK")
NOTHING: Final = b"\xc0"


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    reader = Reader()
    yield reader
    reader.close()


TAKEN: Final = 3 * MEMORY // 2
"""Bytes of memory that a reading may take."""


def nested(*levels: int, code: int = 7, value: bytes = NOTHING) -> bytes:
    """A packed value: an extension type with so many lists in each other, in which the next one is,
    and so on.
    """
    for lists in reversed(levels):
        value = packed(ormsgpack.Ext(code, b"\x91" * lists + value))
    return value


def name_a_value_everywhere(lines: Lines) -> None:
    widen(lines, [[add_value(lines, packed(LONG))]] * 3000)


def change_a_value_everywhere(lines: Lines) -> None:
    """Many large dicts that have all but a key in common."""
    base = add_value(lines, packed([0, [packed("long"), packed(LONG)], []]))
    widen(
        lines,
        [
            [[base, add_value(lines, packed([0, [packed("k"), packed(number)], []]))]]
            for number in range(300)
        ],
    )


def change_a_value_again_and_again(lines: Lines) -> None:
    base, delta = (add_value(lines, packed([0, 1, packed(text)])) for text in ("a", LONG))
    refer(lines, [[base, *[delta] * 3000]])


def write_it_in_every_task(lines: Lines) -> None:
    [line] = of_kind(lines, "write")
    shape = add_word(lines, packed([["", 0, "messages"]]))
    lines.remove(line)
    for number in range(3000):
        lines.append(
            line
            | {
                "task": f"task{number:06}",
                "shape": shape,
                "body": text_of(packed([[None, 0, 1]])),
            }
        )


def share_many_keys(lines: Lines) -> None:
    """Messages of a few bytes whose keys, in a word, are many."""
    word = add_word(lines, packed({1: {f"k{number}": [{}] * 8 for number in range(100_000)}}))
    add_messages(lines, 2000, role="human", text="a", shape=word, rest=text_of(packed([])))
    refer(lines, [None, 20, 2020])


def share_a_graph(lines: Lines) -> None:
    """Checkpoints of a few bytes whose channels, in a word, are many."""
    count = 300_000
    word = add_word(lines, packed([[f"c{number}" for number in range(count)], count, []]))
    pattern = add_word(lines, packed([4, bytes(count), b"", None, b"", None]))
    line = newest(lines)
    time, versions, *_ = unpacked(line["body"])
    for number in range(200):
        id_ = f"1fffffff-ffff-6fff-8fff-{number:012}"
        body = text_of(packed([time, versions, []]))
        lines.append(
            line | {"id": id_, "parent": "", "shape": word, "pattern": pattern, "body": body}
        )


def renumber_the_last(lines: Lines) -> None:
    """A list from the first message to one of a number far away."""
    of_kind(lines, "message")[-1]["number"] = LONGEST_LIST - 1
    lines[0]["next"][2] = LONGEST_LIST
    refer(lines, [None, 0, LONGEST_LIST])


def nest_a_label(lines: Lines) -> None:
    text = '{"a":' * 50_000 + "1" + "}" * 50_000
    line = next(line for line in of_kind(lines, "word") if "text" in line)
    line["text"] = text


def long_rest(value: bytes) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        line = of_kind(lines, "message")[-1]
        line.pop("shape")
        line["rest"] = text_of(b"\x81\x01" + value)  # additional_kwargs

    return change


def in_a_value(value: bytes) -> Callable[[Lines], None]:
    return lambda lines: replaced(lines, MARK, value)


REFUSED: Final[dict[str, tuple[Callable[[Lines], Any], dict[str, Any]]]] = {
    "a list of the same messages": (
        lambda lines: refer(lines, [None, *([0, 1000] * 16_775)]),
        {"messages": 1000},
    ),
    "a shorter one": (lambda lines: refer(lines, [None, *([0, 1000] * 399)]), {"messages": 1000}),
    "a list of a long message": (
        lambda lines: refer(lines, [None, *([0, 1] * 1500)]),
        {"text": LONG},
    ),
    "one whose messages have got ids since": (
        lambda lines: refer(lines, [None, *([0, 1] * 1500), [0, 1500]]),
        {"text": LONG},
    ),
    "more messages without ids than there are": (
        lambda lines: refer(lines, [None, 0, LONGEST_LIST, [0, LONGEST_LIST]]),
        {},
    ),
    "the same in many channels": (
        lambda lines: widen(lines, [[None, 0, LONGEST_LIST, [0, LONGEST_LIST]]] * 1000),
        {},
    ),
    "a list to a number far away": (renumber_the_last, {}),
    "a long message in many channels": (
        lambda lines: widen(lines, [[None, 0, 1]] * 3000),
        {"text": LONG},
    ),
    "a long message in many values": (
        lambda lines: widen(lines, [[packed(ormsgpack.Ext(64, b"\0")), 0, 1]] * 3000),
        {"text": LONG},
    ),
    "a long message in what many tasks wrote": (write_it_in_every_task, {"text": LONG}),
    "a long value in many channels": (name_a_value_everywhere, {}),
    "large dicts with a key of their own": (change_a_value_everywhere, {}),
    "a list with the same at its end": (change_a_value_again_and_again, {}),
    "a value that refers to a message again and again": (
        in_a_value(repeated(packed(ormsgpack.Ext(64, b"\0")), 200_000)),
        {"text": LONG},
    ),
    "less often": (in_a_value(repeated(packed(ormsgpack.Ext(64, b"\0")), 1500)), {"text": LONG}),
    "to its text": (in_a_value(repeated(packed(ormsgpack.Ext(66, b"\0")), 1500)), {"text": LONG}),
    "lists in each other": (in_a_value(b"\x91" * 100_000 + NOTHING), {}),
    "lists that say to be long": (in_a_value(b"\xdd\xff\xff\xff\xff" * 100), {}),
    "a dict that says to be long": (in_a_value(b"\xdf\xff\xff\xff\xff\x01\x01"), {}),
    "extension types in each other": (in_a_value(nested(*[0] * 3000)), {}),
    "with lists": (in_a_value(nested(*[1000] * 20)), {}),
    "a few of them with very many": (in_a_value(nested(*[1000] * 7)), {}),
    "with much in the innermost": (
        in_a_value(nested(*[0] * 300, value=packed(bytes(1_500_000)))),
        {},
    ),
    "keys that many messages share": (share_many_keys, {}),
    "a graph that many checkpoints share": (share_a_graph, {}),
    "metadata in itself": (nest_a_label, {}),
    "a message with lists in each other": (long_rest(b"\x81\xa1a" * 900 + NOTHING), {}),
    "a message with extension types in each other": (long_rest(nested(*[1000] * 20)), {}),
}
"""What reads as much more than it is, or as what no stack has room for."""


@pytest.mark.process
@pytest.mark.parametrize("case", REFUSED)
def test_what_would_fill_the_memory_is_refused_and_damaged_where_it_is_stored(
    reader: Reader, case: str
) -> None:
    change, sizes = REFUSED[case]
    found = reader.read(edited(export(**sizes), change))
    assert found["refused"] is not None
    assert not found["stored"] or found["damaged"] or found["large"], found
    assert (
        set(found.get("errors", {})) & {"get_tuple", "list"}
        or not found["stored"]
        or found["large"]
    ), found
    assert found["taken"] < TAKEN, found


def test_a_read_names_the_row_on_each_kind_of_database(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow_little(monkeypatch)
    forged = edited(export(), lambda lines: refer(lines, [None, *([0, 20] * 500)]))
    with DeltaSaver.open(url) as saver:
        with pytest.raises(MalformedExport, match="names the same messages"):
            bring_in(saver, forged)
        monkeypatch.setattr(export_reader, "_examine", lambda *given: None)
        bring_in(saver, forged, keep_ids=True)
        [newest_id, *_] = [
            finding.checkpoints[0]
            for finding in examine(saver).findings
            if "names the same messages" in finding.message
        ]
        saver.log.caches.forget()
        with pytest.raises(
            DamagedRow, match=f"checkpoint {newest_id} of thread 't' names the same messages"
        ):
            saver.get_tuple(config("t"))
        with pytest.raises(DamagedRow, match="names the same messages"):
            Threads(saver).messages("t")
        assert saver.get_tuple(config("other")) is not None


def allow_little(patch: pytest.MonkeyPatch) -> None:
    """Let what may be read together be small."""
    for module in (size_limits, codec, read_ops, inspect_limits):
        patch.setattr(module, "SMALL", 2000)
    patch.setattr(size_limits, "MEMORY", 2_000_000)


# -- whatever somebody writes ----------------------------------------------------------------------

LEAVES: Final = st.one_of(
    st.sampled_from(
        [
            NOTHING,
            b"\x90",
            b"\x80",
            b"\xa0",
            b"\xc3",
            packed(2**64 - 1),
            packed(1.5),
            packed("a" * 70),
            packed(b"\xc1\xc1"),
            MARK,
        ]
    ),
    st.sampled_from(
        [
            b"\xdd\xff\xff\xff\xff",
            b"\xdf\x00\xff\xff\xff",
            b"\xc6\xff\xff\xff\xff",
            b"\xc9\xff\xff\xff\xff\x07",
            b"\xc1",
            b"",
        ]
    ),
    st.builds(
        lambda code, at: packed(ormsgpack.Ext(code, packed(at))),
        st.sampled_from([64, 66]),
        st.integers(-1, 4),
    ),
    st.builds(lambda size: packed("y" * size), st.sampled_from([10_000, 300_000])),
)
KINDS: Final = st.sampled_from(
    [
        ("langchain_core.messages.human", "HumanMessage"),
        ("collections", "deque"),
        ("langgraph.types", "Send"),
        ("builtins", "set"),
        ("os", "system"),
    ]
)
MOST: Final = 400_000
"""Bytes of a value, and what of it may be written again and again."""


def many(value: bytes, count: int) -> bytes:
    return repeated(value, min(count, MOST // (len(value) + 1)))


def extension(code: int, kind: tuple[str, str], value: bytes, method: bool) -> bytes:
    payload = (
        value
        if code in (7, 8)
        else b"".join(
            [
                b"\x94" if method else b"\x93",
                packed(kind[0]),
                packed(kind[1]),
                value,
                packed("x") * method,
            ]
        )
    )
    return packed(ormsgpack.Ext(code, payload))


def deeper(inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """A value with another one in it, perhaps very often, or very deep."""
    counts = st.sampled_from([1, 2, 15, 16, 255, 1000, 70_000])
    return st.one_of(
        st.builds(many, inner, counts),
        st.builds(
            lambda depth, value: b"\x91" * depth + value,
            st.sampled_from([1, 20, 255, 1022, 5000]),
            inner,
        ),
        st.builds(
            lambda depth, value: b"\x81\xa1a" * depth + value,
            st.sampled_from([1, 250, 1000]),
            inner,
        ),
        st.builds(extension, st.integers(0, 9), KINDS, inner, st.booleans()),
        st.builds(
            lambda depth, code, value: nested(*depth, code=code, value=value),
            DEPTHS,
            st.integers(0, 9),
            inner,
        ),
        st.builds(lambda *parts: b"\x93" + b"".join(parts), inner, inner, inner),
        st.builds(lambda name, value: b"\x82" + packed("k") + value + name + value, inner, inner),
    )


DEPTHS: Final = st.one_of(
    st.lists(st.sampled_from([0, 3, 200, 1000]), max_size=6),
    st.builds(
        lambda count, lists: [lists] * count, st.sampled_from([20, 300, 2000]), st.integers(0, 3)
    ),
)
BODIES: Final = st.recursive(LEAVES, deeper, max_leaves=6).filter(
    lambda body: len(body) <= 4 * MOST
)
RUNS: Final = st.one_of(
    st.builds(
        lambda low, size, times: [low, low + size] * times,
        st.integers(0, 25),
        st.integers(0, 21),
        st.sampled_from([1, 2, 17, 1000, 30_000]),
    ),
    st.builds(
        lambda low, size: [low, low + size],
        st.sampled_from([0, 5, 2**31]),
        st.sampled_from([2**18, 2**20, 2**31, 2**32]),
    ),
    st.lists(st.integers(-1, 2**33), max_size=6),
)
ROWS: Final = st.one_of(
    st.integers(-1, 4), st.lists(st.integers(0, 4), max_size=80), st.just(2**32)
)
ENTRIES: Final = st.builds(
    lambda where, manifest, runs, bare: [
        where,
        *([manifest] if manifest else []),
        *runs,
        *([bare] if bare else []),
    ],
    st.one_of(st.none(), BODIES.map(lambda body: body if len(body) < 1000 else None), ROWS),
    st.one_of(
        st.none(), st.none(), st.dictionaries(st.integers(0, 4), st.integers(0, 2**31), max_size=2)
    ),
    st.one_of(st.just([]), RUNS),
    st.one_of(st.just([]), RUNS),
)


def changes() -> st.SearchStrategy[Callable[[Lines], Any]]:
    """What somebody may do to a thread's lines."""

    def body_of(kind: str, which: int, body: bytes) -> Callable[[Lines], None]:
        return lambda lines: of_kind(lines, kind)[which % len(of_kind(lines, kind))].__setitem__(
            "body", text_of(body)
        )

    def counters(which: int, count: int) -> Callable[[Lines], None]:
        return lambda lines: lines[0]["next"].__setitem__(which, count)

    def compound(
        level: int, count: int, body: bytes, times: int, channels: int
    ) -> Callable[[Lines], None]:
        def change(lines: Lines) -> None:
            rows = [add_value(lines, packed([level, count, body]))] * times
            widen(
                lines,
                [[[rows[0], add_value(lines, packed([0, count, b"\x01"])), *rows[1:]]]] * channels,
            )

        return change

    def write(entries: list[Any]) -> Callable[[Lines], None]:
        def change(lines: Lines) -> None:
            [line] = of_kind(lines, "write")
            line["shape"] = add_word(
                lines, packed([["", number, "messages"] for number in range(len(entries))])
            )
            line["body"] = text_of(packed(entries))

        return change

    few, much = st.integers(0, 3), st.sampled_from([1, 3, 17, 300])
    return st.one_of(
        st.builds(
            lambda entry, channel: lambda lines: refer(lines, entry, channel=channel), ENTRIES, few
        ),
        st.builds(
            lambda entry, count: (
                lambda lines: widen(lines, [entry] * min(count, 2**21 // len(packed(entry))))
            ),
            ENTRIES,
            much,
        ),
        st.builds(in_a_value, BODIES),
        st.builds(long_rest, BODIES),
        st.builds(body_of, st.sampled_from(["value", "checkpoint", "write", "word"]), few, BODIES),
        st.builds(write, st.lists(ENTRIES, min_size=1, max_size=3)),
        st.builds(
            compound,
            st.sampled_from([0, 1, 255]),
            st.sampled_from([0, 1, 2**32]),
            BODIES,
            st.sampled_from([1, 60, 500]),
            much,
        ),
        st.builds(counters, few, st.sampled_from([0, 2**31, 2**32])),
        st.just(renumber_the_last),
        st.just(nest_a_label),
    )


@pytest.mark.process
@settings(max_examples=3000 if SOAK else 12)
@given(
    changed=st.lists(changes(), min_size=1, max_size=3),
    text=st.sampled_from(["x" * 1000, "x" * 300_000, "\0" * 1000]),
)
def test_whatever_somebody_writes_is_refused_or_reads_as_what_it_is(
    reader: Reader, changed: list[Callable[[Lines], Any]], text: str
) -> None:
    def change(lines: Lines) -> None:
        for one in changed:
            with suppress(
                ValueError, TypeError, KeyError, IndexError
            ):  # what an earlier one has left cannot be changed so
                one(lines)

    found = reader.read(edited(export(text), change))
    if found["stored"]:
        assert bool(found["errors"]) <= bool(found["damaged"]), found
        assert found["refused"] or not found["errors"], found
    assert found["taken"] < TAKEN, found


# -- what applications repeat ----------------------------------------------------------------------

SAID: Final = [
    HumanMessage("long " * 60, id="a"),
    AIMessage("yes", id="b"),
    HumanMessage("no id, " * 9),
    ToolMessage("x", tool_call_id="1"),
]
REPEATED: Final = st.lists(st.sampled_from(SAID), max_size=4).flatmap(
    lambda said: st.sampled_from([1, 2, 17, 200]).map(lambda times: said * times)
)
HELD: Final = st.one_of(
    REPEATED,
    st.builds(
        lambda said, count: [
            Send("work", {"messages": said, "n": number}) for number in range(count)
        ],
        REPEATED,
        st.integers(0, 40),
    ),
    st.builds(lambda said: {"said": {"more": said}, "one": SAID[0]}, REPEATED),
)


@settings(max_examples=500 if SOAK else 15)
@given(values=st.lists(HELD, min_size=1, max_size=3), written=HELD)
def test_what_an_application_repeats_is_read_as_it_was_however_often(
    values: list[Any], written: Any
) -> None:
    channels = {f"c{number}": value for number, value in enumerate(values)}
    with pytest.MonkeyPatch.context() as patch, DeltaSaver.open(":memory:") as saver:
        allow_little(patch)
        patch.setattr(codec, "LONGEST_LIST", 100)
        at = put(saver, "t", config("t"), 1, channels)
        saver.put_writes(at, [("c0", written)], "task")
        saver.log.caches.forget()
        found = saver.get_tuple(at)
        assert found is not None
        assert found.checkpoint["channel_values"] == channels
        assert [value for _, _, value in found.pending_writes or []] == [written]
        assert not [finding for finding in examine(saver).findings if finding.severity == "damaged"]
        bring_in(DeltaSaver.open(":memory:"), exported(saver))


def test_many_tasks_may_take_the_same_long_history_and_store_it_once(tmp_path: Path) -> None:
    said = [HumanMessage(f"message {number} " * 200, id=f"{number}") for number in range(100)]
    with DeltaSaver.open(str(tmp_path / "memory.db")) as saver:
        sends = [Send("work", {"messages": said, "n": number}) for number in range(60)]
        at = put(saver, "t", config("t"), 1, {"__pregel_tasks": sends})
        for number in range(60):
            saver.put_writes(at, [("messages", said)], f"task{number}")
        found = saver.get_tuple(at)
        assert found is not None
        assert found.checkpoint["channel_values"]["__pregel_tasks"] == sends
        assert len(found.pending_writes or []) == 60
        assert sum(length for (length,) in rows(saver, "SELECT length(body) FROM value")) < 200_000


def test_tasks_and_channels_may_hold_the_same_however_many_they_are(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stores its own; only together they are out of proportion.

    What somebody else sends may be meant so, and is refused.
    """
    allow_little(monkeypatch)
    said = [HumanMessage("x" * 100_000, id="long")]
    table = {f"key {number}": "y" * 5000 for number in range(20)}
    channels = {f"c{number}": said for number in range(40)} | {
        f"d{number}": table for number in range(40)
    }
    changed = [table | {"key 3": f"changed {number}"} for number in range(40)]
    with DeltaSaver.open(url) as saver:
        at = put(saver, "t", config("t"), 1, channels)
        for number in range(40):
            saver.put_writes(at, [("c0", said), ("d0", changed[number])], f"task{number:02}")
        saver.log.caches.forget()
        found = saver.get_tuple(at)
        assert found is not None
        assert found.checkpoint["channel_values"] == channels
        assert [value for _, _, value in found.pending_writes or []] == [
            value for one in changed for value in (said, one)
        ]
        assert [one.config for one in saver.list(config("t"))] == [at]
        assert {(finding.kind, finding.severity) for finding in examine(saver).findings} == {
            ("large", "note")
        }
        assert examine(saver).ok
        with pytest.raises(MalformedExport, match="takes far more memory than its rows"):
            bring_in(saver, exported(saver))


def test_what_could_not_be_read_again_is_refused_before_anything_is_stored(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DeltaSaver.open(url) as saver:
        monkeypatch.setattr(header, "MOST_NAMED", 100)
        with pytest.raises(InvalidInput, match="more messages than can be listed"):
            put(saver, "t", config("t"), 1, {f"c{number}": SAID * 5 for number in range(20)})
        monkeypatch.setattr(size_limits, "MEMORY", 100_000)
        deep = functools.reduce(
            lambda inner, _: Order("n", [inner]), range(60), Order("x" * 10_000)
        )
        for value in (deep, {"held": deep, "said": SAID[0]}):
            with pytest.raises(TypeError, match="nested too deeply to be read again"):
                put(saver, "t", config("t"), 1, {"v": value})
        assert Threads(saver).count() == 0


def test_a_chain_of_objects_with_a_large_one_in_it_is_read() -> None:
    value = functools.reduce(
        lambda inner, _: Order("n", [inner]), range(30), Order("x" * 5_000_000)
    )
    with DeltaSaver.open(":memory:") as saver:
        found = saver.get_tuple(put(saver, "t", config("t"), 1, {"v": value}))
        assert found is not None
        assert found.checkpoint["channel_values"]["v"] == value


def test_a_chain_of_objects_that_is_stored_is_read() -> None:
    with DeltaSaver.open(":memory:") as saver:
        stored = 0
        for length in range(100, 500, 20):
            value = functools.reduce(
                lambda inner, _: Order("n", [inner]), range(length), Order("last")
            )
            try:
                at = put(saver, "t", config("t"), length, {"v": value})
            except TypeError:
                break
            stored = length
            found = saver.get_tuple(at)
            assert found is not None
            for _ in range(length):
                assert type(found.checkpoint["channel_values"]["v"]) is Order
        assert stored >= 200
