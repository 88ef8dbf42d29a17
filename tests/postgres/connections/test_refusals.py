"""Promise: who gets no connection is told why, and what to do about it, also where a pool has
waited for one; a password is never told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from savers import Calls, Mode, run_without_loop

from langmem_ext import DeltaSaver, StorageUnavailable
from postgres.cluster import Cluster
from postgres.server import Database

SECRET = "secret-word"
CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
RULES = """
host all postgres 127.0.0.1/32 trust
host all app,outsider 127.0.0.1/32 scram-sha-256
"""
CONNECTIONS = 8
RESERVED = 3


@pytest.fixture(scope="module")
def guarded() -> Iterator[Cluster]:
    """A server with few connections, that asks the role `app` for its password, and knows no rule
    for others.
    """
    with Cluster(
        settings={
            "max_connections": str(CONNECTIONS),
            "superuser_reserved_connections": str(RESERVED),
        }
    ) as made:
        made.execute("CREATE ROLE idle")
        made.execute(f"CREATE ROLE app LOGIN PASSWORD '{SECRET}'")
        made.execute('CREATE DATABASE "too many clients" OWNER app')
        (hba,) = made.execute("SHOW hba_file")
        Path(hba[0]).write_text(RULES, encoding="utf-8")
        made.execute("SELECT pg_reload_conf()")
        yield made


def url_of(cluster: Cluster, account: str, name: str = "too%20many%20clients") -> str:
    return f"postgresql://{account}@127.0.0.1:{cluster.port}/{name}"


def refusal_of(url: str) -> str:
    with pytest.raises(StorageUnavailable, match="cannot be reached") as raised:
        DeltaSaver.open(url)
    assert SECRET not in str(raised.value)
    return str(raised.value).rpartition("): ")[2]


@pytest.mark.parametrize(
    ("account", "name", "advice"),
    [
        ("postgres", "password", "create the database first"),
        (f"app:{SECRET}x", "too%20many%20clients", "check user and password"),
        ("app", "too%20many%20clients", "check user and password"),
        ("outsider:x", "too%20many%20clients", "check user and password"),
        ("stranger:x", "too%20many%20clients", "pg_hba.conf"),
    ],
)
def test_what_a_server_refuses_is_told_with_what_to_do(
    guarded: Cluster, account: str, name: str, advice: str
) -> None:
    assert advice in refusal_of(url_of(guarded, account, name))


def test_a_server_without_room_is_told_with_what_to_do(guarded: Cluster) -> None:
    with ExitStack() as others:
        for _ in range(CONNECTIONS - RESERVED):
            others.enter_context(psycopg.connect(url_of(guarded, f"app:{SECRET}")))
        assert "lessen pool_size" in refusal_of(url_of(guarded, f"app:{SECRET}"))
        assert "its URL is right" not in refusal_of(url_of(guarded, f"app:{SECRET}"))


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        (
            f"postgresql://me:{SECRET}@127.0.0.1:1/shop",
            "check that the server is running and its URL is right",
        ),
        (f"postgresql://me:{SECRET}@no.such.host.invalid/shop", "check the host in its URL"),
    ],
)
def test_where_there_is_no_server_it_is_told_what_to_look_at(url: str, advice: str) -> None:
    assert advice in refusal_of(url)


def test_a_server_that_asks_for_no_tls_is_told_of(database: Database) -> None:
    url = f"{database.url}?sslmode=verify-full&sslrootcert=/nonexistent"
    with pytest.raises(StorageUnavailable, match="check sslmode in its URL"):
        DeltaSaver.open(url)


def test_a_pool_tells_why_there_was_no_connection_and_goes_on_once_there_is(
    guarded: Cluster, mode: Mode
) -> None:
    async def story(saver: DeltaSaver) -> None:
        calls = Calls(mode)
        config = await calls.call(saver, "put", CONFIG, empty_checkpoint(), {}, {})
        guarded.execute("ALTER ROLE app PASSWORD 'another'")
        try:
            guarded.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'app'"
            )
            told = await told_by(calls, saver, config)
            assert "no connection within 10 s; at last: " in told
            assert 'password authentication failed for user "app"' in told
            assert told.endswith("check user and password")
        finally:
            guarded.execute(f"ALTER ROLE app PASSWORD '{SECRET}'")
        await until_there_is_one(calls, saver, config)
        guarded.execute("ALTER ROLE app CONNECTION LIMIT 0")
        try:
            guarded.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'app'"
            )
            assert (await told_by(calls, saver, config)).endswith("max_connections")
        finally:
            guarded.execute("ALTER ROLE app CONNECTION LIMIT -1")
        await until_there_is_one(calls, saver, config)

    with DeltaSaver.open(f"{url_of(guarded, f'app:{SECRET}')}?deadline=10") as saver:
        if mode == "sync":
            run_without_loop(story(saver))
        else:
            asyncio.run(closed_after(story(saver), saver))


async def closed_after(story: Any, saver: DeltaSaver) -> None:
    try:
        await story
    finally:
        await saver.aclose()


async def told_by(calls: Calls, saver: DeltaSaver, config: Any) -> str:
    with pytest.raises(StorageUnavailable, match="cannot be reached") as raised:
        await calls.call(saver, "get_tuple", config)
    assert SECRET not in str(raised.value)
    assert SECRET not in repr(raised.value.__cause__)
    return str(raised.value)


async def until_there_is_one(calls: Calls, saver: DeltaSaver, config: Any) -> None:
    for attempt in range(20):
        try:
            assert await calls.call(saver, "get_tuple", config) is not None
        except StorageUnavailable:
            if attempt == 19:
                raise
        else:
            return
