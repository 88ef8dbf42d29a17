"""A user's message as deciding sees it, and the values that can be read from it without having asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from langchain_core.messages import BaseMessage

from langmem_ext.waiting.catalog.param import Extraction
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.extract import find


@dataclass(frozen=True, slots=True)
class Heard:
    """What the user said.

    Attributes:
        id: Id of the message.
        text: What it says.
        history: The messages before it, oldest first.
        now: When it is worked on.
    """

    id: str
    text: str
    history: Sequence[BaseMessage]
    now: datetime


def candidates(playbook: Playbook, names: Iterable[str], heard: Heard) -> dict[str, Extraction]:
    """The words of the message that may be a value of these parameters, some of them of several."""
    params = [playbook.catalog.params[name] for name in names]
    read = {param.name: find(param, heard.text, now=heard.now, others=params) for param in params}
    return {name: extraction for name, extraction in read.items() if extraction.status == "filled"}
