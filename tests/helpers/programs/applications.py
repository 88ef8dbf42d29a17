"""Application scenarios, written once, played on two savers in two modes, and compared."""

from __future__ import annotations

import asyncio
import functools
import operator
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from comparison import Names, assert_same
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.graph import END, START, StateGraph, add_messages
from savers import BACKENDS, MODES, Backend, Calls, Mode, ReferenceShelf, Shelf, run_without_loop

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}


class Application:
    """A scenario's handle on one saver: it calls in one mode and records every result."""

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

    async def invoke(
        self, graph: Any, given: Any, config: RunnableConfig = CONFIG, **options: Any
    ) -> Any:
        """Invoke a graph; record what it returns or raises, and then the thread's whole history."""
        try:
            result = await self.calls.call(graph, "invoke", given, config, **options)
            self.record.append(("result", self.names.form(in_order(result))))
        except Exception as error:
            result = None
            self.record.append(("raised", (type(error).__qualname__, self.names.text(str(error)))))
        await self.look(graph, config)
        return result

    async def stream(
        self, graph: Any, given: Any, config: RunnableConfig = CONFIG, **options: Any
    ) -> None:
        """Stream a run; record its chunks, what it raises after them, and the thread's history."""
        chunks: list[Any] = []
        try:
            if self.calls.mode == "sync":
                chunks.extend(graph.stream(given, config, **options))
            else:
                async for chunk in graph.astream(given, config, **options):
                    chunks.append(chunk)
        except Exception as error:
            self.record.append(("raised", (type(error).__qualname__, self.names.text(str(error)))))
        self.record.append(("chunks", self.names.form(chunks, late=True)))
        await self.look(graph, config)

    async def attempt(self, target: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method that gives a config, or that is refused, and record which."""
        try:
            result = await self.calls.call(target, name, *args, **kwargs)
        except Exception as error:
            self.record.append(
                (f"{name} raised", (type(error).__qualname__, self.names.text(str(error))))
            )
            return None
        self.record.append((name, self.names.config(result)))
        return result

    async def state(self, graph: Any, config: RunnableConfig = CONFIG, **options: Any) -> Any:
        """Give a thread's state."""
        return await self.calls.call(graph, "get_state", config, **options)

    async def history(self, graph: Any) -> list[Any]:
        """Give a thread's states, newest first."""
        states: list[Any] = await self.calls.collect(graph, "get_state_history", CONFIG)
        return states

    async def look(self, graph: Any, config: RunnableConfig = CONFIG) -> None:
        """Record a thread's state, history and checkpoints; again with cold caches if possible."""
        place: RunnableConfig = {"configurable": {"thread_id": config["configurable"]["thread_id"]}}
        root = {"configurable": {**place["configurable"], "checkpoint_ns": ""}}
        for reopened in self.passes:
            if reopened:
                graph.checkpointer = await self.shelf.reopen()
            listed = await self.calls.collect(self.shelf.saver, "list", root)
            self.record.append(
                (
                    "checkpoints",
                    tuple(self.names.checkpoint(without_snapshots(one)) for one in listed),
                )
            )
            try:
                head = await self.state(graph, place, subgraphs=True)
                history = await self.calls.collect(graph, "get_state_history", place)
            except (TypeError, ValueError) as error:
                # A graph whose input its reducer refuses cannot show the state that would follow.
                self.record.append(("raised", self.names.text(str(error))))
                continue
            self.record.append(("state", self.names.snapshot(head)))
            self.record.append(("history", tuple(self.names.snapshot(one) for one in history)))


def in_order(result: Any) -> Any:
    """A result with its questions sorted, as LangGraph's threads return them in any order."""
    if isinstance(result, dict) and (asked := result.get("__interrupt__")):
        return {**result, "__interrupt__": sorted(asked, key=lambda one: repr(one.value))}
    return result


def without_snapshots(found: CheckpointTuple) -> CheckpointTuple:
    """Leave out the snapshots of delta channels.

    InMemorySaver shows one in the checkpoints after it too, as long as the channel keeps its
    version; a saver that gives a checkpoint back as it was put does not. What is rebuilt from
    either is compared as state.
    """
    values = {
        key: value
        for key, value in found.checkpoint["channel_values"].items()
        if not isinstance(value, _DeltaSnapshot)
    }
    return found._replace(checkpoint={**found.checkpoint, "channel_values": values})


Scenario = Callable[[Application], Awaitable[None]]


class Scenarios:
    """The scenarios of a test module."""

    def __init__(self) -> None:
        self.params: list[Any] = []

    def add(
        self, *cases: Any
    ) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., Awaitable[None]]]:
        """Register a scenario; with cases, once for each."""

        def register(function: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
            runs: list[tuple[Scenario, str]] = [
                (
                    functools.partial(function, case=case),
                    f"{function.__name__} {getattr(case, '__name__', case)}",
                )
                for case in cases
            ]
            self.params.extend(
                pytest.param(run, id=name) for run, name in runs or [(function, function.__name__)]
            )
            return function

        return register


PLACES = [
    pytest.param(b, m, id=f"{b.name}-{m}")
    for b in BACKENDS
    for m in MODES
    if (b.name, m) != ("postgres", "sync")
]
"""What storage does in each mode on each database is shown elsewhere; here LangGraph's two engines
meet both."""


def play(scenario: Scenario, backend: Backend, mode: Mode, folder: Path) -> None:
    """Play a scenario on InMemorySaver and on the subject, and compare all that was recorded."""
    work = _compare(scenario, backend, mode, folder)
    if mode == "async":
        asyncio.run(work)
    else:
        run_without_loop(work)


_expected: dict[tuple[Scenario, Mode, bool], list[tuple[str, Any]]] = {}
"""What the last scenario has recorded on InMemorySaver: the same is expected of a file as of
PostgreSQL, which come one after the other."""


async def _compare(scenario: Scenario, backend: Backend, mode: Mode, folder: Path) -> None:
    shelf, cold = Shelf(backend, mode, folder), backend.survives_close
    try:
        if (scenario, mode, cold) not in _expected:
            for other in [played for played in _expected if played[0] is not scenario]:
                del _expected[other]
            reference = Application(ReferenceShelf(), mode, cold=cold)
            await scenario(reference)
            _expected[scenario, mode, cold] = reference.record
        subject = Application(shelf, mode, cold=cold)
        await scenario(subject)
        recorded = _expected[scenario, mode, cold]
        for (what, expected), (also, found) in zip(recorded, subject.record, strict=True):
            assert_same((what, expected), (also, found), what)
        assert recorded
    finally:
        await shelf.close()


class State(TypedDict, total=False):
    """What most scenarios keep."""

    messages: Annotated[list[Any], add_messages]
    log: Annotated[list[Any], operator.add]
    value: Any


def three_nodes(app: Application) -> Any:
    """A line of three nodes that talk."""
    builder = StateGraph(State)
    builder.add_node("a", app.node(lambda state: {"messages": [("ai", "from a")], "log": ["a"]}))
    builder.add_node(
        "b",
        app.node(
            lambda state: {
                "messages": AIMessage("from b", id="b"),
                "value": {"seen": len(state["messages"])},
            }
        ),
    )
    builder.add_node("c", app.node(lambda state: {"log": [len(state["messages"])]}))
    for source, target in ((START, "a"), ("a", "b"), ("b", "c"), ("c", END)):
        builder.add_edge(source, target)
    return builder


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
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next())])

    def _next(self) -> AIMessage:
        answer = self.answers[self.given % len(self.answers)]
        self.given += 1
        return answer.model_copy(deep=True)


class WordByWordModel(ScriptedChatModel):
    """The same for plain answers, which are given a word at a time where somebody listens."""

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for word in str(self._next().content).split(" "):
            chunk = ChatGenerationChunk(message=AIMessageChunk(f"{word} "))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk
