"""Promises of a thread as Markdown: readable, correctly nested, nothing sensitive."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

import pytest
from clock import Clock
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langmem_ext import ConversationMemory, DeltaSaver, ThreadChatMessageHistory, Threads

HIDDEN = "•••"
TURNED = "invoice\u202efdp.exe \u2067x\u2069"


def told(*messages: BaseMessage, include_sensitive: bool = False) -> str:
    """What a page says of a thread's messages, without its heading."""
    with DeltaSaver() as saver:
        ThreadChatMessageHistory("t", saver).add_messages(messages)
        lines = Threads(saver).export_lines(
            "t", format="markdown", include_sensitive=include_sensitive
        )
        return "\n## " + "".join(lines).partition("\n## ")[2]


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


def test_who_said_what_and_when_is_told(clock: Clock) -> None:
    page = told(HumanMessage("hello", name="Zoë"))
    assert page == "\n## User (Zoë), 2026-03-01 12:00:00 UTC\n\n> hello\n"
    page = told(
        AIMessage("hi"), AIMessageChunk("hi"), SystemMessage("be kind"), ChatMessage("x", role="r")
    )
    assert re.findall("^## (.*), ", page, re.MULTILINE) == [
        *("Assistant", "Assistant", "System", "Chat")
    ]


def test_a_threads_heading_says_what_its_row_says() -> None:
    with DeltaSaver() as saver:
        session = ConversationMemory(saver, owner="alice").for_session("t")
        session.set_waiting("order_id")
        threads = Threads(saver)

        def page() -> list[str]:
            return "".join(threads.export_lines("t", format="markdown")).splitlines()

        assert page()[0] == "# Untitled"
        threads.tag("t", "vip", "a*b")
        threads.rename("t", "Where is my order?")
        assert page()[0] == "# Where is my order?"
        assert [line.split(":")[0] for line in page()[2:7]] == [
            *("- id", "- owner", "- status", "- created_at", "- updated_at")
        ]
        assert {"- waiting for: order\\_id", "- tags: a\\*b, vip", "- owner: alice"} <= {*page()}
        threads.rename("t", "# <b>x</b>\n- `y`")
        assert page()[0] == "# \\# &lt;b>x&lt;/b> - \\`y\\`"


def test_what_is_quoted_stays_quoted_and_fetches_and_runs_nothing() -> None:
    page = told(
        HumanMessage(
            "one\n\n# two\n</details>\r\n<script>x()</script>\u2028![p](http://x/p.png) a <"
            " b\n```\nno fence"
        )
    )
    lines = page.split("\n")[3:-1]
    assert all(line == ">" or line.startswith("> ") for line in lines), lines
    assert not [word for word in ("<script", "</details", "![") if word in page]
    assert "a < b" in page


def test_what_turns_the_reading_order_around_is_shown_as_an_escape() -> None:
    call = {"name": TURNED, "args": {TURNED: TURNED}, "id": "c"}
    block: Any = {"type": "image", "mime_type": TURNED, "base64": "QUJD"}
    said = [
        HumanMessage([{"type": "text", "text": TURNED}, block], name=TURNED),
        AIMessage("", tool_calls=[call]),
        ToolMessage(TURNED, tool_call_id="c"),
    ]
    with DeltaSaver() as saver:
        ThreadChatMessageHistory("t", saver, owner=TURNED).add_messages(said)
        Threads(saver).rename("t", TURNED)
        Threads(saver).tag("t", TURNED)
        page = "".join(Threads(saver).export_lines("t", format="markdown"))
    assert page.count(r"invoice\u202efdp.exe \u2067x\u2069") > 8
    assert not set(page) & set("\u202e\u2067\u2069")
    for text in ("שלום, עולם", "مرحبا بالعالم 123", "\u200fשלום\u200e (abc)"):
        assert f"> {text}\n" in told(HumanMessage(text)), "text from right to left is as it is"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300), st.integers(0, 9))
def test_nothing_that_was_said_ends_its_quotation_or_its_fence(text: str, ticks: int) -> None:
    text = text + "\n" + "`" * ticks + "\n" + text
    quoted = told(HumanMessage(text)).split("\n")[3:-1]
    assert all(line == ">" or line.startswith("> ") for line in quoted)
    [(_, result)] = fences(told(ToolMessage(text, tool_call_id="c")))
    assert result.count("\n") == text.count("\n")
    call = {"name": text, "args": {"a": text, text: 1}, "id": "c"}
    page = told(AIMessage("", tool_calls=[call]))
    [(language, _)] = fences(page)
    assert language == "json"
    assert page.count("<details>") == page.count("</details>") == 1


def test_sensitive_values_are_shown_only_when_asked_for() -> None:
    call = {"name": "pay", "args": {"pin": "4711"}, "id": "c"}
    notes: Any = {"sensitive": ["pin"], "spans": [[10, 14]]}
    said = AIMessage("my pin is 4711", tool_calls=[call], additional_kwargs={"langmem_ext": notes})
    unknown = ToolMessage(
        "4711", tool_call_id="c", additional_kwargs={"langmem_ext": {"sensitive": ["pin"]}}
    )
    page = told(said, unknown)
    assert "4711" not in page
    assert f"> my pin is {HIDDEN}" in page
    assert told(said, unknown, include_sensitive=True).count("4711") == 3


DATA = b64encode(b"x" * 300).decode()
PICTURE = f"data:image/png;base64,{DATA}"
GIF = {"type": "base64", "media_type": "image/gif", "data": "QUJD"}
ATTACHMENTS: list[tuple[Any, str]] = [
    ({"type": "image_url", "image_url": {"url": PICTURE}}, "(image/png), 300 bytes"),
    ({"type": "image_url", "image_url": PICTURE}, "(image/png), 300 bytes"),
    ({"type": "image", "base64": DATA, "mime_type": "image/jpeg"}, "image (image/jpeg), 300 bytes"),
    ({"type": "image", "source": GIF}, "image (image/gif), 3 bytes"),
    ({"type": "file", "file": {"file_data": "QUJD", "filename": "a.pdf"}}, "file (a.pdf), 3"),
    (
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
        "input\\_audio (wav), 3 bytes",
    ),
    ({"type": "reasoning", "reasoning": "secret thoughts"}, "reasoning, "),
    ({"no": "type"}, "block, "),
]


@pytest.mark.parametrize(("block", "expected"), ATTACHMENTS)
def test_attachments_are_named_and_not_dumped(block: dict[str, Any], expected: str) -> None:
    page = told(HumanMessage([{"type": "text", "text": "look"}, block]))
    assert "> look" in page
    assert expected in page
    assert not [word for word in ("QUJD", "eHh4", "secret") if word in page]
