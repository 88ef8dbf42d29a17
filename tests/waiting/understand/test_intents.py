"""An intent is found by the catalog's words, by their meaning, and by a message's values."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from langmem_ext.waiting.catalog.catalog import IntentCatalog
from langmem_ext.waiting.understand.intents.classifier import (
    Classification,
    ClassifyRequest,
    RuleClassifier,
)
from langmem_ext.waiting.understand.intents.similarity import IntentIndex, units_of

NOW = datetime(2026, 3, 4, 10, 15)
LIBRARY: dict[str, Any] = {
    "intents": [
        {
            "id": "extend_loan",
            "description": "Keep a book for longer",
            "examples": [
                "I want to keep my book longer",
                "extend my loan",
                "can I have two more weeks",
            ],
            "required": ["card"],
            "tool": "extend",
        },
        {
            "id": "reserve_title",
            "description": "Reserve a book or a film",
            "examples": [
                "reserve a book for me",
                "put me on the waiting list",
                "is this film available",
            ],
            "required": ["medium", "card"],
            "tool": "reserve",
        },
        {
            "id": "report_lost",
            "description": "Report a lost or damaged book",
            "examples": ["I lost a book", "the book is torn", "coffee on the pages"],
            "required": ["card"],
            "tool": "report",
        },
        {
            "id": "fees",
            "description": "Fees and fines",
            "examples": ["what does a card cost", "how high are the fines"],
            "reply": "Ten.",
        },
        {
            "id": "hours",
            "description": "Opening hours",
            "examples": ["when are you open", "opening times"],
            "reply": "Nine to five.",
        },
    ],
    "params": {
        "card": {
            "type": "identifier",
            "description": "number of the library card",
            "prompt": "Which card?",
            "pattern": r"L-\d{4}",
        },
        "medium": {
            "type": "enum",
            "description": "kind of medium",
            "prompt": "What?",
            "enum": ["novel", "audiobook", "film"],
        },
    },
}
CATALOG = IntentCatalog.from_dict(LIBRARY)


def classify(text: str, **more: Any) -> Classification:
    return RuleClassifier().classify(ClassifyRequest(text, CATALOG, now=NOW, **more))


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("i need more time with it", "extend_loan"),
        ("could you renew my loan please", "extend_loan"),
        ("can you prolong it by a week", "extend_loan"),
        ("book me the new novel please", "reserve_title"),
        ("i can't find the book anymore, i think it is gone", "report_lost"),
        ("how much is a card?", "fees"),
        ("what do you charge", "fees"),
        ("until when are you open today?", "hours"),
        ("r u open on saturday", "hours"),
        ("hi there! could u extendd my loan", "extend_loan"),
    ],
)
def test_other_words_for_the_same_are_understood(text: str, intent: str) -> None:
    assert classify(text).intent_id == intent


@pytest.mark.parametrize(
    "text",
    [
        "asdkj",
        "hello",
        "the weather is nice",
        "my cat sleeps",
        "I'd like a pizza",
        "thanks",
        "7",
        "",
    ],
)
def test_what_is_about_nothing_of_the_catalog_is_left_open(text: str) -> None:
    assert classify(text).intent_id is None


def test_several_requests_of_one_message_are_found_each_with_its_values() -> None:
    found = classify("please reserve the audiobook for me and i lost a book, card L-1234")
    assert (found.intent_id, [other.intent_id for other in found.also]) == (
        "reserve_title",
        ["report_lost"],
    )
    assert found.params == {"medium": "audiobook", "card": "L-1234"}  # one card is for both
    assert found.also[0].params == {"card": "L-1234"}


def test_who_asks_is_said_once_for_all_that_is_asked_for() -> None:
    found = classify("reserve the audiobook for me and i lost a book too. my card is L-1234")
    assert found.params == {"medium": "audiobook", "card": "L-1234"}
    assert found.also[0].params == {"card": "L-1234"}


def test_who_tells_of_a_trouble_with_a_thing_has_it_and_wants_none() -> None:
    hire = {"id": "hire", "description": "Hire a drill or a sander", "examples": ["hire a sander"]}
    fault = {"id": "fault", "description": "Report a fault", "examples": ["my drill is broken"]}
    machine = {"machine": {"type": "enum", "enum": ["drill", "sander"]}}
    catalog = IntentCatalog.from_dict(
        {"intents": [{**hire, "required": ["machine"]}, fault], "params": machine}
    )

    def asked_for(text: str) -> str | None:
        return RuleClassifier().classify(ClassifyRequest(text, catalog, now=NOW)).intent_id

    assert asked_for("the sander we got from you doesn't work") == "fault"
    assert asked_for("we want to hire the sander") == "hire"


def test_a_question_prefers_the_intent_that_only_answers() -> None:
    assert classify("what does it cost when a book is lost?").intent_id == "fees"


def test_values_speak_for_the_intents_that_take_them() -> None:
    index = IntentIndex(CATALOG)
    assert index.score("reserve_title", "the waiting list", {"medium": (0, 2)}) > index.score(
        "reserve_title", "the waiting list"
    )
    assert index.score("fees", "fines", {"medium": (0, 2)}) < index.score("fees", "fines")


def test_two_intents_that_fit_as_well_are_named() -> None:
    catalog = IntentCatalog.from_dict(
        {
            "intents": {
                "buy": {"examples": ["buy a ticket"]},
                "sell": {"examples": ["sell a ticket"]},
            }
        }
    )
    found = RuleClassifier().classify(ClassifyRequest("buy or sell tickets", catalog, now=NOW))
    assert (found.intent_id, set(found.choices)) == (None, {"buy", "sell"})


def test_phrases_count_as_one_word_however_their_apostrophes_are_typed() -> None:
    for text in ("we can't make it", "we cant make it", "we can’t make it"):
        assert {"cancel", "absent"} <= {name for unit in units_of(text) for name in unit.concepts}
    assert [unit.stem for unit in units_of("pick up")] == ["pick up"]


def test_a_request_needs_more_while_a_question_waits() -> None:
    text = "my book has pages"
    assert classify(text).intent_id == "report_lost"
    assert (
        classify(text, waiting_for="card", running="report_lost", answered=True).intent_id is None
    )


@pytest.mark.parametrize(
    ("text", "concept"),
    [
        ("i'd like to send it back", "return"),
        ("can you pick them up", "collect"),
        ("we have to put it off", "change"),
        ("could you drop it off", "deliver"),
        ("sign me up please", "join"),
        ("can i take one back", "return"),
    ],
)
def test_a_verb_and_its_particle_mean_the_same_with_a_word_between_them(
    text: str, concept: str
) -> None:
    assert concept in {name for unit in units_of(text) for name in unit.concepts}


def test_a_part_of_the_body_speaks_for_a_doctor() -> None:
    [unit] = units_of("knee")
    assert "doctor" in unit.concepts
