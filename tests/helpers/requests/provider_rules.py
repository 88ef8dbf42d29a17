"""Whether OpenAI's Chat Completions or Anthropic's Messages would accept a list of messages.

The rules are those of the providers' pages ("Create chat completion" and the guide to function
calling; "Create a Message", "Handle tool calls" and "Extended thinking"), and of their answers to
requests that break them (status 400), which are quoted in the sentences below.

Each checker turns the messages into what the request becomes (the roles, blocks and calls that
LangChain's integrations send), and returns one sentence for every rule that it breaks; none means
valid. Nothing of the package is used here: what mends a request must not be what judges it. Only
the messages are judged: not the tools' schemas, the model's name or what a single model can do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

Block: TypeAlias = dict[str, Any]


def _blocks(content: str | list[str | dict[str, Any]]) -> list[Block]:
    """Content as blocks: a text as one block, an empty text as no block."""
    parts = [content] if isinstance(content, str) and content else content or []
    return [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


# -- OpenAI ----------------------------------------------------------------------------------------

OPENAI_PARTS: Mapping[str, frozenset[str]] = {
    "system": frozenset({"text"}),
    "developer": frozenset({"text"}),
    "user": frozenset({"text", "image_url", "input_audio", "file", "image", "audio", "document"}),
    "assistant": frozenset({"text", "refusal"}),
    "tool": frozenset({"text"}),
}
"""What a role's content may consist of. The last three of the user's are LangChain's and
Anthropic's own, and are translated."""

OPENAI_LEFT_OUT = frozenset(
    {"tool_use", "tool_call", "thinking", "redacted_thinking", "reasoning", "reasoning_content"}
)
"""What an assistant message may hold besides and the integration leaves out: calls stand in
`tool_calls`, thoughts are not sent."""

OPENAI_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
OPENAI_AUTHOR = re.compile(r"[^\s<|\\/>]{1,64}")
OPENAI_LONGEST_ID = 40
OPENAI_MOST_CALLS = 128


def openai_problems(messages: Sequence[BaseMessage]) -> list[str]:
    """What OpenAI's Chat Completions would refuse in `messages`, one sentence each."""
    if not messages:
        return ["messages: empty array, expected at least one message"]
    problems = [
        f"messages[{index}]{problem}"
        for index, message in enumerate(messages)
        for problem in _openai_message(message)
    ]
    return [*problems, *_openai_order(messages)]


def openai_role(message: BaseMessage) -> str:
    """The role of a message in the request; of an unknown kind, LangChain's name for it."""
    if isinstance(message, ChatMessage):
        return message.role
    if isinstance(message, SystemMessage):
        return str(message.additional_kwargs.get("__openai_role__", "system"))
    kinds = {HumanMessage: "user", AIMessage: "assistant", ToolMessage: "tool"}
    return next((role for kind, role in kinds.items() if isinstance(message, kind)), message.type)


def openai_calls(message: BaseMessage | None) -> list[dict[str, Any]]:
    """The calls that are sent with an assistant message: also those whose arguments are no JSON."""
    if not isinstance(message, AIMessage):
        return []
    return [dict(call) for call in (*message.tool_calls, *message.invalid_tool_calls)]


def _openai_message(message: BaseMessage) -> Iterator[str]:
    role, calls = openai_role(message), openai_calls(message)
    if role not in OPENAI_PARTS:
        yield f".role: {role!r} is not one of {', '.join(OPENAI_PARTS)}"
        return
    if not isinstance(message.content, str):  # of an empty text with calls, nothing is sent
        yield from _openai_content(role, _blocks(message.content), bool(calls))
    yield from _openai_calls(calls)
    if message.name is not None and role != "tool" and not OPENAI_AUTHOR.fullmatch(message.name):
        yield f".name: {message.name!r} does not match the pattern {OPENAI_AUTHOR.pattern}"
    if isinstance(message, ToolMessage) and not message.tool_call_id:
        yield ".tool_call_id: empty, expected the id of a call"


def _openai_content(role: str, parts: list[Block], calls: bool) -> Iterator[str]:
    if role == "assistant":
        parts = [part for part in parts if part.get("type") not in OPENAI_LEFT_OUT]
    if not parts and not calls:
        yield ".content: empty array, expected at least one part"
    for number, part in enumerate(parts):
        if part.get("type") not in OPENAI_PARTS[role]:
            yield f".content[{number}]: type {part.get('type')!r} is invalid for the role {role!r}"
        elif part["type"] == "text" and not isinstance(part.get("text"), str):
            yield f".content[{number}].text: missing"


