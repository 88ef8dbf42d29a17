"""The order desk as an agent: `create_agent`, with memory, a governed context and questions."""

from __future__ import annotations

import asyncio
import os
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from langchain.agents import create_agent

from graphs.environment import database
from graphs.offline_model import OfflineModel
from graphs.shop import TOOLS
from langmem_ext import (
    AskUserMiddleware,
    ContextMiddleware,
    ConversationMemories,
    DeltaSaver,
    DeltaStore,
    MemoryPromptMiddleware,
    memory_tools,
)

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langgraph.graph.state import CompiledStateGraph

    Graph: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]

MODEL: Final = "LANGMEM_EXT_AGENT_MODEL"
"""Environment variable that names the agent's chat model, like `openai:gpt-5-mini`."""

PROMPT: Final = "You work at an order desk. {{CONVERSATION_MEMORY}}"


def make_agent(saver: DeltaSaver, model: BaseChatModel | str) -> Graph:
    """The agent, compiled with `saver`; its memories and facts are in the same database.

    Behind a server that authenticates, each user has facts of their own.

    Args:
        saver: Where its threads are stored.
        model: A chat model, or its name for `init_chat_model`.
    """
    store = DeltaStore(saver)
    # What the shop refuses is for the model to read, not the end of the run.
    desk = [tool.model_copy(update={"handle_tool_error": True}) for tool in TOOLS]
    # What is sent is selected last, when the others have added theirs.
    middleware: list[Any] = [
        AskUserMiddleware(desk),
        MemoryPromptMiddleware(ConversationMemories(saver, store)),
        ContextMiddleware(budget=8_000),
    ]
    agent: Graph = create_agent(
        model,
        [*desk, *memory_tools(store)],
        system_prompt=PROMPT,
        middleware=middleware,
        checkpointer=saver,
        store=store,
        name="agent",
    )
    return agent


async def graph() -> Graph:
    """The agent of the database that the environment names, for the agent server and Studio."""
    return await asyncio.to_thread(_agent)


@cache
def _agent() -> Graph:
    """One a process: it has the database open that its memories are in."""
    return make_agent(DeltaSaver.open(database()), os.environ.get(MODEL) or OfflineModel())
