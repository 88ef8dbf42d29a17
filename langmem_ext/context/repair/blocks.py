"""What a message's content must be to be sent: non-empty texts, known blocks, whole thoughts.

What a provider does not take is never lost without a word: a picture or a file leaves a note in its
place, and what else has a meaning as text becomes text. What the model itself sent in another
provider's writing (its thoughts, its own tools) is left out: it is no one else's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from operator import is_not
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langmem_ext.context.repair.provider import ProviderRules
from langmem_ext.context.tool_output.output_text import as_json, output_text
from langmem_ext.messages.blocks import (
    ALL_KEYS,
    ANSWERS,
    KINDS,
    blocks_of,
    caller_of,
    is_a,
    read_block,
    unwrapped,
)
from langmem_ext.messages.pairing import call_ids
from langmem_ext.messages.text import words_in, words_of
from langmem_ext.messages.token_costs.media import given_of, in_plain_form, medium_of
from langmem_ext.messages.turns import is_users

EMPTY: Final = "(empty message)"
"""Stands for what a user said without saying anything."""

UNANSWERED: Final = "(no answer)"
"""What the model says where it said nothing: before the user continued, or but in thought."""

_MARK: Final = "cache_control"
_MOST_MARKS: Final = 4
"""How many ends of what it is to cache Anthropic takes in a request."""

_ROLES: Final[Mapping[type[BaseMessage], str]] = {
    HumanMessage: "human",
    AIMessage: "ai",
    ToolMessage: "tool",
    SystemMessage: "system",
}
_NAME: Final = re.compile(r"[^\s<|\\/>]{1,64}")
_NOT_IN_A_NAME: Final = re.compile(r"[\s<|\\/>]+")


def sent_message(message: BaseMessage, rules: ProviderRules) -> BaseMessage | None:
    """The message with sendable content, the same object if unchanged; None if it is empty.

    A message that calls tools, a result and a user's message always say something.
    """
    content = _content(message, rules)
    changes: dict[str, Any] = {}
    if not content and isinstance(message, HumanMessage):
        content = EMPTY
    elif not content and isinstance(message, AIMessage) and not message.tool_calls:
        content = _text_elsewhere(message)
    if not content and (
        isinstance(message, SystemMessage)
        or (isinstance(message, AIMessage) and not message.tool_calls)
    ):
        return None
    if content is not message.content:
        changes["content"] = content
    if (
        message.name is not None
        and not isinstance(message, ToolMessage)
        and not _NAME.fullmatch(message.name)
    ):
        changes["name"] = _NOT_IN_A_NAME.sub("_", message.name)[:64] or None
    if isinstance(message, ToolMessage) and message.status == "error" and not _only_text(content):
        # Anthropic: all content of a result that is an error must be text.
        changes["status"] = "success"
    return message.model_copy(update=changes) if changes else message


def paired(messages: Sequence[BaseMessage], rules: ProviderRules) -> list[BaseMessage]:
    """The messages without blocks that want an answer in a content and have none, and back.

    What a provider's own tools are asked is answered before the user speaks again, also behind the
    results of tools that they call; a question to the user in the user's next message. At the end
    it may be open, where the model was paused or its program waits for the results.
    """
    asks: dict[tuple[int, int], str] = {}
    used: set[str] = set()
    opened: dict[str, tuple[int, int]] = {}
    void: set[tuple[int, int]] = set()
    for at, message in enumerate(messages):
        for place, what, name in _wanting(message, rules):
            if what in ANSWERS.values():
                void |= {opened[name]} if name in opened else set()
                if name in used and name not in opened:
                    void.add((at, place))  # an id is used once
                    continue
                used.add(name)
                opened[name] = at, place
                asks[at, place] = name
            elif opened.pop(name, None) is None:
                void.add((at, place))
        if is_users(message):
            void.update(opened.values())
            opened = {}
    void |= {place for name, place in opened.items() if not _may_be_open(messages, name, *place)}
    alive = {"", *(name for place, name in asks.items() if place not in void)}
    return [_without(message, at, void, alive) for at, message in enumerate(messages)]


def _wanting(message: BaseMessage, rules: ProviderRules) -> Iterator[tuple[int, str, str]]:
    """The blocks that will be sent and want an answer, or are one: where, what, and of which id."""
    for place, block in enumerate(blocks_of(message.content)):
        kind, fields = read_block(block) if isinstance(block, dict) else (None, {})
        if kind is None or kind.what not in (*ANSWERS, *ANSWERS.values()):
            continue
        if rules.takes(message, role_of(message), kind):
            yield place, kind.what, str(fields.get(kind.id) or "")


def _may_be_open(messages: Sequence[BaseMessage], name: str, at: int, place: int) -> bool:
    """Whether the model was paused in its last message, or its program waits for results."""
    if at == len(messages) - 1 and not call_ids(messages[at]):
        return is_a(messages[at].content[place], "work")
    spoken = (message for message in reversed(messages) if not isinstance(message, ToolMessage))
    return any(caller_of(block) == name for block in blocks_of(next(spoken).content) if name)


def _without(
    message: BaseMessage, at: int, void: Set[tuple[int, int]], alive: Set[str]
) -> BaseMessage:
    content = blocks_of(message.content)
    blocks = [
        block if caller_of(block) in alive else _bare(block, "caller")
        for place, block in enumerate(content)
        if (at, place) not in void
    ]
    same = len(blocks) == len(content) and not any(map(is_not, blocks, content))
    return message if same else message.model_copy(update={"content": blocks})


def _bare(block: dict[str, Any], key: str) -> dict[str, Any]:
    """A block without what a key says: a caller that is gone, a mark too many."""
    bare = {name: value for name, value in block.items() if name != key}
    extras = block.get("extras")
    return bare | ({"extras": _bare(extras, key)} if isinstance(extras, dict) else {})


def with_few_marks(messages: list[BaseMessage], rules: ProviderRules) -> list[BaseMessage]:
    """The messages with the last of their marks: what ends later holds all that is before."""
    marks = [
        (at, place)
        for at, message in enumerate(messages)
        for place, block in enumerate(blocks_of(message.content))
        if isinstance(block, dict) and (_MARK in block or _MARK in (block.get("extras") or ()))
    ]
    for at, place in marks[:-_MOST_MARKS] if "A" in rules.letters else ():
        content = blocks_of(messages[at].content).copy()
        content[place] = _bare(content[place], _MARK)
        messages[at] = messages[at].model_copy(update={"content": content})
    return messages


def _content(message: BaseMessage, rules: ProviderRules) -> Any:
    content: Any = message.content
    if isinstance(content, str):
        # A tool may have found blanks, or nothing: that is its result.
        return "" if content.isspace() and not isinstance(message, ToolMessage) else content
    if not isinstance(content, list):
        return "" if content is None else as_json(content)
    blocks = [_block(block, message, rules) for block in content]
    kept = [block for block in blocks if block is not None]
    if isinstance(message, AIMessage):
        kept = _in_order(kept, rules, calls=bool(message.tool_calls))
    same = len(kept) == len(content) and not any(map(is_not, kept, content))
    calls = isinstance(message, AIMessage) and message.tool_calls
    return content if same and (content or calls) else kept or ""


def role_of(message: BaseMessage) -> str:
    """The type of a message, that of a chunk too, as `ProviderRules.kinds` has it."""
    return next((role for kind, role in _ROLES.items() if isinstance(message, kind)), message.type)


def _block(block: Any, message: BaseMessage, rules: ProviderRules) -> Any:
    """A block as it can be sent; None for one that cannot."""
    if not isinstance(block, dict):
        return _text_block(block if isinstance(block, str) else as_json(block))
    if isinstance(block.get("image_url"), str) and block.get("type") == "image_url":
        block = {**block, "image_url": {"url": block["image_url"]}}
    kind, fields = read_block(block)
    role, own, native = role_of(message), rules.wrote(message), unwrapped(block)
    if kind is None:
        # Nobody knows it but who wrote it; of users and tools that is who sends it.
        known = "type" in block and (role != "ai" or own is not False)
        known = known and (own or block["type"] != "non_standard")
        return block if known or not rules.letters else _instead(block, role, rules, message)
    if kind.what == "words" and kind.words == ("text",):
        says = isinstance(fields.get("text"), str) and fields["text"].strip()
        if not says and not (own and _is_signed(fields)):
            return None
    proven = not kind.proof or fields.get(kind.proof) or _is_signed(fields)
    if rules.signed and not proven and (rules.letters or "A" in kind.ai):
        return None
    given = None if own or kind.ways is None else given_of(fields, kind.ways.keys)
    if not rules.takes(message, role, kind, given) or ("type" not in native and rules.letters):
        return _instead(native, role, rules, message)
    return block if native is block or own or not rules.letters else native


def _instead(
    block: Mapping[str, Any], role: str, rules: ProviderRules, message: BaseMessage
) -> dict[str, Any] | None:
    """What replaces a block that the provider does not take."""
    if is_a(block, "thought", "piece", "mark"):
        return None
    if (text := words_in(block)) is not None:
        return _text_block(text)
    plain = in_plain_form(block)
    if plain and rules.takes(message, role, KINDS[plain["type"]], given_of(plain, ALL_KEYS)):
        return plain
    return None if role == "ai" and not medium_of(block) else _text_block(output_text([block]).text)


def _in_order(blocks: list[Any], rules: ProviderRules, *, calls: bool) -> list[Any]:
    """A model's blocks with its calls last, and without thoughts that lead to nothing."""
    asked = [block for block in blocks if is_a(block, "call", "screen")]
    if asked or calls:
        if not asked or not rules.calls_last:
            return blocks
        return [*(block for block in blocks if not is_a(block, "call", "screen")), *asked]
    end = len(blocks)
    while end and _is_thought(blocks[end - 1]):
        end -= 1
    return blocks[:end]


def _is_thought(block: Any) -> bool:
    return is_a(block, "thought")


def _is_signed(block: Mapping[str, Any]) -> bool:
    """Gemini signs a thought at the end of an answer in a text that is empty."""
    extras = block.get("extras")
    return bool(block.get("signature") or (isinstance(extras, dict) and extras.get("signature")))


def _text_elsewhere(message: AIMessage) -> Any:
    """What an answer of which nothing is sent says; nothing, unless it was a thought."""
    if (text := words_of(vars(message))).strip():
        return text
    thought = isinstance(message.content, list) and any(map(_is_thought, message.content))
    return [_text_block(UNANSWERED)] if thought else ""


def _only_text(content: Any) -> bool:
    return isinstance(content, str) or all(block.get("type") == "text" for block in content)


def _text_block(text: str) -> dict[str, Any] | None:
    return {"type": "text", "text": text} if text.strip() else None
