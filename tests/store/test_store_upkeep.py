"""Owners, expiry, doctor, statistics and forgetting cover store items as they do threads."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from clock import Clock
from finding_rules import word_index
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from postgres.server import SHARED
from psycopg import sql
from stores import empty, maker
from typer.testing import CliRunner

from langmem_ext import (
    ConversationMemories,
    DeltaSaver,
    DeltaStore,
    InvalidInput,
    MessageLog,
    Retention,
    Threads,
    examine,
    stats,
)
from langmem_ext.cli.app import app
from langmem_ext.errors import DamagedRow
from langmem_ext.storage.operation import Op, execute, operation

A = ("a",)


@pytest.fixture
def store(log: MessageLog, clock: Clock) -> DeltaStore:
    log.run(empty(), write=True)
    return DeltaStore(log)


@operation
def run(statement: str) -> Op[None]:
    yield from execute(statement)


# -- owners ----------------------------------------------------------------------------------------


def test_items_of_another_owner_are_not_there(store: DeltaStore) -> None:
    anna, bert = store.for_owner("anna"), store.for_owner("bert")
    anna.put(A, "k", {"x": 1})
    bert.put(("b",), "k", {"x": 2})
    store.put(("c",), "k", {"x": 3})
    assert bert.get(A, "k") is None
    assert [item.namespace for item in bert.search(())] == [("b",)]
    assert [item.namespace for item in bert.search((), query="x")] == [("b",)]
    assert bert.list_namespaces() == [("b",)]
    bert.delete(A, "k")
    assert {item.namespace for item in store.search(())} == {A, ("b",), ("c",)}


def values(store: DeltaStore) -> list[Any]:
    return [item.value for item in store.search(A)]


def test_each_owner_has_keys_of_its_own(store: DeltaStore) -> None:
    anna, bert = store.for_owner("anna"), store.for_owner("bert")
    anna.put(A, "k", {"x": 1})
    bert.put(A, "k", {"x": 2})
    anna.put(A, "k", {"x": 3})
    assert (values(anna), values(bert)) == ([{"x": 3}], [{"x": 2}])
    bert.delete(A, "k")
    assert (values(anna), values(bert)) == ([{"x": 3}], [])


def test_who_sees_all_changes_the_item_that_it_sees(store: DeltaStore) -> None:
    anna, bert = store.for_owner("anna"), store.for_owner("bert")
    anna.put(A, "k", {"x": 1})
    store.put(A, "k", {"x": 2})
    bert.put(A, "k", {"x": 3})
    store.put(A, "k", {"x": 4})
    assert (values(anna), values(bert)) == ([{"x": 4}], [{"x": 3}])
    found = store.get(A, "k")
    assert found is not None
    assert found.value == {"x": 4}
    store.delete(A, "k")
    assert values(store) == []


def test_a_saver_s_store_is_its_owner_s(log: MessageLog, store: DeltaStore) -> None:
    saver = DeltaSaver(log, owner="anna")
    saver.store.put(A, "k", {})
    assert saver.store is saver.store
    assert (saver.store.log, saver.store.owner) == (log, "anna")
    with pytest.raises(InvalidInput, match="another owner"):
        DeltaStore(saver, owner="bert")
    assert store.for_owner("bert").get(A, "k") is None


def test_forgetting_an_owner_deletes_its_items_and_their_vectors_alone(
    log: MessageLog, clock: Clock
) -> None:
    with maker(log)(index=word_index()) as store:
        for owner in ("anna", "bert"):
            for at in range(100):
                ttl = 1 if owner == "anna" else None  # hers have expired, and go too
                store.for_owner(owner).put((owner,), str(at), {"text": "red"}, ttl=ttl)
        clock.wait(minutes=2)
        assert store.forget_owner("anna") == 100
        assert store.forget_owner("anna") == 0
        assert stats(log).store_items == 100
        left = store.search((), query="red", limit=300)
        assert {item.namespace for item in left} == {("bert",)}
        assert [item.score for item in left] == [pytest.approx(1.0)] * 100
        assert examine(log).findings == (), "no vector is left of her items"
        with pytest.raises(InvalidInput, match="another owner"):
            store.for_owner("bert").forget_owner("anna")


# -- time ------------------------------------------------------------------------------------------


def test_a_sweep_of_threads_deletes_items_that_have_expired(
    log: MessageLog, store: DeltaStore, clock: Clock
) -> None:
    store.for_owner("anna").put(A, "short", {}, ttl=1)
    store.put(A, "long", {}, ttl=10)
    clock.wait(minutes=2)
    assert store.for_owner("bert").sweep() == 0
    assert Threads(log, owner="bert").sweep().store_items == 0
    threads = Threads(log)
    assert threads.sweep(dry_run=True).store_items == 1
    assert threads.sweep().store_items == 1
    assert stats(log).store_items == 1
    assert store.sweep() == 0


def test_a_saver_s_retention_deletes_items_that_have_expired(
    log: MessageLog, store: DeltaStore, clock: Clock
) -> None:
    saver = DeltaSaver(log, retention=Retention(ttl=timedelta(days=1)))
    for _ in range(2):
        store.put(A, "short", {}, ttl=1)
        clock.wait(minutes=2)
        assert saver.sweep(dry_run=True).store_items == 1
        assert saver.sweep().store_items == 1
    store.put(A, "short", {}, ttl=1)
    clock.wait(minutes=2)
    for at in range(100):  # as it writes, too
        if stats(log).store_items:
            saver.put(*first_of(f"t{at}"))
    assert stats(log).store_items == 0


def first_of(thread_id: str) -> Any:
    config = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    return config, empty_checkpoint(), {"source": "input", "step": -1}, {}


def test_beside_a_saver_that_encrypts_no_item_is_stored_in_plain_text(log: MessageLog) -> None:
    saver = DeltaSaver(log, serde=EncryptedSerializer(cipher=NoCipher()))
    for open_store in (lambda: saver.store, lambda: ConversationMemories(saver)):
        with pytest.raises(InvalidInput, match="encrypts"):
            open_store()


class NoCipher:
    """Stands for a cipher: none is called."""

    encrypt = decrypt = None


def test_puts_sweep_a_little(log: MessageLog, store: DeltaStore, clock: Clock) -> None:
    for at in range(10):
        store.put(A, str(at), {}, ttl=1)
    clock.wait(minutes=2)
    for at in range(100):
        store.put(("b",), str(at % 3), {})
    assert stats(log).store_items == 3


def test_created_is_when_an_item_was_first_put(store: DeltaStore, clock: Clock) -> None:
    store.put(A, "k", {}, ttl=10)
    first = clock.now
    clock.wait(minutes=5)
    store.put(A, "k", {"x": 1}, ttl=10)
    found = store.get(A, "k")
    assert found is not None
    assert (found.created_at, found.updated_at) == (first, clock.now)
    clock.wait(minutes=20)
    store.put(A, "k", {"x": 1})
    found = store.get(A, "k")
    assert found is not None
    assert found.created_at == clock.now  # it had expired


# -- doctor and statistics -------------------------------------------------------------------------


def test_the_doctor_finds_a_damaged_item_and_reading_it_says_so(
    log: MessageLog, store: DeltaStore
) -> None:
    store.put(A, "whole", {"x": 1})
    store.put(A, "damaged", {"x": 1})
    assert examine(log).ok
    log.run(
        run(
            """UPDATE store_item SET value = '{"x": 2}'
            WHERE number = (SELECT max(number) FROM store_item)"""
        ),
        write=True,
    )
    report = examine(log)
    assert (report.ok, report.store_items) == (False, 1)
    assert [(finding.kind, finding.severity) for finding in report.findings] == [
        ("store", "damaged")
    ]
    with pytest.raises(DamagedRow, match="'damaged' in"):
        store.get(A, "damaged")
    assert store.get(A, "whole") is not None
    store.put(A, "damaged", {"x": 3})
    assert examine(log).ok


def test_the_doctor_puts_right_what_follows_from_other_rows(
    log: MessageLog, store: DeltaStore
) -> None:
    store.put(A, "k", {"x": 2**70})
    log.run(run("UPDATE store_item SET plain = 1"), write=True)
    log.run(
        run("INSERT INTO store_vector (item, signature, vector) VALUES (1000000, 1, '')"),
        write=True,
    )
    assert {finding.kind for finding in examine(log).findings} == {"store", "orphan"}
    assert all(finding.fixed for finding in examine(log, fix=True).findings)
    assert examine(log).findings == ()


def test_statistics_count_the_store(log: MessageLog, store: DeltaStore) -> None:
    store.put(A, "k", {"x": 1})
    found = stats(log)
    assert found.store_items == 1
    assert not found.exact or found.bytes["store"] > 0


# -- row-level security ----------------------------------------------------------------------------


@pytest.mark.postgres
def test_a_role_bound_to_an_owner_sees_its_items_alone() -> None:
    database, schema = SHARED.database(), SHARED.new_schema()
    url = f"{database.url}?schema={schema}"
    role = f"{schema}_anna"
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
    try:
        with DeltaStore.open(url, index=word_index()) as store:
            store.for_owner("bert").put(("b",), "k", {"text": "red"})
            words = ["roles", "grant", role, "--writer", "--owner", "anna", "--db", url]
            assert CliRunner().invoke(app, words).exit_code == 0
            bound = url.replace("postgres@", f"{role}@", 1)
            with DeltaStore.open(bound, index=word_index()) as anna:
                anna.put(("a",), "k", {"text": "red"})
                assert [item.namespace for item in anna.search((), query="red")] == [("a",)]
                assert anna.get(("b",), "k") is None
                anna.put(("b",), "k", {"text": "blue"})
            assert [item.value for item in store.for_owner("bert").search(())] == [{"text": "red"}]
    finally:
        with psycopg.connect(database.url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))
