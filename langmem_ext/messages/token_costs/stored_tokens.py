"""The token count stored beside every message: who made it, and which need not be stored."""

from __future__ import annotations

from typing import Final

COUNTER: Final = "langchain-core/approximate"
"""Name of the counter, stored with the database: who reads a count knows what it is worth."""

ROLE_LENGTHS: Final = {0: len("user"), 1: len("assistant"), 2: len("system")}
"""Characters that the role's name adds, by the role's code (`messages.snapshot.CLASSES`)."""


def implied_tokens(role: object, text: object) -> int | None:
    """The token count of a bare text message of this role, which its row need not store; or None.

    >>> from langchain_core.messages import HumanMessage
    >>> from langmem_ext.messages.token_costs.tokens import approximate_tokens
    >>> text = "Where is my order?"
    >>> implied_tokens(0, text) == approximate_tokens(HumanMessage(text))
    True
    """
    length = ROLE_LENGTHS.get(role) if isinstance(role, int) else None
    return (
        None if length is None or not isinstance(text, str) else -(-(len(text) + length) // 4) + 3
    )
