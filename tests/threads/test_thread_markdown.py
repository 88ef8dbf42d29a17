"""Promises of a thread as Markdown: readable, correctly nested, nothing sensitive."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langmem_ext.messages.annotations import HIDDEN
from langmem_ext.messages.escapes import legible
from langmem_ext.threads.export.markdown import heading, hidden, message

NOON = 1772366400
THREAD: dict[str, Any] = {
    "id": "t",
    "owner": None,
    "title": "Where is my order?",
    "status": "active",
    "created_at": "2026-03-01T12:00:00.000Z",
    "updated_at": "2026-03-01T12:00:00.000Z",
    "waiting_for": None,
    "forked_from": None,
    "tags": None,
}


def told(include_sensitive: bool = False, **fields: Any) -> str:
    return message(
        {"type": "human", "content": "", **fields}, NOON, include_sensitive=include_sensitive
    )


def fences(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page as CommonMark reads them: what begins one, and what is in it."""
    found: list[tuple[str, str]] = []
    fence: str | None = None
    inside: list[str] = []
    for line in text.split("\n"):
        if fence is None:
            match = re.fullmatch(r"(`{3,})([^`]*)", line)
            if match:
                fence, inside = match[1], []
                language = match[2]
        elif re.fullmatch(f"`{{{len(fence)},}} *", line):
            found.append((language, "\n".join(inside)))
            fence = None
        else:
            inside.append(line)
    assert fence is None, "a fence does not end"
    return found


def test_who_said_what_and_when_is_told() -> None:
    assert (
        told(content="hello", name="Zoë") == "\n## User (Zoë), 2026-03-01 12:00:00 UTC\n\n> hello\n"
    )
    assert "## Assistant, " in told(type="ai", content="hi")
    assert "## Assistant, " in told(type="AIMessageChunk", content="hi")
    assert "## System, " in told(type="system", content="be kind")
    assert "## something\\_else, " in told(type="something_else", content="hi")
    assert "serializer" in hidden(NOON)


def test_a_threads_heading_says_what_its_row_says() -> None:
    page = heading({**THREAD, "tags": ["vip", "a*b"], "waiting_for": "order_id", "owner": "alice"})
    assert page.splitlines()[0] == "# Where is my order?"
    assert "- waiting for: order\\_id" in page
    assert "- tags: vip, a\\*b" in page
    assert "- owner: alice" in page
    assert heading({**THREAD, "title": None}).startswith("# Untitled\n")
    assert (
        heading({**THREAD, "title": "# <b>x</b>\n- `y`"}).splitlines()[0]
        == "# \\# &lt;b>x&lt;/b> - \\`y\\`"
    )


def test_what_is_quoted_stays_quoted_and_fetches_and_runs_nothing() -> None:
    page = told(
        content=(
            "one\n\n# two\n</details>\r\n<script>x()</script>\u2028![p](http://x/p.png) a <"
            " b\n```\nno fence"
        )
    )
    lines = page.split("\n")[3:-1]
    assert all(line == ">" or line.startswith("> ") for line in lines), lines
    assert "<script" not in page
    assert "</details" not in page
    assert "![" not in page
    assert "a < b" in page


TURNED = "invoice\u202efdp.exe \u2067x\u2069"


def test_what_turns_the_reading_order_around_is_shown_as_an_escape() -> None:
    call = {"name": TURNED, "args": {TURNED: TURNED}, "id": "c"}
    block = {"type": "image", "mime_type": TURNED, "base64": "QUJD"}
    pages = [
        heading(
            {
                **THREAD,
                "id": TURNED,
                "title": TURNED,
                "tags": [TURNED],
                "owner": TURNED,
                "waiting_for": TURNED,
            }
        ),
        told(content=[{"type": "text", "text": TURNED}, block], name=TURNED),
        told(type="tool", content=TURNED),
        told(type="ai", tool_calls=[call]),
    ]
    for page in pages:
        assert r"invoice\u202efdp.exe \u2067x\u2069" in page
        assert not set(page) & set("\u202e\u2067\u2069")


