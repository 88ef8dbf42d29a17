"""Promises of roles: a writer needs no rights on the schema, a reader changes nothing, and an
owner's role sees its own threads alone.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from savers import Calls, Mode
from typer.testing import CliRunner

from langmem_ext import (
    DeltaSaver,
    InvalidInput,
    Retention,
    StorageUnavailable,
    ThreadChatMessageHistory,
    ThreadNotFound,
    Threads,
    examine,
    stats,
)
from langmem_ext.cli.app import app
from langmem_ext.cli.examples import examples_of
from langmem_ext.storage.checkpoints.sql import (
    SELECT_ITEMS,
    SELECT_LATEST_CHECKPOINT,
    SELECT_THREAD,
)
from langmem_ext.storage.postgres.roles import Grant, grant, granted, revoke, settle
from langmem_ext.storage.postgres.server import Server
from langmem_ext.storage.rows.ids import thread_number
from langmem_ext.storage.schema.dialect import postgres
from langmem_ext.storage.schema.migrations import MIGRATIONS
from postgres.server import SHARED, Database

TABLES = ("thread", "namespace", "word", "item", "value", "checkpoint", "pending_write")
"""Those with rows of threads."""


def with_user(url: str, role: str) -> str:
    """The URL with which a role comes in."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{role}@{parts.netloc.rpartition('@')[2]}"))


@dataclass
class Place:
    """A schema with the tables, and roles that are dropped after the test."""

    database: Database
    schema: str
    roles: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """For the role that owns the tables."""
        return f"{self.database.url}?schema={self.schema}"

    @property
    def server(self) -> Server:
        return Server.of(self.url)

    def role(self, options: str = "LOGIN") -> str:
        """A new role of the server."""
        name = f"langmem_ext_test_{uuid4().hex[:12]}"
        self.execute(f"CREATE ROLE {name} {options}")
        self.roles.append(name)
        return name

    def granted(self, rights: Any, owner: str | None = None) -> str:
        """A new role that was granted this."""
        role = self.role()
        grant(self.server, Grant(role, rights, owner))
        return role

    def as_role(self, role: str) -> str:
        """The URL with which a role comes in."""
        return with_user(self.url, role)

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement as the role that owns the tables."""
        with psycopg.connect(self.database.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def asked_by(self, role: str, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement of a client that uses a role, in the schema."""
        with psycopg.connect(with_user(self.database.url, role), autocommit=True) as connection:
            connection.execute(f"SET search_path = {self.schema}".encode())
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


@pytest.fixture
def place(database: Database, request: pytest.FixtureRequest) -> Iterator[Place]:
    made = Place(database, SHARED.new_schema())
    DeltaSaver.open(made.url + getattr(request, "param", "")).close()
    yield made
    for role in made.roles:
        made.execute(f"DROP OWNED BY {role}")
        made.execute(f"DROP ROLE {role}")


def test_who_owns_the_schema_needs_no_right_to_make_one(place: Place) -> None:
    role, schema = place.role(), f"{place.schema}_given"
    place.execute(f"CREATE SCHEMA {schema} AUTHORIZATION {role}")
    url = with_user(f"{place.database.url}?schema={schema}", role)
    DeltaSaver.open(url).close()
    place.execute(f"DELETE FROM {schema}.langmem_migration WHERE name <> '{MIGRATIONS[0].name}'")
    with DeltaSaver.open(url) as saver:
        ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("hello")])
    assert place.execute(f"SELECT name FROM {schema}.langmem_migration ORDER BY name") == [
        (one.name,) for one in MIGRATIONS
    ]
    with pytest.raises(StorageUnavailable, match="permission denied for database"):
        DeltaSaver.open(with_user(f"{place.database.url}?schema={schema}_not", role))
    place.execute(f"DROP SCHEMA {schema} CASCADE")


