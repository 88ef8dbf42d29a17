"""Numbers are read as what they count: people, times, sums, ages, and nothing else."""

from __future__ import annotations

from datetime import datetime

import pytest

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract import Reply, extract, find

NOW = datetime(2024, 5, 15, 10, 30)

PEOPLE = Param(name="people", type=ParamType.INTEGER, description="number of people")
BAGS = Param(name="quantity", type=ParamType.INTEGER, description="number of bags")
AGE = Param(name="age", type=ParamType.INTEGER, description="age of the child")
HOURS = Param(name="rental_hours", type=ParamType.NUMBER)
WHOLE_HOURS = Param(
    name="hours", type=ParamType.INTEGER, description="how many hours the boat is rented"
)
MINUTES = Param(
    name="duration", type=ParamType.INTEGER, description="length of the meeting in minutes"
)
AMOUNT = Param(name="amount", type=ParamType.MONEY)
PHONE = Param(name="phone", type=ParamType.PHONE)


def answer(param: Param, text: str, prompt: str = "How many?") -> Extraction:
    return extract(param, Reply(text, prompt=prompt, now=NOW))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a table for 4 friday 7pm", 4),
        ("a table for 2 tonight at 9", 2),
        ("table friday 7pm party of 4", 4),
        ("for two, please", 2),
        ("dinner for 6 on the 12th", 6),
        ("at 8 for 4", 4),
        ("for the two of us", 2),
        ("just me and my wife", 2),
        ("4 adults and 2 kids", 6),
        ("we are 5", 5),
        ("there will be six", 6),
        ("just me", 1),
        ("12 Mill Lane, for 3", 3),
        ("saturday 11am, on my own", 1),
        ("a table for saturday with my wife", 2),
    ],
)
def test_a_message_that_answers_nothing_marks_how_many_people(text: str, value: int) -> None:
    assert find(PEOPLE, text, now=NOW).value == value


@pytest.mark.parametrize(
    "text",
    [
        "for 4 days",
        "for 4 pm",
        "for 2 hours",
        "for 20 bucks",
        "for 12 Mill Lane",
        "table 4",
        "call 07700 900123",
        "3 dogs",
        "for 5k",
        "at 8",
    ]
    + ["my 7 year old daughter", "leave me alone", "for 2 rooms"],
)
def test_a_message_that_answers_nothing_does_not_count_people_by_other_numbers(text: str) -> None:
    assert find(PEOPLE, text, now=NOW).status == "abstained"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("both", 2),
        ("couple of us", 2),
        ("me + 1", 2),
        ("a couple with our kid", 3),
        ("my nan, me and 2 kids", 4),
        ("my 7 year old and me", 2),
        ("me, my wife and our 3 year old", 3),
        ("3 friends, me and my parents", 6),
        ("14 plus one highchair", 14),
        ("we are 5, no 6", 6),
        ("4 people, sorry, 5", 5),
        ("with our grandparents visiting, there are 6 adults", 6),
    ],
)
def test_people_are_counted_as_they_are_named(text: str, value: int) -> None:
    assert answer(PEOPLE, text).value == value


def test_people_are_no_hours() -> None:
    for text in ("we're 2 people", "2 adults and a child"):
        assert answer(WHOLE_HOURS, text, "For how many hours?").value is None, text
    assert answer(WHOLE_HOURS, "2 adults, for 3 hours", "For how many hours?").value == 3


@pytest.mark.parametrize("text", ["at 8", "12 Mill Lane", "07700 900123", "my 7 year old", "8 pm"])
@pytest.mark.parametrize("param", [PEOPLE, BAGS, AMOUNT], ids=lambda param: param.name)
def test_a_number_of_something_else_is_no_answer(param: Param, text: str) -> None:
    assert answer(param, text).value in (None, 1)


@pytest.mark.parametrize(
    ("text", "value"),
    [("my 7 year old", 7), ("she's seven years old", 7), ("aged 12", 12), ("9", 9)],
)
def test_an_age_is_one_where_it_is_wanted(text: str, value: int) -> None:
    assert answer(AGE, text, "How old?").value == value


