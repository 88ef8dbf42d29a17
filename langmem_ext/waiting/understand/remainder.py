"""What is left of a request once its certain values are taken out of it, and whose value it may be.

"walk Luna on saturday" names one thing more than the day; where one open parameter alone is a name,
it may be that one. Nothing marks such a value, so it is always confirmed before it counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.extract.closed_spans import closed_spans
from langmem_ext.waiting.extract.english.concepts import WORDS, phrases_in
from langmem_ext.waiting.extract.english.lexicon import (
    CONJUNCTIONS,
    FUNCTION_WORDS,
    GENERIC_NOUNS,
    NEVER_NAMES,
    PREPOSITIONS,
    word_set,
)
from langmem_ext.waiting.extract.english.tokens import Run, Token, blanked, runs, tokens, trim
from langmem_ext.waiting.extract.english.vocabulary import own_stems, split_name, stem
from langmem_ext.waiting.extract.names.address import addresses
from langmem_ext.waiting.extract.names.bystanders import is_bystander
from langmem_ext.waiting.extract.names.name import PETS
from langmem_ext.waiting.extract.names.person import is_of_person, is_person
from langmem_ext.waiting.extract.names.phrase import place_in
from langmem_ext.waiting.extract.names.telling import is_remark
from langmem_ext.waiting.extract.names.texts.asks import asks_for_name, is_colour, is_narrative
from langmem_ext.waiting.extract.names.texts.objects import objects_in, things_in, topics_in
from langmem_ext.waiting.extract.names.texts.what_for import behind_lead
from langmem_ext.waiting.extract.names.written_small import could_be_person
from langmem_ext.waiting.extract.numbers.numerals import Numeral, numerals
from langmem_ext.waiting.extract.validity import NUMERIC
from langmem_ext.waiting.understand.acts.statements import WISHES
from langmem_ext.waiting.understand.clauses import clauses_of, phrases_of, without
from langmem_ext.waiting.understand.values import Reading

Span: TypeAlias = tuple[int, int]

DOUBTFUL: Final = 0.3
"""Confidence in what nothing marks as a value."""

_HELD: Final = ("hello", "thanks", "bye", "help", "talk", "question")
"""What clauses do that hold no value."""


def likely_values(
    params: Sequence[Param],
    reading: Reading,
    read: Mapping[str, Extraction],
    required: Sequence[str],
) -> dict[str, Extraction]:
    """The values that a request may give for parameters which nothing in it marks.

    Args:
        params: The parameters of the request.
        reading: The message.
        read: The values that it certainly gives.
        required: Names of those that it needs.

    Returns:
        By parameter, at most one of each kind; each is to be confirmed.
    """
    rest = _rest(reading, [extraction.span for extraction in read.values() if extraction.span])
    known = _vocabulary(params, reading.about)
    likely: dict[str, Extraction] = {}
    for kind, spans in _KINDS:
        fitting = [
            param
            for param in params
            if param.name in required and param.name not in {**read, **likely} and kind(param)
        ]
        if len(fitting) != 1:
            continue
        [param] = fitting
        if len(left := spans(param, rest, known)) != 1:
            continue
        [(start, end)] = left
        end = _with_owned(reading.text, rest, start, end)
        raw = reading.text[start:end]
        likely[param.name] = Extraction(
            "filled", raw, raw, (start, end), DOUBTFUL, "what is left", (raw,)
        )
        rest = blanked(rest, (start, end))
    likely |= _bare_number(params, required, rest, read, reading)
    return likely | _unmarked_person(params, required, rest, known, {**read, **likely})


def _bare_number(
    params: Sequence[Param],
    required: Sequence[str],
    rest: str,
    read: Mapping[str, Extraction],
    reading: Reading,
) -> dict[str, Extraction]:
    """The one number that is left, for the one number that is needed: "I'd like to donate 20"."""
    needed = [
        param
        for param in params
        if param.name in required and param.name not in read and param.type in NUMERIC
    ]
    bare = [
        numeral
        for numeral in numerals(rest)
        if numeral.value != 1 and _stands_alone(rest, numeral, needed)
    ]
    if len(needed) != 1 or len(bare) != 1:
        return {}
    [param], span = needed, (bare[0].start, bare[0].end)
    if param.type is ParamType.MONEY and _TIME_BEHIND.match(rest, span[1]):
        return {}
    reply = Reply(rest[slice(*span)], prompt=param.prompt or "?", now=reading.now)
    answer = extract(param, reply)
    if answer.status != "filled":
        return {}
    value = answer.value
    return {
        param.name: Extraction(
            "filled", value, answer.raw, span, DOUBTFUL, "what is left", (value,)
        )
    }


_TIME_BEHIND: Final = re.compile(
    r"[\s-]*(?:years?|yrs?|months?|weeks?|days?|nights?|hours?|hrs?|min(?:ute)?s?)\b", re.IGNORECASE
)
"""A unit that makes a number no sum: "retiring after twenty years"."""


def _stands_alone(text: str, numeral: Numeral, needed: Sequence[Param]) -> bool:
    """Whether a number is by itself, or counts what is needed: not "with the 2 kids"."""
    before, behind = text[: numeral.start][-1:], text[numeral.end :][:1]
    if before.strip() not in ("", "(") or behind.strip() not in ("", ".", ",", ";", "!", "?", ")"):
        return False
    nouns = _NOUNS.match(text, numeral.end)
    words = nouns["words"].lower().split() if nouns else []
    own = frozenset[str]().union(*map(own_stems, needed))
    return not words or words[0] in _NO_NOUN or any(stem(word) in own for word in words)


_NOUNS: Final = re.compile(r"(?P<words>(?:\s[^\W\d_]+){1,3})")
_NO_NOUN: Final = FUNCTION_WORDS | {"altogether", "total", "max"}


_OWNED: Final = re.compile(r"\b(?:my|our|the|an?)$", re.IGNORECASE)


def _with_owned(text: str, rest: str, start: int, end: int) -> int:
    """Behind the value that a last "my" leads to: "heel came off my boots"."""
    blank = re.compile(r"\s+").match(rest, end) if _OWNED.search(rest, start, end) else None
    return end + len(text[end : blank.end()].rstrip()) if blank else end


def _unmarked_person(
    params: Sequence[Param],
    required: Sequence[str],
    rest: str,
    known: AbstractSet[str],
    read: Mapping[str, Extraction],
) -> dict[str, Extraction]:
    """The one person that is needed, written small: "two seats for friday, ann lee".

    Where a free text is open as well, words alone may be that: then "for" or "I'm" must lead.
    """
    unread = [param for param in params if param.name in required and param.name not in read]
    people = [param for param in unread if is_person(param)]
    if len(people) != 1:
        return {}
    free = any(
        param.type in (ParamType.TEXT, ParamType.NAME, ParamType.PLACE) and not is_person(param)
        for param in unread
    )
    named = [
        (start, end)
        for start, end, led in _small_people(rest, known)
        if led or (not free and _FINAL.match(rest, end))
    ]
    if len(named) != 1:
        return {}
    [(start, end)] = named
    raw = rest[start:end]
    reason = "may be the name of a person"
    return {people[0].name: Extraction("filled", raw, raw, (start, end), DOUBTFUL, reason, (raw,))}


_SEGMENT: Final = re.compile(
    r"(?:^\s*|[,.;:!?\n]\s*|(?<=\s\s)(?=\S)|(?=\s(?:for|under)\s)\s)"
    r"(?P<lead>(?:(?:and|its|it['’]?s|it is|this is|i['’]?m|i am|for|under|from|me|name|regards"
    r"|thanks|cheers|thx)[\s,]{1,3})*)"
    r"(?P<name>[^\W\d_]{2,}\s[^\W\d_]{2,}(?:['’-][^\W\d_]+)?)"
    r"(?=\s*(?:$|[,.;:!?\n(]|\s{2}|(?:born|tel|phone|here|please|pls|thanks|on|at|by|from)\b))",
    re.IGNORECASE,
)
_FINAL: Final = re.compile(
    r"\W*(?:(?:born|tel|phone)\b|(?:(?:please|pls|thanks|thx|ta)\b\W*)?$)", re.IGNORECASE
)


def _small_people(text: str, known: AbstractSet[str]) -> list[tuple[int, int, bool]]:
    """Two words between commas that no list knows, and whether words lead to a name."""
    people = []
    for match in _SEGMENT.finditer(text):
        group = tokens(match["name"])
        if could_be_person(group) and not any(stem(word.low) in known for word in group):
            people.append((*match.span("name"), match["lead"] != ""))
    return people


def _rest(reading: Reading, taken: Sequence[Span]) -> str:
    """The message without values of closed types, and without clauses that hold no value."""
    text = reading.text
    clauses = clauses_of(text)
    idle = [clause for clause in clauses if clause.act in _HELD]
    if all(clause.act in ("hello", *_HELD) for clause in clauses):
        idle = [clause for clause in idle if clause.act != "question"]  # it begins the request
    spans = closed_spans(Param(name="rest"), Reply(text, now=reading.now))
    rest = without(text, idle)
    for span in (*taken, *spans):
        rest = blanked(rest, span)
    return rest


def _vocabulary(params: Sequence[Param], about: str) -> frozenset[str]:
    """Stems of the words that the request says of itself: none of them is a value of it."""
    written = " ".join([about, *(f"{param.description} {param.prompt}" for param in params)])
    words = [word for param in params for word in split_name(param.name)]
    return frozenset(map(stem, [*words, *re.findall(r"[^\W\d_]+", written.lower())]))


def _is_name(param: Param) -> bool:
    if param.type is ParamType.TEXT:
        return asks_for_name(param)
    return param.type in (ParamType.NAME, ParamType.PERSON, ParamType.PLACE)


def _is_thing(param: Param) -> bool:
    free = param.type is ParamType.TEXT and not is_narrative(param)
    return free and not param.pattern and not _says_where(param) and not is_colour(param)


def _is_story(param: Param) -> bool:
    return param.type is ParamType.TEXT and is_narrative(param) and not param.pattern


def _is_where(param: Param) -> bool:
    return param.type is ParamType.TEXT and _says_where(param)


def _says_where(param: Param) -> bool:
    """Whether the values are places: not "what hurts", though it may be asked where it does."""
    asked = param.prompt if not _WHAT.search(param.description) else ""
    return re.search(r"\bwhere\b", f"{param.description} {asked}", re.IGNORECASE) is not None


_WHAT: Final = re.compile(r"\bwh(?:at|ich)\b", re.IGNORECASE)


def _is_address(param: Param) -> bool:
    return param.type is ParamType.ADDRESS


def _addresses(param: Param, text: str, known: AbstractSet[str]) -> list[Span]:
    return [(place.start, place.end) for place in addresses(text)]


def _names(param: Param, text: str, known: AbstractSet[str]) -> list[Span]:
    """Capitalised words within a sentence; else a word in a name's place, in small letters."""
    words = tokens(text)
    names = [
        (run.start, run.end)
        for run in (_behind_verb(text, words, run, known) for run in runs(text, words))
        if not _opens(text, run.start)
        and not all(
            stem(word.low) in known or word.low in GENERIC_NOUNS or not word.text.isalpha()
            for word in words[run.first : run.last]
        )
        and not (is_of_person(param) and is_bystander(text, words[run.first : run.last]))
    ]
    if names or is_of_person(param):
        return names
    if param.type is ParamType.PLACE:
        return _small_places(text, known)
    return objects_in(text, known) if own_stems(param) & PETS else []


