"""What a message says, as a list of commands: the one language of rules, models and the policy.

Reading a message makes the list (`understand`); carrying it out is the policy's. Both are pure.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import JsonValue

By: TypeAlias = Literal["rules", "model", "client"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Command:
    """What is common to all: who read it, why, and how sure that is. `why` never holds a value.

    `since` is, of a message that asks for nothing known, the id of the first such message in a row.
    """

    by: By = "rules"
    why: str = ""
    confidence: float = 1.0
    since: str = ""


@dataclass(frozen=True, slots=True)
class Start(_Command):
    """The user asks for something.

    Attributes:
        intent: The intent's id.
        values: What the same message gives for it, by parameter.
        left: What the message leaves open of it: values to choose from, to confirm, or refused.
        unsure: Whether it is only likely that the user asks for it.
        another: Whether the message makes several requests of this kind: none of them goes on with
            one that waits already.
    """

    intent: str
    values: tuple[tuple[str, JsonValue], ...] = ()
    left: tuple[Clarify | Refuse, ...] = ()
    unsure: bool = False
    another: bool = False


@dataclass(frozen=True, slots=True)
class Fill(_Command):
    """The user gives a value for a parameter of the request that runs.

    Attributes:
        param: The parameter.
        value: Its value.
        silent: Whether it was asked about, and the user goes on without a word against it.
    """

    param: str
    value: JsonValue
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Correct(_Command):
    """The user takes a value back and gives another."""

    param: str
    value: JsonValue


@dataclass(frozen=True, slots=True)
class Refuse(_Command):
    """The user gives a value that cannot be taken.

    Attributes:
        param: What it is a value of.
        problem: What is wrong, as the user is told.
        half: What counts of it all the same, until the rest is said: the day of a moment.
    """

    param: str
    problem: str
    half: str = ""


@dataclass(frozen=True, slots=True)
class Confirm(_Command):
    """Yes to what was asked."""


@dataclass(frozen=True, slots=True)
class Deny(_Command):
    """No to what was asked."""


@dataclass(frozen=True, slots=True)
class Cancel(_Command):
    """The running request is to be dropped."""


@dataclass(frozen=True, slots=True)
class Reset(_Command):
    """Everything is to be forgotten."""


@dataclass(frozen=True, slots=True)
class Decline(_Command):
    """The user does not have the value, or will not give it."""

    param: str


@dataclass(frozen=True, slots=True)
class DontCare(_Command):
    """Any value will do."""

    param: str


@dataclass(frozen=True, slots=True)
class Ask(_Command):
    """The user asks something back.

    Attributes:
        about: The parameter that it is about; None: something that the catalog does not answer.
        answer: What the application says to it; empty where it says nothing.
    """

    about: str | None = None
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Clarify(_Command):
    """Two readings are too close to choose.

    Attributes:
        intents: The intents that the message may ask for.
        param: The parameter whose value may be one of `choices`.
        choices: The values.
    """

    intents: tuple[str, ...] = ()
    param: str | None = None
    choices: tuple[JsonValue, ...] = ()


@dataclass(frozen=True, slots=True)
class Chat(_Command):
    """The user greets, thanks, asks for help, or talks."""

    kind: Literal["hello", "thanks", "help", "bye", "talk"]


@dataclass(frozen=True, slots=True)
class Repeat(_Command):
    """The question is to be said again."""


@dataclass(frozen=True, slots=True)
class HandOver(_Command):
    """The user wants a person."""


@dataclass(frozen=True, slots=True)
class Unclear(_Command):
    """Nothing of the above: the only command that costs an attempt."""


Command: TypeAlias = (
    Start
    | Fill
    | Correct
    | Refuse
    | Confirm
    | Deny
    | Cancel
    | Reset
    | Decline
    | DontCare
    | Ask
    | Clarify
    | Chat
    | Repeat
    | HandOver
    | Unclear
)


def as_json(commands: Sequence[Command], hidden: Set[str]) -> list[dict[str, Any]]:
    """The commands as plain JSON, for the channel that shows what was understood.

    Args:
        commands: What a message says.
        hidden: Parameters whose values are left out.
    """
    every = [
        each
        for command in commands
        for each in (command, *(command.left if isinstance(command, Start) else ()))
    ]
    return [_as_json(command, hidden) for command in every]


def _as_json(command: Command, hidden: Set[str]) -> dict[str, Any]:
    shown: dict[str, Any] = {"command": type(command).__name__.lower(), "by": command.by}
    match command:
        case Start(intent, values):
            shown |= {
                "intent": intent,
                "values": {name: value for name, value in values if name not in hidden},
            }
        case Fill(param, value) | Correct(param, value):
            shown |= {"param": param} | ({} if param in hidden else {"value": value})
        case Refuse(param) | Decline(param) | DontCare(param):
            shown |= {"param": param}
        case Ask(about) if about is not None:
            shown |= {"about": about}
        case Clarify(intents, param):
            shown |= {"intents": list(intents)} if intents else {"param": param}
        case Chat(kind):
            shown |= {"kind": kind}
        case _:
            pass
    answered = isinstance(command, Ask) and command.answer
    return (
        shown
        | ({"since": command.since} if command.since and not answered else {})
        | {"confidence": round(command.confidence, 2)}
        | ({"why": command.why} if command.why else {})
    )
