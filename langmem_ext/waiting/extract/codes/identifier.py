"""Identifiers: what matches the declared pattern or, without one, what looks like one.

A value of another parameter is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from langmem_ext.errors import InvalidInput
from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.codes.email import emails
from langmem_ext.waiting.extract.dates.mentioned import dates
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, word_set
from langmem_ext.waiting.extract.english.vocabulary import split_name, stem
from langmem_ext.waiting.extract.reading_cache import remembered
from langmem_ext.waiting.extract.reply import Reply

_PIECE = re.compile(r"\S+")
_LOOSE = " \t\r\n.,;:!?\"“”'‘’()[]{}<>*"
_AROUND = _LOOSE + "#"
_WIDTH = 4
"""Neighbouring pieces that may be one spelled identifier: `o - 1 2345`."""
_SHORT = 16
"""Pieces of a message short enough to look for twice as wide groups: one spelled letter by
letter."""
_PIECES = 400
"""Pieces of a message that are searched."""
_SPELLED = 80
"""Pieces of a message that are searched for one that is spelled."""
_KINDS = word_set(
    "id ids number numbers code codes reference ref name identifier no nr key handle login"
)
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
            f"The pattern of parameter '{name}' is no regular expression ({error}). Correct it in"
            " the declaration."
        ) from error


def _windows(text: str, most: int) -> Iterator[tuple[int, int]]:
    """Every group of up to `_WIDTH` neighbouring pieces as `[start, end)`, one piece first."""
    pieces = [
        (match.start(), match.end())
        for _, match in zip(range(most), _PIECE.finditer(text), strict=False)
    ]
    for width in range(1, (_WIDTH if len(pieces) > _SHORT else 2 * _WIDTH) + 1):
        for first in range(len(pieces) - width + 1):
            start, end = pieces[first][0], pieces[first + width - 1][1]
            if end - start <= 80:
                yield start, end


_SPOKEN_SIGN = re.compile(r"\s*\b(?:(?P<hyphen>dash|hyphen|minus)|underscore)\b\s*", re.I)
_BLANK = re.compile(r"\s+")
_HYPHEN = re.compile(r"\s*[-_]\s*")
_GAP = re.compile(r"[\s_-]+")
_DIGITS_AFTER = re.compile(r"(?<=[A-Za-z])(?=\d)")


def _spelled(written: str, pattern: re.Pattern[str]) -> str | None:
    """The spelled value in the first form that matches the pattern; None if none does.

    The forms are without blanks, with hyphens, and in capitals or small letters.
    """
    signed = _SPOKEN_SIGN.sub(lambda match: "-" if match["hyphen"] else "_", written)
    joined = (
        (_HYPHEN.sub("-", signed), _GAP.sub("-", signed), _GAP.sub("", signed))
        if _GAP.search(signed)
        else ()
    )
    forms: list[str] = [signed, _BLANK.sub("", signed), *joined]
    for form in dict.fromkeys(forms):
        for value in dict.fromkeys((form, _DIGITS_AFTER.sub("-", form))):
            if not value or not in_any_case(pattern).fullmatch(value):
                continue
            if cased := next(
                (
                    variant
                    for variant in (value, value.upper(), value.lower())
                    if pattern.fullmatch(variant)
                ),
                None,
            ):
                return cased
    return None


@lru_cache(maxsize=256)
def in_any_case(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """The same pattern for large and small letters."""
    return re.compile(pattern.pattern, pattern.flags | re.IGNORECASE)


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


@lru_cache(maxsize=256)
def form_of(pattern: str | None, examples: tuple[str, ...]) -> str | None:
    """The declared pattern, else the form of the examples; None where they show none.

    Their digits may be any, and so may the letters in which they differ. A number alone shows no
    form.
    """
    if (
        pattern is not None
        or not examples
        or not all(
            re.search(r"[A-Za-z]", sample) and re.search(r"\d", sample) for sample in examples
        )
    ):
        return pattern
    shapes: dict[str, list[str]] = {}
    for example in (sample.strip() for sample in examples):
        shapes.setdefault(re.sub(r"\d", "9", re.sub(r"[A-Za-z]", "A", example)), []).append(example)
    return "|".join("".join(map(_any_of, zip(*alike, strict=True))) for alike in shapes.values())


def _any_of(characters: tuple[str, ...]) -> str:
    """The pattern of one place of several examples."""
    first = characters[0]
    if first.isdigit():
        return r"\d"
    return re.escape(first) if len({*characters}) == 1 else "[A-Za-z]"


def by_pattern(param: Param, text: str, form: str | None = None) -> list[Candidate]:
    """Spans that match the pattern or form as a whole: exact ones first, then spelled ones."""
    return _matching(text, compiled(param.name, form or param.pattern or ""))


@remembered
def _matching(text: str, pattern: re.Pattern[str]) -> list[Candidate]:
    candidates: list[Candidate] = []
    for spelled in (False, True):
        for start, end in _windows(text, _SPELLED if spelled else _PIECES):
            for begin, stop in _edges(text, start, end):
                if begin >= stop or any(other.overlaps(begin, stop) for other in candidates):
                    continue
                written = text[begin:stop]
                value = (
                    _spelled(written, pattern)
                    if spelled
                    else written
                    if pattern.fullmatch(written)
                    else None
                )
                if value is not None:
                    candidates.append(
                        Candidate(
                            begin,
                            stop,
                            value,
                            0.9 if spelled else 0.99,
                            0 if spelled else 1,
                            "matches the pattern",
                        )
                    )
        if candidates:
            break
    return sorted(candidates, key=lambda candidate: candidate.start)


def _nouns(param: Param) -> set[str]:
    """Stems of the words that tell this identifier from another: `user` of `user_id`."""
    return {stem(word) for word in split_name(param.name) if word not in _KINDS}


def _owner(segment: str, own: set[str], theirs: Sequence[set[str]], *, alone: bool) -> int:
    """Whose an identifier is by the words before it, the nearest first.

    2: its own noun; 1: only "my id is" or nothing, and it alone was asked for; -1: another's, or
    nobody's.
    """
    words = [
        word.lower()
        for word in re.findall(
            r"[A-Za-z]+", re.split(r"[.!?]\s+(?!it\b|that\b)", segment, flags=re.I)[-1]
        )
    ][-8:]
    for at in range(len(words) - 1, -1, -1):
        word = words[at]
        if _about(word, own):
            return 2
        followed = at + 1 < len(words) and words[at + 1] in _KINDS
        if any(_about(word, other) for other in theirs) or (
            followed and word not in FUNCTION_WORDS | _KINDS
        ):
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
    """Whether the text can be an identifier.

    It has letters with digits or underscores, is a long number, or is in capitals after its own
    noun.

    Args:
        written: The text.
        cued: Whether it was asked for, or its own noun comes before it.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_./#-]+", written):
        return False
    if re.fullmatch(
        r"\d{1,2}(?:st|nd|rd|th|am|pm|h|hrs?|k|x)?|\d+(?:[./:-]\d+)+|[$€£]?\d+(?:\.\d+)?(?:st|nd|rd"
        r"|th|am|pm|k)",
        written,
        re.I,
    ):
        return False
    if re.search(r"\d", written):
        return len(written) >= (2 if cued else 4)
    return (re.fullmatch(r"\w+_\w+", written) is not None) or (
        cued and re.fullmatch(r"[A-Z]{4,12}", written) is not None
    )


