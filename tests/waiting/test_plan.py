"""Deciding, without a graph: pure functions from what stands in the state to what happens next."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import BaseTool, tool
from pydantic import Field

from langmem_ext.errors import InvalidInput
from langmem_ext.waiting.catalog.catalog import IntentCatalog
from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.extract.validity import is_allowed
from langmem_ext.waiting.interrupts.resume import Expected, read_answer, resumed_id
from langmem_ext.waiting.policy.asking import question, value_schema
from langmem_ext.waiting.policy.plan import Decision, next_task
from langmem_ext.waiting.policy.session import Session, read_session
from langmem_ext.waiting.policy.turn import plan_turn
from langmem_ext.waiting.policy.value_text import fill, in_text
from langmem_ext.waiting.sensitive import Known, held, marked, sensitive_names
from langmem_ext.waiting.understand.intents.classifier import RuleClassifier
from langmem_ext.waiting.understand.message import Heard

NOW = datetime(2024, 5, 17, 12, 0)

CATALOG: dict[str, Any] = {
    "intents": {
        "book": {
            "description": "Book a table",
            "patterns": [r"\bbook\b"],
            "required": ["guests", "day"],
            "optional": ["phone"],
            "tool": "book",
            "reply": "Booked for {guests}.",
        },
        "drop": {
            "description": "Drop a booking",
            "patterns": [r"\bdrop\b"],
            "required": ["code"],
            "tool": "drop",
            "confirm": "Drop {code}?",
        },
        "hours": {
            "description": "Opening hours",
            "patterns": [r"\bopen\b"],
            "reply": "From noon on.",
        },
        "human": {
            "description": "Talk to a person",
            "patterns": [r"\bhuman\b"],
            "reply": "A colleague takes over.",
        },
    },
    "params": {
        "guests": {
            "type": "integer",
            "prompt": "How many?",
            "clarified_prompt": "A number, please.",
            "examples": ["4"],
            "keep": "thread",
        },
        "day": {
            "type": "date",
            "prompt": "Which day?",
            "on_exhausted": "cancel",
            "max_attempts": 2,
        },
        "phone": {"type": "phone", "prompt": "Which phone number?"},
        "code": {
            "type": "identifier",
            "pattern": "B-[0-9]+",
            "prompt": "Which booking?",
            "on_exhausted": "ask",
            "sensitive": True,
        },
    },
    "replies": {
        "unknown": "?",
        "cancelled": "dropped",
        "exhausted": "gave up",
        "reset": "anew",
        "nothing_to_cancel": "nothing",
        "back": "back",
    },
    "escalate_to": "human",
}


@tool
def book(guests: Annotated[int, Field(ge=1, le=8)], day: str, phone: str = "") -> str:
    """Book a table."""
    return f"{guests} {day} {phone}"


@tool("drop")
def drop_booking(code: str) -> str:
    """Drop a booking."""
    return code


TOOLS: list[BaseTool] = [book, drop_booking]
PLAYBOOK = Playbook(IntentCatalog.from_dict(CATALOG), TOOLS)


class Talk:
    """Deciding applied to a state that only this object keeps."""

    def __init__(self, **channels: Any) -> None:
        self.state: dict[str, Any] = {"messages": [], **channels}

    def decide(self, text: str | None) -> Decision:
        """One decision, applied to the state."""
        heard = None
        if text is not None:
            self.state["messages"] = [
                *self.state["messages"],
                HumanMessage(text, id=f"m{len(self.state['messages'])}"),
            ]
            heard = Heard(id=self.state["messages"][-1].id, text=text, history=(), now=NOW)
        before = copy.deepcopy(self.state)
        deciding = plan_turn(PLAYBOOK, self.state, heard, NOW.astimezone())
        try:
            request = next(deciding)
            while True:
                request = deciding.send(RuleClassifier().classify(request))
        except StopIteration as done:
            decided: Decision = done.value
        assert self.state == before, "deciding changes nothing"
        self.state = {
            **self.state,
            **decided.update,
            "messages": [*self.state["messages"], *map(AIMessage, decided.say)],
        }
        return decided

    @property
    def task(self) -> str | None:
        return next_task(PLAYBOOK, read_session(self.state, PLAYBOOK))


def test_every_decision_says_what_runs_and_what_is_waited_for() -> None:
    talk = Talk()
    for text in (
        "hello",
        "book a table",
        None,
        "4",
        "tomorrow",
        "never mind",
        "reset",
        "drop B-1",
        "yes",
    ):
        assert {"plan", "waiting_for_param"} <= talk.decide(text).update.keys()


def test_channels_that_do_not_change_are_not_written() -> None:
    talk = Talk()
    talk.decide("book a table")
    assert talk.decide(None).update.keys() == {"plan", "waiting_for_param"}


def test_a_request_is_asked_for_what_it_lacks_and_then_ready() -> None:
    talk = Talk()
    assert talk.decide("book a table").say == ("How many?",)
    assert (talk.state["waiting_for_param"], talk.task) == ("guests", "ask_user")
    assert talk.decide("4").say == ("Which day?",)
    assert talk.decide("tomorrow").say == ()
    assert (talk.state["params"], talk.task) == ({"guests": 4, "day": "2024-05-18"}, "call_tool")


def test_a_plan_carries_the_id_of_the_message_that_began_it() -> None:
    talk = Talk()
    talk.decide("hello")
    talk.decide("book a table")
    assert talk.state["plan"]["id"] == "m2"
    assert talk.state["plan"]["steps"] == [
        {"tool": "book", "args": {"guests": "guests", "day": "day", "phone": "phone"}}
    ]


def test_a_request_without_a_tool_is_answered_at_once() -> None:
    talk = Talk()
    assert talk.decide("when do you open").say == ()
    assert talk.task == "respond"


def test_a_value_outside_the_tools_bounds_is_a_wrong_answer() -> None:
    talk = Talk()
    talk.decide("book a table")
    assert talk.decide("12").say == ("It should be less than or equal to 8.", "A number, please.")
    assert talk.state["plan"]["attempts"] == {"guests": 1}
    talk.decide("5")
    assert talk.state["plan"]["attempts"] == {}, "a right answer clears the wrong ones"


def test_after_too_many_wrong_answers_the_catalog_says_what_happens() -> None:
    talk = Talk()
    for text in ("book a table", "blue", "green"):
        talk.decide(text)
    assert talk.decide("red").say == ()
    assert talk.state["plan"]["intent_id"] == "human"

    talk = Talk()
    for text in ("book a table for 4 guests", "blue"):
        talk.decide(text)
    assert talk.decide("green").say == ("gave up",)
    assert talk.state["plan"] is None

    talk = Talk()
    talk.decide("drop my booking")
    for _ in range(6):
        assert talk.decide("blue").say == (
            "Once more:",
            "Which booking?",
        ), "the same is not said twice in a row"
    assert talk.state["waiting_for_param"] == "code"


def test_nothing_said_repeats_no_question() -> None:
    talk = Talk()
    talk.decide("book a table")
    assert talk.decide(None).say == ()
    talk.state["messages"] = []
    assert talk.decide(None).say == ("How many?",)


def test_values_kept_for_the_thread_survive_and_others_go() -> None:
    talk = Talk(params={"guests": 4, "day": "2024-05-18"})
    talk.decide("book a table")
    assert talk.state["params"] == {"guests": 4}
    talk = Talk(params={"guests": 4, "day": "2024-05-18"})
    talk.decide("book that one")
    assert talk.state["params"] == {"guests": 4, "day": "2024-05-18"}


def test_a_suspended_request_takes_the_threads_values_as_they_are_now() -> None:
    talk = Talk()
    talk.decide("book a table for 4 guests")
    talk.decide("when do you open")
    assert [entry["plan"]["intent_id"] for entry in talk.state["suspended"]] == ["book"]
    talk.state |= {"plan": None, "params": {"guests": 6}}
    assert talk.decide(None).say == ("back", "Which day?")
    assert (talk.state["params"], talk.state["suspended"]) == ({"guests": 6}, [])


def test_a_value_that_the_tool_would_refuse_replaces_none_that_it_accepts() -> None:
    talk = Talk()
    for text in ("book a table for 4 guests", "drop my booking", "book a table for 40 guests"):
        talk.decide(text)
    assert (talk.state["plan"]["intent_id"], talk.state["params"]) == ("book", {"guests": 4})


def test_a_confirmation_is_for_just_these_values() -> None:
    talk = Talk()
    assert talk.decide("drop B-1").say == ("Drop •••?",), "a sensitive value is not shown"
    assert talk.task == "ask_user"
    talk.decide("yes")
    assert talk.task == "call_tool"
    talk.state["params"] = {"code": "B-2"}
    assert talk.task == "ask_user"
    assert talk.decide(None).say == ("Drop •••?",)


JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["book", "drop", "guests", "code"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "plan", "params", "guests", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
PLANS = st.fixed_dictionaries(
    {
        "id": st.just("m0"),
        "intent_id": st.sampled_from(["book", "drop", "hours", "gone"]),
        "steps": st.lists(
            st.fixed_dictionaries(
                {
                    "tool": st.sampled_from(["book", "drop", "gone"]),
                    "args": st.dictionaries(
                        st.sampled_from(["guests", "day", "code", "x"]),
                        st.sampled_from(["guests", "code", "x"]),
                    ),
                }
            ),
            max_size=2,
        ),
        "cursor": st.integers(-1, 3),
        "results": st.lists(
            st.fixed_dictionaries(
                {"status": st.sampled_from(["ok", "error"]), "value": st.text(max_size=3)}
            ),
            max_size=2,
        ),
        "attempts": st.dictionaries(st.sampled_from(["guests", "code"]), st.integers(-2, 9)),
    },
    optional={"confirmed": st.none() | st.text(max_size=3)},
)
STATES = st.fixed_dictionaries(
    {},
    optional={
        "params": (
            st.dictionaries(
                st.sampled_from(["guests", "day", "code", "x"]),
                st.integers(-3, 20) | st.just("B-1") | JUNK,
            )
            | JUNK
        ),
        "waiting_for_param": st.sampled_from(["guests", "day", "code", "confirmation", "x"]) | JUNK,
        "plan": PLANS | JUNK,
        "suspended": (
            st.lists(st.fixed_dictionaries({"plan": PLANS, "params": JUNK}), max_size=2) | JUNK
        ),
        "last_intent_id": JUNK,
        "last_result": JUNK,
    },
)


@given(
    STATES,
    st.sampled_from(
        [
            None,
            "book",
            "B-1",
            "4",
            "yes",
            "no",
            "sorry, I meant B-2",
            "cancel",
            "reset",
            "drop it",
            "",
            "hm",
        ]
    ),
)
def test_from_any_state_deciding_asks_for_something_it_lacks_or_is_ready(
    channels: dict[str, Any], text: str | None
) -> None:
    """Whatever was edited in, the thread then waits for a value, has a valid call, or is idle."""
    talk = Talk(**channels)
    talk.decide(text)
    session = read_session(talk.state, PLAYBOOK)
    if talk.task == "ask_user":
        assert session.waiting_for is not None, "a wait that is void would go round"
        assert session.waiting_for not in session.params
    if talk.task == "call_tool":
        assert session.plan is not None
        step = session.plan["steps"][session.plan["cursor"]]
        for argument, value in PLAYBOOK.arguments(step, session.params).items():
            assert PLAYBOOK.value_error(session.plan, step["args"][argument], value) is None
    if talk.task is None:
        assert not session.suspended


@given(JUNK)
def test_any_resume_value_is_an_answer_or_nothing_or_refused(value: Any) -> None:
    answer = None
    with suppress(InvalidInput):
        answer = read_answer(value, GUESTS)
    assert answer is None or (answer.text.strip() == answer.text and answer.text.encode())
    assert resumed_id(value) is None or isinstance(resumed_id(value), str)


GUESTS = Expected("guests", frozenset({"guests"}))


class Hostile(Mapping[str, Any]):
    """A value that raises whatever is done with it."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError

    def __iter__(self) -> Any:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ({}, None),
        ("  ", None),
        (" O-1 ", "O-1"),
        (7, "7"),
        (True, "yes"),
        ({"text": "O-1", "id": "m"}, "O-1"),
        ({"guests": 4}, "4"),
        ([{"type": "text", "text": "a"}, "b", None], "a, b"),
        (HumanMessage("O-1"), "O-1"),
        ("\udcff", "?"),
        (float("nan"), "nan"),
    ],
)
def test_what_a_resume_value_says(value: object, expected: str | None) -> None:
    answer = read_answer(value, GUESTS)
    assert (answer and answer.text) == expected


