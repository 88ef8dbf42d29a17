"""Makes messages valid for a provider: each call is followed by its result, roles are in order.

Stored messages are not changed; only the request is. A cancelled run, a cut made by other code, a
change of provider or a broken stream can leave a conversation that no provider accepts. Repair
makes it acceptable to all of them, and leaves out only results that answer no call and messages
that say nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

from langmem_ext.context.repair.blocks import paired, sent_message, with_few_marks
from langmem_ext.context.repair.characters import carried
from langmem_ext.context.repair.legacy_messages import in_sent_forms, is_sent_form
from langmem_ext.context.repair.provider import BOTH, ProviderRules
from langmem_ext.context.repair.role_order import in_order, is_in_order, roles_of
from langmem_ext.context.repair.sent_calls import (
    LONGEST_NAME,
    CallIds,
    SentCall,
    as_custom,
    custom_calls,
    is_plain,
    sent_calls,
    without_own_calls,
)
from langmem_ext.messages.annotations import inserted
from langmem_ext.messages.blocks import KINDS
from langmem_ext.messages.pairing import call_ids

NO_RESULT: Final = (
    "Error: no result of `{name}`. The call was interrupted or never ran; it is unknown whether it"
    " had an effect."
)
UNREAD: Final = "Error: `{name}` was not called, because its arguments are not valid JSON: {unread}"

_LONGEST_UNREAD: Final = 500
"""The maximum number of characters shown of unreadable arguments."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """Messages that a provider accepts.

    Attributes:
        messages: The messages; the same list object as passed if nothing was wrong.
        added: How many were added: missing results, and what the order of roles requires.
        dropped: How many were left out: results without a call, second results, messages that say
            nothing.
        moved: How many were moved: results behind their calls, system messages before all others.
        mended: How many were rewritten in another form with the same meaning.
    """

    messages: Sequence[BaseMessage]
    added: int = 0
    dropped: int = 0
    moved: int = 0
    mended: int = 0


def repair(messages: Sequence[BaseMessage], rules: ProviderRules = BOTH) -> Repaired:
    """The messages as the provider takes them; the messages given and their list stay as they are.

    The same messages give the same result, down to the ids of what is added, and what is made of
    the first of them does not depend on what follows, but for a result that comes late, marks that
    are too many and roles that alternate. A repaired conversation is repaired no further.

    Args:
        messages: A conversation, oldest first.
        rules: What the provider asks (`rules_for`).
    """
    plain = carried(messages)
    if not messages or (plain is messages and _is_valid(messages, rules)):
        return Repaired(messages)
    rounds = _Rounds(rules)
    for message in paired(in_sent_forms(plain), rules):
        rounds.take(message)
    answered = list(rounds.answered())
    sent = [result for message in answered if (result := sent_message(message, rules)) is not None]
    ordered, added, moved = in_order(with_few_marks(sent, rules), rules)
    if len(ordered) == len(messages) and all(
        new is old for new, old in zip(ordered, messages, strict=True)
    ):
        return Repaired(messages)
    added += rounds.added
    given_ids = {id(message) for message in messages}
    return Repaired(
        ordered,
        added=added,
        dropped=rounds.dropped + len(answered) - len(sent),
        moved=rounds.moved + moved,
        mended=max(sum(id(message) not in given_ids for message in ordered) - added, 0),
    )


# -- rounds: calls and their results ---------------------------------------------------------------


@dataclass(slots=True)
class _Round:
    """A message that calls, and what answers it.

    Attributes:
        message: The message.
        open: Its calls that have no result yet.
        screens: Calls of the same kind that are in its content alone, as only their provider knows
            them.
        results: The results of the others, in the order in which they came.
    """

    message: AIMessage
    open: list[SentCall]
    screens: list[str]
    results: list[ToolMessage] = field(default_factory=list)

    def custom(self, rules: ProviderRules) -> Collection[str]:
        """The calls of OpenAI's custom tools: their results have a form of their own."""
        if not rules.takes(self.message, "ai", KINDS["custom_tool_call"]):
            return ()
        return custom_calls(self.message)


