"""Promise: any number of async calls of a store may be gathered, each with its own result."""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from langmem_ext import DeltaStore, InvalidInput, StorageUnavailable

MANY = 2_000


def program(seed: int) -> list[tuple[Any, ...]]:
    """Calls of which later ones see what earlier ones have put."""
    draw = random.Random(seed)
    calls: list[tuple[Any, ...]] = []
    for number in range(120):
        space, key = ("a", str(draw.randrange(3))), f"k{draw.randrange(6)}"
        kind = draw.choice(["aput", "aput", "aget", "aget", "adelete"])
        calls.append((kind, space, key, *([{"v": number}] if kind == "aput" else [])))
    return calls


def plain(result: Any) -> Any:
    """A result without its times."""
    return None if result is None else (result.namespace, result.key, result.value)


async def test_gathered_calls_have_the_results_that_they_have_one_after_the_other(
    url: str,
) -> None:
    for seed in range(6):
        calls, reference = program(seed), InMemoryStore()
        wanted = [plain(await getattr(reference, name)(*given)) for name, *given in calls]
        async with await DeltaStore.aopen(url) as store:
            for item in await store.asearch((), limit=1000):
                await store.adelete(item.namespace, item.key)
            asked = (getattr(store, name)(*given) for name, *given in calls)
            assert [plain(result) for result in await asyncio.gather(*asked)] == wanted, seed


async def test_thousands_at_once_are_served(url: str) -> None:
    async with await DeltaStore.aopen(url) as store:
        space = ("burst",)
        await asyncio.gather(*(store.aput(space, f"k{n}", {"v": n}) for n in range(MANY)))
        found = await asyncio.gather(*(store.aget(space, f"k{n}") for n in range(MANY)))
        assert [item and item.value for item in found] == [{"v": n} for n in range(MANY)]
        listed = await asyncio.gather(*(store.alist_namespaces() for _ in range(200)))
        assert listed == [[space]] * 200


async def test_each_call_fails_by_itself(url: str) -> None:
    async with await DeltaStore.aopen(url) as store:
        done = await asyncio.gather(
            store.aput(("a",), "one", {"v": 1}),
            store.aput(("a",), "bad", {"v": object()}),
            store.aput((), "none", {"v": 1}),
            store.aput(("a",), "two", {"v": 2}),
            store.aget(("a",), "one"),
            return_exceptions=True,
        )
        assert isinstance(done[1], InvalidInput)
        assert isinstance(done[2], Exception)
        assert plain(done[4]) == (("a",), "one", {"v": 1})
        kept = await store.asearch(("a",))
        assert sorted(item.key for item in kept) == ["one", "two"]


async def test_who_gives_up_leaves_the_others_alone(url: str) -> None:
    async with await DeltaStore.aopen(url) as store:
        tasks = [asyncio.create_task(store.aput(("a",), f"k{n}", {"v": n})) for n in range(20)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(one) for one in done[1::2]] == [type(None)] * 10
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        kept = {item.key for item in await store.asearch(("a",), limit=100)}
        assert {f"k{n}" for n in range(1, 20, 2)} <= kept


@pytest.mark.parametrize("durable", ["postgres"], indirect=True)
def test_a_deadline_that_passes_in_the_queue_says_so(url: str) -> None:
    """Not that the server cannot be reached: others are being served by it."""
    narrow = f"{url}{'&' if '?' in url else '?'}pool_size=1&deadline=0.15"
    refusals: list[str] = []
    with DeltaStore.open(narrow) as store, ThreadPoolExecutor(60) as callers:
        store.put(("a",), "k", {"v": "x" * 2_000_000})

        def get(_: int) -> None:
            try:
                store.get(("a",), "k")
            except StorageUnavailable as error:
                refusals.append(str(error))

        list(callers.map(get, range(300)))
    assert refusals
    assert all("connections to the PostgreSQL database" in text for text in refusals)
    assert all("were in use for 0.15 s" in text for text in refusals)
