"""What every extractor promises: a valid, repeatable result in the text; no value in a reason."""

from __future__ import annotations

import re
from datetime import date, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract import LONGEST, Reply, extract, find
from langmem_ext.waiting.extract.reading_cache import remembered

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
    (
        "I want to",
        "go",
        "from Oslo",
        "to new york",
        "on March 3rd",
        "at half past 5",
        "pm",
        "for two",
        "people",
        "me and my wife",
        "O-12345",
        "o 12",
        "a@b.com",
    )
    + (
        "$40",
        "red",
        "not",
        "dark blue",
        "or",
        "yes",
        "no",
        "please",
        "12 Elm Street,",
        "don't know",
        "?",
        "!",
        ".",
        "415-555-2671",
        "because",
        "it's",
    )
    + ("Ann Lee", 'called "Up"', "the first one", "8/3", "tomorrow")
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


@given(KINDS, replies())
def test_the_same_reply_gives_the_same_result(kind: ParamType, reply: Reply) -> None:
    assert extract(PARAMS[kind], reply) == extract(PARAMS[kind], reply)


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
    found = find(PARAMS[kind], text, now=NOW)
    assert found.status in ("filled", "abstained")
    if found.status == "filled":
        check_value(PARAMS[kind], found)


@given(text=TEXTS)
def test_open_text_is_never_found_in_a_message_that_answers_nothing(text: str) -> None:
    assert find(PARAMS[ParamType.TEXT], text, now=NOW).status == "abstained"


NO_ANSWERS = (
    "",
    " ",
    "\n",
    "???",
    "...",
    "🙂",
    "cancel my order please",
    "why do you ask?",
    "I don't know",
)
PIECES = ("1 ", "one and ", "Alpha Beta ", "-", " ", "in the ", "a.b.", "12 main ", "@", "monday ")


@pytest.mark.parametrize("kind", list(ParamType), ids=str)
def test_every_type_abstains_on_junk_questions_refusals_and_wishes(kind: ParamType) -> None:
    for text in NO_ANSWERS:
        assert (
            extract(PARAMS[kind], Reply(text, prompt="What is it?", now=NOW)).status != "filled"
        ), text


@pytest.mark.parametrize(
    "kind", [kind for kind in ParamType if kind is not ParamType.TEXT], ids=str
)
def test_of_a_long_message_no_more_than_its_head_is_read(kind: ParamType) -> None:
    for piece in PIECES:
        text = (
            f"{piece * (20_000 // len(piece))} scarlet 7391 $73 2031-07-19 19:47 zyx@example.com"
            " ZYX-7391 https://zyx.org"
        )
        found = extract(PARAMS[kind], Reply(text, prompt="What is it?", now=NOW))
        assert found == extract(
            PARAMS[kind], Reply(text[:LONGEST], prompt="What is it?", now=NOW)
        ), piece


def test_a_free_text_is_taken_as_long_as_it_is() -> None:
    text = "the box was wet. " * 500
    assert extract(
        PARAMS[ParamType.TEXT], Reply(text, prompt="What happened?", now=NOW)
    ).value == text.strip(" .")


@pytest.mark.parametrize(
    ("name", "kind", "text", "value"),
    [
        ("order_id", ParamType.IDENTIFIER, "cancel order AB1234", "AB1234"),
        ("email", ParamType.EMAIL, "my email is a@b.com", "a@b.com"),
        ("phone", ParamType.PHONE, "call 415-555-2671", "+14155552671"),
        ("day", ParamType.DATE, "deliver it tomorrow", "2024-05-16"),
        ("clock", ParamType.TIME, "come at 5pm", "17:00"),
        ("amount", ParamType.MONEY, "send $20 to Ann", 20),
        ("people", ParamType.INTEGER, "a table for 4 people", 4),
        ("city", ParamType.PLACE, "find me a hotel in Oslo", "Oslo"),
        ("full_name", ParamType.PERSON, "my name is Ann Lee", "Ann Lee"),
        ("movie", ParamType.NAME, "the movie is Paper Boats", "Paper Boats"),
        ("gift_wrap", ParamType.BOOLEAN, "I want it gift wrapped", True),
        ("address", ParamType.ADDRESS, "ship it to 12 Elm Street", "12 Elm Street"),
    ],
)
def test_a_marked_value_is_found_in_any_message(
    name: str, kind: ParamType, text: str, value: object
) -> None:
    assert find(Param(name=name, type=kind), text, now=NOW).value == value


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("order_id", ParamType.IDENTIFIER, "cancel AB1234"),
        ("clock", ParamType.TIME, "at 5"),
        ("amount", ParamType.MONEY, "send 20"),
        ("people", ParamType.INTEGER, "book 2 rooms"),
        ("city", ParamType.PLACE, "I am in trouble"),
        ("city", ParamType.PLACE, "Oslo is nice"),
        ("full_name", ParamType.PERSON, "Ann wants it"),
        ("movie", ParamType.NAME, "play Dune"),
        ("gift_wrap", ParamType.BOOLEAN, "yes"),
        ("reason", ParamType.TEXT, "cancel it, I am ill"),
    ],
)
def test_an_unmarked_value_is_not_found_in_a_message_that_answers_nothing(
    name: str, kind: ParamType, text: str
) -> None:
    assert find(Param(name=name, type=kind), text, now=NOW).status == "abstained"


def test_a_text_is_read_once_while_it_is_among_the_latest_and_long_ones_are_not_kept() -> None:
    reads: list[str] = []

    @remembered
    def words(text: str, *, lower: bool = False) -> list[str]:
        reads.append(text)
        return (text.lower() if lower else text).split()

    words("A b").append("c")
    assert (words("A b"), words("A b", lower=True), reads) == (
        ["A", "b"],
        ["a", "b"],
        ["A b", "A b"],
    )
    long = "x" * (LONGEST + 1)
    assert words(long) == words(long) == [long]
    assert reads.count(long) == 2


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
