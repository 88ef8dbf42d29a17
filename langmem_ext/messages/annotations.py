"""The notes of this package on a message, in `additional_kwargs["langmem_ext"]`.

They say what may be shown of it.

| key | value |
|---|---|
| `sensitive` | names of the parameters whose values the message holds |
| `spans` | where they are in its text, as `[start, end)`; without it, all of the text is hidden |
| `asks` | on a question: the parameter whose sensitive value the next message may hold |
| `risks` | the parameters of such values; without it, the one that is asked for |
| `tool` | the tool or agent that the turn was for |
| `timestamp` | when it was said, in ISO 8601, if a session's handle wrote it |
| `metadata` | what the handle's caller knows of it besides, as JSON |
| `files` | what the turn refers to: `FileReference.note` each |
| `context` | why an inserted message is in a request: a summary, a nudge, a missing result |
| `at` | when the user wrote it, if `converse` delivered it: the clock of what expires |
| `answer` | what a client's answer to a question means, if it is no words |
| `important` | whether it stays in a request when others are summed up |

The notes are a part of the message: stored once with it, copied, exported and forked with it. No
provider is sent them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from langmem_ext.messages.text import text_of, words_of

NAMESPACE: Final = "langmem_ext"

WRITABLE: Final = frozenset(
    {"sensitive", "spans", "asks", "risks", "tool", "timestamp", "metadata", "files"}
    | {"answer", "important"}
)
"""Keys of notes that a client over HTTP may write: they hide, name or pin, and nothing is believed
that they say."""

INSERTED: Final = "context"
"""Key, among the notes, of why a message was put into a request."""

HIDDEN: Final = "•••"
"""Stands for a sensitive value."""

TITLE_LENGTH: Final = 100
"""Characters of a title, at most."""

_SEEN: Final = 1000
"""Characters of a prompt that may get into its title: more are not looked at, however long it
is."""


def notes_of(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is noted on a message, from its fields; empty if nothing is."""
    kwargs = fields.get("additional_kwargs")
    notes = kwargs.get(NAMESPACE) if isinstance(kwargs, dict) else None
    return notes if isinstance(notes, dict) else {}


def as_sent(value: Any) -> Any:
    """What a client has sent, as JSON, without notes that it may not write; changed in place."""
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            if isinstance(notes := part.get(NAMESPACE), dict):
                part[NAMESPACE] = {key: notes[key] for key in notes if key in WRITABLE}
            parts += part.values()
        elif isinstance(part, list):
            parts += part
    return value


def moment_in(noted: object) -> datetime | None:
    """The time noted in ISO 8601; None if it is invalid, or not between 1970 and 9000.

    A sender may claim the year 1: then "yesterday" would be out of range.
    """
    try:
        moment = datetime.fromisoformat(noted) if isinstance(noted, str) else None
    except ValueError:
        return None
    return moment if moment is not None and 1970 <= moment.year < 9000 else None


def tool_of(fields: Mapping[str, Any]) -> str | None:
    """The tool that a turn was for; None if none is noted."""
    tool = notes_of(fields).get("tool")
    return tool if isinstance(tool, str) and tool and "\0" not in tool else None


def inserted(why: str) -> dict[str, Any]:
    """The `additional_kwargs` of a message inserted into a request."""
    return {NAMESPACE: {INSERTED: why}}


def is_inserted(fields: Mapping[str, Any]) -> bool:
    """Whether the message was inserted into a request, to inform a model or make it valid."""
    return bool(notes_of(fields).get(INSERTED))


@dataclass(frozen=True, slots=True)
class FileReference:
    """A file that a turn refers to.

    Attributes:
        path: The turn's name for it; it is not looked for on disk.
        sha256: Of its content; None if the thread was not given that.
        block: Which block of the message's content tells of it.
        again: Whether the content is in an earlier message.
    """

    path: str
    sha256: str | None = None
    block: int | None = field(default=None, compare=False)
    again: bool = field(default=False, compare=False)

    def note(self) -> dict[str, Any]:
        """As it is noted on a message."""
        if self.sha256 is None:
            return {"path": self.path}
        note = {"path": self.path, "sha256": self.sha256, "block": self.block}
        return note | {"again": True} if self.again else note


def files_of(fields: Mapping[str, Any]) -> tuple[FileReference, ...]:
    """The files that a message refers to; what is noted and makes no sense is skipped."""
    noted = notes_of(fields).get("files")
    files = []
    for note in noted if isinstance(noted, list) else ():
        path, sha256, block = (
            (note.get(key) for key in ("path", "sha256", "block"))
            if isinstance(note, dict)
            else (None,) * 3
        )
        if isinstance(path, str) and path:
            named = isinstance(sha256, str) and type(block) is int and block >= 0
            files.append(
                FileReference(path, sha256, block, note.get("again") is True)
                if named
                else FileReference(path)
            )
    return tuple(files)


