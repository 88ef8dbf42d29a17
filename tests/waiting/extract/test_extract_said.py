"""Words around a value: other people's values, values ruled out, and values said earlier."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest
from pydantic import JsonValue

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract import Reply, extract, find
from langmem_ext.waiting.extract.dates.days import easter

NOW = datetime(2026, 3, 4, 10, 15)  # a Wednesday


def param(name: str, kind: str, **fields: Any) -> Param:
    return Param(name=name, type=ParamType(kind), **fields)


def answer(asked: Param, text: str, **known: JsonValue) -> Extraction:
    return extract(asked, Reply(text, prompt=asked.prompt or "Which?", filled=known, now=NOW))


DAY = param("visit_day", "date", description="day of the visit", prompt="Which day?", future=True)
START = param("absent_from", "date", description="first day of the absence", prompt="From when?")
WHEN = param("pickup_at", "datetime", description="day and time of the pickup", future=True)
NAME = param("name", "person", description="name for the booking", prompt="What is your name?")
COMPANY = param("company", "text", description="name of the company", prompt="Which company?")
PHONE = param("phone", "phone", description="phone number", prompt="Your phone number?")
GUESTS = param("people", "integer", description="number of people", prompt="How many people?")
NIGHTS = param("nights", "integer", description="number of nights", prompt="How many nights?")
STOP = param("stop", "place", role="from", description="where the passengers get on")


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("easter monday, my uncle says", "2026-04-06"),
        ("good friday", "2026-04-03"),
        ("pancake day", "2027-02-09"),
        ("fri 22nd", "2026-05-22"),  # the next 22nd that is a Friday
        ("friday the 13th", "2026-03-13"),
        ("sat 21", "2026-03-21"),
        ("The april one, the 18th", "2026-04-18"),
        ("one in may, maybe the 9th", "2026-05-09"),
        ("we're back on the 10th so the day after that, the 11th", "2026-03-11"),
    ],
)
def test_a_day_is_the_one_that_its_words_name(text: str, day: str) -> None:
    assert answer(DAY, text).value == day


def test_easter_is_the_day_that_the_church_keeps() -> None:
    kept = {1818: (3, 22), 1961: (4, 2), 2000: (4, 23), 2024: (3, 31), 2026: (4, 5), 2038: (4, 25)}
    assert {year: easter(year) for year in kept} == {
        year: date(year, *day) for year, day in kept.items()
    }


@pytest.mark.parametrize("text", ["any day next week apart from monday", "not monday"])
def test_a_day_that_is_ruled_out_is_none(text: str) -> None:
    assert answer(DAY, text).value is None


def test_a_month_without_a_day_counts_for_the_day_that_follows() -> None:
    asked = answer(DAY, "some time in may")
    assert (asked.status, asked.half) == ("abstained", "2026-05")
    assert asked.problem == "I need the day in May, too"
    assert answer(DAY, "the 10th", visit_day=asked.half).value == "2026-05-10"
    assert answer(DAY, "14", visit_day=asked.half).value == "2026-05-14"
    assert answer(DAY, "3 june then", visit_day=asked.half).value == "2026-06-03"


@pytest.mark.parametrize(
    "text", ["he had his knee done in january", "may I come?", "since last june"]
)
def test_a_month_by_the_way_says_nothing_of_the_day(text: str) -> None:
    assert find(DAY, text, now=NOW).half == ""


def test_what_happened_to_others_on_a_day_begins_no_absence() -> None:
    told = "my gran died on sunday, so I'm going to miss some lectures"
    assert find(START, told, now=NOW).value is None
    assert find(START, "off sick since monday", now=NOW).value == "2026-03-02"


def test_of_two_moments_the_one_that_is_wished_for_counts() -> None:
    told = "our flight goes at 11:40 on the 14th, could you collect us at 8 that morning"
    assert find(WHEN, told, now=NOW).value == "2026-03-14T08:00"


def test_a_person_is_nobody_who_only_says_or_does_something() -> None:
    for text in (
        "my neighbour Sandra who does shifts for you says you need people",
        "his teacher Mr Abara says we ought to have a look",
        "the solicitor, a Mr Hallam, tells me to have it valued",
        "Debbie at the letting agents says it has run out",
        "my neighbour Jean at number 40 had one of your chaps round",
    ):
        assert find(NAME, text, now=NOW).value is None, text
    member = param("member", "person", description="name of the new member")
    assert find(member, "my son Oskar wants to join", now=NOW).value == "Oskar"
    assert find(NAME, "my son Oskar wants to join", now=NOW).value is None  # not who writes


def test_a_company_is_no_person() -> None:
    for text in ("Dawson Foods here", "this is Hartnell & Sons. We need one person"):
        assert find(NAME, text, now=NOW).value is None, text
    others = {"others": [NAME]}
    assert find(COMPANY, "Dawson Foods here, we need 6", now=NOW, **others).value == "Dawson Foods"
    assert find(COMPANY, "hi, this is Anna, we need 6", now=NOW, **others).value is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Rosalind Achebe. dont tell Martin", "Rosalind Achebe"),
        ("Kieran Maddox but dont say anything if my dad rings", "Kieran Maddox"),
        ("its Peters watch but put it under mine. Oonagh Pettifer", "Oonagh Pettifer"),
        ("do Ivy Sandhu first", "Ivy Sandhu"),
    ],
)
def test_a_whole_name_is_an_answer_whatever_else_is_said(text: str, name: str) -> None:
    assert answer(NAME, text).value == name


def test_a_number_that_nobody_is_to_ring_is_not_kept() -> None:
    for text in (
        "the groom is on 07700 900118 but dont save that or ring him",
        "if Carys rings from 07700 900338 you know nothing",
    ):
        assert answer(PHONE, text).value is None, text
    assert answer(PHONE, "07700 900123 but dont call before 9").value == "07700900123"


def test_a_number_that_does_not_work_is_not_kept() -> None:
    for text in (
        "07700 900123 but that one's not working, use 07700 900456",
        "07700 900123 (it is disconnected), 07700 900456",
    ):
        assert answer(PHONE, text).value == "07700900456", text
    assert answer(PHONE, "07700 900123, that's switched off").value is None


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("3, me and my mum and dad", 3),
        ("him and me. his dad has to work", 2),
        ("couple then", 2),
        ("one. well two, Ron can share", 2),
    ],
)
def test_people_are_counted_as_they_are_meant(text: str, people: int) -> None:
    assert answer(GUESTS, text).value == people


def test_nights_are_counted_by_their_days() -> None:
    free = "have you a room free friday and saturday night?"
    assert find(NIGHTS, free, now=NOW).value == 2


def test_who_will_be_seven_is_no_longer_six() -> None:
    age = param("age", "integer", description="age of the child", prompt="How old will they be?")
    assert answer(age, "hes 6 now so hell be 7").value == 7


def test_a_number_with_a_point_counts_though_it_is_somebodys() -> None:
    handicap = param(
        "handicap", "number", description="handicap of the guest", prompt="What is it?"
    )
    assert answer(handicap, "ok he says 14.2").value == 14.2


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("two seats to the airport at 4.30am from the railway station", "railway station"),
        ("we are at 27 Alder Close, Wexcombe", "27 Alder Close, Wexcombe"),
        ("id like to go to the airport on monday", None),
    ],
)
def test_where_somebody_gets_on_is_where_they_come_from(text: str, place: str | None) -> None:
    assert find(STOP, text, now=NOW).value == place


def test_a_country_is_known_in_small_letters() -> None:
    country = param("destination", "place", description="country to travel to")
    assert find(country, "a tourist visa for india, flying 14 april", now=NOW).value == "india"


def test_a_clock_time_stands_by_itself_beside_a_day() -> None:
    tee = param("tee_time", "time", description="when they tee off", bounds=["07:00", "18:00"])
    text = "Tee time for Saturday please, 9.20, four of us"
    assert find(tee, text, now=NOW).value == "09:20"
    assert find(tee, "that was 9.20, thanks", now=NOW).value is None


def test_small_words_are_no_values() -> None:
    paid = param("payment", "enum", enum={"card": (), "cash": ()}, description="how it is paid")
    assert find(paid, "knees are not up to it, can we hire buggies", now=NOW).value is None
    room = param("room", "enum", enum={"single": (), "family": ()}, description="kind of room")
    assert find(room, "the family would like to meet", now=NOW).value is None
    assert find(room, "a family room", now=NOW).value == "family"


def test_who_does_something_names_what_is_done() -> None:
    role = param("role", "enum", enum={"driving": (), "cleaning": (), "office": ()})
    assert find(role, "we need drivers for friday", now=NOW).value == "driving"


def test_a_thing_is_empty_where_words_beside_its_number_say_so() -> None:
    empty = param("empty", "boolean", description="whether the keg is empty")
    found = find(empty, "bringing keg K-2290 back tomorrow, its empty", now=NOW)
    assert (found.value, found.raw) == (True, "its empty")


def test_not_yet_says_how_things_are() -> None:
    done = param("vaccinated", "boolean", prompt="Are the vaccinations up to date?")
    assert answer(done, "not yet, the vets doing him monday").value is False


def test_forbidding_anybody_is_no_word_for_having_no_preference() -> None:
    asked = param("address", "address", prompt="What is the address?")
    assert answer(asked, "dont send anyone").status != "dontcare"
    assert answer(asked, "anyone will do").status == "dontcare"


def test_animals_have_names_that_are_said_by_the_way() -> None:
    dog = param("dog", "text", description="name of the dog", prompt="What is your dog called?")
    assert find(dog, "gonna be late picking up Luna im so sorry", now=NOW).value == "Luna"
    assert find(dog, "shes a shih tzu called Mabel, needs a bath", now=NOW).value == "Mabel"
    assert answer(dog, "weve gone with Gary").value == "Gary"


def test_words_that_are_put_right_are_the_ones_to_write() -> None:
    words = param(
        "inscription", "text", description="the words to engrave", prompt="What should it say?"
    )
    said = "oh god no its supposed to say JUNE 15. shed have killed me"
    assert answer(words, said).value == "JUNE 15"


def test_a_lack_of_something_is_said_with_its_no() -> None:
    change = param("change", "text", description="what to change", prompt="What shall we change?")
    assert answer(change, "no coriander please").value == "no coriander"


def test_a_first_name_may_sound_like_family() -> None:
    first = param("first_name", "person", description="first name", prompt="Your first name?")
    assert answer(first, "Nana Badlam").value == "Nana"


def test_a_part_of_a_length_of_time_is_not_added_to_it() -> None:
    stay = param("hire_length", "duration", description="how long it is needed")
    talk = "two hours, an hour and a half of which will be Ronald on dahlias"
    assert answer(stay, talk).value == "PT2H"
    assert answer(stay, "2 hours, 30 minutes").value == "PT2H30M"
    assert answer(stay, "2 weeks and 3 days").value == "P17D"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("can you do thursday at 5? no make it 5.30pm", "2026-03-05T17:30"),
        ("he's free saturday at 10 in the morning, so shall we say 11", "2026-03-07T11:00"),
        ("tuesday is good, I can drive her. half two in the afternoon", "2026-03-10T14:30"),
    ],
)
def test_a_time_said_apart_is_on_the_day_that_was_said(text: str, moment: str) -> None:
    assert answer(WHEN, text).value == moment


def test_now_within_a_story_is_no_moment() -> None:
    assert answer(WHEN, "he now tells me he's booked one himself").status != "filled"
    assert answer(WHEN, "now please").value == "2026-03-04T10:15"


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("friday please, I'm away from saturday", "2026-03-06"),
        ("would friday be alright, he's at the hospital most of tomorrow", "2026-03-06"),
        ("tomorrow, no we're at my sister's tomorrow. friday", "2026-03-06"),
        ("not this friday, the friday after that", "2026-03-13"),
        ("a week from saturday 25 july", "2026-07-25"),
        ("a week from june 1st", "2026-06-01"),
        ("a week from saturday", "2026-03-14"),
    ],
)
def test_a_day_is_the_one_that_is_wanted(text: str, day: str) -> None:
    assert answer(DAY, text).value == day


@pytest.mark.parametrize(
    "text",
    [
        "he's 17 on friday and it's all he talks about",
        "they moved him to another ward this morning",
        "his suit has to be cleaned before a funeral on the 14th",
        "she needs it back by monday",
    ],
)
def test_a_day_of_something_else_is_not_taken_by_the_way(text: str) -> None:
    assert find(DAY, text, now=NOW).status != "filled"


def test_something_else_on_a_day_is_no_correction() -> None:
    text = "hang on, it's swimming on tuesday"
    read = extract(DAY, Reply(text, filled={"visit_day": "2026-03-12"}, now=NOW))
    assert read.status != "filled"


def test_a_length_of_time_may_begin_on_a_day() -> None:
    stay = param("stay", "duration", description="how long the hire is")
    for text, length in (
        ("the otter for 3 nights from friday 27th march", "P3D"),
        ("a week from june 1st", "P7D"),
        ("just one week then. and she can't come so it's 6", "P7D"),
    ):
        assert find(stay, text, now=NOW).value == length, text


@pytest.mark.parametrize(
    ("text", "metres"), [("one metre ninety one", 1.91), ("1m58", 1.58), ("5 foot 9", 1.753)]
)
def test_a_length_may_be_said_in_two_units(text: str, metres: float) -> None:
    height = param("height", "number", description="height in metres", prompt="How tall are you?")
    assert answer(height, text).value == metres


def test_sums_and_counts_are_those_that_hold_at_last() -> None:
    most = param("max_cost", "money", description="the most to spend", prompt="Up to how much?")
    pages = param("pages", "integer", description="number of pages", prompt="How many pages?")
    floor = param("floor", "integer", description="floor of the flat", prompt="Which floor?")
    assert answer(most, "your lad said 145 so lets say no more than 160").value == 160
    assert answer(most, "86 pounds 40").value == 86.4
    assert answer(pages, "was 198 but with the appendix its 212").value == 212
    assert answer(floor, "second, and the lift is broken").value == 2
    assert find(GUESTS, "more are coming, well be 15", now=NOW).value == 15


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes hang on to the old parts, he collects them, don't ask", True),
        ("no haven't got any, my wallet was stolen", False),
        ("im afraid not, the gate is too narrow", False),
        ("he plays every sunday, so yes he has. wins too", True),
        ("they're older than you but yes both", True),
        ("he says yes they want it", True),
        ("he stopped last year so not any more", False),
        ("deffo, my wife needs it", True),
    ],
)
def test_yes_and_no_are_what_a_message_comes_to(text: str, value: bool) -> None:
    parts = param(
        "keep_parts", "boolean", description="whether the parts are kept", prompt="Keep the parts?"
    )
    assert answer(parts, text).value is value


def test_a_house_that_is_left_is_not_the_address() -> None:
    home = param("address", "address", description="delivery address", prompt="What address?")
    said = "14 Hollin Bank.. no sorry thats the old house, 3 Station Cottages, Hebden Bridge"
    assert answer(home, said).value == "3 Station Cottages, Hebden Bridge"


def test_a_verb_or_a_meal_is_nobodys_name() -> None:
    for text in ("my husband came to you for sixty years", "lunchtime ish"):
        assert find(NAME, text, now=NOW).status != "filled", text


def test_a_word_in_capitals_may_only_be_loud() -> None:
    pet = param("pet", "name", description="name of the pet", prompt="What is your pet's name?")
    assert find(pet, "she's a cat and she HATES the carrier", now=NOW).status != "filled"
    assert answer(NAME, "theyre a STATE, can i get in this friday").value is None


def test_so_many_of_a_thing_are_not_its_name() -> None:
    pet = param("pet", "name", description="name of the pet", prompt="What is your pet's name?")
    packs = param("packs", "integer", description="number of packs", prompt="How many packs?")
    for text in ("2 bottles", "just two vials pls"):
        reply = Reply(text, prompt=pet.prompt, others=[packs], now=NOW)
        assert extract(pet, reply).status != "filled", text


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("hang on, ive already paid you 60 deposit so it should only be 250", 250),
        ("18 quid, or hang on its gone up, your note says 20. 20 then", 20),
        ("its thirty two pounds fifty", 32.5),
    ],
)
def test_a_sum_is_the_one_that_is_to_be_paid(text: str, amount: float) -> None:
    sum_ = param("amount", "money", description="amount to pay", prompt="How much?")
    assert answer(sum_, text).value == amount


def test_what_is_usual_is_not_what_is_wanted_this_time() -> None:
    vehicle = param(
        "vehicle",
        "enum",
        description="what you come with",
        prompt="A car, a van or a trailer?",
        enum={"car": [], "van": [], "trailer": []},
    )
    said = "usually just the car but it won't fit so im borrowing my cousin's van"
    assert answer(vehicle, said).value == "van"


def test_a_wish_decides_between_two_things_that_are_named() -> None:
    part = param("part", "enum", description="what to send", enum={"mask": [], "headgear": []})
    said = "the strap on my mask snapped so id like to order new headgear"
    assert find(part, said, now=NOW).value == "headgear"


def test_what_has_none_of_something_is_free_of_it() -> None:
    free = param("nut_free", "boolean", description="whether it is made without nuts")
    for text, value in (("no nuts in it please", True), ("nut free please", True)):
        assert find(free, text, now=NOW).value is value, text


def test_the_doctor_who_tells_something_is_the_doctor() -> None:
    doctor = param("doctor", "person", description="the doctor who refers", prompt="Which doctor?")
    assert find(doctor, "Dr Venkataraman told us to write", now=NOW).value == "Venkataraman"


def test_a_pair_of_us_is_two() -> None:
    assert answer(GUESTS, "just the pair of us, no children").value == 2


def test_the_day_of_a_month_may_have_its_part_of_the_day() -> None:
    assert find(DAY, "on tuesday the 17th in the afternoon", now=NOW).value == "2026-03-17"


HEIGHT = param("height", "number", description="height in cm", prompt="How tall are you?")


@pytest.mark.parametrize(
    ("asked", "text", "value"),
    [
        (NAME, "my name is JOHN SMITH", "JOHN SMITH"),
        (NAME, "it's ANNA KOWALSKI", "ANNA KOWALSKI"),
        (DAY, "thursday - no it's friday, please", "2026-03-06"),
        (DAY, "I just moved house so friday please", "2026-03-06"),
        (DAY, "he took the car so I need it friday", "2026-03-06"),
        (WHEN, "now, as soon as you can", "2026-03-04T10:15"),
    ],
)
def test_plain_answers_stay_what_they_are(asked: Param, text: str, value: JsonValue) -> None:
    assert answer(asked, text).value == value


def test_plain_words_by_the_way_stay_what_they_are() -> None:
    cake = param("pickup_day", "date", description="day of the pickup", future=True)
    gluten = param("gluten_free", "boolean", description="whether it is made without gluten")
    assert find(cake, "can my cake be ready for saturday", now=NOW).value == "2026-03-07"
    assert find(DAY, "can you get it done by friday", now=NOW).value == "2026-03-06"
    assert find(HEIGHT, "I am 42, book me a fitting", now=NOW).status != "filled"
    assert find(gluten, "I'm allergic to gluten", now=NOW).value is not False
    assert find(gluten, "not gluten free", now=NOW).value is False


def test_somebody_elses_word_is_not_the_answer() -> None:
    wanted = param("cover", "boolean", description="whether cover is wanted", prompt="Cover?")
    assert answer(wanted, "yes please, my dad said no it's a con").value is True
    assert answer(wanted, "no, my husband said yes it's good but I don't").value is False


def test_no_trouble_is_a_no_where_trouble_is_asked_about() -> None:
    trouble = param("trouble", "boolean", description="trouble breathing", prompt="Any trouble?")
    assert answer(trouble, "no trouble at all").value is False


def test_two_days_to_choose_from_stay_two() -> None:
    assert answer(DAY, "can you do friday or saturday").status != "filled"


def test_more_days_than_are_read_are_no_error() -> None:
    days = ", ".join(f"{day}/5" for day in range(1, 18))
    assert answer(DAY, f"I can do {days}, or the monday after").reason


def test_a_time_is_not_on_the_day_of_what_is_told() -> None:
    told = answer(WHEN, "the parcel was broken when it came on monday. 5pm works")
    assert told.value != "2026-03-09T17:00"


def test_the_first_in_the_morning_is_no_day_of_a_month() -> None:
    assert find(DAY, "I'd like the first in the morning on friday", now=NOW).value == "2026-03-06"
