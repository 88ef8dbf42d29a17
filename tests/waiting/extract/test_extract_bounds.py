"""What bounds a catalog may give. What is wrong with a value outside of them: `tests/cases`."""

from __future__ import annotations

from datetime import date, time

import pytest

from langmem_ext import CatalogError, IntentCatalog, Param


def declared(kind: str, bounds: object, **more: object) -> Param:
    data = {"intents": [{"id": "a"}], "params": {"x": {"type": kind, "bounds": bounds, **more}}}
    return IntentCatalog.from_dict(data).param("x")


def test_bounds_are_a_list_of_two() -> None:
    for kind, bounds, kept in (
        ("time", ["11:00", "23:00"], ("11:00", "23:00")),
        ("time", [time(9), None], ("09:00", None)),
        ("date", [date(2024, 1, 1), None], ("2024-01-01", None)),
        ("integer", [1, 12], (1, 12)),
        ("money", [None, 99.5], (None, 99.5)),
        ("number", ["0.5", "2"], ("0.5", "2")),
        ("duration", ["PT1H", "P1M"], ("PT1H", "P1M")),
        ("time", None, None),
    ):
        assert declared(kind, bounds).bounds == kept, (kind, bounds)
    assert declared("duration", [1, 24], units="hours").bounds == (1, 24)


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
        ("datetime", ["soon", None], "'soon' is not a moment"),
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


def test_units_and_a_future_need_their_types() -> None:
    with pytest.raises(CatalogError, match="'PT1H' is not a number of the parameter's units"):
        declared("duration", ["PT1H", None], units="hours")
    assert declared("date", None, future=True).future
    with pytest.raises(CatalogError, match=r"params.x.future: `future` needs a date"):
        declared("time", None, future=True)
