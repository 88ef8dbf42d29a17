"""Finds tool calls repeated in one turn with the same result; answers with a nudge, then a stop.

Pure.

What counts is the call together with its result: a tool, its arguments and what it gave, wherever
in the turn they are. Asking again for something that changes is not a loop.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langmem_ext.context.tool_output.output_text import as_json
from langmem_ext.errors import InvalidInput
from langmem_ext.messages.turns import is_users

NUDGE_AT: Final = 3
STOP_AT: Final = 6
"""How often a call is made with the same result before the model is warned, and before its turn
ends."""

ADVICE: Final = (
    "Unless something has changed since, do not make that call again: "
    "use other arguments or another tool, or tell the user what is missing."
)
"""The warning to a model that repeats itself."""

Call: TypeAlias = tuple[str, str]
"""A tool's name and its arguments, written in one way."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A call that was made again with the same arguments, and gave the same result.

    Attributes:
        tool: The tool's name.
        arguments: Its arguments as JSON, their names in order.
        places: Where its results are, oldest first.
    """

    tool: str
    arguments: str
    places: tuple[int, ...]

    @property
    def times(self) -> int:
        """How often it was made."""
        return len(self.places)


@dataclass(frozen=True, slots=True)
class Nudge:
    """The model must be warned that it repeats itself.

    Attributes:
        loop: What it repeats.
        after: Where the last result is of the round of calls that repeated it: the place to tell
            it.
        text: What to tell it.
    """

    loop: Loop
    after: int
    text: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The turn is to end, because the model repeats itself in spite of a warning.

    Attributes:
        loop: What it repeats.
        after: Where the last result is of the round of calls that repeated it.
        text: What to tell the user.
    """

    loop: Loop
    after: int
    text: str


def find_loops(messages: Sequence[BaseMessage], at_least: int = 2) -> tuple[Loop, ...]:
    """What was repeated since the user last spoke, in the order in which it was last repeated.

    Args:
        messages: A conversation, oldest first.
        at_least: How many times a call must be made to be reported.
    """
    results: dict[int, str] = {}
    start = len(messages)
    for message in reversed(messages):
        start -= 1
        if isinstance(message, ToolMessage):
            results[start] = (
                message.content if isinstance(message.content, str) else as_json(message.content)
            )
        elif is_users(message):
            break
    # Most turns end here: no arguments are looked at before a result has come that often.
    times = Counter(results.values())
    often = {at: result for at, result in results.items() if times[result] >= at_least}
    repeated: dict[tuple[Call, str], list[int]] = {}
    for at, call in _calls(messages, start, often).items():
        repeated.setdefault((call, often[at]), []).append(at)
    loops = [
        Loop(*call, tuple(places))
        for (call, _), places in repeated.items()
        if len(places) >= at_least
    ]
    return tuple(sorted(loops, key=lambda loop: loop.places[-1]))


def plan_nudge(
    messages: Sequence[BaseMessage], nudge_at: int | None = NUDGE_AT, stop_at: int | None = STOP_AT
) -> Nudge | Stop | None:
    """What to do about a turn that repeats itself: nothing, tell the model, or end it.

    Of several loops the one counts that was repeated last. The same messages give the same plan: a
    nudge that was given at `after` need not be given again.

    Args:
        messages: A conversation, oldest first.
        nudge_at: How often a call is made with the same result before the model is warned, and
            again each time. 0 or None: never.
        stop_at: How often before the turn ends. 0 or None: it does not.

    Raises:
        InvalidInput: A number is not a count of repetitions, or the stop comes before the nudge.
    """
    nudge, stop = _threshold(nudge_at, "nudge_at"), _threshold(stop_at, "stop_at")
    if nudge and stop and stop < nudge:
        raise InvalidInput(
            f"`stop_at` ({stop}) must not be below `nudge_at` ({nudge}): pass a larger stop_at"
        )
    limits = [limit for limit in (nudge, stop) if limit]
    loops = find_loops(messages, min(limits)) if limits else ()
    for loop in reversed(loops):
        if stop and loop.times >= stop:
            return Stop(loop, _end_of_round(messages, loop), f"Stopped: {_description(loop)}.")
    if not loops or not nudge:
        return None
    return Nudge(
        loops[-1], _end_of_round(messages, loops[-1]), f"{_description(loops[-1])}. {ADVICE}"
    )


def _calls(
    messages: Sequence[BaseMessage], start: int, results: Mapping[int, object]
) -> dict[int, Call]:
    """The call that each result answers: the newest before it with its id.

    Results without a call are left out.
    """
    answered: dict[int, Call] = {}
    asked: dict[str, tuple[str, object]] = {}
    for at in range(start, len(messages) if results else start):
        message = messages[at]
        if isinstance(message, AIMessage):
            for call in (*message.tool_calls, *message.invalid_tool_calls):
                asked[call.get("id") or ""] = (call.get("name") or "", call.get("args"))
        elif isinstance(message, ToolMessage) and at in results and message.tool_call_id in asked:
            name, arguments = asked[message.tool_call_id]
            answered[at] = (name, _canonical(arguments))
    return answered


def _canonical(arguments: object) -> str:
    try:
        return json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return as_json(arguments)


def _end_of_round(messages: Sequence[BaseMessage], loop: Loop) -> int:
    at = loop.places[-1]
    while at + 1 < len(messages) and isinstance(messages[at + 1], ToolMessage):
        at += 1
    return at


def _description(loop: Loop) -> str:
    """Without the arguments: they may hold what is to be stored in one place alone."""
    return (
        f"`{loop.tool}` was called {loop.times} times with the same arguments and gave the same"
        " result each time"
    )


def _threshold(value: int | None, name: str) -> int:
    if value is None or (type(value) is int and (value == 0 or value >= 2)):
        return value or 0
    raise InvalidInput(
        f"{name} must be a number of repetitions, at least 2, or 0 for never, not {value!r}"
    )
