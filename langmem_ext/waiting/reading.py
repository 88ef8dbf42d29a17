"""What of a user's message may be shown, when it holds a sensitive value: nothing but what is certain to be no part of one. Pure.

A user may say a value twice, correct it, or begin with a wrong one, so it is not enough to hide what was taken. Shown are words of the
language's closed classes ("is", "my", "and"), words of the catalog, and values of parameters that are not sensitive.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set

from langmem_ext.messages.spans import Span, find_spans, joined, squeezed
from langmem_ext.waiting.catalog import IntentCatalog
from langmem_ext.waiting.extract.lexicon import AUXILIARIES, CONJUNCTIONS, DETERMINERS, PREPOSITIONS, PRONOUNS
from langmem_ext.waiting.marks import Secrets
from langmem_ext.waiting.param import Extraction, Param, ParamType

_WHOLE = frozenset({ParamType.TEXT, ParamType.BOOLEAN})
"""Types of which any words at all may be a value."""

COMMON = PRONOUNS | AUXILIARIES | (DETERMINERS - {"no", "either", "neither"}) | PREPOSITIONS | (CONJUNCTIONS - {"either", "nor"})
"""Words that may be shown, whatever they were said for."""

_TOKEN = re.compile(r"\S+")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?")


def familiar_words(catalog: IntentCatalog, sensitive: Set[str] = frozenset()) -> frozenset[str]:
    """The words that tell nothing of a user: closed word classes and the catalog's own, but for the values of a sensitive choice."""
    texts: list[str] = []
    for intent in catalog.intents:
        texts += [intent.description, *intent.examples]
    secret: list[str] = []
    for param in catalog.params.values():
        texts += [param.name, param.description, param.prompt, param.clarified_prompt]
        if param.name in sensitive or catalog.is_sensitive(param.name):
            secret += [*param.examples, *(word for value, synonyms in param.enum.items() for word in (value, *synonyms))]
    words = {word for text in texts for word in _words(text) if not re.search(r"\d", word)}
    return (COMMON | words) - {word for text in secret for word in _words(text)}


def _words(text: str) -> list[str]:
    return [word.casefold().replace("’", "'") for word in _WORD.findall(text.replace("_", " "))]


def plan_spans(
    text: str,
    params: Iterable[Param],
    found: Mapping[str, Extraction],
    secrets: Secrets,
    known: Secrets,
    familiar: frozenset[str],
) -> list[Span] | None:
    """What of a message to hide; None: all of it, because a value that it was given for was not recognised.

    Args:
        text: What the user says.
        params: The sensitive parameters that it holds a value of, or was asked for.
        found: What was read from it, by parameter.
        secrets: All sensitive values that are known.
        known: Values that are known and not sensitive.
        familiar: Words that tell nothing (`familiar_words`).
    """
    hidden: list[Span] = []
    for param in params:
        own = [span for name, value in secrets if name == param.name for span in find_spans(text, value)]
        read = found.get(param.name)
        own += [read.span] if read and read.span else []
        if not own or param.type in _WHOLE:
            return None
        hidden += own
    harmless = {word for _, value in known if (word := squeezed(value))}
    for token in _TOKEN.finditer(text):
        overlaps = any(start < token.end() and token.start() < end for start, end in hidden)
        if overlaps or not (squeezed(token[0]) in harmless or _is_familiar(token[0], familiar)):
            hidden.append(token.span())
    return joined(text, hidden)


def _is_familiar(token: str, familiar: frozenset[str]) -> bool:
    return "@" not in token and all(word in familiar for word in _words(token))
