"""A model's summaries: extended, checked, and nothing is lost if they fail.

The model is a double that gives scripted answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.graph import START, StateGraph
from scripted_model import Answer, ScriptedModel, scripted

from langmem_ext import (
    ApproximateCounter,
    ContextGovernor,
    ContextMiddleware,
    ContextPolicy,
    ContextState,
    ConversationError,
    IntentCatalog,
    InvalidInput,
    SummaryFailed,
    aconverse,
    build_waiting_graph,
    converse,
    govern,
)

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


def governor(answer: Answer, budget: int = 3_000, **policy: Any) -> ContextGovernor:
    return ContextGovernor(
        budget=budget,
        model=scripted(answer),
        policy=ContextPolicy(**{"verify": False, **policy}),
        counter=ApproximateCounter(),
    )


def asked_of(one: ContextGovernor) -> list[list[BaseMessage]]:
    """What the governor's model was asked."""
    assert isinstance(one.model, ScriptedModel)
    return one.model.asked


def read_by(one: ContextGovernor) -> str:
    """All that the governor's model was asked to read."""
    return texts([message for asked in asked_of(one) for message in asked])


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Any:
    def govern(one: ContextGovernor, *given: Any, **named: Any) -> Any:
        if request.param == "sync":
            return one.govern(*given, **named)
        return asyncio.run(one.agovern(*given, **named))

    return govern


def test_a_model_writes_what_stands_for_what_is_left_out_and_reads_all_of_it(run: Any) -> None:
    one = governor(summing_up)
    governed = run(one, chat(60))
    [cut] = governed.events
    assert cut["by"] == "model"
    assert f"[Summary of {cut['dropped']} earlier messages]\n{SUMMARY}" in texts(governed.messages)
    assert cut["covers"][0] == "a0", "the first task stays, its answer is summed up"
    one = governor(summing_up, budget=1_500)
    left = run(one, chat(200)).events[-1]["covers"]
    assert len(left) > 300
    read = read_by(one)
    assert all(f"question {key[1:]} " in read for key in left if key.startswith("q"))


