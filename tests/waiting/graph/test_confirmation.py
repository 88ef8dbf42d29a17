"""What a message does while a confirmation or a question waits: what runs, is stored, is asked
next.

A tool that asks for a yes runs only with the values that the confirmation showed, and only after a
yes to just that. A question or another request is served, and then the same is asked again. No
value changes and no request ends by a message that did not ask for it.
"""

from __future__ import annotations

import asyncio
import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graphs.shop import TOOLS
from graphs.support import catalog as order_desk_catalog
from graphs.support import make_graph
from langmem_ext.checkpointer.saver import DeltaSaver
from langmem_ext.waiting.catalog.catalog import IntentCatalog
from langmem_ext.waiting.converse import aconverse, converse
from langmem_ext.waiting.graph.graph import build_waiting_graph
from langmem_ext.waiting.turn import Turn
from langmem_ext.waiting.understand.intents.classifier import (
    Classification,
    ClassifyRequest,
    RuleClassifier,
)

CANCEL = "Shall I cancel order {}? This cannot be undone."
UNKNOWN = order_desk_catalog.replies.unknown
UNANSWERED = order_desk_catalog.replies.no_answer
CHANGE = order_desk_catalog.replies.change
LEFT = order_desk_catalog.replies.cancelled
Calls = list[tuple[str, dict[str, Any]]]


