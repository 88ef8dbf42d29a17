"""Promise: a marked message is shown without its sensitive value, or not at all if unsure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage

from langmem_ext import DeltaSaver, InvalidInput, ThreadChatMessageHistory, Threads, mark_sensitive

HIDDEN = "•••"


def shown(message: BaseMessage) -> str:
    """What a page for people shows of a message."""
    with DeltaSaver() as saver:
        ThreadChatMessageHistory("t", saver).add_messages([message])
        page = "".join(Threads(saver).export_lines("t", format="markdown"))
        title = Threads(saver).get("t").title
    text = "\n".join(line[2:] for line in page.splitlines() if line.startswith("> "))
    assert title is None or title.count(HIDDEN) == text.count(HIDDEN)
    return text


def test_a_value_is_found_however_it_is_written() -> None:
    for text, value, rest in (
        ("my card is 4111-1111 1111 1111.", "4111111111111111", "my card is •••."),
        ("my card is 4111 1111 1111 1111, really", "4111-1111-1111-1111", "my card is •••, really"),
        ("I am ADA lovelace!", "Ada Lovelace", "I am •••!"),
        ("write to zoe\u0308@example.org today", "zoë@example.org", "write to ••• today"),
        ("４１１１ and 4111", "4111", "••• and •••"),
        ("x4111y or 24111", "4111", "••• or •••"),
        ("12121", "121", "•••"),
    ):
        assert shown(mark_sensitive(HumanMessage(text), {"v": value})) == rest, text


@given(
    st.text("ab1 -é.@", min_size=1), st.text("ab1é", min_size=1, max_size=4), st.text("ab1 -é.@")
)
def test_nothing_of_a_value_is_left(before: str, value: str, after: str) -> None:
    def squeezed(text: str) -> str:
        return "".join(letter for letter in text if letter.isalnum())

    text = before + " - ".join(value) + after
    rest = shown(mark_sensitive(HumanMessage(text), {"v": value}))
    assert all(value not in squeezed(part) for part in rest.split(HIDDEN))


def test_a_value_that_is_not_found_hides_all() -> None:
    message = mark_sensitive(HumanMessage("four one one one"), {"pin": 4111})
    assert "4111" not in str(message.additional_kwargs)
    for unsure in (
        message,
        mark_sensitive(HumanMessage("1234 and more"), {"pin": 1234, "name": "Ada"}),
        mark_sensitive(HumanMessage("1234"), {"pin": ""}),
    ):
        assert shown(unsure) == HIDDEN


def test_spans_may_be_given_and_are_put_together() -> None:
    blocks: Any = [{"type": "text", "text": "the code "}, {"type": "text", "text": "is 12 for Ada"}]
    message = HumanMessage(blocks, id="m")
    once = mark_sensitive(message, spans={"code": [(12, 14)]})
    assert shown(once) == "the code is ••• for Ada"
    twice = mark_sensitive(once, {"name": "Ada"})
    assert shown(twice) == "the code is ••• for •••"
    assert shown(mark_sensitive(twice, spans={"all": []})) == HIDDEN
    whole = mark_sensitive(message, spans={"all": []})
    assert shown(mark_sensitive(whole, {"name": "Ada"})) == HIDDEN, "a mark was taken back"
    assert message.additional_kwargs == {}


def test_a_mark_that_makes_no_sense_is_refused_without_saying_what() -> None:
    wrong: list[dict[str, Any]] = [
        *({}, {"values": {}}, {"values": {"": "4111"}}),
        *({"spans": {"v": spans}} for spans in ([(0, 99)], [(2, 2)], ["4111"])),
    ]
    for given_ in wrong:
        with pytest.raises(InvalidInput) as refused:
            mark_sensitive(HumanMessage("4111 it is"), **given_)
        assert "4111" not in str(refused.value)


BLOCKS = st.lists(st.tuples(st.text("abSS", max_size=12), st.booleans()), min_size=1, max_size=6)


@given(BLOCKS, st.booleans())
def test_in_a_title_there_is_no_file_and_nothing_sensitive(
    blocks: list[tuple[str, bool]], known: bool
) -> None:
    text = "".join(words for words, _ in blocks)
    files = [
        {"path": f"{at}.txt", "sha256": "0", "block": at}
        for at, (_, told) in enumerate(blocks)
        if told
    ]
    spans = [[at, at + 1] for at, letter in enumerate(text) if letter == "S"]
    marks = {"sensitive": ["pin"], **({"spans": spans} if known else {})} if spans else {}
    content: Any = [{"type": "text", "text": words} for words, _ in blocks]
    said = HumanMessage(content, additional_kwargs={"langmem_ext": {"files": files, **marks}})
    with DeltaSaver() as saver:
        ThreadChatMessageHistory("t", saver).add_messages([said])
        title = Threads(saver).get("t").title or ""
    own = "".join(words for words, told in blocks if not told)
    assert "S" not in title
    if known:
        assert title.replace(HIDDEN, "") == own.replace("S", "")
