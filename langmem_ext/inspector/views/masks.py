"""Sensitive values are hidden: in messages by marks, elsewhere by names and values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import BaseMessage

from langmem_ext.inspector.sources.source import Path
from langmem_ext.messages.annotations import HIDDEN, is_marked, shown_text
from langmem_ext.messages.text import words_of
from langmem_ext.waiting.sensitive import Secrets, secrets_in

DECLARED: Final = "sensitive_params"
"""The channel in which a thread says which of its parameters are sensitive."""

WAITING: Final = "waiting_for_param"
"""The channel by which a thread is known to be a waiting graph's."""

HOLDERS: Final = ("params", "suspended", "last_result", "plan", "understood")
"""Channels in which a value may stand under its parameter's name."""

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
    """

    names: frozenset[str] = frozenset()
    secrets: Secrets = ()
    revealed: bool = False

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
        return text

    def message_text(self, message: BaseMessage) -> str:
        """What a message says, as views show it."""
        return words_of(vars(message)) if self.revealed else self.text(shown_text(vars(message)))

    def hides_data(self, message: BaseMessage) -> bool:
        """Whether a message's data besides its text (arguments, images) is hidden."""
        return not self.revealed and is_marked(vars(message))

    def path(self, path: Path) -> str | None:
        """A path as JSON; None where a key of it is a hidden value."""
        hidden = not self.revealed and any(self.text(str(key)) != str(key) for key in path)
        return None if hidden else json.dumps(path)

    def hides_name(self, name: object) -> bool:
        """Whether what stands under a name is hidden."""
        return not self.revealed and name in self.names
