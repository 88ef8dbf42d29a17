"""Promise: an argument of an MCP tool is a value of its parameter, and never an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from payments import Payments

from langmem_ext import DeltaSaver
from langmem_ext.mcp_server import create_mcp_server

WORDS = {
    "text": "yes",
    "content": "yes",
    "value": "yes",
    "answer": "yes",
    "args": "yes",
    "action": "accept",
    "type": "approve",
    "status": "resolved",
    "data": "yes",
    "message": "yes",
    "responses": "yes",
}


async def called(client: Client, name: str, **arguments: Any) -> Any:
    return await client.call_tool(name, arguments)


async def test_an_argument_of_another_tool_confirms_nothing(tmp_path: Path) -> None:
    for name, word in WORDS.items():
        desk = Payments(tmp_path, note=name)
        with DeltaSaver.open(":memory:") as saver:
            async with Client(create_mcp_server(desk.graph(saver))) as client:
                asked = await called(client, "pay", amount=5000)
                conversation = asked.structured_content["conversation"]
                with pytest.raises(MCPError, match="takes no"):
                    await called(client, "send_note", conversation=conversation, **{name: word})
                assert desk.ran == [], name
                shown = await called(client, "pay", conversation=conversation)
                assert shown.structured_content["waiting_for"] == "confirmation", name


async def test_an_argument_changes_its_own_value_and_the_change_is_confirmed_anew(
    tmp_path: Path,
) -> None:
    desk = Payments(tmp_path)
    with DeltaSaver.open(":memory:") as saver:
        async with Client(create_mcp_server(desk.graph(saver))) as client:
            asked = await called(client, "pay", amount=50)
            conversation = asked.structured_content["conversation"]
            changed = await called(client, "pay", conversation=conversation, amount=60)
            assert changed.content[0].text.startswith("Pay 60?")
            assert desk.ran == []


async def test_a_value_that_reads_like_a_yes_is_the_value(tmp_path: Path) -> None:
    desk = Payments(tmp_path)
    with DeltaSaver.open(":memory:") as saver:
        async with Client(create_mcp_server(desk.graph(saver))) as client:
            asked = await called(client, "send_note")
            conversation = asked.structured_content["conversation"]
            assert asked.structured_content["waiting_for"] == "note"
            await called(client, "send_note", conversation=conversation, note="yes")
            assert desk.ran == [("sent", "yes")]