def by_looks(param: Param, reply: Reply) -> list[Candidate]:
    """Without a pattern: tokens that look like identifiers, kept apart by the nouns before them.

    Where one was asked for, a number that says nothing else is one, and so is a short token that
    begins with a letter, like `O-6`.
    """
    own = _nouns(param)
    theirs = [
        _nouns(other)
        for other in reply.others
        if other.type == ParamType.IDENTIFIER and other.name != param.name
    ]
    taken = [(c.start, c.end) for c in (*emails(reply.text), *dates(reply.text, reply.now.date()))]
    candidates: list[Candidate] = []
    reached = 0
    for match in _PIECE.finditer(reply.text):
        start, end = list(_edges(reply.text, match.start(), match.end()))[-1]
        segment, written = reply.text[max(reached, start - 100) : start], reply.text[start:end]
        bare = not reply.strict and written.isdecimal() and reply.text.strip(_AROUND) == written
        if any(s < end and start < e for s, e in taken) or not (bare or _looks(written, cued=True)):
            continue
        listed = (
            bool(candidates)
            and candidates[-1].fit == 2
            and re.fullmatch(r"\W*(?:and|or|&)?\W*", segment) is not None
        )
        fit = 2 if listed else _owner(segment, own, theirs, alone=not theirs)
        asked = fit == 1 and not reply.strict and written[0].isalpha()
        if not (bare or _looks(written, cued=fit == 2 or asked)):
            continue
        reached = end
        if fit >= (2 if reply.strict else 0):
            candidates.append(
                Candidate(
                    start, end, written, 0.8 if fit == 2 else 0.5, fit, "looks like an identifier"
                )
            )
    return candidates


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The identifiers for this parameter: those of the declared or shown form, else any."""
    form = form_of(param.pattern, param.examples)
    candidates = by_pattern(param, reply.text, form) if form else []
    return candidates if candidates or param.pattern else by_looks(param, reply)
