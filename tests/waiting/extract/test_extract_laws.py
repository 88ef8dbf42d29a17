"""What every extractor promises: a valid, repeatable result in the text; no value in a reason."""

from __future__ import annotations

import re
from datetime import date, datetime, time

import pytest
from cpu_time import LITTLE, cpu_seconds
from hypothesis import given
from hypothesis import strategies as st

from langmem_ext import Extraction, InvalidInput, Param, ParamType, Reply, extract

NOW = datetime(2024, 5, 15, 10, 30)

PARAMS = {
    kind: Param(
        name={"text": "reason", "integer": "party_size", "place": "origin"}.get(kind, str(kind)),
        type=kind,
        description={"integer": "Number of people", "boolean": "Whether it is gift wrapped"}.get(
            kind, ""
        ),
        enum={"red": ("scarlet",), "dark blue": ()} if kind == ParamType.ENUM else {},
        pattern=r"[A-Z]{1,3}-\d{2,5}" if kind == ParamType.IDENTIFIER else None,
        role="from" if kind in (ParamType.PLACE, ParamType.DATE) else None,
        sensitive=True,
    )
    for kind in ParamType
}
PHRASES = st.sampled_from(
    [
        *("I want to", "go", "from Oslo", "to new york", "on March 3rd", "at half past 5", "pm"),
        *("for two", "people", "me and my wife", "O-12345", "o 12", "a@b.com", "$40", "red"),
        *("not", "dark blue", "or", "yes", "no", "please", "12 Elm Street,", "don't know", "?"),
        *("!", ".", "415-555-2671", "because", "it's", "Ann Lee", 'called "Up"', "the first one"),
        *("8/3", "tomorrow"),
    ]
)
TEXTS = st.one_of(st.text(max_size=120), st.lists(PHRASES, max_size=25).map(" ".join))
KINDS = st.sampled_from(list(ParamType))


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    others = draw(st.lists(KINDS, max_size=3, unique=True))
    prompt = draw(st.sampled_from(["", "What is it?", "From where, and for how many?"]))
    return Reply(draw(TEXTS), prompt=prompt, others=[PARAMS[kind] for kind in others], now=NOW)


def check_value(param: Param, found: Extraction) -> None:
    """The filled value has the type its parameter declares."""
    value = found.value
    match param.type:
        case ParamType.BOOLEAN:
            assert isinstance(value, bool)
        case ParamType.INTEGER:
            assert isinstance(value, int)
            assert not isinstance(value, bool)
        case ParamType.NUMBER | ParamType.MONEY:
            assert isinstance(value, int | float)
        case ParamType.DATE:
            assert date.fromisoformat(str(value)).isoformat() == value
        case ParamType.TIME:
            assert time.fromisoformat(str(value)).strftime("%H:%M") == value
        case ParamType.ENUM:
            assert value in param.enum
        case _:
            assert isinstance(value, str)
            assert value.strip()
    if param.pattern:
        assert re.fullmatch(param.pattern, str(value))


@given(KINDS, replies())
def test_any_reply_gives_a_valid_result_inside_its_text(kind: ParamType, reply: Reply) -> None:
    param = PARAMS[kind]
    found = extract(param, reply)
    assert found == extract(param, reply), "the same reply gives the same result"
    assert 0.0 <= found.confidence <= 1.0
    if found.status != "filled":
        assert found.value is None
        assert found.raw == (reply.text[slice(*found.span)] if found.span else "")
        assert not found.choices or found.span
        return
    check_value(param, found)
    assert found.confidence > 0
    assert found.span is not None
    start, end = found.span
    assert 0 <= start < end <= len(reply.text)
    assert reply.text[start:end] == found.raw