class Desk:
    """A thread of a graph, and what its tools were called with."""

    config: Any = {"configurable": {"thread_id": "t"}}

    def __init__(self, graph: Any, *said: str) -> None:
        self.graph = graph
        self.last: Turn = Turn(reply="")
        for text in said:
            self.say(text)
        self._before = len(self._calls())

    def say(self, text: str) -> Turn:
        self.last = converse(self.graph, text, thread_id="t")
        return self.last

    @property
    def ran(self) -> Calls:
        """The calls since the thread was set up."""
        return self._calls()[self._before :]

    @property
    def state(self) -> dict[str, Any]:
        return dict(self.graph.get_state(self.config).values)

    @property
    def asked(self) -> str:
        """What waits for an answer; empty at rest."""
        return self.last.interrupts[0].value["prompt"] if self.last.interrupts else ""

    def _calls(self) -> Calls:
        messages = self.state.get("messages", [])
        return [
            (call["name"], call["args"])
            for message in messages
            if message.type == "ai"
            for call in message.tool_calls
        ]


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The graph of the order desk."""
    monkeypatch.setenv("LANGMEM_EXT_SHOP_DB", str(tmp_path / "shop.db"))
    return make_graph(InMemorySaver())


@pytest.fixture
def confirming(orders: Any) -> Desk:
    """A user who is asked whether order O-778 shall be cancelled."""
    desk = Desk(orders, "cancel O-778")
    assert desk.asked == CANCEL.format("O-778")
    return desk


# -- yes and no ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "yes", "Yes!", "y", "yep", "yes please", "sure", "ok", "okay cool", "ok, go ahead",
        "sure, go ahead", "please do", "do it", "yes do it", "that's right, thank you",
        "yes, I'm sure", "actually, yes", "true", "yes, O-778", "that's the one, yes",
    ],
)  # fmt: skip
def test_a_yes_runs_just_what_was_shown(confirming: Desk, text: str) -> None:
    confirming.say(text)
    assert confirming.ran == [("cancel_order", {"order_id": "O-778"})]
    assert confirming.asked == ""


@pytest.mark.parametrize(
    "text",
    [
        "no thanks", "no, don't", "don't", "don't cancel it", "do not cancel the order", "never",
        "no way", "no, keep it", "of course not", "never mind", "stop", "leave it", "forget it",
        "no, cancel it", "I changed my mind", "don't cancel O-778", "don't stop",
    ],
)  # fmt: skip
def test_a_final_no_runs_nothing_and_ends_the_request(confirming: Desk, text: str) -> None:
    assert confirming.say(text).reply == LEFT
    assert (confirming.ran, confirming.state["plan"], confirming.asked) == ([], None, "")


NOES = [
    "no",
    "No.",
    "n",
    "nope",
    "no, sorry",
    "oh no",
    "actually no",
    "false",
    "no, it is a present for my mother",
    "no, I want to know where it is",
    "not sure",
    "not yet",
    "not O-12345",
    "not sure, maybe O-12345",
    "no idea",
    "yes no",
    "no yes",
    "no no, that's fine",
    "no need to ask, go ahead",
    "no, my neighbour has O-12345",
    "it's not urgent",
    "yes that is wrong",
]


@pytest.mark.parametrize("text", NOES)
def test_a_bare_no_runs_nothing_and_asks_what_to_change(confirming: Desk, text: str) -> None:
    assert confirming.say(text).reply == CHANGE
    assert (confirming.ran, confirming.state["params"]) == ([], {"order_id": "O-778"})
    assert confirming.say("O-779").reply == CANCEL.format("O-779")
    confirming.say("yes")
    assert confirming.ran == [("cancel_order", {"order_id": "O-779"})]


def test_a_second_no_ends_the_request(confirming: Desk) -> None:
    confirming.say("no")
    assert confirming.say("no").reply == LEFT
    assert (confirming.ran, confirming.state["plan"]) == ([], None)


@pytest.mark.parametrize("text", ["cancel order O-778", "cancel my order"])
def test_a_request_that_is_said_again_after_a_no_loses_no_value(
    confirming: Desk, text: str
) -> None:
    confirming.say("no")
    confirming.say(text)
    assert confirming.state["params"]["order_id"] == "O-778"
    assert confirming.last.waiting_for == "confirmation"
    assert confirming.ran == []


def test_a_yes_after_a_no_is_asked_for_once_more(confirming: Desk) -> None:
    confirming.say("no")
    assert confirming.say("yes, go ahead").reply == CANCEL.format("O-778")
    assert confirming.ran == []
    confirming.say("yes")
    assert confirming.ran == [("cancel_order", {"order_id": "O-778"})]


@pytest.mark.parametrize("text", ["wrong order", "the order id is wrong", "no, change the order"])
def test_a_value_that_is_wrong_is_asked_for_anew(confirming: Desk, text: str) -> None:
    assert confirming.say(text).waiting_for == "order_id"
    assert confirming.say("O-779").reply == CANCEL.format("O-779")
    assert confirming.ran == []


# -- another value ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "no, O-779", "no wait, O-779", "not 778, O-779", "not O-778, O-779", "not O-778 but O-779",
        "change it to O-779", "change the order id to O-779", "can you change it to O-779?",
        "I meant O-779", "sorry, I meant O-779", "I meant O-779, it is for my mother",
        "make it O-779", "actually it's O-779", "that's wrong, it's O-779",
        "O-778 is wrong, it should be O-779", "what? no, O-779", "yes, but O-779", "O-779 instead",
        "cancel O-779", "yes, cancel O-779", "can you cancel O-779 instead",
        "I want to cancel order O-779", "O-779", "it's O-779", "my order is O-779",
        "the order ID is O-779, sorry",
    ],
)  # fmt: skip
def test_another_value_is_shown_before_it_is_used(confirming: Desk, text: str) -> None:
    assert confirming.say(text).reply == CANCEL.format("O-779")
    assert confirming.ran == []
    confirming.say("yes")
    assert confirming.ran == [("cancel_order", {"order_id": "O-779"})]


@pytest.mark.parametrize("text", ["O-12", "change it to banana"])
def test_a_value_that_the_tool_would_refuse_changes_nothing(confirming: Desk, text: str) -> None:
    confirming.say(text)
    assert confirming.state["params"]["order_id"] == "O-778"
    confirming.say("yes")
    assert confirming.ran == [("cancel_order", {"order_id": "O-778"})]


# -- anything else ---------------------------------------------------------------------------------

CHECKS = [
    "where is O-12346?", "I'd rather check O-12346", "track O-12346", "no, track O-12346",
    "no, first check O-12346", "no, where is O-12346?", "wait, where is O-12346?",
    "wait, actually track O-12346", "yes but first track O-12346", "yes, and where is O-12346?",
    "never mind, where is O-12346?", "don't cancel, just check O-12346", "I meant track O-12346",
    "sorry, can you track O-12346",
]  # fmt: skip
"""Messages that ask where order O-12346 is."""

QUESTIONS = [
    "what's the weather", "how much is it?", "how much is O-12345?", "what about O-12345?",
    "is O-12345 shipped?", "what is in O-12345?", "and O-12345?", "O-12345?", "O-12345 or O-778?",
    "did you mean O-12345?", "should it be O-12345?", "I mean, is O-12345 there?", "why?", "sure?",
    "yes?", "cancel it?", "are you sure?", "can it be undone?", "can I cancel later?",
    "ok, what happens then?",
    "is that right?", "what do you mean?", "O-778 was a present, is that a problem?",
    "I wrote O-12345 in my mail, did you get it?", "does that cost anything",
]  # fmt: skip

REMARKS = [
    "hmm", "maybe", "wait", "hold on", "thanks", "hello", "why not", "right", "cancel",
    "no problem", "no hurry", "I don't know", "yes, but not now", "yes, if it's not shipped",
    "cancel it", "wait, cancel that", "cancel that please", "yes, cancel it", "cancel it please",
    "yes, cancel O-778", "yes please cancel the order", "can you cancel it please",
    "yes, it was broken", "yes sorry about the trouble", "yep, see you then", "yes, that's better",
    "only if it has not been shipped", "yes, unless it was sent", "yes after my holidays",
    "yes and a gift too", "yes, and also cancel O-12345",
    "fine, but tell me the price first",
    "my neighbour has O-12345", "I want O-12345 delivered", "I actually like O-12345 more",
    "O-778 and O-12345", "O-12345, O-778",
    "either O-778 or O-12345", "keep O-778", "it's O-778", "that is O-778", "O-778",
    "cancel O-778", "this one, O-778", "also cancel O-12345", "please cancel order O-12345 too",
    "I was told O-12345 is wrong", "I'm not at home", "order", "1", "0", "?", "🙂",
]  # fmt: skip


@pytest.mark.parametrize("text", CHECKS)
def test_another_request_is_served_and_the_same_is_asked_again(confirming: Desk, text: str) -> None:
    before = confirming.asked
    reply = confirming.say(text).reply.splitlines()
    assert confirming.ran == [("check_order", {"order_id": "O-12346"})]
    assert (reply[0][:24], reply[-1], confirming.asked) == (
        "Order O-12346 is shipped",
        before,
        before,
    )
    assert confirming.state["params"]["order_id"] == "O-778"
    confirming.say("yes")
    assert confirming.ran[1:] == [("cancel_order", {"order_id": "O-778"})]


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_that_nobody_can_answer_changes_nothing(confirming: Desk, text: str) -> None:
    before = confirming.asked
    for _ in range(4):  # asking is no wrong answer
        assert confirming.say(text).reply == f"{UNANSWERED}\n{before}"
        assert (confirming.ran, confirming.asked, confirming.last.attempt) == ([], before, 1)
    confirming.say("yes")
    assert confirming.ran == [("cancel_order", {"order_id": "O-778"})]


@pytest.mark.parametrize("text", REMARKS)
def test_what_is_neither_yes_nor_no_changes_nothing(confirming: Desk, text: str) -> None:
    confirming.say(text)
    assert (confirming.ran, confirming.last.waiting_for) == ([], "confirmation")
    assert confirming.asked.startswith(CANCEL.format("O-778"))
    assert confirming.state["params"] == {"order_id": "O-778"}
    confirming.say("yes")
    assert confirming.ran == [("cancel_order", {"order_id": "O-778"})]


def test_a_request_may_be_about_what_is_to_be_confirmed(confirming: Desk) -> None:
    assert confirming.say("ok but where is it").reply.endswith(CANCEL.format("O-778"))
    assert confirming.ran == [("check_order", {"order_id": "O-778"})]


def test_a_value_of_another_request_is_not_taken_for_the_confirmed_one(confirming: Desk) -> None:
    address = "12 Elm Street, Springfield"
    confirming.say(f"change the address of O-12345 to {address}")
    assert confirming.ran == [("change_address", {"order_id": "O-12345", "address": address})]
    assert confirming.asked == CANCEL.format("O-778")


@pytest.mark.parametrize(
    "text",
    [
        "I want a refund",
        "no, I want a refund",
        "I don't want to cancel, I want a refund",
        "no refund then?",
    ],
)
def test_a_request_that_asks_itself_comes_first_and_then_the_same_is_asked_again(
    confirming: Desk, text: str
) -> None:
    assert confirming.say(text).waiting_for == "order_id"
    confirming.say("O-777")
    assert confirming.say("it was broken").reply.endswith(CANCEL.format("O-778"))
    assert confirming.ran == [("refund_order", {"order_id": "O-777", "reason": "damaged"})]
    confirming.say("yes")
    assert confirming.ran[1:] == [("cancel_order", {"order_id": "O-778"})]


@pytest.mark.parametrize(
    ("text", "ran"),
    [
        ("yes", [("cancel_order", {"order_id": "O-778"})]),
        ("no", []),
        ("cancel", []),
        ("where is O-12346?", [("check_order", {"order_id": "O-12346"})]),
        ("yes, it was broken", []),
        ("yes, and the refund is for O-777", []),
    ],
)
def test_a_suspended_request_takes_nothing_of_what_is_said_to_a_confirmation(
    orders: Any, text: str, ran: Calls
) -> None:
    desk = Desk(orders, "I want a refund", "cancel O-778")
    desk.say(text)
    assert desk.ran == ran
    known = [desk.state["params"], *(entry["params"] for entry in desk.state["suspended"])]
    assert all(params.get("reason") is None for params in known)


@pytest.mark.parametrize("text", ["yes", "no", "go ahead", "cancel it"])
def test_a_suspended_confirmation_is_asked_again_before_it_is_answered(
    orders: Any, text: str
) -> None:
    desk = Desk(orders, "cancel O-778", "I want a refund")
    desk.say(text)
    assert desk.ran == []
    plans = [desk.state["plan"], *(entry["plan"] for entry in desk.state["suspended"])]
    assert "cancel_order" in [plan["intent_id"] for plan in plans if plan]


# -- while a question waits ------------------------------------------------------------------------

ORDER_ID, REASON, ADDRESS = (
    "What's your order ID?",
    "Why would you like the money back?",
    "What's the new delivery address?",
)
LOOKED = [("check_order", {"order_id": "O-12346"})]


@pytest.mark.parametrize(
    ("before", "text", "ran", "asked", "params"),
    [
        (["I want a refund"], "track O-12346", LOOKED, ORDER_ID, {}),
        (["I want a refund"], "where is O-12346?", LOOKED, ORDER_ID, {}),
        (["I want a refund"], "follow O-12346 please", LOOKED, ORDER_ID, {}),
        (["I want a refund"], "cancel O-778", [], CANCEL.format("O-778"), {"order_id": "O-778"}),
        (
            ["I want a refund"],
            "don't refund, cancel O-778",
            [],
            CANCEL.format("O-778"),
            {"order_id": "O-778"},
        ),
        (["I want a refund"], "O-777", [], REASON, {"order_id": "O-777"}),
        (["I want a refund"], "refund O-777", [], REASON, {"order_id": "O-777"}),
        (["I want a refund"], "is O-12345 late?", [], REASON, {"order_id": "O-12345"}),
        (
            ["I want a refund"],
            "no",
            [],
            "I need your order ID. It begins with O- and stands in your confirmation.",
            {},
        ),
        (["I want a refund", "O-777"], "track O-12346", LOOKED, REASON, {"order_id": "O-777"}),
        (["I want a refund", "O-777"], "where is O-12346?", LOOKED, REASON, {"order_id": "O-777"}),
        (
            ["I want a refund", "O-777"],
            "wait, where is O-12346?",
            LOOKED,
            REASON,
            {"order_id": "O-777"},
        ),
        (["I want a refund", "O-777"], "not O-777, O-779", [], REASON, {"order_id": "O-779"}),
        (["I want a refund", "O-777"], "sorry, I meant O-779", [], REASON, {"order_id": "O-779"}),
        (["change my address for O-778"], "track O-12346", LOOKED, ADDRESS, {"order_id": "O-778"}),
        (["change my address for O-778"], "wait, is it O-12345?", [], None, {"order_id": "O-778"}),
        (
            ["change my address for O-778"],
            "I was told that O-12345 is wrong",
            [],
            None,
            {"order_id": "O-778"},
        ),
    ],
)
def test_another_request_is_no_answer_and_a_question_is_no_correction(
    orders: Any, before: list[str], text: str, ran: Calls, asked: str | None, params: dict[str, Any]
) -> None:
    desk = Desk(orders, *before)
    desk.say(text)
    assert (desk.ran, desk.state["params"]) == (ran, params)
    assert desk.asked
    assert asked is None or desk.asked == asked


def test_a_possible_value_is_an_answer_whatever_pattern_holds_its_words(orders: Any) -> None:
    desk = Desk(orders, "I want a refund", "O-777")
    desk.say("my order was late")
    assert desk.ran == [("refund_order", {"order_id": "O-777", "reason": "late"})]


@pytest.mark.parametrize(
    "text",
    [
        "wait, O-778?",
        "no, it's wrong, O-778 arrived yesterday",
        "sorry, but what's the price of O-778?",
    ],
)
def test_an_answered_request_is_not_run_again_by_a_question_or_a_remark(
    orders: Any, text: str
) -> None:
    desk = Desk(orders, "where is O-12346?")
    assert desk.say(text).waiting_for is None
    assert (desk.ran, desk.state["plan"]) == ([], None)


# -- several values --------------------------------------------------------------------------------

BOOKING: dict[str, Any] = {
    "intents": {
        "book": {
            "description": "Book a table",
            "patterns": [r"\btable\b"],
            "required": ["people", "time", "name"],
            "optional": ["phone"],
            "tool": "book",
            "confirm": "For {people} at {time}?",
            "reply": "Booked.",
        },
        "hours": {
            "description": "Opening hours",
            "patterns": [r"\bopen (?:on \w+day|at \d)"],
            "reply": "From noon on.",
        },
    },
    "params": {
        "people": {"type": "integer", "description": "number of people", "prompt": "How many?"},
        "time": {"type": "time", "description": "time of the booking", "prompt": "When?"},
        "name": {"type": "person", "description": "name for the booking", "prompt": "Your name?"},
        "phone": {"type": "phone", "description": "phone number", "prompt": "Phone?"},
    },
    "replies": {"unknown": "What?", "cancelled": "Dropped.", "back": "Back."},
}


@tool
def book(people: int, time: datetime.time, name: str, phone: str | None = None) -> str:
    """Book a table."""
    return "booked"


BOOKINGS = build_waiting_graph(IntentCatalog.from_dict(BOOKING), [book])
BOOKED = {"people": 4, "time": "19:00", "name": "Ada Brook"}


@pytest.fixture
def booking() -> Desk:
    """A user who is asked whether a table shall be booked."""
    desk = Desk(
        BOOKINGS.compile(checkpointer=InMemorySaver()),
        "a table please",
        "4 people",
        "7 pm",
        "Ada Brook",
    )
    assert (desk.last.waiting_for, desk.state["params"]) == ("confirmation", BOOKED)
    return desk


def test_a_confirmation_shows_every_value_that_the_tool_is_given(booking: Desk) -> None:
    assert booking.asked == "Book a table (name Ada Brook). For 4 at 19:00?"
    booking.say("my phone number is 415-555-0132")
    assert (booking.ran, booking.asked) == (
        [],
        "Book a table (name Ada Brook, phone +14155550132). For 4 at 19:00?",
    )


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("make it 6 people", {"people": 6}),
        ("and 6 people actually", {"people": 6}),
        ("can we make it 6 people?", {"people": 6}),
        ("no, 8 pm", {"time": "20:00"}),
        ("make it 8 pm", {"time": "20:00"}),
        ("could you change the time to 8 pm?", {"time": "20:00"}),
        ("8 pm please", {"time": "20:00"}),
        ("the name is Frances Miller", {"name": "Frances Miller"}),
        ("no, under Frances Miller", {"name": "Frances Miller"}),
        ("no, for 6", {"people": 6}),
        ("yes, but for 6", {"people": 6}),
        ("a table at 8 pm", {"time": "20:00"}),
        ("yes, at 8 pm if possible", {"time": "20:00"}),
    ],
)
def test_a_change_is_of_the_value_that_it_names(
    booking: Desk, text: str, new: dict[str, Any]
) -> None:
    booking.say(text)
    assert (booking.ran, booking.last.waiting_for, booking.state["params"]) == (
        [],
        "confirmation",
        {**BOOKED, **new},
    )
    booking.say("yes")
    assert booking.ran == [("book", {**BOOKED, **new})]


@pytest.mark.parametrize(
    "text",
    [
        "to Bob Stone", "is 8 pm possible?", "is there parking for 6 cars?",
        "are you open at 8 pm?", "3 or 4 people", "yes and a quiet table",
        "are you open on sunday?",
    ],
)  # fmt: skip
def test_what_names_no_value_of_the_booking_changes_none(booking: Desk, text: str) -> None:
    asked = booking.asked
    booking.say(text)
    assert (booking.ran, booking.last.waiting_for, booking.state["params"]) == (
        [],
        "confirmation",
        BOOKED,
    )
    assert booking.asked.startswith(asked)


@pytest.mark.parametrize(
    "text",
    [
        "make it 6", "6", "no, 6", "see you at 8 pm", "we might be 6 people",
        "another table at 8 pm", "my mother turns 80 at 8 pm",
    ],
)  # fmt: skip
def test_what_may_be_another_value_is_asked_about_before_a_yes_counts(
    booking: Desk, text: str
) -> None:
    asked = booking.asked
    assert (booking.say(text).reply, booking.state["params"]) == (CHANGE, BOOKED)
    assert booking.say("yes").reply == asked
    assert booking.ran == []
    booking.say("yes")
    assert booking.ran == [("book", BOOKED)]


@pytest.mark.parametrize(
    "text",
    [
        "yes I'm sure. 3 years since we last ate with you", "yes, and a quiet table",
        "yes. it's our 10th anniversary, by the way",
    ],
)  # fmt: skip
def test_a_yes_with_a_remark_is_asked_for_again(booking: Desk, text: str) -> None:
    assert booking.say(text).waiting_for == "confirmation"
    assert booking.ran == []


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("8 pm sorry, my wife says 8 pm", {"time": "20:00"}),
        ("oops, 8 pm, not 7. mixing up my days", {"time": "20:00"}),
        ("wait, the boss wants 6 people", {"people": 6}),
        ("ah we're 5 people, not 4, my cousin is coming", {"people": 5}),
    ],
)
def test_a_value_that_takes_the_place_of_the_known_one_counts_whatever_else_is_told(
    booking: Desk, text: str, new: dict[str, Any]
) -> None:
    booking.say(text)
    assert (booking.ran, booking.state["params"]) == ([], {**BOOKED, **new})


@pytest.mark.parametrize(
    ("text", "name"),
    [("change the time", "time"), ("no, change the name", "name"), ("another time please", "time")],
)
def test_a_value_that_is_to_be_another_is_asked_for(booking: Desk, text: str, name: str) -> None:
    assert booking.say(text).waiting_for == name
    assert (booking.ran, booking.state["params"]) == (
        [],
        {key: value for key, value in BOOKED.items() if key != name},
    )


@pytest.mark.parametrize(
    "text", ["make it 6", "no, make it 6", "I meant 6", "change it to 6", "6 pizzas"]
)
def test_a_number_changes_the_only_value_that_it_can_be(text: str) -> None:
    @tool
    def order(pizzas: int) -> str:
        """Order pizzas."""
        return "ordered"

    params = {
        "pizzas": {"type": "integer", "description": "number of pizzas", "prompt": "How many?"}
    }
    intents = {
        "order": {
            "patterns": ["pizza"],
            "required": ["pizzas"],
            "tool": "order",
            "confirm": "Order {pizzas}?",
        }
    }
    graph = build_waiting_graph(
        IntentCatalog.from_dict({"intents": intents, "params": params}), [order]
    )
    desk = Desk(graph.compile(checkpointer=InMemorySaver()), "pizza", "4")
    assert desk.asked == "Order 4?"
    assert desk.say(text).reply == "Order 6?"
    assert desk.ran == []


def test_a_pattern_is_tried_on_the_whole_message(booking: Desk) -> None:
    waiting = Desk(booking.graph, "start over", "a table please", "4 people")
    assert waiting.asked == "When?"
    assert waiting.say("are you open at 8 pm?").reply == "From noon on.\nBack.\nWhen?"
    assert waiting.state["params"] == {"people": 4}


def test_a_value_that_fits_two_parameters_corrects_the_one_that_it_was_said_of() -> None:
    @tool
    def send(amount: float, account: str) -> str:
        """Send money."""
        return "sent"

    params = {
        "amount": {"type": "money", "prompt": "How much?"},
        "account": {"type": "identifier", "pattern": r"\d{8}", "prompt": "Which account?"},
    }
    intents = {
        "send": {
            "patterns": ["send"],
            "required": ["account", "amount"],
            "tool": "send",
            "confirm": "Send {amount} to {account}?",
        }
    }
    graph = build_waiting_graph(
        IntentCatalog.from_dict({"intents": intents, "params": params}), [send]
    )
    desk = Desk(graph.compile(checkpointer=InMemorySaver()), "send money", "12345678")
    desk.say("what? no, 87654321")
    assert (desk.asked, desk.state["params"]) == ("How much?", {"account": "87654321"})


# -- a classifier of another kind ------------------------------------------------------------------


class Claiming:
    """Stands in for a model that sees the same intent, and values for it, in everything that the
    rules leave open.
    """

    def __init__(self, intent_id: str, **params: Any) -> None:
        self.claim = Classification(intent_id, params, 0.8, "model")
        self.asked: list[str] = []

    def classify(self, request: ClassifyRequest) -> Classification:
        ruled = RuleClassifier().classify(request)
        if ruled.intent_id:
            return ruled
        self.asked.append(request.text)
        return replace(self.claim)

    async def aclassify(self, request: ClassifyRequest) -> Classification:
        return self.classify(request)


def claimed(classifier: Claiming) -> Desk:
    graph = build_waiting_graph(order_desk_catalog, TOOLS, classifier=classifier)
    return Desk(graph.compile(checkpointer=InMemorySaver()), "cancel O-778")


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize(
    ("text", "ran"),
    [
        ("yes", [("cancel_order", {"order_id": "O-778"})]),
        ("no", []),
        ("forget it", []),
        ("no, O-779", []),
    ],
)
def test_an_answer_to_a_confirmation_is_not_left_to_a_model(text: str, ran: Calls) -> None:
    classifier = Claiming("talk_to_human")
    desk = claimed(classifier)
    desk.say(text)
    assert (desk.ran, classifier.asked) == (ran, [])


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize(
    "text",
    [
        "my neighbour has O-12345",
        "is O-12345 there?",
        "hmm",
        "forget O-12345",
        "yes, unless it was sent",
    ],
)
def test_a_model_neither_confirms_a_request_nor_changes_its_values(text: str) -> None:
    desk = claimed(Claiming("cancel_order", order_id="O-12345"))
    desk.say(text)
    assert (desk.ran, desk.state["params"]) == ([], {"order_id": "O-778"})
    assert desk.asked.startswith(CANCEL.format("O-778"))


@pytest.mark.usefixtures("orders")
def test_what_a_model_takes_for_another_request_is_served_and_the_same_is_asked_again() -> None:
    desk = claimed(Claiming("check_order", order_id="O-12346"))
    desk.say("anything new about O-12346")
    assert desk.ran == [("check_order", {"order_id": "O-12346"})]
    assert desk.asked == CANCEL.format("O-778")


# -- a confirmation that nobody has seen -----------------------------------------------------------


def test_a_yes_is_not_for_values_that_were_edited_in_after_the_question(confirming: Desk) -> None:
    confirming.graph.update_state(confirming.config, {"params": {"order_id": "O-12345"}})
    confirming.say("yes")
    assert (confirming.ran, confirming.asked) == ([], CANCEL.format("O-12345"))
    confirming.say("yes")
    assert confirming.ran == [("cancel_order", {"order_id": "O-12345"})]


def test_an_async_yes_is_not_for_values_that_were_edited_in_after_the_question(
    confirming: Desk,
) -> None:
    confirming.graph.update_state(confirming.config, {"params": {"order_id": "O-12345"}})
    turn = asyncio.run(aconverse(confirming.graph, "yes", thread_id="t"))
    assert (confirming.ran, turn.interrupts[0].value["prompt"]) == ([], CANCEL.format("O-12345"))


def test_a_resume_is_not_for_values_that_were_edited_in_after_the_question(
    confirming: Desk,
) -> None:
    confirming.graph.update_state(confirming.config, {"params": {"order_id": "O-12345"}})
    confirming.graph.invoke(Command(resume="yes"), confirming.config)
    assert confirming.ran == []
    [waiting] = confirming.graph.get_state(confirming.config).interrupts
    assert waiting.value["prompt"] == CANCEL.format("O-12345")
    confirming.graph.invoke(Command(resume=True), confirming.config)
    assert confirming.ran == [("cancel_order", {"order_id": "O-12345"})]


def test_a_thread_that_does_not_say_what_was_asked_asks_again(confirming: Desk) -> None:
    """As a thread does that an older version has stored."""
    plan = {name: value for name, value in confirming.state["plan"].items() if name != "asked"}
    confirming.graph.update_state(confirming.config, {"plan": plan})
    confirming.say("yes")
    assert (confirming.ran, confirming.asked) == ([], CANCEL.format("O-778"))
    confirming.say("yes")
    assert confirming.ran == [("cancel_order", {"order_id": "O-778"})]


# -- what is read back -----------------------------------------------------------------------------


@pytest.fixture
def skips() -> Desk:
    """A desk whose tool wants no confirmation."""
    catalog = IntentCatalog.from_dict(
        {
            "intents": [
                {
                    "id": "hire_skip",
                    "description": "Hire a skip",
                    "examples": ["I need a skip"],
                    "required": ["size", "day"],
                    "tool": "hire_skip",
                    "reply": "Ordered.",
                }
            ],
            "params": {
                "size": {"type": "enum", "enum": ["mini", "large"], "prompt": "Mini or large?"},
                "day": {"type": "date", "prompt": "Which day?", "future": True},
            },
        }
    )

    @tool
    def hire_skip(size: str, day: datetime.date) -> str:
        """Hire a skip."""
        return f"{size} {day}"

    graph = build_waiting_graph(catalog, [hire_skip]).compile(checkpointer=InMemorySaver())
    return Desk(graph, "I need a skip")


def test_a_request_that_was_read_whole_is_not_read_back(skips: Desk) -> None:
    skips.say("blorf")
    skips.say("mini")
    assert skips.say("2099-03-06").reply == "Ordered."


def test_a_request_of_which_something_was_not_read_is_read_back_once(skips: Desk) -> None:
    skips.say("blorf the wuzzle gently")
    skips.say("mini")
    skips.say("2099-03-06")
    assert skips.asked == "Hire a skip (size mini, day 2099-03-06). Is that right?"
    assert skips.ran == []
    skips.say("no, large")
    assert skips.asked == "Hire a skip (size large, day 2099-03-06). Is that right?"
    assert skips.say("yes").reply == "Ordered."
    assert skips.ran == [("hire_skip", {"size": "large", "day": "2099-03-06"})]


def test_thanks_are_a_yes_to_what_is_only_read_back_and_none_to_what_is_to_be_confirmed(
    skips: Desk, confirming: Desk
) -> None:
    for text in ("blorf the wuzzle gently", "mini", "2099-03-06"):
        skips.say(text)
    assert skips.say("ok thanks").reply == "Ordered."
    asked = confirming.asked
    confirming.say("thank you")
    assert (confirming.asked, confirming.ran) == (asked, [])


STAY = IntentCatalog.from_dict(
    {
        "intents": [
            {
                "id": "stay",
                "description": "Book a stay for a dog",
                "examples": ["I want to leave my dog with you"],
                "required": ["start_date", "end_date"],
                "tool": "stay",
                "confirm": "From {start_date} to {end_date}?",
            }
        ],
        "params": {
            "start_date": {"type": "date", "description": "first day", "prompt": "From when?"},
            "end_date": {"type": "date", "description": "last day", "prompt": "Until when?"},
        },
    }
)


@tool
def stay(start_date: str, end_date: str) -> str:
    """Book a stay."""
    return "Booked."


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("no, the end date is wrong", "end_date"),
        ("the last day is wrong", "end_date"),
        ("the start date should be another", "start_date"),
    ],
)
def test_of_two_days_the_one_that_is_called_wrong_is_asked_for_anew(text: str, asked: str) -> None:
    with DeltaSaver.open(":memory:") as saver:
        graph = build_waiting_graph(STAY, [stay]).compile(checkpointer=saver)
        converse(graph, "I want to leave my dog from friday to sunday", thread_id="t")
        assert converse(graph, text, thread_id="t").waiting_for == asked
