"""A model's summaries: extended, checked, and nothing is lost if they fail.

The model is a double that gives scripted answers.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import AsyncMock

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.graph import START, StateGraph

from langmem_ext.context.govern import govern
from langmem_ext.context.governor import ContextGovernor, ContextState
from langmem_ext.context.middleware import ContextMiddleware
from langmem_ext.context.policy import ContextPolicy
from langmem_ext.context.summary.summary import ModelRequest
from langmem_ext.context.summary.with_model import Asking, aanswered
from langmem_ext.errors import ConversationError, InvalidInput, SummaryFailed
from langmem_ext.messages.token_costs.tokens import ApproximateCounter
from langmem_ext.waiting.catalog.catalog import IntentCatalog
from langmem_ext.waiting.converse import aconverse, converse
from langmem_ext.waiting.graph.graph import build_waiting_graph


class ScriptedModel(BaseChatModel):
    """A double of a chat model that answers by a function and records the questions."""

    answer: Callable[[Sequence[BaseMessage]], str]
    asked: list[list[BaseMessage]] = []  # pydantic copies it

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.asked.append(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.answer(messages)))])


SUMMARY = "The user asks numbered questions; each was answered."


def summing_up(messages: Sequence[BaseMessage]) -> str:
    return SUMMARY


def failing(messages: Sequence[BaseMessage]) -> str:
    raise TimeoutError("the provider did not answer")


def chat(turns: int) -> list[BaseMessage]:
    said: list[BaseMessage] = [SystemMessage("Answer briefly.", id="system")]
    for turn in range(turns):
        said += [
            HumanMessage(f"question {turn} " + "word " * 40, id=f"q{turn}"),
            AIMessage(f"answer {turn} " + "word " * 40, id=f"a{turn}"),
        ]
    return [*said, HumanMessage("the latest question", id="latest")]


def governor(
    answer: Callable[[Sequence[BaseMessage]], str], budget: int = 3_000, **policy: Any
) -> ContextGovernor:
    return ContextGovernor(
        budget=budget,
        model=ScriptedModel(answer=answer, asked=[]),
        policy=ContextPolicy(**{"verify": False, **policy}),
        counter=ApproximateCounter(),
    )


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Any:
    def govern(one: ContextGovernor, *given: Any, **named: Any) -> Any:
        return (
            one.govern(*given, **named)
            if request.param == "sync"
            else asyncio.run(one.agovern(*given, **named))
        )

    return govern


def texts(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(message.text for message in messages)


def test_a_model_writes_what_stands_for_what_is_left_out(run: Any) -> None:
    one = governor(summing_up)
    governed = run(one, chat(60))
    [cut] = governed.events
    assert cut["by"] == "model"
    assert f"[Summary of {cut['dropped']} earlier messages]\n{SUMMARY}" in texts(governed.messages)
    assert cut["covers"][0] == "a0", "the first task stays, its answer is summed up"


def test_every_message_is_read_before_it_is_left_out(run: Any) -> None:
    one = governor(summing_up, budget=1_500)
    governed = run(one, chat(200))
    read = texts([message for asked in one.model.asked for message in asked])  # type: ignore[union-attr]
    left = governed.events[-1]["covers"]
    assert len(left) > 300
    assert all(f"question {key[1:]} " in read for key in left if key.startswith("q"))


def test_a_summary_is_carried_on(run: Any) -> None:
    one = governor(summing_up)
    first = run(one, chat(60))
    one.model.asked.clear()  # type: ignore[union-attr]
    second = run(one, chat(100), first.events)
    asked = texts([message for asked in one.model.asked for message in asked])  # type: ignore[union-attr]
    assert SUMMARY in asked
    assert "question 3 " not in asked, "what the first summary covers is not read again"
    assert second.events[-1]["dropped"] > first.events[-1]["dropped"]


@pytest.mark.parametrize("answer", [failing, lambda messages: ""])
def test_without_a_summary_a_line_says_that_messages_are_missing(run: Any, answer: Any) -> None:
    governed = run(governor(answer), chat(60))
    assert [event["kind"] for event in governed.events] == ["failed", "cut"]
    assert "[Earlier conversation trimmed — " in texts(governed.messages)


def test_without_a_summary_messages_are_kept_where_they_fit(run: Any) -> None:
    one = governor(failing, budget=30_000, trigger=("tokens", 2_000), on_failure="keep")
    governed = run(one, chat(60))
    assert governed.messages == chat(60)
    assert [event["kind"] for event in governed.events] == ["failed"]


def test_messages_that_were_kept_stay_until_a_summary_may_be_tried_again(run: Any) -> None:
    one = governor(failing, budget=30_000, trigger=("tokens", 2_000), on_failure="keep", cooldown=8)
    messages, events = chat(60), ()
    for turn in range(6):
        governed = run(one, messages, events)
        assert governed.messages == messages
        messages, events = (
            [*messages, AIMessage("so", id=f"b{turn}"), HumanMessage("and", id=f"c{turn}")],
            governed.events,
        )
    assert len(one.model.asked) == 2  # type: ignore[union-attr]
    assert [event["kind"] for event in events] == ["failed"], "of two failures the newer one counts"


def test_what_a_failed_summary_left_out_is_read_by_the_next_one(run: Any) -> None:
    failed = run(governor(failing, cooldown=0), chat(60))
    one = governor(summing_up, cooldown=0)
    run(one, chat(100), failed.events)
    read = texts([message for asked in one.model.asked for message in asked])  # type: ignore[union-attr]
    assert all(f"question {turn} " in read for turn in range(1, 80))


def test_a_thread_that_was_emptied_is_not_held_to_an_old_failure(run: Any) -> None:
    failed = run(governor(failing, cooldown=20), chat(60))
    one = governor(summing_up, budget=1_500, cooldown=20)
    run(one, chat(20), failed.events)
    assert one.model.asked  # type: ignore[union-attr]


def test_what_is_known_does_not_become_a_part_of_the_summary(run: Any) -> None:
    said = "Known so far: the order is O-17.\n\nKnown so far:\n- it was sent on Tuesday."
    one = governor(lambda messages: said)
    first = run(one, chat(60), params={"city": "Ulm"})
    one.model.asked.clear()  # type: ignore[union-attr]
    run(one, chat(100), first.events, params={"city": "Bonn"})
    asked = texts([message for asked in one.model.asked for message in asked])  # type: ignore[union-attr]
    assert "it was sent on Tuesday" in asked
    assert "Ulm" not in asked


def test_what_a_model_raises_is_raised_where_that_is_wanted(run: Any) -> None:
    with pytest.raises(TimeoutError):
        run(governor(failing, on_failure="raise"), chat(60))
    with pytest.raises(SummaryFailed):
        run(governor(lambda messages: " ", on_failure="raise"), chat(60))


def test_why_there_is_no_summary_is_logged_but_no_word_that_was_said(
    run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run(governor(lambda messages: " "), chat(60))
    run(governor(failing), chat(60))
    empty, failed = (record.getMessage() for record in caplog.records)
    assert empty.startswith("no summary was written: the model's answer is")
    assert failed.startswith("no summary was written: TimeoutError;")


def test_a_governor_is_made_with_a_budget_or_not_at_all() -> None:
    with pytest.raises(InvalidInput, match="pass `budget`, or a model whose profile"):
        ContextGovernor()
    for budget in ("1000", -1):
        with pytest.raises(InvalidInput, match="budget must be a number of tokens"):
            ContextGovernor(budget=budget)  # type: ignore[arg-type]


def test_a_policy_that_is_none_is_refused_where_it_is_given() -> None:
    policy: Any = "summary"
    for use in (ContextGovernor, ContextMiddleware, lambda **given: govern([], **given)):
        with pytest.raises(InvalidInput, match="policy must be a ContextPolicy"):
            use(budget=1_000, policy=policy)


async def test_a_config_that_names_no_thread_is_refused() -> None:
    graph = (
        StateGraph(ContextState)
        .add_node("rest", lambda state: {})
        .add_edge(START, "rest")
        .compile(checkpointer=InMemorySaver())
    )
    governor = ContextGovernor(budget=1_000)
    for use in (governor.compact, governor.restore):
        with pytest.raises(InvalidInput, match="has no thread_id"):
            use(graph, {})
    for ause in (governor.acompact, governor.arestore):
        with pytest.raises(InvalidInput, match="has no thread_id"):
            await ause(graph, {"configurable": {}})


def test_after_a_failure_no_summary_is_tried_for_a_while(run: Any) -> None:
    one = governor(failing, cooldown=30)
    messages = chat(60)
    events = run(one, messages).events
    asked = len(one.model.asked)  # type: ignore[union-attr]
    for turn in range(10):
        messages += [
            AIMessage("so " * 200, id=f"b{turn}"),
            HumanMessage("and " * 200, id=f"c{turn}"),
        ]
        events = run(one, messages, events).events
    assert len(one.model.asked) == asked  # type: ignore[union-attr]
    for turn in range(10, 20):
        messages += [
            AIMessage("so " * 200, id=f"b{turn}"),
            HumanMessage("and " * 200, id=f"c{turn}"),
        ]
        events = run(one, messages, events).events
    assert len(one.model.asked) > asked  # type: ignore[union-attr]


def test_a_summary_that_saves_too_little_is_not_used(run: Any) -> None:
    one = governor(
        lambda messages: "much more was said " * 60,
        budget=3_000,
        trigger=("messages", 6),
        least_saved=0.6,
    )
    governed = run(one, chat(4))
    assert "much more was said" not in texts(governed.messages)
    assert [event["kind"] for event in governed.events] == ["failed", "cut"]


async def test_who_cancels_a_long_planning_is_told_that_it_was_cancelled() -> None:
    started = threading.Event()

    def planning() -> Asking[str]:
        started.set()
        time.sleep(0.2)
        return (yield ModelRequest("map", ()))

    task = asyncio.ensure_future(aanswered(planning(), AsyncMock(return_value=""), large=True))
    await asyncio.to_thread(started.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_preview_asks_no_model() -> None:
    one = governor(failing)
    assert "left out" in str(one.preview(chat(60)))
    assert one.model.asked == []  # type: ignore[union-attr]


# -- in a graph ------------------------------------------------------------------------------------


def graph_with(one: ContextGovernor, sent: list[list[BaseMessage]], **compiled: Any) -> Any:
    def answer(state: ContextState) -> dict[str, Any]:
        sent.append(state["llm_input_messages"])
        return {"messages": [AIMessage(f"answer {len(sent)} " + "word " * 40, id=f"b{len(sent)}")]}

    builder = StateGraph(ContextState)
    builder.add_node("govern", one)
    builder.add_node("answer", answer)
    builder.add_edge(START, "govern")
    builder.add_edge("govern", "answer")
    return builder.compile(checkpointer=InMemorySaver(), **compiled)


def test_a_node_sends_less_and_stores_everything() -> None:
    sent: list[list[BaseMessage]] = []
    graph, config = (
        graph_with(ContextGovernor(budget=1_000, counter=ApproximateCounter()), sent),
        {"configurable": {"thread_id": "t"}},
    )
    for turn in range(20):
        graph.invoke(
            {"messages": [HumanMessage(f"question {turn} " + "word " * 40, id=f"q{turn}")]}, config
        )
    state = graph.get_state(config).values
    assert len(state["messages"]) == 40
    assert "llm_input_messages" not in state
    assert len(sent[-1]) < 15
    assert sent[-1][0].id == "q0"
    assert (
        asyncio.run(graph.ainvoke({"messages": [HumanMessage("more", id="more")]}, config))[
            "messages"
        ][-2].id
        == "more"
    )


def test_a_node_says_when_a_turn_goes_round_in_circles() -> None:
    one, said = (
        ContextGovernor(budget=10_000, counter=ApproximateCounter()),
        [HumanMessage("look", id="q")],
    )
    for turn in range(6):
        call = {"name": "look", "args": {"at": "it"}, "id": f"c{turn}"}
        said += [
            AIMessage("", tool_calls=[call], id=f"a{turn}"),
            ToolMessage("nothing", tool_call_id=f"c{turn}", id=f"t{turn}"),
        ]
        update = one.invoke({"messages": said})
        nudges = [event for event in update.get("context_events", ()) if event["kind"] == "nudge"]
        assert bool(nudges) is (turn in (2, 3, 4))
        assert (update["context_stop"] is not None) is (turn == 5)


def test_a_thread_is_compacted_and_restored_on_demand() -> None:
    sent: list[list[BaseMessage]] = []
    one = governor(summing_up, budget=30_000)
    graph, config = graph_with(one, sent), {"configurable": {"thread_id": "t"}}
    for turn in range(10):
        graph.invoke(
            {"messages": [HumanMessage(f"question {turn} " + "word " * 40, id=f"q{turn}")]}, config
        )
    plan = one.compact(graph, config)
    assert plan.after < plan.before / 2
    stored = graph.get_state(config).values["messages"]
    graph.invoke({"messages": [HumanMessage("and now?", id="now")]}, config)
    assert SUMMARY in texts(sent[-1])
    assert graph.get_state(config).values["messages"][: len(stored)] == stored
    fork = graph.update_state(
        graph.get_state(config).config,
        {"messages": [HumanMessage("another", id="fork")]},
        as_node="__start__",
    )
    graph.invoke(None, fork)
    assert SUMMARY in texts(sent[-1]), "a fork inherits what was decided"
    one.restore(graph, config)
    graph.invoke({"messages": [HumanMessage("and again?", id="again")]}, config)
    assert SUMMARY not in texts(sent[-1])
    assert len(sent[-1]) == len(graph.get_state(config).values["messages"]) - 1


def test_the_strategy_by_messages_makes_two_of_a_conversation_on_demand() -> None:
    sent: list[list[BaseMessage]] = []
    one = governor(summing_up, budget=30_000, strategy="messages")
    graph, config = graph_with(one, sent), {"configurable": {"thread_id": "t"}}
    for turn in range(5):
        graph.invoke({"messages": [HumanMessage(f"question {turn}", id=f"q{turn}")]}, config)
    asyncio.run(one.acompact(graph, config))
    graph.invoke({"messages": [HumanMessage("and now?", id="now")]}, config)
    assert [message.text for message in sent[-1]] == [
        f"[Compacted conversation summary]\n{SUMMARY}",
        "Understood. I have the conversation context.",
        "and now?",
    ]


def test_where_there_is_nothing_to_do_nothing_is_written() -> None:
    one = governor(summing_up, budget=30_000)
    graph, config = graph_with(one, []), {"configurable": {"thread_id": "t"}}
    assert one.compact(graph, config).added == ()
    one.restore(graph, config)
    asyncio.run(one.acompact(graph, config))
    asyncio.run(one.arestore(graph, config))
    assert list(graph.get_state_history(config)) == []


def test_a_compaction_that_fails_changes_nothing() -> None:
    sent: list[list[BaseMessage]] = []
    one = governor(failing, budget=30_000)
    graph, config = graph_with(one, sent), {"configurable": {"thread_id": "t"}}
    graph.invoke({"messages": chat(10)}, config)
    before = graph.get_state(config)
    with pytest.raises(TimeoutError):
        one.compact(graph, config)
    assert graph.get_state(config) == before


@pytest.mark.parametrize("strategy", ["window", "summary", "messages"])
def test_to_compact_again_changes_nothing_and_asks_nobody(run: Any, strategy: Any) -> None:
    one = governor(summing_up, budget=30_000, strategy=strategy)
    first = run(one, chat(20)[:-1], forced=True)
    assert first.plan.after < first.plan.before / 2
    one.model.asked.clear()  # type: ignore[union-attr]
    again = run(one, chat(20)[:-1], first.events, forced=True)
    assert (again.messages, again.events, again.plan.added) == (first.messages, first.events, ())
    assert one.model.asked == []  # type: ignore[union-attr]


@pytest.mark.parametrize("strategy", ["window", "summary", "messages"])
@pytest.mark.parametrize(
    "messages",
    [
        [],
        [SystemMessage("Be brief.", id="s")],
        [HumanMessage("hi", id="h"), AIMessage("hello", id="a")],
    ],
)
def test_to_compact_next_to_nothing_changes_nothing(
    run: Any, strategy: Any, messages: list[BaseMessage]
) -> None:
    assert run(governor(summing_up, strategy=strategy), messages, forced=True).events == ()


def test_to_compact_leaves_a_question_that_waits_for_its_answer(run: Any) -> None:
    assert (
        run(governor(summing_up, strategy="messages"), chat(20), forced=True).messages[-1].id
        == "latest"
    )


def test_to_compact_is_tried_though_a_summary_has_just_failed(run: Any) -> None:
    failed = run(governor(failing), chat(60))
    assert SUMMARY in texts(
        run(governor(summing_up), chat(60), failed.events, forced=True).messages
    )


def test_a_thread_that_there_is_not_is_not_made_by_compacting_or_restoring_it() -> None:
    one = governor(summing_up)
    graph, config = graph_with(one, []), {"configurable": {"thread_id": "nobody's"}}
    one.compact(graph, config)
    one.restore(graph, config)
    asyncio.run(one.acompact(graph, config))
    asyncio.run(one.arestore(graph, config))
    assert list(graph.get_state_history(config)) == []


def test_a_thread_that_waits_is_left_alone() -> None:
    one = governor(summing_up)
    graph, config = (
        graph_with(one, [], interrupt_before=["answer"]),
        {"configurable": {"thread_id": "t"}},
    )
    graph.invoke({"messages": chat(10)}, config)
    before = graph.get_state(config)
    for refused in (one.compact, one.restore):
        with pytest.raises(ConversationError, match="is unfinished"):
            refused(graph, config)
    assert graph.get_state(config) == before


def test_where_several_nodes_end_a_turn_one_is_named() -> None:
    builder = StateGraph(ContextState)
    for node in ("left", "right"):
        builder.add_node(node, lambda state: {})
        builder.add_edge(START, node)
    graph, config = (
        builder.compile(checkpointer=InMemorySaver()),
        {"configurable": {"thread_id": "t"}},
    )
    one = governor(summing_up, budget=30_000)
    graph.invoke({"messages": chat(20)}, config)
    with pytest.raises(InvalidUpdateError, match="as_node"):
        one.compact(graph, config)
    one.compact(graph, config, as_node="left")
    assert graph.get_state(config).values["context_events"]
    one.restore(graph, config, as_node="left")
    assert graph.get_state(config).next == ()


def test_a_graph_without_the_channel_is_told_so() -> None:
    builder = StateGraph(dict)
    builder.add_node("n", lambda state: {})
    builder.add_edge(START, "n")
    graph = builder.compile(checkpointer=InMemorySaver())
    with pytest.raises(ConversationError, match="derive its state from ContextState"):
        governor(summing_up).compact(graph, {"configurable": {"thread_id": "t"}})


# -- the waiting graph -----------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "expected"), [(summing_up, SUMMARY), (failing, "extractive")])
def test_the_waiting_graph_has_its_summary_written_by_the_governors_model(
    answer: Any, expected: str
) -> None:
    catalog = IntentCatalog.from_dict(
        {"intents": [{"id": "greet", "examples": ["hello"], "reply": "Hello to you."}]}
    )
    graph = build_waiting_graph(catalog, [], summarize_above=4, governor=governor(answer)).compile(
        checkpointer=InMemorySaver()
    )
    for turn in range(4):
        converse(graph, "hello", thread_id="sync", message_id=f"m{turn}")
        asyncio.run(aconverse(graph, "hello", thread_id="async", message_id=f"m{turn}"))
    for thread in ("sync", "async"):
        values = graph.get_state({"configurable": {"thread_id": thread}}).values
        assert expected in values["summary"]["text"]
        assert len(values["messages"]) == 8
