"""A parameter's own words: the nouns of its name and description, as messages use them."""

from __future__ import annotations

import re
from functools import lru_cache

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, word_set

_EMPTY = word_set(
    "name number value parameter argument field user customer whether flag boolean main desired"
    " required preferred given want wants wanted need needs needed provided"
    " amount list string optional default format count total tentative search e.g eg"
)
_PEOPLE = word_set(
    "people person persons passenger passengers rider riders traveler travelers traveller"
    " travellers guest guests adult adults party attendee attendees diner diners visitor visitors"
    " child children kid kids place places seat seats ticket tickets pax pupil pupils student"
    " students participant participants player players"
)


_SIDE_CLAUSE = re.compile(
    r"(?<=\w)\s+(?:where|which|that|when|for|in|to|from|at|on|with|by)\b"
    r"|(?<=\w)(?<!whether)(?<!\bif)\s+(?:the|an?|you|we|they|he|she)(?:\s+\w+)?\s+(?:should|must"
    r"|can|could|will|would|may|needs?)\b"
)


_WHO_DOES = re.compile(r"^(?P<does>who\s+(?:(?:will|is|can|should)\s+)?\w+).*", re.DOTALL)
"""Whose name it is: what is done there, "who books the court", is no word for a person."""


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A word without its ending, so that "tickets" meets "ticket" and "sharing" meets "shared"."""
    low = word.lower()
    for ending in ("ings", "ing", "ies", "ed", "es", "s", "e", "y"):
        if low.endswith(ending) and len(low) - len(ending) >= 3:
            root = low[: -len(ending)]
            doubled = (
                ending in ("ing", "ed")
                and len(root) > 3
                and root[-1] == root[-2]
                and root[-1] not in "sl"
            )
            return root[:-1] if doubled else root
    return low


def doing_stem(word: str) -> str:
    """The stem of what somebody does, by the word for who does it: "drivers" meets "driving"."""
    root = stem(word).removesuffix("er")
    return root[:-1] if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "sl" else root


@lru_cache(maxsize=512)
def split_name(name: str) -> tuple[str, ...]:
    """The words of a parameter's name: `orderId` and `order_id` are both order, id."""
    return tuple(word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name))


@lru_cache(maxsize=512)
def _stems(name: str, description: str) -> frozenset[str]:
    described = _WHO_DOES.sub(r"\g<does>", description.lower())
    head = _SIDE_CLAUSE.split(described, maxsplit=1)[0]
    words = [*split_name(name), *re.findall(r"[a-z]+", head)]
    return frozenset(
        stem(word)
        for word in words
        if word not in FUNCTION_WORDS and word not in _EMPTY and len(word) > 1
    )


def own_stems(param: Param) -> frozenset[str]:
    """Stems of the nouns in the parameter's name, and in its description up to a side clause."""
    return _stems(param.name, param.description)


_OF_ONE = re.compile(r"\b(?:of|for|per) (?:the|an?|each|your) [a-z]+\b(?<!s)(?!\s+\w)")
"""Whose number it is: "age of the guest" counts no guests."""


def counts_people(param: Param, prompt: str = "") -> bool:
    """Whether the parameter counts people, their seats or tickets, so that "just me" is one."""
    if param.type is ParamType.NUMBER:
        return False
    described = _OF_ONE.sub(" ", param.description.lower())
    words = {*split_name(param.name), *re.findall(r"[a-z]+", described)}
    return bool(words & _PEOPLE) or bool(
        re.search(
            r"how many (?:people|persons?|guests|of you|in your)|how large|party", prompt, re.I
        )
    )
