"""Tool calls and their results: which belong together, and where a conversation may be cut.

A result answers the newest call before it that has its id: some models count their calls again in
every answer. This is the one place that decides where a cut may be.

>>> from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
>>> call = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "a"}])
>>> result = ToolMessage("found", tool_call_id="a")
>>> safe_boundaries([HumanMessage("hi"), call, result, AIMessage("There.")])
[0, 1, 3, 4]
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

from langmem_ext.messages.blocks import ANSWERS, blocks_of, caller_of, named
from langmem_ext.messages.call_ids import call_ids_in


def safe_boundaries(messages: Sequence[BaseMessage]) -> list[int]:
    """All positions where the messages may be cut without parting a call from its result.

    The calls of one message stay together with all of their results, and so do blocks of a content
    that answer each other. A call without a result holds nothing together; a result that answers no
    call neither.
    """
    return call_boundaries(messages, sorted([*_rounds(messages), *_content_pairs(messages)]))


def call_boundaries(
    messages: Sequence[BaseMessage], pairs: Sequence[tuple[int, int]] | None = None
) -> list[int]:
    """`safe_boundaries` of what the application's own tools are asked, or of other pairs."""
    bounds: list[int] = []
    free = 0
    for start, end in _rounds(messages) if pairs is None else pairs:
        bounds += range(free, start + 1)
        free = max(free, end + 1)
    return [*bounds, *range(free, len(messages) + 1)]


def latest_round(messages: Sequence[BaseMessage], start: int = 0) -> int:
    """The position of the latest message from `start` on that calls tools, answered or not.

    The number of messages if there is none.
    """
    for at in range(len(messages) - 1, start - 1, -1):
        message = messages[at]
        if message.__class__ is HumanMessage or message.__class__ is ToolMessage:
            continue
        fields = message.__dict__
        # Most answers are a text alone: there is nothing to look through.
        if (
            fields.get("tool_calls")
            or fields.get("invalid_tool_calls")
            or fields["content"].__class__ is list
        ) and call_ids(message):
            return _program_of(messages, at)
    return len(messages)


def _program_of(messages: Sequence[BaseMessage], at: int) -> int:
    """Where the program is whose calls a message holds; the message's own place if it has none."""
    callers = {*map(caller_of, blocks_of(messages[at].content))} - {""}
    return next(
        (
            place
            for place in range(at - 1 if callers else -1, -1, -1)
            if callers & {name for _, name in map(named, blocks_of(messages[place].content))}
        ),
        at,
    )


def _content_pairs(messages: Sequence[BaseMessage]) -> Iterator[tuple[int, int]]:
    """Where a block of a content is that wants an answer, and the message with that or a call."""
    asked: dict[str, int] = {}
    for at, message in enumerate(messages):
        for block in blocks_of(message.__dict__["content"]):
            what, name = named(block)
            if what in ANSWERS.values():
                asked[name] = at
            for other in (name if what in ANSWERS else "", caller_of(block)):
                if asked.get(other, at) < at:
                    yield asked[other], at


def call_ids(message: BaseMessage) -> list[str]:
    """The ids of a message's tool calls, also of invalid ones and those in its content alone.

    A call without an id has the empty one. What a provider's own tools were asked
    (`server_tool_use`) is answered in the same content and is no call here.
    """
    return call_ids_in(vars(message)) if isinstance(message, AIMessage) else []


def _rounds(messages: Sequence[BaseMessage]) -> list[tuple[int, int]]:
    """Where each message with answered calls is, and its last result; in order.

    Nearly every result is directly behind its call, so only the messages before results are looked
    into; the first that does not has all of them searched.
    """
    ends: dict[int, int] = {}
    places: dict[str, list[int]] | None = None
    asked, calls = -1, list[ToolCall]()
    for at, result in _results(messages):
        if ends.get(asked, -1) != at - 1:
            before = messages[at - 1]
            asked, calls = at - 1, before.tool_calls if isinstance(before, AIMessage) else []
        answered = result.tool_call_id
        for call in calls:
            if call.get("id") == answered:
                ends[asked] = at
                break
        else:
            places = _places(messages) if places is None else places
            asking = places.get(answered, [])
            if older := bisect_left(asking, at):
                asked, calls = asking[older - 1], []
                ends[asked] = at
    return sorted(ends.items())


def _results(messages: Sequence[BaseMessage]) -> list[tuple[int, ToolMessage]]:
    """The results, each with where it is."""
    results = []
    for at, message in enumerate(messages):
        # For a message of another class `isinstance` asks the class's metaclass: most of what a
        # long conversation would cost.
        kind = type(message)
        if kind is not AIMessage and kind is not HumanMessage and isinstance(message, ToolMessage):
            results.append((at, message))
    return results


def _places(messages: Sequence[BaseMessage]) -> dict[str, list[int]]:
    """Where the calls of an id are."""
    places: dict[str, list[int]] = {}
    for at, message in enumerate(messages):
        for name in call_ids(message):
            places.setdefault(name, []).append(at)
    return places
