"""E-mail addresses, telephone numbers and ids are validated and never mixed up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pytest

from langmem_ext.errors import InvalidInput
from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract import Reply, extract

NOW = datetime(2024, 5, 15, 10, 30)

EMAIL = Param(name="email", type=ParamType.EMAIL)
PHONE = Param(name="phone", type=ParamType.PHONE)
ORDER = Param(name="order_id", type=ParamType.IDENTIFIER, pattern=r"O-\d{5}")
LOOSE = Param(name="order_id", type=ParamType.IDENTIFIER)
USER = Param(name="user_id", type=ParamType.IDENTIFIER)
BOOKING = Param(name="booking_id", type=ParamType.IDENTIFIER)


def answer(
    param: Param, text: str, prompt: str = "What is it?", others: Sequence[Param] = ()
) -> Extraction:
    return extract(param, Reply(text, prompt=prompt, others=others, now=NOW))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("my email is a.b@example.com.", "a.b@example.com"),
        ("Ann@Example.COM please", "Ann@example.com"),
        ("ann at example dot com", "ann@example.com"),
        ("<a+b@mail.example.org>", "a+b@mail.example.org"),
    ],
)
def test_an_email_address_is_normalised(text: str, value: str) -> None:
    assert answer(EMAIL, text).value == value


@pytest.mark.parametrize("text", ["ann@", "me@localhost", "no", "see you at noon", "why?"])
def test_what_cannot_receive_mail_is_no_email_address(text: str) -> None:
    assert answer(EMAIL, text).status != "filled"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("415-555-2671", "+14155552671"),
        ("call me at (415) 555 2671", "+14155552671"),
        ("+44 20 7946 0958", "+442079460958"),
    ],
)
def test_a_telephone_number_is_international(text: str, value: str) -> None:
    assert answer(PHONE, text).value == value


@pytest.mark.parametrize("text", ["12345", "O-12345", "no phone", "tomorrow at 5", "why?"])
def test_what_cannot_be_dialled_is_no_telephone_number(text: str) -> None:
    assert answer(PHONE, text).status != "filled"


@pytest.mark.parametrize(
    "text",
    [
        "O-12345",
        "it is o-12345.",
        "o 12345",
        "O12345",
        "the number is o dash 12345",
        "O - 1 2 3 4 5",
        "(O-12345)",
        "sure! My order is #O-12345, thanks",
        "O-99999, sorry, I meant O-12345",
    ],
)
def test_an_identifier_is_found_as_written_or_spelled(text: str) -> None:
    assert answer(ORDER, text).value == "O-12345"


@pytest.mark.parametrize(
    "text",
    ["O-1234", "O-123456", "12345", "order", "cancel", "O-11111 or O-22222", "where do I find it?"],
)
def test_an_identifier_matches_its_pattern_as_a_whole_or_not_at_all(text: str) -> None:
    assert answer(ORDER, text).status != "filled"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("AB-1234", "AB-1234"),
        ("my order number is 99871", "99871"),
        ("order ABCDEF", "ABCDEF"),
        ("it's ab_77", "ab_77"),
        ("O-6", "O-6"),
        ("it's A1, please", "A1"),
        ("#6.", "6"),
        ("12", "12"),
    ],
)
def test_without_a_pattern_an_identifier_is_no_word(text: str, value: str) -> None:
    assert answer(LOOSE, text).value == value


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "2024-05-01",
        "at 10:30",
        "confirmation number XK12PQ",
        "a1@example.com",
        "I don't have one",
        "3rd",
        "2 of them",
        "the 5G one",
        "room B2",
    ],
)
def test_without_a_pattern_words_dates_and_other_codes_are_no_identifier(text: str) -> None:
    assert answer(LOOSE, text).status != "filled"


@pytest.mark.parametrize(
    ("text", "user", "booking"),
    [
        ("My user ID is ann_lee_77.", "ann_lee_77", None),
        ("I'm ann_lee_77, and the booking is QX7T2M", "ann_lee_77", "QX7T2M"),
        ("My booking ID is QX7T2M but I forgot my user ID", None, "QX7T2M"),
        ("I don't have the booking id, but I'm ann_lee_77", "ann_lee_77", None),
        ("The bookings are QWERTZ and ASDFGH, username ann_lee_77", "ann_lee_77", "QWERTZ"),
    ],
)
def test_an_identifier_is_not_another_parameters(
    text: str, user: str | None, booking: str | None
) -> None:
    prompt = "Your user ID and booking ID, please?"
    assert answer(USER, text, prompt, (BOOKING,)).value == user
    assert answer(BOOKING, text, prompt, (USER,)).value == booking


def test_a_pattern_that_is_no_regular_expression_is_one_clear_error() -> None:
    with pytest.raises(InvalidInput, match="order_id"):
        answer(Param(name="order_id", type=ParamType.IDENTIFIER, pattern="("), "O-1")
