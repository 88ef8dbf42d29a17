"""The count of tokens that is stored beside every message: who made it, and which counts need not be stored."""

from __future__ import annotations

from typing import Final

COUNTER: Final = "langchain-core/approximate"
"""Name of the counter, stored with the database: who reads a count knows what it is worth."""

ROLE_LENGTHS: Final = {0: len("user"), 1: len("assistant"), 2: len("system")}
"""Characters that the role's name adds, by the role's code (`messages.identity.CLASSES`)."""


def implied_tokens(role: object, text: object) -> int | None:
    """The count of a message of a role that is nothing but a text: what its row need not say. None for any other.

    >>> from langchain_core.messages import HumanMessage
    >>> from langmem_ext.messages.tokens import approximate_tokens
    >>> implied_tokens(0, "Where is my order?") == approximate_tokens(HumanMessage("Where is my order?"))
    True
    """
    length = ROLE_LENGTHS.get(role) if isinstance(role, int) else None
    return None if length is None or not isinstance(text, str) else -(-(len(text) + length) // 4) + 3
