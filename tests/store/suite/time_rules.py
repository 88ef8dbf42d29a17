"""Rules on time: when items expire, and what begins their time anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from langgraph.store.base import GetOp, PutOp, SearchOp, TTLConfig
from subject import Stores, expect

A: Final = ("a",)


def _omitting(**more: float | bool) -> TTLConfig:
    config: TTLConfig = {"omit_expired": True, "refresh_on_read": False}
    return {**config, **more}  # type: ignore[typeddict-item]


def what_has_expired_is_not_there(stores: Stores) -> None:
    """For no read: get, search, list_namespaces."""
    with stores.new(ttl=_omitting()) as store:
        store.put(A, "short", {"x": 1}, ttl=10 * stores.minute)
        store.put(("b",), "long", {"x": 1}, ttl=100 * stores.minute)
        stores.wait(5)
        expect(sorted(store.keys(())), ["long", "short"], "after 5 of 10 minutes")
        stores.wait(5)
        expect(store.get(A, "short"), None, "get after 10 of 10 minutes")
        expect(store.keys(()), ["long"], "search")
        expect(store.keys((), filter={"x": 1}), ["long"], "search with a filter")
        expect(store.list_namespaces(), [("b",)], "list_namespaces")


def an_item_without_a_ttl_stays(stores: Stores) -> None:
    """Also where the store has a default, if `ttl=None` says so."""
    with stores.new(ttl=_omitting(default_ttl=10 * stores.minute)) as store:
        store.put(A, "default", {})
        store.put(A, "never", {}, ttl=None)
        stores.wait(11)
        expect(store.keys(A), ["never"], "after 11 minutes of 10")


def a_put_begins_the_time_anew(stores: Stores) -> None:
    """With its own ttl, in place of the one before."""
    with stores.new(ttl=_omitting()) as store:
        for key in ("longer", "shorter", "ended"):
            store.put(A, key, {}, ttl=10 * stores.minute)
        stores.wait(6)
        store.put(A, "longer", {}, ttl=10 * stores.minute)
        store.put(A, "shorter", {}, ttl=2 * stores.minute)
        store.put(A, "ended", {}, ttl=None)
        stores.wait(6)
        expect(sorted(store.keys(A)), ["ended", "longer"], "6 minutes later")


def reading_begins_the_time_anew_where_that_is_asked(stores: Stores) -> None:
    """`refresh_ttl=True` of get and search does, `False` does not, whatever the store's default."""
    for default in (True, False):
        with stores.new(ttl=_omitting(refresh_on_read=default)) as store:
            for key in ("got", "peeked", "plain"):
                store.put(A, key, {}, ttl=10 * stores.minute)
            store.put(("s",), "sought", {}, ttl=10 * stores.minute)
            stores.wait(6)
            store.get(A, "got", refresh_ttl=True)
            store.get(A, "peeked", refresh_ttl=False)
            store.get(A, "plain")
            store.search(("s",), refresh_ttl=True)
            stores.wait(6)
            wanted = {"got", "sought"} | ({"plain"} if default else set())
            keys = set(store.keys((), refresh_ttl=False))
            expect(keys, wanted, f"6 minutes after the reads, refresh_on_read={default}")


def a_search_refreshes_what_it_returns_alone(stores: Stores) -> None:
    """What a limit leaves out goes on to its end."""
    with stores.new(ttl=_omitting()) as store:
        store.put(A, "x", {"n": 1}, ttl=10 * stores.minute)
        store.put(A, "y", {"n": 2}, ttl=10 * stores.minute)
        stores.wait(6)
        store.search(A, filter={"n": 1}, refresh_ttl=True)
        stores.wait(6)
        expect(store.keys(A, refresh_ttl=False), ["x"], "6 minutes later")


def reads_of_one_batch_refresh_each_as_it_says(stores: Stores) -> None:
    """One with `refresh_ttl=False` beside one with `True`."""
    with stores.new(ttl=_omitting()) as store:
        for key in ("x", "y", "z"):
            store.put(A, key, {}, ttl=10 * stores.minute)
        stores.wait(6)
        store.batch([GetOp(A, "x", True), GetOp(A, "y", False), PutOp(("b",), "k", {})])
        stores.wait(6)
        items = store.batch([SearchOp(A, None, 10, 0, None, False)])[0]
        expect([item.key for item in items], ["x"], "6 minutes later")


def reading_does_not_bring_back_what_has_expired(stores: Stores) -> None:
    """Not with `refresh_ttl=True` either."""
    with stores.new(ttl=_omitting()) as store:
        store.put(A, "k", {}, ttl=10 * stores.minute)
        stores.wait(11)
        expect(store.get(A, "k", refresh_ttl=True), None, "get after 11 of 10 minutes")
        store.search(A, refresh_ttl=True)
        expect(store.get(A, "k"), None, "get after a search that refreshes")


RULES: Final[Sequence[Callable[[Stores], None]]] = (
    what_has_expired_is_not_there,
    an_item_without_a_ttl_stays,
    a_put_begins_the_time_anew,
    reading_begins_the_time_anew_where_that_is_asked,
    a_search_refreshes_what_it_returns_alone,
    reads_of_one_batch_refresh_each_as_it_says,
    reading_does_not_bring_back_what_has_expired,
)
