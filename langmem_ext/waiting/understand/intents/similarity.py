"""Which intent of a catalog a message asks for, from the catalog's own words.

An intent is known by its examples, its description, its id, and the words of the parameters that
it takes. A word tells the more the fewer intents use it. A word of the message meets one of the
intent when they are the same, when one is a misspelling of the other, or when both mean the same
concept (`concepts`). Values that were found in the message speak for the intents that take them.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from rapidfuzz import fuzz, process

from langmem_ext._internal.names import in_words
from langmem_ext.waiting.catalog.intent import CatalogFields, Intent
from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.english.concepts import ASPECTS, TROUBLES, WORDS, phrases_in
from langmem_ext.waiting.extract.english.lexicon import (
    CONJUNCTIONS,
    FUNCTION_WORDS,
    POLITENESS,
    VERBS,
    word_set,
)
from langmem_ext.waiting.extract.english.vocabulary import doing_stem, stem
from langmem_ext.waiting.extract.reading_cache import remembered

EXACT: Final = 1.1
"""Score of a message that is an example, word for word."""

_SILENT: Final = (
    FUNCTION_WORDS - {"back", "up", "out", "off", "late", "later", "close"}
) | word_set(
    "want wanted need needs like liked help let get got give going gonna wanna there's i'd i'm im"
    " id have has had make made do does did know tell ask say said think guess maybe look looking"
    " hope try trying come came go went one ones thing things stuff bit lot way day today tomorrow"
    " tonight morning afternoon evening time monday tuesday wednesday thursday friday saturday"
    " sunday week possible please pls plz kindly wondering wonder quick quickly asap urgent"
    " urgently dear sir madam one two three four five six seven eight nine ten"
)
"""Words that say nothing of what is asked for."""

_SAME_WORD: Final = 84
"""From how alike (0 to 100) two longer words are one, wrongly spelt."""

_SHORTEST_MISSPELT: Final = 4
"""Letters of a word that may be misspelt, at least."""

_COMPARED: Final = 64
"""Texts of which the comparison is kept: the parts of a message are compared with each intent."""

_BY_CONCEPT: Final = 0.8
_BY_OTHER_WORD: Final = 0.5
_BY_SPELLING: Final = 0.85
_DESCRIBED: Final = 0.9
_NAMED: Final = 0.85
_BY_PARAM: Final = 0.45
"""What a word is worth that meets a concept, a concept though another intent has the very word, a
misspelling, the description, the id, a parameter.
"""

_OTHER_ASPECT: Final = 0.7
"""What is left of an intent's score when the message asks about an aspect that the intent is not
about."""

_OTHER_THAN_TROUBLE: Final = 0.3
"""The same when it tells of a trouble, and another intent is about that: who says that a thing is
broken has it, and wants none."""

_MOST_UNKNOWN: Final = 1.5
"""How many words that no intent knows count against a message, at most."""

_PROOF: Final[Mapping[str, float]] = {
    ParamType.IDENTIFIER: 0.22,
    ParamType.ENUM: 0.14,
    ParamType.MONEY: 0.12,
    ParamType.ADDRESS: 0.12,
    ParamType.EMAIL: 0.12,
    ParamType.TEXT: 0.0,
}
_SLIGHT: Final = 0.06
_MOST_PROOF: Final = 0.4
_FULL_PROOF: Final = 0.3
"""How much values that were found speak for an intent that takes them."""

_VALUES_ALONE: Final = 0.25
"""What is left of that where no word speaks for the intent: enough for a question."""

_BEFORE_ORDERS: Final = POLITENESS | CONJUNCTIONS | {"first", "just"}
"""Words that may come before what is to be done."""

_NONE: Final[Mapping[str, tuple[int, int]]] = {}

_REFUSAL: Final = re.compile(
    r"\b(?:do\s?n[o'’]?t|do not|does not|doesn['’]?t|never|not|no longer|rather than|instead of)\b"
    r"(?:\s+(?:you|really|want|wanna|need|wish|like|plan|intend|trying|going|to|a|an|any|the|my|be"
    r"|have))*\s+\w+"
    r"|\bbefore (?:i|we) \w+(?: up| in| on)?\b",
    re.IGNORECASE,
)


_NO_LONGER: Final = re.compile(
    r"\b(?:do\s?n['o’]?t|do not|does"
    r" not|doesn['’]?t)\s+(?:need|want|require)\b(?P<what>[^.;!?\n]{0,40}?)\b(?:any ?more|any"
    r" longer)\b"
    r"|\bwo\s?n['o’]?t\s+be\s+needing\b(?P<other>[^.;!?\n]{0,40}?)\b(?:any ?more|any longer)\b"
    r"|\b(?:no longer\s+(?:need|want|require)(?:ed)?)\b",
    re.IGNORECASE,
)
"""Who no longer needs a thing wants it cancelled: "we don't need the cake anymore"."""


def without_refusals(text: str) -> str:
    """The message without its refusals: "don't cancel, just check it" asks for a check."""
    text = _NO_LONGER.sub(lambda match: f"cancel{match['what'] or match['other'] or ' '}", text)
    low = text.lower()
    kept = [
        (start, end) for start, end, _ in phrases_in(low)
    ]  # "can't come" is a phrase of its own

    def blank(match: re.Match[str]) -> str:
        if any(start < match.end() and match.start() < end for start, end in kept):
            return match.group()
        return " " * len(match.group())

    return _REFUSAL.sub(blank, text)


@dataclass(frozen=True, slots=True)
class Unit:
    """A telling word or phrase of a text.

    Attributes:
        stem: The stem of the word; the phrase as it is written.
        concepts: What it may mean.
    """

    stem: str
    concepts: frozenset[str] = frozenset()


@remembered
def units_of(text: str) -> list[Unit]:
    """The telling words and phrases of a text, each once, in order.

    Words with digits are values, and left out.
    """
    low = text.lower().replace("’", "'")
    units: dict[Unit, None] = {}
    rest = list(low)
    for start, end, concepts in phrases_in(low):
        units[Unit(low[start:end], concepts)] = None
        rest[start:end] = " " * (end - start)
    for word in re.findall(r"\w+(?:'\w+)?", "".join(rest)):
        marked = stem(word.replace("'", ""))  # "where's" asks for what "wheres" does
        word = marked if "'" in word and marked in WORDS else re.sub(r"'s$", "", word)
        if word in _SILENT or any(letter.isdigit() for letter in word) or len(word) < 2:
            continue
        root = stem(word)
        units[Unit(root, WORDS.get(root, frozenset()))] = None
    return list(units)


@dataclass(frozen=True, slots=True)
class Saying:
    """An example, a description or an id, as far as it tells.

    Attributes:
        worth: What it is worth.
        weights: How much each of its units tells, by the unit's place in the index.
        whole: How much all of them tell.
    """

    worth: float
    weights: Sequence[tuple[int, float]]
    whole: float


@dataclass(frozen=True, slots=True)
class Compared:
    """A text that is compared with every intent.

    Attributes:
        flat: Its words alone.
        units: Its units, each with how much it tells.
        near: Words of the catalog that are spelt nearly as a unit, by the unit's stem.
        held: How much it holds of the units in the index, by their places; nothing of the others.
    """

    flat: str
    units: Sequence[tuple[Unit, float]]
    near: Mapping[str, Sequence[str]]
    held: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Known:
    """An intent's words.

    Attributes:
        sayings: Its examples, its description and its id, each as units, with what it is worth.
        words: What a stem is worth to it.
        concepts: What a concept is worth to it.
        flat: Its examples as plain words.
        params: The parameters that it takes.
    """

    sayings: Sequence[tuple[Sequence[Unit], float]]
    words: Mapping[str, float]
    concepts: Mapping[str, float]
    flat: frozenset[str]
    params: Mapping[str, Param] = field(default_factory=dict)


class IntentIndex:
    """The words of a catalog's intents, weighted. Made once for a catalog."""

    def __init__(self, catalog: CatalogFields) -> None:
        """Weigh the words of the catalog's intents."""
        self._known = {intent.id: _known(intent, catalog.params) for intent in catalog.intents}
        self._first = {
            intent.id: stem(match[1].lower())
            for intent in catalog.intents
            if (match := re.match(r"\W*([^\W\d_]+)", intent.description))
        }
        used = Counter(
            term
            for known in self._known.values()
            for term in (*known.words, *(f"#{name}" for name in known.concepts))
        )
        count = len(self._known)
        self._weights = {term: math.log((count + 1) / times) + 0.1 for term, times in used.items()}
        self._unknown = math.log(count + 1) / 2
        self._enough = 1.3 * math.log(count + 1)
        every = (known.sayings for known in self._known.values())
        self._units = list(
            dict.fromkeys(unit for says in every for units, _ in says for unit in units)
        )
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, unit in enumerate(self._units):
            for term in (unit.stem, *(f"#{name}" for name in unit.concepts)):
                self._places[term].append(place)
        self._sayings = self._weighed()
        self._words = sorted({word for known in self._known.values() for word in known.words})
        self._compared = lru_cache(maxsize=_COMPARED)(self._compare)

    def _weighed(self) -> Mapping[str, Sequence[Saying]]:
        """The sayings of each intent that tell anything."""
        places = {unit: place for place, unit in enumerate(self._units)}
        weights = [self._weight(unit) for unit in self._units]

        def saying(units: Sequence[Unit], worth: float) -> Saying:
            told = [(places[unit], weights[places[unit]]) for unit in units]
            return Saying(worth, told, sum(weight for _, weight in told))

        return {
            name: [said for units, worth in known.sayings if (said := saying(units, worth)).whole]
            for name, known in self._known.items()
        }

    def _compare(self, text: str) -> Compared:
        units = units_of(without_refusals(text))
        near = {unit.stem: _spelt_as(unit.stem, self._words) for unit in units}
        held: dict[int, float] = {}
        for unit in units:
            alike = (
                (1.0, self._places.get(unit.stem, ())),
                *((_BY_CONCEPT, self._places.get(f"#{name}", ())) for name in unit.concepts),
                *((_BY_SPELLING, self._places.get(word, ())) for word in near[unit.stem]),
            )
            for worth, places in alike:
                held |= {place: worth for place in places if worth > held.get(place, 0.0)}
        return Compared(flat(text), [(unit, self._weight(unit)) for unit in units], near, held)

    def begun_by(self, verb: str) -> str | None:
        """The one intent whose description begins with a verb: "Book a stay for a cat"."""
        begun = [name for name, first in self._first.items() if first == stem(verb.lower())]
        return begun[0] if len(begun) == 1 else None

    def score(
        self, intent_id: str, text: str, spans_by_param: Mapping[str, tuple[int, int]] = _NONE
    ) -> float:
        """How well the intent fits a text: 0 to 1, and `EXACT` for an example word for word.

        Args:
            intent_id: The intent.
            text: The message, or a part of it, without the values that were found in it.
            spans_by_param: Spans of the message that may be a value, by parameter. Those that the
                intent does not take speak against it.
        """
        known, message = self._known[intent_id], self._compared(text)
        if message.flat in known.flat:
            return EXACT
        words = self._shared(intent_id, message)
        proof, enough = self._proof(known, spans_by_param)
        if not words:
            return proof if enough else _VALUES_ALONE * max(proof, 0.0)
        named = any(
            known.params[name].type is ParamType.ENUM
            for name in spans_by_param
            if name in known.params
        )
        fits = min(1.0, words + proof * (1.0 if named else min(1.0, words / _FULL_PROOF)))
        return fits * (_OTHER_THAN_TROUBLE if self._is_other_than_trouble(known, message) else 1.0)

    def _is_other_than_trouble(self, known: Known, message: Compared) -> bool:
        """Whether the message tells of a trouble that other intents are about, and this is not."""
        concepts = frozenset[str]().union(*(unit.concepts for unit, _ in message.units))
        told, asked = concepts & TROUBLES, concepts & ASPECTS  # "what does it cost when it is lost"
        others = any(f"#{name}" in self._weights for name in told)
        return others and (told | asked).isdisjoint(known.concepts)

    def opens(self, intent_id: str, text: str) -> bool:
        """Whether a text begins, politeness aside, with a verb or a word of the intent."""
        known, words = self._known[intent_id], re.findall(r"[^\W_]+(?:['’]\w+)?", text.lower())
        first = next((word for word in words if word not in _BEFORE_ORDERS), "")
        if first in VERBS or first in FUNCTION_WORDS:
            return first in VERBS
        said = self._compared(first)
        return any(self._hit(known, unit, said.near[unit.stem]) for unit, _ in said.units)

    def _proof(
        self, known: Known, spans_by_param: Mapping[str, tuple[int, int]]
    ) -> tuple[float, bool]:
        """How much values speak for an intent, and whether they do so without any word.

        They do when there are several, and all of them are the intent's own.
        """
        taken, foreign = 0.0, 0
        spans = dict.fromkeys(spans_by_param.values())
        own = [
            span
            for span in spans
            if any(spans_by_param[name] == span for name in spans_by_param if name in known.params)
        ]
        for span in own:
            names = [name for name, place in spans_by_param.items() if place == span]
            worth = max(
                _PROOF.get(known.params[name].type, _SLIGHT)
                for name in names
                if name in known.params
            )
            takers = sum(
                any(name in other.params for name in names) for other in self._known.values()
            )
            taken += worth * (1.5 if takers == 1 else 1.0)
        foreign = sum(
            not any(span[0] < end and start < span[1] for start, end in own) for span in spans
        )
        return min(taken, _MOST_PROOF) - min(0.06 * foreign, 0.18), len(own) > 1 and not foreign

    def _shared(self, intent_id: str, message: Compared) -> float:
        """The likeness of the message to the intent's words and to one of its sayings.

        It is how much of the message the words explain, and how much of a saying the message holds.
        """
        known = self._known[intent_id]
        hits = [
            (unit, weight, self._hit(known, unit, message.near[unit.stem]))
            for unit, weight in message.units
        ]
        meant = sum(weight * hit for _, weight, hit in hits)
        if not meant:
            return 0.0
        rest = [(unit, weight) for unit, weight, hit in hits if not hit]
        strange = min(
            sum(weight for unit, weight in rest if not self._is_known(unit)),
            _MOST_UNKNOWN * self._unknown,
        )
        rival = sum(weight for unit, weight in rest if self._is_known(unit))
        partly = sum(weight * (1 - hit) for _, weight, hit in hits if hit)
        explained = meant / (meant + 0.6 * strange + rival + 0.5 * partly)
        saying = max(
            (said.worth * _held(said, message) for said in self._sayings[intent_id]), default=0.0
        )
        if any(not ASPECTS.isdisjoint(unit.concepts) for unit, _ in rest) and self._knows_aspect(
            message
        ):
            meant *= _OTHER_ASPECT
            explained *= _OTHER_ASPECT
        telling = min(1.0, meant / self._enough)  # common words alone are no likeness
        return telling * (0.5 * explained + 0.5 * saying)

    def _hit(self, known: Known, unit: Unit, near: Sequence[str]) -> float:
        """What a word of the message is worth to an intent."""
        by_concept = _BY_OTHER_WORD if unit.stem in self._weights else _BY_CONCEPT
        same = known.words.get(unit.stem, 0.0)
        if not same and unit.stem.endswith("er"):
            same = _BY_SPELLING * known.words.get(doing_stem(unit.stem), 0.0)
        meant = max(
            (known.concepts[name] for name in unit.concepts if name in known.concepts), default=0.0
        )
        misspelt = max((known.words[word] for word in near if word in known.words), default=0.0)
        return max(same, by_concept * meant) or _BY_SPELLING * misspelt

    def _knows_aspect(self, message: Compared) -> bool:
        """Whether some intent is about the aspect of things that the message asks about."""
        return any(
            f"#{name}" in self._weights
            for unit, _ in message.units
            for name in unit.concepts & ASPECTS
        )

    def _is_known(self, unit: Unit) -> bool:
        return unit.stem in self._weights or any(
            f"#{name}" in self._weights for name in unit.concepts
        )

    def _weight(self, unit: Unit) -> float:
        terms = (unit.stem, *(f"#{name}" for name in unit.concepts))
        return max(
            (self._weights[term] for term in terms if term in self._weights), default=self._unknown
        )


