"""One of a parameter's allowed values, by its name, a synonym, a part of its name or a typo."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache

from rapidfuzz import fuzz

from langmem_ext.waiting.catalog.param import Param, label
from langmem_ext.waiting.extract.candidate import Candidate, turned_down
from langmem_ext.waiting.extract.choices.hours import by_hour
from langmem_ext.waiting.extract.dates.replacement import led_to
from langmem_ext.waiting.extract.english.concepts import ASPECTS, phrases_in
from langmem_ext.waiting.extract.english.concepts import WORDS as CONCEPTS
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, GENERIC_NOUNS, VERBS
from langmem_ext.waiting.extract.english.tokens import before, blanked_where, tokens
from langmem_ext.waiting.extract.english.vocabulary import doing_stem, stem
from langmem_ext.waiting.extract.numbers.measure import ordinals
from langmem_ext.waiting.extract.numbers.numerals import UNITS, numerals
from langmem_ext.waiting.extract.reading_cache import remembered
from langmem_ext.waiting.extract.reply import Reply

_ORDINAL = re.compile(
    r"\bthe\s+(first|former|second|latter|third|last)(?:\s+(?:one|option|choice))?\b", re.I
)
_PLACES = {"first": 0, "former": 0, "second": 1, "latter": -1, "third": 2, "last": -1}
_TYPO = 84.0
"""Similarity (0 to 100) from which a misspelt word counts as a value."""
_CLEAR_TYPO = 0.72
"""Confidence from which it counts in a message that answers no question: a letter of eight."""
_LIKE = 62.0
"""The same from which a value is worth a question."""
_FEW = 3
"""Words of a message that may be a value which is not allowed, at most."""


_OFTEN: Mapping[str, tuple[str, ...]] = {
    "daily": ("every day", "each day", "once a day", "per day"),
    "weekly": ("every week", "each week", "once a week", "per week"),
    "fortnightly": ("every fortnight", "every two weeks", "every 2 weeks", "every other week"),
    "monthly": ("every month", "each month", "once a month", "per month"),
    "quarterly": ("every quarter", "every three months", "every 3 months"),
    "yearly": ("every year", "each year", "once a year", "per year", "annually"),
}
"""What else people call how often something is."""


def _normal(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text).strip().lower()


@lru_cache(maxsize=256)
def _forms(
    items: tuple[tuple[str, tuple[str, ...]], ...],
) -> tuple[tuple[re.Pattern[str], str, str], ...]:
    """A pattern, the value and the plain form for each name of a value, longer forms first."""
    called = {
        value: (value, *synonyms, *_OFTEN.get(_normal(value), ())) for value, synonyms in items
    }
    forms = {
        (_normal(form), value) for value, names in called.items() for form in names if _normal(form)
    }
    made = []
    for form, value in sorted(forms, key=lambda pair: (-len(pair[0]), pair)):
        body = r"[\s_-]*".join(re.escape(word) for word in form.split())
        begin = r"(?<![\w'’])" if len(form) == 1 else r"(?<!\w)"  # the s of "it's" is no size
        made.append((re.compile(rf"{begin}{body}(?:'s|s|es)?(?!\w)", re.I), value, form))
    return tuple(made)


def _items(enum: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((value, tuple(synonyms)) for value, synonyms in enum.items())


def exact(param: Param, text: str) -> list[Candidate]:
    """Allowed values and synonyms that the text names as a whole; of overlaps, the longer one."""
    candidates: list[Candidate] = []
    for pattern, value, _ in _forms(_items(param.enum)):
        for match in pattern.finditer(text):
            if not any(other.overlaps(match.start(), match.end()) for other in candidates):
                candidates.append(
                    Candidate(match.start(), match.end(), value, 0.97, 2, "an allowed value")
                )
    return sorted(candidates, key=lambda candidate: candidate.start)


def _scattered(param: Param, text: str) -> list[Candidate]:
    """The one value whose words are near each other in any order: "the drain is blocked"."""
    words = [word for word in tokens(text) if len(word.text) > 2]
    stems = [stem(word.low) for word in words]
    candidates = []
    for value, synonyms in param.enum.items():
        for form in (value, *synonyms):
            wanted = [stem(word) for word in _normal(form).split()]
            if (
                len(wanted) < 2
                or any(word in FUNCTION_WORDS for word in _normal(form).split())
                or not set(wanted) <= set(stems)
            ):
                continue
            places = [stems.index(each) for each in wanted]
            first, last = words[min(places)], words[max(places)]
            if max(places) - min(places) <= len(wanted) + 2 and not re.search(
                r"[.;!?]", text[first.start : last.end]
            ):
                candidates.append(
                    Candidate(first.start, last.end, value, 0.85, 1, "the words of a value")
                )
    return candidates if len({candidate.value for candidate in candidates}) == 1 else []


def _meant(param: Param, text: str) -> list[Candidate]:
    """Words that mean what only one of the values means: "it never arrived" for "lost"."""
    owners: dict[str, set[str]] = {}
    for value in param.enum:
        for name in _concepts_of(value) - ASPECTS:
            owners.setdefault(name, set()).add(value)
    owners = {
        name: set(sorted(values, key=lambda value: len(_normal(value).split()))[:1])
        for name, values in owners.items()
        if _plainest(values)
    }
    if not owners:
        return []
    low = text.lower().replace("’", "'")
    phrases = [(start, end, names) for start, end, names in phrases_in(low)]
    phrases += [
        (word.start, word.end, CONCEPTS.get(stem(word.low), frozenset()))
        for word in tokens(text)
        if word.low not in FUNCTION_WORDS
    ]
    candidates = []
    for start, end, names in phrases:
        values = {value for name in names & owners.keys() for value in owners[name]}
        if len(values) == 1:
            candidates.append(Candidate(start, end, values.pop(), 0.7, 1, "means the value"))
    return candidates if len({candidate.value for candidate in candidates}) == 1 else []


def _plainest(values: AbstractSet[str]) -> bool:
    """Whether one value has fewer words than the others: "large" beside "extra large"."""
    widths = sorted(len(_normal(value).split()) for value in values)
    return len(widths) == 1 or widths[0] < widths[1]


@lru_cache(maxsize=512)
def _concepts_of(value: str) -> frozenset[str]:
    """The concepts of a value's name."""
    form = _normal(value)
    words = (CONCEPTS.get(stem(word), frozenset()) for word in form.split())
    return frozenset[str]().union(*words, *(concepts for _, _, concepts in phrases_in(form)))