@pytest.mark.parametrize(
    "value", [Hostile(), object(), {"foo": 1}, {"action": "go"}, [["a", {"type": "x"}]], b"x"]
)
def test_a_resume_value_of_no_known_shape_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="no answer to the question for 'guests'"):
        read_answer(value, GUESTS)


def test_a_nested_value_without_end_is_nothing() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(InvalidInput):
        read_answer(value, GUESTS)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{a}", "{b}"),
        ("{result.x}", "1"),
        ("{result.deep.y}", "yes"),
        ("{result.none} {gone}", "(unknown) (unknown)"),
        ("{ a } {{a}} {}", "{ a } {{b}} {}"),
    ],
)
def test_a_template_is_filled_in_one_pass(template: str, expected: str) -> None:
    assert fill(template, {"a": "{b}", "b": "no"}, {"x": 1.0, "deep": {"y": True}}) == expected


def test_values_read_as_sentences_hold_them() -> None:
    assert [in_text(value) for value in (12.0, 12.5, False, ["a", 1], None)] == [
        "12",
        "12.5",
        "no",
        "a, 1",
        "(unknown)",
    ]


def test_a_question_is_worded_for_its_attempt_and_carries_its_schema() -> None:
    plan = PLAYBOOK.begin(PLAYBOOK.intents["book"], "m")
    asked = [
        question(PLAYBOOK, {**plan, "attempts": {"guests": wrong}}, {}, "guests")
        for wrong in range(3)
    ]
    assert [(one.attempt, one.prompt) for one in asked] == [
        (1, "How many?"),
        (2, "A number, please."),
        (3, "A number, please. For example: 4"),
    ]
    assert asked[0].payload()["schema"] == {"type": "integer"}
    assert value_schema(PLAYBOOK.param("code"))["pattern"] == "^(?:B-[0-9]+)$"


