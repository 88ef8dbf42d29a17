"""A double of a chat model, by rules: the example agent answers with it where no model is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from uuid import uuid4

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

ORDER: Final = re.compile(r"\bO-\d{3,6}\b")

RULES: Final[Sequence[tuple[str, str]]] = (
    (r"\bremember\b", "remember_fact"),
    (r"\bwhat do you know\b", "search_memory"),
    (r"\bcancel\b", "cancel_order"),
    (r"\brefund\b|\bmoney back\b", "refund_order"),
    (r"\baddress\b", "change_address"),
    (r"\bhuman\b", "talk_to_human"),
    (r"\border\b|\bparcel\b|\bpackage\b", "check_order"),
)
"""Words, and the tool that is called for them; the first that match count."""


class OfflineModel(BaseChatModel):
    """Calls the tool that a user's words name, and says what tools return. It needs no key."""

    model_name: str = "offline-double"

    @property
    def _llm_type(self) -> str:
        return "offline-double"

    def bind_tools(
        self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool], **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        """The model with tools; it knows those of the example."""
        return self.bind(**kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_answer(messages))])


def _answer(messages: Sequence[BaseMessage]) -> AIMessage:
    results = list(_results(messages))
    if results:
        return AIMessage(" ".join(reversed(results)))
    text = next((one.text for one in reversed(messages) if isinstance(one, HumanMessage)), "")
    name = next((tool for words, tool in RULES if re.search(words, text, re.IGNORECASE)), None)
    if name is None:
        return AIMessage("I can check, change, cancel and refund orders, and remember things.")
    return AIMessage("", tool_calls=[ToolCall(name=name, args=_args(name, text), id=uuid4().hex)])


def _results(messages: Sequence[BaseMessage]) -> Iterator[str]:
    """What tools have returned since somebody spoke last, the newest first."""
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            return
        yield message.text


def _args(name: str, text: str) -> dict[str, Any]:
    if name == "remember_fact":
        return {"fact": re.sub(r"(?i)^.*?\bremember( that)?\s*", "", text), "subject": "customer"}
    if name in ("search_memory", "talk_to_human"):
        return {}
    order = ORDER.search(text)
    return {} if order is None else {"order_id": order[0]}
