"""Promise: an argument of an MCP tool is a value of its parameter, and never an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from payments import Payments

from langmem_ext import DeltaSaver, InvalidInput, converse
from langmem_ext.mcp_server import create_mcp_server

SAYS_YES = ("text", "content", "value", "answer", "args", "data", "message", "responses")
WORDS = dict.fromkeys(SAYS_YES, "yes")
WORDS |= {"action": "accept", "type": "approve", "status": "resolved"}
"""Arguments that are a yes in other protocols."""


@asynccontextmanager
async def client_of(desk: Payments, name: str, **arguments: Any) -> AsyncIterator[Any]:
    """What a tool's call was answered, and a function that calls tools in its conversation."""
    with DeltaSaver.open(":memory:") as saver:
        async with Client(create_mcp_server(desk.graph(saver))) as client:
            asked: Any = await client.call_tool(name, arguments)

            async def call(name: str, **more: Any) -> Any:
                given = {"conversation": asked.structured_content["conversation"], **more}
                return await client.call_tool(name, given)

            yield asked.structured_content, call


async def test_an_argument_of_another_tool_confirms_nothing(tmp_path: Path) -> None:
    for name, word in WORDS.items():
        desk = Payments(tmp_path, note=name)
        async with client_of(desk, "pay", amount=5000) as (_, call):
            with pytest.raises(MCPError, match="takes no"):
                await call("send_note", **{name: word})
            assert desk.ran == [], name
            shown = await call("pay")
            assert shown.structured_content["waiting_for"] == "confirmation", name


async def test_an_argument_changes_its_own_value_and_the_change_is_confirmed_anew(
    tmp_path: Path,
) -> None:
    desk = Payments(tmp_path)
    async with client_of(desk, "pay", amount=50) as (_, call):
        assert (await call("pay", amount=60)).content[0].text.startswith("Pay 60?")
        assert desk.ran == []


async def test_a_value_that_reads_like_a_yes_is_the_value(tmp_path: Path) -> None:
    desk = Payments(tmp_path)
    async with client_of(desk, "send_note") as (asked, call):
        assert asked["waiting_for"] == "note"
        await call("send_note", note="yes")
        assert desk.ran == [("sent", "yes")]


def test_the_form_of_a_confirmation_takes_a_yes_and_no_value(tmp_path: Path) -> None:
    desk = Payments(tmp_path)
    graph = desk.graph(DeltaSaver())
    converse(graph, "pay 60", thread_id="t")
    filled = {"action": "accept", "content": {"confirmation": True, "amount": 6000}}
    with pytest.raises(InvalidInput):
        converse(graph, thread_id="t", resume={"responses": {"confirmation": filled}})
    assert desk.ran == []
    yes = {"action": "accept", "content": {"confirmation": True}}
    converse(graph, thread_id="t", resume={"responses": {"confirmation": yes}})
    assert desk.ran == [("paid", 60)]


async def test_a_request_takes_back_a_yes_whose_turn_was_cut_off(tmp_path: Path) -> None:
    class Cut(Payments):
        def end_refund(self) -> None:
            if len(self.ran) == 1:
                raise KeyboardInterrupt

    desk = Cut(tmp_path)
    graph = desk.graph(DeltaSaver())
    converse(graph, "refund O-123", thread_id="mcp-c")
    with pytest.raises(KeyboardInterrupt):
        converse(graph, "yes", thread_id="mcp-c")
    async with Client(create_mcp_server(graph)) as client:
        await client.call_tool("send_note", {"conversation": "c", "note": "stop"})
    assert desk.ran == [("refunded", "O-123"), ("sent", "stop")]
