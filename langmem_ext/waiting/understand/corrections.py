"""Other values of what is known already: "sorry, I meant O-2", "no wait, saturday", "4.30 then".

English; pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Final

from pydantic import JsonValue

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract import Reply, extract, find
from langmem_ext.waiting.extract.codes.identifier import form_of
from langmem_ext.waiting.extract.english.attitude import NO, asks_back, wishes_by_asking
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, word_set
from langmem_ext.waiting.extract.english.tokens import tokens
from langmem_ext.waiting.extract.english.vocabulary import own_stems, stem
from langmem_ext.waiting.extract.names.person import could_be_person, is_person
from langmem_ext.waiting.extract.validity import NUMERIC
from langmem_ext.waiting.understand.acts import (
    WHAT,
    is_meant,
    is_value_alone,
    names,
    without_part,
    words_without_values,
)
from langmem_ext.waiting.understand.clauses import Clause, clauses_of, without
from langmem_ext.waiting.understand.intents.similarity import units_of
from langmem_ext.waiting.understand.likely_time import nearest
from langmem_ext.waiting.understand.values import (
    SURE,
    Reading,
    alike,
    read_values,
    spans_of,
    values_of,
)

PLAIN_TYPES: Final = frozenset(
    {
        ParamType.DATE,
        ParamType.TIME,
        ParamType.INTEGER,
        ParamType.NUMBER,
        ParamType.MONEY,
        ParamType.ENUM,
        ParamType.EMAIL,
        ParamType.PHONE,
        ParamType.URL,
        ParamType.DATETIME,
        ParamType.DURATION,
    }
)
"""Types of which nobody speaks by the way, as of somebody else's order or name."""

_COUNTED: Final = PLAIN_TYPES - {
    ParamType.EMAIL,
    ParamType.PHONE,
    ParamType.URL,
    ParamType.ENUM,
}
"""Types of which a few words alone may be a value."""