def _behind_verb(text: str, words: Sequence[Token], run: Run, known: AbstractSet[str]) -> Run:
    """The run without a word of the request that begins a sentence: "Enrol Ada Pike"."""
    led = stem(words[run.first].low) in known and run.last - run.first > 1
    if not led or not _opens(text, run.start):
        return run
    return Run(run.first + 1, run.last, words[run.first + 1].start, run.end)


def _opens(text: str, start: int) -> bool:
    return re.search(r"(?:^|[.!?\n])\W*$", text[max(0, start - 20) : start]) is not None


_TO: Final = re.compile(
    r"(?:\b(?:to|for|in|visit|of)\s+|(?:^|[:,.!?;\n]\s*)(?:(?:and|for|to)\s+)?)"
    r"(?P<place>[^\W\d_]{3,}(?:\s[^\W\d_]{3,}){0,2}?)"
    r"(?=\s*(?:$|[,.!?;:]|\s{2}|(?:from|on|for|at|in|with|and|please|pls|next|this|leaving|then)\b))",
    re.IGNORECASE,
)


def _small_places(text: str, known: AbstractSet[str]) -> list[Span]:
    """Words behind "to", "for" and "in", or alone between commas, that mean nothing else."""
    return [
        match.span("place")
        for match in _TO.finditer(text)
        if all(
            word not in NEVER_NAMES | GENERIC_NOUNS and stem(word) not in known
            for word in match["place"].lower().split()
        )
    ]


