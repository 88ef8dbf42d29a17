"""Identifiers: what matches the declared pattern, or, without one, what looks like no word and is not another parameter's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from langmem_ext.errors import InvalidInput
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.email import emails
from langmem_ext.waiting.extract.reply import Reply
from langmem_ext.waiting.extract.vocabulary import split_name, stem
from langmem_ext.waiting.param import Param, ParamType

_PIECE = re.compile(r"\S+")
_LOOSE = " \t\r\n.,;:!?\"“”'‘’()[]{}<>*"
_WIDTH = 4
"""Neighbouring pieces that may be one spelled identifier: `o - 1 2345`."""
_PIECES = 400
"""Pieces of a message that are searched."""
_CUE = re.compile(r"([A-Za-z]+?)s?(?:[\s_-]*(?:ids?|numbers?|codes?|no|nr|#|references?|ref|username|login|handle))?\b\W*(?:is|are|was|of|being|with|ids?|[:=#])?\W*$", re.I)
_KINDS = frozenset("id ids number code reference ref name identifier no nr key handle login".split())
_GENERIC = frozenset("it this that one is am im i i'm my the id number code sure yes ok okay here and".split())


@lru_cache(maxsize=256)
def compiled(name: str, pattern: str) -> re.Pattern[str]:
    """A parameter's declared pattern.

    Raises:
        InvalidInput: It is no regular expression.
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InvalidInput(f"The pattern of parameter '{name}' is no regular expression ({error}). Correct it in the declaration.") from error


def _windows(text: str) -> Iterator[tuple[int, int, int]]:
    """Every group of up to `_WIDTH` neighbouring pieces, as `(pieces, start, end)`, one piece first."""
    pieces = [(match.start(), match.end()) for _, match in zip(range(_PIECES), _PIECE.finditer(text), strict=False)]
    for width in range(1, _WIDTH + 1):
        for first in range(len(pieces) - width + 1):
            start, end = pieces[first][0], pieces[first + width - 1][1]
            if end - start <= 80:
                yield width, start, end


def _variants(written: str) -> Iterator[str]:
    """Ways to write down what was spelled: without blanks, with the separators said as words, in capitals, with a hyphen before the digits."""
    said = re.sub(r"\s*\b(?:dash|hyphen|minus)\b\s*", "-", written, flags=re.I)
    said = re.sub(r"\s*\bunderscore\b\s*", "_", said, flags=re.I)
    tight = re.sub(r"\s+", "", said)
    for form in (said, tight, re.sub(r"\s*[-_]\s*", "-", said), re.sub(r"[\s_-]+", "-", said), re.sub(r"[\s_-]+", "", said)):
        hyphened = re.sub(r"(?<=[A-Za-z])(?=\d)", "-", form)
        for cased in (form, form.upper(), form.lower(), hyphened, hyphened.upper(), hyphened.lower()):
            yield cased


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
        for width, start, end in _windows(text):
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


def _cue(text: str, start: int) -> str:
    """The noun before an identifier that says whose it is; empty when there is none."""
    before = re.split(r"[.;!?,]\s|\bbut\b|\band (?:my|the)\b", text[:start])[-1]
    words = [word for word in re.findall(r"[A-Za-z]+", before) if word.lower() not in ("is", "are", "ids", "id", "number", "numbers", "code", "of", "with", "the", "my", "it", "being", "as")]
    return words[-1].lower() if words else ""


def _about(noun: str, nouns: set[str]) -> bool:
    """Whether a cue speaks of these nouns; "username" speaks of "user"."""
    return any(stem(noun) == own or (len(own) >= 4 and noun.startswith(own)) for own in nouns)


def _looks(written: str, *, cued: bool) -> bool:
    """Whether it can be an identifier: letters with digits or underscores, a long number, or capitals after its own noun."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_./#-]*", written) or len(written) < 3:
        return False
    if re.fullmatch(r"\d{1,2}(?:st|nd|rd|th|am|pm|h|hrs?|k|x)?|\d+(?:[./:-]\d+)+|[$€£]?\d+(?:\.\d+)?(?:st|nd|rd|th|am|pm|k)", written, re.I):
        return False
    if re.search(r"\d", written):
        return cued or len(written) >= 4
    return (re.fullmatch(r"\w+_\w+", written) is not None) or (cued and re.fullmatch(r"[A-Z]{4,12}", written) is not None)


def by_looks(param: Param, reply: Reply) -> list[Candidate]:
    """Without a pattern: tokens that look like identifiers, kept apart by the nouns before them."""
    own = _nouns(param)
    theirs = [_nouns(other) for other in reply.others if other.type == ParamType.IDENTIFIER and other.name != param.name]
    taken = [(mail.start, mail.end) for mail in emails(reply.text)]
    found: list[Candidate] = []
    for match in _PIECE.finditer(reply.text):
        start, end = list(_edges(reply.text, match.start(), match.end()))[-1]
        noun = _cue(reply.text, start)
        cued = bool(noun) and _about(noun, own)
        listed = found and found[-1].fit == 2 and re.fullmatch(r"\W*(?:and|or|,|&)?\W*", reply.text[found[-1].end : start])
        written = reply.text[start:end]
        if any(s < end and start < e for s, e in taken) or not _looks(written, cued=cued or bool(listed)):
            continue
        fit = _owner(noun, cued or bool(listed), own, theirs, reply)
        if fit >= (2 if reply.strict else 0):
            found.append(Candidate(start, end, written, 0.8 if fit == 2 else 0.5, fit, "looks like an identifier"))
    return found


def _owner(noun: str, cued: bool, own: set[str], theirs: Sequence[set[str]], reply: Reply) -> int:
    """2: its own noun stands before it; 1: nothing says whose it is and it alone was asked for; -1: it is another's."""
    if cued:
        return 2
    if any(_about(noun, other) for other in theirs) or re.search(rf"\b{re.escape(noun)}\s+(?:ids?|numbers?|codes?)\b", reply.text, re.I):
        return -1
    if noun in ("i", "m", "im", "am", "me", "s", "username", "login") and not own & {"user", "custom", "memb", "profil", "login", "account"}:
        return -1
    if not theirs:
        return 1
    return 1 if noun in ("i", "m", "im", "am", "me", "username", "login") else -1


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The identifiers of a reply that may be this parameter's."""
    return by_pattern(param, reply.text) if param.pattern else by_looks(param, reply)
