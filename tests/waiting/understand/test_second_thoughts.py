"""People change their minds, above all once they are shown what they asked for.

Each conversation runs through `converse` on a database in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool

from langmem_ext import DeltaSaver, IntentCatalog, build_waiting_graph, converse

WEDNESDAY = datetime(2026, 3, 4, 10, 15)

CATALOG = IntentCatalog.from_dict(
    {
        "intents": [
            {
                "id": "hire_dome",
                "description": "Hire the telescope dome for a group",
                "examples": ["we'd like the dome for a night", "hire the dome"],
                "required": ["night", "begins", "ends", "guests", "binoculars", "leader"],
                "optional": ["note"],
                "tool": "hire_dome",
                "confirm": "{guests} on {night}, {begins} to {ends}, {leader}. Shall I book it?",
            },
            {
                "id": "borrow_scope",
                "description": "Borrow a telescope to take home",
                "examples": ["can I take a telescope home", "lend me a scope"],
                "required": ["scope", "loan", "leader"],
                "tool": "borrow_scope",
                "confirm": "A {scope} for {loan}, {leader}. Is that right?",
            },
            {
                "id": "move_course",
                "description": "Move a course to another day",
                "examples": ["move my course", "another day for the course"],
                "required": ["course_no", "new_day"],
                "tool": "move_course",
                "confirm": "{course_no} to {new_day}?",
            },
            {
                "id": "report_fault",
                "description": "Report a fault of a telescope",
                "examples": ["the telescope is broken", "something is wrong with the scope"],
                "required": ["fault", "leader"],
                "tool": "report_fault",
                "confirm": "{fault}, {leader}?",
            },
        ],
        "params": {
            "night": {"type": "date", "prompt": "Which night?", "future": True},
            "begins": {"type": "time", "role": "from", "prompt": "From what time?"},
            "ends": {"type": "time", "role": "to", "prompt": "Until what time?"},
            "guests": {
                "type": "integer",
                "description": "number of people",
                "prompt": "How many people?",
            },
            "binoculars": {
                "type": "boolean",
                "description": "whether binoculars are hired",
                "prompt": "Do you need to hire binoculars?",
            },
            "leader": {
                "type": "person",
                "description": "name of the person",
                "prompt": "What is your name?",
            },
            "note": {
                "type": "text",
                "description": "what the staff should know",
                "prompt": "Anything we should know?",
            },
            "scope": {
                "type": "enum",
                "enum": ["refractor", "reflector"],
                "prompt": "A refractor or a reflector?",
            },
            "loan": {"type": "duration", "prompt": "For how long?"},
            "course_no": {"type": "identifier", "pattern": r"K-\d{3}", "prompt": "Which course?"},
            "new_day": {"type": "date", "prompt": "To which day?", "future": True},
            "fault": {"type": "text", "prompt": "What is wrong with it?"},
        },
    }
)


@tool
def hire_dome(
    night: str,
    begins: str,
    ends: str,
    guests: int,
    binoculars: bool,
    leader: str,
    note: str | None = None,
) -> str:
    """Hire the dome."""
    return "hired"


@tool
def borrow_scope(scope: str, loan: str, leader: str) -> str:
    """Borrow a telescope."""
    return "lent"


@tool
def move_course(course_no: str, new_day: str) -> str:
    """Move a course."""
    return "moved"


@tool
def report_fault(fault: str, leader: str) -> str:
    """Report a fault."""
    return "reported"


TOOLS = [hire_dome, borrow_scope, move_course, report_fault]
DOME = "the dome on friday 13 march from 8 pm to 10 pm for 5 people with hired binoculars, Ida Voll"
KNOWN = {
    "night": "2026-03-13",
    "begins": "20:00",
    "ends": "22:00",
    "guests": 5,
    "binoculars": True,
    "leader": "Ida Voll",
}


def after(
    *messages: str, catalog: IntentCatalog = CATALOG, tools: Sequence[BaseTool] = TOOLS
) -> dict[str, Any]:
    """The state after these messages."""
    with DeltaSaver.open(":memory:") as saver:
        graph = build_waiting_graph(catalog, tools).compile(checkpointer=saver)
        for message in messages:
            converse(graph, message, thread_id="t", now=WEDNESDAY)
        return graph.get_state({"configurable": {"thread_id": "t"}}).values


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("wait i wont be there by 8, better 9 to 11 pm", {"begins": "21:00", "ends": "23:00"}),
        ("no, that friday is parents evening. the day after, same time", {"night": "2026-03-14"}),
        ("and no binoculars, we'll manage", {"binoculars": False}),
        ("we have our own binoculars", {"binoculars": False}),
        ("could you put Ida Voll Larsen please", {"leader": "Ida Voll Larsen"}),
        ("nearly. my husband brings them. Olav Brandt", {"leader": "Olav Brandt"}),
        ("can we make it 7 people, my sister has to leave at nine", {"guests": 7}),
        ("could you ask them to leave the gate open", {"note": "ask them to leave the gate open"}),
        ("please note that one of us is in a wheelchair", {"note": "one of us is in a wheelchair"}),
    ],
)
def test_what_is_changed_at_a_confirmation_is_changed_alone(
    text: str, changed: dict[str, Any]
) -> None:
    state = after(DOME, text)
    assert state["params"] == {**KNOWN, **changed}
    assert state["waiting_for_param"] == "confirmation"


@pytest.mark.parametrize(
    "text",
    [
        "ah hang on, half of us are ill. forget it, sorry",
        "actually no, leave the dome, it is too cold",
        "best forget the dome",
    ],
)
def test_an_end_counts_wherever_it_is_said(text: str) -> None:
    assert after(DOME, text)["plan"] is None


@pytest.mark.parametrize("text", ["forget it?", "do we have to leave the dome by ten?"])
def test_a_question_ends_nothing(text: str) -> None:
    assert after(DOME, text)["params"] == KNOWN


def test_what_is_wanted_instead_is_begun() -> None:
    state = after(DOME, "actually no, leave the dome. I'll borrow a reflector for 2 nights instead")
    assert state["plan"]["intent_id"] == "borrow_scope"
    assert state["params"]["scope"] == "reflector"


@pytest.mark.parametrize(
    ("text", "loan"),
    [
        ("3 days... no, make that 5, the sky is poor", "P5D"),
        ("they say 6 weeks. let's do 8 weeks to be on the safe side", "P56D"),
        ("3 more days if thats ok", "P3D"),
    ],
)
def test_a_length_of_time_is_the_last_that_is_said(text: str, loan: str) -> None:
    assert after("I'd like to borrow a reflector", text)["params"]["loan"] == loan


def test_a_bare_number_changes_a_length_of_time_in_its_unit() -> None:
    state = after("borrow a reflector for 3 days, Ida Voll", "could we make it 5 instead")
    assert state["params"]["loan"] == "P5D"


def test_what_is_so_at_present_is_not_what_is_wished() -> None:
    text = "there are 4 of us at the moment, could we make it 6 for the dome?"
    assert after(text)["params"]["guests"] == 6


def test_of_two_things_each_has_its_own_values() -> None:
    state = after(
        "two things: please move K-204 to the 12th, and I'd like the dome the same day at 8 pm"
    )
    assert state["params"].items() >= {"course_no": "K-204", "new_day": "2026-03-12"}.items()
    [waiting] = state["suspended"]
    assert waiting["plan"]["intent_id"] == "hire_dome"
    assert waiting["params"]["night"] == "2026-03-12"


def test_the_words_between_two_requests_belong_to_the_one_that_takes_their_values() -> None:
    state = after(
        "can you move K-204 to the 12th, and my daughter wants a reflector, could she borrow it"
        " for a week?"
    )
    [waiting] = state["suspended"]
    assert waiting["params"] == {"scope": "reflector", "loan": "P7D"}


@pytest.mark.parametrize("text", ["Farouk Benali", "Amina Yusuf", "Jonas Weber-Holt"])
def test_somebodys_name_is_no_story(text: str) -> None:
    state = after("report a fault of a telescope please", text)
    assert "fault" not in state["params"]
    assert state["plan"]["choices"]["leader"] == [text]


def test_an_hour_leaves_its_half_open_and_not_the_year() -> None:
    choices = after(DOME, "no", "saturday 21 march")["params"]
    assert choices["night"] == "2026-03-21"


SHED = IntentCatalog.from_dict(
    {
        "intents": [
            {
                "id": "lend_tool",
                "description": "Lend a tool",
                "examples": ["lend me a tool"],
                "required": ["gear", "borrower", "picture"],
                "tool": "lend_tool",
                "confirm": "{gear} for {borrower}, {picture}?",
            }
        ],
        "params": {
            "gear": {"type": "text", "prompt": "Which tool do you need?"},
            "borrower": {"type": "person", "description": "who borrows it", "prompt": "Who?"},
            "picture": {"type": "url", "prompt": "What is the link to its picture?"},
        },
    }
)


@tool
def lend_tool(gear: str, borrower: str, picture: str) -> str:
    """Lend a tool."""
    return "lent"


@pytest.mark.parametrize("text", ["Farouk Benali", "Amina Yusuf", "Jonas Weber-Holt"])
def test_a_thing_that_is_written_like_a_name_is_asked_about(text: str) -> None:
    state = after("lend me a tool", text, catalog=SHED, tools=[lend_tool])
    assert state["plan"]["choices"]["gear"] == [text]


def test_a_web_address_that_is_shown_gives_way_to_another() -> None:
    state = after(
        "lend me a tool",
        "a bench grinder",
        "yes",
        "Ida Voll",
        "https://pics.example.com/7",
        "ah no thats the old one, take https://pics.example.com/9",
        catalog=SHED,
        tools=[lend_tool],
    )
    assert state["params"]["picture"] == "https://pics.example.com/9"
    assert state["waiting_for_param"] == "confirmation"
