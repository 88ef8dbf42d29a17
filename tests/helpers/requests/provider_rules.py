"""Whether OpenAI's Chat Completions or Anthropic's Messages would accept a list of messages.

The rules are those of the providers' pages.

Each checker turns the messages into what the request becomes (the roles, blocks and calls that
LangChain's integrations send), and returns one sentence for every rule that it breaks; none means
valid. Nothing of the package is used here: what mends a request must not be what judges it. Only
the messages are judged: not the tools' schemas, the model's name or what a single model can do.

OpenAI: the reference of "Create chat completion"
(https://platform.openai.com/docs/api-reference/chat/create), whose schemas are published
(https://github.com/openai/openai-openapi), and the guide to function calling
(https://platform.openai.com/docs/guides/function-calling).
Anthropic: the reference of "Create a Message"
(https://platform.claude.com/docs/en/api/messages/create), "Handle tool calls"
(https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls) and "Extended
thinking" (https://platform.claude.com/docs/en/build-with-claude/extended-thinking). Both say some
rules only in the answer to a request that breaks them (status 400); these are quoted in the
sentences below.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

Block: TypeAlias = dict[str, Any]

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
        problem
        for index, message in enumerate(messages)
        for problem in _openai_message(index, message)
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


def openai_calls(message: BaseMessage) -> list[dict[str, Any]]:
    """The calls that are sent with an assistant message: also those whose arguments are no JSON."""
    if not isinstance(message, AIMessage):
        return []
    return [dict(call) for call in (*message.tool_calls, *message.invalid_tool_calls)]


def _openai_message(index: int, message: BaseMessage) -> Iterator[str]:
    role, here = openai_role(message), f"messages[{index}]"
    if role not in OPENAI_PARTS:
        yield f"{here}.role: {role!r} is not one of {', '.join(OPENAI_PARTS)}"
        return
    calls = openai_calls(message)
    yield from _openai_content(here, role, message, bool(calls))
    yield from _openai_calls(here, calls)
    if message.name is not None and role != "tool" and not OPENAI_AUTHOR.fullmatch(message.name):
        yield f"{here}.name: {message.name!r} does not match the pattern {OPENAI_AUTHOR.pattern}"
    if isinstance(message, ToolMessage) and not message.tool_call_id:
        yield f"{here}.tool_call_id: empty, expected the id of a call"


def _openai_content(here: str, role: str, message: BaseMessage, calls: bool) -> Iterator[str]:
    if isinstance(message.content, str):
        return  # an empty one too: of an assistant's that calls, nothing is sent
    parts = [_block(part) for part in message.content]
    if role == "assistant":
        parts = [part for part in parts if part.get("type") not in OPENAI_LEFT_OUT]
    if not parts and not calls:
        yield f"{here}.content: empty array, expected at least one part"
    for number, part in enumerate(parts):
        if part.get("type") not in OPENAI_PARTS[role]:
            yield (
                f"{here}.content[{number}]: type {part.get('type')!r} is invalid for the role"
                f" {role!r}"
            )
        elif part["type"] == "text" and not isinstance(part.get("text"), str):
            yield f"{here}.content[{number}].text: missing"


def _openai_calls(here: str, calls: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if len(calls) > OPENAI_MOST_CALLS:
        yield f"{here}.tool_calls: array too long, expected at most {OPENAI_MOST_CALLS}"
    for number, call in enumerate(calls):
        if not isinstance(call["id"], str) or not call["id"]:
            yield f"{here}.tool_calls[{number}].id: missing"
        elif len(call["id"]) > OPENAI_LONGEST_ID:
            yield (
                f"{here}.tool_calls[{number}].id: string too long, expected at most"
                f" {OPENAI_LONGEST_ID} characters"
            )
        if not isinstance(call["name"], str) or not OPENAI_NAME.fullmatch(call["name"]):
            yield (
                f"{here}.tool_calls[{number}].function.name: {call['name']!r} does not match the"
                f" pattern {OPENAI_NAME.pattern}"
            )
        if not isinstance(call["args"], dict | str):
            yield f"{here}.tool_calls[{number}].function.arguments: expected a string of JSON"
    for name in _repeated(str(call["id"]) for call in calls):
        yield f"{here}.tool_calls: duplicate value for 'tool_call_id' of {name!r}"


def _openai_order(messages: Sequence[BaseMessage]) -> Iterator[str]:
    """Results directly follow the message that called, each once, up to the next other message."""
    open_calls: list[str] = []
    called_at = -1
    answered: set[str] = set()
    for index, message in enumerate([*messages, None]):
        if isinstance(message, ToolMessage):
            if called_at < 0:
                yield (
                    f"messages[{index}].role: messages with role 'tool' must be a response to a"
                    " preceding message with 'tool_calls'"
                )
            elif message.tool_call_id not in open_calls:
                yield (
                    f"messages[{index}].tool_call_id: {message.tool_call_id!r} not found in"
                    f" 'tool_calls' of messages[{called_at}]"
                )
            elif message.tool_call_id in answered:
                yield (
                    f"messages[{index}].tool_call_id: duplicate value for 'tool_call_id' of"
                    f" {message.tool_call_id!r}"
                )
            answered.add(message.tool_call_id)
            continue
        missing = [call for call in open_calls if call not in answered]
        if missing:
            yield (
                f"messages[{called_at}]: an assistant message with 'tool_calls' must be followed by"
                " tool messages responding to each 'tool_call_id'; without a response:"
                f" {', '.join(missing)}"
            )
        open_calls = (
            [str(call["id"]) for call in openai_calls(message)] if message is not None else []
        )
        called_at = index if open_calls else -1
        answered = set()


# -- Anthropic -------------------------------------------------------------------------------------

ANTHROPIC_USER = frozenset(
    {
        "text",
        "image",
        "image_url",
        "document",
        "file",
        "text-plain",
        "search_result",
        "container_upload",
        "tool_result",
    }
)
"""What a user's content may consist of: the reference's own, and what the integration turns into
it."""

ANTHROPIC_ASSISTANT = frozenset(
    {"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use"}
)
"""The same of an assistant's. Results of the provider's own tools (`…_tool_result`) are taken
too."""

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


def anthropic_problems(messages: Sequence[BaseMessage]) -> list[str]:
    """What Anthropic's Messages API would refuse in `messages`, one sentence each."""
    problems: list[str] = []
    start = next(
        (index for index, message in enumerate(messages) if not isinstance(message, SystemMessage)),
        len(messages),
    )
    for index, message in enumerate(messages):
        if isinstance(message, SystemMessage):
            if index > start:
                problems.append(
                    f"messages[{index}]: there is no 'system' role for input messages; a system"
                    " prompt stands before all others"
                )
            problems += _texts(f"messages[{index}] (system)", _blocks(message.content))
        elif isinstance(message, FunctionMessage) or _anthropic_role(message) is None:
            problems.append(
                f"messages[{index}].role: {message.type!r} is neither 'user' nor 'assistant'"
            )
    turns = _turns(messages)
    if not turns:
        return [*problems, "messages: at least one message is required"]
    if len(messages) > ANTHROPIC_MOST_MESSAGES:
        problems.append(
            f"messages: there is a limit of {ANTHROPIC_MOST_MESSAGES:,} messages in a single"
            " request"
        )
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
    return (
        message.role
        if isinstance(message, ChatMessage) and message.role in ("user", "assistant")
        else None
    )


