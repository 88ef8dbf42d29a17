"""E-mail addresses, as written or spelled out ("ann at example dot com")."""

from __future__ import annotations

import re

from email_validator import EmailNotValidError, validate_email

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.reading_cache import remembered
from langmem_ext.waiting.extract.reply import Reply

_WRITTEN = re.compile(r"[^\s@<>()\[\],;:\"'“”]{1,64}@[^\s@<>()\[\],;:\"'“”!?]{1,190}")
_SPELLED = re.compile(
    r"\b(?P<local>[\w+-]{1,64}(?:(?:\s{1,3}dot\s{1,3}|\.)[\w+-]{1,64}){0,4})\s{0,3}(?:\(at\)|\[at\]"
    r"|\s{1,3}at\s{1,3}"
    r"|@)\s{0,3}(?P<domain>[\w-]+(?:(?:\s{1,3}dot\s{1,3}|\s?\(dot\)\s?"
    r"|\.)[\w-]+)+)",
    re.I,
)


def _valid(text: str) -> str | None:
    try:
        return validate_email(text, check_deliverability=False).normalized
    except (EmailNotValidError, ValueError):
        return None


@remembered
def emails(text: str) -> list[Candidate]:
    """The valid addresses of `text`, in its order."""
    candidates = []
    for match in _WRITTEN.finditer(text):
        end = match.end() - (len(match.group()) - len(match.group().rstrip(".*_")))
        value = _valid(text[match.start() : end])
        if value:
            candidates.append(Candidate(match.start(), end, value, 0.98, reason="e-mail address"))
    if candidates or not re.search(r"\bdot\b", text, re.I):
        return candidates
    for match in _SPELLED.finditer(text):
        value = _valid(
            re.sub(r"\s*\(?\bdot\b\)?\s*", ".", f"{match['local']}@{match['domain']}", flags=re.I)
        )
        if value and " " in match.group():
            candidates.append(
                Candidate(
                    match.start(), match.end(), value, 0.85, reason="e-mail address spelled out"
                )
            )
    return candidates


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The addresses of a reply."""
    return emails(reply.text)
