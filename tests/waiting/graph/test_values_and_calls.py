"""What a client's value says, what a tool is called with, and what a reply shows of its result."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import InjectedToolArg, tool
from langgraph.checkpoint.memory import InMemorySaver

from langmem_ext import CatalogError, IntentCatalog, InvalidInput, build_waiting_graph, converse

CONFIG: Any = {"configurable": {"thread_id": "t"}}


def graph(params: dict[str, Any], *tools: Any, **intent: Any) -> Any:
    """One whose only request takes these parameters."""
    intents = {"go": {"patterns": ["^go"], "required": [*params], **intent}}
    catalog = IntentCatalog.from_dict({"intents": intents, "params": params})
    return build_waiting_graph(catalog, tools).compile(checkpointer=InMemorySaver())


def test_what_a_clients_value_says() -> None:
    for value, said in (
        (" O-1 ", "O-1"),
        (7, "7"),
        ({"text": "O-1", "id": "m"}, "O-1"),
        ({"remark": "4"}, "4"),
        ([{"type": "text", "text": "a"}, "b", None], "a, b"),
        (HumanMessage("O-1"), "O-1"),
    ):
        asking = graph({"remark": {"type": "text", "prompt": "Which remark?"}})
        converse(asking, "go", thread_id="t")
        converse(asking, resume=value, thread_id="t")
        assert asking.get_state(CONFIG).values["params"] == {"remark": said}, value


def test_a_value_of_no_known_shape_is_refused_and_the_question_waits() -> None:
    asking = graph({"remark": {"type": "text", "prompt": "Which remark?"}})
    converse(asking, "go", thread_id="t")
    endless: list[Any] = []
    endless.append(endless)
    for value in (
        *(object(), b"x", endless),
        *({"foo": 1}, {"action": "go"}, [["a", {"type": "x"}]]),
    ):
        with pytest.raises(InvalidInput, match="no answer to the question for 'remark'"):
            converse(asking, resume=value, thread_id="t")
    assert converse(asking, "the blue one", thread_id="t").waiting_for is None


def test_possible_values_are_values_of_their_type() -> None:
    asking = graph(
        {"riders": {"type": "integer", "prompt": "How many?", "enum": {"1": [], "2": []}}}
    )
    [asked] = converse(asking, "go", thread_id="t").interrupts
    assert asked.value["schema"] == {"type": "integer", "enum": [1, 2]}
    assert converse(asking, "3", thread_id="t").waiting_for == "riders"
    converse(asking, "2", thread_id="t")
    assert asking.get_state(CONFIG).values["params"] == {"riders": 2}


def test_a_reply_is_filled_in_one_pass_from_values_and_the_result() -> None:
    @tool
    def measure(thing: str) -> dict[str, Any]:
        """Measure."""
        return {"x": 1.0, "deep": {"y": True}, "list": ["a", 1]}

    reply = "{thing}: {result.x}, {result.deep.y}, {result.list}, {result.none}"
    things = {"thing": {"type": "text", "prompt": "Which thing?"}}
    measuring = graph(things, measure, tool="measure", reply=reply)
    converse(measuring, "go", thread_id="t")
    said = converse(measuring, resume={"thing": "{result.x}"}, thread_id="t").reply
    assert said == "{result.x}: 1, yes, a, 1, (unknown)"


def test_a_key_names_one_call_of_one_request() -> None:
    keys: list[str] = []

    @tool
    def drop(code: str, idempotency_key: Annotated[str, InjectedToolArg]) -> str:
        """Drop."""
        keys.append(idempotency_key)
        return "dropped"

    codes = {"code": {"type": "identifier", "pattern": r"B-\d", "prompt": "Which?"}}
    dropping = graph(codes, drop, tool="drop")
    for thread, said, code in (("t", "a", 1), ("t", "b", 1), ("t", "c", 2), ("u", "a", 1)):
        converse(dropping, f"go B-{code}", thread_id=thread, message_id=said)
    assert len(set(keys)) == 4
    assert all(keys)


def test_a_parameter_may_not_take_the_confirmations_name() -> None:
    with pytest.raises((CatalogError, InvalidInput), match="confirmation"):
        graph({"confirmation": {"type": "text"}})
