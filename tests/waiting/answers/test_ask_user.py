"""Promise: an agent asks once for what its calls lack, wherever its process dies."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from asking import CONFIG
from desk import KILLED, kill_at
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import Field
from savers import Calls, Mode
from scripted_model import scripted

import langmem_ext
from langmem_ext import (
    AskUserMiddleware,
    ContextMiddleware,
    DeltaSaver,
    InvalidInput,
    Turn,
    converse,
    examine,
)

NOW = datetime(2026, 5, 1, 12)


People = Annotated[int, Field(ge=1, le=12, description="number of people")]


@tool
def check_order(
    order_id: Annotated[
        str, Field(pattern=r"^O-\d+$", description="order number", examples=["O-12345"])
    ],
) -> str:
    """Find out where an order is."""
    return f"{order_id} is on its way"


@tool
def book_table(
    people: People, day: str, call_id: Annotated[str, InjectedToolCallId], note: str = ""
) -> str:
    """Book a table."""
    return f"table for {people} on {day}"


@tool
def refund(
    amount: Annotated[float, Field(gt=0, le=500, description="amount of money")],
    method: Literal["card", "voucher"],
) -> str:
    """Give money back."""
    return f"refunded {amount} by {method}"


@tool
def log_in(password: str) -> str:
    """Log in."""
    return "logged in"


TOOLS = [check_order, book_table, refund, log_in]


def calling(*calls: tuple[str, dict[str, Any]]) -> Any:
    """A double that makes these calls for a user's message, and then says what they returned."""

    def answer(messages: Sequence[BaseMessage]) -> str | AIMessage:
        if isinstance(messages[-1], HumanMessage):
            return AIMessage(
                "",
                tool_calls=[
                    {"name": name, "args": args, "id": f"c{place}"}
                    for place, (name, args) in enumerate(calls)
                ],
            )
        newest = max(
            place for place, message in enumerate(messages) if isinstance(message, HumanMessage)
        )
        return "; ".join(message.text for message in messages[newest:] if message.type == "tool")

    return scripted(answer)


def agent(
    saver: Any, *calls: tuple[str, dict[str, Any]], middleware: Sequence[Any] = (), **given: Any
) -> Any:
    return create_agent(
        calling(*calls),
        TOOLS,
        middleware=[*middleware, AskUserMiddleware(TOOLS, **given)],
        checkpointer=saver,
    )


def say(graph: Any, text: str = "", **given: Any) -> Turn:
    return converse(graph, text, thread_id="t", now=given.pop("now", NOW), **given)


def made(graph: Any) -> list[tuple[str, dict[str, Any]]]:
    """The calls that the agent's last message with calls makes."""
    messages = graph.get_state(CONFIG).values["messages"]
    last = next(
        message
        for message in reversed(messages)
        if isinstance(message, AIMessage) and message.tool_calls
    )
    return [(call["name"], call["args"]) for call in last.tool_calls]


# -- what is asked, and what answers it ----------------------------------------------------------


def test_a_missing_argument_is_asked_for_and_the_call_is_made_with_it() -> None:
    graph = agent(InMemorySaver(), ("check_order", {}))
    turn = say(graph, "where is my order?")
    assert (turn.waiting_for, turn.attempt, turn.reply) == (
        "order_id",
        1,
        "What is the order number?",
    )
    assert say(graph, "it is O-2").reply == "O-2 is on its way"


@pytest.mark.parametrize(("said", "order"), [("O-6", "O-6"), ("it's A1, please", "A1"), ("7", "7")])
def test_a_short_id_is_taken_where_the_schema_shows_no_form(said: str, order: str) -> None:
    @tool
    def cancel_order(order_id: str) -> str:
        """Cancel an order."""
        return f"{order_id} is cancelled"

    middleware = [AskUserMiddleware([cancel_order])]
    model, saver = calling(("cancel_order", {})), InMemorySaver()
    graph = create_agent(model, [cancel_order], middleware=middleware, checkpointer=saver)
    assert say(graph, "cancel my order").reply == "What is the order id?"
    assert say(graph, said).reply == f"{order} is cancelled"


@pytest.mark.parametrize("args", [{"order_id": ""}, {"order_id": None}, {"order_id": "12"}])
def test_an_argument_that_is_empty_or_refused_is_asked_for_too(args: dict[str, Any]) -> None:
    graph = agent(InMemorySaver(), ("check_order", args))
    turn = say(graph, "where is my order?")
    assert turn.reply.endswith("What is the order number?")
    assert say(graph, "O-2").reply == "O-2 is on its way"


def test_complete_calls_and_tools_that_nobody_knows_are_left_alone() -> None:
    assert (
        say(agent(InMemorySaver(), ("check_order", {"order_id": "O-1"})), "go").reply
        == "O-1 is on its way"
    )
    graph = create_agent(
        calling(("check_order", {})),
        TOOLS,
        middleware=[AskUserMiddleware([refund])],
        checkpointer=InMemorySaver(),
    )
    assert "order_id" in say(graph, "go").reply, "the tool says what it lacks"


