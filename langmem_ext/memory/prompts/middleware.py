"""`MemoryPromptMiddleware`: a conversation's memory in an agent's system prompt."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, NotRequired, TypeAlias

from langchain_core.messages import AIMessage, SystemMessage
from langgraph.channels.untracked_value import UntrackedValue
from langgraph.config import get_config
from langgraph.types import Command

from langmem_ext._internal.interruption import pass_on
from langmem_ext.errors import MissingExtra
from langmem_ext.memory.calls import Call, Steps, arun, run
from langmem_ext.memory.memories import ConversationMemories
from langmem_ext.memory.prompts.placeholders import (
    Schema,
    checked_max_chars,
    extract_memory_placeholders,
    inject_memory_placeholders,
)
from langmem_ext.memory.schema import ConversationMemoryData

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
    )
except ImportError:
    raise MissingExtra("MemoryPromptMiddleware", "agents") from None

READ: Final = "conversation_memory_read"
"""The channel that keeps what was read until the request is answered; no checkpoint holds it."""

Response: TypeAlias = ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]
Memory: TypeAlias = Mapping[str, Any] | None

_log = logging.getLogger(__name__)


class MemoryAgentState(AgentState[Any]):
    """What an agent's state has besides, with this middleware."""

    conversation_memory_read: NotRequired[
        Annotated[dict[str, Any], UntrackedValue, PrivateStateAttr]
    ]


class MemoryPromptMiddleware(AgentMiddleware[MemoryAgentState, Any, Any]):
    """Puts the memory of the thread in place of the placeholders in an agent's system prompt.

    The memory is read when the model is first called in a request of the user's, and every later
    call of that request sees the same. A prompt without placeholders reads nothing. What users and
    tools say is never replaced. Where there is no memory, or it cannot be read, the prompt says so.

    Args:
        memories: Where the memories are.
        schema: Has the keys that may be shown.
        max_chars: How many characters of each value are shown; None: all.

    Raises:
        MissingExtra: The extra `agents` is not installed.
        InvalidInput: `max_chars` is no number of at least 1.

    Example:
        `create_agent(model, tools, system_prompt="Known: {{CONVERSATION_MEMORY}}",
        middleware=[MemoryPromptMiddleware(memories)])`
    """

    state_schema = MemoryAgentState

    def __init__(
        self,
        memories: ConversationMemories,
        *,
        schema: Schema = ConversationMemoryData,
        max_chars: int | None = None,
    ) -> None:
        super().__init__()
        self.memories = memories
        self.schema = schema
        self.max_chars = checked_max_chars(max_chars)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Response:
        """Send the model its prompt with the memory in it."""
        if not _asks(request.system_message):
            return handler(request)
        known: Any = request.state.get(READ)
        memory = run(self._memory()) if known is None else known["memory"]
        return _keeping(handler(self._injected(request, memory)), memory, known=known is not None)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> Response:
        """Async twin of `wrap_model_call`."""
        if not _asks(request.system_message):
            return await handler(request)
        known: Any = request.state.get(READ)
        memory = await arun(self._memory()) if known is None else known["memory"]
        return _keeping(
            await handler(self._injected(request, memory)), memory, known=known is not None
        )

    def _memory(self) -> Steps[Memory]:
        thread_id = get_config().get("configurable", {}).get("thread_id")
        if thread_id is None:
            return None
        try:
            memory = yield Call(self.memories, "get", thread_id)
        except Exception as error:  # of whatever store; an agent answers without a memory, too
            pass_on(error)
            _log.warning("no memory was read: %s", type(error).__name__)
            return None
        return None if memory is None else memory.data

    def _injected(self, request: ModelRequest[Any], memory: Memory) -> ModelRequest[Any]:
        def filled(text: str) -> str:
            return inject_memory_placeholders(
                text, memory, schema=self.schema, max_chars=self.max_chars
            )

        prompt = request.system_message or SystemMessage("")
        content: Any = (
            filled(prompt.content)
            if isinstance(prompt.content, str)
            else [_filled(block, filled) for block in prompt.content]
        )
        return request.override(system_message=prompt.model_copy(update={"content": content}))


def _asks(prompt: SystemMessage | None) -> bool:
    """Whether a prompt has a placeholder."""
    return prompt is not None and bool(extract_memory_placeholders(prompt.text))


def _filled(block: str | dict[str, Any], filled: Callable[[str], str]) -> str | dict[str, Any]:
    if isinstance(block, str):
        return filled(block)
    return {**block, "text": filled(block["text"])} if isinstance(block.get("text"), str) else block


def _keeping(response: ModelResponse[Any], memory: Memory, *, known: bool) -> Response:
    """The response; with what was read, for the calls that follow."""
    return (
        response
        if known
        else ExtendedModelResponse(response, Command(update={READ: {"memory": memory}}))
    )
