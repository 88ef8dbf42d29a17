"""What people write besides values: wishes and what is told, what is ruled out, second thoughts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from langmem_ext import DeltaSaver, build_waiting_graph, converse
from langmem_ext.waiting.catalog.catalog import IntentCatalog
from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract import Reply, extract, find
from langmem_ext.waiting.extract.dates.spelling import Spelled
from langmem_ext.waiting.understand.acts.assent import yes_or_no
from langmem_ext.waiting.understand.acts.spelling import with_plain_answer
from langmem_ext.waiting.understand.acts.statements import tells
from langmem_ext.waiting.understand.intents.classifier import (
    Classification,
    ClassifyRequest,
    RuleClassifier,
    find_params,
)
from langmem_ext.waiting.understand.intents.similarity import units_of
from langmem_ext.waiting.understand.likely_time import after
from langmem_ext.waiting.understand.values import Reading, read_values

NOW = datetime(2026, 3, 4, 10, 15)
CATALOG = IntentCatalog.from_dict(
    {
        "intents": [
            {
                "id": "move_tour",
                "description": "Move a tour to another day",
                "examples": ["move my tour"],
                "required": ["new_day"],
            },
            {
                "id": "cancel_tour",
                "description": "Cancel a tour",
                "examples": ["we can't come to the tour"],
                "required": ["code"],
            },
            {
                "id": "order_guide",
                "description": "Order a printed guide",
                "examples": ["send me the guide"],
                "required": ["language"],
            },
        ],
        "params": {
            "new_day": {"type": "date", "future": True},
            "code": {"type": "identifier", "pattern": r"T-\d{3}"},
            "language": {"type": "enum", "enum": ["finnish", "swedish"]},
        },
    }
)


def param(name: str, kind: str, **fields: Any) -> Param:
    return Param(name=name, type=ParamType(kind), **fields)


def answer(text: str, asked: Param, prompt: str = "Which?") -> Extraction:
    return extract(asked, Reply(text, prompt=prompt, now=NOW))


def classified(text: str) -> Classification:
    every = {name: find(each, text, now=NOW) for name, each in CATALOG.params.items()}
    found = {name: value.span for name, value in every.items() if value.span}
    request = ClassifyRequest(text, CATALOG, now=NOW, param_spans=found)
    return RuleClassifier().classify(request)


def intents_of(text: str) -> list[str | None]:
    found = classified(text)
    return [found.intent_id, *(other.intent_id for other in found.also)]


# -- what is wished for and what is told -----------------------------------------------------------


def test_a_clause_that_tells_how_things_are_is_no_wish() -> None:
    assert tells("my train leaves at noon")
    assert not tells("my brother needs a ticket")
    assert not tells("could we meet later?")


def test_the_wish_of_a_message_is_its_request_whatever_it_tells() -> None:
    assert intents_of("we can't come on monday, could you move our tour?") == ["move_tour"]


def test_two_requests_that_are_joined_are_both_taken() -> None:
    assert intents_of("cancel the tour T-204 and send me the printed guide") == [
        "cancel_tour",
        "order_guide",
    ]


def test_an_allowed_value_speaks_for_the_one_intent_that_takes_it_and_it_is_asked_about() -> None:
    assert classified("mother would like one in finnish").choices == ("order_guide",)


# -- yes and no ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("he is", True),
        ("they aren't", False),
        ("sadly not", False),
        ("nobody", False),
        ("as far as I know yes, all of them", True),
    ],
)
def test_short_words_answer_a_yes_or_no_question(text: str, value: bool) -> None:
    assert answer(text, param("present", "boolean"), "Is everybody present?").value is value


def test_not_yet_answers_how_things_are_and_puts_off_what_is_wished() -> None:
    signed = param("signed", "boolean")
    assert answer("not yet", signed, "Is it signed?").value is False
    assert answer("not yet", signed, "Would you like to sign it?").status == "declined"


# -- values that are not meant ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("not thursday, the day after", "2026-03-06"),
        ("not saturday, she works saturdays. sunday", "2026-03-08"),
        ("tuesday doesn't suit, wednesday would", "2026-03-11"),
        ("monday or tuesday, tuesday is better", "2026-03-10"),
        ("mon, or tue if that's full", "2026-03-09"),
    ],
)
def test_a_day_that_is_ruled_out_is_not_taken(text: str, day: str) -> None:
    assert answer(text, param("day", "date", future=True)).value == day


def test_an_address_that_is_forbidden_is_not_taken() -> None:
    text = "don't send it to 4 Hill Road, send it to 9 Lake Road"
    assert find(param("address", "address"), text, now=NOW).value == "9 Lake Road"


# -- the meaning of values -------------------------------------------------------------------------


def test_a_word_that_means_what_one_value_means_answers() -> None:
    state = param("state", "enum", enum={"lost": (), "late": ()})
    assert answer("it has disappeared", state).value == "lost"
    assert answer("it's green", state).status == "abstained"


def test_the_own_words_of_a_parameter_tell_two_days_apart() -> None:
    days = (
        param("fetch", "date", description="the day we fetch it"),
        param("bring_back", "date", description="the day we bring it back"),
    )
    read = read_values(days, Reading("bring it back on monday, fetch it on friday", NOW))
    assert {name: found.value for name, found in read.items()} == {
        "fetch": "2026-03-06",
        "bring_back": "2026-03-09",
    }


def test_a_number_is_what_its_noun_counts() -> None:
    group = (
        param("adults", "integer", description="number of adults"),
        param("children", "integer", description="number of children"),
    )
    read = read_values(group, Reading("2 adults and 3 kids", NOW))
    assert {name: found.value for name, found in read.items()} == {"adults": 2, "children": 3}


def test_a_typed_value_of_another_parameter_is_no_open_answer() -> None:
    asked = (
        param("item", "text", description="what was left"),
        param("phone", "phone", description="your number"),
    )
    read = read_values(
        asked, Reading("0161 496 0555", NOW, asked="item", prompt="What did you leave?")
    )
    assert set(read) == {"phone"}


# -- values where they are said without having been asked for --------------------------------------


@pytest.mark.parametrize(
    ("text", "asked", "value"),
    [
        ("3 St. John's Square", param("home", "address"), "3 St. John's Square"),
        (
            "Apartment 12, Kestrel House, 4 Wharf Street, Leith",
            param("home", "address"),
            "Apartment 12, Kestrel House, 4 Wharf Street, Leith",
        ),
        ("the last day of march", param("day", "date"), "2026-03-31"),
        ("the end of next month", param("day", "date"), "2026-04-30"),
    ],
)
def test_an_answer_is_read_whole(text: str, asked: Param, value: str) -> None:
    found = answer(text, asked)
    assert (found.status, found.value) == ("filled", value)


@pytest.mark.parametrize(
    ("text", "looked_for", "value"),
    [
        (
            "please change my address as well: 7b Saltmarket, Ayr",
            param("home", "address"),
            "7b Saltmarket, Ayr",
        ),
        ("we are moving to 7 Elm Grove, Stroud", param("home", "address"), "7 Elm Grove, Stroud"),
        (
            "845.50 every month",
            param("interval", "enum", enum={"weekly": (), "monthly": ()}),
            "monthly",
        ),
        ("2 tickets from york to edinburgh", param("origin", "place", role="from"), "york"),
        (
            "the lamp on quarry road is out",
            param("street", "place", description="street of the lamp"),
            "quarry road",
        ),
        (
            'could you write "Happy Days" on it?',
            param("inscription", "text", description="words on the cake"),
            "Happy Days",
        ),
        ("saturday morning, 9", param("start", "time"), "09:00"),
    ],
)
def test_a_value_is_read_where_nothing_asked_for_it(
    text: str, looked_for: Param, value: str
) -> None:
    found = find(looked_for, text, now=NOW)
    assert (found.status, found.value) == ("filled", value)


def test_a_day_that_is_not_possible_is_not_the_new_one_and_may_be_the_one_that_is_cancelled() -> (
    None
):
    text = "i can't come on friday"
    assert find(param("new_day", "date", future=True), text, now=NOW).value is None
    assert find(param("missed", "date"), text, now=NOW).value == "2026-03-06"


@pytest.mark.parametrize("kind", ["text", "place", "address"])
def test_a_name_that_is_told_answers_no_other_question(kind: str) -> None:
    assert (
        answer("my name's Hannah Brandt", param("street", kind), "In which street?").status
        == "abstained"
    )


# -- what is asked for -----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["we don't need the tour anymore", "the tour is no longer needed"])
def test_who_no_longer_needs_a_thing_wants_it_cancelled(text: str) -> None:
    assert intents_of(text) == ["cancel_tour"]


def test_a_thing_beside_one_that_is_wished_for_is_wished_for_too() -> None:
    assert intents_of("could you cancel my tour and a printed guide") == [
        "cancel_tour",
        "order_guide",
    ]


@pytest.mark.parametrize(
    "text",
    [
        *("yesss", "yesss thank u", "okkk", "yh perfect", "yup, that'll do, ta"),
        *("bang on", "happy with that", "ok 👍", "it is", "mhm yes", "that's   RIGHT"),
    ],
)
def test_a_yes_is_a_yes_in_whatever_words(text: str) -> None:
    assert yes_or_no(text) is True


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("yeh", "yes"),
        ("Yeap, thx", "yes, thx"),
        ("nae.", "no."),
        ("okey", "ok"),
        ("yess", "yes"),
        ("yeh jin", "yeh jin"),
    ],
)
def test_a_plain_answer_counts_however_it_is_spelt(written: str, plain: str) -> None:
    assert with_plain_answer(written) == plain


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("its quartr past twevle", "it's quarter past twelve"),
        ("u open 2moro", "you open tomorrow"),
        ("1 apil", "1 april"),
        ("me@its.com, R. Smith", "me@its.com, R. Smith"),
    ],
)
def test_small_words_are_read_as_they_were_meant(written: str, meant: str) -> None:
    assert Spelled(written).text == meant


@pytest.mark.parametrize(
    ("begin", "end", "said", "day"),
    [
        ("2026-03-20", "2026-03-09", "till monday", "2026-03-23"),
        ("2026-04-02", "2026-03-09", "back on the 9th", "2026-04-09"),
        ("2026-04-02", "2026-03-09", "until 9 March", "2026-03-09"),
        ("2026-04-02", "2026-04-09", "the 9th", "2026-04-09"),
    ],
)
def test_an_end_named_by_weekday_or_number_lies_behind_its_beginning(
    begin: str, end: str, said: str, day: str
) -> None:
    assert after(begin, end, said) == day


def test_a_question_word_with_an_apostrophe_asks_for_the_same() -> None:
    assert units_of("where's it")[0].concepts == units_of("wheres it")[0].concepts != frozenset()


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("the 21st, that's a saturday i think", "2026-03-21"),
        ("thursday 12th half past one", "2026-03-12"),
        ("week on friday", "2026-03-13"),
        ("a week today", "2026-03-11"),
    ],
)
def test_a_day_that_is_named_twice_is_one_day(text: str, day: str) -> None:
    assert answer(text, param("day", "date", future=True)).value == day


def test_the_days_of_a_span_stay_two_though_both_are_saturdays() -> None:
    days = [param("arrival", "date", role="from"), param("departure", "date", role="to")]
    read = read_values(days, Reading("from saturday to the 21st", NOW))
    assert {name: found.value for name, found in read.items()} == {
        "arrival": "2026-03-07",
        "departure": "2026-03-21",
    }


@pytest.mark.parametrize(
    "text",
    [
        "Regarding my appointment on the 10th: I should have to come some other time",
        "our booking for friday has to be moved",
    ],
)
def test_the_day_of_what_is_booked_is_not_the_new_one(text: str) -> None:
    assert find(param("new_day", "date", description="the new day"), text, now=NOW).value is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3 station terrace truro", "3 station terrace truro"),
        ("40 Mill Lane Otley", "40 Mill Lane Otley"),
        ("9 ferry street tomorrow", "9 ferry street"),
    ],
)
def test_a_town_may_end_an_address_without_a_comma(text: str, value: str) -> None:
    assert answer(text, param("address", "address")).value == value


def test_part_of_a_synonym_names_its_value() -> None:
    park = param("park", "enum", enum={"outside": ("open air",), "covered": ("under a roof",)})
    assert answer("roof over it, it's new", park).value == "covered"


def test_a_small_name_before_another_value_is_one_to_ask_about() -> None:
    found = answer("gregor hahn account 30419982", param("payee", "person"))
    assert (found.value, found.confidence < 0.56) == ("gregor hahn", True)


def test_six_may_be_morning_or_evening() -> None:
    read = read_values([param("time", "time")], Reading("at 6:30", NOW, about="park a car"))
    assert read == {}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("my emial and a pasport foto", "my email and a passport foto"),
        ("two emails, three orders", "two emails, three orders"),
        ("Emial", "Emial"),
        ("the order is older", "the order is older"),
    ],
)
def test_a_catalogs_words_are_put_right_where_two_letters_changed_places(
    written: str, meant: str
) -> None:
    words = frozenset({"email", "passport", "there", "order"})
    assert Spelled(written, words).text == meant


@pytest.mark.parametrize(
    "text",
    [
        "we're shut on thursday so can you bring it on friday",
        "i can't come on monday, could you do friday",
        "I have no time on saturday, please make it friday",
        "it is booked for tomorrow, can you change it to friday",
    ],
)
def test_a_day_on_which_nobody_can_is_not_what_is_wished_for(text: str) -> None:
    catalog = IntentCatalog.from_dict(
        {
            "intents": [{"id": "move", "description": "Move a delivery", "required": ["day"]}],
            "params": {"day": {"type": "date", "description": "new day", "prompt": "Which day?"}},
        }
    )
    request = ClassifyRequest(text, catalog, now=NOW)
    assert find_params(catalog.intent("move"), request) == {"day": "2026-03-06"}


def test_no_thanks_is_a_no_to_a_question_of_yes_or_no() -> None:
    catalog = IntentCatalog.from_dict(
        {
            "intents": [{"id": "berth", "description": "Book a berth", "required": ["power"]}],
            "params": {"power": {"type": "boolean", "prompt": "Do you need shore power?"}},
        }
    )
    with DeltaSaver.open(":memory:") as saver:
        graph = build_waiting_graph(catalog, []).compile(checkpointer=saver)
        for text in ("book a berth", "no thanks"):
            converse(graph, text, thread_id="t", now=NOW)
        state = graph.get_state({"configurable": {"thread_id": "t"}}).values
    assert state["params"] == {"power": False}


@pytest.mark.parametrize("text", ["I do want to change it", "it is the other one", '"yes"', "fine"])
def test_a_yes_that_goes_on_to_something_else_is_none(text: str) -> None:
    assert yes_or_no(text) is None


def test_a_word_that_says_yes_is_no_misspelt_word_of_the_catalog() -> None:
    assert Spelled("spot on", frozenset({"sport"})).text == "spot on"