_WHERE = frozenset(("inside", "outside"))
"""Prepositions that tell one thing from another."""


def _owners(param: Param, least: int) -> dict[str, set[str]]:
    """The values that have a telling word of so many letters at least, by the word."""
    owners: dict[str, set[str]] = {}
    for value, synonyms in param.enum.items():
        for word in " ".join(_normal(form) for form in (value, *synonyms)).split():
            telling = word not in FUNCTION_WORDS and word not in UNITS
            if len(word) >= least and (telling or word in _WHERE):
                owners.setdefault(word, set()).add(value)
    return owners


def _mostly(param: Param, text: str) -> list[Candidate]:
    """The one value of which a message has most words, one of them its own: "ears full of wax"."""
    words = {stem(word.low): word for word in tokens(text)}
    own = {word for word, values in _owners(param, _SHORTEST).items() if len(values) == 1}
    candidates = []
    for value, synonyms in param.enum.items():
        for form in (value, *synonyms):
            parts = [word for word in _normal(form).split() if word not in FUNCTION_WORDS]
            said = [word for word in parts if stem(word) in words]
            if len(said) > 1 and 2 * len(said) > len(parts) and not own.isdisjoint(said):
                spans = [(words[stem(word)].start, words[stem(word)].end) for word in said]
                start, end = min(spans)[0], max(spans)[1]
                if not re.search(r"[.;!?]", text[start:end]):
                    candidates.append(
                        Candidate(start, end, value, _ONLY_MEANT, 1, "most words of a value")
                    )
    return candidates if len({candidate.value for candidate in candidates}) == 1 else []


