"""PgBouncer in transaction mode: what goes wrong behind it, so that tests of the driver have
something to withstand, and what works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from patience import PATIENCE_S
from savers import Calls, Mode, run_without_loop

from langmem_ext import DeltaSaver, InvalidInput, StorageUnavailable, ThreadBusy
from langmem_ext.storage.postgres.server import Server, storage_error
from langmem_ext.storage.postgres.wire.commands import Command
from langmem_ext.storage.postgres.wire.exchange import begin_session, exchange
from postgres.bouncer import Bouncer
from postgres.server import SHARED, Database

SHOW = "SHOW statement_timeout"
OPTIONS = "-c statement_timeout=13s"


@pytest.fixture
def bouncer(database: Database) -> Iterator[Bouncer]:
    """One that has lent nothing yet: its first two clients share its first connection as long as
    neither is in a transaction.
    """
    with Bouncer(database.url) as made:
        yield made


def connected(bouncer: Bouncer, *, prepare_threshold: int | None = None) -> psycopg.Connection:
    return psycopg.connect(bouncer.url, autocommit=True, prepare_threshold=prepare_threshold)


def test_clients_share_connections(bouncer: Bouncer) -> None:
    with connected(bouncer) as one, connected(bouncer) as other:
        assert (
            len(
                {
                    connection.execute("SELECT pg_backend_pid()").fetchone()
                    for connection in (one, other)
                }
            )
            == 1
        )
        with one.transaction():
            mine = one.execute("SELECT pg_backend_pid()").fetchone()
            assert other.execute("SELECT pg_backend_pid()").fetchone() != mine
            assert one.execute("SELECT pg_backend_pid()").fetchone() == mine


def test_a_prepared_statement_is_missed_on_another_connection(bouncer: Bouncer) -> None:
    with connected(bouncer, prepare_threshold=0) as one, connected(bouncer) as other:
        one.execute("SELECT %s::int", [1])
        with other.transaction():
            other.execute("SELECT 1")  # has the connection on which it was prepared
            with pytest.raises(psycopg.errors.InvalidSqlStatementName):
                one.execute("SELECT %s::int", [2])


def test_nothing_prepared_is_nothing_missed_also_in_pipelines(bouncer: Bouncer) -> None:
    with connected(bouncer) as one, connected(bouncer) as other:
        for number in range(10):
            with other.transaction(force_rollback=bool(number % 2)):
                other.execute("SELECT 1")
                with one.pipeline():
                    cursors = [one.execute("SELECT %s::int", [number + step]) for step in range(5)]
                assert [cursor.fetchone() for cursor in cursors] == [
                    (number + step,) for step in range(5)
                ]


def test_an_advisory_lock_of_a_session_keeps_nobody_out_and_one_of_a_transaction_does(
    bouncer: Bouncer,
) -> None:
    with connected(bouncer) as one, connected(bouncer) as other:
        assert one.execute("SELECT pg_try_advisory_lock(1)").fetchone() == (True,)
        assert other.execute("SELECT pg_try_advisory_lock(1)").fetchone() == (True,)
        with one.transaction():
            assert one.execute("SELECT pg_try_advisory_xact_lock(2)").fetchone() == (True,)
            assert other.execute("SELECT pg_try_advisory_xact_lock(2)").fetchone() == (False,)


def test_a_setting_reaches_other_clients_and_a_local_one_does_not(bouncer: Bouncer) -> None:
    with connected(bouncer) as one, connected(bouncer) as other:
        with one.transaction():
            one.execute("SET LOCAL statement_timeout = '11s'")
            assert one.execute(SHOW).fetchone() == ("11s",)
        assert other.execute(SHOW).fetchone() == ("0",)
        one.execute("SET statement_timeout = '12s'")
        assert other.execute(SHOW).fetchone() == ("12s",)


def test_who_listens_hears_nothing(bouncer: Bouncer, database: Database) -> None:
    with connected(bouncer) as through, psycopg.connect(database.url, autocommit=True) as direct:
        for connection in (through, direct):
            connection.execute("LISTEN news")
        direct.execute("NOTIFY news")
        assert [news.channel for news in direct.notifies(timeout=PATIENCE_S, stop_after=1)] == [
            "news"
        ]
        assert list(through.notifies(timeout=0.3)) == []


def test_options_of_a_connection_are_refused_or_followed(bouncer: Bouncer) -> None:
    if bouncer.version < (1, 20):
        with pytest.raises(
            psycopg.OperationalError, match="unsupported startup parameter: options"
        ):
            psycopg.connect(bouncer.url, options=OPTIONS)
        return
    with psycopg.connect(bouncer.url, options=OPTIONS, autocommit=True) as connection:
        assert connection.execute(SHOW).fetchone() == ("13s",)


# -- who prepares statements behind it nevertheless ------------------------------------------------

TWICE = 2
"""How often a statement comes before it is prepared."""


def url_of(bouncer: Bouncer, database: Database, **options: str) -> str:
    return (
        f"{bouncer.url}?{urlencode({'schema': SHARED.tables(), 'direct': database.url, **options})}"
    )


async def store(saver: DeltaSaver, calls: Calls, thread: str) -> None:
    """Store checkpoints and find them again, until every statement for it is prepared."""
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    for _ in range(TWICE):
        written = await calls.call(saver, "put", config, empty_checkpoint(), {}, {})
        assert await calls.call(saver, "get_tuple", written) is not None


def test_a_saver_that_lacks_the_option_is_told_of_it(
    bouncer: Bouncer, database: Database, mode: Mode
) -> None:
    async def story() -> None:
        calls, url = Calls(mode), url_of(bouncer, database)
        one, other = DeltaSaver.open(url), DeltaSaver.open(url)
        try:
            await store(one, calls, "t")
            with pytest.raises(
                StorageUnavailable,
                match=r"already exists\).*add prepare=off .*direct=.*nothing was changed",
            ):
                await store(other, calls, "t")
            with connected(bouncer) as third, third.transaction():
                third.execute("SELECT 1")  # has the connection on which it was prepared
                with pytest.raises(
                    StorageUnavailable,
                    match=r"does not exist\).*add prepare=off .*direct=.*nothing was changed",
                ):
                    await store(one, calls, "t")
        finally:
            for saver in (one, other):
                await calls.call(saver, "close")

    run_without_loop(story()) if mode == "sync" else asyncio.run(story())


def test_savers_that_have_the_option_are_told_nothing(
    bouncer: Bouncer, database: Database, mode: Mode
) -> None:
    async def story() -> None:
        calls, url = Calls(mode), url_of(bouncer, database, prepare="off")
        savers = [DeltaSaver.open(url) for _ in range(3)]
        for _ in range(2):
            for number, saver in enumerate(savers):
                await store(saver, calls, f"t{number}")
        for saver in savers:
            await calls.call(saver, "close")

    run_without_loop(story()) if mode == "sync" else asyncio.run(story())


def test_a_direct_url_of_another_database_is_refused_and_nothing_is_made_there(
    bouncer: Bouncer, database: Database
) -> None:
    schema = SHARED.new_schema()
    with pytest.raises(InvalidInput, match="another database"):
        DeltaSaver.open(
            url_of(bouncer, database, prepare="off", schema=schema, direct=database.server)
        )
    for url in (database.server, database.url):
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT to_regnamespace(%s)", [schema]).fetchone() == (None,)


async def lease(saver: DeltaSaver, mode: Mode) -> None:
    if mode == "sync":
        with saver.lease("t", wait=0):
            return
    async with saver.alease("t", wait=0):
        return


def test_a_lease_needs_a_session_and_is_refused_where_a_pooler_keeps_none(
    bouncer: Bouncer, database: Database, mode: Mode
) -> None:
    async def story() -> None:
        refused = pytest.raises(
            InvalidInput, match=r"pooler.*direct= to its URL.*nothing was changed"
        )
        with DeltaSaver.open(url_of(bouncer, database, prepare="off", direct="")) as saver, refused:
            await lease(saver, mode)
        schema = SHARED.tables()
        past = url_of(bouncer, database, prepare="off", schema=schema)
        for url in (past, f"{database.url}?schema={schema}&prepare=off"):
            with DeltaSaver.open(url) as holder, DeltaSaver.open(past) as saver:
                with holder.lease("t"), pytest.raises(ThreadBusy):
                    await lease(saver, mode)
                await lease(saver, mode)

    run_without_loop(story()) if mode == "sync" else asyncio.run(story())


def ask(connection: psycopg.Connection, sql: str, **params: object) -> Any:
    return exchange(connection, [Command(sql, params)], deadline=PATIENCE_S)[0]


@pytest.fixture
def direct(database: Database) -> Iterator[psycopg.Connection]:
    """A connection on which statements are prepared."""
    with psycopg.connect(database.url, autocommit=True, prepare_threshold=None) as connection:
        begin_session(connection, prepare=True)
        yield connection


def prepared(connection: psycopg.Connection) -> dict[str, str]:
    return dict(connection.execute("SELECT name, statement FROM pg_prepared_statements").fetchall())


def test_a_statement_is_called_by_what_it_is(
    direct: psycopg.Connection, database: Database
) -> None:
    asked: list[tuple[str, dict[str, object]]] = [
        ("SELECT %(n)s + 1", {"n": 1}),
        ("SELECT %(n)s + 2", {"n": 1}),
        ("SELECT 3", {}),
    ]
    with psycopg.connect(database.url, autocommit=True, prepare_threshold=None) as other:
        begin_session(other, prepare=True)
        for _ in range(TWICE):
            for sql, params in asked:
                ask(direct, sql, **params)
            for sql, params in reversed(asked):
                ask(other, sql, **params)
        assert prepared(direct) == prepared(other)
    assert len(prepared(direct)) == len(asked)


def test_a_statement_with_parameters_of_other_types_is_another_one(
    direct: psycopg.Connection,
) -> None:
    for value in (1, "one", b"one", 1.0) * TWICE:
        assert ask(direct, "SELECT %(value)s, 1", value=value) == [(value, 1)]
    assert len(prepared(direct)) == 4


def test_where_the_name_is_another_statements_the_option_is_told(
    direct: psycopg.Connection,
) -> None:
    for _ in range(TWICE):
        ask(direct, "SELECT %(n)s + 1", n=1)
    [name] = prepared(direct)
    direct.execute(f'DEALLOCATE "{name}"'.encode())
    direct.execute(f'PREPARE "{name}" (int, int) AS SELECT $1 + $2'.encode())
    with pytest.raises(psycopg.errors.ProtocolViolation) as raised:
        ask(direct, "SELECT %(n)s + 1", n=1)
    assert "add prepare=off to its URL" in str(
        storage_error(raised.value, Server.of("postgresql://host/x"))
    )
    assert "prepare=off" not in str(
        storage_error(raised.value, Server.of("postgresql://host/x?prepare=off"))
    )


def test_what_was_prepared_before_a_failure_is_used_again_and_what_was_behind_it_is_prepared_anew(
    direct: psycopg.Connection,
) -> None:
    good, late, bad = Command("SELECT 1"), Command("SELECT 2"), Command("SELECT 1 / 0")
    for _ in range(TWICE):
        exchange(direct, [good], deadline=PATIENCE_S)
    exchange(direct, [late], deadline=PATIENCE_S)
    for _ in range(2 * TWICE):
        with pytest.raises(psycopg.errors.DivisionByZero):
            exchange(direct, [good, bad, late], deadline=PATIENCE_S)
    assert "SELECT 2" not in prepared(direct).values()
    for _ in range(TWICE):
        assert exchange(direct, [good, late], deadline=PATIENCE_S) == [[(1,)], [(2,)]]
    assert sorted(prepared(direct).values()) == ["SELECT 1", "SELECT 1 / 0", "SELECT 2"]


@pytest.mark.parametrize("change", ["ALTER TABLE {} ADD COLUMN more INTEGER", "DEALLOCATE ALL"])
def test_what_has_become_outdated_is_prepared_again(
    direct: psycopg.Connection, numbers: str, change: str
) -> None:
    for _ in range(TWICE):
        ask(direct, f"SELECT * FROM {numbers}")
        ask(direct, "SELECT 1")
    for _ in range(TWICE):
        direct.execute(change.format(numbers).encode())
        with pytest.raises(
            (psycopg.errors.FeatureNotSupported, psycopg.errors.InvalidSqlStatementName)
        ):
            ask(direct, f"SELECT * FROM {numbers}")
        for _ in range(TWICE):
            assert ask(direct, f"SELECT * FROM {numbers}") == ()
            assert ask(direct, "SELECT 1") == [(1,)]
        change = change.replace("more", "another")
