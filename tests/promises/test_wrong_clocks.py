"""Promise: machines whose clocks are wrong may share a thread.

LangGraph names checkpoints by the time at which they are made. What follows a thread's newest
checkpoint is the newest all the same; a fork of an earlier one stays a branch.
"""

from __future__ import annotations

import io
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import MessagesState
from savers import Calls, Mode
from small_graphs import asking_for, chain, config
from wrong_clock import SKEWS, clock_off_by

import langmem_ext
from langmem_ext import DeltaSaver, Threads, examine


def chat(saver: Any) -> Any:
    def answer(state: MessagesState) -> Any:
        return {"messages": [AIMessage(f"a{len(state['messages'])}")]}

    return chain(answer, saver=saver)


async def say(mode: Mode, saver: Any, text: str, at: Any = None) -> list[str]:
    given = {"messages": [HumanMessage(text)]}, at or config()
    found = await Calls(mode).call(chat(saver), "invoke", *given, durability="sync")
    return [message.text for message in found["messages"]]


def texts(saver: Any) -> list[str]:
    return [message.text for message in chat(saver).get_state(config()).values["messages"]]


@pytest.mark.parametrize("skew", SKEWS)
async def test_machines_with_different_clocks_take_turns(url: str, mode: Mode, skew: float) -> None:
    with DeltaSaver.open(url) as here, DeltaSaver.open(url) as there:
        said: list[str] = []
        for number in range(6):
            saver = (here, there)[number % 2]
            with clock_off_by(skew if saver is there else 0):
                found = await say(mode, saver, f"q{number}")
            said += [f"q{number}", f"a{len(said) + 1}"]
            assert found == said
        for saver in (here, there):
            assert texts(saver) == said
        steps = list(chat(here).get_state_history(config()))
        order = [one.metadata["step"] for one in steps]
        assert order == sorted(order, reverse=True), "the history is in the order of the turns"
        parents = [one.parent_config for one in steps[:-1]]
        assert parents == [one.config for one in steps[1:]], "each follows the one before"
        found = examine(here).findings
        assert [one for one in found if one.severity != "note"] == []
        lines = "".join(Threads(here).export_lines("t"))
        here.copy_thread("t", "copy")
        here.prune(["t"])
        assert texts(here) == said
        here.delete_thread("t")
        Threads(here).import_from(io.BytesIO(lines.encode()), keep_ids=True)
        assert texts(here) == said


@pytest.mark.parametrize("skew", SKEWS)
async def test_a_fork_stays_a_branch(saver: DeltaSaver, mode: Mode, skew: float) -> None:
    await say(mode, saver, "q0")
    first = chat(saver).get_state(config()).config
    await say(mode, saver, "q1")
    with clock_off_by(skew):
        forked = await say(mode, saver, "other", first)
        assert forked == ["q0", "a1", "other", "a3"]
        here = await say(mode, saver, "q2")
    assert "q2" in here
    assert len([*saver.list(config())]) == 12


@pytest.mark.parametrize("skew", SKEWS)
async def test_a_question_of_a_subgraph_is_answered_once(
    saver: DeltaSaver, mode: Mode, skew: float
) -> None:
    ran: list[str] = []

    def pay(state: MessagesState) -> Any:
        ran.append("paid")
        return {"messages": [AIMessage("paid")]}

    await say(mode, saver, "before")
    graph = chain(chain(pay, asking_for("sure?", "said {}")), saver=saver)
    converse = partial(Calls(mode).call, langmem_ext, "converse", graph, thread_id="t")
    with clock_off_by(skew):
        assert (await converse("pay")).reply == "sure?"
        done = await converse("yes")
    assert (done.reply, ran) == ("paid\nsaid yes", ["paid"])


def test_a_thread_that_is_used_does_not_expire(saver: DeltaSaver) -> None:
    with clock_off_by(0):
        chat(saver).invoke({"messages": [HumanMessage("now")]}, config())
        with clock_off_by(-365 * 86_400):
            chat(saver).invoke({"messages": [HumanMessage("now, a year ago")]}, config())
        assert Threads(saver, ttl=timedelta(days=30)).sweep().threads == 0
        assert len(texts(saver)) == 4
