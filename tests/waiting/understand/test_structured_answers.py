"""Promise: an interrupt of somebody else's graph is passed nothing that it does not take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from asking import asking
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from langmem_ext import ConversationError, InvalidInput, LangmemExtError, Turn, converse

CASES = yaml.safe_load(Path(__file__).with_name("structured_answers.yaml").read_text("utf-8"))
FORM = CASES["form"]
ALL = ["approve", "edit", "reject", "respond"]


def batch(*names: str, allowed: Any = ALL, **more: Any) -> dict[str, Any]:
    """A request of LangChain's middleware, as it stands in an interrupt."""
    return {
        "action_requests": [
            {"name": name, "args": {"amount": 5}, "description": f"run {name}"} for name in names
        ],
        "review_configs": [{"action_name": name, "allowed_decisions": allowed} for name in names],
        **more,
    }


class Asks:
    """A graph with a node for each value that asks with it, and what those nodes are passed."""

    def __init__(self, *values: Any) -> None:
        self.passed: list[Any] = []
        nodes = [lambda state, value=value: self.node(value) for value in values]
        self.graph = asking(InMemorySaver(), *nodes)
        self.turn = self.say("go")
        self.ids = [asked.id for asked in self.turn.interrupts]

    def node(self, value: Any) -> dict[str, Any]:
        self.passed.append(interrupt(value))
        return {}

    def say(self, *text: str, **given_: Any) -> Turn:
        return converse(self.graph, *text, thread_id="t", **given_)


def answer(value: Any, text: str) -> Any:
    """What a node that asks with a value is passed when somebody says this."""
    asks = Asks(value)
    asks.say(text)
    return asks.passed[0]


def question_of(value: Any) -> str:
    return Asks(value).turn.reply


def decisions(*one: dict[str, Any]) -> dict[str, Any]:
    return {"decisions": list(one)}


APPROVE = {"type": "approve"}
EDIT = {"type": "edit", "edited_action": {"name": "pay", "args": {"amount": 3}}}


def test_a_decision_is_said_in_words_or_as_json() -> None:
    approval = {"type": "tool_approval", "name": "pay", "args": {"amount": 5}}
    for text, decision in CASES["decisions"]:
        assert answer(batch("pay"), text) == decisions(decision), text
        assert answer(approval, text) == decision, text


@pytest.mark.parametrize("text", [*CASES["no decisions"], "[" * 100_000])
def test_what_is_no_decision_is_refused_with_what_can_be_said(text: str) -> None:
    with pytest.raises(InvalidInput, match="approve.*edit.*reject.*respond.*decisions"):
        answer(batch("pay"), text)


@pytest.mark.parametrize(
    ("allowed", "refused"),
    [(["approve"], "no"), (["reject"], "yes"), (["reject"], 'edit {"amount": 1}'), ([], "yes")],
)
def test_a_decision_that_is_not_allowed_is_refused(allowed: list[str], refused: str) -> None:
    with pytest.raises(InvalidInput) as error:
        answer(batch("pay", allowed=allowed), refused)
    assert all(kind not in str(error.value) for kind in ALL if kind not in allowed)


def test_an_error_quotes_neither_arguments_nor_what_was_said() -> None:
    value = batch("pay")
    value["action_requests"][0]["args"] = {"card": "4111"}
    with pytest.raises(InvalidInput) as error:
        answer(value, "4242")
    assert "card" in str(error.value)
    assert "4111" not in str(error.value)
    assert "4242" not in str(error.value)


def test_words_are_for_all_tool_calls_and_json_is_for_each() -> None:
    value = batch("pay", "refund")
    assert answer(value, "yes") == decisions(APPROVE, APPROVE)
    assert answer(value, "no: late") == decisions(*[{"type": "reject", "message": "late"}] * 2)
    assert answer(value, json.dumps(decisions(EDIT, APPROVE))) == decisions(EDIT, APPROVE)
    for text in (
        'edit {"amount": 3}',
        json.dumps(APPROVE),
        json.dumps([APPROVE]),
        json.dumps([APPROVE, EDIT]),
    ):
        with pytest.raises(InvalidInput, match="for all of them"):
            answer(value, text)


