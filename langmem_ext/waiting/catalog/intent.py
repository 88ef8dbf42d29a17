"""An intent and a catalog of them, as declarations: what an intents file says, field by field.

Pure values. What may be done with them is in `catalog`; how they are read from a file in
`catalog_parse`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from langmem_ext.waiting.catalog.param import Param, Seconds

TEMPLATE_FIELD = re.compile(r"\{([^\W\d][\w.-]*)\}")
"""A place to fill in a reply template: `{param}` or `{result.key}`. Any other brace is text."""

_SWITCH = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}


def template_fields(template: str) -> tuple[str, ...]:
    """The names that a reply template fills in, in order: `("order_id", "result.status")`."""
    return tuple(TEMPLATE_FIELD.findall(template))


def _as_names(value: object) -> object:
    """One name may be written without a list, none as nothing."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else value


def _as_switch(value: object) -> object:
    """A bare `yes` means the switch, not a question that reads "yes"."""
    return _SWITCH.get(value.strip().lower(), value) if isinstance(value, str) else value


class Declaration(BaseModel):
    """A declaration in a catalog: frozen, and unknown keys are mistakes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Intent(Declaration):
    """One thing a user can ask for.

    Attributes:
        id: Its name.
        description: What it is, in a few words; prompts, menus and the model read it.
        examples: Messages with which users ask for it.
        patterns: Regular expressions searched in the message, case ignored; a match is a strong
            sign.
        required: Parameters to ask for before the first tool runs, in this order.
        optional: Parameters that are used if given, and never asked for.
        tool: The tools to call, in order; empty: the intent only replies.
        param_mapping: Parameter to tool argument, where the names differ; with several tools also
            tool to such a mapping.
        reply: Template of the answer: `{param}` and `{result.key}` are filled in.
        confirm: A question that must be answered with yes before the first tool runs; True asks
            `replies.confirm`.
    """

    id: str = Field(min_length=1)
    description: str = ""
    examples: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    tool: Annotated[tuple[str, ...], BeforeValidator(_as_names)] = ()
    param_mapping: Mapping[str, str | Mapping[str, str]] = Field(default_factory=dict)
    reply: str = ""
    confirm: Annotated[bool | str, BeforeValidator(_as_switch)] = False

    @property
    def param_names(self) -> tuple[str, ...]:
        """Its required and optional parameters, in this order."""
        return tuple(dict.fromkeys(self.required + self.optional))

    @property
    def takes_params_from_tool(self) -> bool:
        """Whether its parameters come from its tools: it has a tool and names no parameter."""
        return bool(self.tool) and not self.param_names

    def mapping_for(self, tool: str) -> dict[str, str]:
        """The arguments of `tool` by the parameters mapped to them; others have the same name."""
        general = {
            param: argument
            for param, argument in self.param_mapping.items()
            if isinstance(argument, str)
        }
        own = self.param_mapping.get(tool, {})
        return general if isinstance(own, str) else general | dict(own)


class Replies(Declaration):
    """The graph's own replies, as templates.

    Attributes:
        unknown: The message matches no intent of the catalog.
        cancelled: The user dropped the running request.
        nothing_to_cancel: The user cancels while nothing runs.
        reset: The user starts over.
        exhausted: A question was answered wrongly too often, and there is no `escalate_to`.
        failed: A tool failed with an error that is not meant for the user.
        back: An interrupted request continues.
        confirm: The question before a tool runs, for intents with `confirm: true`.
        read_back: The same for other intents, where something that the user said could not be
            read: "Book a table (date 2026-03-06). Is that right?"
        change: The user said no to that question.
        which: Two intents or two values fit a message; `{choices}` lists them.
        doubt: An uncertain value is confirmed; `{value}` is the value.
        expired: The user returns to an expired question; `{request}` is what it is for.
        hello: The user greets.
        thanks: The user thanks.
        bye: The user leaves.
        chat: The user talks about something else.
        help: The user asks for help while nothing runs; `{requests}` lists what can be asked for.
            Where the catalog has an `unknown` of its own and no `help`, that is said.
        help_waiting: The user asks for help while a question waits.
        corrected: The user has corrected a value.
        noted: The user has said other values than the one that was asked for; `{values}` lists
            them.
        repeat: The question is repeated.
        no_answer: The user asks something that the catalog does not answer, while a question is
            waiting.
        no_person: The user wants a person, and there is no `escalate_to`.
        declined: The user does not have what was asked for; `{request}` is what it is for.
        needed: Any value will do for the user, but one is needed; `{request}` is what it is for.
    """

    unknown: str = "Sorry, I did not understand that. Could you say it in other words?"
    cancelled: str = "All right, I have stopped that."
    nothing_to_cancel: str = "There is nothing to cancel right now."
    reset: str = "All right, let's start over. What can I do for you?"
    exhausted: str = "Sorry, I could not make that out, so I have stopped here."
    failed: str = "Sorry, something went wrong while I was doing that. Please try again later."
    back: str = "Back to your earlier request."
    confirm: str = "Shall I go ahead?"
    read_back: str = "Is that right?"
    change: str = "All right. What should I change?"
    which: str = "Do you mean: {choices}?"
    doubt: str = "Did you mean {value}?"
    expired: str = "It has been a while. Do you still want to {request}?"
    hello: str = "Hello! What can I do for you?"
    thanks: str = "You're welcome."
    bye: str = "Goodbye!"
    chat: str = "All right."
    help: str = "Here is what you can ask for: {requests}."
    help_waiting: str = 'You can answer my question, ask for something else, or say "cancel".'
    corrected: str = "All right."
    noted: str = "All right, {values}."
    repeat: str = "Once more:"
    no_answer: str = "I can't answer that here."
    no_person: str = "Sorry, I can't reach a person from here."
    declined: str = 'I need that to {request}. Take your time, or say "cancel".'
    needed: str = "It is up to you, and I need it to {request}."


OWN_FIELDS: Mapping[str, tuple[str, ...]] = {
    "which": ("choices",),
    "help": ("requests",),
    "doubt": ("value",),
    "noted": ("values",),
    "expired": ("request",),
    "declined": ("request",),
    "needed": ("request",),
}
"""What a reply may fill in besides parameters."""


class Redaction(Declaration):
    """What never reaches logs, telemetry, titles or a search index.

    Attributes:
        params: Names of parameters, as if each were declared `sensitive`.
    """

    params: tuple[str, ...] = ()


class CatalogFields(Declaration):
    """The parts of a catalog.

    Attributes:
        intents: What users can ask for, in file order.
        params: The parameters, by name.
        replies: The graph's own replies.
        escalate_to: Id of the intent that takes over when a question is answered wrongly too often.
        redaction: What is kept out of logs.
        timeout: Seconds, or "30m", "2h", "3d", after which an unanswered question has expired, for
            parameters without their own, and for confirmations; without one, questions wait for
            ever.
    """

    intents: tuple[Intent, ...] = ()
    params: Mapping[str, Param] = Field(default_factory=dict)
    replies: Replies = Field(default_factory=Replies)
    escalate_to: str | None = None
    redaction: Redaction = Field(default_factory=Redaction)
    timeout: Seconds | None = None
