"""Doubles of chat models, and conversations for them to read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langmem_ext import MessageLog, ThreadChatMessageHistory

Answer = Callable[[str], "AIMessage | str | dict[str, Any]"]
"""What a double says to a prompt: a message, a text, or what it fills a form with."""


class TextModelDouble(BaseChatModel):
    """Answers by a function of its prompt, in text: it knows no structured output."""

    answer: Answer
    asked: list[str] = []

    @property
    def _llm_type(self) -> str:
        return "double"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.asked.append("\n".join(message.text for message in messages))
        answer = self.answer(self.asked[-1])
        return ChatResult(
            generations=[ChatGeneration(message=self._message(answer, kwargs.get("tools") or []))]
        )

    def _message(self, answer: AIMessage | str | dict[str, Any], tools: Sequence[Any]) -> AIMessage:
        if isinstance(answer, AIMessage):
            return answer
        return AIMessage(answer if isinstance(answer, str) else json.dumps(answer))


class ModelDouble(TextModelDouble):
    """The same with structured output, by a tool call."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=list(tools))

    def _message(self, answer: AIMessage | str | dict[str, Any], tools: Sequence[Any]) -> AIMessage:
        if not isinstance(answer, dict) or not tools:
            return super()._message(answer, tools)
        return AIMessage("", tool_calls=[{"name": tools[0].__name__, "args": answer, "id": "c1"}])


def answering(answer: Answer | dict[str, Any] | str) -> ModelDouble:
    return ModelDouble(answer=answer if callable(answer) else lambda _: answer, asked=[])


def talk(log: MessageLog, thread_id: str, *texts: str, owner: str | None = None) -> list[str]:
    """Say texts in a thread, the user and the agent by turns; the messages' ids."""
    messages = [
        (AIMessage if at % 2 else HumanMessage)(text, id=f"{thread_id}-{at}")
        for at, text in enumerate(texts)
    ]
    ThreadChatMessageHistory(thread_id, log, owner=owner).add_messages(messages)
    return [str(message.id) for message in messages]


async def called(mode: str, target: object, name: str, *args: Any, **kwargs: Any) -> Any:
    """What a method returns, or its async twin."""
    if mode == "sync":
        return getattr(target, name)(*args, **kwargs)
    return await getattr(target, f"a{name}")(*args, **kwargs)
