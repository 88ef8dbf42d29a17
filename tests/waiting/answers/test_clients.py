"""Promise: every client can show and answer a question, and means what it means."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import desk
import pytest
import yaml
from a2a.types import Message, Part, Role, Task, TaskState, TaskStatus
from ag_ui.core import ResumeEntry, RunAgentInput, UserMessage
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from langchain.agents.middleware.human_in_the_loop import HITLRequest, HITLResponse
from langchain_core.messages import HumanMessage
from langgraph.types import Command
from mcp.types import ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types._v2025_11_25 import PrimitiveSchemaDefinition
from pydantic import TypeAdapter, ValidationError
from savers import BACKENDS, Backend, Calls, Mode

import langmem_ext
from langmem_ext import ConversationError, DeltaSaver, InvalidInput, Turn, converse, examine

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # in beta, and deprecated
    from ag_ui_langgraph import LangGraphAgent
    from langchain.mcp.elicitation import (
        MCPElicitationInterrupt,
        MCPElicitationResume,
        _build_responses,
        _describe_request,
    )
    from langgraph.prebuilt.interrupt import HumanInterrupt

pytestmark = pytest.mark.interop

CONFIG: Any = {"configurable": {"thread_id": "t"}}
DURABLE = [
    pytest.param(one, marks=[pytest.mark.postgres] if one.name == "postgres" else [])
    for one in BACKENDS
    if one.name != "memory"
]


@pytest.fixture(params=DURABLE, ids=lambda backend: backend.name)
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DeltaSaver]:
    backend: Backend = request.param
    with DeltaSaver.open(backend.new_url(tmp_path)) as saver:
        yield saver


class Talk:
    """A conversation with the order desk."""

    def __init__(self, saver: DeltaSaver, folder: Path) -> None:
        self.saver, self.shop = saver, desk.Shop(folder / "shop.db")
        self.graph = desk.make_graph(saver, self.shop)

    def say(self, text: str = "", **given: Any) -> Turn:
        return converse(self.graph, text, thread_id="t", **given)

    @property
    def payload(self) -> dict[str, Any]:
        [asked] = self.graph.get_state(CONFIG).interrupts
        value: dict[str, Any] = asked.value
        return value

    @property
    def id(self) -> str:
        [asked] = self.graph.get_state(CONFIG).interrupts
        name: str = asked.id
        return name

    @property
    def names(self) -> dict[str, str]:
        return {"ID": self.id, "TOOL": self.payload["action_request"]["action"]}

    @property
    def asks(self) -> str | None:
        waits: str | None = self.graph.get_state(CONFIG).values["waiting_for_param"]
        return waits

    @property
    def params(self) -> dict[str, Any]:
        params: dict[str, Any] = self.graph.get_state(CONFIG).values["params"]
        return params

    def last(self) -> str:
        text: str = self.graph.get_state(CONFIG).values["messages"][-1].text
        return text


@pytest.fixture
def talk(saver: DeltaSaver, tmp_path: Path) -> Talk:
    return Talk(saver, tmp_path)


def ask(talk: Talk, kind: str) -> None:
    for text in CASES["said"][kind]:
        talk.say(text)


# -- one payload ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["question", "confirm", "amount", "method", "address"])
def test_a_question_is_one_by_every_clients_own_types(talk: Talk, kind: str) -> None:
    ask(talk, kind)
    value = talk.payload
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        request = TypeAdapter(HITLRequest).validate_python(value)
        TypeAdapter(HumanInterrupt).validate_python(value)
    asked: MCPElicitationInterrupt = {
        "type": value["type"],
        "tool_name": value["tool_name"],
        "requests": value["requests"],
    }
    assert request["action_requests"][0]["name"] == request["review_configs"][0]["action_name"]
    [form] = asked["requests"]
    schema = form["requested_schema"]  # type: ignore[typeddict-item]  # a form
    params = ElicitRequestFormParams(message=form["message"], requested_schema=schema)
    wire = {
        "resultType": "input_required",
        "inputRequests": {
            form["key"]: {
                "method": "elicitation/create",
                "params": params.model_dump(by_alias=True),
            }
        },
    }
    result = InputRequiredResult.model_validate(wire)
    assert result.input_requests is not None
    sent_form: Any = result.input_requests[form["key"]]
    assert _describe_request(form["key"], sent_form) == form
    for field in schema["properties"].values():
        kept = (
            TypeAdapter(PrimitiveSchemaDefinition)
            .validate_python(field)
            .model_dump(by_alias=True, exclude_none=True)
        )
        assert kept.keys() >= field.keys(), "MCP drops what it does not know"
    data = ParseDict(value, Value())
    status = TaskStatus(
        state=TaskState.TASK_STATE_INPUT_REQUIRED,
        message=Message(parts=[Part(text=value["message"]), Part(data=data)]),
    )
    sent = Task.FromString(Task(id="1", context_id="t", status=status).SerializeToString())
    assert MessageToDict(sent.status.message.parts[1].data)["param"] == value["param"]
    [interrupt] = talk.graph.get_state(CONFIG).interrupts
    assert interrupt.response_schema["properties"] == value["response_schema"]["properties"]


def test_a_sensitive_question_is_no_form(talk: Talk) -> None:
    ask(talk, "sensitive")
    assert talk.payload.keys() == {
        "param",
        "prompt",
        "attempt",
        "examples",
        "schema",
        "message",
        "description",
        "reason",
        "expires_at",
    }
    assert talk.graph.get_state(CONFIG).interrupts[0].response_schema is None
    talk.graph.invoke(
        Command(resume={"action": "accept", "content": {"card": "4111111111111111"}}), CONFIG
    )
    assert talk.shop.effects() == [("store_card", {"card": "4111111111111111"})]
    stored = talk.graph.get_state(CONFIG).values["messages"]
    assert "answer" not in str([message.additional_kwargs for message in stored])


# -- the answers ---------------------------------------------------------------------------------


def elicited(action: Any, content: Any = None) -> Any:
    return ElicitResult(action=action, content=content).model_dump(mode="json", exclude_none=True)


def through_langchain(key: str, response: Any) -> Any:
    resume: MCPElicitationResume = {"responses": {key: response}}
    requests: Any = {key: None}  # its key alone is looked at
    assert _build_responses(requests, resume["responses"], "tool")
    return resume


def decided(**decision: Any) -> Any:
    return TypeAdapter(HITLResponse).validate_python({"decisions": [decision]})


def edited(**args: Any) -> Any:
    return decided(type="edit", edited_action={"name": "TOOL", "args": args})


def sent(*parts: Part) -> Any:
    message = Message(message_id="m", role=Role.ROLE_USER, context_id="t", parts=parts)
    return MessageToDict(Message.FromString(message.SerializeToString()))


def data(**values: Any) -> Part:
    return Part(data=ParseDict(values, Value()))


def inbox(kind: str, args: Any) -> Any:
    return [{"type": kind, "args": args}]


CASES = yaml.safe_load(Path(__file__).with_name("clients.yaml").read_text("utf-8"))
WAYS: dict[str, Callable[[Any], Any]] = {
    "elicited": lambda one: elicited(*one),
    "through": lambda one: through_langchain(one[0], elicited(*one[1:])),
    "decided": lambda one: decided(**one),
    "edited": lambda one: edited(**one),
    "inbox": lambda one: inbox(*one),
    "words": HumanMessage,
    "sent": lambda parts: sent(
        *(Part(text=one) if isinstance(one, str) else data(**one) for one in parts)
    ),
}
"""By a client's own types."""


