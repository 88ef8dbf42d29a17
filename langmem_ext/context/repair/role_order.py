"""The order of roles that a provider requires: system messages, first speaker, alternation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langmem_ext.context.repair.blocks import UNANSWERED
from langmem_ext.context.repair.provider import ProviderRules
from langmem_ext.messages.annotations import inserted, is_inserted, marked_for, unplaced

OPENING: Final = "(The conversation begins.)"
"""What the user says where the model would speak first."""


def roles_of(messages: Sequence[BaseMessage]) -> list[type[BaseMessage]]:
    """The role of each message, as its class; `BaseMessage` for one that has none."""
    roles: list[type[BaseMessage]] = [type(message) for message in messages]
    strange = {role: _role(role) for role in {*roles} if role not in _ROLES}
    return [strange.get(role, role) for role in roles] if strange else roles


_ROLES: Final = (HumanMessage, AIMessage, ToolMessage, SystemMessage)


def _role(kind: type[BaseMessage]) -> type[BaseMessage]:
    return next((role for role in _ROLES if issubclass(kind, role)), BaseMessage)


def is_in_order(
    messages: Sequence[BaseMessage], roles: Sequence[type[BaseMessage]], rules: ProviderRules
) -> bool:
    """Whether `in_order` would leave the messages, of these roles, as they are."""
    start = next((at for at, role in enumerate(roles) if role is not SystemMessage), len(roles))
    if rules.first_is_user and roles[start : start + 1] != [HumanMessage]:
        return False
    if rules.system_first and SystemMessage in roles[start:]:
        return False
    if rules.bare_end and _bare(messages[-1]) is not messages[-1]:
        return False
    return not rules.alternates or not any(
        _out_of_turn(before, after) for before, after in pairwise(roles[start:])
    )


def in_order(
    messages: Sequence[BaseMessage], rules: ProviderRules
) -> tuple[list[BaseMessage], int, int]:
    """The messages in the required order, with the numbers added and moved.

    Results are behind their calls already.
    """
    ordered, added, moved = list(messages), 0, 0
    if rules.system_first:
        moved = sum(
            isinstance(message, SystemMessage) for message in ordered[_spoken_from(ordered) :]
        )
        # The sort is stable: nothing else moves.
        ordered.sort(key=lambda message: not isinstance(message, SystemMessage))
    start = _spoken_from(ordered)
    if not ordered or (
        rules.first_is_user and not isinstance([*ordered, None][start], HumanMessage)
    ):
        ordered.insert(
            start, HumanMessage(OPENING, id="opening", additional_kwargs=inserted("opening"))
        )
        added = 1
    if rules.alternates:
        ordered, answers = _in_turns(ordered)
        added += answers
    if rules.bare_end:
        ordered[-1] = _bare(ordered[-1])
    return ordered, added, moved


def _spoken_from(messages: Sequence[BaseMessage]) -> int:
    return next(
        (at for at, message in enumerate(messages) if not isinstance(message, SystemMessage)),
        len(messages),
    )


# -- turns -----------------------------------------------------------------------------------------


def _out_of_turn(before: type[BaseMessage], after: type[BaseMessage]) -> bool:
    """Whether two neighbours have one role, or a user's message follows an unanswered result."""
    return (before is after and after in (HumanMessage, AIMessage)) or (
        before is ToolMessage and after is HumanMessage
    )


def _in_turns(messages: Sequence[BaseMessage]) -> tuple[list[BaseMessage], int]:
    """The messages with neighbours of one role as one, and how many answers were added."""
    turns: list[BaseMessage] = []
    added = 0
    for message in messages:
        before = turns[-1] if turns else None
        if isinstance(before, ToolMessage) and isinstance(message, HumanMessage):
            turns.append(
                AIMessage(
                    UNANSWERED,
                    id=f"unanswered-{before.tool_call_id}",
                    additional_kwargs=inserted("no answer"),
                )
            )
            added += 1
        elif before is not None and _of_one_role(before, message):
            turns[-1] = _joined(before, message)
            continue
        turns.append(message)
    return turns, added


def _of_one_role(before: BaseMessage, after: BaseMessage) -> bool:
    return any(
        isinstance(before, role) and isinstance(after, role) for role in (HumanMessage, AIMessage)
    )


def _joined(first: BaseMessage, second: BaseMessage) -> BaseMessage:
    """Two messages of one role as one, with the first one's name, which stays if more is joined."""
    spoken = [message for message in (first, second) if not is_inserted(vars(message))] or [first]
    changes: dict[str, Any] = {
        "id": spoken[0].id,
        "content": _joined_content(first.content, second.content),
        "additional_kwargs": unplaced(
            spoken[0].additional_kwargs | spoken[-1].additional_kwargs,
            marked_for(vars(first)) | marked_for(vars(second)),
        ),
    }
    if isinstance(first, AIMessage) and isinstance(second, AIMessage):
        changes["tool_calls"] = [*first.tool_calls, *second.tool_calls]
        changes["response_metadata"] = first.response_metadata | second.response_metadata
        changes["usage_metadata"] = second.usage_metadata
    return first.model_copy(update=changes)


def _joined_content(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return "\n\n".join(filter(None, (first, second)))
    return [*_as_blocks(first), *_as_blocks(second)]


def _as_blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content)


# -- the end ---------------------------------------------------------------------------------------


def _bare(message: BaseMessage) -> BaseMessage:
    """A model's message without trailing blanks; the same object if there are none."""
    if not isinstance(message, AIMessage):
        return message
    content: Any = message.content
    last = content[-1] if isinstance(content, list) and content else {"text": content}
    text = last.get("text") if isinstance(last, dict) else None
    if not isinstance(text, str) or not text[-1:].isspace():
        return message
    bare = (
        text.rstrip()
        if isinstance(content, str)
        else [*content[:-1], {**last, "text": text.rstrip()}]
    )
    return message.model_copy(update={"content": bare})
