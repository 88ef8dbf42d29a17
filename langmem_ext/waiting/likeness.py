"""How like a message is to what an intent's examples and description say: shared words, the telling ones counting most.

A word that every intent uses ("order", in a shop) tells little, one that a single intent uses tells much. Spelling mistakes and endings
are forgiven; words with digits are values and do not count.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from rapidfuzz import fuzz

from langmem_ext.names import in_words
from langmem_ext.waiting.extract.lexicon import FUNCTION_WORDS
from langmem_ext.waiting.extract.vocabulary import stem
from langmem_ext.waiting.intent import Intent

EXACT = 1.1
"""Likeness of a message that is an example, word for word."""

_QUESTION_WORDS = frozenset(["where", "when", "how", "what", "who", "why", "which"])
_SILENT = (FUNCTION_WORDS - _QUESTION_WORDS - {"back", "up", "out", "off"}) | frozenset(
    ["want", "wanted", "need", "needs", "like", "help", "let", "get", "got", "give", "going", "gonna", "wanna", "there's", "i'd", "i'm"]
)
_DESCRIBED = 0.8
"""What likeness to the description or the id is worth beside likeness to an example."""

_SAME_WORD = 84
"""From how alike (0 to 100) two longer words are taken for one, wrongly spelt."""

_REFUSAL = re.compile(
    r"\b(?:do\s?n[o'’]?t|do not|does not|doesn['’]?t|never|not|no longer|rather than|instead of)\b"
    r"(?:\s+(?:you|really|want|wanna|need|wish|like|plan|intend|trying|going|to|a|an|any|the|my|be|have))*\s+\w+",
    re.IGNORECASE,
)


def without_refusals(text: str) -> str:
    """The message without what it says not to do: "don't cancel, just check it" asks for a check."""
    return _REFUSAL.sub(" ", text)


class LikenessIndex:
    """The words of a catalog's intents, weighted. Made once for a catalog."""

    def __init__(self, intents: Sequence[Intent]) -> None:
        """Weigh the words of the `intents` to tell apart."""
        self._sayings = {intent.id: _sayings(intent) for intent in intents}
        used = Counter(word for sayings in self._sayings.values() for word in {word for words, _ in sayings for word in words})
        self._weights = {word: math.log((len(intents) + 1) / count) * _part(word) for word, count in used.items()}
        self._unknown = math.log(len(intents) + 1) / 2
        self._examples = {intent.id: {_flat(example) for example in intent.examples} for intent in intents}

    def likeness(self, intent_id: str, text: str) -> float:
        """How like the message is to the intent's likest saying: 0 to 1, and `EXACT` for an example word for word."""
        if _flat(text) in self._examples[intent_id]:
            return EXACT
        said = telling_words(without_refusals(text))
        return max((worth * self._shared(words, said) for words, worth in self._sayings[intent_id]), default=0.0)

    def _shared(self, words: Sequence[str], said: Sequence[str]) -> float:
        """How much of the saying the message holds, less where the message says much else."""
        weight = sum(self._weights[word] for word in words)
        if not said or not weight:
            return 0.0
        met = {word: other for word in words for other in said if _same(word, other)}
        meant = sum(self._weights[word] for word in met)
        if not meant:
            return 0.0
        rest = sum(self._weights.get(word, self._unknown) for word in said if word not in met.values())
        telling = min(1.0, meant / self._unknown)  # common words alone are no likeness
        return telling * meant / weight * (0.6 + 0.4 * meant / (meant + rest))


def telling_words(text: str) -> list[str]:
    """The stems of the words that tell what a message is about, each once, in order."""
    words = re.findall(r"\w+(?:['’]\w+)?", text.lower())
    plain = [re.sub(r"['’]s$", "", word) for word in words if not any(letter.isdigit() for letter in word)]
    return list(dict.fromkeys(stem(word) for word in plain if word.replace("’", "'") not in _SILENT))


def _sayings(intent: Intent) -> list[tuple[list[str], float]]:
    texts = [*((example, 1.0) for example in intent.examples), (intent.description, _DESCRIBED), (in_words(intent.id), _DESCRIBED)]
    return [(words, worth) for text, worth in texts if (words := telling_words(text))]


def _part(word: str) -> float:
    """Question words open any question: they count half."""
    return 0.5 if word in _QUESTION_STEMS else 1.0


_QUESTION_STEMS = frozenset(stem(word) for word in _QUESTION_WORDS)


def _flat(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _same(word: str, other: str) -> bool:
    return word == other or (min(len(word), len(other)) >= 4 and fuzz.ratio(word, other) >= _SAME_WORD)
