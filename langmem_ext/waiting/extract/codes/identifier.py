"""Identifiers: what matches the declared pattern, or, without one, what looks like no word and is not another parameter's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from langmem_ext.errors import InvalidInput
from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.codes.email import emails
from langmem_ext.waiting.extract.dates.date import dates
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, word_set
from langmem_ext.waiting.extract.english.vocabulary import split_name, stem
from langmem_ext.waiting.extract.reply import Reply

_PIECE = re.compile(r"\S+")
_LOOSE = " \t\r\n.,;:!?\"“”'‘’()[]{}<>*"
_WIDTH = 4
"""Neighbouring pieces that may be one spelled identifier: `o - 1 2345`."""
_SHORT = 16
"""Pieces of a message short enough to look for twice as wide groups: one spelled letter by letter."""
_PIECES = 400
"""Pieces of a message that are searched."""
_KINDS = word_set("id ids number numbers code codes reference ref name identifier no nr key handle login")
_SPEAKER = word_set("i im username login")
_PEOPLE = frozenset(("user", "custom", "memb", "profil", "login", "account", "client", "employe"))


@lru_cache(maxsize=256)
def compiled(name: str, pattern: str) -> re.Pattern[str]:
    """A parameter's declared pattern.

    Raises:
        InvalidInput: It is no regular expression.
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InvalidInput(
            f"The pattern of parameter '{name}' is no regular expression ({error}). Correct it in the declaration."
        ) from error


def _windows(text: str) -> Iterator[tuple[int, int]]:
    """Every group of up to `_WIDTH` neighbouring pieces as `[start, end)`, one piece first."""
    pieces = [(match.start(), match.end()) for _, match in zip(range(_PIECES), _PIECE.finditer(text), strict=False)]
    for width in range(1, (_WIDTH if len(pieces) > _SHORT else 2 * _WIDTH) + 1):
        for first in range(len(pieces) - width + 1):
            start, end = pieces[first][0], pieces[first + width - 1][1]
            if end - start <= 80:
                yield start, end


def _variants(written: str) -> Iterator[str]:
    """Ways to write down what was spelled: without blanks, separators said as words, in capitals, with a hyphen before the digits."""
    said = re.sub(r"\s*\b(?:dash|hyphen|minus)\b\s*", "-", written, flags=re.I)
    said = re.sub(r"\s*\bunderscore\b\s*", "_", said, flags=re.I)
    tight = re.sub(r"\s+", "", said)
    for form in (said, tight, re.sub(r"\s*[-_]\s*", "-", said), re.sub(r"[\s_-]+", "-", said), re.sub(r"[\s_-]+", "", said)):
        hyphened = re.sub(r"(?<=[A-Za-z])(?=\d)", "-", form)
        yield from (form, form.upper(), form.lower(), hyphened, hyphened.upper(), hyphened.lower())


def _edges(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The span as it is, then without loose punctuation at its ends."""
    yield start, end
    begin, stop = start, end
    while begin < stop and text[begin] in _LOOSE:
        begin += 1
    while begin < stop and text[stop - 1] in _LOOSE:
        stop -= 1
    if begin < stop and (begin, stop) != (start, end):
        yield begin, stop
    if begin < stop and text[begin] == "#":
        yield begin + 1, stop


def by_pattern(param: Param, text: str) -> list[Candidate]:
    """Where the text holds something that matches the declared pattern as a whole, exactly first, then as spelled."""
    pattern = compiled(param.name, param.pattern or "")
    found: list[Candidate] = []
    for spelled in (False, True):
        for start, end in _windows(text):
            for begin, stop in _edges(text, start, end):
                if begin >= stop or any(other.overlaps(begin, stop) for other in found):
                    continue
                written = text[begin:stop]
                forms = _variants(written) if spelled else iter((written,))
                value = next((form for form in forms if form and pattern.fullmatch(form)), None)
                if value is not None:
                    found.append(Candidate(begin, stop, value, 0.9 if spelled else 0.99, 0 if spelled else 1, "matches the pattern"))
        if found:
            break
    return sorted(found, key=lambda candidate: candidate.start)


def _nouns(param: Param) -> set[str]:
    """Stems of the words that tell this identifier from another: `user` of `user_id`."""
    return {stem(word) for word in split_name(param.name) if word not in _KINDS}


def _owner(segment: str, own: set[str], theirs: Sequence[set[str]], *, alone: bool) -> int:
    """Whose an identifier is by the words before it, the nearest first.

    2: its own noun; 1: only "my id is" or nothing, and it alone was asked for; -1: another's, or nobody's.
    """
    words = [word.lower() for word in re.findall(r"[A-Za-z]+", re.split(r"[.!?]\s+(?!it\b|that\b)", segment, flags=re.I)[-1])][-8:]
    for at in range(len(words) - 1, -1, -1):
        word = words[at]
        if _about(word, own):
            return 2
        followed = at + 1 < len(words) and words[at + 1] in _KINDS
        if any(_about(word, other) for other in theirs) or (followed and word not in FUNCTION_WORDS | _KINDS):
            return -1
        if word in _SPEAKER and at >= len(words) - 3:
            return 2 if own & _PEOPLE else -1
    if not own:
        return 1
    return 1 if alone and not set(words) & {"flight", "room", "gate", "version"} else -1


def _about(noun: str, nouns: set[str]) -> bool:
    """Whether a cue speaks of these nouns; "username" speaks of "user"."""
    return any(stem(noun) == own or (len(own) >= 4 and noun.startswith(own)) for own in nouns)


def _looks(written: str, *, cued: bool) -> bool:
    """Whether it can be an identifier: letters with digits or underscores, a long number, or capitals after its own noun."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_./#-]*", written) or len(written) < 3:
        return False
    if re.fullmatch(
        r"\d{1,2}(?:st|nd|rd|th|am|pm|h|hrs?|k|x)?|\d+(?:[./:-]\d+)+|[$€£]?\d+(?:\.\d+)?(?:st|nd|rd|th|am|pm|k)", written, re.I
    ):
        return False
    if re.search(r"\d", written):
        return cued or len(written) >= 4
    return (re.fullmatch(r"\w+_\w+", written) is not None) or (cued and re.fullmatch(r"[A-Z]{4,12}", written) is not None)


def by_looks(param: Param, reply: Reply) -> list[Candidate]:
    """Without a pattern: tokens that look like identifiers, kept apart by the nouns before them."""
    own = _nouns(param)
    theirs = [_nouns(other) for other in reply.others if other.type == ParamType.IDENTIFIER and other.name != param.name]
    taken = [(c.start, c.end) for c in (*emails(reply.text), *dates(reply.text, reply.now.date()))]
    found: list[Candidate] = []
    reached = 0
    for match in _PIECE.finditer(reply.text):
        start, end = list(_edges(reply.text, match.start(), match.end()))[-1]
        if any(s < end and start < e for s, e in taken) or not _looks(reply.text[start:end], cued=True):
            continue
        segment, written = reply.text[max(reached, start - 100) : start], reply.text[start:end]
        listed = bool(found) and found[-1].fit == 2 and re.fullmatch(r"\W*(?:and|or|&)?\W*", segment) is not None
        fit = 2 if listed else _owner(segment, own, theirs, alone=not theirs)
        if not _looks(written, cued=fit == 2):
            continue
        reached = end
        if fit >= (2 if reply.strict else 0):
            found.append(Candidate(start, end, written, 0.8 if fit == 2 else 0.5, fit, "looks like an identifier"))
    return found


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The identifiers of a reply that may be this parameter's."""
    return by_pattern(param, reply.text) if param.pattern else by_looks(param, reply)