PARALLEL = (("check_order", {}), ("book_table", {"people": 40}), ("refund", {"amount": 20}))
ASKED = [
    "I need some details:",
    "- What is the order number?",
    "- It should be less than or equal to 12. What is the number of people?",
    "- What is the day?",
    "- What is the method?",
]


def test_parallel_calls_ask_one_question_and_one_sentence_answers_it() -> None:
    graph = agent(InMemorySaver(), *PARALLEL)
    turn = say(graph, "go")
    assert turn.reply.splitlines() == ASKED
    assert say(graph, "order O-2, 4 people tomorrow, and the money by voucher").interrupts == ()
    assert made(graph) == [
        ("check_order", {"order_id": "O-2"}),
        ("book_table", {"people": 4, "day": "2026-05-02"}),
        ("refund", {"amount": 20, "method": "voucher"}),
    ]


def test_what_is_still_missing_is_asked_again_without_what_was_given() -> None:
    graph = agent(InMemorySaver(), *PARALLEL)
    say(graph, "go")
    turn = say(graph, "order O-2, by card")
    assert turn.reply.splitlines() == [
        "I need some details:",
        "- What is the number of people?",
        "- What is the day?",
    ]
    assert turn.attempt == 2
    turn = say(graph, "3 people")
    assert turn.reply == "What is the day?"
    assert say(
        graph, "on 3 may"
    ).reply == "O-2 is on its way; table for 3 on 2026-05-03; refunded 20 by card".replace(
        "refunded 20 ", "refunded 20.0 "
    )


def test_two_calls_of_one_tool_are_told_apart_and_one_parameter_of_two_tools_is_asked_once() -> (
    None
):
    @tool
    def cancel_order(order_id: str) -> str:
        """Cancel an order."""
        return f"{order_id} is cancelled"

    tools = [check_order, cancel_order]
    model = calling(("check_order", {}), ("check_order", {}), ("cancel_order", {}))
    graph = create_agent(
        model, tools, middleware=[AskUserMiddleware(tools)], checkpointer=InMemorySaver()
    )
    [asked] = say(graph, "go").interrupts
    assert [*asked.value["response_schema"]["properties"]] == ["order_id", "order_id_2"]
    reply = say(graph, resume={"order_id": "O-1", "order_id_2": "O-2"}).reply
    assert reply == "O-1 is on its way; O-2 is on its way; O-1 is cancelled"


@pytest.mark.parametrize(
    "resume",
    [
        {"order_id": "O-2"},
        {"action": "accept", "content": {"order_id": "O-2"}},
        {
            "decisions": [
                {
                    "type": "edit",
                    "edited_action": {"name": "check_order", "args": {"order_id": "O-2"}},
                }
            ]
        },
        [{"type": "response", "args": "O-2"}],
    ],
)
def test_any_clients_answer_will_do(resume: Any) -> None:
    graph = agent(InMemorySaver(), ("check_order", {}))
    say(graph, "go")
    with pytest.raises(InvalidInput, match="no answer to the question for 'order_id'"):
        say(graph, resume={"foo": 1})
    assert say(graph, resume=resume).reply == "O-2 is on its way"
    say(graph, "go")
    graph.invoke(Command(resume=resume), CONFIG)
    assert graph.get_state(CONFIG).values["messages"][-1].text == "O-2 is on its way"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("cancel", "The user cancelled."),
        ({"action": "cancel"}, "The user cancelled."),
        ({"action": "decline"}, "The user will not give it."),
        ("I don't have it", "The user will not give it."),
    ],
)
def test_the_model_is_told_what_the_user_will_not_give(answer: Any, why: str) -> None:
    graph = agent(InMemorySaver(), ("check_order", {}), ("refund", {"amount": 5, "method": "card"}))
    say(graph, "go")
    turn = say(graph, answer) if isinstance(answer, str) else say(graph, resume=answer)
    assert f"order id: {why}" in turn.reply
    results = [
        message for message in graph.get_state(CONFIG).values["messages"] if message.type == "tool"
    ]
    assert [(message.tool_call_id, message.status) for message in results] == [
        ("c0", "error"),
        ("c1", "error"),
    ]


def test_after_too_many_wrong_answers_the_model_goes_on() -> None:
    graph = agent(
        InMemorySaver(),
        ("check_order", {}),
        params={"order_id": {"max_attempts": 2, "prompt": "Which order?", "pattern": r"O-\d+"}},
    )
    assert say(graph, "go").reply == "Which order?"
    assert say(graph, "banana").reply == "Which order?"
    assert "asked 2 times" in say(graph, "banana").reply


