"""The values that a message holds, each given to the parameter that it fits best.

Every parameter is read from the same text; where two claim the same words, the better claim wins,
and the loser is read again from what is left. Words that could as well be the value of either are
given to neither: a question is better than a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType, doubtful_below
from langmem_ext.waiting.extract import Reply, extract, find
from langmem_ext.waiting.extract.candidate import is_impossible, turned_down
from langmem_ext.waiting.extract.choices.boolean import kinds_of, phrase_of, telling_stems
from langmem_ext.waiting.extract.choices.enum import exact
from langmem_ext.waiting.extract.dates.date import is_birth
from langmem_ext.waiting.extract.english.concepts import WORDS
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS
from langmem_ext.waiting.extract.english.self_correction import corrects
from langmem_ext.waiting.extract.english.tokens import blanked, trim
from langmem_ext.waiting.extract.english.vocabulary import own_stems, split_name, stem
from langmem_ext.waiting.extract.names.person import is_person
from langmem_ext.waiting.extract.names.phrase import counted_in
from langmem_ext.waiting.extract.names.telling import DOUBTED, is_request, is_written
from langmem_ext.waiting.extract.names.texts.asks import is_thing, is_title
from langmem_ext.waiting.understand.acts.assent import yes_or_no
from langmem_ext.waiting.understand.likely_time import likely

ASKED: Final = 0.6
"""How much better the claim of the parameter is that was asked for."""

NAMED: Final = 0.2
"""How much better the claim of a parameter is that the message names."""

CLOSE: Final = 0.05
"""Claims that differ by less are equal."""

SURE: Final = 0.5
"""Above this confidence words are a value and nothing else; open values that nothing marks stay
below."""

_ROUNDS: Final = 12

_TIES: Final = 1
"""Rounds in which two parameters of one type want the same words, at most: who lists more values
than there are parameters says which is meant by none of them."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What values are read from.

    Attributes:
        text: The message; what holds no value is blanked.
        now: When it was written.
        filled: Values known already, by parameter.
        asked: The parameter that was asked for.
        prompt: The question.
        about: What the request says of itself; it decides what a time of day means.
    """

    text: str
    now: datetime
    filled: Mapping[str, JsonValue] = field(default_factory=dict)
    asked: str | None = None
    prompt: str = ""
    about: str = ""


def read_values(params: Sequence[Param], reading: Reading) -> dict[str, Extraction]:
    """The values of these parameters that the message holds; no two share a word."""
    taken: dict[str, Extraction] = {}
    text, open_params = reading.text, list(params)
    claims = _claims(params, reading)
    ties = 0
    for _ in range(_ROUNDS):
        ranked = sorted(
            (
                (_worth(param, claims[param.name], reading), param)
                for param in open_params
                if claims[param.name].status == "filled"
            ),
            key=lambda claim: -claim[0],
        )
        if not ranked:
            break
        worth, winner = _best_claim(ranked, claims)
        won = claims[winner.name]
        rivals = [
            param
            for other, param in ranked
            if param is not winner
            and overlap(won, claims[param.name])
            and not _share(winner, won, param, claims[param.name])
        ]
        tied = [
            param
            for other, param in ranked
            if param in rivals and worth - other < CLOSE and not _holds(won, claims[param.name])
        ]
        if tied and (
            ordered := _in_order(
                [param for param in params if param in (winner, *tied)], reading, text
            )
        ):
            taken |= ordered
            open_params = [param for param in open_params if param.name not in ordered]
            for extraction in ordered.values():
                text = blanked(text, extraction.span) if extraction.span else text
            continue
        if not tied:
            taken[winner.name] = won
            open_params.remove(winner)
        if won.span is not None and winner.type is not ParamType.BOOLEAN:
            text = blanked(text, won.span)
        for param in [*rivals, *([winner] if tied else [])]:
            claims[param.name] = _claim(param, open_params, reading, text)
        ties += bool(tied)
        if tied and (won.span is None or ties > _TIES):
            break
    return _without_repeats(taken, params, reading)


def _best_claim(
    ranked: Sequence[tuple[float, Param]], claims: Mapping[str, Extraction]
) -> tuple[float, Param]:
    """The claim that is worth most; of two that are equal the one whose words hold the other's."""
    worth, winner = ranked[0]
    for other, param in ranked[1:]:
        if worth - other < CLOSE and _holds(claims[param.name], claims[winner.name]):
            winner = param
    return worth, winner


