"""The words that name a kind or category: "a funny movie", "thai food"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.closed_spans import closed_spans
from langmem_ext.waiting.extract.english.leadin import answer_span
from langmem_ext.waiting.extract.english.lexicon import (
    GENERIC_NOUNS,
    NEVER_NAMES,
    PRICE,
    STOPS_NAME,
    VERBS,
    word_set,
)
from langmem_ext.waiting.extract.english.tokens import Token, runs, sentences, tokens
from langmem_ext.waiting.extract.english.vocabulary import own_stems, stem
from langmem_ext.waiting.extract.names.openness import is_no_answer
from langmem_ext.waiting.extract.reply import Reply

_COLOUR = re.compile(
    r"\b(?:(?:dark|light|pale|hot|navy|royal|sky|bright|deep|bottle|forest|dusty|ice|off|pastel)[\s-])?"
    r"(?:black|white|red|blue|green|yellow|orange|purple|pink|brown|gr[ae]y|navy|maroon|burgundy|beige"
    r"|cream|ivory|turquoise|teal|violet|lilac|lavender|mauve|magenta|crimson|scarlet|gold|silver"
    r"|bronze|khaki|olive|mint|peach|coral|charcoal|tan|mustard)"
    r"(?:\s+(?:and|&)\s+(?:black|white|red|blue|green|yellow|gold|silver|navy|gr[ae]y))?\b",
    re.I,
)


def colours(text: str) -> list[Candidate]:
    """The one colour that a message names."""
    found = [match.span() for match in _COLOUR.finditer(text)]
    return [
        Candidate(start, end, text[start:end], 0.7, 2, "a colour")
        for start, end in found
        if len(found) == 1
    ]


_EMPTY = word_set(
    "the of particular specific certain different special various available any regular general"
    " preferred more most"
)
HEADS = frozenset(
    stem(word)
    for word in (
        *GENERIC_NOUNS,
        *word_set(
            "food cuisine dishes stuff genre flick options type category kind style section fan"
            " lover addict specials joint spot"
        ),
    )
)
_BUT = re.compile(r",?\s{1,9}(?:but|however|although)\s{1,9}|,\s+(?=(?:i|we|it|so)\b)", re.I)


_SERVES = re.compile(
    r"\b(?:serv(?:es?|ing)|offers?|offering|in the mood for|craving|feel"
    r" like|into)\s+(?:(?:some|any|a|an|the)\s+)?(?=\w)",
    re.I,
)
_OFFER = re.compile(
    r"\W*(?:(?:is|are) there|any|do (?:you|they)|have you|can|could|tell me|give me|please)\b", re.I
)


def _head(word: Token, heads: AbstractSet[str]) -> bool:
    return stem(word.low) in heads


def _modifiers(param: Param, reply: Reply, masked: Sequence[tuple[int, int]]) -> list[Candidate]:
    """Words before a noun of the parameter or its question: "a *funny* movie", "*thai* food"."""
    heads = own_stems(param) | HEADS
    words = tokens(reply.text)
    candidates = []
    for at, word in enumerate(words):
        if not _head(word, heads) or at == 0:
            continue
        first = at
        while first > 0 and _modifies(reply.text, words, first - 1, masked, heads):
            first -= 1
        if first < at:
            start, end = words[first].start, words[at - 1].end
            candidates.append(
                Candidate(
                    start,
                    end,
                    reply.text[start:end],
                    0.45,
                    2 if stem(word.low) in own_stems(param) else 1,
                    "words before its noun",
                )
            )
    return candidates


def _modifies(
    text: str,
    words: Sequence[Token],
    at: int,
    masked: Sequence[tuple[int, int]],
    heads: AbstractSet[str],
) -> bool:
    word, after = words[at], words[at + 1]
    free = not any(word.start < stop and start < word.end for start, stop in masked)
    if (
        not free
        or text[word.end : after.start].strip()
        or _head(word, heads)
        or word.text[0].isdigit()
        or word.low.endswith("priced")
    ):
        return False
    title = (
        word.capitalised
        and at > 0
        and words[at - 1].low in ("a", "an", "the", "some", "any")
        and word.low in VERBS
    )
    return title or (word.low not in STOPS_NAME and word.low not in _EMPTY)


def _short(
    reply: Reply, masked: Sequence[tuple[int, int]], bounds: tuple[int, int]
) -> list[Candidate]:
    """An answer of up to three words besides those of its frame."""
    start, end = answer_span(reply.text, *bounds)
    words = tokens(reply.text[start:end])
    inside = any(start < stop and begin < end for begin, stop in masked)
    while words and _head(words[-1], HEADS):
        words.pop()
    if (
        inside
        or not 1 <= len(words) <= 3
        or any(word.low in NEVER_NAMES and word.low != "and" for word in words)
    ):
        return []
    end = start + words[-1].end
    if all(stem(word.low) in HEADS or not word.text[0].isalpha() for word in words):
        return []
    return [Candidate(start, end, reply.text[start:end], 0.45, 1, "a short answer")]


def _clauses(text: str) -> list[tuple[int, int]]:
    """The sentences of `text`, cut at "but" as well."""
    clauses = []
    for start, end in sentences(text):
        cuts = [start, *(match.end() + start for match in _BUT.finditer(text[start:end])), end]
        clauses += [
            (begin, stop) for begin, stop in zip(cuts, cuts[1:], strict=False) if begin < stop
        ]
    return clauses


def read_kind(param: Param, reply: Reply) -> list[Candidate]:
    """The words that name a kind.

    A question ("Are there any thai restaurants?") gives only what is before the parameter's own
    noun.
    """
    masked = closed_spans(param, reply)
    named = [*_modifiers(param, reply, masked), *_after_cue(reply, masked), *_served(reply, masked)]
    candidates: list[Candidate] = []
    for start, end in _clauses(reply.text):
        clause = reply.text[start:end]
        inside = [
            candidate for candidate in named if start <= candidate.start and candidate.end <= end
        ]
        if is_no_answer(clause):
            candidates += [
                candidate for candidate in inside if candidate.fit == 2 and _OFFER.match(clause)
            ]
            continue
        short = _short(reply, masked, (start, end))
        candidates += [
            *inside,
            *(c for c in short if not any(c.overlaps(n.start, n.end) for n in inside)),
        ]
    return _by_price(param, reply.text, candidates)


def _by_price(param: Param, text: str, candidates: list[Candidate]) -> list[Candidate]:
    """Words of price are values of a price range and of nothing else."""
    if "pric" in own_stems(param):
        return [
            Candidate(m.start(), m.end(), _plain(m.group()), 0.7, 2, "a word of price")
            for m in PRICE.finditer(text)
        ]
    return [
        candidate
        for candidate in candidates
        if not PRICE.fullmatch(text[candidate.start : candidate.end])
    ]


def _plain(word: str) -> str:
    return word.lower().removesuffix("ly") if word.lower().endswith(("ately", "ively")) else word


def _after_cue(reply: Reply, masked: Sequence[tuple[int, int]]) -> list[Candidate]:
    """Up to four words after "serves", "in the mood for"."""
    candidates, words = [], tokens(reply.text)
    for cue in _SERVES.finditer(reply.text):
        taken: list[Token] = []
        for word in (word for word in words if word.start >= cue.end()):
            gap = reply.text[taken[-1].end if taken else cue.end() : word.start].strip()
            stops = (word.low in STOPS_NAME and word.low not in ("and", "&")) or _head(word, HEADS)
            if (
                gap
                or stops
                or len(taken) == 4
                or any(word.start < end and start < word.end for start, end in masked)
            ):
                break
            taken.append(word)
        while taken and taken[-1].low in ("and", "&", "the", "of"):
            taken.pop()
        if taken:
            candidates.append(
                Candidate(
                    taken[0].start,
                    taken[-1].end,
                    reply.text[taken[0].start : taken[-1].end],
                    0.5,
                    1,
                    "what is wanted",
                )
            )
    return candidates


def _served(reply: Reply, masked: Sequence[tuple[int, int]]) -> list[Candidate]:
    """Capitalised words within a sentence, after no preposition of place; surer after "serves"."""
    text, words = reply.text, tokens(reply.text)
    candidates = []
    for run in runs(text, words, masked):
        before = words[run.first - 1].low if run.first else ""
        if (
            before in ("in", "near", "around", "from", "at", "to")
            or words[run.first].low in GENERIC_NOUNS
        ):
            continue
        last = run.last
        if (
            last + 1 < len(words)
            and words[last].low == "and"
            and words[last + 1].capitalised
            and words[last + 1].low not in NEVER_NAMES
        ):
            last += 2
        served = before in (
            "serve",
            "serves",
            "serving",
            "offers",
            "like",
            "love",
            "want",
            "into",
            "with",
        )
        start, end = words[run.first].start, words[last - 1].end
        candidates.append(
            Candidate(start, end, text[start:end], 0.4, 1 if served else 0, "capitalised words")
        )
    return candidates
