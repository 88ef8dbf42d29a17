"""Promise: a turn that is cut off in a tool's call keeps what the tool did, which runs once.

Whoever gives up waiting, cancels a run or stops a server does not stop a sync tool: it goes on in
its thread. The conversation is free for others when the tool's result is stored.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import uuid4

import pytest
from calling import calling
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langmem_ext import DeltaSaver, IntentCatalog, aconverse, build_waiting_graph
from langmem_ext.server import create_app

LASTS = 0.5
CATALOG = IntentCatalog.from_dict(
    {
        "intents": {
            "order": {
                "patterns": [r"\border\b"],
                "required": ["amount"],
                "tool": ["charge", "ship"],
                "confirm": "Pay {amount}?",
            }
        },
        "params": {"amount": {"type": "integer", "prompt": "How many?"}},
    }
)


class Shop:
    """Two tools that one yes runs, and what they have begun and ended."""

    def __init__(self, kind: str) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.kind = kind
        self.graph = build_waiting_graph(CATALOG, [self._tool("charge"), self._tool("ship")])

    def _tool(self, name: str) -> BaseTool:
        def call(amount: int) -> str:
            self.begun.append(name)
            time.sleep(LASTS)
            self.ended.append(name)
            return name

        async def acall(amount: int) -> str:
            self.begun.append(name)
            await asyncio.sleep(LASTS)
            self.ended.append(name)
            return name

        made: Any = {"func": call} if self.kind == "sync" else {"coroutine": acall}
        return StructuredTool.from_function(name=name, description=name, **made)

    async def until_begun(self) -> None:
        """Wait until a tool is in the midst of its work."""
        while not self.begun:
            await asyncio.sleep(0.01)


@pytest.fixture(params=["sync", "async"])
def shop(request: pytest.FixtureRequest) -> Shop:
    return Shop(request.param)


async def test_a_message_behind_a_turn_that_is_given_up_finds_its_tool_done(
    shop: Shop, saver: DeltaSaver
) -> None:
    graph = shop.graph.compile(checkpointer=saver)
    asked = await aconverse(graph, "order 5", thread_id="t")
    assert asked.waiting_for == "confirmation"
    paying = asyncio.create_task(aconverse(graph, "yes", thread_id="t"))
    await shop.until_begun()
    for _ in range(3):  # whoever is in a hurry cancels more than once
        paying.cancel()
        await asyncio.sleep(0.02)
    turn = await aconverse(graph, "no, stop", thread_id="t")
    assert paying.cancelled()
    assert (shop.begun, shop.ended, turn.waiting_for) == (["charge"], ["charge"], None)


async def test_a_turn_that_is_given_up_begins_no_other_tool(shop: Shop, saver: DeltaSaver) -> None:
    graph = shop.graph.compile(checkpointer=saver)
    await aconverse(graph, "order 5", thread_id="t")
    paying = asyncio.create_task(aconverse(graph, "yes", thread_id="t"))
    await shop.until_begun()
    paying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await paying
    assert (shop.begun, shop.ended) == (["charge"], ["charge"])
    state = await graph.aget_state({"configurable": {"thread_id": "t"}})
    assert [done["status"] for done in state.values["plan"]["results"]] == ["ok"]


async def test_without_converse_a_tool_is_not_cut_off_either(shop: Shop, saver: DeltaSaver) -> None:
    graph, config = shop.graph.compile(checkpointer=saver), {"configurable": {"thread_id": "t"}}
    await graph.ainvoke({"messages": [("user", "order 5")]}, config)
    paying = asyncio.create_task(graph.ainvoke(Command(resume="yes"), config))
    await shop.until_begun()
    paying.cancel()
    await asyncio.wait([paying])
    await aconverse(graph, "thanks", thread_id="t")
    assert (shop.begun, shop.ended) == (["charge", "ship"], ["charge", "ship"])


@pytest.mark.parametrize("modes", [["values"], ["values", "messages-tuple"]])
async def test_a_run_that_is_cancelled_over_http_keeps_what_its_tool_did(
    shop: Shop, url: str, modes: list[str]
) -> None:
    app = create_app(url, graph=shop.graph.compile())
    async with calling(app) as caller:
        runs, threads = caller.sdk.runs, caller.sdk.threads
        await threads.create(thread_id="t")
        await runs.wait("t", "agent", input={"messages": [("user", "order 5")]})
        run = await runs.create("t", "agent", command={"resume": "yes"}, stream_mode=modes)
        await shop.until_begun()
        for wait in (False, True):
            await runs.cancel("t", run["run_id"], wait=wait)
        state: Any = await threads.get_state("t")
        assert len(state["values"]["plan"]["results"]) == 1
        run = await runs.create("t", "agent", input=None)
        while shop.begun == ["charge"]:
            await asyncio.sleep(0.01)
    assert shop.ended == ["charge", "ship"], "a server that stops waits, too"


def returning(result: Any, name: str, ran: list[int]) -> BaseTool:
    def call(amount: int) -> Any:
        ran.append(amount)
        return result

    return StructuredTool.from_function(
        call, name=name, description=name, response_format="content_and_artifact"
    )


async def test_what_cannot_be_stored_of_a_result_makes_no_tool_run_again(
    saver: DeltaSaver,
) -> None:
    deep = "[" * 900 + "]" * 900
    for content, artifact in (
        ('{"id": 18446744073709551616}', None),
        ('{"\\ud800": 1}', None),
        ("\ud800", None),
        (deep, None),
        ("done", object()),
        ("done", {"id": 2**70}),
        ([{"type": "text", "text": "done", "by": object()}], None),
    ):
        for kept in (saver, InMemorySaver()):
            ran: list[int] = []
            tools = [returning((content, artifact), name, ran) for name in ("charge", "ship")]
            graph = build_waiting_graph(CATALOG, tools).compile(checkpointer=kept)
            thread = str(uuid4())
            for text in ("order 5", "yes", "", "thanks"):
                turn = await aconverse(graph, text, thread_id=thread)
            assert (ran, turn.waiting_for) == ([5, 5], None), (content, artifact)


async def test_what_a_tool_was_called_with_is_not_changed_behind_it(
    shop: Shop, saver: DeltaSaver
) -> None:
    graph = shop.graph.compile(checkpointer=saver)
    await aconverse(graph, "order 5", thread_id="t")
    paying = asyncio.create_task(aconverse(graph, "yes", thread_id="t"))
    await shop.until_begun()
    paying.cancel()
    turn = await aconverse(graph, "make it 7", thread_id="t")
    assert "Pay 5?" in turn.interrupts[0].value["prompt"]
    await aconverse(graph, "yes", thread_id="t")
    assert shop.ended == ["charge", "ship"]
