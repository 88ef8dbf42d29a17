"""Telephone numbers, normalised to E.164."""

from __future__ import annotations

import phonenumbers
from phonenumbers import Leniency, PhoneNumberFormat, PhoneNumberMatcher, ValidationResult

from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.reply import Reply
from langmem_ext.waiting.param import Param

_REGION = "US"
"""Numbering plan for numbers written without a country's code."""


def phones(text: str, *, strict: bool) -> list[Candidate]:
    """The numbers of `text`, in its order; with `strict` only such as are in use by their numbering plan."""
    leniency = Leniency.VALID if strict else Leniency.POSSIBLE
    found = []
    for match in PhoneNumberMatcher(text, _REGION, leniency=leniency):
        if phonenumbers.is_possible_number_with_reason(match.number) != ValidationResult.IS_POSSIBLE:
            continue
        valid = phonenumbers.is_valid_number(match.number)
        value = phonenumbers.format_number(match.number, PhoneNumberFormat.E164)
        found.append(Candidate(match.start, match.end, value, 0.95 if valid else 0.6, 1 if valid else 0, "telephone number"))
    return found


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The telephone numbers of a reply."""
    return phones(reply.text, strict=reply.strict)
