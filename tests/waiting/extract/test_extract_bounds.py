"""Values outside a parameter's bounds are never taken; among readings the one inside is."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

import pytest

from langmem_ext import CatalogError, IntentCatalog
from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract import OUT_OF_BOUNDS, Reply, extract, find, problem_of

NOW = datetime(2024, 5, 15, 10, 30)
"""A Wednesday."""

OPEN = Param(name="time", type=ParamType.TIME, bounds=("11:00", "23:00"))
SEATS = Param(name="seats", type=ParamType.INTEGER, description="Number of people", bounds=(1, 12))
SUM = Param(name="amount", type=ParamType.MONEY, bounds=(None, 500))
HIRE = Param(name="length", type=ParamType.DURATION, bounds=("PT2H", "P1D"))
DAY = Param(name="day", type=ParamType.DATE, future=True)
SEASON = Param(name="day", type=ParamType.DATE, bounds=("2024-06-01", "2024-08-31"))


def answer(param: Param, text: str, prompt: str = "What is it?") -> Extraction:
    return extract(param, Reply(text, prompt=prompt, now=NOW))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", "19:00"),
        ("half past 7", "19:30"),
        ("10:30", "22:30"),
        ("at one", "13:00"),
        ("11am", "11:00"),
        ("noon", "12:00"),
    ],
)
def test_of_two_readings_the_one_inside_the_bounds_is_taken(text: str, value: str) -> None:
    assert answer(OPEN, text).value == value


def test_bounds_that_hold_both_readings_decide_nothing() -> None:
    assert answer(OPEN, "11").choices == ("11:00", "23:00")


@pytest.mark.parametrize(
    ("param", "text", "raw"),
    [
        (OPEN, "3am please", "3am"),
        (OPEN, "at 7 in the morning", "7 in the morning"),
        (OPEN, "23:30", "23:30"),
        (SEATS, "we'll be 13 people", "13 people"),
        (SEATS, "0", "0"),
        (SUM, "$501", "$501"),
        (DAY, "yesterday", "yesterday"),
        (SEASON, "on September 3rd", "September 3rd"),
    ],
)
def test_a_value_out_of_bounds_is_named_and_not_taken(param: Param, text: str, raw: str) -> None:
    found = answer(param, text)
    assert (found.status, found.reason, found.value, found.choices) == (
        "abstained",
        OUT_OF_BOUNDS,
        None,
        (),
    )
    assert found.raw == raw
    assert found.span is not None
    assert text[slice(*found.span)] == raw
    assert found.problem.startswith("it must be ")


def test_a_value_out_of_bounds_is_not_found_in_a_message_that_answers_nothing() -> None:
    assert find(OPEN, "a table at 3am", now=NOW).reason == OUT_OF_BOUNDS


def test_another_number_does_not_stand_in_for_one_out_of_bounds() -> None:
    assert answer(SEATS, "13 people and 2 dogs").reason == OUT_OF_BOUNDS


@pytest.mark.parametrize(
    ("param", "value", "problem"),
    [
        (OPEN, "11:00", None),
        (OPEN, "23:00", None),
        (OPEN, "23:01", "it must be between 11:00 and 23:00"),
        (OPEN, "no time", None),
        (SEATS, 13, "it must be between 1 and 12"),
        (SUM, 500.5, "it must be 500 or less"),
        (SUM, -2, None),
        (OPEN.model_copy(update={"bounds": ("11:00", None)}), "10:59", "it must be 11:00 or later"),
        (
            OPEN.model_copy(update={"bounds": (None, "23:00")}),
            "23:59",
            "it must be 23:00 or earlier",
        ),
        (DAY, "2024-05-15", None),
        (DAY, "2024-05-14", "it must be today or later"),
        (SEASON, "2024-05-31", "it must be between 2024-06-01 and 2024-08-31"),
        (
            Param(name="n", type=ParamType.NUMBER, bounds=("0.5", None)),
            0.4,
            "it must be 0.5 or more",
        ),
        (HIRE, "PT1H", "it must be between 2 hours and 1 day"),
        (HIRE, "P1W", "it must be between 2 hours and 1 day"),
        (HIRE, "PT24H", None),
    ],
)
def test_what_is_wrong_with_a_value_is_said_in_a_sentence(
    param: Param, value: Any, problem: str | None
) -> None:
    assert problem_of(param, value, now=NOW) == problem


def declared(kind: str, bounds: object, **more: object) -> Param:
    data = {"intents": [{"id": "a"}], "params": {"x": {"type": kind, "bounds": bounds, **more}}}
    return IntentCatalog.from_dict(data).param("x")


@pytest.mark.parametrize(
    ("kind", "bounds", "kept"),
    [
        ("time", ["11:00", "23:00"], ("11:00", "23:00")),
        ("time", [time(9), None], ("09:00", None)),
        ("date", [date(2024, 1, 1), None], ("2024-01-01", None)),
        ("integer", [1, 12], (1, 12)),
        ("money", [None, 99.5], (None, 99.5)),
        ("number", ["0.5", "2"], ("0.5", "2")),
        ("duration", ["PT1H", "P1M"], ("PT1H", "P1M")),
        ("time", None, None),
    ],
)
def test_bounds_are_a_list_of_two(kind: str, bounds: object, kept: object) -> None:
    assert declared(kind, bounds).bounds == kept


@pytest.mark.parametrize(
    ("kind", "bounds", "mistake"),
    [
        ("time", ["11:00"], "must be a list of two"),
        ("time", ["11:00", "12:00", "13:00"], "must be a list of two"),
        ("time", "11:00", "must be a list of two"),
        ("integer", [True, 3], "must be a list of two"),
        ("time", ["9 am", None], "'9 am' is not a time like '09:30'"),
        ("time", [9, 17], "9 is not a time"),
        ("date", ["2024-02-30", None], "'2024-02-30' is not a date"),
        ("integer", [1.5, 3], "1.5 is not a whole number"),
        ("integer", [5, 1], "the lowest value is above the highest"),
        ("time", ["18:00", "02:00"], "the lowest value is above the highest"),
        ("time", [None, None], "give at least one of them"),
        ("text", ["a", "b"], "text is not ordered"),
        ("duration", [1, None], "1 is not a duration like 'PT1H30M'"),
        ("duration", ["PT2H", "PT90M"], "the lowest value is above the highest"),
    ],
)
def test_bounds_that_bound_nothing_are_a_mistake_of_the_catalog(
    kind: str, bounds: object, mistake: str
) -> None:
    with pytest.raises(CatalogError, match=f"params.x.bounds: .*{mistake}"):
        declared(kind, bounds)


def test_a_duration_with_units_is_bound_by_numbers_of_them() -> None:
    assert declared("duration", [1, 24], units="hours").bounds == (1, 24)
    with pytest.raises(CatalogError, match="'PT1H' is not a number of the parameter's units"):
        declared("duration", ["PT1H", None], units="hours")


def test_a_length_out_of_its_bounds_is_not_taken() -> None:
    refused = answer(HIRE, "an hour")
    assert (refused.value, refused.problem) == (None, "it must be between 2 hours and 1 day")
    assert answer(HIRE, "three hours").value == "PT3H"


def test_only_a_date_lies_in_the_future() -> None:
    assert declared("date", None, future=True).future
    with pytest.raises(CatalogError, match=r"params.x.future: `future` needs a date"):
        declared("time", None, future=True)
