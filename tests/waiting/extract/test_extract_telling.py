"""A free answer is kept whole, without what plainly is something else."""

from __future__ import annotations

from datetime import datetime
from functools import partial

import pytest
from cpu_time import LITTLE, cpu_seconds

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType, doubtful_below
from langmem_ext.waiting.extract import Reply, extract, find

NOW = datetime(2026, 3, 4, 10, 15)

WORDING = Param(
    name="wording",
    type=ParamType.TEXT,
    description="words that go on the stone",
    prompt="Which words should be added?",
)
CARD = Param(
    name="card",
    type=ParamType.TEXT,
    description="words on the card",
    prompt="What should the card say?",
)
FAULT = Param(
    name="fault",
    type=ParamType.TEXT,
    description="what is wrong with it",
    prompt="What is wrong with it?",
)
NOTE = Param(
    name="note",
    type=ParamType.TEXT,
    description="note for the driver",
    prompt="Anything the driver should know?",
)


def answer(param: Param, text: str) -> Extraction:
    return extract(param, Reply(text, prompt=param.prompt, now=NOW))


@pytest.mark.parametrize(
    "text",
    [
        "Also Ronald Peter Hays, 1941 - 2026, reunited",
        "In loving memory of Ann, born 3 May 1941, died 2 March 2026",
        "Beloved father. Forever in our hearts",
        "He was our rock, we miss him",
        "Gone but not forgotten",
        "Thanks for everything Dad",
        "Well done Sam! Love Gran",
        "Sorry for your loss",
        "1941 - 2026",
    ],
)
def test_words_to_be_written_are_kept_whole(text: str) -> None:
    assert answer(WORDING, text).value == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("it should say: Sleep well, 1941-2026", "Sleep well, 1941-2026"),
        ("can it say Gone Fishing?", "Gone Fishing"),
        ("please write: Get well soon", "Get well soon"),
        ("just 'Reunited'", "Reunited"),
        ("hmm, Forever Young please", "Forever Young"),
        ("Sleep tight Grandad. my number is 07700 900671", "Sleep tight Grandad"),
        ("what do people usually put?", None),
        ("dunno, ask my brother", None),
    ],
)
def test_words_to_be_written_have_no_frame(text: str, value: str | None) -> None:
    assert answer(CARD, text).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "left heel came off, 2 cm gap, since monday",
            "left heel came off, 2 cm gap, since monday",
        ),
        ("hang on. the screen is cracked", "the screen is cracked"),
        ("its dead. can you do it by friday?", "its dead"),
        ("screen cracked, my number is 07700 900671", "screen cracked"),
        ("the zip broke, email ann@mail.com", "the zip broke"),
        ("the zip is stuck. my name is ann lee", "the zip is stuck"),
        ("my address is wrong on the label", "my address is wrong on the label"),
    ],
)
def test_a_story_ends_where_something_else_is_said(text: str, value: str) -> None:
    found = answer(FAULT, text)
    assert found.value == value
    assert found.confidence >= doubtful_below(FAULT)


@pytest.mark.parametrize(
    "text",
    [
        "hang on, digging through my bag",
        "one sec",
        "bear with me, just finding it",
        "let me check with my wife",
        "give me a minute, i need to find the receipt",
    ],
)
def test_who_asks_for_time_tells_nothing(text: str) -> None:
    assert answer(FAULT, text).status != "filled"


@pytest.mark.parametrize("text", ["can u do it express tho", "ah the slip. hang on, let me look"])
def test_what_may_be_no_answer_is_to_be_confirmed(text: str) -> None:
    assert answer(FAULT, text).confidence < doubtful_below(FAULT)


def test_a_wish_that_was_asked_for_may_be_a_question() -> None:
    found = answer(NOTE, "could you ring the bell twice")
    assert found.value == "could you ring the bell twice"
    assert found.confidence >= doubtful_below(NOTE)


def test_a_text_that_is_labelled_ends_where_somebody_is_named() -> None:
    text = "a posy. card: Love you. My name is Ann Lee"
    assert find(CARD, text, now=NOW).value == "Love you"


ALLERGIES = Param(name="allergies", type=ParamType.TEXT, description="allergies and diets")
REASON = Param(
    name="reason", type=ParamType.TEXT, description="why it is given back", prompt="May I ask why?"
)
SAFE_PLACE = Param(name="safe_place", type=ParamType.TEXT, description="where to leave the parcel")
COMPANY = Param(name="company", type=ParamType.TEXT, description="name of the company")


