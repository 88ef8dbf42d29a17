"""Agents with `ContextMiddleware`: what their model is sent is governed, whatever stands beside it,
and what is stored stays whole.

The models are doubles that answer by a function; the agents, tools, savers and databases are real.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelRetryMiddleware,
)
from langchain.agents.middleware.types import ExtendedModelResponse
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from provider_rules import anthropic_problems, openai_problems
from pydantic import BaseModel, Field
from savers import Calls, Mode, Saver
from scripted_model import Answer, ScriptedModel, scripted

from langmem_ext import (
    ApproximateCounter,
    ContextGovernor,
    ContextMiddleware,
    ContextOverflow,
    ContextPolicy,
    DeltaSaver,
)

COUNTER = ApproximateCounter()
READ_TOOL = "read_tool_output"
SUMMARY = "The user asks numbered questions; each was answered."
CONFIG: Any = {"configurable": {"thread_id": "t"}}
WORDS = "word " * 40


def numbered(messages: Sequence[BaseMessage]) -> str:
    """An answer to what the user has asked last."""
    asked = next(message for message in reversed(messages) if isinstance(message, HumanMessage))
    return f"answer to {' '.join(asked.text.split()[:2])} {WORDS}"


def summing_up(messages: Sequence[BaseMessage]) -> str:
    return SUMMARY


def question(number: int, words: str = WORDS) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"question {number} {words}", id=f"q{number}")]}


def middleware(
    budget: int = 1_500, *, summariser: Answer = summing_up, **policy: Any
) -> ContextMiddleware:
    return ContextMiddleware(
        budget=budget,
        model=scripted(summariser, model_name="summariser"),
        policy=ContextPolicy(**{"verify": False, **policy}),
        counter=COUNTER,
    )


def asked_of(one: ContextMiddleware) -> list[list[BaseMessage]]:
    assert isinstance(one.model, ScriptedModel)
    return one.model.asked


def cost(messages: Sequence[BaseMessage], tools: Sequence[Any] = ()) -> int:
    return sum(map(COUNTER.count, messages)) + (COUNTER.count_tools(tools) if tools else 0)


def texts(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(message.text for message in messages)


def assert_governed(model: ScriptedModel, budget: int) -> None:
    """What was sent was valid and within the budget, system prompt and tools included."""
    for sent, tools in zip(model.asked, model.tools, strict=True):
        assert openai_problems(sent) == []
        assert anthropic_problems(sent) == []
        assert cost(sent, tools) <= budget


@pytest.fixture(params=["DeltaSaver", "InMemorySaver"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Saver]:
    if request.param == "InMemorySaver":
        yield InMemorySaver()
        return
    with DeltaSaver.open(str(tmp_path / "threads.db")) as opened:
        yield opened


@pytest.fixture
def run(mode: Mode) -> Callable[..., Any]:
    """Runs a graph for its final state, in each mode."""
    calls = Calls(mode)

    async def invoke(agent: Any, given: Any, config: Any = CONFIG) -> Any:
        return await calls.call(agent, "invoke", given, config)

    return invoke


# -- a long conversation ---------------------------------------------------------------------------


async def test_a_long_conversation_stays_in_the_budget_and_is_stored_whole(
    run: Any, saver: Saver
) -> None:
    model, one = scripted(numbered), middleware()
    agent = create_agent(
        model, [], system_prompt="Answer briefly.", middleware=[one], checkpointer=saver
    )
    compactions = []
    for number in range(24):
        before = len(asked_of(one))
        result = await run(agent, question(number))
        compactions.append(len(asked_of(one)) > before)
    assert_governed(model, 1_500)
    assert SUMMARY in texts(model.asked[-1])
    assert [message.text for message in result["messages"]] == [
        f"{said} {number} {WORDS}"
        for number in range(24)
        for said in ("question", "answer to question")
    ]
    assert "context_events" not in result, "what was decided is private"
    events = agent.get_state(CONFIG).values["context_events"]
    assert json.loads(json.dumps(events)) == events
    same = [
        later[: len(earlier)] == earlier
        for earlier, later in zip(model.asked, model.asked[1:], strict=False)
    ]
    assert same == [not compacted for compacted in compactions[1:]], (
        "between compactions a request begins with the one before"
    )
    assert 1 <= sum(compactions) <= 6


async def test_a_fork_inherits_what_was_decided(run: Any, saver: Saver) -> None:
    model, one = scripted(numbered), middleware()
    agent = create_agent(model, [], middleware=[one], checkpointer=saver)
    for number in range(12):
        await run(agent, question(number))
    assert SUMMARY in texts(model.asked[-1])
    past = next(
        state
        for state in agent.get_state_history(CONFIG)
        if not state.next and len(state.values["messages"]) == 22
    )
    summaries = len(asked_of(one))
    fork = agent.update_state(
        past.config, {"messages": [HumanMessage("another way", id="fork")]}, as_node="__start__"
    )
    result = await run(agent, None, fork)
    assert SUMMARY in texts(model.asked[-1])
    assert len(asked_of(one)) == summaries, "no summary is written twice"
    assert [message.id for message in result["messages"][:-1:2]] == [f"q{n}" for n in range(11)] + [
        "fork"
    ]


async def test_a_thread_of_an_agent_is_compacted_and_restored(
    mode: Mode, run: Any, saver: Saver
) -> None:
    model, calls = scripted(numbered), Calls(mode)
    agent = create_agent(model, [], middleware=[middleware(30_000)], checkpointer=saver)
    governor = ContextGovernor(
        budget=30_000,
        model=scripted(summing_up),
        policy=ContextPolicy(verify=False),
        counter=COUNTER,
    )
    for number in range(8):
        await run(agent, question(number))
    stored = agent.get_state(CONFIG).values["messages"]
    plan = await calls.call(governor, "compact", agent, CONFIG)
    assert plan.after < plan.before / 2
    await run(agent, question(8))
    assert SUMMARY in texts(model.asked[-1])
    assert agent.get_state(CONFIG).values["messages"][:16] == stored
    await calls.call(governor, "restore", agent, CONFIG)
    await run(agent, question(9))
    assert model.asked[-1] == agent.get_state(CONFIG).values["messages"][:-1]


# -- streams ---------------------------------------------------------------------------------------


async def test_a_summary_is_in_no_stream_and_its_progress_in_the_custom_one(mode: Mode) -> None:
    model, one = scripted(numbered), middleware()
    agent = create_agent(model, [], middleware=[one], checkpointer=InMemorySaver())
    seen: dict[str, list[Any]] = {"messages": [], "updates": [], "custom": [], "values": []}
    for number in range(12):
        for kind, part in await Calls(mode).collect(
            agent, "stream", question(number), CONFIG, stream_mode=list(seen)
        ):
            seen[kind].append(part)
    assert asked_of(one), "a summary was written"
    assert SUMMARY not in "".join(chunk.text for chunk, _ in seen["messages"])
    assert {metadata["langgraph_node"] for _, metadata in seen["messages"]} == {"model"}
    assert (
        "".join(chunk.text for chunk, _ in seen["messages"] if isinstance(chunk, AIMessage)).count(
            "answer to"
        )
        == 12
    )
    assert all(SUMMARY not in texts(update["model"]["messages"]) for update in seen["updates"])
    assert all(SUMMARY not in texts(state["messages"]) for state in seen["values"])
    assert [set(part) for part in seen["custom"]] == [{"type", "step"}] * len(asked_of(one))
    assert {part["step"] for part in seen["custom"]} == {"map", "reduce"}


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
async def test_typed_streams_do_not_show_a_summary_either() -> None:
    model, one = scripted(numbered), middleware()
    agent = create_agent(model, [], middleware=[one], checkpointer=InMemorySaver())
    shown = []
    for number in range(12):
        stream = agent.stream_events(question(number), CONFIG, version="v3")
        shown += [str(message.text) for message in stream.messages]
    assert asked_of(one), "a summary was written"
    assert len(shown) == 12
    assert all(text.startswith("answer to") for text in shown)


# -- tools -----------------------------------------------------------------------------------------


def calling(name: str, rounds: int, **args: Any) -> Answer:
    """Call a tool so many times in a turn, then say how often it was."""

    def answer(messages: Sequence[BaseMessage]) -> str | AIMessage:
        latest = max(
            at
            for at, message in enumerate(messages)
            if isinstance(message, HumanMessage) and not _is_ours(message)
        )
        done = sum(isinstance(message, AIMessage) for message in messages[latest:])
        if done >= rounds:
            return f"done after {done}"
        given = {key: value(done) if callable(value) else value for key, value in args.items()}
        return AIMessage(
            "",
            tool_calls=[
                {"name": name, "args": given, "id": f"call-{len(messages)}-{done}-{latest}"}
            ],
        )

    return answer


def _is_ours(message: BaseMessage) -> bool:
    return "langmem_ext" in message.additional_kwargs


@tool
def look_up(number: int) -> str:
    """Look a page up."""
    return f"page {number}\n" + "\n".join(f"line {line} of page {number}" for line in range(300))


async def test_old_outputs_are_offloaded_and_read_again(run: Any, saver: Saver) -> None:
    read: list[str] = []

    def answer(messages: Sequence[BaseMessage]) -> str | AIMessage:
        latest = messages[-1]
        if isinstance(latest, ToolMessage) and latest.name == READ_TOOL:
            read.append(latest.text)
            return "I have read it."
        if not isinstance(latest, ToolMessage) and "again" in latest.text:
            results = [message for message in messages if isinstance(message, ToolMessage)]
            previewed = next(message for message in results if READ_TOOL in message.text)
            assert "line 299 of page 0" in previewed.text, "the end is shown"
            assert "line 150 of page 0" not in previewed.text, "the middle is not"
            args = {"ref": previewed.id, "find": "line 150 "}
            return AIMessage("", tool_calls=[{"name": READ_TOOL, "args": args, "id": "again"}])
        return calling("look_up", 5, number=lambda done: done)(messages)

    model = scripted(answer)
    one = middleware(9_000, offload=True)
    agent = create_agent(model, [look_up], middleware=[one], checkpointer=saver)
    result = await run(agent, {"messages": [HumanMessage("look at five pages")]})
    results = [message for message in result["messages"] if isinstance(message, ToolMessage)]
    assert all(message.text.count("\n") == 300 for message in results), "it is stored whole"
    result = await run(agent, {"messages": [HumanMessage("what stood in the first again?")]})
    assert_governed(model, 9_000)
    assert [text for text in read if "line 150 of page 0" in text], read
    assert result["messages"][-1].text == "I have read it."


async def test_a_response_format_and_tools_are_a_part_of_the_budget(run: Any) -> None:
    def answer(messages: Sequence[BaseMessage]) -> AIMessage:
        call = {"name": "Verdict", "args": {"found": WORDS}, "id": f"verdict-{len(messages)}"}
        return AIMessage("", tool_calls=[call])

    @tool
    def long_winded(number: int) -> str:
        """Nothing."""
        return ""

    model = scripted(answer)
    agent = create_agent(
        model,
        [],
        middleware=[middleware(1_500)],
        response_format=ToolStrategy(Verdict),
        checkpointer=InMemorySaver(),
    )
    for number in range(14):
        result = await run(agent, question(number))
        assert result["structured_response"] == Verdict(found=WORDS)
    assert cost([], model.tools[0]) > 250
    assert_governed(model, 1_500)
    assert SUMMARY in texts(model.asked[-1])
    long_winded.description = "Explains itself at length. " * 300
    model = scripted(numbered)
    agent = create_agent(model, [long_winded], middleware=[middleware(900)])
    with pytest.raises(ContextOverflow, match="the schemas of the tools"):
        await run(agent, question(0))
    assert model.asked == []


async def test_a_call_that_repeats_itself_is_told_at_three_and_stopped_at_six(run: Any) -> None:
    model = scripted(calling("look_up", 40, number=7))
    agent = create_agent(
        model, [look_up], middleware=[middleware(200_000)], checkpointer=InMemorySaver()
    )
    result = await run(agent, question(0))
    results = [message for message in result["messages"] if isinstance(message, ToolMessage)]
    assert len(results) == 6
    assert result["messages"][-1].text.startswith("Stopped: ")
    told = [sum(_is_ours(message) for message in sent) for sent in model.asked]
    assert told == [0, 0, 0, 1, 2, 3]
    assert not any(map(_is_ours, result["messages"])), "what the model is told is not stored"
    again = await run(agent, {"messages": [HumanMessage("try again")]})
    assert (
        len([message for message in again["messages"] if isinstance(message, ToolMessage)]) == 12
    ), "a new turn begins anew"


# -- a response format -----------------------------------------------------------------------------


class Verdict(BaseModel):
    """What was found."""

    found: str = Field(description="What was found, in so many words. " * 40)


# -- beside others ---------------------------------------------------------------------------------


async def test_what_another_middleware_retries_is_chosen_anew(run: Any) -> None:
    broken = iter([False] * 8 + [True, True] + [False] * 20)

    def answer(messages: Sequence[BaseMessage]) -> str:
        if next(broken):
            raise ConnectionError("the line went dead")
        return numbered(messages)

    model, one = scripted(answer), middleware()
    retry = ModelRetryMiddleware(max_retries=3, initial_delay=0, jitter=False)
    agent = create_agent(model, [], middleware=[retry, one], checkpointer=InMemorySaver())
    for number in range(14):
        result = await run(agent, question(number))
    assert len(result["messages"]) == 28
    assert model.asked[8] == model.asked[9] == model.asked[10]
    assert_governed(model, 1_500)


async def test_a_person_approves_a_call_in_a_conversation_that_was_cut(
    run: Any, saver: Saver
) -> None:
    def answer(messages: Sequence[BaseMessage]) -> str | AIMessage:
        return (
            calling("look_up", 1, number=3)(messages)
            if "look" in messages[-1].text or "page" in messages[-1].text
            else numbered(messages)
        )

    model = scripted(answer)
    agent = create_agent(
        model,
        [look_up],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"look_up": True}), middleware(4_000)],
        checkpointer=saver,
    )
    for number in range(34):
        await run(agent, question(number))
    assert SUMMARY in texts(model.asked[-1])
    waiting = await run(agent, {"messages": [HumanMessage("look at page 3")]})
    assert waiting["__interrupt__"]
    result = await run(agent, Command(resume={"decisions": [{"type": "approve"}]}))
    assert result["messages"][-1].text == "done after 1"
    assert len(result["messages"]) == 72
    assert_governed(model, 4_000)


class Noting(AgentMiddleware[Any, Any, Any]):
    """Adds to the system prompt, and writes to the state by the response."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return ExtendedModelResponse(
            handler(request), Command(update={"messages": [HumanMessage("noted", id="noted")]})
        )

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return ExtendedModelResponse(
            await handler(request),
            Command(update={"messages": [HumanMessage("noted", id="noted")]}),
        )


