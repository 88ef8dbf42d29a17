"""Rules on items: keys, values, namespaces, filters, batches, pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
)
from subject import Caller, RuleBroken, Stores, expect, expect_raised

A: Final = ("a",)

# -- values ------------------------------------------------------------------------------------


def a_value_comes_back_as_it_was_put(stores: Stores) -> None:
    """Any JSON: numbers of any size, zero characters, halves of surrogate pairs, odd keys."""
    values: dict[str, Any] = {
        "scalars": {"i": 1, "f": 1.0, "t": True, "n": None, "s": "é\U0001f600"},
        "numbers": {"large": 2**70, "small": -(2**63), "tiny": 5e-324, "zero": -0.0},
        "texts": {"nul": "a\0b", "half": "\ud800", "quotes": "\"'\\%_"},
        "keys": {"": 1, "a.b": 2, 'q"': 3, "$gt": 4, "x y": 5},
        "nested": {"l": [1, [2, {"x": []}]], "o": {"p": {"q": {}}}},
        "empty": {},
    }
    with stores.new() as store:
        for key, value in values.items():
            store.put(A, key, value)
        for key, value in values.items():
            item = store.get(A, key)
            expect(None if item is None else repr(item.value), repr(value), f"the value {key!r}")


def any_text_is_a_key(stores: Stores) -> None:
    """Also one of no characters, with quotes, wildcards, spaces or halves of characters."""
    keys = ["", " ", "k", "K", "%", "_", "'", '"', "a.b", "a\0b", "\ud800", "ключ", "x" * 500]
    with stores.new() as store:
        for at, key in enumerate(keys):
            store.put(A, key, {"at": at})
        places = {item.key: item.value["at"] for item in store.search(A, limit=100)}
        expect(places, {key: at for at, key in enumerate(keys)}, "the keys")
        expect([item and item.value["at"] for item in (store.get(A, key) for key in keys)],
               list(range(len(keys))), "each by its key")  # fmt: skip


def a_key_that_is_no_text_becomes_one(stores: Stores) -> None:
    """`put` and `get` take `str(key)`."""
    with stores.new() as store:
        store.put(A, 7, {"x": 1})  # type: ignore[arg-type]
        item = store.get(A, "7")
        expect(item and item.key, "7", "the key of an item put under 7")


def what_was_returned_can_be_changed(stores: Stores) -> None:
    """A value is the caller's own: changing it changes nothing that is stored."""
    with stores.new() as store:
        value = {"l": [1]}
        store.put(A, "k", value)
        value["l"].append(2)
        item = store.get(A, "k")
        expect(item and item.value, {"l": [1]}, "after the put value was changed")
        if item is not None:
            item.value["l"].append(3)
        again = store.get(A, "k")
        expect(again and again.value, {"l": [1]}, "after the returned value was changed")


def what_cannot_be_stored_is_refused(stores: Stores) -> None:
    """A value that would come back as another one raises, and stores nothing."""
    with stores.new() as store:
        for name, value in (("object", object()), ("function", len)):
            put = partial(store.put, A, "k", {"x": value})
            expect_raised(put, f"a {name} as value")
            expect(store.get(A, "k"), None, "after a put that raised")


# -- items -------------------------------------------------------------------------------------


def an_item_says_what_it_is(stores: Stores) -> None:
    """Namespace, key and times with a zone; created is not after updated."""
    with stores.new() as store:
        store.put(("a", "b"), "k", {"x": 1})
        for item in (store.get(("a", "b"), "k"), *store.search(A)):
            if not isinstance(item, Item):
                raise RuleBroken(f"{item!r} instead of an item")
            expect((item.namespace, item.key), (("a", "b"), "k"), "namespace and key")
            for moment in (item.created_at, item.updated_at):
                if moment.tzinfo is None or abs((datetime.now(UTC) - moment).days) > 36500:
                    raise RuleBroken(f"{moment!r} instead of a time with a zone")
            expect(item.created_at <= item.updated_at, True, "created before updated")


def a_search_gives_search_items(stores: Stores) -> None:
    """Without a query they have no score."""
    with stores.new() as store:
        store.put(A, "k", {"x": 1})
        [item] = store.search(A)
        expect((isinstance(item, SearchItem), item.score), (True, None), "kind and score")


def a_put_replaces_the_whole_value(stores: Stores) -> None:
    """Nothing of the former value stays."""
    with stores.new() as store:
        store.put(A, "k", {"x": 1, "y": 2})
        store.put(A, "k", {"y": 3})
        item = store.get(A, "k")
        expect(item and item.value, {"y": 3}, "the value")
        expect(store.keys(A, filter={"x": 1}), [], "a search for the former value")


