"""Comparing vectors: each way gives the same, and the one that is there is used."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import psycopg
import pytest
from extensions import execute, pgvector_database, pgvector_server, sqlite_vec_everywhere
from finding_rules import embed_words, word_index
from langgraph.store.base import IndexConfig, PutOp, SearchOp
from stores import maker

from langmem_ext import DeltaStore, InvalidInput, MessageLog, StorageUnavailable
from langmem_ext.storage.sqlite.vectors import has_sqlite_vec
from langmem_ext.store import store as store_module
from langmem_ext.store import vectors

A = ("a",)
WAYS: Final = ("read", "kept", "one by one", "by the database")
DIMS: Final = 24


@pytest.fixture(params=["sqlite", "postgres"], scope="module")
def open_able(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], MessageLog]]:
    """Opens a database that compares vectors itself."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            having = sqlite_vec_everywhere
            url = str(tmp_path_factory.mktemp("vectors") / "memory.db")
        else:
            having = nullcontext
            url = stack.enter_context(pgvector_database(stack.enter_context(pgvector_server())))

        def open_it() -> MessageLog:
            with having():  # no longer: other tests open databases that have nothing
                return MessageLog.open(url, synchronous="normal")

        yield open_it


@pytest.fixture(scope="module")
def able(open_able: Callable[[], MessageLog]) -> Iterator[MessageLog]:
    with closing(open_able()) as log:
        yield log


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A PostgreSQL server that has pgvector."""
    with pgvector_server() as url:
        yield url


@pytest.fixture
def postgres(server: str) -> Iterator[str]:
    """A database with pgvector, in a schema that nobody else may look into."""
    with pgvector_database(server, schema="own") as url:
        yield url


def go_by(way: str, monkeypatch: pytest.MonkeyPatch, log: MessageLog) -> None:
    """Have stores that are made from now on compare vectors in this way."""
    monkeypatch.setattr(vectors, "HAS_NUMPY", way in ("read", "kept"))
    monkeypatch.setattr(vectors, "FEW", 0 if way == "kept" else 1_000)
    if way == "one by one":
        monkeypatch.setattr(log.driver, "compares_vectors", lambda *, fewer: False)
    elif way == "by the database":
        monkeypatch.setattr(vectors, "_cosines", None)  # nothing is compared here


# -- the same results ------------------------------------------------------------------------------


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Vectors in all directions; of a text that begins with 0, one that has no length."""
    found = []
    for text in texts:
        chance = random.Random(crc32(text.encode()))
        nothing = text.startswith("0")
        found.append([0.0 if nothing else chance.gauss(0, 1) for _ in range(DIMS)])
    return found


INDEX: Final[IndexConfig] = {"dims": DIMS, "embed": embed, "fields": ["text[*]"]}


def fill(store: DeltaStore) -> None:
    """Items with one text or several, some of them equal, of two owners, in three namespaces."""
    puts = []
    for at in range(120):
        texts = [f"{at * 7 % 90 + more} words" for more in range(at % 4)]
        value = {"n": at % 5, "text": [*texts, "0 nothing"][: max(1, at % 4)]}
        place = ("b", str(at % 2)) if at % 3 else A
        puts.append(PutOp(place, f"k{at}", value, index=None if at % 11 else False))
    store.batch(puts[:100])
    store.for_owner("anna").batch(puts[100:])


SEARCHES: Final = (
    SearchOp((), query="4 words", limit=200),
    SearchOp((), query="31 words", limit=7, offset=5),
    SearchOp(A, query="0 nothing", limit=100),
    SearchOp(("b", "1"), query="12 of them", limit=100),
    SearchOp((), query="77 words", filter={"n": {"$gt": 2}}, limit=100),
    SearchOp(("c",), query="4 words", limit=10),
)

Found = list[list[tuple[str, float | None]]]