def named(value: Any, names: dict[str, str]) -> Any:
    """What a client sends: made by its way, if it is a mapping of one of these, at any depth; the
    id of the question in the place of "ID", its tool's name of "TOOL".
    """
    if isinstance(value, dict):
        if len(value) == 1 and value.keys() <= WAYS.keys():
            [(way, one)] = value.items()
            return named(WAYS[way](one), names)
        return {names.get(key, key): named(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [named(inner, names) for inner in value]
    return names.get(value, value) if isinstance(value, str) else value


def check(talk: Talk, expected: dict[str, Any]) -> None:
    state = talk.graph.get_state(CONFIG)
    assert state.values["waiting_for_param"] == expected["asks"]
    assert bool(state.interrupts) == (expected["asks"] is not None)
    assert talk.shop.effects() == ([tuple(expected["effect"])] if "effect" in expected else [])
    assert talk.last() == expected.get("last", talk.last())
    assert talk.params.items() >= expected.get("params", {}).items()
    if "understood" in expected:
        assert [one["command"] for one in state.values["understood"]] == [expected["understood"]]


@pytest.mark.parametrize("how", ["command", "by id", "converse"])
@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [(kind, *case) for kind, cases in CASES["answers"].items() for case in cases],
)
def test_an_answer_means_what_its_client_means(
    talk: Talk, kind: str, value: Any, expected: str | dict[str, Any], how: str
) -> None:
    ask(talk, kind)
    value = named(value, talk.names)
    if how == "converse":
        talk.say(resume=value)
    else:
        talk.graph.invoke(Command(resume={talk.id: value} if how == "by id" else value), CONFIG)
    check(talk, CASES["outcomes"][expected] if isinstance(expected, str) else expected)


@pytest.mark.parametrize("value", CASES["no answers"])
def test_an_answer_of_no_shape_is_refused_before_anything_is_resumed(
    talk: Talk, value: Any
) -> None:
    ask(talk, "question")
    before, question = talk.graph.get_state(CONFIG), talk.payload
    with pytest.raises(InvalidInput, match="no answer to the question for 'order_id'"):
        talk.say(resume=value)
    assert talk.graph.get_state(CONFIG) == before
    for resume in (value, {talk.id: value}):
        with pytest.raises(
            ValidationError, match="no answer to the question for 'order_id'"
        ) as error:
            talk.graph.invoke(Command(resume=resume), CONFIG)
        assert "input_value" not in str(error.value)
        assert talk.payload == question
    assert talk.say("O-2").reply == "Order O-2 is on its way."
    assert examine(talk.saver).ok


def test_the_same_answer_twice_and_an_answer_to_an_earlier_question_change_nothing(
    talk: Talk,
) -> None:
    ask(talk, "confirm")
    first = talk.id
    talk.say(resume={first: elicited("accept", {"order_id": "O-2"})}, message_id="m1")
    assert talk.params["order_id"] == "O-2"
    before = talk.graph.get_state(CONFIG)
    talk.say(resume={first: elicited("accept", {"order_id": "O-2"})}, message_id="m1")
    for late in ({first: True}, [{"interruptId": first, "status": "resolved", "payload": True}]):
        with pytest.raises(ConversationError, match="no longer asked"):
            talk.say(resume=late)
    assert talk.graph.get_state(CONFIG) == before
    talk.graph.invoke(Command(resume={first: True}), CONFIG)
    assert talk.shop.effects() == []
    talk.say(resume=True)
    assert talk.shop.effects() == [("cancel_order", {"number": "O-2"})]
    with pytest.raises(ConversationError, match="no question waits"):
        talk.say(resume=True)


def test_an_approval_of_what_was_refused_approves_nothing_else(talk: Talk) -> None:
    ask(talk, "confirm")
    for value in (edited(order_id="nonsense"), {"order_id": "O-2"}):
        talk.say(resume=named(value, talk.names))
    check(talk, {"asks": "confirmation", "params": {"order_id": "O-2"}})


def test_a_plain_answer_where_nothing_waits_is_used_by_nothing(talk: Talk) -> None:
    ask(talk, "confirm")
    talk.say(resume=True)
    talk.graph.invoke(Command(resume="yes"), CONFIG)  # as LangGraph has it: kept, for no task
    ask(talk, "confirm")
    assert talk.asks == "confirmation"
    assert talk.shop.effects() == CANCELLED_ONCE


def resolved(**payload: Any) -> Any:
    """An entry of AG-UI's `resume`, for the question "ID"."""
    entry = ResumeEntry(interrupt_id="ID", status="resolved", payload=payload)
    return [entry.model_dump(mode="json", by_alias=True, exclude_none=True)]


YES = {
    "words": "yes",
    "MCP": elicited("accept", {"confirmation": True}),
    "MCP through LangChain": through_langchain(
        "confirmation", elicited("accept", {"confirmation": True})
    ),
    "LangChain": decided(type="approve"),
    "Agent Inbox": inbox("accept", {"action": "cancel_order", "args": {"order_id": "O-1"}}),
    "AG-UI": resolved(confirmation=True),
    "A2A, text": sent(Part(text="yes")),
    "A2A, data": sent(data(confirmation=True)),
}
"""What each client sends for a yes."""
CANCELLED_ONCE = [("cancel_order", {"number": "O-1"})]


@pytest.mark.parametrize("client", YES)
def test_an_expired_question_is_not_answered_before_the_user_goes_on(
    talk: Talk, client: str
) -> None:
    now = datetime(2026, 5, 1, 12, tzinfo=UTC)
    late = now + timedelta(days=8)
    talk.say("cancel my order O-1", now=now)
    assert talk.payload["expires_at"] == "2026-05-08T12:00:00+00:00"
    talk.say(resume=named(YES[client], talk.names), now=late)
    assert talk.shop.effects() == []
    assert talk.payload["reason"] == "confirmation"
    assert "expires_at" not in talk.payload
    assert "Do you still want to cancel an order?" in talk.last()
    talk.say(resume=named(YES[client], talk.names), now=late)
    assert (talk.asks, talk.shop.effects()) == ("confirmation", [])
    talk.say(resume=named(YES[client], talk.names), now=late)
    assert talk.shop.effects() == CANCELLED_ONCE


@pytest.mark.parametrize("client", YES)
def test_an_answer_counts_once_and_for_its_question_alone(talk: Talk, client: str) -> None:
    ask(talk, "confirm")
    first = talk.id
    yes = named(YES[client], {"ID": first})
    by_id = yes if client == "AG-UI" else {first: yes}
    for _ in range(2):
        talk.say(resume=by_id, message_id="m1")
    assert talk.shop.effects() == CANCELLED_ONCE
    with pytest.raises(ConversationError, match="no question waits"):
        talk.say(resume=by_id, message_id="m2")
    ask(talk, "confirm")
    waits = talk.graph.get_state(CONFIG)
    with pytest.raises(ConversationError, match="no longer asked"):
        talk.say(resume=by_id, message_id="m3")
    assert talk.graph.get_state(CONFIG) == waits
    talk.graph.invoke(Command(resume={first: yes}), CONFIG)  # as LangGraph has it: asked again
    assert talk.asks == "confirmation"
    assert talk.shop.effects() == CANCELLED_ONCE


async def test_converse_takes_text_or_an_answer_in_both_modes(
    saver: DeltaSaver, tmp_path: Path, mode: Mode
) -> None:
    talk, calls = Talk(saver, tmp_path), Calls(mode)
    await calls.call(langmem_ext, "converse", talk.graph, "cancel my order O-1", thread_id="t")
    with pytest.raises(InvalidInput, match="not both"):
        await calls.call(langmem_ext, "converse", talk.graph, "yes", thread_id="t", resume=True)
    await calls.call(
        langmem_ext, "converse", talk.graph, thread_id="t", resume=decided(type="approve")
    )
    assert talk.shop.effects() == [("cancel_order", {"number": "O-1"})]


# -- AG-UI, through its bridge -------------------------------------------------------------------


async def test_ag_ui_asks_and_is_answered_through_its_bridge(talk: Talk) -> None:
    async def run(**given: Any) -> Any:
        usual = {
            "thread_id": "t",
            "run_id": "r",
            "state": {},
            "messages": [],
            "tools": [],
            "context": [],
            "forwarded_props": {},
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            agent = LangGraphAgent(name="desk", graph=talk.graph, emit_interrupt_outcome=True)
            return [event async for event in agent.run(RunAgentInput(**{**usual, **given}))][-1]

    said = UserMessage(id="u1", role="user", content="I want to cancel my order")
    [asked] = (await run(messages=[said])).outcome.interrupts
    assert (asked.reason, asked.message) == ("input_required", "What's your order ID?")
    assert asked.response_schema["required"] == ["order_id"]
    assert datetime.fromisoformat(asked.expires_at) > datetime.now(UTC)
    answer = [ResumeEntry(interrupt_id=asked.id, status="resolved", payload={"order_id": "O-1"})]
    [confirm] = (await run(resume=answer)).outcome.interrupts
    assert (confirm.reason, talk.params) == ("confirmation", {"order_id": "O-1"})
    refused = await run(
        resume=[ResumeEntry(interrupt_id=confirm.id, status="resolved", payload={"foo": 1})]
    )
    assert refused.type == "RUN_ERROR"
    assert talk.id == confirm.id
    cancelled = [ResumeEntry(interrupt_id=confirm.id, status="cancelled")]
    for _ in range(2):  # the second finds that nothing is asked any more
        assert (await run(resume=cancelled)).type != "RUN_ERROR"
        assert talk.graph.get_state(CONFIG).interrupts == ()
    assert talk.last() == "Fine, I leave it."
    assert talk.shop.effects() == []
