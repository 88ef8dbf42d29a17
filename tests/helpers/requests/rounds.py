"""Rounds of conversations, in which models call tools, theirs and their providers'."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

READ = json.dumps(yaml.safe_load(Path(__file__).with_name("rounds.yaml").read_text("utf-8")))


def data_of(number: int) -> dict[str, Any]:
    """What the file of rounds holds, with the number of a round."""
    return dict(json.loads(READ.replace("<n>", str(number))))


def message_of(writer: str, line: dict[str, Any]) -> BaseMessage:
    """A message of a round."""
    beside = line.get("beside", {})
    if "user" in line:
        return HumanMessage(line["user"])
    if "result" in line:
        name, content = line.get("name", "look"), line.get("content", "found")
        call = line["result"]
        return ToolMessage(content, tool_call_id=call, name=name, additional_kwargs=beside)
    calls = [{"name": "look", "args": {"q": "x"}, "id": name} for name in line.get("calls", ())]
    made = {"model_provider": line.get("by", writer)}
    made |= {"output_version": "v1"} if line.get("v1") else {}
    return AIMessage(line["ai"], tool_calls=calls, response_metadata=made, additional_kwargs=beside)


DATA = [data_of(number) for number in range(10)]
SAID, PIECES = DATA[0]["user"], DATA[0]["pieces"]
ROUNDS = [(who, name) for who in ("anthropic", "openai", "others") for name in DATA[0][who]]


def round_of(who: str, name: str, number: int = 1) -> list[BaseMessage]:
    """A round of a conversation; its ids hold the number."""
    return [message_of(who, line) for line in DATA[number][who][name]]
