"""Token counts that need no tokenizer: an approximation stored beside every message, so that a window can be cut without reading it."""

from __future__ import annotations

from typing import Final

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately

from langmem_ext.interruption import pass_on
from langmem_ext.messages.text import text_of

COUNTER: Final = "langchain-core/approximate"
"""Name of the counter, stored with the database: who reads a count knows what it is worth."""


ROLE_LENGTHS: Final = {0: len("user"), 1: len("assistant"), 2: len("system")}
"""Characters that the role's name adds, by the role's code (`identity.CLASSES`)."""


def implied_tokens(role: object, text: object) -> int | None:
    """The count of a message of a role that is nothing but a text: what its row need not say. None for any other.

    >>> implied_tokens(0, "Where is my order?") == approximate_tokens(HumanMessage("Where is my order?"))
    True
    """
    length = ROLE_LENGTHS.get(role) if isinstance(role, int) else None
    return None if length is None or not isinstance(text, str) else -(-(len(text) + length) // 4) + 3


def approximate_tokens(message: BaseMessage) -> int:
    """About how many tokens a message costs a model, by langchain-core's own approximation."""
    try:
        return int(count_tokens_approximately([message]))
    except Exception as error:
        pass_on(error)
        # Something else was set in place of a text (`message.name = 5`): what there is of text counts.
        return int(count_tokens_approximately([HumanMessage(text_of(message.content))]))
