"""An agent whose models are asked over HTTP: however a call fails, nothing is lost, and the thread
goes on.

The server is real, and so is the client (langchain-openai); the answers are scripted.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import openai
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openai_server import OVERFLOW, OpenAIServer, Reply
from patience import PATIENCE_S
from savers import Calls, Mode

from langmem_ext import ContextMiddleware, ContextOverflow, ContextPolicy, DeltaSaver

pytestmark = pytest.mark.interop

STEPS = (0.75, 0.5, 0.25)
"""What a request may cost of the first that was refused, each time that one is."""

CONFIG: Any = {"configurable": {"thread_id": "t"}}
SUMMARY = "The user asks numbered questions; each was answered."
WORDS = "word " * 120
BUDGET = 1_000
SLOW = "no answer in time"

FAILURES = {
    "a broken server": Reply(status=500),
    SLOW: Reply(fails="hang"),
    "a closed connection": Reply(fails="disconnect"),
    "an answer without choices": Reply(fails="no choices"),
}
STREAMED_FAILURES = {
    **FAILURES,
    "a stream that breaks off": Reply(fails="broken stream"),
    "an error in a stream": Reply(fails="error in stream"),
}
NO_SUMMARIES = {"nothing": Reply("")}


def numbered(messages: Sequence[BaseMessage]) -> Reply:
    asked = next(message for message in reversed(messages) if isinstance(message, HumanMessage))
    return Reply(f"answer to {' '.join(asked.text.split()[:2])} {WORDS}".strip())


def question(number: int, words: str = WORDS) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"question {number} {words}", id=f"q{number}")]}


def talk(turns: int) -> dict[str, Any]:
    """A conversation of so many turns whose last question waits for its answer."""
    before = [
        message
        for number in range(turns - 1)
        for message in (
            question(number)["messages"][0],
            AIMessage(f"answer to question {number} {WORDS}", id=f"a{number}"),
        )
    ]
    return {"messages": [*before, *question(turns - 1)["messages"]]}


@pytest.fixture(scope="module", autouse=True)
def only_what_is_new_is_collected() -> Iterator[None]:
    """All that is imported is left out of each collection, which would take half a second."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def collected_by_this_thread() -> Iterator[None]:
    """Have no other thread collect what openai's client leaves.

    Where an event of a stream cannot be read, the client closes the response, but drops the
    iterators over it unclosed. If another thread collects them while the event loop closes them,
    CPython warns that an async generator is already executing.
    """
    gc.disable()
    yield
    gc.collect()
    gc.enable()


@pytest.fixture(scope="module")
def running() -> Iterator[OpenAIServer]:
    with OpenAIServer() as one:
        yield one


@pytest.fixture
def server(running: OpenAIServer) -> OpenAIServer:
    running.begin({"main": numbered, "summariser": lambda messages: Reply(SUMMARY)})
    return running


@pytest.fixture
def saver() -> Iterator[DeltaSaver]:
    with DeltaSaver.open(":memory:") as opened:
        yield opened


def client(server: OpenAIServer, name: str, timeout: float) -> ChatOpenAI:
    return ChatOpenAI(
        **{
            "model": name,
            "base_url": server.url,
            "api_key": "none",
            "timeout": timeout,
            "max_retries": 0,
        }
    )


@pytest.fixture
def make(server: OpenAIServer, saver: DeltaSaver) -> Callable[..., Any]:
    """Makes an agent with the middleware; both of its models are asked over HTTP."""

    def agent(
        *,
        budget: int = BUDGET,
        tools: Sequence[Any] = (),
        no_summary: str = "",
        no_answer: str = "",
        **policy: Any,
    ) -> Any:
        summariser = client(server, "summariser", 1.0 if no_summary == SLOW else PATIENCE_S)
        one = ContextMiddleware(
            budget=budget, model=summariser, policy=ContextPolicy(**{"verify": False, **policy})
        )
        main = client(
            server, "main", 4.0 if no_answer == SLOW else PATIENCE_S
        )  # long enough for what it does answer
        return create_agent(
            main, list(tools), system_prompt="Answer briefly.", middleware=[one], checkpointer=saver
        )

    return agent


