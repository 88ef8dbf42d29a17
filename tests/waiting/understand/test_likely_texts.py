"""A free text that a first message says already is offered, and not asked for."""

from __future__ import annotations

from datetime import datetime

import pytest

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.understand.remainder import likely_values
from langmem_ext.waiting.understand.values import Reading, read_values

NOW = datetime(2026, 3, 4, 10, 15)
OTHERS = [
    Param(name="day", type=ParamType.DATE, prompt="Which day?"),
    Param(name="amount", type=ParamType.MONEY, prompt="How much was it?"),
    Param(name="customer", type=ParamType.PERSON, description="name of the customer"),
]


def offered(name: str, wording: tuple[str, str], about: str, text: str) -> object:
    """The text of a parameter that a message may give; None where it is to be asked for."""
    description, prompt = wording
    asked = Param(name=name, type=ParamType.TEXT, description=description, prompt=prompt)
    reading = Reading(text, NOW, about=about)
    params = [asked, *OTHERS]
    read = read_values(params, reading)
    found = {**read, **likely_values(params, reading, read, [one.name for one in params])}
    return found[name].value if name in found else None


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("I'd like to rent a pirate costume for friday. I'm Callum Urquhart", "pirate costume"),
        ("my husband lost a bet lol. i need a bear costume", "bear costume"),
        ("need to hire a victorian dress for a school thing", "victorian dress"),
        ("do you have any dinosaur costumes for friday", "dinosaur costumes"),
        ("something for halloween please, a witch costume maybe", "witch costume"),
        ("looking to rent an elvis outfit for saturday", "elvis outfit"),
        ("can you do a kilt by friday", "kilt"),
        ("can i hire a costume for a party on friday", None),
        ("i'd like a new costume", None),
    ],
)
def test_a_thing_is_known_by_its_own_noun_or_by_what_is_wished(
    text: str, thing: str | None
) -> None:
    wording = ("which costume", "What costume are you looking for?")
    assert offered("costume", wording, "Hire a costume", text) == thing


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("hi i need a repeat prescription for my salbutamol inhaler", "salbutamol inhaler"),
        ("i need more of my amlodipine", "amlodipine"),
        ("two things, a repeat prescription for salbutamol. Winston Achebe", "salbutamol"),
        ("ran out of ramipril, need another prescription", "ramipril"),
        ("could I get some more metformin please", "metformin"),
        ("can you refill my ventolin", "ventolin"),
        ("id like to reorder my blood pressure tablets", "blood pressure tablets"),
        ("ive run out of my tablets and need some more", None),
        ("repeat prescription please", None),
        ("a repeat prescription for my wife", None),
    ],
)
def test_a_thing_stands_behind_the_noun_of_its_request(text: str, thing: str | None) -> None:
    wording = ("name of the medicine", "Which medicine do you need?")
    about = "Order more of a medicine. repeat prescription please; I need more tablets"
    assert offered("medicine", wording, about, text) == thing


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("want to hand in an expense, 112 euros for train tickets", "train tickets"),
        ("need to claim back 38 quid for the taxi from the airport on monday", "taxi"),
        ("claim 20 euros I spent on lunch yesterday", "lunch"),
        ("i paid 12 quid for a notebook on friday, can i get it back", "notebook"),
        ("Hello, I'd like to claim back an expense", None),
    ],
)
def test_what_a_sum_was_spent_on_stands_behind_it(text: str, thing: str | None) -> None:
    wording = ("what the money was spent on", "What did you buy?")
    about = "Claim back money spent for the company. hand in a receipt; claim an expense"
    assert offered("expense_for", wording, about, text) == thing


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("Hi, could I see someone about my knee please?", "my knee"),
        ("can i get in on monday about my blood test results", "my blood test results"),
        ("can I see a doctor regarding my back pain", "my back pain"),
        ("appointment for a flu jab on friday please", "a flu jab"),
        ("id like to be seen about a mole on my neck", "a mole on my neck"),
        ("can i get an appointment for tuesday", None),
        ("an appointment for my son please", None),
    ],
)
def test_what_a_request_is_about_is_said_behind_about_and_for(text: str, topic: str | None) -> None:
    wording = ("what the appointment is about", "What is it about?")
    about = "Book an appointment with a doctor. I'd like to see a doctor"
    assert offered("reason", wording, about, text) == topic


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "my parcel came this morning and the vase inside is smashed to bits",
            "the vase inside is smashed to bits",
        ),
        (
            "ordered two lamps. they turned up with the shade dented",
            "they turned up with the shade dented",
        ),
        ("it arrived and the mirror is in pieces", "mirror"),
        (
            "my wool jumper came back shrunk, it would fit a doll now",
            "my wool jumper came back shrunk",
        ),
        ("the box was crushed and two plates are chipped", "two plates are chipped"),
    ],
)
def test_what_is_damaged_is_told_with_what_is_wrong(text: str, fault: str) -> None:
    wording = ("what is damaged", "What is damaged?")
    assert offered("damage", wording, "Report a parcel that arrived damaged", text) == fault


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("i want to sell my grandfather's pocket watch", "grandfather's pocket watch"),
        ("could you value an oil painting", "oil painting"),
        ("I have a set of silver spoons to sell", "set of silver spoons"),
        ("thinking of selling a few old coins", "old coins"),
        ("we have a box of old hats, would you sell them", "box of old hats"),
        ("do you sell olive trees", "olive trees"),
        ("my late aunt left behind a lot of old dresses", "old dresses"),
        ("we have some old evening dresses for you", "old evening dresses"),
        ("got a leather armchair gathering dust in the shed", "leather armchair"),
        ("can i sell something with you?", None),
        ("2 things. can you sell an armchair for me", "armchair"),
        ("I want to sell two brass lamps and a clock", "two brass lamps and a clock"),
        ("have you got a minute", None),
        ("did anyone hand in a black umbrella", "black umbrella"),
    ],
)
def test_a_thing_is_offered_with_the_words_that_tell_which(text: str, thing: str | None) -> None:
    wording = ("what is to be sold", "What would you like to sell?")
    assert offered("item", wording, "Sell something at our auction", text) == thing


