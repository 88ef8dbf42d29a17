"""Token counts that need no tokenizer: an approximation stored beside every message, so that a window can be cut without reading it."""

from __future__ import annotations

from typing import Final

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately

from langmem_ext.interruption import pass_on
from langmem_ext.messages.text import text_of

COUNTER: Final = "langchain-core/approximate"
"""Name of the counter, stored with the database: who reads a count knows what it is worth."""


def approximate_tokens(message: BaseMessage) -> int:
    """About how many tokens a message costs a model, by langchain-core's own approximation."""
    try:
        return int(count_tokens_approximately([message]))
    except Exception as error:
        pass_on(error)
        # Something else was set in place of a text (`message.name = 5`): what there is of text counts.
        return int(count_tokens_approximately([HumanMessage(text_of(message.content))]))