def _things(param: Param, text: str, known: AbstractSet[str]) -> list[Span]:
    """What a message is about; where it is asked what is damaged, what is wrong with it as well."""
    if _asks_fault(param) and (faults := _faults(text, known)):
        return faults
    return things_in(text, known, own_stems(param))


def _wheres(param: Param, text: str, known: AbstractSet[str]) -> list[Span]:
    where = place_in(text)
    return [(where.start, where.end)] if where else []


_SHORTEST: Final = 3
"""Words of a statement that tells something, at least."""

_PART: Final = re.compile(r"[,.;:!?\n]+(?=\s|$)|\s{3,}")


def _stories(param: Param, text: str, known: AbstractSet[str]) -> list[Span]:
    """The clauses of a message that wish for nothing, without words that say nothing at an edge.

    Where it is asked what is wrong, the parts that say that something is.
    """
    if _asks_fault(param) and (faults := _faults(text, known)):
        return faults
    told = _told(text, known) or topics_in(text, known)
    return [(behind_lead(param, text, start, end), end) for start, end in told]


def _told(text: str, known: AbstractSet[str]) -> list[Span]:
    """The clauses that wish for nothing and tell something."""
    stories = []
    for clause in clauses_of(text):
        wishes = WISHES.search(clause.text) or _MUST.search(clause.text)
        if clause.act != "say" or wishes or is_remark(clause.text):
            continue
        cuts = [clause.start, *(m.end() + clause.start for m in _PART.finditer(clause.text))]
        parts = [
            trim(text, start, end)
            for start, end in zip(cuts, [*cuts[1:], clause.end], strict=True)
            if _telling(text[start:end], known)
        ]
        if sum(len(_telling(text[start:end], known)) for start, end in parts) >= _SHORTEST:
            stories.append((parts[0][0], parts[-1][1]))
    return stories


