"""Names that are not the wanted ones: of people who are only told about, of companies."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.english.tokens import Token, before

KIN = (
    r"(?:wife|husband|partner|spouse|girlfriend|boyfriend|fianc[eé]e?|mother|mom|mum|father|dad"
    r"|sister|brother|son|daughter|friend|kid|child"
    r"|baby|guest|colleague|co-?worker|boss|client|cousin|aunt|uncle|grandma|grandpa|grandmother"
    r"|grandfather|grandson|granddaughter|roommate"
    r"|flatmate|neighbou?r|mate|niece|nephew|nan|gran|granny|grandad|aunty|auntie|landlord|landlady|tenant|teacher|assistant|manager"
    r"|secretary|patient|visitor|customer|pupil"
    r"|student|boy|girl|twin)"
)
"""Whom one has, as the source of a regular expression."""

_TRADE = (
    r"(?:solicitor|lawyer|accountant|agent|surveyor|plumber|builder|electrician|gp|doctor|vet|nurse"
    r"|midwife|coach|trainer|driver|receptionist|dentist|consultant|vicar|bank)"
)
"""People one deals with: their names are not the name of the user."""

_OTHERS = re.compile(
    rf"\b(?:my|our|his|her|their|the|your)\s+(?:\w+\s+)?(?P<who>{KIN}|{_TRADE}),?\s+"
    r"(?:(?:a|an|called|named)\s+)?(?:(?:mr|mrs|ms|miss|dr)\.?\s+)?$",
    re.I,
)
"""What stands before the name of somebody else: "my solicitor, Mr"."""

_NEAREST = re.compile(
    r"(?:wife|husband|partner|spouse|mother|mom|mum|father|dad|sister|brother|son|daughter|kid|child"
    r"|baby|grandson|granddaughter|boy|girl|twin|student|pupil|patient|client|customer|guest|tenant)",
    re.I,
)
"""Relatives and people in one's care: a message may be on their behalf."""

_THERE = r"(?:,?\s+(?:at|from|in|of|down|next)\s+(?:[\w'’]+\s+){0,2}?[\w'’]+)?,?"
"""Where somebody is who says or does something: "Debbie at the letting agents"."""

_REPORTS = re.compile(
    rf"{_THERE}"
    r"\s+(?:says?|said|tells?|told|reckons?|thinks?|thought|recommend(?:s|ed)|suggest(?:s|ed)"
    r"|mentioned|put me|gave me|showed)\b",
    re.I,
)

_DOES_SOMETHING = re.compile(
    rf"{_THERE}"
    r"\s+(?:who|said|told|thought|put|gave|had|got|knows|came|(?!is\b|was\b|has\b|this\b|as\b)[a-z]+(?<!s)s"
    r"|(?!died\b|passed\b)[a-z]+ed)\b",
    re.I,
)

_OF_SPEAKER = re.compile(
    r"\byour (?:own |full )?name\b"
    r"|\bperson who (?:books|writes|orders|pays|asks)\b"
    r"|\bname (?:for|of|on) the (?:booking|order|account)\b",
    re.I,
)
"""Words of a parameter that is the name of whoever writes."""


def is_of_others(param: Param, text: str, group: Sequence[Token]) -> bool:
    """Whether a name is somebody's of whom the speaker tells: "my sister Carol will fetch it"."""
    own = _OF_SPEAKER.search(f"{param.description} {param.prompt}")
    return own is not None and _OTHERS.search(before(text, group[0].start)) is not None


def is_bystander(text: str, group: Sequence[Token]) -> bool:
    """Whether a name is of somebody who only says or does something: "my neighbour Ann says"."""
    kin = _OTHERS.search(before(text, group[0].start))
    if kin is None:
        return _REPORTS.match(text, group[-1].end) is not None
    does = _REPORTS if _NEAREST.fullmatch(kin["who"]) else _DOES_SOMETHING
    return does.match(text, group[-1].end) is not None


_FIRM = re.compile(
    r"&|\b(?:ltd|limited|inc|llc|plc|gmbh|co|company|foods?|nurser(?:y|ies)|services|solutions"
    r"|systems|group|holdings|partners|associates|builders|motors|logistics|catering|cleaning"
    r"|plumbing|sons|bros|brothers|stores?|supermarkets?|farms?|industries|engineering|consulting"
    r"|estates|homes|brewery|bakery|cafe|academy|college|council|trust|club|properties|foundation)\b",
    re.I,
)
"""Words of the names of companies."""


def is_firm(words: Sequence[Token]) -> bool:
    """Whether a name is a company's: "Quillfield Nurseries"."""
    return len(words) > 1 and any(_FIRM.fullmatch(word.low) for word in words[1:])