def what_is_not_there_is_none(stores: Stores) -> None:
    """`get` gives None; deleting it raises nothing."""
    with stores.new() as store:
        expect(store.get(A, "k"), None, "get")
        store.delete(A, "k")
        store.put(A, "k", {"x": 1})
        store.delete(A, "k")
        expect((store.get(A, "k"), store.search(())), (None, []), "after delete")


# -- namespaces --------------------------------------------------------------------------------

LOOK_ALIKES: Final = (
    *(("docs",), ("docs", "a"), ("docs_other",), ("Docs",), ("doc",), ("do%s",), ("do_s",)),
    *(("docs ",), ("a", "docs"), ("docsé",), ("*",)),
)


def _with_look_alikes(store: Caller) -> None:
    for at, namespace in enumerate(LOOK_ALIKES):
        store.put(namespace, "k", {"at": at})


def a_prefix_is_of_whole_labels(stores: Stores) -> None:
    """No look-alike is found: by letter case, wildcards of SQL, or a longer label."""
    with stores.new() as store:
        _with_look_alikes(store)
        for prefix in (*LOOK_ALIKES, (), ("nobody",)):
            namespaces = {item.namespace for item in store.search(prefix, limit=100)}
            wanted = {namespace for namespace in LOOK_ALIKES if namespace[: len(prefix)] == prefix}
            expect(namespaces, wanted, f"the namespaces below {prefix!r}")


def a_search_takes_no_wildcard(stores: Stores) -> None:
    """`*` is a label like any other there."""
    with stores.new() as store:
        store.put(("a", "x"), "k", {})
        store.put(("*", "x"), "k", {})
        namespaces = [item.namespace for item in store.search(("*",))]
        expect(namespaces, [("*", "x")], "the namespaces below ('*',)")


def namespaces_that_are_none_are_refused(stores: Stores) -> None:
    """Empty, with an empty label, one with a period or a zero character, or `langgraph`."""
    bad: Sequence[Any] = ((), ("",), ("a", ""), ("a.b",), ("a\0b",), (1,), ("langgraph", "x"))
    with stores.new() as store:
        for namespace in bad:
            put = partial(store.put, namespace, "k", {})
            expect_raised(put, f"a put to {namespace!r}")
        expect(store.list_namespaces(), [], "the namespaces afterwards")


def namespaces_are_listed_in_order(stores: Stores) -> None:
    """Sorted by their labels; each once, however many items it has."""
    with stores.new() as store:
        _with_look_alikes(store)
        store.put(("docs",), "k2", {})
        namespaces = store.list_namespaces(limit=100)
        expect(namespaces, sorted(LOOK_ALIKES), "the namespaces")


def namespaces_match_by_prefix_suffix_and_wildcard(stores: Stores) -> None:
    """`*` stands for exactly one label; both conditions must hold."""
    spaces = [("a", "b", "c"), ("a", "x", "c"), ("a", "b"), ("b", "c"), ("a",), ("a", "b", "d")]
    cases: list[tuple[dict[str, Any], list[tuple[str, ...]]]] = [
        ({"prefix": ("a", "b")}, [("a", "b"), ("a", "b", "c"), ("a", "b", "d")]),
        ({"prefix": ("a", "*", "c")}, [("a", "b", "c"), ("a", "x", "c")]),
        ({"suffix": ("c",)}, [("a", "b", "c"), ("a", "x", "c"), ("b", "c")]),
        ({"suffix": ("*", "c")}, [("a", "b", "c"), ("a", "x", "c"), ("b", "c")]),
        ({"prefix": ("*", "b"), "suffix": ("b", "*")}, [("a", "b", "c"), ("a", "b", "d")]),
        ({"prefix": ("a", "b", "c", "d")}, []),
    ]
    with stores.new() as store:
        for namespace in spaces:
            store.put(namespace, "k", {})
        for options, wanted in cases:
            expect(store.list_namespaces(**options), wanted, f"the namespaces of {options!r}")


def namespaces_are_cut_to_a_depth_and_paged(stores: Stores) -> None:
    """Cut first, then each once, then paged."""
    with stores.new() as store:
        for labels in ("abc", "abd", "acd", "b", "bcd"):
            store.put(tuple(labels), "k", {})
        two = [("a", "b"), ("a", "c"), ("b",), ("b", "c")]
        expect(store.list_namespaces(max_depth=2), two, "to a depth of 2")
        expect(store.list_namespaces(max_depth=0), [()], "to a depth of 0")
        pages = [store.list_namespaces(max_depth=2, limit=3, offset=at) for at in (0, 3, 6)]
        expect(pages, [two[:3], two[3:], []], "by pages of 3")