@pytest.mark.parametrize(
    ("text", "hours", "minutes"),
    [
        ("an hour", 1, 60),
        ("hour and a half", 1.5, 90),
        ("an hour and a half", 1.5, 90),
        ("two and a half hours", 2.5, 150),
        ("half an hour", 0.5, 30),
        ("three quarters of an hour", 0.75, 45),
        ("90 minutes", 1.5, 90),
        ("1 hour 30 minutes", 1.5, 90),
        ("1h30", 1.5, 90),
        ("2.5 hours", 2.5, 150),
        ("a couple of hours", 2, 120),
        ("for 45 min please", 0.75, 45),
    ],
)
def test_a_length_of_time_is_in_the_parameters_unit(text: str, hours: float, minutes: int) -> None:
    assert answer(HOURS, text, "How long?").value == hours
    assert answer(MINUTES, text, "How long?").value == minutes
    assert answer(WHOLE_HOURS, text, "How long?").value == (
        hours if isinstance(hours, int) else None
    )
    assert find(HOURS, f"rent me a boat, {text}", now=NOW).value == hours


@pytest.mark.parametrize(
    ("text", "value"),
    [("twenty bucks", 20), ("50 quid", 50), ("20 dollars, no, 30", 30), ("1500", 1500)],
)
def test_a_sum_is_read_as_it_is_said(text: str, value: int) -> None:
    assert answer(AMOUNT, text, "How much?").value == value


@pytest.mark.parametrize("text", ["what? no, 87654321", "87654321", "0123", "at 5"])
def test_digits_that_number_something_are_no_sum(text: str) -> None:
    assert answer(AMOUNT, text, "How much?").status != "filled"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("07700 900123", "07700900123"),
        ("call me on 020 7946 0958", "02079460958"),
        ("555-0147", "5550147"),
        ("my number is 555 0147", "5550147"),
        ("+44 7700 900123", "+447700900123"),
        ("(415) 555-2671", "+14155552671"),
    ],
)
def test_a_local_telephone_number_is_its_digits(text: str, value: str) -> None:
    assert answer(PHONE, text, "Your number?").value == value
    assert find(PHONE, text, now=NOW).value == value


@pytest.mark.parametrize("text", ["12345", "2024-05-01", "$555-0147", "555 0147 is the order"])
def test_other_digits_are_no_telephone_number(text: str) -> None:
    assert find(PHONE, text, now=NOW).status == "abstained"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("25ish", 25),
        ("x2", 2),
        ("a pair", 2),
        ("none at all", 0),
        ("no, no bags", 0),
        ("another one please", 1),
        ("just a bag", 1),
        ("three, oh and one for mum so four", 4),
        ("3 or 4, say 4", 4),
    ],
)
def test_an_answer_counts_without_a_plain_number(text: str, value: int) -> None:
    assert answer(BAGS, text, "How many bags?").value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("about two and a half thousand", 2500),
        ("2 and a half grand", 2500),
        ("two grand", 2000),
        ("a grand and a half", 1500),
        ("half a million", 500_000),
        ("a quarter of a million pounds", 250_000),
        ("a couple of hundred quid", 200),
        ("two and a half", 2.5),
        ("2½ thousand", 2500),
        ("five and three quarters", 5.75),
        ("a few hundred", None),
        ("several thousand pounds", None),
    ],
)
def test_halves_and_multiples_in_words_are_numbers(text: str, value: float | None) -> None:
    assert answer(AMOUNT, text, "How much?").value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("just little old me", 1),
        ("me and the dog", 1),
        ("me, my mum and our cat", 2),
        ("me and the kids", None),
        ("with a child seat", None),
    ],
)
def test_an_animal_is_nobody_to_be_counted(text: str, value: int | None) -> None:
    assert answer(PEOPLE, text, "How many people?").value == value


def test_none_and_a_single_one_count_only_where_that_was_asked() -> None:
    assert find(BAGS, "none", now=NOW).status == "abstained"
    assert find(BAGS, "just a bag", now=NOW).status == "abstained"
    assert answer(PEOPLE, "a bag", "How many people?").status == "abstained"


def test_the_ground_floor_is_number_zero() -> None:
    floor = Param(name="floor", type=ParamType.INTEGER, description="which floor")
    assert answer(floor, "ground floor, no lift", "Which floor?").value == 0


LOCKERS = Param(name="how_many", type=ParamType.INTEGER, description="how many lockers")
PAY_DAY = Param(name="pay_day", type=ParamType.INTEGER, description="day of the month it is paid")
PUPIL_AGE = Param(name="age", type=ParamType.INTEGER, description="age of the pupil")
WEIGHT = Param(name="weight", type=ParamType.NUMBER, description="weight in kilograms")
REFUND = Param(name="refund", type=ParamType.MONEY, prompt="How much do you want back?")