def _turns(messages: Sequence[BaseMessage]) -> list[_Turn]:
    """The turns that are sent: results as the user's blocks, neighbours of one role combined.

    System messages and what is no message are left out.
    """
    turns: list[_Turn] = []
    for index, message in enumerate(messages):
        role = _anthropic_role(message)
        if role is None:
            continue
        if not turns or turns[-1].role != role:
            turns.append(_Turn(role, index))
        blocks = _anthropic_blocks(message)
        turns[-1].blocks += blocks
        if not blocks:
            turns[-1].empty.append(index)
    return turns


def _anthropic_blocks(message: BaseMessage) -> list[Block]:
    if isinstance(message, ToolMessage):
        return [
            {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.content}
        ]
    blocks = _blocks(message.content)
    if not isinstance(message, AIMessage):
        return blocks
    blocks = [block for block in blocks if block.get("type") != "tool_call"]
    given = {block.get("id") for block in blocks if block.get("type") == "tool_use"}
    calls = [call for call in message.tool_calls if call["id"] not in given]
    return [
        *blocks,
        *(
            {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]}
            for call in calls
        ),
    ]


def _anthropic_content(turn: _Turn, *, last: bool) -> Iterator[str]:
    here = f"messages[{turn.at}]"
    for index in turn.empty:
        if not (last and turn.role == "assistant"):
            yield (
                f"messages[{index}]: all messages must have non-empty content except for the"
                " optional final assistant message"
            )
    yield from _texts(here, turn.blocks)
    allowed = ANTHROPIC_USER if turn.role == "user" else ANTHROPIC_ASSISTANT
    for number, block in enumerate(turn.blocks):
        kind = str(block.get("type"))
        if kind not in allowed and not (turn.role == "assistant" and kind.endswith("_tool_result")):
            yield (f"{here}.content[{number}]: type {kind!r} is invalid for the role {turn.role!r}")
        if kind == "tool_use":
            yield from _tool_use(f"{here}.content[{number}]", block)
        if kind == "tool_result" and isinstance(
            block.get("content"), list
        ):  # a text may be empty, or missing: a tool may say nothing
            yield from _texts(f"{here}.content[{number}]", _blocks(block["content"]))
    yield from _thoughts(here, turn)


