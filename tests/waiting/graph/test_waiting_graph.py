"""What users do while they are asked, each step in a process of its own; and the graph wherever
LangGraph can run it. More of what they say: `tests/cases/conversations/order_desk.yaml`.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import desk
import pytest
from catalogs import catalog_named
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from langmem_ext import (
    CatalogError,
    Classification,
    ClassifyRequest,
    DeltaSaver,
    IntentCatalog,
    InvalidInput,
    RuleClassifier,
    Threads,
    aconverse,
    build_waiting_graph,
    converse,
)

ORDER_ID = "What's your order ID?"

# -- what users do ---------------------------------------------------------------------------------


def test_a_value_that_the_tool_would_refuse_is_a_wrong_answer(talk: Any) -> None:
    talk.say("I want a refund for O-5 by card")
    turn = talk.say("$900")
    assert (turn["waiting_for"], turn["attempt"]) == ("amount", 2)
    assert talk.shop.calls() == []


def test_a_result_adds_parameters_and_overwrites_none(talk: Any) -> None:
    talk.say("where is my order O-1?")
    assert talk.state()["params"] == {"order_id": "O-1", "carrier": "Swift Post"}
    assert talk.state()["last_result"] == {"status": "on its way", "carrier": "Swift Post"}


# -- tools -----------------------------------------------------------------------------------------


def test_a_tools_own_words_reach_the_user_and_the_thread_goes_on(talk: Any) -> None:
    assert talk.say("where is my order O-404?")["reply"] == "There is no order O-404."
    assert talk.say("where is my order O-1?")["reply"] == "Order O-1 is on its way."


def test_any_other_failure_is_told_in_general_words_and_the_thread_goes_on(talk: Any) -> None:
    assert talk.say("where is my order O-500?")["reply"] == "Something went wrong on our side."
    assert "hunter2" not in json.dumps(
        [message.model_dump() for message in talk.state()["messages"]]
    )
    assert talk.say("where is my order O-1?")["reply"] == "Order O-1 is on its way."


def test_a_value_is_filled_into_a_reply_as_it_stands(talk: Any) -> None:
    talk.say("I want to change my delivery address")
    talk.say("O-1")
    talk.edit({"params": {"order_id": "O-1", "address": "{order_id} {result} Street 5"}})
    assert talk.say("")["reply"].endswith("Order O-1 goes to {order_id} {result} Street 5.")


def test_two_steps_run_one_after_the_other_and_a_result_fills_the_next_call() -> None:
    calls = []

    @tool
    def find_parcel(order_id: str) -> dict[str, str]:
        """Find the parcel of an order."""
        calls.append(("find_parcel", order_id))
        return {"parcel": f"P-{order_id}", "order_id": "another one"}

    @tool
    def trace_parcel(parcel: str) -> dict[str, str]:
        """Find out where a parcel is."""
        calls.append(("trace_parcel", parcel))
        return {"place": "Hamburg"}

    catalog = catalog_named("parcels")
    graph = build_waiting_graph(catalog, [find_parcel, trace_parcel]).compile(
        checkpointer=InMemorySaver()
    )
    assert converse(graph, "trace it", thread_id="t").waiting_for == "order_id"
    assert converse(graph, "A77", thread_id="t").reply == "Parcel P-A77 of A77 is in Hamburg."
    assert calls == [("find_parcel", "A77"), ("trace_parcel", "P-A77")]


def test_a_tool_may_ask_the_user_itself(tmp_path: Path) -> None:
    @tool
    def pay() -> str:
        """Pay."""
        return str(interrupt("Which PIN?"))

    catalog = IntentCatalog.from_dict(
        {"intents": {"pay": {"patterns": ["pay"], "tool": "pay", "reply": "Paid with {result}."}}}
    )
    app = build_waiting_graph(catalog, [pay]).compile(checkpointer=InMemorySaver())
    assert converse(app, "pay", thread_id="t").reply == "Which PIN?"
    assert converse(app, "1234", thread_id="t").reply == "Paid with 1234."


# -- sensitive values ------------------------------------------------------------------------------

CARD = "4111111111111111"


@pytest.mark.parametrize(
    "texts",
    [
        ["please save my card", "it's 4111 1111 1111 1111"],
        [f"please save my card {CARD}"],
        [CARD, "save my card"],
        ["save my card", f"hm, {CARD}"],
    ],
)
def test_every_message_that_holds_a_sensitive_value_is_marked(talk: Any, texts: list[str]) -> None:
    for text in texts:
        talk.say(text)
    assert talk.shop.effects() == [("store_card", {"card": CARD})]
    for message in talk.state()["messages"]:
        text = message.text + json.dumps(getattr(message, "tool_calls", []))
        if CARD in text.replace(" ", ""):
            assert message.additional_kwargs["langmem_ext"]["sensitive"] == ["card"], message
    assert CARD in talk.texts()[-1][1]


@pytest.mark.parametrize("begin", range(3), ids="the index is made before message {}".format)
def test_no_message_brings_a_sensitive_value_into_the_search_index(
    begin: int, tmp_path: Path
) -> None:
    tools = desk.make_tools(desk.Shop(tmp_path / "shop.db"))
    builder = build_waiting_graph(IntentCatalog.from_dict(desk.CATALOG), tools)
    for place, texts in enumerate(
        (
            ["please save my card", "it's 4111 1111 1111 1111"],
            [f"please save my card {CARD}"],
            [CARD, "save my card", f"hm, {CARD}"],
        )
    ):
        with DeltaSaver.open(str(tmp_path / f"{place}.db")) as saver:
            app, threads = builder.compile(checkpointer=saver), Threads(saver)
            for number, text in enumerate([*texts, "where is my order O-6?"]):
                if number == begin:
                    threads.enable_search()
                converse(app, text, thread_id="t")
                if number >= begin:
                    assert threads.search(CARD) == threads.search("4111") == []
            assert [hit.role for hit in threads.search("where is my order")] == ["human"]


def test_a_wrong_answer_to_a_sensitive_question_is_marked_too(talk: Any) -> None:
    talk.say("please save my card")
    talk.say("4111 1111")
    [message] = [message for message in talk.state()["messages"] if message.text == "4111 1111"]
    assert message.additional_kwargs["langmem_ext"]["sensitive"] == ["card"]


# -- wherever LangGraph runs it --------------------------------------------------------------------


@pytest.fixture
def app(tmp_path: Path) -> Any:
    """The desk's graph in this process, in memory."""
    return desk.make_graph(InMemorySaver(), desk.Shop(tmp_path / "shop.db"))


