"""A batch that fails at any statement leaves nothing half done, stored or in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clock import Clock
from failing_database import Faults, failing_log
from finding_rules import word_index
from langgraph.store.base import GetOp, PutOp, SearchOp
from memory.doubles import talk
from savers import Backend

from langmem_ext import DeltaSaver, DeltaStore, StorageError, examine
from langmem_ext.storage.operation import Op, Rows, fetch, operation
from langmem_ext.store import vectors
from langmem_ext.store.operations import SourceThread
from langmem_ext.store.planning import on_threads

A, B = ("a",), ("b",)
IN_PARTS = ("a sweep", "forgetting an owner")
"""They take a transaction for each few items."""

TABLES = ("store_item", "store_vector", "store_thread")


def put(at: int, text: str, *threads: str) -> PutOp:
    op = PutOp(A, f"k{at}", {"text": text, "n": at}, ttl=10)
    return on_threads(op, [SourceThread(one) for one in threads])


def prepare(store: DeltaStore) -> None:
    talk(store.log, "t", "hello")
    talk(store.log, "u", "hello")
    store.batch([put(at, ("red", "blue")[at % 2], "t", "u"[: at % 2]) for at in range(6)])


OPERATIONS: dict[str, Callable[[DeltaStore], object]] = {
    "put": lambda store: store.put(A, "k1", {"text": "green"}),
    "delete": lambda store: store.delete(A, "k1"),
    "a batch": lambda store: store.batch(
        [put(0, "green", "u"), put(7, "red", "t"), PutOp(A, "k1", None), GetOp(A, "k2"),
         SearchOp((), query="red", filter={"n": {"$gte": 2}}), put(7, "blue")]
    ),
    "a search that begins time anew": lambda store: store.search(A, query="red"),
    "a sweep": lambda store: store.sweep(),
    "deletion of a thread": lambda store: DeltaSaver(store.log).delete_thread("t"),
    "forgetting an owner": lambda store: store.forget_owner("anna"),
}  # fmt: skip


@operation
def rows() -> Op[list[Rows]]:
    found = []
    for table in TABLES:
        found.append((yield from fetch(f"SELECT * FROM {table} ORDER BY 1, 2")))
    found.append((yield from fetch("SELECT count(*) FROM thread")))
    return found


def seen(store: DeltaStore) -> list[Any]:
    found = store.search((), query="red", refresh_ttl=False)
    return [(item.key, item.value, item.score) for item in found]


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_fails_at_any_statement_changes_nothing_and_works_the_next_time(
    name: str, durable: Backend, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "FEW", 0)  # all are kept in memory
    faults = Faults()
    log = failing_log(durable.new_url(tmp_path), faults, monkeypatch)
    with DeltaSaver(log) as saver:
        store = DeltaStore(saver, index=word_index())
        prepare(store)
        if name == "forgetting an owner":
            store.for_owner("anna").batch([put(at, "red") for at in range(10, 13)])
        if name == "a sweep":
            clock.wait(minutes=11)
            store.put(B, "k", {"text": "red"})
        else:
            clock.wait(minutes=1)
        before, known = log.run(rows(), write=False), seen(store)
        statement = 0
        while True:
            faults.begin(statement)
            try:
                OPERATIONS[name](store)
            except StorageError:
                faults.end()
                if name in IN_PARTS and log.run(rows(), write=False) != before:
                    break  # a part of it was done, whole
                assert log.run(rows(), write=False) == before, f"after {statement} statements"
                assert seen(store) == known
                statement += 1
            else:
                faults.end()
                break
        assert statement >= 2
        assert log.run(rows(), write=False) != before
        again = DeltaStore(saver, index=word_index())
        assert seen(store) == seen(again), "what is kept of vectors is what is stored"
        assert examine(log).findings == ()