def test_a_sensitive_value_is_asked_for_alone_and_by_no_form() -> None:
    graph = agent(
        InMemorySaver(),
        ("log_in", {}),
        ("check_order", {}),
        params={"log_in.password": {"sensitive": True}},
    )
    [asked] = say(graph, "go").interrupts
    assert [*asked.value["response_schema"]["properties"]] == ["order_id"]
    [asked] = say(graph, "O-2").interrupts
    assert (asked.value["param"], "requests" in asked.value, asked.response_schema) == (
        "password",
        False,
        None,
    )
    assert say(graph, "hunter2 is it").reply == "logged in; O-2 is on its way"


def test_an_answer_after_the_timeout_is_not_used() -> None:
    graph = agent(InMemorySaver(), ("check_order", {}), timeout=3600)
    now = datetime.now()
    [asked] = say(graph, "go").interrupts
    assert now < datetime.fromisoformat(asked.value["expires_at"]).astimezone().replace(
        tzinfo=None
    ) - timedelta(minutes=59)
    turn = say(graph, "O-2", now=now + timedelta(hours=2))
    assert turn.reply == "It has been a while. What is the order number?"
    assert "expires_at" not in turn.interrupts[0].value
    assert say(graph, "O-3", now=now + timedelta(hours=4)).reply == "O-3 is on its way"


# -- with others ---------------------------------------------------------------------------------

KINDS = ["agent", pytest.param("deep agent", marks=pytest.mark.interop)]
WHOLE = "order O-2, 4 people tomorrow, and the money by voucher"


def company(saver: Any, kind: str) -> Any:
    """An agent with all middleware at once; a refund needs an approval."""
    approval = HumanInTheLoopMiddleware(
        interrupt_on={"refund": {"allowed_decisions": ["approve", "edit", "reject"]}}
    )
    middleware = [approval, AskUserMiddleware(TOOLS), ContextMiddleware(budget=8_000)]
    make: Any = create_agent
    if kind == "deep agent":
        from deepagents import create_deep_agent as make  # noqa: PLC0415 - not needed by the others
    return make(calling(*PARALLEL), tools=TOOLS, middleware=middleware, checkpointer=saver)


@pytest.mark.parametrize("kind", KINDS)
async def test_three_calls_are_completed_by_one_sentence_and_one_is_approved(
    url: str, kind: str, mode: Mode
) -> None:
    calls = Calls(mode)
    with DeltaSaver.open(url) as saver:
        graph = company(saver, kind)
        turn = await calls.call(langmem_ext, "converse", graph, "go", thread_id="t", now=NOW)
        assert turn.reply.splitlines() == ASKED
        turn = await calls.call(langmem_ext, "converse", graph, WHOLE, thread_id="t", now=NOW)
        assert "Tool: refund" in turn.reply
        assert "voucher" in turn.reply, "what is approved is complete"
        turn = await calls.call(
            langmem_ext, "converse", graph, "edit amount to 30", thread_id="t", now=NOW
        )
        assert turn.reply.startswith("O-2 is on its way; table for 4 on 2026-05-02; ")
        assert turn.reply.endswith("refunded 30.0 by voucher")
        assert examine(saver).ok


def killed_at(url: str, kind: str, call: int, when: str) -> bool:
    """Drive the conversation in a process that dies at a write of the saver; whether it died."""
    pid = os.fork()
    if pid == 0:
        saver = DeltaSaver.open(url)
        kill_at(saver, call, when)
        finish(company(saver, kind))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == KILLED


def finish(graph: Any) -> str:
    """Bring the conversation to its end from wherever it is."""
    reply = ""
    for _ in range(4):
        state = graph.get_state(CONFIG)
        if state.tasks and not state.interrupts:
            say(graph)
            state = graph.get_state(CONFIG)
        if not state.interrupts and any(
            message.type == "tool" for message in state.values.get("messages", ())
        ):
            break
        asks = state.interrupts[0].value if state.interrupts else {}
        reply = say(graph, WHOLE if "param" in asks else "approve" if asks else "go").reply
    return reply or graph.get_state(CONFIG).values["messages"][-1].text


@pytest.mark.process
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_it_comes_through_a_death_at_every_step(tmp_path: Path, when: str, kind: str) -> None:
    ends = set()
    for call in range(1, 60):
        url = str(tmp_path / f"{call}.db")
        if not killed_at(url, kind, call, when):
            break
        with DeltaSaver.open(url) as saver:
            graph = company(saver, kind)
            ends.add(finish(graph))
            results = [
                message.tool_call_id
                for message in graph.get_state(CONFIG).values["messages"]
                if message.type == "tool"
            ]
            assert sorted(results) == ["c0", "c1", "c2"]
            assert examine(saver).ok
    assert call > 10
    assert ends == {"O-2 is on its way; table for 4 on 2026-05-02; refunded 20.0 by voucher"}


def test_a_param_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"params\['order_id'\]"):
        AskUserMiddleware(TOOLS, params={"order_id": {"colour": "red"}})
