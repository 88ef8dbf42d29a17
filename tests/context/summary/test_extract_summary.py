"""The extractive summary: labelled, limited, latest kept, not sensitive, continued."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from langmem_ext.context.summary.extract import LABEL, extract


class Words:
    """A counter: one for each word."""

    def count_text(self, text: str) -> int:
        return len(text.split())


SAID: list[AnyMessage] = [
    HumanMessage("Where is order O-17? I need it."),
    AIMessage("", tool_calls=[{"name": "find", "args": {"order": "O-17"}, "id": "c"}]),
    ToolMessage("It left on Monday. By train.", tool_call_id="c"),
    AIMessage("It is on its way."),
]


def test_it_holds_what_was_said_under_a_label_that_says_what_it_is() -> None:
    assert extract(SAID, None, 100, Words()).splitlines() == [
        LABEL,
        "user: Where is order O-17?",
        "tool: It left on Monday.",
        "agent: It is on its way.",
    ]


def test_an_earlier_extract_is_continued_under_one_label() -> None:
    assert extract(SAID[2:], extract(SAID[:2], None, 100, Words()), 100, Words()) == extract(
        SAID, None, 100, Words()
    )


def test_a_models_summary_is_continued_too() -> None:
    assert extract(SAID[3:], "The order O-17 was asked for.", 100, Words()).splitlines()[1:] == [
        "The order O-17 was asked for.",
        "agent: It is on its way.",
    ]


def test_where_not_even_the_label_has_room_there_is_none() -> None:
    assert extract(SAID, None, Words().count_text(LABEL) - 1, Words()) == ""


def test_system_messages_are_no_part_of_the_conversation() -> None:
    assert extract([SystemMessage("Be kind.")], None, 100, Words()) == LABEL


def test_what_is_sensitive_is_left_out() -> None:
    pin = HumanMessage("My pin is 1234.", additional_kwargs={"langmem_ext": {"sensitive": ["pin"]}})
    address = {"langmem_ext": {"sensitive": ["address"], "spans": [[10, 21]]}}
    place = HumanMessage("I live in 9 Park Road.", additional_kwargs=address)
    result = ToolMessage("Sent to 9 Park Road.", tool_call_id="c", additional_kwargs=address)
    text = extract([pin, place, result], None, 100, Words())
    assert text.splitlines()[1:] == [
        "user: (gave pin, left out here)",
        "user: I live in •••.",
        "tool: (gave address, left out here)",
    ]


TEXTS = st.text("ab .!?\n1é文", max_size=60)


@given(st.lists(TEXTS, max_size=12), st.none() | TEXTS, st.integers(0, 60))
def test_it_is_within_its_limit_and_keeps_the_latest(
    texts: list[str], previous: str | None, limit: int
) -> None:
    messages = [HumanMessage(text) for text in texts]
    text = extract(messages, previous, limit, Words())
    whole = extract(messages, previous, 10_000, Words()).splitlines()
    assert Words().count_text(text) <= limit
    kept = text.splitlines()[1:]
    assert kept == whole[len(whole) - len(kept) :]
