"""Promises of a search on PostgreSQL: one index, whoever searches first; its upkeep costs no trip;
words are words, wherever they stand.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from forked_workers import at_once, search_meanwhile
from langchain_core.messages import HumanMessage
from proxy import Proxy
from prune_reference import assert_sound, rows
from search_reference import assert_found

from langmem_ext import (
    DeltaSaver,
    ThreadChatMessageHistory,
    ThreadNotFound,
    Threads,
)
from postgres.server import SHARED, Database
from postgres.tables.test_roles import Place, place

__all__ = ["place"]  # a fixture

MANY = 5000
"""More messages than a search reads one by one."""


@pytest.fixture
def url(database: Database) -> str:
    return f"{database.url}?schema={SHARED.new_schema()}"


def schema_of(url: str) -> str:
    return url.rpartition("=")[2]


def add(saver: DeltaSaver, thread: str, *texts: str, owner: str | None = None) -> None:
    ThreadChatMessageHistory(thread, saver, owner=owner).add_messages(
        [HumanMessage(text) for text in texts]
    )


# -- the first search ------------------------------------------------------------------------------


def test_five_processes_that_search_first_at_once_make_one_index(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        for number in range(300):
            add(saver, f"old{number}", "an old word", "and another")
    assert (
        at_once(search_meanwhile, [(url, name) for name in ("qa", "qb", "qc", "qd", "qe")])
        == [12] * 5
    )
    with DeltaSaver.open(url) as saver:
        assert rows(saver, "SELECT name FROM setting WHERE name LIKE 'search%'") == [("search",)]
        assert len(Threads(saver).search("word", limit=1000)) == 300 + 60 + 15
        assert_sound(saver)


def test_an_index_that_is_made_anew_while_others_write_misses_nothing(url: str) -> None:
    def write(name: int) -> None:
        with DeltaSaver.open(url) as saver:
            for number in range(40):
                add(saver, f"{name} {number % 3}", f"word {name} {number}")

    with DeltaSaver.open(url) as saver, ThreadPoolExecutor(3) as pool:
        writing = [pool.submit(write, name) for name in range(3)]
        while not all(one.done() for one in writing):
            Threads(saver).rebuild_search()
        for one in writing:
            one.result()
        assert_found(saver, Threads(saver), "word")
        assert len(Threads(saver).search("word", limit=1000)) == 120
        assert_sound(saver)


@pytest.mark.parametrize("first", ["roles", "index"])
def test_an_owners_role_finds_and_keeps_the_words_of_its_own_threads_alone(
    place: Place, first: str
) -> None:
    with DeltaSaver.open(place.url) as saver:
        for owner in ("acme", "umbra"):
            add(saver, f"of {owner}", f"a word of {owner}", owner=owner)
        if first == "index":
            Threads(saver).enable_search()
        role = place.granted("writer", "acme")
        if first == "roles":
            Threads(saver).enable_search()
        with DeltaSaver.open(place.as_role(role)) as own:
            add(own, "new", "another word")
            add(own, "of acme", "more words", "last word")
            found = {(hit.thread_id, hit.number) for hit in Threads(own).search("word")}
            assert found == {("of acme", 0), ("of acme", 1), ("of acme", 2), ("new", 0)}
            assert found == {
                (hit.thread_id, hit.number) for hit in Threads(own, owner="acme").search("word")
            }
            assert Threads(own).search("word", owner="umbra") == []
            with pytest.raises(ThreadNotFound):
                Threads(own).search("word", thread="of umbra")
            visible = {place.number("of acme"), place.number("new")}
            found = rows(own, "SELECT thread FROM search UNION SELECT thread FROM search_message")
            assert {thread for (thread,) in found} == visible
            Threads(own).delete("of acme")
            own.copy_thread("new", "copy")
            assert {hit.thread_id for hit in Threads(own).search("word")} == {"new", "copy"}
        assert {hit.thread_id for hit in Threads(saver).search("word")} == {
            "of umbra",
            "new",
            "copy",
        }
        assert_sound(saver)


# -- what it costs ---------------------------------------------------------------------------------


async def test_the_upkeep_of_the_index_costs_no_round_trip(url: str) -> None:
    with Proxy(url) as proxy:
        trips = []
        async with DeltaSaver.from_conn_string(proxy.url) as saver:
            for thread in ("without", "with"):
                history = ThreadChatMessageHistory(thread, saver)
                for number in range(23):
                    if number == 3:
                        before = proxy.counts().trips
                    await history.aadd_messages([HumanMessage(f"turn {number}", id=f"h{number}")])
                await history.aadd_messages([HumanMessage("edited turn", id="h20")])
                trips.append(proxy.counts().trips - before)
                await Threads(saver).aenable_search()
        assert trips[0] == trips[1]
        async with DeltaSaver.from_conn_string(proxy.url) as saver:
            await ThreadChatMessageHistory("with", saver).aadd_messages(
                [HumanMessage("edited early", id="h1")]
            )
            assert {
                hit.message_id for hit in await Threads(saver).asearch("edited", thread="with")
            } == {"h20", "h1"}
            assert len(await Threads(saver).asearch("turn", thread="with", limit=100)) == 22


# -- what is found ---------------------------------------------------------------------------------


def test_what_stands_at_the_end_of_a_very_long_message_is_found(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        Threads(saver).enable_search()
        words = " ".join(f"w{number:07}" for number in range(25_000))
        add(saver, "t", f"{words} last words", "short", owner="me")
        add(saver, "u", "last words", owner="you")
        threads = Threads(saver)
        for many in (False, True):  # so many that they are looked up by the index
            if many:
                add(saver, "t", *["short"] * MANY, owner="me")
            for text in ("last word", '"w0000017 w0000018"', '"w0024999 last"'):
                assert [hit.number for hit in threads.search(text, thread="t")] == [0], text
                assert [hit.number for hit in threads.search(text, owner="me")] == [0], text
            assert {hit.thread_id for hit in threads.search("words")} == {"t", "u"}
        assert_sound(saver)


SIGNS = ("it's", "a:*b", "b & c", "c|d", "(e)", "e <-> f", "!f", "#7", "@8", "f % 7", "'a':*")
NO_WORDS = ("\\", "'", "''", "%")


def test_no_sign_of_a_query_language_is_one(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        add(saver, "t", r"it's a:*b & c|d \ (e) <-> !f % #7 @8", owner="me")
        for many in (False, True):
            if many:
                add(saver, "t", *["short"] * MANY, owner="me")
            for thread in (None, "t"):
                for text in SIGNS:
                    assert len(Threads(saver).search(text, thread=thread)) == 1, text
                for text in NO_WORDS:
                    assert Threads(saver).search(text, thread=thread) == [], text
            assert Threads(saver).search("word | a") == []


def test_after_a_full_compact_no_word_of_a_deleted_message_stands_in_the_tables(url: str) -> None:
    with (
        DeltaSaver.open(url) as saver,
        psycopg.connect(url.partition("?")[0], autocommit=True) as connection,
    ):
        Threads(saver).enable_search()
        for number in range(20):
            add(saver, f"t{number}", f"unmistakable{number:03}x stays")
        for number in range(0, 20, 2):
            Threads(saver).delete(f"t{number}")
        saver.compact()
        assert len(Threads(saver).search("unmistakable")) == 10
        saver.compact(full=True)
        connection.execute("CHECKPOINT")
        files = connection.execute(
            "SELECT relname, pg_read_binary_file(pg_relation_filepath(oid)) FROM pg_class WHERE"
            f" relkind IN ('r', 'i') AND relnamespace = '{schema_of(url)}'::regnamespace AND"
            " relname LIKE 'search%'".encode()
        ).fetchall()
        data: dict[str, bytes] = dict(files)
        assert len(data) == 7
        assert b"unmistakable001x" in data["search"]
        assert b"unmistakable001x" in data["search_by_word"]
        assert [
            name
            for name, held in files
            for number in range(0, 20, 2)
            if f"unmistakable{number:03}x".encode() in held
        ] == []
        assert len(Threads(saver).search("unmistakable")) == 10
        assert_sound(saver)
