"""What goes wrong in practice: edits, kills, odd resumes, two at once.

A thread that waits comes through all of it.
"""

from __future__ import annotations

import itertools
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import desk
import pytest
from conversation import Conversation, Server
from patience import PATIENCE_S

from langmem_ext import StaleAnswer, ThreadBusy, converse

ASKED = "What's your order ID?"


@pytest.fixture
def waiting(talk: Any) -> Any:
    """A conversation in which the desk waits for the order id."""
    turn = talk.say("I want to check my order")
    assert turn["waiting_for"] == "order_id"
    return talk


# -- state edited while a question waits -----------------------------------------------------------


def test_a_parameter_filled_by_an_edit_is_not_asked_for_again(waiting: Any) -> None:
    waiting.edit({"params": {"order_id": "O-7"}})
    turn = waiting.say("thank you")
    assert turn["waiting_for"] is None
    assert waiting.shop.effects() == [("check_order", {"number": "O-7"})]
    assert ("ai", "Order O-7 is on its way.") in waiting.texts()


def test_a_value_edited_in_that_the_tool_would_refuse_is_asked_for(waiting: Any) -> None:
    waiting.edit({"params": {"order_id": "banana"}})
    turn = waiting.say("")
    assert turn["waiting_for"] == "order_id"
    assert waiting.shop.calls() == []
    waiting.say("O-8")
    assert waiting.shop.effects() == [("check_order", {"number": "O-8"})]


@pytest.mark.parametrize("wait", [None, "no_such_param", "amount", 7, ["order_id"]])
def test_a_question_survives_an_edit_of_what_is_waited_for(waiting: Any, wait: object) -> None:
    waiting.edit({"waiting_for_param": wait})
    turn = waiting.say("")
    assert turn["waiting_for"] == "order_id"
    assert turn["reply"].splitlines().count(ASKED) == 1
    waiting.say("O-9")
    assert waiting.shop.effects() == [("check_order", {"number": "O-9"})]


def test_a_removed_plan_ends_the_wait_and_the_next_message_is_a_new_request(waiting: Any) -> None:
    waiting.edit({"plan": None})
    turn = waiting.say("O-10")
    assert turn["waiting_for"] is None
    assert turn["reply"].startswith("Do you mean: find out where an order is, or ")
    assert waiting.shop.calls() == []
    assert waiting.say("I want to check my order")["waiting_for"] is None
    assert waiting.shop.calls() == [("check_order", {"number": "O-10"})]


@pytest.mark.parametrize(
    "values",
    [
        {"plan": {"id": "x"}},
        {
            "plan": {
                "id": "x",
                "intent_id": "no_such_intent",
                "steps": [],
                "cursor": 0,
                "results": [],
                "attempts": {},
            }
        },
        {"plan": "check_order"},
        {"params": None},
        {"params": ["order_id"]},
        {"suspended": None},
        {"suspended": [{"plan": 3}]},
        {"summary": "short", "last_result": 3, "last_intent_id": 7},
    ],
)
def test_an_edit_that_makes_no_sense_leaves_a_thread_that_answers(
    waiting: Any, values: dict[str, Any]
) -> None:
    waiting.edit(values)
    waiting.say("I want to check my order")
    waiting.say("O-11")
    assert ("ai", "Order O-11 is on its way.") in waiting.texts()
    assert waiting.shop.effects() == [("check_order", {"number": "O-11"})]


