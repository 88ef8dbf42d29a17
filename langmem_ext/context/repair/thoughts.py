"""Removes a model's thoughts from old messages: whole blocks, never from the current turn.

Anthropic and Google want the thoughts of a running tool round back as they came, and OpenAI wants
an item of its own together with the thought that led to it. So nothing is taken from the latest
user's message on, nor from the latest tool round, and of OpenAI's items what stays loses its place
in the store there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage

from langmem_ext.context.repair.provider import BOTH, CALL_SIGNATURES, ProviderRules
from langmem_ext.messages.blocks import is_a, read_block
from langmem_ext.messages.pairing import latest_round
from langmem_ext.messages.text import words_in
from langmem_ext.messages.turns import is_users

_KWARGS: Final = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking",
    "__openai_function_call_ids__",
)
"""Where integrations keep thoughts that are not in the content, and what binds calls to them."""

_CALL_SIGNATURE: Final = "function_call_signature"
"""The block of a signature that is beside its call, in older messages of Gemini."""

_SIGNATURES: Final = ("signature", "thought_signature")
_FREE: Final = ("words", "call")
"""OpenAI's items that it takes without their thought, once they have no id; the others cannot do
without either."""

_ITEM_IDS: Final = ("id", "item_id")
"""Keys of an item's id, in a block or in its extras."""


def strippable(messages: Sequence[BaseMessage], newest: int | None = -1) -> int:
    """How many messages, from the first, may lose their thoughts.

    All before the latest user's message, but none from the latest tool round on, even if the user
    has spoken since. The number never falls as a conversation continues.

    Args:
        messages: A conversation, oldest first.
        newest: Where the latest tool round is, if that is known; None for none.
    """
    spoken = next((at for at in range(len(messages) - 1, -1, -1) if is_users(messages[at])), 0)
    if newest is None:
        return spoken
    return min(spoken, latest_round(messages) if newest < 0 else newest)


def without_thoughts(message: BaseMessage, rules: ProviderRules = BOTH) -> BaseMessage:
    """The message without thoughts and signatures; unchanged if it has none, or nothing else.

    Args:
        message: A message that may lose them (`strippable`).
        rules: Who it is sent to: Gemini is sent its signatures of calls as long as the calls are
            shown.
    """
    if message.content.__class__ is str and not message.additional_kwargs:
        return message  # nearly all of them
    if not isinstance(message, AIMessage) or _is_bound(message):
        return message
    kept = {
        key: value
        for key, value in message.additional_kwargs.items()
        if not _tells_thoughts(key, rules)
    }
    content: Any = message.content
    if isinstance(content, list):
        content = _without_blocks(content, rules)
        if not content and not message.tool_calls:
            return message
    if content is message.content and len(kept) == len(message.additional_kwargs):
        return message
    return message.model_copy(update={"content": content, "additional_kwargs": kept})


def _is_bound(message: AIMessage) -> bool:
    """Whether it has an OpenAI item that needs the thought before it and cannot lose its id."""
    kwargs, blocks = message.additional_kwargs, _blocks(message.content)
    if isinstance(kwargs.get("reasoning"), Mapping):
        return "tool_outputs" in kwargs or str(message.id).startswith("msg_")
    return any(map(_is_item, blocks)) and not all(
        is_a(block, *_FREE, "thought") for block in blocks
    )


def _blocks(content: Any) -> list[dict[str, Any]]:
    return (
        [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    )


def _is_item(block: Mapping[str, Any]) -> bool:
    """Whether it is a thought that is in a store of OpenAI's."""
    return block.get("type") == "reasoning" and str(block.get("id")).startswith("rs_")


def _tells_thoughts(key: str, rules: ProviderRules) -> bool:
    return key in _KWARGS or (key == CALL_SIGNATURES and not rules.signs_calls)


def _without_blocks(content: list[Any], rules: ProviderRules) -> list[Any]:
    """The blocks without thoughts, signatures and ids bound to a thought; unchanged if none."""
    bound = any(map(_is_item, _blocks(content)))
    blocks = [
        _bare(block, rules, bound=bound) if isinstance(block, dict) else block for block in content
    ]
    kept = [block for block in blocks if block is not None]
    same = len(kept) == len(content) and all(
        new is old for new, old in zip(kept, content, strict=True)
    )
    return content if same else kept


def _bare(block: dict[str, Any], rules: ProviderRules, *, bound: bool) -> dict[str, Any] | None:
    """A block without what belongs to a thought; None if nothing else is left of it."""
    kind = read_block(block)[0]
    if kind is not None and kind.what == "thought":
        return None
    if block.get("type") == _CALL_SIGNATURE:
        return block if rules.signs_calls else None
    of_text = kind is not None and kind.what == "words"
    drop = {
        *(_SIGNATURES if of_text or not rules.signs_calls else ()),
        *(_ITEM_IDS if bound and is_a(block, *_FREE) else ()),
    } - {kind.id if kind is not None else ""}
    extras = block.get("extras")
    bare = {key: value for key, value in block.items() if key not in drop}
    if isinstance(extras, dict) and drop & extras.keys():
        bare["extras"] = {key: value for key, value in extras.items() if key not in drop}
    if of_text and not words_in(block):
        return None
    return block if bare == block else bare
