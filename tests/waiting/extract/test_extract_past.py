"""A date without its year, or without its month, lies where the words beside it put it."""

from __future__ import annotations

from datetime import datetime

import pytest

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract import Reply, extract, find

NOW = datetime(2026, 3, 4, 10, 15)
"""A Wednesday."""

DAY = Param(name="visit_day", type=ParamType.DATE)
AHEAD = DAY.model_copy(update={"future": True})
FIRST = Param(name="first_night", type=ParamType.DATE, role="from", future=True)
LAST = Param(name="last_night", type=ParamType.DATE, role="to", future=True)


def said(param: Param, text: str, *others: Param) -> object:
    return extract(param, Reply(text, prompt="Which day?", others=others, now=NOW)).value


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("it has rattled since sunday", "2026-03-01"),
        ("since about 20 january", "2026-01-20"),
        ("no hot water since christmas", "2025-12-25"),
        ("we bought it on friday", "2026-02-27"),
        ("my card was stolen on the 28th", "2026-02-28"),
        ("it happened on saturday", "2026-02-28"),
        ("about two weeks ago", "2026-02-18"),
        ("a couple of days ago", "2026-03-02"),
        ("tuesday last week", "2026-02-24"),
        ("3 march", "2026-03-03"),
        ("3 january", "2027-01-03"),
    ],
)
def test_what_has_happened_lies_in_the_past(text: str, day: str) -> None:
    assert said(DAY, text) == day


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("I wanted to come on friday", "2026-03-06"),
        ("we need it on the 9th", "2026-03-09"),
        ("I'd like it collected on monday", "2026-03-09"),
        ("it broke, so please come on saturday", "2026-03-07"),
    ],
)
def test_a_wish_lies_ahead(text: str, day: str) -> None:
    assert said(DAY, text) == day


def test_a_day_to_come_is_none_that_has_passed() -> None:
    assert said(AHEAD, "3 march") == "2027-03-03"
    assert said(AHEAD, "since monday") is None


@pytest.mark.parametrize(
    ("name", "description", "prompt"),
    [
        ("since", "the day it started", "Since which day?"),
        ("spent_on", "day the money was spent", ""),
        ("day", "when the fault began", ""),
        ("noticed", "", ""),
        ("day", "", "On which day did you buy it?"),
    ],
)
def test_a_parameter_of_the_past_has_a_day_that_has_passed(
    name: str, description: str, prompt: str
) -> None:
    param = Param(name=name, type=ParamType.DATE, description=description, prompt=prompt)
    assert said(param, "monday") in ("2026-03-02", "2026-03-09")
    reply = Reply("monday", prompt=prompt or "Which day?", now=NOW)
    assert extract(param, reply).value == "2026-03-02"


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("16-20 april", "2026-04-16", "2026-04-20"),
        ("the 16th to the 20th of april", "2026-04-16", "2026-04-20"),
        ("from the 16th till 20 april", "2026-04-16", "2026-04-20"),
        ("april 16-20", "2026-04-16", "2026-04-20"),
        ("from 12 may until the 15th", "2026-05-12", "2026-05-15"),
        ("the 28th to 3 april", "2026-03-28", "2026-04-03"),
        ("from 28 april until the 3rd", "2026-04-28", "2026-05-03"),
        ("mon 16 to fri 20 march", "2026-03-16", "2026-03-20"),
    ],
)
def test_the_ends_of_a_range_share_their_month(text: str, first: str, last: str) -> None:
    assert (said(FIRST, text, LAST), said(LAST, text, FIRST)) == (first, last)


def test_a_day_that_takes_the_place_of_another_is_in_its_month() -> None:
    assert said(DAY, "12 may, no the 14th") == "2026-05-14"
    assert said(DAY, "12 may is no good, the 10th?") == "2026-05-10"
    filled = {"visit_day": "2026-05-12"}
    assert find(DAY, "make it the 14th", now=NOW, filled=filled).value == "2026-05-14"


def test_the_day_of_a_return_is_no_last_day_off() -> None:
    off = Param(name="last_day", type=ParamType.DATE, description="last day off", role="to")
    assert said(off, "only tomorrow, I'm back in on friday") == "2026-03-05"
    assert said(off, "back at work on friday") is None


def test_what_was_arranged_is_not_what_is_wanted() -> None:
    assert said(AHEAD, "It was to end on the 11th. Could it be the 18th?") == "2026-03-18"


def test_a_correction_of_one_end_leaves_the_other() -> None:
    text = "from sunday, and back on tuesday. no wednesday, I work tuesdays"
    assert (said(FIRST, text, LAST), said(LAST, text, FIRST)) == ("2026-03-08", "2026-03-11")


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Alfie James Roe, born 1st March, 7lb 4oz", None),
        ("she was born on 3 may, in friday's paper please", "friday"),
    ],
)
def test_the_day_of_a_birth_is_only_that(text: str, day: str | None) -> None:
    issue = Param(name="issue", type=ParamType.DATE, description="day of the issue", future=True)
    born = Param(name="born", type=ParamType.DATE, description="date of birth")
    assert find(issue, text, now=NOW).value == (find(issue, day, now=NOW).value if day else None)
    assert find(born, text, now=NOW).value is not None
