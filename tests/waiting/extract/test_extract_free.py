"""Values that a message gives unasked: names, labelled numbers, sums, and past days."""

from __future__ import annotations

from datetime import datetime

import pytest

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract import Reply, extract

NOW = datetime(2026, 3, 2, 10, 0)

NAME = Param(name="name", type=ParamType.PERSON, description="name of the customer")
VISITOR = Param(name="name", type=ParamType.NAME, description="name of the visitor")
PAYEE = Param(name="recipient", type=ParamType.PERSON, description="who gets the money")
PET = Param(name="pet", type=ParamType.NAME, description="name of the pet")
CITY = Param(name="city", type=ParamType.PLACE)
ROOM = Param(name="room", type=ParamType.INTEGER, description="room number")
LOCKER = Param(name="locker", type=ParamType.INTEGER, description="locker number")
FLOOR = Param(name="floor", type=ParamType.INTEGER, description="floor of the building")
WEIGHT = Param(name="weight", type=ParamType.INTEGER, description="weight in kilograms")
PEOPLE = Param(name="people", type=ParamType.INTEGER, description="number of people")
PORTIONS = Param(name="portions", type=ParamType.INTEGER, description="how many portions")
MONTHS = Param(name="months", type=ParamType.INTEGER, description="for how many months")
HOURS = Param(name="hours", type=ParamType.INTEGER, description="how many hours")
DAY = Param(name="date", type=ParamType.DATE, description="day")
AHEAD = Param(name="date", type=ParamType.DATE, description="day", future=True)
DAMAGE = Param(name="damage_day", type=ParamType.DATE, description="day of the damage")
BORN = Param(name="dob", type=ParamType.DATE, description="date of birth")
LAST_DAY = Param(name="last_day", type=ParamType.DATE, description="last day of the stay")
WORTH = Param(name="value", type=ParamType.MONEY, description="what the contents were worth")
START = Param(name="time", type=ParamType.TIME, description="when it starts")
PHONE = Param(name="phone", type=ParamType.PHONE)
ADDRESS = Param(name="address", type=ParamType.ADDRESS)
VACCINATED = Param(
    name="vaccinated", type=ParamType.BOOLEAN, description="whether the pet is vaccinated"
)
INJURED = Param(
    name="injured",
    type=ParamType.BOOLEAN,
    description="whether there is an injury the trainer should know of",
)


def said(param: Param, text: str, prompt: str = "") -> object:
    found = extract(param, Reply(text, prompt=prompt, now=NOW))
    return found.value if found.status == "filled" else None


@pytest.mark.parametrize("param", [NAME, VISITOR])
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("for Ann-Marie Cole", "Ann-Marie Cole"),
        ("my daughter Zoë Lambert can't come", "Zoë Lambert"),
        ("on the 16th at 11, Tom O'Shea, born 1 jan 2001", "Tom O'Shea"),
        ("Meera Nair, mobile 98450 12345", "Meera Nair"),
        ("to my landlord Peter Novak", "Peter Novak"),
        ("im priya", "priya"),
        ("I'm Bo", "Bo"),
        ("name okafor", "okafor"),
        ("hi, name lucy hart, a table for two", "lucy hart"),
        ("its carol. carol finch", "carol finch"),
    ],
)
def test_a_name_that_is_marked_is_taken_unasked(param: Param, text: str, name: str) -> None:
    assert said(param, text) == name


@pytest.mark.parametrize(
    "text",
    [
        "im late",
        "im stuck outside",
        "a room in New York please",
        "Good Morning, I need a taxi",
        "on Friday Morning",
        "from Great Portland Street",
        "My address is 9 Canal Street",
        "name of the game",
    ],
)
def test_a_state_a_place_or_a_day_is_no_name(text: str) -> None:
    assert said(NAME, text) is None


@pytest.mark.parametrize("text", ["yes ta", "ok well yes", "ta", "cheers", "correct", "no"])
@pytest.mark.parametrize("param", [NAME, VISITOR])
def test_an_agreement_is_no_name(param: Param, text: str) -> None:
    assert said(param, text, "What is your name?") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("send $50 to Ann", "Ann"),
        ("pay bob twenty bucks", "bob"),
        ("send 1,250.50 to Maria Lopez", "Maria Lopez"),
        ("pay the bill", None),
    ],
)
def test_whoever_is_paid_is_the_recipient(text: str, name: str | None) -> None:
    assert said(PAYEE, text) == name


def test_what_is_sent_to_a_place_names_nobody() -> None:
    assert (
        extract(PAYEE, Reply("send it to Paris please", others=[CITY], now=NOW)).status
        == "abstained"
    )


@pytest.mark.parametrize(
    ("text", "name"), [("my rabbit Clover is ill", "Clover"), ("He's called Monty", "Monty")]
)
def test_a_pet_is_named(text: str, name: str) -> None:
    assert said(PET, text) == name


