"""Conversations, damaged as hasty people damage what they write: unlimited unseen-like data.

`damaged(data, kind)` is the data of a desk (`talks/README.md`) with each message changed by one
kind of damage. Words of wanted values keep their letters, so what is wanted stays the same. The
same seed gives the same damage.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

_ARTICLES: Final = re.compile(r"\b(?:a|an|the)\s+", re.IGNORECASE)
_AUXILIARIES: Final = re.compile(
    r"\b(?:do|does|did|am|is|are|have|has|been|to)\s+(?=\w)|(?<=\w)['’](?:m|re|ve)\b", re.IGNORECASE
)
_PUNCTUATION: Final = re.compile(r"[,;!?…]+(?=\s|$)|\.+(?=\s|$)|\s[–—-]\s")
_FILLERS: Final = ("um", "uh", "like", "you know", "so", "basically", "well", "i mean")

Damage = Callable[[str, random.Random, frozenset[str]], str]


def _typos(text: str, chance: random.Random, kept: frozenset[str]) -> str:
    """One letter wrong in a fifth of the longer words: left out, doubled, or exchanged."""

    def spelt(match: re.Match[str]) -> str:
        word = match.group()
        if word.lower() in kept or word[0].isupper() or chance.random() > 0.2:
            return word
        at, way = chance.randrange(1, len(word) - 1), chance.randrange(3)
        if way == 0:
            return word[:at] + word[at + 1 :]
        if way == 1:
            return word[:at] + word[at] + word[at:]
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]

    return re.sub(r"(?<![\w'’-])[^\W\d_]{5,}(?![\w'’-])", spelt, text)


def _fillers(text: str, chance: random.Random, kept: frozenset[str]) -> str:
    """A word that says nothing in front, and one behind the first word that is no value."""
    words = f"{chance.choice(_FILLERS)} {text}".split(" ")
    places = [
        at for at in range(2, len(words)) if not {_bare(words[at - 1]), _bare(words[at])} & kept
    ]
    if places:
        words.insert(chance.choice(places), chance.choice(_FILLERS))
    return " ".join(words)


def _without(pattern: re.Pattern[str], filler: str = "") -> Damage:
    def damage(text: str, chance: random.Random, kept: frozenset[str]) -> str:
        return pattern.sub(filler, text).strip() or text

    return damage


def _bare(word: str) -> str:
    return re.sub(r"\W", "", word).lower()


def _lower(text: str, chance: random.Random, kept: frozenset[str]) -> str:
    return text.lower()


MESSAGES: Final[Mapping[str, Damage]] = {
    "typos": _typos,
    "articles": _without(_ARTICLES),
    "auxiliaries": _without(_AUXILIARIES),
    "lower": _lower,
    "unpunctuated": _without(_PUNCTUATION),
    "fillers": _fillers,
}
"""Damage to each message, by its name."""

KINDS: Final = (*MESSAGES, "careless", "joined", "described")
"""Every kind: `careless` has typos, no articles, no capitals and no punctuation; `joined` has two
messages in one; `described` leaves the catalog its descriptions and takes its examples away.
"""


def damaged(data: Mapping[str, Any], kind: str, seed: int = 0) -> dict[str, Any]:
    """The data of a desk, damaged."""
    if kind == "described":
        intents = [{**intent, "examples": []} for intent in data["catalog"]["intents"]]
        return {**data, "catalog": {**data["catalog"], "intents": intents}}
    talks = [
        _damaged(talk, kind, random.Random(f"{seed} {kind} {talk['title']}"))
        for talk in data["conversations"]
    ]
    return {**data, "conversations": talks}


def _damaged(talk: Mapping[str, Any], kind: str, chance: random.Random) -> dict[str, Any]:
    says = [said if isinstance(said, str) else said["say"] for said in talk["says"]]
    if kind == "joined":
        joins = len(says) > 2 and not re.match(r"\W*(?:yes|yep|yeah|ok|no)\b", says[1].lower())
        says = [f"{says[0]} {says[1]}", *says[2:]] if joins else says
    kept = frozenset(_words(talk["want"])) | frozenset(_words(talk.get("also") or {}))
    steps = ("typos", "articles", "lower", "unpunctuated") if kind == "careless" else (kind,)
    for step in steps:
        if step in MESSAGES:
            says = [MESSAGES[step](text, chance, kept) for text in says]
    return {**talk, "says": says}


def _words(value: object) -> Iterable[str]:
    """The words of all values, in lower case."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _words(part)
    elif isinstance(value, str):
        yield from re.findall(r"[^\W_]+", value.lower())
