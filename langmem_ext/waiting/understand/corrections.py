"""Values that a user takes back: "sorry, I meant O-2", "no wait, saturday".

English; pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from pydantic import JsonValue

from langmem_ext.waiting.catalog.catalog import IntentCatalog
from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract import Reply, extract, find
from langmem_ext.waiting.extract.codes.identifier import form_of
from langmem_ext.waiting.extract.english.attitude import wishes_by_asking
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, word_set
from langmem_ext.waiting.extract.english.vocabulary import own_stems, stem
from langmem_ext.waiting.understand.acts import (
    WHAT,
    is_question,
    names,
    without_part,
    words_without_values,
)
from langmem_ext.waiting.understand.likely_time import nearest

OPEN = 0.5
"""Up to this confidence a value is read that nothing marks as one."""

_STRONG = re.compile(
    r"\bi me(?:an|ant)\b|\b(?:mistake|typo|wrong|incorrect|misread|misspelled|mistyped|mixed"
    r" up|correction)\b|"
    r"\bshould (?:be|have"
    r" been|read)\b|\bnot\b.+\bbut\b|\b(?:change|correct|update|fix|switch|set)\b.+\bto\b",
    re.IGNORECASE,
)
_WEAK = re.compile(
    r"\b(?:sorry|oops|actually|wait|hold on|hang on|rather|instead|scratch that|make"
    r" (?:it|that))\b|"
    r"^\W*no\b|^\W*not\b(?! (?:sure|really|yet|now)\b).*[,;.]",
    re.IGNORECASE,
)
_DISOWNED = re.compile(
    r"(?:['’]s|\s+(?:is|was))?\s+(?:wrong|incorrect|not right|not correct|a mistake|a typo)\b",
    re.IGNORECASE,
)
"""What follows a value that is not meant."""
_CORRECTED = tuple(
    re.compile(rf"{before}[\s,:]+(?:it(?:['’]?s| is) )?(?P<value>.+)", re.IGNORECASE | re.DOTALL)
    for before in (
        r".*\bi mean(?:t)?(?: to (?:say|type|write))?\b",
        r"\b(?:change|correct|update|fix|switch|set)\b.+?\bto\b",
        r"\bshould (?:be|have been|read)\b",
        r"\bnot\b.+?\bbut\b",
        r"\b(?:mistake|typo|wrong|incorrect|correction)\b.*?\bit(?:['’]?s| is| was| should be)\b",
        r"\bmake (?:it|that)\b",
        r"\bactually\b.*\b(?:can|could|may) (?:you|we|i) (?:do|have|get|take|make it)\b",
    )
)
"""Where the new value begins, the surest way to say so first."""

_CORRECTING_WORDS = (
    "mean meant wrong incorrect mistake typo typed misread misspelled mistyped mixed correction"
    " correct change update fix switch set make wait hold hang scratch said say told gave entered"
    " wrote rather instead oops bad previous earlier old new read one number value think thought"
    " believe guess way round around"
)
_CORRECTING = frozenset(map(stem, _CORRECTING_WORDS.split()))
"""Words of a correction that are no request by themselves."""

_ASKING = word_set("who whom whose what which where when why how")


def correction(
    text: str,
    catalog: IntentCatalog,
    params: Mapping[str, JsonValue],
    *,
    now: datetime,
    waiting_for: str | None = None,
    among: Collection[str] | None = None,
) -> dict[str, JsonValue]:
    """New values for parameters that the message corrects: "sorry, I meant O-2".

    Args:
        text: The message.
        catalog: Declares the parameters.
        params: Values known already. Only these are corrected, and those that the message names.
        now: When the message was written.
        waiting_for: The parameter that is being asked for; a value that may be its answer corrects
            no other, unless that one is named.
        among: Parameters that may be corrected without having a value yet, when they are named; all
            of them if None.

    Returns:
        The corrected parameters; empty if the message corrects nothing. A value that is the known
        one already is no correction.
    """
    text = WHAT.sub(lambda match: " " * len(match.group()), text)
    exchanged, rest = ({}, text) if is_question(text) else _exchanged(text, catalog, params, now)
    left = {name: value for name, value in params.items() if name not in exchanged}
    return {**_corrected(rest, catalog, left, now, waiting_for, among), **exchanged}


def _corrected(
    text: str,
    catalog: IntentCatalog,
    params: Mapping[str, JsonValue],
    now: datetime,
    waiting_for: str | None,
    among: Collection[str] | None,
) -> dict[str, JsonValue]:
    """The same of a message that denies none of the values."""
    text, denied = without_denied(text)
    cue = next((match for pattern in _CORRECTED if (match := pattern.search(text))), None)
    strong = denied or _STRONG.search(text) is not None
    if not (cue or strong or _WEAK.search(text)):
        return {}
    correction_text = cue["value"] if cue else text  # "did I say 50? I meant 15" asks nothing
    if is_question(text) and is_question(correction_text) and not wishes_by_asking(text):
        return {}
    if beside := _beside_known(text, catalog, params, now):
        return beside
    pool = _correctable(text, catalog, params, waiting_for, among)
    marked = _marked(text, pool, params, now, catalog.params.get(waiting_for or ""))
    rest = words_without_values(
        text, [extraction.span for _, extraction in marked if extraction.span]
    )
    if marked:
        certain = (
            marked
            if denied or not _says_more(rest, marked, params)
            else _right_after(cue, text, marked, params)
        )
        return {param.name: extraction.value for param, extraction in certain}
    if cue is None:
        return {}
    asked = catalog.params.get(waiting_for or "")
    free = waiting_for is None or (asked is not None and not _reads(asked, cue["value"], now))
    new = _meant(text, cue["value"], pool, params, now, free=free)
    return {
        param.name: extraction.value
        for param, extraction in new
        if strong or extraction.confidence > OPEN
    }


_EXCHANGED = re.compile(
    r"\b(?:not|is\s?n['’]?t|instead of|rather than) (?:(?:the|at|on|in|for|to|an?) )*"
    r"(?P<old>[^,.;!?\s](?:[^,.;!?\s]|\.(?=\d)| (?!but\b)){0,40})",
    re.IGNORECASE,
)
"""A value that is not meant: the known one, where another stands beside it."""
_DENIALS = 3
"""Values of one message that are not meant, at most."""


def _exchanged(
    text: str, catalog: IntentCatalog, params: Mapping[str, JsonValue], now: datetime
) -> tuple[dict[str, JsonValue], str]:
    """A new value for the only known one that the message denies, and what else it says."""
    new: dict[str, JsonValue] = {}
    left = text
    for match in islice(_EXCHANGED.finditer(text), _DENIALS):
        rest = without_part(text, match.span())
        for name, value in params.items():
            param = catalog.params[name]
            denied = Reply(match["old"], prompt=param.prompt or "?", filled=params, now=now)
            old = extract(param, denied)
            if value not in (old.value, *old.choices):
                continue
            extraction = _instead(param, rest, now, params)
            meant = nearest(extraction.choices, value) if extraction.choices else extraction.value
            if meant not in (None, value):
                new[name] = meant
                left = without_part(rest, extraction.span) if extraction.span else ""
    return (new, left) if len(new) == 1 else ({}, text)


def _instead(param: Param, rest: str, now: datetime, params: Mapping[str, JsonValue]) -> Extraction:
    """The value of a message that denies the known one; without a span where it is all there is."""
    extraction = find(param, rest, now=now, filled=params)
    if extraction.status == "filled" or len(rest.split()) > _FEW_WORDS:
        return extraction
    bare = _BEFORE_NEW.sub("", rest, count=1).strip()
    return replace(extract(param, Reply(bare, prompt=param.prompt or "?", now=now)), span=None)


_BEFORE_NEW = re.compile(
    r"^\W*(?:(?:no|nope|sorry|oh|oops|wait|actually|but|rather|it['’]?s|make it)\b\W*)+",
    re.IGNORECASE,
)
"""Words before the value that takes the place of another."""
_FEW_WORDS = 5
"""Words of a message that may be a value as a whole, at most."""


def takes_something_back(text: str) -> bool:
    """Whether a message has words of a correction: "sorry", "wait", "I meant"."""
    return _STRONG.search(text) is not None or _WEAK.search(text) is not None


_OF_DAYS = frozenset({ParamType.DATE, ParamType.TIME})


def _beside_known(
    text: str, catalog: IntentCatalog, params: Mapping[str, JsonValue], now: datetime
) -> dict[str, JsonValue]:
    """A day or time for the only one that the message names too: "sorry 15th, late on the 14th"."""
    new: dict[str, JsonValue] = {}
    for name, value in params.items():
        param = catalog.params.get(name)
        if param is None or param.type not in _OF_DAYS:
            continue
        first = find(param, text, now=now)
        rest = without_part(text, first.span) if first.span else text
        second = find(param, rest, now=now)
        values = [
            extraction.value for extraction in (first, second) if extraction.status == "filled"
        ]
        if len(values) == 2 and value in values and values[0] != values[1]:
            new[name] = values[1] if values[0] == value else values[0]
    return new if len(new) == 1 else {}


_DENIED = re.compile(
    r"(?<=\w)\s*[,;.–-]*\s*\b(?:and )?not (?:the |at |on |in |for |to )?[^,.;]{1,40}\s*$",
    re.IGNORECASE,
)
"""A value that the end of a message says is not meant: "six weeks, not four"."""


def without_denied(text: str) -> tuple[str, bool]:
    """The message without a value that its end says is not meant, and whether it had one."""
    match = _DENIED.search(text)
    if match is None or not re.search(r"\d|\w{3}", text[: match.start()]):
        return text, False
    return text[: match.start()] + " " * (match.end() - match.start()), True


def _correctable(
    text: str,
    catalog: IntentCatalog,
    params: Mapping[str, JsonValue],
    waiting_for: str | None,
    among: Collection[str] | None,
) -> list[Param]:
    """The parameters that a correction may be about: named ones first, then others with a value."""
    open_names = catalog.params if among is None else among
    others = [param for name, param in catalog.params.items() if name != waiting_for]
    named = [
        param
        for param in others
        if names(text, param) and (param.name in params or param.name in open_names)
    ]
    return named + [param for param in others if param.name in params and param not in named]


def _marked(
    text: str,
    pool: Sequence[Param],
    params: Mapping[str, JsonValue],
    now: datetime,
    asked: Param | None,
) -> list[tuple[Param, Extraction]]:
    """The clearly marked values of the message, each for the first parameter that it fits."""
    marked: list[tuple[Param, Extraction]] = []
    for param in pool:
        rest = _without_value(text, params.get(param.name))
        extraction = find(
            param,
            rest,
            now=now,
            others=[other for other in pool if other is not param],
            filled=params,
        )
        if extraction.status != "filled" or extraction.value == params.get(param.name):
            continue
        if extraction.span and _DISOWNED.match(text[extraction.span[1] :]):
            continue
        taken = any(extraction.span == other.span for _, other in marked)
        answers = (
            asked is not None and not names(text, param) and _may_answer(asked, param, extraction)
        )
        if not taken and not answers:
            marked.append((param, extraction))
    return marked


def _may_answer(asked: Param, param: Param, extraction: Extraction) -> bool:
    """Whether what was found for `param` may as well be the answer to the question for `asked`."""
    form = form_of(asked.pattern, asked.examples)
    return asked.type is param.type and (
        form is None or re.fullmatch(form, str(extraction.value), re.IGNORECASE) is not None
    )


def _reads(asked: Param, value: str, now: datetime) -> bool:
    """Whether what is said anew may answer the question that waits."""
    return extract(asked, Reply(value, prompt=asked.prompt or "?", now=now)).status != "abstained"


def _says_more(
    rest: str, marked: Sequence[tuple[Param, Extraction]], params: Mapping[str, JsonValue]
) -> bool:
    """Whether the rest of a message has words that no correction needs: then it asks for something.

    `rest` is the message without its new values.
    """
    for param, _ in marked:
        rest = _without_value(rest, params.get(param.name))
    known = _CORRECTING.union(*(own_stems(param) for param, _ in marked))
    words = re.findall(r"[^\W\d_]+(?:['’]\w+)?", rest.lower())
    return any(
        word in _ASKING or (word not in FUNCTION_WORDS and stem(word) not in known)
        for word in words
    )


def _right_after(
    cue: re.Match[str] | None,
    text: str,
    marked: Sequence[tuple[Param, Extraction]],
    params: Mapping[str, JsonValue],
) -> list[tuple[Param, Extraction]]:
    """The new values right after the words of a correction: "I meant O-2, it is for my mother"."""
    begin = cue.start("value") if cue else len(text)
    behind = [
        (param, extraction)
        for param, extraction in marked
        if extraction.span and extraction.span[0] >= begin
    ]
    first = min((extraction.span[0] for _, extraction in behind if extraction.span), default=begin)
    return [] if _says_more(text[begin:first], behind, params) else behind


def _meant(
    text: str,
    value: str,
    pool: Sequence[Param],
    params: Mapping[str, JsonValue],
    now: datetime,
    *,
    free: bool,
) -> list[tuple[Param, Extraction]]:
    """The value after the words of a correction, if it fits one parameter only.

    Such a value may have any form.

    Where it is not `free`, it may answer the question that waits, unless the message names what it
    is about.
    """
    named = [param for param in pool if names(text, param)]
    about = named or [param for param in pool if param.type is not ParamType.TEXT and free]
    if not value.strip():
        return []
    read = [
        (
            param,
            extract(
                param,
                Reply(
                    _without_value(value, params.get(param.name)),
                    prompt=param.prompt or "?",
                    filled=params,
                    now=now,
                ),
            ),
        )
        for param in about
    ]
    if len(about) > 1 and any(extraction.choices for _, extraction in read):
        return []
    new = [
        (param, extraction)
        for param, extraction in read
        if extraction.status == "filled" and extraction.value != params.get(param.name)
    ]
    if len(about) > 1:  # then only what can be nothing else
        new = [(param, extraction) for param, extraction in new if extraction.confidence > OPEN]
    return new if len(new) == 1 else []


def _without_value(text: str, value: JsonValue) -> str:
    """The message with the known value blanked: "not O-1 but O-2" corrects to O-2."""
    if value is None or isinstance(value, bool) or value == "":
        return text
    written = f"{value:g}" if isinstance(value, float) else str(value)
    return re.sub(
        rf"(?<![\w.,]){re.escape(written)}(?!\w|[.,]\d)",
        lambda match: " " * len(match.group()),
        text,
        flags=re.IGNORECASE,
    )