def _parts(param: Param, text: str, *, least: int = 4) -> list[Candidate]:
    """Values named by a word that only they contain, or by a similar word.

    "counselor" names "Family Counselor", and "sporty" names "Sports".
    """
    owners = _owners(param, least)
    own = {part: (stem(part), *values) for part, values in owners.items() if len(values) == 1}
    stems, begins = {named for named, _ in own.values()}, {part[:4] for part in own}
    candidates = []
    for token in tokens(text):
        low, word = token.low, stem(token.low)
        if word not in stems and low[:4] not in begins:
            continue
        for part, (named, value) in own.items():
            root = min(len(part), len(low)) - (0 if low == part else 1)
            if word == named or (
                root >= 4 and low[:root] == part[:root] and abs(len(part) - len(low)) <= 3
            ):
                sure = 0.8 if low == part else 0.7
                candidates.append(
                    Candidate(token.start, token.end, value, sure, 1, "part of a value")
                )
    return candidates


@lru_cache(maxsize=256)
def _beginnings(items: tuple[tuple[str, tuple[str, ...]], ...], letters: int) -> re.Pattern[str]:
    """A pattern for words that begin as a name of a value does, by this many letters."""
    begins = sorted({form[:letters] for _, _, form in _forms(items) if len(form) >= letters})
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, begins)) or '(?!)'})[^\W\d_]*", re.I)


def _inflected(param: Param, text: str) -> list[Candidate]:
    """The one value that a message says in another form of its word: "it leaked" for "leaking"."""
    items = _items(param.enum)
    candidates = []
    for match in _beginnings(items, _ROOT).finditer(text):
        word = match.group().lower()
        values = {
            value
            for _, value, form in _forms(items)
            if stem(form) == stem(word)
            or (form.endswith("ing") and stem(form) == doing_stem(word) != stem(word))
        }
        if len(values) == 1 and len(stem(word)) >= _ROOT and word not in _COMMON:
            value = values.pop()
            candidates.append(Candidate(*match.span(), value, 0.8, 1, "a form of a value"))
    return candidates if len({candidate.value for candidate in candidates}) == 1 else []


_ROOT = 4
"""Letters that two forms of a word have in common, at least."""
_COMMON = FUNCTION_WORDS | VERBS | GENERIC_NOUNS


def _begun(param: Param, text: str) -> list[Candidate]:
    """Long words that begin one value alone: "the panto" for "pantomime"."""
    items = _items(param.enum)
    candidates = []
    for match in _beginnings(items, _BEGINNING).finditer(text):
        word = match.group().lower()
        values = {value for _, value, form in _forms(items) if form.startswith(word)}
        if len(values) == 1 and word not in _COMMON:
            value = values.pop()
            candidates.append(Candidate(*match.span(), value, 0.7, 1, "the beginning of a value"))
    return candidates


_BEGINNING = 5
"""Letters of a shortened value among other words, at least."""


@remembered
def _runs_of(text: str, width: int) -> list[tuple[int, int, str]]:
    """So many words in a row, wherever they may be a misspelt name: start, end, plain form."""
    words = tokens(text)
    spans = [
        (words[first].start, words[first + width - 1].end)
        for first in range(len(words) - width + 1)
    ]
    runs = [(start, end, text[start:end].lower()) for start, end in spans]
    return [
        (start, end, _normal(written))
        for start, end, written in runs
        if written not in FUNCTION_WORDS and written not in VERBS
    ]


def _typos(param: Param, text: str) -> list[Candidate]:
    return [
        Candidate(start, end, value, round(score / 100 * 0.8, 2), 1, "a misspelt value")
        for _, value, form in _forms(_items(param.enum))
        if len(form) >= _SHORTEST_MISSPELT
        for start, end, written in _runs_of(text, len(form.split()))
        if abs(end - start - len(form)) <= _LONGER and (score := fuzz.ratio(written, form)) >= _TYPO
    ]


_SHORTEST_MISSPELT = 4
_LONGER = 3
"""Letters of a value that may be misspelt, at least, and letters more or less that it then has."""


