"""An application extends the waiting graph by its own parts.

They are types, validators, channels, nodes and a classifier.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from catalogs import catalog_named
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt
from pydantic import HttpUrl

from langmem_ext import (
    CatalogError,
    Classification,
    ClassifyRequest,
    Extensions,
    Extraction,
    InvalidInput,
    Param,
    Reply,
    SessionState,
    aconverse,
    build_waiting_graph,
    converse,
    extract,
)

CALLS: list[dict[str, Any]] = []
VALID = "DE89370400440532013000"


@tool
def transfer(iban: str, amount: float) -> dict[str, str]:
    """Send money to an account."""
    CALLS.append({"iban": iban, "amount": amount})
    return {"status": "sent"}


CATALOG = catalog_named("transfer")


def read_iban(param: Param, reply: Reply) -> Iterator[Extraction]:
    for match in re.finditer(r"\b[A-Za-z]{2}\d\d(?: ?\d{4}){3,6}(?: ?\d{1,3})?\b", reply.text):
        yield Extraction("filled", match.group(), span=match.span(), confidence=0.95)


def checksum(value: str) -> str | None:
    digits = "".join(str(int(sign, 36)) for sign in value[4:] + value[:4])
    return None if int(digits) % 97 == 1 else "that is no valid account number"


def tight(value: str) -> str:
    return value.replace(" ", "").upper()


OWN: dict[str, Any] = {
    "extractors": {"iban": read_iban},
    "validators": {"checksum": checksum},
    "normalisers": {"tight": tight},
}


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


def test_a_type_of_its_own_is_read_normalised_and_checked() -> None:
    graph = build_waiting_graph(CATALOG, [transfer], **OWN).compile(InMemorySaver())
    assert converse(graph, "send money", thread_id="t").reply == "Which account?"
    refused = converse(graph, "de89 3704 0044 0532 0130 01", thread_id="t")
    assert refused.waiting_for == "iban"
    assert "That is no valid account number" in refused.reply
    assert (
        converse(graph, "sorry, de89 3704 0044 0532 0130 00", thread_id="t").waiting_for == "amount"
    )
    assert converse(graph, "12.50", thread_id="t").reply == f"12.5 went to {VALID}."
    assert CALLS == [{"iban": VALID, "amount": 12.5}]


def test_a_value_of_its_own_type_is_read_from_the_first_message() -> None:
    graph = build_waiting_graph(CATALOG, [transfer], **OWN).compile(InMemorySaver())
    assert (
        converse(graph, f"send money, $20 to {VALID}", thread_id="t").reply
        == f"20 went to {VALID}."
    )


async def test_the_same_async() -> None:
    graph = build_waiting_graph(CATALOG, [transfer], **OWN).compile(InMemorySaver())
    assert (await aconverse(graph, "send money", thread_id="t")).waiting_for == "iban"
    assert (await aconverse(graph, VALID, thread_id="t")).waiting_for == "amount"


def test_an_extractor_replaces_a_built_in_one() -> None:
    def pennies(param: Param, reply: Reply) -> Iterator[Extraction]:
        for match in re.finditer(r"(\d+)p", reply.text):
            yield Extraction("filled", int(match[1]) / 100, span=match.span())

    extractors = {**OWN["extractors"], "money": pennies}
    bound = CATALOG.with_tools(
        [transfer], Extensions(extractors, OWN["validators"], OWN["normalisers"])
    )
    found = extract(
        bound.param("amount"), Reply("250p", prompt="How much?", now=datetime(2024, 5, 1))
    )
    assert (found.status, found.value, found.raw, found.confidence) == ("filled", 2.5, "250p", 0.9)


def test_an_extractor_that_gives_what_cannot_be_used_is_named() -> None:
    broken = {**OWN, "extractors": {"iban": lambda param, reply: [Extraction("filled", VALID)]}}
    graph = build_waiting_graph(CATALOG, [transfer], **broken).compile(InMemorySaver())
    with pytest.raises(InvalidInput, match="the extractor of parameter 'iban'"):
        converse(graph, "send money", thread_id="t")


def test_a_catalog_whose_names_are_not_given_is_refused() -> None:
    with pytest.raises(CatalogError) as error:
        build_waiting_graph(CATALOG, [transfer])
    assert len(error.value.problems) == 3


# -- channels and nodes


class Desk(SessionState):
    """The channels of the waiting graph, and one of the application's."""

    limit: float
    checked: list[float]


