"""A model's tool calls in sendable form: unique ids, plain names, readable arguments.

Some models count their calls again in every answer (`call_0`), and a thread that changes its
provider has ids that the next one refuses. A new id follows from the old one and from what is
before it, so it is the same in every request.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.utils.json import parse_partial_json

from langmem_ext.context.repair.characters import in_json
from langmem_ext.context.repair.provider import CALL_SIGNATURES
from langmem_ext.messages.blocks import KINDS, blocks_of, read_block
from langmem_ext.messages.call_ids import restated

PLAIN: Final = re.compile(r"[a-zA-Z0-9_-]+")
"""What OpenAI's names of functions and Anthropic's ids of calls consist of."""

LONGEST_NAME: Final = 64

_CUSTOM: Final = KINDS["custom_tool_call_output"]

_NOT_PLAIN: Final = re.compile(r"[^a-zA-Z0-9_-]+")


@dataclass(frozen=True, slots=True)
class SentCall:
    """One call as it is sent.

    Attributes:
        was: The id that it had, and its result has; empty for none.
        call: The call.
        unread: Its arguments as they came, if they could not be read; None if they could.
    """

    was: str
    call: ToolCall
    unread: str | None = None

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.call["id"])


@dataclass(slots=True)
class CallIds:
    """The ids that have been given in a conversation so far.

    Attributes:
        longest: Characters of an id, at most.
    """

    longest: int
    _given: set[str] = field(default_factory=set)
    _count: int = 0

    def give(self, wanted: str) -> str:
        """An id for the next call: the one wanted, where it may have it."""
        self._count += 1
        name = wanted or f"call_{self._count}"
        if not is_plain(name, self.longest):
            name = f"call_{sha256(name.encode(errors='surrogatepass')).hexdigest()[:24]}"
        free, number = name, 1
        while free in self._given:
            number += 1
            free = f"{name[: self.longest - 1 - len(str(number))]}_{number}"
        self._given.add(free)
        return free


def is_plain(name: object, longest: int) -> bool:
    """Whether it is a name or an id that every provider takes."""
    if not isinstance(name, str) or len(name) > longest:
        return False
    # Most are words, and to see that takes a quarter of the time.
    return (name.isidentifier() and name.isascii()) or PLAIN.fullmatch(name) is not None


def sent_calls(message: AIMessage, ids: CallIds) -> tuple[AIMessage, list[SentCall]]:
    """A message with its calls in sendable form, the same object if unchanged; and the calls."""
    calls = [
        SentCall(sent_call.was, {**sent_call.call, "id": ids.give(sent_call.was)}, sent_call.unread)
        for sent_call in _calls_of(message)
    ]
    fine = [call["id"] for call in message.tool_calls] == [sent_call.id for sent_call in calls]
    if (
        fine
        and not message.invalid_tool_calls
        and all(is_plain(sent_call.call["name"], LONGEST_NAME) for sent_call in calls)
    ):
        content = _repeated(message.content, calls)
        return (
            message
            if content is message.content
            else message.model_copy(update={"content": content})
        ), calls
    calls = [
        SentCall(
            sent_call.was,
            {**sent_call.call, "name": plain_name(sent_call.call["name"])},
            sent_call.unread,
        )
        for sent_call in calls
    ]
    changes = {
        "tool_calls": [sent_call.call for sent_call in calls],
        "invalid_tool_calls": [],
        "content": _repeated(message.content, calls),
        "additional_kwargs": _renamed_kwargs(message.additional_kwargs, calls),
    }
    return message.model_copy(update=changes), calls


def without_own_calls(message: AIMessage, names: Collection[str]) -> AIMessage:
    """The message without its provider's own form of these calls; unchanged if it has none.

    What no result of that form answers is gone, or an ordinary call.
    """
    content = blocks_of(message.content) if names else []
    kept = [block for block in content if not _is_own(block, names)]
    same = len(kept) == len(content)
    return message if same else message.model_copy(update={"content": kept})


def _is_own(block: object, names: Collection[str]) -> bool:
    kind, fields = read_block(block) if isinstance(block, dict) else (None, {})
    return kind is not None and kind.is_only_of("R") and fields.get(kind.id) in names


def custom_calls(message: AIMessage) -> Collection[str]:
    """The ids of a message's calls of OpenAI's custom tools."""
    blocks = [block for block in blocks_of(message.content) if isinstance(block, dict)]
    return {
        str(block.get("call_id")) for block in blocks if block.get("type") == "custom_tool_call"
    }


def as_custom(result: ToolMessage) -> ToolMessage:
    """The result of a custom tool in OpenAI's form, which a rejection or an error is not in."""
    content = blocks_of(result.content)
    if any(isinstance(block, dict) and read_block(block)[0] is _CUSTOM for block in content):
        return result
    block = {"type": "custom_tool_call_output", "output": result.text}
    return result.model_copy(update={"content": [block]})