@pytest.mark.parametrize(
    ("param", "text", "value"),
    [
        (LOCKERS, "two hours or so", None),
        (LOCKERS, "3 kilos each", None),
        (LOCKERS, "can we have lockers for friday, 2 of them", 2),
        (PAY_DAY, "my pension comes late, so the 22nd", 22),
        (PUPIL_AGE, "that's for Nadia, shes 7", 7),
        (PUPIL_AGE, "I'm 10 minutes away", None),
        (WEIGHT, "four and a half kilos", 4.5),
        (PEOPLE, "just the one, me", 1),
        (PEOPLE, "3 tix for the matinee", 3),
    ],
)
def test_what_a_number_counts_decides_whose_it_is(
    param: Param, text: str, value: float | None
) -> None:
    assert answer(param, text, "How many?").value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("it was 90 and they kept 20, so I want 70", 70),
        ("45, no that was the other shop, 54", 54),
        ("250, hang on that was the one with the case, mine was 199", 199),
    ],
)
def test_of_several_sums_the_one_that_is_meant_counts(text: str, value: int) -> None:
    assert answer(REFUND, text, "How much do you want back?").value == value


MODEL = Param(
    name="model_year", type=ParamType.INTEGER, description="year the car was built",
    bounds=(1950, 2030),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a 2015 estate, 40000 miles on it", 2015),
        ("my 2019 one needs a service on 12 march 2026", 2019),
        ("2021", 2021),
        ("last year's model", 2023),
        ("we moved here last year", None),
        ("it has done 2,015 miles", None),
        ("code 2015-77", None),
    ],
)
def test_a_year_of_the_calendar_is_read_in_any_message(text: str, value: int | None) -> None:
    assert find(MODEL, text, now=NOW).value == value


def test_a_number_of_years_is_no_year_of_the_calendar() -> None:
    years = Param(name="years", type=ParamType.INTEGER, description="how many years it is leased")
    assert find(years, "a 2015 estate", now=NOW).value is None


TILES = Param(
    name="tiles", type=ParamType.INTEGER, description="how many pieces", prompt="How many?"
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("the wall takes 300 but two hundred will do", 200),
        ("we had 90 last time, 60 is enough", 60),
        ("a dozen", 12),
        ("two dozen", 24),
        ("300 or 400 would be fine", None),
    ],
)
def test_of_two_numbers_the_one_that_will_do_is_meant(text: str, value: int | None) -> None:
    assert answer(TILES, text).value == value


def test_what_will_do_of_something_else_is_not_counted() -> None:
    assert answer(PEOPLE, "we are 3 people, 2 rooms will do").value == 3


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("can you raise my order to a hundred and twenty?", 120),
        ("half a dozen please", 6),
        ("250", 250),
        ("12", None),
        ("make it 7", None),
        ("ring me at 250 High Street", None),
    ],
)
def test_a_number_without_a_noun_counts_for_the_only_count(text: str, value: int | None) -> None:
    assert find(TILES, text, now=NOW).value == value


def test_people_that_another_parameter_counts_are_not_counted_twice() -> None:
    seniors = Param(name="seniors", type=ParamType.INTEGER, description="number of seniors")
    adults = Param(name="adults", type=ParamType.INTEGER, description="number of adults")
    text = "entry for tomorrow, three adults"
    assert find(adults, text, now=NOW, others=[seniors]).value == 3
    assert find(seniors, text, now=NOW, others=[adults]).value is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no wait, she only pays 250 now", 250),
        ("please transfer 300", 300),
        ("we send 20 postcards", None),
        ("send 3", None),
    ],
)
def test_a_sum_follows_a_verb_of_paying(text: str, value: float | None) -> None:
    assert find(AMOUNT, text, now=NOW).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("one person, my dad", 1),
        ("two people, my wife and me", 2),
        ("three of us, me, my wife and our son", 3),
        ("2 adults, 2 kids", 4),
        ("me, my bro and his gf", 3),
        ("me n my mate", 2),
        ("just my dad", 1),
        ("there were 6 of us last time but now its 5", 5),
        ("7 isn't enough, we'll be 9", 9),
    ],
)
def test_people_who_are_named_behind_their_number_are_those(text: str, value: int) -> None:
    assert answer(PEOPLE, text).value == value


BIKES = Param(name="bikes", type=ParamType.INTEGER, description="number of bikes")


@pytest.mark.parametrize(
    "text", ["no bikes, we're coming by bus", "none, we walk", "we won't bring any"]
)
def test_none_may_be_explained(text: str) -> None:
    assert answer(BIKES, text, "How many bikes?").value == 0


BEDROOMS = Param(name="bedrooms", type=ParamType.INTEGER, description="number of bedrooms")


@pytest.mark.parametrize(
    "text", ["a 2 bed to rent", "a two-bed flat", "2 bed 1 bath", "two bedder"]
)
def test_a_home_is_told_by_its_beds(text: str) -> None:
    assert find(BEDROOMS, text, now=NOW).value == 2