def test_a_node_before_the_call_reads_and_writes_a_channel_of_its_own() -> None:
    def check_limit(state: Desk) -> dict[str, Any]:
        amount = state["params"]["amount"]
        if amount > state.get("limit", 100):
            return {
                "messages": [AIMessage("That is above your limit.")],
                "plan": None,
                "waiting_for_param": None,
            }
        return {"checked": [*state.get("checked", []), amount]}

    graph = build_waiting_graph(
        CATALOG, [transfer], **OWN, state_schema=Desk, before={"call_tool": check_limit}
    ).compile(InMemorySaver())
    here: Any = {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": [HumanMessage(f"send money, $20 to {VALID}")], "limit": 50.0}, here)
    assert graph.get_state(here).values["checked"] == [20]
    assert (
        converse(graph, f"send money, $70 to {VALID}", thread_id="t").reply
        == "That is above your limit."
    )
    assert [call["amount"] for call in CALLS] == [20]
    assert graph.get_state(here).next == ()


def test_a_node_before_the_call_may_ask_a_person() -> None:
    def approve(state: SessionState) -> dict[str, Any]:
        return (
            {}
            if interrupt("Approve?") == "yes"
            else {"plan": None, "messages": [AIMessage("Not approved.")]}
        )

    graph = build_waiting_graph(CATALOG, [transfer], **OWN, before={"call_tool": approve}).compile(
        InMemorySaver()
    )
    assert converse(graph, f"send money, $20 to {VALID}", thread_id="t").reply == "Approve?"
    assert CALLS == []
    assert converse(graph, "yes", thread_id="t").reply == f"20 went to {VALID}."


def test_nodes_before_any_node_run_where_it_would() -> None:
    ran: list[str] = []

    def noting(name: str) -> Any:
        def note(state: SessionState) -> dict[str, Any]:
            ran.append(name)
            return {}

        return note

    names = ("classify", "ask_user", "call_tool", "respond", "summarize")
    before = {name: noting(name) for name in names}
    graph = build_waiting_graph(
        CATALOG, [transfer], **OWN, before=before, summarize_above=2
    ).compile(InMemorySaver())
    converse(graph, "send money", thread_id="t")
    assert ran == ["classify", "ask_user"]
    converse(graph, VALID, thread_id="t")
    converse(graph, "20", thread_id="t")
    assert ran[-4:] == ["classify", "call_tool", "respond", "summarize"]


def test_a_node_of_its_own_replaces_one_and_may_call_it() -> None:
    default = build_waiting_graph(CATALOG, [transfer], **OWN).nodes["respond"].runnable

    def polite(state: SessionState, config: RunnableConfig) -> dict[str, Any]:
        update = default.invoke(state, config)
        return {
            **update,
            "messages": [
                AIMessage(f"{message.text} Anything else?") for message in update["messages"]
            ],
        }

    graph = build_waiting_graph(CATALOG, [transfer], **OWN, nodes={"respond": polite}).compile(
        InMemorySaver()
    )
    assert (
        converse(graph, f"send money, $20 to {VALID}", thread_id="t").reply
        == f"20 went to {VALID}. Anything else?"
    )


def test_a_subgraph_is_a_tool_and_may_ask() -> None:
    def sign(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"signed by {interrupt('Your name?')}")]}

    signing = (
        StateGraph(MessagesState)
        .add_node("sign", sign)
        .add_edge(START, "sign")
        .add_edge("sign", END)
        .compile()
    )

    @tool
    def contract(amount: float) -> str:
        """Sign a contract."""
        return str(signing.invoke({"messages": [HumanMessage(str(amount))]})["messages"][-1].text)

    catalog = catalog_named("contract")
    graph = build_waiting_graph(catalog, [contract]).compile(InMemorySaver())
    assert converse(graph, "sign a contract", thread_id="t").waiting_for == "amount"
    assert converse(graph, "$900", thread_id="t").reply == "Your name?"
    assert converse(graph, "Ann", thread_id="t").reply == "It is signed by Ann."


