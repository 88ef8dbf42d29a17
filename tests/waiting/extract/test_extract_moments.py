"""Moments, durations and web addresses are read as people write them, in one normal form each."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import HttpUrl, TypeAdapter

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType, label
from langmem_ext.waiting.extract import HALF_OPEN, OUT_OF_BOUNDS, Reply, extract, find, problem_of
from langmem_ext.waiting.extract.validity import bounds_mistake, is_valid

NOW = datetime(2024, 5, 29, 14, 30)  # a Wednesday


def read(param: Param, text: str, *, asked: bool = True) -> Extraction:
    return extract(param, Reply(text, prompt=param.prompt if asked else "", now=NOW))


WHEN = Param(name="start", type=ParamType.DATETIME, prompt="When does it start?")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("tomorrow at 5pm", "2024-05-30T17:00"),
        ("Friday 5:30 pm, please", "2024-05-31T17:30"),
        ("8 pm tomorrow", "2024-05-30T20:00"),
        ("tonight at 9", "2024-05-29T21:00"),
        ("noon on saturday", "2024-06-01T12:00"),
        ("june 3rd, half past ten in the morning", "2024-06-03T10:30"),
        ("on the 5th at 16:00", "2024-06-05T16:00"),
        ("monday, no, tuesday at 3pm", "2024-06-04T15:00"),
        ("not today, thursday at noon", "2024-05-30T12:00"),
        ("2024-06-01T10:00:00", "2024-06-01T10:00"),
        ("in an hour and a half", "2024-05-29T16:00"),
        ("two hours from now", "2024-05-29T16:30"),
    ],
)
def test_a_day_and_a_time_are_one_moment(text: str, value: str) -> None:
    found = read(WHEN, text)
    assert (found.status, found.value) == ("filled", value)
    assert found.span is not None
    assert text[slice(*found.span)] == found.raw
    assert TypeAdapter(datetime).validate_python(value) == datetime.fromisoformat(value)


def test_a_time_alone_is_the_next_such_one_and_not_sure() -> None:
    later, earlier = read(WHEN, "at 5pm"), read(WHEN, "9 am")
    assert (later.value, earlier.value) == ("2024-05-29T17:00", "2024-05-30T09:00")
    assert max(later.confidence, earlier.confidence) <= 0.5
    assert read(WHEN, "at 5pm", asked=False).status == "abstained"


def test_a_day_alone_lacks_its_time_and_says_so() -> None:
    found = read(WHEN, "tomorrow")
    assert (found.status, found.problem) == ("abstained", "it must have a time of day, too")
    assert read(WHEN, "I don't know").status == "declined"


def test_an_open_half_of_the_day_stays_open_but_for_bounds() -> None:
    found = read(WHEN, "friday at 7")
    assert (found.reason, found.choices) == (HALF_OPEN, ("2024-05-31T07:00", "2024-05-31T19:00"))
    evening = WHEN.model_copy(update={"bounds": ("11:00", "23:00")})
    assert read(evening, "friday at 7").value == "2024-05-31T19:00"
    assert read(evening, "friday at 9:30 am").problem == "it must be between 11:00 and 23:00"


def test_a_moment_has_bounds_and_a_future() -> None:
    until = WHEN.model_copy(update={"bounds": (None, "2024-06-01T00:00"), "future": True})
    assert read(until, "monday at 5pm").reason == OUT_OF_BOUNDS
    assert problem_of(until, "2024-05-29T14:00", now=NOW) == "it must be later than now"
    assert problem_of(until, "2024-05-29T15:00", now=NOW) is None
    assert bounds_mistake(until) is None
    assert "is not a moment" in str(
        bounds_mistake(WHEN.model_copy(update={"bounds": ("soon", None)}))
    )


LENGTH = Param(name="stay", type=ParamType.DURATION, prompt="For how long?")
MINUTES = LENGTH.model_copy(update={"units": "minutes"})


@pytest.mark.parametrize(
    ("text", "iso", "minutes"),
    [
        ("an hour and a half", "PT1H30M", 90),
        ("1h30", "PT1H30M", 90),
        ("1h 30m", "PT1H30M", 90),
        ("two and a half hours", "PT2H30M", 150),
        ("three quarters of an hour", "PT45M", 45),
        ("2 hours and 15 minutes", "PT2H15M", 135),
        ("1 day, 2 hours", "P1DT2H", 1_560),
        ("a week", "P7D", 10_080),
        ("PT2H", "PT2H", 120),
        ("a couple of hours please", "PT2H", 120),
        ("thirty seconds", "PT30S", 0.5),
    ],
)
def test_a_length_of_time_is_a_number_of_its_units_or_iso(
    text: str, iso: str, minutes: float
) -> None:
    assert read(LENGTH, text).value == iso
    assert read(MINUTES, text).value == minutes
    assert TypeAdapter(timedelta).validate_python(iso) == timedelta(minutes=minutes)


@pytest.mark.parametrize("text", ["one to two hours", "30-45 minutes", "a few hours", "soon"])
def test_what_is_no_certain_length_is_none(text: str) -> None:
    assert read(LENGTH, text).status == read(MINUTES, text).status == "abstained"


def test_months_are_not_so_many_days() -> None:
    assert read(LENGTH, "a year and a half").value == "P1Y6M"
    assert read(MINUTES, "2 months").status == "abstained"
    assert read(LENGTH.model_copy(update={"units": "months"}), "a year and a half").value == 18


def test_a_bare_number_is_a_length_where_its_unit_is_known() -> None:
    assert read(MINUTES, "45").value == 45
    assert read(LENGTH, "45").status == "abstained"
    assert read(LENGTH.model_copy(update={"prompt": "How many days?"}), "3").value == "P3D"


def test_without_a_question_when_is_no_length() -> None:
    assert read(LENGTH, "call me in 2 hours", asked=False).status == "abstained"
    assert read(LENGTH, "I need it for 2 hours", asked=False).value == "PT2H"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("say an hour n a half", "PT1H30M"),
        ("hour and a half", "PT1H30M"),
        ("an hour and half", "PT1H30M"),
        ("2 hrs n 15 mins", "PT2H15M"),
        ("an hour twenty", "PT1H20M"),
        ("couple of hours", "PT2H"),
        ("two full days", "P2D"),
        ("from 4pm till 6pm", "PT2H"),
        ("from 9 until half past 11", "PT2H30M"),
        ("10 till 2", "PT4H"),
        ("4 to 6", None),
        ("till 6", None),
    ],
)
def test_a_length_is_said_in_many_ways(text: str, value: str | None) -> None:
    assert extract(LENGTH, Reply(text, prompt="For how long?", now=NOW)).value == value


@pytest.mark.parametrize("text", ["I'm free from 9 till 12", "can you ring me from 4 till 6"])
def test_hours_within_which_something_may_happen_are_no_length(text: str) -> None:
    assert extract(LENGTH, Reply(text, now=NOW)).value is None


PAGE = Param(name="page", type=ParamType.URL, prompt="Which page?")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("www.example.com/x", "https://www.example.com/x"),
        ("it's https://Example.com/A?b=c.", "https://example.com/A?b=c"),
        ("see (http://a.org/b_(c)).", "http://a.org/b_(c)"),
        ("example.com", "https://example.com"),
        ("example dot com slash x", "https://example.com/x"),
        ("http://localhost:8000/x", "http://localhost:8000/x"),
    ],
)
def test_a_web_address_has_a_scheme(text: str, value: str) -> None:
    assert read(PAGE, text).value == value
    assert TypeAdapter(HttpUrl).validate_python(value)


@pytest.mark.parametrize("text", ["mail me at ann@example.com", "report.pdf", "e.g. this.", "no"])
def test_what_is_no_web_address_is_none(text: str) -> None:
    assert read(PAGE, text).status != "filled"


def test_a_host_alone_is_an_address_only_as_an_answer() -> None:
    assert read(PAGE, "example.com", asked=False).status == "abstained"
    assert read(PAGE, "look at www.example.com", asked=False).status == "filled"


def test_users_are_shown_moments_and_lengths_in_words() -> None:
    assert label(WHEN, "2024-05-30T17:00") == "2024-05-30 17:00"
    assert label(LENGTH, "P1DT1H30M") == "1 day 1 hour 30 minutes"
    assert label(MINUTES, 90) == 90


@given(st.text(max_size=80), st.sampled_from([WHEN, LENGTH, MINUTES, PAGE]), st.booleans())
def test_any_text_gives_a_valid_value_or_none(text: str, param: Param, asked: bool) -> None:
    found = read(param, text, asked=asked)
    if found.status == "filled":
        assert is_valid(param, found.value)
        assert found.span is not None
        assert text[slice(*found.span)] == found.raw


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3pm", "2024-06-01T15:00"),
        ("at 6", "2024-06-01T18:00"),
        ("friday", "2024-05-31T17:00"),
        ("sunday at noon", "2024-06-02T12:00"),
    ],
)
def test_a_day_or_a_time_alone_changes_that_part_of_a_known_moment(text: str, value: str) -> None:
    known = {"start": "2024-06-01T17:00"}
    assert extract(WHEN, Reply(text, prompt=WHEN.prompt, now=NOW, filled=known)).value == value


def test_a_time_alone_is_on_the_day_that_was_said_before() -> None:
    half = extract(WHEN, Reply("on friday", prompt="When?", now=NOW))
    assert (half.value, half.problem) == (None, "it must have a time of day, too")
    assert half.half == "2024-05-31"
    known = {WHEN.name: half.half}
    whole = extract(WHEN, Reply("at 2 pm", prompt="When?", filled=known, now=NOW))
    assert whole.value == "2024-05-31T14:00"
    assert whole.confidence > 0.9
    other = extract(WHEN, Reply("monday at 2 pm", prompt="When?", filled=known, now=NOW))
    assert other.value == "2024-06-03T14:00"


def test_a_message_that_answers_nothing_names_one_day_or_none() -> None:
    assert find(WHEN, "a visit on friday", now=NOW).half == "2024-05-31"
    assert find(WHEN, "not friday but monday or tuesday", now=NOW).half == ""
    future = WHEN.model_copy(update={"future": True})
    assert find(future, "it broke yesterday, can you come", now=NOW).half == ""
