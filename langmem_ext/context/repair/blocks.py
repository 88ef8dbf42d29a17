"""What a message's content must be to be sent: non-empty texts, known blocks, whole thoughts.

What a provider does not take is never lost without a word: a picture or a file leaves a note in its
place, and what else has a meaning as text becomes text. What the model itself sent in another
provider's writing (its thoughts, its own tools) is left out: it is no one else's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langmem_ext.context.repair.provider import SIGNED, THOUGHTS, ProviderRules
from langmem_ext.context.tool_output.output_text import as_json, output_text
from langmem_ext.messages.token_costs.media import (
    data_of,
    media_type_of,
    medium_of,
    name_of,
    text_in,
)

EMPTY: Final = "(empty message)"
"""Stands for what a user said without saying anything."""

_ROLES: Final[Mapping[type[BaseMessage], str]] = {
    HumanMessage: "human",
    AIMessage: "ai",
    ToolMessage: "tool",
    SystemMessage: "system",
}
_CALLS: Final = frozenset({"tool_use"})
_SERVER_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})
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


def answered_in_place(message: AIMessage, following: BaseMessage | None) -> AIMessage:
    """The answer without unfinished calls of the provider's own tools; unchanged if it has none.

    Args:
        message: The answer.
        following: The message behind it. An answer that was paused continues there; the last of all
            is left alone, as it may be paused, but for one that calls tools: behind it come their
            results.
    """
    content: Any = message.content
    paused = following is None and not message.tool_calls and not message.invalid_tool_calls
    if paused or not isinstance(content, list):
        return message
    rest: Any = (
        following.content
        if isinstance(following, AIMessage) and isinstance(following.content, list)
        else []
    )
    result_ids = {block.get("tool_use_id") for block in content + rest if isinstance(block, dict)}
    kept = [
        block
        for block in content
        if not (_is_of(block, _SERVER_CALLS) and block.get("id") not in result_ids)
    ]
    return message if len(kept) == len(content) else message.model_copy(update={"content": kept})


def _content(message: BaseMessage, rules: ProviderRules) -> Any:
    content: Any = message.content
    if isinstance(content, str):
        # A tool may have found blanks, or nothing: that is its result.
        return "" if content.isspace() and not isinstance(message, ToolMessage) else content
    if not isinstance(content, list):
        return "" if content is None else as_json(content)
    role, own = role_of(message), rules.wrote(message)
    blocks = [_block(block, role, rules, own=own) for block in content]
    kept = [block for block in blocks if block is not None]
    if isinstance(message, AIMessage):
        kept = _in_order(kept, calls=bool(message.tool_calls))
    same = len(kept) == len(content) and all(
        new is old for new, old in zip(kept, content, strict=True)
    )
    calls = isinstance(message, AIMessage) and message.tool_calls
    return content if same and (content or calls) else kept or ""


def role_of(message: BaseMessage) -> str:
    """The type of a message, that of a chunk too, as `ProviderRules.kinds` has it."""
    return next((role for kind, role in _ROLES.items() if isinstance(message, kind)), message.type)


def _block(block: Any, role: str, rules: ProviderRules, *, own: bool) -> Any:
    """A block as it can be sent; None for one that cannot."""
    if not isinstance(block, dict):
        return _text_block(block if isinstance(block, str) else as_json(block))
    kind = block.get("type")
    if kind == "text":
        says = isinstance(block.get("text"), str) and block["text"].strip()
        return block if says or (own and _signed_text(block)) else None
    if rules.signed and (proof := SIGNED.get(str(kind))) and not block.get(proof):
        return None
    if kind is not None and (own or rules.takes(role, block)):
        return block
    return _instead(block, role, rules)


def _instead(block: Mapping[str, Any], role: str, rules: ProviderRules) -> dict[str, Any] | None:
    """What replaces a block that the provider does not take."""
    kind = str(block.get("type"))
    if kind in THOUGHTS:
        return None
    if isinstance(text := block.get("refusal", text_in(block)), str):
        return _text_block(text)
    if kind == "document" and (file := _as_file(block)) and rules.takes(role, file):
        return file
    return None if role == "ai" and not medium_of(block) else _text_block(output_text([block]).text)


def _as_file(block: Mapping[str, Any]) -> dict[str, Any] | None:
    """An Anthropic file block in LangChain's form; None for a file stored elsewhere.

    Every integration translates that form.
    """
    data = data_of(block)
    if not isinstance(data, str):
        return None
    return {
        "type": "file",
        "base64": data,
        "mime_type": media_type_of(block) or "application/pdf",
        "filename": name_of(block) or "document.pdf",
    }


def _in_order(blocks: list[Any], *, calls: bool) -> list[Any]:
    """A model's blocks with its calls last, and without thoughts that lead to nothing."""
    asked = [block for block in blocks if _is_of(block, _CALLS)]
    spoken = [block for block in blocks if not _is_of(block, _CALLS)] if asked else blocks
    if not asked and not calls:
        if all(_is_of(block, THOUGHTS) for block in spoken):
            return []
        while spoken[-1].get("type") in SIGNED:
            spoken = spoken[:-1]
    return [*spoken, *asked] if asked else spoken


def _is_of(block: Any, kinds: frozenset[str]) -> bool:
    return isinstance(block, dict) and block.get("type") in kinds


def _signed_text(block: Mapping[str, Any]) -> bool:
    """Gemini signs a thought at the end of an answer in a text that is empty."""
    extras = block.get("extras")
    return bool(block.get("signature") or (isinstance(extras, dict) and extras.get("signature")))


def _text_elsewhere(message: AIMessage) -> str:
    """What an answer without content says in its refusal, or in the transcript of its audio."""
    kwargs = message.additional_kwargs
    audio = kwargs.get("audio")
    for text in (
        kwargs.get("refusal"),
        audio.get("transcript") if isinstance(audio, dict) else None,
    ):
        if isinstance(text, str) and text.strip():
            return text
    return ""


def _only_text(content: Any) -> bool:
    return isinstance(content, str) or all(block.get("type") == "text" for block in content)


def _text_block(text: str) -> dict[str, Any] | None:
    return {"type": "text", "text": text} if text.strip() else None