def asked_in(fields: Mapping[str, Any]) -> tuple[str, list[str]] | None:
    """The parameter a message asks for, and the sensitive ones that may be said next; or None."""
    notes = notes_of(fields)
    name, risks = notes.get("asks"), notes.get("risks")
    if not isinstance(name, str):
        return None
    return name, (
        [risk for risk in risks if isinstance(risk, str)]
        if isinstance(risks, list) and risks
        else [name]
    )


def is_marked(fields: Mapping[str, Any]) -> bool:
    """Whether it is noted on a message that it holds a sensitive value."""
    return bool(notes_of(fields).get("sensitive"))


def marked_for(fields: Mapping[str, Any]) -> frozenset[str]:
    """The parameters whose values a message is marked for."""
    names = notes_of(fields).get("sensitive")
    return (
        frozenset(name for name in names if isinstance(name, str))
        if isinstance(names, list)
        else frozenset()
    )


def shown_text(fields: Mapping[str, Any]) -> str:
    """A message's text without sensitive values; all of it is hidden if their place is unknown."""
    text, shown, at = words_of(fields), [], 0
    for start, end in hidden_spans(fields):
        if start >= at:
            shown += [text[at:start], HIDDEN]
        at = max(at, end)
    return "".join([*shown, text[at:]])


def hidden_spans(fields: Mapping[str, Any]) -> list[tuple[int, int]]:
    """The hidden spans of a message's text, in order; all of it if their place is unknown."""
    text, notes = words_of(fields), notes_of(fields)
    if not notes.get("sensitive") or not text:
        return []
    spans = notes.get("spans")
    if (
        not isinstance(spans, list)
        or not spans
        or not all(_is_span(span, len(text)) for span in spans)
    ):
        return [(0, len(text))]
    return sorted((start, end) for start, end in spans)


def _is_span(span: Any, length: int) -> bool:
    return (
        isinstance(span, list | tuple)
        and len(span) == 2
        and set(map(type, span)) == {int}
        and 0 <= span[0] < span[1] <= length
    )


def unplaced(kwargs: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The `additional_kwargs` of a message with another text, which holds these parameters' values.

    Where they were says nothing of where they are now: all of it is hidden.
    """
    marks = sorted(names)
    if not marks:
        return dict(kwargs)
    notes = {**notes_of({"additional_kwargs": kwargs}), "sensitive": marks}
    return {**kwargs, NAMESPACE: {key: note for key, note in notes.items() if key != "spans"}}


def without_files(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message's fields without file blocks; the spans of sensitive values move with the text."""
    file_blocks = {file.block for file in files_of(fields) if file.block is not None}
    content = fields.get("content")
    if not file_blocks or not isinstance(content, list):
        return fields
    rest = {
        **fields,
        "content": [block for at, block in enumerate(content) if at not in file_blocks],
    }
    notes = notes_of(fields)
    if not notes.get("sensitive"):
        return rest
    spans = _spans_without(file_blocks, content, notes.get("spans"))
    notes = {
        key: note
        for key, note in notes.items()
        if key != "spans" and (key != "sensitive" or spans != [])
    }
    return {
        **rest,
        "additional_kwargs": {
            **fields["additional_kwargs"],
            NAMESPACE: {**notes, "spans": spans} if spans else notes,
        },
    }


def _spans_without(
    file_blocks: Container[int], content: Sequence[Any], spans: Any
) -> list[list[int]] | None:
    """The spans in the text of the other blocks; None if it is not known what is sensitive."""
    texts = [text_of([block]) for block in content]
    length = sum(map(len, texts))
    if (
        not isinstance(spans, list)
        or not spans
        or not all(_is_span(span, length) for span in spans)
        or len(text_of(content)) != length
    ):
        return None
    moved, at, left_out = [], 0, 0
    for place, text in enumerate(texts):
        if place in file_blocks:
            left_out += len(text)
        else:
            parts = ((max(start, at), min(end, at + len(text))) for start, end in spans)
            moved += [[start - left_out, end - left_out] for start, end in parts if start < end]
        at += len(text)
    return moved


def title_of(fields: Mapping[str, Any]) -> str | None:
    r"""A title from a user's prompt: its first words in one line; None if it has none to show.

    Sensitive values and files are left out.

    >>> title_of({"content": "  Where is\nmy order?"})
    'Where is my order?'
    """
    shown = shown_text(without_files(fields)).replace("\0", "")
    line = " ".join(shown[:_SEEN].split())
    if len(line) <= TITLE_LENGTH:
        return line or None
    words, _, rest = line[:TITLE_LENGTH].rpartition(" ")
    return f"{words or rest[: TITLE_LENGTH - 1]}…"