@pytest.mark.parametrize("inside", [True, False])
async def test_what_another_middleware_writes_to_the_state_is_written_too(
    run: Any, inside: bool
) -> None:
    model, one = scripted(numbered), middleware(900)
    agent = create_agent(
        model,
        [],
        middleware=[one, Noting()] if inside else [Noting(), one],
        checkpointer=InMemorySaver(),
    )
    for number in range(10):
        result = await run(agent, question(number))
    assert "noted" in [message.id for message in result["messages"]]
    assert SUMMARY in texts(model.asked[-1])
    assert agent.get_state(CONFIG).values["context_events"]


async def test_an_agent_and_its_sub_agent_share_the_middleware_and_no_history(mode: Mode) -> None:
    shared = middleware(1_500)
    inner_model = scripted(numbered)
    inner = create_agent(
        inner_model, [], middleware=[shared], name="inner", checkpointer=InMemorySaver()
    )
    calls, config = Calls(mode), {"configurable": {"thread_id": "inner"}}

    @tool
    def delegate(task: str) -> str:
        """Have it done."""
        return str(inner.invoke({"messages": [HumanMessage(task)]}, config)["messages"][-1].text)

    model = scripted(calling("delegate", 1, task=lambda done: f"look into it {WORDS}"))
    agent = create_agent(model, [delegate], middleware=[shared], checkpointer=InMemorySaver())
    parts = []
    for number in range(14):
        parts += await calls.collect(
            agent, "stream", question(number), CONFIG, stream_mode="messages", subgraphs=True
        )
    assert_governed(model, 1_500)
    assert_governed(inner_model, 1_500)
    assert SUMMARY in texts(model.asked[-1])
    assert SUMMARY in texts(inner_model.asked[-1])
    assert all(SUMMARY not in part[-1][0].text for part in parts)
    assert "question" not in "".join(
        message.text for sent in inner_model.asked for message in sent if message.id in {"q0", "q1"}
    )
    assert len(inner.get_state(config).values["messages"]) == 28
    assert len(agent.get_state(CONFIG).values["messages"]) == 56


