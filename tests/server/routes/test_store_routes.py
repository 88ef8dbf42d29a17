"""LangGraph's SDK works with the long-term store over HTTP, and an owner sees its own items
alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from calling import Caller, another, calling
from langgraph.store.memory import InMemoryStore

from langmem_ext.server import by_token, create_app

ANN, BOB = "ann-0123456789abcdef", "bob-0123456789abcdef"


@pytest.fixture
async def caller(url: str) -> AsyncIterator[Caller]:
    async with calling(create_app(url)) as caller:
        yield caller


async def test_items_are_put_read_found_and_deleted(caller: Caller) -> None:
    store = caller.sdk.store
    await store.put_item(["users", "ann"], key="likes", value={"colour": "green", "n": 2})
    await store.put_item(
        ["users", "bob"], key="likes", value={"colour": "red", "n": 1}, index=False, ttl=60
    )
    item = await store.get_item(["users", "ann"], key="likes")
    assert (item["namespace"], item["key"], item["value"]) == (
        ["users", "ann"],
        "likes",
        {"colour": "green", "n": 2},
    )
    assert item["created_at"].endswith("+00:00")  # type: ignore[attr-defined]
    assert await store.get_item(["users", "ann"], key="nothing") is None
    found = await store.search_items(["users"], filter={"n": {"$gt": 1}})
    assert [(one["key"], one["value"]["colour"]) for one in found["items"]] == [("likes", "green")]
    assert (await store.search_items(["users"], limit=1, offset=2))["items"] == []
    by_words = (await store.search_items(["users"], query="green"))["items"]
    assert by_words[0]["value"]["colour"] == "green"
    assert by_words[0]["score"] > 0
    assert (await store.list_namespaces(prefix=["users"]))["namespaces"] == [
        ["users", "ann"],
        ["users", "bob"],
    ]
    assert (await store.list_namespaces(max_depth=1))["namespaces"] == [["users"]]
    await store.delete_item(["users", "ann"], key="likes")
    await store.delete_item(["users", "ann"], key="likes")
    assert await store.get_item(["users", "ann"], key="likes") is None


async def test_an_item_that_cannot_be_put_is_refused() -> None:
    item = {"namespace": ["a"], "key": "k", "value": {}}
    async with calling(create_app(":memory:")) as caller:
        for wrong, status in (
            ({"namespace": []}, 400),
            ({"namespace": ["langgraph", "x"]}, 400),
            ({"namespace": [""]}, 400),
            ({"namespace": ["a.b"]}, 422),
            ({"value": [1]}, 422),
            ({"ttl": 0}, 422),
            ({"index": "x"}, 422),
        ):
            refused = await caller.http.put("/store/items", json=item | wrong)
            assert refused.status_code == status, refused.text
        assert (await caller.sdk.store.search_items([]))["items"] == []


async def test_an_owner_sees_its_own_items_alone(url: str) -> None:
    app = create_app(url, access=by_token({ANN: "ann", BOB: "bob"}))
    async with (
        calling(app, headers={"X-Api-Key": ANN}) as ann,
        another(app, headers={"X-Api-Key": BOB}) as bob,
    ):
        await ann.sdk.store.put_item(["notes"], key="k", value={"of": "ann"})
        assert await bob.sdk.store.get_item(["notes"], key="k") is None
        await bob.sdk.store.put_item(["notes"], key="k", value={"of": "bob"})
        await bob.sdk.store.delete_item(["notes"], key="k")
        assert (await ann.sdk.store.get_item(["notes"], key="k"))["value"] == {"of": "ann"}
        assert (await bob.sdk.store.search_items([]))["items"] == []
        assert (await bob.sdk.store.list_namespaces())["namespaces"] == []


async def test_a_store_that_knows_no_owners_is_not_shown_to_one() -> None:
    app = create_app(":memory:", access=by_token({ANN: "ann", BOB: None}), store=InMemoryStore())
    async with (
        calling(app, headers={"X-Api-Key": ANN}) as ann,
        another(app, headers={"X-Api-Key": BOB}) as every,
    ):
        refused = await ann.http.get("/store/items", params={"namespace": "a", "key": "k"})
        assert (refused.status_code, "DeltaStore" in refused.json()["detail"]) == (501, True)
        await every.sdk.store.put_item(["a"], key="k", value={})
        lasting = {"namespace": ["a"], "key": "k", "value": {}, "ttl": 5}
        assert (await every.http.put("/store/items", json=lasting)).status_code == 422