LEADS = ("", "it is ", "not ", "I don't know ", "why ")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (ParamType.ENUM, "scarlet"),
        (ParamType.INTEGER, "7391"),
        (ParamType.NUMBER, "73.91"),
        (ParamType.MONEY, "$7391"),
        (ParamType.DATE, "2031-07-19"),
        (ParamType.TIME, "19:47"),
        (ParamType.PLACE, "Zyxwick"),
        (ParamType.PERSON, "Zyxa Quor"),
        (ParamType.NAME, "Zyxwick"),
        (ParamType.ADDRESS, "73 Zyx Street"),
        (ParamType.EMAIL, "zyx@example.com"),
        (ParamType.PHONE, "415-555-2671"),
        (ParamType.IDENTIFIER, "ZYX-7391"),
        (ParamType.TEXT, "zyxing of quors"),
    ],
)
def test_a_reason_never_holds_the_value(kind: ParamType, value: str) -> None:
    for lead in LEADS:
        found = extract(PARAMS[kind], Reply(lead + value, prompt="What is it?", now=NOW))
        assert found.reason
        for part in (value, value.lower(), str(found.value), found.raw):
            assert not part or part not in found.reason, lead


@given(KINDS, TEXTS)
def test_a_message_that_answers_nothing_is_filled_or_abstained(kind: ParamType, text: str) -> None:
    found = extract(PARAMS[kind], Reply(text, now=NOW))
    assert found.status in ("filled", "abstained")
    if found.status == "filled":
        assert kind != ParamType.TEXT, "no open text is found in what answers nothing"
        check_value(PARAMS[kind], found)


NO_ANSWERS = (
    *("", " ", "\n", "???", "...", "🙂"),
    *("cancel my order please", "why do you ask?", "I don't know"),
)
PIECES = (
    *("1 ", "one and ", "Alpha Beta ", "-", " ", "in the ", "a.b.", "12 main ", "@", "monday "),
    *("hang on, ", "my number is ", "it should ", "ok, ", "no lol ", ", the mill"),
)


def asked(kind: ParamType, text: str) -> Extraction:
    return extract(PARAMS[kind], Reply(text, prompt="What is it?", now=NOW))


@pytest.mark.parametrize("kind", list(ParamType), ids=str)
def test_every_type_abstains_on_junk_questions_refusals_and_wishes(kind: ParamType) -> None:
    for text in NO_ANSWERS:
        assert asked(kind, text).status != "filled", text


@pytest.mark.parametrize("kind", list(ParamType), ids=str)
def test_a_long_message_is_read_in_little_time(kind: ParamType) -> None:
    for piece in PIECES:
        text = piece * (20_000 // len(piece))
        assert cpu_seconds(lambda: asked(kind, text)) < LITTLE, piece  # noqa: B023 - called at once


def test_a_free_text_is_taken_as_long_as_it_is() -> None:
    text = "the box was wet. " * 500
    assert extract(
        PARAMS[ParamType.TEXT], Reply(text, prompt="What happened?", now=NOW)
    ).value == text.strip(" .")


WRITTEN = {
    ParamType.IDENTIFIER: "AB-1234",
    ParamType.ENUM: "dark blue",
    ParamType.DATE: "12 march",
    ParamType.TIME: "half past 5 pm",
    ParamType.ADDRESS: "12 High Street",
    ParamType.DURATION: "2 hours",
    ParamType.PHONE: "07700 900123",
    ParamType.EMAIL: "ann@example.org",
}


@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.parametrize("gap", [" " * 400, "\n" * 400, "\t " * 200])
def test_a_value_between_wide_gaps_is_found_where_it_stands(kind: ParamType, gap: str) -> None:
    text = f"well{gap}{WRITTEN[kind]}{gap}thanks"
    found = extract(PARAMS[kind], Reply(text, prompt="Which one?", now=NOW))
    assert found.status == "filled"
    assert found.span is not None
    assert text[slice(*found.span)] == found.raw == WRITTEN[kind]


def test_a_pattern_that_is_no_regular_expression_is_one_clear_error() -> None:
    order = Param(name="order_id", type=ParamType.IDENTIFIER, pattern="(")
    with pytest.raises(InvalidInput, match="order_id"):
        extract(order, Reply("O-1", prompt="Which one?", now=NOW))
