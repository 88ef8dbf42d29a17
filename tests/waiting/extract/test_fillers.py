"""Words that say nothing are left out before a message is read, and nothing else is."""

from __future__ import annotations

import pytest

from langmem_ext.waiting.extract.english.fillers import without_fillers


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("um yes please", "yes please"),
        ("so, like, friday", "friday"),
        ("half well past four", "half past four"),
        ("a week on like friday", "a week on friday"),
        ("you know ah yes the film", "ah yes the film"),
        ("a table basically for 4", "a table for 4"),
        ("the um same one, AC447105.", "the same one, AC447105."),
        ("flights at 7, like 5am", "flights at 7, 5am"),
    ],
)
def test_words_that_say_nothing_are_left_out(said: str, meant: str) -> None:
    assert without_fillers(said) == meant


@pytest.mark.parametrize(
    "said",
    [
        "do you know if it's open",
        "well done everybody",
        "I'd like that as well",
        "not 5, i mean 6",
        "two hundred, no i mean forty",
        "what would you like",
        "it looks like 4",
        "so many people",
        "skirt, but i mean the trousers",
        "the umbrella is mine",
        "take me to the ER",
        "um",
    ],
)
def test_words_that_say_something_stay(said: str) -> None:
    assert without_fillers(said) == said


def test_a_text_that_is_kept_loses_only_pauses() -> None:
    said = "So proud of you, um, you know, like your dad"
    assert without_fillers(said, free=True) == "So proud of you, you know, like your dad"