def _claims(params: Sequence[Param], reading: Reading) -> dict[str, Extraction]:
    """What each parameter could be by the message alone; of a text only what is its own."""
    claims = {param.name: _claim(param, params, reading, reading.text) for param in params}
    claims |= _beside_addresses(params, claims, reading)
    own: dict[str, Extraction] = {}
    counted = _counted_thing(params, claims, reading)
    for param in params:
        if param.name == reading.asked and param.type in _OPEN:
            own[param.name] = _without_others(param, params, claims, reading)
        elif param.type is ParamType.TEXT:
            own[param.name] = _up_to_others(param, params, claims, reading.text)
    return claims | own | counted


def _beside_addresses(
    params: Sequence[Param], claims: Mapping[str, Extraction], reading: Reading
) -> dict[str, Extraction]:
    """The claims of others without the words of a certain address: "6 Church Lane" is no church."""
    spans = [
        claim.span
        for param in params
        if param.type is ParamType.ADDRESS
        and (claim := claims[param.name]).span is not None
        and claim.confidence >= _CERTAIN_ADDRESS
    ]
    text = reading.text
    for span in spans:
        text = blanked(text, span)
    return {
        param.name: _claim(param, params, reading, text)
        for param in params
        if spans and param.type in _IN_ADDRESSES
    }


_CERTAIN_ADDRESS: Final = 0.85
_IN_ADDRESSES: Final = frozenset(
    {ParamType.ENUM, ParamType.INTEGER, ParamType.NUMBER, ParamType.PERSON, ParamType.DATE}
)
"""Types whose values the words of an address may look like."""


def _counted_thing(
    params: Sequence[Param], claims: Mapping[str, Extraction], reading: Reading
) -> dict[str, Extraction]:
    """What an open count counts, for the one text that names a thing: "3 boxes of gloves".

    A count and its unit alone name nothing: "four tubs", "bleach, four tubs".
    """
    things = [param for param in params if is_thing(param)]
    counts = [
        claim.span[0]
        for param in params
        if param.type is ParamType.INTEGER
        and (claim := claims[param.name]).status == "filled"
        and claim.span is not None
    ]
    counted = counted_in(reading.text, counts[0]) if len(counts) == len(things) == 1 else None
    if counted is None:
        return {}
    [thing], asked = things, things[0].name == reading.asked
    if counted.thing is not None:
        raw, sure = reading.text[slice(*counted.thing)], _SAID_BEHIND if asked else DOUBTED
        return {thing.name: Extraction("filled", raw, raw, counted.thing, sure, "what is counted")}
    if not asked:
        return {}
    rest = replace(reading, text=blanked(reading.text, counted.count))
    own = {thing.name: _claim(thing, params, rest, rest.text)}
    return {thing.name: _without_others(thing, params, {**claims, **own}, rest)}


_SAID_BEHIND: Final = 0.45
"""Confidence in a thing that an answer names behind its count."""


def _without_repeats(
    taken: dict[str, Extraction], params: Sequence[Param], reading: Reading
) -> dict[str, Extraction]:
    """The values without repeats of the answer: "friday the 20th … yes, friday the 20th"."""
    answer = taken.get(reading.asked or "")
    if answer is None:
        return taken
    types = {param.name: param.type for param in params}
    return {
        name: extraction
        for name, extraction in taken.items()
        if name == reading.asked
        or extraction.value != answer.value
        or types[name] is not types[reading.asked or ""]
    }