def test_any_text_is_the_answer_of_a_tool_that_only_asks() -> None:
    value = batch("pay", allowed=["respond"])
    for text in ("no", "the blue one", '{"colour": "blue"}', "7"):
        assert answer(value, text) == decisions({"type": "respond", "message": text})
    assert answer(value, "respond: no") == decisions({"type": "respond", "message": "no"})


def test_a_person_is_asked_in_words() -> None:
    told = question_of(batch("pay", "refund", allowed=["approve", "reject"]))
    assert told.startswith(
        "run pay\n\nrun refund\n\nSay approve, reject (or reject: why) for all of them; or JSON"
    )
    assert question_of("What?") == "What?"
    assert question_of({"order_id": "O-1", "total": 5}) == "order id: O-1\ntotal: 5"
    options = {"question": "How?", "options": ["card", "voucher"]}
    assert question_of(options) == "How?\n  1. card\n  2. voucher"


@pytest.mark.parametrize(
    "value", ["What's your name?", None, 7, [], [1], {}, {"question": "Which?"}]
)
@pytest.mark.parametrize("text", ["blue", "yes", "7", '{"a": 1}', "[]"])
def test_any_other_question_is_answered_with_the_text(value: Any, text: str) -> None:
    assert answer(value, text) == text


@pytest.mark.parametrize("case", CASES["schemas"])
def test_a_declared_schema_is_kept_to(case: dict[str, Any]) -> None:
    value = {"response_schema": case["schema"]}
    for text, meant in case["taken"].items():
        said = answer(value, text)
        assert said == meant
        assert isinstance(said, type(meant))
    for text in case["refused"]:
        with pytest.raises(InvalidInput, match="structured answer"):
            answer(value, text)


def test_a_form_of_an_mcp_server_is_answered_with_its_responses() -> None:
    form = {
        "key": "k",
        "message": "Which?",
        "mode": "form",
        "requested_schema": {"type": "object", "required": ["n"]},
    }
    value = {
        "type": "mcp_elicitation",
        "tool_name": "t",
        "requests": [form, {"key": "u", "mode": "url", "url": "https://example.com"}],
    }
    good = {
        "responses": {"k": {"action": "accept", "content": {"n": 1}}, "u": {"action": "decline"}}
    }
    assert answer(value, json.dumps(good)) == good
    bad: list[Any] = [
        {"responses": {}},
        {"responses": {**good["responses"], "k": {"action": "accept", "content": {}}}},
        {"k": 1},
    ]
    for text in ("yes", *map(json.dumps, bad)):
        with pytest.raises(InvalidInput, match="JSON"):
            answer(value, text)


def test_a_request_of_the_agent_inbox_is_answered_with_a_list_of_one() -> None:
    request = {
        "action_request": {"action": "pay", "args": {}},
        "config": {"allow_respond": True, "allow_edit": False, "allow_accept": True},
    }
    response = {"type": "response", "args": "so"}
    for value in (request, [request]):
        for text in (json.dumps(response), json.dumps([response]), "so"):
            assert answer(value, text) == [response]
        assert answer(value, "yes") == [{"type": "accept", "args": {"action": "pay", "args": {}}}]
        for text in ('{"type": "ignore", "args": null}', "ignore"):
            assert answer(value, text) == [{"type": "response", "args": text}], (
                "ignoring is not allowed"
            )
    silent = {**request, "config": {"allow_ignore": True}}
    assert answer(silent, "no") == [{"type": "ignore", "args": None}]
    for text in ("yes", "so", '{"type": "accept", "args": null}'):
        with pytest.raises(InvalidInput, match="JSON"):
            answer(silent, text)


def test_of_several_questions_each_is_answered_by_its_id() -> None:
    approval = {"type": "tool_approval", "name": "refund", "args": {}}
    asks = Asks(batch("pay"), approval, "Who?")
    first, second, third = asks.ids
    for text in ("blue", "{}", '{"d": 1}', json.dumps({first: "yes", second: "perhaps"})):
        with pytest.raises(InvalidInput):
            asks.say(text)
    assert asks.passed == []
    asks.say(json.dumps({second: "no, late"}))
    asks.say(json.dumps({third: "Ada", first: {"type": "approve"}}))
    assert len(asks.passed) == 3
    for passed in (decisions(APPROVE), {"type": "reject", "message": "late"}, "Ada"):
        assert passed in asks.passed


