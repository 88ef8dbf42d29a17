"""Names of places, people and things are found; questions, refusals and wishes are not names."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pytest
from cpu_time import LITTLE, cpu_seconds

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType, doubtful_below
from langmem_ext.waiting.extract import Reply, extract, find

NOW = datetime(2024, 5, 15, 10, 30)

CITY = Param(name="city", type=ParamType.PLACE)
ORIGIN = Param(name="origin", type=ParamType.PLACE, role="from")
DESTINATION = Param(name="destination", type=ParamType.PLACE, role="to")
PERSON = Param(name="full_name", type=ParamType.PERSON)
FIRST = Param(name="first_name", type=ParamType.PERSON)
LAST = Param(name="last_name", type=ParamType.PERSON)
MOVIE = Param(name="movie", type=ParamType.NAME)
BISTRO = Param(name="restaurant_name", type=ParamType.NAME, description="Name of the restaurant")
SHIP_TO = Param(name="shipping_address", type=ParamType.ADDRESS)
GENRE = Param(name="genre", type=ParamType.TEXT, description="Genre of the film")
REASON = Param(name="reason", type=ParamType.TEXT, description="Reason for the return")


def answer(
    param: Param, text: str, prompt: str = "Which one?", others: Sequence[Param] = ()
) -> Extraction:
    return extract(param, Reply(text, prompt=prompt, others=others, now=NOW))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Springfield", "Springfield"),
        ("in springfield please", "springfield"),
        ("it's oslo", "oslo"),
        ("I live in New York City", "New York City"),
        ("somewhere near St. Louis, MO", "St. Louis, MO"),
        ("Salem, OR. I need it on Friday", "Salem, OR"),
        ("Find me a hotel in Bergen for tomorrow", "Bergen"),
        ("not Boston, Chicago", "Chicago"),
        ("the north side of town", "north"),
    ],
)
def test_a_place_is_the_name_that_is_said(text: str, value: str) -> None:
    assert answer(CITY, text, "Which city?").value == value


@pytest.mark.parametrize(
    ("text", "origin", "destination"),
    [
        ("from oslo to bergen", "oslo", "bergen"),
        ("Oslo to Bergen", "Oslo", "Bergen"),
        ("I go to Bergen from Oslo", "Oslo", "Bergen"),
        ("I'm leaving Oslo and my destination is Bergen", "Oslo", "Bergen"),
        ("to Bergen", None, "Bergen"),
        ("from Oslo", "Oslo", None),
    ],
)
def test_of_two_places_each_goes_to_its_role(
    text: str, origin: str | None, destination: str | None
) -> None:
    assert answer(ORIGIN, text, "From where to where?", (DESTINATION,)).value == origin
    assert answer(DESTINATION, text, "From where to where?", (ORIGIN,)).value == destination


def test_a_place_and_a_name_in_one_reply_are_told_apart() -> None:
    text = "A table at Blue Anchor in Bergen for 2 people"
    assert answer(BISTRO, text, "Which restaurant, and where?", (CITY,)).value == "Blue Anchor"
    assert answer(CITY, text, "Which restaurant, and where?", (BISTRO,)).value == "Bergen"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Maria Lopez", "Maria Lopez"),
        ("my name is john smith", "john smith"),
        ("I'm Dr. Ada Byron", "Ada Byron"),
        ("it is for my wife Anna", "Anna"),
        ("Jean-Luc O'Brien", "Jean-Luc O'Brien"),
        ("ada", "ada"),
    ],
)
def test_a_person_is_named_without_title_or_frame(text: str, value: str) -> None:
    assert answer(PERSON, text, "What is your name?").value == value


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("Maria Lopez", "Maria", "Lopez"),
        ("my last name is de la Cruz", None, "de la Cruz"),
        ("Ana de la Cruz", "Ana", "de la Cruz"),
        ("Maria", "Maria", None),
        ("first name is Maria", "Maria", None),
    ],
)
def test_first_and_last_names_are_parts_of_a_name(
    text: str, first: str | None, last: str | None
) -> None:
    prompt = "What are your first and last name?"
    assert answer(FIRST, text, prompt, (LAST,)).value == first
    assert answer(LAST, text, prompt, (FIRST,)).value == last


def test_a_lone_name_is_the_part_that_was_asked_for_first() -> None:
    assert answer(LAST, "Lopez", "What is your last name?", (FIRST,)).value == "Lopez"
    assert answer(FIRST, "Lopez", "What is your last name?", (LAST,)).status == "abstained"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The Quiet Harbour", "The Quiet Harbour"),
        ('I want to see "Up and Away"', "Up and Away"),
        ("dune part two", "dune part two"),
        ("I'd like to watch Robot Farm 2 please", "Robot Farm 2"),
        ("it's called Paper Boats", "Paper Boats"),
        ("Can I get tickets for Paper Boats at 7pm?", "Paper Boats"),
    ],
)
def test_a_name_of_a_thing_is_quoted_capitalised_or_the_whole_answer(text: str, value: str) -> None:
    assert answer(MOVIE, text, "Which film?").value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12 Elm Street", "12 Elm Street"),
        ("221B Baker Street, London", "221B Baker Street, London"),
        (
            "Send it to 5 Main St., Springfield, IL 62701 please",
            "5 Main St., Springfield, IL 62701",
        ),
        ("it's 7 oak avenue apt 4", "7 oak avenue apt 4"),
        ("Hauptstraße 5, 10115 Berlin", "Hauptstraße 5, 10115 Berlin"),
        ("12 Main Street, 10115 Berlin", "12 Main Street, 10115 Berlin"),
        (
            "send it to 5 Elm Road, 80331 Munich, Germany please",
            "5 Elm Road, 80331 Munich, Germany",
        ),
        ("12 Main Street, 10115 Please hurry", "12 Main Street, 10115"),
        ("12 Elm Street. The ride is for 2 people", "12 Elm Street"),
    ],
)
def test_an_address_is_a_number_and_a_street(text: str, value: str) -> None:
    assert answer(SHIP_TO, text, "Where to?").value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a funny movie", "funny"),
        ("thriller", "thriller"),
        ("something scary", "scary"),
        ("Some sci-fi please", "sci-fi"),
        ("I'm in the mood for slapstick tonight", "slapstick"),
        ("Are there any western films?", "western"),
    ],
)
def test_a_kind_is_the_words_that_name_it(text: str, value: str) -> None:
    assert answer(GENRE, text, "What genre?").value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("because it is too small", "it is too small"),
        ("Well, the zip broke after a day.", "the zip broke after a day"),
        ("I changed my mind", "I changed my mind"),
    ],
)
def test_free_text_is_the_answer_without_its_lead_in(text: str, value: str) -> None:
    assert answer(REASON, text, "Why do you return it?").value == value


OPEN = (CITY, PERSON, MOVIE, SHIP_TO, GENRE, REASON)


@pytest.mark.parametrize("param", OPEN, ids=lambda param: param.name)
@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", "abstained"),
        ("   ", "abstained"),
        ("!!!", "abstained"),
        ("cancel that please", "abstained"),
        ("I want to talk to a human", "abstained"),
        ("hello there", "abstained"),
        ("thank you", "abstained"),
        ("why do you need that?", "question"),
        ("what are the options?", "question"),
        ("I'd rather not say", "declined"),
        ("I don't know", "declined"),
        ("I don't remember", "declined"),
        ("never mind", "declined"),
    ],
)
def test_an_open_value_is_never_taken_from_what_is_no_answer(
    param: Param, text: str, status: str
) -> None:
    assert answer(param, text).status == status


@pytest.mark.parametrize(
    "text",
    [
        "I don't care",
        "it doesn't matter",
        "anything is fine",
        "you choose",
        "no preference",
        "whatever you recommend",
    ],
)
def test_having_no_preference_is_told_apart(text: str) -> None:
    assert answer(GENRE, text, "What genre do you prefer?").status == "dontcare"


def test_no_preference_in_answer_to_a_wish_is_no_preference() -> None:
    assert answer(GENRE, "No", "Do you have any particular genre in mind?").status == "dontcare"


@pytest.mark.parametrize("param", OPEN, ids=lambda param: param.name)
def test_a_value_that_nothing_marks_has_little_confidence(param: Param) -> None:
    assert answer(param, "purple things").confidence <= 0.5


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("table friday 7pm name Ruth", "Ruth"),
        ("name's Delgado", "Delgado"),
        ("table friday 7pm, my name is Dr. Helen O'Neill", "Helen O'Neill"),
        ("please put it under Ada Brook", "Ada Brook"),
        ("it's for Mr. Tan", "Tan"),
        ("this is Ruth, a table for 2", "Ruth"),
        ("I'm Bo", "Bo"),
        ("Ruth here, a table for 2", "Ruth"),
        ("in the name of Kim Lee", "Kim Lee"),
        ("the name for the booking is Kim", "Kim"),
        ("my name is ruth", "ruth"),
        ("name: bo", "bo"),
    ],
)
def test_a_message_that_answers_nothing_introduces_a_person(text: str, value: str) -> None:
    assert find(PERSON, text, now=NOW).value == value


@pytest.mark.parametrize(
    "text",
    [
        "I'm Hungry",
        "I'm Italian",
        "I'm in Boston",
        "this is for Friday",
        "I'm at Blue Anchor",
        "book me a table",
        "name it",
        "Ruth",
    ],
)
def test_a_message_that_answers_nothing_names_nobody_by_other_words(text: str) -> None:
    assert find(PERSON, text, now=NOW).status == "abstained"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Bo", "Bo"),
        ("Will", "Will"),
        ("Will Smith", "Will Smith"),
        ("name's delgado", "delgado"),
        ("under kim", "kim"),
        ("Mr. Tan", "Tan"),
    ],
)
def test_a_bare_name_answers(text: str, value: str) -> None:
    assert answer(PERSON, text, "Which name?").value == value


CHILD = Param(name="child", type=ParamType.PERSON, description="name of the child")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("have you any space for Noor this friday?", "Noor"),
        ("could Otis do the 17th as well", "Otis"),
        ("we've just found out Milo cant have eggs", "Milo"),
        ("Ruth Okafor, two tickets friday", "Ruth Okafor"),
        ("Ruth Okafor won't be in today", "Ruth Okafor"),
    ],
)
def test_a_name_that_nothing_marks_is_found_and_is_to_be_confirmed(text: str, value: str) -> None:
    found = find(CHILD, text, now=NOW)
    assert found.value == value
    assert found.confidence < doubtful_below(CHILD)


@pytest.mark.parametrize(
    "text",
    ["Pia is off", "Boiler is broken", "we come from Leeds", "Anna and then Bert", "my Samsung"],
)
def test_a_capital_alone_is_no_name(text: str) -> None:
    assert find(CHILD, text, now=NOW).status == "abstained"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("we move to 9 tanner row york on the 21st", "9 tanner row york"),
        ("3 bags to 40 mill lane otley", "40 mill lane otley"),
        ("collect it at 14b wharf lane hull ready from 2", "14b wharf lane hull"),
        ("two boxes at 12 high street tomorrow", "12 high street"),
        ("collect 3 boxes from 12 high street", "12 high street"),
        ("12 high street broken boiler here", "12 high street"),
    ],
)
def test_an_address_in_small_letters_has_its_town(text: str, value: str) -> None:
    assert find(SHIP_TO, text, now=NOW).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "The Old Forge, 3 Church Row, Little Marden",
            "The Old Forge, 3 Church Row, Little Marden",
        ),
        ("Fernlea, 3 Church Row, Little Marden", "Fernlea, 3 Church Row, Little Marden"),
        ("it's flat 6, 110 dock road, marle please", "flat 6, 110 dock road, marle"),
        ("9 mill lane, stow on the wold, nr1 2ab", "9 mill lane, stow on the wold, nr1 2ab"),
        ("9 mill lane\nMarden\nNR1 2AB", "9 mill lane, Marden, NR1 2AB"),
        ("Mill House, Church Row, Little Marden", "Mill House, Church Row, Little Marden"),
        ("9 mill lane in marle please", "9 mill lane in marle"),
        ("The Vicarage, Little Marden, NR1 2AB", "The Vicarage, Little Marden, NR1 2AB"),
        ("9 mill lane, top floor", "9 mill lane"),
        ("9 mill lane, marle, nr1 2ab, ann lee", "9 mill lane, marle, nr1 2ab"),
        ("9 mill lane, marle (ann lee)", "9 mill lane, marle"),
        ("9 mill lane, marle, tuesday", "9 mill lane, marle"),
        ("9 mill lane, marle, 07700 900123", "9 mill lane, marle"),
        ("9 mill lane, 2 bags", "9 mill lane"),
        ("9 mill lane, ring the bell", "9 mill lane"),
        ("9 Mill Lane, Marden, and my name is Ann Lee", "9 Mill Lane, Marden"),
        ("Ann Lee, 9 Mill Lane", "9 Mill Lane"),
    ],
)
def test_an_address_that_is_asked_for_has_all_its_parts(text: str, value: str) -> None:
    assert answer(SHIP_TO, text, "Which address?").value == value


def test_an_address_is_no_line_longer_to_read_for_its_parts() -> None:
    text = "9 mill lane" + ", the mill" * 90
    assert cpu_seconds(lambda: answer(SHIP_TO, text, "Which address?")) < LITTLE


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Name's Alasdair Pym.", "Alasdair Pym"),
        ("its under Okonkwo, Blessing Okonkwo", "Blessing Okonkwo"),
        ("Ann, Ann Lee", "Ann Lee"),
        ("Okonkwo, Blessing", "Okonkwo, Blessing"),
        ("Hill. Tom Hill.", "Tom Hill"),
        ("thats tom hill", "tom hill"),
        ("its me again, tom hill", "tom hill"),
        ("dr tom hill here", "tom hill"),
        ("thats my name", None),
        ("thats very kind", None),
    ],
)
def test_a_name_has_no_words_around_it_and_is_said_once(text: str, value: str | None) -> None:
    assert answer(PERSON, text, "Which name?").value == value


def test_a_house_is_nobody() -> None:
    assert find(PERSON, "The Old Forge, 3 Church Row, Marden", now=NOW).status == "abstained"


def test_a_side_is_no_opening_word_of_a_text() -> None:
    assert answer(REASON, "right knee, the inside").value == "right knee, the inside"


def test_one_letter_is_no_name() -> None:
    assert answer(PERSON, "y").status == "abstained"


DEPUTY = Param(
    name="deputy", type=ParamType.PERSON, description="who signs for you", prompt="Who signs?"
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("two weeks off from monday, deputy Ilse van Dam", "Ilse van Dam"),
        ("Ilse Brandt signs for me while I am away", "Ilse Brandt"),
        ("two weeks off from monday, ravi menon signs for me", "ravi menon"),
        ("the deputy will be ravi menon", "ravi menon"),
        ("nobody signs for me", None),
        ("someone else signs for me", None),
        ("the deputy signs for me", None),
    ],
)
def test_a_name_beside_the_parameters_own_word_is_its_value(text: str, value: str | None) -> None:
    found = find(DEPUTY, text, now=NOW)
    assert found.value == value
    assert value is None or found.confidence >= doubtful_below(DEPUTY)


SHOP = Param(
    name="shop", type=ParamType.TEXT, description="name of the shop", prompt="What is it called?"
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a stall for the Copper Kettle please, saturday", "Copper Kettle"),
        ("our shop is called Copper Kettle", "Copper Kettle"),
        ("my shop is called copper kettle, see you soon", "copper kettle"),
        ("the shop is Marlow & Daughters, two tables", "Marlow & Daughters"),
        ("a stall for the Saturday market", None),
        ("my dog is called Rex", None),
        ("two tables for the shop", None),
    ],
)
def test_a_thing_is_named_by_its_noun_or_behind_for_the(text: str, value: str | None) -> None:
    assert find(SHOP, text, now=NOW).value == value


def test_going_ahead_is_no_name() -> None:
    assert answer(PERSON, "lovely, go ahead", "Under which name?").value is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("two crates from 6 Anchor Wharf, nothing breakable", "6 Anchor Wharf"),
        ("meet us at 11 Orchard View", "11 Orchard View"),
        ("post it to 9 Chapel Row, flat 4", "9 Chapel Row, flat 4"),
        ("bring it to Unit 5, Fen Road Trading Estate", "Unit 5, Fen Road Trading Estate"),
        ("corner of Elm Street and Second Avenue", "corner of Elm Street and Second Avenue"),
        ("a table at 7 Ben Lee", None),
        ("two tickets from 9 Friday", None),
        ("40 cards for Park View", None),
    ],
)
def test_an_address_is_known_by_its_last_word_or_by_where_from(
    text: str, value: str | None
) -> None:
    assert find(SHIP_TO, text, now=NOW).value == value


def test_what_a_complaint_is_about_is_a_thing_and_no_story() -> None:
    item = Param(name="item", type=ParamType.TEXT, description="the item the complaint is about")
    assert answer(item, "thanks, hope to hear from you", "Which item?").value is None
    assert answer(item, "a grey coat", "Which item?").value == "a grey coat"
    patched = "a grey coat with a patch on it"
    assert answer(item, patched, "Which item?").value == patched


def test_a_measure_in_the_described_unit_needs_no_question() -> None:
    length = Param(name="length", type=ParamType.NUMBER, description="length of the tent in metres")
    assert find(length, "a pitch for friday, 4.5 m", now=NOW).value == 4.5
    assert find(length, "a pitch for friday, 4 people", now=NOW).value is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("her aunt Ines Carvalho", "Ines Carvalho"),
        ("Neighbour Ann Lee", "Ann Lee"),
        ("her mate tom hill", "tom hill"),
        ("I'm paying for aunt Polly", "aunt Polly"),
    ],
)
def test_a_word_for_who_somebody_is_is_no_part_of_a_whole_name(text: str, value: str) -> None:
    assert answer(PERSON, text, "Who is it?").value == value


@pytest.mark.parametrize("text", ["its called Snips", "we're called Snips", "it is called Snips"])
def test_a_thing_is_called_by_its_name_where_that_is_asked(text: str) -> None:
    salon = Param(name="salon", type=ParamType.TEXT, description="name of the salon")
    assert answer(salon, text, "What is the salon called?").value == "Snips"