def _without_others(
    asked: Param, params: Sequence[Param], claims: Mapping[str, Extraction], reading: Reading
) -> Extraction:
    """An open answer without surer values of other parameters; none where nothing else is left.

    A telephone number is no thing that was lost, and an address is not what is to be collected.
    """
    answer = claims[asked.name]
    if answer.status != "filled" or answer.span is None:
        return answer
    if asked.type is ParamType.TEXT and yes_or_no(reading.text):
        return Extraction("abstained", reason="says yes")
    doubted = answer.confidence <= DOUBTED and is_request(answer.raw)
    if doubted and any(
        overlap(answer, claims[param.name]) and claims[param.name].status == "filled"
        for param in params
        if param is not asked
    ):
        return Extraction("abstained", reason="asks for something else")
    if is_title(asked) and answer.confidence > SURE:
        return answer  # "our salon is called Snips" names nobody
    rest = _rest(asked, answer, params, claims, reading)
    if is_title(asked) and rest != reading.text:
        return _name_beside(asked, params, reading, rest)
    start, end = answer.span
    left = re.findall(r"[^\W_]+", rest[start:end].lower())
    if rest[start:end] == answer.raw or not all(word in FUNCTION_WORDS for word in left):
        return answer
    return Extraction("abstained", reason="a value of another parameter")


def _rest(
    asked: Param,
    answer: Extraction,
    params: Sequence[Param],
    claims: Mapping[str, Extraction],
    reading: Reading,
) -> str:
    """The message without other parameters' values that are surer than the answer."""
    rest = reading.text
    for param in params:
        other = claims[param.name]
        if param.type in _OPEN and (
            is_written(asked) or (is_title(asked) and not _is_near(other, param, reading.text))
        ):
            continue  # "The Blue Lantern" could be anybody's name
        if param.type is ParamType.PERSON and other.status != "filled":
            other = find(param, rest, now=reading.now)  # whoever of several it may be
        surer = other.confidence > max(SURE, answer.confidence)
        if param is not asked and param.type not in _WORDS and other.status == "filled" and surer:
            while other.status == "filled" and other.span:  # "after 4 if possible. half 4?"
                rest = blanked(rest, other.span)
                other = find(param, rest, now=reading.now)
    return rest


def _up_to_others(
    param: Param, params: Sequence[Param], claims: Mapping[str, Extraction], text: str
) -> Extraction:
    """A text that nobody asked for, up to a part that holds another parameter's value.

    "The card: Sleep tight. My number is 07700 900123" has two words on the card.
    """
    claim = claims[param.name]
    if claim.span is None or claim.status != "filled":
        return claim
    begin, end = claim.span
    surer = [
        other.span
        for rival in params
        if (other := claims[rival.name]).span is not None
        and other.confidence > SURE
        and rival.type not in _WORDS
        and (rival.type not in _OPEN or is_named_near(text, other.span, rival))
    ]
    others = [start for start, _ in surer]
    if not _says_more(text, claim.span, surer):
        return Extraction("abstained", reason="a value of another parameter")
    cuts = [match.end() for match in re.finditer(r"[,.;!?\n]+\s+", text[begin:end])]
    for first, last in zip(cuts, [*cuts[1:], end - begin], strict=False):
        if any(begin + first <= start < begin + last for start in others):
            begin, end = trim(text, begin, begin + first)
            return replace(claim, value=text[begin:end], raw=text[begin:end], span=(begin, end))
    return claim