@pytest.mark.parametrize("text", ["שלום, עולם", "مرحبا بالعالم 123", "\u200fשלום\u200e (abc)"])
def test_text_from_right_to_left_is_shown_as_it_is(text: str) -> None:
    assert f"> {text}\n" in told(content=text)


def test_half_of_a_character_keeps_no_page_from_being_written() -> None:
    page = told(
        type="ai",
        content="half \ud83d",
        tool_calls=[{"name": "\ud83d", "args": {"a": "\ud83d"}, "id": "c"}],
    )
    assert page.encode().count(rb"\ud83d") == 3


@given(st.text(max_size=300), st.integers(0, 9))
def test_nothing_that_was_said_ends_its_quotation_or_its_fence(text: str, ticks: int) -> None:
    text = text + "\n" + "`" * ticks + "\n" + text
    quoted = told(content=text).split("\n")[3:-1]
    assert all(line == ">" or line.startswith("> ") for line in quoted)
    [(_, result)] = fences(told(type="tool", content=text))
    assert result == legible(text)
    page = told(type="ai", tool_calls=[{"name": text, "args": {"a": text, text: 1}, "id": "c"}])
    [(language, _)] = fences(page)
    assert language == "json"
    assert page.count("<details>") == page.count("</details>") == 1


def test_sensitive_values_are_shown_only_when_asked_for() -> None:
    notes = {"langmem_ext": {"sensitive": ["pin"], "spans": [[10, 14]]}}
    call = {"name": "pay", "args": {"pin": "4711"}, "id": "c"}
    fields: dict[str, Any] = {
        "type": "ai",
        "content": "my pin is 4711",
        "additional_kwargs": notes,
        "tool_calls": [call],
    }
    assert "4711" not in told(**fields)
    assert f"> my pin is {HIDDEN}" in told(**fields)
    assert told(include_sensitive=True, **fields).count("4711") == 2
    unknown = {
        **fields,
        "type": "tool",
        "additional_kwargs": {"langmem_ext": {"sensitive": ["pin"]}},
        "tool_calls": [],
    }
    assert "4711" not in told(**unknown)
    assert "4711" in told(include_sensitive=True, **unknown)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            {
                "type": "image_url",
                "image_url": {"url": f"data:image/png;base64,{b64encode(b'x' * 300).decode()}"},
            },
            "(image/png), 300 bytes",
        ),
        (
            {
                "type": "image_url",
                "image_url": f"data:image/png;base64,{b64encode(b'x' * 300).decode()}",
            },
            "(image/png), 300 bytes",
        ),
        (
            {"type": "image", "base64": b64encode(b"x" * 300).decode(), "mime_type": "image/jpeg"},
            "image (image/jpeg), 300 bytes",
        ),
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/gif", "data": "QUJD"},
            },
            "image (image/gif), 3 bytes",
        ),
        ({"type": "file", "file": {"file_data": "QUJD", "filename": "a.pdf"}}, "file (a.pdf), 3"),
        (
            {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
            "input\\_audio (wav), 3 bytes",
        ),
        ({"type": "reasoning", "reasoning": "secret thoughts"}, "reasoning, "),
        ({"no": "type"}, "block, "),
    ],
)
def test_attachments_are_named_and_not_dumped(block: dict[str, Any], expected: str) -> None:
    page = told(content=[{"type": "text", "text": "look"}, block])
    assert "> look" in page
    assert expected in page
    assert "QUJD" not in page
    assert "eHh4" not in page
    assert "secret" not in page


@pytest.mark.parametrize(
    "fields",
    [
        {"content": None},
        {"content": 5},
        {"content": [5]},
        {"tool_calls": 5},
        {"tool_calls": [5]},
        {"name": 5},
    ],
)
def test_what_was_set_in_place_to_something_else_is_no_error(fields: dict[str, Any]) -> None:
    assert "## User" in told(**fields)
