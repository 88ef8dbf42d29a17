"""Promise: a marked message is shown without its sensitive value, or not at all if unsure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from langmem_ext import IntentCatalog, InvalidInput, mark_sensitive
from langmem_ext.messages.annotations import HIDDEN, shown_text, title_of, without_files
from langmem_ext.messages.search.spans import find_spans, squeezed
from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.sensitive import (
    Known,
    covered,
    familiar_words,
    marked,
    plan_spans,
    sensitive_names,
)


def shown(message: Any) -> str:
    return shown_text(vars(message))


@pytest.mark.parametrize(
    ("text", "value", "rest"),
    [
        ("my card is 4111-1111 1111 1111.", "4111111111111111", "my card is •••."),
        ("my card is 4111 1111 1111 1111, really", "4111-1111-1111-1111", "my card is •••, really"),
        ("I am ADA lovelace!", "Ada Lovelace", "I am •••!"),
        ("write to zoe\u0308@example.org today", "zoë@example.org", "write to ••• today"),
        ("４１１１ and 4111", "4111", "••• and •••"),
        ("x4111y or 24111", "4111", "••• or •••"),
        ("12121", "121", "•••"),
    ],
)
def test_a_value_is_found_however_it_is_written(text: str, value: str, rest: str) -> None:
    assert shown(mark_sensitive(HumanMessage(text), {"v": value})) == rest


@given(
    st.text("ab1 -é.@", min_size=1), st.text("ab1é", min_size=1, max_size=4), st.text("ab1 -é.@")
)
def test_nothing_of_a_value_is_left(before: str, value: str, after: str) -> None:
    spaced = " - ".join(value)
    text = before + spaced + after
    rest = shown(mark_sensitive(HumanMessage(text), {"v": value}))
    assert all(squeezed(value) not in squeezed(part) for part in rest.split(HIDDEN))
    assert all(0 <= start < end <= len(text) for start, end in find_spans(text, value))


def test_a_value_that_is_not_found_hides_all() -> None:
    message = mark_sensitive(HumanMessage("four one one one"), {"pin": 4111})
    assert shown(message) == HIDDEN
    assert (
        shown(mark_sensitive(HumanMessage("1234 and more"), {"pin": 1234, "name": "Ada"})) == HIDDEN
    )
    assert shown(mark_sensitive(HumanMessage("1234"), {"pin": ""})) == HIDDEN
    assert "4111" not in str(message.additional_kwargs)


def test_spans_may_be_given_and_are_put_together() -> None:
    message = HumanMessage(
        [{"type": "text", "text": "the code "}, {"type": "text", "text": "is 12 for Ada"}], id="m"
    )
    once = mark_sensitive(message, spans={"code": [(12, 14)]})
    assert shown(once) == "the code is ••• for Ada"
    twice = mark_sensitive(once, {"name": "Ada"})
    assert shown(twice) == "the code is ••• for •••"
    assert sensitive_names(twice) == {"code", "name"}
    assert shown(mark_sensitive(twice, spans={"all": []})) == HIDDEN
    assert (
        shown(mark_sensitive(mark_sensitive(message, spans={"all": []}), {"name": "Ada"})) == HIDDEN
    ), "a mark was taken back"
    assert message.additional_kwargs == {}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"values": {}},
        {"values": {"": "4111"}},
        {"spans": {"v": [(0, 99)]}},
        {"spans": {"v": [(2, 2)]}},
        {"spans": {"v": ["4111"]}},
    ],
)
def test_a_mark_that_makes_no_sense_is_refused_without_saying_what(given: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        mark_sensitive(HumanMessage("4111 it is"), **given)
    assert "4111" not in str(refused.value)


def test_a_mark_that_changes_nothing_is_the_same_message() -> None:
    message = covered(
        AIMessage("card 4111 it is"), Known().with_values([("card", "4111"), ("pin", "77")])
    )
    assert shown(message) == "card ••• it is"
    assert covered(message, Known().with_values([("card", "4111")])) is message
    assert marked(message, ()) is message


def test_a_value_in_the_arguments_of_a_call_hides_the_text() -> None:
    call = {"name": "pay", "args": {"card": "4111"}, "id": "c", "type": "tool_call"}
    assert (
        shown(
            covered(
                AIMessage("one moment", tool_calls=[call]), Known().with_values([("card", "4111")])
            )
        )
        == HIDDEN
    )


def test_spans_of_two_kinds_are_read() -> None:
    notes = {"sensitive": ["a"], "spans": [[4, 6], (0, 2)]}
    assert (
        shown(
            HumanMessage(
                "ab cd", additional_kwargs={"langmem_ext": {**notes, "spans": [[3, 5], (0, 2)]}}
            )
        )
        == "••• •••"
    )
    assert shown(HumanMessage("ab cd", additional_kwargs={"langmem_ext": notes})) == HIDDEN


CATALOG = IntentCatalog.from_dict(
    {
        "intents": [
            {
                "id": "pay",
                "description": "Pay a bill",
                "examples": ["I want to pay"],
                "required": ["card", "bill", "way"],
                "tool": "pay",
            }
        ],
        "params": {
            "card": {
                "type": "identifier",
                "description": "card number",
                "pattern": r"\d{16}",
                "sensitive": True,
            },
            "bill": {
                "type": "identifier",
                "description": "number of the bill",
                "pattern": r"B-\d+",
            },
            "way": {
                "type": "enum",
                "prompt": "By post or courier?",
                "enum": {"post": [], "courier": []},
                "sensitive": True,
            },
            "motto": {"type": "text", "description": "motto", "sensitive": True},
        },
    }
)
CARD = CATALOG.params["card"]


def rest_of(text: str, *params: Param, card: str = "4111111111111111") -> str:
    spans = plan_spans(
        text,
        params or (CARD,),
        {},
        Known().with_values([("card", card)]).find(text),
        [("bill", "B-17")],
        familiar_words(CATALOG),
    )
    mark = marked(HumanMessage(text), ["card"], spans)
    return shown(mark)


def test_of_what_a_user_says_only_what_tells_nothing_is_shown() -> None:
    assert (
        rest_of("I want to pay the bill B-17 by card 4111 1111 1111 1111")
        == "I want to pay the bill B-17 by card •••"
    )
    assert (
        rest_of("the card is 4222 no 4111-1111-1111-1111 and my secret word is Xyzzy")
        == "the card is ••• and my ••• is •••"
    )
    assert rest_of("by courier with card 4111111111111111") == "by ••• with card •••"


def test_an_answer_that_was_not_understood_is_hidden_whole() -> None:
    assert rest_of("my card is four one one one") == HIDDEN
    assert rest_of("my card is 4111111111111111", CARD, CATALOG.params["way"]) == HIDDEN
    motto = plan_spans(
        "keep going",
        [CATALOG.params["motto"]],
        {"motto": Extraction("filled", "keep", "keep", (0, 4))},
        {},
        [],
        frozenset(["going"]),
    )
    assert motto is None
    assert CATALOG.params["motto"].type is ParamType.TEXT


BLOCKS = st.lists(st.tuples(st.text("ab SS", max_size=12), st.booleans()), max_size=6)


@given(BLOCKS, st.booleans())
def test_without_the_files_what_is_sensitive_stays_hidden_and_the_rest_is_shown(
    blocks: list[tuple[str, bool]], known: bool
) -> None:
    text = "".join(words for words, _ in blocks)
    files = [
        {"path": f"{at}.txt", "sha256": "0", "block": at}
        for at, (_, told) in enumerate(blocks)
        if told
    ]
    spans = (
        {"spans": [[at, at + 1] for at, letter in enumerate(text) if letter == "S"]}
        if known
        else {}
    )
    content: list[Any] = [{"type": "text", "text": words} for words, _ in blocks]
    notes = {
        "langmem_ext": {"files": files, **({"sensitive": ["pin"], **spans} if "S" in text else {})}
    }
    message = HumanMessage(content, additional_kwargs=notes)
    rest = shown_text(without_files(vars(message)))
    own = "".join(words for words, told in blocks if not told)
    assert "S" not in rest
    assert "S" not in (title_of(vars(message)) or "")
    if known:
        assert rest.replace(HIDDEN, "") == own.replace("S", "")