def _says_more(text: str, span: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    """Whether words say more than other values that stand in them: not "for the garden room"."""
    left = text
    for other in others:
        left = blanked(left, other)
    words = re.findall(r"[^\W_]+", left[slice(*span)].lower())
    return not FUNCTION_WORDS.issuperset(words)


_NO_NAME: Final = Extraction("abstained", reason="values of other parameters")

_PARTS: Final = re.compile(r"(?:[^,.;:!?\n]|(?<=\d)[.:,](?=\d))+")


def _is_near(claim: Extraction, param: Param, text: str) -> bool:
    return claim.span is not None and is_named_near(text, claim.span, param)


def _name_beside(asked: Param, params: Sequence[Param], reading: Reading, rest: str) -> Extraction:
    """The name of a thing beside other values, which is confirmed where nothing marks it."""
    left_over = _named_parts(reading.text, rest)
    if not left_over.strip():
        return _NO_NAME
    claim = _claim(asked, params, reading, left_over)
    marked = left_over == reading.text or re.search(r"[A-Z]", claim.raw)
    return claim if marked else replace(claim, confidence=min(claim.confidence, _UNMARKED))


_UNMARKED: Final = 0.35
"""Confidence in a name in small letters that is said beside other values."""


def _named_parts(text: str, rest: str) -> str:
    """The parts of an answer that may name something; `rest` is it without other values.

    A part with such a value names nothing, unless it is capitalised or ends in a bare number:
    "7 metres with the mast" is no name, "Studio 54" may be one.
    """
    for part in _PARTS.finditer(text):
        left, whole = rest[part.start() : part.end()], part.group()
        names = re.search(r"\b[A-Z]\w", left) or re.search(r"[^\W\d_]\s+\d+\s*$", whole)
        if left != whole and not names:
            text = blanked(text, part.span())
    return text


_WORDS: Final = frozenset({ParamType.TEXT, ParamType.BOOLEAN})
"""Types that have no form of their own."""


_OPEN: Final = frozenset(
    {
        ParamType.TEXT,
        ParamType.NAME,
        ParamType.PERSON,
        ParamType.PLACE,
        ParamType.ADDRESS,
        ParamType.BOOLEAN,
    }
)


def _in_order(tied: Sequence[Param], reading: Reading, text: str) -> dict[str, Extraction]:
    """As many values as there are parameters of one type, in their order; else none."""
    if len({param.type for param in tied}) > 1 or any(param.role for param in tied):
        return {}
    claims: list[Extraction] = []
    while (
        (claim := _claim(tied[0], tied[:1], reading, text, several=True)).status == "filled"
        and claim.span
        and len(claims) <= len(tied)
    ):
        claims.append(claim)
        text = blanked(text, claim.span)
    claims.sort(key=lambda claim: claim.span or (0, 0))
    return (
        {param.name: claim for param, claim in zip(tied, claims, strict=True)}
        if len(claims) == len(tied)
        else {}
    )


def _claim(
    param: Param, params: Sequence[Param], reading: Reading, text: str, *, several: bool = False
) -> Extraction:
    """What the text says of a parameter; open where it names two values, unless several count."""
    asked = param.name == reading.asked
    others = alike(param, params)
    if param.type is ParamType.INTEGER:
        others = [
            *others,
            *(other for other in params if other.type is ParamType.ENUM),
        ]  # what it may count
    reply = Reply(
        text,
        prompt=reading.prompt if asked else "",
        others=others,
        filled=reading.filled,
        now=reading.now,
    )
    extraction = extract(param, reply)
    if not asked and is_person(param) and (span := _of_choice(extraction, params, text)):
        return _claim(param, params, reading, blanked(text, span), several=several)
    if asked and others and extraction.status != "filled":
        extraction = extract(
            param, replace(reply, others=())
        )  # what was asked for is meant, where nothing tells two apart
    if not asked and param.type is ParamType.BOOLEAN and not _speaks_of(extraction, param):
        return Extraction("abstained", reason="the message does not speak of it")
    if not (others or asked or several or reading.filled):
        extraction = _or_another(extraction, param, reply)
    if (
        extraction.span
        and param.type in _MOMENTS
        and _MOVES.search(reading.about)
        and is_impossible(text, *extraction.span)
    ):
        return Extraction("abstained", reason="what is to be moved")
    return decided_by_request(extraction, param, reading.about)


def _of_choice(
    extraction: Extraction, params: Sequence[Param], text: str
) -> tuple[int, int] | None:
    """Where words that were read are an allowed value of another parameter: "Squash court"."""
    if extraction.status != "filled" or extraction.span is None:
        return None
    start, end = extraction.span
    return next(
        (
            (choice.start, choice.end)
            for param in params
            if param.type is ParamType.ENUM
            for choice in exact(param, text)
            if choice.start <= start and end <= choice.end
        ),
        None,
    )


_MOMENTS: Final = frozenset({ParamType.DATE, ParamType.TIME, ParamType.DATETIME})
_MOVES: Final = re.compile(r"\b(?:change|move|reschedule|postpone|shift)\b", re.IGNORECASE)
"""Words of requests that put another day or time in the place of one: "10am, but I can't make
that" says the old one."""

_ONE_OF_TWO: Final = frozenset({ParamType.ENUM, ParamType.DATE, ParamType.MONEY})


def _or_another(extraction: Extraction, param: Param, reply: Reply) -> Extraction:
    """What was found, open where a message that begins a request names another as clearly."""
    either = (
        param.type in _ONE_OF_TWO and extraction.status == "filled" and not corrects(reply.text)
    )
    if not either or extraction.span is None:
        return extraction
    rest = blanked(reply.text, extraction.span)
    other = extract(param, replace(reply, text=rest))
    if (
        other.status != "filled"
        or other.span is None
        or other.value == extraction.value
        or other.confidence < extraction.confidence
        or turned_down(reply.text, *other.span)
    ):
        return extraction
    first, second = sorted((extraction, other), key=lambda claim: claim.span or (0, 0))
    choices = (first.value, second.value)
    return replace(extraction, status="abstained", value=None, choices=choices, reason="one of two")


def _speaks_of(extraction: Extraction, param: Param) -> bool:
    own = {stem(word) for word in split_name(param.name)} & telling_stems(param) | kinds_of(param)
    return phrase_of(param, extraction.raw) is not None or any(
        stem(word) in own for word in re.findall(r"[^\W\d_]+", extraction.raw)
    )


def alike(param: Param, params: Sequence[Param]) -> list[Param]:
    """The other parameters of its type.

    What distinguishes them ("from", "until") must be looked for in the text.
    """
    return [other for other in params if other.name != param.name and other.type is param.type]


def decided_by_request(extraction: Extraction, param: Param, about: str) -> Extraction:
    """What was found, with a value where the request makes one of two readings likely."""
    if not extraction.choices or not about:
        return extraction
    value = likely(extraction.choices, f"{about} {param.description} {param.prompt}")
    return (
        extraction
        if value is None
        else replace(extraction, status="filled", value=value, choices=())
    )


def _worth(param: Param, claim: Extraction, reading: Reading) -> float:
    worth = claim.confidence
    if param.name == reading.asked or (param.type is ParamType.TEXT and worth > _LABELLED):
        worth += ASKED  # what a text says of days and people is a part of it
    elif param.name in reading.filled:
        worth -= NAMED
    if (
        param.type is not ParamType.TEXT
        and claim.span
        and is_named_near(reading.text, claim.span, param)
    ):
        worth += NAMED
    elif (
        param.type is ParamType.DATE
        and param.name != reading.asked
        and not re.search(r"\d{2}\s*$", claim.raw)
        and is_birth(param)
    ):
        worth -= NAMED  # nobody was born on a tuesday
    return worth


_LABELLED: Final = 0.75
"""Above this confidence a text was named as what it is: "the card: Happy birthday"."""


def is_named_near(text: str, span: tuple[int, int], param: Param) -> bool:
    """Whether a word next to a value names its parameter: "born 1 may", "6 guests"."""
    start, end = span
    behind = re.compile(r"\s+([^\W\d_]+)").match(text, end)
    near = [
        *re.findall(r"[^\W\d_]+", text[max(0, start - 40) : start])[-3:],
        *(behind.groups() if behind else ()),
    ]
    own = own_stems(param)
    meant = frozenset[str]().union(*(WORDS.get(word, frozenset()) for word in own))
    return any(
        stem(word) in own or not meant.isdisjoint(WORDS.get(stem(word), ())) for word in near
    )


def left_open(
    params: Sequence[Param], reading: Reading, read: Mapping[str, Extraction]
) -> dict[str, Extraction]:
    """What the message leaves open.

    One of two readings, a value that is not allowed, or one that is to be confirmed.

    Args:
        params: The parameters.
        reading: The message.
        read: Its values, by `read_values`.
    """
    claims = {param.name: _claim(param, params, reading, reading.text) for param in params}
    least = {param.name: doubtful_below(param) for param in params}
    doubted = {
        name: replace(extraction, choices=(extraction.value,))
        for name, extraction in read.items()
        if extraction.confidence < least[name]
    }
    left = {name: claim for name, claim in claims.items() if claim.choices or claim.problem}
    return {
        **{name: extraction for name, extraction in doubted.items() if name not in left},
        **left,
    }


def sure_values(params: Sequence[Param], reading: Reading) -> dict[str, JsonValue]:
    """The values that a message which asks for something gives; not those to be confirmed."""
    least = {param.name: doubtful_below(param) for param in params}
    read = read_values(params, reading)
    return values_of(
        {
            name: extraction
            for name, extraction in read.items()
            if extraction.confidence >= least[name]
        }
    )


def overlap(first: Extraction, second: Extraction) -> bool:
    """Whether two values were read from the same words."""
    return (
        first.span is not None
        and second.span is not None
        and first.span[0] < second.span[1]
        and second.span[0] < first.span[1]
    )


def _holds(first: Extraction, second: Extraction) -> bool:
    """Whether a value was read from the words of another and more: "Night Sky Tonight"."""
    return (
        first.span is not None
        and second.span is not None
        and first.span != second.span
        and first.span[0] <= second.span[0]
        and second.span[1] <= first.span[1]
    )


_COUNTED: Final = frozenset({ParamType.INTEGER, ParamType.ENUM})
_RANGED: Final = frozenset({ParamType.TIME, ParamType.DURATION})
_RANGE: Final = re.compile(r"\d\s*(?:[-–—]|till?|until|to)\s*\d", re.IGNORECASE)
_DAYTIME: Final = frozenset({ParamType.DATE, ParamType.TIME})


def _share(param: Param, claim: Extraction, other: Param, rival: Extraction) -> bool:
    """Whether the same words say a day and a time, "tonight at 9", or a yes or no as well.

    Or how many there are of a thing and which: "two weekend tickets".
    """
    if ParamType.BOOLEAN in (param.type, other.type):
        return True  # a whole sentence says it, and its words give other values
    if {param.type, other.type} == _COUNTED:
        counted, which = (claim, rival) if param.type is ParamType.INTEGER else (rival, claim)
        return bool(counted.span and which.span and counted.span[0] < which.span[0])
    if {param.type, other.type} == _RANGED:  # "2 till 5" says when, and how long
        return (
            re.search(r"\d\s*(?:[-–—]|till?|until|to)\s*\d", f"{claim.raw} {rival.raw}") is not None
        )
    if {param.type, other.type} != _DAYTIME:
        return False
    date = claim if param.type is ParamType.DATE else rival
    return not re.search(r"\d", date.raw)


def spans_of(extractions: Mapping[str, Extraction]) -> list[tuple[int, int]]:
    """The spans of the values."""
    return [extraction.span for extraction in extractions.values() if extraction.span]


def values_of(extractions: Mapping[str, Extraction]) -> dict[str, JsonValue]:
    """The values alone, by parameter."""
    return {name: extraction.value for name, extraction in extractions.items()}
