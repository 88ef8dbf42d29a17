"""The mark on messages with sensitive values, in `additional_kwargs["langmem_ext"]`.

Every view reads it (see `annotations`).

Whatever makes titles, summaries, search entries or exports from messages shows what
`annotations.shown_text` leaves of those that carry it. Rather one mark too many than one too few,
and rather a whole message hidden than a part of a value shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final, TypeAlias, TypeVar

from langchain_core.messages import BaseMessage
from pydantic import JsonValue

from langmem_ext.errors import InvalidInput
from langmem_ext.messages.annotations import HIDDEN, NAMESPACE, marked_for, moment_in, notes_of
from langmem_ext.messages.blocks import blocks_of
from langmem_ext.messages.search.spans import (
    Span,
    add_widened,
    find_spans,
    joined,
    squeezed,
    windows,
)
from langmem_ext.messages.text import words_of
from langmem_ext.messages.token_costs.media import encoded_in
from langmem_ext.waiting.catalog.catalog import IntentCatalog
from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract.english.lexicon import (
    AUXILIARIES,
    CONJUNCTIONS,
    DETERMINERS,
    PREPOSITIONS,
    PRONOUNS,
)
from langmem_ext.waiting.policy.value_text import in_text

M = TypeVar("M", bound=BaseMessage)

Secrets: TypeAlias = Sequence[tuple[str, str]]
"""Sensitive values as they are looked for: the parameter's name and the value's text."""


def mark_sensitive(
    message: M,
    values: Mapping[str, JsonValue] | None = None,
    *,
    spans: Mapping[str, Sequence[Sequence[int]]] | None = None,
) -> M:
    """Mark a message as sensitive: views show the rest of it, or nothing if no value is found.

    Mark a message before it is stored: what was stored unmarked has perhaps been searched for
    already. A mark takes nothing back of an earlier one. Of a message's content only the text can
    be shown; values in arguments of tool calls and in images are for the log alone.

    Args:
        message: A message; it is not changed.
        values: The values it holds, by name. They are looked for in its text, however they are
            spaced; the values are not noted.
        spans: Their places in its text, by name, each a list of `[start, end)` in characters;
            an empty list hides all of the text.

    Raises:
        InvalidInput: No values and no spans, or a span is outside of the text. The error never
            quotes the message.
    """
    names = {*(values or {}), *(spans or {})}
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InvalidInput(
            "pass what the message contains: values={name: value} or spans={name: [(start, end)]}"
        )
    text = words_of(vars(message))
    spans_by_value: list[list[Span]] = [
        _spans_of(text, _texts(value)) for value in (values or {}).values()
    ]
    for listed in (spans or {}).values():
        spans_by_value.append([_checked(span, len(text)) for span in listed])
    whole = not all(spans_by_value)
    return marked(
        message,
        names,
        None if whole else joined(text, [span for spans in spans_by_value for span in spans]),
    )


def _checked(span: Sequence[int], length: int) -> Span:
    if not (
        isinstance(span, list | tuple)
        and len(span) == 2
        and all(type(end) is int for end in span)
        and 0 <= span[0] < span[1] <= length
    ):
        raise InvalidInput(
            "a span must be a pair (start, end) of character positions in the message's text,"
            f" which has {length}"
        )
    return span[0], span[1]


def sensitive_names(message: BaseMessage) -> frozenset[str]:
    """The parameters that the message is marked for."""
    return marked_for(vars(message))


def marked(
    message: M, names: Iterable[str], spans: Sequence[Span] | None = None, *, anew: bool = False
) -> M:
    """The message, marked for these parameters too; the same object if that changes nothing.

    Args:
        message: The message.
        names: The parameters.
        spans: All places of their values in its text; None: they are not known, and all of
            the text is hidden.
        anew: Whether the mark that the message has was put there for want of a reading, and this
            one takes its place.
    """
    before, added = sensitive_names(message), frozenset(names)
    if not added:
        return message
    notes = notes_of(vars(message))
    places: list[Span] | None = None if spans is None else list(spans)
    if before and not anew:
        noted = notes.get("spans")
        if added <= before and (places is None) == (noted is None) and places is None:
            return message
        places = (
            None
            if places is None or not isinstance(noted, list)
            else joined(words_of(vars(message)), [*places, *map(_pair, noted)])
        )
    rest = {key: value for key, value in notes.items() if key not in ("sensitive", "spans")}
    mark: dict[str, Any] = {"sensitive": sorted(before | added)}
    if places:
        mark["spans"] = [[start, end] for start, end in places]
    if {key: notes.get(key) for key in ("sensitive", "spans") if key in notes} == mark:
        return message
    return _with_notes(message, {**rest, **mark})


def _pair(span: Any) -> Span:
    """A noted span; an invalid one hides the beginning, and `shown_text` checks it again."""
    return (span[0], span[1]) if isinstance(span, list | tuple) and len(span) == 2 else (0, 1)


def annotated(message: M, key: str, value: JsonValue) -> M:
    """A copy of the message with `value` under `key` in this package's `additional_kwargs`."""
    return _with_notes(message, {**notes_of(vars(message)), key: value})