class _Rounds:
    """Puts results to their calls.

    Args:
        rules: What the provider asks.
    """

    def __init__(self, rules: ProviderRules) -> None:
        self.added = self.dropped = self.moved = 0
        self._rules = rules
        self._ids = CallIds(rules.longest_id)
        self._taken: list[BaseMessage | _Round] = []
        self._newest: dict[str, _Round] = {}

    def take(self, message: BaseMessage) -> None:
        """The next message of the conversation."""
        if isinstance(message, ToolMessage):
            self._take_result(message)
        elif isinstance(message, AIMessage):
            self._take_answer(message)
        else:
            self._taken.append(message)

    def _take_answer(self, message: AIMessage) -> None:
        if (
            message.content.__class__ is str
            and not message.tool_calls
            and not message.invalid_tool_calls
        ):
            self._taken.append(message)
            return
        sent, calls = sent_calls(message, self._ids)
        known = {call.id for call in calls}
        takes = self._rules.takes(sent, "ai", KINDS["computer_call"])
        screens = [name for name in call_ids(sent) if name not in known] if takes else []
        if not calls and not screens:
            self._taken.append(sent)
            return
        tool_round = _Round(sent, calls, screens)
        self._taken.append(tool_round)
        self._newest |= {name: tool_round for name in (*screens, *(call.was for call in calls))}

    def _take_result(self, message: ToolMessage) -> None:
        tool_round = self._newest.get(message.tool_call_id)
        call = (
            next((call for call in tool_round.open if call.was == message.tool_call_id), None)
            if tool_round
            else None
        )
        if tool_round is not None and call is not None:
            tool_round.open.remove(call)
            tool_round.results.append(
                message
                if call.id == call.was
                else message.model_copy(update={"tool_call_id": call.id})
            )
        elif tool_round is not None and message.tool_call_id in tool_round.screens:
            tool_round.screens.remove(message.tool_call_id)
            tool_round.results.append(message)
        else:
            self.dropped += 1
            return
        self.moved += self._taken[-1] is not tool_round

    def answered(self) -> Iterator[BaseMessage]:
        """The messages, every call with its result behind it."""
        for entry in self._taken:
            if not isinstance(entry, _Round):
                yield entry
                continue
            unanswered = [*entry.screens, *(call.id for call in entry.open)]
            entry.message = without_own_calls(entry.message, unanswered)
            yield entry.message
            custom = entry.custom(self._rules)
            for result in (*entry.results, *map(_no_result, entry.open)):
                yield as_custom(result) if result.tool_call_id in custom else result
            self.added += len(entry.open)


def _no_result(call: SentCall) -> ToolMessage:
    """What replaces a result that there is not."""
    name = call.call["name"]
    unread = (
        call.unread
        if call.unread is None or len(call.unread) <= _LONGEST_UNREAD
        else call.unread[:_LONGEST_UNREAD] + "…"
    )
    says = (
        NO_RESULT.format(name=name)
        if unread is None
        else UNREAD.format(name=name, unread=unread or "(none)")
    )
    kwargs = inserted("no result")
    return ToolMessage(
        says,
        tool_call_id=call.id,
        name=name,
        id=f"no-result-{call.id}",
        status="error",
        additional_kwargs=kwargs,
    )


# -- the fast way: what is valid is left alone -----------------------------------------------------


def _is_valid(messages: Sequence[BaseMessage], rules: ProviderRules) -> bool:
    """Whether nothing would change; False may be wrong, and costs time alone."""
    roles = roles_of(messages)
    return (
        is_in_order(messages, roles, rules)
        and BaseMessage not in roles
        and _is_sound(messages, roles, rules)
    )


def _is_sound(
    messages: Sequence[BaseMessage], roles: Sequence[type[BaseMessage]], rules: ProviderRules
) -> bool:
    """Whether calls and results are as they should, and every message can be sent as it is.

    It walks through all of a long conversation: it looks at each message once, into its dict, and
    makes no objects for it.
    """
    waiting: list[str] = []
    used: set[str] = set()
    rich: list[BaseMessage] = []
    for at, (message, role) in enumerate(zip(messages, roles, strict=True)):
        fields = message.__dict__
        content = fields["content"]
        plain = content.__class__ is str and (fields["name"] is None or role is ToolMessage)
        if role is ToolMessage:
            if fields["tool_call_id"] not in waiting:
                return False
            waiting.remove(fields["tool_call_id"])
        elif waiting:
            return False
        elif role is AIMessage:
            calls = fields["tool_calls"]
            if calls and not _take_calls(calls, waiting, used, rules.longest_id):
                return False
            plain = plain and (not content.isspace() if content else bool(calls))
            plain = plain and not fields["invalid_tool_calls"]
        else:
            plain = plain and content and not content.isspace()
        if not plain:
            if not _is_sent_as_it_is(messages, at, rules):
                return False
            rich.append(message)
    together = with_few_marks(paired(rich, rules), rules)
    return not waiting and all(map(is_, together, rich))


def _take_calls(
    calls: Sequence[ToolCall], waiting: list[str], used: set[str], longest_id: int
) -> bool:
    """Whether all calls of a message have names and unique ids; they then wait for results."""
    for call in calls:
        name = call["id"]
        if (
            name is None
            or name in used
            or not is_plain(name, longest_id)
            or not is_plain(call["name"], LONGEST_NAME)
        ):
            return False
        used.add(name)
        waiting.append(name)
    return True


_FOLLOWING: Final = HumanMessage("(The user goes on.)")


def _is_sent_as_it_is(messages: Sequence[BaseMessage], at: int, rules: ProviderRules) -> bool:
    message = messages[at]
    if not is_sent_form(message) or sent_message(message, rules) is not message:
        return False
    if paired([message, _FOLLOWING], rules)[0] is not message:
        return False
    return not isinstance(message, AIMessage) or (
        len(call_ids(message)) <= len(message.tool_calls)
        and not custom_calls(message)
        and sent_calls(message, CallIds(rules.longest_id))[0] is message
    )
