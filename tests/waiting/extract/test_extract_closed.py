"""Enums, yes or no, counts, numbers and sums of money are read, never from other words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pytest

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType, doubtful_below
from langmem_ext.waiting.extract import Reply, extract, find

NOW = datetime(2024, 5, 15, 10, 30)

SIZE = Param(
    name="size",
    type=ParamType.ENUM,
    description="Size of the pizza",
    enum={"small": ("little",), "medium": (), "extra_large": ("XL", "huge")},
)
WRAP = Param(
    name="gift_wrap", type=ParamType.BOOLEAN, description="Whether the order is gift wrapped"
)
PEOPLE = Param(name="party_size", type=ParamType.INTEGER, description="Number of people")
BOXES = Param(name="quantity", type=ParamType.INTEGER, description="Number of boxes")
WEIGHT = Param(name="weight", type=ParamType.NUMBER, description="Weight of the parcel")
BUDGET = Param(name="budget", type=ParamType.MONEY)


def answer(
    param: Param, text: str, prompt: str = "What is it?", others: Sequence[Param] = ()
) -> Extraction:
    return extract(param, Reply(text, prompt=prompt, others=others, now=NOW))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("small please", "small"),
        ("Make it a Medium", "medium"),
        ("XL", "extra_large"),
        ("extra large", "extra_large"),
        ("extra-large!", "extra_large"),
        ("the little one", "small"),
        ("mediun", "medium"),
        ("not small, medium", "medium"),
        ("small? no, medium", "medium"),
        ("medium instead of small", "medium"),
        ("the last one was too small, medium please", "medium"),
        ("the second one", "medium"),
    ],
)
def test_an_enum_is_one_of_its_values_however_it_is_said(text: str, value: str) -> None:
    assert answer(SIZE, text, "Small, medium or extra large?").value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("a peperoni pizza please", "pepperoni"), ("a margarine", None), ("i want to pay", None)],
)
def test_in_a_message_that_answers_nothing_a_long_word_may_have_a_wrong_letter(
    text: str, value: str | None
) -> None:
    pizza = Param(name="pizza", type=ParamType.ENUM, enum={"pepperoni": (), "margherita": ()})
    assert answer(pizza, text, prompt="").value == value


@pytest.mark.parametrize(
    "text",
    [
        "anything but huge",
        "small or medium",
        "round",
        "cancel that",
        "no idea",
        "what sizes are there?",
    ],
)
def test_an_enum_abstains_when_no_single_value_is_named(text: str) -> None:
    assert answer(SIZE, text).status != "filled"


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "Yes please",
        "sure thing",
        "why not",
        "that's fine",
        "no problem",
        "true",
        "wrap it please",
        "I'd like it wrapped",
        "y",
    ],
)
def test_a_boolean_is_true_when_the_user_agrees(text: str) -> None:
    assert answer(WRAP, text, "Should we gift wrap it?").value is True


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "Nope",
        "no, thanks",
        "not really",
        "of course not",
        "no wrapping",
        "don't wrap it",
        "false",
        "I don't think so",
    ],
)
def test_a_boolean_is_false_when_the_user_refuses(text: str) -> None:
    assert answer(WRAP, text, "Should we gift wrap it?").value is False


@pytest.mark.parametrize(
    "text",
    [
        "I guess so",
        "please do",
        "of course",
        "by all means",
        "uh huh",
        "yess",
        "please",
        "I'd appreciate that",
        "if possible",
        "👍",
        "we would",
    ]
    + [
        "I think so",
        "that would be nice",
        "yes, with wrapping",
        "that's no problem",
        "wrapping wouldn't hurt",
        "if possible",
    ],
)
def test_a_boolean_is_true_in_other_words_than_yes(text: str) -> None:
    assert answer(WRAP, text, "Should we gift wrap it?").value is True


@pytest.mark.parametrize(
    "text",
    [
        "I'd rather not",
        "no need",
        "nope thanks",
        "nah",
        "not needed",
        "that won't be necessary",
        "I'll pass",
        "skip it",
        "sorry, no",
        "noo",
    ]
    + [
        "we don't",
        "without",
        "sure, without it",
        "leave it out",
        "I can do without",
        "prefer not to",
        "without wrapping",
    ],
)
def test_a_boolean_is_false_in_other_words_than_no(text: str) -> None:
    assert answer(WRAP, text, "Should we gift wrap it?").value is False


@pytest.mark.parametrize(
    "text",
    ["maybe", "only if it's free", "no, I do", "yes, I don't", "I think I am late", "we will see"],
)
def test_a_boolean_is_neither_when_the_user_is_of_two_minds(text: str) -> None:
    assert answer(WRAP, text, "Should we gift wrap it?").status == "abstained"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("not now", "declined"),
        ("No, not now", "declined"),
        ("I don't know", "declined"),
        ("what does it cost?", "question"),
        ("yes or no?", "question"),
        ("I don't care", "dontcare"),
        ("no, I do want it wrapped", "abstained"),
        ("it's Anna", "abstained"),
        ("hmm", "abstained"),
    ],
)
def test_a_boolean_is_neither_when_the_user_does_not_say(text: str, status: str) -> None:
    assert answer(WRAP, text, "Should we gift wrap it?").status == status


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("four", 4),
        ("12", 12),
        ("just me", 1),
        ("only myself", 1),
        ("me and my wife", 2),
        ("my husband and I", 2),
        ("a couple", 2),
        ("the two of us", 2),
        ("party of 6", 6),
        ("3 adults and 2 kids", 5),
        ("me and 3 friends", 4),
        ("me, my wife, my parents and 2 children", 6),
        ("4 people, 3 adults and 1 baby", 4),
        ("it's for two", 2),
        ("me and two friends, so three in total", 3),
        ("3 people and I need it by noon", 3),
        ("there will be 5 of us at 7pm", 5),
        ("change it from 4 people to 6 people", 6),
        ("we are 2 people, my sister comes along", 2),
        ("4 people, my brother joins us", 4),
    ],
)
def test_a_number_of_people_is_counted(text: str, value: int) -> None:
    assert answer(PEOPLE, text, "How many people?").value == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "around 8pm",
        "on the 3rd",
        "seven or eight",
        "2-3",
        "3.5",
        "-3",
        "table 4",
        "one minute, please",
        "how many can come?",
        "not sure",
    ],
)
def test_a_number_of_people_is_not_read_from_other_numbers(text: str) -> None:
    assert answer(PEOPLE, text, "How many people?").status != "filled"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3 boxes", 3),
        ("ten", 10),
        ("a dozen", 12),
        ("1,200", 1200),
        ("2 crates with 40 boxes", 40),
        ("one box", 1),
    ],
)
def test_a_count_is_the_number_before_its_own_noun(text: str, value: int) -> None:
    assert answer(BOXES, text).value == value


@pytest.mark.parametrize("text", ["the big one", "O-12345", "at 5pm", "$40"])
def test_a_count_is_not_read_from_pronouns_codes_times_or_sums(text: str) -> None:
    assert answer(BOXES, text).status != "filled"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2.5", 2.5),
        ("two and a half", 2.5),
        ("about 3 kg", 3),
        ("-4.5", -4.5),
        ("3 point 7", 3.7),
        ("one hundred", 100),
    ],
)
def test_a_number_may_have_a_fraction(text: str, value: float) -> None:
    assert answer(WEIGHT, text).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$1,250.50", 1250.5),
        ("50 bucks", 50),
        ("twenty euros", 20),
        ("€20", 20),
        ("100", 100),
        ("2k", 2000),
        ("one hundred and five dollars and 20 cents", 105.2),
        ("no more than 300 dollars by June 1st", 300),
    ],
)
def test_a_sum_of_money_is_its_amount(text: str, value: float) -> None:
    assert answer(BUDGET, text).value == value


@pytest.mark.parametrize("text", ["a lot", "tomorrow at 5", "whatever it costs", "why?"])
def test_a_sum_of_money_is_not_read_from_anything_else(text: str) -> None:
    assert answer(BUDGET, text).status != "filled"


def test_a_whole_number_with_allowed_values_takes_no_other() -> None:
    rooms = Param(name="rooms", type=ParamType.INTEGER, enum={"1": (), "2": (), "3": ()})
    assert answer(rooms, "two").value == 2
    assert answer(rooms, "seven").status == "abstained"


STEEP = Param(
    name="blocked", type=ParamType.BOOLEAN, description="whether somebody cannot pass",
    prompt="Is the path in anybody's garden?",
)  # fmt: skip
CARD = Param(name="extra", type=ParamType.BOOLEAN, description="x", prompt="With a greeting card?")


@pytest.mark.parametrize(
    ("param", "text", "value"),
    [
        (STEEP, "it starts at the gate, not in anyones garden", False),
        (STEEP, "yeh people keep walking through", True),
        (STEEP, "no worries", None),
        (STEEP, "ok no problem, bye", None),
        (CARD, "no problem", True),
        (CARD, "red ones, with a card if you do that", True),
        (CARD, "twelve roses, without card", False),
    ],
)
def test_a_boolean_is_said_by_the_phrase_of_its_question(
    param: Param, text: str, value: bool | None
) -> None:
    assert answer(param, text, param.prompt).value is value


@pytest.mark.parametrize(
    ("text", "value", "sure"),
    [
        ("somebody nicked my bike", "theft", False),
        ("theft of a bike", "theft", True),
        ("my stolen bike went up in flames", "theft", False),
        ("water damge in the hall", "water damage", True),
        ("i want to report something", None, False),
    ],
)
def test_what_only_means_a_value_is_in_doubt_where_nothing_was_asked(
    text: str, value: str | None, sure: bool
) -> None:
    kinds = Param(name="kind", type=ParamType.ENUM, enum={"theft": (), "water damage": ()})
    read = answer(kinds, text, prompt="")
    assert (read.value, read.confidence >= doubtful_below(kinds)) == (value, sure)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("if you wrap it i need no box. please have it gift wrapped", True),
        ("if it is wrapped as a gift, how is it sent", None),
    ],
)
def test_what_is_supposed_is_not_said(text: str, value: bool | None) -> None:
    assert answer(WRAP, text, "Should we gift wrap it?").value is value


@pytest.mark.parametrize(
    ("text", "value"),
    [("a balooon ride", "balloon"), ("my ballooning trip", "balloon"), ("a saloon car", None)],
)
def test_a_word_like_a_value_is_in_doubt_where_nothing_was_asked(
    text: str, value: str | None
) -> None:
    rides = Param(name="ride", type=ParamType.ENUM, enum={"balloon": (), "glider": ()})
    assert answer(rides, text, prompt="").value == value


@pytest.mark.parametrize(
    ("prompt", "text", "value"),
    [
        ("Do you have a smoke alarm?", "havent got one, should i?", False),
        ("Is there a lift?", "we don't have one", False),
        ("Have you got insurance?", "no i haven't got any", False),
        ("Is it urgent?", "I don't have that", None),
    ],
)
def test_who_has_none_of_what_is_asked_about_says_no(
    prompt: str, text: str, value: bool | None
) -> None:
    param = Param(name="has", type=ParamType.BOOLEAN, prompt=prompt)
    assert extract(param, Reply(text, prompt=prompt, now=NOW)).value is value


SLOT = Param(
    name="slot",
    type=ParamType.ENUM,
    enum={"morning": (), "afternoon": (), "evening": ()},
    prompt="Morning (8 to 12), afternoon (12 to 5) or evening (5 to 8)?",
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("im only home after 5", "evening"),
        ("at 3", "afternoon"),
        ("till noon", "morning"),
        ("between 1 and 3", "afternoon"),
        ("17:30", "evening"),
        ("I have 2 kids", None),
        ("2 or 3", None),
    ],
)
def test_a_time_means_the_allowed_value_that_has_its_hours(text: str, value: str | None) -> None:
    assert extract(SLOT, Reply(text, prompt=SLOT.prompt, now=NOW)).value == value


def test_a_time_means_no_allowed_value_where_hours_are_not_said_or_asked() -> None:
    size = Param(name="size", type=ParamType.ENUM, enum={"small": (), "large": ()})
    assert extract(size, Reply("after 5", prompt="Which size?", now=NOW)).value is None
    assert extract(SLOT, Reply("a delivery after 5", now=NOW)).value is None


@pytest.mark.parametrize(
    ("text", "value", "sure"),
    [
        ("i want to send it back, it leaked on the carpet", "leaking", True),
        ("it came with a leak", "leaking", True),
        ("two for the panto", "pantomime", False),
        ("two for the pan", None, False),
    ],
)
def test_an_allowed_value_is_said_in_another_form_of_its_word(
    text: str, value: str | None, sure: bool
) -> None:
    kinds = Param(
        name="kind", type=ParamType.ENUM, enum={"leaking": (), "pantomime": (), "not needed": ()}
    )
    read = answer(kinds, text, prompt="")
    assert (read.value, read.confidence >= doubtful_below(kinds)) == (value, sure)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ah ok. nope, got it second hand", False),
        ("oh i see. yes my niece is", True),
        ("ok", True),
    ],
)
def test_what_only_says_that_it_was_heard_is_no_yes(text: str, value: bool) -> None:
    prompt = "Is it under warranty?"
    param = Param(name="warranty", type=ParamType.BOOLEAN, prompt=prompt)
    assert extract(param, Reply(text, prompt=prompt, now=NOW)).value is value


@pytest.mark.parametrize(
    ("prompt", "text", "value"),
    [
        ("Have you played before?", "we have, twice", True),
        ("Is it a motorised one?", "nah just one with a chain", False),
    ],
)
def test_a_yes_or_no_may_go_on(prompt: str, text: str, value: bool) -> None:
    param = Param(
        name="motorised",
        type=ParamType.BOOLEAN,
        description="whether it is a motorised one",
        prompt=prompt,
    )
    assert extract(param, Reply(text, prompt=prompt, now=NOW)).value is value


def test_whose_party_it_is_counts_nobody() -> None:
    text = "the whole boat for my parents' golden wedding"
    assert extract(PEOPLE, Reply(text, prompt="", now=NOW)).value is None


LENT = Param(name="lend_suit", type=ParamType.BOOLEAN, description="whether we lend them suits")
PETS = Param(name="pets", type=ParamType.BOOLEAN, description="whether they keep a pet")


@pytest.mark.parametrize(
    ("param", "text", "value"),
    [
        (LENT, "we dont own suits yet so could we borrow some?", True),
        (LENT, "we have no suits so we need two", True),
        (LENT, "no need for suits", False),
        (LENT, "we have our own suits", False),
        (LENT, "i don't own a suit", None),
        (PETS, "oh and we've got a cat", True),
        (PETS, "no dogs", False),
        (PETS, "we had a cat once", None),
    ],
)
def test_a_wish_that_follows_from_a_lack_is_a_yes(
    param: Param, text: str, value: bool | None
) -> None:
    assert find(param, text, now=NOW).value is value


CARE = Param(
    name="service",
    type=ParamType.ENUM,
    enum={"eye test": (), "hearing test": (), "contact lens fitting": (), "ear wax removal": ()},
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("my ears are full of wax again, can someone clean them out", "ear wax removal"),
        ("i need the wax out of my ear", "ear wax removal"),
        ("can you look at my ears", None),
    ],
)
def test_a_value_of_which_a_message_has_most_words_is_confirmed(
    text: str, value: str | None
) -> None:
    found = find(CARE, text, now=NOW)
    assert found.value == value
    assert value is None or found.confidence < doubtful_below(CARE)


@pytest.mark.parametrize("text", ["just the wax please", "wax", "the ears"])
def test_a_short_word_that_one_value_has_answers(text: str) -> None:
    assert answer(CARE, text).value == "ear wax removal"
