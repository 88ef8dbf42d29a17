"""Dates become ISO 8601 and times `HH:MM`, counted from the moment of the message."""

from __future__ import annotations

from datetime import datetime

import pytest

from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.param import Extraction, Param, ParamType

NOW = datetime(2024, 5, 15, 10, 30)
"""A Wednesday."""

DAY = Param(name="delivery_date", type=ParamType.DATE)
START = Param(name="start_date", type=ParamType.DATE, role="from")
END = Param(name="end_date", type=ParamType.DATE, role="to")
CLOCK = Param(name="pickup_time", type=ParamType.TIME)


def answer(param: Param, text: str, prompt: str = "When?", others: tuple[Param, ...] = ()) -> Extraction:
    return extract(param, Reply(text, prompt=prompt, others=others, now=NOW))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-06-01", "2024-06-01"),
        ("March 8th", "2025-03-08"),
        ("the 8th of june", "2024-06-08"),
        ("May 15", "2024-05-15"),
        ("1st of July 2025", "2025-07-01"),
        ("May 11,2026", "2026-05-11"),
        ("the 3rd", "2024-06-03"),
        ("on the 16th, please", "2024-05-16"),
        ("the 20th of this month", "2024-05-20"),
        ("the 4th of next month", "2024-06-04"),
        ("today", "2024-05-15"),
        ("Tomorrow at 5", "2024-05-16"),
        ("the day after tomorrow", "2024-05-17"),
        ("Friday", "2024-05-17"),
        ("this saturday", "2024-05-18"),
        ("Wednesday", "2024-05-22"),
        ("next Friday", "2024-05-24"),
        ("Tuesday next week", "2024-05-21"),
        ("fri", "2024-05-17"),
        ("Sunday the 19th", "2024-05-19"),
        ("the 2nd monday of june", "2024-06-10"),
        ("in two weeks", "2024-05-29"),
        ("3 days from now", "2024-05-18"),
        ("8/3", "2024-08-03"),
        ("24/12/2024", "2024-12-24"),
        ("24.12.2024", "2024-12-24"),
        ("Feb 29", "2028-02-29"),
        ("not Friday, Saturday", "2024-05-18"),
        ("Friday, sorry, I mean Saturday", "2024-05-18"),
    ],
)
def test_a_date_is_normalised_against_now(text: str, value: str) -> None:
    assert answer(DAY, text).value == value


@pytest.mark.parametrize(
    "text",
    [
        "30 February",
        "the 31st of June",
        "13/13/2024",
        "June",
        "next week",
        "the first one",
        "may I ask why?",
        "two",
        "at 5 pm",
        "9th Avenue",
        "Friday or Saturday",
        "I don't know",
    ],
)
def test_what_names_no_single_existing_day_is_no_date(text: str) -> None:
    assert answer(DAY, text).status != "filled"


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("from June 3rd to June 9th", "2024-06-03", "2024-06-09"),
        ("I keep it until the 9th of June and start on June 3rd", "2024-06-03", "2024-06-09"),
        ("June 3rd, June 9th", "2024-06-03", "2024-06-09"),
        ("returning June 9th", None, "2024-06-09"),
        ("from June 3rd", "2024-06-03", None),
    ],
)
def test_of_two_dates_each_goes_to_its_role(text: str, start: str | None, end: str | None) -> None:
    assert answer(START, text, "From when to when?", (END,)).value == start
    assert answer(END, text, "From when to when?", (START,)).value == end


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("half past 3", "03:30"),
        ("half past 3 in the afternoon", "15:30"),
        ("quarter to six", "05:45"),
        ("ten to five in the afternoon", "16:50"),
        ("5 in the evening", "17:00"),
        ("evening 6:15", "18:15"),
        ("seven pm", "19:00"),
        ("3PM", "15:00"),
        ("6 a.m.", "06:00"),
        ("12:30 am", "00:30"),
        ("12 am", "00:00"),
        ("noon", "12:00"),
        ("at midnight", "00:00"),
        ("18:45", "18:45"),
        ("1615", "16:15"),
        ("16h30", "16:30"),
        ("6 o'clock in the evening", "18:00"),
        ("around 8", "08:00"),
        ("7", "07:00"),
        ("seven thirty", "07:30"),
        ("in half an hour", "11:00"),
        ("4 people at 6 pm on June 3rd", "18:00"),
    ],
)
def test_a_time_is_hours_and_minutes(text: str, value: str) -> None:
    assert answer(CLOCK, text, "At what time?").value == value


@pytest.mark.parametrize(
    "text", ["25:00", "13:61", "tomorrow", "in the morning", "for 2 people", "after lunch", "the 3rd", "what times?", ""]
)
def test_what_names_no_hour_is_no_time(text: str) -> None:
    assert answer(CLOCK, text, "At what time?").status != "filled"