# -- processes that die ----------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_killed_between_the_plan_and_the_question_asks_when_the_message_is_sent_again(
    talk: Any, when: str
) -> None:
    for call in itertools.count(1):
        talk.thread = f"t{call}"
        killed = talk.step(
            "converse", text="I want to check my order", id="m1", kill={"call": call, "when": when}
        )
        turn = talk.say("I want to check my order", message_id="m1")
        assert (turn["waiting_for"], turn["reply"]) == ("order_id", ASKED)
        assert talk.texts() == [("human", "I want to check my order"), ("ai", ASKED)]
        if killed["exit"] == 0:
            break
        assert killed["exit"] == desk.KILLED
    assert call > 4, "the kills did not reach into the turn"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_killed_anywhere_in_the_answer_acts_once_and_answers(
    talk: Any, when: str
) -> None:
    for call in itertools.count(1):
        talk.thread = f"t{call}"
        talk.say("I want to check my order", message_id="m1")
        killed = talk.step(
            "converse", text=f"It's O-{call}", id="m2", kill={"call": call, "when": when}
        )
        turn = talk.say(f"It's O-{call}", message_id="m2")
        assert (turn["waiting_for"], turn["reply"]) == (None, f"Order O-{call} is on its way.")
        assert talk.shop.effects()[call - 1 :] == [("check_order", {"number": f"O-{call}"})]
        assert [text for _, text in talk.texts()] == [
            "I want to check my order",
            ASKED,
            f"It's O-{call}",
            f"Order O-{call} is on its way.",
        ]
        if killed["exit"] == 0:
            break
        assert killed["exit"] == desk.KILLED
    assert call > 8, "the kills did not reach into the turn"


def test_a_process_killed_between_a_tools_effect_and_its_record_does_not_act_twice(
    waiting: Any,
) -> None:
    assert waiting.step("converse", text="O-12345", id="m2", kill="after_effect")["exit"] == 9
    turn = waiting.say("O-12345", message_id="m2")
    assert turn["reply"] == "Order O-12345 is on its way."
    assert len(waiting.shop.calls()) == 2
    assert waiting.shop.effects() == [("check_order", {"number": "O-12345"})]


def test_a_message_that_is_another_one_after_a_kill_finds_the_first_one_finished(
    waiting: Any,
) -> None:
    assert waiting.step("converse", text="O-1", id="m2", kill="after_effect")["exit"] == 9
    waiting.say("I want to check my order O-2", message_id="m3")
    assert waiting.shop.effects() == [
        ("check_order", {"number": "O-1"}),
        ("check_order", {"number": "O-2"}),
    ]
    assert ("ai", "Order O-1 is on its way.") in waiting.texts()


# -- resumes of any shape --------------------------------------------------------------------------

EMPTY = [None, {}, [], "", "  ", {"text": None}, {"text": ""}, [None]]
FILLING = [
    "O-3",
    {"text": "O-3"},
    ["O-3"],
    {"order_id": "O-3"},
    {"content": "it's O-3"},
    [{"type": "text", "text": "O-3"}],
    {"value": "O-3"},
]
WRONG = [
    0,
    7,
    -1.5,
    True,
    False,
    [1, 2],
    {"a": {"b": [None, 1]}},
    "\ud800",
    "banana",
    [[[[[[[[[[[[1]]]]]]]]]]]],
]


@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize("value", EMPTY)
def test_an_empty_resume_asks_again_and_is_no_attempt(
    waiting: Any, value: object, by_id: bool
) -> None:
    waiting.resume(value, by_id=by_id)
    [question] = waiting.pending()
    assert (question["param"], question["attempt"]) == ("order_id", 1)
    assert waiting.texts() == [("human", "I want to check my order"), ("ai", ASKED)]
    waiting.say("O-3")
    assert waiting.shop.effects() == [("check_order", {"number": "O-3"})]


@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize("value", FILLING)
def test_a_resume_that_holds_the_answer_in_any_shape_is_understood(
    waiting: Any, value: object, by_id: bool
) -> None:
    assert "error" not in waiting.resume(value, by_id=by_id)
    assert waiting.shop.effects() == [("check_order", {"number": "O-3"})]
    assert waiting.pending() == []


@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize("value", WRONG)
def test_a_resume_with_any_other_value_leaves_the_question_answerable(
    waiting: Any, value: object, by_id: bool
) -> None:
    waiting.resume(value, by_id=by_id)
    [question] = waiting.pending()
    assert question["param"] == "order_id"
    waiting.say("O-3")
    assert waiting.shop.effects() == [("check_order", {"number": "O-3"})]