_MUST: Final = re.compile(
    r"\b(?:i|we)(?:['’]?ve)?\s+(?:got to|have to|need to|must)\b", re.IGNORECASE
)
_FAULT: Final = re.compile(
    r"\b(?:wrong|broken?|faults?|faulty|damaged?|defects?|trouble|problem|matter)\b", re.IGNORECASE
)


def _asks_fault(param: Param) -> bool:
    return _FAULT.search(f"{param.description}; {param.prompt}") is not None


_FAILS: Final = re.compile(
    r"\b(?:(?:(?:wo|does|is|has|are|have)n['’]?t|(?:will|does|is|has|are) not|stopped|keeps?|kept"
    r"|came|fell|(?:has|have) (?:come|gone|fallen|stopped))\s+[^\W\d_]+"
    r"|(?:has|have|is|are)\s+gone\b|packed (?:in|up)"
    r"|snapped|split|torn|ripped|bent|burst|die[sd]|loose|stuck|missing|blocked|dripping)\b",
    re.IGNORECASE,
)
"""What a thing does that is wrong: "wont charge", "came off"."""
_SPEAKER: Final = re.compile(r"\b(?:i|we)\s*$", re.IGNORECASE)


def _faults(text: str, known: AbstractSet[str]) -> list[Span]:
    """The parts of a message that say what is wrong with a thing, joined where they follow."""
    faults: list[Span] = []
    for clause in clauses_of(text):
        for part in phrases_of(clause) if clause.act == "say" else ():
            start, end = _without_edges(text, *trim(text, part.start, part.end))
            if not _says_fault(text[start:end], known):
                continue
            if faults and re.fullmatch(r"\W*(?:and|but)?\W*", text[faults[-1][1] : start], re.I):
                start = faults.pop()[0]
            faults.append((start, end))
    return faults


def _without_edges(text: str, start: int, end: int) -> Span:
    """A part without prepositions at its ends, where they lead to a value that was taken out."""
    words = [word for word in tokens(text) if start <= word.start and word.end <= end]
    while words and words[0].low in PREPOSITIONS | CONJUNCTIONS:
        words = words[1:]
    if words and words[-1].low in PREPOSITIONS and text[words[-1].end :].startswith("  "):
        words = words[:-1]
    return (words[0].start, words[-1].end) if words else (start, start)


def _says_fault(text: str, known: AbstractSet[str]) -> bool:
    """Whether words say what is wrong, and more than that something is: not "report a fault"."""
    fails = any(not _SPEAKER.search(text, 0, match.start()) for match in _FAILS.finditer(text))
    words = [word.low for word in tokens(text) if word.low not in FUNCTION_WORDS]
    named = any("broken" in WORDS.get(stem(word), ()) for word in words)
    fails = fails or any("broken" in meant for _, _, meant in phrases_in(text.lower()))
    plain = _PLAINLY_WRONG if fails else _PLAINLY_WRONG | known
    telling = any(stem(word) not in plain for word in words)
    return (fails or named) and telling and not WISHES.search(text)


_PLAINLY_WRONG: Final = frozenset(
    map(stem, word_set("broken broke break fault faulty damaged working work isnt doesnt one"))
)
"""Words that only say that something is wrong."""


def _telling(text: str, known: AbstractSet[str]) -> list[str]:
    """The words of a text that are neither function words nor the request's own."""
    words = [word.low for word in tokens(text) if word.low not in FUNCTION_WORDS]
    return [word for word in words if stem(word) not in known and not word.isdigit()]


_KINDS: Final[
    Sequence[tuple[Callable[[Param], bool], Callable[[Param, str, AbstractSet[str]], list[Span]]]]
] = (
    (_is_address, _addresses),
    (_is_name, _names),
    (_is_where, _wheres),
    (_is_thing, _things),
    (_is_story, _stories),
)
"""The kinds of parameters that nearly any words may be a value of, and where to look for them."""