def test_what_cannot_be_built_is_named_at_once() -> None:
    class Lacking(MessagesState):
        params: dict[str, str]

    with pytest.raises(InvalidInput) as error:
        build_waiting_graph(
            CATALOG,
            [transfer],
            **OWN,
            state_schema=Lacking,
            nodes={"call_tools": lambda state: {}},
            before={"respond": "print"},  # type: ignore[dict-item]
            classifier=object(),  # type: ignore[arg-type]
            summarize_above=1,
        )
    for hint in (
        "nodes: unknown node 'call_tools'; did you mean 'call_tool'?",
        "before: 'respond' must be a function",
        "the channel 'params' has another type",
        "the channel 'plan' is missing",
        "is not a classifier",
        "summarize_above is 1",
    ):
        assert hint in str(error.value)
    with pytest.raises(InvalidInput, match="must be a TypedDict"):
        build_waiting_graph(CATALOG, [transfer], **OWN, state_schema=dict)


# -- a classifier


class Words:
    """A classifier as an application may write one: by a single word."""

    def classify(self, request: ClassifyRequest) -> Classification:
        wanted = "transfer" if "wire" in request.text else None
        return Classification(wanted, confidence=1.0, reason="says wire")

    async def aclassify(self, request: ClassifyRequest) -> Classification:
        return self.classify(request)


def test_a_classifier_of_its_own_decides() -> None:
    graph = build_waiting_graph(CATALOG, [transfer], **OWN, classifier=Words()).compile(
        InMemorySaver()
    )
    assert converse(graph, "please wire something", thread_id="t").waiting_for == "iban"
    understood = graph.get_state({"configurable": {"thread_id": "t"}}).values["understood"]
    assert understood[0]["why"] == "says wire"


def test_other_values_than_the_listed_ones_may_be_given_where_they_are_open() -> None:
    param = Param(
        name="topping",
        type="enum",
        enum={"ham": (), "olives": ()},
        open_values=True,
        prompt="Which topping?",
    )
    read = [
        extract(param, Reply(text, prompt=param.prompt, now=datetime(2024, 5, 1)))
        for text in ("olives", "pineapple please")
    ]
    assert [found.value for found in read] == ["olives", "pineapple"]
    assert read[1].confidence < 0.5 < read[0].confidence


# -- moments, lengths of time and addresses


@tool
def plan(start: datetime, length: timedelta, page: HttpUrl) -> str:
    """Plan a meeting."""
    return f"{start:%A %H:%M} for {length} at {page.host}"


MEETINGS = catalog_named("meetings")
NOW = datetime(2024, 5, 29, 14, 30)  # a Wednesday


def played(*messages: str) -> list[str]:
    graph = build_waiting_graph(MEETINGS, [plan]).compile(InMemorySaver())
    return [converse(graph, message, thread_id="t", now=NOW).reply for message in messages]


def test_a_tool_gets_a_moment_a_length_and_an_address() -> None:
    said = "plan a meeting tomorrow at 5pm for 90 minutes at https://meet.example.com/abc"
    asked, done = played(said, "yes")
    assert (
        asked == "Meet at 2024-05-30 17:00 for 1 hour 30 minutes on https://meet.example.com/abc?"
    )
    assert done == "Thursday 17:00 for 1:30:00 at meet.example.com"


def test_each_is_asked_for_and_may_be_corrected() -> None:
    replies = played(
        "set up a call",
        "friday at 7",
        "evening",
        "half an hour",
        "www.example.com",
        "no, make it 3pm",
        "yes",
    )
    assert replies[1] == "Do you mean: 7:00 in the morning or 7:00 in the evening?"
    assert replies[4] == "Meet at 2024-05-31 19:00 for 30 minutes on https://www.example.com?"
    assert replies[5] == "Meet at 2024-05-31 15:00 for 30 minutes on https://www.example.com?"
    assert replies[6] == "Friday 15:00 for 0:30:00 at www.example.com"
