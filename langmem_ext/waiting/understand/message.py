"""A user's message, and the values that can be read from it without a question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from langchain_core.messages import BaseMessage

from langmem_ext.waiting.catalog.param import Extraction, Param
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.extract import LONGEST, find


@dataclass(frozen=True, slots=True)
class Heard:
    """What the user said.

    Attributes:
        id: Id of the message.
        text: What it says.
        history: The messages before it, oldest first.
        now: When it is worked on.
        answer: What a client's answer means that is no words (`Answer.note`).
        summary: What was said before the history, in short; empty where no model may see it.
    """

    id: str
    text: str
    history: Sequence[BaseMessage]
    now: datetime
    answer: Mapping[str, Any] | None = None
    summary: str = ""


def candidates(playbook: Playbook, names: Iterable[str], heard: Heard) -> dict[str, Extraction]:
    """The words of the message that may be a value of these parameters, some of them of several."""
    params = [playbook.catalog.params[name] for name in names]
    read = {param.name: _first_value(param, heard, params) for param in params}
    return {name: extraction for name, extraction in read.items() if extraction is not None}


_SEARCHED: Final = 4_000
"""Characters of a message in which sensitive values are looked for: further than others, for they
are to be hidden."""

_COMMON: Final = 100
"""Characters that two parts of a long message have in common, so that each value is whole in one of
them."""


def _first_value(param: Param, heard: Heard, others: Sequence[Param]) -> Extraction | None:
    """The first value that a part of the message holds."""
    for start in range(0, max(1, min(len(heard.text), _SEARCHED) - _COMMON), LONGEST - _COMMON):
        extraction = find(param, heard.text[start : start + LONGEST], now=heard.now, others=others)
        if extraction.status == "filled" and extraction.span:
            return replace(
                extraction, span=(start + extraction.span[0], start + extraction.span[1])
            )
    return None
