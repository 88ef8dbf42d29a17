"""Promise: a change whose answer is lost on its way, because the connection breaks behind the
commit, is stored once and told as it is.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from patience import PATIENCE_S
from proxy import Proxy
from savers import Calls, Mode, run_without_loop
from wire import Counts

from langmem_ext import (
    ConversationMemory,
    DeltaSaver,
    InvalidInput,
    Message,
    ThreadChatMessageHistory,
    Threads,
)
from postgres.connections.test_questions import until_waiting
from postgres.server import SHARED, Database

APART = 20
"""So many bytes lie between two places in what the server says where the connection is cut: what it
says to a commit is longer."""

NEVER = 1 << 40

LAST = 5
"""In so many places of what it says last the connection is cut; and in some of what it says
before."""

WAITING = """
CREATE FUNCTION {schema}.wait() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW; END';
CREATE TRIGGER waiting BEFORE UPDATE ON {schema}.thread
FOR EACH ROW EXECUTE FUNCTION {schema}.wait()
"""
"""From then on the last statement before a commit waits for a lock."""

Change = Callable[[Calls, DeltaSaver, str], Coroutine[Any, Any, Any]]


async def history_adds(calls: Calls, saver: DeltaSaver, name: str) -> None:
    await calls.call(
        ThreadChatMessageHistory(name, saver),
        "add_messages",
        [HumanMessage("one"), AIMessage("two")],
    )


async def new_history_adds(calls: Calls, saver: DeltaSaver, name: str) -> None:
    await history_adds(calls, saver, f"other-{name}")


async def session_appends(calls: Calls, saver: DeltaSaver, name: str) -> None:
    await calls.call(
        ConversationMemory(saver).for_session(name), "append", Message(role="user", text="one")
    )


async def continuation_adds(calls: Calls, saver: DeltaSaver, name: str) -> None:
    talk = await calls.call(Threads(saver, max_turns=3, on_limit="error"), "continue_", name)
    await calls.call(talk, "add", HumanMessage("the last that there may be"))


async def continuation_says(calls: Calls, saver: DeltaSaver, name: str) -> str:
    said: HumanMessage = await calls.call(
        await calls.call(Threads(saver), "continue_", name), "say", "one"
    )
    return said.text


async def view_is_cleared(calls: Calls, saver: DeltaSaver, name: str) -> int:
    cleared: int = await calls.call(Threads(saver), "clear", name)
    return cleared


async def thread_is_forked(calls: Calls, saver: DeltaSaver, name: str) -> None:
    op, _ = Threads(saver)._fork(
        name, None, f"{name}-1", f"other-{name}"
    )  # what `fork` does before it reads the fork
    await calls.call(saver.log, "run", op, write=True)


async def thread_is_copied(calls: Calls, saver: DeltaSaver, name: str) -> None:
    await calls.call(saver, "copy_thread", name, f"other-{name}")


async def thread_is_deleted(calls: Calls, saver: DeltaSaver, name: str) -> tuple[int, int]:
    deleted = await calls.call(saver, "prune", [name], strategy="delete")
    return deleted.threads, deleted.checkpoints


async def two_add_at_once(calls: Calls, saver: DeltaSaver, name: str) -> None:
    histories = [ThreadChatMessageHistory(name, saver) for _ in range(2)]
    adding = [
        calls.call(history, "add_messages", [HumanMessage("the same")]) for history in histories
    ]
    for one in adding if calls.mode == "sync" else [asyncio.gather(*adding)]:
        await one


CHANGES: list[Change] = [
    history_adds,
    new_history_adds,
    session_appends,
    continuation_adds,
    continuation_says,
    view_is_cleared,
    thread_is_forked,
    thread_is_copied,
    thread_is_deleted,
    two_add_at_once,
]


def config(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


def stored(saver: DeltaSaver, name: str) -> tuple[list[str], int]:
    """What a thread's newest checkpoint says, and how many it has."""
    found = list(saver.list(config(name)))
    return (
        [message.text for message in found[0].checkpoint["channel_values"]["messages"]]
        if found
        else []
    ), len(found)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_wherever_the_answer_is_cut_off_a_change_is_stored_once_and_told_as_it_is(
    database: Database, mode: Mode, change: Change
) -> None:
    url = f"{database.url}?schema={SHARED.tables()}"

    async def scenario() -> None:
        with (
            DeltaSaver.open(url) as direct,
            Proxy(url) as proxy,
            DeltaSaver.open(f"{proxy.url}&pool_size=1") as saver,
        ):

            async def outcome(name: str, cut: int | None = None) -> tuple[Any, Counts]:
                ThreadChatMessageHistory(name, direct).add_messages(
                    [HumanMessage(f"{at}", id=f"{name}-{at}") for at in range(2)]
                )
                proxy.cut_after(NEVER)
                proxy.cut()  # on a new connection the server says about as much each time
                await calls.call(saver, "get_tuple", config(name))
                before = proxy.counts()
                if cut is not None:
                    proxy.cut_after(cut, down=True)
                told = await change(calls, saver, name)
                passed = proxy.counts() - before
                return (told, *[stored(direct, one) for one in (name, f"other-{name}")]), passed

            calls = Calls(mode)
            await outcome("t-begin")
            expected, undisturbed = await outcome("t-0000")
            again, likewise = await outcome("t-0001")
            assert again == expected
            last, cuts = min(undisturbed.bytes_down, likewise.bytes_down) - APART // 2, 0
            for cut in [
                *range(1, last, last // 3),
                *range(last, max(1, last - LAST * APART), -APART),
            ]:
                found, passed = await outcome(f"t{cut:05}", cut)
                assert found == expected
                cuts += passed.connections > 0
            assert cuts > LAST, "hardly anything was cut"
            if mode == "async":
                await saver.aclose()

    run_without_loop(scenario()) if mode == "sync" else asyncio.run(scenario())


async def test_a_run_that_is_still_on_its_way_when_the_next_one_begins_is_waited_for(
    database: Database,
) -> None:
    schema = SHARED.new_schema()
    url = f"{database.url}?schema={schema}"
    with Proxy(url) as proxy, DeltaSaver.open(proxy.url) as saver, DeltaSaver.open(url) as direct:
        history = ThreadChatMessageHistory("new", saver)
        assert history.messages == []
        with (
            psycopg.connect(database.url, autocommit=True) as other,
            psycopg.connect(database.url) as holder,
        ):
            other.execute(WAITING.format(schema=schema).encode())
            holder.execute("SELECT pg_advisory_lock(1)")
            adding = threading.Thread(target=history.add_messages, args=([HumanMessage("once")],))
            adding.start()
            await until_waiting(other, 1)
            proxy.cut()
            await until_waiting(other, 2)
            holder.execute("SELECT pg_advisory_unlock(1)")
            adding.join(PATIENCE_S)
        assert [message.text for message in Threads(direct).messages("new")] == ["once"]
        assert len(list(direct.list(None))) == 1


def test_a_copy_that_others_have_made_meanwhile_is_not_taken_for_ones_own(
    database: Database,
) -> None:
    url = f"{database.url}?schema={SHARED.tables()}"
    with Proxy(url) as proxy, DeltaSaver.open(proxy.url) as saver, DeltaSaver.open(url) as other:
        ThreadChatMessageHistory("t", other).add_messages([HumanMessage("one")])
        other.copy_thread("t", "copy")
        for cut in range(1, 500, 60):
            proxy.cut_after(cut, down=True)
            with pytest.raises(InvalidInput, match="already"):
                saver.copy_thread("t", "copy")
