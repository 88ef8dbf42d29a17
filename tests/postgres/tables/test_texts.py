"""Promise: every text is stored as it is and found again, whatever is usual at the client; a
database that cannot do that is refused.
"""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from psycopg import sql
from savers import empty_tables

from langmem_ext import DeltaSaver, StorageUnavailable, ThreadChatMessageHistory, Threads
from postgres.server import SHARED, Database, with_database

SAID = "日本 😀 \\u0000 ü"


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_clients_usual_encoding_changes_nothing(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = empty_tables(tmp_path)
    monkeypatch.setenv("PGCLIENTENCODING", encoding)
    for _ in range(2):
        with DeltaSaver.open(f"{url}&client_encoding={encoding}") as saver:
            ThreadChatMessageHistory(SAID, saver).add_messages([HumanMessage(SAID)])
    with DeltaSaver.open(url) as saver:
        assert [message.text for message in ThreadChatMessageHistory(SAID, saver).messages] == [
            SAID,
            SAID,
        ]
        assert [(thread.id, thread.title) for thread in Threads(saver).list()] == [(SAID, SAID)]
        assert len(Threads(saver).search("日本")) == 2


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_hold_every_text_is_refused_and_left_as_it_is(
    encoding: str, database: Database
) -> None:
    name = f"{database.name}_{uuid4().hex[:8]}"
    with psycopg.connect(database.server, autocommit=True) as connection:
        make = "CREATE DATABASE {} TEMPLATE template0 ENCODING {} LC_COLLATE 'C' LC_CTYPE 'C'"
        connection.execute(sql.SQL(make).format(sql.Identifier(name), sql.Literal(encoding)))
        try:
            with pytest.raises(StorageUnavailable, match=f"encoding {encoding}.*ENCODING 'UTF8'"):
                DeltaSaver.open(with_database(database.server, name))
            with psycopg.connect(with_database(database.server, name)) as there:
                assert there.execute(
                    "SELECT count(*) FROM pg_namespace WHERE nspname = 'langmem_ext'"
                ).fetchone() == (0,)
        finally:
            connection.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))


def test_a_socket_is_named_behind_the_question_mark_as_libpq_has_it() -> None:
    url = f"postgresql:///nowhere?host=/tmp/{uuid4().hex}&schema=s"
    with pytest.raises(StorageUnavailable, match=r"nowhere at /tmp/"):
        DeltaSaver.open(url)


def test_the_server_is_found_by_a_url_without_a_host(tmp_path: Path) -> None:
    place, _, schema = empty_tables(tmp_path).partition("?")
    known = psycopg.conninfo.conninfo_to_dict(place)
    options = "&".join(
        f"{name}={known[name]}" for name in ("host", "port", "user") if name in known
    )
    with DeltaSaver.open(f"postgresql:///{known['dbname']}?{options}&{schema}") as saver:
        ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("hello")])
    assert SHARED.database().name == known["dbname"]
