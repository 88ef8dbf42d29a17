"""Names of people, whole or only the first or last name, as the parameter asks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.closed_spans import closed_spans
from langmem_ext.waiting.extract.english.lexicon import (
    GENERIC_NOUNS,
    word_set,
)
from langmem_ext.waiting.extract.english.tokens import Token, before, runs, tokens
from langmem_ext.waiting.extract.english.vocabulary import own_stems, split_name, stem
from langmem_ext.waiting.extract.names.bystanders import KIN, is_bystander, is_firm, is_of_others
from langmem_ext.waiting.extract.names.openness import keep
from langmem_ext.waiting.extract.names.written_small import (
    ALSO_NAMES,
    GETTERS,
    LOOSE_NAME,
    ME_FIRST,
    NO_PART,
    STATES,
    STREETS,
    THINGS,
    TITLES,
    has_role,
    is_all_of,
    is_full_name,
    marked_small,
    named_small,
    small_answer,
    small_with_role,
)
from langmem_ext.waiting.extract.numbers.numerals import UNITS
from langmem_ext.waiting.extract.reply import Reply

_CUE = re.compile(
    r"(?:\b(?:name(?:'s| is| would be| will be|:)?|named|called|call me|i am|i'm|im|this is|it"
    r" is|it's|to|for|with|from|by|under|mr|mrs"
    r"|ms|miss|dr|doctor|as|is|contact|send|pay))\W*(?:(?:my|our|the|his|her)\s+)?$",
    re.I,
)

_SURE = re.compile(
    r"\b(?:name(?:['’]?s| is| will be| would be|:)?|name (?:for|on|of)(?: (?:the|my|this|our)"
    r" \w+)?(?: is| would be| will be|:)?"
    r"|named|called|call me|under(?: the)?(?: name)?(?: of)?)\W*$",
    re.I,
)

_OWN_NAME = re.compile(
    r"\bmy (?:own |full )?name(?:['’]?s| is|:)?\s*(?:dr|mrs?|ms|miss)?\.?\s*$", re.I
)

_INTRODUCED = re.compile(
    r"(?:^|[.,;!?]|\b(?:and|hi|hello|hey|so|yes|well))\W*(?:i am|i['’]?m|this is|it is|it['’]?s)(?:"
    r" for)?\W*$",
    re.I,
)
"""Words that introduce whoever speaks, or whom it is for, where a name follows and not a state."""

_INTRODUCED_ENDS = re.compile(
    r"\W*(?:$|[.,;!?]|(?:and|here|speaking|calling|from|again|i|we|table|party|please|for)\b)", re.I
)

_HERE = re.compile(r"\s+(?:here|speaking|calling)\b", re.I)

_TITLED = re.compile(r"\b(?:mr|mrs|ms|miss|mx|dr|doctor|prof|professor)\.?\s*$", re.I)

_NAME_WORDS = word_set("name name's names surname")
"""What a capitalised word before a name may be: "Name's Ann Lee"."""

_FIRST_NAMED = re.compile(r"\b(?:first|given|fore)\s*-?\s*name(?:'s| is|:)?\s*(?:is\s+)?$", re.I)

_LAST_NAMED = re.compile(
    r"\b(?:(?:last|family|sur|second)\s*-?\s*name)(?:'s| is|:)?\s*(?:is\s+)?$", re.I
)

_KIN = word_set("aunt aunty auntie uncle grandma grandpa")

_DEMONYM = re.compile(r"[A-Z][a-z]{2,}(?:ese|ish|ian|ean|ican)|[A-Z][a-z]ish")

_PART_NAMED = re.compile(
    r"\b(first|given|last|family|second|sur(?=name))(?=[\w ,/&-]{0,14}name)", re.I
)

_PARTICLES = word_set("de la del della du dos das da di van von der den ter bin al el le")

_NAME_SHAPE = re.compile(
    r"(?:[DO]['’]|Mc|Mac)?[^\W\d_a-z][^\W\d_]*[a-zà-öø-ÿ][^\W\d_]*(?:['’-][^\W\d_]+)*|[A-Z]\.?"
)

_SOMEWHERE = re.compile(
    r"\b(?:in|at|from|near|around|via|on|to|into|towards?|through|visit|visiting|of|about|the|an?"
    r"|this|that)\s+(?:the\s+)?$",
    re.I,
)
"""Words after which capitalised words are rather a place or a thing."""

_LEADS = re.compile(
    r"\b(?:for|with|by|under|is|it['’]?s|i['’]?m|am|contact|call|ask"
    r" for|see|meet|mr|mrs|ms|miss|dr|doctor|name|customer|patient|visitor"
    r"|guest|owner|client|tenant|student|and|from me|regards|yours|thanks)\.?\s+$",
    re.I,
)
"""Words that a name may follow at once."""

_KIN_BEFORE = re.compile(rf"\b{KIN}(?:['’]s name is|\s+is called|\s+called|,)?\s+$", re.I)

_PAY = re.compile(r"\b(?:pay|give|tip|reimburse)\s+(?:my\s+)?$", re.I)

_GIVEN_TO = re.compile(
    r"\b(?:send|pay|transfer|give|wire|forward|donate)\b(?:[^.!?]|\.\d){0,60}\b(?:to"
    r"|for)\s+(?:my\s+)?$",
    re.I,
)

_OF_PERSON = re.compile(
    r"\b(?:person|customer|visitor|owner|guest|client|patient|student|pupil|member|user|passenger"
    r"|tenant|employee|caller|contact|holder"
    r"|surname|(?:your|full|first|last|family) name|(?:name|whom?) for the"
    r" (?:booking|reservation|table|appointment)|under which name)\b",
    re.I,
)


def _part(param: Param) -> str:
    """Which part of a name is asked for: `first`, `last` or the whole."""
    words = {*split_name(param.name), *re.findall(r"[a-z]+", param.description.lower())}
    if words & {"first", "given", "forename", "firstname"}:
        return "" if words & {"last", "surname", "lastname", "full"} else "first"
    return "last" if words & {"last", "family", "surname", "lastname"} else ""


def _fit(lead: str, part: str) -> int:
    titled = _TITLED.search(lead)
    lead = lead[: titled.start()] if titled else lead
    if _FIRST_NAMED.search(lead):
        return -1 if part == "last" else 3
    if _LAST_NAMED.search(lead):
        return -1 if part == "first" else 3
    if not part and _OWN_NAME.search(lead):
        return 3
    if _SURE.search(lead):
        return 2
    return (2 if titled else 1) if _CUE.search(lead) else 0


def _introduced(text: str, group: Sequence[Token]) -> bool:
    """Whether a message introduces this name: "I'm Bo", "this is Ruth", "Ruth here"."""
    if len(group) == 1 and (group[0].low in STATES or _DEMONYM.fullmatch(group[0].text)):
        return False
    start, end = group[0].start, group[-1].end
    if _INTRODUCED.search(before(text, start)):
        return _INTRODUCED_ENDS.match(text, end) is not None
    return not text[:start].strip() and _HERE.match(text, end) is not None


_SPEAKS = re.compile(r"\b(?:i['’]?m|i am|it['’]?s|it is|this is)\s+$", re.I)


def _is_speaker_for(param: Param, text: str, group: Sequence[Token]) -> bool:
    """Whether a name is that of who speaks, where the one is wanted who gets something."""
    return (
        not own_stems(param).isdisjoint(GETTERS)
        and _SPEAKS.search(before(text, group[0].start)) is not None
    )


def _stands_alone(reply: Reply, group: Sequence[Token]) -> bool:
    """Whether two to four capitalised words are a person without words that introduce one."""
    text, start = reply.text, group[0].start
    if any(
        other.type in (ParamType.PLACE, ParamType.NAME) and not is_of_person(other)
        for other in reply.others
    ):
        return False
    if (
        not 2 <= len(group) <= 4
        or not all(_is_written(word) for word in group)
        or text[group[0].start : group[-1].end].count(",") > 0
    ):
        return False
    lead = before(text, start)
    if _MADE_BY.search(lead):
        return False
    if any(THINGS.search(word.text) or _DEMONYM.fullmatch(word.text) for word in group):
        return False
    return (
        _is_placed(text, group)
        and _SOMEWHERE.search(lead) is None
        and STREETS.search(text[start : group[-1].end]) is None
        and not _of_street(text, group)
    )


_MADE_BY = re.compile(r"\b(?-i:[A-Z])[\w'’]*\s+by\s+$")
"""Words before who made a thing that has a name: "Blue Train by John Coltrane"."""


def _is_placed(text: str, group: Sequence[Token]) -> bool:
    """Whether words are in a name's place: after words that lead to one, or set apart."""
    lead, rest = before(text, group[0].start), text[group[-1].end :]
    if not re.search(r"[,.;:!?()\n–—-]\s*$|^\s*$", lead):
        return _LEADS.search(lead) is not None
    if re.search(r"[^\W\d_]{3}.*\W\s*$", lead, re.S):
        return (
            re.match(r"\s*(?:$|[,.;:!?()\n–—-]|(?:and|born|here|please|from)\b)", rest) is not None
        )
    return re.match(r"\s*(?:[,.;:\n(–—-]|born\b)(?=.*[\d@])", rest, re.S) is not None


