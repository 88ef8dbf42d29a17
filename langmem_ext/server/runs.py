"""Runs and state changes of a thread in this process, each run under its lease.

There is no queue of runs: a run begins at once, or waits a little for another caller that is using
its thread. Every step is stored, so if the process dies, the thread goes on from its last step.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID, uuid4

from fastapi import HTTPException
from langchain_core.messages import BaseMessage, BaseMessageChunk, message_chunk_to_message
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.errors import GraphRecursionError, InvalidUpdateError
from langgraph.pregel import Pregel
from langgraph.types import Command, Interrupt, Send

from langmem_ext._internal.calls import uncut
from langmem_ext.errors import InvalidInput, LangmemExtError, logged, safe_text
from langmem_ext.log.message_log import MessageLog
from langmem_ext.storage.driver import aleased
from langmem_ext.threads.states.held import interrupts_in, is_interrupt_id, require_seen
from langmem_ext.threads.states.taken import AS_INPUT, require_taken
from langmem_ext.types import UNASKED

Graph: TypeAlias = "Pregel[Any, Any, Any, Any]"
Status: TypeAlias = Literal["pending", "running", "error", "success", "interrupted"]
Emit: TypeAlias = Callable[[str, Any], Awaitable[None]]
"""Takes an event: its name, and its data."""

REMEMBERED: Final = 1000
"""How many ended runs are remembered."""

_OWN: Final = frozenset(
    {
        "thread_id",
        "checkpoint_id",
        "checkpoint_ns",
        "checkpoint_map",
        "owner",
        "run_id",
        "expected_head",
    }
)
"""What a client's config must not set: the server does. Names that begin with two underscores are
LangGraph's; by those that begin with `langgraph_` its server says who has been authenticated."""

USER: Final = "user_id"
"""What graphs commonly call the user in `configurable`, and in their context."""

WAITS: Final = "waiting_for_param"
"""The channel by which a waiting graph is known: there, a message of an input may be an answer."""
KEPT: Final = {"plan": True, "suspended": True, "known_secrets": False, "sensitive_params": False}
"""Channels of a waiting graph that no client writes, each with whether one may empty it: the
requests under way, with what the user said yes to; and what its views hide."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Work:
    """What a run does.

    Attributes:
        input: The input or command; None to continue the thread.
        config: The client's config, cleaned.
        modes: What is streamed.
        subgraphs: Whether subgraphs are streamed, too.
        context: The graph's context.
        options: Further arguments of the graph: `interrupt_before`, `interrupt_after`,
            `durability`.
    """

    input: Any
    config: RunnableConfig
    modes: Sequence[str] = ("values",)
    subgraphs: bool = False
    context: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Run:
    """A run, with its state and result."""

    thread_id: str
    assistant_id: str
    owner: str | None
    metadata: Mapping[str, Any]
    strategy: str
    id: str = field(default_factory=lambda: str(uuid4()))
    status: Status = "pending"
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    updated_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    result: Any = None
    task: asyncio.Task[None] | None = None

    def become(self, status: Status) -> None:
        """Change its status."""
        self.status, self.updated_at = status, datetime.now(UTC)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.status not in ("pending", "running")


class Runs:
    """The runs of this process: those under way, and those that ended lately."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, Run] = OrderedDict()

    def busy(self) -> set[str]:
        """The threads that runs are working on."""
        return {run.thread_id for run in self._runs.values() if not run.is_over}

    def of_thread(self, thread_id: str, owner: str | None) -> list[Run]:
        """A thread's runs that a caller may see, the newest first."""
        return [
            run
            for run in reversed(self._runs.values())
            if run.thread_id == thread_id and owner in (None, run.owner)
        ]

    def get(self, thread_id: str, run_id: str, owner: str | None) -> Run:
        """A run that a caller may see.

        Raises:
            HTTPException: It is not found; runs of other processes, and old ones, are not known.
        """
        run = self._runs.get(run_id)
        if run is None or run.thread_id != thread_id or owner not in (None, run.owner):
            raise HTTPException(
                404,
                f"there is no run {run_id!r} of this thread that this server knows: the thread's"
                " state says what it did",
            )
        return run

    async def begin(
        self, run: Run, graph: Graph, log: MessageLog, work: Work, emit: Emit, *, wait: float
    ) -> None:
        """Begin a run, as soon as its thread is free.

        Args:
            run: The run.
            graph: The graph, which stores threads for the caller.
            log: The database, which has the threads' leases.
            work: What it does.
            emit: Takes its events.
            wait: Seconds to wait for another caller that is using the thread.

        Raises:
            ThreadBusy: Another caller is still using it.
            InvalidInput: The graph does not take the input; nothing was stored.
            HTTPException: The run was stopped before it began.
        """
        self._runs[run.id] = run
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        run.task = asyncio.create_task(_drive(run, graph, log, work, emit, begun, wait))
        run.task.add_done_callback(lambda _: self._forget())
        try:
            await asyncio.shield(begun)
        except asyncio.CancelledError:
            if begun.cancelled():
                raise HTTPException(409, "the run was stopped before its thread was free") from None
            raise
        except Exception:
            del self._runs[run.id]
            raise

    async def aclose(self) -> None:
        """Stop all runs; their threads go on from their last step."""
        tasks = [
            run.task for run in self._runs.values() if run.task is not None and not run.task.done()
        ]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self) -> None:
        over = [key for key, run in self._runs.items() if run.is_over]
        for key in over[: max(0, len(over) - REMEMBERED)]:
            del self._runs[key]