def _known(intent: Intent, params: Mapping[str, Param]) -> Known:
    texts = [
        *((example, 1.0) for example in intent.examples),
        (intent.description, _DESCRIBED),
        (in_words(intent.id), _NAMED),
    ]
    sayings = [(units, worth) for text, worth in texts if (units := units_of(text))]
    words: dict[str, float] = {}
    concepts: dict[str, float] = {}
    for units, worth in sayings:
        _note(words, concepts, units, worth)
    own = {name: params[name] for name in intent.param_names if name in params}
    for param in own.values():
        _note(words, concepts, units_of(" ".join(_words_of(param))), _BY_PARAM)
    return Known(
        sayings, words, concepts, frozenset(flat(example) for example in intent.examples), own
    )


def _words_of(param: Param) -> Iterable[str]:
    yield in_words(param.name)
    yield param.description
    for value, synonyms in param.enum.items():
        yield in_words(value)
        yield from synonyms


def _note(
    words: dict[str, float], concepts: dict[str, float], units: Iterable[Unit], worth: float
) -> None:
    for unit in units:
        words[unit.stem] = max(words.get(unit.stem, 0.0), worth)
        for name in unit.concepts:
            concepts[name] = max(concepts.get(name, 0.0), worth)


def _held(saying: Saying, message: Compared) -> float:
    """How much of a saying the message holds."""
    held = message.held
    return sum(weight * held[place] for place, weight in saying.weights if place in held) / (
        saying.whole
    )


def _spelt_as(word: str, others: Sequence[str]) -> list[str]:
    """Words that are another one, wrongly spelt; of short ones nobody can tell."""
    if len(word) < _SHORTEST_MISSPELT:
        return []
    alike = process.extract(word, others, scorer=fuzz.ratio, score_cutoff=_SAME_WORD, limit=None)
    return [other for other, _, _ in alike if len(other) >= _SHORTEST_MISSPELT]


def about(intent: Intent) -> str:
    """What an intent says of itself."""
    return " ".join([in_words(intent.id), intent.description, *intent.examples])


def flat(text: str) -> str:
    """The words of a text alone."""
    return " ".join(re.findall(r"\w+", text.lower()))