def written_at(message: M, moment: datetime) -> M:
    """The message with the time when it was written, in its user's time zone."""
    return annotated(message, "at", moment.isoformat())


def moment_of(message: BaseMessage) -> datetime | None:
    """When the message was written, as noted on it, without a time zone: the user's local time."""
    instant = _noted_at(message)
    return None if instant is None else instant.replace(tzinfo=None)


def instant_of(message: BaseMessage) -> datetime | None:
    """When the message was written, with a time zone; the machine's if none was noted."""
    instant = _noted_at(message)
    return instant if instant is None or instant.tzinfo is not None else instant.astimezone()


def _noted_at(message: BaseMessage) -> datetime | None:
    return moment_in(notes_of(vars(message)).get("at"))


def _with_notes(message: M, notes: Mapping[str, Any]) -> M:
    return message.model_copy(
        update={"additional_kwargs": {**message.additional_kwargs, NAMESPACE: dict(notes)}}
    )


def secrets_in(names: Set[str], *holders: object) -> Secrets:
    """The values under these names in nested data, each once: in `params` and tool results."""
    secrets: dict[tuple[str, str], None] = {}
    for holder in holders:
        if isinstance(holder, Mapping):
            for name, value in holder.items():
                if name in names:
                    secrets.update(((name, text), None) for text in _texts(value))
                else:
                    secrets.update(dict.fromkeys(secrets_in(names, value)))
        elif isinstance(holder, list):
            secrets.update(dict.fromkeys(secrets_in(names, *holder)))
    return tuple(secrets)


def _texts(value: Any) -> Iterator[str]:
    """The value as a message may hold it; of several values each."""
    items = (
        value
        if isinstance(value, list)
        else list(value.values())
        if isinstance(value, dict)
        else None
    )
    if items is None:
        yield in_text(value)
        return
    for item in items:
        yield from _texts(item)


def _spans_of(text: str, values: Iterable[str]) -> list[Span]:
    """The places of all the values; none where one of them is not found."""
    spans_by_value = [find_spans(text, value) for value in values]
    return [span for spans in spans_by_value for span in spans] if all(spans_by_value) else []


KNOWN: Final = "known_secrets"
"""The channel in which a thread keeps its `Known`."""

MOST: Final = 200
"""Values that a thread knows, at most: the latest."""


@dataclass(frozen=True, slots=True)
class Known:
    """The sensitive values of a thread, to be recognised and not to be read.

    They stay known when the request that asked for them is over.

    Attributes:
        salt: Makes the digests those of one thread.
        values: Each value's parameter, its letters and digits (how many), and their digest.
    """

    salt: str = ""
    values: tuple[tuple[str, int, str], ...] = ()

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Known:
        """What a thread knows, whatever was edited into its state."""
        noted = state.get(KNOWN)
        salt = noted.get("salt") if isinstance(noted, dict) else None
        if not isinstance(noted, dict) or not isinstance(salt, str):
            return cls()
        values = noted.get("values")
        sound = [
            (value[0], value[1], value[2])
            for value in (values if isinstance(values, list) else ())
            if isinstance(value, list | tuple) and [*map(type, value)] == [str, int, str]
        ]
        return cls(salt, tuple(sound))

    def channel(self) -> dict[str, JsonValue]:
        """The same as a channel keeps it."""
        return {"salt": self.salt, "values": [list(value) for value in self.values]}

    def with_values(self, secrets: Secrets) -> Known:
        """The same, and these values."""
        new = [
            (name, len(word), self._digest(word))
            for name, value in secrets
            if (word := squeezed(value))
        ]
        known = tuple(dict.fromkeys((*self.values, *new)))[-MOST:]
        return self if known == self.values else Known(self.salt, known)

    def find(self, text: str) -> dict[str, list[Span]]:
        """Where the values are in a text, by parameter, however they are spaced."""
        names: dict[str, list[str]] = {}
        for name, _, digest in self.values:
            names.setdefault(digest, []).append(name)
        found: dict[str, list[Span]] = {}
        for word, span in windows(text, {length for _, length, _ in self.values}):
            for name in names.get(self._digest(word), ()):
                add_widened(found.setdefault(name, []), text, *span)
        return found

    def hide(self, text: str) -> str:
        """A text with the values hidden."""
        spans = joined(text, [span for places in self.find(text).values() for span in places])
        for start, end in reversed(spans):
            text = f"{text[:start]}{HIDDEN}{text[end:]}"
        return text

    def _digest(self, word: str) -> str:
        return blake2b(word.encode(), key=self.salt.encode()[:64], digest_size=16).hexdigest()


NOTHING_KNOWN: Final = Known()


def held(message: BaseMessage, known: Known) -> set[str]:
    """The parameters whose values the message contains, in its text or besides it."""
    return known.find(words_of(vars(message))).keys() | held_beside(message, known)


def held_beside(message: BaseMessage, known: Known) -> set[str]:
    """The parameters whose values are in its name, arguments, or what is attached."""
    fields = {**vars(message), "type": None, "content": blocks_of(message.content)}
    return {name for text in _strings(fields) for name in known.find(text)}