def a_namespace_is_there_while_it_has_items(stores: Stores) -> None:
    """Reading does not make one, and deleting its last item ends it."""
    with stores.new() as store:
        store.get(("read",), "k")
        store.search(("sought",))
        store.put(A, "k", {})
        expect(store.list_namespaces(), [A], "after a put, a get and a search")
        store.delete(A, "k")
        expect(store.list_namespaces(), [], "after the item was deleted")


# -- filters -----------------------------------------------------------------------------------

FILTERED: Final[Mapping[str, dict[str, Any]]] = {
    "a": {"n": 9, "f": 1, "tags": ["x", "y"], "o": {"k": 1, "j": 2}, "d": "2026-01-01", "u": None},
    "b": {"n": 10, "f": True, "tags": ["x"], "o": {"k": 5}, "d": "2026-02-01", "s": "10"},
    "c": {"n": 9.5, "f": 0, "tags": [], "o": {}, "d": "2025-12-31", "x.y": 3, "it's": "a\"b'c"},
    "d": {
        "n": "9",
        "f": "1",
        "tags": "x",
        "o": "k",
        "d": None,
        "deep": {"a": {"b": [1, {"c": 2}]}},
    },
    "e": {"n": None, "f": None, "tags": None, "o": None},
}


def _check_filters(stores: Stores, cases: Sequence[tuple[dict[str, Any], str]]) -> None:
    with stores.new() as store:
        for key, value in FILTERED.items():
            store.put(A, key, value)
        for wanted, keys in cases:
            matching = "".join(sorted(store.keys(A, filter=wanted)))
            expect(matching, keys, f"the keys that {wanted!r} lets through")


def a_filter_compares_scalars_as_python_does(stores: Stores) -> None:
    """`True == 1` and `10 == 10.0`, but no text is a number."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({"n": 9}, "a"), ({"n": 9.0}, "a"), ({"n": "9"}, "d"), ({"n": 10}, "b"),
        ({"f": True}, "ab"), ({"f": 1}, "ab"), ({"f": False}, "c"), ({"f": "1"}, "d"),
        ({"s": 10}, ""),
        ({}, "abcde"), ({"n": 9, "f": 1}, "a"), ({"n": 9, "f": 0}, ""),
    ]  # fmt: skip
    _check_filters(stores, cases)


def a_filter_finds_any_json(stores: Stores) -> None:
    """Numbers of any size, and texts of any characters."""
    with stores.new() as store:
        for key, value in (("big", 2**70), ("nul", "a\0b"), ("half", "\ud800"), ("tiny", 5e-324)):
            store.put(A, key, {"x": value, "all": True})
            expect(store.keys(A, filter={"x": value}), [key], f"the keys whose x is {value!r}")
        matching = sorted(store.keys(A, filter={"all": True}))
        expect(matching, ["big", "half", "nul", "tiny"], "the keys whose `all` is true")


def none_matches_what_is_missing(stores: Stores) -> None:
    """A filter for None, bare or by `$eq`, also holds where there is no such key."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({"u": None}, "abcde"), ({"missing": None}, "abcde"), ({"n": None}, "e"),
        ({"u": {"$eq": None}}, "abcde"), ({"n": {"$eq": None}}, "e"), ({"s": None}, "acde"),
    ]  # fmt: skip
    _check_filters(stores, cases)


def a_filter_looks_into_lists_and_dicts(stores: Stores) -> None:
    """Lists element by element; dicts in what is named, at any depth, with operators inside."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({"tags": ["x", "y"]}, "a"), ({"tags": ["y", "x"]}, ""), ({"tags": []}, "c"),
        ({"tags": "x"}, "d"), ({"tags": {"$eq": ["x", "y"]}}, "a"),
        ({"tags": ["x", {"$ne": 1}]}, "a"),
        ({"o": {"k": 1, "j": 2}}, "a"), ({"o": {"k": 1}}, "a"), ({"o": {}}, "abc"),
        ({"o": {"k": {"$eq": 5}}}, "b"), ({"o": {"$eq": {"k": 1}}}, ""),
        ({"o": {"$eq": {"j": 2, "k": 1}}}, "a"), ({"deep": {"a": {"b": [1, {"c": 2}]}}}, "d"),
    ]  # fmt: skip
    _check_filters(stores, cases)


def a_filter_s_keys_are_names_and_no_paths(stores: Stores) -> None:
    """Dots, quotes and dollars in them mean nothing."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({"x.y": 3}, "c"), ({"o.k": 1}, ""), ({"deep.a.b": [1, {"c": 2}]}, ""),
        ({"it's": "a\"b'c"}, "c"), ({'q"': 1}, ""), ({"$.n": 9}, ""), ({"n') OR 1=1 --": 1}, ""),
    ]  # fmt: skip
    _check_filters(stores, cases)


