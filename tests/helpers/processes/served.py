"""Graphs that are served in tests."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Sequence
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class Asked(MessagesState):
    name: str


def ask(state: Asked) -> dict[str, Any]:
    return {"name": interrupt({"question": "What's your name?"})}


def greet(state: Asked) -> dict[str, Any]:
    return {"messages": [AIMessage(f"Hello {state['name']}", id="greeting")]}


def greeter() -> Any:
    """A graph that asks for a name, and greets."""
    builder = StateGraph(Asked).add_node(ask).add_node(greet)
    return builder.add_edge(START, "ask").add_edge("ask", "greet").compile()


class Noted(TypedDict):
    notes: Annotated[list[str], operator.add]


async def note(state: Noted) -> dict[str, Any]:
    if "slowly" in state["notes"]:
        await asyncio.sleep(3600)
    if "fail" in state["notes"]:
        raise RuntimeError("the secret is 4711")
    return {"notes": ["noted"]}


def notebook() -> Any:
    """A graph that notes something; that works slowly, or fails, when it is told to."""
    return StateGraph(Noted).add_node(note).add_edge(START, "note").compile()


def speaker(text: str) -> Any:
    """A graph whose model says a text piece by piece. The model is a double."""
    model = GenericFakeChatModel(messages=iter([AIMessage(text), AIMessage(text)]))

    async def say(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    return StateGraph(MessagesState).add_node(say).add_edge(START, "say").compile()


class FillingModel(BaseChatModel):
    """A double of a model: it fills whatever form it is given with the same values."""

    values: dict[str, Any]
    asked: list[str] = []

    @property
    def _llm_type(self) -> str:
        return "double"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=list(tools))

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.asked.append("\n".join(message.text for message in messages))
        call = {"name": kwargs["tools"][0].__name__, "args": self.values, "id": "c1"}
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])


def filling(values: dict[str, Any]) -> FillingModel:
    return FillingModel(values=values, asked=[])
