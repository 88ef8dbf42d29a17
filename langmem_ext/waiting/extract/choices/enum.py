"""One of a parameter's allowed values, by its name, a synonym, a part of its name or a typo of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from rapidfuzz import fuzz

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate, turned_down
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, VERBS
from langmem_ext.waiting.extract.english.tokens import tokens
from langmem_ext.waiting.extract.reply import Reply

_ORDINAL = re.compile(r"\bthe\s+(first|former|second|latter|third|last)(?:\s+(?:one|option|choice))?\b", re.I)
_PLACES = {"first": 0, "former": 0, "second": 1, "latter": -1, "third": 2, "last": -1}
_TYPO = 84.0
"""Similarity (0 to 100) from which a misspelt word counts as a value."""


def _normal(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text).strip().lower()


@lru_cache(maxsize=256)
def _forms(items: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[tuple[re.Pattern[str], str, str], ...]:
    """A pattern for every way to name a value, with the value and the plain form; longer forms first."""
    forms = {(_normal(form), value) for value, synonyms in items for form in (value, *synonyms) if _normal(form)}
    made = []
    for form, value in sorted(forms, key=lambda pair: (-len(pair[0]), pair)):
        body = r"[\s_-]*".join(re.escape(word) for word in form.split())
        made.append((re.compile(rf"(?<!\w){body}(?:'s|s|es)?(?!\w)", re.I), value, form))
    return tuple(made)


def _items(enum: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((value, tuple(synonyms)) for value, synonyms in enum.items())


def exact(param: Param, text: str) -> list[Candidate]:
    """Where the text names an allowed value or a synonym of it as a whole; of two that overlap the longer."""
    found: list[Candidate] = []
    for pattern, value, _ in _forms(_items(param.enum)):
        for match in pattern.finditer(text):
            if not any(other.overlaps(match.start(), match.end()) for other in found):
                found.append(Candidate(match.start(), match.end(), value, 0.97, 2, "an allowed value"))
    return sorted(found, key=lambda candidate: candidate.start)


def _parts(param: Param, text: str) -> list[Candidate]:
    """A word that only one value contains names it: "counselor" for "Family Counselor"; so does its stem: "sporty" for "Sports"."""
    owners: dict[str, set[str]] = {}
    for value in param.enum:
        for word in _normal(value).split():
            if len(word) >= 4 and word not in FUNCTION_WORDS:
                owners.setdefault(word, set()).add(value)
    found = []
    for token in tokens(text):
        for part, values in owners.items():
            root = min(len(part), len(token.low)) - (0 if token.low == part else 1)
            close = token.low == part or (root >= 4 and token.low[:root] == part[:root] and abs(len(part) - len(token.low)) <= 3)
            if len(values) == 1 and close:
                found.append(Candidate(token.start, token.end, next(iter(values)), 0.8 if token.low == part else 0.7, 1, "part of a value"))
    return found


def _typos(param: Param, text: str) -> list[Candidate]:
    words = tokens(text)
    found = []
    for _, value, form in _forms(_items(param.enum)):
        width = len(form.split())
        if len(form) < 4:
            continue
        for first in range(len(words) - width + 1):
            start, end = words[first].start, words[first + width - 1].end
            written = text[start:end].lower()
            if abs(len(written) - len(form)) > 3 or written in FUNCTION_WORDS or written in VERBS:
                continue
            score = fuzz.ratio(_normal(written), form)
            if score >= _TYPO:
                found.append(Candidate(start, end, value, round(score / 100 * 0.8, 2), 1, "a misspelt value"))
    return found


def _by_order(param: Param, reply: Reply) -> list[Candidate]:
    """What "the second one" means, counted as the question named them."""
    match = _ORDINAL.search(reply.text)
    named = list(dict.fromkeys(candidate.value for candidate in exact(param, reply.prompt)))
    if not match or len(named) < 2:
        return []
    place = _PLACES[match[1].lower()]
    return [Candidate(match.start(), match.end(), named[place], 0.8, 1, "by its place in the question")] if place < len(named) else []


def _one(reply: Reply, found: list[Candidate]) -> list[Candidate]:
    """Two different values in one reply are an answer only when one of them is turned down or corrected."""
    able = [candidate for candidate in found if not turned_down(reply.text, candidate.start)]
    if len({str(candidate.value) for candidate in able}) < 2:
        return able
    between = reply.text[able[0].end : able[-1].start]
    if re.search(r"\b(?:no|sorry|mean|meant|actually|rather)\b", between, re.I):
        return able[-1:]
    return [] if re.search(r"\bor\b", between, re.I) else able


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The allowed value a reply names; parts of values and typos only as the answer to a question."""
    found = exact(param, reply.text)
    if not found and not reply.strict:
        found = _parts(param, reply.text) or _typos(param, reply.text) or _by_order(param, reply)
    return _one(reply, found)