def _of_street(text: str, group: Sequence[Token]) -> bool:
    """Whether a house number comes before the words, or a code behind them."""
    return (
        re.search(r"\d[a-z]?\s+$", before(text, group[0].start), re.I) is not None
        or re.match(r",?\s+\d{4,}\b(?!\s?\d)", text[group[-1].end :]) is not None
    )


def _is_written(word: Token) -> bool:
    """Whether a word is written like a part of a name, and not capitalised for other reasons."""
    return word.low in _PARTICLES or (
        _NAME_SHAPE.fullmatch(word.text) is not None and word.low not in NO_PART
    )


def _is_titled_as(param: Param, text: str, group: Sequence[Token]) -> bool:
    """Whether a title says that it is the doctor who is looked for: "Dr Bo told us"."""
    titled = _TITLED.search(before(text, group[0].start))
    return (
        titled is not None
        and titled.group().lower().startswith("d")
        and not own_stems(param).isdisjoint(_DOCTORS)
    )


_DOCTORS = frozenset(map(stem, ("doctor", "gp", "physician", "surgeon")))


def _is_kin(text: str, group: Sequence[Token]) -> bool:
    """Whether a word for a person is right before the name: "my son Oskar"."""
    return _KIN_BEFORE.search(before(text, group[0].start)) is not None and all(
        _NAME_SHAPE.fullmatch(word.text) for word in group[:1]
    )


