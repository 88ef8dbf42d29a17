"""The tool by which a model reads the rest of a previewed tool output, by page or by search.

Nothing was copied for it: it reads the message in the state of the graph that calls it. So another
thread's outputs cannot be reached, and what is deleted with a thread is gone. It works wherever
LangGraph calls tools: a `ToolNode`, `create_agent`.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime

from langmem_ext.context.tool_output.output_text import OutputText, output_text
from langmem_ext.context.tool_output.tool_output import PAGE, READ_TOOL
from langmem_ext.errors import InvalidInput

PAGE_CHARS: Final = 8_000
"""Characters of a page."""

PAGES_PER_TURN: Final = 10
"""Pages that may be read until the user speaks again."""

_SHORTEST_PAGE: Final = 200
_NAMED: Final = 5
"""References that an error names."""

_AROUND: Final = 120
"""Characters of a line that are shown before and behind a text that was looked for."""

DESCRIPTION: Final = (
    "Reads the whole output of an earlier tool call of this conversation, where only a part of it"
    " is shown. `ref` is the reference given with that part. `page` counts from 1; each page says"
    " how many there are. `find` gives, instead of all of it, the places that have that text"
    " (letters' case makes no difference) and the pages they stand on. Read only the pages you"
    " need."
)


def output_reader(
    *,
    page_chars: int = PAGE_CHARS,
    pages_per_turn: int | None = PAGES_PER_TURN,
    messages_key: str = "messages",
) -> BaseTool:
    """The tool `read_tool_output(ref, page, find)`, sync and async.

    It answers invalid calls with an error that says what to do instead.

    Text comes in pages that end with a line where one ends near; an image, a recording or a file in
    the output is a page of its own, after them.

    Args:
        page_chars: How many characters of an output a page has, at most.
        pages_per_turn: How many pages may be read until the user speaks again. 0 or None: as many
            as there are.
        messages_key: What the messages are called in the graph's state.

    Raises:
        InvalidInput: A page would be too small to be read, or a number is invalid.

    Example:
        `create_agent(model, [search, output_reader()], middleware=[…])`
    """
    if type(page_chars) is not int or page_chars < _SHORTEST_PAGE:
        raise InvalidInput(
            f"page_chars must be a number of characters, at least {_SHORTEST_PAGE}, not"
            f" {page_chars!r}"
        )
    if pages_per_turn is not None and (type(pages_per_turn) is not int or pages_per_turn < 0):
        raise InvalidInput(
            f"pages_per_turn must be a number of pages per turn, 0 or more, not {pages_per_turn!r}"
        )

    def read(
        ref: str, runtime: ToolRuntime[Any, Any], page: int = 1, find: str = ""
    ) -> str | ToolMessage:
        messages = _messages(runtime.state, messages_key)
        if pages_per_turn and _number_of_call(messages, runtime.tool_call_id) > pages_per_turn:
            raise ToolException(
                f"{pages_per_turn} pages were read since the user spoke; no more may be: go on with"
                " what they say, or say what is missing."
            )
        return _page(
            _asked(_output_named(messages, ref), ref, find, page_chars),
            page,
            page_chars,
            runtime.tool_call_id,
        )

    async def aread(
        ref: str, runtime: ToolRuntime[Any, Any], page: int = 1, find: str = ""
    ) -> str | ToolMessage:
        return read(ref, runtime, page, find)

    return StructuredTool.from_function(
        read, aread, name=READ_TOOL, description=DESCRIPTION, handle_tool_error=True
    )


def page_starts(text: str, page_chars: int) -> Iterator[int]:
    """Where a text's pages begin: at a line's end in the last quarter of a page if possible."""
    start = 0
    while start < len(text) or not start:
        yield start
        if start + page_chars >= len(text):
            return
        start = (
            text.rfind("\n", start + page_chars * 3 // 4, start + page_chars) + 1
            or start + page_chars
        )


def _messages(state: Any, key: str) -> Sequence[object]:
    """The messages of a state: a list of them, a mapping or an object that has them."""
    if isinstance(state, Sequence):
        return state
    messages = state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)
    if isinstance(messages, Sequence):
        return messages
    raise ToolException(
        f"The state of this graph has no list of messages named {key!r}, so no output can be read."
    )


def _output_named(messages: Sequence[object], ref: str) -> ToolMessage:
    """The output that `ref` names: by message id, by position without one, or by its call."""
    outputs = [message for message in messages if isinstance(message, ToolMessage)]
    place = (
        int(ref[1:]) if ref[:1] == "@" and ref[1:].isdecimal() and len(ref) < 12 else len(messages)
    )
    at_place = messages[place] if place < len(messages) else None
    for chosen in (
        next((output for output in reversed(outputs) if output.id == ref), None),
        at_place if isinstance(at_place, ToolMessage) and at_place.id is None else None,
        next((output for output in reversed(outputs) if output.tool_call_id == ref), None),
    ):
        if chosen is not None:
            return chosen
    known = [
        output.id or output.tool_call_id
        for output in reversed(outputs)
        if output.name != READ_TOOL and len(str(output.content)) > _SHORTEST_PAGE
    ]
    newest = f" The newest that it has: {', '.join(map(_quoted, known[:_NAMED]))}." if known else ""
    raise ToolException(
        f"This conversation has no tool output {_quoted(ref)}: pass the reference as it is given"
        f" where a part is shown.{newest}"
    )


class _Asked(NamedTuple):
    """What is read: an output, or the places in it that have a text.

    Attributes:
        whole: It.
        name: What a page says it is of.
        arguments: What the tool was asked, but for the page.
    """

    whole: OutputText
    name: str
    arguments: str


def _asked(output: ToolMessage, ref: str, find: str, page_chars: int) -> _Asked:
    whole, quoted = output_text(output.content), _quoted(ref)
    if not find:
        return _Asked(whole, quoted, f"ref={quoted}")
    places = "\n".join(_places(whole.text, find, page_chars))
    if not places:
        raise ToolException(
            f"The output {quoted} has no {_quoted(find)}: look for a shorter text, or read its"
            " pages."
        )
    return _Asked(
        OutputText(places, len(places)),
        f"the places with {_quoted(find)} in {quoted}",
        f"ref={quoted}, find={_quoted(find)}",
    )


def _places(text: str, find: str, page_chars: int) -> Iterator[str]:
    """The lines that have a text, each with its page; of a long line what is around it."""
    starts = list(page_starts(text, page_chars))
    end = -1
    for match in re.finditer(re.escape(find), text, re.IGNORECASE):
        if match.start() < end:
            continue
        line_end = text.find("\n", match.end())
        start = max(end, text.rfind("\n", 0, match.start()) + 1, match.start() - _AROUND)
        end = min(len(text) if line_end < 0 else line_end, match.end() + _AROUND)
        yield f"page {bisect_right(starts, match.start())}: {text[start:end]}"


def _page(asked: _Asked, page: int, page_chars: int, call: str | None) -> str | ToolMessage:
    text, media = asked.whole.text, asked.whole.media
    starts = list(page_starts(text, page_chars))
    pages = len(starts) + len(media)
    if not 1 <= page <= pages:
        count = f"{pages} page{'s' if pages > 1 else ''}"
        raise ToolException(
            f"There {'are' if pages > 1 else 'is'} {count} of {asked.name}: pass a page from 1 to"
            f" {pages}, not {page}."
        )
    heading = f"{PAGE}{page:,} of {pages:,} of {asked.name}"
    more = f"\n[Next: {READ_TOOL}({asked.arguments}, page={page + 1})]" if page < pages else ""
    if page > len(starts):
        blocks: list[str | dict[Any, Any]] = [
            {"type": "text", "text": f"{heading}]{more}"},
            dict(media[page - len(starts) - 1]),
        ]
        return ToolMessage(blocks, tool_call_id=call or "", name=READ_TOOL)
    start, end = starts[page - 1], [*starts, len(text)][page]
    return (
        f"{heading}, characters {start + 1:,} to {end:,} of {len(text):,}]\n{text[start:end]}{more}"
    )


def _number_of_call(messages: Sequence[object], call: str | None) -> int:
    """The number of this call among the tool's calls since the user spoke, in message order."""
    calls: list[str | None] = []
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            break
        if isinstance(message, AIMessage):
            calls += [
                call_made.get("id")
                for call_made in reversed(message.tool_calls)
                if call_made.get("name") == READ_TOOL
            ]
    return len(calls) - calls.index(call) if call in calls else len(calls)


def _quoted(ref: str) -> str:
    return json.dumps(ref, ensure_ascii=False)
