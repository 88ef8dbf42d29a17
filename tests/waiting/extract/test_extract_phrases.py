"""An asked text takes words that name something, and no sentence about something else."""

from __future__ import annotations

from datetime import datetime

import pytest

from langmem_ext.waiting.catalog.param import Param, ParamType, doubtful_below
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.extract.names.texts.objects import objects_in, things_in

NOW = datetime(2026, 3, 2, 10, 0)

THING = Param(name="thing", type=ParamType.TEXT, description="what is to be stored")
SPOT = Param(name="spot", type=ParamType.TEXT, description="where the bike was left")
FAULT = Param(name="fault", type=ParamType.TEXT, description="what is wrong with it")
FROM = Param(name="fetched", type=ParamType.ADDRESS, description="where it is", role="from")
TO = Param(name="brought", type=ParamType.ADDRESS, description="where it goes", role="to")
DRIVER = Param(name="driver", type=ParamType.PERSON, description="who drives")


def answered(param: Param, text: str, prompt: str = "Which one is it?") -> tuple[object, bool]:
    """The value and whether it is certain."""
    found = extract(param, Reply(text, prompt=prompt, now=NOW))
    sure = found.confidence >= doubtful_below(param)
    return (found.value, sure) if found.status == "filled" else (None, False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a wardrobe", "a wardrobe"),
        ("it's an old piano", "an old piano"),
        ("thats a mountain bike", "a mountain bike"),
        ("i have two kayaks", "two kayaks"),
        ("golf clubs, a tent and three crates", "golf clubs, a tent and three crates"),
        ("the trunk that I brought last year", "the trunk that I brought last year"),
        ("skis please", "skis"),
    ],
)
def test_a_phrase_names_a_thing(text: str, value: str) -> None:
    assert answered(THING, text) == (value, True)


@pytest.mark.parametrize(
    "text",
    [
        "can we make it the 5th instead, the road is closed",
        "not sure, my wife knows",
        "upstairs she says",
        "we moved it last winter",
        "whens your next free slot",
        "wdym thing",
        "idk havent looked",
        "np",
        "hang on",
        "42",
        "forget the bike",
        "send it to the office",
    ],
)
def test_no_sentence_names_a_thing(text: str) -> None:
    assert answered(THING, text) == (None, False)


def test_a_thing_named_beside_other_sentences_is_doubtful() -> None:
    text = "went up to the loft, it's a cello in a case"
    assert answered(THING, text) == ("a cello in a case", False)


def test_two_sentences_that_name_something_name_it_doubtfully() -> None:
    text = "oh sorry, Philippa Strand. theres pictures on my page"
    assert answered(THING, text)[1] is False


def test_a_sentence_says_where() -> None:
    assert answered(SPOT, "we left it behind the sports hall") == ("behind the sports hall", False)


def test_what_is_told_is_told_in_sentences() -> None:
    text = "it stops whenever I press the pedal"
    assert answered(FAULT, text) == (text, True)


@pytest.mark.parametrize(
    ("text", "things"),
    [
        ("got an old sofa n 2 mattresses", ["old sofa n 2 mattresses"]),
        ("need a locker, it's for a load of tyres", ["load of tyres"]),
        ("two of us", []),
        ("have you got a minute", []),
        ("wardrobe to store", ["wardrobe"]),
        ("please store old paintings", ["old paintings"]),
        ("forgot my umbrella on the tram", ["umbrella"]),
        ("ask my wife", []),
        ("someone left a canoe in the lane", ["canoe"]),
    ],
)
def test_a_message_names_things(text: str, things: list[str]) -> None:
    known = frozenset({"stor", "locker", "store"})
    assert [text[start:end] for start, end in things_in(text, known)] == things


def test_a_verb_has_a_name_for_its_object() -> None:
    text = "could you feed pepper on monday"
    assert [text[start:end] for start, end in objects_in(text, frozenset({"feed"}))] == ["pepper"]


@pytest.mark.parametrize(
    "text",
    [
        "move it from 4 Vine Street to 9 Mill Road",
        "to 9 Mill Road please, it is at 4 Vine Street",
        "to my mum, 9 Mill Road",
        "collect it at 4 Vine Street, it goes to my sister at 9 Mill Road",
        "from our office at 4 Vine Street to Jenny's, 9 Mill Road",
        "collection 4 Vine Street, delivery 9 Mill Road",
    ],
)
def test_addresses_have_roles(text: str) -> None:
    to = extract(TO, Reply(text, others=[FROM], now=NOW))
    assert to.value == "9 Mill Road"


def test_an_address_in_another_role_answers_nothing_unless_somebody_comes_there() -> None:
    whither = Reply("to my mum, 9 Mill Road", prompt="Where do we collect it?", now=NOW)
    assert extract(FROM, whither).value is None
    comes = Reply("to our office, 9 Mill Road", prompt="Where should we come?", now=NOW)
    assert extract(FROM, comes).value == "9 Mill Road"


@pytest.mark.parametrize("text", ["can he come at 11 instead", "could it be at 9"])
def test_a_wish_is_no_address(text: str) -> None:
    assert extract(TO, Reply(text, prompt="Where does it go?", now=NOW)).value is None


@pytest.mark.parametrize("text", ["me, tess okafor", "its me, tess okafor", "tess okafor"])
def test_who_answers_says_who(text: str) -> None:
    assert answered(DRIVER, text, "Who will drive?") == ("tess okafor", True)


def test_an_address_ends_with_its_sentence() -> None:
    address = Param(name="address", type=ParamType.ADDRESS)
    said = "Flat 3, 27 Mill Lane. note for the driver: ring twice"
    assert answered(address, said, "Where?")[0] == "Flat 3, 27 Mill Lane"
    assert answered(address, "12 Vale Road, apt. 4", "Where?")[0] == "12 Vale Road, apt. 4"


def test_a_secret_is_whatever_is_said() -> None:
    secret = Param(name="pass", type=ParamType.TEXT, sensitive=True)
    assert answered(secret, "hunter2 is it")[0] == "hunter2 is it"


@pytest.mark.parametrize("text", ["nothing like that", "if poss"])
def test_words_beside_a_thing_name_none(text: str) -> None:
    assert answered(SPOT, text)[0] is None


@pytest.mark.parametrize(
    ("prompt", "text", "value"),
    [
        ("Shall we deliver it?", "ill come and collect it", False),
        ("Shall we deliver it?", "we can pick it up", False),
        ("Shall we collect it?", "we will bring it ourselves", False),
        ("Shall we deliver it?", "can i collect it on sunday? no idea", None),
        ("Shall we deliver it?", "its raining", None),
    ],
)
def test_what_is_done_instead_says_no(prompt: str, text: str, value: object) -> None:
    wanted = Param(name="wanted", type=ParamType.BOOLEAN, description="what is wanted")
    assert answered(wanted, text, prompt)[0] is value