async def _drive(
    run: Run,
    graph: Graph,
    log: MessageLog,
    work: Work,
    emit: Emit,
    begun: asyncio.Future[None],
    wait: float,
) -> None:
    """Run a run; the only error raised is its cancellation."""
    try:
        saver: Any = graph.checkpointer

        async def look() -> list[Interrupt]:
            return interrupts_in(await saver.aget_tuple(work.config))

        async with aleased(log.driver, run.thread_id, wait=wait, look=look) as seen:
            held = await check(graph, work.config, work.input)
            waits = held is None or await _is_newest(saver, work.config, held)
            asked = interrupts_in(held)
            _require_asked(graph, work.input, asked, seen, waits=waits)
            run.become("running")
            begun.set_result(None)
            await emit("metadata", {"run_id": run.id, "attempt": 1})
            if work.input is not None and WAITS in graph.channels:
                answers = bool(asked) and _is_one_answer(work.input)
                unasked: RunnableConfig = {"configurable": {UNASKED: not answers}}
                work = replace(work, config=merge_configs(work.config, unasked))
            await uncut(_stream(run, graph, work, emit))
            run.become("success")
    except asyncio.CancelledError:
        run.become("interrupted")
        raise
    except Exception as error:  # whatever a node of somebody's graph raises
        run.become("error")
        if not begun.done():
            begun.set_exception(error)
            return
        if not isinstance(error, LangmemExtError | GraphRecursionError):
            _log.error("run %s of thread %r failed", run.id, run.thread_id, exc_info=logged(error))
        run.result = {"__error__": failure(error)}
        await emit("error", failure(error))
    finally:
        if not begun.done():
            begun.cancel()
        await emit("", None)


async def _is_newest(saver: Any, config: RunnableConfig, held: CheckpointTuple) -> bool:
    """Whether a thread's checkpoint, which a run names or not, is its newest."""
    configurable = dict(config["configurable"])
    if configurable.pop("checkpoint_id", None) is None:
        return True
    newest = await saver.aget_tuple({"configurable": configurable})
    return bool(newest.checkpoint["id"] == held.checkpoint["id"])


def _require_asked(
    graph: Graph,
    value: Any,
    asked: Sequence[Interrupt],
    seen: Sequence[Interrupt] | None,
    *,
    waits: bool,
) -> None:
    """Require that an answer is for what waits.

    LangGraph would drop an answer to a question that waits no more, and take one that names none
    for whatever waits.

    Args:
        graph: The graph.
        value: The input or command.
        asked: What was asked at the checkpoint where the run begins.
        seen: The same before the wait for the thread; None if there was none.
        waits: Whether this is the thread's newest. A page that names the checkpoint it shows would
            answer a second time at one whose question has been answered since.

    Raises:
        StaleAnswer: It is not.
    """
    resume = value.resume if isinstance(value, Command) else None
    if asked and not waits:
        asked, seen = (), asked
    if isinstance(resume, dict) and resume and all(map(is_interrupt_id, resume)):
        ids = [one.id for one in asked]
        require_seen([name for name in resume if name in ids], resume)
    elif resume is not None or (isinstance(value, dict) and WAITS in graph.channels):
        require_seen(asked, asked if seen is None else seen)


