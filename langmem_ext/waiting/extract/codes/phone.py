"""Telephone numbers, normalised to E.164; local ones that fit no plan as their digits."""

from __future__ import annotations

import re

import phonenumbers
from phonenumbers import Leniency, PhoneNumberFormat, PhoneNumberMatcher, ValidationResult

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.english.tokens import before
from langmem_ext.waiting.extract.reply import Reply

_REGION = "US"
"""Numbering plan for numbers written without a country's code."""


_ABROAD = re.compile(r"(?<![\d+])(?<!\d[ .-])00(?=[1-9]\d)")
"""How a country's code is dialled in most countries; as long as what stands for it."""
_OWN_PREFIX = re.compile(r"0(?!0)")
"""A number that begins so belongs to some other country's plan, without its code."""
_OTHER_PLAN = re.compile(r"\d{5}[ .-]?\d{5}|\d{4}[ .-]\d{6}|\d{4}[ .-]\d{3}[ .-]\d{3}")
"""Ten digits in groups that are not those of the region's plan."""
_MORE = re.compile(r"[ .-]\d{3,}(?!\d*[.,:]\d)")
_LESS = re.compile(r"\d{2}[ .-]$|\+\d{1,3}[ .-]?$")


def _is_part(text: str, start: int, end: int) -> bool:
    """Whether the span is a part of a longer run of groups of digits."""
    return _MORE.match(text, end) is not None or _LESS.search(before(text, start)) is not None


def phones(text: str, *, strict: bool) -> list[Candidate]:
    """The telephone numbers of `text`, in order.

    With `strict`, only numbers that are in use by their numbering plan or have a country code.
    """
    candidates = []
    for match in PhoneNumberMatcher(_ABROAD.sub(" +", text), _REGION, leniency=Leniency.POSSIBLE):
        if (
            _is_part(text, match.start, match.end)
            or phonenumbers.is_possible_number_with_reason(match.number)
            != ValidationResult.IS_POSSIBLE
        ):
            continue
        valid = phonenumbers.is_valid_number(match.number) and not _OTHER_PLAN.fullmatch(
            match.raw_string.strip()
        )
        if strict and not valid and not match.raw_string.startswith("+"):
            continue
        value = phonenumbers.format_number(match.number, PhoneNumberFormat.E164)
        start = match.start - (text[match.start] == "0" and match.raw_string.startswith("+"))
        candidates.append(
            Candidate(
                start,
                match.end,
                value,
                0.95 if valid else 0.6,
                1 if valid else 0,
                "telephone number",
            )
        )
    return candidates


_LOCAL = re.compile(
    r"(?<![\w.,$€£+-])(?:\d{5}[ .-]\d{5}|\(0\d{2,4}\)(?:[ .-]?\d{3,4}){2}|0\d{2,4}(?:["
    r" .-]?\d{3,4}){2}"
    r"|0\d{1,4}(?:[ .-]?\d{2,4}){2,4}|\d{3}[.-]\d{4}|(?P<plain>\d{3} ?\d{4}))"
    r"(?!\w|,\d|[.-]\d|:\d)"
)
_CALL = re.compile(
    r"\b(?:phone|mobile|cell|tel|telephone|number|call|ring|reach|text|contact"
    r"|whatsapp)\b[^.;!?\d]{0,30}$",
    re.I,
)


def local_phones(text: str, *, strict: bool) -> list[Candidate]:
    """Telephone numbers without a country or area code, as digits; their country is unknown."""
    candidates = []
    for match in _LOCAL.finditer(text):
        digits = re.sub(r"\D", "", match.group())
        if _is_part(text, match.start(), match.end()):
            continue
        if match["plain"] and strict and not _CALL.search(before(text, match.start())):
            continue
        if len(digits) == 7 or 10 <= len(digits) <= (12 if digits[0] == "0" else 11):
            candidates.append(
                Candidate(match.start(), match.end(), digits, 0.75, 0, "local telephone number")
            )
    return candidates


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The telephone numbers of a reply; local numbers only where there is no complete one."""
    text = reply.text
    complete = [
        phone
        for phone in phones(text, strict=reply.strict)
        if phone.fit > 0 or not _OWN_PREFIX.match(text, phone.start)
    ]
    found = complete or local_phones(text, strict=reply.strict)
    return [phone for phone in found if not _is_not_for_us(text, phone)]


_FROM_THERE = re.compile(r"\b(?:rings?|calls?|phones?|texts?)\s+(?:\w+\s+)?from\s*$", re.I)
"""What stands before a number that somebody else calls from: "he rings from"."""
_NEVER_RING = re.compile(
    r"[^.;!?\d]{0,60}?\b(?:do\s?n['’]?t|do not|never)\s+(?:\w+\s+)?"
    r"(?:save|use|ring|call|text|phone|contact|note|keep)(?:ing)?\s+(?:him|her|them|that|it)\b",
    re.I,
)
"""What follows a number that nobody is to ring: "he's on 07700 900118 but don't save that"."""
_OUT_OF_ORDER = re.compile(
    r"[\s,;(–-]*(?:but\s+)?(?:(?:that|this)(?:\s+(?:one|number|phone|line))?|it|which)"
    r"(?:['’]?s|\s+is|\s+has\s+been)\s+(?:\w+\s+)?(?:not\s+(?:working|in use)|disconnected|dead"
    r"|broken|switched off|cut off|out of (?:order|use|service))\b",
    re.I,
)
"""What follows a number that cannot be rung: "07700 900118 but that one's not working"."""


def _is_not_for_us(text: str, phone: Candidate) -> bool:
    """Whether words say that a number is not to be rung, or only somebody else's, or dead."""
    return (
        _FROM_THERE.search(before(text, phone.start)) is not None
        or _NEVER_RING.match(text, phone.end) is not None
        or _OUT_OF_ORDER.match(text, phone.end) is not None
    )
