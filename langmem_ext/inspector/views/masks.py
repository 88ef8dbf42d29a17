"""Sensitive values are hidden: in messages by marks, elsewhere by names and values.

A message is marked when it is read, which may be a step after it was stored: until then, and at
the steps before, it is hidden as it was marked at last.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage

from langmem_ext.inspector.sources.source import Path
from langmem_ext.messages.annotations import HIDDEN, NAMESPACE, is_marked, shown_text
from langmem_ext.messages.shown import shown
from langmem_ext.messages.text import words_of
from langmem_ext.messages.token_costs.media import encoded_in
from langmem_ext.waiting.sensitive import IDS, KNOWN, Known, Secrets, secrets_in

DECLARED: Final = "sensitive_params"
"""The channel in which a thread says which of its parameters are sensitive."""

WAITING: Final = "waiting_for_param"
"""The channel by which a thread is known to be a waiting graph's."""

HOLDERS: Final = ("params", "suspended", "last_result", "plan", "understood")
"""Channels in which a value may stand under its parameter's name."""

INPUTS: Final = ("__start__", "__resume__")
"""Where LangGraph keeps what a user said until it is in a message."""

READS: Final = ("branch:to:classify", "branch:to:before_classify")
"""The channels that hold something while a waiting graph is still to read the last message."""

SHORTEST: Final = 4
"""Characters that a value has at least to be looked for inside other texts: a shorter one is hidden
under its name alone."""


@dataclass(frozen=True, slots=True)
class Masks:
    """What of a state is hidden.

    Attributes:
        names: Parameters whose values are hidden.
        secrets: The values of these that are known, and are hidden wherever they stand.
        revealed: Whether nothing is hidden: who looks is the owner, and has asked for it.
        waits: Whether a waiting graph runs on the thread, or perhaps will.
        later: Messages that were not read yet, by id, as they were marked at last.
        known: Values that the thread recognises, though it no longer holds them.
    """

    names: frozenset[str] = frozenset()
    secrets: Secrets = ()
    revealed: bool = False
    waits: bool = False
    later: Mapping[str | None, BaseMessage] = field(default_factory=dict)
    known: tuple[Known, ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, Any], *, revealed: bool = False) -> Masks:
        """The masks of a state: the parameters that its thread declares sensitive.

        Of a waiting graph, also those that it does not declare harmless.
        """
        declared = values.get(DECLARED)
        flags = declared if isinstance(declared, Mapping) else {}
        names = {name for name, flag in flags.items() if flag is not False}
        params = values.get("params")
        if isinstance(params, Mapping) and (WAITING in values or DECLARED in values):
            names |= {name for name in params if name not in flags}
        secrets = secrets_in(
            frozenset(names), *(values[name] for name in HOLDERS if name in values)
        )
        return cls(
            frozenset(names),
            tuple((name, secret) for name, secret in secrets if len(secret) >= SHORTEST),
            revealed,
            waits=WAITING in values or DECLARED in values,
            known=(known,) if (known := Known.of(values)).values else (),
        )

    def __or__(self, other: Masks) -> Masks:
        """What either of them hides."""
        return Masks(
            self.names | other.names,
            tuple(dict.fromkeys((*self.secrets, *other.secrets))),
            self.revealed,
            self.waits or other.waits,
            {**self.later, **other.later},
            tuple(dict.fromkeys((*self.known, *other.known))),
        )

    @property
    def hides(self) -> bool:
        """Whether anything may be hidden."""
        return not self.revealed

    def text(self, text: str) -> str:
        """A text without the values that are known."""
        if not self.revealed:
            for _, secret in self.secrets:
                text = text.replace(secret, HIDDEN)
            for known in self.known:
                text = known.hide(text)
        return text

    def seen(self, message: BaseMessage) -> BaseMessage:
        """The message as it was marked at last."""
        return message if self.revealed else self.later.get(message.id, message)

    def shown(self, message: BaseMessage) -> BaseMessage:
        """The message as views show it: all that they show besides its text is read from here."""
        if self.revealed:
            return message
        message = shown(self.seen(message))
        fields = {name: value for name, value in vars(message).items() if name != "type"}
        return message.model_copy(update=self._masked(fields))

    def _masked(self, value: Any) -> Any:
        """Nested data without the values that are known; what is encoded shows none."""
        if isinstance(value, str):
            return value if encoded_in(value) else self.text(value)
        if isinstance(value, Mapping):
            return {
                self._masked(key): part if key in IDS else self._masked(part)
                for key, part in value.items()
            }
        return [*map(self._masked, value)] if isinstance(value, list | tuple) else value

    def message_text(self, message: BaseMessage) -> str:
        """What a message says, as views show it."""
        if self.revealed:
            return words_of(vars(message))
        return self.text(shown_text(vars(self.seen(message))))

    def hides_data(self, message: BaseMessage) -> bool:
        """Whether a message's data besides its text (arguments, images) is hidden."""
        return not self.revealed and is_marked(vars(self.seen(message)))

    def hides_channel(self, channel: str) -> bool:
        """Whether all that a channel holds is hidden: what nobody has read, and digests."""
        return not self.revealed and (channel == KNOWN or (self.waits and channel in INPUTS))

    def path(self, path: Path) -> str | None:
        """A path as JSON; None where a key of it is a hidden value."""
        hidden = not self.revealed and any(self.text(str(key)) != str(key) for key in path)
        return None if hidden else json.dumps(path)

    def hides_name(self, name: object) -> bool:
        """Whether what stands under a name is hidden."""
        return not self.revealed and name in self.names


def later_of(
    messages: Iterable[BaseMessage],
    held: Container[str],
    read: Callable[[str], object],
    newest: Container[str],
) -> dict[str | None, BaseMessage]:
    """The messages among these that were still to be read, by id, as they were marked at last.

    Of one that was never read, all is hidden: nothing says what it holds.

    Args:
        messages: The last message of a step, or what was written to it.
        held: The channels that hold something at the step.
        read: Gives a message, by its id, as the newest checkpoint has it; None if it has not.
        newest: The channels that hold something there.
    """
    later: dict[str | None, BaseMessage] = {}
    for message in messages:
        if _is_unread(message, held):
            last = read(message.id) if message.id else None
            later[message.id] = (
                last
                if isinstance(last, BaseMessage) and not _is_unread(last, newest)
                else as_unread(message)
            )
    return later


def as_unread(message: BaseMessage) -> BaseMessage:
    """A message of which all is hidden, as nothing says yet what it holds."""
    notes = {NAMESPACE: {"sensitive": ["not read yet"]}}
    return message.model_copy(update={"additional_kwargs": notes})


def _is_unread(message: BaseMessage, held: Container[str]) -> bool:
    return (
        isinstance(message, HumanMessage)
        and not is_marked(vars(message))
        and any(channel in held for channel in READS)
    )
