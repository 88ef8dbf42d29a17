"""Counts that are remembered: a message is counted once, however often it is looked at.

A count is found by the message's id and a hash of what was counted, so a message that has changed
under its id is counted again. No text is kept. A hash of 64 bits, seeded for each process,
identifies the content: two contents of one id that share it are not to be met.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

import ormsgpack
from langchain_core.messages import BaseMessage

from langmem_ext.messages.token_costs.tokens import TokenCounter, Tool

MESSAGES: Final = 1 << 17
"""Messages whose counts are remembered, at most: about 30 MB."""

TOOLS: Final = 1 << 10

_COUNTED: Final = ("content", "tool_calls", "invalid_tool_calls", "additional_kwargs", "name")
"""Fields of a message that its count is made of."""

_OPTIONS: Final = (
    ormsgpack.OPT_NON_STR_KEYS | ormsgpack.OPT_REPLACE_SURROGATES | ormsgpack.OPT_SERIALIZE_PYDANTIC
)


class Memo:
    """A counter that counts each message once. It may be used from several threads.

    Args:
        counter: Counts what was not counted yet.
        limit: Messages to remember; beyond it, those that were counted first are forgotten.
    """

    def __init__(self, counter: TokenCounter, *, limit: int = MESSAGES) -> None:
        self.counter = counter
        self._limit = limit
        self._messages: dict[str | int, tuple[int, int]] = {}
        self._tools: dict[str | int, tuple[Tool, str, int]] = {}

    @property
    def name(self) -> str:
        """What its counter counts by."""
        return self.counter.name

    def count(self, message: BaseMessage) -> int:
        """Tokens of a message, remembered for as long as it stays what it is."""
        fields = message.__dict__
        content = fields["content"]
        plain = content.__class__ is str and not (
            fields.get("tool_calls") or fields.get("additional_kwargs") or fields.get("name")
        )
        mark = hash(content) if plain and not fields.get("invalid_tool_calls") else _mark(fields)
        key: str | int = fields["id"] or mark
        entry = self._messages.get(key)
        if entry is not None and entry[0] == mark:
            return entry[1]
        tokens = self.counter.count(message)
        if len(self._messages) >= self._limit:
            for old in list(islice(self._messages, self._limit // 2)):
                self._messages.pop(old, None)
        self._messages[key] = (mark, tokens)
        return tokens

    def total(self, messages: Sequence[BaseMessage]) -> int:
        """Tokens of several messages."""
        return sum(map(self.count, messages))

    def count_text(self, text: str) -> int:
        """Tokens of a bare text; not remembered."""
        return self.counter.count_text(text)

    def count_tools(self, tools: Sequence[Tool]) -> int:
        """Tokens of the schemas of tools; each schema is made and counted once."""
        return sum(map(self._count_tool, tools))

    def _count_tool(self, tool: Tool) -> int:
        # A dict may be made again for every request, and changed; any other tool is itself.
        key: str | int = (
            json.dumps(tool, sort_keys=True, default=str) if isinstance(tool, Mapping) else id(tool)
        )
        description = str(getattr(tool, "description", ""))
        entry = self._tools.get(key)
        if (
            entry is not None
            and entry[1] == description
            and (key.__class__ is str or entry[0] is tool)
        ):
            return entry[2]
        tokens = self.counter.count_tools([tool])
        if len(self._tools) >= TOOLS:
            self._tools.clear()
        self._tools[key] = (tool, description, tokens)
        return tokens


def _mark(fields: Mapping[str, object]) -> int:
    """What represents the counted fields of a message that is more than a text."""
    counted = [fields.get(name) for name in _COUNTED]
    try:
        return hash(ormsgpack.packb(counted, str, _OPTIONS))
    except ormsgpack.MsgpackEncodeError:  # a number of more than 64 bits, say
        return hash(repr(counted))