THREAD: Any = {"configurable": {"thread_id": "t"}}


def said(values: dict[str, Any]) -> list[str]:
    return [
        message.text
        for message in values["messages"]
        if message.type in ("human", "ai") and message.text
    ]


def test_it_runs_under_invoke_and_resumes_with_langgraphs_own_command(app: Any) -> None:
    first = app.invoke({"messages": [("user", "I want to check my order")]}, THREAD)
    assert (
        first["__interrupt__"][0].value.items()
        >= {
            "param": "order_id",
            "prompt": ORDER_ID,
            "attempt": 1,
            "examples": ["O-12345"],
            "schema": {"type": "string", "pattern": r"^(?:O-\d+)$", "description": "order number"},
        }.items()
    )
    assert said(app.invoke(Command(resume="O-1"), THREAD))[-1] == "Order O-1 is on its way."


def test_a_new_input_while_a_question_waits_is_taken_as_its_answer(app: Any) -> None:
    app.invoke({"messages": [("user", "I want to check my order")]}, THREAD)
    assert (
        said(app.invoke({"messages": [("user", "O-1")]}, THREAD))[-1] == "Order O-1 is on its way."
    )


async def test_it_runs_under_ainvoke_and_astream(app: Any) -> None:
    await app.ainvoke({"messages": [("user", "I want to check my order")]}, THREAD)
    assert said(await app.ainvoke(Command(resume="O-1"), THREAD))[-1] == "Order O-1 is on its way."
    steps = [
        next(iter(update))
        async for update in app.astream(
            {"messages": [("user", "where is my order O-1?")]}, THREAD, stream_mode="updates"
        )
    ]
    assert steps == ["classify", "call_tool", "respond"]


class Outer(TypedDict):
    """A bigger graph's state; it knows nothing of parameters."""

    messages: Annotated[list[AnyMessage], add_messages]


def bigger(shop: desk.Shop, saver: Any, *, own_thread: bool = False) -> Any:
    """The desk inside another graph; with `own_thread` it remembers its session between the outer
    graph's turns.
    """
    graph = StateGraph(Outer)
    desk.COUNTER.path = shop.path
    inner = desk.BUILDER.compile(checkpointer=True if own_thread else None)
    graph.add_node("desk", inner)
    graph.add_node("sign", lambda state: {"messages": [AIMessage("The order desk")]})
    graph.add_edge(START, "desk")
    graph.add_edge("desk", "sign")
    graph.add_edge("sign", END)
    return graph.compile(checkpointer=saver)