# -- what people say ------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "args"), CASES["edits"])
def test_arguments_are_changed_in_words(text: str, args: dict[str, Any]) -> None:
    old = {"amount": 5, "payee": "Bob"}
    edited = {"type": "edit", "edited_action": {"name": "pay", "args": args}}
    assert answer({"type": "tool_approval", "name": "pay", "args": old}, text) == edited
    inbox = {"action_request": {"action": "pay", "args": old}, "config": {"allow_edit": True}}
    assert answer(inbox, text) == [{"type": "edit", "args": {"action": "pay", "args": args}}]


@pytest.mark.parametrize("text", CASES["no edits"])
def test_a_change_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        answer(batch("pay"), text)


@pytest.mark.parametrize(("text", "response"), CASES["filled in"])
def test_a_form_is_filled_in_with_words(text: str, response: dict[str, Any]) -> None:
    assert answer(FORM, text) == {"responses": {"seat": response}}


@pytest.mark.parametrize("text", CASES["not filled in"])
def test_a_form_is_not_filled_in_wrongly(text: str) -> None:
    with pytest.raises(InvalidInput, match="JSON that fits"):
        answer(FORM, text)


def test_a_form_is_shown_with_its_fields() -> None:
    shown = question_of(FORM)
    assert shown.splitlines() == [
        "book asks:",
        "Which seat?",
        "  row: integer",
        "  side: one of Window, Aisle (may be left out)",
        "Say the values (or name: value, …), decline, or cancel.",
    ]
    link = {
        "type": "mcp_elicitation",
        "tool_name": "pay",
        "requests": [{"key": "k", "message": "Pay", "mode": "url", "url": "https://x.example"}],
    }
    assert "Visit https://x.example" in question_of(link)
    assert answer(link, "done") == {"responses": {"k": {"action": "accept"}}}


@pytest.mark.parametrize(("text", "meant"), CASES["options"])
def test_a_listed_option_is_chosen_by_its_place(text: str, meant: str) -> None:
    assert answer({"question": "How?", "options": ["card", "voucher"]}, text) == meant


# -- what clients send ----------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "sent", "resumed"), CASES["sent"])
def test_a_clients_answer_is_passed_on_in_the_form_that_the_graph_takes(
    asked: str, sent: Any, resumed: Any
) -> None:
    value = {"tools": batch("pay"), "form": FORM, "plain": "Who?"}[asked]
    for form in ("bare", "by id", "list"):
        asks = Asks(value)
        named = {**sent, "interruptId": asks.ids[0]} if "interruptId" in sent else sent
        if form == "list" and named is sent:
            continue
        asks.say(resume={"bare": named, "by id": {asks.ids[0]: named}, "list": [named]}[form])
        assert asks.passed == [resumed], form


def test_a_clients_answer_to_another_question_is_refused() -> None:
    asks = Asks("Who?", "Where?")
    with pytest.raises(ConversationError, match="no longer asked"):
        asks.say(resume={"c" * 32: "here"})
    with pytest.raises(ConversationError, match="2 questions"):
        asks.say(resume="here")
    assert asks.passed == []
    for place, text in ((1, "here"), (0, "Ada")):
        asks.say(resume={asks.ids[place]: text})
    assert sorted(asks.passed) == ["Ada", "here"]
    with pytest.raises(InvalidInput):
        Asks(FORM).say(resume={"row": 31})


# -- whatever comes -------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYWORDS, WORDS = (st.sampled_from(CASES[words]) for words in ("keys", "values"))
PAYLOADS = st.recursive(
    JSON | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=5 * settings().max_examples)
@given(
    value=PAYLOADS,
    schema=PAYLOADS,
    text=st.text(max_size=20) | JSON.map(json.dumps) | st.sampled_from(["yes", "no: x", "edit {}"]),
)
def test_no_payload_and_no_text_raise_anything_but_a_refusal(
    value: Any, schema: Any, text: str
) -> None:
    for payload in (value, {"response_schema": schema}):
        try:
            Asks(payload).say(text)
        except LangmemExtError:
            continue