def _is_one_answer(value: Any) -> bool:
    """Whether what is sent says one thing to what waits: of several messages none is a yes."""
    update = value.update if isinstance(value, Command) else value
    pairs = update.items() if isinstance(update, Mapping) else update or ()
    said = [written for name, written in pairs if name == "messages"]
    return sum(len(one) if isinstance(one, list) else 1 for one in said) <= 1


async def _stream(run: Run, graph: Graph, work: Work, emit: Emit) -> None:
    """Run the graph, and emit what it streams as events of LangGraph's SDK."""
    asked: set[str] = {"messages" if mode == "messages-tuple" else mode for mode in work.modes}
    modes: list[Any] = sorted(asked | {"updates", "values"})
    options = {
        "stream_mode": modes,
        "subgraphs": work.subgraphs,
        "context": work.context,
        **work.options,
    }
    stream: Any = graph.astream(work.input, work.config, **options)
    spoken: dict[str, BaseMessage] = {}
    async with aclosing(stream) as parts:
        async for part in parts:
            namespace, mode, chunk = part if work.subgraphs else ((), *part)
            if not namespace:
                run.result = _result(run.result, mode, chunk)
            suffix = "".join(f"|{name}" for name in namespace)
            if mode == "messages" and "messages-tuple" not in work.modes:
                for name, data in _partial(spoken, chunk):
                    await emit(name, data)
            elif mode in asked:
                await emit(f"{mode}{suffix}", chunk)
            elif (
                mode == "updates"
                and "values" not in asked
                and isinstance(chunk, dict)
                and chunk.get("__interrupt__")
            ):
                await emit(f"values{suffix}", chunk)


def _result(before: Any, mode: str, chunk: Any) -> Any:
    """A run's result so far: its latest values, and what it waits for."""
    if mode == "values":
        return chunk
    if mode == "updates" and isinstance(chunk, dict) and (asked := chunk.get("__interrupt__")):
        held = before if isinstance(before, dict) else {}
        known = [*held.get("__interrupt__", ())]
        return {
            **held,
            "__interrupt__": [
                *known,
                *(interrupt for interrupt in asked if interrupt not in known),
            ],
        }
    return before


def _partial(
    spoken: dict[str, BaseMessage], chunk: tuple[BaseMessage, dict[str, Any]]
) -> list[tuple[str, Any]]:
    """The events of a growing message, which is whole in each of them."""
    piece, metadata = chunk
    key = piece.id or ""
    events: list[tuple[str, Any]] = []
    grown: Any = piece
    if key in spoken:
        grown = spoken[key] + piece if isinstance(piece, BaseMessageChunk) else piece
    else:
        events.append(("messages/metadata", {key: {"metadata": metadata}}))
    spoken[key] = grown
    if isinstance(grown, BaseMessageChunk):
        return [*events, ("messages/partial", [message_chunk_to_message(grown)])]
    return [*events, ("messages/complete", [grown])]


# -- what a client sends ---------------------------------------------------------------------------


def command_of(command: Mapping[str, Any]) -> Command[Any]:
    """A command, from its JSON.

    Raises:
        HTTPException: It is not a command.
    """
    try:
        goto = command.get("goto")
        places = [] if goto is None else goto if isinstance(goto, list) else [goto]
        update = command.get("update")
        if isinstance(update, list):
            update = [(name, value) for name, value in update]
        taken: Command[Any] = Command(
            update=update,
            resume=command.get("resume"),
            goto=[
                place if isinstance(place, str) else Send(place["node"], place["input"])
                for place in places
            ],
        )
        if taken.resume is None and not (taken.update or taken.goto):
            raise ValueError("a command that says nothing")
        return taken
    except (TypeError, ValueError, KeyError) as error:
        raise HTTPException(
            422,
            "a command has `resume`, `update` (an object, or pairs) or `goto` (nodes, or {node,"
            " input})",
        ) from error


def allowed_of(configurable: Mapping[str, Any], owner: str | None) -> dict[str, Any]:
    """The part of a client's `configurable` that a graph may see.

    Args:
        configurable: What the client sends.
        owner: For whom the client speaks: then it names no user (`Desk.graph` does).
    """
    return {
        name: value
        for name, value in configurable.items()
        if name not in _OWN
        and not name.startswith(("__", "langgraph_"))
        and (owner is None or name != USER)
    }