def _openai_calls(calls: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if len(calls) > OPENAI_MOST_CALLS:
        yield f".tool_calls: array too long, expected at most {OPENAI_MOST_CALLS}"
    for number, call in enumerate(calls):
        here, name, pattern = f".tool_calls[{number}]", call["name"], OPENAI_NAME
        if not isinstance(call["id"], str) or not call["id"]:
            yield f"{here}.id: missing"
        elif len(call["id"]) > OPENAI_LONGEST_ID:
            yield f"{here}.id: string too long, expected at most {OPENAI_LONGEST_ID} characters"
        if not isinstance(name, str) or not pattern.fullmatch(name):
            yield f"{here}.function.name: {name!r} does not match the pattern {pattern.pattern}"
        if not isinstance(call["args"], dict | str):
            yield f"{here}.function.arguments: expected a string of JSON"
    for name in _repeated(str(call["id"]) for call in calls):
        yield f".tool_calls: duplicate value for 'tool_call_id' of {name!r}"


def _openai_order(messages: Sequence[BaseMessage]) -> Iterator[str]:
    """Results directly follow the message that called, each once, up to the next other message."""
    calls: list[str] = []
    called_at = -1
    answered: set[str] = set()
    for index, message in enumerate([*messages, None]):
        if isinstance(message, ToolMessage):
            name, here = message.tool_call_id, f"messages[{index}]"
            if called_at < 0:
                yield (
                    f"{here}.role: messages with role 'tool' must be a response to a preceding"
                    " message with 'tool_calls'"
                )
            elif name not in calls:
                yield f"{here}: {name!r} not found in 'tool_calls' of messages[{called_at}]"
            elif name in answered:
                yield f"{here}: duplicate value for 'tool_call_id' of {name!r}"
            answered.add(name)
            continue
        if missing := [call for call in calls if call not in answered]:
            yield (
                f"messages[{called_at}]: an assistant message with 'tool_calls' must be followed by"
                " tool messages responding to each 'tool_call_id'; without a response:"
                f" {', '.join(missing)}"
            )
        calls = [str(call["id"]) for call in openai_calls(message)]
        called_at, answered = (index if calls else -1), set()


# -- Anthropic -------------------------------------------------------------------------------------

ANTHROPIC_PARTS: Mapping[str, frozenset[str]] = {
    "user": frozenset(
        {
            *("text", "image", "document", "search_result", "container_upload", "tool_result"),
            *("image_url", "file", "text-plain"),
        }
    ),
    "assistant": frozenset(
        {"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use"}
    ),
}
"""What a role's content may consist of: the reference's own, and what the integration turns into
it. Of an assistant, results of the provider's own tools (`…_tool_result`) are taken too."""

THOUGHTS = ("thinking", "redacted_thinking")
ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")
ANTHROPIC_LONGEST_NAME = 200
ANTHROPIC_MOST_MESSAGES = 100_000


@dataclass(slots=True)
class _Turn:
    """Consecutive messages of one role, which are combined into one.

    Attributes:
        role: `user` or `assistant`.
        at: The position of its first message.
        blocks: The content of all.
        empty: The positions of messages without content.
    """

    role: str
    at: int
    blocks: list[Block] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)

    def of(self, kind: str, key: str) -> list[str]:
        """What the blocks of a kind say by a name."""
        return [str(block.get(key)) for block in self.blocks if block.get("type") == kind]


def anthropic_problems(messages: Sequence[BaseMessage]) -> list[str]:
    """What Anthropic's Messages API would refuse in `messages`, one sentence each."""
    problems: list[str] = []
    turns: list[_Turn] = []
    begun = False
    for index, message in enumerate(messages):
        here, role = f"messages[{index}]", _anthropic_role(message)
        begun = begun or not isinstance(message, SystemMessage)
        if isinstance(message, SystemMessage):
            if begun:
                problems.append(
                    f"{here}: there is no 'system' role for input messages; a system prompt stands"
                    " before all others"
                )
            problems += _texts(f"{here} (system)", _blocks(message.content))
        elif role is None:
            problems.append(f"{here}.role: {message.type!r} is neither 'user' nor 'assistant'")
        else:
            if not turns or turns[-1].role != role:
                turns.append(_Turn(role, index))
            blocks = _anthropic_blocks(message)
            turns[-1].blocks += blocks
            turns[-1].empty += [] if blocks else [index]
    if not turns:
        return [*problems, "messages: at least one message is required"]
    if len(messages) > ANTHROPIC_MOST_MESSAGES:
        problems.append(f"messages: there is a limit of {ANTHROPIC_MOST_MESSAGES:,} messages")
    if turns[0].role != "user":
        problems.append(f"messages[{turns[0].at}]: the first message must use the 'user' role")
    for turn in turns:
        problems += _anthropic_content(turn, last=turn is turns[-1])
    return [*problems, *_anthropic_calls(turns)]


def _anthropic_role(message: BaseMessage) -> str | None:
    if isinstance(message, HumanMessage | ToolMessage):
        return "user"
    if isinstance(message, AIMessage):
        return "assistant"
    role = message.role if isinstance(message, ChatMessage) else None
    return role if role in ANTHROPIC_PARTS else None