def eq_and_ne_are_opposites(stores: Stores) -> None:
    """`$ne` holds for every item that `$eq` does not hold for, a missing key included."""
    with stores.new() as store:
        for key, value in FILTERED.items():
            store.put(A, key, value)
        for name in ("n", "f", "tags", "o", "missing", "s"):
            for wanted in (9, 1, "9", None, ["x"], {"k": 5}):
                equal = set(store.keys(A, filter={name: {"$eq": wanted}}))
                other = set(store.keys(A, filter={name: {"$ne": wanted}}))
                split = (equal | other, equal & other)
                expect(split, (set(FILTERED), set()), f"by $eq and $ne {wanted!r} of {name!r}")


def numbers_are_compared_by_size(stores: Stores) -> None:
    """Not as texts; several operators must all hold."""
    numbers: dict[str, Any] = {"a": 9, "b": 10, "c": 9.5, "d": -1, "e": 0, "f": 1e300}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"n": {"$gte": 10}}, "bf"), ({"n": {"$gt": 9}}, "bcf"), ({"n": {"$lt": 9.5}}, "ade"),
        ({"n": {"$lte": 9.5}}, "acde"), ({"n": {"$gt": 9, "$lt": 10}}, "c"),
        ({"n": {"$gte": 0, "$ne": 9}}, "bcef"), ({"n": {"$gt": -1.5, "$lte": 0}}, "de"),
    ]  # fmt: skip
    with stores.new() as store:
        for key, value in numbers.items():
            store.put(A, key, {"n": value})
        for wanted, keys in cases:
            matching = "".join(sorted(store.keys(A, filter=wanted)))
            expect(matching, keys, f"the keys that {wanted!r} lets through")


