"""Changing values in place: as careless nodes and callers do, and as sharply as it can be done."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from samples import Address, Order


def next_kind_of_one(value: Any) -> Any:
    """True, 1 and 1.0 are equal and yet not the same: go from each to the next."""
    return 1 if value is True else 1.0 if type(value) is int else True


def edit(message: BaseMessage, how: str) -> None:
    """Change a message in place."""
    match how:
        case "content" if isinstance(message.content, str):
            message.content += "!"
        case "content" if isinstance(message.content, list):
            message.content.append({"type": "text", "text": "more"})
        case "flag":
            message.additional_kwargs["flag"] = next_kind_of_one(
                message.additional_kwargs.get("flag")
            )
        case "deep":
            deep = message.additional_kwargs.setdefault("deep", {"n": [1]})["n"]
            deep[0] = next_kind_of_one(deep[0])
        case "metadata":
            message.response_metadata.setdefault("seen", []).append(len(message.response_metadata))
        case "call" if isinstance(message, AIMessage) and message.tool_calls:
            flags = message.tool_calls[0]["args"].setdefault("flags", [1])
            flags[0] = next_kind_of_one(flags[0])
        case "name":
            message.name = "renamed" if message.name is None else None
        case "attribute" if isinstance(message, AIMessage) and message.usage_metadata:
            message.usage_metadata["input_tokens"] += 1


def parts(value: Any) -> list[Any]:
    """Give what is directly inside a value."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple):
        return list(value)
    return list(value.__dict__.values()) if isinstance(value, BaseMessage | Order | Address) else []


def twist(value: Any) -> None:
    """Change a value in place, at the top and at the deepest level; of a 1 only its type."""
    match value:
        case dict():
            ones = {key: next_kind_of_one(one) for key, one in value.items() if is_one(one)}
            value.update(ones or {"twisted": True})
        case list() if any(map(is_one, value)):
            value[:] = [next_kind_of_one(one) if is_one(one) else one for one in value]
        case list():
            value.append(True)
        case Order():
            value.lines.append(len(value.lines))
        case Address():
            value.extra["twisted"] = next_kind_of_one(value.extra.get("twisted"))
        case BaseMessage():
            edit(value, "flag")
            return
    deeper = [one for one in parts(value) if isinstance(one, list | dict | Order | BaseMessage)]
    if deeper:
        twist(deeper[-1])


def is_one(value: Any) -> bool:
    """Say whether a value is one of those that are equal to 1."""
    return type(value) in (bool, int, float) and value == 1


def spoil(value: Any) -> None:
    """Change everything changeable inside a value, as a careless caller may."""
    for part in parts(value):
        spoil(part)
    match value:
        case BaseMessage():
            value.content = value.id = "spoiled"
        case dict():
            value["spoiled"] = "spoiled"
        case list():
            value.append("spoiled")