def named(param: Param, text: str) -> str | None:
    """The allowed value that a text is, and no more: by its name, its label or a synonym."""

    def plain(name: object) -> str:
        return " ".join(re.findall(r"[^\W_]+", str(name).casefold()))

    called = {value: (value, label(param, value), *param.enum[value]) for value in param.enum}
    said = plain(text)
    return next((value for value in called if said and said in map(plain, called[value])), None)


def nearest(param: Param, text: str) -> str | None:
    """The allowed value that a short message resembles most; None if none is near enough.

    The message need not name it: "historical" for `history`.
    """
    words = [token.low for token in tokens(text) if token.low not in FUNCTION_WORDS]
    if not 1 <= len(words) <= _FEW:
        return None
    written = " ".join(words)
    forms = [
        (max(fuzz.ratio(written, form), *(fuzz.ratio(word, form) for word in words)), value)
        for _, value, form in _forms(_items(param.enum))
    ]
    score, value = max(forms, default=(0.0, ""))
    return value if score >= _LIKE else None


def _shortened(param: Param, text: str) -> list[Candidate]:
    """The one value that a message of a single word begins: "sat" for "saturday"."""
    words = [word for word in tokens(text) if word.low not in FUNCTION_WORDS]
    if len(words) != 1 or len(words[0].low) < _SHORTEST:
        return []
    values = {
        value for _, value, form in _forms(_items(param.enum)) if form.startswith(words[0].low)
    }
    return (
        [Candidate(words[0].start, words[0].end, values.pop(), 0.8, 1, "the beginning of a value")]
        if len(values) == 1
        else []
    )


_SHORTEST = 3
"""Letters of a shortened value, at least."""


def _by_order(param: Param, reply: Reply) -> list[Candidate]:
    """What "the second one" means, counted as the question named them."""
    match = _ORDINAL.search(reply.text)
    named = list(dict.fromkeys(candidate.value for candidate in exact(param, reply.prompt)))
    if not match or len(named) < 2:
        return []
    place = _PLACES[match[1].lower()]
    return (
        [
            Candidate(
                match.start(), match.end(), named[place], 0.8, 1, "by its place in the question"
            )
        ]
        if place < len(named)
        else []
    )


def _counted(param: Param, reply: Reply) -> list[Candidate]:
    """The one value with a number that a message says: "six months", or just "12" as an answer."""
    numbered = {
        int(number[0]): (value, form.replace(number[0], "", 1).split())
        for _, value, form in _forms(_items(param.enum))
        if (number := re.search(r"(?<!\d)\d{1,4}(?!\d)", form)) and form != number[0]
    }
    candidates = []
    for numeral in numerals(reply.text) if len(numbered) > 1 else ():
        value, words = numbered.get(int(numeral.value), ("", []))
        behind = reply.text[numeral.end :].lower().split()[: len(words)]
        unit = bool(words) and [stem(word) for word in behind] == [stem(word) for word in words]
        if value and (unit or not reply.strict):
            candidates.append(
                Candidate(numeral.start, numeral.end, value, 0.8, 1, "the number of a value")
            )
    return candidates if len({candidate.value for candidate in candidates}) == 1 else []


def _by_number(param: Param, reply: Reply) -> list[Candidate]:
    """The value of this number, where the values are numbers: "6th" for 6."""
    numbered = param.enum and all(value.isdigit() for value in param.enum)
    candidates = ordinals(param, reply) if numbered else []
    return [replace(place, value=str(place.value)) for place in candidates]


def _without_rejected(reply: Reply, candidates: list[Candidate]) -> list[Candidate]:
    """The values without those that the reply turns down or corrects.

    Of "X or Y" none is left.
    """
    able = [
        candidate
        for candidate in candidates
        if not turned_down(reply.text, candidate.start, candidate.end)
    ]
    if len({str(candidate.value) for candidate in able}) < 2:
        return able
    between = reply.text[able[0].end : able[-1].start]
    if re.search(r"\b(?:no|sorry|mean|meant|actually|rather)\b", between, re.I):
        return able[-1:]
    if re.search(r"\bor\b", between, re.I):
        return []
    wanted = [
        candidate for candidate in able if _TOWARDS.search(before(reply.text, candidate.start))
    ]
    return wanted if len({str(candidate.value) for candidate in wanted}) == 1 else able


