"""Promise: behind PgBouncer in transaction mode a saver works with `prepare=off` and `direct=`, and
one that lacks them is told so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from savers import Calls, Mode, run_without_loop

from langmem_ext import DeltaSaver, InvalidInput, StorageUnavailable, ThreadBusy
from postgres.bouncer import Bouncer
from postgres.server import SHARED, Database


@pytest.fixture
def bouncer(database: Database) -> Iterator[Bouncer]:
    """One that has lent nothing yet: its first two clients share its first connection as long as
    neither is in a transaction.
    """
    with Bouncer(database.url) as made:
        yield made


def connected(bouncer: Bouncer, *, prepare_threshold: int | None = None) -> psycopg.Connection:
    return psycopg.connect(bouncer.url, autocommit=True, prepare_threshold=prepare_threshold)


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
        for prepare in ("off", "on"):
            url = url_of(bouncer, database, prepare=prepare, direct="")
            with DeltaSaver.open(url) as saver, refused:
                await lease(saver, mode)
        schema = SHARED.tables()
        past = url_of(bouncer, database, prepare="off", schema=schema)
        for url in (past, f"{database.url}?schema={schema}&prepare=off"):
            with DeltaSaver.open(url) as holder, DeltaSaver.open(past) as saver:
                with holder.lease("t"), pytest.raises(ThreadBusy):
                    await lease(saver, mode)
                await lease(saver, mode)

    run_without_loop(story()) if mode == "sync" else asyncio.run(story())
