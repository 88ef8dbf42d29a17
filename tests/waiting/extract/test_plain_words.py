"""Plain words say what they say: values that are easily misread, each with the words beside it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract import Reply, extract, find
from langmem_ext.waiting.understand.values import Reading, read_values, values_of

NOW = datetime(2026, 3, 4, 10, 15)


def param(name: str, kind: str, **fields: Any) -> Param:
    return Param(name=name, type=ParamType(kind), **fields)


HELMET = param("own_helmet", "boolean", prompt="Does he have a helmet of his own?")
HIRE = param("hire_boots", "boolean", prompt="Do you need to hire boots?")
NO_WATER = param("no_water", "boolean", prompt="Are you without any water?")
WITH_FOOD = param("with_food", "boolean", prompt="Is it taken with food?")
CRATES = param("crates", "integer", description="number of crates", prompt="How many crates?")
PHOTO = param("photo", "integer", description="number of the photo", prompt="Which photo number?")
WEEKS = param("weeks", "integer", description="weeks between two visits", prompt="How often?")
LOAN = param("loan", "duration", prompt="For how long?")
FILE = param("file", "identifier", pattern=r"[A-Z]{2}/\d{3}", prompt="Which file?")
INN = param("inn", "place", prompt="Which inn are you staying at?")
COLOUR = param("colour", "text", description="colour of the door", prompt="In which colour?")
PARCEL_TO = param("parcel_to", "address", prompt="Where shall we send it?")
VISIT = param("visit", "datetime", prompt="On which day and at what time?", future=True)
PLAY = param("play_name", "text", prompt="Which play would you like?")
UNIT = "Unit 5, Quay Wharf, Leeds LS10 1JF"
FORGE = "The Old Forge, Mill Lane, Bredon GL20 7LA"
LIMIT = param("limit", "money", description="the most it may cost")


@pytest.mark.parametrize(
    ("asked", "text", "value"),
    [
        (HELMET, "he hasnt got his own helmet btw", False),
        (HELMET, "he hasn't got his own helmet", False),
        (HIRE, "we have our own boots", False),
        (HIRE, "we need boots, we don't have our own", True),
        (NO_WATER, "the water still works", False),
        (NO_WATER, "we have no water at all", True),
        (WITH_FOOD, "always with food or she won't touch it", True),
        (PHOTO, "number 28", 28),
        (WEEKS, "you come every 4 weeks at the moment, could we make it every 8?", 8),
        (LOAN, "3 more days if thats ok", "P3D"),
        (LOAN, "they say 6 weeks. let's do 8 weeks to be safe", "P56D"),
        (INN, "the Saracen's Head", "Saracen's Head"),
        (COLOUR, "Duck egg blue", "Duck egg blue"),
    ],
)
def test_an_answer_is_read_as_it_was_meant(asked: Param, text: str, value: Any) -> None:
    read = extract(asked, Reply(text, prompt=asked.prompt, now=NOW))
    assert (read.status, read.value) == ("filled", value)


@pytest.mark.parametrize(
    ("wanted", "text", "value"),
    [
        (CRATES, "need 3 grand crates for a client", 3),
        (LOAN, "can we keep it for another week please?", "P7D"),
        (LOAN, "can we come another day?", None),
        (FILE, "please get QS/214 out for me", "QS/214"),
        (COLOUR, "thirty gates in burgundy for the cricket club", "burgundy"),
        (COLOUR, "thirty gates for the cricket club", None),
        (PLAY, "two seats, and the play we chose is Old Times", "Old Times"),
        (PLAY, "two seats, my name is Ann Lee", None),
        (LIMIT, "please dont spend more than 400 on it", 400),
        (PARCEL_TO, f"it goes to {UNIT}", UNIT),
        (PARCEL_TO, f"to him, if you would: {FORGE}", FORGE),
    ],
)
def test_a_message_gives_a_value_that_nobody_asked_for(
    wanted: Param, text: str, value: Any
) -> None:
    read = find(wanted, text, now=NOW)
    assert read.value == value


def test_an_hour_of_a_day_leaves_its_half_open_and_not_the_year() -> None:
    read = extract(VISIT, Reply("Saturday 21 March at 11", prompt=VISIT.prompt, now=NOW))
    assert read.choices == ("2026-03-21T11:00", "2026-03-21T23:00")


def test_a_length_of_time_from_a_day_is_no_day() -> None:
    start = param("start", "date", description="first day", future=True)
    read = read_values([LOAN, start], Reading("3 weeks from 31 March", NOW))
    assert values_of(read) == {"loan": "P21D", "start": "2026-03-31"}
    assert find(start, "3 weeks from friday", now=NOW).value == "2026-03-27"


def test_what_is_inside_an_address_is_nothing_else() -> None:
    building = param("building", "enum", enum={"church": (), "chimney": ()})
    owner = param("owner", "person", description="name of the owner")
    text = "price for a chimney please, 6 Church Lane, Wirksworth DE4 4EU, for Greta Lund"
    read = read_values([building, CRATES, owner, PARCEL_TO], Reading(text, NOW))
    assert values_of(read) == {
        "building": "chimney",
        "owner": "Greta Lund",
        "parcel_to": "6 Church Lane, Wirksworth DE4 4EU",
    }


def test_the_longer_of_two_readings_of_the_same_words_is_meant() -> None:
    show = param("show", "enum", enum={"Night Sky Tonight": (), "Black Holes": ()})
    day = param("day", "date", future=True)
    read = read_values([show, day], Reading("I'd like to see Night Sky Tonight on the 21st", NOW))
    assert values_of(read) == {"show": "Night Sky Tonight", "day": "2026-03-21"}
