"""Rules on queries: vectors by `IndexConfig`, their scores, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from langgraph.store.base import IndexConfig, PutOp
from subject import Stores, expect, expect_raised

A: Final = ("a",)
WORDS: Final = ("red", "green", "blue", "dog", "cat", "sun")


def embed_words(texts: Sequence[str]) -> list[list[float]]:
    """A model for tests: a vector says how often each of six words is in a text."""
    return [[float(text.lower().count(word)) for word in WORDS] for text in texts]


def word_index(**more: Any) -> IndexConfig:
    """An index by that model, of the field `text`; other options as they are given."""
    config: IndexConfig = {"dims": len(WORDS), "embed": embed_words, "fields": ["text"]}
    return {**config, **more}  # type: ignore[typeddict-item]


def the_nearest_comes_first_with_the_highest_score(stores: Stores) -> None:
    """Scores fall from the first item to the last, and the nearest is near 1."""
    with stores.new(index=word_index()) as store:
        store.put(A, "both", {"text": "red dog"})
        store.put(A, "red", {"text": "red red cat"})
        store.put(A, "other", {"text": "blue sun"})
        items = store.search(A, query="red dog")
        expect([item.key for item in items], ["both", "red", "other"], "the order")
        scores = [item.score or 0.0 for item in items]
        expect(scores, sorted(scores, reverse=True), "the scores, falling")
        expect(round(scores[0], 3), 1.0, "the score of the same text")


def only_the_fields_of_the_index_count(stores: Stores) -> None:
    """Other fields are not looked at."""
    with stores.new(index=word_index()) as store:
        store.put(A, "meant", {"text": "red", "note": "dog"})
        store.put(A, "noted", {"text": "blue", "note": "red red red"})
        expect(store.keys(A, query="red", limit=1), ["meant"], "the nearest to red")


def fields_are_paths(stores: Stores) -> None:
    """Nested ones, elements of lists, several at a time; an item scores its best."""
    paths = ["a.b", "l[*].t", "m[0]", "{x,y}"]
    with stores.new(index=word_index(fields=paths)) as store:
        store.put(A, "nested", {"a": {"b": "red"}})
        store.put(A, "each", {"l": [{"t": "sun"}, {"t": "green"}]})
        store.put(A, "first", {"m": ["blue", "cat"]})
        store.put(A, "named", {"x": "sun sun", "y": "dog"})
        for query, key in (
            ("red", "nested"),
            ("green", "each"),
            ("blue", "first"),
            ("dog", "named"),
        ):
            expect(store.keys(A, query=query, limit=1), [key], f"the nearest to {query}")


def a_put_may_name_its_own_fields(stores: Stores) -> None:
    """`index=[…]` in place of the index's; `index=False`: none."""
    with stores.new(index=word_index()) as store:
        store.put(A, "own", {"text": "blue", "note": "red"}, index=["note"])
        store.put(A, "plain", {"text": "blue red red red cat"})
        store.put(A, "none", {"text": "red"}, index=False)
        items = store.search(A, query="red", limit=10)
        expect([item.key for item in items], ["own", "plain", "none"], "the order")
        expect(items[-1].score, None, "the score of an item that is not indexed")


def an_item_without_a_vector_comes_last(stores: Stores) -> None:
    """It is found all the same, with no score."""
    with stores.new(index=word_index()) as store:
        store.put(A, "without", {"other": 1})
        store.put(A, "far", {"text": "sun"})
        items = store.search(A, query="red")
        expect([item.key for item in items], ["far", "without"], "the order")
        expect(items[-1].score, None, "the score of an item without a vector")


def a_put_replaces_what_is_found(stores: Stores) -> None:
    """Neither a former text nor one that is no longer indexed is found any more."""
    with stores.new(index=word_index()) as store:
        store.put(A, "k", {"text": "red"})
        store.put(A, "other", {"text": "red blue"})
        store.put(A, "k", {"text": "sun"})
        expect(store.keys(A, query="red")[0], "other", "the nearest after the text was replaced")
        store.put(A, "other", {"text": "red blue"}, index=False)
        scores = {item.key: item.score for item in store.search(A, query="red")}
        expect(scores["other"], None, "the score after a put with index=False")
        store.put(A, "k", {"note": "red"})
        scores = {item.key: item.score for item in store.search(A, query="sun")}
        expect(scores["k"], None, "the score after a put without the field")


def a_deleted_item_is_not_found(stores: Stores) -> None:
    """Nor is what it was, when its key is put anew."""
    with stores.new(index=word_index()) as store:
        store.put(A, "k", {"text": "red"})
        store.delete(A, "k")
        expect(store.search(A, query="red"), [], "after delete")
        store.put(A, "k", {"note": 1})
        [item] = store.search(A, query="red")
        expect(item.score, None, "the score of what was put anew")


def equal_texts_in_one_batch_are_both_found(stores: Stores) -> None:
    """They may be embedded once."""
    with stores.new(index=word_index()) as store:
        store.batch([PutOp(A, "x", {"text": "red"}), PutOp(A, "y", {"text": "red"})])
        keys = sorted(item.key for item in store.search(A, query="red") if item.score)
        expect(keys, ["x", "y"], "what is near red")


def a_query_keeps_to_namespace_and_filter(stores: Stores) -> None:
    """What they leave out is not found, however near it is."""
    with stores.new(index=word_index()) as store:
        store.put(A, "in", {"text": "blue red", "n": 1})
        store.put(A, "out", {"text": "red", "n": 2})
        store.put(("ab",), "out", {"text": "red", "n": 1})
        expect(store.keys(A, query="red", filter={"n": 1}), ["in"], "with a filter")


def pages_of_a_query_hold_each_item_once(stores: Stores) -> None:
    """Whatever their size."""
    with stores.new(index=word_index()) as store:
        for at in range(30):
            store.put(A, f"k{at}", {"text": " ".join(WORDS[: at % 6 + 1])})
        for size in (1, 7, 10):
            pages = [store.keys(A, query="red", limit=size, offset=at) for at in range(0, 31, size)]
            keys = [key for page in pages for key in page]
            expect((len(keys), len(set(keys))), (30, 30), f"items and keys by pages of {size}")


def vectors_of_a_wrong_length_are_refused(stores: Stores) -> None:
    """A put whose model gives others than `dims` says raises, and stores nothing."""
    with stores.new(index=word_index(dims=len(WORDS) + 1)) as store:
        expect_raised(lambda: store.put(A, "k", {"text": "red"}), "a vector of 6 where dims is 7")
        expect(store.get(A, "k"), None, "the item afterwards")


RULES: Final[Sequence[Callable[[Stores], None]]] = (
    the_nearest_comes_first_with_the_highest_score,
    only_the_fields_of_the_index_count,
    fields_are_paths,
    a_put_may_name_its_own_fields,
    an_item_without_a_vector_comes_last,
    a_put_replaces_what_is_found,
    a_deleted_item_is_not_found,
    equal_texts_in_one_batch_are_both_found,
    a_query_keeps_to_namespace_and_filter,
    pages_of_a_query_hold_each_item_once,
    vectors_of_a_wrong_length_are_refused,
)