def _texts(here: str, blocks: Sequence[Block]) -> Iterator[str]:
    for number, block in enumerate(blocks):
        if block.get("type") != "text":
            continue
        text = block.get("text")
        if not isinstance(text, str) or not text:
            yield f"{here}.content[{number}]: text content blocks must be non-empty"
        elif not text.strip():
            yield f"{here}.content[{number}]: text content blocks must contain non-whitespace text"


def _tool_use(here: str, block: Block) -> Iterator[str]:
    if not isinstance(block.get("id"), str) or not ANTHROPIC_ID.fullmatch(block["id"]):
        yield f"{here}.tool_use.id: {block.get('id')!r} should match pattern {ANTHROPIC_ID.pattern}"
    if (
        not isinstance(block.get("name"), str)
        or not 1 <= len(block["name"]) <= ANTHROPIC_LONGEST_NAME
    ):
        yield f"{here}.tool_use.name: expected 1 to {ANTHROPIC_LONGEST_NAME} characters"
    if not isinstance(block.get("input"), dict):
        yield f"{here}.tool_use.input: input should be a valid dictionary"


def _thoughts(here: str, turn: _Turn) -> Iterator[str]:
    """A thought is sent unchanged, with its signature, and never last in an assistant's content."""
    for number, block in enumerate(turn.blocks):
        if block.get("type") == "thinking" and not (
            isinstance(block.get("thinking"), str) and block.get("signature")
        ):
            yield f"{here}.content[{number}].thinking.signature: field required"
        if block.get("type") == "redacted_thinking" and not block.get("data"):
            yield f"{here}.content[{number}].redacted_thinking.data: field required"
    if (
        turn.role == "assistant"
        and turn.blocks
        and turn.blocks[-1].get("type") in ("thinking", "redacted_thinking")
    ):
        yield f"{here}: the final block in an assistant message cannot be thinking"


def _anthropic_calls(turns: Sequence[_Turn]) -> Iterator[str]:
    """Results are the first blocks after their calls, one for each; ids are unique in a request."""
    before: list[str] = []
    seen: set[str] = set()
    for turn in turns:
        here = f"messages[{turn.at}]"
        kinds = [str(block.get("type")) for block in turn.blocks]
        results = [
            str(block.get("tool_use_id"))
            for block in turn.blocks
            if block.get("type") == "tool_result"
        ]
        if turn.role == "user":
            if "tool_result" in kinds[len(results) :]:
                yield (
                    f"{here}: tool_result blocks must come first in the content array; other"
                    " content stands before one"
                )
            for name in results:
                if name not in before:
                    yield (
                        f"{here}: unexpected 'tool_use_id' found in 'tool_result' blocks: {name};"
                        " no 'tool_use' in the previous message"
                    )
            for name in _repeated(results):
                yield (
                    f"{here}: each tool_use must have a single result; found multiple 'tool_result'"
                    f" blocks with id {name}"
                )
        yield from _unanswered(before, results, turn.at)
        before = [str(block.get("id")) for block in turn.blocks if block.get("type") == "tool_use"]
        yield from (
            f"{here}: 'tool_use' ids must be unique: {name}"
            for name in {*_repeated(before), *(seen & {*before})}
        )
        seen |= {*before}
        if "tool_use" in kinds and "text" in kinds[kinds.index("tool_use") :]:
            yield (
                f"{here}: 'tool_use' ids were found without 'tool_result' blocks immediately after:"
                " text follows them in the same turn"
            )
    yield from _unanswered(before, [], None)


def _unanswered(calls: Sequence[str], results: Sequence[str], at: int | None) -> Iterator[str]:
    missing = [call for call in calls if call not in results]
    if missing:
        where = "at the end" if at is None else f"before messages[{at}]"
        yield (
            f"{where}: 'tool_use' ids were found without 'tool_result' blocks immediately after:"
            f" {', '.join(missing)}"
        )


# -- both ------------------------------------------------------------------------------------------


def _blocks(content: str | list[str | dict[str, Any]]) -> list[Block]:
    """Content as blocks; a text is one, an empty one is none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [_block(part) for part in content]


def _block(part: str | dict[str, Any]) -> Block:
    return {"type": "text", "text": part} if isinstance(part, str) else part


def _repeated(names: Sequence[str] | Iterator[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
