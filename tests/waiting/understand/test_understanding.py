"""People say more than values: each of these conversations goes on where a person would, the
database opened anew for every message.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from langchain_core.tools import tool

from langmem_ext import DeltaSaver, IntentCatalog, Turn, build_waiting_graph, converse
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.policy.plan import start
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.understand.commands import Start
from langmem_ext.waiting.understand.intents.classifier import RuleClassifier
from langmem_ext.waiting.understand.message import Heard
from langmem_ext.waiting.understand.reader import understand

NOW = datetime(2026, 3, 4, 10, 15)
MOST_CALLS = 130_000
"""Calls of functions, and returns from them, that the reading of a message takes, at most: of one
that no test of this process has read before, parts of it are cached then."""
CALLS: list[tuple[str, dict[str, Any]]] = []
CATALOG = IntentCatalog.from_dict(
    {
        "intents": [
            {
                "id": "visit",
                "description": "Book a visit to the museum",
                "examples": [
                    "I'd like to visit the museum",
                    "book a tour for my class",
                    "can we come on friday",
                ],
                "required": ["tour", "day", "time", "people"],
                "tool": "visit",
                "confirm": "The {tour} tour on {day} at {time} for {people}?",
                "reply": "Booked.",
            },
            {
                "id": "cancel_visit",
                "description": "Cancel a visit",
                "examples": ["cancel our visit", "we can't come", "call off the tour"],
                "required": ["booking"],
                "tool": "cancel_visit",
                "reply": "Visit {booking} is cancelled.",
            },
            {
                "id": "prices",
                "description": "Prices",
                "examples": ["how much is a ticket", "what does it cost"],
                "reply": "Ten each.",
            },
            {
                "id": "colleague",
                "description": "Talk to a colleague",
                "examples": ["get me a colleague"],
                "reply": "A colleague calls you.",
            },
        ],
        "params": {
            "tour": {
                "type": "enum",
                "description": "which tour",
                "prompt": "Which tour?",
                "enum": ["history", "painting"],
            },
            "day": {
                "type": "date",
                "description": "day of the visit",
                "prompt": "On which day?",
                "future": True,
            },
            "time": {
                "type": "time",
                "description": "beginning of the tour",
                "prompt": "At what time?",
            },
            "people": {
                "type": "integer",
                "description": "number of people",
                "prompt": "How many people?",
                "bounds": [1, 20],
            },
            "booking": {
                "type": "identifier",
                "description": "number of the booking, it stands in your mail",
                "prompt": "Which booking?",
                "pattern": r"M-\d{3}",
                "examples": ["M-100"],
            },
        },
        "replies": {"unknown": "I can book and cancel visits."},
        "escalate_to": "colleague",
    }
)


@tool
def visit(tour: str, day: str, time: str, people: int) -> str:
    """Book a visit."""
    CALLS.append(("visit", {"tour": tour, "day": day, "time": time, "people": people}))
    return "ok"


@tool
def cancel_visit(booking: str) -> str:
    """Cancel a visit."""
    CALLS.append(("cancel_visit", {"booking": booking}))
    return "ok"


class Talk:
    """A conversation; every message opens the database anew."""

    def __init__(self, path: Path) -> None:
        self.path = str(path / "memory.db")
        self.builder = build_waiting_graph(CATALOG, [visit, cancel_visit])
        CALLS.clear()

    def say(self, *texts: str) -> Turn:
        for text in texts:
            with DeltaSaver.open(self.path) as saver:
                turn = converse(
                    self.builder.compile(checkpointer=saver), text, thread_id="t", now=NOW
                )
        return turn

    @property
    def state(self) -> dict[str, Any]:
        with DeltaSaver.open(self.path) as saver:
            graph = self.builder.compile(checkpointer=saver)
            return dict(graph.get_state({"configurable": {"thread_id": "t"}}).values)


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path)


WISH = "book the history tour for 4 people on friday at 3 pm"
VISIT = ("visit", {"tour": "history", "day": "2026-03-06", "time": "15:00", "people": 4})


def test_all_in_one_message_is_asked_to_be_confirmed_and_done(talk: Talk) -> None:
    assert talk.say(f"hi! {WISH}, thanks").reply == "The history tour on 2026-03-06 at 15:00 for 4?"
    assert talk.say("yes, that would be marvellous, thank you").reply == "Booked."
    assert CALLS == [VISIT]


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("hello", "Hello! What can I do for you?"),
        ("thanks", "You're welcome."),
        ("what can you do?", "I can book and cancel visits."),
        ("asdkj", "I can book and cancel visits."),
    ],
)
def test_at_rest_chat_gets_an_answer_of_its_own(talk: Talk, text: str, reply: str) -> None:
    assert talk.say(text).reply == reply


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("hello", "Hello! What can I do for you?"),
        ("thank you", "You're welcome."),
        ("help", 'You can answer my question, ask for something else, or say "cancel".'),
        ("what?", "Once more:"),
        ("say that again please", "Once more:"),
        ("is there a café nearby?", "I can't answer that here."),
        ("which tours are there?", "Which tour. You can choose history or painting."),
        (
            "I don't know",
            'I need that to book a visit to the museum. Take your time, or say "cancel".',
        ),
        (
            "whatever you have",
            (
                "It is up to you, and I need it to book a visit to the museum. You can choose"
                " history or painting."
            ),
        ),
    ],
)
def test_what_is_no_answer_is_answered_and_costs_no_attempt(
    talk: Talk, text: str, reply: str
) -> None:
    talk.say("I'd like to visit the museum on friday")
    for _ in range(4):
        turn = talk.say(text)
        assert turn.reply == f"{reply}\nWhich tour?"
        assert (turn.waiting_for, turn.attempt) == ("tour", 1)
    assert talk.state["params"] == {"day": "2026-03-06"}
    assert talk.say("painting").waiting_for == "time"


def test_what_a_parameter_is_can_be_asked(talk: Talk) -> None:
    turn = talk.say("cancel our visit", "what's a booking number?")
    assert (
        turn.reply
        == "Number of the booking, it stands in your mail. For example: M-100.\nWhich booking?"
    )


def test_the_same_is_not_said_twice_in_a_row(talk: Talk) -> None:
    replies = [talk.say(text).reply for text in ("book a tour", "blue", "asdf")]
    assert all(one != other for one, other in zip(replies, replies[1:], strict=False))


def test_a_value_out_of_bounds_is_refused_with_the_reason(talk: Talk) -> None:
    turn = talk.say("book the history tour on friday at 3 pm", "30 people")
    assert turn.reply.startswith("It must be between 1 and 20.\n")
    assert "people" not in talk.state["params"]


def test_an_hour_of_either_half_of_the_day_is_asked_about(talk: Talk) -> None:
    turn = talk.say("book the history tour for 4 people on friday", "at 7")
    assert turn.reply == "Do you mean: 7:00 in the morning or 7:00 in the evening?"
    assert "time" not in talk.state["params"]
    assert talk.say("in the evening").reply == "The history tour on 2026-03-06 at 19:00 for 4?"


def test_a_no_asks_what_to_change_and_changes_only_that(talk: Talk) -> None:
    assert talk.say(WISH, "no").reply == "All right. What should I change?"
    assert talk.say("the people").reply == "How many people?"
    assert talk.say("five").reply == "The history tour on 2026-03-06 at 15:00 for 5?"
    talk.say("yes")
    assert [("visit", {**VISIT[1], "people": 5})] == CALLS


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("no, for 6", {"people": 6}),
        ("yes but make it 6 people", {"people": 6}),
        ("six people, not four", {"people": 6}),
        ("can we do saturday instead", {"day": "2026-03-07"}),
        ("oh no. my boss says the 9th of march is better", {"day": "2026-03-09"}),
        ("painting, not history", {"tour": "painting"}),
    ],
)
def test_another_value_at_the_confirmation_is_confirmed_anew(
    talk: Talk, text: str, changed: dict[str, Any]
) -> None:
    assert talk.say(WISH, text).waiting_for == "confirmation"
    assert CALLS == []
    talk.say("go for it")
    assert [("visit", {**VISIT[1], **changed})] == CALLS


def test_another_request_in_between_leaves_the_first_as_it_was(talk: Talk) -> None:
    turn = talk.say("book the history tour on friday at 3 pm", "how much is a ticket?")
    assert turn.reply == "Ten each.\nBack to your earlier request.\nHow many people?"
    assert talk.say("4").reply == "The history tour on 2026-03-06 at 15:00 for 4?"


def test_two_requests_of_one_message_are_both_kept(talk: Talk) -> None:
    turn = talk.say(
        "please cancel our visit M-100 and book the painting tour for 3 people on sunday at 2 pm"
    )
    assert turn.reply.startswith("Visit M-100 is cancelled.\n")
    talk.say("yes")
    assert [name for name, _ in CALLS] == ["cancel_visit", "visit"]


def test_a_cancelled_request_is_gone_and_what_is_asked_in_the_same_breath_is_answered(
    talk: Talk,
) -> None:
    turn = talk.say("book a tour", "oh forget it. how much is a ticket?")
    assert turn.reply == "All right, I have stopped that.\nTen each."
    assert talk.state["plan"] is None


def test_a_person_takes_over_on_request_and_the_request_waits(talk: Talk) -> None:
    turn = talk.say("book a tour on friday", "can I talk to a human")
    assert turn.reply.startswith("A colleague calls you.")
    assert talk.state["params"] == {"day": "2026-03-06"}


def test_what_was_understood_is_told_without_guessing(talk: Talk) -> None:
    talk.say("book the history tour for 4 people")
    [start] = talk.state["understood"]
    assert (start["command"], start["intent"], start["values"]) == (
        "start",
        "visit",
        {"tour": "history", "people": 4},
    )
    talk.say("hello")
    assert [(command["command"], command["kind"]) for command in talk.state["understood"]] == [
        ("chat", "hello")
    ]


def test_tomorrow_is_counted_from_when_the_message_was_written(talk: Talk) -> None:
    talk.say("book the history tour for 4 people tomorrow at 3 pm")
    assert talk.state["params"]["day"] == "2026-03-05"
    with DeltaSaver.open(talk.path) as saver:
        graph = talk.builder.compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "t"}}
        written = graph.get_state(config).values["messages"][0]
        assert written.additional_kwargs["langmem_ext"]["at"] == NOW.isoformat()


def trip(tmp_path: Path, **more: Any) -> Any:
    """A user who is asked where from, for a trip whose tool needs the place, or can do without."""

    @tool
    def book_trip(to: str, pickup: str = "") -> str:
        """Book a trip."""
        return f"to {to} from {pickup or 'the station'}"

    pickup = {
        "type": "enum",
        "description": "place to be picked up",
        "prompt": "Where from?",
        "enum": ["main_gate", "east_gate"],
        **more,
    }
    catalog = IntentCatalog.from_dict(
        {
            "intents": [
                {
                    "id": "trip",
                    "examples": ["book a trip"],
                    "required": ["to", "pickup"],
                    "tool": "book_trip",
                    "reply": "{result}, {pickup}",
                },
                {"id": "desk", "examples": ["talk to the desk"], "reply": "The desk calls you."},
            ],
            "params": {"to": {"type": "place", "prompt": "Where to?"}, "pickup": pickup},
            "escalate_to": "desk",
        }
    )
    saver = DeltaSaver.open(str(tmp_path / "trip.db"))
    graph = build_waiting_graph(catalog, [book_trip]).compile(checkpointer=saver)
    converse(graph, "book a trip", thread_id="t")
    assert converse(graph, "Rome", thread_id="t").reply == "Where from?"
    return lambda text: converse(graph, text, thread_id="t").reply


def test_any_will_do_takes_the_default(tmp_path: Path) -> None:
    assert (
        trip(tmp_path, default="east_gate")("whatever suits you")
        == "to Rome from east_gate, east gate"
    )


def test_a_value_is_shown_by_its_label(tmp_path: Path) -> None:
    assert (
        trip(tmp_path, labels={"main_gate": "the big gate"})("main gate please")
        == "to Rome from main_gate, the big gate"
    )


def test_what_the_user_does_not_have_is_left_out_where_the_tool_can_do_without(
    tmp_path: Path,
) -> None:
    assert (
        trip(tmp_path, on_declined="skip")("I don't know") == "to Rome from the station, (unknown)"
    )


def test_what_the_user_does_not_have_may_hand_over_or_end_the_request(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    assert trip(tmp_path, on_declined="cancel")("I don't know") == "All right, I have stopped that."
    assert trip(tmp_path / "one", on_declined="escalate")("I don't know").startswith(
        "The desk calls you.\n"
    )


def test_help_says_what_a_parameter_is(tmp_path: Path) -> None:
    say = trip(tmp_path, help="The gate where the bus stops.")
    assert say("what do you mean?") == "The gate where the bus stops.\nWhere from?"
    assert say("I don't know") == "The gate where the bus stops.\nWhere from?"


ACCOUNTS: Any = {
    "intents": [
        {
            "id": "open_account",
            "description": "Open a new savings account.",
            "examples": [
                "I want to open a savings account",
                "can I open an account with you",
                "start saving with you",
            ],
            "reply": "It is open.",
        },
        {
            "id": "close_account",
            "description": "Close a savings account that is no longer needed.",
            "examples": [
                "please close my savings account",
                "I want to close my account",
                "shut the savings account",
            ],
            "reply": "It is closed.",
        },
    ],
}


@pytest.mark.parametrize(
    "text",
    [
        "my savings account",
        "hello, it's about the savings account",
        "open or close a savings account",
    ],
)
def test_between_two_requests_that_fit_as_well_the_user_is_asked(tmp_path: Path, text: str) -> None:
    builder = build_waiting_graph(IntentCatalog.from_dict(ACCOUNTS), [])
    with DeltaSaver.open(tmp_path / "memory.db") as saver:
        graph = builder.compile(checkpointer=saver)
        asked = converse(graph, text, thread_id="t", now=NOW).reply
        assert "open a new savings account" in asked.lower()
        assert "close a savings account" in asked.lower()
        assert converse(graph, "close it please", thread_id="t", now=NOW).reply == "It is closed."


def test_a_message_may_give_a_value_and_correct_another(talk: Talk) -> None:
    talk.say("book the history tour for 4 people")
    assert talk.say("friday. Oh, and make that five, my sister comes too").waiting_for == "time"
    assert talk.state["params"] == {"tour": "history", "day": "2026-03-06", "people": 5}


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("no the day is wrong, it was saturday, we only land then", {"day": "2026-03-07"}),
        ("sorry, i think it was the painting tour", {"tour": "painting"}),
    ],
)
def test_at_a_confirmation_what_it_should_have_been_takes_the_place_of_what_is_wrong(
    talk: Talk, text: str, changed: dict[str, Any]
) -> None:
    talk.say(WISH)
    assert talk.say(text).waiting_for == "confirmation"
    assert {name: talk.state["params"][name] for name in changed} == changed


def test_another_request_instead_ends_the_one_that_is_confirmed(talk: Talk) -> None:
    talk.say(WISH)
    assert talk.say("hang on, no. can i cancel a visit instead").waiting_for == "booking"
    assert talk.state["suspended"] == []
    talk.say("M-100")
    assert CALLS[-1:] != [VISIT]


def test_who_says_what_they_want_to_know_of_answers_and_who_asks_for_its_price_does_not(
    talk: Talk,
) -> None:
    talk.say("book a visit")
    assert "tour" not in talk.state["params"]
    talk.say("I want to know how much the painting tour costs")
    assert "tour" not in talk.state["params"]
    talk.say("I want to know about the painting tour")
    assert talk.state["params"]["tour"] == "painting"


def test_a_known_value_that_is_said_anew_in_passing_is_corrected(talk: Talk) -> None:
    talk.say("book the history tour on friday at 2pm")
    assert talk.say("ok, 4.30pm then").waiting_for == "people"
    assert talk.state["params"]["time"] == "16:30"


def test_a_known_number_gives_way_to_a_bare_one_that_can_be_nothing_else(talk: Talk) -> None:
    talk.say("book a tour for 4 people on friday")
    assert talk.say("5 sorry, forgot my nephew. and the painting tour").waiting_for == "time"
    assert (talk.state["params"]["people"], talk.state["params"]["tour"]) == (5, "painting")


def test_a_known_day_gives_way_to_one_that_is_proposed_with_a_question_mark(talk: Talk) -> None:
    talk.say("book a tour for 4 people on friday")
    assert talk.say("saturday?").waiting_for == "tour"
    assert talk.state["params"]["day"] == "2026-03-07"


def test_a_certain_answer_begins_no_other_request_unless_it_wishes(talk: Talk) -> None:
    talk.say("book the history tour for 4 people")
    assert talk.say("we can't come on thursday, friday the 6th it is").waiting_for == "time"
    assert talk.state["params"]["day"] == "2026-03-06"


def test_a_known_value_gives_way_to_one_that_is_said_beside_an_answer(talk: Talk) -> None:
    talk.say("book the history tour at 2pm")
    assert talk.say("on friday. and my wife says painting").waiting_for == "people"
    assert (talk.state["params"]["tour"], talk.state["params"]["day"]) == ("painting", "2026-03-06")


def test_a_value_that_was_not_asked_for_is_told_before_the_question_comes_again(
    talk: Talk,
) -> None:
    talk.say("book a visit")
    assert talk.say("friday").reply == "All right, 2026-03-06.\nWhich tour?"
    assert talk.say("quarter past 3 pm?").reply == (
        "All right, 3:15 in the afternoon.\nWhich tour?"
    )


def test_a_known_value_that_is_taken_back_beside_an_answer_is_corrected(talk: Talk) -> None:
    talk.say("book the history tour on friday at 2pm")
    said = "oh sorry, just looked at the bus, it gets there on saturday. we are 5"
    assert talk.say(said).waiting_for == "confirmation"
    assert (talk.state["params"]["day"], talk.state["params"]["people"]) == ("2026-03-07", 5)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("when my sister gets here, that's the 12th", "2026-03-12"),
        ("when the school is off, so friday", "2026-03-06"),
    ],
)
def test_a_subordinate_clause_asks_nothing(talk: Talk, text: str, day: str) -> None:
    talk.say("book the history tour for 4 people at 2pm")
    talk.say(text)
    assert talk.state["params"]["day"] == day


@pytest.mark.parametrize(
    "text",
    [
        "we found a museum nearer to us, so forget it, we don't need anything",
        "hm, they have it at the castle, never mind then",
        "wait no, forget the tour, we'll stay at home",
    ],
)
def test_an_end_counts_wherever_it_stands(talk: Talk, text: str) -> None:
    talk.say("book the history tour")
    talk.say(text)
    assert talk.state["plan"] is None


@pytest.mark.parametrize(
    "text",
    [
        "book the painting tour on friday at 2pm for 4. and our visit M-100 needs to be cancelled",
        "the visit M-100 needs to be cancelled. also book the painting tour on friday at 2pm for 4",
    ],
)
def test_a_second_sentence_that_adds_a_request_is_heard_with_its_own_values(
    talk: Talk, text: str
) -> None:
    talk.say(text)
    starts = [each for each in talk.state["understood"] if each["command"] == "start"]
    assert {each["intent"] for each in starts} == {"visit", "cancel_visit"}
    values = {each["intent"]: each["values"] for each in starts}
    assert values["cancel_visit"] == {"booking": "M-100"}
    assert values["visit"]["people"] == 4


def test_what_a_message_leaves_open_of_its_second_request_is_asked_when_that_is_taken_up(
    talk: Talk,
) -> None:
    talk.say("cancel our visit M-100, and also book the painting tour on friday at 7 for 4")
    assert CALLS[-1] == ("cancel_visit", {"booking": "M-100"})
    [likely] = talk.state["plan"]["choices"].values()
    assert likely == ["07:00", "19:00"]
    assert talk.say("in the evening").waiting_for == "confirmation"
    assert talk.state["params"]["time"] == "19:00"


@pytest.mark.parametrize(
    "text",
    [
        "we can't come, M-100 that is, and also I'd like to book the history tour",
        "we cannot make it for M-100 i'm afraid. can you also book the history tour please",
    ],
)
def test_what_is_told_before_another_request_is_one_too_and_keeps_its_number(
    talk: Talk, text: str
) -> None:
    talk.say(text)
    assert CALLS[-1] == ("cancel_visit", {"booking": "M-100"})
    assert talk.state["params"] == {"tour": "history"}


def test_what_is_said_with_a_value_that_is_needed_asks_for_nothing_else(talk: Talk) -> None:
    talk.say("book the history tour")
    assert talk.say("at 3pm, it costs less in the afternoon").waiting_for == "day"
    assert talk.state["params"]["time"] == "15:00"
    assert "Ten each" not in talk.say("friday, the ticket costs what it costs").reply


@pytest.mark.parametrize("again", ["the same one, M-100", "M-100 too please"])
def test_a_request_that_is_done_does_not_begin_anew_with_the_same_values(
    talk: Talk, again: str
) -> None:
    talk.say("cancel our visit M-100")
    before = len(CALLS)
    talk.say(again)
    assert len(CALLS) == before


def test_a_yes_with_another_request_serves_that_and_is_asked_for_again(talk: Talk) -> None:
    talk.say(WISH)
    before = len(CALLS)
    assert talk.say("yes. oh and cancel our visit M-100").waiting_for == "confirmation"
    assert CALLS[before:] == [("cancel_visit", {"booking": "M-100"})]


def test_a_known_value_that_is_said_anew_is_replaced_whatever_is_said_around_it(talk: Talk) -> None:
    talk.say("book the history tour on friday at 2pm")
    assert talk.say("hmm that is too early i think. half past four in the afternoon").reply
    assert talk.state["params"]["time"] == "16:30"
    assert talk.say("4").waiting_for == "confirmation"
    talk.say("oh wait, the painting tour it says here, mixed them up")
    assert talk.state["params"]["tour"] == "painting"


@pytest.mark.parametrize("remark", ["great, sorry for the trouble with the tour", "nice tours"])
def test_a_remark_on_what_was_done_begins_nothing(talk: Talk, remark: str) -> None:
    talk.say(WISH)
    talk.say("yes")
    assert talk.say(remark).waiting_for is None
    assert talk.state["plan"] is None


def test_a_request_without_a_choice_that_is_ruled_out_asks_for_it(talk: Talk) -> None:
    assert talk.say("book a tour on friday, but not with the painting one").waiting_for == "tour"


@pytest.mark.parametrize(
    "text",
    ["no wait, only 3 of us now", "hang on, just three now", "one of us is ill so 3"],
)
def test_at_a_confirmation_a_number_that_is_taken_back_is_shown_anew(talk: Talk, text: str) -> None:
    talk.say(WISH)
    assert talk.say(text).waiting_for == "confirmation"
    assert talk.state["params"]["people"] == 3


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("all wrong, sorry. start over please", {}),
        ("hang on. let's start over: the painting tour on sunday", {"tour": "painting"}),
    ],
)
def test_words_that_start_over_may_follow_others(
    talk: Talk, text: str, params: dict[str, Any]
) -> None:
    talk.say("book the history tour for 4")
    talk.say(text)
    assert talk.state["params"] == params | ({"day": "2026-03-08"} if params else {})


def test_a_bare_value_goes_to_the_one_that_can_have_it(talk: Talk) -> None:
    talk.say("book the history tour on friday")
    assert talk.say("a dozen people").waiting_for == "time"
    assert talk.state["params"]["people"] == 12
    talk.say("cancel")
    assert talk.say("book a tour at 3pm for 4").waiting_for == "tour"
    assert talk.say("sunday").waiting_for == "tour"
    assert talk.state["params"]["day"] == "2026-03-08"


DENSE = [
    "monday tuesday 3/4 ",
    "12/3, friday the 12th of march, ",
    "1 2 17 300 4.50 ",
    "seven twenty one hundred and three ",
    "Anna Bert Carl Dora, ",
    "half past 7 at 8:30 quarter to nine ",
    "no wait, not 7, 8, sorry I meant 9, ",
    "12 High Street, Leeds, 4 Mill Lane York ",
    "M-100 M-101 07700 900123 ",
    "a@b.co c.d@e.org ",
    "me and my wife and two kids and my mother, ",
    "don't cancel it, i don't want that, never ",
    "what is it? how much? can you book it? ",
    " ",
    "....",
    "{name} {{result.code}} ",
    "\u202eabc\u202c \x00\x07\x1b[31m",
]


@pytest.mark.parametrize("before", [(), ("book a visit",)], ids=["at rest", "asked"])
def test_a_long_message_costs_no_more_than_a_bounded_number_of_calls(
    before: tuple[str, ...],
) -> None:
    playbook, session = Playbook(CATALOG, [visit, cancel_visit]), Session()
    classifier = RuleClassifier()

    def read(text: str) -> None:
        reading = understand(playbook, session, Heard("1", text, [], NOW))
        with suppress(StopIteration):
            request = next(reading)
            while True:
                request = reading.send(classifier.classify(request))

    def calls(text: str) -> int:
        count = 0

        def note(frame: FrameType, event: str, _: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(note)
        try:
            read(text)
        finally:
            sys.setprofile(None)
        return count

    for text in before:
        move = start(playbook, session, Heard("0", text, [], NOW), Start("visit"))
        session = move.session
    read("hello, I want to visit the museum")  # the catalog's words are weighed once
    cost = {unit: calls((unit * 10_000)[:10_000]) for unit in DENSE}
    assert {unit: count for unit, count in cost.items() if count > MOST_CALLS} == {}