def search(store: DeltaStore, mode: str) -> Found:
    """What all searches find, in order."""
    results: Any = (
        store.batch(SEARCHES) if mode == "sync" else asyncio.run(store.abatch(list(SEARCHES)))
    )
    return [[(item.key, item.score) for item in items] for items in results]


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_each_way_finds_the_same_in_the_same_order(
    able: MessageLog, monkeypatch: pytest.MonkeyPatch, mode: str, hybrid: bool
) -> None:
    found: dict[str, Found] = {}
    with maker(able)(index=INDEX) as filled:
        fill(filled)
        for way in WAYS:
            with monkeypatch.context() as patched:
                go_by(way, patched, able)
                store = DeltaStore(able, index=INDEX, hybrid=hybrid)
                found[way] = search(store, mode) + search(store.for_owner("anna"), mode)
    for searched, *others in zip(*found.values(), strict=True):
        for other in others:
            assert [key for key, _ in other] == [key for key, _ in searched]
            assert [score for _, score in other] == pytest.approx(
                [score for _, score in searched], abs=1e-6
            )
    all_, _, none, *_ = found["by the database"]
    scores = [score for _, score in all_ if score is not None]
    assert len(all_) == 120
    assert len(set(scores)) < len(scores)  # equal ones are among them
    assert hybrid or (scores[-1] < -0.2 and none[0][1] == 0.0)


