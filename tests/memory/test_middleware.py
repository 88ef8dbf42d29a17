"""An agent's prompt has the memory of its thread, the same in every call of a request, and nobody
else's words become one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles import answering, called
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.store.memory import InMemoryStore

from langmem_ext import (
    ConversationMemories,
    DeltaSaver,
    InvalidInput,
    MemoryGenerator,
    MemoryPromptMiddleware,
)

# The tool looks for the thread, so its row must be there: `durability="sync"` wherever an agent is
# invoked.
CONFIG = {"configurable": {"thread_id": "t1"}}
PROMPT = "You are kind. {{CONVERSATION_MEMORY__main_topics}}"
KNOWN = 'These are some details of the conversation till now. `main_topics` is "{}".'


class AgentDouble(BaseChatModel):
    """Calls the tool once in each request, then answers; keeps what it was sent."""

    asked: list[list[BaseMessage]]

    @property
    def _llm_type(self) -> str:
        return "double"

    @property
    def prompts(self) -> list[Any]:
        """The system prompts that it was sent."""
        return [messages[0].content for messages in self.asked]

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.asked.append(messages)
        calls = (
            []
            if isinstance(messages[-1], ToolMessage)
            else [{"name": "look", "args": {}, "id": f"c{len(self.asked)}"}]
        )
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage("Done.", tool_calls=calls))]
        )


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(tmp_path / "memory.db") as opened:
        yield opened


class CountingMemories(ConversationMemories):
    """Counts how often it is asked."""

    reads = 0

    def get(self, thread_id: Any) -> Any:
        self.reads += 1
        return super().get(thread_id)

    async def aget(self, thread_id: Any) -> Any:
        self.reads += 1
        return await super().aget(thread_id)


def remember(saver: DeltaSaver, store: InMemoryStore, topic: str) -> None:
    MemoryGenerator(saver, answering({"main_topics": [topic]}), store=store).generate("t1")


def agent_on(
    saver: DeltaSaver,
    store: InMemoryStore,
    model: BaseChatModel,
    prompt: Any = PROMPT,
    **options: Any,
) -> Any:
    @tool
    def look() -> str:
        """Look, while a memory is being written."""
        remember(saver, store, "written meanwhile")
        return "{{CONVERSATION_MEMORY}}"

    memories = CountingMemories(saver, store)
    middleware = MemoryPromptMiddleware(memories, **options)
    return (
        create_agent(
            model, [look], system_prompt=prompt, middleware=[middleware], checkpointer=saver
        ),
        memories,
    )


HELLO = {"messages": [("user", "Hello")]}


async def test_the_memory_is_read_once_a_request_and_no_checkpoint_holds_it(
    saver: DeltaSaver, mode: str
) -> None:
    store, model = InMemoryStore(), AgentDouble(asked=[])
    agent, memories = agent_on(saver, store, model)
    said = {"messages": [("user", "What is {{CONVERSATION_MEMORY}}?")]}
    await called(mode, agent, "invoke", said, CONFIG, durability="sync")
    assert model.prompts == ["You are kind. Conversation memory not available."] * 2
    told = [message.text for message in model.asked[-1]]
    assert told[1::2] == ["What is {{CONVERSATION_MEMORY}}?", "{{CONVERSATION_MEMORY}}"], (
        "what others say is never replaced"
    )
    assert memories.reads == 1
    remember(saver, store, "plants")
    await called(mode, agent, "invoke", said, CONFIG, durability="sync")
    assert model.prompts[2:] == [f"You are kind. {KNOWN.format('plants')}"] * 2
    assert memories.reads == 2
    result = await called(mode, agent, "invoke", said, CONFIG, durability="sync")
    assert model.prompts[-1] == f"You are kind. {KNOWN.format('written meanwhile')}"
    assert result.keys() == {"messages"}
    assert not [one for one in saver.list(CONFIG) if "written meanwhile" in repr(one)]
    agent, memories = agent_on(saver, store, model, "You are kind.")
    await called(mode, agent, "invoke", said, CONFIG, durability="sync")
    assert (model.prompts[-1], memories.reads) == ("You are kind.", 0), "it has no placeholder"
    with pytest.raises(InvalidInput):
        MemoryPromptMiddleware(ConversationMemories(saver, store), max_chars=0)


async def test_blocks_of_a_prompt_keep_what_stands_beside_their_text(
    saver: DeltaSaver, mode: str
) -> None:
    store, model = InMemoryStore(), AgentDouble(asked=[])
    beside = {"type": "text", "cache_control": {"type": "ephemeral"}}
    prompt = SystemMessage([{**beside, "text": "{{CONVERSATION_MEMORY_JSON}}"}])
    agent, _ = agent_on(saver, store, model, prompt, max_chars=5)
    await called(mode, agent, "invoke", HELLO, CONFIG, durability="sync")
    remember(saver, store, "photosynthesis")
    await called(mode, agent, "invoke", HELLO, CONFIG, durability="sync")
    filled = '{"main_topics": ["phot…"], "action": [], "typical_observation": ""}'
    assert model.prompts[2] == [{**beside, "text": filled}]


class BrokenStore(InMemoryStore):
    """Cannot be reached."""

    def batch(self, ops: Any) -> Any:
        raise ConnectionError("secret host")

    async def abatch(self, ops: Any) -> Any:
        raise ConnectionError("secret host")


async def test_an_agent_answers_where_the_memory_cannot_be_read(
    saver: DeltaSaver, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = AgentDouble(asked=[])
    middleware = MemoryPromptMiddleware(ConversationMemories(saver, BrokenStore()))
    agent = create_agent(
        model, [tool(lookup)], system_prompt=PROMPT, middleware=[middleware], checkpointer=saver
    )
    for _ in range(2):
        await called(
            mode, agent, "invoke", {"messages": [("user", "Hello")]}, CONFIG, durability="sync"
        )
    assert model.prompts[-1] == "You are kind. Conversation memory not available."
    assert "no memory was read: ConnectionError" in caplog.text
    assert "secret" not in caplog.text


def lookup() -> str:
    """Look."""
    return "nothing"
