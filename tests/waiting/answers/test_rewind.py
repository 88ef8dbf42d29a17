"""Promise: a thread stuck by an answer returns to its question, and loses nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import ALL, CONFIG, Asking, age, agent, asking, calling
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from savers import Backend, Calls, Mode

import langmem_ext
from langmem_ext import DeltaSaver, InvalidInput, ThreadBusy, ThreadNotFound, Threads, examine
from langmem_ext.threads.states.rewind import rewind

APPROVE = {"decisions": [{"type": "approve"}]}
HELLO = {"messages": [("user", "pay")]}

Store = Callable[[Any, Any], None]


@pytest.fixture
def saver(backend: Backend, tmp_path: Path) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(backend.new_url(tmp_path)) as saver:
        yield saver


def resume(graph: Any, answer: Any) -> None:
    """Answer as LangGraph has it, in vain."""
    with pytest.raises((TypeError, ValueError, KeyError)):
        graph.invoke(Command(resume=answer), CONFIG)


def resume_by_id(graph: Any, answer: Any) -> None:
    """Answer the question that waits by its id, as `converse` does, in vain."""
    with pytest.raises((TypeError, ValueError, KeyError)):
        graph.invoke(Command(resume={graph.get_state(CONFIG).interrupts[0].id: answer}), CONFIG)


def history(saver: Any) -> list[tuple[Any, list[Any]]]:
    """The checkpoints of all namespaces, each with what tasks have written that finished."""
    return [
        (
            one.config["configurable"],
            [write for write in one.pending_writes or [] if not write[1].startswith("__")],
        )
        for one in saver.list(CONFIG)
    ]


async def rewound(saver: DeltaSaver, mode: Mode) -> Any:
    return await Calls(mode).call(Threads(saver), "rewind", "t")


@pytest.mark.parametrize("store", [resume, resume_by_id])
async def test_an_agent_asks_for_its_decision_again(
    saver: DeltaSaver, mode: Mode, store: Store
) -> None:
    graph = agent(saver)
    graph.invoke(HELLO, CONFIG)
    [asked] = graph.get_state(CONFIG).interrupts
    store(graph, "approve")
    before = history(saver)
    resume(graph, APPROVE)
    assert (await rewound(saver, mode)).id == "t"
    state = graph.get_state(CONFIG)
    assert state.interrupts == (asked,)
    assert [(task.error, task.interrupts) for task in state.tasks] == [(None, (asked,))]
    assert history(saver) == before
    assert graph.invoke(Command(resume=APPROVE), CONFIG)["messages"][-1].text == "paid 5"
    assert [message.type for message in graph.get_state(CONFIG).values["messages"]] == [
        "human",
        "ai",
        "tool",
        "ai",
    ]
    assert examine(saver).ok


@pytest.mark.parametrize("store", [resume, resume_by_id])
async def test_a_subgraph_asks_again_without_beginning_anew(
    saver: DeltaSaver, mode: Mode, store: Store
) -> None:
    model = calling("pay")
    inner = agent(None, model=model)
    graph = (
        StateGraph(MessagesState)
        .add_node("agent", inner)
        .add_edge(START, "agent")
        .compile(checkpointer=saver)
    )
    outer = (
        StateGraph(MessagesState)
        .add_node("team", graph)
        .add_edge(START, "team")
        .compile(checkpointer=saver)
    )
    outer.invoke(HELLO, CONFIG)  # type: ignore[arg-type]
    [asked] = outer.get_state(CONFIG).interrupts
    store(outer, "approve")
    resume(outer, APPROVE)
    before = history(saver)
    await rewound(saver, mode)
    assert history(saver) == before
    assert (outer.get_state(CONFIG).interrupts, outer.get_state(CONFIG).tasks[0].error) == (
        (asked,),
        None,
    )
    assert outer.invoke(Command(resume=APPROVE), CONFIG)["messages"][-1].text == "paid 5"
    assert len(model.asked) == 2, "the model was asked again for the call that waited"
    assert examine(saver).ok


async def test_what_other_tasks_of_the_step_have_done_stays(saver: DeltaSaver, mode: Mode) -> None:
    ran: list[int] = []

    def beside(state: Asking) -> dict[str, Any]:
        ran.append(1)
        return {"messages": [AIMessage("beside", id="beside")]}

    def ask(state: Asking) -> dict[str, Any]:
        return {"messages": [AIMessage(f"{interrupt('One?')}", id="ask")]}

    graph = asking(saver, age, beside, ask)
    graph.invoke(HELLO, CONFIG)
    first, second = graph.get_state(CONFIG).interrupts
    with pytest.raises(ValueError, match="forty"):
        graph.invoke(Command(resume={first.id: "forty", second.id: "yes"}), CONFIG)
    await rewound(saver, mode)
    assert graph.get_state(CONFIG).tasks[0].interrupts == (first,)
    done = graph.invoke(Command(resume={first.id: "40"}), CONFIG)
    assert (done["answer"], [message.text for message in done["messages"]], len(ran)) == (
        40,
        ["pay", "beside", "yes"],
        1,
    )
    assert examine(saver).ok


async def test_a_node_that_asks_twice_asks_again_from_its_first_question(
    saver: DeltaSaver, mode: Mode
) -> None:
    graph = asking(
        saver, lambda state: {"answer": int(interrupt("First?")) + int(interrupt("Second?"))}
    )
    graph.invoke(HELLO, CONFIG)
    graph.invoke(Command(resume="1"), CONFIG)
    resume(graph, "two")
    await rewound(saver, mode)
    assert graph.invoke(None, CONFIG)["__interrupt__"][0].value == "First?"
    graph.invoke(Command(resume="1"), CONFIG)
    await rewound(saver, mode)
    assert graph.invoke(None, CONFIG)["__interrupt__"][0].value == "First?", (
        "it can be taken back before it fails, too"
    )
    for answer in ("1", "2"):
        graph.invoke(Command(resume=answer), CONFIG)
    assert graph.get_state(CONFIG).values["answer"] == 3
    assert examine(saver).ok


async def test_a_thread_with_nothing_to_rewind_is_told_so_and_stays(
    saver: DeltaSaver, mode: Mode
) -> None:
    graph = agent(saver)
    graph.invoke(HELLO, CONFIG)
    for _ in range(2):
        before = [(one.config, one.pending_writes) for one in saver.list(CONFIG)]
        with pytest.raises(InvalidInput, match="nothing to rewind"):
            await rewound(saver, mode)
        assert [(one.config, one.pending_writes) for one in saver.list(CONFIG)] == before
        graph.invoke(Command(resume=APPROVE), CONFIG)
    with pytest.raises(InvalidInput, match="nothing to rewind"):
        await rewound(saver, mode)


async def test_the_history_is_not_looked_at_where_nothing_was_answered(
    saver: DeltaSaver, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[Any] = []
    for name in ("list", "alist"):
        read = getattr(saver, name)
        monkeypatch.setattr(
            saver, name, lambda config, read=read: (listed.append(config), read(config))[1]
        )

    def answer(state: MessagesState) -> Any:
        if state["messages"][-1].text == "ask":
            return {"messages": [AIMessage(f"age {int(interrupt('Age?'))}")]}
        raise ValueError("the model is away")

    inner = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()
    graph = (
        StateGraph(MessagesState)
        .add_node("inner", inner)
        .add_edge(START, "inner")
        .compile(checkpointer=saver)
    )

    async def say(text: str) -> Any:
        return await Calls(mode).call(langmem_ext, "converse", graph, text, thread_id="t")

    for _ in range(2):
        with pytest.raises(ValueError, match="away"):
            await say("hello")
    assert listed == []
    assert (await say("ask")).reply == "Age?"
    with pytest.raises(ValueError, match="old"):
        await say("old")
    assert len(listed) == 1
    assert (await say("42")).reply == "age 42"


async def test_only_a_thread_of_ones_own_is_rewound_and_only_while_nobody_drives_it(
    saver: DeltaSaver, mode: Mode
) -> None:
    graph = agent(saver.for_owner("ada"))
    graph.invoke(HELLO, CONFIG)
    resume(graph, "approve")
    for threads, name in ((Threads(saver, owner="bob"), "t"), (Threads(saver), "another")):
        with pytest.raises(ThreadNotFound):
            await Calls(mode).call(threads, "rewind", name)
    threads = Threads(saver, owner="ada")
    with saver.lease("t"), pytest.raises(ThreadBusy):
        await Calls(mode).call(threads, "rewind", "t", wait=0)
    assert (await Calls(mode).call(threads, "rewind", "t")).owner == "ada"
    assert graph.invoke(Command(resume=APPROVE), CONFIG)["messages"][-1].text == "paid 5"


def test_a_savers_own_serializer_is_used(tmp_path: Path) -> None:
    with DeltaSaver.open(str(tmp_path / "own.db"), serde=JsonPlusSerializer()) as saver:
        graph = agent(saver)
        graph.invoke(HELLO, CONFIG)
        resume(graph, "approve")
        Threads(saver).rewind("t")
        assert graph.invoke(Command(resume=APPROVE), CONFIG)["messages"][-1].text == "paid 5"


def test_a_thread_that_was_led_back_outlives_an_export_and_a_fork(
    saver: DeltaSaver, tmp_path: Path
) -> None:
    graph = agent(saver)
    graph.invoke(HELLO, CONFIG)
    resume(graph, "approve")
    threads = Threads(saver)
    threads.rewind("t")
    threads.fork("t", to="copy")
    threads.export_to(str(tmp_path / "t.jsonl"), "t")
    threads.delete("t")
    threads.import_from(str(tmp_path / "t.jsonl"), keep_ids=True)
    for thread in ("t", "copy"):
        done = graph.invoke(Command(resume=APPROVE), {"configurable": {"thread_id": thread}})
        assert done["messages"][-1].text == "paid 5"
    assert examine(saver).ok


def test_every_allowed_decision_is_still_taken_afterwards() -> None:
    """On LangGraph's own saver: what is stored in place of an answer is no answer to LangGraph."""
    for decision in ({"type": kind, "message": "so"} for kind in ALL if kind != "edit"):
        saver = InMemorySaver()
        graph = agent(saver)
        graph.invoke(HELLO, CONFIG)
        resume(graph, "approve")
        assert rewind(saver, "t")
        assert not rewind(saver, "t")
        assert not graph.invoke(Command(resume={"decisions": [decision]}), CONFIG).get(
            "__interrupt__"
        )
