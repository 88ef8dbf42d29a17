"""Databases of LangGraph's own savers are looked into as they are: read, and never written."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from inspected import HOSTILE, browsing, config, read, steps_of, tags, travel
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from postgres.server import SHARED

from langmem_ext import DeltaSaver, NotADatabase, StorageUnavailable
from langmem_ext.inspector import inspector_router
from langmem_ext.inspector.sources.foreign import ForeignSource
from langmem_ext.inspector.sources.opening import open_source


@contextmanager
def sqlite_saver(folder: Path) -> Iterator[tuple[Any, str]]:
    path = str(folder / "checkpoints.sqlite")
    with SqliteSaver.from_conn_string(path) as saver:
        yield saver, path


@contextmanager
def postgres_saver(folder: Path) -> Iterator[tuple[Any, str]]:
    schema = SHARED.new_schema()
    url = SHARED.database().url
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{schema}"')
    with psycopg.connect(
        url, autocommit=True, row_factory=psycopg.rows.dict_row, options=f"-c search_path={schema}"
    ) as connection:
        saver = PostgresSaver(connection)  # type: ignore[arg-type]
        saver.setup()
        yield saver, f"{url}?schema={schema}"


@pytest.fixture(
    params=[sqlite_saver, pytest.param(postgres_saver, marks=pytest.mark.postgres)],
    ids=["sqlite", "postgres"],
)
def foreign(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, str]]:
    with request.param(tmp_path) as found:
        yield found


def test_threads_states_blame_and_bundles_are_there_unimported(foreign: tuple[Any, str]) -> None:
    saver, url = foreign
    graph = travel(saver)
    for thread in ("trip", "other", HOSTILE):
        graph.invoke({"messages": [HumanMessage("Where to?", id="first")]}, config(thread))
    graph.invoke(Command(resume="Rome"), config("trip"))
    graph.update_state(config("trip"), {"city": "Bergen"}, as_node="ask")
    with browsing(url) as client:
        listed = client.get("/ui/").text
        assert read(listed).count("Where to?") == 3
        assert read(listed).count("waits for an answer") == 2
        assert "trip" in read(client.get("/ui/?q=tri").text)
        assert "other" not in read(client.get("/ui/?q=tri").text)
        assert len(tags(client.get("/ui/?order=size").text, "li")) == 3
        talk = client.get("/ui/thread?id=trip").text
        assert "Off to" in read(talk)
        steps = steps_of(talk)
        assert len(steps) == len([*graph.get_state_history(config("trip"))])
        states = [client.get(f"/ui/thread/state?id=trip&at={at}").text for at in steps]
        assert ["Bergen" in read(text) for text in states] == [at == steps[0] for at in steps]
        assert "edited from outside" in read(
            client.get("/ui/thread/blame?id=trip&channel=city&part=1").text
        )
        at = steps[1]
        assert "ask wrote it" in read(
            client.get(f"/ui/thread/blame?id=trip&channel=city&part=1&at={at}").text
        )
        assert "look wrote it" in read(
            client.get('/ui/thread/blame?id=trip&channel=messages&part=1&path=["look-1"]').text
        )
        for name in ("changes", "context", "usage"):
            assert client.get(f"/ui/thread/{name}?id=trip").status_code == 200
        assert client.get("/ui/thread/bundle?id=trip").text.count("\n") > 5
        asked = read(client.get("/ui/thread?id=other").text)
        assert "Rome or Oslo?" in asked
        assert "import-checkpoints" in asked
        assert "--graph" not in asked, "no graph can answer where nothing is written"
        assert "read only" in read(talk)
        assert not any("fork" in str(form.get("action")) for form in tags(talk, "form"))
        assert client.get("/ui/search?q=Rome").status_code == 400
        assert client.get("/ui/thread?id=nothing").status_code == 404


def test_pages_of_many_threads_follow_each_other(foreign: tuple[Any, str]) -> None:
    saver, url = foreign
    graph = travel(saver)
    for at in range(55):
        graph.update_state(
            config(f"thread-{at}"), {"messages": [HumanMessage(f"number {at}.")]}, as_node="look"
        )
    with browsing(url) as client:
        for order in ("used", "size"):
            text = client.get(f"/ui/?order={order}").text
            found = [*tags(text, "li")]
            following = next(
                str(link["href"]) for link in tags(text, "a") if link.get("rel") == "next"
            )
            found += tags(client.get(following).text, "li")
            assert len(found) == 55
        assert "55" in read(client.get("/ui/").text)


def test_the_file_is_not_written(tmp_path: Path) -> None:
    with sqlite_saver(tmp_path) as (saver, path):
        travel(saver).invoke({"messages": [HumanMessage("Where to?")]}, config("trip"))
        saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    before = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    with browsing(path) as client:
        for name in ("", "thread?id=trip", "thread/state?id=trip", "thread/bundle?id=trip"):
            assert client.get(f"/ui/{name}").status_code == 200
    assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == before
    assert [one.name for one in tmp_path.iterdir()] == ["checkpoints.sqlite"]


def test_a_postgres_connection_cannot_write(tmp_path: Path) -> None:
    with postgres_saver(tmp_path) as (saver, url):
        travel(saver).invoke({"messages": [HumanMessage("Where to?")]}, config("trip"))
        with closing(open_source(url)) as source:
            assert isinstance(source, ForeignSource)
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                source.saver.delete_thread("trip")


def test_what_the_inspector_has_opened_is_closed_with_its_application(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoints.sqlite")
    with SqliteSaver.from_conn_string(path) as saver:
        saver.setup()
    with browsing(path) as client:
        assert client.get("/ui/").status_code == 200
    assert "closed" in read(client.get("/ui/").text)
    with DeltaSaver.open(str(tmp_path / "memory.db")) as own:
        with browsing(own) as client:
            assert client.get("/ui/").status_code == 200
        assert own.get_tuple(config("nothing")) is None  # it is still open


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database, and long enough to be read as one" * 50)
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection, connection:
        connection.execute("CREATE TABLE checkpoints (x)")
    for name, error in (
        ("nothing.db", StorageUnavailable),
        (".", StorageUnavailable),
        ("text.db", NotADatabase),
        ("other.db", NotADatabase),
    ):
        with pytest.raises(error):
            inspector_router(str(tmp_path / name))
    assert not (tmp_path / "nothing.db").exists()