def graph_on(saver: Any) -> Any:
    builder = StateGraph(MessagesState).add_node(
        "answer", lambda state: {"messages": [("ai", "a longer answer " * 10)]}
    )
    return builder.add_edge(START, "answer").compile(checkpointer=saver)


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def said(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


@pytest.fixture
def shared(place: Place) -> Place:
    """A database of two owners and of threads without one."""
    with DeltaSaver.open(place.url) as saver:
        for owner in ("acme", "umbra", None):
            bound = saver if owner is None else saver.for_owner(owner)
            graph = graph_on(bound)
            for number in range(2):
                graph.invoke(said(f"of {owner}"), config(f"{owner} {number}"))
            graph.update_state(config(f"{owner} 0"), said("x" * 3000))
            bound.put_writes(
                graph.get_state(config(f"{owner} 0")).config,
                [("messages", HumanMessage("later"))],
                "task",
            )
    return place


def fill(place: Place) -> None:
    """A row of each thread in the tables that have none of it, as a client sees them: nothing else
    can read these.
    """
    place.execute(
        f"INSERT INTO {place.schema}.value SELECT number, 900, 0, '' FROM {place.schema}.thread"
    )
    place.execute(
        f"INSERT INTO {place.schema}.namespace SELECT number, 900, 0, 'n' FROM"
        f" {place.schema}.thread"
    )


# -- one owner's role ------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["", "&partitions=2"], indirect=True)
def test_a_client_with_an_owners_role_reads_no_row_of_others_whatever_it_asks(
    shared: Place,
) -> None:
    role = shared.granted("reader", "acme")
    fill(shared)
    theirs = ", ".join(
        str(thread_number(f"{owner} {number}")) for owner in ("umbra", None) for number in range(2)
    )
    for table in TABLES:
        column = "number" if table == "thread" else "thread"
        [(all_rows, others)] = shared.execute(
            f"SELECT count(*), count(*) FILTER (WHERE {column} IN ({theirs})) FROM"
            f" {shared.schema}.{table}"
        )
        assert shared.asked_by(role, f"SELECT count(*) FROM {table}") == [(all_rows - others,)]
        assert shared.asked_by(role, f"SELECT 1 FROM {table} WHERE {column} IN ({theirs})") == []
        assert all_rows > others > 0
    assert {
        name for (name,) in shared.asked_by(role, "SELECT DISTINCT thread_id FROM conversation")
    } == {"acme 0", "acme 1"}
    assert shared.asked_by(role, "SELECT role, owner FROM grantee") == [(role, "acme")]
    for attempt in (
        "SET row_security = off; SELECT 1 FROM item",
        "SET ROLE postgres",
        "ALTER TABLE item DISABLE ROW LEVEL SECURITY",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            shared.asked_by(role, attempt)


@pytest.mark.parametrize("place", ["", "&partitions=2"], indirect=True)
def test_a_client_with_an_owners_role_writes_no_row_of_others_whatever_it_asks(
    shared: Place,
) -> None:
    role = shared.granted("writer", "acme")
    fill(shared)
    before = [
        shared.execute(f"SELECT * FROM {shared.schema}.{table} ORDER BY {table}::text")
        for table in TABLES
    ]
    theirs = thread_number("umbra 0")
    for table in TABLES:
        column = "number" if table == "thread" else "thread"
        assert (
            shared.asked_by(
                role,
                f"UPDATE {table} SET {column} = {column} WHERE {column} = {theirs} RETURNING 1",
            )
            == []
        )
        assert (
            shared.asked_by(role, f"DELETE FROM {table} WHERE {column} = {theirs} RETURNING 1")
            == []
        )
    for attempt in (
        f"INSERT INTO word VALUES ({theirs}, 999, 0, '')",
        "INSERT INTO item SELECT * FROM item LIMIT 0; UPDATE thread SET owner = 'umbra'",
        f"UPDATE item SET thread = {theirs} WHERE thread = {thread_number('acme 0')}",
        "INSERT INTO setting VALUES ('search', '')",
        "UPDATE grantee SET owner = 'umbra'",
        "DELETE FROM langmem_migration",
        "TRUNCATE item",
        "CREATE TABLE mine ()",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            shared.asked_by(role, attempt)
    assert [
        shared.execute(f"SELECT * FROM {shared.schema}.{table} ORDER BY {table}::text")
        for table in TABLES
    ] == before


async def test_to_an_owners_role_the_threads_of_others_are_not_there(
    shared: Place, mode: Mode
) -> None:
    calls = Calls(mode)
    role = shared.granted("writer", "acme")
    with DeltaSaver.open(shared.as_role(role)) as saver:
        theirs = config("umbra 0")
        assert await calls.call(saver, "get_tuple", theirs) is None
        assert {
            found.config["configurable"]["thread_id"]
            for found in await calls.collect(saver, "list", None)
        } == {"acme 0", "acme 1"}
        assert await calls.collect(saver, "list", theirs) == []
        with pytest.raises(ThreadNotFound, match="umbra 0"):
            await calls.call(graph_on(saver), "invoke", said("mine now"), theirs)
        at = {
            "configurable": {
                **theirs["configurable"],
                "checkpoint_ns": "",
                "checkpoint_id": str(uuid4()),
            }
        }
        with pytest.raises(ThreadNotFound):
            await calls.call(saver, "put_writes", at, [("messages", HumanMessage("mine"))], "task")
        with pytest.raises(ThreadNotFound):
            await calls.call(saver, "copy_thread", "acme 1", "umbra 0")
        await calls.call(saver, "copy_thread", "umbra 0", "stolen")
        await calls.call(saver, "delete_thread", "umbra 0")
        assert (await calls.call(saver, "prune", ["umbra 0"])).checkpoints == 0
        with pytest.raises(StorageUnavailable, match="the threads of its own owner"):
            await calls.call(
                graph_on(saver.for_owner("umbra")), "invoke", said("hello"), config("a new one")
            )
        if mode == "async":
            await saver.aclose()
    with DeltaSaver.open(shared.url) as saver:
        assert sorted(thread.id for thread in Threads(saver).each(status=None)) == [
            *("None 0", "None 1", "acme 0", "acme 1", "umbra 0", "umbra 1")
        ]
        assert len(list(saver.list(theirs))) == 4
        assert examine(saver).ok


async def test_an_owners_role_works_with_its_own_threads_as_ever(shared: Place, mode: Mode) -> None:
    calls = Calls(mode)
    role = shared.granted("writer", "acme")
    with DeltaSaver.open(shared.as_role(role), retention=Retention(keep_last=2)) as saver:
        graph = graph_on(saver)
        for number in range(3):
            await calls.call(graph, "invoke", said(f"turn {number}"), config("acme new"))
        assert (
            len((await calls.call(graph, "get_state", config("acme new"))).values["messages"]) == 6
        )
        assert (await calls.call(saver, "sweep")).checkpoints > 0
        await calls.call(saver, "copy_thread", "acme 0", "acme copy")
        await calls.call(saver, "delete_thread", "acme 0")
        threads = Threads(saver)
        assert sorted(thread.id for thread in threads.each(status=None)) == [
            "acme 1",
            "acme copy",
            "acme new",
        ]
        assert threads.count() == 3
        assert (threads.stats().threads, (await asyncio.to_thread(stats, saver)).threads) == (3, 3)
        assert (await asyncio.to_thread(examine, saver, fix=True)).ok
        with saver.lease("acme 1"):
            pass
        if mode == "async":
            await saver.aclose()
    owners = shared.execute(
        f"SELECT owner FROM {shared.schema}.thread WHERE starts_with(id, 'acme')"
    )
    assert owners == [("acme",)] * 3, "what it makes without an owner is its own owner's"


def test_statements_of_who_serves_all_owners_have_the_same_plan_as_without(shared: Place) -> None:
    writer = shared.granted("writer")
    dialect = postgres(shared.schema)
    known = {
        "thread": thread_number("acme 0"),
        "low": 0,
        "high": 9,
        "namespace": 0,
        "id": "acme 0",
        "id_number": thread_number("acme 0"),
    }

    def plans(role: str) -> list[str]:
        with psycopg.connect(with_user(shared.database.url, role)) as connection:
            connection.execute("SET LOCAL enable_seqscan = off")
            cursor = psycopg.ClientCursor(connection)
            return [
                "\n".join(
                    line
                    for (line,) in cursor.execute(
                        f"EXPLAIN (COSTS OFF) {dialect.render(statement)}".encode(), known
                    ).fetchall()
                )
                for statement in (SELECT_THREAD, SELECT_ITEMS, SELECT_LATEST_CHECKPOINT)
            ]

    before = plans(writer)
    role = shared.granted("reader", "acme")
    assert plans(writer) == before
    statement = dialect.render(SELECT_ITEMS)
    with psycopg.connect(with_user(shared.database.url, role)) as connection:
        cursor = psycopg.ClientCursor(connection)
        plan = "\n".join(
            line
            for (line,) in cursor.execute(
                f"EXPLAIN (COSTS OFF) {statement}".encode(), known
            ).fetchall()
        )
    assert "hashed" not in plan, (
        "the thread of a row is looked up by its key, however many the owner has"
    )
    assert plan.count("Scan on thread") + plan.count("on thread seen") >= 1


def test_row_level_security_is_on_while_a_role_is_bound_to_an_owner(shared: Place) -> None:
    def is_on() -> set[bool]:
        names = ", ".join(f"'{table}'" for table in TABLES)
        rows = shared.execute(
            "SELECT relrowsecurity FROM pg_class WHERE relnamespace ="
            f" '{shared.schema}'::regnamespace AND relname IN ({names})"
        )
        return {on for (on,) in rows}

    writer = shared.granted("writer")
    assert is_on() == {False}
    role = shared.granted("reader", "acme")
    assert is_on() == {True}
    other = shared.granted("writer", "umbra")
    assert shared.asked_by(writer, "SELECT count(*) FROM thread") == [(6,)]
    assert [shared.asked_by(each, "SELECT count(*) FROM thread") for each in (role, other)] == [
        [(2,)],
        [(2,)],
    ]
    assert granted(shared.server) == sorted(
        [Grant(writer, "writer"), Grant(role, "reader", "acme"), Grant(other, "writer", "umbra")],
        key=lambda one: one.role,
    )
    grant(shared.server, Grant(role, "reader", "umbra"))
    assert shared.asked_by(role, "SELECT DISTINCT owner FROM thread") == [("umbra",)]
    revoke(shared.server, role)
    assert is_on() == {True}
    revoke(shared.server, other)
    assert is_on() == {False}
    assert shared.execute(
        f"SELECT count(*) FROM pg_policies WHERE schemaname = '{shared.schema}'"
    ) == [(0,)]
    assert shared.asked_by(writer, "SELECT count(*) FROM thread") == [(6,)]
    for gone in (role, other):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            shared.asked_by(gone, f"SELECT 1 FROM {shared.schema}.thread")


def test_what_would_show_an_owners_role_more_is_refused(shared: Place) -> None:
    above = shared.granted("writer")
    for role, seen in (
        (shared.role("SUPERUSER"), "superuser"),
        (shared.role("BYPASSRLS"), "bypasses"),
        (shared.role(f"NOINHERIT IN ROLE {above}"), above),
        (shared.role("IN ROLE pg_read_all_data"), "pg_read_all_data"),
    ):
        with pytest.raises(
            InvalidInput, match=seen if seen in (above, "pg_read_all_data") else role
        ):
            grant(shared.server, Grant(role, "reader", "acme"))
    assert granted(shared.server) == [Grant(above, "writer")]
    with pytest.raises(InvalidInput, match="CREATE ROLE"):
        grant(shared.server, Grant("nobody_of_this_name", "reader"))


def test_a_role_that_would_go_blind_is_named_first(shared: Place) -> None:
    by_hand = shared.role()
    shared.execute(f"GRANT USAGE ON SCHEMA {shared.schema} TO {by_hand}")
    shared.execute(f"GRANT SELECT ON {shared.schema}.thread TO {by_hand}")
    role = shared.role()
    with pytest.raises(InvalidInput, match=by_hand):
        grant(shared.server, Grant(role, "reader", "acme"))
    assert shared.asked_by(by_hand, "SELECT count(*) FROM thread") == [(6,)]
    grant(shared.server, Grant(by_hand, "reader"))
    grant(shared.server, Grant(role, "reader", "acme"))
    assert shared.asked_by(by_hand, "SELECT count(*) FROM thread") == [(6,)]


def test_tables_that_come_later_are_covered_and_parts_of_tables_are_reached_through_them_alone(
    shared: Place,
) -> None:
    role = shared.granted("reader", "acme")
    for statement in (
        (
            "CREATE TABLE {}.later (thread BIGINT, n INTEGER, PRIMARY KEY (thread, n)) PARTITION BY"
            " HASH (thread)"
        ),
        "CREATE TABLE {}.later_0 PARTITION OF {}.later FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
        "INSERT INTO {}.later SELECT number, 0 FROM {}.thread",
    ):
        shared.execute(statement.replace("{}", shared.schema))
    with psycopg.connect(shared.database.url) as connection:
        settle(connection, shared.schema)
    assert shared.asked_by(role, "SELECT count(*) FROM later") == [(2,)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        shared.asked_by(role, "SELECT count(*) FROM later_0")


# -- least privilege -------------------------------------------------------------------------------


async def test_a_writer_does_all_that_needs_no_tables_made(place: Place, mode: Mode) -> None:
    calls = Calls(mode)
    with DeltaSaver.open(
        place.as_role(place.granted("writer")), retention=Retention(keep_last=2)
    ) as saver:
        graph = graph_on(saver)
        for number in range(4):
            await calls.call(graph, "invoke", said(f"turn {number}"), config("t"))
        at = (await calls.call(graph, "get_state", config("t"))).config
        await calls.call(saver, "put_writes", at, [("messages", HumanMessage("later"))], "task")
        assert len(await calls.collect(saver, "list", config("t"))) == 12
        await calls.call(saver, "copy_thread", "t", "copy")
        assert (await calls.call(saver, "prune", ["copy"])).checkpoints == 11
        assert (await calls.call(saver, "sweep")).checkpoints == 10
        await calls.call(saver, "delete_thread", "copy")
        assert [thread.id for thread in Threads(saver).each()] == ["t"]
        Threads(saver).rename("t", "a title")
        assert examine(saver).ok
        with pytest.raises(StorageUnavailable, match="the role that owns them"):
            await calls.call(saver, "compact")
        if mode == "async":
            await saver.aclose()


def test_a_reader_reads_everything_and_each_write_is_refused(shared: Place) -> None:
    role = shared.granted("reader")
    writes: list[Callable[[Any], object]] = [
        lambda saver: graph_on(saver).invoke(said("hello"), config("acme 0")),
        lambda saver: graph_on(saver).invoke(said("hello"), config("new")),
        lambda saver: saver.delete_thread("acme 0"),
        lambda saver: saver.copy_thread("acme 0", "copy"),
        lambda saver: saver.prune(["acme 0"]),
        lambda saver: Threads(saver).rename("acme 0", "another title"),
        lambda saver: ThreadChatMessageHistory("acme 0", saver).add_messages(
            [HumanMessage("hello")]
        ),
    ]
    before = shared.execute(f"SELECT * FROM {shared.schema}.thread ORDER BY 1")
    for option, told in (("&mode=ro", "opened read-only"), ("", "roles grant")):
        with DeltaSaver.open(shared.as_role(role) + option) as saver:
            assert len(graph_on(saver).get_state(config("acme 0")).values["messages"]) == 3
            assert len(list(saver.list(None))) == 3 * (4 + 3)
            assert (
                Threads(saver).count(),
                stats(saver).threads,
                Threads(saver).stats().threads,
            ) == (6, 6, 6)
            assert saver.prune(["acme 0"], dry_run=True).checkpoints == 3
            assert examine(saver).ok
            for write in writes:
                with pytest.raises(StorageUnavailable, match=told):
                    write(saver)
    assert shared.execute(f"SELECT * FROM {shared.schema}.thread ORDER BY 1") == before


def test_a_role_without_rights_is_told_what_it_lacks(place: Place) -> None:
    role = place.role()
    with pytest.raises(StorageUnavailable, match="roles grant"):
        DeltaSaver.open(place.as_role(role))
    with pytest.raises(StorageUnavailable, match="roles grant"):
        DeltaSaver.open(f"{with_user(place.database.url, role)}?schema={SHARED.new_schema()}")
    with pytest.raises(StorageUnavailable, match="their owner"):
        grant(Server.of(place.as_role(place.granted("writer"))), Grant(role, "reader"))


# -- the command line ------------------------------------------------------------------------------


def command(place: Place, *words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["roles", *words, "--db", place.url])
    assert done.exit_code == code, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done.output


def test_roles_are_granted_listed_and_revoked_from_the_command_line(shared: Place) -> None:
    app_role, acme = sorted([shared.role(), shared.role()])
    command(shared, "grant", app_role, "--writer")
    command(shared, "grant", acme, "--reader", "--owner", "acme")
    assert command(shared, "list").splitlines() == [
        f"{app_role}\twriter\tall threads",
        f"{acme}\treader\tthe threads of acme",
    ]
    assert shared.asked_by(acme, "SELECT count(*) FROM thread") == [(2,)]
    command(shared, "revoke", acme)
    assert command(shared, "list", "--json").splitlines() == [
        f'{{"role": "{app_role}", "rights": "writer", "owner": null}}'
    ]
    assert "has no access" in command(shared, "revoke", acme, code=2)
    assert "no roles" in CliRunner().invoke(app, ["roles", "list", "--db", "memory.db"]).output


def test_what_a_role_may_do_is_said_once(shared: Place) -> None:
    role = shared.role()
    for words in ([], ["--reader", "--writer"], ["--writer", "--reader"], ["--owner", "acme"]):
        assert "either --writer or --reader" in command(shared, "grant", role, *words, code=2)
    assert granted(shared.server) == []


def test_who_owns_the_tables_keeps_what_an_owner_may(place: Place) -> None:
    [(owner,)] = place.execute(
        f"SELECT tableowner FROM pg_tables WHERE schemaname = '{place.schema}' AND tablename ="
        " 'thread'"
    )
    for words in (
        ["grant", owner, "--reader"],
        ["grant", owner, "--writer", "--owner", "acme"],
        ["revoke", owner],
    ):
        for sql in ([], ["--sql"]):
            assert "owns the tables" in command(place, *words, *sql, code=2)
    role, schema = place.role("LOGIN"), place.schema
    place.execute(f"GRANT USAGE, CREATE ON SCHEMA {schema} TO {role}")
    for [table] in place.execute(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'"):
        place.execute(f"ALTER TABLE {schema}.{table} OWNER TO {role}")
    with pytest.raises(InvalidInput, match="owns the tables"):
        revoke(place.server, role)
    place.execute(f"REASSIGN OWNED BY {role} TO {owner}")


def test_a_writer_deletes_from_the_command_line_and_is_told_that_the_space_stays(
    shared: Place,
) -> None:
    writer = shared.granted("writer")
    words = ["threads", "delete", "acme 0", "--yes", "--json", "--db", shared.as_role(writer)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["threads"] == 1
    assert "vacuumed by the role that owns them" in done.stderr


def test_every_example_of_the_help_works(place: Place) -> None:
    names = {name: place.role() for name in ("app", "reports", "acme")}
    lines = [
        line.strip().partition("  ")[0]
        for name in ("roles", "grant")
        for line in examples_of(name).splitlines()
    ]
    examples = [shlex.split(line)[2:] for line in lines if line.startswith("langmem-ext ")]
    assert len(examples) > 5
    for at, words in enumerate(examples):
        command(
            place,
            *(
                names.get(word, word) if words[at - 1] != "--owner" else word
                for at, word in enumerate(words)
            ),
        )
        assert at or granted(place.server) == [Grant(names["app"], "writer")]


def test_the_statements_that_are_printed_do_the_same(shared: Place) -> None:
    writer, acme = shared.role(), shared.role()
    for words in (("grant", writer, "--writer"), ("grant", acme, "--writer", "--owner", "acme's")):
        printed = command(shared, *words, "--sql")
        assert writer not in {one.role for one in granted(shared.server)} or words[1] == acme
        shared.execute(printed)
    assert {one.role: one.owner for one in granted(shared.server)} == {writer: None, acme: "acme's"}
    with DeltaSaver.open(shared.as_role(acme)) as saver:
        graph_on(saver).invoke(said("hello"), config("t"))
    assert shared.asked_by(acme, "SELECT id, owner FROM thread") == [("t", "acme's")]
    assert shared.asked_by(writer, "SELECT count(*) FROM thread") == [(7,)]
