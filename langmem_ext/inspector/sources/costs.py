"""What a message costs: tokens, bytes, and what a model says that it used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import BaseMessage

from langmem_ext.messages.packed import pack
from langmem_ext.messages.snapshot import CODE_OF_TYPE
from langmem_ext.messages.token_costs.tokens import approximate_tokens
from langmem_ext.threads.continuation.usage import Spent, spent_by

_ROLES: Final = ("user", "agent", "system", "tool", "other", "other")
"""By the code of a message's class, of which there are as many again for chunks."""


@dataclass(slots=True)  # not frozen: there are thousands
class MessageCost:
    """What a message costs.

    Attributes:
        role: Who says it: `user`, `agent`, `tool`, or somebody else.
        tokens: About how many tokens, by the count that is stored with every message.
        size: Its bytes.
        spent: What its model used, as it says itself.
    """

    role: str
    tokens: int
    size: int
    spent: Spent | None = None


def role_of(code: int | None) -> str:
    """The role of a message of this class (`messages.snapshot.CLASSES`)."""
    return "other" if code is None else _ROLES[code % len(_ROLES)]


def role_named(kind: Any) -> str:
    """The role of a message of this `type`."""
    return role_of(CODE_OF_TYPE.get(kind) if isinstance(kind, str) else None)


def cost_of(message: BaseMessage) -> MessageCost:
    """What a message costs that is there whole."""
    return MessageCost(
        role_named(message.type), approximate_tokens(message), _bytes(message), spent_by(message)
    )


def _bytes(message: BaseMessage) -> int:
    try:
        return len(pack([message.content, getattr(message, "tool_calls", None)]))
    except (TypeError, ValueError):
        return len(str(message.content).encode("utf-8", "replace"))