@pytest.mark.parametrize(
    ("text", "food"),
    [
        ("want to donate some food, 12.5 euros of rabbit pellets", "rabbit pellets"),
        ("do you take food donations", None),
    ],
)
def test_what_is_counted_is_offered_though_the_request_speaks_of_it(
    text: str, food: str | None
) -> None:
    about = "Bring us food for the animals. we want to donate rabbit pellets"
    assert offered("food", ("what food", "What food is it?"), about, text) == food


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("can i come on friday? my neck is killing me. Ruth Abara", "neck"),
        ("appointment on friday for my hip", "hip"),
        ("did my knee in at football", "knee"),
    ],
)
def test_what_hurts_is_no_place_though_it_is_asked_where(text: str, part: str) -> None:
    wording = ("what hurts", "Where does it hurt?")
    assert offered("body_part", wording, "Book a session with a physiotherapist", text) == part


def test_a_fault_is_not_that_one_is_reported() -> None:
    wording = ("what is wrong", "What is wrong with it?")
    text = "report a fault on the same one, the E key is stuck"
    assert offered("fault", wording, "Report a fault of a device", text) == "the E key is stuck"


def test_what_a_request_says_that_it_is_about_is_offered_without_its_lead() -> None:
    wording = ("what the appointment is about", "What is it about?")
    text = "id rather book an appointment. its about this rash on my arm, wont go away"
    said = offered("reason", wording, "Book an appointment with a doctor", text)
    assert said == "this rash on my arm, wont go away"


@pytest.mark.parametrize(
    ("description", "prompt", "text"),
    [
        ("what is damaged", "What exactly is damaged?", "the teapot has a big crack"),
        ("what is damaged", "What exactly is damaged?", "the lid is in two pieces"),
        ("what is bothering the patient", "What is bothering you?", "my eyes are really itchy"),
    ],
)
def test_what_is_damaged_or_hurts_may_be_told_in_a_sentence(
    description: str, prompt: str, text: str
) -> None:
    asked = Param(name="what", type=ParamType.TEXT, description=description, prompt=prompt)
    assert extract(asked, Reply(text, prompt=prompt, now=NOW)).value == text