@pytest.mark.parametrize(
    ("param", "text", "value"),
    [
        (NOTE, "12 Mill Lane. note for the driver: gate code 1234", "gate code 1234"),
        (NOTE, "to 12 Mill Lane, notes: ring twice", "ring twice"),
        (ALLERGIES, "A buffet for 30? One guest has a nut allergy.", "One guest has a nut allergy"),
        (ALLERGIES, "lunch for six. My son is allergic to eggs", "My son is allergic to eggs"),
        (ALLERGIES, "do you cater for allergies?", None),
        (ALLERGIES, "A buffet for 30 on friday", None),
        (CARD, "a posy, it should say Get well Jo! for friday", "Get well Jo"),
        (CARD, 'a posy with "Get well Jo" on it', "Get well Jo"),
        (CARD, "a posy with Get well Jo on the card please", "Get well Jo"),
        (CARD, "a posy with a bow on top", None),
        (SAFE_PLACE, "tomorrow, please leave it by the back door", "by the back door"),
        (SAFE_PLACE, "I left my bag in the shop", None),
        (COMPANY, "I am writing on behalf of Hallam & Sons. A buffet please", "Hallam & Sons"),
    ],
)
def test_a_text_that_nobody_asked_for_is_read_where_its_noun_tells_it(
    param: Param, text: str, value: str | None
) -> None:
    assert find(param, text, now=NOW).value == value


def test_a_reason_in_a_request_is_to_be_confirmed() -> None:
    text = "more time please, because my laptop was stolen. thanks"
    found = find(REASON, text, now=NOW)
    assert found.value == "my laptop was stolen"
    assert found.confidence < doubtful_below(REASON)
    assert find(FAULT, text, now=NOW).status == "abstained"


HALL_FOR = Param(name="purpose", type=ParamType.TEXT, prompt="What is it for?")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("It's for the parish knitting group", "the parish knitting group"),
        ("its for my mum's 80th, about 30 of us", "my mum's 80th, about 30 of us"),
        ("for a meeting", "a meeting"),
        ("a meeting", "a meeting"),
    ],
)
def test_what_something_is_for_is_told_without_its_lead(text: str, value: str) -> None:
    assert answer(HALL_FOR, text).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a room from 10am, 3 hours, its for a kids party", "a kids party"),
        ("a room please. it's for our wedding on the 3rd of june", "our wedding"),
        ("a room please, it's for the 5th", None),
        ("a room please, it's for 20 people", None),
        ("a room please, it's for my son", None),
        ("a room please, it's for Ann", None),
    ],
)
def test_what_something_is_for_is_read_unasked_where_it_says_so(
    text: str, value: str | None
) -> None:
    assert find(HALL_FOR, text, now=NOW).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("the main hall for a wedding on 5 june", "a wedding"),
        ("a room for our book club on friday at 7pm", "our book club"),
        ("a room for my daughter's 18th on the 3rd of may", "my daughter's 18th"),
        ("a room for a friend of mine", None),
        ("a room for a group of 20", None),
        ("a room for a week", None),
    ],
)
def test_what_a_request_may_be_for_is_to_be_confirmed(text: str, value: str | None) -> None:
    found = find(HALL_FOR, text, now=NOW)
    assert found.value == value
    assert found.confidence < doubtful_below(HALL_FOR)


@pytest.mark.parametrize("text", ["no lol theyre five", "nope, we don't", "the Main Hall"])
def test_a_no_to_something_else_and_a_known_value_tell_nothing(text: str) -> None:
    known = Reply(text, prompt=HALL_FOR.prompt, filled={"room": "main hall"}, now=NOW)
    assert extract(HALL_FOR, known).status == "abstained"


def test_a_no_and_other_words_are_to_be_confirmed() -> None:
    assert answer(HALL_FOR, "no, just tea and cake").confidence < doubtful_below(HALL_FOR)
    assert answer(FAULT, "no heating").value == "no heating"
    assert answer(FAULT, "no heating").confidence >= doubtful_below(FAULT)


def test_a_no_answers_a_question_of_yes_or_no() -> None:
    wishes = Param(name="wishes", type=ParamType.TEXT, prompt="Any wishes?")
    assert answer(wishes, "no, we are all vegan").status == "filled"


@pytest.mark.parametrize(
    "part", ["hang on, ", "my number is ", "1 ", "it should ", "ok, ", "a.b", "no lol "]
)
def test_a_long_answer_is_told_in_little_time(part: str) -> None:
    text = part * (10_000 // len(part))
    for param in (WORDING, FAULT, HALL_FOR):
        assert cpu_seconds(partial(answer, param, text)) < LITTLE