def config_of(
    run: Run, graph_id: str, client_config: Mapping[str, Any], at: Mapping[str, Any]
) -> RunnableConfig:
    """The config of a run, from what the client may set and what the server sets.

    Args:
        run: The run.
        graph_id: The name of its graph.
        client_config: The client's `configurable`, `tags` and `recursion_limit`.
        at: The id of the checkpoint at which the run begins, if any.
    """
    allowed = allowed_of(client_config.get("configurable") or {}, run.owner)
    known = {"run_id": run.id, "graph_id": graph_id, "assistant_id": run.assistant_id}
    config: RunnableConfig = {
        "run_id": UUID(run.id),
        "configurable": {**allowed, "thread_id": run.thread_id, "checkpoint_ns": "", **at},
        "metadata": {**run.metadata, **known},
        "tags": list(client_config.get("tags") or ()),
    }
    if (limit := client_config.get("recursion_limit")) is not None:
        config["recursion_limit"] = limit
    return config


def failure(error: Exception) -> dict[str, str]:
    """A run's error for a client."""
    return {"error": type(error).__name__, "message": reason_of(error)}


def reason_of(error: Exception) -> str:
    """The safe text of a graph's error: only its kind, if it may quote its input."""
    return (
        str(error)
        if isinstance(error, InvalidUpdateError | GraphRecursionError)
        else safe_text(error)
    )


async def check(
    graph: Graph, config: RunnableConfig, value: Any, *, as_node: str | None = AS_INPUT
) -> CheckpointTuple | None:
    """Require that a graph takes an input, a command or an update; the checkpoint that it follows.

    A client of a waiting graph changes no plan, where a yes is kept: a yes is said. Nor does it
    send its run to nodes: one beside the tool's may lose the tool's result. Nor does it take from
    the thread which values are hidden. See `require_taken`.

    Raises:
        InvalidInput: It does not.
    """
    saver: Any = graph.checkpointer
    configurable = config["configurable"]
    names = (configurable.get("checkpoint_ns") or "").split("|")
    path = "|".join(name.partition(":")[0] for name in names if not name.isdigit())
    inner = next(iter(graph.get_subgraphs(namespace=path, recurse=True)), None) if path else None
    held: CheckpointTuple | None = await saver.aget_tuple(config)
    rebuilt: Any = None
    if held is not None and any(isinstance(one, DeltaChannel) for one in graph.channels.values()):
        with suppress(Exception):  # a state that cannot be rebuilt tells nothing about the value
            rebuilt = (await graph.aget_state(held.config)).values
    subject: Any = graph if inner is None else inner[1]
    if WAITS in subject.channels and isinstance(value, Command) and value.goto:
        raise InvalidInput(
            "a waiting graph goes its own way: leave out `goto`, and send a message, or `resume`"
        )
    graphs = [subject, *(found for _, found in subject.get_subgraphs(recurse=True))]
    kept = KEPT if any(WAITS in one.channels for one in graphs) else {}
    await asyncio.to_thread(
        require_taken, subject, held, value, as_node=as_node, rebuilt=rebuilt, kept=kept
    )
    return held


async def update_state(
    graph: Graph,
    log: MessageLog,
    config: RunnableConfig,
    values: Any,
    as_node: str | None,
    *,
    wait: float,
) -> RunnableConfig:
    """Write values to a thread's state as a node; the config of the new checkpoint.

    Args:
        graph: The graph, which stores threads for the caller.
        log: The database, which has the threads' leases.
        config: The thread, or the checkpoint from which to fork it.
        values: What the node would return.
        as_node: The node; None for the one that ran last.
        wait: Seconds to wait for another caller that is using the thread.

    Raises:
        ThreadBusy: Another caller is still using it.
        InvalidInput: The graph does not take the values; nothing was changed.
        HTTPException: The graph does not take them as this node's; nothing was changed.
    """
    async with log.driver.alease(config["configurable"]["thread_id"], wait=wait):
        await check(graph, config, values, as_node=as_node)
        try:
            return await graph.aupdate_state(config, values, as_node=as_node)
        except LangmemExtError:
            raise
        except Exception as error:  # a graph's reducer may raise anything
            raise HTTPException(400, f"the graph does not take this: {reason_of(error)}") from error