WIDTH = Param(name="width", type=ParamType.NUMBER, description="width in cm")
HEIGHT = Param(name="height", type=ParamType.NUMBER, description="height in cm")


@pytest.mark.parametrize(
    ("param", "text", "value"),
    [
        (WEIGHT, "600 g of sausages", 0.6),
        (WEIGHT, "half a kilo", 0.5),
        (WEIGHT, "a kilo and a half", 1.5),
        (WEIGHT, "1.5 kg", 1.5),
        (WIDTH, "its 92.5 wide", 92.5),
        (WIDTH, "140 wide and 110 high", 140),
        (HEIGHT, "140 wide and 110 high", 110),
        (WIDTH, "1.2 m wide", 120),
        (WIDTH, "2 metres tall", None),
        (HEIGHT, "2 metres tall", 200),
    ],
)
def test_a_measure_is_in_the_parameters_own_unit(
    param: Param, text: str, value: float | None
) -> None:
    assert find(param, text, now=NOW).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("25 phones at 199 each", 199),
        ("12 of them at 8 each", 8),
        ("at 12.50 per box", 12.5),
        ("see you at 8", None),
        ("8 each of the red and the blue", None),
    ],
)
def test_a_sum_is_what_one_of_several_costs(text: str, value: float | None) -> None:
    assert find(AMOUNT, text, now=NOW).value == value


def test_a_sum_that_is_not_enough_is_not_meant() -> None:
    assert answer(AMOUNT, "300 isnt enough, id need 600", "How much?").value == 600


@pytest.mark.parametrize(
    ("text", "value"), [("ordered two lamps", None), ("1100 a month tops", 1100), ("65", 65)]
)
def test_what_counts_things_is_no_sum(text: str, value: int | None) -> None:
    assert answer(AMOUNT, text, "How much?").value == value


def test_a_lot_is_no_number_of_things() -> None:
    lot = Param(name="lot", type=ParamType.INTEGER, description="number of the lot")
    assert find(lot, "make it 650", now=NOW).value is None
    assert find(lot, "lot 87", now=NOW).value == 87


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a parcel to Leeds, 1.2 kg, insured for 400", 400),
        ("please have it insured for up to 250 and send it to Hull", 250),
        ("its valued at about 90", None),
        ("insured for 2 years", None),
        ("i need it insured for the 12th", None),
        ("a parcel for 12 Tannery Row", None),
    ],
)
def test_a_sum_is_told_by_the_verb_of_its_parameter(text: str, value: int | None) -> None:
    insured = Param(
        name="insured_for", type=ParamType.MONEY, description="sum the parcel is insured for"
    )
    assert find(insured, text, now=NOW).value == value


@pytest.mark.parametrize(
    "text",
    [
        "I could pay up to 950 a month",
        "650 max a month",
        "it was two hundred a week",
        "20 quid an hour",
        "once a week",
        "three times a year",
        "how much a month is it",
        "£30 a day",
    ],
)
def test_a_rate_is_no_length_of_time(text: str) -> None:
    stay = Param(name="stay", type=ParamType.DURATION, description="how long it is let")
    assert find(stay, text, now=NOW).value is None


@pytest.mark.parametrize(
    ("text", "value"), [("i'd stay a month", "P1M"), ("3 hours a week", "PT3H"), ("a week", "P7D")]
)
def test_a_length_of_time_needs_no_number(text: str, value: str) -> None:
    stay = Param(name="stay", type=ParamType.DURATION, description="how long it is let")
    assert find(stay, text, now=NOW).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5th. no sorry, 6th, we moved last week", 6),
        ("6th, the lift is on the left", 6),
        ("on the 3rd", 3),
        ("it's the 2nd - ask for Ben", 2),
        ("first, who is coming?", None),
    ],
)
def test_a_floor_is_an_ordinal_and_what_is_said_of_it(text: str, value: int | None) -> None:
    floor = Param(name="floor", type=ParamType.INTEGER, description="floor the parcel goes to")
    floors = floor.model_copy(
        update={"type": ParamType.ENUM, "enum": {str(number): () for number in range(1, 9)}}
    )
    assert answer(floor, text, "To which floor?").value == value
    assert answer(floors, text, "To which floor?").value == (value and str(value))


@pytest.mark.parametrize("text", ["35, no wait, 45 pounds", "35 pounds, sorry, 45", "£35 no £45"])
def test_a_sum_that_nobody_asked_for_may_be_corrected(text: str) -> None:
    worth = Param(name="value", type=ParamType.MONEY, description="what it was worth")
    assert find(worth, text, now=NOW).value == 45
