"""What LangChain's `SummarizationMiddleware` does to a conversation, and ours must not: each on the
same messages, with the peer beside it.

Ours is asserted. Then the peer's own behaviour is looked at: a release that has mended it is told
by a skip, so that the comparison is not kept up for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("langchain.agents", reason="the peer is LangChain's: install the extra agents")

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from provider_rules import anthropic_problems, openai_problems

from langmem_ext.context.govern import govern
from langmem_ext.context.governor import ContextGovernor
from langmem_ext.context.middleware import ContextMiddleware
from langmem_ext.context.policy import ContextPolicy
from langmem_ext.messages.token_costs.tokens import ApproximateCounter

COUNTER = ApproximateCounter()
WITHOUT_CHECK = ContextPolicy(verify=False)
SUMMARY = "The user asks about numbered orders and each was found."


class ListeningModel(BaseChatModel):
    """Test double of a model: answers a conversation with `answer`, a request to summarise with
    `summary`, and keeps what it was asked.
    """

    answer: str = "Fine."
    summary: str = SUMMARY
    asked: list[list[BaseMessage]] = []

    @property
    def _llm_type(self) -> str:
        return "listening"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self

    @property
    def summaries(self) -> list[str]:
        """What it was asked to summarise."""
        return [
            "\n".join(message.text for message in asked)
            for asked in self.asked
            if self._summarises(asked)
        ]

    def _summarises(self, asked: list[BaseMessage]) -> bool:
        return (
            asked[0].text.startswith("You are a conversation summariser")
            or "\n<messages>\n" in asked[0].text
        )

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.asked.append(messages)
        text = self.summary if self._summarises(messages) else self.answer
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        self.asked.append(messages)
        for word in (self.summary if self._summarises(messages) else self.answer).split(" "):
            chunk = ChatGenerationChunk(message=AIMessageChunk(f"{word} "))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk


def listening(**said: str) -> ListeningModel:
    return ListeningModel(asked=[], **said)


def peers_request(
    model: ListeningModel, messages: Sequence[AnyMessage], **settings: Any
) -> list[BaseMessage] | None:
    """What the peer leaves of a conversation; None if it leaves it as it is."""
    update = SummarizationMiddleware(model, **settings).before_model(
        {"messages": list(messages)}, None
    )  # type: ignore[arg-type]
    return (
        None
        if update is None
        else [message for message in update["messages"] if message.type != "remove"]
    )


def still(defect: bool) -> None:
    """Say that the peer no longer does what it is compared for."""
    if not defect:
        pytest.skip("ours holds; this release of langchain does not do it any more")


def call(*ids: str, **fields: Any) -> AIMessage:
    return AIMessage(
        "", tool_calls=[{"name": "find", "args": {}, "id": each} for each in ids], **fields
    )


def talk(turns: int, words: int) -> list[AnyMessage]:
    """Questions and answers, each with its number in it."""
    return [
        kind(f"[no. {2 * turn + place}] " + "order " * words, id=f"m{2 * turn + place}")
        for turn in range(turns)
        for place, kind in enumerate((HumanMessage, AIMessage))
    ]


def numbers_in(texts: Sequence[str]) -> set[int]:
    return {int(number) for text in texts for number in re.findall(r"\[no\. (\d+)\]", text)}


def test_no_result_is_left_without_its_call() -> None:
    messages: list[AnyMessage] = [
        HumanMessage("Find both. " * 60, id="h"),
        AIMessage("I look. " * 200, id="w"),
        HumanMessage("And?", id="h2"),
        call("a", id="a1"),
        call("b", id="a2"),
        ToolMessage("one", tool_call_id="a", id="t1"),
        ToolMessage("two", tool_call_id="b", id="t2"),
    ]
    for budget in (250, 300, 400, 1_000):
        ours = govern(messages, budget=budget, counter=COUNTER).messages
        assert openai_problems(ours) == []
        assert anthropic_problems(ours) == []
    left = peers_request(listening(), messages, trigger=("messages", 5), keep=("messages", 2))
    still(left is not None and bool(openai_problems(left)))


def test_a_summary_is_made_of_what_gives_way_to_it() -> None:
    """A single question, and more tool output than the peer reads: it writes a placeholder and asks
    no model.
    """
    messages: list[AnyMessage] = [HumanMessage("Look into all of it.", id="h")]
    for number in range(12):
        messages += [
            call(f"c{number}", id=f"a{number}"),
            ToolMessage("row " * 1_500, tool_call_id=f"c{number}", id=f"t{number}"),
        ]
    model = listening()
    governed = ContextGovernor(
        budget=6_000,
        model=model,
        policy=ContextPolicy(verify=False, tool_output_trim_chars=0),
        counter=COUNTER,
    ).govern(messages)
    assert model.summaries
    assert any(SUMMARY in message.text for message in governed.messages)
    peer = listening()
    left = peers_request(peer, messages, trigger=("tokens", 4_000), keep=("messages", 2))
    still(not peer.asked and left is not None and "too long to summarize" in left[0].text)


def test_every_message_that_gives_way_reaches_the_model() -> None:
    messages = talk(28, words=240)
    model = listening()
    governed = ContextGovernor(
        budget=8_000, model=model, policy=WITHOUT_CHECK, counter=COUNTER
    ).govern(messages)
    shown = numbers_in([message.text for message in governed.messages])
    assert shown < set(range(56))
    assert numbers_in(model.summaries) >= set(range(56)) - shown
    peer = listening()
    left = peers_request(peer, messages, trigger=("tokens", 4_000), keep=("messages", 1))
    assert left is not None
    still(len(numbers_in(peer.summaries)) < 55)


def test_the_stored_history_stays() -> None:
    def stored(middleware: Any, model: ListeningModel) -> list[BaseMessage]:
        agent = create_agent(model, [], middleware=[middleware], checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "t"}}
        for turn in range(8):
            agent.invoke({"messages": [HumanMessage(f"[no. {turn}] " + "order " * 150)]}, config)
        return list(agent.get_state(config).values["messages"])

    ours = listening(answer="Found. " * 60)
    kept = stored(ContextMiddleware(budget=1_000, policy=WITHOUT_CHECK, counter=COUNTER), ours)
    assert ours.summaries
    assert numbers_in([message.text for message in kept]) == set(range(8))
    assert len(kept) == 16
    peer = listening(answer="Found. " * 60)
    left = stored(
        SummarizationMiddleware(peer, trigger=("tokens", 700), keep=("messages", 2)), peer
    )
    still(len(left) < 16)


def test_not_every_turn_makes_a_summary() -> None:
    """What is kept is more than what triggers: the peer summarises again in each turn."""

    def summarising_turns(middleware: Any, model: ListeningModel) -> int:
        agent = create_agent(model, [], middleware=[middleware], checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "t"}}
        agent.update_state(config, {"messages": talk(8, words=300)})
        asked = [0]
        for turn in range(6):
            agent.invoke({"messages": [HumanMessage(f"And number {turn}?")]}, config)
            asked.append(len(model.summaries))
        return sum(before < after for before, after in pairwise(asked))

    ours = listening(summary="They were found.")
    made = summarising_turns(
        ContextMiddleware(
            budget=2_000,
            policy=ContextPolicy(verify=False, trigger=("tokens", 1_000)),
            counter=COUNTER,
        ),
        ours,
    )
    assert 1 <= made <= 2
    peer = listening(summary="They were found.")
    still(
        summarising_turns(
            SummarizationMiddleware(peer, trigger=("tokens", 1_000), keep=("messages", 16)), peer
        )
        == 6
    )


def test_a_summary_that_saves_nothing_is_not_used() -> None:
    messages = talk(4, words=1)
    long = listening(summary="They talked about orders at great length. " * 60)
    policy = ContextPolicy(verify=False, trigger=("messages", 6))
    before = sum(map(COUNTER.count, messages))
    governed = ContextGovernor(budget=4_000, model=long, policy=policy, counter=COUNTER).govern(
        messages
    )
    assert sum(map(COUNTER.count, governed.messages)) <= before
    assert not any("great length" in message.text for message in governed.messages)
    peer = listening(summary=long.summary)
    left = peers_request(peer, messages, trigger=("messages", 6), keep=("messages", 2))
    still(left is not None and sum(map(COUNTER.count, left)) > before)


FILE = "QUJD" * 100_000
ATTACHED: dict[str, dict[str, Any]] = {
    "input_image": {"type": "input_image", "image_url": f"data:image/png;base64,{FILE}"},
    "file": {
        "type": "file",
        "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{FILE}"},
    },
    "audio": {"type": "audio", "base64": FILE, "mime_type": "audio/wav"},
    "document": {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": FILE},
    },
}


@pytest.mark.parametrize("attached", ATTACHED.values(), ids=ATTACHED)
def test_an_attached_file_is_not_counted_as_its_characters(attached: dict[str, Any]) -> None:
    messages = [
        *talk(4, words=5),
        HumanMessage([{"type": "text", "text": "What is this?"}, attached], id="file"),
    ]
    governed = govern(messages, budget=50_000, counter=COUNTER)
    assert not governed.plan.added
    assert len(governed.messages) == len(messages)
    assert sum(map(COUNTER.count, messages)) < 50_000
    still(
        peers_request(listening(), messages, trigger=("tokens", 50_000), keep=("messages", 1))
        is not None
    )


def test_the_users_stream_shows_no_summary() -> None:
    def streamed(middleware: Any, model: ListeningModel) -> str:
        agent = create_agent(model, [], middleware=[middleware])
        said = agent.stream(
            {"messages": [*talk(6, words=150), HumanMessage("So?")]}, stream_mode="messages"
        )
        return " ".join(message.text for message, _ in said)

    ours = listening()
    text = streamed(ContextMiddleware(budget=1_500, policy=WITHOUT_CHECK, counter=COUNTER), ours)
    assert ours.summaries
    assert "Fine." in text
    assert "numbered" not in text
    peer = listening()
    still(
        "numbered"
        in streamed(
            SummarizationMiddleware(peer, trigger=("tokens", 1_000), keep=("messages", 2)), peer
        )
    )