def _is_paid(param: Param, reply: Reply, group: Sequence[Token]) -> bool:
    """Whether a person gets something here, and the parameter is whoever gets it."""
    if not own_stems(param) & GETTERS:
        return False
    lead = before(reply.text, group[0].start)
    gift = _GIVEN_TO.search(lead)
    # What is sent to a place is a thing: where a place is looked for as well, only a sum is sent to
    # a person.
    place = any(other.type == ParamType.PLACE for other in reply.others)
    return _PAY.search(lead) is not None or (
        gift is not None and not (place and not re.search(r"\d", gift.group()))
    )


def is_person(param: Param) -> bool:
    """Whether the values of a parameter are people's names."""
    return param.type is ParamType.PERSON or (param.type is ParamType.NAME and is_of_person(param))


def is_of_person(param: Param) -> bool:
    """Whether a parameter of the open type for names is a person's name, by its own words."""
    return (
        _OF_PERSON.search(f"{param.name.replace('_', ' ')} {param.description} {param.prompt}")
        is not None
    )


def _groups(reply: Reply, masked: Sequence[tuple[int, int]]) -> list[list[Token]]:
    """The capitalised names of a reply, as words, without titles."""
    words = tokens(reply.text)
    groups: list[list[Token]] = []
    for run in runs(reply.text, words, masked):
        first = run.first
        while (
            first
            and words[first - 1].low
            in (_KIN | _PARTICLES if run.last - run.first == 1 else _PARTICLES)
            and reply.text[words[first - 1].end : words[first].start].isspace()
        ):
            first -= 1
        while (
            first
            and words[first - 1].low in ALSO_NAMES
            and words[first - 1].capitalised
            and reply.text[words[first - 1].end] == " "
        ):
            first -= 1
        group = [
            word
            for word in words[first : run.last]
            if word.low.strip(".") not in TITLES | UNITS.keys() and LOOSE_NAME.fullmatch(word.text)
        ]
        while len(group) > 1 and group[0].low in _NAME_WORDS:
            group = group[1:]
        group = _without_kin(group)
        if not group or all(word.low in GENERIC_NOUNS for word in group):
            continue
        gap = reply.text[groups[-1][-1].end : group[0].start].strip() if groups else ""
        if gap in (",", ".") and {w.low for w in groups[-1]} < {w.low for w in group}:
            groups[-1] = group  # "Lee, Ann Lee"
        elif gap == ",":
            if len(group[0].text) == 1:
                continue
            again = groups[-1][0].low == group[0].low  # "Ann, Ann Bell"
            groups[-1] = group if again else [*groups[-1], *group]
        else:
            groups.append(group)
    return [group for group in groups if group[0].low != "the"]  # "The Old Forge, Church Row"


