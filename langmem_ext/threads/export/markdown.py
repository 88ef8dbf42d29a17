"""A thread as Markdown, for people: who said what and when, what was called and what came back.

Messages are quoted, line by line, and their HTML and pictures are shown as source: nothing in them
ends the quote, runs, or is fetched when the page is viewed. Data is in fences that are longer than
any inside. Characters that reverse the reading order, or cannot be written, are shown as escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from langmem_ext.messages.annotations import HIDDEN, notes_of, shown_text
from langmem_ext.messages.blocks import is_a, read_block, unwrapped
from langmem_ext.messages.escapes import legible
from langmem_ext.messages.packed import pack
from langmem_ext.messages.text import words_in, words_of
from langmem_ext.messages.token_costs.media import data_of, media_type_of, size_of
from langmem_ext.storage.rows.clock import moment_of
from langmem_ext.threads.export.fields import shown

_WHO: Final = {
    "human": "User",
    "ai": "Assistant",
    "system": "System",
    "tool": "Tool",
    "function": "Function",
    "chat": "Chat",
    "HumanMessageChunk": "User",
    "AIMessageChunk": "Assistant",
    "SystemMessageChunk": "System",
    "ToolMessageChunk": "Tool",
    "FunctionMessageChunk": "Function",
    "ChatMessageChunk": "Chat",
}
_RESULTS: Final = frozenset({"tool", "function", "ToolMessageChunk", "FunctionMessageChunk"})
_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
_PICTURE: Final = re.compile(r"!(?=\[)")
_SPECIAL: Final = re.compile(r"([\\`*_\[\]#|~])")


def heading(thread: Mapping[str, Any]) -> str:
    """The beginning of a thread's page, from its line."""
    facts = [f"- id: {_inline(thread['id'])}"]
    facts += [
        f"- {name}: {_inline(str(thread[name]))}"
        for name in ("owner", "status", "created_at", "updated_at")
        if thread[name]
    ]
    facts += [
        f"- {name.replace('_', ' ')}: {_inline(str(thread[name]))}"
        for name in ("waiting_for", "forked_from")
        if thread[name]
    ]
    if thread["tags"]:
        facts.append(f"- tags: {', '.join(map(_inline, thread['tags']))}")
    return legible(f"# {_inline(thread['title'] or 'Untitled')}\n\n" + "\n".join(facts) + "\n")


def message(fields: Mapping[str, Any], seconds: int, *, include_sensitive: bool) -> str:
    """A message, from its fields and when it was stored, in Unix seconds."""
    return legible("\n".join(_parts(fields, seconds, include_sensitive)))


def hidden(seconds: int) -> str:
    """A message that another serializer wrote, which is not available."""
    return f"\n## {_when(seconds)}\n\n*Written by a custom serializer.*\n"


def _parts(fields: Mapping[str, Any], seconds: int, include_sensitive: bool) -> Iterator[str]:
    kind = str(fields.get("type", ""))
    secret = bool(notes_of(fields).get("sensitive")) and not include_sensitive
    name = None if secret and kind not in _RESULTS else fields.get("name")
    who = _WHO.get(kind, kind or "Message")
    yield (
        f"\n## {_inline(who)}{f' ({_inline(name)})' if isinstance(name, str) and name else ''},"
        f" {_when(seconds)}\n"
    )
    content = fields.get("content")
    text = words_of(fields) if include_sensitive else shown_text(fields)
    if text and kind in _RESULTS:
        yield _folded("Result", text, "")
    elif text:
        yield f"{_quoted(text)}\n"
    for block in content if isinstance(content, list) else ():
        elsewhere = words_in(block) is not None or is_a(block, "call", "piece", "mark")
        if isinstance(block, dict) and not elsewhere:
            yield f"- attached: {HIDDEN if secret else _attachment(block)}\n"
    calls = fields.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            arguments = (
                HIDDEN
                if secret
                else json.dumps(shown(call.get("args")), ensure_ascii=False, indent=2)
            )
            yield _folded(f"Call of {call.get('name')}", arguments, "" if secret else "json")


def _when(seconds: int) -> str:
    return moment_of(seconds * 1000).strftime("%Y-%m-%d %H:%M:%S UTC")


def _quoted(text: str) -> str:
    """A text as a quotation."""
    plain = _PICTURE.sub("!\\\\", _TAG.sub("&lt;", text.replace("\0", "")))
    return "\n".join(f"> {line}".rstrip() for line in plain.splitlines())


def _inline(text: str) -> str:
    """A text in one line, as it is written."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("<", "&lt;")


def _folded(title: str, text: str, language: str) -> str:
    """Data, folded up, in a fence that nothing inside can end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    head = " ".join(title.split()).replace("&", "&amp;").replace("<", "&lt;")
    return (
        f"<details><summary>{head}</summary>\n\n{fence}{language}\n{text}\n{fence}\n\n</details>\n"
    )


def _attachment(block: Mapping[str, Any]) -> str:
    """A block that is not text: its kind and its size, never its content."""
    native = unwrapped(block)
    fields = read_block(block)[1]
    kind, data = media_type_of(fields), data_of(fields)
    size = len(pack(block)) if data is None else size_of(data)
    named = f" ({_inline(kind)})" if kind else ""
    return f"{_inline(str(native.get('type', 'block')))}{named}, {size} bytes"
