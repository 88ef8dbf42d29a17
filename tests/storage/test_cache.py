"""Promise: what is remembered of threads stays bounded; what is dropped does not count."""

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
from langmem_ext.log.codec import MessageCodec
from langmem_ext.log.restore import RestorePolicy
from langmem_ext.messages.manifest import Runs, runs_of
from langmem_ext.messages.packed import pack
from langmem_ext.storage.cache import (
    BODIES_BYTES,
    HEADERS,
    LISTS,
    VALUES,
    KnownList,
    ThreadCache,
    ThreadCaches,
)
from langmem_ext.storage.rows.checkpoint import Header

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
    elif hasattr(value, "__slots__"):
        inside = [getattr(value, name) for name in value.__slots__ if name != "templates"]
    return sys.getsizeof(value) + sum(held(one, seen) for one in inside)


def message(number: int, step: int = 0) -> bytes:
    return pack({"content": f"{step}:{number} " + "long " * 20, "id": None})


def scattered(count: int, first: int = 0) -> Runs:
    """Runs of a list with as many of them as it has messages."""
    return runs_of(range(first + 2 * count, first, -2))


def items(cache: ThreadCache, step: int) -> None:
    for number in range(50 * step, 50 * step + 50):
        cache.learn_item(number, message(number), named=number % 2 == 0)


def equal_items(cache: ThreadCache, step: int) -> None:
    for number in range(50 * step, 50 * step + 50):
        cache.learn_item(number, message(0), named=False)


def bare(cache: ThreadCache, step: int) -> None:
    for number in range(50 * step, 50 * step + 50):
        cache.learn_bare(message(number, 1), cache.learn_item(number, message(number), named=True))


def nameless_lists(cache: ThreadCache, step: int) -> None:
    packed = [message(number, step) for number in range(50)]
    place = (0, f"channel {step % (LISTS + 9)}")
    cache.learn_list(
        place, KnownList(packed, runs_of(range(50)), runs_of(range(50)), [None, 0, 50, [0, 50]])
    )


def fragmented_lists(cache: ThreadCache, step: int) -> None:
    runs = scattered(500, step)
    cache.learn_list(
        (0, f"channel {step % (LISTS + 9)}"), KnownList([b"shared"] * 500, runs, (), [None, *runs])
    )


def manifests(cache: ThreadCache, step: int) -> None:
    cache.learn_manifest((0, f"channel {step % (LISTS + 9)}"), step, scattered(500, 1000 * step))


def headers(cache: ThreadCache, step: int) -> None:
    # Each its runs, of numbers that all of them hold: as a list grows.
    entries = {"messages": [None, *NUMBERS[: 900 + step]], "n": [b"1"]}
    cache.learn_header(
        0,
        b"%d" % (step % (HEADERS + 9)),
        Header(4, "now", {"messages": 1, "n": 2}, {}, None, entries),
    )


def digests(cache: ThreadCache, step: int) -> None:
    cache.learn_value(b"%16d" % step, step + 1000)


SHAPES = [items, equal_items, bare, nameless_lists, fragmented_lists, manifests, headers, digests]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_what_is_held_is_counted(shape: Any) -> None:
    cache = ThreadCache(1)
    for step in range(300 if shape in (headers, digests) else 100):
        shape(cache, step)
        if step % 20 == 0:
            assert held(cache, set(map(id, NUMBERS))) <= cache.size * 1.25


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_no_shape_goes_beyond_the_bound(shape: Any) -> None:
    caches = ThreadCaches(BOUND)
    for step in range(60):
        for thread in range(12):
            cache = caches.of(f"{thread}", row_of(thread), CODEC)
            shape(cache, step)
            caches.keep(cache)
        if step % 10 == 0:
            assert held(list(caches._caches.values()), set(map(id, NUMBERS))) <= BOUND * 1.25
        assert 0 <= caches.size <= BOUND


