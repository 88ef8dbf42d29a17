"""Words are words wherever LangChain keeps them: found, shown, in titles, replies, summaries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph

from langmem_ext import (
    ApproximateCounter,
    ContextGovernor,
    ContextPolicy,
    DeltaSaver,
    Threads,
    aconverse,
    converse,
    examine,
    mark_sensitive,
)

WORD: dict[str, Any] = {"type": "text", "text": "zebra"}
SOURCE = {"type": "text", "media_type": "text/plain", "data": "zebra"}
FOUND = {"type": "search_result", "title": "t", "source": "s", "content": [WORD]}
NATIVE = {"format": "txt", "name": "a", "source": {"text": "zebra"}}
BLOCKS: dict[str, dict[str, Any]] = {
    "text": WORD,
    "a pasted text": {"type": "text-plain", "text": "zebra", "mime_type": "text/plain"},
    "a document": {"type": "document", "source": SOURCE},
    "a document in blocks": {"type": "document", "source": {"type": "content", "content": [WORD]}},
    "OpenAI's input": {"type": "input_text", "text": "zebra"},
    "Bedrock's": {"text": "zebra"},
    "Bedrock's document": {"document": NATIVE},
    "a search result": FOUND,
}
ANSWERS: dict[str, AIMessage] = {
    "OpenAI's output": AIMessage([{"type": "output_text", "text": "zebra"}]),
    "wrapped": AIMessage([{"type": "non_standard", "value": {**WORD, "type": "output_text"}}]),
    "a refusal": AIMessage([{"type": "refusal", "refusal": "zebra"}]),
    "a refusal beside": AIMessage("", additional_kwargs={"refusal": "zebra"}),
    "spoken": AIMessage("", additional_kwargs={"audio": {"id": "a", "transcript": "zebra"}}),
}
SAID: dict[str, BaseMessage] = {
    **{name: HumanMessage([block]) for name, block in BLOCKS.items()},
    **ANSWERS,
}


def says(saver: Any, *messages: BaseMessage) -> Any:
    builder = StateGraph(MessagesState).add_node("say", lambda _: {"messages": list(messages)})
    return builder.add_edge(START, "say").compile(checkpointer=saver)


def config(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def test_they_are_found_shown_and_read_back_as_they_were(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        threads = Threads(saver)
        threads.enable_search()
        graph = says(saver)
        for name, message in SAID.items():
            graph.invoke({"messages": [message]}, config(name))
            assert threads.search("zebra", thread=name), name
            assert "zebra" in "".join(threads.export_lines(name, format="markdown")), name
            [stored] = graph.get_state(config(name)).values["messages"]
            assert (stored.content, stored.additional_kwargs) == (
                message.content,
                message.additional_kwargs,
            )
            if isinstance(message, HumanMessage):
                assert "zebra" in (threads.get(name).title or ""), name
                assert "zebra" in threads.turns(name)[0].said, name
    assert examine(url).findings == ()


def test_words_of_different_blocks_are_different_words() -> None:
    saver = DeltaSaver()
    threads = Threads(saver)
    threads.enable_search()
    blocks = [{"type": "text", "text": "Look at this"}, BLOCKS["a document"], "and answer"]
    says(saver).invoke({"messages": [HumanMessage(blocks)]}, config("t"))
    assert threads.search("zebra")
    assert threads.get("t").title == "Look at this zebra and answer"


def test_thoughts_and_what_tools_found_are_no_words() -> None:
    saver = DeltaSaver()
    threads = Threads(saver)
    hidden = [
        {"type": "thinking", "thinking": "zebra", "signature": "x"},
        {"type": "reasoning", "reasoning": "zebra"},
        {"type": "tool_use", "id": "a", "name": "look", "input": {"q": "zebra"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"title": "zebra"}]},
        {"type": "text", "text": "So."},
    ]
    said = converse(says(saver, AIMessage(hidden)), "Hello", thread_id="t")
    assert said.reply == "So."
    assert threads.turns("t")[0].reply == "So."


# -- replies ---------------------------------------------------------------------------------------


@tool(return_direct=True)
def opening_hours() -> str:
    """When the shop is open."""
    return "Open from 9 to 5."


@tool
def look_up() -> str:
    """Look something up."""
    return "a row"


class ScriptedModel(GenericFakeChatModel):
    """Answers what it is given."""

    def bind_tools(self, tools: Any, **_: Any) -> ScriptedModel:
        return self


def calling(*names: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": {}, "id": name} for name in names])


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("name", ANSWERS)
async def test_a_reply_says_what_the_user_is_to_read(name: str, is_async: bool) -> None:
    saver = DeltaSaver()
    graph = says(saver, ANSWERS[name])
    turn = (
        await aconverse(graph, "Hello", thread_id="t")
        if is_async
        else converse(graph, "Hello", thread_id="t")
    )
    assert turn.reply == "zebra"
    assert Threads(saver).turns("t")[0].reply == "zebra"


def test_a_result_that_ends_the_turn_is_its_reply_and_no_other() -> None:
    saver = DeltaSaver()
    answers = iter([calling("look_up"), calling("opening_hours")])
    agent = create_agent(
        ScriptedModel(messages=answers), [look_up, opening_hours], checkpointer=saver
    )
    assert converse(agent, "When?", thread_id="t").reply == "Open from 9 to 5."
    assert [turn.reply for turn in Threads(saver).turns("t")] == ["Open from 9 to 5."]
    said = iter([calling("look_up"), AIMessage("There.")])
    agent = create_agent(ScriptedModel(messages=said), [look_up], checkpointer=saver)
    assert converse(agent, "Where?", thread_id="u").reply == "There."


# -- summaries, and what is sensitive --------------------------------------------------------------


@pytest.mark.parametrize("name", SAID)
def test_a_summarising_model_is_told_them(name: str) -> None:
    asked: list[str] = []

    class Summarising(GenericFakeChatModel):
        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            asked.append("".join(str(message.content) for message in messages))
            return super()._generate(messages, *args, **kwargs)

    model = Summarising(messages=iter(["They spoke."] * 9))
    policy = ContextPolicy(strategy="summary", keep_recent_messages=0, floor=0.1, target=0.3)
    governor = ContextGovernor(budget=700, model=model, counter=ApproximateCounter(), policy=policy)
    long = [HumanMessage("First."), SAID[name], *(AIMessage("words " * 200) for _ in range(4))]
    governor.govern([*long, HumanMessage("And now?")])
    assert any("zebra" in text for text in asked)


@given(st.permutations([*BLOCKS.values()]), st.integers(0, len(BLOCKS)))
def test_what_is_marked_is_hidden_among_other_blocks(
    blocks: list[dict[str, Any]], count: int
) -> None:
    pin = {"type": "text-plain", "text": "my pin is 1234"}
    message = mark_sensitive(HumanMessage([*blocks[:count], pin, *blocks[count:]]), {"pin": "1234"})
    saver = DeltaSaver()
    threads = Threads(saver)
    threads.enable_search()
    says(saver).invoke({"messages": [message]}, config("t"))
    page = "".join(threads.export_lines("t", format="markdown")).partition("## ")[2]
    assert "1234" not in page + (threads.get("t").title or "")
    assert (page.count("zebra"), "my pin is •••" in page) == (len(BLOCKS), True)
    assert not threads.search("1234")
