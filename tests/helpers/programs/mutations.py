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
        case dict() if any(is_one(item) for item in value.values()):
            value.update(
                {key: next_kind_of_one(item) for key, item in value.items() if is_one(item)}
            )
        case dict():
            value["twisted"] = True
        case list() if any(is_one(item) for item in value):
            value[:] = [next_kind_of_one(item) if is_one(item) else item for item in value]
        case list():
            value.append(True)
        case Order():
            value.lines.append(len(value.lines))
        case Address():
            value.extra["twisted"] = next_kind_of_one(value.extra.get("twisted"))
        case BaseMessage():
            edit(value, "flag")
    deeper = [
        part
        for part in parts(value)
        if isinstance(part, list | dict | Order | Address | BaseMessage)
    ]
    if deeper and not isinstance(value, BaseMessage):
        twist(deeper[-1])


def is_one(value: Any) -> bool:
    """Say whether a value is one of those that are equal to 1."""
    return type(value) in (bool, int, float) and value == 1


def spoil(value: Any) -> None:
    """Change everything changeable inside a value, as a careless caller may."""
    for part in parts(value):
        spoil(part)
    if isinstance(value, BaseMessage):
        value.content = "spoiled"
        value.id = "spoiled"
    elif isinstance(value, dict):
        value["spoiled"] = "spoiled"
    elif isinstance(value, list):
        value.append("spoiled")