@pytest.mark.parametrize("own_thread", [False, True])
def test_it_works_as_a_subgraph(tmp_path: Path, own_thread: bool) -> None:
    app = bigger(desk.Shop(tmp_path / "shop.db"), InMemorySaver(), own_thread=own_thread)
    assert converse(app, "I want to check my order", thread_id="t").waiting_for == "order_id"
    assert converse(app, "banana", thread_id="t").attempt == 2
    turn = converse(app, "O-1", thread_id="t")
    assert turn.reply == "Order O-1 is on its way.\nThe order desk"
    assert said(app.get_state(THREAD).values)[-3:] == [
        "O-1",
        "Order O-1 is on its way.",
        "The order desk",
    ]
    turn = converse(app, "cancel that order", thread_id="t")
    assert turn.waiting_for == ("confirmation" if own_thread else "order_id")


async def test_it_works_as_a_subgraph_of_an_async_graph(tmp_path: Path) -> None:
    shop = desk.Shop(tmp_path / "shop.db")
    app = bigger(shop, InMemorySaver())
    assert (
        await aconverse(app, "I want to check my order", thread_id="t")
    ).waiting_for == "order_id"
    assert (await aconverse(app, "O-1", thread_id="t")).waiting_for is None
    assert shop.effects() == [("check_order", {"number": "O-1"})]


def test_a_fork_of_an_answered_question_asks_again(app: Any) -> None:
    converse(app, "I want to check my order", thread_id="t")
    old = app.get_state(THREAD)
    converse(app, "O-1", thread_id="t")
    app.update_state(old.config, {}, as_node="classify")
    turn = converse(app, "O-2", thread_id="t")
    assert turn.reply == "Order O-2 is on its way."
    assert "O-1" not in said(app.get_state(THREAD).values)


# -- making it -------------------------------------------------------------------------------------


def test_a_catalog_that_names_a_missing_tool_is_refused() -> None:
    with pytest.raises(CatalogError, match="refund"):
        build_waiting_graph(IntentCatalog.from_dict(desk.CATALOG), [])


def test_a_classifier_and_a_model_are_not_taken_together(tmp_path: Path) -> None:
    tools = desk.make_tools(desk.Shop(tmp_path / "shop.db"))
    model = GenericFakeChatModel(messages=iter([]))
    with pytest.raises(InvalidInput, match="not both"):
        build_waiting_graph(
            IntentCatalog.from_dict(desk.CATALOG), tools, classifier=RuleClassifier(), model=model
        )


class ClassifierDouble:
    """Stands in for a model: knows one sentence, and which of its two methods was called."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def classify(self, request: ClassifyRequest) -> Classification:
        self.asked.append(("classify", request.text))
        return self._answer(request)

    async def aclassify(self, request: ClassifyRequest) -> Classification:
        self.asked.append(("aclassify", request.text))
        return self._answer(request)

    def _answer(self, request: ClassifyRequest) -> Classification:
        return Classification("check_order" if "parcel" in request.text else None, {}, 0.9, "model")


async def test_another_classifier_decides_and_is_awaited_in_async_runs(tmp_path: Path) -> None:
    double = ClassifierDouble()
    catalog, tools = (
        IntentCatalog.from_dict(desk.CATALOG),
        desk.make_tools(desk.Shop(tmp_path / "shop.db")),
    )
    app = build_waiting_graph(catalog, tools, classifier=double).compile(
        checkpointer=InMemorySaver()
    )
    assert (await aconverse(app, "my parcel?", thread_id="a")).waiting_for == "order_id"
    assert converse(app, "my parcel?", thread_id="b").waiting_for == "order_id"
    assert double.asked == [("aclassify", "my parcel?"), ("classify", "my parcel?")]


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "orders.db"
    monkeypatch.setenv("LANGMEM_EXT_SHOP_DB", str(path))
    return path


def test_the_example_asks_waits_and_acts(orders: Path, place: str) -> None:
    from graphs.support import (  # noqa: PLC0415  # reads its catalog when it is imported
        graph,
        make_graph,
    )

    assert graph.checkpointer is None
    for texts, expected in [
        (["I want to check my order", "It's O-12345"], "Order O-12345 is processing"),
        (["cancel order O-12345", "yes"], "Order O-12345 is cancelled."),
    ]:
        for text in texts:
            saver = desk.open_saver(place)
            turn = converse(make_graph(saver), text, thread_id="t")
            desk.close_saver(saver)
        assert turn.reply.startswith(expected)
    with closing(sqlite3.connect(orders)) as connection:
        assert connection.execute(
            "SELECT status FROM orders WHERE order_id = 'O-12345'"
        ).fetchone() == ("cancelled",)


def test_messages_of_any_origin_are_heard(app: Any) -> None:
    """Content blocks and dictionaries, as clients send them."""
    app.invoke(
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "where is my order O-1?"}]}
            ]
        },
        THREAD,
    )
    assert said(app.get_state(THREAD).values)[-1] == "Order O-1 is on its way."
    app.invoke({"messages": [HumanMessage("")]}, THREAD)
    assert said(app.get_state(THREAD).values)[-1] == "I can check, cancel or refund an order."
