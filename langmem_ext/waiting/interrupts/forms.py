"""Words as a value that fits a JSON schema: one value, or an object filled in like a form.

Pure: nothing here raises, whatever a schema or a text is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from langmem_ext._internal.json import json_value
from langmem_ext._internal.names import in_words
from langmem_ext.waiting.interrupts.response_schema import fits
from langmem_ext.waiting.understand.acts.assent import yes_or_no

NO_JSON: Final = object()
"""Stands for a text that is no JSON."""

_LONGEST: Final = 2_000
"""Characters of a text in which values are looked for by name."""

_ORDINALS: Final = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1}
_ORDINAL: Final = re.compile(
    rf"\W*(?:(?:i(?:'d| would)? (?:like|want|take|choose)|take|choose) )?(?:the )?"
    rf"(?P<word>{'|'.join(_ORDINALS)}|(?P<number>[1-9]\d?)(?:st|nd|rd|th))"
    r"(?: (?:one|option|choice))?(?:,? please)?\W*",
    re.I,
)


def parsed(text: str) -> Any:
    """A text as JSON that can be stored; `NO_JSON` for any other."""
    try:
        return json_value(json.loads(text), "the answer")
    except (ValueError, RecursionError):
        return NO_JSON


def readings(text: str, schema: object) -> Iterator[Any]:
    """What a text may be as a value of a schema, the likeliest first; it may not fit."""
    value = parsed(text)
    if isinstance(value, dict | list):
        yield value
    yield from _chosen(text, options_of(schema))
    yield text
    if value is not NO_JSON:
        yield value
        yield [value]
    if (truth := yes_or_no(text)) is not None:
        yield truth
    yield from _filled_in(text, schema)


def options_of(schema: object) -> list[tuple[Any, str]]:
    """The values that a schema lists, each as a person is shown it."""
    if not isinstance(schema, Mapping):
        return []
    if isinstance(listed := schema.get("enum"), list):
        return [(value, str(value)) for value in listed]
    options = [
        option
        for option in _items(schema.get("oneOf"))
        if isinstance(option, Mapping) and "const" in option
    ]
    return [(option["const"], str(option.get("title", option["const"]))) for option in options]


def fields_of(schema: object) -> Mapping[str, Any]:
    """The fields of an object, by name; empty for any other schema."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    named = properties if isinstance(properties, Mapping) else {}
    return {name: field for name, field in named.items() if isinstance(name, str) and name}


def named_values(text: str, names: Sequence[str]) -> dict[str, str]:
    """The values that a text names: "amount to 20, and payee: Bob"; empty if it says anything else.

    Args:
        text: The text.
        names: The names, as programs write them.
    """
    spoken = {form: name for name in names for form in (in_words(name), name.lower()) if form}
    if not spoken or len(text) > _LONGEST:
        return {}
    known = "|".join(re.escape(form) for form in sorted(spoken, key=len, reverse=True))
    begins = rf"(?:the\s+)?(?P<name>{known})\s*(?:\bto\b|\bis\b|=|:)\s*"
    value, values, rest = (
        rf"(?P<value>.+?)(?=\s*(?:,|;|\band\b)\s*(?:and\s+)?{begins.replace('?P<name>', '')}|\s*$)",
        {},
        text.strip(),
    )
    while match := re.match(begins + value, rest, re.I | re.S):
        values[spoken[match["name"].lower()]] = match["value"].strip()
        rest = re.sub(r"^\s*(?:[,;]|and\b)?\s*(?:and\b)?\s*", "", rest[match.end() :], flags=re.I)
    return {} if rest else values


def fitting(text: str, schema: object) -> Any:
    """The likeliest value that a text is; the text itself if none fits."""
    return next((value for value in readings(text, schema) if fits(value, schema)), text)


def _filled_in(text: str, schema: object) -> Iterator[dict[str, Any]]:
    """A form's content: by the names of its fields, or of its only field."""
    fields = fields_of(schema)
    if values := named_values(text, [*fields]):
        yield {name: fitting(value, fields[name]) for name, value in values.items()}
    required = schema.get("required") if isinstance(schema, Mapping) else None
    needed = [name for name in _items(required) if name in fields] or [*fields]
    if len(needed) == 1:
        yield {needed[0]: fitting(text, fields[needed[0]])}


def _chosen(text: str, options: Sequence[tuple[Any, str]]) -> Iterator[Any]:
    """The option that a text names, or counts: "the second one"."""
    spoken = text.strip(" .!\t\r\n").casefold()
    yield from (
        value for value, shown in options if spoken in (shown.casefold(), str(value).casefold())
    )
    if match := _ORDINAL.fullmatch(text):
        place = int(match["number"]) - 1 if match["number"] else _ORDINALS[match["word"].lower()]
        if options and -1 <= place < len(options):
            yield options[place][0]


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def short(value: object) -> str:
    """A value as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str, skipkeys=True)
    return text if len(text) <= 300 else f"{text[:300]}…"