@pytest.mark.parametrize("prompt", ["", "Which one?"])
@pytest.mark.parametrize(
    ("param", "text", "value"),
    [
        (ROOM, "I'm in room 412", 412),
        (ROOM, "sorry, room 154 not 145", 154),
        (ROOM, "two towels to room two hundred and seven", 207),
        (LOCKER, "locker 57, email a@example.com", 57),
        (FLOOR, "on the 3rd floor", 3),
        (WEIGHT, "a parcel of 3kg", 3),
        (PEOPLE, "for 6 ppl", 6),
        (MONTHS, "half a year, so six", 6),
        (HOURS, "2h", 2),
        (HOURS, "ah forget it", None),
        (PORTIONS, "2 cheeseburgers to room 509", 2),
        (ROOM, "22 Orchard Close", None),
    ],
)
def test_a_number_with_its_noun_or_unit_is_taken(
    prompt: str, param: Param, text: str, value: int | None
) -> None:
    assert said(param, text, prompt) == value


@pytest.mark.parametrize("text", ["second", "the second one", "2nd please"])
def test_a_place_in_an_order_answers_which(text: str) -> None:
    assert said(FLOOR, text, "Which floor?") == 2
    assert said(FLOOR, text) is None


@pytest.mark.parametrize(
    ("param", "text", "day"),
    [
        (DAY, "friday, the 27th of february", "2026-02-27"),
        (AHEAD, "friday, the 27th of february", "2027-02-27"),
        (DAY, "27 february", "2026-02-27"),
        (DAY, "27 january", "2027-01-27"),
        (DAMAGE, "27 february", "2026-02-27"),
        (DAMAGE, "the 27th", "2026-02-27"),
        (DAMAGE, "on friday", "2026-02-27"),
        (DAMAGE, "12/24", "2025-12-24"),
        (BORN, "9.9.99", "1999-09-09"),
        (LAST_DAY, "on friday", "2026-03-06"),
    ],
)
def test_the_weekday_and_what_is_asked_decide_the_year(param: Param, text: str, day: str) -> None:
    assert said(param, text, param.description) == day


@pytest.mark.parametrize(
    ("param", "text", "value"),
    [
        (WORTH, "value two hundred and fifty", 250),
        (WORTH, "worth 85", 85),
        (WORTH, "send 1,250.50 to Maria", 1250.5),
        (WORTH, "on 12.05", None),
        (WORTH, "room 412", None),
        (START, "6.15 in the evening", "18:15"),
        (PHONE, "my number is 0044 7700 900 456", "+447700900456"),
        (PHONE, "card 4111 1111 1111 1111", None),
        (ADDRESS, "Flat 3, 88 King's Road, Bristol", "Flat 3, 88 King's Road, Bristol"),
        (INJURED, "Hey, I'd like to work with a personal trainer", None),
        (INJURED, "I have no injuries", False),
    ],
)
def test_only_what_is_marked_is_taken_unasked(param: Param, text: str, value: object) -> None:
    assert said(param, text) == value


@pytest.mark.parametrize("text", ["2h", "2 hrs"])
def test_a_length_is_no_time_of_day(text: str) -> None:
    found = extract(START, Reply(text, prompt="From what time?", now=NOW))
    assert (found.status, found.choices) == ("abstained", ())


@pytest.mark.parametrize(
    ("text", "value"), [("no, not yet", False), ("But of course he is.", True)]
)
def test_not_yet_is_no(text: str, value: bool) -> None:
    assert said(VACCINATED, text, "Is it vaccinated?") is value


@pytest.mark.parametrize(
    "text",
    [
        "Cancel my Gym Membership",
        "My Samsung Galaxy is broken",
        "book Table Tennis",
        "Piano Lessons for a kid",
        "Blood Test please",
        "im unwell",
    ],
)
def test_a_thing_with_capitals_is_no_name(text: str) -> None:
    assert said(NAME, text) is None


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("the 20th, we're at my mums the week before", "2026-03-20"),
        ("the 20th, she is away the day after", "2026-03-20"),
        ("not the 20th, the day after", "2026-03-21"),
        ("not the 20th, i am free the day after", "2026-03-21"),
        ("not the 20th, we're at home the week after", "2026-03-27"),
    ],
)
def test_the_day_before_another_is_none_where_it_says_where_somebody_is(
    text: str, day: str
) -> None:
    assert said(DAY, text, "Which day?") == day


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("chicken pie please, just the one, same day", 1),
        ("only one please", 1),
        ("just one question, can i have pie", None),
        ("the small one please", None),
    ],
)
def test_just_the_one_is_a_count(text: str, count: int | None) -> None:
    assert said(PORTIONS, text) == count


@pytest.mark.parametrize(
    ("description", "text", "value"),
    [
        ("what kind of event", "A jumble sale for the scouts", "A jumble sale for the scouts"),
        ("which piece has a problem", "it's the tall white bookshelf", "the tall white bookshelf"),
    ],
)
def test_a_thing_with_its_article_is_an_answer(description: str, text: str, value: str) -> None:
    param = Param(name="thing", type=ParamType.TEXT, description=description, prompt="Which is it?")
    assert extract(param, Reply(text, prompt=param.prompt, now=NOW)).value == value
