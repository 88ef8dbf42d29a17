"""Items leave a store as lines of JSON, and are the same when they are stored again."""

from __future__ import annotations

import json

import pytest
from clock import Clock
from finding_rules import word_index
from stores import maker

from langmem_ext import DeltaStore, MalformedExport, MessageLog


def items(store: DeltaStore) -> list[dict[str, object]]:
    return [item.dict() for item in store.search((), limit=100, refresh_ttl=False)]


def fill(store: DeltaStore) -> None:
    store.batch([])
    store.put(
        ("a",), "k", {"text": "red", "odd": ["\ud800", 2**70, "a\0b", -0.0, None, {"é": 1.5}]}
    )
    store.for_owner("anna").put(
        ("anna",), "k \u2028\n", {"text": "blue", "note": "green"}, index=["note"], ttl=10
    )
    store.put(("a", "none"), "", {"text": "sun"}, index=False)


def test_what_was_exported_is_the_same_when_it_is_imported(log: MessageLog, clock: Clock) -> None:
    with maker(log)(index=word_index()) as store:
        fill(store)
        clock.wait(minutes=5)
        store.put(("a",), "later", {"text": "dog"})
        before, lines = items(store), list(store.export_lines())
        assert all("\n" not in line and line.encode() for line in lines)
        other = DeltaStore(index=word_index())
        assert other.import_lines(lines) == 4
        assert items(other) == before
        assert list(other.export_lines()) == lines
        assert [item["key"] for item in items(other.for_owner("anna"))] == ["k \u2028\n"]
        assert other.search((), query="green", limit=1, refresh_ttl=False)[0].key == "k \u2028\n"
        clock.wait(minutes=6)
        assert len(items(other)) == 3  # what expired here has expired there


async def test_async_lines_are_the_same(clock: Clock) -> None:
    store, other = DeltaStore(index=word_index()), DeltaStore(index=word_index())
    await store.aput(("a",), "k", {"text": "red"})
    lines = [line async for line in store.aexport_lines()]
    assert lines == list(store.export_lines())
    assert await other.aimport_lines(lines) == 1
    assert items(other) == items(store)


def test_a_bound_store_exports_its_own_and_takes_all_for_its_owner(clock: Clock) -> None:
    store, other = DeltaStore(), DeltaStore()
    fill(store)
    assert len(list(store.for_owner("anna").export_lines())) == 2
    other.for_owner("bert").import_lines(store.export_lines())
    assert len(items(other.for_owner("bert"))) == 3


def test_an_imported_item_is_nobody_s_although_an_owner_has_one_with_its_key(clock: Clock) -> None:
    store, other = DeltaStore(), DeltaStore()
    store.put(("a",), "k", {"of": "nobody"})
    other.for_owner("anna").put(("a",), "k", {"of": "anna"})
    for _ in range(2):
        other.import_lines(store.export_lines())
        assert [item["value"] for item in items(other)] == [{"of": "anna"}, {"of": "nobody"}]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "no JSON"),
        ("[]", "no item"),
        ('{"key": "k", "value": {}}', "'namespace' is missing"),
        ('{"namespace": [1], "key": "k", "value": {}}', "strings"),
        ('{"namespace": ["a"], "key": "k", "value": 1}', "a dict"),
        ('{"namespace": ["a"], "key": "k", "value": {}, "created_at": "now"}', "milliseconds"),
        ('{"namespace": ["a"], "key": "k", "value": {}, "owner": 1}', "no name"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_a_line_that_is_no_item_is_named_and_nothing_of_its_page_is_stored(
    line: str, why: str
) -> None:
    store = DeltaStore()
    good = json.dumps({"namespace": ["a"], "key": "k", "value": {}})
    head = next(store.export_lines())
    with pytest.raises(MalformedExport, match=f"line 3: .*{why}"):
        store.import_lines([head, good, line])
    assert items(store) == []
    with pytest.raises(MalformedExport, match="line 1"):
        store.import_lines([good])
