"""Promise: a thread's chat history and its graph are two views of one log.

What one writes the other reads.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from asking import counting
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from savers import Backend

from langmem_ext import DeltaSaver, InvalidInput, ThreadChatMessageHistory, Threads

CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def saver(backend: Backend, tmp_path: Path) -> Iterator[DeltaSaver]:
    with DeltaSaver.from_conn_string(backend.new_url(tmp_path)) as saver:
        yield saver


def texts(history: ThreadChatMessageHistory) -> list[Any]:
    return [message.content for message in history.messages]


async def test_what_a_graph_said_is_there_and_what_is_added_is_there_for_the_graph(
    saver: DeltaSaver,
) -> None:
    graph, history = counting(saver), ThreadChatMessageHistory("t", saver)
    assert history.messages == []
    history.add_user_message("hello")
    history.add_ai_message("hi")
    await graph.ainvoke({"messages": [HumanMessage("one")]}, CONFIG)
    assert await history.aget_messages() == graph.get_state(CONFIG).values["messages"]
    await history.aadd_messages([HumanMessage("two"), AIMessage("fine")])
    assert graph.get_state(CONFIG).values["messages"] == history.messages
    assert graph.get_state(CONFIG).next == ()
    graph.invoke({"messages": [HumanMessage("three")]}, CONFIG)
    said = ["hello", "hi", "one", "I see 3", "two", "fine", "three", "I see 7"]
    assert texts(history) == said
    other = ThreadChatMessageHistory("t", saver, channel="talk")
    other.add_messages([HumanMessage("aside")])
    assert (texts(other), texts(history)) == (["aside"], said)
    await history.aclear()
    assert await history.aget_messages() == []


async def test_messages_may_come_from_an_iterator(saver: DeltaSaver) -> None:
    history = ThreadChatMessageHistory("t", saver)
    history.add_messages(map(HumanMessage, ["one", "two"]))
    await history.aadd_messages(message for message in [AIMessage("three")])
    history.add_messages(iter([]))
    assert texts(history) == ["one", "two", "three"]
    for nothing in (None, 5, "text", b"bytes", {"role": "user"}):
        with pytest.raises(InvalidInput):
            history.add_messages(nothing)  # type: ignore[arg-type]
    assert texts(history) == ["one", "two", "three"]


def test_a_message_with_a_known_id_takes_its_place(saver: DeltaSaver) -> None:
    history = ThreadChatMessageHistory("t", saver)
    history.add_messages(
        [HumanMessage("one", id="1"), AIMessage("two", id="2"), HumanMessage("three", id="3")]
    )
    history.add_messages([AIMessage("TWO", id="2"), AIMessage("four", id="4")])
    assert texts(history) == ["one", "TWO", "three", "four"]
    counting(saver).invoke({"messages": [RemoveMessage("3")]}, CONFIG)
    assert texts(history) == ["one", "TWO", "four", "I see 3"]


def test_everything_of_a_message_survives(backend: Backend, tmp_path: Path) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:x"}}
    broken = [
        {"name": "look", "args": "{", "id": "c2", "error": "cut off", "type": "invalid_tool_call"}
    ]
    kept: Any = {
        "response_metadata": {"model": "m"},
        "usage_metadata": USED,
        "additional_kwargs": {"refusal": None},
    }
    messages = [
        HumanMessage([{"type": "text", "text": "see"}, image], id="1", name="ann"),
        AIMessage("", id="2", tool_calls=[CALL]),
        ToolMessage("found", id="3", tool_call_id="c", artifact={"rows": 2}, status="error"),
        AIMessage("x", id="4", invalid_tool_calls=broken, **kept),
        SystemMessage("be kind", id="5"),
        ChatMessage("x", role="narrator", id="6"),
    ]
    url = backend.new_url(tmp_path)
    with DeltaSaver.open(url) as saver:
        ThreadChatMessageHistory("t", saver).add_messages(messages)
        assert ThreadChatMessageHistory("t", saver).messages == messages
    if backend.survives_close:
        with DeltaSaver.open(url) as saver:
            assert ThreadChatMessageHistory("t", saver).messages == messages


def test_messages_are_copies(saver: DeltaSaver) -> None:
    history = ThreadChatMessageHistory("t", saver)
    mine = HumanMessage("one", additional_kwargs={"a": []})
    history.add_messages([mine])
    assert mine.id is None
    history.messages[0].additional_kwargs["a"].append(1)
    mine.content = "changed"
    assert [(message.content, message.additional_kwargs) for message in history.messages] == [
        ("one", {"a": []})
    ]


def test_clearing_empties_the_view_and_leaves_a_thread_that_goes_on(saver: DeltaSaver) -> None:
    graph, history = counting(saver), ThreadChatMessageHistory("t", saver)
    history.clear()
    assert list(saver.list(CONFIG)) == []
    graph.invoke({"messages": [HumanMessage("one")]}, CONFIG)
    history.clear()
    assert history.messages == []
    assert [state.values["messages"] for state in graph.get_state_history(CONFIG)] == [[]]
    graph.invoke({"messages": [HumanMessage("two")]}, CONFIG)
    assert texts(history) == ["two", "I see 1"]


def test_a_write_while_a_question_waits_leaves_the_question_to_be_asked(saver: DeltaSaver) -> None:
    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [HumanMessage(interrupt("your name?"))]}

    graph = (
        StateGraph(MessagesState)
        .add_node("ask", ask)
        .add_edge(START, "ask")
        .compile(checkpointer=saver)
    )
    graph.invoke({"messages": [HumanMessage("hi")]}, CONFIG)
    history = ThreadChatMessageHistory("t", saver)
    history.add_messages([AIMessage("by the way")])
    assert graph.get_state(CONFIG).next == ("ask",)
    graph.invoke(None, CONFIG)
    graph.invoke(Command(resume="Ann"), CONFIG)
    assert texts(history) == ["hi", "by the way", "Ann"]


TOO_LARGE = 2**70


async def test_what_cannot_be_stored_is_refused_and_leaves_no_row(saver: DeltaSaver) -> None:
    used: Any = {"input_tokens": TOO_LARGE, "output_tokens": 1, "total_tokens": TOO_LARGE + 1}
    arguments = {"name": "look", "args": {"at": -TOO_LARGE}, "id": "c1"}
    history, threads = ThreadChatMessageHistory("t", saver), Threads(saver)
    for message in (
        AIMessage("b", usage_metadata=used),
        AIMessage("b", tool_calls=[arguments]),
        HumanMessage("b", additional_kwargs={"at": object()}),
    ):
        with pytest.raises(
            InvalidInput, match="a message contains a value that cannot be stored .*pass it as text"
        ):
            history.add_messages([HumanMessage("a"), message])
        with pytest.raises(InvalidInput, match="cannot be stored"):
            await history.aadd_messages([message])
        with pytest.raises(InvalidInput, match="cannot be stored"):
            await threads.begin("chat").aadd(message)
    with pytest.raises(InvalidInput, match="cannot be stored"):
        threads.begin("chat").answer("b", usage={"input_tokens": TOO_LARGE, "output_tokens": 1})
    assert threads.count(status=None) == 0


def test_in_a_graph_it_is_the_error_that_langgraphs_savers_raise_and_the_thread_stays_as_it_was(
    saver: DeltaSaver,
) -> None:
    used: Any = {"input_tokens": TOO_LARGE, "output_tokens": 1, "total_tokens": TOO_LARGE + 1}

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("too much", usage_metadata=used)]}

    for checkpointer in (saver, InMemorySaver()):
        graph: Any = (
            StateGraph(MessagesState)
            .add_node("answer", answer)
            .add_edge(START, "answer")
            .compile(checkpointer=checkpointer)
        )
        with pytest.raises(TypeError):
            graph.invoke({"messages": [HumanMessage("hi")]}, CONFIG)
        snapshot = graph.get_state(CONFIG)
        assert ([message.text for message in snapshot.values["messages"]], snapshot.next) == (
            ["hi"],
            ("answer",),
        )


CALL = {"name": "look", "args": {"at": [1, None]}, "id": "c1", "type": "tool_call"}
USED = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


class ScriptedModel(BaseChatModel):
    """Stands in for a chat model: says what its script says, whole or word by word, and calls a
    tool each time.
    """

    answers: list[str]
    seen: list[int] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _next(self, messages: list[BaseMessage]) -> tuple[str, dict[str, Any]]:
        """The text of the next answer, and what else it has."""
        self.seen.append(len(messages))
        more = {"usage_metadata": USED, "response_metadata": {"model_name": "scripted"}}
        return self.answers[len(self.seen) - 1], {"id": f"m{len(self.seen)}", **more}

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **more: Any
    ) -> ChatResult:
        text, fields = self._next(messages)
        said = AIMessage(text, tool_calls=[CALL], **fields)
        return ChatResult(generations=[ChatGeneration(message=said)])

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **more: Any
    ) -> Iterator[ChatGenerationChunk]:
        text, fields = self._next(messages)
        for piece in re.findall(r"\S+\s*", text):
            yield ChatGenerationChunk(message=AIMessageChunk(piece, id=fields["id"]))
        call = {"name": "look", "args": '{"at": [1, null]}', "id": "c1"}
        chunk = {**call, "index": 0, "type": "tool_call_chunk"}
        yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[chunk], **fields))


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_it_works_in_runnable_with_message_history(way: str, saver: DeltaSaver) -> None:
    scripted = ScriptedModel(answers=["the first answer", "the second answer"])
    prompt = ChatPromptTemplate.from_messages(
        [MessagesPlaceholder("history"), MessagesPlaceholder("question")]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # langchain-core has deprecated the class
        chain: Any = RunnableWithMessageHistory(
            prompt | scripted,
            lambda session_id: ThreadChatMessageHistory(session_id, saver),
            input_messages_key="question",
            history_messages_key="history",
        )
    config: Any = {"configurable": {"session_id": "t"}}
    picture = {"type": "image_url", "image_url": {"url": "data:x"}}
    asked = [
        HumanMessage([{"type": "text", "text": "what is this?"}, picture], id="h1", name="ann"),
        HumanMessage("two?", id="h2"),
    ]
    for question in asked:
        given = {"question": [question]}
        match way:
            case "invoke":
                answer = chain.invoke(given, config).text
            case "ainvoke":
                answer = (await chain.ainvoke(given, config)).text
            case "stream":
                answer = "".join(chunk.text for chunk in chain.stream(given, config))
            case _:
                answer = "".join([chunk.text async for chunk in chain.astream(given, config)])
        assert answer == scripted.answers[len(scripted.seen) - 1]
    assert scripted.seen == [1, 3], "each call sees what was said before"
    first, said, second, last = ThreadChatMessageHistory("t", saver).messages
    assert [first, second] == asked
    for number, message in enumerate((said, last)):
        assert type(message) is AIMessage, "chunks are a message, as in a graph's state"
        assert (message.text, message.id) == (scripted.answers[number], f"m{number + 1}")
        assert (message.tool_calls, message.usage_metadata) == ([CALL], USED)
        assert message.response_metadata["model_name"] == "scripted"


def test_a_channel_that_holds_something_else_is_refused_and_left_alone(saver: DeltaSaver) -> None:
    class State(TypedDict):
        plain: Any
        folded: Annotated[list[Any], DeltaChannel(lambda left, right: [*left, *right])]

    node = {"plain": {"a": 1}, "folded": [[HumanMessage("x", id="x")]]}
    graph = (
        StateGraph(State)
        .add_node("node", lambda state: node)
        .add_edge(START, "node")
        .compile(checkpointer=saver)
    )
    graph.invoke({"plain": 1}, CONFIG)
    before = list(saver.list(CONFIG))
    for channel, reason in (("plain", "is not a list of messages"), ("folded", "DeltaChannel")):
        history = ThreadChatMessageHistory("t", saver, channel=channel)
        with pytest.raises(InvalidInput, match=reason):
            _ = history.messages
        with pytest.raises(InvalidInput, match=reason):
            history.window(100)
        with pytest.raises(InvalidInput, match=reason):
            history.add_messages([HumanMessage("y")])
    assert list(saver.list(CONFIG)) == before
