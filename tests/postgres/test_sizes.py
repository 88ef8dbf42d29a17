"""Promises of a size that is kept on PostgreSQL: it is what the rows take, nothing goes that need not, and who is below it pays nothing."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import shake_256
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from langmem_ext import DeltaSaver, Pruned, Retention, ThreadChatMessageHistory, Threads
from langmem_ext.retention import run_steps
from langmem_ext.storage.ids import thread_number
from langmem_ext.storage.postgres.roles import Grant, grant
from langmem_ext.storage.postgres.server import Server
from postgres.server import SHARED, Database
from postgres.test_roles import Place, place, with_user

__all__ = ["place"]  # a fixture


@pytest.fixture
def schema() -> str:
    return SHARED.new_schema()


@pytest.fixture
def url(database: Database, schema: str) -> str:
    return f"{database.url}?schema={schema}"


def now_ms() -> int:
    return int(time.time() * 1000)


def used_bytes(saver: DeltaSaver, *, wholly: bool = True, limit: int = 0) -> int:
    steps: Any = saver.log.driver.used_bytes(limit, now_ms(), wholly=wholly)
    used: Any = run_steps(saver.log, steps)
    return int(used)


def asked(database: Database, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database.url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def text(name: str, size: int) -> str:
    """Text that no compression makes much shorter."""
    return shake_256(name.encode()).hexdigest(size // 2 + 1)[:size]


def say(saver: DeltaSaver, thread: str, number: int, size: int) -> None:
    ThreadChatMessageHistory(thread, saver).add_messages([HumanMessage(text(f"{thread} {number}", size), id=f"{number}")])


def size_of(database: Database, schema: str, thread: str) -> int:
    [(size,)] = asked(database, f"SELECT bytes FROM {schema}.thread_size WHERE thread = {thread_number(thread)}") or [(0,)]
    return int(size)


@given(
    lengths=st.lists(st.tuples(st.integers(1, 4), st.integers(100, 9000), st.integers(0, 5)), min_size=3, max_size=9),
    share=st.floats(0, 1.1),
    whole=st.booleans(),
)
def test_a_sweep_leaves_what_fits_and_nothing_goes_that_need_not(lengths: Any, share: float, whole: bool) -> None:
    """Each thread has so many messages of a length; every sixth waits for an answer. The limit is a share of what there is."""
    database, schema = SHARED.database(), SHARED.new_schema()
    with DeltaSaver.open(f"{database.url}?schema={schema}") as saver:
        for at, (messages, length, waits) in enumerate(lengths):
            for number in range(messages):
                say(saver, f"t{at}", number, length)
            if waits == 0:
                asked(database, f"UPDATE {schema}.thread SET waiting_for = 'order_id' WHERE id = 't{at}'")
        names = [f"t{at}" for at in range(len(lengths))]
        waiting = {f"t{at}" for at, (_, _, waits) in enumerate(lengths) if waits == 0}
        # As small as they get without being deleted.
        for name in names:
            saver.prune([name])
        used = used_bytes(saver)
        sizes = {name: size_of(database, schema, name) for name in names}
        assert used == sum(sizes.values()) == asked(database, f"SELECT bytes FROM {schema}.size_total")[0][0]
        limit = max(1, int(used * share))
        sweeping = DeltaSaver(saver.log, retention=Retention(max_bytes=limit))
        if whole:
            told = sweeping.sweep(dry_run=True)
            assert sweeping.sweep() == told
        else:
            # In the steps that puts give occasion for; of what is not there, so that nothing is added.
            assert sweeping._keeper is not None
            for _ in range(40 * len(names)):
                sweeping._keeper._next_look = 0
                sweeping._keeper.step("nobody's", now_ms())
        kept = {thread.id for thread in Threads(saver).each(status=None)}
        gone = [name for name in names if name not in kept]
        assert gone == [name for name in names if name not in waiting][: len(gone)], (
            "those that were written longest ago, but for who waits"
        )
        left = used_bytes(saver)
        assert left == sum(sizes[name] for name in kept) == asked(database, f"SELECT bytes FROM {schema}.size_total")[0][0]
        taken = asked(
            database,
            f"SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = '{schema}'::regnamespace AND relkind = 'r'",
        )
        assert min(left, taken[0][0]) <= limit or kept == waiting
        assert not gone or left + sizes[gone[-1]] > limit, "the last that went had to go"


@pytest.mark.parametrize(("asked_for", "answered", "copies"), [(20, 40, 150), (180, 280, 100), (200, 3000, 30), (200, 20_000, 8)])
def test_what_rows_take_is_nearly_what_the_tables_take_that_are_written_anew(
    database: Database, url: str, schema: str, asked_for: int, answered: int, copies: int
) -> None:
    with DeltaSaver.open(url) as saver:
        empty = tables(database, schema)
        history = ThreadChatMessageHistory("t", saver)
        for number in range(15):
            history.add_messages([HumanMessage(text(f"{number}", asked_for)), AIMessage(text(f"answer {number}", answered))])
        for number in range(copies):
            saver.copy_thread("t", f"copy {number}")
        used = used_bytes(saver)
        saver.compact(full=True)
        taken = tables(database, schema) - empty
        assert taken > 1_000_000
        assert 0.85 <= used / taken <= 1.15, (used, taken)


def tables(database: Database, schema: str) -> int:
    [(size,)] = asked(
        database,
        "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class"
        f" WHERE relnamespace = '{schema}'::regnamespace AND relname NOT IN ('thread_size', 'size_total') AND relkind = 'r'",
    )
    return int(size)


def test_nothing_is_measured_while_the_tables_are_small_enough(database: Database, url: str, schema: str) -> None:
    with DeltaSaver.open(url, retention=Retention(max_bytes=100_000_000)) as saver:
        for number in range(40):
            say(saver, f"t{number % 3}", number, 500)
        assert saver.sweep() == Pruned()
    assert asked(database, f"SELECT count(*) FROM {schema}.thread_size") == [(0,)]


def test_a_total_follows_what_is_written_pruned_copied_and_deleted(database: Database, url: str, schema: str) -> None:
    with DeltaSaver.open(url) as saver:
        for number in range(12):
            say(saver, f"t{number % 3}", number, 2000)
        before = used_bytes(saver)
        saver.prune(["t0"])
        pruned = asked(database, f"SELECT bytes FROM {schema}.size_total")[0][0]
        assert pruned < before, "at once"
        saver.delete_thread("t1")
        assert asked(database, f"SELECT bytes FROM {schema}.size_total")[0][0] < pruned
        saver.copy_thread("t2", "copy")
        say(saver, "t2", 99, 2000)
        known = used_bytes(saver)
        asked(database, f"DELETE FROM {schema}.thread_size")
        assert asked(database, f"SELECT bytes FROM {schema}.size_total") == [(0,)]
        assert used_bytes(saver) == known
        for name in ("t0", "t2", "copy"):
            saver.delete_thread(name)
        assert asked(database, f"SELECT bytes FROM {schema}.size_total") == [(0,)]


def test_a_measurement_waits_for_nobody_who_writes(database: Database, url: str, schema: str) -> None:
    with DeltaSaver.open(url) as saver:
        for name in ("held", "free"):
            say(saver, name, 0, 500)
        with psycopg.connect(database.url) as other:
            other.execute(f"SELECT 1 FROM {schema}.thread WHERE id = 'held' FOR UPDATE".encode())
            used_bytes(saver)
            assert asked(database, f"SELECT thread FROM {schema}.thread_size") == [(thread_number("free"),)]
        used_bytes(saver)
        assert asked(database, f"SELECT count(*) FROM {schema}.thread_size") == [(2,)]


def test_several_who_write_and_forget_at_once_keep_the_size_together(database: Database, url: str, schema: str) -> None:
    limit = 400_000

    def work(name: str) -> None:
        with DeltaSaver.open(url, retention=Retention(max_bytes=limit)) as saver:
            builder = StateGraph(MessagesState).add_node("answer", lambda state: {"messages": [("ai", "yes")]})
            graph = builder.add_edge(START, "answer").compile(checkpointer=saver)
            for number in range(60):
                said = {"messages": [HumanMessage(text(f"{name} {number}", 8000))]}
                graph.invoke(said, {"configurable": {"thread_id": f"{name} {number // 4}"}})

    DeltaSaver.open(url).close()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, ("a", "b", "c")))
    with DeltaSaver.open(url) as saver:
        assert limit / 2 < used_bytes(saver) < 2 * limit
    with DeltaSaver.open(url, retention=Retention(max_bytes=limit)) as saver:
        saver.sweep()
        used = used_bytes(saver)
        assert limit / 2 < used <= limit
        assert asked(database, f"SELECT coalesce(sum(bytes), 0) FROM {schema}.thread_size") == [(used,)]


def test_an_owners_role_keeps_the_size_of_its_own_threads(place: Place) -> None:
    role = place.role()
    with DeltaSaver.open(place.url) as saver:
        for owner in ("acme", "umbra"):
            for number in range(4):
                say(saver.for_owner(owner), f"{owner} {number}", 0, 8000)
        used = used_bytes(saver)
    grant(Server.of(place.url), Grant(role, "writer", "acme"))
    with DeltaSaver.open(with_user(place.url, role), retention=Retention(max_bytes=1)) as saver:
        assert 0 < used_bytes(saver) < used
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            place.asked_by(role, "UPDATE thread_size SET bytes = 0")
        assert place.asked_by(role, "SELECT count(*) FROM thread_size") == [(4,)]
        assert place.asked_by(role, "SELECT * FROM size_total") == []
        assert saver.sweep().threads == 4
    with DeltaSaver.open(place.url) as saver:
        assert {thread.id for thread in Threads(saver).each()} == {f"umbra {number}" for number in range(4)}
        assert 0 < used_bytes(saver) < used