_TOWARDS = re.compile(
    r"\b(?:(?:up|down|over|back|change|changed|switch|move|go|going|onto"
    r"|into)\b(?:\s+\w+){0,2}\s+)?(?:to|into|onto)\s+(?:(?:the|a|an)\s+)?$",
    re.I,
)
"""Words before the value that is wanted, of two: "from flat to basic"."""


_ONLY_MEANT = 0.45
"""Confidence in what words of a message that answers no question mean."""


def _is_one_slip(param: Param, written: str) -> bool:
    """Whether one word is misspelt, and any others are those of a value: "tax assesment"."""
    words = _normal(written).split()
    forms = [form.split() for _, _, form in _forms(_items(param.enum))]
    return re.fullmatch(r"\w+", written) is not None or any(
        len(form) == len(words)
        and sum(word != other for word, other in zip(words, form, strict=True)) == 1
        and all(
            word == other or fuzz.ratio(word, other) >= _TYPO
            for word, other in zip(words, form, strict=True)
        )
        for form in forms
    )


def _may_be_slip(param: Param, text: str, candidate: Candidate) -> bool:
    """Whether a long word that is like a name of a value begins as that one does."""
    begins = {form[0] for _, value, form in _forms(_items(param.enum)) if value == candidate.value}
    return candidate.end - candidate.start >= _LONG_WORD and text[candidate.start].lower() in begins


def _likely(param: Param, text: str) -> list[Candidate]:
    """The one value that a message which answers no question may mean, in doubt."""
    for candidates in (
        [typo for typo in _typos(param, text) if _may_be_slip(param, text, typo)],
        [part for part in _parts(param, text) if text[part.start : part.end].lower() not in VERBS],
        _begun(param, text),
        _mostly(param, text),
        _meant(param, text),
    ):
        if len({candidate.value for candidate in candidates}) == 1:
            return [replace(candidate, confidence=_ONLY_MEANT) for candidate in candidates]
    return []


_LONG_WORD = 6
"""Letters of a misspelt value that is worth a question, at least."""


_OUR_FAMILY = re.compile(
    r"\b(?:the|my|our|his|her|their|whole) family(?=\s+(?:is|are|was|were|has|have|would|will|can"
    r"|could|wants?|likes?|of)\b|['’]s\b)",
    re.I,
)
"""A family that is people, and no kind of room: "the family would like"."""


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The allowed values in a reply; parts of values and typos only in an answer."""
    people = blanked_where(reply.text, _OUR_FAMILY)
    reply = replace(reply, text=people)
    candidates = exact(param, reply.text) or _scattered(param, reply.text) or _counted(param, reply)
    if not candidates and not reply.strict:
        candidates = (
            _parts(param, reply.text, least=_SHORTEST)
            or _inflected(param, reply.text)
            or _shortened(param, reply.text)
            or _typos(param, reply.text)
            or _by_order(param, reply)
            or _meant(param, reply.text)
            or by_hour(param, reply)
            or _by_number(param, reply)
        )
    if not candidates and reply.strict:
        candidates = [
            candidate
            for candidate in _typos(param, reply.text)
            if candidate.confidence >= _CLEAR_TYPO
            and _is_one_slip(param, reply.text[candidate.start : candidate.end])
        ]
        if not candidates and param.name not in reply.filled:
            candidates = _inflected(param, reply.text) or _likely(param, reply.text)
    return _wished(reply, _without_rejected(reply, candidates))


def _wished(reply: Reply, candidates: list[Candidate]) -> list[Candidate]:
    """The candidates, those raised that a wish leads to: "the mask broke, I need headgear"."""
    if not reply.strict or len({candidate.value for candidate in candidates}) < 2:
        return candidates
    led = led_to(reply.text, candidates)
    return [candidate.moved(candidate in led) for candidate in candidates]