@pytest.mark.parametrize("way", WAYS)
def test_what_others_change_is_there_at_once(
    able: MessageLog, open_able: Callable[[], MessageLog], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = word_index(fields=["text", "l[*]"])
    with (
        maker(able)(index=index) as other,
        closing(open_able()) as log,
    ):
        go_by(way, monkeypatch, log)
        store = DeltaStore(log, index=index, hybrid=False)
        for at in range(12):
            value = {"text": "red " * at + "sun", "l": ["dog", "cat cat dog"][: at % 3]}
            store.put(A, f"k{at}", value)
        cats = {item.key for item in store.search((), query="cat", limit=4)}
        assert cats == {"k2", "k5", "k8", "k11"}
        other.put(A, "new", {"text": "cat"})
        other.put(A, "k5", {"text": "cat red"})
        other.delete(A, "k2")
        found = [item.key for item in store.search((), query="cat", limit=20)]
        assert found[0] == "new"
        assert "k2" not in found
        other.delete(A, "new")
        other.put(A, "newer", {"text": "sun"})  # as many as before
        assert store.search((), query="cat", limit=1)[0].key in ("k5", "k8", "k11")
        assert store._vectors.by_database is {"one by one": False, "by the database": True}.get(way)


def test_vectors_of_two_models_are_never_compared(
    able: MessageLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_by("by the database", monkeypatch, able)
    with maker(able)(index=word_index(), hybrid=False) as store:
        store.put(A, "k", {"text": "red"})
        longer = word_index(dims=7, embed=lambda texts: [[*one, 1.0] for one in embed_words(texts)])
        changed = DeltaStore(able, index=longer, hybrid=False)
        changed.put(A, "other", {"text": "red"})
        assert [item.score for item in store.search((), query="red")] == [pytest.approx(1.0), None]
        assert changed.search((), query="red")[0].key == "other"
        assert changed.reindex() == 1
        assert [one.score for one in changed.search((), query="red")] == [pytest.approx(1.0)] * 2


def test_the_database_compares_those_that_are_too_many_to_be_kept(
    able: MessageLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "FEW", 0)
    with maker(able)(index=word_index(), hybrid=False) as store:
        store.put(A, "k", {"text": "red"})
        assert store.search((), query="red")[0].score == pytest.approx(1.0)
        assert store._vectors.by_database is None  # not asked: numpy is there
        monkeypatch.setattr(vectors, "LARGEST", 0)
        store.search((), query="red")
        assert store.search((), query="red")[0].score == pytest.approx(1.0)
        assert store._vectors.by_database


def test_vectors_that_are_too_long_for_the_database_are_compared_one_by_one(
    able: MessageLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "HAS_NUMPY", False)
    dims = vectors.MOST_DIMS + 1

    def long(texts: Sequence[str]) -> list[list[float]]:
        return [[float(len(text)), *([1.0] * (dims - 1))] for text in texts]

    with maker(able)(index={"dims": dims, "embed": long, "fields": ["text"]}) as store:
        store.search((), query="red")
        store.put(A, "k", {"text": "red"})
        assert store.search((), query="red")[0].score == pytest.approx(1.0)


def test_vectors_of_an_operation_that_failed_are_not_kept(
    log: MessageLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "FEW", 0)
    with maker(log)(index=word_index(), hybrid=False) as store:
        store.put(A, "k", {"text": "red"})
        assert [item.key for item in store.search((), query="red")] == ["k"]
        store.for_owner("anna").put(("b",), "k", {"text": "red"})
        with pytest.raises(InvalidInput):
            store.for_owner("bert").put(("b",), "k", {"text": "blue"})
        assert [item.score for item in store.search((), query="red")] == [pytest.approx(1.0)] * 2


# -- sqlite-vec ------------------------------------------------------------------------------------


class Loading(sqlite3.Connection):
    """A connection that loads extensions, and says what it was asked."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.asked: list[object] = []
        self.error: Exception | None = None

    def enable_load_extension(self, enable: bool, /) -> None:
        self.asked.append(enable)

    def load_extension(self, name: str, /, **_: Any) -> None:
        if self.error is not None:
            raise self.error
        self.asked.append(Path(name).name)
        self.create_function("vec_distance_cosine", 2, lambda one, other: 0.0)


def test_sqlite_vec_is_loaded_once_and_nothing_else_can_be_loaded_then() -> None:
    connection = sqlite3.connect(":memory:", factory=Loading)
    assert not has_sqlite_vec(connection, load=False)
    assert has_sqlite_vec(connection, load=True)
    assert has_sqlite_vec(connection, load=True)
    assert connection.asked == [True, "vec0", False]
    connection.close()


def test_where_sqlite_vec_cannot_be_loaded_it_is_not_there() -> None:
    connection = sqlite3.connect(":memory:", factory=Loading)
    connection.error = sqlite3.OperationalError("vec0.so: invalid ELF header")
    assert not has_sqlite_vec(connection, load=True)
    assert connection.asked == [True, False]
    connection.error = AttributeError("enable_load_extension")  # a Python that lets nobody
    assert not has_sqlite_vec(connection, load=True)
    connection.close()


def test_without_sqlite_vec_there_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    monkeypatch.setattr(vectors, "HAS_NUMPY", False)
    with DeltaStore(":memory:", index=word_index()) as store:
        store.put(A, "k", {"text": "red"})
        assert store.search((), query="red")[0].score == pytest.approx(1.0)
        assert store._vectors.by_database is False


def test_on_a_passed_connection_sqlite_vec_is_used_where_it_was_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vectors, "HAS_NUMPY", False)
    for loaded in (False, True):
        with ExitStack() as stack:
            if loaded:
                stack.enter_context(sqlite_vec_everywhere())
            connection = sqlite3.connect(":memory:", check_same_thread=False, factory=Loading)
            with closing(MessageLog.open(connection)) as log:
                store = DeltaStore(log, index=word_index())
                store.put(A, "k", {"text": "red"})
                assert store.search((), query="red")[0].score == pytest.approx(1.0)
                assert store._vectors.by_database is loaded
                assert connection.asked == []
            connection.close()


# -- pgvector --------------------------------------------------------------------------------------


@pytest.fixture
def without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "HAS_NUMPY", False)


def used(store: DeltaStore) -> bool | None:
    """Whether a search, which must find `k`, is answered by the database."""
    assert store.search(A, query="red", limit=1)[0].score == pytest.approx(1.0)
    return store._vectors.by_database


@pytest.mark.postgres
@pytest.mark.usefixtures("without_numpy")
def test_a_server_without_pgvector_gets_nothing(server: str, postgres: str) -> None:
    execute(postgres, "DROP EXTENSION vector")
    with DeltaStore.open(postgres, index=word_index()) as store:
        store.put(A, "k", {"text": "red"})
        assert used(store) is False
    extensions = "SELECT count(*) FROM pg_extension WHERE extname = 'vector'"
    assert execute(postgres, extensions) == [(0,)]


@pytest.mark.postgres
@pytest.mark.usefixtures("without_numpy")
def test_roles_use_the_copy_that_the_owner_of_the_tables_has_made(
    server: str, postgres: str
) -> None:
    role = f"langmem_ext_{random.randrange(10**9)}"
    as_role = postgres.replace("postgres@", f"{role}@", 1)
    execute(server, f"CREATE ROLE {role} LOGIN")
    try:
        with DeltaStore.open(postgres, index=word_index()) as owner:
            owner.put(A, "k", {"text": "red"})
            execute(postgres, f"GRANT USAGE ON SCHEMA langmem_ext TO {role}")
            tables = "ALL TABLES IN SCHEMA langmem_ext"
            execute(postgres, f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO {role}")
            with DeltaStore.open(as_role, index=word_index()) as store:
                assert used(store) is False  # it may not make one
            assert used(owner) is True
            with DeltaStore.open(as_role, index=word_index()) as store:
                store.put(A, "k", {"text": "red red"})
                assert used(store) is True  # without a right to the schema of the extension
            with DeltaStore.open(f"{postgres}?mode=ro", index=word_index()) as store:
                assert used(store) is True
    finally:
        execute(postgres, f"DROP OWNED BY {role}")
        execute(server, f"DROP ROLE {role}")


@pytest.mark.postgres
@pytest.mark.usefixtures("without_numpy")
def test_of_many_vectors_only_reindexing_makes_a_copy(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "COPIED_AT_ONCE", 2)
    with DeltaStore.open(postgres, index=word_index()) as store:
        store.put(A, "k", {"text": "red"})
        store.put(A, "other", {"text": "blue"})
        assert used(store) is False
        assert store.reindex() == 0
        assert used(store) is True
    with DeltaStore.open(postgres, index=word_index()) as store:
        assert used(store) is True


@pytest.mark.postgres
@pytest.mark.usefixtures("without_numpy")
def test_no_copy_is_made_while_somebody_uses_the_vectors_for_long(postgres: str) -> None:
    with DeltaStore.open(postgres, index=word_index()) as store:
        store.put(A, "k", {"text": "red"})
        with psycopg.connect(postgres) as reader:
            reader.execute("SELECT count(*) FROM langmem_ext.store_vector")
            assert used(store) is False
    with DeltaStore.open(postgres, index=word_index()) as store:
        assert used(store) is True


@pytest.mark.postgres
@pytest.mark.usefixtures("without_numpy")
def test_several_may_make_the_copy_together(postgres: str) -> None:
    with DeltaStore.open(postgres, index=word_index()) as first:
        first.put(A, "k", {"text": "red"})
    ready = threading.Barrier(4)
    told: list[bool | None] = []

    def look() -> None:
        with DeltaStore.open(postgres, index=word_index()) as store:
            ready.wait()
            told.append(used(store))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [True] * 4


@pytest.mark.postgres
@pytest.mark.usefixtures("without_numpy")
def test_where_the_extension_goes_the_vectors_stay(postgres: str) -> None:
    with DeltaStore.open(postgres, index=word_index()) as store:
        store.put(A, "k", {"text": "red"})
        assert used(store) is True
        execute(postgres, "DROP EXTENSION vector CASCADE")
        with pytest.raises(StorageUnavailable):
            store.search(A, query="red")
        assert used(store) is False
        store.put(A, "k", {"text": "red dog"})
        assert store.search(A, query="dog red")[0].score == pytest.approx(1.0)
