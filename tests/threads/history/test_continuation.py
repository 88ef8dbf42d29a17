"""Promises of a continuation: any tool goes on where another has stopped, nobody goes on with what
is gone or another's, and nothing that a turn refers to is sent twice.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any

import pytest
from asking import counting
from clock import Clock
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import tool as langchain_tool
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from prune_reference import assert_sound, change, rows
from savers import Calls, Mode
from typing_extensions import TypedDict

from langmem_ext import (
    Continuation,
    DamagedRow,
    DeltaSaver,
    FileReference,
    InvalidInput,
    MessageLog,
    ThreadChatMessageHistory,
    ThreadExpired,
    ThreadNotFound,
    Threads,
    TurnFile,
    TurnLimitReached,
    continued,
)

USED = {"input_tokens": 100, "output_tokens": 20}


@pytest.fixture
def log(url: str) -> Iterator[MessageLog]:
    with closing(MessageLog.open(url, synchronous="normal")) as log:
        yield log


@pytest.fixture
def calls(mode: Mode) -> Calls:
    return Calls(mode)


def contents(messages: Any) -> list[Any]:
    return [message.content for message in messages]


def turned(threads: Threads, count: int) -> Continuation:
    """A conversation of so many turns."""
    thread = threads.begin("chat")
    for number in range(count):
        thread.say(f"question {number}")
        thread.answer(f"answer {number}")
    return thread


# -- from tool to tool -----------------------------------------------------------------------------


async def test_any_tool_goes_on_with_what_others_were_told(
    log: MessageLog, clock: Clock, calls: Calls
) -> None:
    threads = Threads(log)
    chat = threads.begin("chat")
    assert await calls.call(chat, "history") == []
    assert await calls.call(threads, "list") == [], "nothing is stored before something is said"
    await calls.call(chat, "say", "Why does it fail?")
    await calls.call(chat, "answer", "Let us see.")
    carried = chat.result("Let us see.")
    assert carried == {"text": "Let us see.", "continuation_id": chat.id}

    debug = await calls.call(threads, "continue_", carried["continuation_id"], tool="debug")
    assert contents(await calls.call(debug, "history")) == ["Why does it fail?", "Let us see."]
    await calls.call(debug, "say", "It says 42.")
    look: Any = {"name": "look", "args": {}, "id": "c1"}
    await calls.call(
        debug, "add", AIMessage("", tool_calls=[look]), ToolMessage("line 42", tool_call_id="c1")
    )
    last = await calls.call(debug, "answer", AIMessage("Line 42 is wrong."))
    assert debug.result(last)["continuation_id"] == chat.id

    review = await calls.call(threads, "continue_", chat.id, tool="review")
    assert len(await calls.call(review, "history")) == 6
    assert [(turn.number, turn.tool, turn.said) for turn in await calls.call(review, "turns")] == [
        (1, "chat", "Why does it fail?"),
        (2, "debug", "It says 42."),
    ]
    summary = await calls.call(review, "context_summary")
    assert (summary.thread_id, summary.started, summary.turns, summary.tools) == (
        chat.id,
        clock.now,
        2,
        ("chat", "debug"),
    )
    assert summary.text.splitlines()[2:] == [
        f"Thread: {chat.id}",
        "Started: 2026-03-01T12:00:00+00:00",
        "Turns: 2",
        "Tools used: chat, debug",
    ]
    assert (await calls.call(threads, "get", chat.id)).tool == "debug"
    assert_sound(DeltaSaver(log))


async def test_an_agent_goes_on_with_a_tools_thread_and_a_tool_with_the_agents(
    log: MessageLog, calls: Calls
) -> None:
    graph, threads = counting(DeltaSaver(log)), Threads(log, owner="u1")
    chat = turned(threads, 1)
    agent = await calls.call(threads, "continue_", chat.id, tool="agent")
    message = await calls.call(agent, "message", "and you?", files=["a.py"])
    await calls.call(graph, "invoke", {"messages": [message]}, agent.config)
    after = await calls.call(threads, "continue_", chat.id, tool="chat")
    assert [(turn.tool, turn.reply) for turn in await calls.call(after, "turns")] == [
        ("chat", "answer 0"),
        ("agent", "I see 3"),
    ]
    assert await calls.call(after, "files") == [FileReference("a.py")]


async def test_what_is_gone_or_anothers_cannot_be_gone_on_with(
    log: MessageLog, clock: Clock, calls: Calls
) -> None:
    threads = Threads(log, owner="u1")
    thread = turned(threads, 1)
    other = Threads(log, owner="u2")
    for wrong in (thread.id, "missing"):
        with pytest.raises(ThreadNotFound) as found:
            await calls.call(other, "continue_", wrong, tool="debug")
        assert not isinstance(found.value, ThreadExpired)
    for name in ("turns", "usage"):
        with pytest.raises(ThreadNotFound):
            await calls.call(other, name, thread.id)
    clock.now += timedelta(hours=3) - timedelta(milliseconds=1)
    assert len(await calls.call(threads, "turns", thread.id)) == 1
    clock.now += timedelta(milliseconds=1)
    for name, args in (("continue_", {"tool": "debug"}), ("turns", {})):
        with pytest.raises(ThreadExpired):
            await calls.call(threads, name, thread.id, **args)
    for name, words in (
        *(("history", []), ("say", ["hi"]), ("message", ["hi"])),
        *(("files", []), ("context_summary", [])),
    ):
        with pytest.raises(ThreadExpired):
            await calls.call(thread, name, *words)
    used = await calls.call(threads, "usage", thread.id)
    assert used.turns[0].tool == "chat", "what was spent can be counted until it is deleted"
    await calls.call(thread, "answer", "at last")
    assert len(await calls.call(threads, "turns", thread.id)) == 1, (
        "the end of a turn that was begun in time is stored"
    )


async def test_what_cannot_be_said_changes_nothing(log: MessageLog, calls: Calls) -> None:
    threads = Threads(log)
    wrong: Any
    for wrong in ("", " ", "a\nb", "a\0", "x" * 101, 5):
        with pytest.raises(InvalidInput, match="tool"):
            threads.begin(wrong)
    ids = {
        (await calls.call(threads, "continue_", nothing, tool="chat")).id for nothing in (None, "")
    } | {(await calls.call(threads, "begin")).id}
    assert len(ids) == 3, "no id begins a new conversation"
    thread = threads.begin("chat")
    for wrong in ("", " ", None, 5):
        with pytest.raises(InvalidInput):
            thread.say(wrong)
    for wrong in (5, None, HumanMessage("hi")):
        with pytest.raises(InvalidInput):
            thread.answer(wrong)
    for wrong in (
        *({}, {"input_tokens": 1}, {"input_tokens": -1, "output_tokens": 1}),
        *({"input_tokens": "1", "output_tokens": 1}, 5),
    ):
        with pytest.raises(InvalidInput):
            thread.answer("yes", usage=wrong)
    for wrong in (
        *([""], ["a\nb"], ["a\0"], [5], "a.py", {"a.py": "one"}),
        *(TurnFile("a.py", "one"), ["x" * 5000]),
    ):
        with pytest.raises(InvalidInput):
            thread.say("look", files=wrong)
    with pytest.raises(InvalidInput):
        thread.say("hi", message_id="")
    with pytest.raises(InvalidInput):
        thread.add(RemoveMessage("a"))
    with pytest.raises(InvalidInput):
        thread.turns(0)
    with pytest.raises(InvalidInput, match="takes no argument"):
        continued(threads)(lambda: "")
    with pytest.raises(InvalidInput, match="parameter already"):
        continued(threads)(lambda thread, continuation_id: "")
    assert threads.count() == 0


def test_a_message_that_is_sent_again_is_stored_once(log: MessageLog) -> None:
    thread = Threads(log, max_turns=1, on_limit="error").begin("chat")
    first, second = (
        thread.say("hi", files=[TurnFile("a.py", "the content")], message_id="m1") for _ in range(2)
    )
    assert contents(thread.history()) == [first.content]
    assert first == second, "its file is not taken for one that was sent before"
    with pytest.raises(TurnLimitReached):
        thread.say("hi", message_id="m2")


async def test_a_function_becomes_a_tool_that_carries_its_conversation(
    log: MessageLog, mode: Mode
) -> None:
    threads = Threads(log)

    @continued(threads)
    def chat(thread: Continuation, question: str, *, loud: bool = False) -> str:
        """Talk."""
        thread.say(question)
        return str(thread.answer(f"{len(thread.history())}{'!' if loud else ''}").text)

    @continued(threads, tool="review")
    async def look_over(thread: Continuation, question: str) -> str:
        """Review."""
        await thread.asay(question)
        return str((await thread.aanswer("fine")).text)

    first = chat("hello", loud=True)
    assert first["text"] == "1!"
    second = await look_over("and this?", continuation_id=first["continuation_id"])
    assert second == {"text": "fine", "continuation_id": first["continuation_id"]}
    assert [turn.tool for turn in threads.turns(first["continuation_id"])] == ["chat", "review"]
    wrapped: Any = langchain_tool(chat if mode == "sync" else look_over)
    assert set(wrapped.args) - {"loud"} == {"question", "continuation_id"}
    asked = {"question": "more?", "continuation_id": first["continuation_id"]}
    third = wrapped.invoke(asked) if mode == "sync" else await wrapped.ainvoke(asked)
    assert third["continuation_id"] == first["continuation_id"]
    assert len(threads.turns(first["continuation_id"])) == 3


# -- the limit of turns ----------------------------------------------------------------------------


async def test_the_newest_whole_turns_are_shown_and_the_log_keeps_all(
    log: MessageLog, calls: Calls
) -> None:
    thread = turned(Threads(log), 5)
    ThreadChatMessageHistory(thread.id, log).add_messages([SystemMessage("be kind")])
    threads = Threads(log, max_turns=2)
    shown = await calls.call(threads, "turns", thread.id)
    assert [(turn.number, turn.said) for turn in shown] == [(4, "question 3"), (5, "question 4")]
    assert len(await calls.call(threads, "turns", thread.id, 4)) == 4
    assert len(await calls.call(Threads(log, max_turns=0), "turns", thread.id)) == 5
    going_on = await calls.call(threads, "continue_", thread.id, tool="debug")
    assert contents(await calls.call(going_on, "history")) == [
        "be kind",
        "question 3",
        "answer 3",
        "question 4",
        "answer 4",
    ]
    assert contents(await calls.call(going_on, "history", 1)) == [
        "be kind",
        "question 4",
        "answer 4",
    ]
    assert (await calls.call(going_on, "context_summary")).turns == 5
    assert len(await calls.call(threads, "messages", thread.id)) == 11
    await calls.call(going_on, "say", "one more")
    assert len(await calls.call(threads, "turns", thread.id)) == 2


async def test_a_turn_over_the_limit_can_be_an_error(log: MessageLog, calls: Calls) -> None:
    threads = Threads(log, max_turns=2, on_limit="error")
    thread = threads.begin("chat")
    await calls.call(thread, "say", "first")
    await calls.call(thread, "say", "second")
    for name, words in (("say", ["third"]), ("message", ["third"])):
        with pytest.raises(TurnLimitReached, match="has 2 turns, the maximum is 2"):
            await calls.call(thread, name, *words)
    with pytest.raises(TurnLimitReached):
        await calls.call(threads, "continue_", thread.id, tool="debug")
    await calls.call(thread, "answer", "the last turn may be answered")
    assert len(await calls.call(thread, "history")) == 3
    again = await calls.call(
        Threads(log, max_turns=3, on_limit="error"), "continue_", thread.id, tool="debug"
    )
    await calls.call(again, "say", "third")


# -- files -----------------------------------------------------------------------------------------


async def test_a_content_is_stored_once_in_a_thread_whichever_tool_sends_it(
    log: MessageLog, calls: Calls
) -> None:
    long = "".join(f"line {number}\n" for number in range(5000))
    threads = Threads(log)
    chat = threads.begin("chat")
    await calls.call(chat, "say", "look", files=[TurnFile("a.py", long), "notes.txt"])
    debug = await calls.call(threads, "continue_", chat.id, tool="debug")
    plan = await calls.call(
        debug, "plan_files", [TurnFile("b.py", long), TurnFile("a.py", "changed"), "c.py"]
    )
    assert [file.path for file in plan.send] == ["a.py"]
    assert [file.path for file in plan.known] == ["b.py"]
    assert [file.path for file in plan.named] == ["c.py"]
    await calls.call(
        debug,
        "say",
        "and these",
        files=[TurnFile("b.py", long), TurnFile("a.py", "changed"), "c.py"],
    )
    [(kept,)] = await log.driver.acall(
        lambda: rows(DeltaSaver(log), "SELECT count(*) FROM item WHERE text LIKE '%line 4321%'")
    )
    assert kept == 1
    digests = {
        name: TurnFile(name, content).sha256
        for name, content in (("b.py", long), ("a.py", "changed"))
    }
    assert await calls.call(debug, "files") == [
        FileReference("b.py", digests["b.py"]),
        FileReference("a.py", digests["a.py"]),
        FileReference("c.py"),
        FileReference("notes.txt"),
    ]
    assert [file.path for file in await calls.call(debug, "files", max_files=2)] == ["b.py", "a.py"]
    assert (await calls.call(threads, "get", chat.id)).title == "look"


async def test_a_view_that_leaves_a_contents_turn_out_shows_it_where_it_is_referred_to(
    log: MessageLog, calls: Calls
) -> None:
    thread = Threads(log, max_turns=1).begin("chat")
    await calls.call(thread, "say", "look", files=[TurnFile("a.py", "the content")])
    await calls.call(thread, "say", "and", files=[TurnFile("a.py", "the content")])
    [shown] = await calls.call(thread, "history")
    assert "the content" in shown.text
    assert "the content" not in Threads(log).messages(thread.id)[1].text
    await calls.call(thread, "say", "no file")
    assert contents(await calls.call(thread, "history")) == ["no file"]


def test_a_content_that_was_taken_out_is_sent_again(log: MessageLog) -> None:
    thread = Threads(log).begin("chat")
    thread.say("look", files=[TurnFile("a.py", "the content")])
    ThreadChatMessageHistory(thread.id, log).clear()
    assert [file.path for file in thread.plan_files([TurnFile("a.py", "the content")]).send] == [
        "a.py"
    ]


# -- damage ----------------------------------------------------------------------------------------

DAMAGES = (
    "UPDATE item SET text = 'question 1, changed' WHERE text = 'question 0'",
    "UPDATE checkpoint SET body = :broken",
    "UPDATE thread SET next_item = -1",
)


def damage(url: str, statement: str) -> str:
    """A thread, damaged; its id."""
    with closing(MessageLog.open(url)) as log:
        thread = turned(Threads(log), 2)
    change(url, statement, broken=b"\xff")
    return thread.id


@pytest.mark.parametrize("statement", DAMAGES)
async def test_a_damaged_thread_is_an_error_or_gone_on_with_without_memory_and_said_once(
    url: str, calls: Calls, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = damage(url, statement)
    with closing(MessageLog.open(url)) as log, caplog.at_level(logging.WARNING):
        strict = Threads(log)
        with pytest.raises(DamagedRow):
            await calls.call(strict, "turns", damaged)
        thread = await calls.call(strict, "continue_", damaged, tool="debug")
        with pytest.raises(DamagedRow):
            await calls.call(thread, "history")
        threads = Threads(log, on_damage="skip")
        assert await calls.call(threads, "turns", damaged) == []
        thread = await calls.call(threads, "continue_", damaged, tool="debug")
        assert await calls.call(thread, "history") == []
        assert (await calls.call(thread, "context_summary")).turns == 0
        await calls.call(thread, "say", "go on")
        await calls.call(thread, "answer", "gladly")
        assert thread.result("gladly")["continuation_id"] == damaged
        fresh = threads.begin("chat")
        await calls.call(fresh, "say", "and others")
        assert len(await calls.call(fresh, "history")) == 1
    warned = [record.getMessage() for record in caplog.records if damaged in record.getMessage()]
    assert len(warned) == 1
    assert "question" not in caplog.text


# -- counting --------------------------------------------------------------------------------------


async def test_usage_counts_every_message_of_the_log_once_and_each_turn(
    log: MessageLog, calls: Calls
) -> None:
    threads = Threads(log)
    thread = threads.begin("chat")
    await calls.call(thread, "say", "first")
    await calls.call(thread, "answer", "one", usage=USED, model="small")
    await calls.call(thread, "say", "second")
    last = await calls.call(thread, "answer", AIMessage("two"), usage=USED, model="large")
    await calls.call(thread, "answer", "three", usage={"input_tokens": 1, "output_tokens": 2})
    graph: Any = (
        StateGraph(MessagesState)
        .add_node("answer", lambda state: {})
        .add_edge(START, "answer")
        .compile(DeltaSaver(log))
    )
    await calls.call(graph, "update_state", thread.config, {"messages": [RemoveMessage(last.id)]})
    used = await calls.call(threads, "usage", thread.id, {"small": ("0.1", 0.3)})
    total = used.total
    assert (total.prompt_tokens, total.completion_tokens, total.messages) == (201, 42, 3)
    assert total.total_tokens == 243
    assert total.cost == Decimal("0.000016"), "to the last digit"
    assert set(total.unpriced) == {"large", *(set(used.models) - {"small", "large"})}
    assert len(used.models) == 3
    assert [(row.number, row.tool, row.usage.total_tokens) for row in used.turns] == [
        (1, "chat", 120),
        (2, "chat", 3),
    ]
    assert used.elsewhere.total_tokens == 120
    assert (used.models["large"].cost, used.models["large"].unpriced) == (0, ("large",))
    assert (await calls.call(threads, "usage", thread.id)).total.cost is None
    wrong: Any = [*(1, (1,), (1, -1), ("a", 1), (float("nan"), 1), (1, float("inf")), None)]
    for price in wrong:
        with pytest.raises(InvalidInput, match="price"):
            await calls.call(threads, "usage", thread.id, {"small": price})
    with pytest.raises(InvalidInput):
        await calls.call(threads, "usage", thread.id, [])
    with pytest.raises(ThreadNotFound):
        await calls.call(threads, "usage", "missing")


class DeltaState(TypedDict):
    messages: Annotated[list[Any], DeltaChannel(_messages_delta_reducer, snapshot_frequency=10)]


def test_usage_is_counted_where_only_the_graph_can_read_the_turns(url: str) -> None:
    def answer(state: DeltaState) -> dict[str, Any]:
        return {
            "messages": [
                AIMessage(
                    "one",
                    usage_metadata={"input_tokens": 100, "output_tokens": 20, "total_tokens": 120},
                )
            ]
        }

    with DeltaSaver.open(url) as saver:
        graph: Any = (
            StateGraph(DeltaState)
            .add_node("answer", answer)
            .add_edge(START, "answer")
            .compile(checkpointer=saver)
        )
        graph.invoke({"messages": [HumanMessage("hi")]}, {"configurable": {"thread_id": "t"}})
        found = Threads(saver).usage("t")
        with pytest.raises(InvalidInput, match="DeltaChannel"):
            Threads(saver).turns("t")
    assert (found.total.total_tokens, found.elsewhere.total_tokens, found.turns) == (120, 120, ())


async def test_stats_count_what_an_owner_has(log: MessageLog, calls: Calls) -> None:
    empty = await calls.call(Threads(log), "stats")
    assert (empty.threads, empty.turns, empty.tokens, empty.by_tool) == (0, 0, 0, {})
    mine = Threads(log, owner="u1")
    turned(mine, 3)
    mine.archive(turned(mine, 2).id)
    ThreadChatMessageHistory("chat", log, owner="u2").add_messages([HumanMessage("hi")])
    found = await calls.call(mine, "stats")
    assert (found.threads, found.turns, found.messages, found.waiting) == (2, 5, 10, 0)
    assert (found.by_status, found.by_tool) == ({"active": 1, "archived": 1}, {"chat": 2})
    everybodys = await calls.call(Threads(log), "stats")
    assert (everybodys.threads, everybodys.turns, everybodys.by_tool) == (
        3,
        6,
        {"chat": 2, None: 1},
    )
    assert everybodys.tokens == sum(thread.tokens for thread in Threads(log).each(status=None))
