"""What bounds a catalog may give, and what is wrong with a value outside of them."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

import pytest

from langmem_ext import CatalogError, IntentCatalog
from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract import problem_of

NOW = datetime(2024, 5, 15, 10, 30)
"""A Wednesday."""

OPEN = Param(name="time", type=ParamType.TIME, bounds=("11:00", "23:00"))
SEATS = Param(name="seats", type=ParamType.INTEGER, description="Number of people", bounds=(1, 12))
SUM = Param(name="amount", type=ParamType.MONEY, bounds=(None, 500))
HIRE = Param(name="length", type=ParamType.DURATION, bounds=("PT2H", "P1D"))
DAY = Param(name="day", type=ParamType.DATE, future=True)
SEASON = Param(name="day", type=ParamType.DATE, bounds=("2024-06-01", "2024-08-31"))


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


def test_only_a_date_lies_in_the_future() -> None:
    assert declared("date", None, future=True).future
    with pytest.raises(CatalogError, match=r"params.x.future: `future` needs a date"):
        declared("time", None, future=True)