_STRONG = re.compile(
    r"\bi me(?:an|ant)\b|\b(?:mistake|typo|wrong|incorrect|misread|misspelled|mistyped|mixed"
    r" up|correction)\b|"
    r"\bshould (?:be|have"
    r" been|read)\b|\bnot\b.{1,120}\bbut\b"
    r"|\b(?:change|correct|update|fix|switch|set)\b.{1,120}\bto\b",
    re.IGNORECASE,
)
_WEAK = re.compile(
    r"\b(?:sorry|oops|actually|wait|hold on|hang on|rather|instead|make (?:it|that)"
    r"|(?:scrap|scratch|strike|forget|drop) (?:that|it|this))\b|"
    r"^\W*no\b|^\W*not\b(?! (?:sure|really|yet|now)\b).*[,;.]",
    re.IGNORECASE,
)
_INSTEAD: Final = re.compile(
    r"\b(?:wait|sorry|oops|mixed (?:it |them )?up|mistyped|misread|typo)\b"
    r"|\b(?:put|make|have) (?:it|that|this) (?:under|on|in|to|for|as)\b",
    re.IGNORECASE,
)
"""Words that put a value of any type in the place of the known one: "put it under Ann Lee"."""
_DISOWNED = re.compile(
    r"(?:['’]s|\s+(?:is|was))?\s+(?:wrong|incorrect|not right|not correct|a mistake|a typo)\b",
    re.IGNORECASE,
)
"""What follows a value that is not meant."""
_ONE_OF_US: Final = re.compile(r"one of us\b", re.IGNORECASE)
"""Somebody, and no number of people."""
_CORRECTED = tuple(
    re.compile(rf"{before}[\s,:]+(?:it(?:['’]?s| is) )?(?P<value>.+)", re.IGNORECASE | re.DOTALL)
    for before in (
        r"^.*\bi mean(?:t)?(?: to (?:say|type|write))?\b",
        r"\b(?:change|correct|update|fix|switch|set)\b.{1,120}?\bto\b",
        r"\bshould (?:be|have been|read)\b",
        r"\bnot\b.{1,120}?\bbut\b",
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


@dataclass(frozen=True, slots=True)
class Said:
    """A message, and what it meets.

    Attributes:
        text: What it says.
        known: Values known already, by parameter.
        now: When it was written.
        asked: The parameter that is being asked for.
        shown: The words of a confirmation that shows the known values; None where none does.
        unwanted: Whether the user has said no to these.
        taken: Where it gives values of other parameters.
        answered: Whether it says something to what is asked.
        about: What the request says of itself.
    """

    text: str
    known: Mapping[str, JsonValue]
    now: datetime
    asked: Param | None = None
    shown: str | None = None
    unwanted: bool = False
    taken: Sequence[tuple[int, int]] = ()
    answered: bool = False
    about: str = ""


@dataclass(frozen=True, slots=True)
class Anew:
    """The other values that a message gives.

    Attributes:
        values: By parameter.
        certain: Whether the message says so, and asks for nothing else; if not, another request
            that it makes wins.
        unsure: Whether it may give another value, though it cannot be told of which parameter.
    """

    values: Mapping[str, JsonValue]
    certain: bool = False
    unsure: bool = False


def other_values(params: Sequence[Param], said: Said) -> Anew:
    """The other values that a message gives of these parameters, whatever question it meets.

    Parameters without a value only keep what is theirs from the others, unless values are shown.
    """
    text = WHAT.sub(lambda match: " " * len(match.group()), said.text)
    text = without(text, [clause for clause in clauses_of(text) if _asks(clause)])
    exchanged, text = _exchanged(params, text, said)
    exchanged |= _completed_names(params, text, said) or _names_alone(params, text, said)
    text, denied = without_denied(text)
    cue = next((match for pattern in _CORRECTED if (match := pattern.search(text))), None)
    taking = denied or cue is not None or takes_something_back(text)
    wished = any(_WANTED.match(part.group()) for part in _PART.finditer(text))
    left = [param for param in params if param.name not in exchanged]
    found, text = _marked(left, _STAYS.sub(lambda match: " " * len(match.group()), text), said)
    unsure = any(param.name in found and param.type in _COUNTED for param in left)
    if taking or said.shown is not None:
        bare, several = _bare(left, text, found, cue, said)
        unsure = unsure or several
        found = {**found, **bare} if taking or _BEFORE_NEW.match(text) or wished else found
    found = _without_told(found, text)
    certain = _certain(found, left, text, cue, said, denied=denied) if taking else {}
    likely = {
        param.name: found[param.name].value
        for param in left
        if param.name in found and _is_likely(param, found[param.name], left, text, said)
    }
    if certain := certain or _alone(found, left, text, said) or exchanged:
        spans = spans_of(certain)
        beside = {
            name: value
            for name, value in likely.items()
            if not _overlap(found[name].span or (0, 0), spans)
        }
        return Anew({**beside, **values_of(certain), **values_of(exchanged)}, certain=True)
    return Anew(likely, unsure=unsure)


_WISHED_FOR: Final = re.compile(
    r"\b(?:(?:can|could|may) (?:we|i|you|it)|make it|(?:i|we)(?:['’]?d| would) (?:like|prefer))\b"
    r"[^.,;!?]*$",
    re.IGNORECASE,
)
"""A wish, up to what it is for."""


def _without_told(found: Mapping[str, Extraction], text: str) -> dict[str, Extraction]:
    """The values without those that a part only tells, where another part wishes for one.

    "Can we make it two hours, the babysitter has to leave at ten" moves no beginning to ten.
    """
    wished, told = set(), set()
    for name, extraction in found.items():
        if extraction.span is None:
            continue
        begin = max(
            (part.start() for part in _PART.finditer(text) if part.start() <= extraction.span[0]),
            default=0,
        )
        lead = text[begin : extraction.span[0]]
        if _WISHED_FOR.search(lead):
            wished.add(name)
        elif _OTHERS_TELL.match(lead):
            told.add(name)
    return {name: value for name, value in found.items() if not wished or name not in told}


_OTHERS_TELL: Final = re.compile(
    r"\W*(?:(?:as|because|since|cos|and|but|so)\s+)?(?:the|my|our|his|her|their|s?he|they)\s+"
    r"(?:\w+\s+)?(?:has|have|is|are|needs?|leaves?|ends?|starts?|finish\w*|must|can)\b",
    re.IGNORECASE,
)
"""How a part begins that tells of somebody or something else."""


def _completed_names(params: Sequence[Param], text: str, said: Said) -> dict[str, Extraction]:
    """Known people of whom the message says more: "Beatrix Holloway", where Beatrix is known."""
    completed = {}
    for param in params:
        known = str(said.known.get(param.name, ""))
        if not is_person(param) or not known:
            continue
        whole = rf"\b(?i:{re.escape(known)})(?:\s+[A-Z][\w'’-]+){{1,3}}"
        if match := re.search(whole, text):
            reply = Reply(match.group(), prompt=param.prompt or "?", now=said.now)
            read = extract(param, reply)
            if read.status == "filled" and read.value != known:
                completed[param.name] = replace(read, span=match.span())
    return completed


def _names_alone(params: Sequence[Param], text: str, said: Said) -> dict[str, Extraction]:
    """Another person for the one that is shown, where a sentence is a name and nothing else."""
    people = [param for param in params if is_person(param) and param.name in said.known]
    if said.shown is None or len(people) != 1:
        return {}
    [person] = people
    for match in _SENTENCE.finditer(text):
        words = tokens(match["name"])
        named = len(words) > 1 and all(word.capitalised for word in words)
        if named and could_be_person(words) and match["name"] != said.known[person.name]:
            read = extract(person, Reply(match["name"], prompt=person.prompt or "?", now=said.now))
            if read.status == "filled":
                return {person.name: replace(read, span=match.span("name"))}
    return {}


_SENTENCE: Final = re.compile(
    r"(?:^|(?<=[.!?\n]))\s*(?:(?:no|sorry|it['’]?s|oh|actually)[\s,]+)*(?P<name>[^.,;:!?\n\d]{3,60}?)"
    r"\s*(?=[.!\n]|$)"
)
_STAYS: Final = re.compile(
    r"\b(?:(?:at |on |in )?(?:the )?same (?:time|day|date|place|room|address|number|amount|size"
    r"|name|length|thing|one)s?|(?:the rest|everything else|all else|the others?)\b[^,.;!?]{0,30}"
    r"\b(?:same|stays?|fine|ok(?:ay)?|right|good|correct|is))(?: (?:again|as before|please))?\b",
    re.IGNORECASE,
)
"""Words that keep what is known beside what is new."""


def _asks(clause: Clause) -> bool:
    """Whether a clause asks something: "did I say 50? I meant 15" does not."""
    asks = clause.act == "question" or (
        asks_back(clause.text) and not wishes_by_asking(clause.text)
    )
    return asks and not any(cue.search(clause.text) for cue in _CORRECTED)


def takes_something_back(text: str) -> bool:
    """Whether a message has words of a correction: "sorry", "wait", "I meant"."""
    return _STRONG.search(text) is not None or _WEAK.search(text) is not None


_EXCHANGED = re.compile(
    r"\b(?:not|is\s?n['’]?t|instead of|rather than) (?:(?:the|at|on|in|for|to|an?) )*"
    r"(?P<old>[^,.;!?\s](?:[^,.;!?\s]|\.(?=\d)| (?!but\b)){0,40})",
    re.IGNORECASE,
)
"""A value that is not meant: the known one, where another stands beside it."""
_DENIALS = 3
"""Values of one message that are not meant, at most."""
_OF_DAYS = frozenset({ParamType.DATE, ParamType.TIME})


def _exchanged(params: Sequence[Param], text: str, said: Said) -> tuple[dict[str, Extraction], str]:
    """A new value for the only known one that the message names too, and what else it says."""
    new: dict[str, Extraction] = {}
    left = text
    for param, span in _named_again(params, text, said):
        rest, known = without_part(text, span), said.known[param.name]
        extraction = _instead(param, rest, said)
        if extraction.value not in (None, known):
            new[param.name] = extraction
            left = without_part(rest, extraction.span) if extraction.span else ""
    return (new, left) if len(new) == 1 else ({}, text)


def _named_again(
    params: Sequence[Param], text: str, said: Said
) -> Iterator[tuple[Param, tuple[int, int]]]:
    """Where the message denies a known value, or names a known day beside another."""
    known = [param for param in params if param.name in said.known]
    for match in islice(_EXCHANGED.finditer(text), _DENIALS):
        for param in known:
            denied = Reply(
                match["old"], prompt=param.prompt or "?", filled=said.known, now=said.now
            )
            old = extract(param, denied)
            if said.known[param.name] in (old.value, *old.choices) or _is_number_of(
                param, said.known[param.name], match["old"]
            ):
                yield param, match.span()
    for param in known if takes_something_back(text) else ():
        if param.type in _OF_DAYS:
            new = find(param, text, now=said.now, filled=said.known)
            rest = without_part(text, new.span) if new.span else text
            old = find(param, rest, now=said.now)
            if old.span and old.value == said.known[param.name] != new.value:
                yield param, old.span


def _is_number_of(param: Param, known: JsonValue, denied: str) -> bool:
    """Whether words deny the number of a known address: "21 Mill Lane, not 12"."""
    number = re.match(r"(?:(?:number|no\.?)\s+)?(\d+[a-z]?)\b", denied, re.IGNORECASE)
    return (
        param.type is ParamType.ADDRESS
        and number is not None
        and re.search(rf"\b{number[1]}\b", str(known), re.IGNORECASE) is not None
    )


def _instead(param: Param, rest: str, said: Said) -> Extraction:
    """The value of a message that denies the known one; without a span where it is all there is."""
    extraction = find(param, rest, now=said.now, filled=said.known)
    if extraction.status == "filled" or len(rest.split()) > _FEW_WORDS:
        return _near_known(param, extraction, said)
    alone = _alone_as(param, _BEFORE_NEW.sub("", rest, count=1).strip(), said)
    return replace(_near_known(param, alone, said), span=None)


def _alone_as(param: Param, words: str, said: Said) -> Extraction:
    """What a few words are as the answer to the question for a known value."""
    keeps = param.type in (ParamType.DATETIME, ParamType.DURATION)  # its other half, its unit
    filled = said.known if keeps else {}
    reply = Reply(words, prompt=param.prompt or "?", filled=filled, now=said.now)
    return extract(param, reply)


def _near_known(param: Param, extraction: Extraction, said: Said) -> Extraction:
    """What was read; of two readings the one that is nearest to the known value."""
    if not extraction.choices:
        return extraction
    value = nearest(extraction.choices, said.known[param.name])
    return replace(extraction, status="filled", value=value, choices=())


_BEFORE_NEW = re.compile(
    r"^\W*(?:(?:no|nope|nah|sorry|oh|oops|hm+|um+|wait|actually|but|and|not quite|nearly|almost"
    r"|rather|better|say|i mean|i meant|it['’]?s|its|should be|make (?:it|that))\b\W*)+",
    re.IGNORECASE,
)
"""Words before the value that takes the place of another."""
_FEW_WORDS = 5
"""Words of a message that may be a value as a whole, at most."""
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


def _marked(params: Sequence[Param], text: str, said: Said) -> tuple[dict[str, Extraction], str]:
    """The other values that are marked as such, and the message without known ones said again.

    None that may answer the question that waits.
    """
    pool = [
        param
        for param in params
        if param.name in said.known or said.shown is not None or names(text, param)
    ]
    reading = Reading(text, said.now, filled=said.known, about=said.about)
    read = read_values(pool, reading)
    found = {
        param.name: extraction
        for param in pool
        if (extraction := read.get(param.name))
        and (param.name in said.known or said.shown is not None)
        and extraction.value != said.known.get(param.name)
        and not (extraction.span and _DISOWNED.match(text[extraction.span[1] :]))
        and not (extraction.span and _ONE_OF_US.match(text, extraction.span[0]))
        and (names(text, param) or not _may_answer(param, extraction, said))
    }
    again = [
        extraction.span
        for name, extraction in read.items()
        if extraction.span and extraction.value == said.known.get(name)
    ]
    for start, end in again if found else ():
        text = text[:start] + " " * (end - start) + text[end:]
    return found, text


def _may_answer(param: Param, extraction: Extraction, said: Said) -> bool:
    """Whether what was found for `param` may as well be the answer to the question that waits."""
    asked = said.asked
    if asked is None or asked.type is not param.type:
        return False
    form = form_of(asked.pattern, asked.examples)
    return form is None or re.fullmatch(form, str(extraction.value), re.IGNORECASE) is not None


_PART: Final = re.compile(r"(?:[^,;!?\n.]|[,.](?=\d)){1,60}")
_VALUE: Final = re.compile(r"\d|\w{3}")
_SO: Final = re.compile(r"\bso\b", re.IGNORECASE)
"""What follows is a part of its own: "two have dropped out so 4"."""

_PARTS: Final = 6
"""Parts of a message that are looked at, at most."""


def _bare(
    params: Sequence[Param],
    text: str,
    marked: Mapping[str, Extraction],
    cue: re.Match[str] | None,
    said: Said,
) -> tuple[dict[str, Extraction], bool]:
    """What parts of a message are that nothing marks, each for the one parameter that may have it.

    It is read as an answer is. Behind words of a correction a value may have any form, and a text
    where the message names it.

    Returns:
        The values, and whether a part may be another value of one of several.
    """
    known = [param for param in params if param.name in said.known and param.name not in marked]
    named = [param for param in known if names(text, param)]
    led = named or [param for param in known if param.type is not ParamType.TEXT]
    plain = [param for param in known if param.type in _COUNTED]
    parts = [
        (*match.span(), plain) for match in islice(_PART.finditer(_SO.sub(" ;", text)), _PARTS)
    ]
    if cue:
        parts.insert(0, (*cue.span("value"), led))
    found: dict[str, Extraction] = {}
    given = [extraction.value for extraction in marked.values()]
    unsure = False
    for start, end, among in parts:
        if _overlap((start, end), spans_of(marked)):
            continue
        if lead := _BEFORE_NEW.match(text[start:end]):
            start += lead.end()
        long = among is plain and len(text[start:end].split()) > _FEW_WORDS
        if long and (wanted := _WANTED.match(text[start:end])):
            start, long = start + wanted.end(), False
        part = text[start:end]
        if long or not _VALUE.search(part) or (among is not named and _answers(part, said)):
            continue
        read = _read_bare(among, part, said)
        new = {
            name: replace(extraction, span=(start + extraction.span[0], start + extraction.span[1]))
            for name, extraction in read.items()
            if extraction.span and extraction.value not in (None, said.known[name], *given)
        }
        meant = _of_its_size(new, said.known) if len(read) > 1 else new
        found |= meant
        unsure = unsure or (len(read) > 1 and not meant) or bool(new)
    return found, unsure


_WANTED: Final = re.compile(
    r".*\b(?:(?:i|we)(?:['’]?(?:ll|d)| will| can| could| would| need| want)|(?:can|could|may|might)"
    r" (?:i|we))\b[^,.;!?]*?"
    r"(?:\b(?:to|be|for|at|only|just|with)\s+)?(?=(?:\S+\s+){0,2}\S+\s*$)",
    re.IGNORECASE,
)
"""What stands before the new value at the end of a wish: "done the sums, I can stretch to 1000"."""

_TIMES: Final = 3.0
"""How many times as far as another a number must be from what is known to be no other value of
it."""


def _of_its_size(
    new: Mapping[str, Extraction], known: Mapping[str, JsonValue]
) -> dict[str, Extraction]:
    """The one of several numbers known that a number is much nearer to than to the others.

    "make it 650" is a bid of 600 and not lot 87.
    """
    apart = {
        name: max(value, old) / min(value, old)
        for name, extraction in new.items()
        if isinstance(value := extraction.value, int | float)
        and isinstance(old := known[name], int | float)
        and min(value, old) > 0
    }
    first, *rest = sorted(apart, key=lambda name: apart[name]) or [""]
    if len(apart) < len(new) or not rest or apart[rest[0]] < _TIMES * apart[first]:
        return {}
    return {first: new[first]}


def _read_bare(params: Sequence[Param], part: str, said: Said) -> dict[str, Extraction]:
    """What a part of a message may be, by parameter."""
    read = {
        param.name: extraction
        for param in params
        if (extraction := _alone_as(param, part, said)).status == "filled" or extraction.choices
    }
    own = [param for param in params if param.name in read]
    if any(param.type in NUMERIC for param in own):  # a bare number is first of all a number
        own = [param for param in own if param.type is not ParamType.DURATION]
        read = {param.name: read[param.name] for param in own}
    if len(own) != 1 or _says_more(words_without_values(part, spans_of(read)), own):
        return read  # an hour with two readings may be a number as well
    return {param.name: _near_known(param, read[param.name], said) for param in own}


def _answers(part: str, said: Said) -> bool:
    """Whether a part of the message may answer the question that waits."""
    if said.asked is None:
        return False
    reply = Reply(part, prompt=said.asked.prompt or "?", now=said.now)
    return extract(said.asked, reply).status != "abstained"


def _certain(
    found: Mapping[str, Extraction],
    params: Sequence[Param],
    text: str,
    cue: re.Match[str] | None,
    said: Said,
    *,
    denied: bool,
) -> dict[str, Extraction]:
    """The values that the message certainly means: all it says, or right behind "I meant"."""
    rest = words_without_values(text, spans_of(found))
    own = [param for param in params if param.name in found]
    if denied or not _says_more(rest, own):
        return dict(found)
    begin = cue.start("value") if cue else len(text)
    behind = {
        name: extraction
        for name, extraction in found.items()
        if extraction.span and extraction.span[0] >= begin
    }
    first = min((start for start, _ in spans_of(behind)), default=begin)
    own = [param for param in params if param.name in behind]
    return {} if _says_more(text[begin:first], own) else behind


def _says_more(rest: str, params: Sequence[Param]) -> bool:
    """Whether the rest of a message has words that no correction needs: then it asks for something.

    `rest` is the message without its new values.
    """
    usual = _CORRECTING.union(*map(own_stems, params))
    words = re.findall(r"[^\W\d_]+(?:['’]\w+)?", rest.lower())
    return any(
        word in _ASKING or (word not in FUNCTION_WORDS and stem(word) not in usual)
        for word in words
    )


def _alone(
    found: Mapping[str, Extraction], params: Sequence[Param], text: str, said: Said
) -> dict[str, Extraction]:
    """The values of a message that says nothing but these, where they are shown."""
    if said.shown is None:
        return {}
    words = words_without_values(text, spans_of(found))
    own = [param for param in params if param.name in found]
    return dict(found) if is_value_alone(words, said.shown, own) else {}


def _is_likely(
    param: Param, extraction: Extraction, params: Sequence[Param], text: str, said: Said
) -> bool:
    """Whether a message that may say more means a value, which takes the place of a known one.

    Nobody speaks of a plain value by the way. Of two alike the message must say which it means.
    """
    span = extraction.span
    if extraction.confidence <= SURE or not span or _overlap(span, said.taken):
        return False
    if said.unwanted or param.name not in said.known:
        return True
    anew = takes_something_back(text)
    address = param.type is ParamType.ADDRESS
    certain = said.shown is not None and extraction.confidence >= _CERTAIN
    place = address and (certain or NO.match(text) is not None)
    decides = said.shown is not None and param.type is ParamType.BOOLEAN
    plain = param.type in PLAIN_TYPES or decides or place or _INSTEAD.search(text)
    known = [other for other in params if other.name in said.known]
    beside = _beside_answers(text, said)
    only = (
        beside[slice(*span)].strip()
        and not alike(param, known)
        and len(units_of(without_part(beside, span))) <= _FEW_TELLING
    )
    told = anew or said.shown is not None or only
    return bool(plain and told and is_meant(text, span, anew=anew))


_CERTAIN: Final = 0.85
"""Confidence from which words are an address and nothing else."""


def _beside_answers(text: str, said: Said) -> str:
    """The message without the clauses that answer; nothing where an answer stands nowhere."""
    if said.answered and not said.taken:
        return ""
    return without(
        text,
        [clause for clause in clauses_of(text) if _overlap((clause.start, clause.end), said.taken)],
    )


def _overlap(span: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    return any(start < span[1] and span[0] < end for start, end in others)


_FEW_TELLING: Final = 3
"""Telling words of a message that says little besides a value, at most."""