def test_bodies_of_one_thread_have_a_bound_of_their_own() -> None:
    cache = ThreadCaches(100 * BODIES_BYTES, remote=True).of("t", row_of(1), CODEC)
    for number in range(30):
        cache.learn_body(number, bytes(BODIES_BYTES // 8))
    assert 6 <= len(cache.held) <= 8
    assert list(cache.held) == list(range(30))[-len(cache.held) :]
    cache.learn_body(30, bytes(BODIES_BYTES + 1))
    assert 30 not in cache.held


def test_many_threads_of_which_little_is_known_are_within_the_bound_too() -> None:
    caches = ThreadCaches(BOUND)
    for thread in range(1500):
        cache = caches.of(f"{thread}", row_of(thread), CODEC)
        items(cache, 0) if thread % 10 == 0 else None
        caches.keep(cache)
    assert held(list(caches._caches.values()), set(map(id, NUMBERS))) <= BOUND * 1.25


def test_what_has_gone_counts_no_more() -> None:
    cache = ThreadCache(1)
    for step in range(HEADERS + VALUES + 20):
        for shape in (nameless_lists, fragmented_lists, manifests, headers, digests):
            shape(cache, step)
    for number in range(LISTS):
        cache.learn_list((1, f"{number}"), KnownList([], (), (), [None]))
        cache.learn_manifest((1, f"{number}"), 0, ())
    for number in range(HEADERS):
        cache.learn_header(1, b"%d" % number, Header(4, "now", {}, {}, None))
    few = ThreadCache(1)
    for number in range(VALUES):
        few.learn_value(b"%d" % number, number)
    for number in range(HEADERS):
        few.learn_header(1, b"%d" % number, Header(4, "now", {}, {}, None))
    assert cache.size == few.size


def test_what_is_taken_is_nobody_elses_and_counts_when_it_is_given_back() -> None:
    caches = ThreadCaches(BOUND)
    cache = caches.of("t", row_of(1), CODEC)
    items(cache, 0)
    caches.keep(cache)
    assert caches.size == cache.size
    assert caches.take("t", CODEC) is cache
    assert caches.take("t", CODEC) is None
    assert caches.size == 0
    other = caches.of("t", row_of(1), CODEC)
    caches.keep(other)
    caches.keep(cache)  # a reader's, which may be older
    assert caches.take("t", CODEC) is other
    caches.keep(other)
    caches.keep(cache, written=True)
    assert caches.size == cache.size
    assert caches.take("t", CODEC) is cache
    caches.keep(cache)
    caches.forget_thread("t")
    assert caches.size == 0


def test_where_the_version_has_moved_only_what_cannot_change_is_still_known() -> None:
    caches = ThreadCaches(BOUND)
    cache = caches.of("t", row_of(1), CODEC)
    cache.learn_item(0, message(0), named=True)
    cache.newest[0] = b"checkpoint", b"checkpoint"
    caches.keep(cache)
    same = caches.of("t", row_of(1), CODEC)
    assert same is cache
    assert same.newest
    caches.keep(same)
    moved = caches.of("t", row_of(1, version=8), CODEC)
    assert moved is cache
    assert moved.content
    assert not moved.newest
    moved.learn_item(1, message(1), named=False)  # another process may name it
    caches.keep(moved)
    assert not caches.of("t", row_of(1, version=9), CODEC).content
    caches.keep(cache)
    assert not caches.of("t", row_of(1, version=8, generation=1), CODEC).content


def row_of(thread: int, *, version: int = 7, generation: int = 0) -> tuple[Any, ...]:
    return thread, None, None, generation, version, 0, 0, 0, 1, 0, 1, 0, 0, None


@pytest.mark.slow
def test_a_saver_of_long_fragmented_lists_stays_within_its_bound(tmp_path: Path) -> None:
    shuffled = random.Random(5)
    log = MessageLog.open(str(tmp_path / "t.db"), synchronous="normal", cache_bytes=BOUND)
    with DeltaSaver(log) as saver:
        for step in range(24):
            for thread in range(8):
                messages = [
                    HumanMessage("yes " * 20, id=f"{number}") for number in range(400 + step)
                ]
                shuffled.shuffle(messages)
                config: Any = {"configurable": {"thread_id": f"{thread}", "checkpoint_ns": ""}}
                checkpoint: Any = empty_checkpoint() | {
                    "channel_values": {"messages": messages},
                    "channel_versions": {"messages": step},
                }
                config = saver.put(config, checkpoint, {}, {"messages": step})
                saver.put_writes(
                    config,
                    [("messages", [HumanMessage(f"{step} {number}") for number in range(30)])],
                    "task",
                )
            assert held(list(log.caches._caches.values()), set()) <= BOUND * 1.25
        log.caches.forget()
        for count, _ in enumerate(saver.list(None)):
            if count % 32 == 0:
                assert held(list(log.caches._caches.values()), set()) <= BOUND * 1.25
        assert 0 < log.caches.size <= BOUND