def _anthropic_blocks(message: BaseMessage) -> list[Block]:
    """The content that is sent: results and calls are blocks."""
    if isinstance(message, ToolMessage):
        name, content = message.tool_call_id, message.content
        return [{"type": "tool_result", "tool_use_id": name, "content": content}]
    blocks = _blocks(message.content)
    if not isinstance(message, AIMessage):
        return blocks
    blocks = [block for block in blocks if block.get("type") != "tool_call"]
    given = {block.get("id") for block in blocks if block.get("type") == "tool_use"}
    return blocks + [
        {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]}
        for call in message.tool_calls
        if call["id"] not in given
    ]


def _anthropic_content(turn: _Turn, *, last: bool) -> Iterator[str]:
    for index in turn.empty:
        if not (last and turn.role == "assistant"):
            yield (
                f"messages[{index}]: all messages must have non-empty content except for the"
                " optional final assistant message"
            )
    yield from _texts(f"messages[{turn.at}]", turn.blocks)
    for number, block in enumerate(turn.blocks):
        kind, here = str(block.get("type")), f"messages[{turn.at}].content[{number}]"
        own_result = turn.role == "assistant" and kind.endswith("_tool_result")
        if kind not in ANTHROPIC_PARTS[turn.role] and not own_result:
            yield f"{here}: type {kind!r} is invalid for the role {turn.role!r}"
        yield from _anthropic_block(here, kind, block)
    if turn.role == "assistant" and turn.blocks and turn.blocks[-1].get("type") in THOUGHTS:
        yield f"messages[{turn.at}]: the final block in an assistant message cannot be thinking"


def _texts(here: str, blocks: Sequence[Block]) -> Iterator[str]:
    for number, block in enumerate(blocks):
        text = block.get("text")
        if block.get("type") != "text":
            continue
        if not isinstance(text, str) or not text:
            yield f"{here}.content[{number}]: text content blocks must be non-empty"
        elif not text.strip():
            yield f"{here}.content[{number}]: text content blocks must contain non-whitespace text"


def _anthropic_block(here: str, kind: str, block: Block) -> Iterator[str]:
    if kind == "tool_use":
        name, used = block.get("name"), block.get("id")
        if not isinstance(used, str) or not ANTHROPIC_ID.fullmatch(used):
            yield f"{here}.tool_use.id: {used!r} should match pattern {ANTHROPIC_ID.pattern}"
        if not isinstance(name, str) or not 1 <= len(name) <= ANTHROPIC_LONGEST_NAME:
            yield f"{here}.tool_use.name: expected 1 to {ANTHROPIC_LONGEST_NAME} characters"
        if not isinstance(block.get("input"), dict):
            yield f"{here}.tool_use.input: input should be a valid dictionary"
    if kind == "tool_result" and isinstance(block.get("content"), list):
        yield from _texts(
            here, _blocks(block["content"])
        )  # a text may be empty: a tool says nothing
    if kind == "thinking" and not (isinstance(block.get(kind), str) and block.get("signature")):
        yield f"{here}.thinking.signature: field required"
    if kind == "redacted_thinking" and not block.get("data"):
        yield f"{here}.redacted_thinking.data: field required"


def _anthropic_calls(turns: Sequence[_Turn]) -> Iterator[str]:
    """Results are the first blocks after their calls, one for each; ids are unique in a request."""
    before: list[str] = []
    seen: set[str] = set()
    for turn in turns:
        here = f"messages[{turn.at}]"
        kinds = [str(block.get("type")) for block in turn.blocks]
        results, calls = turn.of("tool_result", "tool_use_id"), turn.of("tool_use", "id")
        if turn.role == "user":
            if "tool_result" in kinds[len(results) :]:
                yield f"{here}: tool_result blocks must come first in the content array"
            for name in {*results} - {*before}:
                yield (
                    f"{here}: unexpected 'tool_use_id' found in 'tool_result' blocks: {name}; no"
                    " 'tool_use' in the previous message"
                )
            for name in _repeated(results):
                yield f"{here}: each tool_use must have a single result; found more with id {name}"
        yield from _unanswered(before, results, f"before {here}")
        for name in {*_repeated(calls), *(seen & {*calls})}:
            yield f"{here}: 'tool_use' ids must be unique: {name}"
        if "tool_use" in kinds and "text" in kinds[kinds.index("tool_use") :]:
            yield f"{here}: {WITHOUT_RESULT}: text follows them in the same turn"
        before, seen = calls, seen | {*calls}
    yield from _unanswered(before, [], "at the end")


WITHOUT_RESULT = "'tool_use' ids were found without 'tool_result' blocks immediately after"


def _unanswered(calls: Sequence[str], results: Sequence[str], where: str) -> Iterator[str]:
    if missing := [call for call in calls if call not in results]:
        yield f"{where}: {WITHOUT_RESULT}: {', '.join(missing)}"
