"""A user's message, and the values that can be read from it without a question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from langchain_core.messages import BaseMessage

from langmem_ext.messages.search.spans import Span
from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.extract import LONGEST, find
from langmem_ext.waiting.extract.codes.identifier import compiled, in_any_case
from langmem_ext.waiting.sensitive import NOTHING_KNOWN, Known, Secrets


@dataclass(frozen=True, slots=True)
class Heard:
    """What the user said.

    Attributes:
        id: Id of the message.
        text: What it says.
        history: The messages before it, oldest first.
        now: When it is worked on.
        answer: What a client's answer means that is no words (`Answer.note`).
        summary: What was said before the history, in short; empty where no model may see it.
        known: The sensitive values that are known, and what looks like one in the message.
    """

    id: str
    text: str
    history: Sequence[BaseMessage]
    now: datetime
    answer: Mapping[str, Any] | None = None
    summary: str = ""
    known: Known = NOTHING_KNOWN


def candidates(playbook: Playbook, names: Iterable[str], heard: Heard) -> dict[str, Extraction]:
    """The words of the message that may be a value of these parameters, some of them of several."""
    params = [playbook.catalog.params[name] for name in names]
    read = {param.name: _first_value(param, heard, params) for param in params}
    return {name: extraction for name, extraction in read.items() if extraction is not None}


_BY_FORM: Final = frozenset({ParamType.EMAIL, ParamType.PHONE, ParamType.URL})
"""Types whose values are known by their form, whatever was asked."""

_EACH: Final = 8
"""Values of one parameter that are read in one message, at most; what matches a pattern as it
stands is always found."""


def spotted(playbook: Playbook, text: str, now: datetime) -> Secrets:
    """What looks like a sensitive value in a text, whatever it was said for.

    That is what a sensitive parameter's pattern matches, unless ordinary words match it, too, and
    e-mail addresses, telephone numbers and URLs. A part of another parameter's value is none.
    """
    declared = playbook.catalog.params
    sensitive = [declared[name] for name in sorted(playbook.sensitive & declared.keys())]
    if not sensitive:
        return ()
    others = [
        match.span()
        for name in declared.keys() - playbook.sensitive
        if (pattern := _telling(playbook, declared[name]))
        for match in pattern.finditer(text)
        if not re.search(r"\s", match[0])
    ]
    secrets: list[tuple[str, str]] = []
    for param in sensitive:
        rest, pattern = text, _telling(playbook, param)
        for match in pattern.finditer(text) if pattern else ():
            if not any(_is_within(match.span(), span) for span in others):
                secrets.append((param.name, match[0]))
                rest = _blanked(rest, match.span())
        if param.type != ParamType.TEXT and (pattern or param.type in _BY_FORM):
            secrets += _read(param, rest, now)
    return secrets


def _telling(playbook: Playbook, param: Param) -> re.Pattern[str] | None:
    """What finds values of the parameter's pattern; None if it matches ordinary words."""
    if param.pattern is None:
        return None
    pattern = in_any_case(compiled(param.name, param.pattern))
    if any(map(pattern.fullmatch, playbook.familiar)):
        return None
    body = re.sub(r"\A\(\?[a-zA-Z]+\)", "", pattern.pattern)  # its flags, which it keeps
    return re.compile(rf"(?<!\w)(?:{body})(?!\w)", pattern.flags)


def _is_within(span: Span, other: Span) -> bool:
    return span != other and other[0] <= span[0] and span[1] <= other[1]


def _read(param: Param, text: str, now: datetime) -> Iterator[tuple[str, str]]:
    """The parameter's values as its reader finds them: spelled, or by their form."""
    for _ in range(_EACH):
        read = _first_value(param, Heard("", text, (), now), ())
        if read is None or read.span is None:
            return
        yield param.name, text[slice(*read.span)]
        text = _blanked(text, read.span)


def _blanked(text: str, span: Span) -> str:
    return f"{text[: span[0]]}{' ' * (span[1] - span[0])}{text[span[1] :]}"


_SEARCHED: Final = 4_000
"""Characters of a message in which sensitive values are looked for: further than others, for they
are to be hidden."""

_COMMON: Final = 100
"""Characters that two parts of a long message have in common, so that each value is whole in one of
them."""


def _first_value(param: Param, heard: Heard, others: Sequence[Param]) -> Extraction | None:
    """The first value that a part of the message holds."""
    for start in range(0, max(1, min(len(heard.text), _SEARCHED) - _COMMON), LONGEST - _COMMON):
        extraction = find(param, heard.text[start : start + LONGEST], now=heard.now, others=others)
        if extraction.status == "filled" and extraction.span:
            return replace(
                extraction, span=(start + extraction.span[0], start + extraction.span[1])
            )
    return None
