"""A value is stored as it was meant, or it is asked for: what people say that is easily taken for
something else.

Each conversation runs through `converse` on a file that is opened anew for every message.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool

from langmem_ext import DeltaSaver, IntentCatalog, Turn, build_waiting_graph, converse

WEDNESDAY = datetime(2026, 3, 4, 10, 15)

CATALOG = IntentCatalog.from_dict(
    {
        "intents": [
            {
                "id": "book",
                "description": "Book a table",
                "examples": ["book a table", "a table for two"],
                "required": ["day", "time", "people", "name"],
                "tool": "book",
                "confirm": "{people} on {day} at {time} under {name}?",
                "reply": "Booked.",
            },
            {
                "id": "pay",
                "description": "Send money",
                "examples": ["send money", "make a payment"],
                "required": ["account", "amount"],
                "tool": "pay",
                "confirm": "{amount} to {account}?",
                "reply": "Sent.",
            },
        ],
        "params": {
            "day": {
                "type": "date",
                "description": "day of the booking",
                "prompt": "Which day?",
                "future": True,
            },
            "time": {
                "type": "time",
                "description": "time of the booking",
                "prompt": "At what time?",
            },
            "people": {
                "type": "integer",
                "description": "number of people",
                "prompt": "How many people?",
            },
            "name": {
                "type": "person",
                "description": "name for the booking",
                "prompt": "Which name?",
            },
            "account": {
                "type": "identifier",
                "pattern": r"\d{8}",
                "description": "account",
                "prompt": "To which account?",
            },
            "amount": {"type": "money", "description": "amount", "prompt": "How much?"},
        },
    }
)


@tool
def book(day: str, time: str, people: int, name: str) -> str:
    """Book a table."""
    return "ok"


@tool
def pay(account: str, amount: float) -> str:
    """Send money."""
    return "ok"


def talk(folder: Path, *said: str) -> tuple[Turn, dict[str, Any]]:
    """The last turn of a conversation, and the values that are known then."""
    builder = build_waiting_graph(CATALOG, [book, pay])
    for text in said:
        with DeltaSaver.open(str(folder / "memory.db")) as saver:
            graph = builder.compile(checkpointer=saver)
            turn = converse(graph, text, thread_id="t", now=WEDNESDAY)
            known = graph.get_state({"configurable": {"thread_id": "t"}}).values["params"]
    return turn, known


WISH = "a table for 2 on friday at 7 pm, my name is Ann Lee"
WISHED = {"day": "2026-03-06", "time": "19:00", "people": 2, "name": "Ann Lee"}

SAID: list[tuple[list[str], dict[str, Any]]] = [
    (["table for 2 tonight at 9"], {"day": "2026-03-04", "time": "21:00", "people": 2}),
    (["a table tonight at quarter to eight"], {"day": "2026-03-04", "time": "19:45"}),
    (
        ["a table for 2 on friday at half past 7"],
        {"day": "2026-03-06", "time": "19:30", "people": 2},
    ),
    (
        ["a table for 2 on friday", "at half past 7"],
        {"day": "2026-03-06", "time": "19:30", "people": 2},
    ),
    (["a table on friday", "not 7, 7:30"], {"day": "2026-03-06", "time": "19:30"}),
    (
        ["a table for 2 on friday at 7 pm", "not 7, 7:30"],
        {"day": "2026-03-06", "time": "19:30", "people": 2},
    ),
    (
        ["a table for 2 a week from saturday at 7pm"],
        {"day": "2026-03-14", "time": "19:00", "people": 2},
    ),
    (
        ["a table for 2 at 7 pm", "a week from saturday"],
        {"day": "2026-03-14", "time": "19:00", "people": 2},
    ),
    (["a table on friday", "we are 5, no 6"], {"day": "2026-03-06", "people": 6}),
    (["a table on friday", "7"], {"day": "2026-03-06", "time": "19:00"}),
    (["good evening, a table for 2 on friday"], {"day": "2026-03-06", "people": 2}),
    (["a table on friday for Ruth, we are 2", "yes"], {"day": "2026-03-06", "people": 2}),
    (["send money", "what? no, 87654321"], {"account": "87654321"}),
    (["send money", "12345678", "what? no, 87654321"], {"account": "87654321"}),
]


@pytest.mark.parametrize(("said", "known"), SAID, ids=[" | ".join(said) for said, _ in SAID])
def test_what_was_meant_is_stored_and_nothing_else(
    tmp_path: Path, said: list[str], known: dict[str, Any]
) -> None:
    assert talk(tmp_path, *said)[1] == known


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("no, for 6", {"people": 6}),
    ("not 2, 3", {"people": 3}),
    ("not 7, 7:30", {"time": "19:30"}),
    ("no, not at 7 but 8", {"time": "20:00"}),
    ("7:30, not 7", {"time": "19:30"}),
    ("not friday, saturday", {"day": "2026-03-07"}),
    ("not Ann Lee, Ann Low", {"name": "Ann Low"}),
    ("half past would be better actually", {"time": "19:30"}),
    ("oh sorry saturday, friday is my mum's birthday", {"day": "2026-03-07"}),
    ("not sure, the boss knows", {}),
    ("not 5, 6", {}),
]


@pytest.mark.parametrize(("text", "changed"), CHANGES, ids=[text for text, _ in CHANGES])
def test_at_a_confirmation_what_is_denied_gives_way_to_what_is_said_instead(
    tmp_path: Path, text: str, changed: dict[str, Any]
) -> None:
    turn, known = talk(tmp_path, WISH, text)
    assert known == {**WISHED, **changed}
    assert turn.waiting_for == "confirmation"


@pytest.mark.parametrize(
    "said",
    [["a table for 2 at 7 pm", "yesterday"], ["a table for 2 yesterday at 7 pm"]],
    ids=" | ".join,
)
def test_a_day_that_is_past_is_not_taken_and_the_user_is_told_why(
    tmp_path: Path, said: list[str]
) -> None:
    turn, known = talk(tmp_path, *said)
    assert turn.reply == "It must be today or later.\nWhich day?"
    assert known == {"time": "19:00", "people": 2}


def test_a_name_that_nothing_marks_is_asked_about_when_its_turn_comes(tmp_path: Path) -> None:
    turn, known = talk(tmp_path, "could Otis have a table for 2 at 7 pm")
    assert turn.reply == "Which day?"
    turn, known = talk(tmp_path, "friday")
    assert turn.reply == "2 on 2026-03-06 at 19:00 under Otis?"
    assert talk(tmp_path, "no, under Ruth Lee")[0].reply.endswith("under Ruth Lee?")


def test_where_nothing_else_is_missing_one_question_confirms_it_with_the_rest(
    tmp_path: Path,
) -> None:
    turn, _ = talk(tmp_path, "could Otis have a table for 2 on friday at 7 pm")
    assert turn.reply == "2 on 2026-03-06 at 19:00 under Otis?"
    assert talk(tmp_path, "yes")[1] == {**WISHED, "name": "Otis"}
