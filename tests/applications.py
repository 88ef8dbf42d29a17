"""Scenarios of applications: what one needs to be written once, played on two savers in two modes, and compared."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from comparison import Names
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from savers import Calls, Mode, ReferenceShelf, Shelf

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}


class Application:
    """A scenario's hold on one saver: it calls in one mode and records everything that comes back."""

    def __init__(self, shelf: Shelf | ReferenceShelf, mode: Mode, *, cold: bool) -> None:
        self.shelf = shelf
        self.passes = (False, True) if cold else (False,)
        self.calls = Calls(mode)
        self.names = Names()
        self.record: list[tuple[str, Any]] = []

    def node(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Give a node in the form that fits the mode."""
        if self.calls.mode == "sync":
            return function

        @functools.wraps(function)
        async def anode(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return anode

    def compiled(self, builder: Any, **options: Any) -> Any:
        """Compile a graph on the saver."""
        return builder.compile(checkpointer=self.shelf.saver, **options)

    async def invoke(self, graph: Any, given: Any, config: RunnableConfig = CONFIG, **options: Any) -> Any:
        """Invoke a graph and record what it gives or raises, and then the thread's whole history."""
        try:
            result = await self.calls.call(graph, "invoke", given, config, **options)
            self.record.append(("result", self.names.form(result)))
        except Exception as error:
            result = None
            self.record.append(("raised", (type(error).__qualname__, self.names.text(str(error)))))
        await self.look(graph, config)
        return result

    async def state(self, graph: Any, config: RunnableConfig = CONFIG, **options: Any) -> Any:
        """Give a thread's state."""
        return await self.calls.call(graph, "get_state", config, **options)

    async def history(self, graph: Any) -> list[Any]:
        """Give a thread's states, newest first."""
        states: list[Any] = await self.calls.collect(graph, "get_state_history", CONFIG)
        return states

    async def look(self, graph: Any, config: RunnableConfig = CONFIG) -> None:
        """Record the state, the history and the checkpoints of a thread; then once more, cold, where that can be."""
        place: RunnableConfig = {"configurable": {"thread_id": config["configurable"]["thread_id"]}}
        root = {"configurable": {**place["configurable"], "checkpoint_ns": ""}}
        for reopened in self.passes:
            if reopened:
                graph.checkpointer = await self.shelf.reopen()
            listed = await self.calls.collect(self.shelf.saver, "list", root)
            self.record.append(("checkpoints", tuple(self.names.checkpoint(one) for one in listed)))
            try:
                head = await self.state(graph, place, subgraphs=True)
                history = await self.calls.collect(graph, "get_state_history", place)
            except ValueError as error:
                # A graph whose input its reducer refuses cannot show the state that would follow.
                self.record.append(("raised", self.names.text(str(error))))
                continue
            self.record.append(("state", self.names.snapshot(head)))
            self.record.append(("history", tuple(self.names.snapshot(one) for one in history)))


Scenario = Callable[[Application], Awaitable[None]]
SCENARIOS: list[Any] = []


def scenario(*cases: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., Awaitable[None]]]:
    """Register a scenario; with cases, once for each."""

    def register(function: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        runs: list[tuple[Scenario, str]]
        runs = [(functools.partial(function, case=case), f"{function.__name__} {case}") for case in cases] or [
            (function, function.__name__)
        ]
        SCENARIOS.extend(pytest.param(run, id=name) for run, name in runs)
        return function

    return register


class ScriptedChatModel(BaseChatModel):
    """Test double of a model: gives the answers it was made with, in order."""

    answers: list[AIMessage]
    given: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any
    ) -> ChatResult:
        answer = self.answers[self.given % len(self.answers)]
        self.given += 1
        return ChatResult(generations=[ChatGeneration(message=answer.model_copy(deep=True))])
