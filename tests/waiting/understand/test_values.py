"""Each value of a message goes to the best parameter, and an ambiguous one to none."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from cpu_time import LITTLE, cpu_seconds

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.understand.likely_time import chosen, likely
from langmem_ext.waiting.understand.remainder import likely_values
from langmem_ext.waiting.understand.values import Reading, left_open, read_values

NOW = datetime(2026, 3, 4, 10, 15)


def param(name: str, kind: str, **more: Any) -> Param:
    return Param(name=name, type=ParamType(kind), prompt=f"Which {name}?", **more)


BOOKING = [
    param("day", "date", description="day of the booking"),
    param("time", "time", description="time of the booking"),
    param("people", "integer", description="number of people"),
    param("name", "person", description="name for the booking"),
]


def read(params: list[Param], text: str, **more: Any) -> dict[str, Any]:
    return {
        name: found.value for name, found in read_values(params, Reading(text, NOW, **more)).items()
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a table for 4 on friday at 19:30", {"people": 4, "day": "2026-03-06", "time": "19:30"}),
        ("table tonight at 9 for two people", {"people": 2, "day": "2026-03-04", "time": "21:00"}),
        ("4 people, my name is Ruth Lee", {"people": 4, "name": "Ruth Lee"}),
        ("asdf", {}),
    ],
)
def test_one_message_may_give_several_values(text: str, expected: dict[str, Any]) -> None:
    assert read(BOOKING, text) == expected


def test_an_allowed_value_is_nobody_beside_a_word_of_the_person() -> None:
    params = [
        param("sport", "enum", enum={"squash": [], "yoga": []}),
        param("name", "person", description="who books the court"),
    ]
    text = "Squash court, one hour, under Gwendolyn Pike."
    assert read(params, text) == {"sport": "squash", "name": "Gwendolyn Pike"}


@pytest.mark.parametrize("text", ["two weekend tickets please", "we want 2 weekend tickets"])
def test_how_many_there_are_and_of_which_kind_is_said_in_one_breath(text: str) -> None:
    params = [
        param("ticket", "enum", enum={"day ticket": [], "weekend ticket": []}),
        param("quantity", "integer", description="number of tickets"),
    ]
    assert read(params, text) == {"ticket": "weekend ticket", "quantity": 2}


def test_no_two_values_share_a_word() -> None:
    found = read_values(BOOKING, Reading("for 4 on the 4th at 4 pm", NOW))
    spans = sorted(extraction.span for extraction in found.values() if extraction.span)
    assert all(one[1] <= other[0] for one, other in zip(spans, spans[1:], strict=False))


def test_a_bare_value_is_the_answer_to_what_was_asked() -> None:
    assert read(BOOKING, "7", asked="people", prompt="How many people?") == {"people": 7}
    assert read(BOOKING, "Ruth", asked="name", prompt="Under which name?") == {"name": "Ruth"}


def test_a_date_goes_to_the_parameter_that_the_words_before_it_name() -> None:
    visit = [
        param("visit", "date", description="day of the visit"),
        param("birthday", "date", description="date of birth"),
    ]
    assert read(visit, "born 14 May 1982, visit on friday") == {
        "birthday": "1982-05-14",
        "visit": "2026-03-06",
    }


def test_as_many_values_as_parameters_are_taken_in_their_order() -> None:
    stay = [
        param("bring", "date", description="day one"),
        param("fetch", "date", description="day two"),
    ]
    assert read(stay, "friday and sunday") == {"bring": "2026-03-06", "fetch": "2026-03-08"}
    assert read(stay, "friday") == {}, "it could be either"


def test_an_hour_is_read_by_what_the_request_is_about() -> None:
    clock = [param("time", "time", description="time")]
    assert read(clock, "at half past two", about="book a lesson") == {"time": "14:30"}
    assert read(clock, "at nine", about="bring a car for repair", asked="time", prompt="When?") == {
        "time": "09:00"
    }
    assert read(clock, "at nine", about="book a table", asked="time", prompt="When?") == {
        "time": "21:00"
    }
    reading = Reading("at seven", NOW, about="book a lesson", asked="time", prompt="When?")
    assert read_values(clock, reading) == {}
    assert left_open(clock, reading, {})["time"].choices == ("07:00", "19:00")


def test_a_likely_hour_is_none_where_both_are() -> None:
    assert likely(("07:00", "19:00"), "a lesson") is None
    assert likely(("19:00", "07:00"), "a table for two") == "19:00"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("in the evening", "19:00"),
        ("morning please", "07:00"),
        ("pm", "19:00"),
        ("am", "07:00"),
        ("the second", "19:00"),
        ("the earlier one", "07:00"),
        ("hm", None),
    ],
)
def test_one_of_two_readings_is_chosen_in_any_words(text: str, value: str | None) -> None:
    assert chosen(text, ("07:00", "19:00")) == value


def test_a_truth_value_is_not_read_from_a_sentence_about_something_else() -> None:
    flags = [
        param(
            "injured",
            "boolean",
            description="whether there is an injury the trainer should know of",
        )
    ]
    assert read(flags, "Hey, I'd like to work with a personal trainer") == {}


SORE = [
    param("place", "text", description="where it hurts"),
    param("at", "time", description="time of the session"),
]


def test_a_free_text_is_none_where_the_message_holds_but_values_of_others() -> None:
    asked = {"asked": "place", "prompt": "Where does it hurt?"}
    assert read(SORE, "4pm, or at 16:00", **asked) == {"at": "16:00"}
    assert read(SORE, "my left knee hurts", **asked) == {"place": "my left knee hurts"}


@pytest.mark.parametrize(("about", "time"), [("move a session", None), ("book a session", "10:00")])
def test_what_a_request_moves_is_no_new_time(about: str, time: str | None) -> None:
    read_now = read([param("at", "time")], "S-100 at 10am but I can't make that", about=about)
    assert read_now.get("at") == time


VISIT = [
    param("pet", "name", description="name of the pet"),
    param("day", "date", description="day of the visit"),
    param("phone", "phone", description="telephone number"),
]
TOUR = [
    param("city", "place", description="where the tour goes"),
    param("day", "date", description="day of the tour"),
    param("people", "integer", description="how many people"),
]
LOST = [
    param("item", "text", description="what was lost"),
    param("spot", "text", description="where it was lost"),
    param("day", "date", description="day it was lost"),
]
REPAIR = [
    param("fault", "text", description="what is wrong"),
    param("address", "address", description="address of the house"),
]


def likely_in(params: list[Param], text: str, about: str) -> dict[str, Any]:
    reading = Reading(text, NOW, about=about)
    read = read_values(params, reading)
    found = likely_values(params, reading, read, [one.name for one in params])
    assert all(one.choices == (one.value,) for one in found.values())
    return {name: one.value for name, one in found.items()}


@pytest.mark.parametrize(
    ("params", "text", "expected"),
    [
        (VISIT, "can you see luna tomorrow", {"pet": "luna"}),
        (TOUR, "we would love to see Bath next saturday", {"city": "Bath"}),
        (VISIT, "Could Dr Brown see Otis on Monday?", {}),
        (VISIT, "need the vet for my dog, 07700 900123", {}),
        (TOUR, "tour of rome for 4 on friday", {"city": "rome"}),
        (TOUR, "norway, 14 march, 3 people", {"city": "norway"}),
        (TOUR, "a tour for my parents please", {}),
        (LOST, "left my blue rucksack on the tram", {"spot": "on the tram"}),
        (LOST, "have you found a phone?", {"item": "phone"}),
        (REPAIR, "the oven wont heat up, 12 Vale Road", {"fault": "the oven wont heat up"}),
        (REPAIR, "can I book a repair", {}),
    ],
)
def test_what_is_left_of_a_request_may_be_the_value_of_the_one_open_parameter(
    params: list[Param], text: str, expected: dict[str, Any]
) -> None:
    about = "Book a visit, a tour or a repair; report a lost thing; can you see my dog, the vet"
    assert likely_in(params, text, about) == expected


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("dropped it down the stairs, screens smashed. can I bring it in?", "screens smashed"),
        ("i also have a bag to bring you, the zip is broken", "the zip is broken"),
        ("hi, heel came off my boots", "heel came off my boots"),
        ("boots with a broken zip for friday", "a broken zip"),
        ("the tap drips and the hose is split, can you come", "the hose is split"),
        (
            "it keeps beeping and the screen is cracked",
            "it keeps beeping and the screen is cracked",
        ),
        ("my boots are broken", None),
        ("we have stopped by twice", None),
        ("I need my cracked screen fixed", None),
    ],
)
def test_what_is_wrong_is_told_in_a_few_words_of_a_request(text: str, fault: str | None) -> None:
    params = [
        param("item", "enum", description="what is repaired", enum={"boots": [], "bag": []}),
        REPAIR[0],
    ]
    assert likely_in(params, text, "Book a repair").get("fault") == fault


def test_what_was_lost_is_no_place_where_it_was() -> None:
    assert read(LOST, "lost a grey umbrella on monday")["item"] == "a grey umbrella"
    assert "spot" not in read(LOST, "left my blue rucksack on the tram")


def test_what_is_left_goes_to_neither_of_two_alike() -> None:
    owner = param("owner", "person", description="who brings it")
    assert likely_in([*VISIT, owner], "could Otto come on friday", "Book a visit") == {}


def test_an_answer_that_is_an_address_is_no_thing() -> None:
    params = [param("thing", "text", description="what is stored"), REPAIR[1]]
    found = read(params, "14 hazel close", asked="thing", prompt="Which thing?")
    assert found == {"address": "14 hazel close"}


LESSON = [
    param("day", "date", description="day of the lesson"),
    param("learner", "person", description="name of the learner"),
    param("phone", "phone", description="telephone number"),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a lesson on friday please, jonah petrov", {"learner": "jonah petrov"}),
        ("a lesson for maya grant on friday?", {"learner": "maya grant"}),
        ("lesson on friday. its for maya kelly", {"learner": "maya kelly"}),
        ("lesson on friday, jonah petrov, 07700 900123", {"learner": "jonah petrov"}),
        ("a lesson on friday, really urgent", {}),
        ("a lesson on friday, see you", {}),
        ("a lesson on friday, in the evening", {}),
        ("maya kelly, jonah petrov, lesson friday", {}),
    ],
)
def test_two_small_words_set_apart_may_be_the_one_person(
    text: str, expected: dict[str, Any]
) -> None:
    assert likely_in(LESSON, text, "Book a lesson in the evening") == expected


def test_a_sentence_that_says_no_to_one_thing_holds_other_values() -> None:
    params = [
        param("stage", "text", description="name of the stage"),
        param("days", "integer", description="how many days"),
        param("lights", "boolean", description="whether lights are needed"),
    ]
    found = read(params, "setup for the Moonlight, 3 days, no lights needed")
    assert found == {"stage": "Moonlight", "days": 3, "lights": False}


TENT = [
    param("band", "text", description="name of the band"),
    param("length", "number", description="length of the stage in metres"),
    param("day", "date", description="day of the concert"),
    param("leader", "person", description="name of the leader"),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Red Lanterns", {"band": "The Red Lanterns"}),
        ("The Red Lanterns, 6 metres", {"band": "The Red Lanterns", "length": 6}),
        ("6 metres, no wait, 7 with the ramp", {"length": 7}),
        ("Apollo 13", {"band": "Apollo 13"}),
        ("the lanterns, coming on friday", {"band": "the lanterns", "day": "2026-03-06"}),
        ("a stage for the Lanterns, 6 metres, friday", {"band": "Lanterns", "length": 6}),
    ],
)
def test_the_name_of_a_thing_is_what_is_left_beside_other_values(
    text: str, expected: dict[str, Any]
) -> None:
    found = read(TENT, text, asked="band", prompt="What is the name of the band?")
    assert found | expected == found
    assert "leader" not in found


def test_a_long_message_without_values_is_searched_for_a_person_in_little_time() -> None:
    text = "what is it? how much? can you teach it? " * 250
    reading = Reading(text, NOW, about="Book a lesson")
    assert cpu_seconds(lambda: likely_values(LESSON, reading, {}, ["learner"])) < LITTLE


@pytest.mark.parametrize(
    ("text", "seat"),
    [
        ("I need a lift for my wife and me. she's 2 so we need a child seat", True),
        ("a lift with a child seat please", True),
        ("a lift, no child seat needed", False),
        ("a lift for two adults and a child", None),
    ],
)
def test_a_truth_value_is_told_by_its_thing_and_not_by_whom_it_is_for(
    text: str, seat: bool | None
) -> None:
    params = [param("child_seat", "boolean", description="a child seat is needed")]
    assert read(params, text).get("child_seat") is seat


FLOWERS = [
    param("day", "date", description="day of the funeral"),
    param("card", "text", description="words on the card"),
    param("phone", "phone", description="phone number"),
    param("name", "person", description="name of the customer"),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "flowers for friday. card: Sleep tight Grandad. my number is 07700 900671",
            {"day": "2026-03-06", "card": "Sleep tight Grandad", "phone": "07700900671"},
        ),
        (
            "a card that says: Happy birthday Ann. Love from us. deliver on friday",
            {"card": "Happy birthday Ann. Love from us", "day": "2026-03-06"},
        ),
        (
            "the card should say Happy 5th anniversary, love Jo",
            {"card": "Happy 5th anniversary, love Jo"},
        ),
        (
            "a spray saying Sleep well Tom, love Jo, for friday please",
            {"card": "Sleep well Tom, love Jo", "day": "2026-03-06"},
        ),
    ],
)
def test_a_text_that_is_named_keeps_its_days_and_people_and_leaves_the_rest(
    text: str, expected: dict[str, Any]
) -> None:
    assert read(FLOWERS, text) == expected


def test_a_question_that_gives_another_value_is_no_story() -> None:
    params = [
        Param(name="fault", type=ParamType.TEXT, prompt="What is wrong with it?"),
        param("express", "boolean", description="express repair"),
    ]
    found = read(params, "can u do it express tho", asked="fault", prompt="What is wrong with it?")
    assert found == {"express": True}


def test_a_truth_value_is_told_by_how_often_the_question_says() -> None:
    monthly = Param(name="monthly", type=ParamType.BOOLEAN, prompt="Every month?")
    assert read([monthly], "I'd like to give 20 every month") == {"monthly": True}
    assert read([monthly], "I'd like to give 20") == {}


def test_the_one_number_that_is_left_may_be_the_one_that_is_needed() -> None:
    amount = param("amount", "money", description="amount to give", bounds=(1, 500))
    donor = param("donor", "person", description="who gives")

    def left(text: str) -> dict[str, Any]:
        found = likely_values([amount, donor], Reading(text, NOW), {}, ["amount", "donor"])
        return {name: claim.value for name, claim in found.items()}

    assert left("can i give something? 15") == {"amount": 15}
    assert left("can i give something? 15 or 20") == {}
    assert left("can i give something? 1500") == {}
    assert left("can i give something for A-15") == {}


def test_a_text_that_nobody_asked_for_is_no_allowed_value_of_another() -> None:
    hall = [
        param("room", "enum", enum={"garden room": [], "main hall": []}),
        Param(name="purpose", type=ParamType.TEXT, prompt="What is it for?"),
    ]
    assert read(hall, "a key please, it's for the garden room") == {"room": "garden room"}
    party = {"room": "garden room", "purpose": "a party"}
    assert read(hall, "it's for a party in the garden room") == party


def test_what_a_thing_is_called_is_the_answer_and_no_person() -> None:
    salon = [
        Param(name="salon", type=ParamType.TEXT, prompt="What is the salon called?"),
        param("owner", "person", description="owner of the salon"),
    ]
    asked = {"asked": "salon", "prompt": "What is the salon called?"}
    for text in ("its called Snips", "the salon is called Snips", "its name is Snips"):
        assert read(salon, text, **asked) == {"salon": "Snips"}
    both = {"salon": "Top Knot", "owner": "Ann Lee"}
    assert read(salon, "it's called Top Knot and the owner is Ann Lee", **asked) == both
    assert read(salon, "the owner is called Ann Lee", **asked) == {"owner": "Ann Lee"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("four tubs", {"quantity": 4}),
        ("3 boxes of nitrile gloves", {"quantity": 3, "product": "nitrile gloves"}),
        ("bleach powder, four tubs", {"quantity": 4, "product": "bleach powder"}),
        ("the 9% peroxide", {"product": "the 9% peroxide"}),
    ],
)
def test_a_count_with_its_unit_is_no_thing_where_a_count_is_open(
    text: str, expected: dict[str, Any]
) -> None:
    product = Param(name="product", type=ParamType.TEXT, prompt="Which product is it?")
    quantity = Param(name="quantity", type=ParamType.INTEGER, prompt="How many?")
    asked = {"asked": "product", "prompt": "Which product is it?"}
    assert read([product, quantity], text, **asked) == expected


def test_what_is_counted_is_read_unasked_and_to_be_confirmed() -> None:
    product = Param(name="product", type=ParamType.TEXT, prompt="Which product is it?")
    quantity = Param(name="quantity", type=ParamType.INTEGER, prompt="How many?")
    reading = Reading("need 24 tubes of 7/1 ash blonde for tuesday pls", NOW)
    params = [product, quantity]
    left = left_open(params, reading, read_values(params, reading))
    assert left["product"].choices == ("7/1 ash blonde",)


def test_a_text_that_is_a_name_is_what_is_left_in_capitals() -> None:
    company = param("company", "text", description="name of the business")
    found = likely_values([company], Reading("an ad for Brindle Roofing", NOW), {}, ["company"])
    assert found["company"].value == "Brindle Roofing"


TOLD = [
    Param(name="topic", type=ParamType.TEXT, prompt="What is it about?", description="what it is"),
    Param(name="fault", type=ParamType.TEXT, prompt="What is wrong with it?"),
    Param(name="gear", type=ParamType.TEXT, prompt="Which tool do you need?"),
    Param(name="feedback", type=ParamType.TEXT, prompt="What would you like to tell us?"),
    param("day", "date", description="day of the visit"),
    param("owner", "person", description="who brings it"),
]


def answer_to(name: str, text: str) -> dict[str, Any]:
    [asked] = [one for one in TOLD if one.name == name]
    params = [asked, *(one for one in TOLD if one.type is not ParamType.TEXT)]
    return read(params, text, asked=name, prompt=asked.prompt)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("topic", "it's about this rash on my arm", {"topic": "this rash on my arm"}),
        ("topic", "about my knee", {"topic": "my knee"}),
        ("topic", "it's to do with my pension", {"topic": "my pension"}),
        ("fault", "about half a minute in it dies", {"fault": "about half a minute in it dies"}),
        ("fault", "about half of it is wet", {"fault": "about half of it is wet"}),
        ("fault", "can we do friday instead, same time", {"day": "2026-03-06"}),
        ("fault", "actually could we make it friday", {"day": "2026-03-06"}),
        ("fault", "thats fair. friday", {"day": "2026-03-06"}),
        ("fault", "ok thats fine", {}),
        ("fault", "the zip is broken. thats a pity", {"fault": "the zip is broken"}),
        ("fault", "btw?", {}),
        ("gear", "lovely", {}),
        ("gear", "fair enough", {}),
        ("feedback", "it was very expensive", {"feedback": "it was very expensive"}),
    ],
)
def test_a_text_is_no_remark_no_lead_and_no_other_wish(
    name: str, text: str, expected: dict[str, Any]
) -> None:
    assert answer_to(name, text) == expected
