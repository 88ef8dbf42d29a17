"""Values and messages as applications store them in channels."""

from __future__ import annotations

import enum
from collections import deque
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple
from uuid import UUID

from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from pydantic import BaseModel

# -- values: whatever an application may keep in a channel -----------------------------------------


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


class Point(NamedTuple):
    x: int
    y: float


@dataclass
class Order:
    number: str
    lines: list[Any] = field(default_factory=list)


class Address(BaseModel):
    street: str = ""
    extra: dict[str, Any] = {}


class ShoutedMessage(HumanMessage):
    """A message class that is the application's own."""

    volume: int = 11


TEXTS = (
    "",
    "a",
    "Where is my order?",
    "ünïcödé 🙂 שלום",
    "nul \x00 in it",
    "line\nline",
    "long " * 60,
    "00000000",
    "null",
)
SPECIALS = (
    b"",
    b"\x00bytes\xff",
    frozenset({1, 2}),
    datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=UTC),
    datetime(2024, 5, 6),
    date(2024, 2, 29),
    timedelta(days=-1, seconds=5),
    Decimal("1.10"),
    UUID(int=7),
    Path("a/b"),
    Mood.BAD,
    Point(1, 1.0),
    Order("O-1", [1, True, 1.0]),
    Address(street="Main", extra={"a": [1]}),
)
scalars = st.one_of(
    st.sampled_from([None, True, False, 0, 1, 1.0, 0.0, -1, 2**40, 0.1, float("inf")]),
    st.sampled_from(TEXTS),
    st.sampled_from(SPECIALS),
    st.sampled_from([{1, 2}, deque([1, "a"])]),
)
json_values = st.recursive(
    st.one_of(st.sampled_from([None, True, False, 0, 1, 1.0]), st.sampled_from(TEXTS)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    ),
    max_leaves=5,
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(st.sampled_from("abc"), st.integers(0, 2)), inner, max_size=3),
    ),
    max_leaves=5,
)
# Values that are equal and yet not the same: what compares by `==` alone misses a change from one
# to the other.
ones = st.sampled_from([True, 1, 1.0])
keys = st.sampled_from([f"key{n}" for n in range(14)])
tables = st.one_of(
    st.dictionaries(keys, st.one_of(ones, json_values), max_size=3),
    st.builds(
        lambda values, n: {f"key{i}": values[i % len(values)] for i in range(n)},
        st.lists(ones, min_size=2),
        st.integers(8, 14),
    ),
    st.builds(
        lambda value, n: {f"key{i}": [value, i] for i in range(n)}, json_values, st.integers(8, 14)
    ),
)
lists = st.lists(st.one_of(ones, json_values), max_size=3)


# -- messages --------------------------------------------------------------------------------------

BLOCKS: tuple[list[Any], ...] = (
    [],
    ["plain", "plain"],
    [
        {"type": "text", "text": "one"},
        {"type": "text", "text": "two", "cache_control": {"type": "ephemeral"}},
    ],
    [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        "tail",
    ],
    [{"type": "text"}, {"type": "text", "text": ""}],
)
USAGE = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
CALLS = [
    {
        "name": "find",
        "args": {"q": "x", "flags": [True, 1, 1.0]},
        "id": "call-1",
        "type": "tool_call",
    }
]
FLAGS = {"flag": True, "deep": {"n": [1, {"m": 1.0}]}}
EXTRAS: dict[str, tuple[dict[str, Any], ...]] = {
    "human": (
        {},
        {"name": "ann"},
        {"additional_kwargs": FLAGS},
        {"additional_kwargs": FLAGS, "example": True},
    ),
    "ai": (
        {},
        {"tool_calls": CALLS, "additional_kwargs": FLAGS},
        {
            "usage_metadata": USAGE,
            "response_metadata": {"model": "m", "logprobs": [0.5, {"top": [1]}]},
        },
        {
            "invalid_tool_calls": [
                {"name": "f", "args": "{", "id": "c", "error": "bad", "type": "invalid_tool_call"}
            ]
        },
    ),
    "tool": ({}, {"artifact": {"rows": [1, 2]}, "status": "error"}, {"name": "find"}),
    "system": ({},),
    "chat": ({},),
    "shouted": ({}, {"volume": 3}),
}
ROLES = {"human": "user", "ai": "assistant", "system": "system"}


@dataclass(frozen=True)
class Said:
    """One message as a program gives it: rebuilt as message, tuple or dict wherever it is used."""

    kind: str = "human"
    content: Any = "hello"
    id: str | None = None
    extra: int = 0
    given_as: Literal["message", "tuple", "dict"] = "message"

    def build(self) -> Any:
        """Give the message in the form in which it is handed to the graph."""
        if self.given_as == "tuple" and self.kind in ROLES:
            return (ROLES[self.kind], deepcopy(self.content))
        if self.given_as == "dict" and self.kind in ROLES:
            return {
                "role": ROLES[self.kind],
                "content": deepcopy(self.content),
                **({"id": self.id} if self.id else {}),
            }
        return self.message()

    def message(self) -> BaseMessage:
        """Give it as a message."""
        kinds = EXTRAS[self.kind]
        fields: dict[str, Any] = {
            "content": deepcopy(self.content),
            "id": self.id,
            **deepcopy(kinds[self.extra % len(kinds)]),
        }
        match self.kind:
            case "ai":
                return AIMessage(**fields)
            case "tool":
                return ToolMessage(tool_call_id="call-1", **fields)
            case "system":
                return SystemMessage(**fields)
            case "chat":
                return ChatMessage(role="narrator", **fields)
            case "shouted":
                return ShoutedMessage(**fields)
        return HumanMessage(**fields)


said = st.builds(
    Said,
    kind=st.sampled_from(["human", "human", "ai", "ai", "tool", "system", "chat", "shouted"]),
    content=st.one_of(st.sampled_from(TEXTS), st.sampled_from(TEXTS), st.sampled_from(BLOCKS)),
    id=st.one_of(st.none(), st.none(), st.sampled_from(["m1", "m2", "m3"])),
    extra=st.integers(0, 3),
    given_as=st.sampled_from(["message", "message", "tuple", "dict"]),
)
