"""Promise: what is remembered of threads stays within its bound, whatever its shape, and what is forgotten counts no more."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint

from langmem_ext import DeltaSaver, MessageLog
from langmem_ext.codec import MessageCodec
from langmem_ext.messages.manifest import Runs, runs_of
from langmem_ext.messages.packed import pack
from langmem_ext.serde import RestorePolicy
from langmem_ext.storage.header import Header, ValueRef
from langmem_ext.storage.index import BODIES_BYTES, HEADERS, LISTS, STEPS, VALUES, Indexes, ThreadIndex

CODEC = MessageCodec(RestorePolicy())
NUMBERS = list(range(300, 3000))
BOUND = 2_000_000


def held(value: Any, seen: set[int]) -> int:
    """Bytes of memory that a value and all inside it take, each object once."""
    if id(value) in seen or value is None or isinstance(value, type):
        return 0
    seen.add(id(value))
    inside: Iterable[Any] = ()
    if isinstance(value, dict):
        inside = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set):
        inside = list(value)
    elif is_dataclass(value):
        inside = [getattr(value, field.name) for field in fields(value)]
    return sys.getsizeof(value) + sum(held(one, seen) for one in inside)


def message(number: int, step: int = 0) -> bytes:
    return pack({"content": f"{step}:{number} " + "long " * 20, "id": None})


def scattered(count: int, first: int = 0) -> Runs:
    """Runs of a list with as many of them as it has messages."""
    return runs_of(range(first + 2 * count, first, -2))


def items(index: ThreadIndex, step: int) -> None:
    for number in range(50 * step, 50 * step + 50):
        index.learn_item(number, message(number), named=number % 2 == 0)


def equal_items(index: ThreadIndex, step: int) -> None:
    for number in range(50 * step, 50 * step + 50):
        index.learn_item(number, message(0), named=False)


def late(index: ThreadIndex, step: int) -> None:
    steps = index.late_of(b"%d" % step), index.late_of(b"%d" % (step + 1))
    for number in range(50):
        for entries in steps:
            index.learn_late(entries, message(number, step), number)


def nameless_lists(index: ThreadIndex, step: int) -> None:
    packed = [message(number, step) for number in range(50)]
    index.learn_list((0, f"channel {step % (LISTS + 9)}"), packed, runs_of(range(50)), runs_of(range(50)))


def fragmented_lists(index: ThreadIndex, step: int) -> None:
    packed = [b"shared"] * 500
    index.learn_list((0, f"channel {step % (LISTS + 9)}"), packed, scattered(500, step), ())


def manifests(index: ThreadIndex, step: int) -> None:
    index.learn_manifest((0, f"channel {step % (LISTS + 9)}"), step, scattered(500, 1000 * step))


def headers(index: ThreadIndex, step: int) -> None:
    # Each its runs, of numbers that all of them hold: as a list grows.
    values = {"messages": ValueRef(runs=tuple(NUMBERS[: 900 + step])), "n": ValueRef(body=b"1")}
    index.learn_header(0, b"%d" % (step % (HEADERS + 9)), Header(4, "now", {"messages": 1, "n": 2}, {}, None, values))


def digests(index: ThreadIndex, step: int) -> None:
    index.learn_value(b"%16d" % step, step + 1000)


SHAPES = [items, equal_items, late, nameless_lists, fragmented_lists, manifests, headers, digests]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_what_is_held_is_counted(shape: Any) -> None:
    index = ThreadIndex(1)
    for step in range(300 if shape in (headers, digests) else 100):
        shape(index, step)
        if step % 20 == 0:
            assert held(index, set(map(id, NUMBERS))) <= index.size * 1.25


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_no_shape_goes_beyond_the_bound(shape: Any) -> None:
    indexes = Indexes(BOUND)
    for step in range(60):
        for thread in range(12):
            index = indexes.of(thread, 0, CODEC)
            shape(index, step)
            indexes.account(index)
        if step % 10 == 0:
            assert held(list(indexes._indexes.values()), set(map(id, NUMBERS))) <= BOUND * 1.25
        assert 0 <= indexes.size <= BOUND


def expectations(index: ThreadIndex, step: int) -> None:
    expected = index.expected
    assert expected is not None
    index.learn_body(step, b"%d" % step * 2000)
    checkpoint = b"%16d" % step
    expected.learn_newest(step % 7, (checkpoint, None, step, 1, 2, 3, b"%d" % step * 100, step))
    expected.begin_writes(step % 7, checkpoint)
    for task in (b"a", b"b"):
        expected.learn_written((step % 7, checkpoint, task, 1, b"%d" % step * 30, step))
    expected.learn_item(step, (None, 0, None, f"{step}" * 50, None, step, None, None, step))
    expected.learn_item(step - 3, None)


def test_what_is_expected_of_threads_is_within_the_bound_too() -> None:
    indexes = Indexes(BOUND, speculates=True)
    for step in range(300):
        for thread in range(12):
            indexes.keep_row(f"t{thread}", (thread, None, 0, 0, 0, 0, 1, 0, 1, 0, 0, None))
            index = indexes.of(thread, 0, CODEC)
            expectations(index, step)
            indexes.account(index)
        if step % 30 == 0:
            assert held(list(indexes._indexes.values()), set(map(id, NUMBERS))) <= BOUND * 1.25
        assert 0 <= indexes.size <= BOUND
    indexes.forget()
    assert indexes.size == 0


def test_bodies_of_one_thread_have_a_bound_of_their_own() -> None:
    indexes = Indexes(100 * BODIES_BYTES, speculates=True)
    indexes.keep_row("t", (1, None, 0, 0, 0, 0, 1, 0, 1, 0, 0, None))
    index = indexes.of(1, 0, CODEC)
    for number in range(30):
        index.learn_body(number, bytes(BODIES_BYTES // 8))
    assert 6 <= len(index.held) <= 8
    assert list(index.held) == list(range(30))[-len(index.held) :]
    index.learn_body(30, bytes(BODIES_BYTES + 1))
    assert 30 not in index.held


def test_many_threads_of_which_little_is_known_are_within_the_bound_too() -> None:
    indexes = Indexes(BOUND)
    for thread in range(1500):
        index = indexes.of(thread, 0, CODEC)
        items(index, 0) if thread % 10 == 0 else None
        indexes.account(index)
    assert held(list(indexes._indexes.values()), set(map(id, NUMBERS))) <= BOUND * 1.25


def test_what_has_gone_counts_no_more() -> None:
    index = ThreadIndex(1)
    for step in range(HEADERS + VALUES + 20):
        for shape in (late, nameless_lists, fragmented_lists, manifests, headers, digests):
            shape(index, step)
    for step in range(STEPS):
        index.late_of(b"later %d" % step)
    for number in range(LISTS):
        index.learn_list((1, f"{number}"), [], (), ())
        index.learn_manifest((1, f"{number}"), 0, ())
    for number in range(HEADERS):
        index.learn_header(1, b"%d" % number, Header(4, "now", {}, {}, None))
    few = ThreadIndex(1)
    for number in range(VALUES):
        few.learn_value(b"%d" % number, number)
    for number in range(HEADERS):
        few.learn_header(1, b"%d" % number, Header(4, "now", {}, {}, None))
    assert index.size == few.size


def test_an_index_that_was_forgotten_while_it_was_in_use_counts_no_more() -> None:
    indexes = Indexes(BOUND)
    index = indexes.of(1, 0, CODEC)
    items(index, 0)
    indexes.account(index)
    items(index, 1)
    indexes.forget_thread(1)
    indexes.account(index)
    assert indexes.size == 0
    index = indexes.of(1, 0, CODEC)
    items(index, 0)
    indexes.forget()
    indexes.account(index)
    assert indexes.size == 0


@pytest.mark.slow
def test_a_saver_of_long_fragmented_lists_stays_within_its_bound(tmp_path: Path) -> None:
    shuffled = random.Random(5)
    log = MessageLog.open(str(tmp_path / "t.db"), synchronous="normal", cache_bytes=2 * BOUND)
    with DeltaSaver(log) as saver:
        for step in range(24):
            for thread in range(8):
                messages = [HumanMessage("yes " * 20, id=f"{number}") for number in range(400 + step)]
                shuffled.shuffle(messages)
                config: Any = {"configurable": {"thread_id": f"{thread}", "checkpoint_ns": ""}}
                checkpoint: Any = empty_checkpoint() | {"channel_values": {"messages": messages}, "channel_versions": {"messages": step}}
                config = saver.put(config, checkpoint, {}, {"messages": step})
                saver.put_writes(config, [("messages", [HumanMessage(f"{step} {number}") for number in range(30)])], "task")
            assert held(list(log.indexes._indexes.values()), set()) <= BOUND * 1.25
        log.indexes.forget()
        for count, _ in enumerate(saver.list(None)):
            if count % 32 == 0:
                assert held(list(log.indexes._indexes.values()), set()) <= BOUND * 1.25
        assert 0 < log.indexes.size <= BOUND