def test_a_resume_when_nothing_waits_changes_nothing(waiting: Any) -> None:
    waiting.say("O-3")
    before = waiting.texts()
    waiting.resume("O-4", by_id=False)
    assert waiting.texts() == before
    assert waiting.shop.effects() == [("check_order", {"number": "O-3"})]


# -- several writers -------------------------------------------------------------------------------


def test_of_two_answers_at_once_one_answers_the_question(waiting: Any) -> None:
    """The other is refused, or begins a turn of its own if it came while nothing was asked."""
    turns, refused = list[str](), list[str]()
    with waiting.graph() as graph:

        def answer(text: str) -> None:
            try:
                converse(graph, text, thread_id=waiting.thread, wait=PATIENCE_S)
                turns.append(text)
            except StaleAnswer:
                refused.append(text)

        threads = [threading.Thread(target=answer, args=(text,)) for text in ("O-1", "O-2")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(turns + refused) == ["O-1", "O-2"]
    said = [text for who, text in waiting.texts() if who == "human" and text.startswith("O-")]
    assert sorted(said) == sorted(turns)
    assert len(waiting.shop.effects()) == 1


def test_the_second_of_two_callers_is_told_that_the_thread_is_busy(waiting: Any) -> None:
    with waiting.graph() as graph, closing(sqlite3.connect(waiting.shop.path)) as blocker:
        blocker.execute("BEGIN EXCLUSIVE")  # the tool of the first caller waits for the shop
        first = threading.Thread(
            target=converse, args=(graph, "O-1"), kwargs={"thread_id": waiting.thread}
        )
        first.start()
        try:
            while not any(
                task.name == "call_tool" for task in graph.get_state(waiting.config).tasks
            ):
                pass
            with pytest.raises(ThreadBusy):
                converse(graph, "O-2", thread_id=waiting.thread, wait=0.05)
        finally:
            blocker.rollback()
            first.join()
    assert waiting.shop.effects() == [("check_order", {"number": "O-1"})]


@pytest.mark.process
def test_of_two_processes_that_answer_at_once_one_answers(waiting: Any) -> None:
    """The other waits for it: its question is answered then, or it comes late and is a message."""
    second = Server()
    try:
        other = Conversation(second, waiting.database, waiting.shop.path.parent)
        with ThreadPoolExecutor(2) as pool:
            ends = [
                pool.submit(talk.step, "converse", text=text, id=None, kill=None)
                for talk, text in ((waiting, "O-1"), (other, "O-2"))
            ]
            refused = [end.result()["error"] for end in ends if "error" in end.result()]
    finally:
        second.close()
    said = [text for who, text in waiting.texts() if who == "human" and text.startswith("O-")]
    assert len(said) == 2 - len(refused)
    assert all("StaleAnswer" in error for error in refused), refused
    assert len(waiting.shop.effects()) == 1
    assert waiting.pending() == []


@pytest.mark.process
def test_every_step_may_be_a_new_interpreter(place: str, tmp_path: Path) -> None:
    for text, expected in [
        ("I want to check my order", ASKED),
        ("O-3", "Order O-3 is on its way."),
    ]:
        server = Server()
        try:
            assert Conversation(server, place, tmp_path).say(text)["reply"] == expected
        finally:
            server.close()


def test_one_thread_is_continued_in_turn_by_two_processes(talk: Any) -> None:
    """Neither process is restarted in between: each sees what the other did."""
    with talk.graph() as here:
        talk.say("I want to change my address")
        assert converse(here, "O-5", thread_id=talk.thread).waiting_for == "address"
        assert talk.say("banana phone?!")["waiting_for"] == "address"
        turn = converse(here, "12 Main Street, Springfield", thread_id=talk.thread)
        assert turn.waiting_for is None
        talk.say("cancel order O-5")
        converse(here, "yes", thread_id=talk.thread)
    assert [name for name, _ in talk.shop.effects()] == ["change_address", "cancel_order"]