def test_possible_values_are_values_of_their_type() -> None:
    riders = Param(name="riders", type=ParamType.INTEGER, enum={"1": (), "2": ("two",)})
    assert value_schema(riders) == {"type": "integer", "enum": [1, 2]}
    assert is_allowed(riders, 2)
    assert not is_allowed(riders, 3)
    assert "enum" not in value_schema(
        Param(name="pets", type=ParamType.BOOLEAN, enum={"True": (), "False": ()})
    )


def test_a_key_names_one_call_of_one_request() -> None:
    plan = PLAYBOOK.begin(PLAYBOOK.intents["drop"], "m")
    key = PLAYBOOK.idempotency_key("t", plan, {"code": "B-1"})
    assert key == PLAYBOOK.idempotency_key("t", copy.deepcopy(plan), {"code": "B-1", "guests": 4})
    others = [
        PLAYBOOK.idempotency_key("t2", plan, {"code": "B-1"}),
        PLAYBOOK.idempotency_key("t", {**plan, "id": "m2"}, {"code": "B-1"}),
        PLAYBOOK.idempotency_key("t", plan, {"code": "B-2"}),
    ]
    assert len({key, *others}) == 4


def test_a_parameter_may_not_take_the_confirmations_name() -> None:
    catalog = {
        "intents": {"a": {"required": ["confirmation"], "patterns": ["a"]}},
        "params": {"confirmation": {"type": "text"}},
    }
    with pytest.raises(InvalidInput, match="confirmation"):
        Playbook(IntentCatalog.from_dict(catalog), [])


def test_marks_add_up_and_leave_a_message_alone_that_has_them() -> None:
    message = HumanMessage(
        "pin 12 34", additional_kwargs={"langmem_ext": {"summary": "s"}, "other": 1}
    )
    once = marked(
        message,
        held(message, Known().with_values([("pin", "1234"), ("name", "Ada"), ("empty", "")])),
    )
    assert sensitive_names(once) == {"pin"}
    assert once.additional_kwargs == {
        "langmem_ext": {"summary": "s", "sensitive": ["pin"]},
        "other": 1,
    }
    assert marked(once, {"pin"}) is once
    assert sensitive_names(marked(once, {"name"})) == {"name", "pin"}
    assert sensitive_names(message) == frozenset(), "the original stays as it was"


def test_an_empty_session_is_what_nothing_and_nonsense_read_as() -> None:
    nonsense = {
        "params": 1,
        "plan": "x",
        "suspended": {},
        "last_intent_id": 4,
        "waiting_for_param": [],
    }
    assert read_session({}, PLAYBOOK) == read_session(nonsense, PLAYBOOK) == Session()