def plain_name(name: str) -> str:
    """The name of a tool in letters that every provider takes."""
    return _NOT_PLAIN.sub("_", name)[:LONGEST_NAME] or "unknown"


def _calls_of(message: AIMessage) -> Iterator[SentCall]:
    """The message's calls; one that says the same as another of its id is no call of its own."""
    seen: list[tuple[str, str, object]] = []
    for call in message.tool_calls:
        key = call.get("id") or "", call["name"], call["args"]
        if not key[0] or key not in seen:
            seen.append(key)
            yield SentCall(key[0], call)
    known = {key[0] for key in seen if key[0]}
    for bad in message.invalid_tool_calls:
        if (was := bad.get("id") or "") not in known:
            unread = bad.get("args") or ""
            yield SentCall(
                was,
                ToolCall(
                    name=bad.get("name") or "", args=_readable(unread), id=was, type="tool_call"
                ),
                unread,
            )


def _readable(text: str) -> dict[str, Any]:
    """What can be read of arguments that were cut off; none if that is nothing."""
    try:
        parsed = parse_partial_json(text)
    except ValueError:
        return {}
    return in_json(parsed) if isinstance(parsed, dict) else {}


def _repeated(content: Any, calls: list[SentCall]) -> Any:
    """The content, with repeated call blocks updated to the calls; unchanged if equal."""
    if not isinstance(content, list):
        return content
    left = list(calls)
    kept = [_repeated_block(block, left) for block in content]
    same = all(new is old for new, old in zip(kept, content, strict=True))
    return content if same else [block for block in kept if block is not None]


def _repeated_block(block: Any, left: list[SentCall]) -> Any:
    """A repeated call block as it is sent; None if it repeats no call, or one already repeated."""
    kind = read_block(block)[0] if isinstance(block, dict) else None
    if kind is None or kind.what != "call":
        return block
    key = kind.id
    repeated = next((repeated for repeated in left if repeated.was == (block.get(key) or "")), None)
    if repeated is None:
        return None
    left.remove(repeated)
    sent = (
        {**block, key: repeated.id, "name": repeated.call["name"]}
        if "name" in block
        else {**block, key: repeated.id}
    )
    if block["type"] == "tool_use" and not isinstance(block.get("input"), dict):
        sent["input"] = repeated.call["args"]
    sent = restated(sent, repeated.call)
    return block if sent == block else sent


def _renamed_kwargs(kwargs: Mapping[str, Any], calls: list[SentCall]) -> dict[str, Any]:
    """The kwargs without calls, which are in `tool_calls`; signatures are keyed by the sent ids."""
    kept = {
        key: value for key, value in kwargs.items() if key not in ("tool_calls", "function_call")
    }
    if isinstance(signatures := kept.get(CALL_SIGNATURES), dict):
        kept[CALL_SIGNATURES] = {
            call.id: signatures[call.was] for call in calls if call.was in signatures
        }
    return kept
