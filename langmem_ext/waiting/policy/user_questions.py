"""The user's questions that the application answers: their input, and where answers go.

Pure functions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.policy.table import helped
from langmem_ext.waiting.understand.commands import Ask, Command
from langmem_ext.waiting.understand.intents.local import without_local
from langmem_ext.waiting.understand.message import Heard
from langmem_ext.waiting.understand.requests import request_of


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question of the user's, instead of an answer or on its own.

    Attributes:
        text: The message, without values of parameters that are sensitive or `local_only`.
        param: The parameter that it is about; None if it is about something else.
        known: The catalog's answer; empty if it has none.
        intent: Id of the running request, or None.
        local: Whether a value is asked for that no model may see: any word of the message might be
            it.
    """

    text: str
    param: Param | None
    known: str
    intent: str | None
    local: bool = False


Answer: TypeAlias = Callable[[AskedQuestion], str | None | Awaitable[str | None]]
"""Answers a question, or gives None: then the catalog's own words are said. With `ainvoke` it may
be async."""


def answered(
    playbook: Playbook, session: Session, heard: Heard, commands: Sequence[Command]
) -> Generator[AskedQuestion, str | None, list[Command]]:
    """The commands, each question with the application's answer."""
    answered_commands: list[Command] = []
    for command in commands:
        if isinstance(command, Ask):
            param = playbook.param(command.about) if command.about else None
            text = without_local(heard.text, request_of(playbook, session, heard))
            intent = session.plan["intent_id"] if session.plan else None
            local = session.waiting_for in playbook.local
            answer = yield AskedQuestion(text, param, helped(param) if param else "", intent, local)
            command = replace(
                command, answer=(answer or "").strip()
            )  # the same one, with its answer
        answered_commands.append(command)
    return answered_commands