@pytest.mark.interop
async def test_deep_agents_work_beside_it(run: Any) -> None:
    from deepagents import create_deep_agent  # noqa: PLC0415 - not needed by the others

    model, one = (
        scripted(calling("write_todos", 1, todos=[{"content": "answer", "status": "pending"}])),
        middleware(12_000),
    )
    agent = create_deep_agent(model, middleware=[one], checkpointer=InMemorySaver())
    for number in range(10):
        result = await run(agent, question(number, "word " * 400))
    assert_governed(model, 12_000)
    assert SUMMARY in texts(model.asked[-1])
    assert result["messages"][-1].text == "done after 1"


# -- counts ----------------------------------------------------------------------------------------


async def test_what_the_provider_counts_puts_the_next_requests_right(run: Any) -> None:
    """The model's tokenizer makes twice as many tokens as ours: after the first answer no request
    has more than the budget of them.
    """

    def answer(messages: Sequence[BaseMessage]) -> AIMessage:
        tokens = 2 * cost(messages)
        used: Any = {"input_tokens": tokens, "output_tokens": 50, "total_tokens": tokens + 50}
        return AIMessage(numbered(messages), usage_metadata=used)

    model = scripted(answer)
    agent = create_agent(model, [], middleware=[middleware(2_000)], checkpointer=InMemorySaver())
    for number in range(24):
        await run(agent, question(number))
    assert 1_400 < max(2 * cost(sent) for sent in model.asked) <= 2_000
