"""Finding: by words without a model, by both with one; scores and re-embedding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from finding_rules import embed_words, word_index
from stores import maker

from langmem_ext import DeltaStore, InvalidInput, MessageLog
from langmem_ext.storage.operation import Op, fetch, operation

A = ("a",)


def keys(store: DeltaStore, query: str, **options: object) -> list[str]:
    return [item.key for item in store.search((), query=query, **options)]  # type: ignore[arg-type]


@operation
def sizes() -> Op[set[int]]:
    return {len(vector) for (vector,) in (yield from fetch("SELECT vector FROM store_vector"))}


# -- words -----------------------------------------------------------------------------------------


def test_without_a_model_items_are_found_by_their_words(log: MessageLog) -> None:
    with maker(log)() as store:
        store.put(A, "tea", {"text": "Anna likes green tea, and the café in Oslo"})
        store.put(A, "city", {"text": "Anna lives in Oslo"})
        store.put(A, "chinese", {"text": "用户喜欢绿茶"})
        store.put(A, "other", {"text": "nothing of it"})
        store.put(A, "hidden", {"text": "green tea"}, index=False)
        found = store.search((), query="Green TEA?", limit=10)
        assert [item.key for item in found][:1] == ["tea"]
        assert [item.score for item in found if item.key in ("other", "hidden")] == [0.0, None]
        assert keys(store, "cafe")[0] == "tea"
        assert keys(store, "绿茶")[0] == "chinese"
        assert keys(store, "oslo likes")[:2] == ["tea", "city"]
        assert len(store.search((), query="'; DROP TABLE store_item; --")) == 5


def test_a_rare_word_says_more_than_a_common_one(log: MessageLog) -> None:
    with maker(log)(index={"fields": ["text"]}) as store:
        for at in range(20):
            store.put(A, f"common{at}", {"text": "the customer wants a refund"})
        store.put(A, "rare", {"text": "the customer plays the theremin"})
        best = store.search((), query="customer theremin", limit=2)
        assert best[0].key == "rare"
        assert 0.5 < (best[0].score or 0) <= 1
        assert (best[1].score or 1) < 0.2


def test_words_and_vectors_together_find_what_each_alone_would_miss(log: MessageLog) -> None:
    with maker(log)(index=word_index()) as store:
        store.put(A, "meant", {"text": "red"})
        store.put(A, "said", {"text": "invoice 4711 sun"})
        store.put(A, "far", {"text": "sun cat"})
        assert keys(store, "red")[0] == "meant"
        assert keys(store, "4711 cat")[0] in ("far", "said")
        scores = {item.key: item.score or 0.0 for item in store.search((), query="4711 sun")}
        alone = {
            item.key: item.score or 0.0
            for item in DeltaStore(log, index=word_index(), hybrid=False).search(
                (), query="4711 sun"
            )
        }
        assert alone["said"] == pytest.approx(1.0)
        assert all(alone[key] - 1e-6 <= scores[key] <= 1.0 + 1e-6 for key in scores)
        assert scores["far"] > alone["far"]  # it has one of the words


# -- models ----------------------------------------------------------------------------------------


def other_model(texts: Sequence[str]) -> list[list[float]]:
    """Vectors of another length."""
    return [[*vector, 1.0] for vector in embed_words(texts)]


def test_after_a_change_of_model_vectors_are_never_mixed_and_one_call_makes_them_anew(
    log: MessageLog,
) -> None:
    with maker(log)(index=word_index()) as store:
        for at in range(250):
            store.put(A, f"k{at}", {"text": "red" if at % 2 else "blue"})
        store.put(A, "own", {"note": "red"}, index=["note"])
        store.put(A, "none", {"text": "red"}, index=False)
        changed = DeltaStore(log, index=word_index(dims=7, embed=other_model))
        assert (
            changed.search((), query="green", limit=300)[0].score is None
        )  # not by the former model's vectors
        assert keys(changed, "red", limit=1) == ["k1"]  # but by words
        assert store.search((), query="red", limit=1)[0].score == pytest.approx(1.0)
        assert changed.reindex() == 251
        assert changed.reindex() == 0
        assert log.run(sizes(), write=False) == {7 * 4}
        assert {item.value.get("text") for item in changed.search((), query="blue", limit=125)} == {
            "blue"
        }
        found = {item.key: item.score for item in changed.search((), query="red", limit=300)}
        assert found["own"] == pytest.approx(1.0)
        assert found["none"] is None


def test_items_from_before_there_was_a_model_get_vectors(log: MessageLog) -> None:
    with maker(log)() as store:
        store.put(A, "k", {"text": "red"})
        indexed = DeltaStore(log, index=word_index())
        assert indexed.search((), query="green")[0].score is None
        assert indexed.reindex() == 1
        assert indexed.search((), query="red")[0].score == pytest.approx(1.0)


def test_a_reindexing_with_wrong_dims_changes_nothing(log: MessageLog) -> None:
    with maker(log)(index=word_index()) as store:
        store.put(A, "k", {"text": "red"})
        with pytest.raises(InvalidInput, match="dims says 9"):
            DeltaStore(log, index=word_index(dims=9)).reindex()
        assert store.search((), query="red")[0].score == pytest.approx(1.0)


@pytest.mark.parametrize(
    "index",
    [
        {"embed": embed_words},
        {"embed": embed_words, "dims": 0},
        {"fields": "text"},
        {"fields": [1]},
    ],
)
def test_an_index_that_cannot_be_used_is_refused(index: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        DeltaStore(index=index)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [{"limit": 1 << 63}, {"offset": -1}])
def test_a_count_that_no_database_takes_is_refused(log: MessageLog, count: dict[str, Any]) -> None:
    with maker(log)() as store, pytest.raises(InvalidInput, match="is a whole number"):
        store.search(A, **count)
