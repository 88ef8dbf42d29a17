"""The tool by which a model reads what a preview of a tool's output left out, page by page.

Nothing was copied for it: it reads the message in the state of the graph that calls it. So another thread's outputs cannot be reached, and
what is deleted with a thread is gone. It works wherever LangGraph calls tools: a `ToolNode`, `create_agent`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime

from langmem_ext.context.output_text import output_text
from langmem_ext.context.tool_output import PAGE, READ_TOOL
from langmem_ext.errors import InvalidInput

PAGE_CHARS: Final = 8_000
"""Characters of a page."""

PAGES_PER_TURN: Final = 10
"""Pages that may be read until the user speaks again."""

_SHORTEST_PAGE: Final = 200
_NAMED: Final = 5
"""References that an error names."""

DESCRIPTION: Final = (
    "Reads the whole output of an earlier tool call of this conversation, where only a part of it is shown. "
    "`ref` is the reference given with that part. `page` counts from 1; each page says how many there are. "
    "Read only the pages you need."
)


def output_reader(*, page_chars: int = PAGE_CHARS, pages_per_turn: int | None = PAGES_PER_TURN, messages_key: str = "messages") -> BaseTool:
    """The tool `read_tool_output(ref, page)`, sync and async. What it refuses it answers with an error that says what to do instead.

    Text comes in pages that end with a line where one ends near; an image, a recording or a file in the output is a page of its own, after
    them.

    Args:
        page_chars: How many characters of an output a page has, at most.
        pages_per_turn: How many pages may be read until the user speaks again. 0 or None: as many as there are.
        messages_key: What the messages are called in the graph's state.

    Raises:
        InvalidInput: A page would be too small to be read, or a number is none.

    Example:
        `create_agent(model, [search, output_reader()], middleware=[…])`
    """
    if type(page_chars) is not int or page_chars < _SHORTEST_PAGE:
        raise InvalidInput(f"page_chars is how many characters a page has, at least {_SHORTEST_PAGE}; not {page_chars!r}")
    if pages_per_turn is not None and (type(pages_per_turn) is not int or pages_per_turn < 0):
        raise InvalidInput(f"pages_per_turn is how many pages may be read in a turn, from 0 on; not {pages_per_turn!r}")

    def read(ref: str, runtime: ToolRuntime[Any, Any], page: int = 1) -> str | ToolMessage:
        messages = _messages(runtime.state, messages_key)
        if pages_per_turn and _number_of_call(messages, runtime.tool_call_id) > pages_per_turn:
            raise ToolException(
                f"{pages_per_turn} pages were read since the user spoke; no more may be: go on with what they say, or say what is missing."
            )
        return _page(_found(messages, ref), ref, page, page_chars, runtime.tool_call_id)

    async def aread(ref: str, runtime: ToolRuntime[Any, Any], page: int = 1) -> str | ToolMessage:
        return read(ref, runtime, page)

    return StructuredTool.from_function(read, aread, name=READ_TOOL, description=DESCRIPTION, handle_tool_error=True)


def page_starts(text: str, page_chars: int) -> Iterator[int]:
    """Where the pages of a text begin: each behind a line's end in the last quarter of the one before, if there is one."""
    start = 0
    while start < len(text) or not start:
        yield start
        if start + page_chars >= len(text):
            return
        start = text.rfind("\n", start + page_chars * 3 // 4, start + page_chars) + 1 or start + page_chars


def _messages(state: Any, key: str) -> Sequence[object]:
    """The messages of a state: a list of them, a mapping or an object that has them."""
    if isinstance(state, Sequence):
        return state
    found = state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)
    if isinstance(found, Sequence):
        return found
    raise ToolException(f"The state of this graph has no list of messages called {key!r}, so no output can be read.")


def _found(messages: Sequence[object], ref: str) -> ToolMessage:
    """The output that is referred to: by the message's id, by its position where it has none, or by its call."""
    outputs = [message for message in messages if isinstance(message, ToolMessage)]
    place = int(ref[1:]) if ref[:1] == "@" and ref[1:].isdecimal() and len(ref) < 12 else len(messages)
    at_place = messages[place] if place < len(messages) else None
    for chosen in (
        next((one for one in reversed(outputs) if one.id == ref), None),
        at_place if isinstance(at_place, ToolMessage) and at_place.id is None else None,
        next((one for one in reversed(outputs) if one.tool_call_id == ref), None),
    ):
        if chosen is not None:
            return chosen
    known = [one.id or one.tool_call_id for one in reversed(outputs) if one.name != READ_TOOL and len(str(one.content)) > _SHORTEST_PAGE]
    told = f" The newest that it has: {', '.join(map(_quoted, known[:_NAMED]))}." if known else ""
    raise ToolException(
        f"This conversation has no tool output {_quoted(ref)}: pass the reference as it is given where a part is shown.{told}"
    )


def _page(output: ToolMessage, ref: str, page: int, page_chars: int, call: str | None) -> str | ToolMessage:
    whole = output_text(output.content)
    starts = list(page_starts(whole.text, page_chars))
    pages = len(starts) + len(whole.media)
    if not 1 <= page <= pages:
        raise ToolException(
            f"The output {_quoted(ref)} has {pages} page{'s' if pages > 1 else ''}: pass a page from 1 to {pages}, not {page}."
        )
    heading = f"{PAGE}{page:,} of {pages:,} of {_quoted(ref)}"
    more = f"\n[Next: {READ_TOOL}(ref={_quoted(ref)}, page={page + 1})]" if page < pages else ""
    if page > len(starts):
        block = whole.media[page - len(starts) - 1]
        told: list[str | dict[Any, Any]] = [{"type": "text", "text": f"{heading}]{more}"}, dict(block)]
        return ToolMessage(told, tool_call_id=call or "", name=READ_TOOL)
    start, end = starts[page - 1], [*starts, len(whole.text)][page]
    return f"{heading}, characters {start + 1:,} to {end:,} of {len(whole.text):,}]\n{whole.text[start:end]}{more}"


def _number_of_call(messages: Sequence[object], call: str | None) -> int:
    """The how-manieth call of this tool it is since the user spoke, those beside it in the same message included."""
    calls: list[str | None] = []
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            break
        if isinstance(message, AIMessage):
            calls += [one.get("id") for one in reversed(message.tool_calls) if one.get("name") == READ_TOOL]
    return len(calls) - calls.index(call) if call in calls else len(calls)


def _quoted(ref: str) -> str:
    return json.dumps(ref, ensure_ascii=False)