def _strings(value: Any) -> Iterator[str]:
    """All texts and numbers in nested data, but for its notes, its ids and what is encoded."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _strings(None if key in (*IDS, NAMESPACE) else part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part)
    elif isinstance(value, str | int | float) and not encoded_in(text := in_text(value)):
        yield text


IDS: Final = ("id", "tool_call_id")
"""Fields of messages and of calls that tell nothing, and hold a thread together."""


def covered(message: M, known: Known) -> M:
    """The message, marked for the values that it holds, and their places in its text.

    For what a program has written: it says nothing of a value but the value.
    """
    names, text = held(message, known), words_of(vars(message))
    places = known.find(text) if names else {}
    spans = joined(text, [span for name in places for span in places[name]])
    return marked(message, names, spans if places.keys() == names else None)


_WHOLE = frozenset({ParamType.TEXT, ParamType.BOOLEAN})
"""Types of which any words at all may be a value."""

COMMON = (
    PRONOUNS
    | AUXILIARIES
    | (DETERMINERS - {"no", "either", "neither"})
    | PREPOSITIONS
    | (CONJUNCTIONS - {"either", "nor"})
)
"""Words that may be shown, whatever they were said for."""

_TOKEN = re.compile(r"\S+")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?")


def familiar_words(catalog: IntentCatalog, sensitive: Set[str] = frozenset()) -> frozenset[str]:
    """Words that reveal nothing of a user: closed classes and the catalog's, no secret choice."""
    texts: list[str] = []
    for intent in catalog.intents:
        texts += [intent.description, *intent.examples]
    secret: list[str] = []
    for param in catalog.params.values():
        texts += [param.name, param.description, param.prompt, param.clarified_prompt]
        if param.name in sensitive or catalog.is_sensitive(param.name):
            secret += [
                *param.examples,
                *(word for value, synonyms in param.enum.items() for word in (value, *synonyms)),
            ]
    words = {word for text in texts for word in _words(text) if not re.search(r"\d", word)}
    return (COMMON | words) - {word for text in secret for word in _words(text)}


def _words(text: str) -> list[str]:
    return [word.casefold().replace("’", "'") for word in _WORD.findall(text.replace("_", " "))]


def plan_spans(
    text: str,
    params: Iterable[Param],
    extractions: Mapping[str, Extraction],
    places: Mapping[str, Sequence[Span]],
    others: Secrets,
    familiar: frozenset[str],
    risky: Iterable[Param] = (),
) -> list[Span] | None:
    """What of a message to hide; None: all of it, as an expected value was not recognised.

    As long as a value is open, only familiar words are shown. Once all are known, a message
    that gives none shows all but what has the form of one: another card number is hidden, "inside"
    is not.

    Args:
        text: The user's message.
        params: The sensitive parameters that it holds a value of, or was asked for.
        extractions: What was read from it, by parameter.
        places: Where sensitive values that are known are in it, by parameter.
        others: Values that are known and not sensitive.
        familiar: Words that tell nothing (`familiar_words`).
        risky: The sensitive parameters that it may speak of, if all of their values are known
            already.
    """
    hidden: list[Span] = []
    params = list(params)
    for param in params:
        own = [*places.get(param.name, ())]
        read = extractions.get(param.name)
        own += [read.span] if read and read.span else []
        if not own or param.type in _WHOLE:
            return None
        hidden += own
    harmless = {word for _, value in others if (word := squeezed(value))}
    forms = {_form_of(param) for param in risky if not params} or {_ANY}
    covered = {place for start, end in hidden for place in range(start, end)}
    for token in _TOKEN.finditer(text):
        overlaps = not covered.isdisjoint(range(*token.span()))
        known_word = squeezed(token[0]) in harmless or _is_familiar(token[0], familiar)
        if overlaps or (not known_word and any(form.search(token[0]) for form in forms)):
            hidden.append(token.span())
    return joined(text, hidden)


_DIGITS = re.compile(r"[\d@]")
_NAMED = re.compile(r"[^\W\d_]*[A-Z]|[\d@]|[^\x00-\x7f]")
_ANY = re.compile(r"\w")
_NUMBERED = frozenset(
    {
        ParamType.INTEGER,
        ParamType.NUMBER,
        ParamType.MONEY,
        ParamType.DATE,
        ParamType.TIME,
        ParamType.PHONE,
        ParamType.EMAIL,
        ParamType.IDENTIFIER,
    }
)
_NAMES = frozenset({ParamType.PERSON, ParamType.NAME, ParamType.PLACE, ParamType.ADDRESS})


def _form_of(param: Param) -> re.Pattern[str]:
    """What a word has that may be part of a value of the parameter, where nothing else tells."""
    if param.type in _NUMBERED and (param.pattern is None or re.search(r"\\d|\d", param.pattern)):
        return _DIGITS
    return _NAMED if param.type in _NAMES else _ANY


def _is_familiar(token: str, familiar: frozenset[str]) -> bool:
    return "@" not in token and all(word in familiar for word in _words(token))