@pytest.fixture
def run(mode: Mode) -> Callable[..., Any]:
    async def invoke(agent: Any, given: Any) -> Any:
        return await Calls(mode).call(agent, "invoke", given, CONFIG)

    return invoke


def stored(agent: Any) -> list[str]:
    return [message.text.strip() for message in agent.get_state(CONFIG).values["messages"]]


def said(turns: int) -> list[str]:
    """What is stored of so many turns."""
    return [
        text.strip()
        for number in range(turns)
        for text in (f"question {number} {WORDS}", f"answer to question {number} {WORDS}")
    ]


def kinds(agent: Any) -> list[str]:
    return [event["kind"] for event in agent.get_state(CONFIG).values.get("context_events") or []]


def text_of(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(message.text for message in messages)


def assert_taken(server: OpenAIServer) -> None:
    """Nothing was sent that the server refused."""
    assert [one.refused for one in server.asked if one.refused] == []


# -- the model that summarises ---------------------------------------------------------------------


@pytest.mark.parametrize("failure", [*FAILURES, *NO_SUMMARIES, OVERFLOW])
async def test_without_a_summary_a_line_stands_there_and_the_turn_goes_on(
    server: OpenAIServer, make: Any, run: Any, failure: str
) -> None:
    agent = make(no_summary=failure, cooldown=100)
    failing = {**FAILURES, **NO_SUMMARIES, OVERFLOW: Reply(status=400, code=OVERFLOW)}[failure]
    server.answers["summariser"] = lambda messages: failing
    await run(agent, talk(5))
    await run(agent, question(5))
    assert stored(agent) == said(6)
    assert kinds(agent)[0] == "failed"
    assert "[Earlier conversation trimmed — " in text_of(server.to("main")[-1].messages)
    assert max(one.tokens for one in server.to("main")) <= BUDGET
    assert_taken(server)


async def test_a_model_with_a_smaller_window_sums_up_smaller_parts(
    server: OpenAIServer, make: Any, run: Any
) -> None:
    server.windows["summariser"] = 900
    agent = make(budget=6_000)
    await run(agent, talk(30))
    assert "failed" not in kinds(agent)
    sent = text_of(server.to("main")[-1].messages)
    assert SUMMARY in sent
    read = text_of(
        [message for one in server.to("summariser") if not one.refused for message in one.messages]
    )
    left_out = [number for number in range(29) if f"answer to question {number} " not in sent]
    assert left_out
    assert all(f"answer to question {number} " in read for number in left_out), (
        "nothing is left out unread"
    )


# -- the agent's own model -------------------------------------------------------------------------


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_turn_whose_model_fails_goes_on_where_it_was(
    server: OpenAIServer, make: Any, run: Any, failure: str
) -> None:
    agent = make(no_answer=failure)
    await run(agent, talk(4))
    decided, summaries = kinds(agent), 0
    server.script["main"] = deque([FAILURES[failure]] * 2)
    for given in (question(4), None):
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the client makes of it
            await run(agent, given)
        assert stored(agent) == said(5)[:-1]
        assert kinds(agent) == decided == []
        summaries = summaries or len(server.to("summariser"))
    await run(agent, None)
    await run(agent, question(5))
    assert stored(agent) == said(6)
    assert kinds(agent) == ["cut"]
    assert len(server.to("summariser")) == summaries, (
        "a summary that was written is not written again"
    )
    assert_taken(server)


@pytest.mark.parametrize("failure", STREAMED_FAILURES)
async def test_half_an_answer_is_not_stored(
    server: OpenAIServer, make: Any, mode: Mode, failure: str
) -> None:
    agent, calls = make(no_answer=failure), Calls(mode)
    await calls.collect(agent, "stream", question(0), CONFIG, stream_mode="messages")
    server.script["main"].append(STREAMED_FAILURES[failure])
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the client makes of it
        await calls.collect(agent, "stream", question(1), CONFIG, stream_mode="messages")
    assert stored(agent) == said(2)[:-1]
    await calls.collect(agent, "stream", None, CONFIG, stream_mode="messages")
    assert stored(agent) == said(2)


# -- requests that are too long --------------------------------------------------------------------


async def test_a_window_smaller_than_the_budget_is_found_out_and_remembered(
    server: OpenAIServer, make: Any, run: Any
) -> None:
    server.window = 2_000
    agent = make(budget=50_000)
    await run(agent, talk(6))
    for number in range(6, 16):
        await run(agent, question(number))
    assert stored(agent) == said(16)
    refused = [one for one in server.asked if one.refused]
    assert {one.refused for one in refused} == {OVERFLOW}
    assert len(refused) == 1, "once it is known how long a request may be, none is longer"
    assert max(one.tokens for one in server.to("main")[-8:]) > 0.6 * server.window


async def test_a_tool_output_larger_than_the_window_is_cut_down(
    server: OpenAIServer, make: Any, run: Any
) -> None:
    @tool
    def read() -> str:
        """Read it all."""
        return "\n".join(f"line {number} of the page" for number in range(2_000))

    def answer(messages: Sequence[BaseMessage]) -> Reply:
        return (
            Reply("I have read it.")
            if isinstance(messages[-1], ToolMessage)
            else Reply(calls=[("read", {})])
        )

    server.window, server.answers["main"] = 4_000, answer
    agent = make(budget=128_000, tools=[read])
    result = await run(agent, question(0))
    assert result["messages"][-1].text == "I have read it."
    assert result["messages"][-2].text.endswith("line 1999 of the page")
    assert "[…truncated, " in server.to("main")[-1].messages[-1].text
    assert [one.refused for one in server.to("main")] == ["", OVERFLOW, ""]


async def test_a_provider_that_does_not_say_how_much_it_takes_is_sent_less_each_time(
    server: OpenAIServer, make: Any, run: Any
) -> None:
    agent = make(budget=50_000)
    await run(agent, talk(12))
    server.script["main"] = deque([Reply("too long", status=400, code=OVERFLOW)] * len(STEPS))
    before, summaries = len(server.to("main")), len(server.to("summariser"))
    await run(agent, question(12))
    sizes = [one.tokens for one in server.to("main")[before:]]
    assert len(sizes) == len(STEPS) + 1
    assert all(size <= share * sizes[0] for share, size in zip(STEPS, sizes[1:], strict=True))
    assert stored(agent) == said(13)
    read = [
        message.text.count(f"answer to question 1 {WORDS[:20]}")
        for one in server.to("summariser")[summaries:]
        for message in one.messages
    ]
    assert sum(read) == 1, "what was summed up for a request that was refused is not read again"


async def test_at_last_the_providers_own_error_is_raised_and_nothing_is_lost(
    server: OpenAIServer, make: Any, run: Any
) -> None:
    agent = make(budget=50_000)
    await run(agent, talk(12))
    server.script["main"] = deque([Reply("too long", status=400, code=OVERFLOW)] * (len(STEPS) + 1))
    with pytest.raises(openai.BadRequestError) as raised:
        await run(agent, question(12))
    assert raised.value.code == OVERFLOW
    assert stored(agent) == said(13)[:-1]
    assert kinds(agent) == []
    await run(agent, None)
    assert stored(agent) == said(13)


async def test_what_can_not_be_made_as_small_as_the_provider_wants_says_what_is_large(
    server: OpenAIServer, make: Any, run: Any
) -> None:
    server.window = 100
    agent = make(budget=50_000)
    with pytest.raises(ContextOverflow, match="the human message q0") as raised:
        await run(agent, question(0, "word " * 400))
    assert isinstance(raised.value.__cause__, openai.BadRequestError)
    assert stored(agent) == [f"question 0 {'word ' * 400}".strip()]
    server.window = 10_000
    await run(agent, None)
    assert len(stored(agent)) == 2
