"""People answer in their own words: yes and no, other values, and what they want instead.

Each conversation runs through `converse` on a database in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool

from langmem_ext import DeltaSaver, IntentCatalog, build_waiting_graph, converse
from langmem_ext.waiting.catalog.inference import infer_role

WEDNESDAY = datetime(2026, 3, 4, 10, 15)

CATALOG = IntentCatalog.from_dict(
    {
        "intents": [
            {
                "id": "book_class",
                "description": "Book a class",
                "examples": ["book me a class", "a place in the class", "I'd like a lesson"],
                "required": ["style", "day", "begins", "people", "dancer"],
                "tool": "book_class",
                "confirm": "{style} on {day} at {begins} for {people}, {dancer}. Shall I book it?",
            },
            {
                "id": "enrol",
                "description": "Enrol a dancer for the term",
                "examples": ["sign me up for the term", "enrol my son", "join for the term"],
                "required": ["style", "dancer", "start_date"],
                "tool": "enrol",
                "confirm": "{dancer} joins {style} from {start_date}. Is that right?",
            },
            {
                "id": "order_shoes",
                "description": "Order dance shoes",
                "examples": ["I need ballet shoes", "a pair of shoes", "order shoes"],
                "required": ["dancer", "pairs", "address"],
                "tool": "order_shoes",
                "confirm": "{pairs} for {dancer} to {address}?",
            },
            {
                "id": "report_absence",
                "description": "Tell us that a dancer will miss a class",
                "examples": ["she can't come to class", "we'll miss this week", "he is ill"],
                "required": ["dancer", "missed"],
                "tool": "report_absence",
                "confirm": "{dancer} misses {missed}?",
            },
        ],
        "params": {
            "style": {
                "type": "enum",
                "enum": ["ballet", "tap", "jazz"],
                "description": "style of dance",
                "prompt": "Ballet, tap or jazz?",
            },
            "day": {"type": "date", "description": "day of the class", "future": True},
            "begins": {"type": "time", "description": "time of the class", "prompt": "What time?"},
            "people": {"type": "integer", "description": "number of people", "prompt": "How many?"},
            "dancer": {
                "type": "person",
                "description": "name of the dancer",
                "prompt": "What is the dancer's name?",
            },
            "start_date": {"type": "date", "prompt": "From which date?", "future": True},
            "pairs": {"type": "integer", "description": "pairs of shoes", "prompt": "How many?"},
            "address": {"type": "address", "prompt": "What is the address?"},
            "missed": {"type": "date", "description": "day missed", "prompt": "Which day?"},
        },
    }
)

CLASS = (
    "book me a tap class on 20 march at 7pm for 2, the dancer is Ada Brook",
    "tap on 2026-03-20 at 19:00 for 2, Ada Brook. Shall I book it?",
)


def talk(*messages: str) -> tuple[str, dict[str, Any], list[tuple[str, dict[str, Any]]]]:
    """The last reply, the values then, and the calls that were made."""
    calls: list[tuple[str, dict[str, Any]]] = []
    with DeltaSaver.open(":memory:") as saver:
        graph = build_waiting_graph(CATALOG, tools(calls)).compile(checkpointer=saver)
        for message in messages:
            turn = converse(graph, message, thread_id="t", now=WEDNESDAY)
        state = graph.get_state({"configurable": {"thread_id": "t"}}).values
    return turn.reply, state["params"], calls


def tools(calls: list[tuple[str, dict[str, Any]]]) -> Sequence[BaseTool]:
    @tool
    def book_class(style: str, day: str, begins: str, people: int, dancer: str) -> str:
        """Book a class."""
        calls.append(("book_class", {"people": people, "begins": begins, "day": day}))
        return "Booked."

    @tool
    def enrol(style: str, dancer: str, start_date: str) -> str:
        """Enrol."""
        calls.append(("enrol", {"style": style, "dancer": dancer}))
        return "Welcome."

    @tool
    def order_shoes(dancer: str, pairs: int, address: str) -> str:
        """Order shoes."""
        calls.append(("order_shoes", {"pairs": pairs, "address": address}))
        return "On order."

    @tool
    def report_absence(dancer: str, missed: str) -> str:
        """Note an absence."""
        calls.append(("report_absence", {"dancer": dancer, "missed": missed}))
        return "Noted."

    return [book_class, enrol, order_shoes, report_absence]


@pytest.mark.parametrize(
    "text",
    [
        "too right, send it", "sorted", "order away", "please", "afraid so",
        "yes. unlucky for some eh", "unlucky for some but yes", "if i must. yes",
        "yeah book it quick before he brings a mate", "yes please that would be a lifesaver",
        "please do, I slept terribly", "yes and can you order shoes as well", "yes, him as well",
        "yes and pls don't ring the house",
        "yes if it is cheap", "yes but not on friday", "before i say yes", "order what?",
    ],
)  # fmt: skip
def test_a_yes_with_more_words_is_asked_about_again(text: str) -> None:
    assert talk(CLASS[0])[0] == CLASS[1]
    assert talk(CLASS[0], text)[2] == []


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("shes just texted, her brother wants to come. so 3", {"people": 3}),
        ("make it 8pm, payday isnt til the 27th", {"begins": "20:00"}),
        ("and id rather do jazz than tap if thats ok", {"style": "jazz"}),
        ("hmm actually ballet sounds more my level, do that one instead", {"style": "ballet"}),
        (
            "oh no thats a friday she has swimming. do saturday the 21st instead",
            {"day": "2026-03-21"},
        ),
    ],
)
def test_another_value_is_taken_and_nothing_beside_it(text: str, new: dict[str, Any]) -> None:
    before = talk(CLASS[0])[1]
    assert talk(CLASS[0], text)[1] == {**before, **new}


def test_a_number_is_the_one_that_is_asked_for_anew() -> None:
    order = ("order 2 pairs of shoes for Ada Brook to 77 Quarry Street, Melbrook",)
    assert talk(*order)[1]["pairs"] == 2
    assert talk(*order, "make it 3, i always lose one")[1]["pairs"] == 3


def test_a_house_in_the_same_street_is_in_the_same_town() -> None:
    order = ("order 2 pairs of shoes for Ada Brook to 77 Quarry Street, Melbrook",)
    address = talk(*order, "oh its 79 Quarry Street, 77 is next door")[1]["address"]
    assert address == "79 Quarry Street, Melbrook"


def test_a_bare_value_that_answers_nothing_corrects_the_known_one() -> None:
    begun = "book me a tap class on 20 march at 2 in the afternoon for 2"
    reply, params, _ = talk(begun, "ok 1.30")
    assert (params["begins"], reply.endswith("What is the dancer's name?")) == ("13:30", True)


def test_what_is_wanted_instead_begins_with_what_was_said() -> None:
    begun = ("enrol my daughter for tap for the term", "Beatrix Holloway")
    instead = "actually forget enrolling for now. could she just book a class?"
    _, params, _ = talk(*begun, instead)
    assert params == {"style": "tap", "dancer": "Beatrix Holloway"}


@pytest.mark.parametrize(
    "text",
    [
        "im not gonna be able to come in to class tommorow sorry",
        "she wont be at class tonight im afraid",
    ],
)
def test_who_cannot_come_will_miss_something(text: str) -> None:
    reply, params, _ = talk(text)
    assert "missed" in params
    assert "dancer" in reply


def test_an_end_counts_after_a_yes_and_before_a_remark() -> None:
    for text in (
        "yeah cancel that, dont send anyone",
        "right. forget it then ill tell him to wait",
    ):
        reply, _, _ = talk("order 2 pairs of shoes for Ada Brook", text)
        assert reply == CATALOG.replies.cancelled, text


def test_where_somebody_gets_on_begins_a_trip_and_a_new_day_has_no_role() -> None:
    assert infer_role("stop", "where the passengers get on") == "from"
    assert infer_role("new_date", "new day of the pickup") is None


def test_a_yes_that_is_put_off_does_not_count() -> None:
    for text in ("yes but don't book it yet", "yes but don't send it before friday"):
        _, _, calls = talk(CLASS[0], text)
        assert calls == [], text


def test_a_day_asked_for_in_a_question_answers() -> None:
    begun = ("enrol Ada Brook for ballet for the term",)
    _, params, _ = talk(*begun, "is there anything this coming tuesday")
    assert params["start_date"] == "2026-03-10"


def test_what_could_be_done_instead_corrects() -> None:
    order = "order 2 pairs of shoes for Ada Brook to 77 Quarry Street, Melbrook"
    _, params, _ = talk(order, "2 is not many. could you do 5")
    assert params["pairs"] == 5


@pytest.mark.parametrize(
    "text",
    ["ok please don't proceed", "sure, just don't register us", "ok so don't worry about it"],
)
def test_a_refusal_is_no_yes(text: str) -> None:
    _, _, calls = talk(CLASS[0], text)
    assert calls == []


def test_who_asks_for_help_hears_what_can_be_asked_for() -> None:
    reply, _, _ = talk("help")
    assert reply == (
        "Here is what you can ask for: book a class; enrol a dancer for the term; order dance"
        " shoes; tell us that a dancer will miss a class."
    )
    assert talk("what can you do?")[0] == reply
    assert talk("book me a class", "help")[0].startswith(CATALOG.replies.help_waiting)


@pytest.mark.parametrize("text", ["👎", "nein"])
def test_a_no_at_a_confirmation_asks_what_to_change(text: str) -> None:
    reply, _, calls = talk(CLASS[0], text)
    assert (reply, calls) == (CATALOG.replies.change, [])


def test_a_question_what_is_wrong_proposes_no_day() -> None:
    begun = ("enrol Ada Brook for ballet for the term",)
    _, params, _ = talk(*begun, "is there anything wrong on tuesday")
    assert "start_date" not in params
