"""What a free text is asked for: a kind, the name of a thing, a story or a thing."""

from __future__ import annotations

import re

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.english.lexicon import word_set
from langmem_ext.waiting.extract.english.vocabulary import split_name, stem
from langmem_ext.waiting.extract.names.person import is_of_person
from langmem_ext.waiting.extract.names.telling import is_written

_KINDS = word_set(
    "genre type kind category cuisine style sort food range class mood color colour flavour flavor"
)
NARRATIVE = frozenset(
    stem(word)
    for word in word_set(
        "reason note comment message description detail problem issue fault complaint symptom"
        " question request wish remark purpose feedback instruction text matter concern"
        " incident explanation statement happened happen wrong tell describe anything say write"
        " occasion goal aim"
    )
)
"""Words of a parameter whose values are whole sentences."""
_SHORT = 3
"""Words of an example that is no sentence, at most."""


def is_kind(param: Param) -> bool:
    """Whether the parameter holds a kind, named by a word or two, and not a free answer."""
    words = {*split_name(param.name), *re.findall(r"[a-z]+", param.description.lower())}
    return bool(words & _KINDS)


def asks_for_name(param: Param) -> bool:
    """Whether the text that is asked for is a name: "what is the band called?"."""
    return _NAMED.search(f"{param.description} {param.prompt}") is not None


_NAMED = re.compile(r"\bname of\b|\bcalled\b", re.I)


def is_colour(param: Param) -> bool:
    """Whether the parameter holds a colour."""
    words = {*split_name(param.name), *re.findall(r"[a-z]+", param.description.lower())}
    return param.type is ParamType.TEXT and not words.isdisjoint(("colour", "color"))


def is_free(param: Param) -> bool:
    """Whether any text of any length may be a value."""
    return param.pattern is None and not is_kind(param)


_TITLE = re.compile(r"\bname of (?:the|your|a)\b|\bcalled\b", re.I)


def is_title(param: Param) -> bool:
    """Whether the values are names of things: "name of the boat"."""
    return (
        param.type is ParamType.TEXT
        and not param.pattern
        and _TITLE.search(f"{param.description} {param.prompt}") is not None
        and not is_of_person(param)
    )


def is_thing(param: Param) -> bool:
    """Whether the values are words for a thing, and no name of one, kind, story or inscription."""
    told = is_title(param) or is_kind(param) or is_narrative(param) or is_written(param)
    return param.type is ParamType.TEXT and not (param.pattern or param.sensitive or told)


_ABOUT = re.compile(r"(?<=\w)\s+(?:the|an?|your)\s+\w+\s+(?:is|are|was) (?:about|for|on)\b")
"""What a thing belongs to: "the item the complaint is about" is no complaint."""


def is_narrative(param: Param) -> bool:
    """Whether the parameter's values are whole sentences."""
    described = _ABOUT.sub(" ", f"{param.description}; {param.prompt}".lower())
    words = [*split_name(param.name), *re.findall(r"[a-z]+", described)]
    return any(
        len(example.split()) > _SHORT for example in param.examples
    ) or not NARRATIVE.isdisjoint(map(stem, words))


def wording_of(param: Param) -> str:
    """What a parameter says of itself, and its question."""
    return f"{param.description} {param.prompt}"
