"""Placeholders in a prompt, and the conversation memory in their place. Pure.

| placeholder | becomes |
|---|---|
| `{{CONVERSATION_MEMORY}}` | a sentence with every key of the memory's schema |
| `{{CONVERSATION_MEMORY__main_topics__action}}` | the same with these keys alone |
| `{{CONVERSATION_MEMORY_JSON}}` | the memory as JSON |

Only keys of the schema are shown, whatever else a memory holds. All placeholders are replaced in
one pass: a value that looks like one stays as it is.

>>> inject_memory_placeholders("{{CONVERSATION_MEMORY__action}}", {"action": ["call Ann", "pay"]})
'These are some details of the conversation till now. `action` is "call Ann, pay".'
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from langmem_ext.errors import InvalidInput
from langmem_ext.memory.schema import ConversationMemoryData

Schema: TypeAlias = type[BaseModel]

NO_MEMORY: Final = "Conversation memory not available."
"""Stands in a prompt where there is no memory."""

NO_VALUE: Final = "[Not available]"
"""Stands for a value that a memory does not have."""

_INTRODUCTION: Final = "These are some details of the conversation till now. "
_PLACEHOLDER: Final = re.compile(r"\{\{CONVERSATION_MEMORY(?:__(?P<keys>\w+)|(?P<json>_JSON))?\}\}")


def extract_memory_placeholders(template: str) -> list[tuple[str, list[str]]]:
    """The placeholders of a prompt in their order, each with the keys that it names.

    No keys stand for all of them.

    >>> extract_memory_placeholders("Of old: {{CONVERSATION_MEMORY__main_topics__action}}")
    [('{{CONVERSATION_MEMORY__main_topics__action}}', ['main_topics', 'action'])]
    """
    return [(match[0], _keys(match)) for match in _PLACEHOLDER.finditer(template)]


def render_memory_snippet(
    memory: Mapping[str, Any],
    requested_keys: Sequence[str] | None = None,
    *,
    schema: Schema = ConversationMemoryData,
    max_chars: int | None = None,
) -> str:
    """A sentence that tells of a memory; that there is none, if no key can be shown.

    Args:
        memory: The memory.
        requested_keys: Which keys to show, in this order; those that the schema does not have are
            ignored. None, or none of them: all that the schema has.
        schema: Has the keys that may be shown.
        max_chars: How many characters of each value are shown; None: all.

    Raises:
        InvalidInput: `max_chars` is no number of at least 1.
    """
    limit = checked_max_chars(max_chars)
    allowed = list(schema.model_fields)
    asked = (
        [key for key in dict.fromkeys(requested_keys) if key in allowed]
        if requested_keys
        else allowed
    )
    shown = [f'`{key}` is "{_value(memory.get(key), limit)}"' for key in asked]
    return f"{_INTRODUCTION}{', '.join(shown)}." if shown else NO_MEMORY


def inject_memory_placeholders(
    template: str,
    memory: Mapping[str, Any] | None,
    *,
    schema: Schema = ConversationMemoryData,
    max_chars: int | None = None,
) -> str:
    """The prompt with the memory in place of its placeholders.

    Args:
        template: The prompt.
        memory: The memory; None where there is none: the prompt then says so.
        schema: Has the keys that may be shown.
        max_chars: How many characters of each value are shown, of JSON those of each text; None:
            all.

    Raises:
        InvalidInput: `max_chars` is no number of at least 1.
    """
    limit = checked_max_chars(max_chars)

    def replacement(match: re.Match[str]) -> str:
        if memory is None:
            return NO_MEMORY
        if match["json"]:
            shown = {
                key: _cut_texts(memory[key], limit) for key in schema.model_fields if key in memory
            }
            return json.dumps(shown, ensure_ascii=False, default=str)
        return render_memory_snippet(memory, _keys(match), schema=schema, max_chars=limit)

    return _PLACEHOLDER.sub(replacement, template)


def checked_max_chars(max_chars: int | None) -> int | None:
    """How many characters of a value are shown.

    Raises:
        InvalidInput: It is no number of at least 1.
    """
    if max_chars is not None and (type(max_chars) is not int or max_chars < 1):
        raise InvalidInput(
            f"max_chars must be at least 1, not {max_chars!r}; omit it to show whole values"
        )
    return max_chars


def _keys(match: re.Match[str]) -> list[str]:
    return [key for key in (match["keys"] or "").split("__") if key]


def _value(value: Any, limit: int | None) -> str:
    """A value in one line, so that none of it looks like the prompt around it."""
    items = value if isinstance(value, list | tuple) else [value]
    text = " ".join(", ".join(_text(item) for item in items if item not in (None, "")).split())
    return _cut(text, limit).replace('"', '\\"') or NO_VALUE


def _text(item: Any) -> str:
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, default=str)


def _cut_texts(value: Any, limit: int | None) -> Any:
    """The value with each text in it cut: it stays JSON."""
    if isinstance(value, str):
        return _cut(value, limit)
    if isinstance(value, list | tuple):
        return [_cut_texts(item, limit) for item in value]
    if isinstance(value, Mapping):
        return {key: _cut_texts(item, limit) for key, item in value.items()}
    return value


def _cut(text: str, limit: int | None) -> str:
    return text if limit is None or len(text) <= limit else text[: limit - 1].rstrip() + "…"
