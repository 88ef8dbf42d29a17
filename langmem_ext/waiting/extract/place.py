"""Places: cities, areas, stations, destinations, as capitalised names or as what follows "in", "from", "to"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langmem_ext.waiting.extract.address import addresses
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.leadin import answer_span
from langmem_ext.waiting.extract.lexicon import FUNCTION_WORDS, GENERIC_NOUNS, NEVER_NAMES, STOPS_NAME
from langmem_ext.waiting.extract.mask import closed_spans
from langmem_ext.waiting.extract.openness import is_no_answer, keep, named_before
from langmem_ext.waiting.extract.reply import Reply
from langmem_ext.waiting.extract.roles import PLACE_CUES, with_roles
from langmem_ext.waiting.extract.tokens import Run, Token, runs, tokens
from langmem_ext.waiting.param import Param

_IN = re.compile(
    r"\b(?:in|near|around|from|to|into|towards?|within|outside|of|for|at|leaving|departing|depart|visit|visiting|check|via|about|over)"
    r"(?:\s+or\s+(?:around|near))?(?:\s+(?:the|a|an|city of|town of|area of|city|somewhere|someplace|in|downtown|central|like|maybe|either))*\s+$",
    re.I,
)
_CALLED = re.compile(r"\b(?:at|called|named|try|eat|is)\s+(?:the\s+)?$", re.I)
_REGION = re.compile(r",\s*((?:[A-Z][\w.]*)(?:\s+[A-Z][\w.]*){0,2}|(?!in\b|or\b|ok\b|on\b|at\b|to\b|me\b|hi\b)[a-z]{2}(?=\s*(?:$|[.,!?]|\s(?:on|at|to|from|for|and|in)\b)))")
_LOWER = re.compile(
    r"\b(?:in|near|around|from|to|into|towards?|for|at|leaving|departing|visit|of|check|via)\s+"
    r"(?:(?:the|city of|town of|city|downtown|in|around|near|a|an)\s+)*(?=[a-z])",
    re.I,
)


def _region(text: str, end: int, masked: Sequence[tuple[int, int]]) -> int:
    """The end of a place's state or country after a comma ("Salem, OR"); `end` when none follows."""
    match = _REGION.match(text, end)
    if not match or any(match.start(1) < stop and start < match.end(1) for start, stop in masked):
        return end
    first = match[1].split()[0].lower()
    return end if first in NEVER_NAMES and not match[1].isupper() else match.end(1)


def _capitals(param: Param, reply: Reply, words: Sequence[Token], masked: Sequence[tuple[int, int]]) -> list[Candidate]:
    text, found, reached = reply.text, [], 0
    for run in runs(text, words, masked):
        if run.start < reached or _lone_generic(words, run):
            continue
        end = reached = _region(text, run.end, masked)
        before = text[: run.start]
        fit = 2 if named_before(param, text, run.start) else 1 if _IN.search(before) else 0
        start, end = run.start, _unpossessed(text, run.start, end)
        found.append(Candidate(start, end, text[start:end], 0.85 if fit else 0.6, fit, "capitalised name"))
    return found


def _lone_generic(words: Sequence[Token], run: Run) -> bool:
    """A single common noun ("Restaurant") is no place."""
    return run.last - run.first == 1 and words[run.first].low in GENERIC_NOUNS


def _unpossessed(text: str, start: int, end: int) -> int:
    return end - 2 if re.search(r"['’]s$", text[start:end]) and re.match(r"\s+(?:fine|good|great|ok|perfect|weather|it)\b", text[end:]) else end


def _lower(reply: Reply, words: Sequence[Token], masked: Sequence[tuple[int, int]]) -> list[Candidate]:
    """Names written small: up to four words after a preposition, up to the next function word."""
    found = []
    for cue in _LOWER.finditer(reply.text):
        taken: list[Token] = []
        for word in (word for word in words if word.start >= cue.end()):
            last = taken[-1].end if taken else cue.end()
            free = not any(word.start < stop and start < word.end for start, stop in masked)
            if word.low in STOPS_NAME or not free or reply.text[last : word.start].strip() or len(taken) == 4 or word.text[0].isdigit():
                break
            taken.append(word)
        while taken and taken[-1].low in (GENERIC_NOUNS - {"city"}) | {"the", "of", "next", "side", "part"}:
            taken.pop()
        if taken and not (len(taken) == 1 and taken[0].low in GENERIC_NOUNS | FUNCTION_WORDS):
            end = _region(reply.text, taken[-1].end, masked)
            found.append(Candidate(taken[0].start, end, reply.text[taken[0].start : end], 0.6, 1, "words after a preposition"))
    return found


def _whole(reply: Reply, masked: Sequence[tuple[int, int]]) -> list[Candidate]:
    """The whole answer, when it is short and nothing but a name."""
    if is_no_answer(reply.text):
        return []
    start, end = answer_span(reply.text)
    words = tokens(reply.text[start:end])
    if not 1 <= len(words) <= 5 or any(start < stop and begin < end for begin, stop in masked):
        return []
    if any(word.low in STOPS_NAME - {"the"} or word.text.isdigit() for word in words) or all(word.low in GENERIC_NOUNS for word in words):
        return []
    return [Candidate(start, end, reply.text[start:end], 0.5, 0, "the whole answer")]


def candidates(param: Param, reply: Reply) -> list[Candidate]:
    """The places of a reply before roles are judged."""
    masked = closed_spans(param, reply)
    streets = addresses(reply.text)
    blocked = [*masked, *((street.start, street.end) for street in streets)]
    words = tokens(reply.text)
    found = [*streets, *_capitals(param, reply, words, blocked)]
    if not any(candidate.fit > 0 for candidate in found):
        found += [low for low in _lower(reply, words, blocked) if not any(low.overlaps(c.start, c.end) for c in found)]
    if not found and not reply.strict:
        found = _whole(reply, blocked)
    return sorted(found, key=lambda candidate: candidate.start)


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The places of a reply, those in this parameter's role first."""
    found = with_roles(param, reply, candidates(param, reply), PLACE_CUES)
    return keep(reply, found, strict_fit=3 if param.role else 1)