def sizes_of_different_kinds_are_not_compared(stores: Stores) -> None:
    """Texts with texts (dates, say), numbers with numbers; else there is no match, and no error."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({"d": {"$gte": "2026-01-01"}}, "ab"), ({"d": {"$lt": "2026-01-01"}}, "c"),
        ({"n": {"$gt": "5"}}, "d"), ({"n": {"$gt": 5}}, "abc"), ({"u": {"$gt": 0}}, ""),
        ({"missing": {"$lte": 0}}, ""), ({"o": {"k": {"$gt": 0}}}, "ab"),
        ({"tags": {"$gt": 0}}, ""),
    ]  # fmt: skip
    _check_filters(stores, cases)


def an_unknown_operator_is_refused(stores: Stores) -> None:
    """Nothing is guessed."""
    with stores.new() as store:
        store.put(A, "k", {"n": 1})
        expect_raised(lambda: store.search(A, filter={"n": {"$near": 1}}), "the operator $near")


# -- batches and pages -------------------------------------------------------------------------


def a_batch_reads_what_was_there_before_it(stores: Stores) -> None:
    """Its reads do not see its puts, in whatever order they are listed."""
    with stores.new() as store:
        store.put(A, "old", {"x": 1})
        got, sought, listed, gone = store.batch(
            [
                GetOp(A, "new"),
                SearchOp(A, None, 10, 0),
                ListNamespacesOp((MatchCondition("prefix", ("b",)),), None, 10, 0),
                GetOp(A, "old"),
                PutOp(A, "new", {"x": 2}),
                PutOp(("b",), "k", {}),
                PutOp(A, "old", None),
            ]
        )[:4]
        keys = [item.key for item in sought]
        expect((got, keys, listed), (None, ["old"], []), "the reads before the puts")
        expect(gone and gone.value, {"x": 1}, "what the batch deletes")
        after = store.batch([PutOp(A, "late", {}), GetOp(A, "late"), GetOp(A, "new")])
        expect((after[1], after[2] and after[2].value), (None, {"x": 2}), "the reads behind a put")


def of_two_puts_of_a_key_the_last_counts(stores: Stores) -> None:
    """Within one batch, too, and where one of them deletes."""
    with stores.new() as store:
        store.batch([PutOp(A, "k", {"x": 1}), PutOp(A, "k", {"x": 2})])
        item = store.get(A, "k")
        expect(item and item.value, {"x": 2}, "after two puts")
        store.batch([PutOp(A, "k", {"x": 3}), PutOp(A, "k", None)])
        expect(store.get(A, "k"), None, "after a put and a delete")
        store.batch([PutOp(A, "k", None), PutOp(A, "k", {"x": 4})])
        item = store.get(A, "k")
        expect(item and item.value, {"x": 4}, "after a delete and a put")


def a_batch_that_raises_changes_nothing(stores: Stores) -> None:
    """None of its puts is run, whether before or after the invalid one."""
    with stores.new() as store:
        bad: list[Op] = [
            PutOp(A, "x", {"n": 1}),
            PutOp(A, "y", {"n": object()}),
            PutOp(A, "z", {"n": 1}),
        ]
        expect_raised(lambda: store.batch(bad), "a batch with a value that is none")
        expect(store.keys(A), [], "the items afterwards")


def a_batch_answers_each_operation_in_its_place(stores: Stores) -> None:
    """None for a put; nothing is left out."""
    with stores.new() as store:
        store.put(A, "k", {"x": 1})
        answers = store.batch([PutOp(A, "l", {}), GetOp(A, "k"), PutOp(A, "m", {}), GetOp(A, "?")])
        expect([item and item.key for item in answers], [None, "k", None, None], "the answers")
        expect(store.batch([]), [], "an empty batch")


def pages_hold_each_item_once(stores: Stores) -> None:
    """Whatever their size, with and without a filter."""
    with stores.new() as store:
        for at in range(30):
            store.put(("p", str(at % 3)), f"k{at}", {"at": at, "even": at % 2 == 0})
        for wanted, count in ((None, 30), ({"even": True}, 15)):
            for size in (1, 7, 10, 30, 31):
                keys: list[str] = []
                for offset in range(0, 40, size):
                    keys += store.keys(("p",), filter=wanted, limit=size, offset=offset)
                what = f"by pages of {size} with the filter {wanted!r}"
                expect((len(keys), len(set(keys))), (count, count), f"items and keys {what}")
        expect(store.keys(("p",), limit=0), [], "with a limit of 0")
        expect(len(store.keys(("p",))), 10, "items without a limit")


def a_namespace_s_items_come_in_the_order_of_their_first_put(stores: Stores) -> None:
    """A put that replaces moves nothing; one that follows a delete comes last."""
    with stores.new() as store:
        for key in "cab":
            store.put(A, key, {"x": 1})
        store.put(A, "c", {"x": 2})
        expect("".join(store.keys(A)), "cab", "the order after c was put again")
        store.delete(A, "c")
        store.put(A, "c", {"x": 3})
        expect("".join(store.keys(A)), "abc", "the order after c was deleted and put")


RULES: Final[Sequence[Callable[[Stores], None]]] = (
    a_value_comes_back_as_it_was_put,
    any_text_is_a_key,
    a_key_that_is_no_text_becomes_one,
    what_was_returned_can_be_changed,
    what_cannot_be_stored_is_refused,
    an_item_says_what_it_is,
    a_search_gives_search_items,
    a_put_replaces_the_whole_value,
    what_is_not_there_is_none,
    a_prefix_is_of_whole_labels,
    a_search_takes_no_wildcard,
    namespaces_that_are_none_are_refused,
    namespaces_are_listed_in_order,
    namespaces_match_by_prefix_suffix_and_wildcard,
    namespaces_are_cut_to_a_depth_and_paged,
    a_namespace_is_there_while_it_has_items,
    a_filter_compares_scalars_as_python_does,
    a_filter_finds_any_json,
    none_matches_what_is_missing,
    a_filter_looks_into_lists_and_dicts,
    a_filter_s_keys_are_names_and_no_paths,
    eq_and_ne_are_opposites,
    numbers_are_compared_by_size,
    sizes_of_different_kinds_are_not_compared,
    an_unknown_operator_is_refused,
    a_batch_reads_what_was_there_before_it,
    of_two_puts_of_a_key_the_last_counts,
    a_batch_that_raises_changes_nothing,
    a_batch_answers_each_operation_in_its_place,
    pages_hold_each_item_once,
)
ORDER_RULES: Final = (a_namespace_s_items_come_in_the_order_of_their_first_put,)