def _without_kin(group: list[Token]) -> list[Token]:
    """The words of a name without the word for who it is: "Neighbour Ann Lee", not "Aunt May"."""
    while len(group) > 1 and re.fullmatch(KIN, group[0].low):
        if group[0].low in _KIN and len(group) == 2:
            break
        group = group[1:]
    return group


def _chosen(group: Sequence[Token], part: str, reply: Reply) -> Sequence[Token]:
    """The words of a name that the parameter asks for; none when it holds only the other part."""
    if part and len(group) == 1:
        return group if _asked_first(part, reply) else ()
    if part == "first":
        return group[:1]
    if part == "last":
        return next(
            (group[at:] for at in range(1, len(group)) if group[at].low in _PARTICLES), group[-1:]
        )
    return group


def _asked_first(part: str, reply: Reply) -> bool:
    """Whether a lone name is this part of a name.

    When both parts are asked for, it is the one that the question names first.
    """
    if not any(
        other.type == ParamType.PERSON and _part(other) not in ("", part) for other in reply.others
    ):
        return True
    named = [match[1].lower() for match in _PART_NAMED.finditer(reply.prompt)]
    return ("first" if not named or named[0] in ("first", "given") else "last") == part


def _strict_fit(param: Param, reply: Reply, group: Sequence[Token], fit: int) -> int:
    """The fit of a name in a message that answers nothing: 2 when marked as a person's.

    It is 3 where a word of the parameter is beside it.
    """
    if not 0 <= fit < 2:
        return fit
    text = reply.text
    if has_role(param, text, group):
        return 3
    marked = (
        _TITLED.search(before(text, group[0].start))
        or (_introduced(text, group) and not _is_speaker_for(param, text, group))
        or _is_kin(text, group)
        or _stands_alone(reply, group)
        or _is_paid(param, reply, group)
    )
    return 2 if marked else fit


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The names of people in a reply, or their first or last parts."""
    masked = closed_spans(param, reply)
    part, text = _part(param), reply.text
    groups = _groups(reply, masked)
    confidence = 0.75
    if not groups:
        role = small_with_role(param, text)
        small = role or named_small(text, masked) or marked_small(param, text)
        small = small if small or reply.strict else small_answer(reply, masked)
        groups, confidence = (
            ([small], 0.6 if role or (len(small) > 1 and is_all_of(small, text)) else 0.5)
            if small
            else ([], confidence)
        )
    if reply.strict:
        groups = [
            one
            for one in groups
            if _is_titled_as(param, text, one)
            or not (is_bystander(text, one) or is_firm(one) or is_of_others(param, text, one))
        ]
    candidates = []
    for group in groups:
        fit = _fit(before(text, group[0].start), part)
        fit = (
            2
            if reply.strict and confidence < 0.7
            else _strict_fit(param, reply, group, fit)
            if reply.strict
            else fit
        )
        if not reply.strict and _stands_apart(text, group):
            fit = max(fit, 2)
        words = group if fit == 3 else _chosen(group, part, reply)
        if words:
            start, end = words[0].start, words[-1].end
            if re.search(r"['’]s$", text[start:end]):
                end -= 2
            candidates.append(
                Candidate(
                    start,
                    end,
                    text[start:end],
                    min(0.9, confidence + 0.05 * max(fit, 0)),
                    fit,
                    "name of a person",
                )
            )
    kept = keep(reply, candidates, strict_fit=2)
    return kept if kept or not reply.strict else _unmarked(param, reply, groups)


def _stands_apart(text: str, group: Sequence[Token]) -> bool:
    """Whether an answer begins with a full name, or one is a sentence: "Ann Lee. don't tell Bo"."""
    lead, rest = before(text, group[0].start), text[group[-1].end :]
    first = re.fullmatch(rf"\W*{re.escape(group[0].text)}\W+", lead, re.I)  # "ann. Ann Lee"
    opens = (ME_FIRST.fullmatch(lead) or first) and re.match(r"\s*(?:[.,;!\n–-]|but\b|and\b)", rest)
    whole = re.search(r"[.!?\n]\s+$", lead) and re.match(r"\s*(?:$|[.!\n])", rest)
    return is_full_name(group) and (opens or whole) is not None


def _unmarked(param: Param, reply: Reply, groups: Sequence[Sequence[Token]]) -> list[Candidate]:
    """The one name that a message holds and nothing marks: it is asked about before it counts.

    One word counts within a sentence only, for any word may begin one; two may begin a message.
    """
    text = reply.text
    if _part(param) or len(groups) != 1 or any(other.type in _NAMED for other in reply.others):
        return []
    [group] = groups
    start, end = group[0].start, group[-1].end
    lead = before(text, start)
    opens = re.search(r"(?:^|[.!?\n])\W*$", lead) is not None
    placed = (
        _SOMEWHERE.search(lead)
        or re.search(r"\b(?:my|our|your)\s+$", lead, re.I)
        or _of_street(text, group)
        or STREETS.search(text[start:end])
    )
    if (
        placed
        or len(group) > 2
        or (len(group) == 1 and re.search(r"['’]s$", text[start:end]))  # "Pam's away then"
        or (len(group) == 1 and _DID.match(text, end))  # "Petes got the day off"
        or (opens and (len(group) < 2 or not _SUBJECT_ENDS.match(text, end)))
        or not all(_is_written(word) and not THINGS.search(word.text) for word in group)
        or any(_DEMONYM.fullmatch(word.text) for word in group)
        or any(word.low in STATES | GENERIC_NOUNS for word in group)
    ):
        return []
    end -= 2 if re.search(r"['’]s$", text[start:end]) else 0
    return [Candidate(start, end, text[start:end], 0.45, 2, "may be the name of a person")]


_DID = re.compile(r"\s+(?:got|[a-z]{3,}(?<!e)ed)\b")

_SUBJECT_ENDS = re.compile(
    r"\s*(?:[,–—-]|(?:is|was|has|will|would|wo|ca|can|wants?|needs?)(?:n?['’]?t)?\b)", re.I
)
"""What follows two words that open a message and may be somebody."""

_NAMED = (ParamType.PERSON, ParamType.PLACE, ParamType.NAME)
"""Types of values that are written like a person's name."""
