"""A double of a chat model: it answers by a function of what it is asked, and keeps what it was
asked with which tools.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

Answer = Callable[[Sequence[BaseMessage]], "str | AIMessage"]


class ScriptedModel(BaseChatModel):
    """The double. It streams word by word."""

    answer: Answer
    model_name: str = "scripted"
    asked: list[list[BaseMessage]] = []  # pydantic copies it
    tools: list[list[Any]] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=list(tools))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answered(messages, kwargs))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        answer = self._answered(messages, kwargs)
        for word in answer.text.split():
            yield ChatGenerationChunk(message=AIMessageChunk(f"{word} "))
        if answer.tool_calls or answer.usage_metadata or not answer.text:
            calls = [
                {"name": c["name"], "args": json.dumps(c["args"]), "id": c["id"], "index": i}
                for i, c in enumerate(answer.tool_calls)
            ]
            yield ChatGenerationChunk(
                message=AIMessageChunk(
                    "", tool_call_chunks=calls, usage_metadata=answer.usage_metadata
                )
            )

    def _answered(self, messages: list[BaseMessage], given: dict[str, Any]) -> AIMessage:
        self.asked.append(messages)
        self.tools.append(given.get("tools") or [])
        answer = self.answer(messages)
        return AIMessage(answer) if isinstance(answer, str) else answer


def scripted(answer: Answer, **given: Any) -> ScriptedModel:
    return ScriptedModel(answer=answer, asked=[], tools=[], **given)