def texts(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(message.text for message in messages)


def test_a_summary_is_carried_on(run: Any) -> None:
    one = governor(summing_up)
    first = run(one, chat(60))
    asked_of(one).clear()
    second = run(one, chat(100), first.events)
    assert SUMMARY in read_by(one)
    assert "question 3 " not in read_by(one), "what the first summary covers is not read again"
    assert second.events[-1]["dropped"] > first.events[-1]["dropped"]


def test_without_a_summary_a_line_says_that_messages_are_missing_and_the_log_says_why(
    run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for answer, why in ((failing, "TimeoutError;"), (lambda messages: "", "the model's answer is")):
        caplog.clear()
        governed = run(governor(answer), chat(60))
        assert [event["kind"] for event in governed.events] == ["failed", "cut"]
        assert "[Earlier conversation trimmed — " in texts(governed.messages)
        [record] = caplog.records
        assert record.getMessage().startswith(f"no summary was written: {why}")
    with pytest.raises(TimeoutError):
        run(governor(failing, on_failure="raise"), chat(60))
    with pytest.raises(SummaryFailed):
        run(governor(lambda messages: " ", on_failure="raise"), chat(60))


def test_without_a_summary_messages_are_kept_where_they_fit(run: Any) -> None:
    one = governor(failing, budget=30_000, trigger=("tokens", 2_000), on_failure="keep", cooldown=8)
    messages, events = chat(60), ()
    for turn in range(6):
        governed = run(one, messages, events)
        assert governed.messages == messages
        added = [AIMessage("so", id=f"b{turn}"), HumanMessage("and", id=f"c{turn}")]
        messages, events = [*messages, *added], governed.events
    assert len(asked_of(one)) == 2
    assert [event["kind"] for event in events] == ["failed"], "of two failures the newer one counts"


def test_what_a_failed_summary_left_out_is_read_by_the_next_one(run: Any) -> None:
    failed = run(governor(failing, cooldown=0), chat(60))
    one = governor(summing_up, cooldown=0)
    run(one, chat(100), failed.events)
    read = read_by(one)
    assert all(f"question {turn} " in read for turn in range(1, 80))


def test_what_is_known_does_not_become_a_part_of_the_summary(run: Any) -> None:
    said = "Known so far: the order is O-17.\n\nKnown so far:\n- it was sent on Tuesday."
    one = governor(lambda messages: said)
    first = run(one, chat(60), params={"city": "Ulm"})
    asked_of(one).clear()
    run(one, chat(100), first.events, params={"city": "Bonn"})
    assert "it was sent on Tuesday" in read_by(one)
    assert "Ulm" not in read_by(one)


def test_a_governor_is_made_with_a_budget_and_a_policy_or_not_at_all() -> None:
    with pytest.raises(InvalidInput, match="pass `budget`, or a model whose profile"):
        ContextGovernor()
    for budget in ("1000", -1):
        with pytest.raises(InvalidInput, match="budget must be a number of tokens"):
            ContextGovernor(budget=budget)  # type: ignore[arg-type]
    policy: Any = "summary"
    for use in (ContextGovernor, ContextMiddleware, lambda **given: govern([], **given)):
        with pytest.raises(InvalidInput, match="policy must be a ContextPolicy"):
            use(budget=1_000, policy=policy)


async def test_a_config_or_a_graph_that_has_not_what_is_needed_is_refused() -> None:
    builder = StateGraph(ContextState).add_node("rest", lambda state: {}).add_edge(START, "rest")
    graph = builder.compile(checkpointer=InMemorySaver())
    governor = ContextGovernor(budget=1_000)
    for use in (governor.compact, governor.restore):
        with pytest.raises(InvalidInput, match="has no thread_id"):
            use(graph, {})
    for ause in (governor.acompact, governor.arestore):
        with pytest.raises(InvalidInput, match="has no thread_id"):
            await ause(graph, {"configurable": {}})
    plain: Any = StateGraph(dict).add_node("n", lambda state: {}).add_edge(START, "n")
    with pytest.raises(ConversationError, match="derive its state from ContextState"):
        governor.compact(
            plain.compile(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "t"}}
        )


def test_after_a_failure_no_summary_is_tried_for_a_while(run: Any) -> None:
    one = governor(failing, cooldown=30)
    messages, asked = chat(60), []
    events = run(one, messages).events
    for turn in range(20):
        messages += [
            AIMessage("so " * 200, id=f"b{turn}"),
            HumanMessage("and " * 200, id=f"c{turn}"),
        ]
        events = run(one, messages, events).events
        asked.append(len(asked_of(one)))
    assert asked[0] == asked[9] < asked[-1]


def test_a_summary_that_saves_too_little_is_not_used(run: Any) -> None:
    long: Answer = lambda messages: "much more was said " * 60  # noqa: E731
    governed = run(governor(long, trigger=("messages", 6), least_saved=0.6), chat(4))
    assert "much more was said" not in texts(governed.messages)
    assert [event["kind"] for event in governed.events] == ["failed", "cut"]


def test_a_preview_asks_no_model() -> None:
    one = governor(failing)
    assert "left out" in str(one.preview(chat(60)))
    assert asked_of(one) == []


@pytest.mark.parametrize("strategy", ["window", "summary", "messages"])
def test_to_compact_next_to_nothing_or_again_changes_nothing(run: Any, strategy: Any) -> None:
    one = governor(summing_up, budget=30_000, strategy=strategy)
    nothing: list[list[BaseMessage]] = [
        [],
        [SystemMessage("Be brief.", id="s")],
        [HumanMessage("hi", id="h"), AIMessage("hello", id="a")],
    ]
    for messages in nothing:
        assert run(one, messages, forced=True).events == ()
    first = run(one, chat(20)[:-1], forced=True)
    assert first.plan.after < first.plan.before / 2
    asked_of(one).clear()
    again = run(one, chat(20)[:-1], first.events, forced=True)
    assert (again.messages, again.events, again.plan.added) == (first.messages, first.events, ())
    assert asked_of(one) == []
    assert run(one, chat(20), forced=True).messages[-1].id == "latest", "a question that waits"
    failed = run(governor(failing), chat(60))
    if strategy == "summary":
        forced = run(one, chat(60), failed.events, forced=True)
        assert SUMMARY in texts(forced.messages), "though a summary has just failed"


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


def test_a_node_sends_less_stores_everything_and_says_when_a_turn_goes_round_in_circles() -> None:
    sent: list[list[BaseMessage]] = []
    one = ContextGovernor(budget=1_000, counter=ApproximateCounter())
    graph, config = graph_with(one, sent), {"configurable": {"thread_id": "t"}}

    def ask(turn: int) -> dict[str, Any]:
        return {"messages": [HumanMessage(f"question {turn} " + "word " * 40, id=f"q{turn}")]}

    for turn in range(20):
        graph.invoke(ask(turn), config)
    state = graph.get_state(config).values
    assert len(state["messages"]) == 40
    assert "llm_input_messages" not in state
    assert len(sent[-1]) < 15
    assert sent[-1][0].id == "q0"
    assert asyncio.run(graph.ainvoke(ask(20), config))["messages"][-2].id == "q20"
    said: list[BaseMessage] = [HumanMessage("look", id="q")]
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


def test_a_message_that_has_changed_under_its_id_is_counted_anew() -> None:
    one = ContextGovernor(
        budget=1_000, counter=ApproximateCounter(), policy=ContextPolicy(strategy="window")
    )
    messages = chat(5)
    assert one.govern(messages).events == ()
    messages[3] = messages[3].model_copy(update={"content": "and much more to say " * 300})
    governed = one.govern(messages)
    assert governed.events
    assert sum(map(ApproximateCounter().count, governed.messages)) <= 1_000
