"""The rules find what a message asks for, or say they cannot; they know corrections and resets."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from repository import ROOT

from graphs.shop import TOOLS
from langmem_ext.waiting.catalog.catalog import IntentCatalog
from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.understand.acts.statements import refers_back
from langmem_ext.waiting.understand.acts.steering import is_cancel, is_reset
from langmem_ext.waiting.understand.clauses import words_without_values
from langmem_ext.waiting.understand.corrections.other_values import other_values
from langmem_ext.waiting.understand.corrections.said import Said
from langmem_ext.waiting.understand.intents.classifier import (
    CERTAIN,
    Classification,
    Classifier,
    ClassifyRequest,
    RuleClassifier,
)

NOW = datetime.datetime(2024, 5, 1, 12, 0)
CATALOG = IntentCatalog.from_yaml(ROOT / "graphs" / "intents.yaml").with_tools(TOOLS)
RULES = RuleClassifier()


def classify(
    text: str, *, waiting_for: str | None = None, catalog: IntentCatalog = CATALOG
) -> Classification:
    return RULES.classify(ClassifyRequest(text, catalog, waiting_for=waiting_for, now=NOW))


def taken_back(
    text: str,
    known: Mapping[str, JsonValue],
    asked: str | None,
    catalog: IntentCatalog = CATALOG,
) -> Mapping[str, JsonValue]:
    """What a message certainly says anew, while a parameter is asked for."""
    said = Said(text, known, NOW, asked=catalog.params.get(asked or ""))
    new = other_values(list(catalog.params.values()), said)
    return new.values if new.certain else {}


@pytest.mark.parametrize(
    ("text", "intent", "params"),
    [
        ("I want to check my order", "check_order", {}),
        ("wheres my order", "check_order", {}),
        ("could you please check order o-12345?", "check_order", {"order_id": "O-12345"}),
        ("has my parcel arrived yet", "check_order", {}),
        ("order status", "check_order", {}),
        ("is it possible to track O-777", "check_order", {"order_id": "O-777"}),
        ("cancle my order O-777 please", "cancel_order", {"order_id": "O-777"}),
        ("cancel it", "cancel_order", {}),
        ("I no longer need what I ordered", "cancel_order", {}),
        ("don't cancel, just check order O-777", "check_order", {"order_id": "O-777"}),
        (
            "i want my money back for O-777, it was broken",
            "refund",
            {"order_id": "O-777", "reason": "damaged"},
        ),
        (
            "change the address of O-12345 to 12 Elm Street, Springfield",
            "change_address",
            {"order_id": "O-12345", "address": "12 Elm Street, Springfield"},
        ),
        ("get me a human", "talk_to_human", {}),
        ("can i speak to somebody", "talk_to_human", {}),
    ],
)
def test_a_request_is_understood_with_the_values_it_gives(
    text: str, intent: str, params: Mapping[str, JsonValue]
) -> None:
    found = classify(text)
    assert (found.intent_id, found.params, found.source) == (intent, params, "rules")
    assert CERTAIN <= found.confidence <= 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "hello",
        "thanks",
        "O-12345",
        "it's O-12345",
        "what's the weather",
        "where do you ship to?",
        "who are you",
        "I'd like to order a pizza",
        "I do not want a refund",
        "stop",
        "???",
        "talk to a human about my refund",
        "refund my order or cancel my order",
    ],
)
def test_what_asks_for_nothing_or_for_two_things_is_left_open(text: str) -> None:
    found = classify(text)
    assert (found.intent_id, found.params) == (None, {})


def test_a_catalog_without_patterns_and_examples_works_by_its_descriptions() -> None:
    catalog = IntentCatalog.from_dict(
        {
            "intents": {
                "find_flight": {"description": "Search for a flight"},
                "BookHotel": {"description": "Reserve a room in a hotel"},
            }
        }
    )
    assert (
        classify("can you search for a flight to Rome", catalog=catalog).intent_id == "find_flight"
    )
    assert classify("I would like to book a hotel", catalog=catalog).intent_id == "BookHotel"
    assert classify("hello there", catalog=catalog).intent_id is None


def test_a_single_intent_does_not_take_every_message() -> None:
    catalog = IntentCatalog.from_dict(
        {"intents": {"greet": {"examples": ["say hello to my friend"]}}}
    )
    assert classify("please say hello to my friend", catalog=catalog).intent_id == "greet"
    assert classify("the weather is nice", catalog=catalog).intent_id is None


def test_an_answer_that_is_a_little_like_an_example_is_no_request_while_a_question_waits() -> None:
    text = "the new place is too small, money is tight"
    assert classify(text).intent_id == "change_address"
    assert classify(text, waiting_for="reason").intent_id is None
    assert classify("check my order", waiting_for="address").intent_id == "check_order"


def test_patterns_see_values_and_likeness_does_not() -> None:
    request = ClassifyRequest(
        "follow O-12346", CATALOG, waiting_for="order_id", now=NOW, values=[(7, 14)]
    )
    assert RULES.classify(request).intent_id == "check_order"
    catalog = IntentCatalog.from_dict(
        {
            "intents": {
                "sit": {"examples": ["I want to sit outside"]},
                "eat": {"examples": ["I want to eat"]},
            }
        }
    )
    text = "sit outside, my name is Frances Miller"
    told = ClassifyRequest(text, catalog, waiting_for="name", now=NOW, values=[(13, len(text))])
    assert RULES.classify(told).intent_id == "sit"
    assert RULES.classify(replace(told, values=())).confidence < RULES.classify(told).confidence


def test_a_reason_never_holds_the_users_words() -> None:
    for text in ("cancel order O-777", "xyzzy O-777", "talk to a human about my refund"):
        reason = classify(text).reason
        assert reason
        assert not {"O-777", "xyzzy"} & set(reason.split())


async def test_sync_and_async_classify_alike() -> None:
    request = ClassifyRequest("check order O-777", CATALOG, now=NOW)
    assert await RULES.aclassify(request) == RULES.classify(request)
    assert isinstance(RULES, Classifier)


WORDS = "cancel order my O-1 O-777 don't refund not address to 12 Main Street it's sorry meant no"


@settings(max_examples=15 * settings().max_examples)
@given(text=st.text(max_size=80) | st.lists(st.sampled_from(WORDS.split())).map(" ".join))
def test_no_message_breaks_the_rules(text: str) -> None:
    found = classify(text)
    assert found.intent_id is None or CATALOG.intent(found.intent_id)
    assert isinstance(is_reset(text), bool)
    assert isinstance(is_cancel(text), bool)
    assert isinstance(refers_back(text), bool)
    known: dict[str, JsonValue] = {"order_id": "O-111", "reason": "late"}
    corrected = taken_back(text, known, "address")
    assert all(corrected[name] != known.get(name) for name in corrected)


def test_a_very_long_message_is_read_quickly() -> None:
    text = "cancel " + "order it not to change " * 200_000
    assert classify(text).confidence <= 1
    assert not is_cancel(text)
    assert not is_reset(text)


# -- signals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "cancel",
        "Cancel that please",
        "no, cancel it",
        "please cancel this request",
        "can you cancel everything, thanks",
        "never mind",
        "Nevermind.",
        "ok never mind, thanks anyway",
        "forget it",
        "forget about that",
        "stop",
        "STOP!",
        "stop asking me",
        "I don’t want to do this anymore",
        "i've changed my mind",
        "don't bother",
        "no longer needed, sorry",
    ],
)
def test_a_message_that_only_drops_the_matter_cancels(text: str) -> None:
    assert is_cancel(text)
    assert not is_reset(text)


@pytest.mark.parametrize(
    "text",
    [
        "cancel order O-1",
        "cancel my order",
        "cancel that order",
        "12 Cancel Street, Stopford",
        "Stop 5, Main Street",
        "never mind the dog, leave it at 12 Main Street",
        "don't cancel",
        "yes, cancel it",
        "no",
        "",
        "I changed my mind about the lamp, it is too big for my desk",
        "how do I cancel?",
        "start over",
    ],
)
def test_a_message_that_says_more_does_not_cancel(text: str) -> None:
    assert not is_cancel(text)


@pytest.mark.parametrize(
    "text",
    ["reset", "/reset", "start over", "Let's start over, please!", "can we start again", "restart",
     "forget everything",
     "new conversation", "please reset the conversation", "ok, start from the beginning",
     "clear the history"],
)  # fmt: skip
def test_a_message_that_only_wants_a_new_start_resets(text: str) -> None:
    assert is_reset(text)


@pytest.mark.parametrize(
    "text",
    [
        "reset my password",
        "start",
        "12 Restart Road",
        "I want to start a refund",
        "cancel",
        "",
        "start over there",
    ],
)
def test_a_message_that_says_more_does_not_reset(text: str) -> None:
    assert not is_reset(text)


@pytest.mark.parametrize(
    "text",
    [
        "cancel it",
        "cancel it please",
        "check that order",
        "where is it?",
        "refund the same one",
        "another one please, same day, same time",
        "a lamp, as before",
        "and change this",
        "send them back",
    ],
)
def test_a_message_may_refer_back(text: str) -> None:
    assert refers_back(text)


@pytest.mark.parametrize(
    "text",
    [
        "it's O-1",
        "it is broken",
        "check my order",
        "is it possible to check order O-1",
        "I think that you can help",
        "this morning my lamp broke",
    ],
)
def test_words_that_only_look_like_it_do_not_refer_back(text: str) -> None:
    assert not refers_back(text)


KNOWN: dict[str, JsonValue] = {"order_id": "O-1111", "reason": "damaged"}


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("sorry, I meant O-2222", {"order_id": "O-2222"}),
        ("I mean o-2222", {"order_id": "O-2222"}),
        ("actually it's O-2222", {"order_id": "O-2222"}),
        ("no wait, it's O-2222", {"order_id": "O-2222"}),
        ("change the order id to O-2222", {"order_id": "O-2222"}),
        ("not O-1111 but O-2222", {"order_id": "O-2222"}),
        ("O-1111 is wrong, it should be O-2222", {"order_id": "O-2222"}),
        ("sorry, I was reading the wrong receipt, it's O-2222", {"order_id": "O-2222"}),
        ("make that O-2222", {"order_id": "O-2222"}),
        ("actually the reason is late", {"reason": "late"}),
        ("sorry, I meant late", {"reason": "late"}),
        ("sorry, I meant O-2222 and it came too late", {"order_id": "O-2222", "reason": "late"}),
    ],
)
def test_a_correction_gives_the_new_values(text: str, new: Mapping[str, JsonValue]) -> None:
    assert taken_back(text, KNOWN, "address") == new


@pytest.mark.parametrize(
    "text",
    [
        "O-2222",
        "it's O-2222",
        "wait",
        "no",
        "sorry, the order is O-1111",
        "actually check order O-7777 first",
        "sorry, can you track O-7777",
        "actually it's 12 Elm Street, Springfield",
        "change my address to 12 Elm Street, Springfield",
    ],
)
def test_what_takes_nothing_back_corrects_nothing(text: str) -> None:
    assert taken_back(text, KNOWN, "address") == {}


def test_only_what_is_known_is_corrected() -> None:
    assert taken_back("sorry, I meant O-2222", {}, None) == {}
    assert taken_back("sorry, I meant O-2222", KNOWN, None) == {"order_id": "O-2222"}


DESK = IntentCatalog.from_dict(
    {
        "intents": {"bid": {"required": ["lot", "bid", "home", "day", "start", "length"]}},
        "params": {
            "lot": {"type": "integer", "description": "number of the lot"},
            "bid": {"type": "money", "description": "highest bid"},
            "home": {"type": "address", "description": "address of the bidder"},
            "day": {"type": "date", "description": "day of the visit"},
            "start": {"type": "time", "description": "when it starts"},
            "length": {"type": "duration", "description": "how long it takes"},
        },
    }
)
SHOWN: dict[str, JsonValue] = {
    "lot": 87,
    "bid": 600,
    "home": "12 Copper Lane",
    "day": "2024-05-20",
    "start": "14:00",
    "length": "PT3H",
}


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("make it 650", {"bid": 650}),
        ("no 700", {"bid": 700}),
        ("hmm make it 650, dont want to lose it by one", {"bid": 650}),
        ("lot 88, sorry", {"lot": 88}),
        ("sorry its 21 Copper Lane not 12", {"home": "21 Copper Lane"}),
        ("could we start at 1.30pm instead? still three hours", {"start": "13:30"}),
        ("could we do the 23rd instead? same time", {"day": "2024-05-23"}),
        ("can we make it four hours? everything else stays", {"length": "PT4H"}),
        ("ive done the sums and i can stretch to 650", {"bid": 650}),
        ("we've talked about it and we could go up to 650", {"bid": 650}),
        ("well the 23rd of may then", {"day": "2024-05-23"}),
        ("i paid 700 for the last one", {}),
        ("i lived at number 14 for years", {}),
    ],
)
def test_at_a_confirmation_a_new_value_is_of_what_it_can_be(
    text: str, new: Mapping[str, JsonValue]
) -> None:
    params = list(DESK.params.values())
    said = Said(text, SHOWN, NOW, shown="Shall I enter the bid?")
    assert dict(other_values(params, said).values) == new


def test_a_value_that_may_be_the_answer_corrects_no_other_parameter() -> None:
    catalog = IntentCatalog.from_dict(
        {
            "intents": {"trip": {"required": ["leave", "back"]}},
            "params": {"leave": {"type": "date"}, "back": {"type": "date"}},
        }
    )
    known: dict[str, JsonValue] = {"leave": "2024-05-03"}
    assert taken_back("actually May 9", known, "back", catalog) == {}
    assert taken_back("actually May 9", known, None, catalog) == {"leave": "2024-05-09"}


def test_words_without_values_are_what_remains() -> None:
    text = "send it to 12 Cancel Street, please"
    assert words_without_values(text, [(11, 27)]) == "send it to , please"
    assert words_without_values(text, []) == text
    assert words_without_values("O-1", [(0, 3), (1, 99)]) == ""


@pytest.mark.parametrize(
    "text",
    [
        "no, make it 6.45, the meeting drags on",
        "no, 6.45",
        "can you do 6.45 instead",
        "not 6.15, 6.45",
    ],
)
@pytest.mark.parametrize(
    ("kind", "known", "new"),
    [("time", "18:15", "18:45"), ("datetime", "2024-05-20T18:15", "2024-05-20T18:45")],
)
def test_a_known_hour_says_which_half_of_the_day_another_is_in(
    text: str, kind: str, known: str, new: str
) -> None:
    start = Param(name="start", type=ParamType(kind), description="when the taxi comes")
    said = Said(text, {"start": known}, NOW, shown="Shall I order it?")
    assert dict(other_values([start], said).values) == {"start": new}


@pytest.mark.parametrize(
    "text",
    [
        "no not tomorrow, thursday next week, the 9th",
        "no, thursday next week, the 9th",
        "no the 9th, i said",
    ],
)
def test_a_value_corrects_one_parameter(text: str) -> None:
    days = [
        Param(name="day", type=ParamType.DATE, description="day of the visit"),
        Param(name="born", type=ParamType.DATE, description="date of birth"),
    ]
    known: dict[str, JsonValue] = {"day": "2024-05-02", "born": "2014-06-21"}
    said = Said(text, known, NOW, shown="Shall I put you in?")
    assert dict(other_values(days, said).values) == {"day": "2024-05-09"}
