"""A message is taken apart into clauses, each of which does one thing."""

from __future__ import annotations

import pytest

from langmem_ext.waiting.understand.clauses import clauses_of, phrases_of, without


@pytest.mark.parametrize(
    ("text", "acts"),
    [
        ("hello", ["hello"]),
        ("Good morning, how are you?", ["hello", "talk"]),
        ("hi! can I get a kayak", ["hello", "say"]),
        ("thanks a lot, bye", ["thanks"]),
        ("thankyou", ["thanks"]),
        ("thnx so much", ["thanks"]),
        ("great, thank you!", ["talk", "thanks"]),
        ("that's all", ["bye"]),
        ("what can you do?", ["help"]),
        ("are you a robot?", ["help"]),
        ("one moment please", ["talk"]),
        ("how much is a kayak?", ["question"]),
        ("how much is it? one for saturday please", ["question", "say"]),
        ("friday at 8, and how much is it", ["say", "question"]),
        ("forget it, we'll stay at home", ["cancel", "say"]),
        ("oh forget it. are you open on sundays?", ["cancel", "question"]),
        ("can I get a table at 7?", ["say"]),
        ("would that be possible on tuesday?", ["say"]),
        ("how about friday?", ["say"]),
        ("is 7 ok?", ["say"]),
        ("I work all weekend. dont book it", ["say", "cancel"]),
        ("forget the bid", ["cancel"]),
        ("forget the name, it's Ann", ["say"]),
        ("has to be soft, she's got no teeth", ["say"]),
        ("are dogs allowed", ["question"]),
        ("it is for Dr. Lee, not Mr. Lee", ["say"]),
        ("evening", ["say"]),
        ("Evening! a room please", ["hello", "say"]),
        ("", []),
        ("🙂", []),
    ],
)
def test_each_clause_does_one_thing(text: str, acts: list[str]) -> None:
    assert [clause.act for clause in clauses_of(text)] == acts


def test_clauses_say_where_they_stand() -> None:
    text = "Hello! How much is it? A boat for two, please. Thanks"
    for clause in clauses_of(text):
        assert text[clause.start : clause.end] == clause.text
    questions = [clause for clause in clauses_of(text) if clause.act == "question"]
    assert without(text, questions).split() == [
        "Hello!",
        "A",
        "boat",
        "for",
        "two,",
        "please.",
        "Thanks",
    ]
    assert len(without(text, questions)) == len(text)


def test_the_phrases_of_a_clause_stand_between_its_joints() -> None:
    text = "cancel B-1 and get me a boat on sunday, then call me"
    [clause] = clauses_of(text)
    assert [phrase.text for phrase in phrases_of(clause)] == [
        "cancel B-1",
        "get me a boat on sunday",
        "call me",
    ]


def test_a_very_long_message_is_taken_apart_quickly() -> None:
    assert clauses_of("and how about it? " * 20_000)
    assert clauses_of("a" * 200_000)
