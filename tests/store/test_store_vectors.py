"""Comparing vectors: each way gives the same, and the one that is there is used."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any, Final
from zlib import crc32

import pytest
from extensions import execute, pgvector_database, pgvector_server
from finding_rules import word_index
from langgraph.store.base import IndexConfig, PutOp, SearchOp
from stores import maker

from langmem_ext import DeltaStore, MessageLog, StorageUnavailable, ThreadDeleted
from langmem_ext.store import vectors
from langmem_ext.store.operations import SourceThread
from langmem_ext.store.planning import on_threads

A = ("a",)
WAYS: Final = ("read", "kept", "one by one", "by the database")
"""The last on PostgreSQL alone."""
DIMS: Final = 24


@pytest.fixture(params=["sqlite", "postgres"], scope="module")
def open_able(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], MessageLog]]:
    """Opens a file, or a database that compares vectors itself."""
    with ExitStack() as stack:
        url = str(tmp_path_factory.mktemp("vectors") / "memory.db")
        if request.param == "postgres":
            url = stack.enter_context(pgvector_database(stack.enter_context(pgvector_server())))
        yield lambda: MessageLog.open(url, synchronous="normal")


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
        for way in WAYS if able.driver.remote else WAYS[:-1]:
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
    all_, _, none, *_ = found["one by one"]
    scores = [score for _, score in all_ if score is not None]
    assert len(all_) == 120
    assert len(set(scores)) < len(scores)  # equal ones are among them
    assert hybrid or (scores[-1] < -0.2 and none[0][1] == 0.0)


@pytest.mark.parametrize("way", WAYS)
def test_what_others_change_is_there_at_once(
    able: MessageLog, open_able: Callable[[], MessageLog], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "by the database" and not able.driver.remote:
        return
    index = word_index(fields=["text", "l[*]"])
    with maker(able)(index=index) as other, closing(open_able()) as log:
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


def test_vectors_of_an_operation_that_failed_are_not_kept(
    log: MessageLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "FEW", 0)
    with maker(log)(index=word_index(), hybrid=False) as store:
        store.put(A, "k", {"text": "red"})
        assert [item.key for item in store.search((), query="red")] == ["k"]
        store.put(("b",), "k", {"text": "red"})
        late = PutOp(("b",), "k", {"text": "blue"})
        with pytest.raises(ThreadDeleted):
            store.batch([on_threads(late, [SourceThread("gone", 1)])])
        assert [item.score for item in store.search((), query="red")] == [pytest.approx(1.0)] * 2


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
