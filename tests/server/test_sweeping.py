"""A server deletes what has expired, threads and items of the store, while it answers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from blocking import no_blocking_calls
from calling import calling
from langchain_core.messages import HumanMessage
from patience import auntil

from langmem_ext import DeltaSaver, DeltaStore, InvalidInput, Retention, ThreadChatMessageHistory
from langmem_ext.server import create_app

SOON = timedelta(milliseconds=5)


def filled(saver: DeltaSaver) -> None:
    """A thread and an item that have expired, and an item that has not."""
    ThreadChatMessageHistory("old", saver).add_messages([HumanMessage("Bye")])
    store = DeltaStore(saver)
    store.put(("notes",), "short", {"text": "gone"}, ttl=1e-6)
    store.put(("notes",), "long", {"text": "there"})


def left(saver: DeltaSaver) -> int:
    """What would still be deleted."""
    pruned = saver.sweep(dry_run=True)
    return pruned.threads + pruned.store_items


async def test_what_has_expired_is_deleted_while_the_server_runs(url: str) -> None:
    retention = Retention(ttl=timedelta())
    async with DeltaSaver.from_conn_string(url, retention=retention) as saver:
        filled(saver)
        assert left(saver) == 2
        with no_blocking_calls():
            async with calling(create_app(saver, sweep_every=SOON)) as caller:
                await auntil(lambda: left(saver) == 0)
                found = await caller.sdk.store.get_item(("notes",), "long")
        assert found["value"] == {"text": "there"}


async def test_without_a_retention_no_thread_is_deleted(url: str) -> None:
    async with DeltaSaver.from_conn_string(url) as saver:
        filled(saver)
        watching = DeltaSaver(saver.log, retention=Retention(ttl=timedelta()))
        async with calling(create_app(saver, sweep_every=SOON)) as caller:
            await auntil(lambda: watching.sweep(dry_run=True).store_items == 0)
            assert (await caller.sdk.threads.get("old"))["thread_id"] == "old"
        assert left(watching) == 1


@pytest.mark.parametrize("every", [None, "default"])
async def test_sweeping_is_on_unless_it_is_turned_off(every: Any) -> None:
    options = {} if every == "default" else {"sweep_every": every}
    async with DeltaSaver.from_conn_string(":memory:") as saver:
        filled(saver)
        watching = DeltaSaver(saver.log, retention=Retention())
        async with calling(create_app(saver, **options)):
            if every == "default":
                await auntil(lambda: left(watching) == 0)
        assert left(watching) == (0 if every == "default" else 1)


@pytest.mark.parametrize("every", [timedelta(), timedelta(days=31), 15])
def test_a_pause_that_is_none_is_refused(every: Any) -> None:
    with pytest.raises(InvalidInput, match="every"):
        create_app(":memory:", sweep_every=every)
