"""What no line of a case can hold: several values, words of a message, cost, and what is shown."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from cpu_time import LITTLE, cpu_seconds
from hypothesis import given
from hypothesis import strategies as st

from langmem_ext.errors import InvalidInput
from langmem_ext.waiting.catalog.param import Param, ParamType, label
from langmem_ext.waiting.extract import Reply, extract, problem_of
from langmem_ext.waiting.extract.dates.days import easter
from langmem_ext.waiting.extract.names.texts.objects import objects_in, things_in
from langmem_ext.waiting.extract.validity import bounds_mistake, is_valid
from langmem_ext.waiting.understand.values import Reading, read_values, values_of

NOW = datetime(2026, 3, 4, 10, 15)
WHEN = Param(name="start", type=ParamType.DATETIME, prompt="When does it start?")
LENGTH = Param(name="stay", type=ParamType.DURATION, prompt="For how long?")
MINUTES = LENGTH.model_copy(update={"units": "minutes"})
PAGE = Param(name="page", type=ParamType.URL, prompt="Which page?")
LOAN = Param(name="loan", type=ParamType.DURATION, prompt="For how long?")
CRATES = Param(
    name="crates",
    type=ParamType.INTEGER,
    description="number of crates",
    prompt="How many crates?",
)
PARCEL_TO = Param(name="parcel_to", type=ParamType.ADDRESS, prompt="Where shall we send it?")
WORDING = Param(
    name="wording",
    type=ParamType.TEXT,
    description="words that go on the stone",
    prompt="Which words should be added?",
)
FAULT = Param(
    name="fault",
    type=ParamType.TEXT,
    description="what is wrong with it",
    prompt="What is wrong with it?",
)
HALL_FOR = Param(name="purpose", type=ParamType.TEXT, prompt="What is it for?")
SHIP_TO = Param(name="shipping_address", type=ParamType.ADDRESS, prompt="Which address?")


@pytest.mark.parametrize(
    ("params", "text", "values"),
    [
        (
            [LOAN, Param(name="start", type="date", description="first day", future=True)],
            "3 weeks from 31 March",
            {"loan": "P21D", "start": "2026-03-31"},
        ),
        (
            [
                Param(name="building", type="enum", enum={"church": (), "chimney": ()}),
                CRATES,
                Param(name="owner", type="person", description="name of the owner"),
                PARCEL_TO,
            ],
            "price for a chimney please, 6 Church Lane, Wirksworth DE4 4EU, for Greta Lund",
            {
                "building": "chimney",
                "owner": "Greta Lund",
                "parcel_to": "6 Church Lane, Wirksworth DE4 4EU",
            },
        ),
        (
            [
                Param(name="show", type="enum", enum={"Night Sky Tonight": (), "Black Holes": ()}),
                Param(name="day", type="date", future=True),
            ],
            "I'd like to see Night Sky Tonight on the 21st",
            {"show": "Night Sky Tonight", "day": "2026-03-21"},
        ),
    ],
)
def test_what_is_inside_one_value_is_no_other(
    params: list[Param], text: str, values: dict[str, object]
) -> None:
    assert values_of(read_values(params, Reading(text, NOW))) == values


def test_a_moment_has_bounds_and_a_future() -> None:
    now = datetime(2024, 5, 29, 14, 30)
    until = WHEN.model_copy(update={"bounds": (None, "2024-06-01T00:00"), "future": True})
    assert problem_of(until, "2024-05-29T14:00", now=now) == "it must be later than now"
    assert problem_of(until, "2024-05-29T15:00", now=now) is None
    assert bounds_mistake(until) is None
    soon = WHEN.model_copy(update={"bounds": ("soon", None)})
    assert "is not a moment" in str(bounds_mistake(soon))


def test_users_are_shown_moments_and_lengths_in_words() -> None:
    assert label(WHEN, "2024-05-30T17:00") == "2024-05-30 17:00"
    assert label(LENGTH, "P1DT1H30M") == "1 day 1 hour 30 minutes"
    assert label(MINUTES, 90) == 90


def test_easter_is_the_day_that_the_church_keeps() -> None:
    kept = {1818: (3, 22), 1961: (4, 2), 2000: (4, 23), 2024: (3, 31), 2026: (4, 5), 2038: (4, 25)}
    assert {year: easter(year) for year in kept} == {
        year: date(year, *day) for year, day in kept.items()
    }


def test_a_pattern_that_is_no_regular_expression_is_one_clear_error() -> None:
    order = Param(name="order_id", type=ParamType.IDENTIFIER, pattern="(")
    with pytest.raises(InvalidInput, match="order_id"):
        extract(order, Reply("O-1", prompt="Which one?", now=NOW))


@given(st.text(max_size=80), st.sampled_from([WHEN, LENGTH, MINUTES, PAGE]), st.booleans())
def test_any_text_gives_a_valid_value_or_none(text: str, param: Param, asked: bool) -> None:
    found = extract(param, Reply(text, prompt=param.prompt if asked else "", now=NOW))
    if found.status == "filled":
        assert is_valid(param, found.value)
        assert found.span is not None
        assert text[slice(*found.span)] == found.raw


@pytest.mark.parametrize(
    "part", ["hang on, ", "my number is ", "1 ", "it should ", "ok, ", "a.b", "no lol "]
)
def test_a_long_answer_is_told_in_little_time(part: str) -> None:
    text = part * (10_000 // len(part))
    for param in (WORDING, FAULT, HALL_FOR):
        reply = Reply(text, prompt=param.prompt, now=NOW)
        assert cpu_seconds(lambda: extract(param, reply)) < LITTLE  # noqa: B023 - called at once


def test_an_address_is_no_line_longer_to_read_for_its_parts() -> None:
    reply = Reply("9 mill lane" + ", the mill" * 90, prompt=SHIP_TO.prompt, now=NOW)
    assert cpu_seconds(lambda: extract(SHIP_TO, reply)) < LITTLE


@pytest.mark.parametrize(
    ("text", "things"),
    [
        ("got an old sofa n 2 mattresses", ["old sofa n 2 mattresses"]),
        ("need a locker, it's for a load of tyres", ["load of tyres"]),
        ("two of us", []),
        ("have you got a minute", []),
        ("wardrobe to store", ["wardrobe"]),
        ("please store old paintings", ["old paintings"]),
        ("forgot my umbrella on the tram", ["umbrella"]),
        ("ask my wife", []),
        ("someone left a canoe in the lane", ["canoe"]),
    ],
)
def test_a_message_names_things(text: str, things: list[str]) -> None:
    known = frozenset({"stor", "locker", "store"})
    assert [text[start:end] for start, end in things_in(text, known)] == things


def test_a_verb_has_a_name_for_its_object() -> None:
    text = "could you feed pepper on monday"
    assert [text[start:end] for start, end in objects_in(text, frozenset({"feed"}))] == ["pepper"]
